//! Answers that say 200 and are no page: checks that keep robots out, and notes that too much was asked.
//!
//! Told by few and certain words: a page for people by its title or by a mark that only such checks have, anything else
//! only where it is short. What is not told here is still refused by the parser, once and with its place; here it is tried
//! again first, because such a wall often goes away.

/// Most bytes of a page for people that are looked at.
const HEAD_BYTES: usize = 64 * 1_024;

/// Largest note that is looked at; a list of prices is longer.
const NOTE_BYTES_MAX: usize = 4 * 1_024;

const ROBOT_CHECK: &str = "a robot check";
const ERROR_PAGE: &str = "an error page";
const BUSY_NOTE: &str = "a note that too much was asked";

/// In the title of a page, in lower case.
const TITLES: [(&str, &str); 24] = [
    ("just a moment", ROBOT_CHECK),
    ("attention required", ROBOT_CHECK),
    ("access denied", ROBOT_CHECK),
    ("access to this page has been denied", ROBOT_CHECK),
    ("pardon our interruption", ROBOT_CHECK),
    ("are you a robot", ROBOT_CHECK),
    ("robot check", ROBOT_CHECK),
    ("robot or human", ROBOT_CHECK),
    ("verify you are human", ROBOT_CHECK),
    ("human verification", ROBOT_CHECK),
    ("security check", ROBOT_CHECK),
    ("captcha", ROBOT_CHECK),
    ("checking your browser", ROBOT_CHECK),
    ("ddos protection", ROBOT_CHECK),
    ("request blocked", ROBOT_CHECK),
    ("安全验证", ROBOT_CHECK),
    ("人机验证", ROBOT_CHECK),
    ("访问验证", ROBOT_CHECK),
    ("验证码", ROBOT_CHECK),
    ("访问被拒绝", ROBOT_CHECK),
    ("too many requests", BUSY_NOTE),
    ("service unavailable", ERROR_PAGE),
    ("under maintenance", ERROR_PAGE),
    ("internal server error", ERROR_PAGE),
];

/// Anywhere in the head of a page for people: marks that no other page has.
const MARKS: [&str; 4] = ["_cf_chl_opt", "request unsuccessful. incapsula incident id", "id=\"px-captcha\"", "x5secdata"];

/// Anywhere in a short note, in lower case.
const NOTES: [&str; 13] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "toomanyrequests",
    "requestlimitexceeded",
    "flowlimitexceeded",
    "throttl",
    "quota exceeded",
    "fail_sys_user_validate",
    "x5secdata",
    "过于频繁",
    "captcha",
];

/// What stands in the place of a page, and the words that it was told by.
pub(super) fn wall(body: &[u8]) -> Option<(&'static str, &'static str)> {
    let start = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    if start.starts_with(b"<") {
        let head = String::from_utf8_lossy(&start[..start.len().min(HEAD_BYTES)]).to_lowercase();
        let title = title(&head);
        let by_title = TITLES.iter().find(|(words, _)| title.contains(words)).map(|(words, what)| (*what, *words));
        return by_title.or_else(|| MARKS.iter().find(|mark| head.contains(*mark)).map(|mark| (ROBOT_CHECK, *mark)));
    }
    if start.len() > NOTE_BYTES_MAX {
        return None;
    }
    let note = String::from_utf8_lossy(start).to_lowercase();
    NOTES.iter().find(|words| note.contains(*words)).map(|words| (BUSY_NOTE, *words))
}

/// The title of a page for people; empty where it has none.
fn title(page: &str) -> &str {
    let Some((_, rest)) = page.split_once("<title") else { return "" };
    let Some((_, rest)) = rest.split_once('>') else { return "" };
    rest.split('<').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use gpuledger_scrapers::{ALL, recordings};

    use super::*;

    #[test]
    fn a_wall_is_told_from_a_page() {
        let walls = [
            "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>",
            "\u{feff} <html><TITLE lang=en>Attention Required! | Cloudflare</TITLE>",
            "<html><head></head><body><script>window._cf_chl_opt={};</script></body></html>",
            "<html><title>人机验证</title></html>",
            r#"{"Response":"Error","Message":"over your rate limit","Data":{}}"#,
            r#"{"code":"RequestLimitExceeded"}"#,
            "Too Many Requests",
        ];
        for text in walls {
            assert!(wall(text.as_bytes()).is_some(), "{text}");
        }
        let long = format!(r#"{{"Items":[{}],"note":"rate limit"}}"#, r#"{"retailPrice":1.25},"#.repeat(400));
        let pages = [
            "<html><title>GPU prices</title><body>Our captcha keeps robots out. Rate limit: none.</body></html>",
            r#"{"Items":[],"Count":0}"#,
            long.as_str(),
            "",
        ];
        for text in pages {
            assert_eq!(wall(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn no_recorded_page_of_any_provider_is_taken_for_a_wall() {
        let mut pages = 0;
        let recordings = ALL.iter().flat_map(|scraper| recordings::of(&scraper.manifest().provider));
        for recording in recordings.filter(recordings::Recording::is_dated) {
            for page in &recording.pages {
                assert_eq!(wall(&page.body), None, "{} {}", recording.provider, page.name);
                pages += 1;
            }
        }
        assert!(pages > 20, "only {pages} pages were looked at");
    }
}
