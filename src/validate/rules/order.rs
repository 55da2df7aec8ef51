//! Rules of the ways in which one machine can be bought: who promises more, or pays earlier, pays no more for an hour.
//!
//! Published lists break this order, so a breach is noted, counted by provider, with the first as an example. Only a breach
//! so large that a total was read as a rate holds rows back.

use std::collections::BTreeMap;
use std::ops::Range;

use polars::prelude::*;

use crate::validate::rows::Rows;
use crate::validate::thresholds::Thresholds;
use crate::validate::{Finding, HeldBack, Severity};

/// Two rows of one machine, of which the first should not be dearer than the second.
struct Pair {
    rule: &'static str,
    cheaper: usize,
    dearer: usize,
}

/// Breaches of one rule at one provider.
#[derive(Default)]
struct Breaches {
    pairs: usize,
    broken: usize,
    first: Option<(usize, f64)>,
}

/// Compares the ways to buy each machine.
///
/// # Errors
/// Only on a fault of the program.
pub fn order(rows: &Rows, thresholds: &Thresholds, held: &mut HeldBack, findings: &mut Vec<Finding>) -> PolarsResult<()> {
    let slack = 1.0 + thresholds.order_slack_percent.value / 100.0;
    let mut breaches: BTreeMap<(&str, &'static str), Breaches> = BTreeMap::new();
    let mut large = Vec::new();
    for machine in rows.machines().filter(|machine| machine.len() > 1) {
        let provider = rows.provider.get(machine.start).unwrap_or_default();
        for Pair { rule, cheaper, dearer } in pairs(rows, machine, held) {
            let (Some(low), Some(high)) = (rows.native_per_hour.get(cheaper), rows.native_per_hour.get(dearer)) else { continue };
            let breaches = breaches.entry((provider, rule)).or_default();
            breaches.pairs += 1;
            if low <= high * slack {
                continue;
            }
            breaches.broken += 1;
            breaches.first.get_or_insert((cheaper, low / high));
            if rule != SPOT && low >= high * thresholds.order_breach_factor_min.value {
                large.extend([(cheaper, rule, low / high), (dearer, rule, low / high)]);
            }
        }
    }
    for (row, rule, factor) in large {
        held.hold(row, || format!("order_broken: {rule}, and the one costs {factor:.2} times the other"));
    }
    for ((provider, rule), breaches) in breaches {
        let Some((row, factor)) = breaches.first else { continue };
        let reason = format!(
            "{} of {} pairs: {rule}, and it is not so; first {} at {factor:.3} times",
            breaches.broken,
            breaches.pairs,
            rows.label(row)?
        );
        findings.push(Finding::about_provider(Severity::Note, "order_not_kept", provider, reason));
    }
    Ok(())
}

const SPOT: &str = "spot costs no more than on demand";
const PROMISE: &str = "a promise costs no more than none";
const LONGER: &str = "a longer promise costs no more than a shorter one";
const EARLIER: &str = "paying earlier costs no more than paying later";

/// Pairs of rows whose order is known: each way to buy against the plain one, and promises of one kind among each other, which
/// file order puts together.
fn pairs(rows: &Rows, machine: Range<usize>, held: &HeldBack) -> Vec<Pair> {
    let of_machine: Vec<usize> = machine.filter(|&row| !held.has(row) && rows.is_promotion.get(row) != Some(true)).collect();
    let is_plain = |row: &usize| rows.pricing_model.get(*row) == Some("on_demand");
    let is_one_kind =
        |a: &usize, b: &usize| rows.pricing_model.get(*a) == rows.pricing_model.get(*b) && rows.plan.get(*a) == rows.plan.get(*b);
    let mut pairs = Vec::new();
    let mut compare = |cheaper: usize, dearer: usize| {
        if cheaper != dearer
            && is_same_thing(rows, cheaper, dearer)
            && let Some(rule) = rule_of(rows, cheaper, dearer)
        {
            pairs.push(Pair { rule, cheaper, dearer });
        }
    };
    for plain in of_machine.iter().filter(|row| is_plain(row)) {
        of_machine.iter().for_each(|&other| compare(other, *plain));
    }
    for kind in of_machine.chunk_by(is_one_kind).filter(|kind| !is_plain(&kind[0])) {
        for &a in kind {
            kind.iter().for_each(|&b| compare(a, b));
        }
    }
    pairs
}

fn is_same_thing(rows: &Rows, a: usize, b: usize) -> bool {
    rows.gpu_count.get(a) == rows.gpu_count.get(b)
        && rows.currency.get(a) == rows.currency.get(b)
        && rows.licence.get(a) == rows.licence.get(b)
        && rows.tenancy.get(a) == rows.tenancy.get(b)
}

/// Why the first should cost no more than the second; `None` where nothing says so.
fn rule_of(rows: &Rows, a: usize, b: usize) -> Option<&'static str> {
    let (model_a, model_b) = (rows.pricing_model.get(a)?, rows.pricing_model.get(b)?);
    let (months_a, months_b) = (rows.months.get(a), rows.months.get(b));
    let is_promise = |model: &str| matches!(model, "reserved" | "savings_plan" | "subscription");
    if model_b == "on_demand" && rows.plan.get(b).is_none() && months_b.is_none() {
        if model_a == "spot" && rows.plan.get(a).is_none() {
            return Some(SPOT);
        }
        return (is_promise(model_a) && months_a.is_some()).then_some(PROMISE);
    }
    if model_a != model_b || !is_promise(model_a) || rows.plan.get(a) != rows.plan.get(b) {
        return None;
    }
    let (upfront_a, upfront_b) = (rows.upfront.get(a), rows.upfront.get(b));
    if upfront_a == upfront_b && months_a? > months_b? {
        return Some(LONGER);
    }
    let share = |upfront: Option<&str>| match upfront {
        Some("none") => Some(0),
        Some("partial") => Some(1),
        Some("all") => Some(2),
        _ => None,
    };
    (months_a == months_b && share(upfront_a)? > share(upfront_b)?).then_some(EARLIER)
}
