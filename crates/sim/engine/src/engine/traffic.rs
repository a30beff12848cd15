//! The workload: which message starts next, and what it hears of deliveries.

use raddle_units::{NodeId, PortId, Time};
use raddle_workload::{Message, Workload};

use super::{
    context::Context,
    what::{Kind, What},
};
use crate::index::{List, PendingIndex};

/// See the module.
pub(super) struct Traffic<'a> {
    workload: &'a mut dyn Workload,
    /// When the next message is looked for.
    pub(super) next_start: Time,
    /// Messages between the steps of their start.
    pending: List<PendingIndex, Message>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(workload: &'a mut dyn Workload) -> Self {
        Self {
            workload,
            next_start: Time::NEVER,
            pending: List::default(),
        }
    }

    /// Has the next message looked for when it is due.
    pub(super) fn schedule_start(&mut self, cx: &mut Context<'_>) {
        if let Some(start) = self.workload.next_start()
            && start.max(cx.now) < self.next_start
        {
            self.next_start = start.max(cx.now);
            cx.schedule(self.next_start, (Kind::Start, PortId(0), 0), What::Start);
        }
    }

    /// Those that were due are looked for now.
    pub(super) fn begin(&mut self) {
        self.next_start = Time::NEVER;
        self.pending.clear();
    }

    /// The next message that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Message> {
        let due = self.workload.next_start().is_some_and(|start| start <= now);
        if due { self.workload.pop() } else { None }
    }

    /// Keeps a message until the reference would start it.
    pub(super) fn keep(&mut self, cx: &mut Context<'_>, message: Message) {
        let pending = self.pending.push(message);
        let what = What::StartSoon(pending);
        cx.schedule(cx.now, (Kind::StartSoon, PortId(0), 0), what);
    }

    /// A message that was kept.
    pub(super) fn kept(&self, pending: PendingIndex) -> Message {
        self.pending[pending]
    }

    /// Whether deliveries may start messages.
    #[inline]
    pub(super) fn has_dependencies(&self) -> bool {
        self.workload.has_dependencies()
    }

    /// The receiver of a message has it. [`Self::schedule_start`] is to follow.
    pub(super) fn delivered(&mut self, now: Time, tag: u64) {
        self.workload.on_delivered(now, tag);
    }

    /// A member of a group has a message, and `all` of them have it. [`Self::schedule_start`] is to follow.
    pub(super) fn member_delivered(&mut self, now: Time, tag: u64, member: NodeId, all: bool) {
        if !self.workload.has_dependencies() {
            return;
        }
        self.workload.on_member_delivered(now, tag, member);
        if all {
            self.workload.on_delivered(now, tag);
        }
    }

    pub(super) fn is_open_ended(&self) -> bool {
        self.workload.is_open_ended()
    }

    pub(super) fn finished(&self) -> bool {
        self.workload.finished()
    }
}
