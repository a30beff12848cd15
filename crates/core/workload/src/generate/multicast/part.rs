//! The processes of some hosts, round by round.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use raddle_random::Random;
use raddle_units::{NodeId, Span, Time};

use super::rounds::{Stage, What};
use super::{Combining, GridOperation};
use crate::generate::message;
use crate::{Destination, GroupId, Message, ReductionId, Workload};

/// Who has come to a reduction: how many, when the last did, and when all of them are done with what they do first.
#[derive(Clone, Copy, Default, Debug)]
struct Come {
    count: usize,
    last: Time,
    done: Time,
}

impl Come {
    fn add(&mut self, now: Time, done: Time) -> Self {
        self.count += 1;
        self.last = now.max(self.last);
        self.done = done.max(self.done);
        *self
    }
}

/// What a line's root knows.
#[derive(Default, Debug)]
struct Root {
    /// Hosts whose contribution it has.
    come: Come,
    /// Collectives whose message it has sent.
    sent: u32,
}

/// A message that may start: time, order of making, the message.
#[derive(Debug)]
struct Ready(Time, u64, Message);

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Where a process is.
#[derive(Clone, Default, Debug)]
struct Process {
    number: u32,
    /// Collectives done, and those begun.
    step: u32,
    entered: u32,
    /// By direction: when it had the results that it has not come to.
    received: [VecDeque<Time>; 3],
}

impl Process {
    /// Results that it has had in a direction of so many.
    fn results(&self, direction: usize, directions: u32) -> u32 {
        let (rounds, more) = (self.step / directions, self.step % directions);
        rounds + u32::from(more > direction as u32) + self.received[direction].len() as u32
    }
}

/// Processes that may go on, and since when; the last first.
type Open = Vec<(Time, u32)>;

/// The processes of some hosts.
#[derive(Debug)]
pub(super) struct Part {
    stage: Arc<Stage>,
    /// By process: its place in the part that has it.
    places: Arc<[u32]>,
    /// Whether deliveries are told as [`Workload::split`] says.
    is_cut: bool,
    /// By place.
    processes: Vec<Process>,
    /// The same; empty without noise.
    random: Vec<Random>,
    /// By line whose root is here.
    roots: BTreeMap<usize, Root>,
    /// By line and host: its processes that have come.
    come: BTreeMap<(usize, u32), Come>,
    ready: BinaryHeap<Reverse<Ready>>,
    made: u64,
    /// When process 0 began each round.
    starts: Vec<Time>,
    /// Messages to its hosts, and from them to groups.
    undelivered: u64,
}

impl Part {
    /// These processes, all of some hosts, begin; `places` has their places among them.
    pub(super) fn new(
        stage: Arc<Stage>,
        places: Arc<[u32]>,
        is_cut: bool,
        numbers: &[u32],
    ) -> Self {
        let begin = |&number| Process {
            number,
            ..Process::default()
        };
        let random = |&number| stage.random(number);
        let mut part = Self {
            processes: numbers.iter().map(begin).collect(),
            random: numbers.iter().filter_map(random).collect(),
            roots: BTreeMap::new(),
            come: BTreeMap::new(),
            ready: BinaryHeap::new(),
            made: 0,
            starts: Vec::new(),
            undelivered: 0,
            stage: Arc::clone(&stage),
            places,
            is_cut,
        };
        for line in 0..stage.lines.len() {
            let deliveries = stage.deliveries(line).into_iter();
            let own = deliveries.filter(|&(host, _)| part.has(host));
            part.undelivered += own.map(|(_, messages)| messages).sum::<u64>();
        }
        let open = numbers.iter().rev().map(|&number| (stage.start, number));
        part.advance(open.collect());
        part
    }

    /// Whether a host's processes are here.
    fn has(&self, host: u32) -> bool {
        let first = self.stage.processes_of(host).start;
        let process = self.processes.get(self.place(first));
        process.is_some_and(|process| process.number == first)
    }

    fn place(&self, process: u32) -> usize {
        self.places[process as usize] as usize
    }

    fn process(&mut self, process: u32) -> &mut Process {
        let place = self.place(process);
        &mut self.processes[place]
    }

    /// How long a process's software takes this time.
    fn software(&mut self, process: u32) -> Span {
        let (overhead, noise) = (self.stage.overhead, self.stage.noise);
        let place = self.place(process);
        let Some(random) = self.random.get_mut(place) else {
            return overhead;
        };
        overhead + Span(random.exponential(noise.0 as f64) as u64)
    }

    fn send(&mut self, start: Time, src: u32, dst: impl Into<Destination>, class: usize, tag: u64) {
        let src = self.stage.hosts[src as usize];
        let sent = message(start, src, dst, self.stage.size, class as u8, tag);
        self.ready.push(Reverse(Ready(start, self.made, sent)));
        self.made += 1;
    }

    /// Lets processes go on as far as they can; processes that this wakes go on too.
    fn advance(&mut self, mut open: Open) {
        let stage = Arc::clone(&self.stage);
        while let Some((now, number)) = open.pop() {
            let process = self.process(number);
            let step = process.step;
            let (direction, round) = ((step % stage.directions) as usize, step / stage.directions);
            if round >= stage.rounds {
                continue;
            }
            let line = stage.line_of[direction][number as usize] as usize;
            if process.entered == step {
                process.entered += 1;
                if number == 0 && direction == 0 {
                    self.starts.push(now);
                }
                self.enter(now, number, line, round, &mut open);
            }
            // The root of a broadcast is moved on by the delivery of its message.
            let waits = stage.is_combined() || stage.lines[line].root() != number;
            let process = self.process(number);
            if waits && let Some(at) = process.received[direction].pop_front() {
                process.step += 1;
                // A root may hear late that it could go on; what came meanwhile came later.
                open.push((now.max(at), number));
            }
        }
    }

