//! Each rule by itself, on a night made for it.

use chrono::{DateTime, Duration, Utc};
use gpuledger::earlier::Earlier;
use gpuledger::gather::{Gathered, Input};
use gpuledger::night::SnapshotId;
use gpuledger::validate::{Finding, ScopeStatus, Severity, Verdict};
use gpuledger_scrapers::contract::{GpuShare, Parsed, Place, PricePer, PriceUnit, PricingModel, SkipReason, Skipped, Upfront};
use num_rational::Ratio;
use rust_decimal::Decimal;

use super::{Past, Seen, judge_gathered, judge_offers, manifest, receipt};
use super::{Price, load};

fn night(day: i64) -> SnapshotId {
    let first: DateTime<Utc> = "2026-10-01T02:00:00Z".parse().expect("a time");
    SnapshotId::at(first + Duration::days(day))
}

fn price(machine: &str, card: &str, gpus: u32, amount: &str) -> Price {
    let amount = amount.parse().expect("digits");
    Price { gpus: Ratio::from_integer(gpus), ..load::by_the_hour("acme", Some("east"), machine, card, amount) }
}

fn seen(prices: &[Price]) -> Vec<Seen> {
    prices.iter().enumerate().map(|(at, price)| Seen::of(price, at)).collect()
}

fn judge(offers: Vec<Seen>) -> Verdict {
    judge_offers(night(0), offers, &Earlier::none())
}

/// Eight kinds of machine at prices as they are.
fn list() -> Vec<Price> {
    [
        ("h1", "H100 SXM", 1, "2.99"),
        ("h8", "H100 SXM", 8, "23.92"),
        ("a1", "A100 SXM 80GB", 1, "1.79"),
        ("a8", "A100 SXM 80GB", 8, "14.32"),
        ("l1", "L40S", 1, "1.05"),
        ("l4", "L40S", 4, "4.20"),
        ("t1", "T4", 1, "0.35"),
        ("b8", "B200", 8, "39.92"),
    ]
    .map(|(machine, card, gpus, amount)| price(machine, card, gpus, amount))
    .to_vec()
}

/// A night after one with the list as it is.
fn after(changed: &[Price]) -> Verdict {
    let first = judge_offers(night(0), seen(&list()), &Earlier::none());
    assert_eq!(held(&first).len() + refused(&first).len(), 0, "{:?}", first.findings);
    let mut past = Past::default();
    past.add(night(0), &first);
    judge_offers(night(1), seen(changed), &past.earlier())
}

fn with(change: impl Fn(&Price) -> Decimal) -> Vec<Price> {
    list().iter().map(|price| Price { amount: change(price), ..price.clone() }).collect()
}

fn of(verdict: &Verdict, severity: Severity) -> Vec<&Finding> {
    verdict.findings.iter().filter(|finding| finding.severity == severity).collect()
}

fn rules(findings: Vec<&Finding>) -> Vec<&str> {
    findings.into_iter().map(|finding| finding.rule.as_str()).collect()
}

fn held(verdict: &Verdict) -> Vec<&str> {
    rules(of(verdict, Severity::QuarantineRow))
}

fn refused(verdict: &Verdict) -> Vec<&str> {
    rules(of(verdict, Severity::RefuseScope))
}

fn notes<'a>(verdict: &'a Verdict, rule: &str) -> Vec<&'a Finding> {
    of(verdict, Severity::Note).into_iter().filter(|finding| finding.rule == rule).collect()
}

fn published(verdict: &Verdict) -> usize {
    verdict.night.as_ref().map_or(0, |night| night.offers().height())
}

#[test]
fn zero_is_a_placeholder_and_never_a_price() {
    let mut offers = seen(&list());
    offers[0].offer.price.amount = Decimal::ZERO;
    // All paid at the start: nothing is left to pay by the hour, and that is a price.
    let terms = &mut offers[1].offer.terms;
    (terms.pricing_model, terms.commitment_months, terms.upfront) = (PricingModel::Reserved, Some(12), Some(Upfront::All));
    offers[1].offer.price.amount = Decimal::ZERO;
    offers[1].offer.price.upfront_amount = Some(Decimal::from(140_000));
    let verdict = judge(offers);
    assert_eq!((held(&verdict), published(&verdict)), (vec!["zero_price"], 7));
}

