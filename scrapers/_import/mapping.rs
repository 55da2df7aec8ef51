//! `mapping.toml`: what the columns of somebody's price history mean. Unknown keys are refused, and nothing has a default that
//! a price could depend on.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Deserialize;

use crate::contract::{Os, PricePer, PriceUnit, PricingModel};

/// What a history is and how it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Short name of the history; its scope is `import-NAME`. `gcosts`
    pub name: String,
    /// What it is and who keeps it, in one line.
    pub source: String,
    /// The page a person would open.
    pub homepage: String,
    /// Raised by one whenever the same file is read differently. Stands on every row.
    pub version: u32,
    /// How the file is written.
    pub form: Form,
    /// When its prices were seen. Absent: `--at` says it.
    pub night: Option<NightColumns>,
    /// Who sells.
    #[serde(default)]
    pub seller: Seller,
    /// What is rented; needed for a CSV.
    pub machine: Option<MachineColumns>,
    /// Which GPUs it has; needed for a CSV.
    pub gpu: Option<GpuColumns>,
    /// What is agreed; needed for a CSV.
    pub terms: Option<TermsColumns>,
    /// The prices of a row, each an offer of its own; needed for a CSV.
    #[serde(default, rename = "price")]
    pub prices: Vec<PriceColumn>,
    /// Digits after the point to which amounts of more digits are rounded, for a source that multiplies as floats. Absent:
    /// nothing is rounded, and an amount of too many digits is held back.
    pub digits: Option<u32>,
    /// Hours of a month where the source states its own basis; 730 otherwise.
    pub hours_per_month: Option<u32>,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Comma-separated, with a line of names.
    Csv,
    /// The daily JSON of gpurentalprices.
    GpuRentalPrices,
}

/// The columns that say when a row's prices were seen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NightColumns {
    /// A day, which is taken to be its noon in UTC, or a time with its zone.
    pub column: String,
    /// What tells several tables of one time apart, such as a commit. They are a minute apart, in the order of the file.
    pub table: Option<String>,
    /// Whether a time without a zone is in UTC; otherwise it is not understood.
    #[serde(default)]
    pub is_utc: bool,
}

/// Who sells, in the history's words, and which of them are ours for certain.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seller {
    /// The one seller of the file. Absent, and without a column: `--provider` says it.
    pub name: Option<String>,
    /// The column that names the seller.
    pub column: Option<String>,
    /// Their name → our provider, where it is certain that both are the same.
    #[serde(default)]
    pub ours: BTreeMap<String, String>,
}

/// The columns of the machine and its place.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineColumns {
    /// The provider's name of the machine.
    #[serde(rename = "type")]
    pub machine_type: Option<String>,
    /// Columns that together are what the history calls the offer, where it names no machine type.
    #[serde(default)]
    pub label: Vec<String>,
    /// Region as published.
    pub region: Option<String>,
    /// Words in that column that mean every region.
    #[serde(default)]
    pub everywhere: Vec<String>,
    /// Virtual CPUs of the whole machine.
    pub vcpus: Option<String>,
    /// Main memory of the whole machine in GiB.
    pub memory_gib: Option<String>,
}

/// The columns of the GPUs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuColumns {
    /// `true`: cards and count are those that our own hardware table of the provider has for the machine type.
    #[serde(default)]
    pub of_machine_type: bool,
    /// Name of the card. A row without one has no GPU and is left out.
    pub label: Option<String>,
    /// How many.
    pub count: Option<String>,
    /// How many, where it is the same in every row.
    pub count_of_every_row: Option<u32>,
    /// Memory of one card in GB.
    pub memory_gb: Option<String>,
    /// Their label → canonical name, where it does not follow from the label.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// What is agreed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermsColumns {
    /// The operating system that is in the prices.
    pub os: Os,
    /// The column that says how it is bought; absent where each price says it.
    pub pricing_model: Option<WordColumn>,
    /// The provider's own plan.
    pub plan: Option<String>,
}

/// A column of words, each of which must be known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordColumn {
    /// The column.
    pub column: String,
    /// Their word → ours.
    pub words: BTreeMap<String, PricingModel>,
}

