//! The closed loop: deliveries in, next operations out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use raddle_units::{Bytes, NodeId, Time};

use super::exchange::Exchange;
use super::program::{Part, Program, alltoall_target};
use super::{Congestor, Gpcnet};
use crate::generate::message;
use crate::{Message, Workload};

const CLASSES: [&str; 8] = [
    "tested-latency",
    "tested-bandwidth",
    "tested-barrier",
    "tested-allreduce",
    "background-alltoall",
    "background-p2p-incast",
    "background-put-incast",
    "background-get-incast",
];

/// A tag is the serial number of the message above its slot among the messages under way.
const SLOT_BITS: u32 = 32;

/// A message on its way or about to start.
#[derive(Clone, Copy, Debug)]
struct Op {
    from: u32,
    to: u32,
    kind: OpKind,
    size: Bytes,
    class: u8,
}

#[derive(Clone, Copy, Debug)]
enum OpKind {
    /// Part of an exchange; the sender's step.
    Step(u64),
    /// A send or put towards rank 0.
    Push,
    /// A get's request towards rank 0.
    Request,
    /// A get's data.
    Response,
}

/// A rank of a victim or congestor.
#[derive(Clone, Debug)]
struct Rank {
    node: NodeId,
    group: u32,
    /// Number within the group.
    number: u32,
    exchange: Exchange,
}

/// A communicator.
#[derive(Clone, Debug)]
struct Group {
    /// Rank 0 of the group among all ranks; the others follow.
    first: u32,
    ranks: u32,
    role: Role,
}

#[derive(Clone, Debug)]
enum Role {
    Victims(Program),
    Congestors(Congestor),
}

/// The running benchmark.
pub(super) struct Run {
    classes: Vec<String>,
    congestor_size: Bytes,
    get_request_size: Bytes,
    ranks: Vec<Rank>,
    groups: Vec<Group>,
    /// Messages that wait for their time, by (time, tag).
    ready: BinaryHeap<Reverse<(Time, u64)>>,
    slots: Vec<Op>,
    free: Vec<u32>,
    serial: u64,
    victims_left: u64,
    open_ended: bool,
    expected: Option<u64>,
}

impl Run {
    pub(super) fn new(spec: &Gpcnet, victims: &[NodeId], congestors: &[NodeId], seed: u64) -> Self {
        let mut run = Self {
            classes: CLASSES.map(str::to_owned).to_vec(),
            congestor_size: spec.congestor_size,
            get_request_size: spec.get_request_size,
            ranks: Vec::new(),
            groups: Vec::new(),
            ready: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            serial: 0,
            victims_left: 0,
            open_ended: spec.congestion,
            expected: None,
        };
        let mut messages = 0;
        for slice in 0..u64::from(spec.ranks_per_host) {
            let program = Program::new(spec, victims.len() as u32, slice, seed);
            messages += program.messages();
            run.add_group(Role::Victims(program), victims.iter().copied());
            if spec.congestion {
                let kinds = spec.congestors.len();
                for (colour, &kind) in spec.congestors.iter().enumerate() {
                    let hosts = congestors.iter().copied().skip(colour).step_by(kinds);
                    run.add_group(Role::Congestors(kind), hosts);
                }
            }
        }
        if !spec.congestion {
            run.expected = Some(messages);
        }
        for rank in 0..run.ranks.len() as u32 {
            let group = &run.groups[run.ranks[rank as usize].group as usize];
            match group.role {
                Role::Victims(_) => {
                    run.victims_left += 1;
                    run.begin_step(Time(spec.warmup.0), rank, 0);
                }
                Role::Congestors(_) => run.begin_congestor(Time::ZERO, rank),
            }
        }
        run
    }

    fn add_group(&mut self, role: Role, hosts: impl Iterator<Item = NodeId>) {
        let first = self.ranks.len() as u32;
        let group = self.groups.len() as u32;
        for (number, node) in hosts.enumerate() {
            let number = number as u32;
            self.ranks.push(Rank {
                node,
                group,
                number,
                exchange: Exchange::default(),
            });
        }
        let ranks = self.ranks.len() as u32 - first;
        self.groups.push(Group { first, ranks, role });
    }

    /// First operation of a congestor.
    fn begin_congestor(&mut self, now: Time, rank: u32) {
        let Rank { group, number, .. } = self.ranks[rank as usize];
        match self.groups[group as usize].role {
            Role::Congestors(Congestor::Alltoall) => self.begin_step(now, rank, 0),
            Role::Congestors(_) if number != 0 => self.push_to_root(now, rank),
            _ => {}
        }
    }

