//! Prices that public trackers wrote down day by day, for the comparisons of several providers.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use chrono::NaiveDate;
use gpuledger_scrapers::contract::{PricePer, PriceUnit, PublishedOffer};
use gpuledger_scrapers::{find, money, read, recordings};
use rust_decimal::Decimal;
use serde_json::Value;

use super::{Comparison, shared};

/// Folder of a tracker's daily files, one price a GPU and hour in US dollars.
pub const DAILY: &str = "data/history/gpurentalprices";
/// File of another tracker's days, read off a comparison site.
pub const DEPLOYING: &str = "data/history/getdeploying-multi/observations_2026-02-11_2026-07-20.csv.gz";
/// The first tracker's newest day.
pub const NEWEST: &str = "samples/_trackers/gpurentalprices_latest_2026-08-22.json";

/// One price somebody wrote down.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The day.
    pub date: NaiveDate,
    /// Their name of the card. `h100-sxm`
    pub gpu: String,
    /// How many cards the price is of, where they say so.
    pub gpu_count: Option<u32>,
    /// US dollars for one card and hour.
    pub usd: Decimal,
}

impl Reading {
    /// Whether an amount rounds to the digits they print. Half of the last digit may go either way.
    pub fn agrees(&self, usd: Decimal) -> bool {
        (usd - self.usd).abs() * Decimal::TWO <= Decimal::new(1, self.usd.scale())
    }

    /// A line to find the reading again.
    pub fn line(&self) -> String {
        format!("{} {} at {}", self.date, self.gpu, self.usd)
    }
}

/// The first tracker's daily files, in the order of their days, without the newest. Read once for all comparisons.
pub static DAYS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let folder = std::fs::read_dir(shared(DAILY)).expect("the folder is beside the checkout");
    let paths = folder.map(|entry| entry.expect("the entry reads").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "gz")).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_str(&inflated(path)).expect("a day is JSON")).collect()
});

/// The rows of the other tracker: day, provider, card, number of cards, region, kind, lowest, middle and highest price.
pub static OBSERVATIONS: LazyLock<Vec<csv::StringRecord>> = LazyLock::new(|| {
    let text = inflated(&shared(DEPLOYING));
    csv::Reader::from_reader(text.as_bytes()).into_records().map(|row| row.expect("a row reads")).collect()
});

/// Every price of one provider in the daily files, by the name that the tracker has for it.
pub fn daily(provider: &str) -> Vec<Reading> {
    let newest = std::fs::read_to_string(shared(NEWEST)).expect("the newest day reads");
    let newest: Value = serde_json::from_str(&newest).expect("a day is JSON");
    DAYS.iter().chain([&newest]).flat_map(|day| offers(day, provider)).collect()
}

fn offers(day: &Value, provider: &str) -> Vec<Reading> {
    let date = day["date"].as_str().and_then(|date| date.parse().ok()).expect("a day has its date");
    let is_ours = |offer: &&Value| offer["provider"] == provider && offer["kind"] == "on-demand";
    let reading = |offer: &Value| Reading {
        date,
        gpu: offer["gpu"].as_str().expect("a price has a card").to_owned(),
        gpu_count: offer["min_gpus"].as_u64().and_then(|count| u32::try_from(count).ok()),
        usd: money::decimal(&offer["usd_hr"].to_string()).expect("a price is a number"),
    };
    day["offers"].as_array().expect("a day has prices").iter().filter(is_ours).map(reading).collect()
}

/// Every price of one provider at the comparison site. Some days give the machine's price, others the card's.
pub fn deploying(provider: &str) -> Vec<Reading> {
    let reading = |row: &csv::StringRecord| Reading {
        date: row[0].parse().expect("a row has its day"),
        gpu: row[2].to_owned(),
        gpu_count: row[3].parse().ok(),
        usd: money::decimal(&row[6]).expect("a row has a price"),
    };
    OBSERVATIONS.iter().filter(|row| &row[1] == provider).map(reading).collect()
}

/// Dollars for one euro on the newest business day before a day, as the European Central Bank publishes them.
pub fn usd_per_eur() -> impl Fn(NaiveDate) -> Decimal {
    let text = std::fs::read_to_string(shared("data/fx/eurofxref-hist_2023-01-02_2026-10-30.csv")).expect("the rates read");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let usd = rows.headers().expect("a header").iter().position(|name| name == "USD").expect("a column of dollars");
    let rate = |row: csv::StringRecord| Some((row[0].parse::<NaiveDate>().ok()?, money::decimal(&row[usd])?));
    let rates: BTreeMap<_, _> = rows.records().filter_map(|row| rate(row.expect("a row reads"))).collect();
    move |day| *rates.range(..day).next_back().expect("there is an earlier rate").1
}

/// The offers of a provider's newest recording.
pub fn recorded(provider: &str) -> Vec<PublishedOffer> {
    recorded_on(provider, recordings::newest(provider).expect("there is a dated recording").case)
}

/// The offers of a provider's recording of a day.
pub fn recorded_on(provider: &str, day: &str) -> Vec<PublishedOffer> {
    let recording =
        recordings::of(provider).into_iter().find(|recording| recording.case == day).expect("there is a recording of the day");
    let scraper = find(provider).expect("the provider is registered");
    read(scraper, recording.pages).into_values().flat_map(|parsed| parsed.expect("the recording reads").offers).collect()
}

/// Published amount of one card for one hour, in the published currency. `None` for an amount of a month.
pub fn per_gpu_hour(offer: &PublishedOffer) -> Option<Decimal> {
    let hour = match offer.price.unit {
        PriceUnit::Second => offer.price.amount * Decimal::from(3600),
        PriceUnit::Minute => offer.price.amount * Decimal::from(60),
        PriceUnit::Hour => offer.price.amount,
        _ => return None,
    };
    let count = offer.gpu.count?;
    Some(match offer.price.per {
        PricePer::Gpu => hour,
        PricePer::Instance => hour * Decimal::from(*count.denom()) / Decimal::from(*count.numer()),
    })
}

/// Counts each reading as equal, or under the reason that `why` gives for ours and theirs.
pub fn hold(
    comparison: &mut Comparison,
    readings: &[Reading],
    ours: impl Fn(&Reading) -> Option<Decimal>,
    why: impl Fn(&Reading, Option<Decimal>) -> &'static str,
) {
    for reading in readings {
        match ours(reading) {
            Some(usd) if reading.agrees(usd) => comparison.agree(),
            usd => comparison.differ(why(reading, usd), reading.line()),
        }
    }
}

pub fn inflated(path: &std::path::Path) -> String {
    let bytes = std::fs::read(path).expect("the file is beside the checkout");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("the file inflates");
    text
}