/// A column of amounts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceColumn {
    /// The column.
    pub column: String,
    /// ISO 4217 code.
    pub currency: String,
    /// The time that an amount pays for.
    pub unit: PriceUnit,
    /// The thing that it pays for.
    pub per: PricePer,
    /// Days since when it pays for another thing.
    #[serde(default)]
    pub per_since: BTreeMap<NaiveDate, PricePer>,
    /// How it is bought; absent where a column says it.
    pub pricing_model: Option<PricingModel>,
    /// Months promised.
    pub commitment_months: Option<u32>,
    /// Whether tax is in it; absent if not stated.
    pub tax_included: Option<bool>,
    /// What stands there when there is no such price.
    #[serde(default)]
    pub none: Vec<String>,
    /// Columns of the listings behind it, for a market.
    pub listings: Option<ListingColumns>,
}

/// Columns of the listings behind a price.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingColumns {
    /// How many.
    pub count: String,
    /// The lowest amount.
    pub min: String,
    /// The highest amount.
    pub max: String,
}

/// Mappings built into the program: name and text.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("skypilot", include_str!("skypilot.toml")),
    ("gpuhunt", include_str!("gpuhunt.toml")),
    ("gpurentalprices", include_str!("gpurentalprices.toml")),
];

impl Mapping {
    /// Reads a mapping.
    ///
    /// # Errors
    /// When the text is no mapping, says a thing twice, or leaves out what a price depends on.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mapping: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let is_plain =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_plain(&mapping.name) {
            return Err(format!("`name` is of small letters, digits and `-`, and not `{}`", mapping.name));
        }
        if mapping.digits.is_some_and(|digits| digits > 12) {
            return Err("`digits` is 12 at most: the dataset keeps no more".to_owned());
        }
        if mapping.seller.name.is_some() && mapping.seller.column.is_some() {
            return Err("`seller` has a `name` or a `column`".to_owned());
        }
        for ours in mapping.seller.ours.values() {
            if crate::find(ours).is_none() {
                return Err(format!("`seller.ours`: there is no provider `{ours}`"));
            }
        }
        if mapping.form == Form::Csv {
            mapping.check_csv()?;
        }
        Ok(mapping)
    }

    fn check_csv(&self) -> Result<(), String> {
        let (Some(machine), Some(gpu), Some(terms)) = (&self.machine, &self.gpu, &self.terms) else {
            return Err("a CSV needs the tables `machine`, `gpu` and `terms`".to_owned());
        };
        if machine.machine_type.is_none() && machine.label.is_empty() {
            return Err("`machine` needs a column `type`, or columns `label`".to_owned());
        }
        let counts = [gpu.count.is_some(), gpu.count_of_every_row.is_some(), gpu.of_machine_type];
        if counts.into_iter().filter(|is_said| *is_said).count() != 1 || gpu.of_machine_type == gpu.label.is_some() {
            return Err("`gpu` needs `of_machine_type`, or a column `label` with `count` or `count_of_every_row`".to_owned());
        }
        if gpu.of_machine_type && machine.machine_type.is_none() {
            return Err("`gpu.of_machine_type` needs the column `machine.type`".to_owned());
        }
        if self.prices.is_empty() {
            return Err("at least one `[[price]]` is needed".to_owned());
        }
        for price in &self.prices {
            if price.pricing_model.is_some() == terms.pricing_model.is_some() {
                return Err(format!("price `{}`: how it is bought is said by the price or by a column", price.column));
            }
            crate::money::currency_code(&price.currency).map_err(|error| format!("price `{}`: {error}", price.column))?;
        }
        Ok(())
    }

    /// The scope of every row of the history.
    #[must_use]
    pub fn scope(&self) -> String {
        format!("{SCOPE_PREFIX}{}", self.name)
    }
}

/// What the scopes of imported rows begin with.
pub const SCOPE_PREFIX: &str = "import-";

impl PriceColumn {
    /// The thing that an amount of a day pays for.
    pub(super) fn per_on(&self, day: NaiveDate) -> PricePer {
        self.per_since.range(..=day).next_back().map_or(self.per, |(_, per)| *per)
    }
}
