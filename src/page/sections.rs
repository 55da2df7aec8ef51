//! The sections of the page as HTML. Every value in parentheses is escaped, but for the charts, which are drawn here.

use maud::{Markup, PreEscaped, html};

use super::best::{Best, Cheapest};
use super::charts::{Chart, Legend};
use super::moves::{Group, Move};
use super::night::Provider;
use super::offers::Offer;
use super::text::Text;
use super::values::count;
use crate::night::SnapshotId;

/// Whether the numbers of a column stand at the right.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    Left,
    Right,
}

use Set::{Left, Right};

fn head(columns: &[(&str, Set)]) -> Markup {
    html! {
        thead { tr {
            @for (words, set) in columns { th scope="col" class=[(*set == Right).then_some("n")] { (words) } }
        } }
    }
}

/// A name that leads somewhere, where it is known where.
fn named(name: &str, link: Option<&str>) -> Markup {
    html! {
        @if let Some(link) = link { a href=(link) rel="noopener" target="_blank" { (name) } } @else { (name) }
    }
}

/// A text below another, where there is one.
fn small(words: &str) -> Markup {
    html! { @if !words.is_empty() { small { (words) } } }
}

fn section(id: &str, title: &str, body: &Markup) -> Markup {
    let heading = format!("{id}-title");
    html! {
        section id=(id) aria-labelledby=(heading) tabindex="-1" { h2 id=(heading) { (title) } (body) }
    }
}

/// The biggest price changes; `None` where there is no night to compare with.
pub(super) fn changes(groups: Option<&[Group]>, t: &Text) -> Markup {
    let body = match groups {
        None => html! { p { (t.no_night_before) } },
        Some([]) => html! { p { (t.no_changes) } p .soft { (t.changes_note) } },
        Some(groups) => html! { p .soft { (t.changes_note) } @for group in groups { (changes_of(group, t)) } },
    };
    section("changes", t.changes, &body)
}

fn changes_of(group: &Group, t: &Text) -> Markup {
    let columns = [
        (t.change, Right),
        (t.provider, Left),
        (t.offer, Left),
        (t.gpus, Left),
        (t.way, Left),
        (t.before, Right),
        (t.now, Right),
        (t.unit, Left),
        (t.since, Right),
    ];
    html! {
        table .cards {
            caption { (group.caption) " " (small(&group.shown_of)) }
            (head(&columns))
            tbody { @for row in &group.rows { (change(row, t)) } }
        }
    }
}

fn change(row: &Move, t: &Text) -> Markup {
    let percent = if row.percent.is_empty() { "–" } else { &row.percent };
    html! {
        tr {
            td .n .lower[row.is_lower] .higher[!row.is_lower] data-l=(t.change) { (percent) (small(row.remark)) }
            th scope="row" data-l=(t.provider) { (row.provider) }
            td data-l=(t.offer) { (row.offer) (small(&row.region)) }
            td data-l=(t.gpus) { (row.gpus) }
            td data-l=(t.way) { (row.way) }
            td .n data-l=(t.before) { (row.before) }
            td .n data-l=(t.now) { strong { (row.now) } }
            td data-l=(t.unit) { (row.unit) }
            td .n data-l=(t.since) { (row.since) }
        }
    }
}

/// Prices over time. Without a chart of several days there are no legends.
pub(super) fn trend(charts: &[Chart], legends: &[Legend], t: &Text) -> Markup {
    let body = html! {
        @if charts.is_empty() {
            p { (t.no_trend) }
        } @else {
            p .soft { (t.trend_note) }
            @if legends.is_empty() { p { (t.one_day) } } @else { (pictures(charts, legends)) }
            details open[legends.is_empty()] {
                summary { (t.trend_figures) }
                (figures(charts, t))
            }
        }
    };
    section("trend", t.trend, &body)
}

fn pictures(charts: &[Chart], legends: &[Legend]) -> Markup {
    html! {
        ul .legend {
            @for legend in legends {
                @let look = format!("line{}", legend.look);
                li {
                    svg viewBox="0 0 44 12" aria-hidden="true" {
                        path class=(look) d="M2 6H30" {}
                        circle class=(format!("{look} solid")) cx="38" cy="6" r="4" {}
                    }
                    " " (legend.name)
                }
            }
        }
        div .charts {
            @for chart in charts {
                @if let Some(svg) = &chart.svg {
                    figure { figcaption { strong { (chart.gpu) } " " (chart.caption) } (PreEscaped(svg)) }
                }
            }
        }
    }
}

