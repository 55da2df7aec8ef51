//! A night's rows as the rules read them: sorted, with typed columns, each row's scope and card known by number.
//!
//! Text is never copied row by row. Nothing here judges.

use std::collections::HashMap;
use std::ops::Range;

use polars::prelude::*;

use crate::frame::Cell;
use crate::normalise::HELD_BACK;
use crate::normalise::gpu::{GpuModel, GpuModels};
use crate::validate::ScopeCoverage;

/// The rows of a night in file order.
pub struct Rows {
    /// The rows themselves.
    pub frame: DataFrame,
    /// Provider of each row.
    pub provider: StringChunked,
    /// Price list.
    pub site: StringChunked,
    /// Region as published.
    pub region: StringChunked,
    /// Zone as published.
    pub zone: StringChunked,
    /// Name of the machine.
    pub instance_type: StringChunked,
    /// Name of the offer.
    pub offer_label: StringChunked,
    /// Operating system.
    pub os: StringChunked,
    /// Licence.
    pub licence: StringChunked,
    /// Tenancy.
    pub tenancy: StringChunked,
    /// How it is bought.
    pub pricing_model: StringChunked,
    /// The provider's plan.
    pub plan: StringChunked,
    /// Part paid at the start.
    pub upfront: StringChunked,
    /// Months promised.
    pub months: Int32Chunked,
    /// Whether it is a promotion.
    pub is_promotion: BooleanChunked,
    /// Currency of the amounts.
    pub currency: StringChunked,
    /// Time that the amount pays for.
    pub unit: StringChunked,
    /// Who says it.
    pub source_kind: StringChunked,
    /// Marks, comma-separated.
    pub flags: StringChunked,
    /// Why a row could not be made comparable.
    pub not_comparable: StringChunked,
    /// GPUs in multiples of the dataset's last digit.
    pub gpu_count: Int128Chunked,
    /// Whether the machine has a part of a card.
    pub is_fractional: BooleanChunked,
    /// The amount in multiples of the dataset's last digit.
    pub amount: Int128Chunked,
    /// The part paid at the start, likewise.
    pub upfront_amount: Int128Chunked,
    /// Whole machine for an hour, published currency.
    pub native_per_hour: Float64Chunked,
    /// One GPU for an hour, published currency.
    pub native_per_gpu_hour: Float64Chunked,
    /// Whole machine for an hour in USD.
    pub usd_per_hour: Float64Chunked,
    /// One GPU for an hour in USD.
    pub usd_per_gpu_hour: Float64Chunked,
    /// Scope of each row, by its place in the coverage.
    pub scope_of: Vec<usize>,
    /// Card of each row, by its place in `gpu_models.toml`.
    pub model_of: Vec<Option<usize>>,
}

impl Rows {
    /// Reads rows that are in file order. Every row's scope stands in the coverage.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn read(mut frame: DataFrame, coverage: &[ScopeCoverage]) -> PolarsResult<Self> {
        frame.rechunk_mut_par();
        let text = |name: &str| frame.column(name)?.str().cloned();
        let float = |name: &str| frame.column(name)?.f64().cloned();
        let scaled = |name: &str| -> PolarsResult<Int128Chunked> { Ok(frame.column(name)?.decimal()?.physical().clone()) };
        let provider = text("provider")?;
        Ok(Self {
            scope_of: scopes_of(&provider, &text("scope")?, coverage),
            model_of: models_of(&text("gpu_model")?),
            site: text("site")?,
            region: text("region")?,
            zone: text("zone")?,
            instance_type: text("instance_type")?,
            offer_label: text("offer_label")?,
            os: text("os")?,
            licence: text("licence")?,
            tenancy: text("tenancy")?,
            pricing_model: text("pricing_model")?,
            plan: text("plan")?,
            upfront: text("upfront")?,
            months: frame.column("commitment_months")?.i32()?.clone(),
            is_promotion: frame.column("is_promotion")?.bool()?.clone(),
            currency: text("published_currency_code")?,
            unit: text("published_unit")?,
            source_kind: text("source_kind")?,
            flags: text("flags")?,
            not_comparable: text(HELD_BACK)?,
            gpu_count: scaled("gpu_count")?,
            is_fractional: frame.column("is_fractional")?.bool()?.clone(),
            amount: scaled("published_amount")?,
            upfront_amount: scaled("published_upfront_amount")?,
            native_per_hour: float("price_native_per_hour")?,
            native_per_gpu_hour: float("price_native_per_gpu_hour")?,
            usd_per_hour: float("price_usd_per_hour")?,
            usd_per_gpu_hour: float("price_usd_per_gpu_hour")?,
            provider,
            frame,
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.frame.height()
    }

    /// The card of a row.
    #[must_use]
    pub fn model(&self, row: usize) -> Option<&'static GpuModel> {
        self.model_of[row].map(|model| &GpuModels::built_in().models()[model])
    }

