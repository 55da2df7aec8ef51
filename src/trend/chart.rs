//! Days → a line of blocks for a terminal and a chart for a browser. A day without figures is a gap in both.

use std::fmt::Write as _;

use chrono::{Duration, NaiveDate};
use plotters::prelude::*;

use super::series::{Line, Trends};
use crate::harmless::harmless;

/// Blocks from low to high.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Most blocks of a line.
const BLOCKS_MAX: i64 = 60;

/// Size of the chart in pixels.
const SIZE: (u32, u32) = (1_000, 500);

/// What a chart is of.
pub(super) struct Title {
    pub gpu: String,
    pub is_index: bool,
}

/// Every line as blocks over the same days, with its newest, lowest and highest median.
pub(super) fn lines(trends: &Trends) -> String {
    let days = || trends.lines.iter().flat_map(|line| line.days.keys().copied());
    let (Some(first), Some(last)) = (days().min(), days().max()) else { return String::new() };
    let each = days_of_a_block(first, last);
    let unit = if each == 1 { "a block is a day".to_owned() } else { format!("a block is {each} days") };
    let mut text = format!("medians in USD per GPU-hour from {first} to {last}; {unit}, a blank one has no prices\n");
    let titles: Vec<String> = trends.lines.iter().map(|line| harmless(&line.title()).into_owned()).collect();
    let width = titles.iter().map(|title| title.chars().count()).max().unwrap_or(0);
    for (line, title) in trends.lines.iter().zip(titles) {
        let Some((newest, day)) = line.days.last_key_value() else { continue };
        let ((low, high), blocks) = (bounds(line), blocks(line, first, last));
        let _ = writeln!(text, "{title:width$} │{blocks}│ {:.4} on {newest}, between {low:.4} and {high:.4}", day.median);
    }
    text
}

/// Lowest and highest median of a line.
fn bounds(line: &Line) -> (f64, f64) {
    let medians = line.days.values().map(|day| day.median);
    (medians.clone().fold(f64::INFINITY, f64::min), medians.fold(f64::NEG_INFINITY, f64::max))
}

/// Days that a block stands for.
fn days_of_a_block(first: NaiveDate, last: NaiveDate) -> i64 {
    let span = (last - first).num_days() + 1;
    span.div_euclid(BLOCKS_MAX) + i64::from(span.rem_euclid(BLOCKS_MAX) != 0)
}

/// The blocks of a line: of the days of each the last that has figures. Where none has, there is a gap.
fn blocks(line: &Line, first: NaiveDate, last: NaiveDate) -> String {
    let (each, (low, high)) = (days_of_a_block(first, last), bounds(line));
    let mut text = String::new();
    let mut start = first;
    while start <= last {
        let end = start + Duration::days(each - 1);
        text.push(line.days.range(start..=end).next_back().map_or(' ', |(_, day)| block(day.median, low, high)));
        start = end + Duration::days(1);
    }
    text
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place among eight blocks")]
fn block(median: f64, low: f64, high: f64) -> char {
    // What does not move is in the middle.
    let share = if high > low { (median - low) / (high - low) } else { 0.5 };
    BLOCKS[((share * 7.0).round() as usize).min(7)]
}

/// A chart as SVG. Days that follow each other are joined; what stands alone is a dot.
pub(super) fn svg(trends: &Trends, title: &Title) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    let days = || trends.lines.iter().flat_map(|line| line.days.keys().copied());
    let (Some(first), Some(last)) = (days().min(), days().max()) else {
        return Ok(empty(title));
    };
    let (low, high) =
        trends.lines.iter().map(bounds).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)));
    let room = if high > low { (high - low) * 0.05 } else { high * 0.05 };
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let place = |day: NaiveDate| (day - first).num_days();
        let mut chart = ChartBuilder::on(&root)
            .caption(caption(title), ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(32)
            .y_label_area_size(64)
            .build_cartesian_2d(-1_i64..place(last) + 1, (low - room)..(high + room))?;
        chart
            .configure_mesh()
            .x_labels(8)
            .x_label_formatter(&|days| (first + Duration::days(*days)).to_string())
            .y_label_formatter(&|usd| format!("{usd:.2}"))
            .y_desc("USD per GPU-hour")
            .draw()?;
        for (index, line) in trends.lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            for run in runs(line) {
                let points: Vec<(i64, f64)> = run.into_iter().map(|(day, median)| (place(day), median)).collect();
                chart.draw_series(points.iter().map(|point| Circle::new(*point, 2, colour.filled())))?;
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            }
            // The names of lines stand on a line of no points, so that none is drawn for them.
            chart
                .draw_series(LineSeries::new(std::iter::empty::<(i64, f64)>(), colour))?
                .label(harmless(&line.title()).into_owned())
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
        root.present()?;
    }
    Ok(text)
}

