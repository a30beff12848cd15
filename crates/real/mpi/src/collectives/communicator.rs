//! One communicator of the program: what has been decided about it, and about each of its calls.
//!
//! Every rank must decide the same about the same call. So a decision rests only on what MPI makes equal on all ranks
//! (which collective, how many bytes of which type, the root, how many calls went before) and on what the ranks agreed
//! on by plain MPI.

use std::time::Instant;

use raddle_offload::retry::Step;
use raddle_wire::native::Collective;
use serde_json::{Value, json};

use super::{
    adapt::Choice,
    agreement::{self, Hello},
    call::{Call, Verdict, View},
    counts::Counts,
    ready::{Lane, Ready},
    reason::Reason,
    roles::Roles,
};
use crate::{
    library::{Mpi, PlainFailed},
    log,
    settings::{Offload, Protocol},
};

/// The call at which the ranks of a communicator compare their settings and places. A number that no setting changes:
/// all must come to it at the same call.
const AGREE_AT: u64 = 4;
/// With RADDLE_OFFLOAD=auto, the call at which a group is set up: a communicator with fewer gains nothing.
const SET_UP_AT: u64 = 50;

enum Phase<M> {
    /// Nothing is known but how many calls there were.
    Early,
    /// The ranks agree that it could gain.
    Agreed(Roles),
    /// Groups stand, or are waited for.
    Ready(Box<Ready<M>>),
    /// For good.
    Plain(Reason),
}

/// The call that was begun.
struct Pending {
    lane: Lane,
    /// Measure it.
    since: Option<Instant>,
    collective: Collective,
    bytes: usize,
}

/// One communicator of the program.
pub(crate) struct Communicator<M> {
    view: View<M>,
    phase: Phase<M>,
    calls: u64,
    counts: Counts,
    pending: Option<Pending>,
}

impl<M: Mpi> Communicator<M> {
    pub(crate) fn new(view: View<M>) -> Self {
        let phase = if view.inter {
            Phase::Plain(Reason::Intercommunicator)
        } else if view.size < 2 {
            Phase::Plain(Reason::Alone)
        } else if view.session {
            Phase::Plain(Reason::Session)
        } else {
            Phase::Early
        };
        Self {
            view,
            phase,
            calls: 0,
            counts: Counts::new(),
            pending: None,
        }
    }

    /// Decides about a call.
    pub(crate) fn begin(&mut self, call: &Call) -> Verdict {
        self.note(call.collective);
        if matches!(self.phase, Phase::Early) && self.calls == AGREE_AT {
            self.phase = match self.agree() {
                Ok(Ok(roles)) => Phase::Agreed(roles),
                Ok(Err(reason)) => self.stay_plain(reason),
                Err(PlainFailed) => Phase::Plain(Reason::Failed),
            };
        }
        if matches!(&self.phase, Phase::Ready(ready) if ready.is_due(self.calls)) {
            self.meet();
        }
        match &self.phase {
            Phase::Plain(reason) => return self.plain(*reason),
            Phase::Early => return self.plain(Reason::Early),
            Phase::Agreed(_) => {}
            Phase::Ready(ready) => {
                if let Some(reason) = ready.off() {
                    return self.plain(reason);
                }
            }
        }
        if call.reason != Reason::Eligible {
            return self.plain(call.reason);
        }
        let published = self.view.settings.protocol == Protocol::Published;
        if published && call.collective != Collective::Allreduce {
            return self.plain(Reason::Unsupported);
        }
        let bytes = call.bytes();
        if bytes > self.view.settings.most_bytes() {
            return self.plain(Reason::Size);
        }
        let measured = self.view.settings.offload == Offload::Auto;
        if matches!(self.phase, Phase::Agreed(_)) {
            if measured && self.calls < SET_UP_AT {
                return self.plain(Reason::Early);
            }
            self.prepare();
        }
        self.offer(call, bytes, measured)
    }

