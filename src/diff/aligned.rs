//! Which offers of two nights differ in what they cost.
//!
//! Both files are in one order, so offers of one id mostly lie beside each other: to walk along both is several times cheaper
//! than to join them. What is not found beside the other is looked up by its id, so the answer does not depend on the order.

use std::collections::HashMap;

use polars::prelude::*;

/// So far is looked ahead for an offer that the other side has further on.
const LOOK_AHEAD: usize = 64;

/// Ids of the offers that are on one side only, or differ in one of the columns.
pub(super) fn ids_that_differ(a: LazyFrame, b: LazyFrame, columns: &[&str]) -> PolarsResult<StringChunked> {
    let read = |offers: LazyFrame| {
        let wanted = [col("offer_id")].into_iter().chain(columns.iter().map(|name| col(*name)));
        let mut rows = offers.select(wanted.collect::<Vec<_>>()).collect()?;
        rows.rechunk_mut_par();
        PolarsResult::Ok(rows)
    };
    let (a, b) = (read(a)?, read(b)?);
    let (ids_a, ids_b) = (a.column("offer_id")?.str()?, b.column("offer_id")?.str()?);
    let Pairs { in_a, in_b, alone_a, alone_b } = Pairs::of(ids_a, ids_b);
    let (in_a, in_b) = (IdxCa::from_vec("a".into(), in_a), IdxCa::from_vec("b".into(), in_b));
    let mut differs = BooleanChunked::full("differs".into(), false, in_a.len());
    for name in columns {
        let of = |rows: &DataFrame, places: &IdxCa, side: &str| {
            Ok::<_, PolarsError>(rows.column(name)?.take(places)?.with_name(side.into()))
        };
        let both = DataFrame::new(in_a.len(), vec![of(&a, &in_a, "a")?, of(&b, &in_b, "b")?])?;
        let found = both.lazy().select([col("a").neq_missing(col("b"))]).collect()?;
        differs = differs | found.column("a")?.bool()?.clone();
    }
    let mut ids = ids_a.take(&in_a.filter(&differs)?)?;
    ids.append(&ids_a.take(&IdxCa::from_vec("alone".into(), alone_a))?)?;
    ids.append(&ids_b.take(&IdxCa::from_vec("alone".into(), alone_b))?)?;
    Ok(ids)
}

/// Places of offers that are on both sides, pair by pair, and of those that are on one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pairs {
    in_a: Vec<IdxSize>,
    in_b: Vec<IdxSize>,
    alone_a: Vec<IdxSize>,
    alone_b: Vec<IdxSize>,
}

impl Pairs {
    fn of(a: &StringChunked, b: &StringChunked) -> Self {
        let place = |place: usize| IdxSize::try_from(place).expect("a night has fewer rows than that");
        let mut pairs = Self::default();
        // What the walk leaves over, to be looked up.
        let (mut rest_a, mut rest_b) = (Vec::new(), Vec::new());
        let (mut at_a, mut at_b) = (0, 0);
        while at_a < a.len() && at_b < b.len() {
            let ahead = (0..LOOK_AHEAD).find_map(|far| {
                let skips_a = at_a + far < a.len() && a.get(at_a + far) == b.get(at_b);
                let skips_b = at_b + far < b.len() && a.get(at_a) == b.get(at_b + far);
                if skips_a { Some((far, 0)) } else { skips_b.then_some((0, far)) }
            });
            let (skip_a, skip_b) = ahead.unwrap_or((1, 1));
            rest_a.extend(at_a..at_a + skip_a);
            rest_b.extend(at_b..at_b + skip_b);
            (at_a, at_b) = (at_a + skip_a, at_b + skip_b);
            if ahead.is_some() {
                pairs.in_a.push(place(at_a));
                pairs.in_b.push(place(at_b));
                (at_a, at_b) = (at_a + 1, at_b + 1);
            }
        }
        rest_a.extend(at_a..a.len());
        rest_b.extend(at_b..b.len());
        let mut by_id: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
        for &at in &rest_b {
            by_id.entry(b.get(at)).or_default().push(at);
        }
        for at in rest_a {
            match by_id.get_mut(&a.get(at)).and_then(Vec::pop) {
                Some(other) => {
                    pairs.in_a.push(place(at));
                    pairs.in_b.push(place(other));
                }
                None => pairs.alone_a.push(place(at)),
            }
        }
        let mut alone: Vec<usize> = by_id.into_values().flatten().collect();
        alone.sort_unstable();
        pairs.alone_b = alone.into_iter().map(place).collect();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A night of offers by number, each at a price.
    fn night(offers: &[(u8, Option<u8>)]) -> LazyFrame {
        let ids: Vec<String> = offers.iter().map(|(id, _)| id.to_string()).collect();
        let prices: Vec<Option<i32>> = offers.iter().map(|(_, price)| price.map(i32::from)).collect();
        df!("offer_id" => ids, "price" => prices).expect("columns of one length").lazy()
    }

    fn offers() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
        let prices = prop::collection::btree_map(any::<u8>(), prop::option::of(0..3_u8), 0..200);
        prices.prop_map(|prices| prices.into_iter().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn walking_along_finds_what_looking_up_finds(a in offers(), b in offers().prop_shuffle(), is_in_order in any::<bool>()) {
            let mut b = b;
            if is_in_order {
                b.sort_unstable();
            }
            let found = ids_that_differ(night(&a), night(&b), &["price"]).expect("they compare");
            let found: Vec<String> = found.iter().flatten().map(str::to_owned).collect();
            let price = |side: &[(u8, Option<u8>)], id: u8| side.iter().find(|(known, _)| *known == id).map(|(_, price)| *price);
            let ids: BTreeSet<u8> = a.iter().chain(&b).map(|(id, _)| *id).collect();
            let wanted: BTreeSet<String> =
                ids.into_iter().filter(|id| price(&a, *id) != price(&b, *id)).map(|id| id.to_string()).collect();
            prop_assert_eq!(found.len(), wanted.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted);
        }
    }
}
