//! Ten years of nights in seconds: the service on a clock that these tests move, with what clocks do to programs.

use std::collections::{BTreeMap, VecDeque};

use super::super::Missed;
use super::super::decide::STARTS_MAX;
use super::super::due::Due;
use super::*;

/// Longest that a wait of the real service lasts before it looks at the clock again, in seconds.
const TICK_S: i64 = 30;

/// What happens to the clock or the service when true time comes to an instant.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    /// The clock is set by so much, forward or back.
    Set(TimeDelta),
    /// The machine sleeps for so long.
    Sleep(TimeDelta),
    /// The service is ended, and started again after so long.
    Down(TimeDelta),
    /// The next night takes so long.
    Long(TimeDelta),
    /// The process of the next nights dies, so many times.
    Dies(u32),
}

struct Simulated {
    rules: Rules,
    /// Time that passes.
    true_now: DateTime<Utc>,
    /// What the clock shows beyond it.
    offset: TimeDelta,
    ends_at: DateTime<Utc>,
    disturbances: VecDeque<(DateTime<Utc>, Disturbance)>,
    ledger: Ledger,
    night: TimeDelta,
    dies: u32,
    is_down_until: Option<DateTime<Utc>>,
    /// How often the night of a due instant came to its end.
    ended: BTreeMap<DateTime<Utc>, u32>,
    late: u32,
    died: u32,
    is_running: bool,
}

impl Simulated {
    fn new(cron: &str, zone: &str, from: &str, days: i64) -> Self {
        let due = Due::new(cron, zone).expect("it is an expression");
        let true_now: DateTime<Utc> = from.parse().expect("an instant");
        Self {
            rules: Rules { due, missed: Missed::RunOnce, jitter: TimeDelta::zero(), seed: "of a test".to_owned() },
            true_now,
            offset: TimeDelta::zero(),
            ends_at: true_now + TimeDelta::days(days),
            disturbances: VecDeque::new(),
            ledger: Ledger::begun("of a test", true_now),
            night: TimeDelta::minutes(7),
            dies: 0,
            is_down_until: None,
            ended: BTreeMap::new(),
            late: 0,
            died: 0,
            is_running: false,
        }
    }

    fn with(mut self, disturbances: &[(&str, Disturbance)]) -> Self {
        self.disturbances = disturbances.iter().map(|(at, what)| (at.parse().expect("an instant"), *what)).collect();
        self
    }

    /// Serves to the end, started again after each time that it was down.
    fn serve(mut self) -> Self {
        let rules = [self.rules.clone()];
        while self.true_now < self.ends_at {
            serve(&mut self, &rules);
            if let Some(until) = self.is_down_until.take() {
                self.true_now = until;
            }
        }
        self
    }

    /// Lets time pass. A disturbance on the way ends it at the next tick.
    fn pass(&mut self, length: TimeDelta) -> Waited {
        let until = self.true_now + length;
        let Some((at, disturbance)) = self.disturbances.front().copied().filter(|(at, _)| *at <= until) else {
            self.true_now = until;
            return if until >= self.ends_at { Waited::Stopped } else { Waited::Passed };
        };
        self.disturbances.pop_front();
        self.true_now = self.true_now.max(at);
        match disturbance {
            Disturbance::Set(by) => {
                self.offset += by;
                self.true_now = until.min(self.true_now + TimeDelta::seconds(TICK_S)).max(self.true_now);
                if by > TimeDelta::minutes(2) { Waited::Jumped } else { Waited::Passed }
            }
            Disturbance::Sleep(length) => {
                self.true_now += length;
                Waited::Jumped
            }
            Disturbance::Down(length) => {
                self.is_down_until = Some(self.true_now + length);
                Waited::Stopped
            }
            Disturbance::Long(length) => {
                self.night = length;
                Waited::Passed
            }
            Disturbance::Dies(times) => {
                self.dies = times;
                Waited::Passed
            }
        }
    }

    /// Every due instant from the start to the end of the simulated time.
    fn due(&self, from: &str) -> Vec<DateTime<Utc>> {
        let mut last = from.parse().expect("an instant");
        let mut all = Vec::new();
        while let Some(next) = self.rules.due.after(last).filter(|next| *next < self.ends_at) {
            all.push(next);
            last = next;
        }
        all
    }

    fn twice(&self) -> usize {
        self.ended.values().filter(|times| **times > 1).count()
    }

    fn missing(&self, due: &[DateTime<Utc>]) -> Vec<DateTime<Utc>> {
        due.iter().filter(|due_at| !self.ended.contains_key(due_at)).copied().collect()
    }
}

