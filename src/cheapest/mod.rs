//! The cheapest offers of a GPU or a memory need: a ladder for each way to buy, the cheapest first.
//!
//! In: a snapshot and what is needed. Out: ladders, and what is not in them, counted. A part of a card, another operating
//! system, somebody's copy of a vendor's price and what has no price stand in no ladder, and that is said. A marketplace is
//! compared by its lowest listing.

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Availability, Os, SourceKind};
use polars::prelude::*;

use crate::answer::{self, LeftOut};
use crate::cli::{Cheapest, Filter};
use crate::frame::{Cell, Columns};
use crate::measure::{self, Amount, Measure, Over, Price};
use crate::print::{self, Format, Heading, heading};
use crate::query::{self, QueryError};
use crate::report::{Failed, Said};
use crate::snapshot::read;
use ladder::{Ladders, Way, ladders};

pub mod ladder;

/// Shows the ladders.
///
/// # Errors
/// When what is asked for does not exist, or the dataset cannot be read.
pub async fn cheapest(args: &Cheapest) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let snapshot = read::choose(&snapshots, &args.snapshot)?;
    let found = find(output, &read::offers(snapshot)?, args).await?;
    let now = query::now(&args.filter);
    let data = match args.printing.format {
        Format::Table => {
            let what = format!("{} of snapshot {}, {}", need(&args.filter)?, snapshot.id, order(args.all));
            tables(&found, now, &what)?.into()
        }
        format => print::rows(&found.rows, &[], format)?,
    };
    let mut talk = String::new();
    if found.rows.height() == 0 {
        let _ = writeln!(talk, "Nothing of snapshot {} fits.", snapshot.id);
    }
    talk.push_str(&found.left_out.words("left out:"));
    talk.push_str(&answer::of_night(output, snapshot, &found.rows).await?);
    talk.push_str(&answer::ages(&found.rows, now)?);
    answer::said(data, found.rows.height(), talk, &args.destination, args.printing.format)
}

/// The ladders, and what is in none.
#[derive(Debug)]
pub struct Found {
    /// Whole rows, ladder after ladder, each with `ladder`, `ladder_rank` and its price there.
    pub rows: DataFrame,
    /// Column of the prices that the ladders are in order of. `lowest_usd_per_gpu_hour`
    pub lowest: String,
    /// What is in no ladder, counted.
    pub left_out: LeftOut,
    ladders: Ladders,
    measure: Measure,
}

/// Finds the ladders among rows of a snapshot.
///
/// # Errors
/// When what is asked for does not exist, or the rates cannot be read.
pub async fn find(output: &Path, all: &LazyFrame, args: &Cheapest) -> Result<Found, Failed> {
    let filter = &args.filter;
    let measure = Measure { currency: args.priced.currency.clone(), over: args.priced.by };
    let mut left_out = LeftOut::default();
    for (offers, why) in query::not_stated(all, filter)? {
        left_out.add(offers, why);
    }
    let fitting = query::filtered(all, filter)?.collect().map_err(QueryError::from)?;
    let rows = comparable(fitting, filter, args.fractions, query::now(filter), &mut left_out)?;
    let prices = measure::prices(output, &rows, &measure, Amount::Lowest).await?;
    left_out.add_unpriced(&prices);
    let longest = usize::try_from(args.limit).expect("a limit fits");
    let ladders = ladders(&rows, &prices, args.all, longest)?;
    left_out.add(ladders.sold_out, "sold out, of providers that have another in the same ladder (--all shows every offer)");
    left_out.add(ladders.dearer, "dearer than another of the same provider (--all shows every offer)");
    left_out.add(ladders.beyond, "beyond the longest ladder (--limit)");
    let lowest = lowest_column(&measure);
    Ok(Found { rows: in_ladders(&rows, &ladders, &lowest)?, lowest, left_out, ladders, measure })
}

/// The cheapest plain on-demand offer of each provider, in US dollars a GPU-hour, which are in column
/// `lowest_usd_per_gpu_hour`.
///
/// # Errors
/// When there is no such GPU, or the dataset cannot be read.
pub async fn on_demand(output: &Path, all: &LazyFrame, gpu: &str) -> Result<DataFrame, Failed> {
    let filter = Filter { gpu: vec![gpu.to_owned()], ..Filter::default() };
    let measure = Measure { currency: "USD".parse().expect("three letters"), over: Over::Hour };
    let plain = col("pricing_model").eq(lit("on_demand")).and(col("plan").is_null());
    let fitting = query::filtered(all, &filter)?.filter(plain).collect()?;
    let rows = comparable(fitting, &filter, false, Utc::now(), &mut LeftOut::default())?;
    let prices = measure::prices(output, &rows, &measure, Amount::Lowest).await?;
    let ladders = ladders(&rows, &prices, false, 0)?;
    let rows = in_ladders(&rows, &ladders, &lowest_column(&measure))?;
    Ok(rows.lazy().with_column(query::machine().alias("instance_type")).collect()?)
}

