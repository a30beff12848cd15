//! The state of all processes, round by round.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use raddle_random::Random;
use raddle_units::{Bytes, NodeId, Span, Time};

use super::{Combining, GridOperation, LineGroup, Multicast};
use crate::generate::message;
use crate::{Destination, GroupId, Message, ReductionId, Workload};

/// Collectives of a grid's process, in order.
const DIRECTIONS: [&str; 3] = ["row", "column", "line"];
/// In a tag: a contribution that goes to the root's host.
const CONTRIBUTION: u64 = 1 << 63;
/// In a tag: a contribution that is combined on the way.
const COMBINED: u64 = 1 << 62;

/// A row, column, line or random group.
#[derive(Debug, Default)]
struct Line {
    direction: usize,
    /// Ascending; the first is the root.
    processes: Vec<u32>,
    /// `None`: all on one host.
    group: Option<u32>,
    /// Its hosts, and how many of its processes each has.
    members: BTreeMap<NodeId, u32>,
    /// Of a reduction: processes that have come, by host, and when the last of them is done; hosts whose contribution has.
    come: BTreeMap<NodeId, (u32, Time)>,
    contributed: usize,
    /// When the root's host is done with them.
    done: Time,
    /// Collectives whose message the root has sent.
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

/// The state of all processes.
#[derive(Debug)]
pub(super) struct Rounds {
    operation: GridOperation,
    combining: Combining,
    overhead: Span,
    noise: Span,
    size: Bytes,
    rounds: u32,
    per_host: u32,
    directions: u32,
    classes: Vec<String>,
    hosts: Vec<NodeId>,
    lines: Vec<Line>,
    /// By group: its line.
    line_of_group: Vec<u32>,
    /// By direction and process: its line.
    line_of: Vec<Vec<u32>>,
    /// By process: collectives done, and those begun.
    steps: Vec<u32>,
    entered: Vec<u32>,
    /// By direction and process: results received.
    received: Vec<Vec<u32>>,
    /// By process; empty without noise.
    random: Vec<Random>,
    /// Messages that may start.
    ready: BinaryHeap<Reverse<Ready>>,
    made: u64,
    contributions: u64,
    /// Contributions on their way that are combined: by tag the line and the host.
    combined: BTreeMap<u64, (usize, NodeId)>,
    /// When process 0 began each round.
    starts: Vec<Time>,
    messages: u64,
    bytes: Bytes,
    undelivered: u64,
}

impl Rounds {
    pub(super) fn new(
        spec: &Multicast,
        hosts: &[NodeId],
        groups: &[LineGroup],
        seed: u64,
        messages: u64,
        bytes: Bytes,
    ) -> Self {
        let directions = spec.directions();
        let processes = spec.processes() as usize;
        let mut line_of = vec![vec![0; processes]; directions];
        let mut lines = Vec::new();
        for (place, of) in (0u32..).zip(spec.lines()) {
            let mut members = BTreeMap::new();
            for &process in &of.processes {
                line_of[of.direction][process as usize] = place;
                let host = hosts[(process / spec.processes_per_terminal) as usize];
                *members.entry(host).or_insert(0) += 1;
            }
            lines.push(Line {
                direction: of.direction,
                processes: of.processes,
                members,
                ..Line::default()
            });
        }
        for (index, group) in (0..).zip(groups) {
            lines[group.line].group = Some(index);
        }
        let names = if spec.random_groups.is_some() {
            &["group"][..]
        } else {
            &DIRECTIONS[..directions]
        };
        let mut classes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        if spec.operation != GridOperation::Bcast {
            classes.extend(names.iter().map(|name| format!("{name}-part")));
        }
        let streams = if spec.noise == Span::ZERO {
            0
        } else {
            processes as u64
        };
        let mut made = Self {
            operation: spec.operation,
            combining: spec.combining,
            overhead: spec.overhead,
            noise: spec.noise,
            size: spec.size,
            rounds: spec.rounds,
            per_host: spec.processes_per_terminal,
            directions: directions as u32,
            classes,
            hosts: hosts.to_vec(),
            lines,
            line_of_group: groups.iter().map(|group| group.line as u32).collect(),
            line_of,
            steps: vec![0; processes],
            entered: vec![0; processes],
            received: vec![vec![0; processes]; directions],
            random: (0..streams)
                .map(|stream| Random::new(seed, stream))
                .collect(),
            ready: BinaryHeap::new(),
            made: 0,
            contributions: 0,
            combined: BTreeMap::new(),
            starts: Vec::new(),
            messages,
            bytes,
            undelivered: messages,
        };
        made.advance(Time(spec.start.0), (0..processes as u32).collect());
        made
    }

    fn host(&self, process: u32) -> NodeId {
        self.hosts[(process / self.per_host) as usize]
    }

    fn root(&self, line: usize) -> u32 {
        self.lines[line].processes[0]
    }

    /// Whether a root learns of the end of a collective as all others do.
    fn is_combined(&self) -> bool {
        self.operation != GridOperation::Bcast && self.combining == Combining::OnTree
    }

    /// How long a process's software takes this time.
    fn software(&mut self, process: u32) -> Span {
        let Some(random) = self.random.get_mut(process as usize) else {
            return self.overhead;
        };
        self.overhead + Span(random.exponential(self.noise.0 as f64) as u64)
    }

    fn send(
        &mut self,
        start: Time,
        src: NodeId,
        dst: impl Into<Destination>,
        class: usize,
        tag: u64,
    ) {
        let sent = message(start, src, dst, self.size, class as u8, tag);
        self.ready.push(Reverse(Ready(start, self.made, sent)));
        self.made += 1;
    }

