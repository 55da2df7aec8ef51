//! Why a row is skipped, and why a scope is refused. Nothing here mends anything.

/// Why a row is not an offer. The code is stable and countable, the text is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// Deliberately not an offer: counted, not reported.
    #[error("{0}")]
    OutOfScope(&'static str),
    /// A field that every row has is not there.
    #[error("field `{field}` is missing")]
    FieldMissing {
        /// The field's name.
        field: String,
    },
    /// A field holds another kind of value than it always did.
    #[error("field `{field}` should be {expected}, found {found}")]
    FieldUnreadable {
        /// The field's name.
        field: String,
        /// What was expected.
        expected: &'static str,
        /// What stands there, shortened.
        found: String,
    },
    /// The price is not a number.
    #[error("price `{text}` is not a number")]
    PriceUnreadable {
        /// The characters on the page.
        text: String,
    },
    /// There is no price: an empty cell, a null or a dash.
    #[error("no price")]
    PriceMissing,
    /// The price is zero, which is a placeholder and never a price.
    #[error("price is zero, a placeholder")]
    PriceZero,
    /// The page says that the true price is another: a floor such as `from $0.99`, or a price with a footnote mark.
    #[error("`{text}` is no exact price")]
    PriceNotExact {
        /// The characters on the page.
        text: String,
    },
    /// The page asks to talk to somebody.
    #[error("price on request: `{text}`")]
    PriceOnRequest {
        /// The characters on the page.
        text: String,
    },
    /// The page says it cannot be rented now and names no price.
    #[error("sold out, no price")]
    SoldOut,
    /// The machine is not in the provider's hardware table.
    #[error("machine type `{instance_type}` is not in the provider's hardware table")]
    UnknownMachine {
        /// The type as published.
        instance_type: String,
    },
    /// A word that decides what the price means and is not known.
    #[error("unknown {what} `{word}`")]
    UnknownWord {
        /// What the word should have told. `unit`
        what: &'static str,
        /// The word as published.
        word: String,
    },
    /// Two statements of the same row contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A known kind of row whose amounts nobody has decoded yet: kept, and no sign that the page changed.
    #[error("{0}")]
    Undecoded(&'static str),
}

impl SkipReason {
    /// Whether the source itself says that there is no price, or the row is of a kind that is known not to be decoded, so
    /// that nothing was misunderstood.
    #[must_use]
    pub const fn is_stated_by_source(&self) -> bool {
        matches!(
            self,
            Self::OutOfScope(_) | Self::PriceNotExact { .. } | Self::PriceOnRequest { .. } | Self::SoldOut | Self::Undecoded(_)
        )
    }

    /// A stable code for counting. `unknown_word`
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::OutOfScope(_) => "out_of_scope",
            Self::FieldMissing { .. } => "field_missing",
            Self::FieldUnreadable { .. } => "field_unreadable",
            Self::PriceUnreadable { .. } => "price_unreadable",
            Self::PriceMissing => "price_missing",
            Self::PriceZero => "price_zero",
            Self::PriceNotExact { .. } => "price_not_exact",
            Self::PriceOnRequest { .. } => "price_on_request",
            Self::SoldOut => "sold_out",
            Self::UnknownMachine { .. } => "unknown_machine",
            Self::UnknownWord { .. } => "unknown_word",
            Self::Contradiction(_) => "contradiction",
            Self::Undecoded(_) => "undecoded",
        }
    }
}

/// Why a scope is refused, named for what a maintainer does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeError {
    /// The page no longer looks as it did: mend the parser.
    #[error("page `{page}` changed shape at {at}: expected {expected}, found {found}")]
    ShapeChanged {
        /// The page's name.
        page: String,
        /// The place in it: JSON pointer, selector, line.
        at: String,
        /// What was expected there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The page is something else altogether, such as HTML where JSON is due: look at the archived bytes.
    #[error("page `{page}` is not {expected}: {found}")]
    WrongFormat {
        /// The page's name.
        page: String,
        /// The format that was due.
        expected: String,
        /// What came.
        found: String,
    },
    /// The answer says that it is an error: try again later.
    #[error("page `{page}` holds an error at {at}: {text}")]
    ErrorAnswer {
        /// The page's name.
        page: String,
        /// The place in it.
        at: String,
        /// What it says.
        text: String,
    },
    /// The page has the right shape and no rows: a failure, never an empty night.
    #[error("page `{page}` has nothing at {at}")]
    NothingFound {
        /// The page's name.
        page: String,
        /// The place that should hold rows.
        at: String,
    },
    /// A page that belongs to the scope is not among those given.
    #[error("page `{page}` at {at} leads to `{next}`, which is not among the pages")]
    PageMissing {
        /// The page's name.
        page: String,
        /// The place of the link.
        at: String,
        /// Where it leads.
        next: String,
    },
    /// Too many rows were not understood: something about the page is new.
    #[error("{skipped} of {rows} rows were not understood, first `{first}`: {reason}")]
    TooManySkipped {
        /// Rows not understood.
        skipped: usize,
        /// Rows that should have been offers.
        rows: usize,
        /// What the first of them calls itself.
        first: String,
        /// Why it was not understood.
        reason: String,
    },
}

/// Most characters of a page that a refusal repeats in one place: a page may be one word of many megabytes.
const REPEATED_CHARACTERS_MAX: usize = 1_000;

impl ScrapeError {
    /// The same, with what it repeats of the page cut short.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        let texts = match &mut self {
            Self::ShapeChanged { at, expected, found, .. } => vec![at, expected, found],
            Self::WrongFormat { expected, found, .. } => vec![expected, found],
            Self::ErrorAnswer { at, text, .. } => vec![at, text],
            Self::NothingFound { at, .. } => vec![at],
            Self::PageMissing { at, next, .. } => vec![at, next],
            Self::TooManySkipped { first, reason, .. } => vec![first, reason],
        };
        for text in texts {
            if let Some((end, _)) = text.char_indices().nth(REPEATED_CHARACTERS_MAX) {
                text.truncate(end);
                text.push('…');
            }
        }
        self
    }

    /// A stable code for counting. `shape_changed`
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ShapeChanged { .. } => "shape_changed",
            Self::WrongFormat { .. } => "wrong_format",
            Self::ErrorAnswer { .. } => "error_answer",
            Self::NothingFound { .. } => "nothing_found",
            Self::PageMissing { .. } => "page_missing",
            Self::TooManySkipped { .. } => "too_many_skipped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_never_a_page_long() {
        let page = "é".repeat(100_000);
        let changed = ScrapeError::ShapeChanged {
            page: "p".to_owned(),
            at: page.clone(),
            expected: "a card".to_owned(),
            found: page.clone(),
        };
        let skipped = ScrapeError::TooManySkipped { skipped: 1, rows: 1, first: page.clone(), reason: page };
        for error in [changed, skipped] {
            let text = error.shortened().to_string();
            assert!(text.chars().count() < 2 * REPEATED_CHARACTERS_MAX + 100, "{}", text.chars().count());
        }
        let short = ScrapeError::NothingFound { page: "p".to_owned(), at: "/Items".to_owned() };
        assert_eq!(short.clone().shortened(), short);
    }
}
