//! The prices of the chosen nights: read lazily, judged row by row, and what is left out counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use chrono::NaiveDate;
use gpuledger_scrapers::contract::{PricingModel, SourceKind};
use gpuledger_scrapers::import::mapping::SCOPE_PREFIX;
use polars::prelude::*;

use super::{By, COLLECTED, Nights, Source, Trend};
use crate::night::SnapshotId;
use crate::query::{self, QueryError};
use crate::report::Failed;
use crate::snapshot::read::{self, Snapshot};

/// Columns that are read of each file.
const COLUMNS: [&str; 10] = [
    "snapshot_id",
    "provider",
    "scope",
    "source_kind",
    "region",
    "is_fractional",
    "plan",
    "os",
    "pricing_model",
    "price_usd_per_gpu_hour",
];

/// So many nights are read at a time.
const NIGHTS_AT_ONCE: usize = 16;

/// Prices of a provider on a day that are of one line. A day may have several groups of one provider and line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub source: Source,
    pub day: NaiveDate,
    pub provider: String,
    /// Region and provider, or pricing model, if lines are of those.
    pub line: String,
    /// USD for one whole GPU and hour.
    pub usd: Vec<f64>,
}

/// Whose a row is: night, provider and source.
type Of<'a> = (&'a str, &'a str, &'a str);

/// The day that rows of a provider in a night count for; `None` where a later night of the day has the provider too.
fn day_of((id, provider, source): Of<'_>, nights: &Nights<'_>) -> Option<NaiveDate> {
    id.parse::<SnapshotId>().ok().map(SnapshotId::date).filter(|day| {
        let last = nights.last.get(&(*day, source.to_owned(), provider.to_owned()));
        last.is_some_and(|last| last == id)
    })
}

/// The prices of the days, and what is not among them.
pub(super) struct Prices {
    /// The GPU as it was typed.
    pub gpu: String,
    pub all: Vec<Group>,
    left_out: BTreeMap<LeftOut, usize>,
}

/// Why a price of the GPU is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeftOut {
    Aggregator,
    Fraction,
    Plan,
    Windows,
    PricingModel,
    NoDollars,
}

impl LeftOut {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Aggregator => ("of people who copy vendors' prices", " (--include-aggregators)"),
            Self::Fraction => ("of parts of a card", " (--include-fractions)"),
            Self::Plan => ("of plans with conditions of their own", " (--include-plans)"),
            Self::Windows => ("with a Windows licence", " (--include-windows)"),
            Self::PricingModel => ("of other pricing models", " (--pricing-model, --by pricing_model)"),
            Self::NoDollars => ("without a price in dollars", ""),
        }
    }
}

impl Prices {
    pub(super) fn read(args: &Trend, nights: &Nights<'_>) -> Result<Self, Failed> {
        let gpu = args.gpu.clone().or_else(|| args.index.clone()).unwrap_or_default();
        let is_gpu = query::is_gpu(&gpu)?;
        Self::of(args, nights, gpu, is_gpu)
    }

