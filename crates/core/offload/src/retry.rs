//! When offload that has ended is tried again, for one rank of a communicator (`docs/concepts/offload.md` has the rule).
//!
//! All ranks must do the same at the same call of the program, but their clocks differ, and only leaders know how a
//! try stands. So all ranks *meet*, by a plain collective, at calls whose numbers are agreed on: each says a number
//! ([`say`](Retry::say)), MPI gives all of them the least, and all conclude the same from it
//! ([`hear`](Retry::hear)). What is said has the distance to the next meeting, too.
//!
//! ```text
//!            fell_back, set_up_failed                 hear: Begin
//! offloaded ────────────────────────► waiting ──────────────────────► trying ──► offloaded   hear: Ready
//!                                        ▲                               │
//!                                        └───────────────────────────────┘       hear: Failed
//! ```

use raddle_units::{Span, Time};

/// Most calls from one meeting to the next: a meeting is as dear as a small plain Allreduce, so that it stays below
/// 0.2 % of what the calls between cost. Where calls become rare all of a sudden, this many have to pass.
const MOST_CALLS: u32 = 512;
/// Time between two meetings while a wait runs.
const MEET_WAITING: Span = Span::from_ms(100);
/// The same at the beginning of a try, which mostly ends soon; later a quarter of what it has lasted.
const MEET_TRYING: Span = Span::from_ms(10);
/// A group that failed within so many calls was of no use, however long they took.
const FEW_CALLS: u64 = 4;

/// What a rank says is `STATUS * status + calls until the next meeting`.
const STATUS: i32 = 1 << 16;
const BEGIN: i32 = 0;
const WAIT: i32 = 1;
/// Above all codes of failures.
const PENDING: i32 = 256;
const READY: i32 = 257;

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Before the first try. It doubles with each try that fails, and with each useless group: one that failed
    /// after less than this time, or a few calls.
    pub first: Span,
    /// Longest one after a try that failed: it cost the program next to nothing.
    pub most_after_try: Span,
    /// Longest one after a useless group: its end held the program up.
    pub most_after_group: Span,
}

impl Waits {
    /// From `first` on: up to 5 s after tries, up to 10 minutes after useless groups, and never less than `first`.
    #[must_use]
    pub fn from_first(first: Span) -> Self {
        Self {
            first,
            most_after_try: first.max(Span::from_ms(5_000)),
            most_after_group: first.max(Span::from_ms(600_000)),
        }
    }
}

/// How the try stands at one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryState {
    /// It is being set up.
    Pending,
    /// This rank could begin; also ranks that lead nobody say so.
    Ready,
    /// It came to nothing, for the reason of this code.
    Failed(u8),
}

/// What all ranks do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    GoOn,
    /// Begin a try.
    Begin,
    /// End the try: it failed at some rank. Of several reasons it is the one with the least code.
    GiveUp(u8),
    /// The group stands at all ranks: the call at which they meet is the first that it may do.
    Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Offloaded,
    Waiting { ends: Time },
    Trying { since: Time },
}

/// When one rank of a communicator meets the others, and what it says there.
#[derive(Debug, Clone)]
pub struct Retry {
    waits: Waits,
    keeps_time: bool,
    phase: Phase,
    /// The number of the call at which all meet.
    meets_at: u64,
    /// Calls from the last meeting to that one.
    gap: u32,
    met: Time,
    /// Call and time from which on a group stands.
    stands_from: (u64, Time),
    /// Useless groups in a row.
    useless_groups: u32,
    /// Tries in a row that failed.
    failed: u32,
}

impl Retry {
    /// A communicator that is offloaded, or will be. Of its ranks, the same one always `keeps_time`: its clock alone
    /// says when a wait is over.
    #[must_use]
    pub const fn new(waits: Waits, keeps_time: bool) -> Self {
        Self {
            waits,
            keeps_time,
            phase: Phase::Offloaded,
            meets_at: u64::MAX,
            gap: 1,
            met: Time::ZERO,
            stands_from: (0, Time::ZERO),
            useless_groups: 0,
            failed: 0,
        }
    }

