//! One group in a switch: its children, its program and its slots. Everything is allocated when it is installed.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::cmp::Ordering;

use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        Body, Collective, Header, HeaderView, JobKey, Kind, MAX_BODY, PORT, ProgramView, Reason,
    },
};

use crate::{
    program::{Limits, Program, Step},
    reduce::combine_into_right,
};

/// What a program may hold; more than a tree of real machines has, and little enough to be checked at once.
const LIMITS: Limits = Limits {
    children: 1024,
    operands: 4096,
    steps: 4096,
    outputs: 1024,
};

/// A child of a switch in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Where results go.
    pub address: SocketAddrV4,
    /// The field `rank` of its messages.
    pub rank: u32,
    /// Operands of its ordered contributions.
    pub operands: u16,
}

/// All that a switch knows of a group except the state of its rounds: what a fast path needs to serve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPlan {
    /// The job.
    pub job: u32,
    /// The group.
    pub group: u32,
    /// The job's key.
    pub key: JobKey,
    /// The switch's own `rank` in its messages: the least of its children.
    pub rank: u32,
    /// Where contributions go; `None` in the root.
    pub parent: Option<SocketAddrV4>,
    /// Where results go at once; `None`: to each child.
    pub results: Option<SocketAddrV4>,
    /// Its children in ascending order of rank.
    pub children: Vec<Child>,
    /// What ordered rounds compute; `None`: there are none.
    pub program: Option<Program>,
    /// Slots.
    pub slots: u16,
    /// Most bytes of an operand.
    pub segment_bytes: u16,
    /// How long it lives without a sign of life.
    pub lease: Span,
}

impl GroupPlan {
    /// Reads a program that a master sent to the switch with this address.
    pub(super) fn read(
        address: Ipv4Addr,
        key: JobKey,
        header: HeaderView<'_>,
        view: ProgramView<'_>,
    ) -> Result<Self, Reason> {
        let head = view.head;
        let to = |address: Ipv4Addr, port| {
            (!address.is_unspecified()).then(|| SocketAddrV4::new(address, port))
        };
        let children: Vec<Child> = view
            .children()
            .map(|child| Child {
                address: SocketAddrV4::new(child.address(), child.port()),
                rank: child.rank(),
                operands: child.operands(),
            })
            .collect();
        let unreachable = |child: &Child| {
            let ip = child.address.ip();
            child.address.port() == 0
                || ip.is_unspecified()
                || ip.is_broadcast()
                || ip.is_multicast()
                || *ip == address
        };
        let sorted = children.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        let parent = to(head.parent(), PORT);
        let results = to(head.results(), head.results_port());
        let first = children.first().ok_or(Reason::BadProgram)?;
        if !sorted
            || children.iter().any(unreachable)
            || parent.is_some_and(|parent| {
                *parent.ip() == address || parent.ip().is_multicast() || parent.ip().is_broadcast()
            })
            || results.is_some_and(|to| !to.ip().is_multicast() || to.port() == 0)
            || children.len() > LIMITS.children
            || head.slots() < 2
            || head.segment_bytes() == 0
            || usize::from(head.segment_bytes()) > MAX_BODY
            || head.lease_ms() == 0
        {
            return Err(Reason::BadProgram);
        }
        let plan = Self {
            job: header.job(),
            group: header.group(),
            key,
            rank: first.rank,
            parent,
            results,
            program: Self::program(view, &children, parent.is_none())?,
            children,
            slots: head.slots(),
            segment_bytes: head.segment_bytes(),
            lease: Span::from_ms(u64::from(head.lease_ms())),
        };
        let most = plan.most_operands() * usize::from(plan.segment_bytes);
        if most > MAX_BODY {
            return Err(Reason::BadProgram);
        }
        Ok(plan)
    }

    fn program(
        view: ProgramView<'_>,
        children: &[Child],
        is_root: bool,
    ) -> Result<Option<Program>, Reason> {
        let outputs: Vec<u16> = view.outputs().collect();
        if outputs.is_empty() {
            let none = view.steps().len() == 0;
            return if none {
                Ok(None)
            } else {
                Err(Reason::BadProgram)
            };
        }
        let program = Program {
            inputs: children.iter().map(|child| child.operands).collect(),
            steps: view
                .steps()
                .map(|step| Step {
                    into: step.into(),
                    left: step.left(),
                    right: step.right(),
                })
                .collect(),
            outputs,
        };
        if program.check(&LIMITS).is_err() || (is_root && program.outputs.len() != 1) {
            return Err(Reason::BadProgram);
        }
        Ok(Some(program))
    }

