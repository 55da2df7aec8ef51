//! Rules of how prices moved since the last complete night.
//!
//! A single price may jump: it is noted and kept, whatever it is. Many prices of a scope that move by one factor, by their
//! number of GPUs, or to another card's price are a fault of reading, and the scope is refused. Prices are compared in their
//! own currency, so a move of an exchange rate is no move of a price.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::*;

use crate::earlier::Earlier;
use crate::frame::Columns;
use crate::offer::DECIMAL_SCALE;
use crate::validate::rows::Rows;
use crate::validate::thresholds::Thresholds;
use crate::validate::{Finding, HeldBack, Refusal, ScopeCoverage, ScopeStatus, Severity};

/// An offer that both nights have.
#[derive(Debug, Clone, Copy)]
struct Move {
    row: usize,
    /// Tonight's price over the earlier one, in the published currency.
    factor: f64,
    is_same_currency: bool,
}

/// Offers that both nights have, of one scope, or of all scopes of a provider.
struct Moves<'a> {
    rows: &'a Rows,
    thresholds: &'a Thresholds,
    all: Vec<Move>,
}

/// What the moves of a night say: notes, and scopes to refuse.
#[derive(Default)]
pub struct Found {
    /// Notes.
    pub findings: Vec<Finding>,
    /// Scopes to refuse.
    pub refusals: Vec<Refusal>,
}

/// Looks at the moves of every scope, and of every provider as a whole, since its scopes may be too small to tell.
///
/// # Errors
/// Only on a fault of the program.
pub fn moves(
    rows: &Rows,
    coverage: &[ScopeCoverage],
    earlier: &Earlier,
    thresholds: &Thresholds,
    held: &HeldBack,
) -> PolarsResult<Found> {
    let mut found = Found::default();
    if earlier.is_empty() || rows.count() == 0 {
        return Ok(found);
    }
    let mut by_scope: BTreeMap<usize, Vec<Move>> = BTreeMap::new();
    for offer in both(rows, earlier, held)? {
        by_scope.entry(rows.scope_of[offer.row]).or_default().push(offer);
    }
    let mut by_provider: BTreeMap<&str, Vec<(usize, Vec<Move>)>> = BTreeMap::new();
    for (scope, all) in by_scope {
        let of = &coverage[scope];
        let moves = Moves { rows, thresholds, all };
        moves.jumps(of, &mut found.findings)?;
        let is_other_parser =
            earlier.scope(&of.provider, &of.scope).is_some_and(|before| before.scraper_version != of.scraper_version);
        match moves.fault() {
            Some((rule, reason)) if is_other_parser => {
                let reason = format!("{reason}; the parser's version changed with it, so nothing is refused");
                found.findings.push(Finding::about_scope(Severity::Note, rule, &of.provider, &of.scope, reason));
            }
            Some((rule, reason)) => found.refusals.push(Refusal { scope, rule, reason }),
            None if !is_other_parser => by_provider.entry(&of.provider).or_default().push((scope, moves.all)),
            None => {}
        }
    }
    for scopes in by_provider.into_values().filter(|scopes| scopes.len() > 1) {
        let moved: Vec<usize> = scopes.iter().map(|(scope, _)| *scope).collect();
        let all = scopes.into_iter().flat_map(|(_, all)| all).collect();
        if let Some((rule, reason)) = (Moves { rows, thresholds, all }).fault_of_all() {
            found.refusals.extend(moved.into_iter().map(|scope| {
                let reason = format!("all scopes together: {reason}");
                Refusal { scope, rule, reason }
            }));
        }
    }
    found.refusals.retain(|refusal| coverage[refusal.scope].status == ScopeStatus::Complete);
    Ok(found)
}

/// The offers that both nights have.
fn both(rows: &Rows, earlier: &Earlier, held: &HeldBack) -> PolarsResult<Vec<Move>> {
    let mut number = Columns::new(rows.count());
    number.longs("_row", (0_i64..).take(rows.count()).map(Some));
    let tonight = rows
        .frame
        .select(["offer_id", "published_currency_code", "price_native_per_hour"])?
        .hstack(number.finish()?.columns())?;
    let before = earlier.rows().clone().lazy().select([
        col("offer_id"),
        col("published_currency_code").alias("_currency"),
        col("price_native_per_hour").alias("_price"),
    ]);
    let joined = tonight
        .lazy()
        .join(before, [col("offer_id")], [col("offer_id")], JoinArgs::new(JoinType::Inner))
        .select([
            col("_row"),
            (col("price_native_per_hour") / col("_price")).alias("_factor"),
            col("published_currency_code").eq(col("_currency")).alias("_is_same_currency"),
        ])
        .sort(["_row"], SortMultipleOptions::default())
        .collect()?;
    let (row, factor) = (joined.column("_row")?.i64()?, joined.column("_factor")?.f64()?);
    let is_same = joined.column("_is_same_currency")?.bool()?;
    let offer = |((row, factor), is_same): ((Option<i64>, Option<f64>), Option<bool>)| {
        let row = row.and_then(|row| usize::try_from(row).ok()).expect("every row has its number");
        // An earlier price of zero was never published, and a price that appears is no move.
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0)?;
        (!held.has(row)).then_some(Move { row, factor, is_same_currency: is_same == Some(true) })
    };
    Ok(row.iter().zip(factor.iter()).zip(is_same.iter()).filter_map(offer).collect())
}

