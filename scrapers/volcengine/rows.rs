//! One row of a price table → its offers.
//!
//! Never converted: the price of twelve months is the total that is paid, and stays so.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::template::{Configuration, Template, disk_gb, quantity};
use super::{HARDWARE, LAST_KNOWN, MANIFEST, PRODUCTS, nothing};
use crate::contract::{
    GpuShare, Machine, Page, Parsed, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    SkipReason, Terms, UNKNOWN_HARDWARE, Upfront,
};
use crate::json::{Object, Value};
use crate::money;

/// Doubles every type for those who pay by the month.
const MONTHLY: &str = ".month";
/// Flag of an offer from the last known template, for the price page named none.
const LAST_KNOWN_TEMPLATE: &str = "last_known_template";
/// Older families of GPU machines, whose names follow no rule.
const OLD_FAMILIES: [&str; 3] = ["g1ie", "g1v", "g1ve"];

/// Takes the rows of one table, and counts those of machines.
pub(super) fn take(page: &Page, result: &Object, template: &Template, parsed: &mut Parsed) -> Result<usize, ScrapeError> {
    let mut machines = 0;
    let is_last_known = page.name.ends_with(LAST_KNOWN);
    let list = result.field("TableList")?;
    let tables = list.list()?;
    if tables.is_empty() {
        return Err(nothing(page, &list.place().at));
    }
    for table in tables {
        for value in table.object()?.field("Rows")?.list()? {
            let row = match value.object() {
                Ok(row) => row,
                Err(error) => {
                    parsed.take("a row", value.place(), Err(error.into()));
                    continue;
                }
            };
            let label = row.text("ConfigurationCode").map_or_else(|_| "a row without ConfigurationCode".to_owned(), Into::into);
            if row.text("Product").is_ok_and(|product| PRODUCTS.contains(&product.as_ref())) {
                machines += 1;
            }
            match base(&row, template, parsed) {
                Ok(mut base) => {
                    if is_last_known {
                        base.flags.insert(LAST_KNOWN_TEMPLATE);
                    }
                    if let Err(reason) = prices(&row, &base, &label, parsed) {
                        parsed.take(label, row.place(), Err(reason));
                    }
                    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
                }
                Err(reason) => parsed.take(label, row.place(), Err(reason)),
            }
        }
    }
    Ok(machines)
}

