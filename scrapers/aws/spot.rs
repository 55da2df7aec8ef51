//! The feed behind the page of spot prices.
//!
//! In: JSON of all regions. Out: one offer for each machine, region and system. The feed has no time of its own.

use super::machines::{self, Offered, Stated};
use super::{MANIFEST, changed, places};
use crate::contract::{Os, Page, Parsed, PricingModel, PublishedOffer, ScrapeError, SkipReason, Terms};
use crate::json::{self, Object, start_of};
use crate::money;

/// Flag of a price that is that of the cheapest zone of its region.
const CHEAPEST_ZONE: &str = "cheapest_zone";

/// Shortest time billed for a machine by use.
const MIN_BILLING_SECONDS: u32 = 60;

/// Reads the feed.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = json::document(page)?;
    let config = document.field("config")?.object()?;
    if let Some(rate) = config.optional_text("rate")?.filter(|rate| rate != "perhr") {
        return Err(changed(page, "/config/rate", "`perhr`", start_of(&rate)));
    }
    let regions = config.field("regions")?.list()?;
    if regions.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/config/regions".to_owned() });
    }
    for region in regions {
        let region = region.object()?;
        let name = region.text("region")?;
        let code = places::of_spot(&name);
        for family in region.field("instanceTypes")?.list()? {
            let family = family.object()?;
            for size in family.field("sizes")?.list()? {
                let size = size.object()?;
                let instance_type = size.text("size")?;
                if !machines::is_accelerated(instance_type.as_bytes()) {
                    parsed.leave_out("not an accelerated machine");
                    continue;
                }
                for column in size.field("valueColumns")?.list()? {
                    parsed.take(&*instance_type, column.place(), offer(&column.object()?, code, &instance_type));
                }
            }
        }
        region.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    document.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    config.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    Ok(())
}

fn offer(column: &Object<'_>, region: &str, instance_type: &str) -> Result<PublishedOffer, SkipReason> {
    let name = column.text("name")?;
    let os = match &*name {
        "linux" => Os::Linux,
        "mswin" => Os::Windows,
        _ => return Err(SkipReason::UnknownWord { what: "operating system", word: name.into_owned() }),
    };
    let prices = column.field("prices")?.object()?;
    let mut prices = prices.values();
    let (Some((currency, price)), None) = (prices.next(), prices.next()) else {
        return Err(SkipReason::Contradiction("not exactly one currency".to_owned()));
    };
    let text = price.text()?;
    if text.starts_with("N/A") {
        return Err(SkipReason::OutOfScope("no spot price in the region"));
    }
    let amount = money::decimal(&text).ok_or_else(|| SkipReason::PriceUnreadable { text: text.clone().into_owned() })?;
    let mut found = machines::find(instance_type, Stated::default())?;
    found.flags.insert(CHEAPEST_ZONE);
    let offered = Offered {
        sku: format!("spot:{region}:{instance_type}:{os}"),
        instance_type: instance_type.to_owned(),
        region: region.to_owned(),
        found,
        terms: Terms { os, min_billing_seconds: Some(MIN_BILLING_SECONDS), ..Terms::of(PricingModel::Spot) },
        amount: money::positive(amount, &text)?,
        upfront_amount: None,
        currency_code: money::currency_code(currency)?,
        text: text.into_owned(),
        place: column.place(),
    };
    Ok(offered.into())
}
