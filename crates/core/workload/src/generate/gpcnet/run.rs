//! The closed loop: who takes part, and what a message's tag says.

use std::sync::Arc;

use raddle_units::{Bytes, NodeId, Time};

use super::part::Part;
use super::program::{Kind, Plan, Program, alltoall_target};
use super::{Congestor, Gpcnet};
use crate::generate::message;
use crate::{Message, TrafficError, Workload};

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

/// In a tag: the data of a get, which has the tag of its request otherwise.
const RESPONSE: u64 = 1 << 63;
/// A tag is a rank above the number of its message: of an exchange, the step and the place within it, else the messages
/// before it. So it counts what one rank does, whoever else is there.
const NUMBER_BITS: u32 = 39;
const NUMBERS: u64 = 1 << NUMBER_BITS;

/// A message, as its tag says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: OpKind,
    size: Bytes,
    class: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OpKind {
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    node: NodeId,
    group: u32,
    /// Number within the group.
    number: u32,
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

/// Who takes part, and how.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) classes: Vec<String>,
    congestor_size: Bytes,
    get_request_size: Bytes,
    pub(super) warmup: Time,
    pub(super) ranks: Vec<Rank>,
    groups: Vec<Group>,
    /// Messages of all victims.
    pub(super) measured: u64,
    pub(super) open_ended: bool,
}

impl Stage {
    fn new(
        spec: &Gpcnet,
        victims: &[NodeId],
        congestors: &[NodeId],
        seed: u64,
    ) -> Result<Self, TrafficError> {
        let mut stage = Self {
            classes: CLASSES.map(str::to_owned).to_vec(),
            congestor_size: spec.congestor_size,
            get_request_size: spec.get_request_size,
            warmup: Time(spec.warmup.0),
            ranks: Vec::new(),
            groups: Vec::new(),
            measured: 0,
            open_ended: spec.congestion,
        };
        for slice in 0..u64::from(spec.ranks_per_host) {
            let program = Program::new(spec, victims.len() as u32, slice, seed);
            if program.numbers() > NUMBERS {
                let problem = format!(
                    "the steps of a rank have {} places for messages, at most 2^{NUMBER_BITS} are possible: \
                     use fewer iterations",
                    program.numbers()
                );
                return Err(TrafficError::spec("victims", problem));
            }
            stage.measured += program.messages();
            stage.add_group(Role::Victims(program), victims.iter().copied());
            if spec.congestion {
                let kinds = spec.congestors.len();
                for (colour, &kind) in spec.congestors.iter().enumerate() {
                    let hosts = congestors.iter().copied().skip(colour).step_by(kinds);
                    stage.add_group(Role::Congestors(kind), hosts);
                }
            }
        }
        Ok(stage)
    }

    fn add_group(&mut self, role: Role, hosts: impl Iterator<Item = NodeId>) {
        let first = self.ranks.len() as u32;
        let group = self.groups.len() as u32;
        self.ranks.extend(hosts.zip(0..).map(|(node, number)| Rank {
            node,
            group,
            number,
        }));
        let ranks = self.ranks.len() as u32 - first;
        self.groups.push(Group { first, ranks, role });
    }

    fn rank(&self, rank: u32) -> (Rank, &Group) {
        let rank = self.ranks[rank as usize];
        (rank, &self.groups[rank.group as usize])
    }

    pub(super) fn node(&self, rank: u32) -> NodeId {
        self.ranks[rank as usize].node
    }

    /// Whether a rank measures.
    pub(super) fn is_victim(&self, rank: u32) -> bool {
        matches!(self.rank(rank).1.role, Role::Victims(_))
    }

    /// Whether a rank goes through exchanges; the others send to rank 0, or are it.
    pub(super) fn exchanges(&self, rank: u32) -> bool {
        !matches!(self.rank(rank).1.role, Role::Congestors(kind) if kind != Congestor::Alltoall)
    }

    /// Whether a rank sends to rank 0.
    pub(super) fn pushes(&self, rank: u32) -> bool {
        !self.exchanges(rank) && self.rank(rank).0.number != 0
    }

    /// What an exchanging rank does in a step; `None`: it is through.
    pub(super) fn step(&self, rank: u32, step: u64) -> Option<Plan> {
        let (rank, group) = self.rank(rank);
        match &group.role {
            Role::Victims(program) => program.plan(rank.number, step),
            Role::Congestors(_) => {
                let target = alltoall_target(rank.number, group.ranks, step);
                Some(Plan {
                    targets: [Some((target, 1)), None],
                    receives: 1,
                    size: self.congestor_size,
                    kind: Kind::default(),
                })
            }
        }
    }

    /// Tags of the messages that an exchanging rank sends in a step, the first of them.
    pub(super) fn step_tag(&self, rank: u32, step: u64) -> u64 {
        tag(rank, step * self.rank(rank).1.width())
    }

