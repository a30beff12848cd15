//! Who takes part in which collective, and the run of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_random::Random;
use raddle_units::{Bytes, NodeId, Span, Time};

use super::part::Part;
use super::{Combining, GridOperation, LineGroup, Multicast};
use crate::{Message, Workload};

/// Collectives of a grid's process, in order.
const DIRECTIONS: [&str; 3] = ["row", "column", "line"];
/// In a tag: a contribution; the rest counts rounds, for each host of each group. The tag of a group's message has the
/// group above the round.
const CONTRIBUTION: u64 = 1 << 63;

/// A row, column, line or random group.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) direction: usize,
    /// Ascending; the first is the root.
    processes: Vec<u32>,
    /// `None`: all on one host.
    pub(super) group: Option<u32>,
    /// Its hosts, and how many of its processes each has.
    members: Vec<(u32, u32)>,
}

impl Line {
    pub(super) fn root(&self) -> u32 {
        self.processes[0]
    }

    /// All but the root.
    pub(super) fn others(&self) -> &[u32] {
        &self.processes[1..]
    }

    /// Hosts that have processes of it.
    pub(super) fn hosts(&self) -> usize {
        self.members.len()
    }

    fn place(&self, host: u32) -> Option<usize> {
        let found = self.members.binary_search_by_key(&host, |&(host, _)| host);
        found.ok()
    }

    /// How many of its processes a host has.
    pub(super) fn processes_on(&self, host: u32) -> u32 {
        self.place(host).map_or(0, |place| self.members[place].1)
    }
}

/// What a tag stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A line's message to its group.
    Result { line: usize, round: u32 },
    /// A host's part of a line's reduction.
    Contribution { line: usize, host: u32 },
}

/// What all processes know. Hosts are counted as their processes are.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) operation: GridOperation,
    pub(super) combining: Combining,
    pub(super) overhead: Span,
    pub(super) noise: Span,
    pub(super) size: Bytes,
    pub(super) start: Time,
    pub(super) rounds: u32,
    pub(super) per_host: u32,
    pub(super) processes: u32,
    pub(super) directions: u32,
    pub(super) classes: Vec<String>,
    pub(super) hosts: Vec<NodeId>,
    number_of: BTreeMap<NodeId, u32>,
    pub(super) lines: Vec<Line>,
    /// By group: its line, and the members of all groups before.
    groups: Vec<(u32, u64)>,
    /// By direction and process: its line.
    pub(super) line_of: Vec<Vec<u32>>,
    seed: u64,
    messages: u64,
    bytes: Bytes,
}

impl Stage {
    fn new(
        spec: &Multicast,
        hosts: &[NodeId],
        groups: &[LineGroup],
        seed: u64,
        (messages, bytes): (u64, Bytes),
    ) -> Self {
        let directions = spec.directions();
        let processes = spec.processes() as u32;
        let per_host = spec.processes_per_terminal;
        let mut line_of = vec![vec![0; processes as usize]; directions];
        let mut lines: Vec<Line> = Vec::new();
        for of in spec.lines() {
            let mut members: Vec<(u32, u32)> = Vec::new();
            for &process in &of.processes {
                line_of[of.direction][process as usize] = lines.len() as u32;
                let host = process / per_host;
                match members.last_mut() {
                    Some((last, count)) if *last == host => *count += 1,
                    _ => members.push((host, 1)),
                }
            }
            lines.push(Line {
                direction: of.direction,
                processes: of.processes,
                group: None,
                members,
            });
        }
        let mut before = 0;
        let groups = (0..).zip(groups).map(|(index, group)| {
            let line = &mut lines[group.line];
            line.group = Some(index);
            before += line.members.len() as u64;
            (group.line as u32, before - line.members.len() as u64)
        });
        let groups = groups.collect();
        let names = if spec.random_groups.is_some() {
            &["group"][..]
        } else {
            &DIRECTIONS[..directions]
        };
        let mut classes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        if spec.operation != GridOperation::Bcast {
            classes.extend(names.iter().map(|name| format!("{name}-part")));
        }
        let hosts = hosts[..processes.div_ceil(per_host) as usize].to_vec();
        Self {
            operation: spec.operation,
            combining: spec.combining,
            overhead: spec.overhead,
            noise: spec.noise,
            size: spec.size,
            start: Time(spec.start.0),
            rounds: spec.rounds,
            per_host,
            processes,
            directions: directions as u32,
            classes,
            number_of: hosts.iter().copied().zip(0..).collect(),
            hosts,
            lines,
            groups,
            line_of,
            seed,
            messages,
            bytes,
        }
    }

    pub(super) fn host(&self, process: u32) -> u32 {
        process / self.per_host
    }

    pub(super) fn host_of(&self, node: NodeId) -> Option<u32> {
        self.number_of.get(&node).copied()
    }

    /// The host of a line's root.
    pub(super) fn root_host(&self, line: usize) -> u32 {
        self.host(self.lines[line].root())
    }

    /// Processes of a host.
    pub(super) fn processes_of(&self, host: u32) -> std::ops::Range<u32> {
        let first = host * self.per_host;
        first..self.processes.min(first + self.per_host)
    }

