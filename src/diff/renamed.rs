//! One offer gone and one come that agree in everything but the name: one offer under another name.
//!
//! Only a pair that nobody else could be meant by is one: with two offers on a side that agree, all stay removed and added.

use std::collections::{HashMap, HashSet};

use super::{ALONG_WHAT, Line, List, PRICE, WHAT};

/// What names an offer, and may differ.
const NAMES: [&str; 2] = ["instance_type", "offer_label"];

/// Makes one line of each pair.
pub(super) fn pair(lines: Vec<Line>) -> Vec<Line> {
    let mut sides: HashMap<Vec<String>, [Vec<usize>; 2]> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        match line.list {
            List::Removed => sides.entry(key(line)).or_default()[0].push(index),
            List::Added => sides.entry(key(line)).or_default()[1].push(index),
            List::Changed | List::Renamed | List::NotObserved | List::ExchangeRate => {}
        }
    }
    let pairs: HashMap<usize, usize> = sides
        .into_values()
        .filter_map(|[gone, come]| match (gone.as_slice(), come.as_slice()) {
            ([gone], [come]) if lines[*gone].offer() != lines[*come].offer() => Some((*gone, *come)),
            _ => None,
        })
        .collect();
    let come: HashSet<usize> = pairs.values().copied().collect();
    let mut of_pairs: HashMap<usize, Line> =
        pairs.into_iter().map(|(gone, come)| (gone, renamed(&lines[gone], &lines[come]))).collect();
    let rest = lines.into_iter().enumerate().filter(|(index, _)| !come.contains(index));
    rest.map(|(index, line)| of_pairs.remove(&index).unwrap_or(line)).collect()
}

/// Everything but the name.
fn key(line: &Line) -> Vec<String> {
    let what = WHAT.iter().filter(|name| !NAMES.contains(name));
    what.chain(&PRICE).chain(&ALONG_WHAT).map(|name| line.text(name).to_owned()).collect()
}

fn renamed(gone: &Line, come: &Line) -> Line {
    let mut line = come.clone();
    line.list = List::Renamed;
    line.is_unconfirmed = gone.is_unconfirmed || come.is_unconfirmed;
    line.missing_in = None;
    let amount = gone.text("amount_a").to_owned();
    line.texts.insert("amount_a", amount);
    line.texts.insert("renamed_from", gone.offer().to_owned());
    line
}
