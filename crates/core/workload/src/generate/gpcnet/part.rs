//! Ranks of some hosts: deliveries in, next operations out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use raddle_units::{NodeId, Time};

use super::exchange::Exchange;
use super::run::{OpKind, Stage, asker, response, tag};
use crate::{Message, Workload};

/// What a rank is at.
#[derive(Clone, Default, Debug)]
struct State {
    exchange: Exchange,
    /// Messages to rank 0 so far.
    pushed: u64,
}

/// The ranks of some hosts.
pub(super) struct Part {
    stage: Arc<Stage>,
    /// By rank: its place in the part that has it.
    places: Arc<[u32]>,
    /// Whether deliveries are told as [`Workload::split`] says.
    is_cut: bool,
    ranks: Vec<u32>,
    /// By place.
    states: Vec<State>,
    /// Messages that wait for their time, by (time, tag).
    ready: BinaryHeap<Reverse<(Time, u64)>>,
    /// Messages of all victims that have not been delivered. With the last of them all victims are through.
    measured: u64,
}

impl Part {
    /// These ranks, each with its first messages; `places` has their places among them.
    pub(super) fn new(
        stage: Arc<Stage>,
        places: Arc<[u32]>,
        is_cut: bool,
        ranks: Vec<u32>,
    ) -> Self {
        let mut part = Self {
            places,
            is_cut,
            states: vec![State::default(); ranks.len()],
            ready: BinaryHeap::new(),
            measured: stage.measured,
            ranks,
            stage,
        };
        for place in 0..part.ranks.len() {
            let rank = part.ranks[place];
            if part.stage.is_victim(rank) {
                part.begin_step(part.stage.warmup, rank, 0);
            } else if part.stage.exchanges(rank) {
                part.begin_step(Time::ZERO, rank, 0);
            } else if part.stage.pushes(rank) {
                part.push_to_root(Time::ZERO, rank);
            }
        }
        part
    }

    fn has(&self, rank: u32) -> bool {
        self.ranks.get(self.places[rank as usize] as usize) == Some(&rank)
    }

    fn state(&mut self, rank: u32) -> &mut State {
        &mut self.states[self.places[rank as usize] as usize]
    }

    /// A congestor's next send, put or get; none once the victims are through.
    fn push_to_root(&mut self, now: Time, rank: u32) {
        if !self.finished() {
            let state = self.state(rank);
            let number = state.pushed;
            state.pushed += 1;
            self.ready.push(Reverse((now, tag(rank, number))));
        }
    }

    /// Begins `step` of an exchanging rank, and further ones while they are over at once.
    fn begin_step(&mut self, now: Time, rank: u32, mut step: u64) {
        while let Some(plan) = self.stage.step(rank, step) {
            let sends = plan.targets.iter().flatten().map(|&(_, count)| count).sum();
            let first = self.stage.step_tag(rank, step);
            let tags = first..first + u64::from(sends);
            self.ready.extend(tags.map(|tag| Reverse((now, tag))));
            let exchange = &mut self.state(rank).exchange;
            exchange.begin(step, sends, plan.receives);
            if !exchange.is_done() {
                return;
            }
            step += 1;
        }
    }

    fn step_if_done(&mut self, now: Time, rank: u32) {
        let exchange = &self.state(rank).exchange;
        if exchange.is_done() {
            let next = exchange.step + 1;
            self.begin_step(now, rank, next);
        }
    }

    /// The receiver of a message goes on.
    fn receive(&mut self, now: Time, tag: u64) {
        let op = self.stage.op(tag);
        match op.kind {
            OpKind::Push => {}
            OpKind::Request => self.ready.push(Reverse((now, response(tag)))),
            OpKind::Response => self.push_to_root(now, op.to),
            OpKind::Step(step) => {
                self.state(op.to).exchange.received(step);
                self.step_if_done(now, op.to);
            }
        }
    }

    /// The sender of a message goes on, where it has waited for the delivery.
    fn go_on(&mut self, now: Time, tag: u64) {
        let sender = asker(tag);
        if self.stage.exchanges(sender) {
            self.state(sender).exchange.sent();
            self.step_if_done(now, sender);
        } else {
            self.push_to_root(now, sender);
        }
    }

    /// Counts a delivery.
    fn measure(&mut self, tag: u64) {
        if self.stage.is_victim(asker(tag)) {
            self.measured = self.measured.saturating_sub(1);
        }
    }
}

impl Workload for Part {
    fn classes(&self) -> &[String] {
        &self.stage.classes
    }
    fn next_start(&self) -> Option<Time> {
        if self.finished() {
            return None;
        }
        self.ready.peek().map(|&Reverse((time, _))| time)
    }
    fn pop(&mut self) -> Option<Message> {
        if self.finished() {
            return None;
        }
        let Reverse((start, tag)) = self.ready.pop()?;
        Some(self.stage.message(start, tag))
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        if !self.is_cut {
            self.measure(tag);
            if self.stage.is_awaited(tag) {
                self.go_on(now, tag);
            }
        }
        self.receive(now, tag);
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn is_news(&self, tag: u64) -> bool {
        self.is_cut && self.stage.is_awaited(tag)
    }
    fn news_for(&self, tag: u64) -> Option<NodeId> {
        let sender = asker(tag);
        // Those of victims are counted in all parts.
        (!self.stage.is_victim(sender)).then(|| self.stage.node(sender))
    }
    fn on_news(&mut self, now: Time, tag: u64, _: Option<NodeId>) {
        if self.is_news(tag) {
            self.measure(tag);
            if self.has(asker(tag)) {
                self.go_on(now, tag);
            }
        }
    }
    fn is_open_ended(&self) -> bool {
        self.stage.open_ended
    }
    fn finished(&self) -> bool {
        self.measured == 0
    }
}
