//! Published → comparable.
//!
//! In: offers as published, with the page they stand on. Out: rows of the `offers` table, plus two inner columns that say
//! which rows could not be made comparable and why. Amounts stay exact up to the one rounding of each comparable price.
//! Never guesses: what is unknown is null and flagged, or held back.

pub mod currency;
pub mod gpu;
pub mod measure;
pub mod region;
pub mod steps;
pub mod unit;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
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
use currency::{RATE_AGE_DAYS_MAX, RATE_SOURCE_ECB, join_rates, newest_rate_day};
use gpu::{GpuLabelError, GpuModels};
use region::Regions;
use unit::{Exact, HourPrices, hour_prices};

/// Inner column: why a row is held back; null for rows that are comparable.
pub const HELD_BACK: &str = "_held_back";

/// An offer and where it was seen.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The provider's facts.
    pub manifest: &'static Manifest,
    /// The scope it belongs to.
    pub scope: String,
    /// Where its page came from.
    pub source_url: String,
    /// The archived page.
    pub raw_sha256: String,
    /// When the page was read.
    pub observed_at: DateTime<Utc>,
    /// The offer as published.
    pub offer: PublishedOffer,
}

/// A night's rows, comparable and not yet judged.
#[derive(Debug, Clone)]
pub struct Normalised(pub(crate) DataFrame);

/// What is worked out of one offer before rates are known.
struct Facts {
    gpu_model: Option<&'static str>,
    gpu_memory_gb: Option<Decimal>,
    location_code: Option<String>,
    prices: Option<HourPrices>,
    flags: BTreeSet<&'static str>,
    held_back: Option<String>,
}

/// Makes a night comparable.
///
/// # Errors
/// Only on a fault of the program: what is wrong with a row is said on the row.
pub fn normalise(snapshot: SnapshotId, observed: &[Observed], rates: &DataFrame) -> PolarsResult<Normalised> {
    let facts: Vec<Facts> = observed.iter().map(facts_of).collect();
    let frame = published_columns(snapshot, observed, &facts)?;
    let frame = join_models(frame)?;
    let frame = join_places(frame, &facts)?;
    let frame = join_rates(frame, rates.clone())?;
    comparable_columns(frame, observed, &facts).map(Normalised)
}

