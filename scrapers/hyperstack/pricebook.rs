//! The pricebook of Hyperstack's API, a bare list of names and amounts, under the names of the page.

use rust_decimal::Decimal;

use super::{MANIFEST, gpu};
use crate::contract::{Page, Parsed, PricingModel, PublishedOffer, PublishedPrice, ScrapeError, SkipReason, Terms};
use crate::json::{self, Object};
use crate::money;
use crate::plain::MACHINE_NOT_STATED;

/// Name in the pricebook, name on the page, and memory of one card in GB, which only the page states.
const NAMES: [(&str, &str, u32); 13] = [
    ("B300-SXM", "NVIDIA B300", 288),
    ("B200-SXM", "NVIDIA B200", 192),
    ("H200-141G-SXM5", "NVIDIA H200 SXM", 141),
    ("H100-80G-SXM5", "NVIDIA H100 SXM", 80),
    ("H100-80G-PCIe-NVLink", "NVIDIA H100 NVLink", 80),
    ("H100-80G-PCIe", "NVIDIA H100", 80),
    ("RTX-PRO6000-SE", "NVIDIA RTX Pro 6000 SE", 96),
    ("A100-80G-SXM4", "NVIDIA A100 SXM", 80),
    ("A100-80G-PCIe-NVLink", "NVIDIA A100 NVLink", 80),
    ("A100-80G-PCIe", "NVIDIA A100", 80),
    ("L40", "NVIDIA L40", 48),
    ("RTX-A6000", "NVIDIA A6000", 48),
    ("RTX-A4000", "NVIDIA A4000", 16),
];

/// Reads the list.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let rows = json::root(page)?.list()?;
    if rows.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/".to_owned() });
    }
    for row in rows {
        let row = row.object()?;
        let name = row.text("name")?;
        parsed.take(name.clone(), row.place(), offer(&row, &name));
        row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    Ok(())
}

fn offer(row: &Object<'_>, name: &str) -> Result<PublishedOffer, SkipReason> {
    let (card, model) = match name.strip_suffix("-spot") {
        Some(card) => (card, PricingModel::Spot),
        None => (name, PricingModel::OnDemand),
    };
    // A discount is of the account that the key belongs to; the amount before it is everybody's.
    row.field("discount_applied")?.truth()?;
    let amount = row.field("original_value")?;
    let is_timed = [row.optional("start_time"), row.optional("end_time")].iter().any(Option::is_some);
    let Some((_, label, memory_gb)) = NAMES.iter().find(|(listed, ..)| *listed == card) else {
        let unknown = SkipReason::UnknownMachine { instance_type: card.to_owned() };
        return Err(if is_other(card) { SkipReason::OutOfScope("not a GPU") } else { unknown });
    };
    if is_timed {
        return Err(SkipReason::Undecoded("a price for a stretch of time"));
    }
    let text = amount.characters().trim_matches('"');
    let price = PublishedPrice::plain(&MANIFEST, money::positive(amount.decimal()?, text)?, text);
    let gpu = gpu(label).of_memory(Decimal::from(*memory_gb));
    Ok(PublishedOffer::plain(gpu, Terms::of(model), price, row.place()).called(*label).marked(MACHINE_NOT_STATED))
}

/// Whether a name says that it is something else than a card: processors, memory and disks are in the list too. A name that says
/// nothing of the kind is of a card that nobody has read about.
fn is_other(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["cpu", "ram", "memory", "volume", "disk", "storage", "snapshot", "image", "network", "ip"].iter().any(|word| {
        name.split(|letter: char| !letter.is_ascii_alphabetic()).any(|part| part == *word || part == format!("v{word}"))
    })
}

/// The page's name of a card of the API.
#[cfg(test)]
pub(super) fn label(card: &str) -> Option<&'static str> {
    NAMES.iter().find(|(listed, ..)| *listed == card).map(|(_, label, _)| *label)
}
