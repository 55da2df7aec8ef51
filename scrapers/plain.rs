//! The plain case of an offer: what a short price list states, and nothing for what it does not.
//!
//! In: what a row says. Out: offers whose other columns are empty. Never a default for a price, a currency or a unit.

use std::collections::BTreeSet;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    Machine, Page, Place, PriceUnit, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, SkipReason, Terms,
};
use crate::manifest::Manifest;
use crate::money::{self, NumberFormat};

/// Flag of an offer that is a price of one GPU from a list that does not say which machines there are: its count is one, and its
/// machine may be sold with several only.
pub const MACHINE_NOT_STATED: &str = "machine_not_stated";

/// Flag of an offer whose price is of the GPU alone: processors and memory beside it are billed apart.
pub const GPU_PART_ONLY: &str = "gpu_part_only";

/// Flag of an offer whose price leaves out processors that come with the machine or can be added to it: beyond a few they are
/// billed apart, so that a machine may cost more than its GPUs.
pub const PROCESSORS_BILLED_APART: &str = "processors_billed_apart";

impl PublishedGpu {
    /// Whole cards of a label, and nothing else known.
    #[must_use]
    pub fn plain(label: impl Into<String>, count: u32) -> Self {
        Self { label: Some(label.into()), count: Some(Ratio::from(count)), ..Self::unknown() }
    }

    /// The same with the memory of one card in GB.
    #[must_use]
    pub fn of_memory(self, memory_gb: Decimal) -> Self {
        Self { memory_gb: Some(memory_gb), ..self }
    }
}

impl PublishedPrice {
    /// A price whose currency and time are the manifest's, for the thing the manifest says.
    ///
    /// # Panics
    /// When the manifest leaves the unit to each row, which the provider's own tests show.
    #[must_use]
    pub fn plain(manifest: &Manifest, amount: Decimal, text: impl Into<String>) -> Self {
        let published = manifest.published();
        Self {
            amount,
            upfront_amount: None,
            currency_code: published.currency_code.clone(),
            unit: published.unit.expect("the manifest states the unit"),
            per: published.per,
            text: text.into(),
            tax_included: published.tax_included,
            listings: None,
        }
    }

    /// The same, read from a cell with dollar signs that may end in a unit such as `/hr`.
    ///
    /// # Errors
    /// Says why the cell holds no price.
    pub fn dollars(manifest: &Manifest, cell: &str, endings: &[&str]) -> Result<Self, SkipReason> {
        let bare = cell.trim();
        let bare = endings.iter().find_map(|ending| bare.strip_suffix(ending)).unwrap_or(bare);
        let amount = money::positive(money::printed(bare, NumberFormat::PointDecimal, &["$"])?, cell)?;
        Ok(Self::plain(manifest, amount, cell.trim()))
    }

    /// The same price for another stretch of time.
    #[must_use]
    pub fn for_each(self, unit: PriceUnit) -> Self {
        Self { unit, ..self }
    }
}

impl PublishedOffer {
    /// An offer of which only cards, terms and price are known.
    #[must_use]
    pub fn plain(gpu: PublishedGpu, terms: Terms, price: PublishedPrice, place: Place) -> Self {
        Self {
            site: None,
            sku: None,
            instance_type: None,
            offer_label: None,
            region: None,
            zone: None,
            gpu,
            machine: Machine::default(),
            terms,
            price,
            place,
            flags: BTreeSet::new(),
        }
    }

    /// The same under the name that the page gives it.
    #[must_use]
    pub fn called(self, label: impl Into<String>) -> Self {
        Self { offer_label: Some(label.into()), ..self }
    }

    /// The same with a mark that a reader of the row must know.
    #[must_use]
    pub fn marked(mut self, flag: &'static str) -> Self {
        self.flags.insert(flag);
        self
    }
}

impl SkipReason {
    /// A field that should be something else.
    #[must_use]
    pub fn unreadable(field: &str, expected: &'static str, found: &str) -> Self {
        Self::FieldUnreadable { field: field.to_owned(), expected, found: found.to_owned() }
    }
}

impl ScrapeError {
    /// A page that no longer looks as it did.
    #[must_use]
    pub fn changed(page: &Page, at: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::ShapeChanged { page: page.name.clone(), at: at.into(), expected: expected.into(), found: found.into() }
    }
}

/// A plain number with nothing around it, such as a memory size in a column that names its unit.
///
/// # Errors
/// When it is anything else.
pub fn number(text: &str, field: &str) -> Result<Decimal, SkipReason> {
    money::printed(text, NumberFormat::PointDecimal, &[]).map_err(|_| SkipReason::unreadable(field, "a number", text))
}
