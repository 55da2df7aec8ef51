//! Is a night due? One decision for the service, the machine's timers, and the tests that let ten years pass.
//!
//! In: the rules of a schedule, what is written down of its nights, and an instant. Out: run a due night, wait for one, or
//! nothing. Looks at no clock, no disk, and never back further than the newest due instant: of many nights that were missed,
//! one is run.

use chrono::{DateTime, TimeDelta, Utc};
use gpuledger_scrapers::sha256;

use super::due::Due;
use super::ledger::Ledger;
use super::{Missed, Schedule};
use crate::lock;

/// A night that starts so many minutes after its time is still on time: timers and containers take a while to start.
pub const ON_TIME_MINUTES: i64 = 5;

/// So many times is a night started whose process died before it came to an end.
pub const STARTS_MAX: u32 = 3;

/// What the decision needs to know of a schedule.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When nights are due.
    pub due: Due,
    /// What is done about one that was missed.
    pub missed: Missed,
    /// Longest a night is put off.
    pub jitter: TimeDelta,
    /// What tells one machine's delay from another's.
    pub seed: String,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The night of a due instant is to be run.
    Run {
        /// When it was due.
        due_at: DateTime<Utc>,
        /// Whether it starts later than a night may.
        is_late: bool,
    },
    /// A night is due and put off for a little while.
    Wait {
        /// Until then.
        until: DateTime<Utc>,
    },
    /// Nothing: every due instant that counts was run.
    Nothing,
    /// The newest due instant was missed, and the schedule says to skip it.
    Skipped {
        /// When it was due.
        due_at: DateTime<Utc>,
    },
}

impl Rules {
    /// The rules of a schedule on this machine.
    #[must_use]
    pub fn of(schedule: &Schedule, due: Due) -> Self {
        Self {
            due,
            missed: schedule.missed,
            jitter: TimeDelta::minutes(i64::from(schedule.jitter_minutes)),
            seed: format!("{} on {}", schedule.name, lock::host()),
        }
    }

    /// When the night of a due instant starts: the same whoever asks, and however often.
    #[must_use]
    pub fn starts_at(&self, due_at: DateTime<Utc>) -> DateTime<Utc> {
        let jitter_s = self.jitter.num_seconds();
        if jitter_s <= 0 {
            return due_at;
        }
        let hash = sha256(format!("{} at {due_at}", self.seed).as_bytes());
        let number = i64::from_str_radix(&hash[..12], 16).expect("a hash is hexadecimal");
        due_at + TimeDelta::seconds(number % jitter_s)
    }

    /// When the night after an instant starts; `None` when there is none in this century.
    #[must_use]
    pub fn next_start(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.due.after(after).map(|due_at| self.starts_at(due_at))
    }

    /// What is to be done now.
    #[must_use]
    pub fn decide(&self, ledger: &Ledger, now: DateTime<Utc>) -> Decision {
        let Some(due_at) = self.due.last_until(now) else { return Decision::Nothing };
        if ledger.of(due_at).is_some_and(|night| night.is_over() || night.starts >= STARTS_MAX) {
            return Decision::Nothing;
        }
        let starts_at = self.starts_at(due_at);
        if now < starts_at {
            return Decision::Wait { until: starts_at };
        }
        let is_late = now - starts_at > TimeDelta::minutes(ON_TIME_MINUTES);
        if is_late && due_at <= ledger.since {
            // From before anybody looked at this schedule: nobody missed it.
            return Decision::Nothing;
        }
        let is_missed = is_late || ledger.was_busy_at(starts_at);
        if is_missed && self.missed == Missed::Skip {
            return Decision::Skipped { due_at };
        }
        Decision::Run { due_at, is_late }
    }

