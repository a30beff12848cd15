//! Broadcasts along the rows and columns of a grid of processes: the latency test of C-MR4LMS.

use std::collections::{BTreeMap, VecDeque};

use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_hosts, check_size, message};
use crate::{GroupId, Message, TrafficError, Workload};

const CLASSES: [&str; 2] = ["row", "column"];
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

/// Rows, then columns: every process takes part in a broadcast of its row (from the row's first process), then in one of
/// its column, again and again, without a barrier between rounds. A receiver goes on when it has the message, a root when
/// all members have it.
///
/// Process i of an X x Y grid, x fastest, is at (i mod X, i div X) and runs on host i div `processes_per_terminal`. A group
/// is the set of its processes' hosts; what lies within one host takes no time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// X and Y.
    pub dims: [u32; 2],
    /// Processes on each host. Default 1.
    #[serde(default = "one")]
    pub processes_per_terminal: u32,
    /// Size of each message. Default 8B.
    #[serde(default = "eight")]
    pub size: Bytes,
    /// Rounds of one row broadcast and one column broadcast. Default 100.
    #[serde(default = "hundred")]
    pub rounds: u32,
    /// Who makes the trees. Default `c-mr4lms-fixed`.
    #[serde(default)]
    pub engine: MulticastEngineName,
    /// Table entries of a switch's port. Default 32.
    #[serde(default = "thirty_two")]
    pub colours: u32,
    /// Every packet over two trees (C-MR4LMS only). Default false.
    #[serde(default)]
    pub fault_tolerant: bool,
    /// Start of the first round. Default 0.
    #[serde(default)]
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
        check_hosts(hosts, 2, "to send and to receive")?;
        let [width, height] = self.dims;
        let per_host = self.processes_per_terminal;
        if per_host == 0 {
            return Err(TrafficError::spec(
                "processes_per_terminal",
                "must be at least 1",
            ));
        }
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
        check_size("size", self.size)?;
        let groups = self.groups(hosts)?;
        let messages = u64::from(self.rounds) * groups.len() as u64;
        if self.rounds == 0 || messages > MAX_MESSAGES {
            let problem = format!(
                "{} rounds of {} messages: it must be 1 to 2^32 messages",
                self.rounds,
                groups.len()
            );
            return Err(TrafficError::spec("rounds", problem));
        }
        if self.start.0 > crate::MAX_START_PS {
            return Err(TrafficError::spec(
                "start",
                "the first round starts after more than one day",
            ));
        }
        let processes = u64::from(self.dims[0]) * u64::from(self.dims[1]);
        let mut run = Rounds {
            spec: self.clone(),
            classes: CLASSES.map(str::to_owned).to_vec(),
            hosts: hosts.to_vec(),
            group_at: groups
                .iter()
                .enumerate()
                .map(|(index, (direction, place, _))| ((*direction, *place), index as u32))
                .collect(),
            place_of: groups.iter().map(|group| (group.0, group.1)).collect(),
            steps: vec![0; processes as usize],
            received: [vec![0; processes as usize], vec![0; processes as usize]],
            ready: VecDeque::new(),
            sent: vec![0; groups.len()],
            messages,
            undelivered: messages,
        };
        let start = Time(self.start.0);
        for process in 0..processes {
            run.advance(start, process);
        }
        Ok(run)
    }
}

/// The state of all processes.
#[derive(Debug)]
struct Rounds {
    spec: Multicast,
    classes: Vec<String>,
    hosts: Vec<NodeId>,
    group_at: BTreeMap<(usize, u32), u32>,
    place_of: Vec<(usize, u32)>,
    /// By process: collectives done, two per round.
    steps: Vec<u32>,
    /// By direction and process: broadcasts received.
    received: [Vec<u32>; 2],
    /// Messages that may start.
    ready: VecDeque<Message>,
    /// By group: messages sent.
    sent: Vec<u32>,
    messages: u64,
    undelivered: u64,
}

impl Rounds {
    fn place(&self, process: u64, direction: usize) -> u32 {
        let width = u64::from(self.spec.dims[0]);
        (if direction == 0 {
            process / width
        } else {
            process % width
        }) as u32
    }

    fn host(&self, process: u64) -> NodeId {
        self.hosts[(process / u64::from(self.spec.processes_per_terminal)) as usize]
    }

    /// Lets a process go on as far as it can at `now`; processes that this wakes go on too.
    fn advance(&mut self, now: Time, process: u64) {
        let mut open = vec![process];
        while let Some(process) = open.pop() {
            let step = self.steps[process as usize];
            if step >= 2 * self.spec.rounds {
                continue;
            }
            let (direction, round) = ((step % 2) as usize, step / 2);
            let place = self.place(process, direction);
            let root = self.spec.processes(direction, place).next() == Some(process);
            if root {
                match self.group_at.get(&(direction, place)) {
                    // It waits for the delivery of its message, which moves it on.
                    Some(&group) if self.sent[group as usize] == round => {
                        self.sent[group as usize] += 1;
                        let tag = u64::from(group) << 32 | u64::from(round);
                        let (src, dst) = (self.host(process), GroupId(group).address());
                        let sent = message(now, src, dst, self.spec.size, direction as u8, tag);
                        self.ready.push_back(sent);
                        self.give(direction, place, src, &mut open);
                    }
                    Some(_) => {}
                    None => {
                        // All on one host: no message.
                        self.steps[process as usize] += 1;
                        open.push(process);
                        self.give(direction, place, self.host(process), &mut open);
                    }
                }
            } else if self.received[direction][process as usize] > round {
                self.steps[process as usize] += 1;
                open.push(process);
            }
        }
    }

    /// The processes of a row or column that run on `host` have its next message.
    fn give(&mut self, direction: usize, place: u32, host: NodeId, open: &mut Vec<u64>) {
        for process in self.spec.processes(direction, place).skip(1) {
            if self.host(process) == host {
                self.received[direction][process as usize] += 1;
                open.push(process);
            }
        }
    }

    fn of_tag(&self, tag: u64) -> Option<(usize, u32)> {
        self.place_of.get((tag >> 32) as usize).copied()
    }
}

impl Workload for Rounds {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.ready.front().map(|message| message.start)
    }
    fn pop(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let Some((direction, place)) = self.of_tag(tag) else {
            return;
        };
        let mut open = Vec::new();
        self.give(direction, place, member, &mut open);
        for process in open {
            self.advance(now, process);
        }
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let Some((direction, place)) = self.of_tag(tag) else {
            return;
        };
        self.undelivered = self.undelivered.saturating_sub(1);
        // Drivers that know no members report only this.
        let due = tag as u32 + 1;
        for process in self.spec.processes(direction, place).skip(1) {
            let received = &mut self.received[direction][process as usize];
            if *received < due {
                *received = due;
                self.advance(now, process);
            }
        }
        if let Some(root) = self.spec.processes(direction, place).next() {
            self.steps[root as usize] += 1;
            self.advance(now, root);
        }
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.messages)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(Bytes(self.messages.saturating_mul(self.spec.size.0)))
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