    /// Operands for which a slot has room.
    pub(super) fn operands(&self) -> usize {
        self.program.as_ref().map_or(1, Program::operands)
    }

    /// Operands of the greatest message to or from this switch.
    fn most_operands(&self) -> usize {
        let inputs = self.children.iter().map(|child| child.operands);
        let outputs = self.program.as_ref().map_or(1, |p| p.outputs.len());
        outputs.max(inputs.max().unwrap_or(1).into()).max(1)
    }

    /// Bytes of a slot's message: what the switch itself sends up, then the result.
    fn message_bytes(&self) -> usize {
        let outputs = self.program.as_ref().map_or(1, |p| p.outputs.len());
        Header::SIZE + outputs.max(1) * usize::from(self.segment_bytes)
    }

    /// Bytes of all slots, for quotas.
    pub(super) fn bytes(&self) -> u64 {
        let operands = self.operands() * usize::from(self.segment_bytes);
        let slot = operands + self.message_bytes() + size_of::<Slot>() + self.words() * 8;
        u64::from(self.slots) * slot as u64
    }

    fn words(&self) -> usize {
        self.children.len().div_ceil(64)
    }
}

/// What all contributions to a segment must agree about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shape {
    collective: u8,
    operation: u8,
    data_type: u8,
    ordered: bool,
    segments: u32,
    root: u32,
    elements: u16,
}

impl Shape {
    /// Of a message with this many operands; `None` when its elements are not that many times the same number.
    fn of(header: HeaderView<'_>, operands: u16) -> Option<Self> {
        let count = header.count();
        if !count.is_multiple_of(operands) {
            return None;
        }
        Some(Self {
            collective: header.collective(),
            operation: header.operation(),
            data_type: header.data_type(),
            ordered: header.ordered(),
            segments: header.segments(),
            root: header.root(),
            elements: count / operands,
        })
    }

    /// Bytes of an operand.
    fn operand_bytes(self) -> usize {
        let size = DataType::from_code(self.data_type).map_or(0, DataType::size);
        usize::from(self.elements) * size
    }

    fn is_bcast(self) -> bool {
        self.collective == Collective::Bcast.code()
    }

    /// The same without what only the root of a Bcast knows.
    const fn without_data(self) -> Self {
        Self {
            operation: 0,
            data_type: 0,
            elements: 0,
            ..self
        }
    }
}

/// State of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Never used: older than any segment.
    Empty,
    /// Some children have not contributed.
    Open,
    /// The contribution to the parent stands in the slot's message.
    Sent,
    /// The result stands in the slot's message.
    Answered,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    stage: Stage,
    round: u32,
    segment: u32,
    missing: u16,
    message_length: u16,
    shape: Shape,
}

const EMPTY: Slot = Slot {
    stage: Stage::Empty,
    round: 0,
    segment: 0,
    missing: 0,
    message_length: 0,
    shape: Shape {
        collective: 0,
        operation: 0,
        data_type: 0,
        ordered: false,
        segments: 0,
        root: 0,
        elements: 0,
    },
};

/// What is to be done about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: others are awaited.
    Stored,
    /// The slot's message goes to the parent: all children have contributed.
    SendUp,
    /// The slot's message is the result, and goes to all children.
    Answer,
    /// A repetition: the result goes to this child again.
    AnswerAgain(u16),
    /// A repetition: the contribution goes to the parent again.
    SendUpAgain,
    /// A repetition while others are awaited.
    Waiting,
    /// Older than what the slot holds.
    Stale,
    /// The slot does not exist, or the sender is no child.
    Nobody,
    /// A result that is there already, or that nobody has asked for.
    NotAwaited,
    /// It contradicts what others sent, or cannot be computed.
    Refuse(Reason),
}

/// A group in a switch.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) plan: GroupPlan,
    /// The program as it came, to know a repetition of it.
    pub(super) body: Box<[u8]>,
    pub(super) deadline: Time,
    /// When a lease was last passed to the parent.
    pub(super) passed: Time,
    gone: Box<[bool]>,
    slots: Box<[Slot]>,
    have: Box<[u64]>,
    operands: Box<[u8]>,
    messages: Box<[u8]>,
    words: usize,
    operand_room: usize,
    message_room: usize,
    epoch: u32,
}

