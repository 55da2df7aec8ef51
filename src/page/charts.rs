//! The index of a GPU → a small chart for both themes.
//!
//! Drawn by `plotters` in colours that stand for what a thing is; a second step puts a class in the place of each, so that the
//! page's style decides. A day without figures is a gap and never a line; what stands alone is a dot.

use chrono::{Duration, NaiveDate};
use plotters::prelude::*;

use super::text::Text;
use super::values::{count, dollars, shown};
use crate::trend::{COLLECTED, Index};

/// Size of a chart, in units of its own: about two for a pixel of a phone.
const SIZE: (u32, u32) = (720, 400);

/// Size of its letters in the same units, as plotters counts them.
const LETTERS: u32 = 30;

/// What colours stand for, until the page's style has its say.
const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(1, 1, 2);

/// Lines with a look of their own; further ones look as the last.
pub(super) const LOOKS: usize = 5;

/// Smallest height of a chart, as a share of its highest price: below it a price that hardly moves would look as if it leapt.
const LEAST_SPAN: f64 = 0.1;

const fn of_line(look: usize) -> RGBColor {
    const GREEN: [u8; LOOKS] = [0, 1, 2, 3, 4];
    RGBColor(2, GREEN[look], 0)
}

/// A source of lines, and its look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Legend {
    pub name: String,
    pub look: usize,
}

/// One GPU's chart with its figures.
#[derive(Debug)]
pub(super) struct Chart {
    pub gpu: String,
    /// The newest figure in words.
    pub caption: String,
    /// Nothing where no line has more than a day.
    pub svg: Option<String>,
    pub figures: Vec<Figures>,
}

/// A line in figures.
#[derive(Debug)]
pub(super) struct Figures {
    pub source: String,
    pub newest: String,
    pub day: NaiveDate,
    pub providers: String,
    pub lowest: String,
    pub highest: String,
    pub first_day: NaiveDate,
    pub days: String,
}

/// Why there is no chart.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChartError {
    /// plotters refused, which is a fault of the program.
    #[error("draw a chart")]
    Draw(#[source] Box<dyn std::error::Error>),
    /// A colour that stands for nothing would be the same in both themes.
    #[error("give every part of a chart a look: {0} stands for nothing")]
    Colour(String),
}

/// The sources of all charts, the program's own first, each with its look.
pub(super) fn legends(indices: &[(String, Index)], text: &Text) -> Vec<Legend> {
    sources(indices)
        .into_iter()
        .enumerate()
        .map(|(place, source)| Legend { name: name(source, text), look: place.min(LOOKS - 1) })
        .collect()
}

fn sources(indices: &[(String, Index)]) -> Vec<&str> {
    let mut sources: Vec<&str> = indices.iter().flat_map(|(_, lines)| lines.iter().map(|(source, _)| source.as_str())).collect();
    sources.sort_by_key(|source| (*source != COLLECTED, *source));
    sources.dedup();
    // What the program collected looks the same on every page, also where it has none.
    if sources.first().is_some_and(|first| *first != COLLECTED) {
        sources.insert(0, COLLECTED);
    }
    sources
}

fn name(source: &str, text: &Text) -> String {
    if source == COLLECTED { text.collected.to_owned() } else { text.history(source.trim_start_matches("import-")) }
}

/// A chart for each GPU that has a figure, over the same days.
pub(super) fn charts(indices: &[(String, Index)], text: &Text) -> Result<Vec<Chart>, ChartError> {
    let days = || indices.iter().flat_map(|(_, lines)| lines.iter().flat_map(|(_, days)| days.keys().copied()));
    let (Some(first), Some(last)) = (days().min(), days().max()) else { return Ok(Vec::new()) };
    let sources = sources(indices);
    let mut charts = Vec::new();
    for (gpu, lines) in indices.iter().filter(|(_, lines)| !lines.is_empty()) {
        let mut figures = Vec::new();
        for source in &sources {
            figures.extend(lines.iter().filter(|(of, _)| of == source).map(|(_, days)| of_days(source, days, text)));
        }
        let newest = figures.iter().max_by_key(|line| line.day).expect("a GPU with lines has figures");
        let look = |source: &str| sources.iter().position(|known| *known == source).unwrap_or(0).min(LOOKS - 1);
        let svg = if first < last { Some(drawn(lines, (first, last), look)?) } else { None };
        let caption = text.figure(&newest.newest, &newest.day.to_string());
        charts.push(Chart { gpu: shown(gpu), caption, svg, figures });
    }
    Ok(charts)
}

