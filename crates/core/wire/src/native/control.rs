//! What control messages carry: terms and the path of a query, a switch's program.

use core::net::Ipv4Addr;

use crate::{DataType, Layer, WireError, field::header};

header! {
    /// What begins the body of query and notify: what is supported, and what the master decided. Behind it a
    /// [`PathEntry`] for each switch on the way, first the sender's.
    Terms, TermsView, Terms, 40 {
        /// operations supported, bit code - 1
        operations: u16 = Big 0:0/16,
        /// collectives supported, bit code - 1
        collectives: u16 = Big 2:0/16,
        /// element types supported: bit code for codes 1..=10, bit code - 16 for 32..=36
        types: u32 = Big 4:0/32,
        /// switches passed: entries of the path
        hops: u8 = Big 8:0/8,
        /// leaders of a node: 1 in Node mode, sockets of the node in Socket mode
        leaders: u8 = Big 9:0/8,
        /// order of additions: 0 host, 1 rank, 2 arrival
        order: u8 = Big 10:0/8,
        /// tiers of switches in the tree; 0 in a query
        tiers: u8 = Big 11:0/8,
        /// most bytes of an operand in a message
        segment_bytes: u16 = Big 12:0/16,
        /// slots of the group in each switch: twice the segments of a member that may be unanswered
        slots: u16 = Big 14:0/16,
        /// members of the group
        group_size: u32 = Big 16:0/32,
        /// milliseconds that state outlives its last sign of life
        lease_ms: u32 = Big 20:0/32,
        /// member that the message is for
        destination: u32 = Big 24:0/32,
        /// switch that the member sends to; 0 in a query
        parent: Ipv4Addr = Big 28:0/32,
        /// multicast address on which that switch sends results; 0: to each child
        results: Ipv4Addr = Big 32:0/32,
        /// UDP port of these
        results_port: u16 = Big 36:0/16,
        /// reserved, 0
        reserved: u16 = Big 38:0/16,
    }
}

header! {
    /// A switch that a query has passed.
    PathEntry, PathEntryView, PathEntry, 12 {
        /// address of the switch
        address: Ipv4Addr = Big 0:0/32,
        /// its tier: 1 next to hosts, and one more with each step towards the root
        tier: u8 = Big 4:0/8,
        /// reserved, 0
        reserved: u32 = Big 5:0/24,
        /// groups that it still has room for
        room: u32 = Big 8:0/32,
    }
}

header! {
    /// What begins the body of a program. Behind it its children, steps and outputs.
    ProgramHead, ProgramHeadView, Program, 32 {
        /// switch that gets this one's contributions; 0: this one is the root
        parent: Ipv4Addr = Big 0:0/32,
        /// multicast address for results; 0: they are sent to each child
        results: Ipv4Addr = Big 4:0/32,
        /// address of the master
        master: Ipv4Addr = Big 8:0/32,
        /// members of the group
        group_size: u32 = Big 12:0/32,
        /// milliseconds that state outlives its last sign of life
        lease_ms: u32 = Big 16:0/32,
        /// slots of the group, 2..
        slots: u16 = Big 20:0/16,
        /// most bytes of an operand in a message
        segment_bytes: u16 = Big 22:0/16,
        /// entries of children
        children: u16 = Big 24:0/16,
        /// steps
        steps: u16 = Big 26:0/16,
        /// outputs; 0 with 0 steps: no ordered rounds
        outputs: u16 = Big 28:0/16,
        /// UDP port of multicast results
        results_port: u16 = Big 30:0/16,
    }
}

header! {
    /// A child of a switch in a program; in ascending order of `rank`.
    ChildEntry, ChildEntryView, ChildEntry, 12 {
        /// address to which results go
        address: Ipv4Addr = Big 0:0/32,
        /// UDP port of it
        port: u16 = Big 4:0/16,
        /// operands of its contributions in ordered rounds
        operands: u16 = Big 6:0/16,
        /// the field `rank` of its messages
        rank: u32 = Big 8:0/32,
    }
}

header! {
    /// A step of a program. Operands are numbered: first those of the children in their order, then those made.
    StepEntry, StepEntryView, StepEntry, 6 {
        /// operand made
        into: u16 = Big 0:0/16,
        /// MPI's `in`
        left: u16 = Big 2:0/16,
        /// MPI's `inout`
        right: u16 = Big 4:0/16,
    }
}