/// What all offers of a row have in common; the price is filled in for each of them.
fn base(row: &Object, template: &Template, parsed: &mut Parsed) -> Result<PublishedOffer, SkipReason> {
    let product = row.text("Product")?;
    let is_ours = PRODUCTS.contains(&product.as_ref());
    let code = match row.text("ConfigurationCode") {
        Err(_) if !is_ours => return Err(SkipReason::OutOfScope("another product")),
        code => code?,
    };
    let instance_type = code.strip_suffix(MONTHLY).unwrap_or(&code);
    // A GPU machine under a name of its own is not of another kind, and must not vanish when it is sold so.
    if !is_ours && instance_type.starts_with("ecs.") && is_gpu_machine(instance_type) {
        return Err(SkipReason::UnknownWord { what: "product", word: product.into_owned() });
    }
    if !is_ours {
        return Err(SkipReason::OutOfScope("another product"));
    }
    if instance_type.starts_with("ml.") {
        return Err(SkipReason::OutOfScope("machine learning platform, not ECS"));
    }
    if !is_gpu_machine(instance_type) && !template.is_said_to_have_gpu(&code) {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    if instance_type.split('.').count() != 3 {
        return Err(SkipReason::UnknownWord { what: "form of a configuration code", word: code.into_owned() });
    }
    let item = row.text("ChargeItemCode")?;
    let region = region(&item, instance_type, template)?;
    let configuration = template.configuration(&code, region);
    if let Some(configuration) = configuration {
        billing_words(&code, configuration)?;
    }
    let known = HARDWARE.find(instance_type);
    let is_known = known.is_some();
    let (mut gpu, mut machine) = known.unwrap_or_else(|| (PublishedGpu::unknown(), Machine::default()));
    if family(instance_type).starts_with("vgn") && gpu.count.is_none() {
        gpu.share = GpuShare::Derived;
    }
    if let Some(configuration) = configuration {
        describe(&mut machine, configuration, parsed)?;
    }
    machine.is_bare_metal = Some(family(instance_type).starts_with("ebm"));
    Ok(PublishedOffer {
        site: None,
        sku: Some(format!("{code}:{item}")),
        instance_type: Some(instance_type.to_owned()),
        offer_label: None,
        region: Some(region.to_owned()),
        zone: None,
        gpu,
        machine,
        terms: Terms::of(PricingModel::OnDemand),
        price: PublishedPrice {
            amount: Decimal::ZERO,
            upfront_amount: None,
            currency_code: MANIFEST.published().currency_code.clone(),
            unit: PriceUnit::Hour,
            per: MANIFEST.published().per,
            text: String::new(),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: row.place(),
        flags: if is_known { BTreeSet::new() } else { BTreeSet::from([UNKNOWN_HARDWARE]) },
    })
}

fn prices(row: &Object, base: &PublishedOffer, label: &str, parsed: &mut Parsed) -> Result<(), SkipReason> {
    let prices = row.field("PriceInfoList")?.list()?;
    if prices.is_empty() {
        return Err(SkipReason::PriceMissing);
    }
    let is_monthly = row.text("ConfigurationCode")?.ends_with(MONTHLY);
    let mut offers = Vec::new();
    for value in prices {
        let offer = value.object().map_err(SkipReason::from).and_then(|price| {
            let offer = offer(&price, base, is_monthly)?;
            price.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            Ok(offer)
        });
        offers.push((value.place(), offer));
    }
    let is_month = |offer: &&PublishedOffer| offer.terms.commitment_months == Some(1);
    let month = offers.iter().filter_map(|(_, offer)| offer.as_ref().ok()).find(is_month).map(|offer| offer.price.amount);
    for (place, offer) in offers {
        parsed.take(label, place, offer.and_then(|offer| total(offer, month)));
    }
    Ok(())
}

/// A price of years is the total, and so above the price of one month.
fn total(offer: PublishedOffer, month: Option<Decimal>) -> Result<PublishedOffer, SkipReason> {
    match (offer.terms.commitment_months, month) {
        (Some(months), Some(month)) if months > 1 && offer.price.amount <= month => {
            let text = format!("{months} months for {}, and one month for {month}", offer.price.amount);
            Err(SkipReason::Contradiction(text))
        }
        _ => Ok(offer),
    }
}

fn offer(price: &Object, base: &PublishedOffer, is_monthly: bool) -> Result<PublishedOffer, SkipReason> {
    let (period, times) = (price.text("Period")?, price.field("Times")?.whole()?);
    let (unit, model, months) = match (period.as_ref(), times) {
        ("hourly", 1) => (PriceUnit::Hour, PricingModel::OnDemand, None),
        ("monthly", 1) => (PriceUnit::Month, PricingModel::Subscription, Some(1)),
        ("monthly", 12 | 24 | 36) => (PriceUnit::Term, PricingModel::Subscription, Some(times)),
        ("monthly", 2..=11 | 48) => {
            return Err(SkipReason::Undecoded("a price of so many months, of which nobody has read whether it is their total"));
        }
        (word, _) => return Err(SkipReason::UnknownWord { what: "period", word: format!("{times} × {word}") }),
    };
    if is_monthly != months.is_some() {
        return Err(SkipReason::Contradiction(format!("a price that is {period}, and a code that is not")));
    }
    let value = price.field("Price")?;
    Ok(PublishedOffer {
        terms: Terms { commitment_months: months, upfront: months.map(|_| Upfront::All), ..Terms::of(model) },
        price: PublishedPrice { amount: amount(&value)?, unit, text: value.characters().to_owned(), ..base.price.clone() },
        place: price.place(),
        ..base.clone()
    })
}

/// A number, or a text that holds one.
fn amount(value: &Value) -> Result<Decimal, SkipReason> {
    let text = value.characters();
    if ["null", r#""""#].contains(&text) {
        return Err(SkipReason::PriceMissing);
    }
    let number = value.decimal().map_err(|_| SkipReason::PriceUnreadable { text: text.to_owned() })?;
    if number.is_zero() {
        return Err(SkipReason::OutOfScope("not on sale"));
    }
    money::positive(number, text)
}

/// The region at the end of an item's code, which must be one that a template knows, after the same type.
fn region<'a>(item: &'a str, instance_type: &str, template: &Template) -> Result<&'a str, SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "region in ChargeItemCode", word: item.to_owned() };
    let (written, region) = item.rsplit_once('_').filter(|(_, region)| template.has_region(region)).ok_or_else(unknown)?;
    if written.replace('_', ".") == instance_type {
        return Ok(region);
    }
    Err(SkipReason::Contradiction(format!("ConfigurationCode is of {instance_type}, ChargeItemCode of {written}")))
}

