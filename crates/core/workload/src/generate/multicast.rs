//! Collectives along the rows and columns of a grid of processes: the latency test of C-MR4LMS.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_hosts, message};
use crate::{GroupId, Message, TrafficError, Workload, limits};

/// Messages to groups, then contributions to a reduction.
const CLASSES: [&str; 4] = ["row", "column", "row-part", "column-part"];
/// In a tag: a contribution.
const CONTRIBUTION: u64 = 1 << 63;
/// Messages of one run: more rounds than anyone waits for.
const MAX_MESSAGES: u64 = 1 << 32;

/// How switches find the ways of the groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MulticastEngineName {
    /// The MGID names the spanning tree, rooted in the first L3 switch of its TN.
    #[default]
    CMr4lmsFixed,
    /// The same, rooted in the least loaded free L3 switch.
    CMr4lmsDynamic,
    /// Trees by load, then colours.
    Mr4lms,
    /// One tree over all hosts.
    Broadcast,
    /// A tree and a colour for each group, as OpenSM does it.
    Opensm,
}

/// What the processes of a row or column do together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GridOperation {
    /// The first process sends to the others.
    #[default]
    Bcast,
    /// Every host sends its processes' contribution to the first process's host, which sends the result to the group. What is
    /// combined takes no time.
    Allreduce,
    /// The same, of which only the time matters.
    Barrier,
}

/// Rows, then columns: every process takes part in a collective of its row (whose root is the row's first process), then in one
/// of its column, again and again, without a barrier between rounds. A receiver goes on when it has the message, a root when
/// all members have it.
///
/// Process i of an X x Y grid, x fastest, is at (i mod X, i div X) and runs on host i div `processes_per_terminal`. A group
/// is the set of its processes' hosts; what lies within one host takes no time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// X and Y.
    #[schemars(inner(range(min = 1)))]
    pub dims: [u32; 2],
    /// Processes on each host. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub processes_per_terminal: u32,
    /// What a row or column does. Default `bcast`.
    #[serde(default)]
    pub operation: GridOperation,
    /// Time that a process's software takes from one collective to what it sends in the next. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub overhead: Span,
    /// Size of each message. Default 8B.
    #[serde(default = "eight")]
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Rounds of one row broadcast and one column broadcast. Default 100.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Who makes the trees. Default `c-mr4lms-fixed`.
    #[serde(default)]
    pub engine: MulticastEngineName,
    /// Table entries of a switch's port. Default 32.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 1, max = 16384))]
    pub colours: u32,
    /// Every packet over two trees (C-MR4LMS only). Default false.
    #[serde(default)]
    pub fault_tolerant: bool,
    /// Start of the first round. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub start: Span,
}

const fn one() -> u32 {
    1
}
const fn eight() -> Bytes {
    Bytes(8)
}
const fn hundred() -> u32 {
    100
}
const fn thirty_two() -> u32 {
    32
}

