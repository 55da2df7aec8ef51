# Commands of this house; `just` alone lists them.

default:
    @just --list

# Format, lints and every test
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# Every recording against its expectation
replay:
    cargo test -p gpuledger-scrapers --test replay

# Copy the template of a scraper
new-scraper name:
    cp -r scrapers/_template scrapers/{{name}}
    sed -i 's/template/{{name}}/g' scrapers/{{name}}/manifest.toml
    sed -i 's/Template/\u{{name}}/g' scrapers/{{name}}/mod.rs scrapers/{{name}}/tests.rs
    @echo "now add 'mod {{name}};' and its entry of ALL to scrapers/lib.rs, in order"

# Fetch a provider and store a dated recording beside its parser
record provider:
    cargo run -- record {{provider}} --into scrapers

# The whole pipeline on the recordings
night:
    cargo run -- collect --recorded

# The documentation of the code
docs:
    cargo doc --workspace --no-deps --open

# Look for pages that a parser does not survive: `just fuzz provider azure`, or a part of the kit: `just fuzz json`
fuzz target provider="" seconds="600":
    mkdir -p tests/fuzz/corpus/{{target}}{{provider}}
    FUZZ_PROVIDER={{provider}} nice -n 10 cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none {{target}} tests/fuzz/corpus/{{target}}{{provider}} -- -max_len=65536 -len_control=0 -timeout=10 -rss_limit_mb=512 -dict=tests/fuzz/words.dict -max_total_time={{seconds}}
