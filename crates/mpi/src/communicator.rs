//! One communicator of the program: what has been decided about it, and about each of its calls.
//!
//! Every rank must decide the same about the same call. So a decision rests only on what MPI makes equal on all ranks
//! (which collective, how many bytes of which type, the root, how many calls went before) and on what the ranks agreed
//! on by plain MPI.

use raddle_wire::{DataType, Operation, native::Collective};
use serde_json::{Value, json};

use crate::{
    abi::{Plain, PlainFailed},
    log,
    places::{self, Hello},
    reason::Reason,
    report::Counts,
    settings::{self, Offload},
};

/// The call at which the ranks of a communicator compare their settings and places. A number that no setting changes:
/// all must come to it at the same call.
const AGREE_AT: u64 = 4;

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
    pub(crate) root: u32,
    pub(crate) collective: Collective,
    pub(crate) operation: Option<Operation>,
    pub(crate) data_type: Option<DataType>,
    /// Why the shim knows that it stays plain.
    pub(crate) reason: Reason,
}

enum Phase {
    Early,
    Plain(Reason),
}

/// One communicator of the program.
pub(crate) struct Communicator {
    view: View,
    phase: Phase,
    calls: u64,
    counts: Counts,
}

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
        }
    }

    /// Decides about a call.
    pub(crate) fn begin(&mut self, call: &Call) -> Verdict {
        self.calls += 1;
        self.counts.call(call.collective);
        if matches!(self.phase, Phase::Early) && self.calls == AGREE_AT {
            self.phase = Phase::Plain(self.agree().unwrap_or(Reason::Failed));
        }
        match &self.phase {
            Phase::Early => self.plain(Reason::Early),
            Phase::Plain(reason) => self.plain(*reason),
        }
    }

    fn plain(&mut self, reason: Reason) -> Verdict {
        self.counts.plain(reason);
        Verdict::Plain
    }

    pub(crate) fn run(&mut self, _call: &Call) -> bool {
        false
    }
    pub(crate) fn timed(&mut self) {}
    pub(crate) fn release(&mut self) {}
    pub(crate) fn close(&mut self) {}

    fn agree(&mut self) -> Result<Reason, PlainFailed> {
        let size = self.view.size as usize;
        let all = self
            .view
            .plain
            .allgather(&Hello::of_this_process().to_bytes(), size)?;
        let hellos: Vec<_> = all.as_chunks().0.iter().map(Hello::from_bytes).collect();
        let _ = places::members(&hellos, settings::get().mode, settings::get().sockets);
        Ok(Reason::NoJob)
    }

    pub(crate) fn reports(&self) -> bool {
        self.view.rank == 0 && self.counts.any()
    }
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
    pub(crate) fn summary(&self) -> Option<Value> {
        self.reports().then(|| json!({"name": self.view.name, "size": self.view.size, "counts": self.counts.to_json()}))
    }
}
