//! Reductions against arithmetic that knows no widths, and against values that MPI libraries gave.

use proptest::prelude::*;
use raddle_offload::reduce::{
    Comparison, Probe, ReduceError, combine, combine_into_left, combine_into_right, order_matters,
};
use raddle_wire::{DataType, Operation};

fn whole(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes[0] >= 0x80;
    bytes
        .iter()
        .fold(if negative { -1 } else { 0 }, |value, &byte| {
            value << 8 | i128::from(byte)
        })
}

fn signed(data_type: DataType) -> bool {
    use DataType::{Int8, Int16, Int16Index, Int32, Int32Index, Int64, Int64Index};
    matches!(
        data_type,
        Int8 | Int16 | Int32 | Int64 | Int16Index | Int32Index | Int64Index
    )
}

/// One element of whole numbers by MPI's definition, in 128 bits.
fn expected(operation: Operation, data_type: DataType, left: &[u8], right: &[u8]) -> Vec<u8> {
    let size = left.len();
    let (a, b) = (
        whole(left, signed(data_type)),
        whole(right, signed(data_type)),
    );
    let result = match operation {
        Operation::Max => a.max(b),
        Operation::Min => a.min(b),
        Operation::Sum => a + b,
        Operation::Prod => a.wrapping_mul(b),
        Operation::LogicalAnd => i128::from(a != 0 && b != 0),
        Operation::LogicalOr => i128::from(a != 0 || b != 0),
        Operation::LogicalXor => i128::from((a != 0) != (b != 0)),
        Operation::BitAnd => a & b,
        Operation::BitOr => a | b,
        Operation::BitXor => a ^ b,
        Operation::MaxLoc | Operation::MinLoc => {
            let (value, index) = left.split_at(size - 4);
            let (other, other_index) = right.split_at(size - 4);
            let (a, b) = (whole(value, true), whole(other, true));
            let (i, j) = (whole(index, true), whole(other_index, true));
            let left_wins = if operation == Operation::MaxLoc {
                a > b
            } else {
                a < b
            };
            let index = match (a == b, left_wins) {
                (true, _) => i.min(j),
                (false, true) => i,
                (false, false) => j,
            };
            let value = if left_wins { value } else { other };
            return [value, &index.to_be_bytes()[12..]].concat();
        }
    };
    result.to_be_bytes()[16 - size..].to_vec()
}

/// Elements that are often equal, extreme or 0.
fn elements(data_type: DataType, count: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(0xff), Just(0x80), Just(1), any::<u8>()];
    prop::collection::vec(byte, data_type.size() * count)
}

