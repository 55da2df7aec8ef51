//! What two trackers of many providers have read, each price once.
//!
//! In: the rows of their files. Out: each price with the first day it was seen. Nothing is judged here.

use std::collections::BTreeMap;

use crate::contract::{PricingModel, PublishedOffer};
use crate::{find, recordings};
use rust_decimal::Decimal;

use crate::oracles::Comparison;
use crate::trackers::{DAYS, OBSERVATIONS};

/// Six weeks of one tracker, a file a day.
pub const RENTALS: &str = "data/history/gpurentalprices";
/// Five months of another.
pub const DEPLOYMENTS: &str = "data/history/getdeploying-multi";

/// A price that somebody else has read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Their name of the card. `h100-sxm`
    pub gpu: String,
    /// Their word for how it is bought. `on-demand`
    pub kind: String,
    /// Dollars for one GPU and hour. Rounded to six digits, because they multiply as floats.
    pub amount: Decimal,
    /// First day.
    pub day: String,
}

impl Reading {
    /// The reading in a line.
    pub fn example(&self) -> String {
        format!("{} {} {} on {}", self.gpu, self.kind, self.amount, self.day)
    }
}

/// The prices of a provider in six weeks of the first tracker.
pub fn rentals(provider: &str) -> Vec<Reading> {
    let mut found = BTreeMap::new();
    for night in DAYS.iter() {
        for offer in night["offers"].as_array().expect("offers").iter().filter(|offer| offer["provider"] == provider) {
            let text = |name: &str| offer[name].as_str().expect("text").to_owned();
            let day = night["date"].as_str().expect("a day");
            note(&mut found, text("gpu"), text("kind"), &offer["usd_hr"].to_string(), day);
        }
    }
    found.into_values().collect()
}

/// The lowest and highest prices of a provider in five months of the second tracker.
pub fn deployments(provider: &str) -> Vec<Reading> {
    let mut found = BTreeMap::new();
    for row in OBSERVATIONS.iter().filter(|row| &row[1] == provider) {
        for amount in [&row[6], &row[8]] {
            note(&mut found, format!("{}x {}", &row[3], &row[2]), row[5].to_owned(), amount, &row[0]);
        }
    }
    found.into_values().collect()
}

fn note(found: &mut BTreeMap<(String, String, Decimal), Reading>, gpu: String, kind: String, amount: &str, day: &str) {
    let amount: Decimal = amount.parse().expect("an amount");
    let amount = amount.round_dp(6).normalize();
    let key = (gpu.clone(), kind.clone(), amount);
    found.entry(key).or_insert_with(|| Reading { gpu, kind, amount, day: day.to_owned() });
}

/// The offers of a dated recording.
pub fn recorded(provider: &str, case: &str) -> Vec<PublishedOffer> {
    let recording = recordings::of(provider).into_iter().find(|recording| recording.case == case).expect("the recording");
    find(provider).expect("the provider").parse(&recording.pages).expect("it parses").offers
}

/// Our price under a label or the name of a machine.
pub fn ours(offers: &[PublishedOffer], label: &str, model: PricingModel) -> Option<Decimal> {
    let is_it = |offer: &&PublishedOffer| {
        let names = [offer.offer_label.as_deref(), offer.instance_type.as_deref()];
        names.contains(&Some(label)) && offer.terms.pricing_model == model
    };
    offers.iter().find(is_it).map(|offer| offer.price.amount)
}

/// Counts a reading that agrees with our price, or that differs from it with the reason.
///
/// # Panics
/// When it differs and `reason` knows none.
pub fn hold(
    comparison: &mut Comparison,
    reading: &Reading,
    ours: Option<Decimal>,
    reason: impl Fn(&Reading) -> Option<&'static str>,
) {
    if ours == Some(reading.amount) {
        comparison.agree();
    } else {
        let reason = reason(reading).unwrap_or_else(|| panic!("{}, ours {ours:?}", reading.example()));
        comparison
            .differ(reason, format!("{}, ours {}", reading.example(), ours.map_or("none".to_owned(), |ours| ours.to_string())));
    }
}