impl Multicast {
    /// The groups that messages go to, by [`GroupId`]: rows, then columns, those of at least two hosts. For each its
    /// direction (0: row), its place in that direction, and its hosts, ascending.
    ///
    /// # Errors
    /// A length or number of 0, more processes than the hosts have room for.
    pub fn groups(&self, hosts: &[NodeId]) -> Result<Vec<(usize, u32, Vec<NodeId>)>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        let [width, height] = self.dims;
        let per_host = self.processes_per_terminal;
        let processes = u64::from(width) * u64::from(height);
        let room = hosts.len() as u64 * u64::from(per_host);
        if processes < 2 || processes > room {
            let problem = format!(
                "{width} x {height} processes: it must be 2 to {room}, {per_host} on each of {} hosts",
                hosts.len()
            );
            return Err(TrafficError::spec("dims", problem));
        }
        let host = |process: u64| hosts[(process / u64::from(per_host)) as usize];
        let mut groups = Vec::new();
        for (direction, count) in [(0, height), (1, width)] {
            for place in 0..count {
                let mut members: Vec<NodeId> = self.processes(direction, place).map(host).collect();
                members.sort_unstable();
                members.dedup();
                if members.len() > 1 {
                    groups.push((direction, place, members));
                }
            }
        }
        Ok(groups)
    }

    /// The processes of a row or column; the first is its root.
    fn processes(&self, direction: usize, place: u32) -> impl Iterator<Item = u64> + use<> {
        let [width, height] = self.dims.map(u64::from);
        let place = u64::from(place);
        let (first, step, count) = if direction == 0 {
            (place * width, 1, width)
        } else {
            (place, width, height)
        };
        (0..count).map(move |index| first + index * step)
    }

    /// The messages.
    ///
    /// # Errors
    /// As [`Self::groups`]; a size or number of rounds out of range.
    pub fn build(&self, hosts: &[NodeId]) -> Result<impl Workload + use<>, TrafficError> {
        let groups = self.groups(hosts)?;
        let messages = u64::from(self.rounds) * groups.len() as u64;
        if messages > MAX_MESSAGES {
            let problem = format!(
                "{} rounds of {} messages are too many: at most 2^32 messages",
                self.rounds,
                groups.len()
            );
            return Err(TrafficError::spec("rounds", problem));
        }
        let processes = u64::from(self.dims[0]) * u64::from(self.dims[1]);
        let mut lines = Vec::new();
        for (direction, count) in [(0, self.dims[1]), (1, self.dims[0])] {
            for place in 0..count {
                let mut members = BTreeMap::new();
                for process in self.processes(direction, place) {
                    let host = hosts[(process / u64::from(self.processes_per_terminal)) as usize];
                    *members.entry(host).or_insert(0) += 1;
                }
                lines.push(Line {
                    direction,
                    place,
                    members,
                    ..Line::default()
                });
            }
        }
        for (index, (direction, place, _)) in groups.iter().enumerate() {
            let line = if *direction == 0 {
                *place
            } else {
                self.dims[1] + place
            };
            lines[line as usize].group = Some(index as u32);
        }
        let reduces = self.operation != GridOperation::Bcast;
        let parts: u64 = if reduces {
            groups.iter().map(|group| group.2.len() as u64 - 1).sum()
        } else {
            0
        };
        let messages = messages + u64::from(self.rounds) * parts;
        let bytes = limits::sum("rounds", messages, self.size)?;
        let classes = if reduces { &CLASSES[..] } else { &CLASSES[..2] };
        let mut run = Rounds {
            spec: self.clone(),
            classes: classes.iter().map(|name| (*name).to_owned()).collect(),
            hosts: hosts.to_vec(),
            line_of: groups
                .iter()
                .map(|&(direction, place, _)| {
                    if direction == 0 {
                        place
                    } else {
                        self.dims[1] + place
                    }
                })
                .collect(),
            lines,
            steps: vec![0; processes as usize],
            entered: vec![0; processes as usize],
            received: [vec![0; processes as usize], vec![0; processes as usize]],
            ready: BinaryHeap::new(),
            made: 0,
            contributions: 0,
            messages,
            bytes,
            undelivered: messages,
        };
        let start = Time(self.start.0);
        run.advance(start, (0..processes).collect());
        Ok(run)
    }
}

/// A row or a column.
#[derive(Debug, Default)]
struct Line {
    direction: usize,
    place: u32,
    /// `None`: all on one host.
    group: Option<u32>,
    /// Its hosts, and how many of its processes each has.
    members: BTreeMap<NodeId, u32>,
    /// Of a reduction: processes that have come, by host, and hosts whose contribution has.
    come: BTreeMap<NodeId, u32>,
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
struct Rounds {
    spec: Multicast,
    classes: Vec<String>,
    hosts: Vec<NodeId>,
    /// Rows, then columns.
    lines: Vec<Line>,
    /// By group: its line.
    line_of: Vec<u32>,
    /// By process: collectives done, two per round; collectives begun.
    steps: Vec<u32>,
    entered: Vec<u32>,
    /// By direction and process: results received.
    received: [Vec<u32>; 2],
    /// Messages that may start.
    ready: BinaryHeap<Reverse<Ready>>,
    made: u64,
    contributions: u64,
    messages: u64,
    bytes: Bytes,
    undelivered: u64,
}

impl Rounds {
    fn line(&self, process: u64, direction: usize) -> usize {
        let [width, height] = self.spec.dims.map(u64::from);
        (if direction == 0 {
            process / width
        } else {
            height + process % width
        }) as usize
    }

    fn host(&self, process: u64) -> NodeId {
        self.hosts[(process / u64::from(self.spec.processes_per_terminal)) as usize]
    }

    fn root(&self, line: usize) -> u64 {
        let (width, line) = (self.spec.dims[0], &self.lines[line]);
        u64::from(if line.direction == 0 {
            line.place * width
        } else {
            line.place
        })
    }

    fn send(&mut self, start: Time, src: NodeId, dst: NodeId, class: usize, tag: u64) {
        let sent = message(start, src, dst, self.spec.size, class as u8, tag);
        self.ready.push(Reverse(Ready(start, self.made, sent)));
        self.made += 1;
    }

