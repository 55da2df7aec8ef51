//! The rules, by what they look at. Each is one small function that is given rows or counts and gives findings.
//!
//! A rule of one row, or of rows beside each other, may hold rows back. A rule that looks at earlier nights may only note, or
//! refuse a scope or provider: the rows of a night never depend on another night.

pub mod column;
pub mod count;
pub mod moves;
pub mod order;
pub mod provider;
pub mod row;
pub mod same;