    /// Nothing is waited for: what can be offloaded is.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.phase == Phase::Offloaded
    }

    /// A group that was set up without a try stands from the call of this number on.
    pub const fn stands(&mut self, call: u64, now: Time) {
        self.stands_from = (call, now);
    }

    /// The group failed: `call` is the first one that was plain. Its end held the program up for so long.
    pub fn fell_back(&mut self, call: u64, now: Time, held_up: Span) {
        let (from, since) = self.stands_from;
        let worked = Span(now.since(since).0.saturating_sub(held_up.0));
        let was_useless = worked < self.waits.first || call < from + FEW_CALLS;
        self.useless_groups = if was_useless {
            self.useless_groups + 1
        } else {
            0
        };
        self.failed = 0;
        let doublings = self.useless_groups.saturating_sub(1);
        let wait = doubled(self.waits.first, doublings, self.waits.most_after_group);
        self.wait(call, now, wait);
    }

    /// A group could not be set up in the call of this number, or a try could not even begin, which all ranks know.
    pub fn set_up_failed(&mut self, call: u64, now: Time) {
        let wait = doubled(self.waits.first, self.failed, self.waits.most_after_try);
        self.failed += 1;
        self.wait(call, now, wait);
    }

    /// A group stands, and another one of the communicator does not yet: its try may begin at once.
    pub fn go_on(&mut self, call: u64, now: Time) {
        self.wait(call, now, Span(0));
    }

    fn wait(&mut self, call: u64, now: Time, wait: Span) {
        self.phase = Phase::Waiting { ends: now + wait };
        self.gap = 1;
        self.met = now;
        self.meets_at = call + 1;
    }

    /// How long it is until a try may begin, by this rank's clock; zero unless one is waited for.
    #[must_use]
    pub const fn rest(&self, now: Time) -> Span {
        match self.phase {
            Phase::Waiting { ends } => ends.since(now),
            Phase::Offloaded | Phase::Trying { .. } => Span::ZERO,
        }
    }

    /// Whether all ranks meet before they do the call of this number. The same at all ranks.
    #[must_use]
    pub const fn is_due(&self, call: u64) -> bool {
        call >= self.meets_at
    }

    /// What this rank says at a meeting. `try_state` counts only while a try runs.
    #[must_use]
    pub fn say(&self, now: Time, try_state: TryState) -> i32 {
        let (status, until_next) = match self.phase {
            // Who does not keep the time says what is greater than anything that counts.
            Phase::Waiting { .. } | Phase::Offloaded if !self.keeps_time => return i32::MAX,
            Phase::Waiting { ends } if now >= ends => (BEGIN, MEET_TRYING),
            Phase::Waiting { ends } => (WAIT, MEET_WAITING.min(ends.since(now))),
            Phase::Offloaded => (WAIT, MEET_WAITING),
            Phase::Trying { since } => {
                let status = match try_state {
                    TryState::Failed(code) => i32::from(code),
                    TryState::Pending => PENDING,
                    TryState::Ready => READY,
                };
                let lasted = Span(now.since(since).0 / 4);
                (status, lasted.clamp(MEET_TRYING, MEET_WAITING))
            }
        };
        status * STATUS + self.calls_in(until_next, now).cast_signed()
    }

    /// Calls that the program will make in this time if it goes on as since the last meeting; at most twice as many
    /// as since then.
    fn calls_in(&self, span: Span, now: Time) -> u32 {
        let most = (2 * self.gap).min(MOST_CALLS);
        let passed = now.since(self.met).0.max(1);
        let calls = u128::from(self.gap) * u128::from(span.0) / u128::from(passed);
        u32::try_from(calls).unwrap_or(most).clamp(1, most)
    }

    /// What follows from the least that any rank has said, at the meeting before the call of this number.
    pub fn hear(&mut self, call: u64, now: Time, least: i32) -> Step {
        let status = least / STATUS;
        self.gap = (least % STATUS).cast_unsigned().clamp(1, MOST_CALLS);
        self.met = now;
        self.meets_at = call + u64::from(self.gap);
        match (self.phase, status) {
            (Phase::Waiting { .. }, BEGIN) => {
                self.phase = Phase::Trying { since: now };
                Step::Begin
            }
            (Phase::Trying { .. }, READY) => {
                self.phase = Phase::Offloaded;
                self.meets_at = u64::MAX;
                self.stands_from = (call, now);
                self.failed = 0;
                Step::Ready
            }
            (Phase::Trying { .. }, code) if code < PENDING => {
                self.set_up_failed(call, now);
                Step::GiveUp(u8::try_from(code).unwrap_or(u8::MAX))
            }
            _ => Step::GoOn,
        }
    }
}

