//! The rows: which of them are GPU machines, which of them hold today, and what they cost.
//!
//! In: rows as JSON objects. Out: offers. Never decides between two rows that say different things of the same price.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use crate::contract::{
    Machine, Os, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, Site,
    SkipReason, Skipped, Terms, UNKNOWN_HARDWARE,
};
use crate::hardware::Hardware;
use crate::json::{FieldError, FieldName, Object, Value};
use crate::money::{self, NumberFormat};

pub(super) static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

static MACHINE: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("armSkuName"));
pub(super) static REGION: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("armRegionName"));

/// A row of a GPU machine that is on the list today.
pub(super) struct Row<'a> {
    item: Object<'a>,
    place: Place,
    machine: String,
    pub region: String,
    kind: String,
    term: Option<String>,
    sku: String,
    /// What is the same in all rows of one price.
    key: String,
    valid_from: Option<DateTime<Utc>>,
}

type Outcome = (Place, Result<PublishedOffer, SkipReason>);

/// Reads what tells whether a row is in our scope, and of when it is.
pub(super) fn screen<'a>(item: &Value<'a>, observed_at: DateTime<Utc>) -> Result<Row<'a>, SkipReason> {
    let out = |reason| Err(SkipReason::OutOfScope(reason));
    // Nearly all rows of an unfiltered list are of other machines, so these are told from their characters alone.
    if MACHINE.peek(item.characters()).is_some_and(|(machine, _)| is_other_machine(machine.trim())) {
        return out("not a GPU machine");
    }
    let place = item.place();
    let item = item.object()?;
    if item.optional_text("serviceName")?.is_some_and(|service| service != "Virtual Machines") {
        return out("not a virtual machine");
    }
    let machine = item.optional_text("armSkuName")?.unwrap_or_default().trim().to_owned();
    if is_other_machine(&machine) {
        return out("not a GPU machine");
    }
    let lower = machine.to_ascii_lowercase();
    let names = [machine.clone(), trimmed(&item, "productName")?, trimmed(&item, "skuName")?, trimmed(&item, "meterName")?];
    let is_named = |words: &[&str]| names.iter().any(|name| words.iter().any(|word| name.contains(word)));
    if is_named(&["Dedicated Host", "DedicatedHost"]) {
        return out("dedicated host");
    }
    if is_named(&["Cloud Services", "CloudServices"]) {
        return out("Cloud Services");
    }
    let Some(size) = lower.strip_prefix("standard_") else {
        if !names.iter().any(|name| is_n_series(name)) {
            return out("not a GPU machine");
        }
        return Err(SkipReason::FieldUnreadable {
            field: "armSkuName".to_owned(),
            expected: "`Standard_…`",
            found: format!("`{machine}`"),
        });
    };
    if size.starts_with("np") {
        return out("FPGA machine (NP)");
    }
    if size.starts_with("nm") {
        return out("media accelerator (NM)");
    }
    if is_named(&["Promo"]) {
        return out("promotion");
    }
    if is_named(&["Expired"]) {
        return out("expired");
    }
    let kind = trimmed(&item, "type")?;
    if kind == "DevTestConsumption" {
        return out("dev/test licence");
    }
    if item.optional("isPrimaryMeterRegion").map(|is_primary| is_primary.truth()).transpose()? == Some(false) {
        return out("not the primary meter");
    }
    let region = region(&item)?;
    if region.ends_with("euap") {
        return out("canary region");
    }
    let valid_from = instant(&item, "effectiveStartDate")?;
    if valid_from.is_some_and(|from| from > observed_at) {
        return out("price announced for later");
    }
    if instant(&item, "effectiveEndDate")?.is_some_and(|end| end <= observed_at) {
        return out("price that has ended");
    }
    let sku = format!("{}|{}", trimmed(&item, "skuId")?, trimmed(&item, "meterId")?);
    let term = item.optional_text("reservationTerm")?.map(|term| term.trim().to_owned());
    let key = format!("{region}|{sku}|{kind}|{}", term.as_deref().unwrap_or_default());
    Ok(Row { item, place, machine, region, kind, term, sku, key, valid_from })
}

