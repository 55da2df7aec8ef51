//! What the names of files say about the order of the pages in them.
//!
//! In: file names, and the first rows of the pages that state one. Out: whether a page without a start may be the one
//! that follows. Never orders pages: their content does.

use std::collections::HashMap;

use super::pages::numbered;

/// A page from a file: its index, its path, and its first row and the row after its last one.
type File<'a> = (usize, &'a str, Option<(usize, usize)>);

/// Pages from files that are numbered under one stem.
struct Series {
    /// Numbers by page.
    numbers: HashMap<usize, u64>,
    /// Whether the numbers run without a gap, so that none is missing between two of them.
    is_unbroken: bool,
    /// Whether each page that states its first row has that row for its number.
    is_by_rows: bool,
    /// Whether a page that states its first row has the number after or before that of the page it follows, as far as
    /// there are two such pages. Other numbers count something else than pages.
    counts_pages: bool,
}

/// The names of all pages from files.
pub(super) struct Names<'a> {
    stems: HashMap<usize, &'a str>,
    series: HashMap<&'a str, Series>,
}

impl<'a> Names<'a> {
    pub fn of(files: &[File<'a>]) -> Self {
        let (mut stems, mut by_stem) = (HashMap::new(), HashMap::<&str, Vec<(File<'a>, u64)>>::new());
        for file in files {
            if let Some((stem, number)) = numbered(file.1.strip_suffix(".json").unwrap_or(file.1)) {
                stems.insert(file.0, stem);
                by_stem.entry(stem).or_default().push((*file, number));
            }
        }
        Self { stems, series: by_stem.into_iter().map(|(stem, files)| (stem, Series::of(&files))).collect() }
    }

    /// Whether the names let one page follow another that starts at the row `skip`.
    ///
    /// Names of different kinds say nothing. Numbers without a gap leave no room for a missing page, whatever their
    /// order. With a gap, the next page has the next number, or that of its first row; numbers that count neither say
    /// nothing.
    pub fn let_follow(&self, from: usize, to: usize, skip: usize) -> bool {
        let (Some(stem), Some(to_stem)) = (self.stems.get(&from), self.stems.get(&to)) else { return true };
        let Some(series) = self.series.get(stem).filter(|_| stem == to_stem) else { return true };
        let (from, to) = (series.numbers[&from], series.numbers[&to]);
        let is_its_row = usize::try_from(to).is_ok_and(|to| to == skip);
        series.is_unbroken || is_its_row || from.checked_add(1) == Some(to) || !(series.is_by_rows || series.counts_pages)
    }
}

impl Series {
    fn of(files: &[(File<'_>, u64)]) -> Self {
        let mut sorted: Vec<u64> = files.iter().map(|(_, number)| *number).collect();
        sorted.sort_unstable();
        let by_start: HashMap<usize, u64> =
            files.iter().filter_map(|((_, _, rows), number)| Some(((*rows)?.0, *number))).collect();
        let follows = |end: usize, number: u64| by_start.get(&end).map(|next| next.abs_diff(number) == 1);
        let steps: Vec<bool> = files.iter().filter_map(|((_, _, rows), number)| follows((*rows)?.1, *number)).collect();
        Self {
            is_unbroken: sorted.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])),
            is_by_rows: by_start.iter().all(|(start, number)| u64::try_from(*start) == Ok(*number)),
            counts_pages: steps.iter().all(|is_step| *is_step),
            numbers: files.iter().map(|((page, ..), number)| (*page, *number)).collect(),
        }
    }
}