/// The rows that can be held against each other.
fn comparable(
    rows: DataFrame,
    filter: &Filter,
    with_fractions: bool,
    now: DateTime<Utc>,
    left_out: &mut LeftOut,
) -> PolarsResult<DataFrame> {
    let mut rows = rows;
    let mut keep = |rows: DataFrame, test: Expr, why: &str| -> PolarsResult<DataFrame> {
        let kept = rows.clone().lazy().filter(test.fill_null(lit(true))).collect()?;
        left_out.add(rows.height() - kept.height(), why);
        Ok(kept)
    };
    if filter.os.is_none() {
        let linux = col("os").eq(lit(Os::Linux.word()));
        rows = keep(rows, linux, "with another operating system than Linux in the price (--os)")?;
    }
    if !with_fractions {
        rows = keep(rows, col("is_fractional").not(), "of a part of a card (--fractions)")?;
    }
    let aggregator = col("source_kind").neq(lit(SourceKind::Aggregator.word()));
    rows = keep(rows, aggregator, "that are somebody's copy of a vendor's price, and not another provider")?;
    let (rows, older) = answer::not_older(rows, filter.max_age_days, now)?;
    left_out.add(older, "that were seen earlier than the days asked for");
    Ok(rows)
}

/// Column of the prices that the ladders are in order of. `lowest_usd_per_gpu_hour`
fn lowest_column(measure: &Measure) -> String {
    let column = measure.column();
    format!("lowest_{}", column.strip_prefix("price_").unwrap_or(&column))
}

/// The whole rows of the rungs, each with its ladder, its place in it, and its price there.
fn in_ladders(rows: &DataFrame, ladders: &Ladders, lowest: &str) -> PolarsResult<DataFrame> {
    let rungs = &ladders.rungs;
    let order: IdxCa = rungs.iter().map(|rung| IdxSize::try_from(rung.row).ok()).collect();
    let ranks = rungs.chunk_by(|a, b| a.way == b.way).flat_map(|ladder| (1_i32..).zip(ladder).map(|(rank, _)| Some(rank)));
    let mut columns = Columns::new(rungs.len());
    columns.strings("ladder", rungs.iter().map(|rung| Some(rung.way.to_string())));
    columns.wholes("ladder_rank", ranks);
    let prices: Vec<Price> = rungs.iter().map(|rung| Ok(rung.price)).collect();
    let columns = measure::with_prices(&columns.finish()?, lowest, &prices)?;
    rows.take(&order)?.hstack(columns.columns())
}

/// What is asked for, in words.
fn need(filter: &Filter) -> Result<String, QueryError> {
    let mut models: Vec<&str> = Vec::new();
    for typed in &filter.gpu {
        models.extend(query::is_model(typed)?);
    }
    let mut words: Vec<String> = if models.is_empty() { Vec::new() } else { vec![models.join(", ")] };
    words.extend(filter.min_gpu_memory.map(|gb| format!("GPUs of {gb} GB or more")));
    words.extend(filter.min_total_memory.map(|gb| format!("machines with {gb} GB or more on all GPUs")));
    Ok(words.join("; "))
}

const fn order(is_all: bool) -> &'static str {
    if is_all { "every offer, the cheapest first" } else { "the cheapest of each provider first" }
}

/// The rows as tables show them.
fn for_people(rows: &DataFrame, now: DateTime<Utc>) -> PolarsResult<DataFrame> {
    let seen = answer::seen(rows)?;
    let mut columns = Columns::new(rows.height());
    let (mut amounts, mut remarks) = (Vec::new(), Vec::new());
    for row in 0..rows.height() {
        amounts.push(amount(rows, row)?);
        remarks.push(remark(rows, row)?);
    }
    columns.strings("amount", amounts.into_iter().map(Some));
    columns.strings("remarks", remarks.into_iter().map(|words| if words.is_empty() { None } else { Some(words.join("; ")) }));
    columns.dates("seen", seen.iter().copied().map(answer::day));
    columns.strings("age", seen.iter().map(|seen| seen.map(|seen| answer::age(seen, now))));
    let rows = rows.hstack(columns.finish()?.columns())?;
    rows.lazy().with_column(query::machine().alias("instance_type")).collect()
}