    /// Lets processes go on as far as they can at `now`; processes that this wakes go on too.
    fn advance(&mut self, now: Time, mut open: Vec<u64>) {
        open.reverse();
        while let Some(process) = open.pop() {
            let step = self.steps[process as usize];
            if step >= 2 * self.spec.rounds {
                continue;
            }
            let (direction, round) = ((step % 2) as usize, step / 2);
            let line = self.line(process, direction);
            if self.entered[process as usize] == step {
                self.entered[process as usize] += 1;
                self.enter(now, process, line, &mut open);
            }
            // A root is moved on by the delivery of its message.
            if self.root(line) != process && self.received[direction][process as usize] > round {
                self.steps[process as usize] += 1;
                open.push(process);
            }
        }
    }

    /// A process has come to a collective of its line.
    fn enter(&mut self, now: Time, process: u64, line: usize, open: &mut Vec<u64>) {
        if self.spec.operation == GridOperation::Bcast {
            if self.root(line) == process {
                self.result(now + self.spec.overhead, line, open);
            }
            return;
        }
        let host = self.host(process);
        let own = &mut self.lines[line];
        let come = own.come.entry(host).or_insert(0);
        *come += 1;
        if own.members.get(&host) != Some(come) {
            return;
        }
        let class = 2 + own.direction;
        let root = self.host(self.root(line));
        if host == root {
            self.contributed(now + self.spec.overhead, line, open);
        } else {
            let tag = CONTRIBUTION | (self.contributions * self.lines.len() as u64 + line as u64);
            self.contributions += 1;
            self.send(now + self.spec.overhead, host, root, class, tag);
        }
    }