    /// The message that a tag stands for.
    pub(super) fn op(&self, tag: u64) -> Op {
        let asker = asker(tag);
        let (rank, group) = self.rank(asker);
        let number = tag & (NUMBERS - 1);
        let to_root = |kind, size, class| Op {
            from: asker,
            to: group.first,
            kind,
            size,
            class,
        };
        match &group.role {
            Role::Congestors(Congestor::GetIncast) if tag & RESPONSE != 0 => Op {
                from: group.first,
                to: asker,
                kind: OpKind::Response,
                size: self.congestor_size,
                class: 7,
            },
            Role::Congestors(Congestor::GetIncast) => {
                to_root(OpKind::Request, self.get_request_size, 7)
            }
            Role::Congestors(Congestor::P2pIncast) => to_root(OpKind::Push, self.congestor_size, 5),
            Role::Congestors(Congestor::PutIncast) => to_root(OpKind::Push, self.congestor_size, 6),
            role => {
                let width = group.width();
                let (step, place) = (number / width, number % width);
                let plan = self.step(asker, step).unwrap_or_default();
                let target = plan.target(place).unwrap_or(rank.number);
                Op {
                    from: asker,
                    to: group.first + target,
                    kind: OpKind::Step(step),
                    size: plan.size,
                    class: match role {
                        Role::Victims(_) => victim_class(plan.kind),
                        Role::Congestors(_) => 4,
                    },
                }
            }
        }
    }

    /// The message, at its start.
    pub(super) fn message(&self, start: Time, tag: u64) -> Message {
        let op = self.op(tag);
        let (src, dst) = (self.node(op.from), self.node(op.to));
        message(start, src, dst, op.size, op.class, tag)
    }

    /// Whether its sender waits for its delivery.
    pub(super) fn is_awaited(&self, tag: u64) -> bool {
        let (_, group) = self.rank(asker(tag));
        !matches!(group.role, Role::Congestors(Congestor::GetIncast))
    }
}

impl Group {
    /// Numbers of each step.
    fn width(&self) -> u64 {
        match &self.role {
            Role::Victims(program) => program.width(),
            Role::Congestors(_) => 1,
        }
    }
}

/// Message `number` of a rank.
pub(super) const fn tag(rank: u32, number: u64) -> u64 {
    (rank as u64) << NUMBER_BITS | number
}

/// The data that a request asks for.
pub(super) const fn response(request: u64) -> u64 {
    request | RESPONSE
}

/// The rank whose message it is; of the data of a get, the one that asked.
pub(super) const fn asker(tag: u64) -> u32 {
    ((tag & !RESPONSE) >> NUMBER_BITS) as u32
}

fn victim_class(kind: Kind) -> u8 {
    match kind {
        Kind::Latency => 0,
        Kind::Bandwidth => 1,
        Kind::Barrier => 2,
        Kind::Allreduce => 3,
    }
}

/// The running benchmark.
pub(super) struct Run {
    stage: Arc<Stage>,
    /// One until it is cut.
    parts: Vec<Part>,
}

impl Run {
    /// # Errors
    /// More messages of a rank than tags can tell apart.
    pub(super) fn new(
        spec: &Gpcnet,
        victims: &[NodeId],
        congestors: &[NodeId],
        seed: u64,
    ) -> Result<Self, TrafficError> {
        let stage = Arc::new(Stage::new(spec, victims, congestors, seed)?);
        let all = 0..stage.ranks.len() as u32;
        let whole = Part::new(
            Arc::clone(&stage),
            all.clone().collect(),
            false,
            all.collect(),
        );
        Ok(Self {
            stage,
            parts: vec![whole],
        })
    }

    /// The part that comes next, and when.
    fn next(&self) -> Option<(Time, usize)> {
        let starts = self.parts.iter().map(Workload::next_start).zip(0..);
        starts
            .filter_map(|(start, part)| Some((start?, part)))
            .min()
    }
}

impl Workload for Run {
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
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let mut own = vec![Vec::new(); parts];
        let mut places = Vec::with_capacity(self.stage.ranks.len());
        for (number, rank) in (0..).zip(&self.stage.ranks) {
            let part = &mut own[part_of(rank.node)];
            places.push(part.len() as u32);
            part.push(number);
        }
        let places: Arc<[u32]> = places.into();
        let part = |own| Part::new(Arc::clone(&self.stage), Arc::clone(&places), true, own);
        self.parts = own.into_iter().map(part).collect();
        let lent = self.parts.iter_mut();
        Some(lent.map(|part| Box::new(part) as Box<dyn Workload + '_>).collect())
    }
    fn expected_messages(&self) -> Option<u64> {
        (!self.stage.open_ended).then_some(self.stage.measured)
    }
    fn is_open_ended(&self) -> bool {
        self.stage.open_ended
    }
    fn finished(&self) -> bool {
        self.parts.iter().all(Workload::finished)
    }
}
