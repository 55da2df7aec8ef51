//! The rules against price histories that other people kept: how many true prices they hold back, and how many faults they
//! let through. The histories lie beside the checkout; without them the tests say so and pass.

use crate::histories;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use crate::histories::plant::FAULTS;
use crate::histories::{History, Key, MANY_SITES, Night, PER_GPU_SINCE, Past, Price, judge};
use gpuledger::frame::Cell;
use gpuledger::validate::{ScopeStatus, Severity, Verdict};
use gpuledger_scrapers::contract::PricePer;
use rust_decimal::Decimal;

/// What the rules say of a whole history, and what becomes of faults in its last night but one.
fn account(history: &History) -> String {
    let (mut past, mut before_planting) = (Past::default(), Past::default());
    let (mut prices, mut changes, mut found, mut orders) = (0, 0, BTreeMap::<_, BTreeSet<String>>::new(), BTreeMap::new());
    let mut last: HashMap<Key, Decimal> = HashMap::new();
    let planted_at = history.nights.len() * 2 / 3;
    for (at, night) in history.nights.iter().enumerate() {
        if at == planted_at {
            before_planting = past.clone();
        }
        let verdict = judge(night, &past.earlier());
        prices += night.prices.len();
        for price in &night.prices {
            let before = last.insert(price.key(), price.amount);
            changes += usize::from(before.is_some_and(|before| before != price.amount));
        }
        for finding in &verdict.findings {
            let what = format!("{} {}{} {}", night.id.date(), finding.provider, finding.scope, finding.label);
            if finding.severity > Severity::Note || finding.rule == "price_jumped" {
                found.entry((finding.severity, finding.rule.clone())).or_default().insert(what);
            } else if finding.rule == "order_not_kept" {
                let rule = finding.reason.split(": ").nth(1).expect("a reason names its rule");
                let rule = rule.split(',').next().expect("a text has a first part").to_owned();
                let figures: Vec<usize> = finding.reason.split(' ').filter_map(|word| word.parse().ok()).take(2).collect();
                let counts = orders.entry(rule).or_insert((0, 0));
                *counts = (counts.0 + figures[0], counts.1 + figures[1]);
            }
        }
        past.add(night.id, &verdict);
    }
    let mut text = format!("{}: {} nights, {prices} prices, {changes} changes\n", history.name, history.nights.len());
    for ((severity, rule), what) in found.iter().rev() {
        let _ = writeln!(text, "  {} {rule}: {}", severity.word(), what.len());
    }
    for (rule, (broken, pairs)) in orders {
        let _ = writeln!(text, "  {rule}: not in {broken} of {pairs} pairs");
    }
    text + &plant(&history.nights[planted_at], &before_planting) + &as_written(history)
}

/// The night on which a tracker began to give prices of one GPU and did not say so, as it stands in its table.
fn as_written(history: &History) -> String {
    let day = PER_GPU_SINCE.parse().expect("a day");
    let Some(at) = history.nights.iter().position(|night| history.name == MANY_SITES && night.id.date() == day) else {
        return String::new();
    };
    let (before, mut tonight) = (&history.nights[at - 1], history.nights[at].clone());
    tonight.prices.iter_mut().for_each(|price| price.per = PricePer::Instance);
    let was: HashMap<Key, Decimal> = before.prices.iter().map(|price| (price.key(), price.amount)).collect();
    let mut past = Past::default();
    past.add(before.id, &judge(before, &past.earlier()));
    let verdict = judge(&tonight, &past.earlier());
    let mut wrong: BTreeMap<&str, usize> = BTreeMap::new();
    for price in tonight.prices.iter().filter(|price| *price.gpus.numer() > 1) {
        let is_wrong = was.get(&price.key()).is_some_and(|was| price.amount * Decimal::TWO <= *was);
        *wrong.entry(&price.provider).or_default() += usize::from(is_wrong);
    }
    wrong.retain(|_, prices| *prices > 0);
    let is_refused =
        |provider: &&str| verdict.coverage.iter().any(|scope| scope.provider == *provider && scope.status == ScopeStatus::Failed);
    let let_through: Vec<String> = wrong
        .iter()
        .filter(|(provider, _)| !is_refused(provider))
        .map(|(provider, prices)| format!("{provider} {prices}"))
        .collect();
    let refused = wrong.len() - let_through.len();
    format!(
        "  prices of one GPU for the machine at {} sellers: {refused} refused; not: {}\n",
        wrong.len(),
        let_through.join(", ")
    )
}

