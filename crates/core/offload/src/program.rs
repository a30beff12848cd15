//! What a node of the aggregation tree computes of an [`Expression`], as steps that a switch runs without knowing ranks.
//!
//! A node can compute the largest subtrees all of whose ranks are below it: its *outputs*, in the order of the
//! expression's nodes. Its operands are numbered: first all outputs of its first child, then those of the second, and so
//! on. Parent and child number them alike, since both cut the same expression.
//!
//! ```
//! use raddle_offload::{order::Expression, program::{Program, Step}};
//! // ((0 + 1) + 2) + 3 where ranks 0 and 3 are below one child, 1 and 2 below another.
//! let expression = Expression::in_rank_order(4).unwrap();
//! let root = Program::for_node(&expression, &[vec![0, 3], vec![1, 2]]).unwrap();
//! assert_eq!(root.inputs, [2, 2]); // nothing falls together below either
//! let step = |left, right| Step { into: right, left, right };
//! assert_eq!(root.steps, [step(0, 2), step(2, 3), step(3, 1)]);
//! assert_eq!(root.outputs, [1]);
//! ```

use raddle_wire::{DataType, Operation};
use thiserror::Error;

use crate::{
    order::{Expression, Node},
    reduce::{ReduceError, combine, combine_into_left, combine_into_right},
};

/// `into = left op right`, operands by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// Where the result goes; may be one of the other two.
    pub into: u16,
    /// MPI's `in`.
    pub left: u16,
    /// MPI's `inout`.
    pub right: u16,
}

/// What a node computes for a segment once all children have contributed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// Operands that each child sends.
    pub inputs: Vec<u16>,
    /// What is done, in order. Programs of [`Program::for_node`] and [`Program::fold`] need no room beside the inputs.
    pub steps: Vec<Step>,
    /// Operands that are the node's own contribution, in order; at the root of the tree one: the result.
    pub outputs: Vec<u16>,
}

/// What a node accepts of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most children.
    pub children: usize,
    /// Most operands, inputs and others.
    pub operands: usize,
    /// Most steps.
    pub steps: usize,
    /// Most outputs.
    pub outputs: usize,
}

/// Why there is no program, or why it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A rank below a child is not in the communicator, or is listed twice.
    #[error("rank {rank} of child {child} is not below {size}, or is listed twice")]
    Rank {
        /// The child.
        child: usize,
        /// The rank.
        rank: u32,
        /// Ranks of the communicator.
        size: u32,
    },
    /// There are no children, or one without operands.
    #[error("child {child} has no operand")]
    Idle {
        /// The child.
        child: usize,
    },
    /// More than a node accepts.
    #[error("{found} {what}, at most {limit} are accepted")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many are accepted.
        limit: usize,
    },
    /// A step uses an operand that no child sends and no earlier step makes, or one twice.
    #[error("step {step} uses operand {operand}, which does not exist yet, or uses it twice")]
    Step {
        /// The step, from 0.
        step: usize,
        /// The operand.
        operand: u16,
    },
    /// An output that no child sends and no step makes, or no output at all.
    #[error("output {output} is operand {operand}, which does not exist")]
    Output {
        /// The output, from 0.
        output: usize,
        /// The operand.
        operand: u16,
    },
}

/// Whose ranks are below a place of an expression, seen from one node of the aggregation tree.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Also ranks that are not below the node.
    Outside,
    /// Only those of one child.
    Child(usize),
    /// Of several children: computed here.
    Here,
}

