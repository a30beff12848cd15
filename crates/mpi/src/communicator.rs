//! One communicator of the program: what has been decided about it, and about each of its calls.
//!
//! Every rank must decide the same about the same call. So a decision rests only on what MPI makes equal on all ranks
//! (which collective, how many bytes of which type, the root, how many calls went before) and on what the ranks agreed
//! on by plain MPI.

use std::{collections::HashMap, time::Instant};

use raddle_offload::{
    order::{self, Plan},
    reduce::Likeness,
};
use raddle_wire::{DataType, Operation, native::Collective};
use serde_json::{Value, json};

use crate::{
    abi::{Plain, PlainFailed},
    adapt::{Choice, Classes},
    group::{Group, Roles},
    log, orders,
    places::{self, Hello},
    reason::Reason,
    report::Counts,
    settings::{self, Offload},
};

/// The call at which the ranks of a communicator compare their settings and places. A number that no setting changes:
/// all must come to it at the same call.
const AGREE_AT: u64 = 4;
/// With RADDLE_OFFLOAD=auto, the call at which a group is set up: a communicator with fewer gains nothing.
const SET_UP_AT: u64 = 50;
/// Kinds of calls (count, type, operation, root) whose order of additions is looked into. Others stay plain.
const MOST_KINDS: usize = 4096;
/// Groups at the switches for one communicator: one for each tree of additions.
const MOST_LANES: usize = 4;

/// What the shim is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Plain,
    PlainTimed,
    Offload,
}

/// A communicator as MPI shows it.
pub(crate) struct View {
    pub(crate) plain: Plain,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) inter: bool,
    pub(crate) world: bool,
    pub(crate) session: bool,
    pub(crate) name: String,
}

/// One call of this rank. The buffers are the program's and hold `count` elements; `receive` is null where this rank
/// gets nothing.
pub(crate) struct Call {
    pub(crate) send: *const u8,
    pub(crate) receive: *mut u8,
    /// Elements; bytes of a Bcast.
    pub(crate) count: usize,
    /// MPI's handle of the type.
    pub(crate) handle: usize,
    pub(crate) root: u32,
    pub(crate) collective: Collective,
    pub(crate) operation: Option<Operation>,
    pub(crate) data_type: Option<DataType>,
    /// Why the shim knows that it stays plain.
    pub(crate) reason: Reason,
}

impl Call {
    /// Bytes of the message.
    fn bytes(&self) -> usize {
        match self.collective {
            Collective::Barrier => 0,
            Collective::Bcast => self.count,
            _ => self
                .count
                .saturating_mul(self.data_type.map_or(0, DataType::size)),
        }
    }
}

enum Phase {
    /// Nothing is known but how many calls there were.
    Early,
    /// The ranks agree that it could gain.
    Agreed(Roles),
    /// A group stands.
    Ready(Box<Ready>),
    /// For good.
    Plain(Reason),
}

/// A communicator with a group.
struct Ready {
    group: Group,
    classes: Classes,
    kinds: HashMap<Kind, Way>,
}

/// What the order of additions can depend on.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Kind {
    collective: Collective,
    operation: Option<Operation>,
    data_type: Option<DataType>,
    count: usize,
    handle: usize,
    root: u32,
}

#[derive(Clone, Copy)]
enum Way {
    Lane { index: usize, ordered: bool },
    Plain(Reason),
}

/// The call that was begun.
struct Pending {
    lane: usize,
    ordered: bool,
    /// Measure it.
    since: Option<Instant>,
    collective: Collective,
    bytes: usize,
}

/// One communicator of the program.
pub(crate) struct Communicator {
    view: View,
    phase: Phase,
    calls: u64,
    counts: Counts,
    pending: Option<Pending>,
}

// SAFETY: calls hold pointers only while they run, in the thread that makes them.
unsafe impl Send for Communicator {}

