//! Words about a night to people who did not watch it.

pub mod config;
