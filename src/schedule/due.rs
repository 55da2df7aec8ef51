//! A cron expression and a time zone → the instants at which a night is due.
//!
//! The `cron` crate says which times of the clock on the wall an expression means, as if clocks were never changed. What a
//! changed clock does to them is decided here: a time that does not exist is the moment at which the clock goes on, a time
//! that exists twice is its first. A schedule of every hour or of every few minutes means time that passes instead: it
//! keeps its pace through both. Never looks at the machine's clock.

use std::str::FromStr as _;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;

/// More than any clock was ever changed by, the day that Samoa left out included.
const CHANGE_HOURS_MAX: i64 = 26;

/// How far back a last due instant is looked for, the shortest first: minutes, hours, days, a month, years, and the years
/// between two leap days of a weekday.
const LOOK_BACK_MINUTES: [i64; 9] = [2, 20, 150, 1_600, 6_000, 60_000, 600_000, 5_300_000, 22_000_000];

/// Days of the week as crontabs count them; 7 is Sunday as well.
pub(super) const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// When nights are due.
#[derive(Debug, Clone)]
pub struct Due {
    /// One expression, or two of which either is enough: a crontab joins day of month and day of week with *or*.
    any_of: Vec<cron::Schedule>,
    zone: Tz,
    /// Whether it keeps a pace within the day.
    is_paced: bool,
}

/// Why an expression is never due.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DueError {
    /// Not five fields.
    #[error("`{cron}` has {fields} fields; a cron expression has five: minute, hour, day of month, month, day of week")]
    NotFiveFields {
        /// As written.
        cron: String,
        /// How many there are.
        fields: usize,
    },
    /// A field cannot be read.
    #[error("`{cron}` is no cron expression: {reason}")]
    Unreadable {
        /// As written.
        cron: String,
        /// Why.
        reason: String,
    },
    /// A day that no month has.
    #[error("`{cron}` is on a day that never comes")]
    Never {
        /// As written.
        cron: String,
    },
    /// No such zone.
    #[error("there is no time zone `{name}`; write its IANA name, such as Europe/Berlin or UTC")]
    UnknownZone {
        /// As written.
        name: String,
    },
}

impl Due {
    /// Reads an expression of five fields, or a nickname, and the name of a zone.
    ///
    /// # Errors
    /// When either cannot be read, or there is no such day.
    pub fn new(cron: &str, zone: &str) -> Result<Self, DueError> {
        let zone: Tz = zone.parse().map_err(|_| DueError::UnknownZone { name: zone.to_owned() })?;
        let fields = fields(cron)?;
        let [minute, hour, day, month, weekday] = &fields;
        let weekdays = weekdays(weekday).map_err(|reason| DueError::Unreadable { cron: cron.to_owned(), reason })?;
        let read = |day: &str, weekdays: &str| {
            cron::Schedule::from_str(&format!("0 {minute} {hour} {day} {month} {weekdays}"))
                .map_err(|error| DueError::Unreadable { cron: cron.to_owned(), reason: error.to_string() })
        };
        let any_of = if day.starts_with('*') || weekday.starts_with('*') {
            vec![read(day, &weekdays)?]
        } else {
            vec![read(day, "*")?, read("*", &weekdays)?]
        };
        let due = Self { any_of, zone, is_paced: hour.starts_with('*') };
        let is_ever = due.walls_after(DateTime::UNIX_EPOCH.naive_utc()).next().is_some();
        if is_ever { Ok(due) } else { Err(DueError::Never { cron: cron.to_owned() }) }
    }

    /// The zone whose clock is meant.
    #[must_use]
    pub const fn zone(&self) -> Tz {
        self.zone
    }

