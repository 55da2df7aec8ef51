//! The service that waits and runs nights when they are due: what it does next, whatever the clock does.
//!
//! In: the rules of the schedules of one dataset, and a world that has a clock, a way to wait, what is written down, and a way
//! to run a night. Out: calls to that world. It remembers nothing of due instants itself: after every wait it asks the clock and
//! the ledger again, so that a clock that jumps, a machine that slept, and another service on the same dataset need no rule of
//! their own. One night at a time.

use chrono::{DateTime, TimeDelta, Utc};

use super::decide::{Decision, Rules};
use super::ledger::Ledger;

/// A night that could not be had now is tried again after so many seconds, and after twice as many each time.
const AGAIN_S: i64 = 15;

/// Longest of these pauses, in seconds.
const AGAIN_MAX_S: i64 = 300;

/// After a sleep of the machine, networks and clocks get so many seconds to find themselves.
const SETTLE_S: i64 = 30;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Time has passed, though not always all that was asked for.
    Passed,
    /// The machine slept or its clock jumped forward.
    Jumped,
    /// The service is asked to stop.
    Stopped,
}

/// What the service needs of the world.
pub trait World {
    /// What the machine's clock says.
    fn now(&self) -> DateTime<Utc>;
    /// Waits until an instant, or for a shorter while.
    fn wait(&mut self, until: DateTime<Utc>) -> Waited;
    /// What is written down of a schedule's nights.
    fn ledger(&mut self, schedule: usize) -> Ledger;
    /// Runs the night that a schedule has due now; whether the service may go on.
    fn night(&mut self, schedule: usize, due_at: DateTime<Utc>) -> Waited;
    /// Tells when each schedule's next night starts.
    fn tell(&mut self, next: &[Option<DateTime<Utc>>]);
}

/// Serves until it is asked to stop.
pub fn serve(world: &mut impl World, rules: &[Rules]) {
    let mut state = State { tried: vec![None; rules.len()] };
    while state.step(world, rules) != Waited::Stopped {}
}

/// What the service knows between two steps.
#[derive(Debug)]
struct State {
    /// Of each schedule, what was tried last.
    tried: Vec<Option<Tried>>,
}

/// A due night that was tried.
#[derive(Debug, Clone, Copy)]
struct Tried {
    due_at: DateTime<Utc>,
    tried_at: DateTime<Utc>,
    /// How long it is left alone.
    pause: TimeDelta,
}

impl State {
    /// Runs a night if one is due, and waits if none is.
    fn step(&mut self, world: &mut impl World, rules: &[Rules]) -> Waited {
        let now = world.now();
        let mut next = Vec::with_capacity(rules.len());
        let mut first: Option<(DateTime<Utc>, usize)> = None;
        for (index, rules) in rules.iter().enumerate() {
            let decision = rules.decide(&world.ledger(index), now);
            let later = || rules.next_start(now);
            next.push(match decision {
                Decision::Nothing | Decision::Skipped { .. } => later(),
                Decision::Wait { until } => Some(until),
                Decision::Run { due_at, .. } => match self.not_before(index, due_at, now) {
                    Some(not_before) => Some(later().map_or(not_before, |later| later.min(not_before))),
                    None => {
                        first = Some(first.map_or((due_at, index), |first| first.min((due_at, index))));
                        Some(now)
                    }
                },
            });
        }
        world.tell(&next);
        if let Some((due_at, index)) = first {
            let waited = world.night(index, due_at);
            // Where the night was run this is never asked; where it could not be, it is no reason to ask without a pause.
            let before = self.tried[index].filter(|tried| tried.due_at == due_at).map(|tried| tried.pause * 2);
            let pause = before.unwrap_or(TimeDelta::seconds(AGAIN_S)).min(TimeDelta::seconds(AGAIN_MAX_S));
            self.tried[index] = Some(Tried { due_at, tried_at: world.now(), pause });
            return waited;
        }
        let soonest = next.into_iter().flatten().min().unwrap_or(now + TimeDelta::days(1));
        match world.wait(soonest) {
            Waited::Jumped => world.wait(world.now() + TimeDelta::seconds(SETTLE_S)),
            waited => waited,
        }
    }

    /// Until when a due night that was just tried is left alone; `None` when it may be run now.
    fn not_before(&self, index: usize, due_at: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let Tried { tried_at, pause, .. } = self.tried[index].filter(|tried| tried.due_at == due_at)?;
        // A clock that went back makes no pause longer than it is.
        (tried_at..tried_at + pause).contains(&now).then_some(tried_at + pause)
    }
}

#[cfg(test)]
#[path = "decade.rs"]
mod decade;