fn facts_of(observed: &Observed) -> Facts {
    let offer = &observed.offer;
    let mut facts = Facts {
        gpu_model: None,
        gpu_memory_gb: offer.gpu.memory_gb,
        location_code: None,
        prices: None,
        flags: offer.flags.clone(),
        held_back: None,
    };
    let is_fraction = offer.gpu.share != GpuShare::Whole;
    if let Some(label) = &offer.gpu.label {
        let labels = &observed.manifest.labels;
        match GpuModels::built_in().resolve(label, labels, offer.gpu.memory_gb, offer.gpu.form_factor.as_deref(), is_fraction) {
            Ok(resolved) => {
                facts.gpu_model = Some(resolved.model.name.as_str());
                facts.gpu_memory_gb = resolved.memory_gb;
                if resolved.conflict {
                    facts.flags.insert("gpu_memory_conflict");
                }
            }
            Err(error @ GpuLabelError::Unknown { .. }) => facts.held_back = Some(format!("unknown_gpu_label: {error}")),
            Err(error @ GpuLabelError::Ambiguous { .. }) => facts.held_back = Some(format!("ambiguous_gpu_label: {error}")),
        }
    } else if !facts.flags.contains(UNKNOWN_HARDWARE) {
        facts.flags.insert("card_not_named");
    }
    if let Some(region) = &offer.region {
        facts.location_code = observed.manifest.regions.get(region).cloned();
        if facts.location_code.is_none() {
            facts.flags.insert("unknown_region");
        }
    }
    if is_fraction {
        facts.flags.insert("fraction_of_a_card");
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
    facts
}

/// What the offer is, in a form that outlives prices, order and time.
fn offer_id(observed: &Observed, facts: &Facts) -> String {
    let offer = &observed.offer;
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
        facts.gpu_model,
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
        hash.update(&observed.scope);
    }
    hash.finalize().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

fn published_columns(snapshot: SnapshotId, observed: &[Observed], facts: &[Facts]) -> PolarsResult<DataFrame> {
    let id = snapshot.to_string();
    let mut columns = Columns::new(observed.len());
    let offers = || observed.iter().map(|observed| &observed.offer);
    let manifests = || observed.iter().map(|observed| observed.manifest);
    let whole = |number: Option<u32>| number.and_then(|number| i32::try_from(number).ok());
    // A row of too many digits is held back; its amount is null here and stands in the findings as printed.
    let kept = |amount: Option<Decimal>| amount.and_then(to_scaled);

    columns.longs("_row", (0_i64..).take(observed.len()).map(Some));
    columns.dates("_rate_day", observed.iter().map(|observed| Some(newest_rate_day(observed.observed_at))));
    columns.strings(HELD_BACK, facts.iter().map(|facts| facts.held_back.clone()));
    columns.texts("snapshot_id", observed.iter().map(|_| Some(id.as_str())));
    columns.dates("snapshot_date", observed.iter().map(|_| Some(snapshot.date())));
    columns.instants("observed_at", observed.iter().map(|observed| Some(observed.observed_at)));
    columns.texts("provider", manifests().map(|manifest| Some(manifest.provider.as_str())));
    columns.texts("site", observed.iter().map(|observed| Some(observed.offer.site.unwrap_or(observed.manifest.site).word())));
    columns.texts("source_kind", manifests().map(|manifest| Some(manifest.source_kind.word())));
    columns.strings("offer_id", observed.iter().zip(facts).map(|(observed, facts)| Some(offer_id(observed, facts))));
    columns.texts("sku", offers().map(|offer| offer.sku.as_deref()));
    columns.texts("instance_type", offers().map(|offer| offer.instance_type.as_deref()));
    columns.texts("offer_label", offers().map(|offer| offer.offer_label.as_deref()));
    columns.texts("region", offers().map(|offer| offer.region.as_deref()));
    columns.texts("zone", offers().map(|offer| offer.zone.as_deref()));
    columns.texts("location_code", facts.iter().map(|facts| facts.location_code.as_deref()));
    columns.texts("gpu_model", facts.iter().map(|facts| facts.gpu_model));
    columns.texts("gpu_label", offers().map(|offer| offer.gpu.label.as_deref()));
    columns.scaled("gpu_count", offers().map(|offer| offer.gpu.count.map(scaled_count)));
    columns.truths("is_fractional", offers().map(|offer| offer.gpu.count.map(|_| offer.gpu.share != GpuShare::Whole)));
    columns.scaled("gpu_memory_gb", facts.iter().map(|facts| kept(facts.gpu_memory_gb)));
    columns.texts("_form_factor", offers().map(|offer| offer.gpu.form_factor.as_deref()));
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
        observed.iter().map(|observed| {
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
    columns.texts("source_url", observed.iter().map(|observed| Some(observed.source_url.as_str())));
    columns.texts("raw_sha256", observed.iter().map(|observed| Some(observed.raw_sha256.as_str())));
    columns.texts("raw_place", offers().map(|offer| Some(offer.place.at.as_str())));
    columns.wholes("scraper_version", manifests().map(|manifest| whole(Some(manifest.scraper_version))));
    columns.texts("scope", observed.iter().map(|observed| Some(observed.scope.as_str())));
    columns.finish()
}

/// A count in multiples of the dataset's last digit; a third of a card is cut there, and prices use the exact third.
pub(crate) fn scaled_count(count: Ratio<u32>) -> i128 {
    let power = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    i128::from(*count.numer()) * power / i128::from(*count.denom())
}

fn join_models(frame: DataFrame) -> PolarsResult<DataFrame> {
    let models = GpuModels::built_in().models();
    let mut columns = Columns::new(models.len());
    columns.texts("gpu_model", models.iter().map(|model| Some(model.name.as_str())));
    columns.texts("gpu_vendor", models.iter().map(|model| Some(model.vendor.as_str())));
    columns.texts("_model_form", models.iter().map(|model| model.form_factor.as_deref()));
    columns.decimals("_dense_fp16_tflops", models.iter().map(|model| model.dense_fp16_tflops))?;
    let models = columns.finish()?;
    frame
        .lazy()
        .join(models.lazy(), [col("gpu_model")], [col("gpu_model")], JoinArgs::new(JoinType::Left))
        .with_column(col("_form_factor").fill_null(col("_model_form")).alias("form_factor"))
        .collect()
}

fn join_places(frame: DataFrame, facts: &[Facts]) -> PolarsResult<DataFrame> {
    let codes: BTreeSet<&str> = facts.iter().filter_map(|facts| facts.location_code.as_deref()).collect();
    let places: HashMap<&str, region::Place> =
        codes.iter().filter_map(|code| Some((*code, Regions::built_in().place(code)?))).collect();
    let mut columns = Columns::new(codes.len());
    columns.texts("location_code", codes.iter().map(|code| Some(*code)));
    columns.texts("country", codes.iter().map(|code| places.get(code).map(|place| place.country.as_str())));
    columns.texts("continent", codes.iter().map(|code| places.get(code).map(|place| place.continent)));
    let places = columns.finish()?;
    frame.lazy().join(places.lazy(), [col("location_code")], [col("location_code")], JoinArgs::new(JoinType::Left)).collect()
}

/// The exchange rates of one row, exactly.
struct RowRates {
    usd_per_native: Option<Exact>,
    cny_per_native: Option<Exact>,
}

fn comparable_columns(frame: DataFrame, observed: &[Observed], facts: &[Facts]) -> PolarsResult<DataFrame> {
    let rows = frame.height();
    let row_of = frame.column("_row")?.i64()?.clone();
    let scaled =
        |name: &str| -> PolarsResult<Vec<Option<i128>>> { Ok(frame.column(name)?.decimal()?.physical().iter().collect()) };
    let (units_per_eur, usd_per_eur, cny_per_eur) = (scaled("units_per_eur")?, scaled("usd_per_eur")?, scaled("cny_per_eur")?);
    let (memory, tflops) = (scaled("gpu_memory_gb")?, scaled("_dense_fp16_tflops")?);
    let rate_days: Vec<Option<i32>> = frame.column("rate_date")?.date()?.physical().iter().collect();

    let mut made = Columns::new(rows);
    let mut comparable: Vec<Comparable> = Vec::with_capacity(rows);
    for row in 0..rows {
        let source = row_of.get(row).and_then(|row| usize::try_from(row).ok()).expect("every row has its number");
        let (observed, facts) = (&observed[source], &facts[source]);
        let mut flags = facts.flags.clone();
        let rate_day = rate_days[row].and_then(crate::frame::day_from);
        let age_days = rate_day.map(|day| (observed.observed_at.date_naive() - day).num_days());
        let is_stale = age_days.is_some_and(|days| days > i64::try_from(RATE_AGE_DAYS_MAX).expect("a week is short"));
        let is_usable = rate_day.is_some() && !is_stale;
        let rate = |rate: &[Option<i128>]| if is_usable { rate[row].map(from_scaled) } else { None };
        let rates = row_rates(&observed.offer.price.currency_code, rate(&units_per_eur), rate(&usd_per_eur), rate(&cny_per_eur));
        if is_stale {
            flags.insert("rate_stale");
        } else if rates.usd_per_native.is_none() || rates.cny_per_native.is_none() {
            flags.insert("rate_missing");
        }
        comparable.push(Comparable::of(
            facts,
            &rates,
            memory[row],
            tflops[row],
            is_usable.then_some(rate_day).flatten(),
            flags,
            &observed.offer,
        ));
    }
    made.floats("price_native_per_hour", comparable.iter().map(|row| row.native_per_hour));
    made.floats("price_native_per_gpu_hour", comparable.iter().map(|row| row.native_per_gpu_hour));
    made.floats("price_usd_per_hour", comparable.iter().map(|row| row.usd_per_hour));
    made.floats("price_usd_per_gpu_hour", comparable.iter().map(|row| row.usd_per_gpu_hour));
    made.floats("price_cny_per_gpu_hour", comparable.iter().map(|row| row.cny_per_gpu_hour));
    made.scaled("usd_per_native", comparable.iter().map(|row| row.usd_per_native));
    made.dates("rate_date", comparable.iter().map(|row| row.rate_date));
    made.texts("rate_source", comparable.iter().map(|row| row.rate_date.map(|_| RATE_SOURCE_ECB)));
    made.floats("usd_per_pflop_hour", comparable.iter().map(|row| row.usd_per_pflop_hour));
    made.floats("usd_per_gpu_gb_hour", comparable.iter().map(|row| row.usd_per_gpu_gb_hour));
    made.strings("flags", comparable.iter().map(|row| Some(row.flags.iter().copied().collect::<Vec<_>>().join(","))));
    let made = made.finish()?;
    let frame = frame.drop("rate_date")?.hstack(made.columns())?;
    frame.select(OFFERS.columns.iter().map(|column| column.name).chain([HELD_BACK]))
}

/// The comparable values of one row.
struct Comparable {
    native_per_hour: Option<f64>,
    native_per_gpu_hour: Option<f64>,
    usd_per_hour: Option<f64>,
    usd_per_gpu_hour: Option<f64>,
    cny_per_gpu_hour: Option<f64>,
    usd_per_native: Option<i128>,
    rate_date: Option<chrono::NaiveDate>,
    usd_per_pflop_hour: Option<f64>,
    usd_per_gpu_gb_hour: Option<f64>,
    flags: BTreeSet<&'static str>,
}

impl Comparable {
    fn of(
        facts: &Facts,
        rates: &RowRates,
        memory_gb: Option<i128>,
        tflops: Option<i128>,
        rate_date: Option<chrono::NaiveDate>,
        flags: BTreeSet<&'static str>,
        offer: &PublishedOffer,
    ) -> Self {
        let per_hour = facts.prices.map(|prices| prices.per_hour);
        let per_gpu_hour = facts.prices.and_then(|prices| prices.per_gpu_hour);
        let in_currency = |price: Option<Exact>, rate: Option<Exact>| price?.checked_mul(&rate?);
        let usd_per_hour = in_currency(per_hour, rates.usd_per_native);
        let usd_per_gpu_hour = in_currency(per_gpu_hour, rates.usd_per_native);
        let cny_per_gpu_hour = in_currency(per_gpu_hour, rates.cny_per_native);
        let over = |price: Option<Exact>, size: Option<Exact>| price?.checked_div(&size?);
        let pflops = tflops.map(|tflops| from_scaled(tflops) / Exact::from_integer(1_000));
        let memory = memory_gb.map(from_scaled);
        // A slice's memory is the slice's own, so its price per GB is that of the machine.
        let usd_of_memory = if offer.gpu.share == GpuShare::Whole { usd_per_gpu_hour } else { usd_per_hour };
        Self {
            native_per_hour: float(per_hour),
            native_per_gpu_hour: float(per_gpu_hour),
            usd_per_hour: float(usd_per_hour),
            usd_per_gpu_hour: float(usd_per_gpu_hour),
            cny_per_gpu_hour: float(cny_per_gpu_hour),
            usd_per_native: rates.usd_per_native.and_then(cut_to_scale),
            rate_date,
            usd_per_pflop_hour: float(over(usd_per_gpu_hour, pflops)),
            usd_per_gpu_gb_hour: float(over(usd_of_memory, memory)),
            flags,
        }
    }
}

/// A dollar is a dollar without any rate; everything else needs the rates of one and the same day.
fn row_rates(
    currency_code: &str,
    units_per_eur: Option<Exact>,
    usd_per_eur: Option<Exact>,
    cny_per_eur: Option<Exact>,
) -> RowRates {
    let one = Exact::from_integer(1);
    let over = |rate: Option<Exact>| rate?.checked_div(&units_per_eur?);
    RowRates {
        usd_per_native: if currency_code == "USD" { Some(one) } else { over(usd_per_eur) },
        cny_per_native: if currency_code == "CNY" { Some(one) } else { over(cny_per_eur) },
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