fn is_other_machine(machine: &str) -> bool {
    let after = |start: &str| {
        let (head, rest) = machine.split_at_checked(start.len())?;
        head.eq_ignore_ascii_case(start).then_some(rest)
    };
    after("Basic_").is_some() || after("Standard_").is_some_and(|size| !size.starts_with(['N', 'n']))
}

/// Whether a product, SKU or meter is named like the N-series, for rows that name no machine.
fn is_n_series(name: &str) -> bool {
    let name = name.strip_prefix("Virtual Machines ").unwrap_or(name);
    name.strip_prefix("Standard_").unwrap_or(name).starts_with('N')
}

/// What a row calls itself, for people.
pub(super) fn label(item: &Value<'_>) -> String {
    let field =
        |object: &Object<'_>, name| object.text(name).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let name = item.object().ok().and_then(|row| field(&row, "armSkuName").or_else(|| field(&row, "skuName")));
    name.unwrap_or_else(|| crate::json::start_of(item.characters()))
}

/// The region in lower case.
pub(super) fn region(row: &Object<'_>) -> Result<String, SkipReason> {
    let region = trimmed(row, "armRegionName")?;
    if region.is_empty() {
        return Err(SkipReason::FieldUnreadable {
            field: "armRegionName".to_owned(),
            expected: "a region",
            found: "``".to_owned(),
        });
    }
    Ok(region.to_ascii_lowercase())
}

/// Takes of all rows of one price the one that holds, and reads it.
///
/// Paging over a moving list repeats rows, and a price that changes has a row for each start date. Of several start
/// dates the latest holds; of several rows of one start date none does, unless they say the same.
pub(super) fn resolve(rows: &[Row<'_>], ignored: &[String], parsed: &mut Parsed) {
    let mut by_key: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        by_key.entry(&row.key).or_default().push(index);
    }
    for (index, row) in rows.iter().enumerate() {
        let same = &by_key[row.key.as_str()];
        let newest = same.iter().filter_map(|other| rows[*other].valid_from).max();
        let is_current = |row: usize| rows[row].valid_from.is_none() || rows[row].valid_from == newest;
        if !is_current(index) {
            parsed.leave_out("superseded price");
            continue;
        }
        let current: Vec<usize> = same.iter().copied().filter(|row| is_current(*row)).collect();
        let outcomes = row.read();
        if current.iter().any(|other| *other != index && !say_the_same(&outcomes, &rows[*other].read())) {
            let reason = SkipReason::Contradiction(format!(
                "{} rows of the same SKU, meter, type and term say different things",
                current.len()
            ));
            parsed.skipped.push(Skipped { place: row.place.clone(), label: row.machine.clone(), reason });
        } else if current[0] != index {
            parsed.leave_out("repeated row");
        } else {
            let is_understood = outcomes.iter().any(|(_, outcome)| outcome.is_ok());
            for (place, outcome) in outcomes {
                parsed.take(row.machine.as_str(), place, outcome);
            }
            if is_understood {
                row.report_unread(ignored, &mut parsed.unread_fields);
            }
        }
    }
}

fn say_the_same(one: &[Outcome], other: &[Outcome]) -> bool {
    let without_place = |outcome: &Outcome| {
        outcome.1.clone().map(|offer| PublishedOffer { place: Place { page: String::new(), at: String::new() }, ..offer })
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| without_place(one) == without_place(other))
}