impl Group {
    pub(super) fn new(plan: GroupPlan, body: &[u8], epoch: u32, now: Time) -> Self {
        let slots = usize::from(plan.slots);
        let (words, message_room) = (plan.words(), plan.message_bytes());
        let operand_room = plan.operands() * usize::from(plan.segment_bytes);
        Self {
            body: body.into(),
            deadline: now + plan.lease,
            passed: now,
            gone: vec![false; plan.children.len()].into(),
            slots: vec![EMPTY; slots].into(),
            have: vec![0; slots * words].into(),
            operands: vec![0; slots * operand_room].into(),
            messages: vec![0; slots * message_room].into(),
            words,
            operand_room,
            message_room,
            epoch,
            plan,
        }
    }

    /// Number of the child whose messages have this rank.
    pub(super) fn child(&self, rank: u32) -> Option<u16> {
        let children = &self.plan.children;
        // The usual case: members 0 to n - 1, or a run of them.
        let guess = rank.wrapping_sub(self.plan.rank) as usize;
        if children.get(guess).is_some_and(|child| child.rank == rank) {
            return Some(guess as u16);
        }
        let found = children.binary_search_by_key(&rank, |child| child.rank);
        found.ok().map(|child| child as u16)
    }

    /// A child has left. True when no child is left.
    pub(super) fn leave(&mut self, child: u16) -> bool {
        self.gone[usize::from(child)] = true;
        self.gone.iter().all(|gone| *gone)
    }

    /// Slots that wait for children or for the parent.
    pub(super) fn slots_in_use(&self) -> usize {
        let waits = |slot: &&Slot| matches!(slot.stage, Stage::Open | Stage::Sent);
        self.slots.iter().filter(waits).count()
    }

    /// The message that a slot holds: the contribution to the parent, or the result.
    pub(super) fn message(&self, slot: u16) -> &[u8] {
        let slot = usize::from(slot);
        let start = slot * self.message_room;
        &self.messages[start..start + usize::from(self.slots[slot].message_length)]
    }

    /// How a segment relates to what its slot holds: `Less` is older.
    fn compare(slot: &Slot, header: HeaderView<'_>) -> Ordering {
        if slot.stage == Stage::Empty {
            return Ordering::Greater;
        }
        let round = header.round().wrapping_sub(slot.round).cast_signed();
        round.cmp(&0).then(header.segment().cmp(&slot.segment))
    }

    /// A contribution of a child, whose tag is right.
    pub(super) fn contribute(&mut self, header: HeaderView<'_>, body: Body<'_>) -> Verdict {
        let at = usize::from(header.slot());
        let Some(child) = self.child(header.rank()) else {
            return Verdict::Nobody;
        };
        let Some(slot) = self.slots.get_mut(at) else {
            return Verdict::Nobody;
        };
        let order = Self::compare(slot, header);
        if order.is_lt() {
            return Verdict::Stale;
        }
        let operands = match (header.ordered(), &self.plan.program) {
            (true, None) => return Verdict::Refuse(Reason::Unsupported),
            (true, Some(_)) => self.plan.children[usize::from(child)].operands,
            (false, _) => 1,
        };
        let Some(shape) = Shape::of(header, operands) else {
            return Verdict::Refuse(Reason::Mismatch);
        };
        let size = shape.operand_bytes();
        let reduces = header.collective() <= Collective::Reduce.code();
        if size > usize::from(self.plan.segment_bytes)
            || (size > 0 && reduces != (header.operation() != 0))
            || (size > 0 && header.collective() == Collective::Barrier.code())
            || (header.ordered() && !reduces)
        {
            return Verdict::Refuse(Reason::Unsupported);
        }
        let have = &mut self.have[at * self.words..(at + 1) * self.words];
        let (word, bit) = (usize::from(child) / 64, 1_u64 << (child % 64));
        if order.is_gt() {
            have.fill(0);
            *slot = Slot {
                stage: Stage::Open,
                round: header.round(),
                segment: header.segment(),
                missing: self.plan.children.len() as u16,
                message_length: 0,
                shape: if shape.is_bcast() {
                    shape.without_data()
                } else {
                    shape
                },
            };
        } else if shape.is_bcast() {
            if shape.without_data() != slot.shape.without_data() {
                return Verdict::Refuse(Reason::Mismatch);
            }
        } else if shape != slot.shape {
            return Verdict::Refuse(Reason::Mismatch);
        }
        if have[word] & bit != 0 {
            return match slot.stage {
                Stage::Answered => Verdict::AnswerAgain(child),
                Stage::Sent => Verdict::SendUpAgain,
                Stage::Open | Stage::Empty => Verdict::Waiting,
            };
        }
        let room = &mut self.operands[at * self.operand_room..(at + 1) * self.operand_room];
        if let Body::Data(operation, data) = body {
            if shape.is_bcast() {
                // Only the root has values.
                if slot.shape != slot.shape.without_data() {
                    return Verdict::Refuse(Reason::Mismatch);
                }
                slot.shape = shape;
                room[..data.len()].copy_from_slice(data);
            } else if shape.ordered {
                let program = self.plan.program.as_ref();
                let first = program.map_or(0, |p| p.first_operand(usize::from(child))) * size;
                room[first..first + data.len()].copy_from_slice(data);
            } else if usize::from(slot.missing) == self.plan.children.len() {
                room[..data.len()].copy_from_slice(data);
            } else if let Some(operation) = operation
                && let Some(data_type) = DataType::from_code(shape.data_type)
                && combine_into_right(operation, data_type, data, &mut room[..size]).is_err()
            {
                return Verdict::Refuse(Reason::Unsupported);
            }
        }
        have[word] |= bit;
        slot.missing -= 1;
        if slot.missing > 0 {
            return Verdict::Stored;
        }
        self.complete(at, header)
    }