    /// A process has come to a collective of its line.
    fn enter(&mut self, now: Time, process: u32, line: usize, round: u32, open: &mut Open) {
        let stage = Arc::clone(&self.stage);
        let own = &stage.lines[line];
        if stage.operation == GridOperation::Bcast {
            if own.root() == process {
                let start = now + self.software(process);
                self.result(now, start, line, open);
            }
            return;
        }
        let host = stage.host(process);
        let done = now + self.software(process);
        let come = self.come.entry((line, host)).or_default().add(now, done);
        if come.count < own.processes_on(host) as usize {
            return;
        }
        self.come.remove(&(line, host));
        let class = stage.directions as usize + own.direction;
        let root = stage.root_host(line);
        match (stage.combining, own.group) {
            (Combining::OnTree, None) => self.give(come.last, line, host, open),
            (Combining::OnTree, Some(group)) => {
                let tag = stage.contribution_tag(group, host, round);
                self.send(come.done, host, ReductionId(group), class, tag);
            }
            (Combining::RootHost, Some(group)) if host != root => {
                let tag = stage.contribution_tag(group, host, round);
                let to = stage.hosts[root as usize];
                self.send(come.done, host, to, class, tag);
            }
            (Combining::RootHost, _) => self.contributed(come.last, come.done, line, open),
        }
    }

    /// A host's contribution is at the root; it is done with them by `done` at the earliest.
    fn contributed(&mut self, now: Time, done: Time, line: usize, open: &mut Open) {
        let root = self.roots.entry(line).or_default();
        let come = root.come.add(now, done);
        if come.count == self.stage.lines[line].hosts() {
            root.come = Come::default();
            self.result(come.last, come.done, line, open);
        }
    }

    /// The root sends to its group; what lies on its own host has it at once.
    fn result(&mut self, now: Time, start: Time, line: usize, open: &mut Open) {
        let stage = Arc::clone(&self.stage);
        let own = &stage.lines[line];
        let (root, host) = (own.root(), stage.root_host(line));
        match own.group {
            Some(group) => {
                let sent = &mut self.roots.entry(line).or_default().sent;
                let tag = stage.result_tag(group, *sent);
                *sent += 1;
                self.send(start, host, GroupId(group), own.direction, tag);
            }
            None => {
                self.process(root).step += 1;
                open.push((now, root));
            }
        }
        self.give(now, line, host, open);
    }

    /// The processes of a line that run on `host` have its next message; where nothing is combined the root had it before.
    fn give(&mut self, now: Time, line: usize, host: u32, open: &mut Open) {
        let stage = Arc::clone(&self.stage);
        let own = &stage.lines[line];
        for &process in stage.together(line, host) {
            if stage.is_combined() || process != own.root() {
                self.process(process).received[own.direction].push_back(now);
                open.push((now, process));
            }
        }
    }

    /// All of a group have its message: the root goes on.
    fn complete(&mut self, now: Time, line: usize, open: &mut Open) {
        let root = self.stage.lines[line].root();
        self.is_delivered();
        self.process(root).step += 1;
        open.push((now, root));
    }

    fn is_delivered(&mut self) {
        self.undelivered = self.undelivered.saturating_sub(1);
    }
}

impl Workload for Part {
    fn classes(&self) -> &[String] {
        &self.stage.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|Reverse(ready)| ready.0)
    }
    fn pop(&mut self) -> Option<Message> {
        self.ready.pop().map(|Reverse(ready)| ready.2)
    }
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let host = self.stage.host_of(member);
        if let (Some(What::Result { line, .. }), Some(host)) = (self.stage.what(tag), host) {
            let mut open = Open::new();
            self.give(now, line, host, &mut open);
            open.reverse();
            self.advance(open);
        }
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let stage = Arc::clone(&self.stage);
        let mut open = Open::new();
        match stage.what(tag) {
            Some(What::Contribution { line, host }) => {
                self.is_delivered();
                if stage.is_combined() {
                    self.give(now, line, host, &mut open);
                } else {
                    self.contributed(now, now, line, &mut open);
                }
            }
            Some(What::Result { line, round }) if !self.is_cut => {
                // Drivers that know no members report only this.
                let own = &stage.lines[line];
                for &number in own.others() {
                    if self
                        .process(number)
                        .results(own.direction, stage.directions)
                        <= round
                    {
                        self.process(number).received[own.direction].push_back(now);
                        open.push((now, number));
                    }
                }
                self.complete(now, line, &mut open);
            }
            _ => {}
        }
        open.reverse();
        self.advance(open);
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn is_news(&self, tag: u64) -> bool {
        self.is_cut && matches!(self.stage.what(tag), Some(What::Result { .. }))
    }
    fn news_for(&self, tag: u64) -> Option<NodeId> {
        match self.stage.what(tag)? {
            What::Result { line, .. } => {
                Some(self.stage.hosts[self.stage.root_host(line) as usize])
            }
            What::Contribution { .. } => None,
        }
    }
    fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        let stage = Arc::clone(&self.stage);
        if let (Some(What::Result { line, .. }), None, true) =
            (stage.what(tag), member, self.is_cut)
            && self.has(stage.root_host(line))
        {
            let mut open = Open::new();
            self.complete(now, line, &mut open);
            self.advance(open);
        }
    }
    fn finished(&self) -> bool {
        self.undelivered == 0
    }
    fn round_starts(&self) -> &[Time] {
        &self.starts
    }
}
