//! Completions for shells, and the pages of the manual: both follow from the command line's own definition.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::{Cli, Completions, Man};
use crate::exit::Exit;
use crate::report::Failed;

/// What makes a shell complete this program's verbs and options.
#[must_use]
pub fn completions(args: &Completions) -> String {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gpuledger", &mut script);
    String::from_utf8(script).expect("a script is text")
}

/// The first page of the manual, or the paths of the pages that were written.
///
/// # Errors
/// When the folder cannot be written.
pub fn man(args: &Man) -> Result<String, Failed> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).expect("there is room in memory");
        return Ok(String::from_utf8(page).expect("a page is text"));
    };
    let unwritten = |error: std::io::Error| {
        Failed::new(Exit::Refused, &format!("write the manual into {}", folder.display()), &error)
            .with_help("name a folder that this user may write to")
    };
    std::fs::create_dir_all(folder).map_err(unwritten)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(unwritten)?;
    pages(folder).map_err(unwritten)
}

/// The pages in a folder, one a line; `man` finds them there by their path.
fn pages(folder: &Path) -> std::io::Result<String> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?.iter().map(std::fs::DirEntry::path).collect();
    paths.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("gpuledger") && name.ends_with(".1")
    });
    paths.sort();
    Ok(paths.iter().fold(String::new(), |mut text, path| {
        let _ = writeln!(text, "{}", path.display());
        text
    }))
}
