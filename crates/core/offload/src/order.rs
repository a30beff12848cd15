//! Which tree of operations an MPI library makes, so that ours gives the same bits.
//!
//! ```
//! use raddle_offload::{order::{Call, HostMpi, Order, Placement, Plan}, reduce::Comparison};
//! use raddle_wire::{DataType, Operation, native::Collective};
//! let call = Call {
//!     collective: Collective::Allreduce,
//!     operation: Operation::Sum,
//!     data_type: DataType::Double,
//!     count: 1,
//!     size: 3,
//!     root: 0,
//!     placement: Placement::OnePerNode,
//!     comparison: Comparison::Same,
//! };
//! // Open MPI adds ranks 0 and 1 first, then rank 2.
//! let Plan::Tree(tree) = Order::Host(HostMpi::OpenMpi41).plan(&call) else { panic!() };
//! let values = [1e16_f64, 1.0, -1e16].map(f64::to_be_bytes);
//! let sum = tree.evaluate(call.operation, call.data_type, &values).unwrap();
//! assert_eq!(sum, 0_f64.to_be_bytes());
//! ```

mod expression;
mod mpich;
mod open_mpi;
mod shape;

pub(crate) use shape::{doubling, nested_doubling};

use raddle_wire::{DataType, Operation, native::Collective};

pub use expression::{Expression, ExpressionError, Node};

use crate::reduce::{Comparison, order_matters};

/// In which order operands are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// As this MPI library does with its default settings: the same bits as the plain call.
    Host(HostMpi),
    /// A left fold over the ranks: the same bits on every machine and for every tree of switches.
    Rank,
    /// Whatever is fastest: each node folds what it has. Sums of floats may differ with the placement of ranks.
    Arrival,
}

/// An MPI library whose orders are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostMpi {
    /// Open MPI 4.1 with `coll/tuned` and its fixed decisions.
    OpenMpi41,
    /// MPICH 4.0 with ch4.
    Mpich40,
}

/// A collective call, as far as the order of operations depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The collective; [`plan`](Order::plan) is asked for those that reduce.
    pub collective: Collective,
    /// The operation.
    pub operation: Operation,
    /// The element type.
    pub data_type: DataType,
    /// Elements of each rank.
    pub count: usize,
    /// Ranks of the communicator.
    pub size: u32,
    /// Root of a Reduce.
    pub root: u32,
    /// How the ranks lie on nodes.
    pub placement: Placement,
    /// How the library's arithmetic compares with ours: see [`Probe`](crate::reduce::Probe). It counts for
    /// [`Order::Host`] only.
    pub comparison: Comparison,
}

/// How the ranks of a communicator lie on nodes (machines, as the MPI library tells them apart by host name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// All on one node.
    OneNode,
    /// Each on a node of its own.
    OnePerNode,
    /// Several nodes, some with more than one rank. MPICH then reduces inside the nodes first.
    Shared,
}

/// How a call can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// No order changes a bit, or nobody minds: each node folds what it has.
    Any,
    /// By this tree.
    Tree(Expression),
    /// By the plain call only.
    Plain(Unknown),
}

/// Why there is no tree that gives the bits of the plain call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// The library's arithmetic differs from ours for this operation, type and count.
    Arithmetic,
    /// The library combines different elements in different orders, or on different ranks in different orders.
    Mixed,
    /// It is not known what the library does, or this is no reduction.
    Algorithm,
}

impl Unknown {
    /// A word for counters and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Mixed => "mixed-order",
            Self::Algorithm => "unknown-order",
        }
    }
}

/// What an algorithm does to all elements alike.
enum Shape {
    /// This tree, left and right as given, on every rank that has the result.
    Exact(Expression),
    /// This tree; left and right depend on the element or the rank.
    UpToSides(Expression),
    /// No tree, or none that is known.
    None(Unknown),
}

impl Order {
    /// How this order does a call. All ranks come to the same answer if they give the same call; the comparison can differ
    /// between processors of different kinds.
    #[must_use]
    pub fn plan(self, call: &Call) -> Plan {
        if !matches!(call.collective, Collective::Allreduce | Collective::Reduce)
            || !call.operation.accepts(call.data_type)
            || call.size == 0
            || call.root >= call.size
        {
            return Plan::Plain(Unknown::Algorithm);
        }
        let host = match self {
            Self::Arrival => return Plan::Any,
            Self::Rank => {
                return match Expression::in_rank_order(call.size) {
                    Some(tree) if order_matters(call.operation, call.data_type) => Plan::Tree(tree),
                    _ => Plan::Any,
                };
            }
            Self::Host(host) => host,
        };
        if call.comparison == Comparison::Other {
            return Plan::Plain(Unknown::Arithmetic);
        }
        if !order_matters(call.operation, call.data_type) {
            return Plan::Any;
        }
        let shape = match host {
            HostMpi::OpenMpi41 => open_mpi::shape(call),
            HostMpi::Mpich40 => mpich::shape(call),
        };
        // Which side an operand is on shows in MIN, MAX, MINLOC and MAXLOC alone (zeros and NaN). Of the payloads of NaN
        // in sums and products nothing is promised.
        let sides_matter = !matches!(call.operation, Operation::Sum | Operation::Prod);
        let tree = match shape {
            Shape::UpToSides(_) if sides_matter && call.size > 1 => {
                return Plan::Plain(Unknown::Mixed);
            }
            Shape::Exact(tree) | Shape::UpToSides(tree) => tree,
            Shape::None(why) => return Plan::Plain(why),
        };
        match call.comparison {
            Comparison::Mirrored => Plan::Tree(tree.mirrored()),
            Comparison::Same | Comparison::Other => Plan::Tree(tree),
        }
    }
}

impl Call {
    /// Bytes of a rank's elements as MPI counts them: pairs without gap.
    const fn bytes(&self) -> usize {
        self.count.saturating_mul(self.data_type.size())
    }

    /// The greatest power of two that is not above the number of ranks.
    const fn power(&self) -> u32 {
        1 << self.size.ilog2()
    }
}
