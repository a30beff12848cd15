//! MPICH 4.0.
//!
//! Learnt from its sources and held to its results: `tests/mpi/test_order.py`.

use raddle_wire::native::Collective;

use super::{
    Call, Placement, Shape, Unknown,
    shape::{binomial, doubling, down},
};

/// Above that, vectors are halved.
const SHORT_BYTES: usize = 2048;

pub(super) fn shape(call: &Call) -> Shape {
    if call.placement == Placement::Shared {
        return Shape::None(Unknown::Algorithm);
    }
    let tree = match call.collective {
        // Commutative operations take what arrives as the left operand, so that each rank has its own sides.
        Collective::Allreduce => doubling(call.size),
        Collective::Reduce if call.bytes() <= SHORT_BYTES || call.count < call.power() as usize => {
            down(call.size, call.root, false, |rank| {
                binomial(call.size, rank)
            })
        }
        Collective::Reduce => doubling(call.size),
        Collective::Barrier | Collective::Bcast => None,
    };
    tree.map_or(Shape::None(Unknown::Algorithm), Shape::UpToSides)
}