/// The body of a program: a head, then entries whose numbers the head tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramView<'a> {
    /// Its head.
    pub head: ProgramHeadView<'a>,
    children: &'a [[u8; ChildEntry::SIZE]],
    steps: &'a [[u8; StepEntry::SIZE]],
    outputs: &'a [[u8; 2]],
    bytes: &'a [u8],
}

impl<'a> ProgramView<'a> {
    /// Bytes of a program's body.
    #[must_use]
    pub const fn size(children: usize, steps: usize, outputs: usize) -> usize {
        ProgramHead::SIZE + ChildEntry::SIZE * children + StepEntry::SIZE * steps + 2 * outputs
    }

    pub(super) fn parse(body: &'a [u8], at: usize) -> Result<Self, WireError> {
        let head = ProgramHead::view(body, 0).map_err(|error| WireError {
            offset: at + error.offset,
            ..error
        })?;
        let (children, steps) = (usize::from(head.children()), usize::from(head.steps()));
        let size = Self::size(children, steps, usize::from(head.outputs()));
        if body.len() != size {
            let (found, expected) = (body.len() as u64, size as u64);
            return Err(WireError::differs(
                Layer::Program,
                "children",
                at + 24,
                found,
                expected,
            ));
        }
        let (_, rest) = body.split_at(ProgramHead::SIZE);
        let (child_bytes, rest) = rest.split_at(ChildEntry::SIZE * children);
        let (step_bytes, rest) = rest.split_at(StepEntry::SIZE * steps);
        Ok(Self {
            head,
            children: child_bytes.as_chunks().0,
            steps: step_bytes.as_chunks().0,
            outputs: rest.as_chunks().0,
            bytes: body,
        })
    }

    /// Its children.
    pub fn children(self) -> impl ExactSizeIterator<Item = ChildEntryView<'a>> {
        self.children.iter().map(ChildEntryView)
    }

    /// Its steps.
    pub fn steps(self) -> impl ExactSizeIterator<Item = StepEntryView<'a>> {
        self.steps.iter().map(StepEntryView)
    }

    /// The operands that go to the parent, in order.
    pub fn outputs(self) -> impl ExactSizeIterator<Item = u16> {
        self.outputs.iter().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// The body's bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// Writes the body of a program, its numbers filled in; gives its length in bytes.
///
/// # Errors
/// When it does not fit into `buffer`, or there are more entries than 16 bits count.
pub fn write_program(
    buffer: &mut [u8],
    head: &ProgramHead,
    children: &[ChildEntry],
    steps: &[StepEntry],
    outputs: &[u16],
) -> Result<usize, WireError> {
    let number = |field, at, found: usize| {
        u16::try_from(found).map_err(|_| WireError {
            layer: Layer::Program,
            field,
            offset: at,
            problem: crate::Problem::Range {
                found: found as u64,
                bits: 16,
            },
        })
    };
    let head = ProgramHead {
        children: number("children", 24, children.len())?,
        steps: number("steps", 26, steps.len())?,
        outputs: number("outputs", 28, outputs.len())?,
        ..*head
    };
    let size = ProgramView::size(children.len(), steps.len(), outputs.len());
    let room = buffer.len();
    if size > room {
        return Err(WireError::short(Layer::Program, "body", 0, size, room));
    }
    head.write(buffer, 0)?;
    let mut at = ProgramHead::SIZE;
    for child in children {
        child.write(buffer, at)?;
        at += ChildEntry::SIZE;
    }
    for step in steps {
        step.write(buffer, at)?;
        at += StepEntry::SIZE;
    }
    for (output, bytes) in outputs.iter().zip(buffer[at..].chunks_exact_mut(2)) {
        bytes.copy_from_slice(&output.to_be_bytes());
    }
    Ok(size)
}

/// The switches that a query has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathView<'a>(pub(super) &'a [[u8; PathEntry::SIZE]]);

impl<'a> PathView<'a> {
    /// The switches, first the sender's.
    pub fn entries(self) -> impl ExactSizeIterator<Item = PathEntryView<'a>> {
        self.0.iter().map(PathEntryView)
    }

    /// The path's bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

/// The bit that stands for an element type in [`Terms::types`].
#[must_use]
pub const fn type_bit(data_type: DataType) -> u32 {
    let code = data_type.code();
    1 << if code < 32 { code } else { code - 16 }
}