fn figures(charts: &[Chart], t: &Text) -> Markup {
    let columns = [
        (t.gpu, Left),
        (t.source, Left),
        (t.newest, Right),
        (t.newest_day, Right),
        (t.providers_that_day, Right),
        (t.lowest, Right),
        (t.highest, Right),
        (t.first_day, Right),
        (t.days, Right),
    ];
    html! {
        table .cards {
            caption .unseen { (t.trend_figures) }
            (head(&columns))
            tbody {
                @for chart in charts {
                    @for line in &chart.figures {
                        tr {
                            th scope="row" data-l=(t.gpu) { (chart.gpu) }
                            td data-l=(t.source) { (line.source) }
                            td .n .price data-l=(t.newest) { (line.newest) }
                            td .n data-l=(t.newest_day) { (line.day) }
                            td .n data-l=(t.providers_that_day) { (line.providers) }
                            td .n data-l=(t.lowest) { (line.lowest) }
                            td .n data-l=(t.highest) { (line.highest) }
                            td .n data-l=(t.first_day) { (line.first_day) }
                            td .n data-l=(t.days) { (line.days) }
                        }
                    }
                }
            }
        }
    }
}

/// The cheapest of each GPU, and what is left out.
pub(super) fn cheapest(cheapest: &Cheapest, t: &Text) -> Markup {
    let body = html! {
        p .soft { (t.cheapest_note) }
        @if cheapest.gpus.is_empty() {
            p { (t.no_cheapest) }
        } @else {
            table .cards .best {
                caption { (t.cheapest_of) }
                thead { tr {
                    th scope="col" { (t.gpu) }
                    th scope="col" .n { (t.memory) }
                    th scope="col" .n { (t.providers) }
                    @for words in [t.on_demand, t.spot, t.promised] {
                        th scope="col" .n { (words) small { (t.usd_per_gpu_hour) } }
                        th .who scope="col" { (t.provider) }
                    }
                } }
                tbody {
                    @for gpu in &cheapest.gpus {
                        tr {
                            th scope="row" data-l=(t.gpu) { (gpu.name) }
                            td .n data-l=(t.memory) { (gpu.memory) }
                            td .n data-l=(t.providers) { (gpu.providers) }
                            @for (words, best) in gpu.ways(t) { (of_way(words, best.as_ref(), t)) }
                        }
                    }
                }
            }
        }
        @if !cheapest.left_out.is_empty() {
            p .soft { (t.left_out) }
            ul .soft { @for (offers, why) in &cheapest.left_out { li { (count(*offers)) " " (t.why(*why)) } } }
        }
    };
    section("cheapest", t.cheapest, &body)
}

fn of_way(words: &str, best: Option<&Best>, t: &Text) -> Markup {
    let Some(best) = best else { return html! { td .n .price {} td .who {} } };
    let about = [&best.machine, &best.place, &best.terms, &best.remarks, &best.age];
    let about: Vec<&str> = about.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    html! {
        td .n .price data-l=(words) { (best.price) }
        td .who data-l=(t.provider) { (named(&best.provider, best.link.as_deref())) (small(&about.join(" · "))) }
    }
}

/// What the night covers.
pub(super) fn coverage(providers: &[Provider], night: SnapshotId, t: &Text) -> Markup {
    let columns = [
        (t.provider, Left),
        (t.status, Left),
        (t.scopes, Right),
        (t.offers_or_rates, Right),
        (t.held_back, Right),
        (t.not_understood, Right),
        (t.input, Left),
        (t.age, Right),
        (t.reason, Left),
    ];
    let body = html! {
        p .soft { (t.coverage_note) }
        table .cards {
            caption .unseen { (t.coverage) }
            (head(&columns))
            tbody { @for provider in providers { (covered(provider, night, t)) } }
        }
    };
    section("coverage", t.coverage, &body)
}