#[test]
fn a_price_below_zero_is_held_back() {
    let mut offers = seen(&list());
    offers[0].offer.price.amount = Decimal::from(-3);
    assert_eq!(held(&judge(offers)), ["negative_price"]);
}

#[test]
fn a_price_far_from_all_that_is_asked_for_such_a_card_is_held_back_and_a_market_may_be_cheaper() {
    for (amount, rule) in [("0.003", true), ("0.05", true), ("0.20", false), ("98.32", false), ("2182.70", true)] {
        let verdict = judge(seen(&[
            price("h1", "H100 SXM", 1, amount),
            price("t1", "T4", 1, "0.35"),
            price("t2", "T4", 2, "0.7"),
            price("t4", "T4", 4, "1.4"),
            price("t8", "T4", 8, "2.8"),
        ]));
        assert_eq!(held(&verdict) == ["price_out_of_bounds"], rule, "{amount}: {:?}", verdict.findings);
    }
    let spot = Price { pricing_model: PricingModel::Spot, ..price("h1", "H100 SXM", 1, "0.05") };
    assert_eq!(held(&judge(seen(&[spot]))), Vec::<&str>::new());
}

#[test]
fn a_part_of_a_card_must_say_so_and_only_a_fixed_slice_has_a_price_of_the_whole() {
    let mut offers = seen(&list());
    offers[0].offer.gpu.count = Some(Ratio::new(1, 2));
    assert_eq!(held(&judge(offers.clone())), ["fraction_not_marked"]);
    offers[0].offer.gpu.share = GpuShare::FixedSlice;
    assert_eq!(held(&judge(offers.clone())), Vec::<&str>::new());
    offers[0].offer.flags.insert("derived_share");
    assert_eq!(held(&judge(offers.clone())), ["price_of_derived_share"]);
    offers[0].offer.gpu.share = GpuShare::Derived;
    assert_eq!(held(&judge(offers)), Vec::<&str>::new());
}

#[test]
fn of_two_prices_of_one_offer_neither_is_chosen_and_a_repeated_row_stands_there_once() {
    let more = (0..4).map(|at| price(&format!("n{at}"), "L4", 1, &format!("0.7{at}")));
    let mut offers = seen(&list().into_iter().chain(more).collect::<Vec<_>>());
    offers.extend([offers[0].clone(), offers[0].clone(), offers[2].clone()]);
    let verdict = judge(offers.clone());
    let repeated = notes(&verdict, "repeated_rows");
    assert_eq!((held(&verdict).len(), published(&verdict), repeated.len()), (0, 12, 1));
    assert!(repeated[0].reason.starts_with("3 of 15 rows"), "{}", repeated[0].reason);
    offers.last_mut().expect("there is one").offer.price.amount = Decimal::from(7);
    let verdict = judge(offers);
    assert_eq!((held(&verdict), published(&verdict)), (vec!["key_conflict"; 2], 11));
}

#[test]
fn one_price_of_the_machine_for_one_card_and_for_eight_is_held_back() {
    let of_counts = |amounts: [&str; 4]| -> Vec<Price> {
        [1, 2, 4, 8]
            .into_iter()
            .zip(amounts)
            .map(|(gpus, amount)| price(&format!("x{gpus}"), "RTX A6000", gpus, amount))
            .collect()
    };
    assert_eq!(held(&judge(seen(&of_counts(["0.79", "1.58", "3.16", "6.32"])))), Vec::<&str>::new());
    let verdict = judge(seen(&of_counts(["0.79"; 4])));
    assert_eq!((held(&verdict), published(&verdict)), (vec!["one_price_for_any_count"; 4], 0));
    // A true list has it for one card and two.
    assert_eq!(held(&judge(seen(&of_counts(["0.79", "0.79", "3.16", "6.32"])))), Vec::<&str>::new());
}

#[test]
fn a_month_that_costs_an_hour_is_held_back_with_its_hour() {
    let month = |amount: &str| {
        let month =
            Price { unit: PriceUnit::Month, pricing_model: PricingModel::Subscription, ..price("h1", "H100 SXM", 1, amount) };
        judge(seen(&[list(), vec![month]].concat()))
    };
    assert_eq!(held(&month("2182.70")), Vec::<&str>::new(), "730 hours");
    assert_eq!(held(&month("1495.00")), Vec::<&str>::new(), "500 hours, a cap");
    assert_eq!(held(&month("299.00")), ["month_and_hour"; 2], "100 hours");
    assert_eq!(held(&month("2691.00")), ["month_and_hour"; 2], "900 hours");
}