impl Moves<'_> {
    /// The first fault that the moves of a scope show.
    fn fault(&self) -> Option<(&'static str, String)> {
        self.currency_swapped()
            .or_else(|| self.one_factor())
            .or_else(|| self.by_number_of_gpus())
            .or_else(|| self.most_jumped())
            .or_else(|| self.to_anothers_price())
    }

    /// The first fault that the moves of all scopes of a provider show.
    fn fault_of_all(&self) -> Option<(&'static str, String)> {
        self.currency_swapped().or_else(|| self.one_factor()).or_else(|| self.by_number_of_gpus())
    }

    fn of_one_currency(&self) -> impl Iterator<Item = &Move> {
        self.all.iter().filter(|offer| offer.is_same_currency)
    }

    fn has_moved(&self, offer: &Move) -> bool {
        (offer.factor - 1.0).abs() * 100.0 > self.thresholds.moved_percent_min.value
    }

    fn is_near(&self, factor: f64, other: f64) -> bool {
        (factor / other - 1.0).abs() * 100.0 <= self.thresholds.same_factor_spread_percent_max.value
    }

    /// The same of one row: the prices of a market move by themselves beside a fault.
    fn is_near_in_row(&self, row: usize, factor: f64, other: f64) -> bool {
        let spread = self.thresholds.market_factor_spread_percent_max.value;
        self.is_near(factor, other) || (self.rows.is_market(row) && (factor / other - 1.0).abs() * 100.0 <= spread)
    }

    fn is_jump(&self, offer: &Move) -> bool {
        let min = if self.rows.is_market(offer.row) {
            self.thresholds.market_jump_factor_min.value
        } else {
            self.thresholds.list_jump_factor_min.value
        };
        offer.factor >= min || offer.factor <= 1.0 / min
    }

    /// GPUs of a machine of several whole cards.
    fn gpus(&self, row: usize) -> Option<i128> {
        let one = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
        self.rows.gpu_count.get(row).filter(|count| count % one == 0).map(|count| count / one).filter(|gpus| *gpus > 1)
    }

    /// The same figures under another currency: the label is wrong on one side.
    fn currency_swapped(&self) -> Option<(&'static str, String)> {
        let is_same = |offer: &&Move| {
            !self.has_moved(offer) || self.is_near_in_row(offer.row, offer.factor, 1.0) && self.rows.is_market(offer.row)
        };
        let swapped = self.all.iter().filter(|offer| !offer.is_same_currency).filter(is_same).count();
        let is_fault = swapped > 0 && swapped * 100 >= self.all.len() * self.thresholds.same_currency_amount_percent_min.value;
        is_fault.then(|| {
            ("currency_swapped", format!("{swapped} of {} prices have the same figure under another currency", self.all.len()))
        })
    }

    /// Machines of several GPUs whose price moved by exactly their number: prices of machines became prices of one GPU, or the
    /// reverse.
    fn by_number_of_gpus(&self) -> Option<(&'static str, String)> {
        let of_several: Vec<(i128, &Move)> =
            self.of_one_currency().filter_map(|offer| Some((self.gpus(offer.row)?, offer))).collect();
        let is_exact = |&&(gpus, offer): &&(i128, &Move)| {
            #[expect(clippy::cast_precision_loss, reason = "a machine has few GPUs")]
            let gpus = gpus as f64;
            [gpus, 1.0 / gpus].iter().any(|other| self.is_near_in_row(offer.row, offer.factor, *other))
        };
        let exact: Vec<_> = of_several.iter().filter(is_exact).collect();
        let is_enough = exact.len() >= self.thresholds.per_gpu_rows_min.value
            || exact.iter().any(|(gpus, _)| *gpus >= self.thresholds.per_gpu_alone_gpus_min.value);
        let is_fault = is_enough && exact.len() * 100 >= of_several.len() * self.thresholds.per_gpu_percent_min.value;
        is_fault.then(|| {
            let reason = format!("{} of {} machines of several GPUs moved by exactly that number", exact.len(), of_several.len());
            ("price_of_one_gpu_for_the_machine", reason)
        })
    }

    /// Nearly all prices moved by one factor: a unit or a currency. Few prices tell so only by a factor that is one of a unit.
    fn one_factor(&self) -> Option<(&'static str, String)> {
        let mut factors: Vec<f64> = self.of_one_currency().map(|offer| offer.factor).collect();
        factors.sort_by(f64::total_cmp);
        let middle = *factors.get(factors.len() / 2)?;
        let alike = factors.iter().filter(|factor| self.is_near(**factor, middle)).count();
        let min = self.thresholds.list_jump_factor_min.value;
        let is_large = middle >= min || middle <= 1.0 / min;
        let of_a_unit = self
            .thresholds
            .unit_factors
            .value
            .iter()
            .find(|unit| self.is_near(middle, **unit) || self.is_near(middle, 1.0 / **unit));
        let is_fault = if factors.len() >= self.thresholds.same_factor_rows_min.value {
            is_large && alike * 100 >= factors.len() * self.thresholds.same_factor_percent_min.value
        } else {
            of_a_unit.is_some() && alike == factors.len()
        };
        is_fault.then(|| {
            let unit = of_a_unit.map_or_else(String::new, |unit| format!(", a factor between units ({unit})"));
            ("all_prices_by_one_factor", format!("{alike} of {} prices moved by {middle:.4}{unit}", factors.len()))
        })
    }

    /// Half of a scope's prices doubled or halved, each by its own factor: another column or other rows were read, or a unit
    /// where prices move by themselves as well.
    fn most_jumped(&self) -> Option<(&'static str, String)> {
        let list: Vec<&Move> = self.of_one_currency().filter(|offer| !self.rows.is_market(offer.row)).collect();
        let all: Vec<&Move> = self.of_one_currency().collect();
        let (list_min, all_min) = (self.thresholds.scope_jumped_rows_min.value, self.thresholds.market_jumped_rows_min.value);
        let min = self.thresholds.list_jump_factor_min.value;
        for (moves, rows_min, what) in [(list, list_min, "list prices"), (all, all_min, "prices")] {
            let jumped = moves.iter().filter(|offer| offer.factor >= min || offer.factor <= 1.0 / min).count();
            if moves.len() >= rows_min && jumped * 100 >= moves.len() * self.thresholds.scope_jumped_percent_min.value {
                let reason = format!("{jumped} of {} {what} moved {min} times or more, each by its own factor", moves.len());
                return Some(("most_prices_jumped", reason));
            }
        }
        None
    }

    /// List prices that moved to exactly the price that another kind of card has or had: a column or its rows moved.
    fn to_anothers_price(&self) -> Option<(&'static str, String)> {
        let list: Vec<&Move> = self.of_one_currency().filter(|offer| !self.rows.is_market(offer.row)).collect();
        let price = |row: usize| self.rows.native_per_gpu_hour.get(row);
        let mut families: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for offer in &list {
            if let (Some(price), Some(model)) = (price(offer.row), self.rows.model(offer.row)) {
                for price in [price, price / offer.factor] {
                    families.entry(millionths(price)).or_default().insert(&model.family);
                }
            }
        }
        let min = self.thresholds.anothers_price_factor_min.value;
        let is_shifted = |offer: &&&Move| {
            let family = self.rows.model(offer.row).map(|model| model.family.as_str());
            let others = price(offer.row).and_then(|price| families.get(&millionths(price)));
            (offer.factor >= min || offer.factor <= 1.0 / min)
                && others.is_some_and(|families| families.iter().any(|other| Some(*other) != family))
        };
        let shifted = list.iter().filter(is_shifted).count();
        let is_fault = shifted > 0 && shifted * 100 >= list.len() * self.thresholds.anothers_price_percent_min.value;
        is_fault.then(|| {
            ("moved_to_anothers_price", format!("{shifted} of {} list prices moved to exactly another card's price", list.len()))
        })
    }

    /// Notes each jump, the largest first, and counts the rest.
    fn jumps(&self, scope: &ScopeCoverage, findings: &mut Vec<Finding>) -> PolarsResult<()> {
        let mut jumped: Vec<&Move> = self.of_one_currency().filter(|offer| self.is_jump(offer)).collect();
        jumped.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()).then(a.row.cmp(&b.row)));
        let named = self.thresholds.jump_rows_named_max.value;
        for offer in jumped.iter().take(named) {
            let price = self.rows.native_per_hour.get(offer.row).unwrap_or_default();
            let currency = self.rows.currency.get(offer.row).unwrap_or_default();
            let was = price / offer.factor;
            let reason = format!("{was:.4} to {price:.4} {currency} per hour, {:.4} times; kept", offer.factor);
            findings.push(Finding::about_row(Severity::Note, "price_jumped", self.rows, offer.row, reason)?);
        }
        if let Some(more) = jumped.len().checked_sub(named).filter(|more| *more > 0) {
            let reason = format!("{more} more prices of {} jumped; kept", self.all.len());
            findings.push(Finding::about_scope(Severity::Note, "price_jumped", &scope.provider, &scope.scope, reason));
        }
        let renamed = self.all.iter().filter(|offer| !offer.is_same_currency).count();
        if renamed > 0 {
            let reason = format!("{renamed} of {} prices are in another currency than before", self.all.len());
            findings.push(Finding::about_scope(Severity::Note, "currency_changed", &scope.provider, &scope.scope, reason));
        }
        Ok(())
    }
}

/// A price in millionths: an earlier price is worked out from its factor, and the last digit of a float is no price.
#[expect(clippy::cast_possible_truncation, reason = "a price of a GPU-hour is small")]
fn millionths(price: f64) -> i64 {
    (price * 1e6).round() as i64
}