/// Plants each fault into the largest scope of a night, and says which were let through.
fn plant(night: &Night, past: &Past) -> String {
    let mut sizes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for price in &night.prices {
        *sizes.entry((&price.provider, &price.scope)).or_insert(0) += 1;
    }
    let (provider, scope) = *sizes.iter().max_by_key(|(_, size)| **size).expect("the night has prices").0;
    let is_of = |price: &Price| price.provider == provider && price.scope == scope;
    let (target, rest): (Vec<Price>, Vec<Price>) = night.prices.iter().cloned().partition(is_of);
    let truth: HashMap<Key, &Price> = target.iter().map(|price| (price.key(), price)).collect();
    let (mut planted, mut let_through) = (0, Vec::new());
    for fault in FAULTS {
        let Some(faulty) = (fault.plant)(&target) else { continue };
        planted += 1;
        let wrong: BTreeSet<Key> = faulty.iter().filter(|price| truth[&price.key()] != *price).map(Price::key).collect();
        let with_fault = Night { id: night.id, prices: faulty.into_iter().chain(rest.iter().cloned()).collect() };
        let verdict = judge(&with_fault, &past.earlier());
        let status = verdict.coverage.iter().find(|of| of.provider == provider && of.scope == scope).map(|of| of.status);
        let published = published(&verdict, provider, scope);
        let is_caught = if wrong.is_empty() {
            status == Some(ScopeStatus::Failed)
        } else {
            status == Some(ScopeStatus::Failed) || published.is_disjoint(&wrong.iter().map(id_of).collect())
        };
        if !is_caught {
            let_through.push(format!("{} ({} of {} wrong prices)", fault.name, published.len(), wrong.len()));
        }
    }
    let let_through = if let_through.is_empty() { "none".to_owned() } else { let_through.join(", ") };
    format!("  {planted} faults planted into {} prices of {provider} {scope}, let through: {let_through}\n", target.len())
}

/// Region, machine, GPUs, model, plan and months, as one text.
fn id_of((_, region, machine, gpus, model, plan, months): &Key) -> String {
    let months = months.map(|months| months.to_string()).unwrap_or_default();
    [region, machine, gpus, *model, plan.as_deref().unwrap_or_default(), &months].join(" ")
}

fn published(verdict: &Verdict, provider: &str, scope: &str) -> BTreeSet<String> {
    let Some(night) = &verdict.night else { return BTreeSet::new() };
    let cell = |name: &str, row: usize| Cell::at(night.offers(), name, row).expect("the column exists").text();
    let is_of = |row: &usize| cell("provider", *row) == provider && cell("scope", *row) == scope;
    let id = |row: usize| {
        ["region", "instance_type", "gpu_count", "pricing_model", "plan", "commitment_months"]
            .map(|name| cell(name, row))
            .join(" ")
    };
    (0..night.offers().height()).filter(is_of).map(id).collect()
}

#[test]
fn true_prices_are_published_and_planted_faults_are_not() {
    let Some(shared) = histories::shared() else { return };
    // Two of the histories take minutes each.
    let is_asked_for = |history: &History| !history.is_long || std::env::var_os("GPULEDGER_LONG_HISTORIES").is_some();
    let histories: Vec<History> = histories::all(&shared).into_iter().filter(is_asked_for).collect();
    let texts = std::sync::Mutex::new(BTreeMap::new());
    let next = std::sync::atomic::AtomicUsize::new(0);
    // One after another they take twice as long.
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some(history) = histories.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let started = std::time::Instant::now();
                    let text = account(history);
                    eprintln!("{text}  in {:?}", started.elapsed());
                    texts.lock().expect("nobody panics with it").insert(history.name, text);
                }
            });
        }
    });
    let texts = texts.into_inner().expect("nobody panicked");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories/expected");
    for (name, text) in texts {
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os("GPULEDGER_BLESS").is_some() {
            std::fs::create_dir_all(&folder).expect("the folder can be made");
            std::fs::write(&file, &text).expect("the file can be written");
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(text, expected, "run the test once with GPULEDGER_BLESS=1 and read the difference");
    }
}
