//! The list of plans, with a key: what a plan costs for an hour on demand. Sizes are texts or numbers, memory is in MB.

use rust_decimal::Decimal;

use super::{Found, offer};
use crate::contract::{
    Availability, Machine, Os, Page, Parsed, PricePer, PricingModel, PublishedOffer, ScrapeError, SkipReason, Terms,
};
use crate::json::{self, Object, Value};
use crate::money;

/// Reads the list.
///
/// # Errors
/// When it is no JSON, says that it is an error, or has no plans.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = json::document(page)?;
    let status = document.text("status")?;
    if status != "ok" {
        let text = status.into_owned();
        return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/status".to_owned(), text });
    }
    let rows = document.field("plans")?.list()?;
    if rows.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/plans".to_owned() });
    }
    for value in rows {
        read_plan(&value, parsed);
    }
    Ok(())
}

fn read_plan(value: &Value<'_>, parsed: &mut Parsed) {
    let plan = match value.object() {
        Ok(plan) => plan,
        Err(error) => return parsed.take("a plan", value.place(), Err(error.into())),
    };
    match plan.text("name") {
        Ok(name) => {
            let row = price(&plan, &name);
            if row.is_ok() {
                plan.report_unread(&super::MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
            parsed.take(name, plan.place(), row);
        }
        Err(error) => parsed.take("a plan without name", plan.place(), Err(error.into())),
    }
}

fn price(plan: &Object<'_>, name: &str) -> Result<PublishedOffer, SkipReason> {
    let count = plan.decimal("gpu")?;
    if count.is_zero() {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let count = u32::try_from(count.mantissa()).ok().filter(|_| count.is_integer()).ok_or(SkipReason::FieldUnreadable {
        field: "gpu".to_owned(),
        expected: "a number of cards",
        found: count.to_string(),
    })?;
    let cost = plan.field("hourly_price")?;
    if cost.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let mut places = Vec::new();
    for place in plan.field("available_regions")?.list()? {
        places.push(place.object()?.text("location")?.into_owned());
    }
    let is_there = plan.field("available")?.truth()? && !places.is_empty();
    let mut terms = Terms::of(PricingModel::OnDemand);
    terms.os = if name.ends_with('W') { Os::Windows } else { Os::Linux };
    terms.availability = Some(if is_there { Availability::Available } else { Availability::SoldOut });
    Ok(offer(Found {
        label: plan.text("gpu_label")?.into_owned(),
        count,
        sku: Some(name.to_owned()),
        machine: Machine {
            vcpus: plan.optional_decimal("cpu")?,
            system_memory_gib: plan.optional_decimal("ram")?.map(|mb| (mb / Decimal::from(1024)).normalize()),
            local_disk_gb: plan.optional_decimal("disk")?,
            is_bare_metal: None,
        },
        terms,
        amount: money::positive(cost.decimal()?, cost.characters())?,
        text: cost.characters().to_owned(),
        per: PricePer::Instance,
        place: cost.place(),
    }))
}
