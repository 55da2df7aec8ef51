//! The command line of schedules: types only, no logic.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Printing;

/// Arguments of `schedule check`.
#[derive(Debug, Args)]
pub struct ScheduleCheck {
    /// Schedule files, or a folder of them
    #[arg(default_value = "schedules")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `schedule night`.
#[derive(Debug, Args)]
pub struct ScheduleNight {
    /// The schedule file
    pub file: PathBuf,
    /// Only when a due night was not run yet; ends with 12 when none is
    #[arg(long)]
    pub if_due: bool,
    /// Run nothing, and tell of a last night whose process died; the service's own way to do so
    #[arg(long, hide = true)]
    pub only_tell: bool,
    /// Address or mail that a provider can write to; stands in the User-Agent
    #[arg(long, env = "GPULEDGER_CONTACT")]
    pub contact: Option<String>,
}

/// Arguments of `schedule run`.
#[derive(Debug, Args)]
pub struct ScheduleRun {
    /// Schedule files, or a folder of them
    #[arg(default_value = "schedules")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `schedule status`.
#[derive(Debug, Args)]
pub struct ScheduleStatus {
    /// Schedule files, or a folder of them
    #[arg(default_value = "schedules")]
    pub files: Vec<PathBuf>,
    /// So many past nights of each
    #[arg(short = 'n', long, value_name = "NIGHTS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub count: u32,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
}