fn covered(provider: &Provider, night: SnapshotId, t: &Text) -> Markup {
    let class = format!("status {}", provider.status.class());
    html! {
        tr {
            th scope="row" data-l=(t.provider) { (named(&provider.name, provider.link.as_deref())) }
            td data-l=(t.status) { span class=(class) { (t.status_word(provider.status)) } }
            td .n data-l=(t.scopes) { (provider.scopes_complete) "/" (provider.scopes) }
            td .n data-l=(t.offers_or_rates) { (count(provider.rows)) @if provider.is_of_rates { (small(t.rates)) } }
            td .n .zero[provider.held_back == 0] data-l=(t.held_back) { (count(provider.held_back)) }
            td .n .zero[provider.not_understood == 0] data-l=(t.not_understood) { (count(provider.not_understood)) }
            td data-l=(t.input) { (t.input_word(&provider.input)) }
            td .n data-l=(t.age) { (provider.age(t, night)) }
            td .why data-l=(t.reason) {
                @if let Some(reason) = &provider.reason { span lang="en" { (reason) } }
                @if provider.more_missing() > 0 { " " (t.scopes_more(provider.more_missing())) }
            }
        }
    }
}

/// Every offer: the first rows are here, the script has the others.
pub(super) fn offers(first: &[Offer], all: usize, t: &Text) -> Markup {
    let select = |id: &str, words: &str| {
        html! { label { (words) " " select id=(id) { option value="" { (t.any) } } } }
    };
    let body = html! {
        form id="filters" hidden {
            label .wide {
                (t.search) " "
                input id="search" type="search" placeholder=(t.search_hint) autocomplete="off" spellcheck="false";
            }
            (select("filter-gpu", t.gpu))
            (select("filter-provider", t.provider))
            (select("filter-model", t.way))
            label { (t.at_most) " " input id="filter-usd" type="number" min="0" step="any" inputmode="decimal"; }
            label { (t.order) " " select id="order" {} }
            button type="reset" { (t.reset) }
        }
        p id="count" role="status" aria-live="polite" {}
        noscript { p { (t.without_script(first.len(), all)) } }
        table .cards id="table" {
            caption .unseen { (t.offers_caption) }
            thead { tr {
                th scope="col" data-k="gpu" { (t.gpu) }
                th scope="col" .n data-k="count" { (t.gpu_count) }
                th scope="col" .n data-k="memory" { (t.memory) }
                th scope="col" data-k="provider" { (t.provider) }
                th scope="col" data-k="machine" { (t.machine) }
                th scope="col" data-k="region" { (t.region) }
                th scope="col" data-k="way" { (t.way) }
                th scope="col" .n data-k="usd" { (t.usd_per_gpu_hour) }
                th scope="col" .n { (t.published) }
                th scope="col" .n data-k="seen" { (t.seen) }
                th scope="col" { (t.page) }
            } }
            tbody id="rows" { @for row in first { (offer(row, t)) } }
        }
        p .pages id="pages" hidden {
            button type="button" id="earlier" { (t.earlier_rows) }
            " " span id="shown" {} " "
            button type="button" id="later" { (t.later_rows) }
        }
    };
    section("offers", t.offers, &body)
}

fn offer(row: &Offer, t: &Text) -> Markup {
    let seen = row.seen_second();
    html! {
        tr {
            th scope="row" data-l=(t.gpu) { (row.gpu) }
            td .n data-l=(t.gpu_count) { (row.count) }
            td .n data-l=(t.memory) { (row.memory) }
            td data-l=(t.provider) { (row.provider) }
            td data-l=(t.machine) { (row.machine) (small(&row.system_and_remarks())) }
            td data-l=(t.region) { (row.region) }
            td data-l=(t.way) { (row.way) }
            td .n .price data-l=(t.usd_per_gpu_hour) { (row.price()) }
            td .n data-l=(t.published) { (row.amount) (small(&row.unit)) }
            td .n data-l=(t.seen) { time datetime=(seen) title=(seen) { (row.seen) } }
            td data-l=(t.page) {
                @if let Some(link) = &row.link {
                    a href=(link) rel="noopener" target="_blank" aria-label=(t.source_of(&row.provider, &row.machine)) { (t.page) }
                }
            }
        }
    }
}