    /// The same for rows of a GPU that is known.
    pub(super) fn of(args: &Trend, nights: &Nights<'_>, gpu: String, is_gpu: Expr) -> Result<Self, Failed> {
        let models = models(args)?;
        let mut prices = Self { gpu, all: Vec::new(), left_out: BTreeMap::new() };
        // A few nights at a time, so that years of them need no more memory than a month; on each core its own.
        let batches: Vec<&[&Snapshot]> = nights.files.chunks(NIGHTS_AT_ONCE).collect();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let run = batches.len().div_ceil(threads).max(1);
        let (is_gpu, models) = (&is_gpu, models.as_deref());
        let read = |batches: &[&[&Snapshot]]| {
            let mut part = Self { gpu: String::new(), all: Vec::new(), left_out: BTreeMap::new() };
            for files in batches {
                part.add(args, nights, files, is_gpu, models)?;
            }
            Ok::<_, Failed>(part)
        };
        let parts: Vec<Result<Self, Failed>> = std::thread::scope(|scope| {
            let started: Vec<_> = batches.chunks(run).map(|batches| scope.spawn(move || read(batches))).collect();
            // A panic goes on as if it had been in this thread.
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        for part in parts {
            let part = part?;
            prices.all.extend(part.all);
            for (reason, offers) in part.left_out {
                *prices.left_out.entry(reason).or_insert(0) += offers;
            }
        }
        Ok(prices)
    }

    /// Adds the prices of some nights.
    fn add(
        &mut self,
        args: &Trend,
        nights: &Nights<'_>,
        files: &[&Snapshot],
        is_gpu: &Expr,
        models: Option<&[&str]>,
    ) -> Result<(), Failed> {
        let rows = read::offers_of(files)?.filter(is_gpu.clone()).select(COLUMNS.map(col)).collect()?;
        let text = |name: &str| Ok::<_, Failed>(rows.column(name)?.str()?.clone());
        let (ids, providers, scopes) = (text("snapshot_id")?, text("provider")?, text("scope")?);
        let (kinds, regions, plans) = (text("source_kind")?, text("region")?, text("plan")?);
        let (systems, ways) = (text("os")?, text("pricing_model")?);
        let is_part = rows.column("is_fractional")?.bool()?.clone();
        let dollars = rows.column("price_usd_per_gpu_hour")?.f64()?.clone();
        // Rows of a provider stand together in a file, so most rows are of the one before.
        let mut days: HashMap<Of<'_>, Option<NaiveDate>> = HashMap::new();
        let mut last: Option<(Of<'_>, Option<NaiveDate>)> = None;
        let mut groups: HashMap<(Of<'_>, &str), usize> = HashMap::new();
        let mut last_group: Option<((Of<'_>, &str), usize)> = None;
        // Walked along, not looked up: the rows are in many pieces, and to find a place is to go through them.
        let places = ids.iter().zip(providers.iter()).zip(scopes.iter()).zip(regions.iter());
        let terms = kinds.iter().zip(plans.iter()).zip(systems.iter()).zip(ways.iter());
        let prices = is_part.iter().zip(dollars.iter());
        for (((((id, provider), scope), region), (((kind, plan), system), way)), (is_part, usd)) in places.zip(terms).zip(prices)
        {
            let (Some(id), Some(provider), Some(scope)) = (id, provider, scope) else { continue };
            let of = (id, provider, if scope.starts_with(SCOPE_PREFIX) { scope } else { COLLECTED });
            let day = match last {
                Some((known, day)) if known == of => day,
                _ => last.insert((of, *days.entry(of).or_insert_with(|| day_of(of, nights)))).1,
            };
            let Some(day) = day else { continue };
            let way = way.unwrap_or_default();
            let left_out = if kind == Some(SourceKind::Aggregator.word()) && !args.include_aggregators {
                Some(LeftOut::Aggregator)
            } else if is_part != Some(false) && !args.include_fractions {
                Some(LeftOut::Fraction)
            } else if plan.is_some() && !args.include_plans {
                Some(LeftOut::Plan)
            } else if system != Some("linux") && !args.include_windows {
                Some(LeftOut::Windows)
            } else if models.is_some_and(|models| !models.contains(&way)) {
                Some(LeftOut::PricingModel)
            } else if usd.is_none() {
                Some(LeftOut::NoDollars)
            } else {
                None
            };
            if let Some(reason) = left_out {
                *self.left_out.entry(reason).or_insert(0) += 1;
                continue;
            }
            let about = match args.by {
                None | Some(By::Provider) => "",
                Some(By::Region) => region.unwrap_or("everywhere"),
                Some(By::PricingModel) => way,
            };
            let place = match last_group {
                Some((known, place)) if known == (of, about) => place,
                _ => *groups.entry((of, about)).or_insert_with(|| {
                    let line = match args.by {
                        None => String::new(),
                        Some(By::Provider) => provider.to_owned(),
                        Some(By::Region) => format!("{provider} {about}"),
                        Some(By::PricingModel) => about.to_owned(),
                    };
                    let (source, provider) = (of.2.to_owned(), provider.to_owned());
                    self.all.push(Group { source, day, provider, line, usd: Vec::new() });
                    self.all.len() - 1
                }),
            };
            last_group = Some(((of, about), place));
            self.all[place].usd.extend(usd);
        }
        Ok(())
    }

    /// What was left out, in words; nothing where nothing was.
    pub(super) fn left_out(&self, nights: &Nights<'_>) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (reason, offers) in &self.left_out {
            let (words, how) = reason.words();
            parts.push(format!("{offers} {words}{how}"));
        }
        let mut text = String::new();
        if !parts.is_empty() {
            let _ = writeln!(text, "left out, offers of all days: {}", parts.join("; "));
        }
        if nights.imports_left_out > 0 {
            let _ = writeln!(text, "left out: {} imported nights (--include-imports)", nights.imports_left_out);
        }
        text
    }
}

/// The pricing models that are meant; `None` for all.
fn models(args: &Trend) -> Result<Option<Vec<&'static str>>, QueryError> {
    if args.pricing_model.is_empty() {
        return Ok((args.by != Some(By::PricingModel)).then(|| vec![PricingModel::OnDemand.word()]));
    }
    let known = |typed: &String| {
        let word = typed.replace('-', "_");
        PricingModel::ALL.iter().map(|model| model.word()).find(|known| *known == word).ok_or_else(|| {
            let known = PricingModel::ALL.iter().map(|model| model.word()).collect::<Vec<_>>().join(", ");
            QueryError::UnknownValue { what: "pricing model", typed: typed.clone(), known }
        })
    };
    args.pricing_model.iter().map(known).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
impl Prices {
    /// Prices of nowhere, for the arithmetic.
    pub(super) fn plain(gpu: &str, all: Vec<Group>) -> Self {
        Self { gpu: gpu.to_owned(), all, left_out: BTreeMap::new() }
    }
}