    /// The first due instant after another; `None` when there is none in this century.
    #[must_use]
    pub fn after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.after_in_steady_time(after).or_else(|| self.after_change(after))
    }

    /// The last due instant that is not after another; `None` when there is none in the lifetime of a person before it.
    #[must_use]
    pub fn last_until(&self, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        LOOK_BACK_MINUTES.into_iter().find_map(|minutes| {
            let from = until.checked_sub_signed(TimeDelta::minutes(minutes))?;
            let mut last = self.after(from).filter(|first| *first <= until)?;
            while let Some(next) = self.after(last).filter(|next| *next <= until) {
                last = next;
            }
            Some(last)
        })
    }

    /// The first due instant after another where no clock is changed near either: there the times of the wall come in the
    /// order of their instants, and the first of them is the one. `None` where a clock is changed near.
    fn after_in_steady_time(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let wall = self.is_steady(after).then(|| self.walls_after(after.with_timezone(&self.zone).naive_local()).next())??;
        let at = self.zone.from_local_datetime(&wall).single()?.to_utc();
        self.is_steady(at).then_some(at)
    }

    /// Whether the clock keeps its offset for as long before and after an instant as any change of a clock reaches.
    fn is_steady(&self, at: DateTime<Utc>) -> bool {
        let offset = |hours| self.zone.offset_from_utc_datetime(&(at + TimeDelta::hours(hours)).naive_utc()).fix();
        let here = offset(0);
        // No clock was ever changed and changed back within half a day.
        [-CHANGE_HOURS_MAX, -CHANGE_HOURS_MAX / 2, CHANGE_HOURS_MAX / 2, CHANGE_HOURS_MAX]
            .into_iter()
            .all(|hours| offset(hours) == here)
    }

    /// The first due instant after another, whatever clocks do between.
    fn after_change(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let margin = TimeDelta::hours(CHANGE_HOURS_MAX);
        let from = after.with_timezone(&self.zone).naive_local() - margin;
        let mut first: Option<(DateTime<Utc>, NaiveDateTime)> = None;
        for wall in self.walls_after(from) {
            // Times of the wall clock come in order, their instants nearly so: a later one can be earlier by the change of a
            // clock, and by no more.
            if first.is_some_and(|(_, of)| wall - of > margin) {
                break;
            }
            for instant in self.instants(wall).into_iter().flatten().filter(|instant| *instant > after) {
                if first.is_none_or(|(known, _)| instant < known) {
                    first = Some((instant, wall));
                }
            }
        }
        first.map(|(instant, _)| instant)
    }

    /// Times of the clock on the wall, in order, each once.
    fn walls_after(&self, from: NaiveDateTime) -> impl Iterator<Item = NaiveDateTime> + '_ {
        let from = from.and_utc();
        let mut sources: Vec<_> = self.any_of.iter().map(|schedule| schedule.after(&from).peekable()).collect();
        std::iter::from_fn(move || {
            let next = sources.iter_mut().filter_map(|source| source.peek().copied()).min()?;
            for source in &mut sources {
                source.next_if_eq(&next);
            }
            Some(next.naive_utc())
        })
    }

    /// The instants at which the clock on the wall shows a time, or at which it should have.
    fn instants(&self, wall: NaiveDateTime) -> [Option<DateTime<Utc>>; 2] {
        match self.zone.from_local_datetime(&wall) {
            MappedLocalTime::Single(at) => [Some(at.to_utc()), None],
            MappedLocalTime::Ambiguous(first, second) => [Some(first.to_utc()), self.is_paced.then(|| second.to_utc())],
            MappedLocalTime::None if self.is_paced => [None, None],
            MappedLocalTime::None => [self.end_of_gap(wall), None],
        }
    }

    /// The moment at which the clock goes on after a time that it left out.
    fn end_of_gap(&self, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
        (1..=CHANGE_HOURS_MAX * 60).find_map(|minutes| {
            let later = self.zone.from_local_datetime(&(wall + TimeDelta::minutes(minutes)));
            later.earliest().map(|at| at.to_utc())
        })
    }
}

/// The five fields of an expression, nicknames written out.
pub(super) fn fields(cron: &str) -> Result<[String; 5], DueError> {
    let written_out = match cron.trim() {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        other => other,
    };
    // The `cron` crate knows more signs than crontabs do, and reads some of them in a sense of its own.
    if let Some(sign) = written_out.chars().find(|sign| !sign.is_ascii_alphanumeric() && !"*,/- \t".contains(*sign)) {
        return Err(DueError::Unreadable { cron: cron.to_owned(), reason: format!("a crontab knows no `{sign}`") });
    }
    let fields: Vec<String> = written_out.split_whitespace().map(str::to_owned).collect();
    let count = fields.len();
    fields.try_into().map_err(|_| DueError::NotFiveFields { cron: cron.to_owned(), fields: count })
}

