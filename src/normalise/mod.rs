//! Published → comparable.
//!
//! In: offers as published, with the page they stand on. Out: rows of the `offers` table, plus two inner columns that say
//! which rows could not be made comparable and why. Amounts stay exact up to the one rounding of each comparable price.
//! Never guesses: what is unknown is null and flagged, or held back.

pub mod currency;
pub mod gpu;
pub mod measure;
mod order;
mod rates;
pub mod region;
pub mod steps;
pub mod unit;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use gpuledger_scrapers::contract::{GpuShare, PricingModel, PublishedOffer, SourceKind, UNKNOWN_HARDWARE};
use gpuledger_scrapers::manifest::Manifest;
use num_rational::Ratio;
use num_traits::{CheckedDiv, CheckedMul, ToPrimitive as _};
use polars::prelude::*;
use rust_decimal::Decimal;
use sha2::{Digest as _, Sha256};

use crate::frame::{Columns, to_scaled};
use crate::night::SnapshotId;
use crate::offer::{DECIMAL_SCALE, OFFERS};
use currency::{RATE_AGE_DAYS_MAX, RATE_SOURCE_ECB};
use gpu::{GpuLabelError, GpuModel, GpuModels, Resolved};
use rates::{RatesOfDay, RatesOfRows, row_rates};
use region::Regions;
use unit::{Exact, HourPrices, hour_prices};

/// Inner column: why a row is held back; null for rows that are comparable.
pub const HELD_BACK: &str = "_held_back";

/// An offer and where it was seen. Borrowed, so that a night of a million offers is held once.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The provider's facts.
    pub manifest: &'static Manifest,
    /// The scope it belongs to.
    pub scope: &'a str,
    /// Where its page came from.
    pub source_url: &'a str,
    /// The archived page.
    pub raw_sha256: &'a str,
    /// When the page was read.
    pub observed_at: DateTime<Utc>,
    /// The offer as published.
    pub offer: &'a PublishedOffer,
}

/// A night's rows, comparable and not yet judged.
#[derive(Debug, Clone)]
pub struct Normalised(pub(crate) DataFrame);

/// What is worked out of one offer before rates are known.
struct Facts {
    offer_id: OfferId,
    gpu_model: Option<&'static GpuModel>,
    gpu_memory_gb: Option<Decimal>,
    location_code: Option<&'static str>,
    prices: Option<HourPrices>,
    flags: Vec<&'static str>,
    held_back: Option<String>,
}

/// Makes offers comparable, in their order.
///
/// # Errors
/// Only on a fault of the program: what is wrong with a row is said on the row.
pub fn normalise(snapshot: SnapshotId, observed: &[Observed], rates: &DataFrame) -> PolarsResult<Normalised> {
    made(snapshot, observed, rates, |facts| (0..).take(facts.len()).collect())
}

/// The same in the order of the night's file: to make a large night in its order costs less than to sort what was made.
///
/// # Errors
/// As [`normalise`].
pub fn normalise_in_file_order(snapshot: SnapshotId, observed: &[Observed], rates: &DataFrame) -> PolarsResult<Normalised> {
    made(snapshot, observed, rates, |facts| order::file_order(observed, facts))
}

fn made(
    snapshot: SnapshotId,
    observed: &[Observed],
    rates: &DataFrame,
    order: impl FnOnce(&[Facts]) -> Vec<IdxSize>,
) -> PolarsResult<Normalised> {
    let facts: Vec<Facts> = side_by_side(observed, ROWS_OF_A_THREAD_MIN, |observed| {
        let mut labels = Labels::default();
        observed.iter().map(|observed| facts_of(observed, &mut labels)).collect()
    });
    let rates = RatesOfRows::of(observed, rates)?;
    let order = order(&facts);
    let row = |at: &IdxSize| {
        let at = *at as usize;
        Row { observed: &observed[at], facts: &facts[at], rates: rates.of_row(at) }
    };
    // Few enough at a time that what they are worked out of stays near the processor.
    let parts: Vec<&[IdxSize]> = order.chunks(ROWS_AT_ONCE).collect();
    let made = side_by_side(&parts, 1, |parts| {
        parts.iter().map(|part| comparable_rows(snapshot, &part.iter().map(row).collect::<Vec<_>>())).collect()
    });
    let mut made = made.into_iter();
    let mut rows = made.next().unwrap_or_else(|| comparable_rows(snapshot, &[]))?;
    for part in made {
        rows.vstack_mut_owned(part?)?;
    }
    Ok(Normalised(rows))
}

