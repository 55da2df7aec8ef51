//! The offers of a snapshot that somebody asks for, in an order.

use std::fmt::Write as _;

use polars::prelude::*;

use crate::answer::{self, LeftOut};
use crate::cli::Offers;
use crate::frame::Columns;
use crate::measure::{self, Amount, Measure};
use crate::print::{self, Format, Heading, heading};
use crate::query::{self, QueryError};
use crate::report::{Failed, Said};
use crate::snapshot::read;

/// Lists offers.
///
/// # Errors
/// When a filter names something that does not exist, or the dataset cannot be read.
pub async fn offers(args: &Offers) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let (filter, now) = (&args.filter, query::now(&args.filter));
    let snapshots = read::snapshots(output).await?;
    let snapshot = read::choose(&snapshots, &args.snapshot)?;
    let all = read::offers(snapshot)?;
    let mut left_out = LeftOut::default();
    for (offers, why) in query::not_stated(&all, filter)? {
        left_out.add(offers, why);
    }
    let rows = query::filtered(&all, filter)?.collect().map_err(QueryError::from)?;
    let (rows, older) = answer::not_older(rows, filter.max_age_days, now)?;
    left_out.add(older, "that were seen earlier than the days asked for");

    let measure = Measure { currency: args.priced.currency.clone(), over: args.priced.by };
    let prices = measure::prices(output, &rows, &measure, Amount::Published).await?;
    let mut unpriced = LeftOut::default();
    unpriced.add_unpriced(&prices);
    let mut rows = rows.clone().lazy();
    let price = measure.column();
    if rows.collect_schema()?.get(&price).is_none() {
        rows = measure::with_prices(&rows.collect()?, &price, &prices)?.lazy();
    }
    if let Some(most) = args.max_price {
        rows = rows.filter(col(&price).lt_eq(lit(most)));
    }
    let rows = in_order(rows, &args.sort, &price)?;
    let shown = rows.head(Some(usize::try_from(args.limit).expect("a limit fits")));

    let data = match args.printing.format {
        Format::Table => print::table(&for_people(&shown)?, &headings(&measure, &price, &measure.unit()))?.into(),
        format => print::rows(&shown, &[], format)?,
    };
    let of_all = snapshot.rows().map_or_else(|| "?".to_owned(), |rows| rows.to_string());
    let mut talk = format!("{} of {of_all} offers of snapshot {}", shown.height(), snapshot.id);
    if rows.height() > shown.height() {
        let _ = write!(talk, "; {} more fit (--limit)", rows.height() - shown.height());
    }
    talk.push('\n');
    if args.max_price.is_some() {
        left_out.add_unpriced(&prices);
    } else {
        talk.push_str(&unpriced.words("at the end:"));
    }
    talk.push_str(&left_out.words("left out:"));
    talk.push_str(&answer::of_night(output, snapshot, &shown).await?);
    talk.push_str(&answer::ages(&shown, now)?);
    answer::said(data, shown.height(), talk, &args.destination, args.printing.format)
}

/// Rows by a column; `-` in front turns the order.
fn in_order(mut rows: LazyFrame, sort: &str, price: &str) -> Result<DataFrame, QueryError> {
    let (is_descending, by) = sort.strip_prefix('-').map_or((false, sort), |by| (true, by));
    let by = match by {
        "price" => price,
        "memory" => "gpu_memory_gb",
        other => other,
    };
    let columns = rows.collect_schema()?;
    if columns.get(by).is_none() {
        let known = columns.iter_names().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(QueryError::UnknownValue { what: "column", typed: by.to_owned(), known });
    }
    let order = SortMultipleOptions::default().with_nulls_last(true).with_order_descending_multi([is_descending, false]);
    Ok(rows.sort([by, "offer_id"], order).collect()?)
}

/// The rows as a table shows them: each machine with a name, and the day it was seen.
fn for_people(rows: &DataFrame) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(rows.height());
    columns.dates("seen", answer::seen(rows)?.into_iter().map(answer::day));
    let rows = rows.hstack(columns.finish()?.columns())?;
    rows.lazy().with_column(query::machine().alias("instance_type")).collect()
}

fn headings<'a>(measure: &Measure, price: &'a str, unit: &'a str) -> Vec<Heading<'a>> {
    let of = |known: &Heading<'static>| -> Heading<'a> {
        if known.column == "price_usd_per_gpu_hour" {
            Heading { digits: measure.digits(), ..heading(price, unit) }
        } else {
            *known
        }
    };
    query::HEADINGS.iter().map(of).chain([heading("seen", "seen")]).collect()
}