impl Row<'_> {
    /// The row's own price and those of its savings plans. A row that is not understood has no savings plans either.
    fn read(&self) -> Vec<Outcome> {
        let offer = match self.offer() {
            Ok(offer) => offer,
            Err(reason) => return vec![(self.place.clone(), Err(reason))],
        };
        let mut outcomes = vec![(self.place.clone(), Ok(offer.clone()))];
        let Some(plans) = self.item.optional("savingsPlan") else { return outcomes };
        match plans.list() {
            Ok(plans) => outcomes.extend(plans.iter().map(|plan| (plan.place(), savings_plan(plan, &offer)))),
            Err(error) => outcomes.push((plans.place(), Err(error.into()))),
        }
        outcomes
    }

    fn report_unread(&self, ignored: &[String], unread: &mut BTreeSet<String>) {
        self.item.report_unread(ignored, unread);
        let plans = self.item.optional("savingsPlan").and_then(|plans| plans.list().ok()).unwrap_or_default();
        for plan in plans.iter().filter_map(|plan| plan.object().ok()) {
            let is_new = |name: &&str| !["term", "retailPrice"].contains(name) && !ignored.iter().any(|known| known == name);
            unread.extend(plan.names().filter(is_new).map(str::to_owned));
        }
    }

    fn offer(&self) -> Result<PublishedOffer, SkipReason> {
        let item = &self.item;
        let class = class(&trimmed(item, "skuName")?, &trimmed(item, "meterName")?)?;
        let (pricing_model, commitment_months, unit) = match (self.kind.as_str(), class, &self.term) {
            ("Consumption", class, None) => (class, None, PriceUnit::Hour),
            ("Reservation", PricingModel::OnDemand, Some(term)) => (PricingModel::Reserved, Some(months(term)?), PriceUnit::Term),
            ("Reservation", PricingModel::OnDemand, None) => {
                return Err(SkipReason::FieldMissing { field: "reservationTerm".to_owned() });
            }
            ("Consumption", _, Some(term)) => {
                return Err(SkipReason::Contradiction(format!("a price by the hour with the term `{term}`")));
            }
            ("Reservation", class, _) => return Err(SkipReason::Contradiction(format!("a reservation of a {class} machine"))),
            (kind, ..) => return Err(SkipReason::UnknownWord { what: "type", word: kind.to_owned() }),
        };
        // Reservations say `1 Hour` too, though their amount is for the term.
        let unit_word = trimmed(item, "unitOfMeasure")?;
        if unit_word != "1 Hour" {
            return Err(SkipReason::UnknownWord { what: "unit", word: unit_word });
        }
        // Machines have no volume tiers. A price that begins at some number of hours would be another kind of price.
        if let Some(tier) = item.optional_decimal("tierMinimumUnits")?.filter(|tier| !tier.is_zero()) {
            return Err(SkipReason::UnknownWord { what: "tier", word: tier.to_string() });
        }
        let terms = Terms {
            commitment_months,
            os: os(&trimmed(item, "productName")?)?,
            valid_from: self.valid_from,
            ..Terms::of(pricing_model)
        };
        // The list in any other currency is this one times a rate that changes by the month.
        let currency_code = money::currency_code(&trimmed(item, "currencyCode")?)?;
        if currency_code != "USD" {
            return Err(SkipReason::UnknownWord { what: "currency", word: currency_code });
        }
        let price = price(item, currency_code, unit)?;
        let mut flags = BTreeSet::new();
        let (gpu, machine) = match HARDWARE.of(&self.machine) {
            Err(_) if is_of_gpu_family(&self.machine) => {
                flags.insert(UNKNOWN_HARDWARE);
                (PublishedGpu::unknown(), Machine { vcpus: vcpus(&self.machine).map(Decimal::from), ..Machine::default() })
            }
            known => known?,
        };
        Ok(PublishedOffer {
            site: ["usgov", "usdod"].iter().any(|gov| self.region.starts_with(gov)).then_some(Site::Gov),
            sku: Some(self.sku.clone()),
            instance_type: Some(self.machine.clone()),
            offer_label: None,
            region: Some(self.region.clone()),
            zone: None,
            gpu,
            machine,
            terms,
            price,
            place: self.place.clone(),
            flags,
        })
    }
}

/// Whether a machine is of a family that has GPUs. A new family of the N-series may have other accelerators, as NP and NM
/// do.
fn is_of_gpu_family(machine: &str) -> bool {
    let size = machine.split_once('_').map_or(machine, |(_, size)| size).to_ascii_lowercase();
    ["nc", "nd", "ng", "nv"].iter().any(|family| size.starts_with(family))
}

/// Virtual CPUs of a machine that is not in the table: by the provider's rule of naming, the number after the letters
/// of the family. Of two numbers the second counts, since the first is that of the machine with all its CPUs.
pub(super) fn vcpus(machine: &str) -> Option<u32> {
    let size = machine.split_once('_')?.1.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| end);
    let (whole, rest) = size.split_at(digits(size));
    match rest.strip_prefix('-') {
        Some(constrained) => constrained[..digits(constrained)].parse().ok(),
        None => whole.parse().ok(),
    }
}

