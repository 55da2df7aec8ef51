//! Bulk files that are mostly not ours: the lines that may be are kept verbatim while the file streams by.
//!
//! In: the bytes of a text file in chunks of any size. Out: its first lines and every line that holds one of the needles,
//! byte for byte. Never splits a line, never changes one, and never holds more of the rest than one chunk and one line.

use std::io::{self, Read};
use std::sync::mpsc::sync_channel;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, MatchKind, Span};
use memchr::{memchr, memrchr};

/// Longest line that is believed, in bytes: a file without line ends must not fill the memory.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What is kept of a bulk file.
#[derive(Debug)]
pub struct Sieve {
    /// Stands in the receipt, with a version that rises whenever other lines are kept. `aws-accelerated-1`
    pub name: &'static str,
    head_lines: usize,
    /// `None` on a processor without the instructions for it.
    packed: Option<Searcher>,
    plain: AhoCorasick,
}

/// A line is longer than any line of a price list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sieve a line of more than {LINE_BYTES_MAX} bytes")]
pub struct LineTooLong;

impl Sieve {
    /// A sieve that keeps the first lines, and those that hold a needle.
    ///
    /// # Panics
    /// When there is no needle, or an empty one.
    #[must_use]
    pub fn new(name: &'static str, head_lines: usize, needles: &[&str]) -> Self {
        assert!(needles.iter().all(|needle| !needle.is_empty()), "an empty needle is in every line");
        let packed = packed::Config::new().match_kind(packed::MatchKind::LeftmostFirst).builder().extend(needles).build();
        let plain = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(needles);
        Self { name, head_lines, packed, plain: plain.expect("a few short needles fit into an automaton") }
    }

    /// Where the next needle begins.
    fn find(&self, lines: &[u8], from: usize) -> Option<usize> {
        match &self.packed {
            Some(packed) => packed.find_in(lines, Span { start: from, end: lines.len() }).map(|found| found.start()),
            None => self.plain.find(&lines[from..]).map(|found| from + found.start()),
        }
    }

    /// Starts on a file.
    #[must_use]
    pub fn start(&'static self) -> Sifting {
        Sifting { sieve: self, head_left: self.head_lines, rest: Vec::new(), kept: Vec::new() }
    }
}

/// A file on its way through a sieve.
#[derive(Debug)]
pub struct Sifting {
    sieve: &'static Sieve,
    head_left: usize,
    /// The line that the last chunk left unfinished.
    rest: Vec<u8>,
    kept: Vec<u8>,
}

impl Sifting {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When a line does not end.
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<(), LineTooLong> {
        if !self.rest.is_empty() {
            let Some(end) = memchr(b'\n', chunk) else { return self.keep_rest(chunk) };
            self.rest.extend_from_slice(&chunk[..=end]);
            let line = std::mem::take(&mut self.rest);
            self.lines(&line);
            chunk = &chunk[end + 1..];
        }
        let whole = memrchr(b'\n', chunk).map_or(0, |end| end + 1);
        self.lines(&chunk[..whole]);
        self.keep_rest(&chunk[whole..])
    }

