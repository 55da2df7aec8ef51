//! An answer in, its listings out, and whether they are all there is.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::contract::{Page, PricingModel, ScrapeError};
use crate::json::{self, Value};

/// What a page is the answer to. The name of the page says it, because the answer does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked<'a> {
    pub(super) model: PricingModel,
    pub(super) part: Part,
    /// The card as the name of the page has it.
    pub(super) card: &'a str,
}

/// Which of the listings were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Without a key: the cheapest.
    Cheapest,
    /// Without a key: the dearest.
    Dearest,
    /// With a key: all.
    All,
}

impl Part {
    const EACH: [Self; 3] = [Self::Cheapest, Self::Dearest, Self::All];

    const fn word(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Dearest => "dearest",
            Self::All => "all",
        }
    }

    /// Most listings of an answer. Without a key it is 64 whatever is asked for; with one it is what we ask for.
    pub(super) const fn listings_max(self) -> usize {
        match self {
            Self::Cheapest | Self::Dearest => 64,
            Self::All => 5_000,
        }
    }
}

const ON_DEMAND: &str = "on-demand";
const BID: &str = "bid";

impl<'a> Asked<'a> {
    /// What a page's name says. A file's name may have more in front.
    fn of(page: &'a Page) -> Result<Self, ScrapeError> {
        for (word, model) in [(ON_DEMAND, PricingModel::OnDemand), (BID, PricingModel::Spot)] {
            for part in Part::EACH {
                if let Some((_, card)) = page.name.split_once(&format!("{word}-{}-", part.word())) {
                    return Ok(Self { model, part, card });
                }
            }
        }
        let expected = "the question, such as `on-demand-cheapest-H100 SXM`, without which nobody knows what is answered";
        Err(ScrapeError::changed(page, "the name of the page", expected, format!("`{}`", page.name)))
    }

    pub(super) fn page_name(&self) -> String {
        let word = if self.model == PricingModel::Spot { BID } else { ON_DEMAND };
        format!("{word}-{}-{}", self.part.word(), self.card)
    }
}

/// A page as the answer to a question.
pub(super) struct Answer<'a> {
    pub(super) page: &'a Page,
    pub(super) asked: Asked<'a>,
    pub(super) rows: Vec<Value<'a>>,
}

impl<'a> Answer<'a> {
    /// The listings of a page.
    pub(super) fn of(page: &'a Page) -> Result<Self, ScrapeError> {
        let asked = Asked::of(page)?;
        let document = json::document(page)?;
        let has_failed = document.optional("success").is_some_and(|success| success.characters() != "true");
        if has_failed || document.has("error") {
            let text = json::start_of(page.text()?);
            return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/".to_owned(), text });
        }
        let offers = document.field("offers")?;
        let rows = offers.list()?;
        if rows.is_empty() {
            return Err(ScrapeError::NothingFound { page: page.name.clone(), at: offers.place().at });
        }
        Ok(Self { page, asked, rows })
    }

    /// Whether there may be more listings than these.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.asked.part.listings_max()
    }

    /// What the answer is ordered by, of each listing by its number.
    fn order(&self) -> Result<BTreeMap<String, Decimal>, ScrapeError> {
        let mut order = BTreeMap::new();
        for row in &self.rows {
            let row = row.object()?;
            order.insert(row.field("id")?.characters().to_owned(), row.decimal("dph_total")?);
        }
        Ok(order)
    }
}

/// Refuses answers beside which there may be listings that nobody has seen.
pub(super) fn are_all_there_is(answers: &[Answer<'_>]) -> Result<(), ScrapeError> {
    let mut questions: BTreeMap<(PricingModel, &str), Vec<&Answer<'_>>> = BTreeMap::new();
    for answer in answers {
        questions.entry((answer.asked.model, answer.asked.card)).or_default().push(answer);
    }
    questions.into_values().try_for_each(|answers| is_all_there_is(&answers))
}

fn is_all_there_is(answers: &[&Answer<'_>]) -> Result<(), ScrapeError> {
    if answers.iter().any(|answer| !answer.is_full()) {
        return Ok(());
    }
    let first = answers[0];
    let missing = |next: String| ScrapeError::PageMissing { page: first.page.name.clone(), at: "/offers".to_owned(), next };
    let of = |part: Part| answers.iter().find(|answer| answer.asked.part == part);
    if let Some(all) = of(Part::All) {
        return Err(missing(format!("the listings after the first {}", all.rows.len())));
    }
    let named = |part: Part| Asked { part, ..first.asked }.page_name();
    let cheapest = of(Part::Cheapest).ok_or_else(|| missing(named(Part::Cheapest)))?;
    let dearest = of(Part::Dearest).ok_or_else(|| missing(named(Part::Dearest)))?;
    let (cheap, dear) = (cheapest.order()?, dearest.order()?);
    if meet(&cheap, &dear) {
        return Ok(());
    }
    let to = cheap.values().max().copied().unwrap_or_default();
    let from = dear.values().min().copied().unwrap_or_default();
    Err(missing(format!("the listings between {to} and {from} dollars")))
}

/// Whether the cheapest and the dearest listings are all listings. They are where some listing is both, and some price of the
/// dearest is below some price of the cheapest: whatever is in neither would have to cost as much as all that is in both. Each
/// has to be what it is called as well, because a server that forgets the order answers the same twice.
fn meet(cheap: &BTreeMap<String, Decimal>, dear: &BTreeMap<String, Decimal>) -> bool {
    let (Some(cheap_to), Some(dear_from)) = (cheap.values().max(), dear.values().min()) else { return false };
    let only_cheap = cheap.iter().filter(|(id, _)| !dear.contains_key(*id)).map(|(_, price)| price);
    let only_dear = dear.iter().filter(|(id, _)| !cheap.contains_key(*id)).map(|(_, price)| price);
    let (mut only_cheap, mut only_dear) = (only_cheap.peekable(), only_dear.peekable());
    let is_two_answers = only_cheap.peek().is_some() && only_dear.peek().is_some();
    let is_in_both = cheap.keys().any(|id| dear.contains_key(id));
    let is_in_order = only_cheap.all(|price| price <= dear_from) && only_dear.all(|price| price >= cheap_to);
    is_two_answers && is_in_both && is_in_order && dear_from < cheap_to
}