proptest! {
    #[test]
    fn whole_numbers_are_exact(
        operation in prop::sample::select(Operation::ALL.to_vec()),
        (data_type, left, right) in prop::sample::select(DataType::ALL.to_vec())
            .prop_filter("whole", |data_type| !data_type.is_float())
            .prop_flat_map(|data_type| (Just(data_type), elements(data_type, 5), elements(data_type, 5))),
    ) {
        prop_assume!(operation.accepts(data_type));
        let size = data_type.size();
        let mut into = vec![0; left.len()];
        combine(operation, data_type, &left, &right, &mut into).unwrap();
        let parts = left.chunks(size).zip(right.chunks(size));
        let exact: Vec<u8> =
            parts.flat_map(|(a, b)| expected(operation, data_type, a, b)).collect();
        prop_assert_eq!(&into, &exact);
        // The order of operands shows in no bit.
        let mut other = left.clone();
        combine_into_right(operation, data_type, &right, &mut other).unwrap();
        prop_assert_eq!(&other, &exact);
    }

    #[test]
    fn floats_are_those_of_the_machine(left: [f64; 3], right: [f64; 3]) {
        let bytes = |values: [f64; 3]| values.map(f64::to_be_bytes).concat();
        for (operation, f) in [
            (Operation::Sum, (|a, b| a + b) as fn(f64, f64) -> f64),
            (Operation::Prod, |a, b| a * b),
            (Operation::Max, f64::max),
            (Operation::Min, f64::min),
        ] {
            let mut into = [0; 24];
            combine(operation, DataType::Double, &bytes(left), &bytes(right), &mut into).unwrap();
            for (at, part) in into.as_chunks::<8>().0.iter().enumerate() {
                let (ours, exact) = (f64::from_be_bytes(*part), f(left[at], right[at]));
                if left[at].is_nan() || right[at].is_nan() {
                    continue; // the table below
                }
                prop_assert!(ours == exact || ours.is_nan() && exact.is_nan());
            }
        }
    }

    #[test]
    fn all_three_forms_agree(
        operation in prop::sample::select(Operation::ALL.to_vec()),
        (data_type, left, right) in prop::sample::select(DataType::ALL.to_vec())
            .prop_flat_map(|data_type| (Just(data_type), elements(data_type, 3), elements(data_type, 3))),
    ) {
        prop_assume!(operation.accepts(data_type));
        let mut into = vec![0; left.len()];
        combine(operation, data_type, &left, &right, &mut into).unwrap();
        let (mut at_left, mut at_right) = (left.clone(), right.clone());
        combine_into_left(operation, data_type, &mut at_left, &right).unwrap();
        combine_into_right(operation, data_type, &left, &mut at_right).unwrap();
        prop_assert_eq!(&at_left, &into);
        prop_assert_eq!(&at_right, &into);
    }
}

/// What `MPI_Reduce_local` of Open MPI 4.1.4 (x86-64, AVX2) gave for `in`, `inout`.
#[test]
fn zeros_and_nan_as_open_mpi_has_them() {
    const NAN_1: u64 = 0x7ff8_0000_0000_0001;
    const NAN_2: u64 = 0xfff8_0000_0000_0002;
    const MINUS_0: u64 = 1 << 63;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const INFINITE: u64 = 0x7ff0_0000_0000_0000;
    for (operation, left, right, result) in [
        (Operation::Max, MINUS_0, 0, 0),
        (Operation::Max, 0, MINUS_0, MINUS_0),
        (Operation::Max, NAN_2, 0, 0),
        (Operation::Max, ONE, NAN_1, NAN_1),
        (Operation::Max, NAN_2, NAN_1, NAN_1),
        (Operation::Min, MINUS_0, 0, 0),
        (Operation::Min, NAN_1, ONE, ONE),
        (Operation::Min, ONE, NAN_1, NAN_1),
        (Operation::Sum, NAN_2, NAN_1, NAN_2),
        (Operation::Sum, ONE, NAN_1, NAN_1),
        (Operation::Sum, INFINITE, INFINITE | MINUS_0, 0xfff8 << 48),
        (Operation::Prod, 0, INFINITE, 0xfff8 << 48),
        (Operation::Prod, MINUS_0, ONE, MINUS_0),
    ] {
        let mut into = [0; 8];
        let (left, right) = (left.to_be_bytes(), right.to_be_bytes());
        combine(operation, DataType::Double, &left, &right, &mut into).unwrap();
        assert_eq!(
            into,
            u64::to_be_bytes(result),
            "{operation:?} {left:x?} {right:x?}"
        );
    }
}

#[test]
fn a_signalling_nan_comes_out_quiet() {
    let mut into = [0; 4];
    let left = 0x7f80_0001_u32.to_be_bytes();
    combine(Operation::Sum, DataType::Float, &left, &[0; 4], &mut into).unwrap();
    assert_eq!(u32::from_be_bytes(into), 0x7fc0_0001);
}