#[test]
fn a_spot_price_above_the_list_is_noted_and_kept() {
    let spot = Price { pricing_model: PricingModel::Spot, ..price("h1", "H100 SXM", 1, "22.00") };
    let verdict = judge(seen(&[list(), vec![spot]].concat()));
    assert_eq!((held(&verdict).len(), notes(&verdict, "order_not_kept").len(), published(&verdict)), (0, 1, 9));
}

#[test]
fn a_promise_somewhat_dearer_is_noted_and_one_at_a_multiple_is_a_total_read_as_a_rate() {
    let year = |months: u32, amount: &str| Price {
        pricing_model: PricingModel::Reserved,
        months: Some(months),
        ..price("h1", "H100 SXM", 1, amount)
    };
    let verdict = judge(seen(&[list(), vec![year(12, "2.00"), year(36, "2.50")]].concat()));
    let noted = notes(&verdict, "order_not_kept");
    assert_eq!((held(&verdict).len(), noted.len(), published(&verdict)), (0, 1, 10));
    assert!(noted[0].reason.contains("a longer promise"), "{}", noted[0].reason);
    let verdict = judge(seen(&[list(), vec![year(12, "24.00")]].concat()));
    assert_eq!(held(&verdict), ["order_broken"; 2]);
}

#[test]
fn an_upfront_part_that_was_lost_shows_in_the_order_of_plans() {
    let plan = |upfront: Upfront, hourly: &str, paid: i64| {
        let mut offer = Seen::of(&price("h1", "H100 SXM", 1, hourly), 20 + upfront as usize);
        let terms = &mut offer.offer.terms;
        (terms.pricing_model, terms.commitment_months, terms.upfront) = (PricingModel::Reserved, Some(12), Some(upfront));
        offer.offer.price.upfront_amount = (paid > 0).then(|| Decimal::from(paid));
        offer
    };
    let healthy = [plan(Upfront::None, "1.95", 0), plan(Upfront::Partial, "0.90", 7_884), plan(Upfront::All, "0", 15_330)];
    let verdict = judge([seen(&list()), healthy.to_vec()].concat());
    assert_eq!((held(&verdict).len(), notes(&verdict, "order_not_kept").len()), (0, 0), "{:?}", verdict.findings);
    let lost = [plan(Upfront::None, "1.95", 0), plan(Upfront::Partial, "0.90", 0), plan(Upfront::All, "0", 15_330)];
    assert_eq!(notes(&judge([seen(&list()), lost.to_vec()].concat()), "order_not_kept").len(), 1);
}

#[test]
fn a_page_whose_columns_moved_shows_one_price_for_many_cards_and_is_refused() {
    let cards = ["H100 SXM", "A100 SXM 80GB", "L40S", "T4"];
    let at = |amounts: [&str; 4]| -> Verdict {
        judge(seen(&std::array::from_fn::<Price, 4, _>(|at| price(cards[at], cards[at], 1, amounts[at]))))
    };
    assert_eq!(refused(&at(["2.00"; 4])), ["one_price_for_many_cards"]);
    assert_eq!(refused(&at(["3.69", "3.69", "1.00", "1.00"])), ["one_price_for_many_cards"]);
    assert_eq!(refused(&at(["2.45", "2.45", "1.00", "0.40"])), Vec::<&str>::new(), "two cards may cost the same");
}

#[test]
fn a_scope_that_lost_most_of_its_offers_is_refused_with_numbers_and_the_others_are_published() {
    let other = Price { scope: "west".to_owned(), region: Some("west".to_owned()), ..price("h1", "H100 SXM", 1, "2.99") };
    let verdict = after(&[&list()[..4], &[other]].concat());
    assert_eq!((refused(&verdict), published(&verdict)), (vec!["scope_shrank"], 1));
    let finding = of(&verdict, Severity::RefuseScope)[0];
    assert!(finding.reason.starts_with("4 offers after 8 in 2026-10-01T02-00-00Z"), "{}", finding.reason);
    let east = verdict.coverage.iter().find(|scope| scope.scope == "east").expect("it was tried");
    assert_eq!((east.status, east.rows, east.reason.as_ref()), (ScopeStatus::Failed, 0, Some(&finding.reason)));
    assert_eq!(refused(&after(&list()[..5])), Vec::<&str>::new(), "three of eight may go");
}

