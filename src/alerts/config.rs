//! The `[alerts]` table of a schedule file.

use serde::Deserialize;

/// Who is told about a night.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alerts {}