/// The amount that counts, as published. `55.04 USD/machine-hour`
fn amount(rows: &DataFrame, row: usize) -> PolarsResult<String> {
    let cell = |column: &str| Cell::at(rows, column, row);
    let lowest = cell("listing_amount_min")?;
    let amount = if lowest == Cell::Null { cell("published_amount")? } else { lowest }.text();
    let thing = if cell("published_per")?.text() == "gpu" { "GPU" } else { "machine" };
    let mut text = format!("{amount} {}/{thing}-{}", cell("published_currency_code")?.text(), cell("published_unit")?.text());
    let upfront = cell("published_upfront_amount")?;
    if upfront != Cell::Null {
        let _ = write!(text, " and {} up front", upfront.text());
    }
    Ok(text)
}

/// What a reader must know before holding the price against the others.
fn remark(rows: &DataFrame, row: usize) -> PolarsResult<Vec<String>> {
    let text = |column: &str| Cell::at(rows, column, row).map(|cell| cell.text());
    let mut words = Vec::new();
    match text("listing_count")?.as_str() {
        "" => {}
        "1" => words.push("the only listing".to_owned()),
        several => words.push(format!("lowest of {several} listings, the middle one at {}", text("published_amount")?)),
    }
    let is_so = [
        ("is_fractional", "true", "part of a card"),
        ("is_promotion", "true", "promotion"),
        ("tax_included", "true", "tax included"),
        ("availability", Availability::SoldOut.word(), "sold out"),
        ("availability", Availability::Low.word(), "few left"),
        ("source_kind", SourceKind::Import.word(), "imported"),
    ];
    for (column, value, word) in is_so {
        if text(column)? == value {
            words.push(word.to_owned());
        }
    }
    let licence = text("licence")?;
    if !licence.is_empty() {
        words.push(format!("licence {licence}"));
    }
    let flags = text("flags")?;
    let told = ["", "fraction_of_a_card"];
    words.extend(flags.split(',').filter(|flag| !told.contains(flag)).map(|flag| flag.replace('_', " ")));
    Ok(words)
}

/// The ladders for people: what is asked for, then a title and a table for each way to buy.
///
/// # Errors
/// Only on a fault of the program.
pub fn tables(found: &Found, now: DateTime<Utc>, what: &str) -> PolarsResult<String> {
    let (rows, unit) = (for_people(&found.rows, now)?, found.measure.unit());
    let price = Heading { digits: found.measure.digits(), ..heading(&found.lowest, &unit) };
    let mut text = format!("{what}\n");
    let mut first = 0;
    for ladder in found.ladders.rungs.chunk_by(|a, b| a.way == b.way) {
        let part = rows.slice(i64::try_from(first).expect("few rows"), ladder.len());
        first += ladder.len();
        let headings = headings(&part, &ladder[0].way, price)?;
        let _ = write!(text, "\n{}\n{}", ladder[0].way, print::table(&part, &headings)?);
    }
    Ok(text)
}

/// The columns of a ladder: those that say nothing in it are left out.
fn headings<'a>(rows: &DataFrame, way: &Way, price: Heading<'a>) -> PolarsResult<Vec<Heading<'a>>> {
    let right = |column, words| Heading { is_right: true, ..heading(column, words) };
    let always = [
        heading("provider", "provider"),
        heading("gpu_model", "GPU"),
        heading("gpu_count", "GPUs"),
        heading("gpu_memory_gb", "GB/GPU"),
        heading("instance_type", "machine"),
        heading("region", "region"),
    ];
    let mut headings = vec![price];
    headings.extend(always);
    let says = |column: &str| -> PolarsResult<bool> { Ok(rows.column(column)?.null_count() < rows.height()) };
    if way.is_by_plan || says("plan")? {
        headings.push(heading("plan", "plan"));
    }
    if says("upfront")? {
        headings.push(heading("upfront", "up front"));
    }
    headings.extend([right("amount", "as published"), heading("seen", "seen"), right("age", "age")]);
    if says("remarks")? {
        headings.push(heading("remarks", "remarks"));
    }
    Ok(headings)
}
