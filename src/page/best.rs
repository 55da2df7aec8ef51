//! The cheapest offer of each GPU, as the verb `cheapest` has it: its prices and its ladders, and what stands in none counted.
//!
//! What is old for its night is left out too. In a night of recordings every page is as old as it is, and the page says so
//! above; there nothing is left out for its age.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::TimeDelta;
use gpuledger_scrapers::contract::{Os, PricingModel, SourceKind};
use polars::prelude::*;

use super::night::Provider;
use super::offers::remarks;
use super::text::Text;
use super::values::{dollars, link, shown, texts};
use crate::answer;
use crate::cheapest::ladder::{Rung, ladders};
use crate::earlier::is_sample;
use crate::measure::{self, Amount, Measure, Over, Price};
use crate::night::SnapshotId;
use crate::query;
use crate::report::Failed;

/// Age from which a price is no price of its night.
const STALE_DAYS: i64 = 7;

/// Why an offer stands in no list of the cheapest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    OtherSystem,
    PartOfACard,
    Copy,
    Stale,
    NoDollars,
    NoName,
    ByPlan,
}

/// The cheapest of each GPU.
#[derive(Debug)]
pub(super) struct Cheapest {
    /// The GPUs that most providers sell first.
    pub gpus: Vec<Gpu>,
    pub left_out: Vec<(usize, Why)>,
}

/// One GPU.
#[derive(Debug)]
pub(super) struct Gpu {
    pub name: String,
    pub memory: String,
    /// Providers with a price that can be compared.
    pub providers: usize,
    /// The same of use by the hour: what the charts go by.
    pub providers_on_demand: usize,
    pub on_demand: Option<Best>,
    pub spot: Option<Best>,
    /// The cheapest for a promise of some months, or a payment before.
    pub promised: Option<Best>,
}

impl Gpu {
    /// The three of them with their headings, in the order of the columns.
    pub(super) const fn ways<'a>(&'a self, text: &'a Text) -> [(&'a str, &'a Option<Best>); 3] {
        [(text.on_demand, &self.on_demand), (text.spot, &self.spot), (text.promised, &self.promised)]
    }
}

/// One offer that is the cheapest of its way to buy.
#[derive(Debug)]
pub(super) struct Best {
    pub price: String,
    pub provider: String,
    pub machine: String,
    pub place: String,
    /// The terms of a promise; empty for use by the hour.
    pub terms: String,
    pub age: String,
    pub remarks: String,
    pub link: Option<String>,
}

/// Finds them.
///
/// # Errors
/// When the exchange rates cannot be read.
pub(super) async fn cheapest(
    output: &Path,
    all: &DataFrame,
    night: SnapshotId,
    providers: &[Provider],
    text: &Text,
) -> Result<Cheapest, Failed> {
    let (rows, mut left_out) = comparable(all, night, providers)?;
    let measure = Measure { currency: "USD".parse().expect("three letters"), over: Over::Hour };
    let prices = measure::prices(output, &rows, &measure, Amount::Lowest).await?;
    left_out.push((prices.iter().filter(|price| price.is_err()).count(), Why::NoDollars));

    let models = texts(&rows, "gpu_model")?;
    let mut of_model: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, model) in models.iter().enumerate() {
        of_model.entry(model).or_default().push(row);
    }
    let mut by_plan = 0;
    let mut gpus = Vec::with_capacity(of_model.len());
    for (name, places) in of_model {
        let places: IdxCa = places.iter().map(|row| IdxSize::try_from(*row).ok()).collect();
        let (part, of_part) =
            (rows.take(&places)?, places.iter().flatten().map(|row| prices[row as usize]).collect::<Vec<Price>>());
        let rungs = ladders(&part, &of_part, false, 0)?.rungs;
        let is_shown = |rung: &&Rung| !rung.way.is_by_plan && rung.way.pricing_model != PricingModel::LowPriority.word();
        by_plan += ladders(&part, &of_part, true, 0)?.rungs.iter().filter(|rung| !is_shown(rung)).count();
        let rungs: Vec<Rung> = rungs.into_iter().filter(|rung| is_shown(&rung)).collect();
        let named = |rungs: &[&Rung]| rungs.iter().map(|rung| rung.provider.as_str()).collect::<BTreeSet<_>>().len();
        let shown_of = Shown { rows: &part, night, providers, text };
        let is_of = |model: PricingModel| move |rung: &&Rung| rung.way.pricing_model == model.word();
        let on_demand: Vec<&Rung> = rungs.iter().filter(is_of(PricingModel::OnDemand)).collect();
        let is_promised = |rung: &&Rung| {
            let by_the_hour = [PricingModel::OnDemand, PricingModel::Spot, PricingModel::LowPriority];
            by_the_hour.iter().all(|model| rung.way.pricing_model != model.word())
        };
        let promised = rungs.iter().filter(is_promised).min_by(|a, b| a.price.total_cmp(&b.price));
        gpus.push(Gpu {
            name: name.to_owned(),
            memory: texts(&part, "gpu_memory_gb")?.into_iter().find(|memory| !memory.is_empty()).unwrap_or_default(),
            providers: named(&rungs.iter().collect::<Vec<_>>()),
            providers_on_demand: named(&on_demand),
            on_demand: on_demand.first().map(|rung| shown_of.best(rung)).transpose()?,
            spot: rungs.iter().find(is_of(PricingModel::Spot)).map(|rung| shown_of.best(rung)).transpose()?,
            promised: promised.map(|rung| shown_of.best(rung)).transpose()?,
        });
    }
    left_out.push((by_plan, Why::ByPlan));
    left_out.retain(|(offers, _)| *offers > 0);
    gpus.retain(|gpu| gpu.providers > 0);
    gpus.sort_by(|a, b| b.providers.cmp(&a.providers).then_with(|| a.name.cmp(&b.name)));
    Ok(Cheapest { gpus, left_out })
}