    /// Decides about a call that could be offloaded.
    fn offer(&mut self, call: &Call, bytes: usize, measured: bool) -> Verdict {
        let Phase::Ready(ready) = &mut self.phase else {
            return self.plain(Reason::Failed);
        };
        if measured && ready.classes.of(call.collective, bytes).is_plain() {
            return self.plain(Reason::Slower);
        }
        let lane = match ready.way(&self.view, call, self.calls) {
            Ok(Ok(lane)) => lane,
            Ok(Err(reason)) => {
                if let Some(reason) = ready.off() {
                    self.went_off(reason);
                }
                return self.plain(reason);
            }
            Err(PlainFailed) => {
                self.fail();
                return self.plain(Reason::Failed);
            }
        };
        let choice = if measured {
            ready.choose(&self.view.plain, call.collective, bytes)
        } else {
            Choice::Offload
        };
        let is_trial = matches!(choice, Choice::TryOffload | Choice::TryPlain);
        self.pending = Some(Pending {
            lane,
            since: is_trial.then(Instant::now),
            collective: call.collective,
            bytes,
        });
        match choice {
            Choice::Offload | Choice::TryOffload => Verdict::Offload,
            Choice::TryPlain => {
                self.counts.plain(Reason::Measuring);
                Verdict::PlainTimed
            }
            Choice::Plain | Choice::Compare => self.plain(Reason::Slower),
        }
    }

    /// All ranks meet, to try again what has failed.
    fn meet(&mut self) {
        let Phase::Ready(ready) = &mut self.phase else {
            return;
        };
        let before = ready.off();
        let Ok(step) = ready.meet(&self.view.plain, self.calls) else {
            return self.fail();
        };
        let after = ready.off();
        match step {
            Step::GoOn | Step::GiveUp(_) => {}
            Step::Begin => self.counts.rounds.tries += 1,
            Step::Ready => self.counts.rounds.comebacks += 1,
        }
        match after {
            None if before.is_some() => self.say(format_args!("offloaded from here on")),
            Some(reason) if before != after => self.went_off(reason),
            _ => {}
        }
    }

    /// All calls are plain, for good or until a try succeeds.
    fn went_off(&mut self, reason: Reason) {
        let rest = match &self.phase {
            Phase::Ready(ready) => ready.rest(),
            _ => None,
        };
        let Some(rest) = rest else {
            self.release();
            self.close();
            self.phase = self.stay_plain(reason);
            return;
        };
        self.say(format_args!(
            "plain MPI: {}; the next try is in {:.1} s",
            reason.meaning(),
            rest.as_secs_f64()
        ));
    }

    /// MPI itself has failed: what the ranks have in common is no longer known.
    fn fail(&mut self) {
        self.release();
        self.close();
        self.phase = Phase::Plain(Reason::Failed);
    }

    /// Does the call that was begun. False: it is plain after all.
    pub(crate) fn run(&mut self, call: &Call) -> bool {
        let (Some(pending), Phase::Ready(ready)) = (self.pending.take(), &mut self.phase) else {
            return false;
        };
        match ready.run(pending.lane, call, self.calls) {
            Ok(true) => {
                let class = ready.classes.of(pending.collective, pending.bytes);
                if let Some(since) = pending.since {
                    class.took(true, since.elapsed());
                }
                self.counts.saved_seconds += class.saving();
                self.counts.rounds.bytes += pending.bytes as u64;
                self.counts.offloaded(pending.collective);
                return true;
            }
            Ok(false) => {
                self.counts.rounds.fallbacks += 1;
                self.went_off(Reason::Failed);
            }
            Err(PlainFailed) => self.fail(),
        }
        self.counts.plain(Reason::Failed);
        false
    }

    /// The plain half of a measurement is done.
    pub(crate) fn timed(&mut self) {
        if let (Some(pending), Phase::Ready(ready)) = (self.pending.take(), &mut self.phase)
            && let Some(since) = pending.since
        {
            ready
                .classes
                .of(pending.collective, pending.bytes)
                .took(false, since.elapsed());
        }
    }

    /// The communicator is about to be freed.
    pub(crate) fn release(&mut self) {
        if let Phase::Ready(ready) = &mut self.phase {
            ready.release();
        }
    }