fn of_days(source: &str, days: &std::collections::BTreeMap<NaiveDate, (f64, usize)>, text: &Text) -> Figures {
    let usd = || days.values().map(|(usd, _)| *usd);
    let (day, (newest, providers)) = days.last_key_value().expect("a line has a day");
    Figures {
        source: name(source, text),
        newest: dollars(*newest),
        day: *day,
        providers: count(*providers),
        lowest: dollars(usd().fold(f64::INFINITY, f64::min)),
        highest: dollars(usd().fold(f64::NEG_INFINITY, f64::max)),
        first_day: *days.keys().next().expect("a line has a day"),
        days: count(days.len()),
    }
}

/// The picture, with classes in the place of colours.
fn drawn(lines: &Index, (first, last): (NaiveDate, NaiveDate), look: impl Fn(&str) -> usize) -> Result<String, ChartError> {
    let svg = plotted(lines, (first, last), look).map_err(ChartError::Draw)?;
    with_classes(&svg)
}

fn plotted(
    lines: &Index,
    (first, last): (NaiveDate, NaiveDate),
    look: impl Fn(&str) -> usize,
) -> Result<String, Box<dyn std::error::Error>> {
    let usd = || lines.iter().flat_map(|(_, days)| days.values().map(|(usd, _)| *usd));
    let (low, high) = (usd().fold(f64::INFINITY, f64::min), usd().fold(f64::NEG_INFINITY, f64::max));
    let room = ((high * LEAST_SPAN - (high - low)) / 2.0).max((high - low) * 0.06);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let place = |day: NaiveDate| (day - first).num_days();
        // A little room at both sides, so that no dot is cut.
        let edge = place(last).div_euclid(40) + 1;
        let mut chart = ChartBuilder::on(&root)
            .margin_top(16)
            .margin_right(28)
            .x_label_area_size(48)
            .y_label_area_size(92)
            .build_cartesian_2d(-edge..place(last) + edge, (low - room)..(high + room))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", LETTERS).into_font().color(&INK))
            .x_labels(3)
            .y_labels(6)
            .x_label_formatter(&|days| (first + Duration::days(*days)).to_string())
            .y_label_formatter(&|usd| format!("{usd:.2}"))
            .draw()?;
        for (source, days) in lines {
            let colour = of_line(look(source));
            for run in runs(days) {
                let points: Vec<(i64, f64)> = run.into_iter().map(|(day, usd)| (place(day), usd)).collect();
                if let [alone] = points[..] {
                    chart.draw_series([Circle::new(alone, 7, colour.filled())])?;
                } else {
                    chart.draw_series(LineSeries::new(points, colour.stroke_width(4)))?;
                }
            }
        }
        root.present()?;
    }
    Ok(svg)
}

/// Days that follow each other without a gap.
fn runs(days: &std::collections::BTreeMap<NaiveDate, (f64, usize)>) -> Vec<Vec<(NaiveDate, f64)>> {
    let mut runs: Vec<Vec<(NaiveDate, f64)>> = Vec::new();
    for (day, (usd, _)) in days {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|(before, _)| before.succ_opt() == Some(*day)) => run.push((*day, *usd)),
            _ => runs.push(vec![(*day, *usd)]),
        }
    }
    runs
}

