//! Random groups, rounds and values.

use raddle_offload::{order::Expression, program::Program};
use raddle_wire::{
    DataType, Operation,
    native::{Collective, Header},
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng as _;

pub(crate) fn below(random: &mut ChaCha8Rng, limit: u64) -> u64 {
    random.next_u64() % limit
}

pub(crate) fn chance(random: &mut ChaCha8Rng, percent: u64) -> bool {
    below(random, 100) < percent
}

/// How a round of a group looks; members agree about it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) collective: Collective,
    pub(crate) operation: Option<Operation>,
    pub(crate) data_type: Option<DataType>,
    pub(crate) ordered: bool,
    pub(crate) elements: u16,
    pub(crate) segments: u32,
    pub(crate) root: u32,
}

impl Shape {
    pub(crate) fn random(
        random: &mut ChaCha8Rng,
        fast: bool,
        can_order: bool,
        segment_bytes: u16,
    ) -> Self {
        if fast && chance(random, 10) {
            return Self {
                collective: Collective::Barrier,
                operation: None,
                data_type: None,
                ordered: false,
                elements: 0,
                segments: 1,
                root: 0,
            };
        }
        let data_type = DataType::ALL[below(random, 10) as usize];
        let mut operation = loop {
            let operation = Operation::ALL[below(random, 10) as usize];
            if operation != Operation::Prod && operation.accepts(data_type) {
                break operation;
            }
        };
        let most = u64::from(segment_bytes.min(256)) / data_type.size() as u64;
        let mut shape = Self {
            collective: if chance(random, 80) {
                Collective::Allreduce
            } else {
                Collective::Reduce
            },
            operation: None,
            data_type: Some(data_type),
            ordered: can_order && chance(random, 50),
            // One element half of the time, as most programs have it.
            elements: if chance(random, 50) {
                1
            } else {
                1 + below(random, most) as u16
            },
            segments: 1,
            root: below(random, 3) as u32,
        };
        if !fast {
            match below(random, 3) {
                0 => operation = Operation::Prod,
                1 => shape.segments = 2 + below(random, 3) as u32,
                _ => {
                    shape.collective = Collective::Bcast;
                    shape.ordered = false;
                    shape.elements = 0;
                    shape.data_type = None;
                    return shape;
                }
            }
        }
        shape.operation = Some(operation);
        shape
    }
}

/// A random value's bytes: any bits, or small numbers, so that sums of floats meet.
pub(crate) fn fill(random: &mut ChaCha8Rng, data_type: DataType, bytes: &mut [u8]) {
    let plain = chance(random, 70);
    for element in bytes.chunks_exact_mut(data_type.size()) {
        let word = random.next_u64();
        let number = (word % 2001) as i64 - 1000;
        match (data_type, plain) {
            (DataType::Double, true) => {
                element.copy_from_slice(&(number as f64 / 7.0).to_be_bytes());
            }
            (DataType::Float, true) => {
                element.copy_from_slice(&(number as f32 / 7.0).to_be_bytes());
            }
            (_, true) => element.copy_from_slice(&number.to_be_bytes()[8 - element.len()..]),
            (_, false) => element.copy_from_slice(&word.to_be_bytes()[8 - element.len()..]),
        }
    }
}

/// One double, summed up.
pub(crate) const DOUBLE: Shape = Shape {
    collective: Collective::Allreduce,
    operation: Some(Operation::Sum),
    data_type: Some(DataType::Double),
    ordered: false,
    elements: 1,
    segments: 1,
    root: 0,
};

/// The shape of a message that was made of one.
pub(crate) fn shape_of(header: &Header) -> Shape {
    Shape {
        collective: Collective::from_code(header.collective).unwrap_or(Collective::Bcast),
        operation: Operation::from_code(header.operation),
        data_type: DataType::from_code(header.data_type),
        ordered: header.ordered,
        elements: header.count,
        segments: header.segments,
        root: header.root,
    }
}

/// What a group is like.
pub(crate) struct Spec {
    pub(crate) children: u16,
    pub(crate) ranks: Vec<u32>,
    pub(crate) operands: Vec<u16>,
    pub(crate) program: Option<Program>,
    pub(crate) parent: bool,
    pub(crate) results: bool,
    pub(crate) slots: u16,
    pub(crate) segment_bytes: u16,
}

impl Spec {
    /// A random group: ranks below a child in a run or scattered, and beyond the switch if it has a parent.
    pub(crate) fn random(random: &mut ChaCha8Rng) -> Self {
        let most = if chance(random, 5) { 32 } else { 6 };
        let children = 1 + below(random, most) as u16;
        let parent = chance(random, 50);
        let size = u32::from(children) + below(random, 2 * u64::from(children)) as u32;
        let mut ranks_below = vec![Vec::new(); usize::from(children)];
        let tidy = chance(random, 50);
        for rank in 0..size {
            let child = if tidy {
                u64::from(rank) * u64::from(children) / u64::from(size)
            } else if rank < u32::from(children) {
                u64::from(rank)
            } else {
                below(random, u64::from(children))
            };
            ranks_below[child as usize].push(rank);
        }
        let beyond = if parent { below(random, 5) as u32 } else { 0 };
        let expression = Expression::in_rank_order(size + beyond).expect("ranks");
        let program = Program::for_node(&expression, &ranks_below).expect("a tree");
        let operands = program.inputs.clone();
        let mut ranks: Vec<u32> = Vec::new();
        for _ in 0..children {
            let last = ranks.last().copied().unwrap_or(0);
            ranks.push(last + 1 + below(random, 3) as u32);
        }
        let longest = operands.iter().copied().max().unwrap_or(1);
        let mut segment_bytes = [8, 64, 256, 1024][below(random, 4) as usize];
        // What a message of several operands has room for.
        if usize::from(longest.max(program.outputs.len() as u16)) * segment_bytes > 8192 {
            segment_bytes = 64;
        }
        Self {
            children,
            ranks,
            operands,
            program: chance(random, 80).then_some(program),
            parent,
            results: chance(random, 50),
            slots: 2 + below(random, 5) as u16,
            segment_bytes: segment_bytes as u16,
        }
    }

    /// Three children of the root, which gets its results to all at once.
    pub(crate) fn plain() -> Self {
        Self {
            children: 3,
            ranks: vec![0, 1, 2],
            operands: vec![1; 3],
            program: None,
            parent: false,
            results: true,
            slots: 4,
            segment_bytes: 256,
        }
    }

    /// By how many bytes what goes up is longer than the shortest message, with operands of so many bytes.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        let outputs = self
            .program
            .as_ref()
            .map_or(1, |program| program.outputs.len());
        let least = self.operands.iter().copied().min().unwrap_or(1);
        outputs.saturating_sub(usize::from(least)) * bytes
    }

    /// Whether the program has room for the group's ordered rounds.
    pub(crate) fn fits(&self) -> bool {
        let Some(program) = &self.program else {
            return false;
        };
        self.operands.iter().sum::<u16>() <= 32
            && program.outputs.len() <= 4
            && self.operands.iter().all(|operands| *operands <= 4)
    }
}