/// `first`, doubled so often, but not more than `most`.
fn doubled(first: Span, times: u32, most: Span) -> Span {
    let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
    Span(first.0.saturating_mul(factor)).min(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Span = Span::from_ms(1_000);

    /// The ranks of a communicator, with clocks that began at different times.
    struct Ranks {
        all: Vec<(Retry, Span)>,
        now: Time,
        call: u64,
        meetings: u64,
    }

    impl Ranks {
        fn new(offsets: &[u64]) -> Self {
            let waits = Waits::from_first(FIRST);
            let rank =
                |(rank, ms): (usize, &u64)| (Retry::new(waits, rank == 0), Span::from_ms(*ms));
            Self {
                all: offsets.iter().enumerate().map(rank).collect(),
                now: Time::ZERO,
                call: 0,
                meetings: 0,
            }
        }

        /// A call after so long; the step if they met.
        fn call(&mut self, after: Span, try_states: &[TryState]) -> Option<Step> {
            self.now += after;
            self.call += 1;
            let due = self.all[0].0.is_due(self.call);
            assert!(
                self.all
                    .iter()
                    .all(|(rank, _)| rank.is_due(self.call) == due)
            );
            if !due {
                return None;
            }
            self.meetings += 1;
            let said = self.all.iter().zip(try_states.iter().cycle());
            let least =
                said.map(|((rank, offset), try_state)| rank.say(self.now + *offset, *try_state));
            let least = least.min()?;
            let (call, now) = (self.call, self.now);
            let steps = self
                .all
                .iter_mut()
                .map(|(rank, offset)| rank.hear(call, now + *offset, least));
            let steps: Vec<Step> = steps.collect();
            assert!(steps.windows(2).all(|pair| pair[0] == pair[1]));
            steps.first().copied()
        }

        /// The group works for at least so long.
        fn work(&mut self, span: Span, every: Span) {
            let end = self.now + span;
            while self.now < end || self.call < FEW_CALLS {
                assert_eq!(self.call(every, &READY_ALL), None);
            }
        }

        fn fall_back(&mut self, held_up: Span) {
            let (call, now) = (self.call, self.now);
            for (number, (rank, offset)) in self.all.iter_mut().enumerate() {
                // Each has its own view of how long that took.
                rank.fell_back(call, now + *offset, Span(held_up.0 / (number as u64 + 1)));
            }
        }

        /// Calls until they take this step; how long that took.
        fn until(&mut self, step: Step, after: Span, try_states: &[TryState]) -> Span {
            let begun = self.now;
            for _ in 0..10_000_000 {
                if self.call(after, try_states) == Some(step) {
                    return self.now.since(begun);
                }
            }
            panic!("no {step:?} after 10,000,000 calls");
        }
    }

    const READY_ALL: [TryState; 1] = [TryState::Ready];

    #[test]
    fn nobody_meets_while_the_group_works() {
        let mut ranks = Ranks::new(&[0, 5]);
        for _ in 0..1000 {
            assert_eq!(ranks.call(Span::from_ms(1), &READY_ALL), None);
        }
    }

    #[test]
    fn a_group_that_worked_is_tried_again_after_the_first_wait() {
        for (every, late) in [(5, 0), (100, 0), (20_000, 40), (3_000_000, 3_100)] {
            let mut ranks = Ranks::new(&[0, 300, 77_000]);
            let every = Span::from_us(every);
            ranks.work(Span::from_ms(1_000), every);
            ranks.now += Span::from_ms(4_000);
            ranks.fall_back(Span::from_ms(4_000));
            let waited = ranks.until(Step::Begin, every, &READY_ALL);
            let most = FIRST + Span::from_ms(late) + Span::from_ms(10);
            assert!(
                waited >= FIRST && waited <= most,
                "{waited:?} with calls every {every:?}"
            );
            let tried = ranks.until(Step::Ready, every, &READY_ALL);
            assert!(
                tried <= Span::from_ms(20).max(Span(2 * every.0)),
                "{tried:?}"
            );
            assert!(ranks.all.iter().all(|(rank, _)| rank.is_settled()));
        }
    }

    #[test]
    fn useless_groups_double_the_wait_up_to_ten_minutes() {
        let mut ranks = Ranks::new(&[0, 1]);
        let every = Span::from_ms(10);
        let mut waits = Vec::new();
        for _ in 0..14 {
            // It fails at once, and that takes 4 s.
            ranks.now += Span::from_ms(4_000);
            ranks.fall_back(Span::from_ms(4_000));
            let waited = ranks.until(Step::Begin, every, &READY_ALL);
            waits.push(waited.as_ns().div_euclid(1_000_000_000));
            ranks.until(Step::Ready, every, &READY_ALL);
        }
        assert_eq!(
            waits,
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600]
        );
        // One that works for as long as the first wait begins anew.
        ranks.work(FIRST, every);
        ranks.now += Span::from_ms(4_000);
        ranks.fall_back(Span::from_ms(4_000));
        let waited = ranks.until(Step::Begin, every, &READY_ALL);
        assert!(waited < Span::from_ms(1_100), "{waited:?}");
    }

    /// As where one rank gets no results: all others go on to the next call, which may be much later.
    #[test]
    fn a_group_that_did_few_calls_was_useless_however_long_they_took() {
        let mut ranks = Ranks::new(&[0, 1]);
        let every = Span::from_ms(30_000);
        let mut waits = Vec::new();
        for _ in 0..9 {
            ranks.call(every, &READY_ALL);
            ranks.call(every, &READY_ALL);
            ranks.fall_back(Span::from_ms(4_000));
            let waited = ranks.until(Step::Begin, Span::from_ms(100), &READY_ALL);
            waits.push(waited.as_ns() / 1_000_000_000);
            ranks.until(Step::Ready, Span::from_ms(100), &READY_ALL);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    }

    #[test]
    fn tries_that_fail_double_the_wait_up_to_five_seconds() {
        let mut ranks = Ranks::new(&[0, 1]);
        let every = Span::from_ms(1);
        let (call, now) = (ranks.call, ranks.now);
        for (rank, offset) in &mut ranks.all {
            rank.set_up_failed(call, now + *offset);
        }
        for seconds in [1, 2, 4, 5, 5, 5] {
            let waited = ranks.until(Step::Begin, every, &[TryState::Pending]);
            let wanted = Span::from_ms(1_000 * seconds);
            assert!(
                waited >= wanted && waited <= wanted + Span::from_ms(100),
                "{waited:?}"
            );
            for _ in 0..2_000 {
                let step = ranks.call(every, &[TryState::Ready, TryState::Pending]);
                assert!(step.is_none_or(|step| step == Step::GoOn));
            }
            ranks.until(
                Step::GiveUp(7),
                every,
                &[TryState::Ready, TryState::Failed(7)],
            );
        }
    }

    #[test]
    fn the_least_code_of_several_failures_is_heard() {
        let mut ranks = Ranks::new(&[0, 1, 2]);
        ranks.fall_back(Span(0));
        ranks.until(Step::Begin, Span::from_ms(1), &READY_ALL);
        let all = [TryState::Failed(9), TryState::Pending, TryState::Failed(4)];
        ranks.until(Step::GiveUp(4), Span::from_ms(1), &all);
    }

    #[test]
    fn meetings_are_a_500th_of_calls_that_are_frequent() {
        let mut ranks = Ranks::new(&[0, 1]);
        ranks.fall_back(Span(0));
        let from = ranks.call;
        ranks.until(Step::Begin, Span::from_us(10), &READY_ALL);
        let calls = ranks.call - from;
        assert!(
            calls >= 100_000 && ranks.meetings < calls / 450,
            "{} of {calls}",
            ranks.meetings
        );
    }

    proptest! {
        /// Whatever the program's rhythm and the clocks are: the same calls, the same steps (`Ranks::call` checks it), and a try
        /// that comes at last.
        #[test]
        fn all_ranks_always_do_the_same(
            offsets in prop::collection::vec(0_u64..1_000_000, 1..6),
            gaps in prop::collection::vec(1_u64..2_000_000, 1..50),
            events in prop::collection::vec(0_u8..6, 1..40),
        ) {
            let mut ranks = Ranks::new(&offsets);
            let mut gaps = gaps.iter().cycle().map(|us| Span::from_us(*us));
            let mut next = move || gaps.next().unwrap_or(Span(1));
            ranks.fall_back(Span::from_ms(5));
            for event in events {
                let try_state = match event {
                    0 => TryState::Failed(event),
                    1 => TryState::Pending,
                    _ => TryState::Ready,
                };
                for _ in 0..600 {
                    if ranks.all[0].0.is_settled() {
                        ranks.fall_back(Span::from_ms(u64::from(event) * 700));
                    }
                    let all = [TryState::Ready, try_state];
                    ranks.call(next(), &all);
                }
            }
        }
    }
}