impl World for Simulated {
    fn now(&self) -> DateTime<Utc> {
        self.true_now + self.offset
    }

    fn wait(&mut self, until: DateTime<Utc>) -> Waited {
        let length = until - self.now();
        assert!(length > TimeDelta::zero(), "it waits without waiting");
        self.pass(length)
    }

    fn ledger(&mut self, _: usize) -> Ledger {
        self.ledger.clone()
    }

    /// What `schedule night --if-due` does: decide again, write down, run, write down.
    fn night(&mut self, _: usize, due_at: DateTime<Utc>) -> Waited {
        assert!(!std::mem::replace(&mut self.is_running, true), "two at a time");
        let Decision::Run { due_at: decided, is_late } = self.rules.decide(&self.ledger, self.now()) else {
            unreachable!("a moment later it is decided otherwise")
        };
        assert_eq!(decided, due_at);
        self.ledger.start(Some(due_at), is_late, self.now(), "an id");
        // Only the newest nights matter, and a list of ten years would only slow this down.
        if self.ledger.nights.len() > 60 {
            self.ledger.nights.remove(0);
        }
        self.is_running = false;
        if self.dies > 0 {
            (self.dies, self.died) = (self.dies - 1, self.died + 1);
            return self.pass(TimeDelta::seconds(1));
        }
        let night = std::mem::replace(&mut self.night, TimeDelta::minutes(7));
        let waited = self.pass(night);
        if waited == Waited::Stopped && self.true_now < self.ends_at {
            self.ledger.take_back();
            return waited;
        }
        self.ledger.end(0, self.now());
        *self.ended.entry(due_at).or_insert(0) += 1;
        self.late += u32::from(is_late);
        waited
    }

    fn tell(&mut self, _: &[Option<DateTime<Utc>>]) {}
}

const DECADE: i64 = 3_653;
const START: &str = "2025-12-31T22:11:00Z";

#[test]
fn ten_years_of_nights_in_many_zones_run_each_due_night_once_and_none_twice() {
    let mut total = 0;
    for (cron, zone) in [
        ("0 2 * * *", "UTC"),
        ("30 2 * * *", "Europe/Berlin"),
        ("30 2 * * *", "America/New_York"),
        ("15 2 * * *", "Australia/Lord_Howe"),
        ("1 0 * * *", "America/St_Johns"),
        ("0 2 * * *", "Asia/Kolkata"),
        ("0 2 * * *", "Africa/Casablanca"),
        ("0 2 1 * 1", "Europe/Berlin"),
        ("0 2 29 2 *", "UTC"),
        ("0 2 31 * *", "Asia/Shanghai"),
        ("0 2,3 * * 0", "Europe/Berlin"),
        ("@weekly", "America/Sao_Paulo"),
    ] {
        let served = Simulated::new(cron, zone, START, DECADE).serve();
        let due = served.due(START);
        assert!(served.missing(&due).is_empty(), "{cron} {zone}: {:?}", served.missing(&due));
        assert_eq!((served.ended.len(), served.twice(), served.late), (due.len(), 0, 0), "{cron} {zone}");
        total += due.len();
    }
    eprintln!("{total} due nights, each run once");
    assert!(total > 7 * 3_652);
}

#[test]
fn every_hour_of_a_year_runs_once_through_both_changes_of_its_clock() {
    let served = Simulated::new("0 * * * *", "Europe/Berlin", START, 365).serve();
    assert_eq!((served.ended.len(), served.twice()), (365 * 24, 0));
}

#[test]
fn a_clock_that_goes_back_an_hour_makes_no_second_night() {
    for minutes in [1, 20, 59] {
        let at = format!("2026-06-15T02:{minutes:02}:00Z");
        let set = [(at.as_str(), Disturbance::Set(TimeDelta::hours(-1)))];
        let served = Simulated::new("0 2 * * *", "UTC", START, 365).with(&set).serve();
        assert_eq!((served.ended.len(), served.twice(), served.late), (365, 0, 0));
    }
}

#[test]
fn a_clock_that_goes_forward_a_week_makes_one_night_and_not_seven() {
    let forward = [("2026-06-15T12:00:00Z", Disturbance::Set(TimeDelta::days(7)))];
    let served = Simulated::new("0 2 * * *", "UTC", START, 365 - 7).with(&forward).serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (365 - 6, 0, 1));
    // And back: every night of the week still comes, none twice.
    let back = [forward[0], ("2026-06-15T14:00:00Z", Disturbance::Set(TimeDelta::days(-7)))];
    let served = Simulated::new("0 2 * * *", "UTC", START, 365).with(&back).serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (365, 0, 1));
}