/// The template's words for the way of paying, which must be the known ones of the row's code.
fn billing_words(code: &str, configuration: &Configuration) -> Result<(), SkipReason> {
    let [method, pay] = if code.ends_with(MONTHLY) { ["monthly", "pre"] } else { ["configuration_hourly", "post"] };
    let stated = [(&configuration.billing_method, method), (&configuration.pay_type, pay)];
    match stated.into_iter().find(|(word, expected)| word.as_deref().is_some_and(|word| word != *expected)) {
        Some((word, _)) => {
            Err(SkipReason::UnknownWord { what: "way of paying for this code", word: word.clone().unwrap_or_default() })
        }
        None => Ok(()),
    }
}

fn describe(machine: &mut Machine, configuration: &Configuration, parsed: &mut Parsed) -> Result<(), SkipReason> {
    if let Some(cores) = &configuration.cores {
        machine.vcpus = Some(quantity("vcpu", cores, "核")?);
    }
    if let Some(memory) = &configuration.memory {
        machine.system_memory_gib = Some(quantity("memory", memory, "GiB")?);
    }
    if let Some(disk) = &configuration.disk {
        machine.local_disk_gb = disk_gb(disk);
        if machine.local_disk_gb.is_none() {
            parsed.unread_fields.insert("Ability `ssd` or `hdd`".to_owned());
        }
    }
    Ok(())
}

/// Family in a type: `pni2` of `ecs.pni2.14xlarge`.
fn family(instance_type: &str) -> &str {
    instance_type.split('.').nth(1).unwrap_or_default()
}

/// Whether the name is of a machine with GPUs: it is in the table, or its family is named as those are.
fn is_gpu_machine(instance_type: &str) -> bool {
    let family = family(instance_type);
    let core = ["ebm", "hpc"].iter().fold(family, |family, prefix| family.strip_prefix(prefix).unwrap_or(family));
    let has_rule = ["pni", "gni", "gn", "xni", "ini", "vgn"].iter().any(|name| {
        let rest = core.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    has_rule || OLD_FAMILIES.contains(&core) || HARDWARE.find(instance_type).is_some()
}

type Key = (Option<String>, Option<String>, PricingModel, Option<u32>);

/// A row that both tables have is one offer, and two prices for the same offer are none.
pub(super) fn without_repeats(parsed: Parsed) -> Parsed {
    let key = |offer: &PublishedOffer| -> Key {
        let terms = &offer.terms;
        (offer.region.clone(), offer.instance_type.clone(), terms.pricing_model, terms.commitment_months)
    };
    parsed.with_one_price_each(key)
}
