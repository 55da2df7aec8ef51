//! An explanation in lines for people. What a page says is shown harmless, and what was printed stands between ⟦ and ⟧.

use std::fmt::Write as _;

use super::bytes::{Seen, SeenPiece};
use super::{Explanation, Proof, State};
use crate::harmless::{line, lines};

/// What stands around what was printed.
const MARKS: [char; 2] = ['⟦', '⟧'];

/// The explanation as text.
#[must_use]
pub fn text(explained: &Explanation) -> String {
    let cell = |name: &str| explained.row.get(name).and_then(|value| value.as_str()).map_or_else(|| "·".to_owned(), line);
    let mut text = format!("offer {} of snapshot {}", cell("offer_id"), explained.snapshot_id);
    if let Some(corrected) = &explained.corrects {
        let _ = write!(text, ", which corrects {corrected}");
    }
    let machine = if explained.row.contains_key("instance_type") { cell("instance_type") } else { cell("offer_label") };
    let _ = writeln!(
        text,
        "\n{} · {machine} · {} × {} · region {} · {} · {}",
        cell("provider"),
        cell("gpu_count"),
        cell("gpu_model"),
        cell("region"),
        cell("os"),
        cell("pricing_model"),
    );
    proof(&mut text, &explained.proof);
    work(&mut text, explained);
    let _ = writeln!(text, "\nnot printed beside the price");
    for source in &explained.sources {
        let _ = writeln!(text, "  {}: {} · from {}", line(&source.fields), line(&source.values), line(&source.from));
    }
    text
}

fn proof(text: &mut String, proof: &Proof) {
    let _ = writeln!(text, "\nread from  {}", line(&proof.source_url));
    let _ = write!(text, "observed   {}", proof.observed_at);
    if let Some(receipt) = &proof.receipt {
        let status = receipt.http_status.map(|status| format!(", HTTP status {status}"));
        let read = receipt.read_at.map(|at| format!(", published then and read on {at}"));
        let since = receipt.unchanged_since.map(|at| format!(", unchanged since {at}"));
        let _ = write!(text, "{}", [status, read, since].into_iter().flatten().collect::<String>());
    }
    let _ = writeln!(text, "\nsha256     {}", line(&proof.raw_sha256));
    let words = match &proof.state {
        State::Verified => "verified: the archived bytes have this hash".to_owned(),
        State::Damaged { reason } => format!("DAMAGED: the archived bytes do not have this hash: {}", line(reason)),
        State::Pruned { at } => format!("PRUNED on {}: the bytes were removed by `gpuledger archive prune`", at.date_naive()),
        State::Missing => "MISSING: the archive does not have these bytes".to_owned(),
    };
    let _ = writeln!(text, "           {words}");
    if proof.receipt.is_none() {
        let _ = writeln!(text, "           NO RECEIPT: the night's receipts do not name this answer");
    }
    if let Some(whole) = &proof.whole {
        let _ = writeln!(
            text,
            "           of a bulk file the lines kept by sieve {}; the whole had {} bytes and sha256 {}",
            whole.sieve, whole.bytes, whole.sha256
        );
    }
    let _ = writeln!(text, "place      {}\nprinted    {}", line(&proof.raw_place), line(&proof.published_text));
    for seen in &proof.spots {
        spot(text, seen);
    }
}

fn spot(text: &mut String, seen: &Seen) {
    let _ = writeln!(text, "\n{}: {} of page {}", line(&seen.gives), line(&seen.at), line(&seen.page));
    if seen.pieces.is_empty() {
        let _ = writeln!(text, "  NOT FOUND: the page has no such place");
    } else if !seen.is_printed_there {
        let _ = writeln!(text, "  NOT THERE: what was printed does not stand in these bytes");
    }
    for piece in &seen.pieces {
        let at = piece.starts_at.map_or_else(|| "unpacked from the page".to_owned(), |at| format!("from byte {at}"));
        let _ = writeln!(text, "  {}, {at}, {} bytes", piece.is, piece.bytes);
        for shown in marked(piece).lines() {
            let _ = writeln!(text, "  │ {shown}");
        }
    }
}

/// The piece with marks, and with what was left out said.
fn marked(piece: &SeenPiece) -> String {
    let mut text = String::new();
    if piece.left_out.0 > 0 {
        let _ = writeln!(text, "… {} bytes left out", piece.left_out.0);
    }
    let mut from = 0;
    for (start, end) in &piece.marked {
        let _ = write!(text, "{}{}{}{}", lines(&piece.text[from..*start]), MARKS[0], lines(&piece.text[*start..*end]), MARKS[1]);
        from = *end;
    }
    text.push_str(&lines(&piece.text[from..]));
    if piece.left_out.1 > 0 {
        let _ = write!(text, "\n… {} bytes left out", piece.left_out.1);
    }
    text
}

fn work(text: &mut String, explained: &Explanation) {
    let work = &explained.work;
    let _ = writeln!(text, "\nfrom what was printed to USD per GPU-hour");
    let width = work.steps.iter().map(|step| step.step.chars().count()).max().unwrap_or(0);
    for step in &work.steps {
        let exactly = if step.exactly == step.gives { String::new() } else { format!("  = {}", step.exactly) };
        let _ = writeln!(text, "  {:width$}  {} {}{exactly}", step.step, step.gives, step.unit);
    }
    for rate in &work.rates {
        let _ = writeln!(
            text,
            "  rate of {}: 1 EUR = {} {}, published by {} in {} at {}, read {}, sha256 {}",
            rate.rate_date,
            rate.units_per_eur,
            rate.currency_code,
            rate.rate_source,
            line(&rate.source_url),
            line(&rate.raw_place),
            rate.observed_at,
            rate.raw_sha256
        );
    }
    if let Some(note) = &work.note {
        let _ = writeln!(text, "  {}", line(note));
    }
    for check in &work.checks {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (stored, worked_out) = (value(&check.stored), value(&check.worked_out));
        let _ = if check.is_equal {
            writeln!(text, "  {}: {stored} is stored, and equals what is worked out", check.column)
        } else {
            writeln!(text, "  WRONG: {}: {stored} is stored, and {worked_out} is worked out", check.column)
        };
    }
    if work.checks.is_empty() {
        let _ = writeln!(text, "  WRONG: nothing could be worked out");
    }
}