    /// A host's contribution is at the root; it is done with them by `done` at the earliest.
    fn contributed(&mut self, done: Time, line: usize, open: &mut Vec<u64>) {
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
    fn result(&mut self, start: Time, line: usize, open: &mut Vec<u64>) {
        let root = self.root(line);
        let host = self.host(root);
        let own = &mut self.lines[line];
        let round = own.sent;
        own.sent += 1;
        let (direction, group) = (own.direction, own.group);
        match group {
            Some(group) => {
                let tag = u64::from(group) << 32 | u64::from(round);
                self.send(start, host, GroupId(group).address(), direction, tag);
            }
            None => {
                self.steps[root as usize] += 1;
                open.push(root);
            }
        }
        self.give(line, host, open);
    }

    /// The processes of a line that run on `host` have its next message.
    fn give(&mut self, line: usize, host: NodeId, open: &mut Vec<u64>) {
        let (direction, place) = (self.lines[line].direction, self.lines[line].place);
        for process in self.spec.processes(direction, place).skip(1) {
            if self.host(process) == host {
                self.received[direction][process as usize] += 1;
                open.push(process);
            }
        }
    }

    fn of_tag(&self, tag: u64) -> Option<usize> {
        let line = self.line_of.get((tag >> 32) as usize)?;
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
        let (direction, place) = (self.lines[line].direction, self.lines[line].place);
        for process in self.spec.processes(direction, place).skip(1) {
            let received = &mut self.received[direction][process as usize];
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dims: [u32; 2], processes_per_terminal: u32, rounds: u32) -> Multicast {
        Multicast {
            dims,
            processes_per_terminal,
            operation: GridOperation::default(),
            overhead: Span::ZERO,
            size: Bytes(8),
            rounds,
            engine: MulticastEngineName::default(),
            colours: 32,
            fault_tolerant: false,
            start: Span::ZERO,
        }
    }

    /// Delivers everything after a time of its own per member; gives the messages in order of start.
    fn drive(spec: &Multicast, hosts: u32) -> Vec<Message> {
        let hosts: Vec<NodeId> = (0..hosts).map(NodeId).collect();
        let groups = spec.groups(&hosts).unwrap();
        let mut run = spec.build(&hosts).unwrap();
        let (mut sent, mut events) = (Vec::new(), std::collections::BTreeSet::new());
        loop {
            while let Some(message) = run.pop() {
                if GroupId::of(message.dst).is_none() {
                    let at = message.start + Span(500 + u64::from(message.src.0) * 17 % 7);
                    events.insert((at, 1, message.tag, message.src));
                    sent.push(message);
                    continue;
                }
                let group = (message.tag >> 32) as usize;
                assert_eq!(GroupId::of(message.dst), Some(GroupId(group as u32)));
                let members = &groups[group].2;
                assert!(members.contains(&message.src));
                let mut last = message.start;
                for &member in members.iter().filter(|it| **it != message.src) {
                    let at = message.start + Span(1000 + u64::from(member.0) * 37 % 11);
                    events.insert((at, 0, message.tag, member));
                    last = last.max(at);
                }
                events.insert((last, 1, message.tag, message.src));
                sent.push(message);
            }
            let Some((now, all, tag, member)) = events.pop_first() else {
                break;
            };
            if all == 1 {
                run.on_delivered(now, tag);
            } else {
                run.on_member_delivered(now, tag, member);
            }
        }
        assert!(run.finished(), "{spec:?}");
        sent
    }

    #[test]
    fn every_group_gets_one_message_per_round() {
        for (dims, per_host, hosts) in [
            ([4, 3], 1, 12),
            ([6, 4], 2, 12),
            ([3, 5], 4, 9),
            ([7, 1], 1, 8),
        ] {
            let spec = spec(dims, per_host, 5);
            let sent = drive(&spec, hosts);
            let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
            let groups = spec.groups(&nodes).unwrap();
            assert_eq!(sent.len(), groups.len() * 5, "{spec:?}");
            for group in 0..groups.len() as u64 {
                let rounds: Vec<u64> = sent
                    .iter()
                    .filter(|message| message.tag >> 32 == group)
                    .map(|message| message.tag & 0xffff_ffff)
                    .collect();
                assert_eq!(rounds, [0, 1, 2, 3, 4]);
            }
        }
    }

    /// A column's root sends only when it has the message of its row, a row's root only when it has that of its column.
    #[test]
    fn a_process_does_one_collective_after_the_other() {
        let spec = spec([4, 3], 1, 3);
        let sent = drive(&spec, 12);
        for message in sent
            .iter()
            .filter(|message| message.class == 1 && message.src != NodeId(0))
        {
            let row = sent.iter().find(|it| {
                it.class == 0 && it.src == NodeId(0) && it.tag as u32 == message.tag as u32
            });
            assert!(message.start > row.unwrap().start);
        }
    }

    #[test]
    fn a_driver_without_members_comes_to_the_end() {
        let hosts: Vec<NodeId> = (0..12).map(NodeId).collect();
        let mut run = spec([4, 3], 1, 6).build(&hosts).unwrap();
        let network = crate::IdealNetwork {
            rate: raddle_units::BitRate::from_gbps(100),
            latency: Span::from_us(1),
        };
        assert_eq!(
            crate::drive_ideal(&mut run, network, u64::MAX, |_, _| {}),
            6 * 7
        );
        assert!(run.finished());
    }

    /// No result leaves a root before the contributions of all other hosts of its line have come: hosts - 1 of them in every
    /// round, also where processes share hosts and where a line lies on one host.
    #[test]
    fn a_reduction_waits_for_every_host() {
        for (dims, per_host, hosts) in [
            ([4, 3], 1, 12),
            ([6, 4], 2, 12),
            ([2, 3], 2, 3),
            ([6, 6], 4, 9),
        ] {
            let spec = Multicast {
                operation: GridOperation::Allreduce,
                overhead: Span(70),
                ..spec(dims, per_host, 4)
            };
            let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
            let groups = spec.groups(&nodes).unwrap();
            let sent = drive(&spec, hosts);
            let parts: usize = groups.iter().map(|group| group.2.len() - 1).sum();
            assert_eq!(sent.len(), 4 * (groups.len() + parts), "{dims:?}");
            let expected = spec.build(&nodes).unwrap().expected_messages();
            assert_eq!(expected, Some(sent.len() as u64));
            for (index, (direction, place, members)) in groups.iter().enumerate() {
                let root = spec.processes(*direction, *place).next().unwrap();
                let root = nodes[(root / u64::from(per_host)) as usize];
                let result = |round: u64| {
                    let tag = (index as u64) << 32 | round;
                    sent.iter().find(|it| it.tag == tag).unwrap()
                };
                let class = 2 + *direction as u8;
                for round in 0..4 {
                    let own = |it: &&Message| {
                        it.class == class && it.dst == root && members.contains(&it.src)
                    };
                    let before = sent
                        .iter()
                        .filter(own)
                        .filter(|it| it.start < result(round).start);
                    // Other lines of the direction may have the same hosts, so at least.
                    assert!(before.count() >= (round as usize + 1) * (members.len() - 1));
                }
            }
        }
    }

    #[test]
    fn groups_within_a_host_need_no_message() {
        // Rows of two processes on one host each: only the columns are groups.
        let spec = spec([2, 3], 2, 2);
        let hosts: Vec<NodeId> = (0..3).map(NodeId).collect();
        let groups = spec.groups(&hosts).unwrap();
        assert!(groups.iter().all(|group| group.0 == 1) && groups.len() == 2);
        assert_eq!(drive(&spec, 3).len(), 4);
    }

    #[test]
    fn bad_grids_are_refused() {
        let hosts: Vec<NodeId> = (0..4).map(NodeId).collect();
        for (spec, field) in [
            (spec([5, 1], 1, 1), "dims"),
            (spec([0, 3], 1, 1), "dims"),
            (spec([1, 1], 1, 1), "dims"),
            (spec([2, 2], 0, 1), "processes_per_terminal"),
            (spec([2, 2], 1, 0), "rounds"),
        ] {
            let error = spec.build(&hosts).err().unwrap().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
