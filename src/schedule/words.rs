//! A cron expression in words, for the usual ones; `None` for the others, for words that are nearly right are wrong.

use super::due;

/// More times or days than these are a list that nobody reads.
const LISTED_MAX: usize = 6;

/// Hours that people call night.
const NIGHT: [u32; 10] = [20, 21, 22, 23, 0, 1, 2, 3, 4, 5];

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// When an expression is due, without its zone. `every night at 02:00`
#[must_use]
pub fn words(cron: &str) -> Option<String> {
    let [minute, hour, day, month, weekday] = due::fields(cron).ok()?;
    let days = Days::of(&day, &month, &weekday)?;
    if minute == "*" && hour == "*" {
        return days.of_each("every minute");
    }
    if let (Some(step), "*") = (step(&minute, 60), hour.as_str()) {
        return days.of_each(&format!("every {step} minutes"));
    }
    let minutes = set(&minute, 0, 59)?;
    if let ([minute], true) = (minutes.as_slice(), hour.starts_with('*')) {
        let every =
            if hour == "*" { "every hour".to_owned() } else { format!("every {} hours from midnight on", step(&hour, 24)?) };
        return days.of_each(&format!("{every}, at minute {minute}"));
    }
    let hours = set(&hour, 0, 23).filter(|_| !hour.starts_with('*'))?;
    if minutes.len() * hours.len() > LISTED_MAX {
        return None;
    }
    let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| format!("{hour:02}:{minute:02}")));
    let day = match &days {
        Days::All if hours.iter().all(|hour| NIGHT.contains(hour)) => "every night".to_owned(),
        Days::All => "every day".to_owned(),
        Days::Some(days) => days.clone(),
    };
    Some(format!("{day} at {}", listed(&times.collect::<Vec<_>>())))
}

/// Which days an expression means.
#[derive(Debug)]
enum Days {
    /// Every one.
    All,
    /// In words. `every Monday`
    Some(String),
}

impl Days {
    fn of(day: &str, month: &str, weekday: &str) -> Option<Self> {
        let days = if day == "*" { None } else { Some(set(day, 1, 31).filter(|_| !day.starts_with('*'))?) };
        if let ([month], Some([day])) = (set(month, 1, 12)?.as_slice(), days.as_deref()) {
            let name = MONTHS[usize::try_from(*month).ok()?.checked_sub(1)?];
            let which = if (*month, *day) == (2, 29) { "every year that has it" } else { "every year" };
            return (weekday == "*").then(|| Self::Some(format!("on {day} {name} of {which},")));
        }
        if month != "*" {
            return None;
        }
        let of_month = match days.as_deref() {
            None => None,
            Some(days) if days.len() > LISTED_MAX => return None,
            Some(days) => {
                let which = if days.iter().any(|day| *day > 28) { "every month that has it" } else { "every month" };
                let which = if days.len() > 1 && which.ends_with("it") { "every month, where there is one," } else { which };
                Some(format!("on the {} of {which}", listed(&days.iter().map(|day| ordinal(*day)).collect::<Vec<_>>())))
            }
        };
        let of_week = if weekday == "*" { None } else { Some(weekdays(weekday)?) };
        Some(match (of_month, of_week) {
            (None, None) => Self::All,
            (Some(one), None) | (None, Some(one)) => Self::Some(one),
            // A crontab joins the two with *or*, unless one of them begins with a star.
            (Some(month), Some(week)) if !weekday.starts_with('*') => Self::Some(format!("{month}, and {week},")),
            (Some(_), Some(_)) => return None,
        })
    }

    /// For what goes on all day.
    fn of_each(&self, what: &str) -> Option<String> {
        match self {
            Self::All => Some(what.to_owned()),
            Self::Some(_) => None,
        }
    }
}

/// `Monday to Friday`, `every Monday and Friday`
fn weekdays(field: &str) -> Option<String> {
    let short = due::weekdays(field).ok()?;
    let days: Vec<usize> = (0..7).filter(|index| short.split(',').any(|day| day == due::DAYS[*index])).collect();
    match days.as_slice() {
        [] => None,
        [0, 1, 2, 3, 4, 5, 6] => Some("every day of the week".to_owned()),
        [first, .., last] if days.len() > 2 && last - first == days.len() - 1 => {
            Some(format!("{} to {}", WEEKDAYS[*first], WEEKDAYS[*last]))
        }
        days => Some(format!("every {}", listed(&days.iter().map(|day| WEEKDAYS[*day].to_owned()).collect::<Vec<_>>()))),
    }
}

/// The step of `*/STEP`, where it divides the whole.
fn step(field: &str, whole: u32) -> Option<u32> {
    field.strip_prefix("*/")?.parse().ok().filter(|step| *step > 1 && *step < whole && whole.is_multiple_of(*step))
}