impl Program {
    /// The program of the node whose children have these ranks below them, in any order and any parts.
    ///
    /// # Errors
    /// When a rank is not in the expression or is below two children, when a child has none, or when there are more
    /// than 65,535 operands.
    pub fn for_node(expression: &Expression, children: &[Vec<u32>]) -> Result<Self, ProgramError> {
        let places = places(expression, children)?;
        let nodes = expression.nodes();
        let mut inputs = vec![Vec::new(); children.len()];
        let mut outputs = Vec::new();
        let whole = nodes.len() - 1;
        // A child's outputs are its largest places, those whose parent is not its own.
        let mut found = |at: usize, parent: Place| {
            if let Place::Child(child) = places[at]
                && parent != places[at]
            {
                inputs[child].push(at);
            }
            if places[at] != Place::Outside && parent == Place::Outside {
                outputs.push(at);
            }
        };
        for (at, node) in nodes.iter().enumerate() {
            if let Node::Combine(left, right) = *node {
                found(left as usize, places[at]);
                found(right as usize, places[at]);
            }
        }
        found(whole, Place::Outside);

        let mut operands = vec![0_u16; nodes.len()];
        let mut next = 0_usize;
        for input in &mut inputs {
            // Parents were visited in order, which is not that of their parts.
            input.sort_unstable();
            for &at in &*input {
                operands[at] = short("operands", next)?;
                next += 1;
            }
        }
        let mut steps = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if let (Node::Combine(left, right), Place::Here) = (*node, places[at]) {
                let (left, right) = (operands[left as usize], operands[right as usize]);
                // Every value is used once, so that the result may take the place of `inout`.
                operands[at] = right;
                steps.push(Step {
                    into: right,
                    left,
                    right,
                });
            }
        }
        outputs.sort_unstable();
        Ok(Self {
            inputs: inputs
                .iter()
                .map(|input| short("operands of a child", input.len()))
                .collect::<Result<_, _>>()?,
            steps,
            outputs: outputs.into_iter().map(|at| operands[at]).collect(),
        })
    }

    /// One operand of each child, combined one after the other into one: for rounds whose order does not matter.
    ///
    /// # Errors
    /// Without children, or with more than 65,535.
    pub fn fold(children: usize) -> Result<Self, ProgramError> {
        let count = short("children", children)?;
        if count == 0 {
            return Err(ProgramError::Idle { child: 0 });
        }
        let steps = (1..count).map(|right| Step {
            into: 0,
            left: 0,
            right,
        });
        Ok(Self {
            inputs: vec![1; children],
            steps: steps.collect(),
            outputs: vec![0],
        })
    }

    /// Operands that there must be room for: inputs, and those that only steps write.
    #[must_use]
    pub fn operands(&self) -> usize {
        let written = self.steps.iter().map(|step| usize::from(step.into) + 1);
        written
            .max()
            .unwrap_or(0)
            .max(self.first_operand(self.inputs.len()))
    }

    /// Number of the first operand of a child; of the number of children: operands of all.
    #[must_use]
    pub fn first_operand(&self, child: usize) -> usize {
        self.inputs[..child].iter().map(|&n| usize::from(n)).sum()
    }

    /// Makes sure that [`run`](Self::run) reads only what is there and stays inside what the node has room for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, limits: &Limits) -> Result<(), ProgramError> {
        let at_most = |what, found, limit| {
            if found > limit {
                return Err(ProgramError::TooMany { what, found, limit });
            }
            Ok(())
        };
        at_most("children", self.inputs.len(), limits.children)?;
        at_most("steps", self.steps.len(), limits.steps)?;
        at_most("outputs", self.outputs.len(), limits.outputs)?;
        at_most("operands", self.operands(), limits.operands)?;
        if let Some(child) = self.inputs.iter().position(|&operands| operands == 0) {
            return Err(ProgramError::Idle { child });
        }
        if self.inputs.is_empty() {
            return Err(ProgramError::Idle { child: 0 });
        }

        let mut there = vec![false; self.operands()];
        there[..self.first_operand(self.inputs.len())].fill(true);
        let is_there =
            |there: &[bool], operand: u16| there.get(usize::from(operand)) == Some(&true);
        for (number, step) in self.steps.iter().enumerate() {
            let missing = [step.left, step.right]
                .into_iter()
                .find(|&operand| !is_there(&there, operand))
                .or_else(|| (step.left == step.right).then_some(step.left));
            if let Some(operand) = missing {
                return Err(ProgramError::Step {
                    step: number,
                    operand,
                });
            }
            there[usize::from(step.into)] = true;
        }
        if self.outputs.is_empty() {
            return Err(ProgramError::Output {
                output: 0,
                operand: 0,
            });
        }
        for (output, &operand) in self.outputs.iter().enumerate() {
            if !is_there(&there, operand) {
                return Err(ProgramError::Output { output, operand });
            }
        }
        Ok(())
    }

    /// Runs the steps on operands that lie one after the other, `operand_bytes` each.
    ///
    /// # Errors
    /// When the operation is not defined on the type, or `operand_bytes` is no multiple of its size.
    ///
    /// # Panics
    /// Only when the program did not pass [`check`](Self::check), or `operands` is shorter than
    /// [`operands`](Self::operands) times `operand_bytes`.
    pub fn run(
        &self,
        operation: Operation,
        data_type: DataType,
        operands: &mut [u8],
        operand_bytes: usize,
    ) -> Result<(), ReduceError> {
        for step in &self.steps {
            let [into, left, right] = [step.into, step.left, step.right].map(|operand| {
                let start = usize::from(operand) * operand_bytes;
                start..start + operand_bytes
            });
            if step.into == step.right {
                let [left, right] = disjoint(operands, [left, right]);
                combine_into_right(operation, data_type, left, right)?;
            } else if step.into == step.left {
                let [left, right] = disjoint(operands, [left, right]);
                combine_into_left(operation, data_type, left, right)?;
            } else {
                let [into, left, right] = disjoint(operands, [into, left, right]);
                combine(operation, data_type, left, right, into)?;
            }
        }
        Ok(())
    }

    /// The outputs after [`run`](Self::run), in order.
    pub fn results<'a>(
        &'a self,
        operands: &'a [u8],
        operand_bytes: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.outputs.iter().map(move |&operand| {
            let start = usize::from(operand) * operand_bytes;
            &operands[start..start + operand_bytes]
        })
    }
}