/// Every colour as the class of what it stands for, and nothing that the page's style says anyway.
fn with_classes(svg: &str) -> Result<String, ChartError> {
    let mut looks = vec![(INK, "ink".to_owned()), (GRID, "grid".to_owned())];
    looks.extend((0..LOOKS).map(|look| (of_line(look), format!("line{look}"))));
    let (width, height) = SIZE;
    let head = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
    );
    let body = svg.strip_prefix(&head).and_then(|rest| rest.trim_end().strip_suffix("</svg>"));
    let mut body = body.ok_or_else(|| ChartError::Colour("the head of the picture".to_owned()))?.to_owned();
    for (colour, class) in looks {
        let colour = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        body = body.replace(&format!(" fill=\"{colour}\" stroke=\"none\""), &format!(" class=\"{class} solid\""));
        body = body.replace(&format!(" stroke=\"none\" fill=\"{colour}\""), &format!(" class=\"{class} solid\""));
        body = body.replace(&format!(" stroke=\"{colour}\""), &format!(" class=\"{class}\""));
        body = body.replace(&format!(" fill=\"{colour}\""), &format!(" class=\"{class} solid\""));
    }
    for said_by_the_style in
        [" opacity=\"1\"", " font-family=\"sans-serif\"", " fill=\"none\"", " stroke-width=\"1\"", " stroke-width=\"4\""]
    {
        body = body.replace(said_by_the_style, "");
    }
    body = body.replace(">\n", ">").replace(" \"/>", "\"/>").replace('\n', "");
    if let Some(at) = body.find("=\"#") {
        return Err(ChartError::Colour(body[at + 2..].chars().take(7).collect()));
    }
    Ok(format!("<svg viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">{body}</svg>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(lines: &[(&str, &[(&str, f64)])]) -> Index {
        let day = |(day, usd): &(&str, f64)| (day.parse().expect("a day"), (*usd, 2));
        lines.iter().map(|(source, days)| ((*source).to_owned(), days.iter().map(day).collect())).collect()
    }

    fn text() -> &'static Text {
        super::super::text::Lang::En.text()
    }

    #[test]
    fn a_gap_is_never_a_line_and_what_stands_alone_is_a_dot() {
        let own: &[(&str, f64)] =
            &[("2026-03-01", 1.0), ("2026-03-02", 2.0), ("2026-03-05", 4.0), ("2026-03-08", 3.0), ("2026-03-09", 5.0)];
        let lines =
            index(&[("collected", own), ("import-kept", &[("2026-03-01", 2.5), ("2026-03-02", 2.5), ("2026-03-03", 2.5)])]);
        let all = [("H100 <b>".to_owned(), lines)];
        let charts = charts(&all, text()).expect("it draws");
        let svg = charts[0].svg.as_deref().expect("there are two days");
        let lengths = |class: &str| -> Vec<usize> {
            svg.split("<polyline")
                .skip(1)
                .filter(|part| part.contains(&format!("class=\"{class}\"")))
                .map(|part| part.matches(',').count())
                .collect()
        };
        assert_eq!((lengths("line0"), lengths("line1")), (vec![2, 2], vec![3]), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
        assert_eq!(charts[0].figures.iter().map(|line| line.newest.as_str()).collect::<Vec<_>>(), ["5.0000", "2.5000"]);
        assert_eq!(legends(&all, text()).len(), 2);
    }

    #[test]
    fn a_chart_has_no_colour_of_its_own() {
        let many: Vec<String> = (0..8).map(|source| format!("import-{source}")).collect();
        let days: &[(&str, f64)] = &[("2026-03-01", 1.0), ("2026-03-02", 2.0), ("2026-03-09", 2.0)];
        let lines = index(&many.iter().map(|name| (name.as_str(), days)).collect::<Vec<_>>());
        let charts = charts(&[("x".to_owned(), lines)], text()).expect("it draws");
        let svg = charts[0].svg.as_deref().expect("there are several days");
        assert!(!svg.contains('#') && !svg.contains("rgb") && !svg.contains("style="), "{svg}");
        assert!(
            svg.contains("class=\"line4\"") && svg.contains("class=\"ink solid\"") && svg.contains("class=\"grid\""),
            "{svg}"
        );
        let foreign = format!("{}<rect fill=\"#FF0000\"/></svg>", svg_head());
        assert!(matches!(with_classes(&foreign), Err(ChartError::Colour(colour)) if colour == "#FF0000"));
    }

    fn svg_head() -> String {
        let (width, height) = SIZE;
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
        )
    }

    #[test]
    fn one_day_is_no_chart() {
        let charts = charts(&[("x".to_owned(), index(&[("collected", &[("2026-03-01", 1.0)])]))], text()).expect("it draws");
        assert!(charts[0].svg.is_none() && charts[0].figures.len() == 1);
    }
}