/// Days of the week by name: the `cron` crate counts them from 1, crontabs from 0.
pub(super) fn weekdays(field: &str) -> Result<String, String> {
    if field == "*" {
        return Ok(field.to_owned());
    }
    let mut is_meant = [false; 7];
    for part in field.split(',') {
        let (range, step) = part.split_once('/').map_or((part, "1"), |(range, step)| (range, step));
        let step: usize = step.parse().map_err(|_| format!("`{part}` has no step"))?;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (weekday(first)?, weekday(last)?),
            None if range == "*" => (0, 6),
            None => (weekday(range)?, weekday(range)?),
        };
        // Friday to Sunday ends with the other Sunday.
        let last = if last < first && last == 0 { 7 } else { last };
        if step == 0 || last < first {
            return Err(format!("`{part}` is no day of the week"));
        }
        for day in (first..=last).step_by(step) {
            is_meant[day % 7] = true;
        }
    }
    Ok(DAYS.iter().zip(is_meant).filter(|(_, is_meant)| *is_meant).map(|(day, _)| *day).collect::<Vec<_>>().join(","))
}

fn weekday(text: &str) -> Result<usize, String> {
    let named = DAYS.iter().position(|day| day.eq_ignore_ascii_case(text));
    let numbered = || text.parse::<usize>().ok().filter(|day| *day <= 7);
    named.or_else(numbered).ok_or_else(|| format!("`{text}` is no day of the week"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    /// The due instants from one to another.
    fn due(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
        let due = Due::new(cron, zone).expect("it is an expression");
        let mut now = at(from);
        let mut found = Vec::new();
        while let Some(next) = due.after(now).filter(|next| *next <= at(to)) {
            found.push(next.format("%Y-%m-%dT%H:%MZ").to_string());
            now = next;
        }
        found
    }

    #[test]
    fn a_night_whose_time_the_spring_leaves_out_is_due_when_the_clock_goes_on() {
        assert_eq!(
            due("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z"),
            ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"]
        );
    }

    #[test]
    fn a_night_whose_time_comes_twice_in_autumn_is_due_once() {
        assert_eq!(
            due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
            ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]
        );
    }

    #[test]
    fn a_schedule_in_utc_knows_no_change_of_clocks() {
        let nights = due("30 2 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-12-31T23:59:00Z");
        assert_eq!(nights.len(), 365);
        assert!(nights.iter().all(|night| night.ends_with("T02:30Z")));
    }

    #[test]
    fn every_hour_goes_on_through_both_changes() {
        let hours = due("0 * * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T22:00:00Z");
        assert_eq!(hours.len(), 24);
        let hours = due("0 * * * *", "Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T22:00:00Z");
        assert_eq!(hours.len(), 24);
    }

    #[test]
    fn a_zone_of_half_hours_and_a_day_that_was_left_out_are_kept() {
        // Lord Howe moves its clock by half an hour: 02:15 is left out on 4 October 2026 and the clock goes on at 02:30.
        assert_eq!(
            due("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00:00Z", "2026-10-05T00:00:00Z"),
            ["2026-10-03T15:30Z", "2026-10-04T15:15Z"]
        );
        // Samoa had no 30 December 2011.
        assert_eq!(
            due("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T12:00:00Z"),
            ["2011-12-29T22:00Z", "2011-12-30T10:00Z", "2011-12-30T22:00Z"]
        );
    }

    #[test]
    fn day_of_month_and_day_of_week_are_joined_with_or() {
        assert_eq!(
            due("0 2 1 * 1", "UTC", "2026-11-01T00:00:00Z", "2026-11-16T12:00:00Z"),
            ["2026-11-01T02:00Z", "2026-11-02T02:00Z", "2026-11-09T02:00Z", "2026-11-16T02:00Z"]
        );
    }

    #[test]
    fn days_of_the_week_count_from_sunday_and_seven_is_sunday_too() {
        let days = |field: &str| weekdays(field).expect("days");
        assert_eq!(days("0"), "SUN");
        assert_eq!(days("7"), "SUN");
        assert_eq!(days("1-5"), "MON,TUE,WED,THU,FRI");
        assert_eq!(days("fri-sun"), "SUN,FRI,SAT");
        assert_eq!(days("*/2"), "SUN,TUE,THU,SAT");
        assert_eq!(days("mon,3"), "MON,WED");
        for wrong in ["8", "5-2", "mon-", "", "1/0", "monday"] {
            assert!(weekdays(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_29th_of_february_and_the_31st_come_when_they_come_and_the_30th_of_february_never() {
        assert_eq!(
            due("0 2 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2033-01-01T00:00:00Z"),
            ["2028-02-29T02:00Z", "2032-02-29T02:00Z"]
        );
        assert_eq!(due("0 2 31 * *", "UTC", "2026-01-01T00:00:00Z", "2026-12-31T23:00:00Z").len(), 7);
        assert_eq!(Due::new("0 2 30 2 *", "UTC").map(|_| ()), Err(DueError::Never { cron: "0 2 30 2 *".to_owned() }));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        assert!(matches!(Due::new("0 0 2 * * *", "UTC"), Err(DueError::NotFiveFields { fields: 6, .. })));
        assert!(matches!(Due::new("", "UTC"), Err(DueError::NotFiveFields { fields: 0, .. })));
        for wrong in ["60 2 * * *", "0 24 * * *", "a 2 * * *", "0 2 * * 8", "@often", "0 2 ? * 1", "0 2 L * *", "0 2 * * 1#2"] {
            assert!(Due::new(wrong, "UTC").is_err(), "{wrong}");
        }
    }

    /// Zones whose clocks do what other clocks do not.
    const ODD: [&str; 10] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/St_Johns",
        "America/Sao_Paulo",
        "Asia/Kolkata",
        "Asia/Kathmandu",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "Pacific/Apia",
    ];

    /// When a zone's clock is changed in the year from an instant on, to the hour.
    fn changes(zone: Tz, from: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let offset = |at: DateTime<Utc>| zone.offset_from_utc_datetime(&at.naive_utc()).fix();
        let hours = (0..365 * 24).map(|hour| from + TimeDelta::hours(hour));
        hours.filter(|at| offset(*at) != offset(*at + TimeDelta::hours(1))).collect()
    }

    #[test]
    fn half_hours_of_india_and_newfoundland_are_kept() {
        assert_eq!(due("0 2 * * *", "Asia/Kolkata", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"), ["2026-03-01T20:30Z"]);
        assert_eq!(
            due("30 2 * * *", "America/St_Johns", "2026-03-07T00:00:00Z", "2026-03-10T00:00:00Z"),
            ["2026-03-07T06:00Z", "2026-03-08T05:30Z", "2026-03-09T05:00Z"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn the_short_way_finds_what_the_long_way_finds_and_the_last_is_the_one_before_the_next(
            cron in prop::sample::select(vec!["30 2 * * *", "0 0 * * *", "*/20 * * * *", "15 */6 * * *", "0 2,3 * * 0", "59 23 31 * 1", "0 3 29 2 *"]),
            zone in prop::sample::select(ODD.to_vec()),
            // 2011, with the day that Samoa left out, to 2031.
            year in 2011_i32..2031,
            minute in 0_i64..365 * 24 * 60,
            is_near_a_change in any::<bool>(),
        ) {
            let due = Due::new(cron, zone).expect("it is an expression");
            let start = at(&format!("{year}-01-01T00:00:00Z"));
            let changes = changes(due.zone(), start);
            let near = is_near_a_change.then(|| changes.first()).flatten().map(|change| *change + TimeDelta::minutes(minute % 5_000 - 2_500));
            let now = near.unwrap_or(start + TimeDelta::minutes(minute));
            let next = due.after(now);
            prop_assert_eq!(next, due.after_change(now));
            let next = next.expect("there is a next one");
            prop_assert_eq!(due.last_until(next), Some(next));
            let last = due.last_until(next - TimeDelta::seconds(1)).expect("there is a last one");
            prop_assert!(last <= now);
            prop_assert_eq!(due.after(last), Some(next));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_local_day_has_one_night_whatever_its_clock_does(
            minute in 0_u32..60,
            hour in 0_u32..24,
            zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Kathmandu", "Pacific/Apia"]),
            start in 0_i64..3_000,
        ) {
            let due = Due::new(&format!("{minute} {hour} * * *"), zone).expect("it is an expression");
            let from = at("2012-01-01T00:00:00Z") + TimeDelta::days(start);
            let first_day = from.with_timezone(&due.zone()).date_naive();
            let mut now = from;
            let mut days = Vec::new();
            for _ in 0..380 {
                let next = due.after(now).expect("there is a next night");
                prop_assert!(next > now);
                prop_assert!(next - now <= TimeDelta::hours(26));
                now = next;
                days.push(next.with_timezone(&due.zone()).date_naive());
            }
            prop_assert!(days[0] - first_day <= TimeDelta::days(1));
            for pair in days.windows(2) {
                prop_assert_eq!(pair[1] - pair[0], TimeDelta::days(1));
            }
        }

        #[test]
        fn any_text_is_an_expression_or_refused(cron in "[-0-9*/,@a-zL#? ]{0,24}", zone in "(UTC|Europe/Berlin|[A-Za-z/]{0,12})") {
            if let Ok(due) = Due::new(&cron, &zone) {
                let after = at("2026-11-30T00:00:00Z");
                if let Some(next) = due.after(after) {
                    prop_assert!(next > after);
                }
            }
        }
    }
}
