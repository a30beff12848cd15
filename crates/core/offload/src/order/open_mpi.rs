//! Open MPI 4.1: `coll/tuned` with its fixed decisions for commutative operations, and the algorithms of `coll/base`.
//!
//! Learnt from its sources and held to its results: `tests/mpi/test_order.py`.

use raddle_wire::native::Collective;

use super::{
    Call, Shape, Unknown,
    expression::Expression,
    shape::{binomial, doubling, down, linear},
};

pub(super) fn shape(call: &Call) -> Shape {
    let exact = |tree: Option<Expression>| match tree {
        Some(tree) => Shape::Exact(tree),
        None => Shape::None(Unknown::Algorithm),
    };
    let sides = |tree: Option<Expression>| match tree {
        Some(tree) => Shape::UpToSides(tree),
        None => Shape::None(Unknown::Algorithm),
    };
    if call.size == 1 {
        return exact(linear(1));
    }
    match call.collective {
        Collective::Allreduce => match allreduce(call) {
            Allreduce::Doubling => exact(doubling(call.size)),
            // Blocks of elements go round: with two ranks there is only one sum.
            Allreduce::Ring if call.size == 2 => sides(doubling(2)),
            Allreduce::Ring => Shape::None(Unknown::Mixed),
            Allreduce::Halving if call.count < call.power() as usize => exact(linear(call.size)),
            Allreduce::Halving => sides(doubling(call.size)),
            Allreduce::Other => Shape::None(Unknown::Algorithm),
        },
        // At a root that reduces in place, left and right change places; only the root knows.
        Collective::Reduce => match reduce(call) {
            Reduce::Linear => exact(linear(call.size)),
            Reduce::Halving if call.count < call.power() as usize => exact(linear(call.size)),
            Reduce::Halving | Reduce::Other => Shape::None(Unknown::Algorithm),
            Reduce::Chain => sides(down(call.size, call.root, true, |rank| {
                (rank + 1 < call.size)
                    .then_some(rank + 1)
                    .into_iter()
                    .collect()
            })),
            Reduce::Binary => sides(down(call.size, call.root, true, |rank| {
                binary(call.size, rank)
            })),
            Reduce::Binomial => sides(down(call.size, call.root, true, |rank| {
                binomial(call.size, rank)
            })),
        },
        Collective::Barrier | Collective::Bcast => Shape::None(Unknown::Algorithm),
    }
}

/// Algorithms of Allreduce.
enum Allreduce {
    Doubling,
    Ring,
    Halving,
    Other,
}

/// Algorithms of Reduce.
enum Reduce {
    Linear,
    /// Also "pipeline": one segment, one child.
    Chain,
    Binary,
    Binomial,
    Halving,
    Other,
}

/// The fixed decision for commutative operations.
fn allreduce(call: &Call) -> Allreduce {
    let bytes = call.bytes();
    let ring = || {
        if call.count < call.size as usize {
            Allreduce::Doubling
        } else {
            Allreduce::Ring
        }
    };
    match call.size {
        0..4 => match bytes {
            0..8 | 4096..8192 | 16384..262_144 => ring(),
            8..4096 | 8192..16384 => Allreduce::Doubling,
            _ => Allreduce::Halving,
        },
        4..8 => match bytes {
            0..16 => ring(),
            16..8192 => Allreduce::Doubling,
            _ => Allreduce::Halving,
        },
        8..16 => match bytes {
            0..8192 => Allreduce::Doubling,
            _ => Allreduce::Halving,
        },
        16..32 => match bytes {
            0..64 => ring(),
            64..4096 => Allreduce::Doubling,
            _ => Allreduce::Halving,
        },
        32..64 => match bytes {
            0..128 => ring(),
            _ => Allreduce::Halving,
        },
        64..128 => match bytes {
            0..262_144 => Allreduce::Doubling,
            _ => Allreduce::Halving,
        },
        // Reduce and Bcast, and others that no test of ours has seen.
        _ => Allreduce::Other,
    }
}

/// The fixed decision for commutative operations.
fn reduce(call: &Call) -> Reduce {
    let bytes = call.bytes();
    match call.size {
        0..4 => match bytes {
            0..8 => Reduce::Halving,
            8..16 => Reduce::Binary,
            16..32 | 262_144.. => Reduce::Chain,
            _ => Reduce::Linear,
        },
        4..8 => match bytes {
            0..4096 => Reduce::Binary,
            4096..65536 => Reduce::Chain,
            262_144..524_288 | 1_048_576.. => Reduce::Linear,
            _ => Reduce::Binomial,
        },
        8..16 if bytes < 8192 => Reduce::Binary,
        16..32 if bytes < 4096 => Reduce::Binary,
        8..256 => Reduce::Binomial,
        // Partly an in-order binary tree, which no test of ours has seen.
        _ => Reduce::Other,
    }
}

/// Children in Open MPI's binary tree: level `n` has the ranks from `2^n - 1` on, and children are `2^n` and
/// `2 * 2^n` further.
fn binary(size: u32, rank: u32) -> Vec<u32> {
    let step = 1_u64 << (u64::from(rank) + 1).ilog2();
    [1, 2]
        .into_iter()
        .map(|number| u64::from(rank) + number * step)
        .filter(|&child| child < u64::from(size))
        .filter_map(|child| u32::try_from(child).ok())
        .collect()
}