    /// Whether the last night's process died, or still runs, and the same night is what is due.
    #[must_use]
    pub fn is_to_be_run_again(&self, ledger: &Ledger, now: DateTime<Utc>) -> bool {
        let Some(last) = ledger.nights.last().filter(|night| !night.is_over()) else { return false };
        matches!(self.decide(ledger, now), Decision::Run { due_at, .. } if last.due_at == Some(due_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    fn rules(missed: Missed, jitter_minutes: i64) -> Rules {
        let due = Due::new("0 2 * * *", "UTC").expect("it is an expression");
        Rules { due, missed, jitter: TimeDelta::minutes(jitter_minutes), seed: "nightly".to_owned() }
    }

    fn since(text: &str) -> Ledger {
        Ledger::begun("nightly", at(text))
    }

    #[test]
    fn a_start_at_the_very_second_of_a_due_time_runs_it() {
        let ledger = since("2026-11-30T02:00:00Z");
        let decision = rules(Missed::Skip, 0).decide(&ledger, at("2026-11-30T02:00:00Z"));
        assert_eq!(decision, Decision::Run { due_at: at("2026-11-30T02:00:00Z"), is_late: false });
    }

    #[test]
    fn of_a_week_without_nights_the_newest_is_run_once_and_late_or_skipped() {
        let mut ledger = since("2026-11-20T12:00:00Z");
        let now = at("2026-11-27T14:00:00Z");
        let due_at = at("2026-11-27T02:00:00Z");
        assert_eq!(rules(Missed::Skip, 0).decide(&ledger, now), Decision::Skipped { due_at });
        assert_eq!(rules(Missed::RunOnce, 0).decide(&ledger, now), Decision::Run { due_at, is_late: true });
        ledger.start(Some(due_at), true, now, "2026-11-27T14-00-00Z");
        ledger.end(0, now + TimeDelta::minutes(9));
        assert_eq!(rules(Missed::RunOnce, 0).decide(&ledger, now + TimeDelta::minutes(10)), Decision::Nothing);
        // The clock was wrong and goes back: the nights of the week are still to come, and each comes.
        let due_at = at("2026-11-22T02:00:00Z");
        assert_eq!(rules(Missed::RunOnce, 0).decide(&ledger, due_at), Decision::Run { due_at, is_late: false });
    }

    #[test]
    fn a_schedule_that_nobody_looked_at_before_has_missed_nothing() {
        let ledger = since("2026-11-30T14:00:00Z");
        assert_eq!(rules(Missed::RunOnce, 0).decide(&ledger, at("2026-11-30T14:00:00Z")), Decision::Nothing);
    }

    #[test]
    fn a_night_that_died_is_started_again_and_not_for_ever() {
        let rules = rules(Missed::RunOnce, 0);
        let mut ledger = since("2026-11-29T14:00:00Z");
        let due_at = at("2026-11-30T02:00:00Z");
        for minutes in 0..i64::from(STARTS_MAX) {
            let now = due_at + TimeDelta::minutes(minutes);
            assert_eq!(rules.decide(&ledger, now), Decision::Run { due_at, is_late: false });
            ledger.start(Some(due_at), false, now, "an id");
        }
        assert_eq!(rules.decide(&ledger, due_at + TimeDelta::minutes(4)), Decision::Nothing);
    }

    #[test]
    fn a_night_that_became_due_while_another_ran_is_run_after_it_or_skipped() {
        let due = Due::new("*/2 * * * *", "UTC").expect("it is an expression");
        let mut ledger = since("2026-11-30T01:00:00Z");
        ledger.start(Some(at("2026-11-30T02:00:00Z")), false, at("2026-11-30T02:00:00Z"), "an id");
        ledger.end(0, at("2026-11-30T02:02:30Z"));
        let (due_at, now) = (at("2026-11-30T02:02:00Z"), at("2026-11-30T02:02:31Z"));
        let decide =
            |missed| Rules { due: due.clone(), missed, jitter: TimeDelta::zero(), seed: String::new() }.decide(&ledger, now);
        assert_eq!(decide(Missed::RunOnce), Decision::Run { due_at, is_late: false });
        assert_eq!(decide(Missed::Skip), Decision::Skipped { due_at });
    }

    #[test]
    fn a_delay_is_the_same_whoever_asks_and_never_longer_than_it_may_be() {
        let rules = rules(Missed::RunOnce, 30);
        let mut due_at = at("2026-11-01T02:00:00Z");
        let mut delays = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let delay = rules.starts_at(due_at) - due_at;
            assert!((TimeDelta::zero()..TimeDelta::minutes(30)).contains(&delay));
            assert_eq!(rules.starts_at(due_at) - due_at, delay);
            let decision = rules.decide(&since("2026-10-01T00:00:00Z"), due_at);
            assert!(delay.is_zero() || decision == Decision::Wait { until: due_at + delay });
            delays.insert(delay);
            due_at += TimeDelta::days(1);
        }
        assert!(delays.len() > 40, "nights start at different delays: {delays:?}");
    }
}