impl Communicator {
    pub(crate) fn new(view: View) -> Self {
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
        match self.phase {
            Phase::Plain(reason) => return self.plain(reason),
            Phase::Early => return self.plain(Reason::Early),
            Phase::Agreed(_) | Phase::Ready(_) => {}
        }
        if call.reason != Reason::Eligible {
            return self.plain(call.reason);
        }
        let bytes = call.bytes();
        if bytes > settings::get().max_bytes {
            return self.plain(Reason::Size);
        }
        let measured = settings::get().offload == Offload::Auto;
        if matches!(self.phase, Phase::Agreed(_)) {
            if measured && self.calls < SET_UP_AT {
                return self.plain(Reason::Early);
            }
            self.prepare();
        }
        let Phase::Ready(ready) = &mut self.phase else {
            return self.plain(Reason::Failed);
        };
        if measured && ready.classes.of(call.collective, bytes).is_plain() {
            return self.plain(Reason::Slower);
        }
        let way = match ready.way(&self.view, call) {
            Ok(way) => way,
            Err(PlainFailed) => Way::Plain(Reason::Failed),
        };
        let (lane, ordered) = match way {
            Way::Lane { index, ordered } => (index, ordered),
            Way::Plain(reason) => {
                if ready.group.is_empty() && !matches!(reason, Reason::Order | Reason::Arithmetic) {
                    self.phase = self.stay_plain(reason);
                }
                return self.plain(reason);
            }
        };
        let choice = if measured {
            ready.choose(self.view.plain, call.collective, bytes)
        } else {
            Choice::Offload
        };
        let is_trial = matches!(choice, Choice::TryOffload | Choice::TryPlain);
        self.pending = Some(Pending {
            lane,
            ordered,
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

    /// Does the call that was begun. False: it is plain after all.
    pub(crate) fn run(&mut self, call: &Call) -> bool {
        let (Some(pending), Phase::Ready(ready)) = (self.pending.take(), &mut self.phase) else {
            return false;
        };
        if ready.group.run(pending.lane, pending.ordered, call) {
            let class = ready.classes.of(pending.collective, pending.bytes);
            if let Some(since) = pending.since {
                class.took(true, since.elapsed());
            }
            self.counts.saved_seconds += class.saving();
            self.counts.rounds.bytes += pending.bytes as u64;
            self.counts.offloaded(pending.collective);
            return true;
        }
        // Every rank learns it at the same call, the first one that is plain.
        self.counts.rounds.fallbacks += 1;
        self.counts.plain(Reason::Failed);
        self.release();
        self.close();
        self.phase = self.stay_plain(Reason::Failed);
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
            ready.group.release();
        }
    }

    /// It is gone, or MPI ends. MPI is not called.
    pub(crate) fn close(&mut self) {
        if let Phase::Ready(ready) = &mut self.phase {
            let rounds = ready.group.rounds();
            self.counts.rounds.rounds += rounds.rounds;
            self.counts.rounds.resent += rounds.resent;
            ready.group.close();
        }
    }

    /// As [`Self::begin`] where all calls are plain by now; it computes no floating-point numbers.
    pub(crate) fn begin_plain(&mut self, collective: Collective) -> Option<Verdict> {
        let Phase::Plain(reason) = self.phase else {
            return None;
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

    fn stay_plain(&self, reason: Reason) -> Phase {
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

    /// All ranks compare what each knows; who speaks for whom, or why nobody does.
    fn agree(&self) -> Result<Result<Roles, Reason>, PlainFailed> {
        let size = self.view.size as usize;
        let mine = Hello::of_this_process().to_bytes();
        let all = self.view.plain.allgather(&mine, size)?;
        let hellos: Vec<_> = all.as_chunks().0.iter().map(Hello::from_bytes).collect();
        let settings = settings::get();
        Ok(if hellos.iter().any(|hello| !hello.has_job) {
            Err(Reason::NoJob)
        } else if hellos.iter().any(|hello| hello.digest != hellos[0].digest) {
            Err(Reason::Settings)
        } else if settings.offload == Offload::Never {
            Err(Reason::Never)
        } else if hellos.iter().all(|hello| hello.node == hellos[0].node) {
            Err(Reason::OneNode)
        } else {
            let members = places::members(&hellos, settings.mode, settings.sockets);
            Ok(Roles::new(
                members,
                self.view.rank,
                places::placement(&hellos),
            ))
        })
    }

    /// From `Agreed` to `Ready`.
    fn prepare(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Plain(Reason::Failed));
        let Phase::Agreed(roles) = phase else { return };
        let members = roles.members.len();
        if let Ok(group) = Group::new(self.view.plain, self.view.rank, roles) {
            self.say(format_args!("{members} leaders"));
            self.phase = Phase::Ready(Box::new(Ready {
                group,
                classes: Classes::new(),
                kinds: HashMap::new(),
            }));
        }
    }

    /// Whether this rank is the one that reports it.
    pub(crate) fn reports(&self) -> bool {
        self.view.rank == 0 && self.counts.any()
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// For the report, at the rank that reports it.
    pub(crate) fn summary(&self) -> Option<Value> {
        let state = match &self.phase {
            Phase::Early | Phase::Agreed(_) => Reason::Early.key(),
            Phase::Ready(_) => "offload",
            Phase::Plain(reason) => reason.key(),
        };
        self.reports().then(|| {
            json!({
                "name": self.title(),
                "size": self.view.size,
                "state": state,
                "counts": self.counts.to_json(),
            })
        })
    }
}

impl Ready {
    /// The way of a kind of call. All ranks come here with the same call; the first of a kind asks and may set up.
    fn way(&mut self, view: &View, call: &Call) -> Result<Way, PlainFailed> {
        let kind = match call.collective {
            // No values are combined: the length does not matter.
            Collective::Barrier | Collective::Bcast => Kind {
                collective: call.collective,
                operation: None,
                data_type: None,
                count: 0,
                handle: 0,
                root: 0,
            },
            Collective::Allreduce | Collective::Reduce => Kind {
                collective: call.collective,
                operation: call.operation,
                data_type: call.data_type,
                count: call.count,
                handle: call.handle,
                root: call.root,
            },
        };
        if let Some(way) = self.kinds.get(&kind) {
            return Ok(*way);
        }
        if self.kinds.len() >= MOST_KINDS {
            return Ok(Way::Plain(Reason::Order));
        }
        let plan = match (kind.operation, kind.data_type) {
            (Some(operation), Some(data_type)) => {
                let call = order::Call {
                    collective: kind.collective,
                    operation,
                    data_type,
                    count: kind.count,
                    size: view.size,
                    root: kind.root,
                    placement: self.group.placement(),
                    likeness: Likeness::Same,
                };
                orders::plan(view.plain, view.rank, kind.handle, call)?
            }
            _ => Ok(Plan::Any),
        };
        let tree = match &plan {
            Ok(Plan::Tree(tree)) => Some(tree),
            Ok(_) => None,
            Err(reason) => {
                self.kinds.insert(kind, Way::Plain(*reason));
                return Ok(Way::Plain(*reason));
            }
        };
        let way = match self.group.lane(tree, MOST_LANES) {
            Ok(index) if self.group.supports(index, call) => Way::Lane {
                index,
                ordered: tree.is_some(),
            },
            Ok(_) => Way::Plain(Reason::Unsupported),
            Err(reason) => Way::Plain(reason),
        };
        self.kinds.insert(kind, way);
        Ok(way)
    }

    fn choose(&mut self, plain: Plain, collective: Collective, bytes: usize) -> Choice {
        let class = self.classes.of(collective, bytes);
        let choice = class.next();
        if choice != Choice::Compare {
            return choice;
        }
        let Ok(sums) = plain.sum(class.medians()) else {
            return Choice::Plain;
        };
        class.decide(sums);
        class.next()
    }
}
