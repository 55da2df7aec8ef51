//! Laws of differences over any two nights: nothing differs from itself, and the way back is the way there in a mirror.

use proptest::prelude::*;

use super::*;
use crate::frame::{Columns, empty};
use crate::night::SnapshotId;
use crate::offer::OFFERS;

/// An offer as it may be published: what it is, its name and price, its scope, how it was read.
#[derive(Debug, Clone)]
struct Offer {
    id: u8,
    name: u8,
    amount: i64,
    currency: &'static str,
    scope: &'static str,
    version: i32,
    print: u8,
}

const SCOPES: [&str; 3] = ["east", "west", "all"];

fn offer() -> impl Strategy<Value = Offer> {
    let what = (0..12_u8, 0..3_u8, 1..4_i64, prop::sample::select(vec!["USD", "EUR"]));
    let how = (prop::sample::select(SCOPES.to_vec()), 1..3_i32, 0..2_u8);
    (what, how).prop_map(|((id, name, amount, currency), (scope, version, print))| Offer {
        id,
        name,
        amount,
        currency,
        scope,
        version,
        print,
    })
}

/// The offers of a night, each id once, and its complete scopes.
fn night() -> impl Strategy<Value = (Vec<Offer>, Vec<&'static str>)> {
    let offers = prop::collection::vec(offer(), 0..14).prop_map(|mut offers| {
        offers.sort_by_key(|offer| offer.id);
        offers.dedup_by_key(|offer| offer.id);
        offers
    });
    (offers, prop::sample::subsequence(SCOPES.to_vec(), 0..=3))
}

fn frame(offers: &[Offer]) -> LazyFrame {
    let mut columns = Columns::new(offers.len());
    columns.strings("offer_id", offers.iter().map(|offer| Some(format!("id{}", offer.id))));
    columns.texts("provider", offers.iter().map(|_| Some("acme")));
    columns.texts("scope", offers.iter().map(|offer| Some(offer.scope)));
    columns.strings("instance_type", offers.iter().map(|offer| Some(format!("m{}", offer.name))));
    columns.decimals("published_amount", offers.iter().map(|offer| Some(offer.amount.into()))).expect("small amounts");
    columns.texts("published_currency_code", offers.iter().map(|offer| Some(offer.currency)));
    columns.texts("published_unit", offers.iter().map(|_| Some("hour")));
    #[expect(clippy::cast_precision_loss, reason = "amounts are small")]
    columns.floats("price_native_per_hour", offers.iter().map(|offer| Some(offer.amount as f64)));
    columns.wholes("scraper_version", offers.iter().map(|offer| Some(offer.version)));
    columns.strings("published_text", offers.iter().map(|offer| Some(format!("print {}", offer.print))));
    columns.scaled("usd_per_native", offers.iter().map(|offer| Some(i128::from(offer.version))));
    let made = columns.finish().expect("columns of one length");
    // The other columns are null, as in a night of which nobody knows more.
    let missing = empty(&OFFERS)
        .columns()
        .iter()
        .filter(|column| made.column(column.name()).is_err())
        .map(|column| lit(NULL).cast(column.dtype().clone()).alias(column.name().clone()))
        .collect::<Vec<_>>();
    made.lazy().with_columns(missing)
}

fn coverage(nights: [(&Snapshot, &[&str]); 2]) -> DataFrame {
    let rows: Vec<(String, &str)> =
        nights.iter().flat_map(|(night, scopes)| scopes.iter().map(|scope| (night.id.to_string(), *scope))).collect();
    let mut columns = Columns::new(rows.len());
    columns.texts("snapshot_id", rows.iter().map(|(id, _)| Some(id.as_str())));
    columns.texts("provider", rows.iter().map(|_| Some("acme")));
    columns.texts("scope", rows.iter().map(|(_, scope)| Some(*scope)));
    columns.texts("status", rows.iter().map(|_| Some("complete")));
    columns.finish().expect("columns of one length")
}

/// Lines as text, without the percentage, which has another base on the way back.
fn told(diff: &Diff, is_mirrored: bool) -> Vec<String> {
    let cell = |name: &str, row: usize| Cell::at(&diff.rows, name, row).expect("a cell").text();
    let other = |word: String| match (is_mirrored, word.as_str()) {
        (true, "added") => "removed".to_owned(),
        (true, "removed") => "added".to_owned(),
        (true, "a") => "b".to_owned(),
        (true, "b") => "a".to_owned(),
        _ => word,
    };
    let mut lines: Vec<String> = (0..diff.rows.height())
        .map(|row| {
            let list = cell("list", row);
            let names = [cell("offer", row), cell("renamed_from", row)];
            let amounts = [cell("amount_a", row), cell("amount_b", row)];
            let turned = |[a, b]: [String; 2]| if is_mirrored { [b, a] } else { [a, b] };
            let names = if list == "renamed" { turned(names) } else { [cell("provider", row), String::new()] };
            // A renamed offer has an id on each side, and an offer with two currencies shows that of the second.
            format!("{} {} {names:?} {:?} {}", other(list), cell("cause", row), turned(amounts), other(cell("missing_in", row)))
        })
        .collect();
    lines.sort();
    lines
}