/// Rows that are worked out at a time.
const ROWS_AT_ONCE: usize = 4_096;

/// One row in the making.
struct Row<'a> {
    observed: &'a Observed<'a>,
    facts: &'a Facts,
    rates: &'a RatesOfDay,
}

fn comparable_rows(snapshot: SnapshotId, rows: &[Row]) -> PolarsResult<DataFrame> {
    let comparable: Vec<Comparable> = rows.iter().map(Comparable::of).collect();
    let mut columns = Columns::new(rows.len());
    comparable_columns(&mut columns, &comparable);
    published_columns(&mut columns, snapshot, rows);
    columns.finish()?.select(OFFERS.columns.iter().map(|column| column.name).chain([HELD_BACK]))
}

/// Fewest rows that are worth another thread.
const ROWS_OF_A_THREAD_MIN: usize = 4_096;

/// Works rows out on all cores, each a run of at least so many neighbours, and puts what came of them together in order.
fn side_by_side<T: Sync, R: Send>(rows: &[T], run_min: usize, work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let run = rows.len().div_ceil(threads).max(run_min);
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> = rows.chunks(run).map(|chunk| scope.spawn(move || work(chunk))).collect();
        let mut made = Vec::with_capacity(rows.len());
        for thread in started {
            // A panic goes on as if it had been in this thread.
            made.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// What a label is looked up by: the manifest's provider, the label, and what the source says beside it.
type LabelKey<'a> = (&'static str, &'a str, Option<Decimal>, Option<&'a str>, bool);

/// Labels that were looked up: a night has few of them, and each stands on many rows.
type Labels<'a> = HashMap<LabelKey<'a>, Result<Resolved<'static>, String>>;

fn resolve<'a>(observed: &Observed<'a>, label: &'a str, labels: &mut Labels<'a>) -> Result<Resolved<'static>, String> {
    let (manifest, gpu) = (observed.manifest, &observed.offer.gpu);
    let (form, is_fraction) = (gpu.form_factor.as_deref(), gpu.share != GpuShare::Whole);
    let look_up = || {
        let found = GpuModels::built_in().resolve(label, &manifest.labels, gpu.memory_gb, form, is_fraction);
        found.map_err(|error| match error {
            GpuLabelError::Unknown { .. } => format!("unknown_gpu_label: {error}"),
            GpuLabelError::Ambiguous { .. } => format!("ambiguous_gpu_label: {error}"),
        })
    };
    let key = (manifest.provider.as_str(), label, gpu.memory_gb, form, is_fraction);
    labels.entry(key).or_insert_with(look_up).clone()
}

