//! Which tree of additions this MPI library makes here. What is known of its algorithms says it; the library itself is
//! asked whether that is true: by one plain call on values that show the order, whose bits every rank can compute. So a
//! forced algorithm, another decision file or another placement of ranks is noticed, and the call stays plain.

use raddle_offload::{
    order::{Call, Expression, HostMpi, Order, Plan, Unknown},
    reduce::{Comparison, Probe},
};
use raddle_wire::{DataType, Operation, native::Collective};

use super::{layout, reason::Reason};
use crate::{
    library::{Library, Mpi, PlainFailed},
    settings::{self, fold},
};

/// The order to follow. `None`: that of an MPI library which is not known.
fn order<M: Mpi>(wanted: settings::Order) -> Option<Order> {
    match wanted {
        settings::Order::Rank => Some(Order::Rank),
        settings::Order::Arrival => Some(Order::Arrival),
        settings::Order::Host => match M::library()? {
            Library::OpenMpi([4, 1, _]) => Some(Order::Host(HostMpi::OpenMpi41)),
            Library::Mpich([4, 0, _]) => Some(Order::Host(HostMpi::Mpich40)),
            _ => None,
        },
    }
}

/// How a call with this operation and type (`handle` is MPI's) can be done here, or why it cannot. All ranks of the communicator call it, and come to
/// the same answer.
pub(crate) fn plan<M: Mpi>(
    plain: &M,
    wanted: settings::Order,
    rank: u32,
    handle: usize,
    mut call: Call,
) -> Result<Result<Plan, Reason>, PlainFailed> {
    let Some(order) = order::<M>(wanted) else {
        return Ok(Err(Reason::Order));
    };
    if !matches!(order, Order::Host(_)) {
        return Ok(judged(order.plan(&call)));
    }
    let mine = match comparison::<M>(&call, handle)? {
        Comparison::Same => 2,
        Comparison::Mirrored => 1,
        Comparison::Other => 0,
    };
    // Processors of different kinds may not have a common answer.
    let least = plain.least(mine)?;
    let greatest = -plain.least(-mine)?;
    call.comparison = match (least, greatest) {
        (2, 2) => Comparison::Same,
        (1, 1) => Comparison::Mirrored,
        _ => Comparison::Other,
    };
    let tree = match judged(order.plan(&call)) {
        Ok(Plan::Tree(tree)) => tree,
        other => return Ok(other),
    };
    let holds = holds(plain, rank, handle, &call, &tree)?;
    let all = plain.least(i32::from(holds))? == 1;
    Ok(if all {
        Ok(Plan::Tree(tree))
    } else {
        Err(Reason::Order)
    })
}

fn judged(plan: Plan) -> Result<Plan, Reason> {
    match plan {
        Plan::Plain(Unknown::Arithmetic) => Err(Reason::Arithmetic),
        Plan::Plain(_) => Err(Reason::Order),
        plan => Ok(plan),
    }
}

fn comparison<M: Mpi>(call: &Call, handle: usize) -> Result<Comparison, PlainFailed> {
    let Ok(mut probe) = Probe::new(call.operation, call.data_type, call.count) else {
        return Ok(Comparison::Other);
    };
    let bytes = call.count * layout::stride(call.data_type);
    let (mut left, mut right) = (vec![0; bytes], vec![0; bytes]);
    let mut answer = vec![0; call.count * call.data_type.size()];
    while let Some([into, inout]) = probe.question() {
        layout::from_wire(call.data_type, &into, &mut left);
        layout::from_wire(call.data_type, &inout, &mut right);
        M::reduce_local(call, handle, &left, &mut right)?;
        layout::to_wire(call.data_type, &right, &mut answer);
        probe.answer(&answer);
    }
    Ok(probe.comparison())
}