fn disjoint<const N: usize>(
    operands: &mut [u8],
    ranges: [std::ops::Range<usize>; N],
) -> [&mut [u8]; N] {
    operands
        .get_disjoint_mut(ranges)
        .expect("the program was checked and the operands have room")
}

fn short(what: &'static str, found: usize) -> Result<u16, ProgramError> {
    let limit = usize::from(u16::MAX);
    u16::try_from(found).map_err(|_| ProgramError::TooMany { what, found, limit })
}

/// The place of every node of the expression.
fn places(expression: &Expression, children: &[Vec<u32>]) -> Result<Vec<Place>, ProgramError> {
    let size = expression.size();
    let mut of_rank = vec![Place::Outside; size as usize];
    for (child, ranks) in children.iter().enumerate() {
        if ranks.is_empty() {
            return Err(ProgramError::Idle { child });
        }
        for &rank in ranks {
            match of_rank.get_mut(rank as usize) {
                Some(place @ Place::Outside) => *place = Place::Child(child),
                _ => return Err(ProgramError::Rank { child, rank, size }),
            }
        }
    }
    if children.is_empty() {
        return Err(ProgramError::Idle { child: 0 });
    }
    let mut places: Vec<Place> = Vec::with_capacity(expression.nodes().len());
    for node in expression.nodes() {
        places.push(match *node {
            Node::Rank(rank) => of_rank[rank as usize],
            Node::Combine(left, right) => match (places[left as usize], places[right as usize]) {
                (Place::Outside, _) | (_, Place::Outside) => Place::Outside,
                (Place::Child(a), Place::Child(b)) if a == b => Place::Child(a),
                _ => Place::Here,
            },
        });
    }
    Ok(places)
}
