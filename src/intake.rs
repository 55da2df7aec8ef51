//! The bytes of one page, however they come: counted, limited, and of a bulk file only the lines that its sieve keeps.
//!
//! In: chunks in order. Out: the body to archive, and of a bulk file the hash and size of the whole. Never holds more than
//! a fixed size, whatever the page says of itself.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use gpuledger_scrapers::contract::Scraper;
use gpuledger_scrapers::manifest::Fetch;
use gpuledger_scrapers::sieve::Sifting;
use sha2::{Digest as _, Sha256};

use crate::archive::Whole;

/// Largest body that is held, in MiB. A bulk file may be larger, what its sieve keeps may not.
const HELD_MIB_MAX: u64 = 512;

/// Bytes after which it is known whether a page is a bulk file.
const HEAD_BYTES: usize = 64;

/// Chunks that may wait to be hashed: hashing is the slowest step, and everything before it waits for it.
const CHUNKS_WAITING_MAX: usize = 16;

const MIB: u64 = 1_024 * 1_024;

/// Why a page is not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    /// The page is larger than it can be.
    #[error("it is larger than {mib} MiB after inflating")]
    TooLarge {
        /// The limit.
        mib: u64,
    },
    /// A line of a bulk file does not end.
    #[error("a line of it does not end")]
    LineTooLong,
}

/// A page that has arrived.
#[derive(Debug)]
pub struct Taken {
    /// The bytes to archive.
    pub body: Vec<u8>,
    /// The whole of a bulk file.
    pub whole: Option<Whole>,
}

/// A page on its way in.
pub struct Intake {
    scraper: &'static dyn Scraper,
    page_mib_max: u64,
    bytes: u64,
    held: Vec<u8>,
    bulk: Option<Bulk>,
}

struct Bulk {
    sieve: &'static str,
    sifting: Sifting,
    hashing: Hashing,
}

/// SHA-256 of the whole file, on a thread of its own.
struct Hashing {
    chunks: SyncSender<Bytes>,
    thread: JoinHandle<String>,
}

impl Intake {
    /// Starts on a page of a provider.
    #[must_use]
    pub fn new(scraper: &'static dyn Scraper, limits: &Fetch) -> Self {
        Self { scraper, page_mib_max: limits.max_body_mib, bytes: 0, held: Vec::new(), bulk: None }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When the page is too large, or a line of a bulk file does not end.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), IntakeError> {
        let was_told = self.held.len() >= HEAD_BYTES;
        self.bytes += u64::try_from(chunk.len()).expect("a chunk fits in memory");
        if self.bytes > self.page_mib_max * MIB {
            return Err(IntakeError::TooLarge { mib: self.page_mib_max });
        }
        if let Some(bulk) = &mut self.bulk {
            return bulk.push(chunk);
        }
        self.held.extend_from_slice(&chunk);
        if !was_told && self.held.len() >= HEAD_BYTES {
            return self.tell();
        }
        if self.bytes > HELD_MIB_MAX * MIB {
            return Err(IntakeError::TooLarge { mib: HELD_MIB_MAX });
        }
        Ok(())
    }

    /// The page, once it has ended.
    ///
    /// # Errors
    /// As [`Intake::push`].
    pub fn finish(mut self) -> Result<Taken, IntakeError> {
        if self.bulk.is_none() && self.held.len() < HEAD_BYTES {
            self.tell()?;
        }
        let bytes = self.bytes;
        Ok(match self.bulk {
            None => Taken { body: self.held, whole: None },
            Some(bulk) => {
                let sha256 = bulk.hashing.finish();
                Taken { body: bulk.sifting.finish(), whole: Some(Whole { sieve: bulk.sieve.to_owned(), sha256, bytes }) }
            }
        })
    }

    /// Looks at the head once, to see whether the page is a bulk file.
    fn tell(&mut self) -> Result<(), IntakeError> {
        let Some(sieve) = self.scraper.sieve(&self.held) else { return Ok(()) };
        let mut bulk = Bulk { sieve: sieve.name, sifting: sieve.start(), hashing: Hashing::start() };
        let told = bulk.push(Bytes::from(std::mem::take(&mut self.held)));
        self.bulk = Some(bulk);
        told
    }
}

impl Bulk {
    fn push(&mut self, chunk: Bytes) -> Result<(), IntakeError> {
        self.hashing.push(chunk.clone());
        self.sifting.push(&chunk).map_err(|_| IntakeError::LineTooLong)?;
        if self.sifting.kept_bytes() as u64 > HELD_MIB_MAX * MIB {
            return Err(IntakeError::TooLarge { mib: HELD_MIB_MAX });
        }
        Ok(())
    }
}

impl Hashing {
    fn start() -> Self {
        let (chunks, arriving) = sync_channel::<Bytes>(CHUNKS_WAITING_MAX);
        let thread = std::thread::spawn(move || {
            let mut hash = Sha256::new();
            for chunk in arriving {
                hash.update(&chunk);
            }
            gpuledger_scrapers::hex(&hash.finalize())
        });
        Self { chunks, thread }
    }

    fn push(&self, chunk: Bytes) {
        self.chunks.send(chunk).expect("the thread listens until the last chunk");
    }

    fn finish(self) -> String {
        drop(self.chunks);
        self.thread.join().expect("hashing does not panic")
    }
}
