//! Rules of how much there is, against the last complete night of the same provider and scope.

use std::collections::BTreeSet;

use crate::earlier::Earlier;
use crate::validate::thresholds::Thresholds;
use crate::validate::{Finding, Refusal, ScopeCoverage, ScopeStatus, Severity};

/// A scope that lost most of its offers lost a page, not its offers.
pub fn scope_shrank(coverage: &[ScopeCoverage], earlier: &Earlier, thresholds: &Thresholds) -> Vec<Refusal> {
    let (percent, rows_min) = (thresholds.kept_offers_percent_min.value, thresholds.kept_offers_rows_min.value);
    let mut refusals = Vec::new();
    for (scope, tonight) in coverage.iter().enumerate().filter(|(_, scope)| scope.status == ScopeStatus::Complete) {
        let Some(before) = earlier.scope(&tonight.provider, &tonight.scope) else { continue };
        // What was held back is there on the page; too much of it is another rule's.
        let rows = tonight.rows + tonight.quarantined;
        let is_empty = rows == 0 && before.rows > 0;
        // Exchange rates come as a day, as weeks or as years, and fewer days are no lost page.
        let is_of_rates =
            gpuledger_scrapers::find(&tonight.provider).is_some_and(|scraper| scraper.manifest().published.is_none());
        if is_empty || !is_of_rates && (before.rows >= rows_min && rows * 100 < before.rows * percent) {
            let reason = format!("{rows} offers after {} in {}: most of them are missing", before.rows, before.snapshot);
            refusals.push(Refusal { scope, rule: "scope_shrank", reason });
        }
    }
    refusals
}

/// A scope that grew a lot.
pub fn scope_grew(coverage: &[ScopeCoverage], earlier: &Earlier, thresholds: &Thresholds) -> Vec<Finding> {
    let (percent, rows_min) = (thresholds.growth_noted_percent_min.value, thresholds.kept_offers_rows_min.value);
    let mut findings = Vec::new();
    for tonight in coverage.iter().filter(|scope| scope.status == ScopeStatus::Complete) {
        let Some(before) = earlier.scope(&tonight.provider, &tonight.scope) else { continue };
        if tonight.rows >= rows_min && tonight.rows * 100 > before.rows * percent {
            let reason = format!("{} offers after {} in {}", tonight.rows, before.rows, before.snapshot);
            findings.push(Finding::about_scope(Severity::Note, "scope_grew", &tonight.provider, &tonight.scope, reason));
        }
    }
    findings
}

/// A scope of the last complete nights that was not even tried: a region that the provider no longer names.
pub fn scope_gone(coverage: &[ScopeCoverage], earlier: &Earlier) -> Vec<Finding> {
    let tonight: BTreeSet<(&str, &str)> = coverage.iter().map(|scope| (scope.provider.as_str(), scope.scope.as_str())).collect();
    // A provider that was not asked at all says nothing of its scopes.
    let asked: BTreeSet<&str> =
        coverage.iter().filter(|scope| scope.status == ScopeStatus::Complete).map(|scope| scope.provider.as_str()).collect();
    let mut findings = Vec::new();
    for provider in asked {
        for (scope, before) in earlier.scopes_of(provider).filter(|(scope, _)| !tonight.contains(&(provider, *scope))) {
            let reason = format!("it had {} offers in {} and is not named tonight", before.rows, before.snapshot);
            findings.push(Finding::about_scope(Severity::Note, "scope_gone", provider, scope, reason));
        }
    }
    findings
}
