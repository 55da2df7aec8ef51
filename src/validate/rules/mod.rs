//! The rules, by what they look at. Each is one small function that is given rows or counts and gives findings.
//!
//! A rule of one row, or of rows beside each other, may hold rows back. A rule that looks at earlier nights may only note, or
//! refuse a scope or provider: the rows of a night never depend on another night.

/// A whole column: a page whose columns moved.
pub mod column;
/// How much there is, against the last complete night.
pub mod count;
/// How prices moved since the last complete night.
pub mod moves;
/// Ways to buy one machine, in the order of their prices.
pub mod order;
/// One provider as a whole.
pub mod provider;
/// One row by itself.
pub mod row;
/// Rows of one offer or one machine against each other.
pub mod same;
