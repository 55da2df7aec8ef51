//! A printed label in, the words it is made of out.
//!
//! Every piece of the label ends in exactly one place: form, memory, slice, count, a word that says nothing, or the rest.
//! Never is a piece thrown away because it is unknown.

use rust_decimal::Decimal;

/// Words of makers and product lines: with or without them it is the same card.
const MAKERS: &str = "nvidia amd intel geforce tesla instinct radeon grid aws google huawei habana qualcomm tenstorrent";
/// Words that tell neither model nor form nor memory. A link is no form: both SXM boards and bridged PCIe pairs have one.
const SILENT: &str = "gpu gpus hbm2 hbm2e hbm3 hbm3e gddr5 gddr6 gddr6x gddr7 nvlink nvl72 ib infiniband tensor core grace superchip \
                      ampere hopper blackwell generation edition";

/// What narrows a name.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Known {
    pub(super) form: Option<&'static str>,
    pub(super) memory: Option<Decimal>,
}

impl Known {
    pub(super) fn or(self, other: Self) -> Self {
        Self { form: self.form.or(other.form), memory: self.memory.or(other.memory) }
    }
}

/// A label cut into what it says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parts {
    /// The whole label without makers: what the tables are searched by. `a100 80gbsxm4`
    pub(super) key: String,
    /// What is left when all other words are accounted for. `a100`
    pub(super) word: String,
    pub(super) known: Known,
    /// MIG, vGPU, `1/8`, `-4Q`.
    pub(super) is_slice: bool,
    pub(super) slice_memory: Option<Decimal>,
}

impl Parts {
    pub(super) fn of(label: &str) -> Self {
        let text = label.chars().filter_map(plain).collect::<String>().to_lowercase();
        let words: Vec<&str> = text.split_whitespace().filter(|word| !is_in(MAKERS, word)).collect();
        let mut parts = Self { key: joined(&words), ..Self::default() };
        let mut pieces = Vec::new();
        for (at, word) in words.into_iter().enumerate() {
            let profile = word.strip_suffix(['q', 'c', 'b', 'a']).filter(|gb| at > 0 && is_number(gb, 2));
            let named = word.split_once("g.").and_then(|(_, gb)| gb.strip_suffix("gb"));
            let share = word.split_once('/').filter(|(_, of)| of.starts_with(|first: char| first.is_ascii_digit()));
            let is_slicing = word == "mig" || word.starts_with("vgpu");
            parts.is_slice |= is_slicing || profile.or(named).is_some() || share.is_some();
            match (profile.or(named), share) {
                (Some(gb), _) => parts.slice_memory = gb.parse().ok(),
                (None, Some((card, _))) => cut(if is_number(card, 3) { "" } else { card }, &mut pieces),
                (None, None) if is_slicing => pieces.push("mig"),
                (None, None) => word.split(['.', '/']).for_each(|word| cut(word, &mut pieces)),
            }
        }
        let (mut rest, mut is_after_mig) = (Vec::new(), false);
        let mut pieces = pieces.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let unit = pieces.next_if(|unit| is_number(piece, 4) && matches!(*unit, "g" | "gb" | "gib" | "x"));
            let is_count = unit == Some("x") || (!rest.is_empty() && piece.strip_prefix('x').is_some_and(|n| is_number(n, 2)));
            let (form, memory) = (form_word(piece), unit.and_then(|_| piece.parse().ok()));
            let old = parts.known;
            // A second form or memory that is another stays in the rest, where it makes the label unknown.
            match (form, memory) {
                _ if is_count || is_in(SILENT, piece) => {}
                _ if piece == "mig" => is_after_mig = true,
                (Some(form), _) if old.form.is_none_or(|old| is_same_form(old, form)) => {
                    parts.known.form = old.form.filter(|old| old.len() > form.len()).or(Some(form));
                }
                (_, Some(_)) if is_after_mig => parts.slice_memory = parts.slice_memory.or(memory),
                (_, Some(_)) if old.memory.is_none() || old.memory == memory => parts.known.memory = memory,
                _ => rest.push(piece),
            }
        }
        parts.word = joined(&rest);
        parts
    }
}

/// A character as a label's plain text has it: wide forms as ASCII, marks and footnotes gone, separators as blanks.
fn plain(letter: char) -> Option<char> {
    match letter {
        '™' | '®' | '©' | '†' | '‡' | '¹' | '²' | '³' | '⁰'..='⁹' => None,
        '×' => Some('x'),
        '！'..='～' => char::from_u32(u32::from(letter) - 0xFEE0).and_then(plain),
        '.' | '/' => Some(letter),
        _ => Some(if letter.is_alphanumeric() { letter } else { ' ' }),
    }
}

/// A word in pieces, without a count in front (`8xa100`), cut wherever a digit goes over into a letter: `rtx6000ada` is
/// `rtx6000`, `ada`.
fn cut<'w>(word: &'w str, pieces: &mut Vec<&'w str>) {
    let word = word.split_once('x').filter(|(count, _)| is_number(count, 3)).map_or(word, |(_, rest)| rest);
    let mut from = 0;
    for (at, pair) in word.as_bytes().windows(2).enumerate() {
        if pair[0].is_ascii_digit() && !pair[1].is_ascii_digit() && !is_in(SILENT, word) {
            pieces.push(&word[from..=at]);
            from = at + 1;
        }
    }
    pieces.extend(Some(&word[from..]).filter(|last| !last.is_empty()));
}

/// Words written as one, so that `RTX 6000Ada` is `RTX6000 Ada`; two numbers stay apart, so that no A10 becomes an A100.
fn joined(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        let meet = [text.chars().next_back(), word.chars().next()];
        if meet.into_iter().all(|letter| letter.is_some_and(|letter| letter.is_ascii_digit())) {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// A form word in its plain spelling: `sxm5`, `pcie`. HGX is the name of the SXM boards.
pub(super) fn form_word(word: &str) -> Option<&'static str> {
    let word = word.trim().to_lowercase().replace("hgx", "sxm");
    ["sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "oam"].into_iter().find(|form| *form == word)
}

/// "SXM" without a number is any of them.
pub(super) fn is_same_form(one: &str, other: &str) -> bool {
    one == other || ([one, other].contains(&"sxm") && one.starts_with("sxm") && other.starts_with("sxm"))
}

fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

fn is_number(text: &str, most_digits: usize) -> bool {
    (1..=most_digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