fn facts_of<'a>(observed: &Observed<'a>, labels: &mut Labels<'a>) -> Facts {
    let offer = observed.offer;
    let mut facts = Facts {
        offer_id: [0; OFFER_ID_BYTES],
        gpu_model: None,
        gpu_memory_gb: offer.gpu.memory_gb,
        location_code: None,
        prices: None,
        flags: offer.flags.iter().copied().collect(),
        held_back: None,
    };
    let is_fraction = offer.gpu.share != GpuShare::Whole;
    if let Some(label) = &offer.gpu.label {
        match resolve(observed, label, labels) {
            Ok(resolved) => {
                facts.gpu_model = Some(resolved.model);
                facts.gpu_memory_gb = resolved.memory_gb;
                if resolved.conflict {
                    facts.flags.push("gpu_memory_conflict");
                }
            }
            Err(reason) => facts.held_back = Some(reason),
        }
    } else if !facts.flags.contains(&UNKNOWN_HARDWARE) {
        facts.flags.push("card_not_named");
    }
    if let Some(region) = &offer.region {
        facts.location_code = observed.manifest.regions.get(region).map(String::as_str);
        if facts.location_code.is_none() {
            facts.flags.push("unknown_region");
        }
    }
    if is_fraction {
        facts.flags.push("fraction_of_a_card");
    }
    let hours_per_month = observed.manifest.published.as_ref().and_then(|published| published.hours_per_month);
    match hour_prices(offer, hours_per_month) {
        Ok(prices) => facts.prices = Some(prices),
        Err(error) => facts.held_back = Some(format!("no_price_of_an_hour: {error}")),
    }
    let amounts = [Some(offer.price.amount), offer.price.upfront_amount];
    if amounts.into_iter().flatten().any(|amount| to_scaled(amount).is_none()) {
        facts.held_back = Some(format!("too_many_digits: amount {} has more digits than the dataset keeps", offer.price.amount));
    }
    facts.offer_id = offer_id(observed, facts.gpu_model.map(|model| model.name.as_str()));
    facts
}

/// Bytes of the hash that an offer's id has.
const OFFER_ID_BYTES: usize = 10;

type OfferId = [u8; OFFER_ID_BYTES];

/// What the offer is, in a form that outlives prices, order and time.
fn offer_id(observed: &Observed, gpu_model: Option<&str>) -> OfferId {
    let offer = observed.offer;
    let site = offer.site.unwrap_or(observed.manifest.site);
    let count = offer.gpu.count.map(|count| count.to_string());
    let commitment = offer.terms.commitment_months.map(|months| months.to_string());
    let tenancy = offer.terms.tenancy.map(|tenancy| tenancy.word());
    let upfront = offer.terms.upfront.map(|upfront| upfront.word());
    let promotion = offer.terms.is_promotion.then_some("promotion");
    let parts = [
        Some(observed.manifest.provider.as_str()),
        Some(site.word()),
        offer.region.as_deref(),
        offer.zone.as_deref(),
        offer.instance_type.as_deref().or(offer.offer_label.as_deref()),
        gpu_model,
        count.as_deref(),
        Some(offer.terms.os.word()),
        offer.terms.licence.as_deref(),
        offer.terms.plan.as_deref(),
        tenancy,
        Some(offer.terms.pricing_model.word()),
        commitment.as_deref(),
        upfront,
        promotion,
    ];
    let mut hash = Sha256::new();
    for part in parts {
        // The unit separator keeps neighbours apart; a part that is absent differs from an empty one.
        hash.update(part.unwrap_or("\u{0}"));
        hash.update("\u{1f}");
    }
    // What a history says is never the offer that the provider itself publishes.
    if observed.manifest.source_kind == SourceKind::Import {
        hash.update(observed.scope);
    }
    *hash.finalize().first_chunk().expect("the hash is longer")
}

/// An offer's id as it is published.
fn hexadecimal(id: &OfferId) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
    id.iter().flat_map(digits).collect()
}