/// An element of `savingsPlan`: the same machine for an hourly promise. It is no row of its own.
fn savings_plan(plan: &Value<'_>, base: &PublishedOffer) -> Result<PublishedOffer, SkipReason> {
    if base.terms.pricing_model != PricingModel::OnDemand {
        return Err(SkipReason::Contradiction(format!("a savings plan on a {} price", base.terms.pricing_model)));
    }
    let plan_row = plan.object()?;
    let mut offer = base.clone();
    offer.terms.pricing_model = PricingModel::SavingsPlan;
    offer.terms.commitment_months = Some(months(&trimmed(&plan_row, "term")?)?);
    offer.price = price(&plan_row, base.price.currency_code.clone(), PriceUnit::Hour)?;
    offer.place = plan.place();
    Ok(offer)
}

/// How a row by the hour is bought, by the end of its names. What is left of a name ends in a size or a version such as
/// `v5`; a word without a digit there would be a way of buying that is not known.
fn class(sku_name: &str, meter_name: &str) -> Result<PricingModel, SkipReason> {
    let mut class = PricingModel::OnDemand;
    for name in [sku_name, meter_name] {
        let (rest, found) = match (name.strip_suffix(" Spot"), name.strip_suffix(" Low Priority")) {
            (Some(rest), _) => (rest, PricingModel::Spot),
            (_, Some(rest)) => (rest, PricingModel::LowPriority),
            _ => (name, PricingModel::OnDemand),
        };
        if !ends_with_digit_word(rest) {
            return Err(SkipReason::UnknownWord { what: "way of buying", word: name.to_owned() });
        }
        if class != PricingModel::OnDemand && found != PricingModel::OnDemand && class != found {
            return Err(SkipReason::Contradiction(format!("`{sku_name}` and `{meter_name}` are bought differently")));
        }
        if found != PricingModel::OnDemand {
            class = found;
        }
    }
    Ok(class)
}

/// The operating system, by the last word of the product's name and never by a word within it.
fn os(product_name: &str) -> Result<Os, SkipReason> {
    match product_name.rsplit(' ').next() {
        Some("Windows" | "Win") => Ok(Os::Windows),
        Some("Linux" | "Series" | "series" | "Srs") => Ok(Os::Linux),
        Some(_) if ends_with_digit_word(product_name) => Ok(Os::Linux),
        _ => Err(SkipReason::UnknownWord { what: "operating system", word: product_name.to_owned() }),
    }
}

fn ends_with_digit_word(name: &str) -> bool {
    name.rsplit(' ').next().is_some_and(|word| word.contains(|c: char| c.is_ascii_digit()))
}

fn months(term: &str) -> Result<u32, SkipReason> {
    match term {
        "1 Year" => Ok(12),
        "3 Years" => Ok(36),
        "5 Years" => Ok(60),
        _ => Err(SkipReason::UnknownWord { what: "term", word: term.to_owned() }),
    }
}

fn price(row: &Object<'_>, currency_code: String, unit: PriceUnit) -> Result<PublishedPrice, SkipReason> {
    let value = row.field("retailPrice")?;
    let text = value.characters();
    let amount = if value.is_null() {
        return Err(SkipReason::PriceMissing);
    } else if text.starts_with('"') {
        money::printed(&value.text()?, NumberFormat::PointDecimal, &[])?
    } else {
        value.decimal()?
    };
    let amount = money::positive(amount, text)?;
    let tax_included = super::MANIFEST.published().tax_included;
    Ok(PublishedPrice {
        amount,
        upfront_amount: None,
        currency_code,
        unit,
        per: PricePer::Instance,
        text: text.to_owned(),
        tax_included,
        listings: None,
    })
}

fn trimmed(row: &Object<'_>, name: &str) -> Result<String, FieldError> {
    row.text(name).map(|text| text.trim().to_owned())
}

fn instant(row: &Object<'_>, name: &str) -> Result<Option<DateTime<Utc>>, SkipReason> {
    let Some(text) = row.optional_text(name)? else { return Ok(None) };
    match DateTime::parse_from_rfc3339(&text) {
        Ok(instant) => Ok(Some(instant.to_utc())),
        Err(_) => Err(SkipReason::FieldUnreadable {
            field: name.to_owned(),
            expected: "a time with its zone",
            found: format!("`{text}`"),
        }),
    }
}