/// What a field of numbers means; `None` where it is anything but numbers, ranges and steps.
fn set(field: &str, min: u32, max: u32) -> Option<Vec<u32>> {
    let mut is_meant = vec![false; usize::try_from(max + 1).ok()?];
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
            // Some crontabs take `5/15` for one minute, others for all from there on.
            None if step.is_some() => return None,
            None => (range.parse().ok()?, range.parse().ok()?),
        };
        if first < min || last > max || last < first {
            return None;
        }
        for number in (first..=last).step_by(step.unwrap_or(1)) {
            is_meant[usize::try_from(number).ok()?] = true;
        }
    }
    Some((min..=max).filter(|number| usize::try_from(*number).is_ok_and(|number| is_meant[number])).collect())
}

fn ordinal(day: u32) -> String {
    let ending = match (day % 10, day / 10) {
        (1, 0 | 2 | 3) => "st",
        (2, 0 | 2) => "nd",
        (3, 0 | 2) => "rd",
        _ => "th",
    };
    format!("{day}{ending}")
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_expressions_have_words() {
        for (cron, said) in [
            ("0 2 * * *", "every night at 02:00"),
            ("@daily", "every night at 00:00"),
            ("30 14 * * *", "every day at 14:30"),
            ("0 2,14 * * *", "every day at 02:00 and 14:00"),
            ("*/20 2 * * *", "every night at 02:00, 02:20 and 02:40"),
            ("0,30 3 * * *", "every night at 03:00 and 03:30"),
            ("0 2 * * 1-5", "Monday to Friday at 02:00"),
            ("0 2 * * sun", "every Sunday at 02:00"),
            ("0 2 * * 7,3", "every Sunday and Wednesday at 02:00"),
            ("@weekly", "every Sunday at 00:00"),
            ("0 2 1 * *", "on the 1st of every month at 02:00"),
            ("0 2 1,15 * *", "on the 1st and 15th of every month at 02:00"),
            ("0 2 31 * *", "on the 31st of every month that has it at 02:00"),
            ("0 2 1,31 * *", "on the 1st and 31st of every month, where there is one, at 02:00"),
            ("0 2 1 * 1", "on the 1st of every month, and every Monday, at 02:00"),
            ("@yearly", "on 1 January of every year, at 00:00"),
            ("0 2 29 2 *", "on 29 February of every year that has it, at 02:00"),
            ("@hourly", "every hour, at minute 0"),
            ("15 */6 * * *", "every 6 hours from midnight on, at minute 15"),
            ("*/15 * * * *", "every 15 minutes"),
            ("* * * * *", "every minute"),
        ] {
            assert_eq!(words(cron).as_deref(), Some(said), "{cron}");
        }
    }

    #[test]
    fn unusual_expressions_have_none() {
        for cron in [
            "*/7 * * * *",
            "0 */5 * * *",
            "5/15 * * * *",
            "0 2 */2 * *",
            "0 2 1 * */2",
            "0 2 * jan *",
            "0 2 * 1-3 *",
            "0 2 1 1 1",
            "* 2 * * *",
            "0 2 * * 1 x",
            "0 * * * 1",
            "0-59 0-23 * * *",
        ] {
            assert_eq!(words(cron), None, "{cron}");
        }
    }

    proptest! {
        /// However hours and days are spelled, the words are those of the days and times that come.
        #[test]
        fn words_name_the_days_and_times_that_come(
            minute in 0_u32..60,
            hours in prop::sample::subsequence((0..24).collect::<Vec<u32>>(), 1..=LISTED_MAX),
            days in prop::sample::subsequence((0..7).collect::<Vec<usize>>(), 1..=7),
            is_by_name in any::<bool>(),
        ) {
            let hour_field = hours.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let spelled = |day: &usize| if is_by_name { due::DAYS[*day].to_lowercase() } else { day.to_string() };
            let day_field = days.iter().map(spelled).collect::<Vec<_>>().join(",");
            let cron = format!("{minute} {hour_field} * * {day_field}");
            let said = words(&cron).expect("it is usual");
            let due = due::Due::new(&cron, "UTC").expect("it is an expression");
            let mut now: chrono::DateTime<chrono::Utc> = "2026-11-28T23:59:59Z".parse().expect("an instant");
            let mut count = 0;
            while let Some(next) = due.after(now).filter(|next| *next < "2026-12-06T00:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().expect("an instant")) {
                let weekday = next.format("%A").to_string();
                prop_assert!(said.contains(&next.format("%H:%M").to_string()), "{} {}", said, next);
                let is_range = said.contains(" to ") || said.contains("day of the week");
                prop_assert!(is_range || said.contains(&weekday), "{} {}", said, next);
                count += 1;
                now = next;
            }
            prop_assert_eq!(count, hours.len() * days.len());
            prop_assert_eq!(said.matches(':').count(), hours.len());
        }
    }
}