    /// A congestor's next send, put or get.
    fn push_to_root(&mut self, now: Time, rank: u32) {
        let group = &self.groups[self.ranks[rank as usize].group as usize];
        let Role::Congestors(kind) = group.role else {
            return;
        };
        let (size, op) = match kind {
            Congestor::GetIncast => (self.get_request_size, OpKind::Request),
            _ => (self.congestor_size, OpKind::Push),
        };
        let class = congestor_class(kind);
        let op = Op {
            from: rank,
            to: group.first,
            kind: op,
            size,
            class,
        };
        self.send(now, op);
    }

    /// Begins `step` of an exchanging rank, and further ones while they are over at once.
    fn begin_step(&mut self, now: Time, rank: u32, step: u64) {
        let mut step = step;
        loop {
            let Rank { group, number, .. } = self.ranks[rank as usize];
            let group = &self.groups[group as usize];
            let first = group.first;
            let (targets, receives, size, class) = match &group.role {
                Role::Victims(program) => {
                    let Some(plan) = program.plan(number, step) else {
                        self.victims_left -= 1;
                        return;
                    };
                    (
                        plan.targets,
                        plan.receives,
                        plan.size,
                        victim_class(plan.kind),
                    )
                }
                Role::Congestors(kind) => {
                    let target = alltoall_target(number, group.ranks, step);
                    let targets = [Some((target, 1)), None];
                    (targets, 1, self.congestor_size, congestor_class(*kind))
                }
            };
            let sends = targets.iter().flatten().map(|&(_, count)| count).sum();
            self.ranks[rank as usize]
                .exchange
                .begin(step, sends, receives);
            for (target, count) in targets.into_iter().flatten() {
                for _ in 0..count {
                    let kind = OpKind::Step(step);
                    self.send(
                        now,
                        Op {
                            from: rank,
                            to: first + target,
                            kind,
                            size,
                            class,
                        },
                    );
                }
            }
            if !self.ranks[rank as usize].exchange.is_done() {
                return;
            }
            step += 1;
        }
    }

    fn send(&mut self, now: Time, op: Op) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = op;
                slot
            }
            None => {
                self.slots.push(op);
                self.slots.len() as u32 - 1
            }
        };
        let tag = self.serial << SLOT_BITS | u64::from(slot);
        self.serial += 1;
        self.ready.push(Reverse((now, tag)));
    }

    fn step_if_done(&mut self, now: Time, rank: u32) {
        let exchange = &self.ranks[rank as usize].exchange;
        if exchange.is_done() {
            let next = exchange.step + 1;
            self.begin_step(now, rank, next);
        }
    }
}

impl Workload for Run {
    fn classes(&self) -> &[String] {
        &self.classes
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
        let Op {
            from,
            to,
            size,
            class,
            ..
        } = self.slots[slot_of(tag)];
        let (src, dst) = (self.ranks[from as usize].node, self.ranks[to as usize].node);
        Some(message(start, src, dst, size, class, tag))
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let slot = slot_of(tag);
        let Some(&Op {
            from,
            to,
            kind,
            class,
            ..
        }) = self.slots.get(slot)
        else {
            return;
        };
        self.free.push(slot as u32);
        match kind {
            OpKind::Push | OpKind::Response if self.finished() => {}
            OpKind::Push => self.push_to_root(now, from),
            OpKind::Response => self.push_to_root(now, to),
            OpKind::Request => {
                let size = self.congestor_size;
                self.send(
                    now,
                    Op {
                        from: to,
                        to: from,
                        kind: OpKind::Response,
                        size,
                        class,
                    },
                );
            }
            OpKind::Step(step) => {
                self.ranks[from as usize].exchange.sent();
                self.ranks[to as usize].exchange.received(step);
                self.step_if_done(now, from);
                self.step_if_done(now, to);
            }
        }
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn expected_messages(&self) -> Option<u64> {
        self.expected
    }
    fn is_open_ended(&self) -> bool {
        self.open_ended
    }
    fn finished(&self) -> bool {
        self.victims_left == 0
    }
}

fn slot_of(tag: u64) -> usize {
    (tag & ((1 << SLOT_BITS) - 1)) as usize
}

fn victim_class(part: Part) -> u8 {
    match part {
        Part::Latency => 0,
        Part::Bandwidth => 1,
        Part::Barrier => 2,
        Part::Allreduce => 3,
    }
}

fn congestor_class(kind: Congestor) -> u8 {
    match kind {
        Congestor::Alltoall => 4,
        Congestor::P2pIncast => 5,
        Congestor::PutIncast => 6,
        Congestor::GetIncast => 7,
    }
}
