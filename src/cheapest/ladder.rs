//! Offers with prices → ladders: for each way to buy, the cheapest first.
//!
//! Knows no dataset and no terminal. A plan of the provider's own never stands among plain prices of use by the hour: it has a
//! ladder of its own.

use std::collections::BTreeSet;
use std::fmt;

use gpuledger_scrapers::contract::{Availability, PricingModel};
use polars::prelude::*;

use crate::measure::Price;

/// A way to buy: offers of one way stand in one ladder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Its place among the pricing models; those that this program does not know come last.
    model_order: usize,
    /// The pricing model. `on_demand`
    pub pricing_model: String,
    /// Whether it is by a plan of the provider's own, where that changes what the price is of.
    pub is_by_plan: bool,
    /// Months promised; `None` where nothing is, or not in months.
    pub commitment_months: Option<i64>,
}

impl Way {
    fn of(pricing_model: &str, plan: Option<&str>, commitment_months: Option<i64>) -> Self {
        let model_order = PricingModel::ALL.iter().position(|model| model.word() == pricing_model);
        let model_order = model_order.unwrap_or(PricingModel::ALL.len());
        // What is bought for a term is a plan anyway, and the plan says which; by the hour it is a condition on the price.
        let by_the_hour = [PricingModel::OnDemand, PricingModel::Spot, PricingModel::LowPriority];
        let is_by_plan = plan.is_some() && by_the_hour.iter().any(|model| model.word() == pricing_model);
        Self { model_order, pricing_model: pricing_model.to_owned(), is_by_plan, commitment_months }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pricing_model.replace('_', " "))?;
        match self.commitment_months {
            None => {}
            Some(1) => f.write_str(", 1 month")?,
            Some(months) => write!(f, ", {months} months")?,
        }
        f.write_str(if self.is_by_plan { ", by a plan of the provider's own" } else { "" })
    }
}

/// One offer in a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// The way to buy it.
    pub way: Way,
    /// Its price.
    pub price: f64,
    /// The provider.
    pub provider: String,
    /// Its row.
    pub row: usize,
    is_sold_out: bool,
    /// GPUs of the machine: at one price the smaller machine comes first.
    gpu_count: f64,
    offer_id: String,
}

/// Every ladder, one after another, and what is not in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladders {
    /// By way to buy, then by price.
    pub rungs: Vec<Rung>,
    /// Offers that are dearer than another of the same provider in the same ladder.
    pub dearer: usize,
    /// Offers that are sold out, where the same provider has another in the same ladder.
    pub sold_out: usize,
    /// Offers beyond the longest ladder asked for.
    pub beyond: usize,
}

/// The ladders of rows with prices; rows without one are in none.
///
/// With `is_all` every offer, else the cheapest of each provider, and one that is sold out only where it has no other. Of each
/// ladder at most `longest` rungs, 0 for all.
///
/// # Errors
/// Only on a fault of the program.
pub fn ladders(rows: &DataFrame, prices: &[Price], is_all: bool, longest: usize) -> PolarsResult<Ladders> {
    let text = |name: &str| -> PolarsResult<Vec<Option<&str>>> { Ok(rows.column(name)?.str()?.iter().collect()) };
    let (models, plans) = (text("pricing_model")?, text("plan")?);
    let (providers, ids, stock) = (text("provider")?, text("offer_id")?, text("availability")?);
    let counts = rows.column("gpu_count")?.cast(&DataType::Float64)?;
    let counts = counts.f64()?;
    let months = rows.column("commitment_months")?.cast(&DataType::Int64)?;
    let months = months.i64()?;
    let mut rungs: Vec<Rung> = Vec::new();
    for (row, price) in prices.iter().enumerate() {
        let Ok(price) = *price else { continue };
        rungs.push(Rung {
            way: Way::of(models[row].unwrap_or_default(), plans[row], months.get(row)),
            price,
            provider: providers[row].unwrap_or_default().to_owned(),
            row,
            is_sold_out: stock[row] == Some(Availability::SoldOut.word()),
            gpu_count: counts.get(row).unwrap_or(f64::INFINITY),
            offer_id: ids[row].unwrap_or_default().to_owned(),
        });
    }
    rungs.sort_by(|a, b| {
        let by_price = a.way.cmp(&b.way).then(a.price.total_cmp(&b.price)).then(a.gpu_count.total_cmp(&b.gpu_count));
        by_price.then_with(|| (&a.provider, &a.offer_id, a.row).cmp(&(&b.provider, &b.offer_id, b.row)))
    });
    let key = |rung: &Rung| (rung.way.clone(), rung.provider.clone());
    let (mut dearer, mut sold_out) = (0, 0);
    if !is_all {
        let before = rungs.len();
        let in_stock: BTreeSet<(Way, String)> = rungs.iter().filter(|rung| !rung.is_sold_out).map(key).collect();
        rungs.retain(|rung| !rung.is_sold_out || !in_stock.contains(&key(rung)));
        let in_question = rungs.len();
        let mut seen = BTreeSet::new();
        rungs.retain(|rung| seen.insert(key(rung)));
        (dearer, sold_out) = (in_question - rungs.len(), before - in_question);
    }
    let each = rungs.len();
    let longest = if longest == 0 { usize::MAX } else { longest };
    let kept = rungs.chunk_by(|a, b| a.way == b.way).flat_map(|ladder| ladder.iter().take(longest).cloned()).collect::<Vec<_>>();
    Ok(Ladders { dearer, sold_out, beyond: each - kept.len(), rungs: kept })
}