fn published_columns(columns: &mut Columns, snapshot: SnapshotId, rows: &[Row]) {
    let id = snapshot.to_string();
    let observed = || rows.iter().map(|row| row.observed);
    let facts = || rows.iter().map(|row| row.facts);
    let offers = || observed().map(|observed| observed.offer);
    let models = || facts().map(|facts| facts.gpu_model);
    let manifests = || observed().map(|observed| observed.manifest);
    let whole = |number: Option<u32>| number.and_then(|number| i32::try_from(number).ok());
    // A row of too many digits is held back; its amount is null here and stands in the findings as printed.
    let kept = |amount: Option<Decimal>| amount.and_then(to_scaled);

    let places = places(rows);
    let place = |code: Option<&'static str>| places.get(code?);
    columns.texts(HELD_BACK, facts().map(|facts| facts.held_back.as_deref()));
    columns.texts("snapshot_id", observed().map(|_| Some(id.as_str())));
    columns.dates("snapshot_date", observed().map(|_| Some(snapshot.date())));
    columns.instants("observed_at", observed().map(|observed| Some(observed.observed_at)));
    columns.texts("provider", manifests().map(|manifest| Some(manifest.provider.as_str())));
    columns.texts("site", observed().map(|observed| Some(observed.offer.site.unwrap_or(observed.manifest.site).word())));
    columns.texts("source_kind", manifests().map(|manifest| Some(manifest.source_kind.word())));
    columns.strings("offer_id", facts().map(|facts| Some(hexadecimal(&facts.offer_id))));
    columns.texts("sku", offers().map(|offer| offer.sku.as_deref()));
    columns.texts("instance_type", offers().map(|offer| offer.instance_type.as_deref()));
    columns.texts("offer_label", offers().map(|offer| offer.offer_label.as_deref()));
    columns.texts("region", offers().map(|offer| offer.region.as_deref()));
    columns.texts("zone", offers().map(|offer| offer.zone.as_deref()));
    columns.texts("location_code", facts().map(|facts| facts.location_code));
    columns.texts("country", facts().map(|facts| place(facts.location_code).map(|place| place.country.as_str())));
    columns.texts("continent", facts().map(|facts| place(facts.location_code).map(|place| place.continent)));
    columns.texts("gpu_model", models().map(|model| model.map(|model| model.name.as_str())));
    columns.texts("gpu_vendor", models().map(|model| model.map(|model| model.vendor.as_str())));
    columns.texts("gpu_label", offers().map(|offer| offer.gpu.label.as_deref()));
    columns.scaled("gpu_count", offers().map(|offer| offer.gpu.count.map(scaled_count)));
    columns.truths("is_fractional", offers().map(|offer| offer.gpu.count.map(|_| offer.gpu.share != GpuShare::Whole)));
    columns.scaled("gpu_memory_gb", facts().map(|facts| kept(facts.gpu_memory_gb)));
    columns.texts(
        "form_factor",
        offers().zip(models()).map(|(offer, model)| offer.gpu.form_factor.as_deref().or_else(|| model?.form_factor.as_deref())),
    );
    columns.texts("interconnect", offers().map(|offer| offer.gpu.interconnect.as_deref()));
    columns.wholes("fabric_gbit_per_s", offers().map(|offer| whole(offer.gpu.fabric_gbit_per_s)));
    columns.scaled("vcpus", offers().map(|offer| kept(offer.machine.vcpus)));
    columns.scaled("system_memory_gib", offers().map(|offer| kept(offer.machine.system_memory_gib)));
    columns.scaled("local_disk_gb", offers().map(|offer| kept(offer.machine.local_disk_gb)));
    columns.truths("is_bare_metal", offers().map(|offer| offer.machine.is_bare_metal));
    columns.texts("tenancy", offers().map(|offer| offer.terms.tenancy.map(|tenancy| tenancy.word())));
    columns.texts("os", offers().map(|offer| Some(offer.terms.os.word())));
    columns.texts("licence", offers().map(|offer| offer.terms.licence.as_deref()));
    columns.texts("plan", offers().map(|offer| offer.terms.plan.as_deref()));
    columns.texts("pricing_model", offers().map(|offer| Some(offer.terms.pricing_model.word())));
    columns.wholes("commitment_months", offers().map(|offer| whole(offer.terms.commitment_months)));
    columns.texts("upfront", offers().map(|offer| offer.terms.upfront.map(|upfront| upfront.word())));
    columns.wholes(
        "min_billing_seconds",
        observed().map(|observed| {
            // What is paid for a term is not billed by the second.
            let is_by_use = matches!(
                observed.offer.terms.pricing_model,
                PricingModel::OnDemand | PricingModel::Spot | PricingModel::LowPriority
            );
            let published = observed.manifest.published.as_ref().filter(|_| is_by_use);
            let of_manifest = published.and_then(|published| published.min_billing_seconds);
            whole(observed.offer.terms.min_billing_seconds.or(of_manifest))
        }),
    );
    columns.truths("is_promotion", offers().map(|offer| Some(offer.terms.is_promotion)));
    columns.instants("valid_from", offers().map(|offer| offer.terms.valid_from));
    columns.texts("availability", offers().map(|offer| offer.terms.availability.map(|word| word.word())));
    let listings = || offers().map(|offer| offer.price.listings);
    columns.wholes("listing_count", listings().map(|listings| whole(listings.map(|listings| listings.count))));
    columns.scaled("published_amount", offers().map(|offer| kept(Some(offer.price.amount))));
    columns.scaled("published_upfront_amount", offers().map(|offer| kept(offer.price.upfront_amount)));
    columns.texts("published_currency_code", offers().map(|offer| Some(offer.price.currency_code.as_str())));
    columns.texts("published_unit", offers().map(|offer| Some(offer.price.unit.word())));
    columns.texts("published_per", offers().map(|offer| Some(offer.price.per.word())));
    columns.texts("published_text", offers().map(|offer| Some(offer.price.text.as_str())));
    columns.truths("tax_included", offers().map(|offer| offer.price.tax_included));
    columns.scaled("listing_amount_min", listings().map(|listings| kept(listings.map(|listings| listings.amount_min))));
    columns.scaled("listing_amount_max", listings().map(|listings| kept(listings.map(|listings| listings.amount_max))));
    columns.texts("source_url", observed().map(|observed| Some(observed.source_url)));
    columns.texts("raw_sha256", observed().map(|observed| Some(observed.raw_sha256)));
    columns.texts("raw_place", offers().map(|offer| Some(offer.place.at.as_str())));
    columns.wholes("scraper_version", manifests().map(|manifest| whole(Some(manifest.scraper_version))));
    columns.texts("scope", observed().map(|observed| Some(observed.scope)));
}

