//! A table as a person reads it: header cells and rows of cells, whatever elements it is made of.
//!
//! In: the elements that are its rows. Out: cells found by what their header says. Never is a column taken by its position:
//! pages add, drop and swap columns. Rows and cells that nobody sees are not read.

use scraper::{ElementRef, Html};

use crate::contract::{Page, Place, ScrapeError, SkipReason};
use crate::spot::Piece;
use crate::{cut, html};

/// A table with one row of headers.
#[derive(Debug, Clone)]
pub struct Grid {
    page: String,
    at: String,
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    grid: &'a Grid,
    index: usize,
}

impl Grid {
    /// Reads rows, the first of which has the headers. `at` names the table for error messages and places.
    ///
    /// # Errors
    /// When there is no row below the headers, or two headers say the same.
    pub fn of(page: &Page, at: &str, rows: &[ElementRef<'_>], cell: &'static str) -> Result<Self, ScrapeError> {
        let cell = html::selector(cell);
        let texts = |row: &ElementRef<'_>| -> Vec<String> {
            row.select(&cell).filter(|cell| html::is_seen(*cell)).map(html::visible_text).collect()
        };
        let mut rows = rows.iter().filter(|row| html::is_seen(**row)).map(texts);
        let nothing = || ScrapeError::NothingFound { page: page.name.clone(), at: at.to_owned() };
        let headers = rows.next().ok_or_else(nothing)?;
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return Err(nothing());
        }
        let grid = Self { page: page.name.clone(), at: at.to_owned(), headers, rows };
        let is_twice = |(at, header): (usize, &String)| !header.is_empty() && grid.headers[..at].contains(header);
        match grid.headers.iter().enumerate().find(|header| is_twice(*header)) {
            Some((_, header)) => Err(grid.changed("each header once", format!("`{header}` twice"))),
            None => Ok(grid),
        }
    }

    /// The headers, in page order.
    #[must_use]
    pub fn headers(&self) -> &[String] {
        &self.headers
    }

    /// The column whose header is this.
    ///
    /// # Errors
    /// When there is none.
    pub fn column(&self, header: &str) -> Result<usize, ScrapeError> {
        self.optional(header).ok_or_else(|| self.changed(&format!("a column `{header}`"), self.headers.join("`, `")))
    }

    /// The column whose header is this; `None` when there is none.
    #[must_use]
    pub fn optional(&self, header: &str) -> Option<usize> {
        self.headers.iter().position(|found| found == header)
    }

    /// The rows below the headers.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.rows.len()).map(|index| Row { grid: self, index })
    }

    fn changed(&self, expected: &str, found: String) -> ScrapeError {
        ScrapeError::ShapeChanged {
            page: self.page.clone(),
            at: format!("{}, header", self.at),
            expected: expected.to_owned(),
            found: format!("`{found}`"),
        }
    }
}

impl<'a> Row<'a> {
    /// Where the row stands, and which of its columns. Rows are counted from one.
    #[must_use]
    pub fn place(&self, column: usize) -> Place {
        let header = self.grid.headers.get(column).map_or("", String::as_str);
        Place { page: self.grid.page.clone(), at: format!("{}, row {}, `{header}`", self.grid.at, self.index + 1) }
    }

    /// The first cell: what the row calls itself.
    #[must_use]
    pub fn label(&self) -> &'a str {
        self.grid.rows[self.index].first().map_or("", String::as_str)
    }

    /// The text of a cell.
    ///
    /// # Errors
    /// When the row does not have a cell for each header, so that nobody knows which is which.
    pub fn cell(&self, column: usize) -> Result<&'a str, SkipReason> {
        let cells = &self.grid.rows[self.index];
        if cells.len() != self.grid.headers.len() {
            let (cells, headers) = (cells.len(), self.grid.headers.len());
            return Err(SkipReason::Contradiction(format!("{cells} cells under {headers} headers")));
        }
        Ok(&cells[column])
    }
}

/// The bytes of the row that a place names, and of its headers. `tables` are those of the page, each with the name that its
/// places begin with.
#[must_use]
pub fn pieces(page: &Page, document: &Html, tables: &[(String, Vec<ElementRef<'_>>)], at: &str) -> Option<Vec<Piece>> {
    let text = page.text().ok()?;
    tables.iter().find_map(|(name, rows)| {
        let number: usize = at.strip_prefix(name.as_str())?.strip_prefix(", row ")?.split(',').next()?.parse().ok()?;
        let mut seen = rows.iter().filter(|row| html::is_seen(**row));
        let (headings, row) = (*seen.next()?, *seen.nth(number.checked_sub(1)?)?);
        Some(cut::rows(text, document, Some(headings), row))
    })
}

/// Whether a cell says with a dash, or with nothing, that the thing is not to be had this way.
#[must_use]
pub fn is_blank(cell: &str) -> bool {
    cell.chars().all(|letter| matches!(letter, '-' | '–' | '—' | '−') || letter.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    fn grid(html: &str) -> Result<Grid, ScrapeError> {
        let page = recordings::newest("lambda").expect("a recording").pages[0].clone();
        let document = Html::parse_document(html);
        let rows: Vec<_> = document.select(&html::selector("tr")).collect();
        Grid::of(&page, "table", &rows, "th, td")
    }

    #[test]
    fn cells_are_found_by_header_and_a_hidden_copy_is_not_read() {
        let text = "<table><tr><th>GPU</th><th hidden>Old</th><th>Price</th></tr><tr><td>A</td><td hidden>1</td><td>2</td></tr>\
                    <tr style='display:none'><td>A</td><td>3</td><td>4</td></tr><tr><td>B</td></tr></table>";
        let grid = grid(text).expect("a table");
        let price = grid.column("Price").expect("the column");
        let cells: Vec<_> = grid.rows().map(|row| (row.label(), row.cell(price).ok())).collect();
        assert_eq!(cells, [("A", Some("2")), ("B", None)]);
        assert_eq!(grid.rows().next().map(|row| row.place(price).at), Some("table, row 1, `Price`".to_owned()));
        assert!(grid.column("Old").is_err());
    }

    #[test]
    fn a_table_without_rows_or_with_two_like_headers_is_refused() {
        assert!(matches!(grid("<table><tr><th>GPU</th></tr></table>"), Err(ScrapeError::NothingFound { .. })));
        let twice = grid("<table><tr><th>Price</th><th>Price</th></tr><tr><td>1</td><td>2</td></tr></table>");
        assert!(matches!(twice, Err(ScrapeError::ShapeChanged { .. })));
    }

    #[test]
    fn dashes_of_any_length_are_blank() {
        assert!(["", "-", "––", " — "].iter().all(|cell| is_blank(cell)));
        assert!(!is_blank("$1 - $2"));
    }
}