    /// Processes of a line on a host.
    pub(super) fn together(&self, line: usize, host: u32) -> &[u32] {
        let (all, range) = (&self.lines[line].processes, self.processes_of(host));
        let place = |first| all.partition_point(|&process| process < first);
        &all[place(range.start)..place(range.end)]
    }

    /// Whether a root learns of the end of a collective as all others do.
    pub(super) fn is_combined(&self) -> bool {
        self.operation != GridOperation::Bcast && self.combining == Combining::OnTree
    }

    /// The stream of a process's noise; `None` without.
    pub(super) fn random(&self, process: u32) -> Option<Random> {
        (self.noise != Span::ZERO).then(|| Random::new(self.seed, u64::from(process)))
    }

    pub(super) fn result_tag(&self, group: u32, round: u32) -> u64 {
        u64::from(group) << 32 | u64::from(round)
    }

    /// Tag of what a host gives to a group.
    pub(super) fn contribution_tag(&self, group: u32, host: u32, round: u32) -> u64 {
        let (line, before) = self.groups[group as usize];
        let place = self.lines[line as usize].place(host).unwrap_or(0) as u64;
        CONTRIBUTION | ((before + place) * u64::from(self.rounds) + u64::from(round))
    }

    pub(super) fn what(&self, tag: u64) -> Option<What> {
        if tag & CONTRIBUTION == 0 {
            let &(line, _) = self.groups.get((tag >> 32) as usize)?;
            return Some(What::Result {
                line: line as usize,
                round: tag as u32,
            });
        }
        let member = (tag & !CONTRIBUTION) / u64::from(self.rounds);
        let after = self.groups.partition_point(|&(_, before)| before <= member);
        let &(line, before) = self.groups.get(after.checked_sub(1)?)?;
        let members = &self.lines[line as usize].members;
        let &(host, _) = members.get((member - before) as usize)?;
        Some(What::Contribution {
            line: line as usize,
            host,
        })
    }

    /// Messages of a line in all rounds, each counted at the host that has it: a group's message at its sender.
    pub(super) fn deliveries(&self, line: usize) -> Vec<(u32, u64)> {
        let rounds = u64::from(self.rounds);
        let own = &self.lines[line];
        let root = self.root_host(line);
        match (own.group, self.operation) {
            (None, _) => Vec::new(),
            (_, GridOperation::Bcast) => vec![(root, rounds)],
            _ if self.is_combined() => own.members.iter().map(|&(it, _)| (it, rounds)).collect(),
            // The result, and what others give.
            _ => vec![(root, rounds * own.members.len() as u64)],
        }
    }
}

/// The state of all processes.
#[derive(Debug)]
pub(super) struct Rounds {
    stage: Arc<Stage>,
    /// One until it is cut.
    parts: Vec<Part>,
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
        let stage = Arc::new(Stage::new(spec, hosts, groups, seed, (messages, bytes)));
        let all: Vec<u32> = (0..stage.processes).collect();
        let whole = Part::new(Arc::clone(&stage), all[..].into(), false, &all);
        Self {
            stage,
            parts: vec![whole],
        }
    }

    /// The part that comes next, and when.
    fn next(&self) -> Option<(Time, usize)> {
        let starts = self.parts.iter().map(Workload::next_start).zip(0..);
        starts
            .filter_map(|(start, part)| Some((start?, part)))
            .min()
    }
}

impl Workload for Rounds {
    fn classes(&self) -> &[String] {
        &self.stage.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.next().map(|(start, _)| start)
    }
    fn pop(&mut self) -> Option<Message> {
        let (_, part) = self.next()?;
        self.parts[part].pop()
    }
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        if let [whole] = &mut self.parts[..] {
            whole.on_member_delivered(now, tag, member);
        }
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        if let [whole] = &mut self.parts[..] {
            whole.on_delivered(now, tag);
        }
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn is_divisible(&self) -> bool {
        true
    }
    /// Where the root goes on when the last member has its message it would learn so late by part of a round, and a round
    /// takes a dozen windows: it must take as long before it sends.
    fn longest_window(&self) -> Span {
        if self.stage.is_combined() {
            Span(u64::MAX)
        } else {
            self.stage.overhead
        }
    }
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let mut own = vec![Vec::new(); parts];
        let mut places = Vec::with_capacity(self.stage.processes as usize);
        for process in 0..self.stage.processes {
            let host = self.stage.host(process);
            let part = &mut own[part_of(self.stage.hosts[host as usize])];
            places.push(part.len() as u32);
            part.push(process);
        }
        let places: Arc<[u32]> = places.into();
        let part =
            |own: &Vec<u32>| Part::new(Arc::clone(&self.stage), Arc::clone(&places), true, own);
        self.parts = own.iter().map(part).collect();
        let lent = self.parts.iter_mut();
        Some(lent.map(|part| Box::new(part) as Box<dyn Workload + '_>).collect())
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.stage.messages)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.stage.bytes)
    }
    fn finished(&self) -> bool {
        self.parts.iter().all(Workload::finished)
    }
    fn round_starts(&self) -> &[Time] {
        let mut starts = self.parts.iter().map(Workload::round_starts);
        starts.find(|starts| !starts.is_empty()).unwrap_or(&[])
    }
}