    /// It is gone, or MPI ends. MPI is not called.
    pub(crate) fn close(&mut self) {
        if let Phase::Ready(ready) = &mut self.phase {
            let rounds = ready.rounds();
            self.counts.rounds.rounds += rounds.rounds;
            self.counts.rounds.resent += rounds.resent;
            ready.close();
        }
    }

    /// As [`Self::begin`] where the call is plain and nothing else is to be done; it computes no floating-point numbers.
    pub(crate) fn begin_plain(&mut self, collective: Collective) -> Option<Verdict> {
        let reason = match &self.phase {
            Phase::Plain(reason) => *reason,
            Phase::Ready(ready) if !ready.is_due(self.calls + 1) => ready.off()?,
            _ => return None,
        };
        self.note(collective);
        Some(self.plain(reason))
    }

    fn note(&mut self, collective: Collective) {
        self.calls += 1;
        self.counts.call(collective);
        self.pending = None;
    }

    fn plain(&mut self, reason: Reason) -> Verdict {
        self.counts.plain(reason);
        Verdict::Plain
    }

    fn stay_plain(&self, reason: Reason) -> Phase<M> {
        self.say(format_args!("plain MPI: {}", reason.meaning()));
        Phase::Plain(reason)
    }

    fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.view.rank == 0 {
            log::info(format_args!(
                "{} of {} ranks: {what}",
                self.title(),
                self.view.size
            ));
        }
    }

    fn title(&self) -> &str {
        match (self.view.name.as_str(), self.view.world) {
            ("", true) => "MPI_COMM_WORLD",
            ("", false) => "a communicator",
            (name, _) => name,
        }
    }

    /// All ranks compare their settings and places. Gives who speaks for whom, or why the communicator stays plain.
    fn agree(&self) -> Result<Result<Roles, Reason>, PlainFailed> {
        let size = self.view.size as usize;
        let mine = Hello::of_this_process(self.view.settings).to_bytes();
        let all = self.view.plain.allgather(&mine, size)?;
        let hellos: Vec<_> = all.as_chunks().0.iter().map(Hello::from_bytes).collect();
        let settings = self.view.settings;
        Ok(if hellos.iter().any(|hello| !hello.has_job) {
            Err(Reason::NoJob)
        } else if hellos.iter().any(|hello| hello.digest != hellos[0].digest) {
            Err(Reason::Settings)
        } else if settings.offload == Offload::Never {
            Err(Reason::Never)
        } else if hellos.iter().all(|hello| hello.node == hellos[0].node) {
            Err(Reason::OneNode)
        } else {
            let members = agreement::members(&hellos, settings.mode, settings.sockets);
            let nodes: Vec<u64> = hellos.iter().map(|hello| hello.node).collect();
            let placement = agreement::placement(&hellos);
            let roles = Roles::new(members, self.view.rank, placement, &nodes);
            if settings.protocol == Protocol::Published && roles.published.is_none() {
                Err(Reason::Places)
            } else {
                Ok(roles)
            }
        })
    }

    /// From `Agreed` to `Ready`.
    fn prepare(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Plain(Reason::Failed));
        let Phase::Agreed(roles) = phase else { return };
        let members = roles.members.len();
        if let Ok(ready) = Ready::new(&self.view, roles) {
            self.say(format_args!("{members} leaders"));
            self.phase = Phase::Ready(Box::new(ready));
        }
    }

    /// For the report, at the rank that reports it.
    pub(crate) fn summary(&self) -> Option<Value> {
        let state = match &self.phase {
            Phase::Early | Phase::Agreed(_) => Reason::Early.key(),
            Phase::Ready(ready) => ready.off().map_or("offload", Reason::key),
            Phase::Plain(reason) => reason.key(),
        };
        (self.view.rank == 0 && self.counts.any()).then(|| {
            json!({
                "name": self.title(),
                "size": self.view.size,
                "state": state,
                "counts": self.counts.to_json(),
            })
        })
    }
}
