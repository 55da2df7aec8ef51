# Commands of this house; `just` alone lists them.

default:
    @just --list

# Format, lints and every test
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# Every recording against its expectation
replay *provider:
    cargo test -p gpuledger-scrapers --test replay {{provider}}

# Copy the template of a scraper
new-scraper name:
    cp -r scrapers/_template scrapers/{{name}}
    sed -i 's/template/{{name}}/g' scrapers/{{name}}/manifest.toml
    rm -f scrapers/{{name}}/fixtures/README.md
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