#[test]
fn growth_and_a_scope_that_is_named_no_more_are_noted() {
    let more = (0..8).map(|at| price(&format!("n{at}"), "L4", 1, &format!("0.{}", 70 + at)));
    let verdict = after(&list().into_iter().chain(more).collect::<Vec<_>>());
    assert_eq!((notes(&verdict, "scope_grew").len(), refused(&verdict).len()), (1, 0));
    let west = list().into_iter().map(|price| Price { scope: "west".to_owned(), region: Some("west".to_owned()), ..price });
    assert_eq!(notes(&after(&west.collect::<Vec<_>>()), "scope_gone").len(), 1);
}

#[test]
fn a_price_that_jumps_is_noted_and_kept_and_a_cut_by_44_percent_is_no_jump() {
    let verdict = after(&with(|price| if price.machine == "h8" { Decimal::new(13_39, 2) } else { price.amount }));
    assert_eq!((notes(&verdict, "price_jumped").len(), published(&verdict)), (0, 8));
    let verdict = after(&with(|price| if price.machine == "h8" { Decimal::new(60_00, 2) } else { price.amount }));
    let jumps = notes(&verdict, "price_jumped");
    assert_eq!((jumps.len(), published(&verdict), refused(&verdict).len()), (1, 8, 0));
    assert!(jumps[0].reason.starts_with("23.9200 to 60.0000 USD per hour") && !jumps[0].raw_sha256.is_empty());
}

#[test]
fn a_new_offer_and_the_noise_of_a_float_are_no_moves() {
    let mut tonight = list();
    tonight.push(price("n1", "L4", 1, "0.70"));
    tonight[0].per = PricePer::Gpu;
    let verdict = after(&tonight);
    assert_eq!((notes(&verdict, "price_jumped").len(), refused(&verdict).len(), published(&verdict)), (0, 0, 9));
}

#[test]
fn all_prices_by_one_factor_are_a_fault_of_unit_or_currency_and_a_common_cut_is_not() {
    let by = |factor: Decimal| after(&with(|price| (price.amount * factor).round_dp(4)));
    assert_eq!(refused(&by(Decimal::new(7_1, 1))), ["all_prices_by_one_factor"]);
    assert_eq!(refused(&by(Decimal::from(8))), ["all_prices_by_one_factor"]);
    assert_eq!(refused(&by(Decimal::new(86, 2))), Vec::<&str>::new());
    assert_eq!(published(&by(Decimal::new(56, 2))), 8, "everything 44 % cheaper in one night has been seen");
}

#[test]
fn prices_of_one_gpu_in_place_of_machines_are_refused_though_single_cards_stay() {
    let one_gpu = with(|price| price.amount / Decimal::from(*price.gpus.numer()));
    assert!(refused(&after(&one_gpu)).contains(&"price_of_one_gpu_for_the_machine"));
    let for_each = with(|price| price.amount * Decimal::from(*price.gpus.numer()));
    assert!(refused(&after(&for_each)).contains(&"price_of_one_gpu_for_the_machine"));
}

#[test]
fn the_same_figures_under_another_currency_are_a_wrong_label() {
    let yuan: Vec<Price> = list().into_iter().map(|price| Price { currency: "CNY".to_owned(), ..price }).collect();
    let verdict = after(&yuan);
    assert_eq!((refused(&verdict), published(&verdict)), (vec!["currency_swapped"], 0));
    let changed = yuan.into_iter().map(|price| Price { amount: price.amount * Decimal::new(7_1, 1), ..price });
    let verdict = after(&changed.collect::<Vec<_>>());
    assert_eq!((refused(&verdict).len(), notes(&verdict, "currency_changed").len()), (0, 1), "other figures: a true change");
}

#[test]
fn a_market_that_moves_by_itself_is_refused_when_all_of_it_moves_at_once() {
    let spot = |factor: Decimal| -> Vec<Seen> {
        let prices = (0..12).map(|at| {
            let drift = Decimal::new(90 + at, 2);
            let amount = Decimal::new(100 + 10 * at, 2) * factor * if factor == Decimal::ONE { Decimal::ONE } else { drift };
            Price { pricing_model: PricingModel::Spot, amount, ..price(&format!("s{at}"), "A100 SXM 80GB", 1, "1") }
        });
        seen(&prices.collect::<Vec<_>>())
    };
    let first = judge_offers(night(0), spot(Decimal::ONE), &Earlier::none());
    let mut past = Past::default();
    past.add(night(0), &first);
    let judged = |factor: Decimal| judge_offers(night(1), spot(factor), &past.earlier());
    assert_eq!(refused(&judged(Decimal::new(7_1, 1))), ["most_prices_jumped"]);
    assert_eq!(refused(&judged(Decimal::new(1_3, 1))), Vec::<&str>::new());
}