/// The rows that can be held against each other, and how many of the others there are.
fn comparable(all: &DataFrame, night: SnapshotId, providers: &[Provider]) -> PolarsResult<(DataFrame, Vec<(usize, Why)>)> {
    let (mut rows, mut left_out) = (all.clone(), Vec::new());
    let tests = [
        (col("gpu_model").is_not_null(), Why::NoName),
        (col("os").eq(lit(Os::Linux.word())), Why::OtherSystem),
        (col("is_fractional").not(), Why::PartOfACard),
        (col("source_kind").neq(lit(SourceKind::Aggregator.word())), Why::Copy),
    ];
    for (test, why) in tests {
        let kept = rows.clone().lazy().filter(test.fill_null(lit(true))).collect()?;
        left_out.push((rows.height() - kept.height(), why));
        rows = kept;
    }
    let since = night.instant() - TimeDelta::days(STALE_DAYS);
    let samples: BTreeSet<&str> =
        providers.iter().filter(|provider| is_sample(&provider.input)).map(|provider| provider.id.as_str()).collect();
    let is_new = answer::seen(&rows)?.into_iter().zip(texts(&rows, "provider")?);
    let is_new: BooleanChunked =
        is_new.map(|(seen, provider)| samples.contains(provider.as_str()) || seen.is_some_and(|seen| seen >= since)).collect();
    let kept = rows.filter(&is_new)?;
    left_out.push((rows.height() - kept.height(), Why::Stale));
    Ok((kept, left_out))
}

/// Rows of one GPU, for making what is shown of them.
struct Shown<'a> {
    rows: &'a DataFrame,
    night: SnapshotId,
    providers: &'a [Provider],
    text: &'a Text,
}

impl Shown<'_> {
    fn best(&self, rung: &Rung) -> PolarsResult<Best> {
        let row = self.rows.slice(i64::try_from(rung.row).expect("few rows"), 1);
        let row = row.lazy().with_column(query::machine().alias("machine")).collect()?;
        let of = |column: &str| texts(&row, column).map(|texts| texts.into_iter().next().unwrap_or_default());
        let name = self.providers.iter().find(|provider| provider.id == rung.provider).map(|provider| provider.name.clone());
        let is_promised = rung.way.commitment_months.is_some() || !of("plan")?.is_empty() || !of("upfront")?.is_empty();
        let terms = self.text.way(&of("pricing_model")?, &of("plan")?, &of("commitment_months")?, &of("upfront")?);
        let (count, machine) = (of("gpu_count")?, shown(&of("machine")?));
        Ok(Best {
            price: dollars(rung.price),
            provider: name.unwrap_or_else(|| shown(&rung.provider)),
            machine: if ["", "1"].contains(&count.as_str()) { machine } else { format!("{machine} · {count} GPU") },
            place: shown(&of("region")?),
            terms: if is_promised { terms } else { String::new() },
            age: answer::seen(&row)?
                .first()
                .copied()
                .flatten()
                .map_or_else(String::new, |seen| self.text.seen(seen, self.night.instant())),
            remarks: remarks(&row, self.text)?.into_iter().next().unwrap_or_default(),
            link: link(&of("source_url")?),
        })
    }
}