    /// Bytes kept so far.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    /// The kept lines, once the file has ended.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.rest);
        self.lines(&line);
        self.kept
    }

    fn keep_rest(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        if self.rest.len() + bytes.len() > LINE_BYTES_MAX {
            return Err(LineTooLong);
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Whole lines.
    fn lines(&mut self, mut lines: &[u8]) {
        while self.head_left > 0 && !lines.is_empty() {
            let end = memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
            self.kept.extend_from_slice(&lines[..end]);
            self.head_left -= 1;
            lines = &lines[end..];
        }
        let mut from = 0;
        while let Some(found) = self.sieve.find(lines, from) {
            let start = memrchr(b'\n', &lines[..found]).map_or(0, |end| end + 1);
            let end = memchr(b'\n', &lines[found..]).map_or(lines.len(), |end| found + end + 1);
            self.kept.extend_from_slice(&lines[start..end]);
            from = end;
        }
    }
}

/// Bytes of a chunk: small enough to be still in the processor's cache when it is searched.
const CHUNK_BYTES: usize = 1 << 18;

/// Chunks that are read ahead of the one that is looked at.
const CHUNKS_AHEAD: usize = 4;

/// Shows every chunk of a file in order, while the next ones are read on another thread. Ends early when `look` refuses.
///
/// # Errors
/// When the file cannot be read, or as `look`.
pub fn chunks<E: From<io::Error>>(mut file: impl Read + Send, mut look: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    std::thread::scope(|threads| {
        let (full, arriving) = sync_channel::<io::Result<(Vec<u8>, usize)>>(CHUNKS_AHEAD);
        let (empty, used) = sync_channel::<Vec<u8>>(CHUNKS_AHEAD + 2);
        threads.spawn(move || {
            loop {
                let mut chunk = used.try_recv().unwrap_or_else(|_| vec![0; CHUNK_BYTES]);
                let read = match file.read(&mut chunk) {
                    Ok(0) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map(|bytes| (chunk, bytes)),
                };
                let is_last = read.is_err();
                // Nobody listens any more once a chunk was refused.
                if full.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        for read in arriving {
            let (chunk, bytes) = read?;
            look(&chunk[..bytes])?;
            // A chunk that is not taken back is allocated again, no more.
            let _ = empty.try_send(chunk);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static SIEVE: LazyLock<Sieve> = LazyLock::new(|| Sieve::new("test-1", 2, &["\"p4", "\"g6"]));

    fn sifted(text: &[u8], chunk: usize) -> Vec<u8> {
        let mut sifting = SIEVE.start();
        for chunk in text.chunks(chunk) {
            sifting.push(chunk).expect("short lines");
        }
        sifting.finish()
    }

    #[test]
    fn head_and_matching_lines_are_kept_verbatim() {
        let text = b"head\r\nnames\r\n1,\"m5\"\r\n2,\"p4d\",\"p4\"\r\n3,p4\r\n4,\"g6\"";
        assert_eq!(sifted(text, 7), b"head\r\nnames\r\n2,\"p4d\",\"p4\"\r\n4,\"g6\"");
        assert_eq!(sifted(b"", 1), b"");
        assert_eq!(sifted(b"one line", 3), b"one line");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut sifting = SIEVE.start();
        let chunk = vec![b'x'; LINE_BYTES_MAX / 2 + 1];
        assert_eq!(sifting.push(&chunk), Ok(()));
        assert_eq!(sifting.push(&chunk), Err(LineTooLong));
    }

    #[test]
    fn a_processor_without_packed_search_keeps_the_same_lines() {
        let plain = Sieve { packed: None, ..Sieve::new("test-1", 2, &["\"p4", "\"g6"]) };
        let text = b"head\nnames\n1,\"m5\"\n2,\"p4d\",\"p4\"\n3,p4\n4,\"g6\"\n";
        for from in 0..text.len() {
            assert_eq!(plain.find(text, from), SIEVE.find(text, from), "{from}");
        }
    }

    #[test]
    fn a_file_is_shown_in_order_and_its_end_and_its_errors_too() {
        struct Odd(usize);
        impl Read for Odd {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    1 => Err(io::ErrorKind::Interrupted.into()),
                    2 => Err(io::Error::other("the disk is gone")),
                    _ => Ok(buffer.len()),
                }
            }
        }
        let text: Vec<u8> = (0..1_000_003_u32).map(|at| u8::try_from(at % 251).expect("small")).collect();
        let mut seen = Vec::new();
        chunks::<io::Error>(text.as_slice(), |chunk| {
            seen.extend_from_slice(chunk);
            Ok(())
        })
        .expect("it reads");
        assert_eq!(seen, text);
        let gone = chunks::<io::Error>(Odd(0), |_| Ok(())).expect_err("the disk is gone");
        assert_eq!(gone.to_string(), "the disk is gone");
        let refused = chunks::<io::Error>(Odd(2), |_| Err(io::Error::other("enough"))).expect_err("it was refused");
        assert_eq!(refused.to_string(), "enough");
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter_and_the_plain_way_agrees(text in "([a\"p4g6,\n]{0,40})", chunk in 1_usize..20) {
            let plain: String = text
                .split_inclusive('\n')
                .enumerate()
                .filter(|(at, line)| *at < 2 || line.contains("\"p4") || line.contains("\"g6"))
                .map(|(_, line)| line)
                .collect();
            prop_assert_eq!(sifted(text.as_bytes(), chunk), plain.into_bytes());
        }
    }
}