    /// All children have contributed to a slot.
    fn complete(&mut self, at: usize, header: HeaderView<'_>) -> Verdict {
        let slot = &mut self.slots[at];
        let (shape, size) = (slot.shape, slot.shape.operand_bytes());
        let room = &mut self.operands[at * self.operand_room..(at + 1) * self.operand_room];
        let message = &mut self.messages[at * self.message_room..(at + 1) * self.message_room];
        let body = &mut message[Header::SIZE..];
        let mut outputs = 1;
        match (&self.plan.program, shape.ordered) {
            (Some(program), true) => {
                if size > 0
                    && let (Some(operation), Some(data_type)) = (
                        Operation::from_code(shape.operation),
                        DataType::from_code(shape.data_type),
                    )
                    && program.run(operation, data_type, room, size).is_err()
                {
                    return Verdict::Refuse(Reason::Unsupported);
                }
                outputs = program.outputs.len();
                if size > 0 {
                    let results = program.results(room, size);
                    for (result, place) in results.zip(body.chunks_exact_mut(size)) {
                        place.copy_from_slice(result);
                    }
                }
            }
            _ => body[..size].copy_from_slice(&room[..size]),
        }
        let is_root = self.plan.parent.is_none();
        let sealed = Header {
            kind: if is_root {
                Kind::Result
            } else {
                Kind::Contribution
            }
            .code(),
            resent: false,
            answer: false,
            reason: 0,
            rank: self.plan.rank,
            epoch: self.epoch,
            data_type: shape.data_type,
            operation: shape.operation,
            count: shape.elements * outputs as u16,
            ..header.values()
        }
        .seal_message(message, size * outputs, &self.plan.key);
        let Ok(length) = sealed else {
            return Verdict::Refuse(Reason::Unsupported);
        };
        slot.message_length = length as u16;
        if is_root {
            slot.stage = Stage::Answered;
            return Verdict::Answer;
        }
        slot.stage = Stage::Sent;
        Verdict::SendUp
    }

    /// A result from the parent, whose tag is right; `bytes` is the whole message.
    pub(super) fn take_result(&mut self, header: HeaderView<'_>, bytes: &[u8]) -> Verdict {
        let at = usize::from(header.slot());
        let Some(slot) = self.slots.get_mut(at) else {
            return Verdict::Nobody;
        };
        if slot.stage != Stage::Sent || Self::compare(slot, header).is_ne() {
            return Verdict::NotAwaited;
        }
        let Some(shape) = Shape::of(header, 1) else {
            return Verdict::NotAwaited;
        };
        let fits = if shape.is_bcast() {
            shape.without_data() == slot.shape.without_data()
                && shape.operand_bytes() <= usize::from(self.plan.segment_bytes)
        } else {
            shape == slot.shape
        };
        if !fits {
            return Verdict::NotAwaited;
        }
        let start = at * self.message_room;
        self.messages[start..start + bytes.len()].copy_from_slice(bytes);
        slot.message_length = bytes.len() as u16;
        slot.stage = Stage::Answered;
        Verdict::Answer
    }
}