/// A count in multiples of the dataset's last digit; a third of a card is cut there, and prices use the exact third.
pub(crate) fn scaled_count(count: Ratio<u32>) -> i128 {
    let power = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    i128::from(*count.numer()) * power / i128::from(*count.denom())
}

/// The places of the rows' codes.
fn places(rows: &[Row]) -> HashMap<&'static str, region::Place> {
    let codes: BTreeSet<&'static str> = rows.iter().filter_map(|row| row.facts.location_code).collect();
    codes.into_iter().filter_map(|code| Some((code, Regions::built_in().place(code)?))).collect()
}

fn comparable_columns(columns: &mut Columns, comparable: &[Comparable]) {
    columns.floats("price_native_per_hour", comparable.iter().map(|row| row.native_per_hour));
    columns.floats("price_native_per_gpu_hour", comparable.iter().map(|row| row.native_per_gpu_hour));
    columns.floats("price_usd_per_hour", comparable.iter().map(|row| row.usd_per_hour));
    columns.floats("price_usd_per_gpu_hour", comparable.iter().map(|row| row.usd_per_gpu_hour));
    columns.floats("price_cny_per_gpu_hour", comparable.iter().map(|row| row.cny_per_gpu_hour));
    columns.scaled("usd_per_native", comparable.iter().map(|row| row.usd_per_native));
    columns.dates("rate_date", comparable.iter().map(|row| row.rate_date));
    columns.texts("rate_source", comparable.iter().map(|row| row.rate_date.map(|_| RATE_SOURCE_ECB)));
    columns.floats("usd_per_pflop_hour", comparable.iter().map(|row| row.usd_per_pflop_hour));
    columns.floats("usd_per_gpu_gb_hour", comparable.iter().map(|row| row.usd_per_gpu_gb_hour));
    columns.texts("flags", comparable.iter().map(|row| Some(row.flags.as_str())));
}

