//! Lists every recording, so that the program carries them and a new one needs no line of code.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let mut code = String::from("&[\n");
    for provider in folders(Path::new(&root))? {
        let fixtures = Path::new(&root).join(&provider).join("fixtures");
        if !fixtures.is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", fixtures.display());
        for case in folders(&fixtures)? {
            let folder = fixtures.join(&case);
            println!("cargo::rerun-if-changed={}", folder.display());
            let _ = writeln!(code, "RawRecording {{ provider: {provider:?}, case: {case:?}, files: &[");
            for file in names(&folder)? {
                println!("cargo::rerun-if-changed={}", folder.join(&file).display());
                let _ = writeln!(code, "({file:?}, include_bytes!({:?})),", folder.join(&file));
            }
            code.push_str("] },\n");
        }
    }
    code.push(']');
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={root}");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("recordings.rs"), code)
}

fn folders(root: &Path) -> io::Result<Vec<String>> {
    Ok(names(root)?.into_iter().filter(|name| root.join(name).is_dir() && !name.starts_with(['_', '.'])).collect())
}

fn names(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