    /// Whether the price is one of a market, which moves by itself: spot, low priority, or many listings.
    #[must_use]
    pub fn is_market(&self, row: usize) -> bool {
        matches!(self.pricing_model.get(row), Some("spot" | "low_priority")) || self.source_kind.get(row) == Some("aggregator")
    }

    /// Whether a row has a flag.
    #[must_use]
    pub fn has_flag(&self, row: usize, flag: &str) -> bool {
        self.flags.get(row).is_some_and(|flags| !flags.is_empty() && flags.split(',').any(|known| known == flag))
    }

    /// A value of a row as text.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn cell(&self, name: &str, row: usize) -> PolarsResult<String> {
        Cell::at(&self.frame, name, row).map(|cell| cell.text())
    }

    /// What a row calls itself.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn label(&self, row: usize) -> PolarsResult<String> {
        let mut parts = Vec::new();
        for name in
            ["instance_type", "offer_label", "gpu_label", "region", "zone", "os", "pricing_model", "plan", "commitment_months"]
        {
            let text = self.cell(name, row)?;
            if !text.is_empty() {
                parts.push(text);
            }
        }
        Ok(parts.join(" "))
    }

    /// Runs of rows of one card of one provider in one place: file order puts them together.
    pub fn places(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        runs(self.count(), |a, b| {
            self.model_of[a] == self.model_of[b]
                && self.provider.get(a) == self.provider.get(b)
                && self.region.get(a) == self.region.get(b)
                && self.zone.get(a) == self.zone.get(b)
                && self.site.get(a) == self.site.get(b)
        })
    }

    /// Runs of rows of one machine under one operating system: the ways in which it can be bought.
    pub fn machines(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        runs(self.count(), |a, b| {
            self.model_of[a] == self.model_of[b]
                && self.instance_type.get(a) == self.instance_type.get(b)
                && self.offer_label.get(a) == self.offer_label.get(b)
                && self.os.get(a) == self.os.get(b)
                && self.provider.get(a) == self.provider.get(b)
                && self.region.get(a) == self.region.get(b)
                && self.zone.get(a) == self.zone.get(b)
                && self.site.get(a) == self.site.get(b)
        })
    }
}

/// Runs of neighbours that are alike.
fn runs(rows: usize, is_alike: impl Fn(usize, usize) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= rows {
            return None;
        }
        let end = (start + 1..rows).find(|&row| !is_alike(row - 1, row)).unwrap_or(rows);
        let run = start..end;
        start = end;
        Some(run)
    })
}

/// Each row's scope, by its place in the coverage. Neighbours are often of one scope, so most rows need no look-up.
fn scopes_of(provider: &StringChunked, scope: &StringChunked, coverage: &[ScopeCoverage]) -> Vec<usize> {
    let places: HashMap<(&str, &str), usize> =
        coverage.iter().enumerate().map(|(at, scope)| ((scope.provider.as_str(), scope.scope.as_str()), at)).collect();
    let mut last: Option<((&str, &str), usize)> = None;
    let mut found = Vec::with_capacity(provider.len());
    for (provider, scope) in provider.iter().zip(scope.iter()) {
        let key = (provider.unwrap_or_default(), scope.unwrap_or_default());
        let place = match last {
            Some((known, place)) if known == key => place,
            _ => *places.get(&key).expect("every row is of a scope that was gathered"),
        };
        last = Some((key, place));
        found.push(place);
    }
    found
}

/// Each row's card, by its place in `gpu_models.toml`. File order puts rows of one card together.
fn models_of(names: &StringChunked) -> Vec<Option<usize>> {
    let models = GpuModels::built_in().models();
    let places: HashMap<&str, usize> = models.iter().enumerate().map(|(at, model)| (model.name.as_str(), at)).collect();
    let mut last: Option<usize> = None;
    let place = |name: Option<&str>| {
        let name = name?;
        if last.is_none_or(|at| models[at].name != name) {
            last = places.get(name).copied();
        }
        last
    };
    names.iter().map(place).collect()
}
