//! A tree of operations over the ranks of a communicator.

use raddle_wire::{DataType, Operation};
use thiserror::Error;

use crate::reduce::{ReduceError, combine_into_right};

/// A place in an [`Expression`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// The operand of a rank.
    Rank(u32),
    /// `left op right`: two nodes by their number.
    Combine(u32, u32),
}

/// A binary tree over the ranks 0 to `size - 1`, each once: which operands are combined with which, and which of them is
/// the left one (MPI's `in`) and which the right one (`inout`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Operands before what uses them; the last one is the whole.
    nodes: Vec<Node>,
    size: u32,
}

/// Why nodes are no [`Expression`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// There is nothing.
    #[error("an expression needs at least one rank")]
    Empty,
    /// A node uses one that does not stand before it.
    #[error("node {node} uses node {used}, which does not come before it")]
    Forward {
        /// The node.
        node: usize,
        /// The number that it names.
        used: u32,
    },
    /// A node is used twice, or not at all.
    #[error("node {node} is used {times} times instead of once")]
    Uses {
        /// The node.
        node: usize,
        /// How often it is used.
        times: u8,
    },
    /// A rank is missing, listed twice or out of range.
    #[error("rank {rank} is not below {size}, or is listed twice")]
    Rank {
        /// The rank.
        rank: u32,
        /// Ranks in the tree.
        size: usize,
    },
}

impl Expression {
    /// The expression whose last node is the whole.
    ///
    /// # Errors
    /// Unless the nodes are a tree with every rank from 0 on once.
    pub fn new(nodes: Vec<Node>) -> Result<Self, ExpressionError> {
        let mut used = vec![0_u8; nodes.len()];
        let size = nodes.len().div_ceil(2);
        let mut seen = vec![false; size];
        for (at, node) in nodes.iter().enumerate() {
            match *node {
                Node::Combine(left, right) => {
                    for child in [left, right] {
                        if child as usize >= at {
                            return Err(ExpressionError::Forward {
                                node: at,
                                used: child,
                            });
                        }
                        let uses = &mut used[child as usize];
                        *uses = uses.saturating_add(1);
                    }
                }
                Node::Rank(rank) => match seen.get_mut(rank as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(ExpressionError::Rank { rank, size }),
                },
            }
        }
        let (whole, parts) = used.split_last().ok_or(ExpressionError::Empty)?;
        debug_assert_eq!(*whole, 0, "nothing stands behind it");
        if let Some(node) = parts.iter().position(|&times| times != 1) {
            let times = parts[node];
            return Err(ExpressionError::Uses { node, times });
        }
        // A binary tree of 2n - 1 nodes has n leaves: all ranks were seen.
        let size = u32::try_from(size).map_err(|_| ExpressionError::Rank {
            rank: u32::MAX,
            size,
        })?;
        Ok(Self { nodes, size })
    }

    /// `((0 op 1) op 2) op ...`: the order of the ranks. `None` for no ranks.
    #[must_use]
    pub fn in_rank_order(size: u32) -> Option<Self> {
        let mut tree = Builder::default();
        let mut whole = (size > 0).then(|| tree.rank(0))?;
        for rank in 1..size {
            let next = tree.rank(rank);
            whole = tree.combine(whole, next);
        }
        tree.finish()
    }

    /// The nodes: operands before what uses them; the last one is the whole.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of ranks.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The same tree with left and right exchanged everywhere.
    #[must_use]
    pub fn mirrored(mut self) -> Self {
        for node in &mut self.nodes {
            if let Node::Combine(left, right) = node {
                std::mem::swap(left, right);
            }
        }
        self
    }

    /// Whether both combine the same ranks with the same others: the same bits where an operation commutes. With `sides`,
    /// left and right must be the same, too.
    #[must_use]
    pub fn combines_as(&self, other: &Self, sides: bool) -> bool {
        let (mine, theirs) = (self.least_ranks(), other.least_ranks());
        let in_order = |least: &[u32], left: u32, right: u32| {
            if sides || least[left as usize] < least[right as usize] {
                (left, right)
            } else {
                (right, left)
            }
        };
        let mut left = vec![(self.nodes.len() - 1, other.nodes.len() - 1)];
        while let Some((one, another)) = left.pop() {
            match (self.nodes[one], other.nodes[another]) {
                (Node::Rank(one), Node::Rank(another)) if one == another => {}
                (Node::Combine(a, b), Node::Combine(c, d)) => {
                    let (a, b) = in_order(&mine, a, b);
                    let (c, d) = in_order(&theirs, c, d);
                    left.push((a as usize, c as usize));
                    left.push((b as usize, d as usize));
                }
                _ => return false,
            }
        }
        true
    }

    /// By node: the least rank in it.
    fn least_ranks(&self) -> Vec<u32> {
        let mut least: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            least.push(match *node {
                Node::Rank(rank) => rank,
                Node::Combine(left, right) => least[left as usize].min(least[right as usize]),
            });
        }
        least
    }

    /// Computes it: `operands[rank]` are the elements of a rank in wire order, all equally many.
    ///
    /// # Errors
    /// When the operation is not defined on the type or lengths differ.
    ///
    /// # Panics
    /// When there are fewer operands than ranks.
    pub fn evaluate<T: AsRef<[u8]>>(
        &self,
        operation: Operation,
        data_type: DataType,
        operands: &[T],
    ) -> Result<Vec<u8>, ReduceError> {
        let mut values: Vec<Vec<u8>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match *node {
                Node::Rank(rank) => operands[rank as usize].as_ref().to_vec(),
                Node::Combine(left, right) => {
                    // Each value is used once.
                    let left = std::mem::take(&mut values[left as usize]);
                    let mut right = std::mem::take(&mut values[right as usize]);
                    combine_into_right(operation, data_type, &left, &mut right)?;
                    right
                }
            };
            values.push(value);
        }
        Ok(values.pop().unwrap_or_default())
    }
}

/// Grows an expression from its leaves.
#[derive(Debug, Default)]
pub(super) struct Builder {
    nodes: Vec<Node>,
}

impl Builder {
    pub(super) fn rank(&mut self, rank: u32) -> u32 {
        self.push(Node::Rank(rank))
    }

    pub(super) fn combine(&mut self, left: u32, right: u32) -> u32 {
        self.push(Node::Combine(left, right))
    }

    fn push(&mut self, node: Node) -> u32 {
        let number = self.nodes.len();
        self.nodes.push(node);
        // Saturated numbers are refused by `Expression::new`: the node names itself or one twice.
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    pub(super) fn finish(self) -> Option<Expression> {
        Expression::new(self.nodes).ok()
    }
}