#[test]
fn rows_that_each_took_anothers_price_are_refused() {
    let amounts: Vec<Decimal> = list().iter().map(|price| price.amount / Decimal::from(*price.gpus.numer())).collect();
    let mut shifted: Vec<Price> = list().into_iter().map(|price| Price { per: PricePer::Gpu, ..price }).collect();
    let count = shifted.len();
    shifted.iter_mut().enumerate().for_each(|(at, price)| price.amount = amounts[(at + 1) % count]);
    assert_eq!(refused(&after(&shifted)).len(), 1);
}

#[test]
fn another_night_never_changes_a_row_that_is_published() {
    let tonight = with(|price| if price.machine == "h8" { Decimal::from(60) } else { price.amount });
    let alone = judge_offers(night(1), seen(&tonight), &Earlier::none());
    let (alone, after) = (alone.night.expect("it is published"), after(&tonight).night.expect("it is published"));
    assert!(alone.offers().equals_missing(after.offers()));
}

#[test]
fn foreign_prices_without_a_rate_are_counted_and_a_provider_without_any_is_named() {
    let mut tonight = list();
    tonight[0].currency = "EUR".to_owned();
    let verdict = judge(seen(&tonight));
    assert_eq!(notes(&verdict, "rate_missing").len(), 1);
    assert_eq!(verdict.without_rates, ["acme"]);
    assert_eq!(published(&verdict), 8, "the native price stands without a rate");
}

#[test]
fn rows_not_understood_count_with_those_held_back() {
    let parsed = |zeros: usize, skipped: usize, on_request: usize| {
        let offers = (0..20).map(|at| {
            let amount = if at < zeros { "0" } else { "0.70" };
            Seen::of(&price(&format!("m{at}"), "L4", 1, amount), at).offer
        });
        let row = |reason: SkipReason| Skipped {
            place: Place { page: "east".to_owned(), at: "x".to_owned() },
            label: String::new(),
            reason,
        };
        let stated = (0..on_request).map(|_| row(SkipReason::SoldOut));
        let unknown = (0..skipped).map(|_| row(SkipReason::PriceMissing));
        let parsed = Parsed { offers: offers.collect(), skipped: unknown.chain(stated).collect(), ..Parsed::default() };
        let pages = vec![receipt("east", night(0).instant())];
        let scopes = [("east".to_owned(), pages, parsed)].into_iter();
        judge_gathered(night(0), &[Gathered::of_read(manifest("acme"), Input::Files, scopes)], &Earlier::none())
    };
    assert_eq!(refused(&parsed(3, 0, 0)).len(), 0);
    assert_eq!(refused(&parsed(3, 3, 0)), ["too_many_held_back"]);
    assert_eq!(refused(&parsed(3, 0, 9)).len(), 0, "the source itself says that there is no price");
}

#[test]
fn a_live_page_of_another_night_is_refused_and_one_unchanged_for_long_is_noted() {
    let of_age = |hours: i64, unchanged_days: Option<i64>, input: Input| {
        let mut page = receipt("east", night(0).instant() - Duration::hours(hours));
        page.unchanged_since = unchanged_days.map(|days| night(0).instant() - Duration::days(days));
        let offers = seen(&list()).into_iter().map(|seen| seen.offer).collect();
        let scopes = [("east".to_owned(), vec![page], Parsed { offers, ..Parsed::default() })].into_iter();
        judge_gathered(night(0), &[Gathered::of_read(manifest("acme"), input, scopes)], &Earlier::none())
    };
    assert_eq!(refused(&of_age(72, None, Input::Live)), ["old_answer"]);
    assert_eq!(refused(&of_age(3, None, Input::Live)).len(), 0);
    assert_eq!(refused(&of_age(72, None, Input::Files)).len(), 0, "files say themselves of when they are");
    assert_eq!(notes(&of_age(0, Some(90), Input::Live), "unchanged_for_long").len(), 1);
    assert_eq!(notes(&of_age(0, Some(9), Input::Live), "unchanged_for_long").len(), 0);
}