    /// Lets processes go on as far as they can at `now`; processes that this wakes go on too.
    fn advance(&mut self, now: Time, mut open: Vec<u32>) {
        open.reverse();
        while let Some(process) = open.pop() {
            let step = self.steps[process as usize];
            let (direction, round) = ((step % self.directions) as usize, step / self.directions);
            if round >= self.rounds {
                continue;
            }
            let line = self.line_of[direction][process as usize] as usize;
            if self.entered[process as usize] == step {
                self.entered[process as usize] += 1;
                if process == 0 && direction == 0 {
                    self.starts.push(now);
                }
                self.enter(now, process, line, &mut open);
            }
            // The root of a broadcast is moved on by the delivery of its message.
            let waits = self.is_combined() || self.root(line) != process;
            if waits && self.received[direction][process as usize] > round {
                self.steps[process as usize] += 1;
                open.push(process);
            }
        }
    }

    /// A process has come to a collective of its line.
    fn enter(&mut self, now: Time, process: u32, line: usize, open: &mut Vec<u32>) {
        if self.operation == GridOperation::Bcast {
            if self.root(line) == process {
                let start = now + self.software(process);
                self.result(start, line, open);
            }
            return;
        }
        let host = self.host(process);
        let done = now + self.software(process);
        let own = &mut self.lines[line];
        let (come, last) = own.come.entry(host).or_insert((0, Time::ZERO));
        *come += 1;
        *last = done.max(*last);
        let done = *last;
        if own.members.get(&host) != Some(come) {
            return;
        }
        let class = self.directions as usize + own.direction;
        if self.combining == Combining::OnTree {
            own.come.remove(&host);
            let Some(group) = own.group else {
                self.give(line, host, open);
                return;
            };
            let tag = COMBINED | self.contributions;
            self.contributions += 1;
            self.combined.insert(tag, (line, host));
            self.send(done, host, ReductionId(group), class, tag);
            return;
        }
        let root = self.host(self.root(line));
        if host == root {
            self.contributed(done, line, open);
        } else {
            let tag = CONTRIBUTION | (self.contributions * self.lines.len() as u64 + line as u64);
            self.contributions += 1;
            self.send(done, host, root, class, tag);
        }
    }

    /// A host's contribution is at the root; it is done with them by `done` at the earliest.
    fn contributed(&mut self, done: Time, line: usize, open: &mut Vec<u32>) {
        let own = &mut self.lines[line];
        own.contributed += 1;
        own.done = own.done.max(done);
        if own.contributed == own.members.len() {
            let done = own.done;
            own.contributed = 0;
            own.come.clear();
            self.result(done, line, open);
        }
    }

    /// The root sends to its group; what lies on its own host has it at once.
    fn result(&mut self, start: Time, line: usize, open: &mut Vec<u32>) {
        let root = self.root(line);
        let host = self.host(root);
        let own = &mut self.lines[line];
        let round = own.sent;
        own.sent += 1;
        let direction = own.direction;
        match own.group {
            Some(group) => {
                let tag = u64::from(group) << 32 | u64::from(round);
                self.send(start, host, GroupId(group), direction, tag);
            }
            None => {
                self.steps[root as usize] += 1;
                open.push(root);
            }
        }
        self.give(line, host, open);
    }

    /// The processes of a line that run on `host` have its next message; where nothing is combined the root had it before.
    fn give(&mut self, line: usize, host: NodeId, open: &mut Vec<u32>) {
        let own = &self.lines[line];
        let before = usize::from(!self.is_combined());
        for &process in own.processes.iter().skip(before) {
            if self.host(process) == host {
                self.received[own.direction][process as usize] += 1;
                open.push(process);
            }
        }
    }

    fn of_tag(&self, tag: u64) -> Option<usize> {
        let line = self.line_of_group.get((tag >> 32) as usize)?;
        Some(*line as usize)
    }
}

impl Workload for Rounds {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|Reverse(ready)| ready.0)
    }
    fn pop(&mut self) -> Option<Message> {
        self.ready.pop().map(|Reverse(ready)| ready.2)
    }
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let Some(line) = self.of_tag(tag) else {
            return;
        };
        let mut open = Vec::new();
        self.give(line, member, &mut open);
        self.advance(now, open);
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let mut open = Vec::new();
        if let Some((line, host)) = self.combined.remove(&tag) {
            self.undelivered = self.undelivered.saturating_sub(1);
            self.give(line, host, &mut open);
            self.advance(now, open);
            return;
        }
        if tag & CONTRIBUTION != 0 {
            self.undelivered = self.undelivered.saturating_sub(1);
            let line = (tag & !CONTRIBUTION) % self.lines.len() as u64;
            self.contributed(now, line as usize, &mut open);
            self.advance(now, open);
            return;
        }
        let Some(line) = self.of_tag(tag) else {
            return;
        };
        self.undelivered = self.undelivered.saturating_sub(1);
        // Drivers that know no members report only this.
        let due = tag as u32 + 1;
        let own = &self.lines[line];
        for &process in &own.processes[1..] {
            let received = &mut self.received[own.direction][process as usize];
            if *received < due {
                *received = due;
                open.push(process);
            }
        }
        let root = self.root(line);
        self.steps[root as usize] += 1;
        open.push(root);
        self.advance(now, open);
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.messages)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }
    fn finished(&self) -> bool {
        self.undelivered == 0
    }
    fn round_starts(&self) -> &[Time] {
        &self.starts
    }
}