/// Days that follow each other without a gap.
fn runs(line: &Line) -> Vec<Vec<(NaiveDate, f64)>> {
    let mut runs: Vec<Vec<(NaiveDate, f64)>> = Vec::new();
    for (day, figures) in &line.days {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|(before, _)| before.succ_opt() == Some(*day)) => {
                run.push((*day, figures.median))
            }
            _ => runs.push(vec![(*day, figures.median)]),
        }
    }
    runs
}

fn caption(title: &Title) -> String {
    let gpu = harmless(&title.gpu).into_owned();
    if title.is_index {
        format!("{gpu}: index, {}", super::INDEX_METHOD)
    } else {
        format!("{gpu}: median of a day's prices of one GPU for an hour")
    }
}

/// A chart of nothing says so.
fn empty(title: &Title) -> String {
    let (width, height) = SIZE;
    let caption = caption(title).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <text x=\"20\" y=\"40\" font-family=\"sans-serif\">{caption}: no day has one</text>\n</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::series::Day;
    use super::*;

    fn line(days: &[(&str, f64)]) -> Line {
        let day = |(day, usd): &(&str, f64)| {
            let figures = Day { count: 1, providers: vec!["a".to_owned()], min: *usd, q1: *usd, median: *usd, q3: *usd };
            (day.parse().expect("a day"), figures)
        };
        Line { source: "collected".to_owned(), name: String::new(), days: days.iter().map(day).collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn a_day_without_figures_is_a_gap_among_the_blocks() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a day");
        let march = (day("2026-03-01"), day("2026-03-05"));
        let drawn = |days: &[(&str, f64)], (first, last)| blocks(&line(days), first, last);
        assert_eq!(drawn(&[("2026-03-01", 1.0), ("2026-03-02", 8.0), ("2026-03-05", 4.5)], march), "▁█  ▅");
        assert_eq!(drawn(&[("2026-03-04", 3.0)], march), "   ▅ ", "what does not move is in the middle");
        let long = drawn(&[("2026-01-01", 1.0), ("2026-12-31", 2.0)], (day("2026-01-01"), day("2026-12-31")));
        assert_eq!(long.chars().count(), 53, "a block is a week");
        assert_eq!(long.trim_matches(['▁', '█']).trim(), "", "nothing is between them: {long}");
    }

    #[test]
    fn a_gap_is_never_a_drawn_line() {
        let days = [("2026-03-01", 1.0), ("2026-03-02", 2.0), ("2026-03-05", 4.0), ("2026-03-08", 3.0), ("2026-03-09", 5.0)];
        let trends = Trends { lines: vec![line(&days)], is_index: false };
        let text = svg(&trends, &Title { gpu: "h100 <b>".to_owned(), is_index: false }).expect("it draws");
        let thick = text.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"2\""));
        let points: Vec<usize> = thick
            .map(|line| {
                line.split("points=\"")
                    .nth(1)
                    .map_or(0, |rest| rest.split(['"']).next().map_or(0, |points| points.split_whitespace().count()))
            })
            .filter(|points| *points > 1)
            .collect();
        assert_eq!(points, [2, 2], "{text}");
        assert!(text.contains("h100 &lt;b&gt;") && roughly_xml(&text), "{text}");
    }

    /// Whether every tag is closed, as far as a chart needs it.
    fn roughly_xml(text: &str) -> bool {
        text.matches('<').count() == text.matches('>').count() && text.trim_end().ends_with("</svg>")
    }
}