/// The comparable values of one row.
struct Comparable {
    native_per_hour: Option<f64>,
    native_per_gpu_hour: Option<f64>,
    usd_per_hour: Option<f64>,
    usd_per_gpu_hour: Option<f64>,
    cny_per_gpu_hour: Option<f64>,
    usd_per_native: Option<i128>,
    rate_date: Option<NaiveDate>,
    usd_per_pflop_hour: Option<f64>,
    usd_per_gpu_gb_hour: Option<f64>,
    flags: String,
}

impl Comparable {
    fn of(row: &Row) -> Self {
        let Row { observed, facts, rates: day } = *row;
        let offer = observed.offer;
        let age_days = day.rate_date.map(|day| (observed.observed_at.date_naive() - day).num_days());
        let is_stale = age_days.is_some_and(|days| days > i64::try_from(RATE_AGE_DAYS_MAX).expect("a week is short"));
        let is_usable = day.rate_date.is_some() && !is_stale;
        let rates = if is_usable { day.rates } else { row_rates(&offer.price.currency_code, None, None, None) };
        let more = if is_stale {
            Some("rate_stale")
        } else if rates.usd_per_native.is_none() || rates.cny_per_native.is_none() {
            Some("rate_missing")
        } else {
            None
        };
        let mut flags: Vec<&str> = facts.flags.iter().copied().chain(more).collect();
        flags.sort_unstable();
        flags.dedup();
        let per_hour = facts.prices.map(|prices| prices.per_hour);
        let per_gpu_hour = facts.prices.and_then(|prices| prices.per_gpu_hour);
        let in_currency = |price: Option<Exact>, rate: Option<Exact>| price?.checked_mul(&rate?);
        let usd_per_hour = in_currency(per_hour, rates.usd_per_native);
        let usd_per_gpu_hour = in_currency(per_gpu_hour, rates.usd_per_native);
        let cny_per_gpu_hour = in_currency(per_gpu_hour, rates.cny_per_native);
        let over = |price: Option<Exact>, size: Option<Exact>| price?.checked_div(&size?);
        let kept = |value: Option<Decimal>| value.and_then(to_scaled).map(from_scaled);
        let tflops = kept(facts.gpu_model.and_then(|model| model.dense_fp16_tflops));
        let pflops = tflops.map(|tflops| tflops / Exact::from_integer(1_000));
        let memory = kept(facts.gpu_memory_gb);
        // A slice's memory is the slice's own, so its price per GB is that of the machine.
        let usd_of_memory = if offer.gpu.share == GpuShare::Whole { usd_per_gpu_hour } else { usd_per_hour };
        Self {
            native_per_hour: float(per_hour),
            native_per_gpu_hour: float(per_gpu_hour),
            usd_per_hour: float(usd_per_hour),
            usd_per_gpu_hour: float(usd_per_gpu_hour),
            cny_per_gpu_hour: float(cny_per_gpu_hour),
            usd_per_native: rates.usd_per_native.and_then(cut_to_scale),
            rate_date: day.rate_date.filter(|_| is_usable),
            usd_per_pflop_hour: float(over(usd_per_gpu_hour, pflops)),
            usd_per_gpu_gb_hour: float(over(usd_of_memory, memory)),
            flags: flags.join(","),
        }
    }
}

/// The one rounding of a comparable price: to the nearest float.
fn float(value: Option<Exact>) -> Option<f64> {
    value?.to_f64()
}

fn from_scaled(scaled: i128) -> Exact {
    Exact::new(scaled, 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small")))
}

fn cut_to_scale(value: Exact) -> Option<i128> {
    let power = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    Some(value.numer().checked_mul(&power)? / value.denom())
}
