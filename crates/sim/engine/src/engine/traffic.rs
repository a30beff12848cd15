//! The workload in a process: which message starts next, and what is delivered here.

use std::collections::VecDeque;

use raddle_units::{NodeId, Time};
use raddle_workload::{Message, Workload};

use super::{
    context::Context,
    what::{Kind, What},
};
use crate::index::{List, PendingIndex, PortIndex};

/// A host has a message for which others wait: they hear at the window's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) time: Time,
    pub(super) key: u64,
    pub(super) host: NodeId,
    pub(super) tag: u64,
}

/// See the module.
pub(super) struct Traffic<'a> {
    /// What hosts of this process send, or the whole workload; `None`: the run hands messages out.
    part: Option<Box<dyn Workload + 'a>>,
    /// Messages that were handed out, in order of start.
    handed_out: VecDeque<Message>,
    /// Deliveries may start messages.
    reacts: bool,
    /// When the next message is looked for.
    pub(super) next_start: Time,
    /// Nothing starts before the window that is under way.
    pub(super) not_before: Time,
    /// Messages between the steps of their start.
    pending: List<PendingIndex, Message>,
    pub(super) deliveries: Vec<Delivery>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(part: Option<Box<dyn Workload + 'a>>, reacts: bool) -> Self {
        Self {
            part,
            handed_out: VecDeque::new(),
            reacts,
            next_start: Time::NEVER,
            not_before: Time::ZERO,
            pending: List::default(),
            deliveries: Vec::new(),
        }
    }

    /// A message that starts in the next window, not before those that were handed out.
    pub(super) fn hand_out(&mut self, message: Message) {
        self.handed_out.push_back(message);
    }

    /// When the next message starts that waits for nothing but its time, `done` at the earliest; never where there is none.
    pub(super) fn next_after(&self, done: Time) -> Time {
        self.next().map_or(Time::NEVER, |start| start.max(done))
    }

    fn next(&self) -> Option<Time> {
        match &self.part {
            Some(part) => part.next_start(),
            None => self.handed_out.front().map(|message| message.start),
        }
    }

    /// Has the next message looked for when it is due.
    pub(super) fn schedule_start(&mut self, cx: &mut Context<'_>) {
        let earliest = cx.now.max(self.not_before);
        if let Some(start) = self.next()
            && start.max(earliest) < self.next_start
        {
            self.next_start = start.max(earliest);
            let place = (Kind::Start, PortIndex(0), 0);
            cx.schedule(self.next_start, place, What::Start);
        }
    }

    /// Those that were due are looked for now.
    pub(super) fn begin(&mut self) {
        self.next_start = Time::NEVER;
        self.pending.clear();
    }

    /// The next message that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Message> {
        if self.next().is_none_or(|start| start > now) {
            return None;
        }
        match &mut self.part {
            Some(part) => part.pop(),
            None => self.handed_out.pop_front(),
        }
    }

    /// Keeps a message until the reference would start it.
    pub(super) fn keep(&mut self, cx: &mut Context<'_>, message: Message) {
        let pending = self.pending.push(message);
        let what = What::StartSoon(pending);
        cx.schedule(cx.now, (Kind::StartSoon, PortIndex(0), 0), what);
    }

    /// A message that was kept.
    pub(super) fn kept(&self, pending: PendingIndex) -> Message {
        self.pending[pending]
    }

    /// Whether deliveries may start messages.
    #[inline]
    pub(super) const fn reacts(&self) -> bool {
        self.reacts
    }

    /// A host has a message. [`Self::schedule_start`] is to follow.
    pub(super) fn delivered(&mut self, cx: &Context<'_>, host: NodeId, tag: u64) {
        if !self.reacts {
            return;
        }
        let Some(part) = &mut self.part else {
            return;
        };
        part.on_delivered(cx.now, tag);
        if cx.serial || !part.is_news(tag) {
            return;
        }
        self.deliveries.push(Delivery {
            time: cx.now,
            key: cx.key,
            host,
            tag,
        });
    }

    /// A member of a group has a message. [`Self::schedule_start`] is to follow.
    pub(super) fn member_delivered(&mut self, cx: &Context<'_>, tag: u64, member: NodeId) {
        if let Some(part) = self.part.as_mut().filter(|_| self.reacts) {
            part.on_member_delivered(cx.now, tag, member);
        }
    }

    /// In a run of one process: a member of a group has a message, and `all` of them have it.
    pub(super) fn all_delivered(&mut self, cx: &Context<'_>, tag: u64, all: bool) {
        if let Some(part) = self.part.as_mut().filter(|_| self.reacts && all) {
            part.on_delivered(cx.now, tag);
        }
    }

    /// Whether hosts other than those that have a message wait for it.
    pub(super) fn is_news(&self, tag: u64) -> bool {
        self.part.as_ref().is_some_and(|part| part.is_news(tag))
    }

    /// The host that waits for a message, where it is a single one.
    pub(super) fn news_for(&self, tag: u64) -> Option<NodeId> {
        self.part.as_ref().and_then(|part| part.news_for(tag))
    }

    /// A host has had a message since `now` (of a group: this member, or all): others of this process may have waited for it.
    pub(super) fn hear(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        if let Some(part) = &mut self.part {
            part.on_news(now, tag, member);
        }
    }

    pub(super) fn is_open_ended(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.is_open_ended())
    }

    /// Nothing is left of what was handed out, or of the workload's part.
    pub(super) fn finished(&self) -> bool {
        match &self.part {
            Some(part) => part.finished(),
            None => self.handed_out.is_empty(),
        }
    }
}