/// Whether the library's own call gives the bits of the tree.
fn holds<M: Mpi>(
    plain: &M,
    rank: u32,
    handle: usize,
    call: &Call,
    tree: &Expression,
) -> Result<bool, PlainFailed> {
    let values: Vec<_> = (0..call.size).map(|rank| revealing(call, rank)).collect();
    let mut mine = vec![0; call.count * layout::stride(call.data_type)];
    layout::from_wire(call.data_type, &values[rank as usize], &mut mine);
    let native = plain.reduce(call, handle, &mine)?;
    if call.collective == Collective::Reduce && rank != call.root {
        return Ok(true);
    }
    let mut found = vec![0; call.count * call.data_type.size()];
    layout::to_wire(call.data_type, &native, &mut found);
    Ok(tree
        .evaluate(call.operation, call.data_type, &values)
        .is_ok_and(|expected| expected == found))
}

/// Values of a rank, in wire order, whose combination depends on the order: full mantissas for sums and products; every
/// second element a zero of either sign where sides matter.
fn revealing(call: &Call, rank: u32) -> Vec<u8> {
    let mut wire = Vec::with_capacity(call.count * call.data_type.size());
    let additive = matches!(call.operation, Operation::Sum | Operation::Prod);
    for element in 0..call.count {
        let key = [u64::from(rank), element as u64].map(u64::to_be_bytes);
        let bits = mixed(fold(key.into_iter().flatten()));
        let sign = bits & 1 << 63;
        // Of 1/2 to 4: the mantissas overlap, so that every addition rounds.
        let exponent = 1022 + bits % 3;
        let value = if !additive && element % 2 == 0 {
            f64::from_bits(sign)
        } else {
            f64::from_bits(sign | exponent << 52 | mixed(bits) >> 12)
        };
        match call.data_type {
            DataType::Float | DataType::FloatIndex => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "rounding is as good a draw"
                )]
                wire.extend((value as f32).to_be_bytes());
            }
            _ => wire.extend(value.to_be_bytes()),
        }
        if matches!(call.data_type, DataType::FloatIndex | DataType::DoubleIndex) {
            wire.extend((rank % 3).to_be_bytes());
        }
    }
    wire
}

/// Spreads every bit over all others: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use raddle_offload::order::Placement;

    use super::*;

    fn call(operation: Operation, data_type: DataType, size: u32) -> Call {
        Call {
            collective: Collective::Allreduce,
            operation,
            data_type,
            count: 16,
            size,
            root: 0,
            placement: Placement::OnePerNode,
            comparison: Comparison::Same,
        }
    }

    /// Another tree over the same ranks must show, or the question to the library would be worth nothing.
    #[test]
    fn the_values_tell_trees_apart() {
        for data_type in [DataType::Float, DataType::Double] {
            for operation in [Operation::Sum, Operation::Prod] {
                for size in [4, 7, 16] {
                    let call = call(operation, data_type, size);
                    let values: Vec<_> = (0..size).map(|rank| revealing(&call, rank)).collect();
                    let known = Order::Host(HostMpi::OpenMpi41).plan(&call);
                    let Plan::Tree(tree) = known else {
                        panic!("{known:?}")
                    };
                    let other = Expression::in_rank_order(size).unwrap();
                    let bits =
                        |tree: &Expression| tree.evaluate(operation, data_type, &values).unwrap();
                    assert_ne!(
                        bits(&tree),
                        bits(&other),
                        "{operation:?} {data_type:?} of {size}"
                    );
                }
            }
        }
    }

    /// MAX of zeros of both signs shows which side an operand was on.
    #[test]
    fn the_values_tell_sides_apart() {
        let call = Call {
            count: 64,
            ..call(Operation::Max, DataType::Double, 2)
        };
        let values: Vec<_> = (0..2).map(|rank| revealing(&call, rank)).collect();
        let tree = Expression::in_rank_order(2).unwrap();
        let bits = |tree: &Expression| {
            tree.evaluate(call.operation, call.data_type, &values)
                .unwrap()
        };
        assert_ne!(bits(&tree), bits(&tree.clone().mirrored()));
    }
}