#[test]
fn wrong_operands_are_refused() {
    let mut into = [7; 8];
    let undefined = combine(
        Operation::BitAnd,
        DataType::Double,
        &[0; 8],
        &[0; 8],
        &mut into,
    );
    assert!(matches!(undefined, Err(ReduceError::Undefined { .. })));
    let error = combine(
        Operation::Sum,
        DataType::Double,
        &[0; 16],
        &[0; 8],
        &mut into,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "operands of 16 and 8 bytes and a result of 8 bytes are not equally many MPI_DOUBLE"
    );
    let cut = combine_into_right(Operation::Sum, DataType::Int64Index, &[0; 12], &mut [0; 12]);
    assert!(matches!(cut, Err(ReduceError::Undefined { .. })));
    let odd = combine_into_right(Operation::Sum, DataType::Int32, &[0; 6], &mut [0; 6]);
    assert!(matches!(odd, Err(ReduceError::Length { .. })));
    assert_eq!(into, [7; 8]);
}

#[test]
fn order_matters_for_floats_only() {
    for operation in Operation::ALL {
        for data_type in DataType::ALL {
            let float = operation.accepts(data_type) && data_type.is_float();
            assert_eq!(order_matters(operation, data_type), float);
        }
    }
}

/// Asks a library made up here, element by element.
fn comparison(
    operation: Operation,
    data_type: DataType,
    count: usize,
    reduce: impl Fn(usize, &[u8], &mut [u8]),
) -> Comparison {
    let size = data_type.size();
    let mut probe = Probe::new(operation, data_type, count).unwrap();
    while let Some([left, mut right]) = probe.question() {
        for (at, part) in right.chunks_mut(size).enumerate() {
            reduce(at, &left[at * size..][..size], part);
        }
        probe.answer(&right);
    }
    probe.comparison()
}

#[test]
fn a_library_like_ours_is_the_same() {
    for operation in Operation::ALL {
        for data_type in DataType::ALL.into_iter().filter(|&t| operation.accepts(t)) {
            let found = comparison(operation, data_type, 3, |_, left, right| {
                combine_into_right(operation, data_type, left, right).unwrap();
            });
            assert_eq!(found, Comparison::Same, "{operation:?} {data_type:?}");
        }
    }
}

#[test]
fn saturated_sums_are_other() {
    fn add(_: usize, left: &[u8], right: &mut [u8]) {
        right[0] = left[0]
            .cast_signed()
            .saturating_add(right[0].cast_signed())
            .cast_unsigned();
    }
    assert_eq!(
        comparison(Operation::Sum, DataType::Int8, 1, add),
        Comparison::Other
    );
    let add = |_: usize, left: &[u8], right: &mut [u8]| {
        let [a, b] = [left, &*right].map(|x| u16::from_be_bytes([x[0], x[1]]));
        right.copy_from_slice(&a.saturating_add(b).to_be_bytes());
    };
    assert_eq!(
        comparison(Operation::Sum, DataType::Uint16, 1, add),
        Comparison::Other
    );
}

#[test]
fn unsigned_numbers_compared_as_signed_are_other() {
    for data_type in [
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
    ] {
        let found = comparison(Operation::Max, data_type, 2, |_, left, right| {
            if whole(left, true) > whole(right, true) {
                right.copy_from_slice(left);
            }
        });
        assert_eq!(found, Comparison::Other, "{data_type:?}");
    }
}

#[test]
fn the_zero_that_max_keeps_is_seen_at_every_place() {
    let max = |kept_left: fn(usize) -> bool| {
        comparison(Operation::Max, DataType::Float, 9, |at, left, right| {
            let [a, b] = [left, &*right].map(|x| f32::from_be_bytes(x.try_into().unwrap()));
            if if kept_left(at) {
                b.partial_cmp(&a) != Some(std::cmp::Ordering::Greater)
            } else {
                a > b
            } {
                right.copy_from_slice(left);
            }
        })
    };
    assert_eq!(max(|_| false), Comparison::Same);
    assert_eq!(max(|_| true), Comparison::Mirrored);
    assert_eq!(max(|at| at == 8), Comparison::Other);
}