fn nights() -> [Snapshot; 2] {
    let id = |text: &str| text.parse::<SnapshotId>().expect("an id");
    [Snapshot::without_file(id("2026-10-30T18-00-00Z"), 1), Snapshot::without_file(id("2026-10-31T18-00-00Z"), 2)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_differs_from_itself((offers, scopes) in night()) {
        let [a, _] = nights();
        let coverage = coverage([(&a, &scopes), (&a, &scopes)]);
        let history = History::of(&[], &coverage, false).expect("the coverage reads");
        let diff = compare(frame(&offers), frame(&offers), &a, &a, &history).expect("it compares");
        prop_assert_eq!(diff.rows.height(), 0);
    }

    #[test]
    fn the_way_back_is_the_way_there_in_a_mirror((before, scopes_a) in night(), (after, scopes_b) in night()) {
        let [a, b] = nights();
        let coverage = coverage([(&a, &scopes_a), (&b, &scopes_b)]);
        let history = History::of(&[], &coverage, false).expect("the coverage reads");
        let there = compare(frame(&before), frame(&after), &a, &b, &history).expect("it compares");
        let back = compare(frame(&after), frame(&before), &b, &a, &history).expect("it compares");
        prop_assert_eq!(told(&there, false), told(&back, true));
        // Each line is of one offer, and each offer of one line.
        let shown = |list: &str| told(&there, false).iter().filter(|line| line.starts_with(list)).count();
        let ids = |offers: &[Offer]| offers.iter().map(|offer| offer.id).collect::<BTreeSet<_>>();
        let one_sided = ids(&before).symmetric_difference(&ids(&after)).count();
        prop_assert_eq!(shown("added") + shown("removed") + shown("not_observed") + 2 * shown("renamed"), one_sided);
    }
}

#[test]
fn an_offer_under_another_name_is_renamed_only_where_nobody_else_can_be_meant() {
    let [a, b] = nights();
    let coverage = coverage([(&a, &SCOPES), (&b, &SCOPES)]);
    let history = History::of(&[], &coverage, false).expect("the coverage reads");
    let of = |id: u8, name: u8, amount: i64| Offer { id, name, amount, currency: "USD", scope: "east", version: 1, print: 0 };
    let lists = |before: &[Offer], after: &[Offer]| {
        let diff = compare(frame(before), frame(after), &a, &b, &history).expect("it compares");
        (0..diff.rows.height())
            .map(|row| {
                ["list", "renamed_from", "offer"].map(|name| Cell::at(&diff.rows, name, row).expect("a cell").text()).join(" ")
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(lists(&[of(1, 1, 3)], &[of(2, 2, 3)]), ["renamed m1 m2"]);
    assert_eq!(lists(&[of(1, 1, 3)], &[of(2, 2, 4)]), ["added  m2", "removed  m1"], "another price is another offer");
    let two = lists(&[of(1, 1, 3)], &[of(2, 2, 3), of(3, 0, 3)]);
    assert!(two.iter().all(|line| !line.starts_with("renamed")) && two.len() == 3, "{two:?}");
}

#[test]
fn what_only_another_reading_changed_stands_apart_and_is_no_difference_of_the_source() {
    let [a, b] = nights();
    let coverage = coverage([(&a, &SCOPES), (&b, &SCOPES)]);
    let history = History::of(&[], &coverage, false).expect("the coverage reads");
    let of =
        |amount: i64, version: i32, print: u8| Offer { id: 1, name: 1, amount, currency: "USD", scope: "east", version, print };
    let told = |before: Offer, after: Offer| {
        let diff = compare(frame(&[before]), frame(&[after]), &a, &b, &history).expect("it compares");
        let text = show::text(&diff, &a, &b, &show::Tables).expect("it prints");
        (text, show::is_different(&diff).expect("it reads"))
    };
    let (text, is_different) = told(of(3, 1, 0), of(4, 2, 1));
    assert!(text.contains("changed: 0\n") && text.contains("by another reading (method) and not by the source: 1"), "{text}");
    assert!(!is_different);
    let (text, is_different) = told(of(3, 1, 0), of(4, 1, 1));
    assert!(text.contains("changed: 1\n") && !text.contains("method") && is_different, "{text}");
}

#[test]
fn rates_stand_in_the_order_of_their_currencies() {
    let [a, b] = nights();
    let coverage = coverage([(&a, &SCOPES), (&b, &SCOPES)]);
    let history = History::of(&[], &coverage, false).expect("the coverage reads");
    let offers = |version: i32| {
        let currencies = ["JPY", "EUR", "USD", "CNY", "GBP", "INR"];
        let offer =
            |(id, currency): (u8, &'static str)| Offer { id, name: id, amount: 3, currency, scope: "east", version, print: 0 };
        (0..).zip(currencies).map(offer).collect::<Vec<_>>()
    };
    for _ in 0..20 {
        let diff = compare(frame(&offers(1)), frame(&offers(2)), &a, &b, &history).expect("it compares");
        let currencies: Vec<_> =
            (0..diff.rows.height()).map(|row| Cell::at(&diff.rows, "currency_code", row).expect("a cell").text()).collect();
        assert_eq!(currencies, ["CNY", "EUR", "GBP", "INR", "JPY", "USD"]);
    }
}
