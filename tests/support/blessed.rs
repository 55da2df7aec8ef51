//! Generated files: compared with what the program says, or written where `GPULEDGER_BLESS=1` is in the environment.

use std::fs;
use std::path::Path;

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a generated text with a file, or writes it.
pub fn hold(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("GPULEDGER_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("files stand in folders")).expect("the folder can be made");
        fs::write(&path, text).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(
        found, text,
        "{file} is not what the program says; run the test once with GPULEDGER_BLESS=1 and read the difference"
    );
}
