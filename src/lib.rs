//! gpuledger: the ledger of published GPU prices.
//!
//! The rooms, in the order a night walks through them:

/// The command line: types only.
pub mod cli;
/// Every exit code and its meaning.
pub mod exit;
/// The conductor: the only file that knows all rooms.
pub mod run;

/// Which pages a night is made of.
pub mod deliver;
/// Nights that nobody watches: when they are due, and running them then.
pub mod schedule;

/// Raw answers, kept before anything reads them.
pub mod archive;
/// What earlier nights held, for the rules.
pub mod earlier;
/// The only room with a network.
pub mod fetch;
/// What one provider gave tonight: its pages read by its scraper.
pub mod gather;
/// The bytes of one page, however they come.
pub mod intake;
/// What a night was made of, kept so that it can be made again.
pub mod kept;
/// One writer at a time.
pub mod lock;
/// A night's identity.
pub mod night;
/// Published → comparable.
pub mod normalise;
/// The dataset's columns: their only home.
pub mod offer;
/// What a run leaves beside the tables.
pub mod record;
/// Datasets on an object store, and their working copies.
pub mod remote;
/// The only room that knows Parquet and the Delta log.
pub mod snapshot;
/// Pages that need no network: recordings and files.
pub mod sorted;
pub mod source;
/// Rules over the whole night.
pub mod validate;

/// Earlier nights that a provider still publishes.
pub mod backfill;
/// Price histories that other people keep.
pub mod import;

/// Is the dataset whole, and can tonight run?
pub mod doctor;

/// What a list leaves out, how old its prices are, and where it goes.
pub mod answer;
/// The sources, what they say about being read, and how their last night went.
pub mod catalogue;
/// The cheapest offers of a GPU or a memory need, a ladder for each way to buy.
pub mod cheapest;
/// Two snapshots → what changed.
pub mod diff;
/// A row back to its bytes.
pub mod explain;
/// A snapshot as other programs read it.
pub mod export;
/// What could not be done, why, and what to do next.
pub mod failed;
/// What the rules found in a night, listed.
pub mod findings;
/// What is in a machine, from the tables beside the scrapers.
pub mod machines;
/// Completions for shells, and the pages of the manual.
pub mod manual;
/// What a row's price is in a currency, over an hour, a PFLOPS or a GB.
pub mod measure;
/// Offers of a snapshot, filtered and listed.
pub mod offers;
/// A published night as one HTML page.
pub mod page;
/// Pages of a provider from files, shown as offers.
pub mod parse;
/// What of the archive is kept for how long.
pub mod prune;
/// How prices moved, day by day.
pub mod trend;

/// Filters over the offers of a snapshot.
pub mod query;
/// A dated recording of a provider, made from the network.
pub mod recorder;
/// A published night again from the archive.
pub mod replay;
/// What a run says to the person who started it, and the lists that are no table of the dataset.
pub mod report;

/// Text of other people on a terminal.
pub mod harmless;

/// Values → typed columns → cells.
pub mod frame;
/// Rows → standard output.
pub mod print;
/// Bars and lines while a night is fetched.
pub mod progress;

/// What a night tells people who are not there, and how it gets to them.
pub mod alerts;
/// The real price changes of a night, and the providers that stay away.
pub mod changes;
/// The Atom feed beside the tables.
pub mod feed;
/// What a run tells on standard error.
pub mod log;
/// The records of past runs.
pub mod runs;