#[test]
fn a_machine_that_sleeps_through_nights_runs_one_when_it_wakes_and_marks_it_late() {
    let sleeps = [
        ("2026-02-10T20:00:00Z", Disturbance::Sleep(TimeDelta::hours(11))),
        ("2026-05-01T20:00:00Z", Disturbance::Sleep(TimeDelta::days(4))),
        ("2026-08-01T20:00:00Z", Disturbance::Sleep(TimeDelta::minutes(6 * 60 + 2))),
    ];
    let served = Simulated::new("0 2 * * *", "UTC", START, 365).with(&sleeps).serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (365 - 3, 0, 2));
    let mut skipping = Simulated::new("0 2 * * *", "UTC", START, 365).with(&sleeps);
    skipping.rules.missed = Missed::Skip;
    let served = skipping.serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (365 - 5, 0, 0));
}

#[test]
fn a_service_that_was_down_or_stopped_within_a_night_goes_on_where_it_was() {
    let downs = [
        ("2026-02-10T20:00:00Z", Disturbance::Down(TimeDelta::hours(11))),
        ("2026-05-01T02:03:00Z", Disturbance::Down(TimeDelta::minutes(1))),
        ("2026-07-01T01:59:59Z", Disturbance::Down(TimeDelta::seconds(1))),
        ("2026-08-01T02:03:00Z", Disturbance::Down(TimeDelta::days(3))),
    ];
    let served = Simulated::new("0 2 * * *", "UTC", START, 365).with(&downs).serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (365 - 3, 0, 1));
}

#[test]
fn a_night_longer_than_the_time_between_two_is_followed_by_one_or_by_the_next_but_one() {
    let long = [("2026-01-02T02:30:00Z", Disturbance::Long(TimeDelta::minutes(150)))];
    let served = Simulated::new("0 * * * *", "UTC", START, 10).with(&long).serve();
    // 03:00 to 05:30; 04:00 is lost, 05:00 runs late at 05:30.
    assert_eq!((served.ended.len(), served.twice(), served.late), (239, 0, 1));
    let mut skipping = Simulated::new("0 * * * *", "UTC", START, 10).with(&long);
    skipping.rules.missed = Missed::Skip;
    let served = skipping.serve();
    assert_eq!((served.ended.len(), served.twice(), served.late), (238, 0, 0));
}

#[test]
fn nights_whose_process_dies_are_started_again_and_the_next_night_comes_whatever_they_did() {
    for (times, ended) in [(1, 365), (STARTS_MAX - 1, 365), (STARTS_MAX, 364), (STARTS_MAX + 1, 364)] {
        let dies = [("2026-02-10T20:00:00Z", Disturbance::Dies(times))];
        let served = Simulated::new("0 2 * * *", "UTC", START, 365).with(&dies).serve();
        assert_eq!((served.ended.len(), served.twice(), served.died), (ended, 0, times));
    }
}

#[test]
fn ten_years_in_which_the_clock_is_set_a_hundred_times_run_no_due_night_twice() {
    let mut random = 4_711_u64;
    let mut draw = |below: i64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(random >> 33).expect("31 bits") % below
    };
    for zone in ["Europe/Berlin", "Australia/Lord_Howe"] {
        let mut at: DateTime<Utc> = START.parse().expect("an instant");
        let mut disturbances = Vec::new();
        for _ in 0..100 {
            at += TimeDelta::minutes(draw(50_000) + 1_440);
            let length = TimeDelta::minutes(draw(3_000));
            let what = match draw(5) {
                0 => Disturbance::Set(length - TimeDelta::minutes(1_500)),
                1 => Disturbance::Sleep(length),
                2 => Disturbance::Down(length),
                3 => Disturbance::Long(length),
                _ => Disturbance::Dies(u32::try_from(draw(3)).expect("a small number")),
            };
            disturbances.push((at, what));
        }
        let mut simulated = Simulated::new("30 2 * * *", zone, START, DECADE);
        simulated.disturbances = disturbances.into();
        let served = simulated.serve();
        let missing = served.missing(&served.due(START)).len();
        eprintln!("{zone}: {} nights, {} late, {missing} due nights without one", served.ended.len(), served.late);
        assert_eq!(served.twice(), 0);
        // Each disturbance costs two nights at most, for it lasts two days at most.
        assert!(missing <= 2 * 100 && served.ended.len() > 3_400, "{missing}");
    }
}
