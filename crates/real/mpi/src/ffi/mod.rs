//! The border to the shims: what `shim/border.h` declares, and the shim that is attached.
//!
//! `border` is made from the header (`make generate`), with its names: `raddle_call` is [`RaddleCall`]. Every table of
//! functions is filled and read by the names of its fields, so no two of one type can be exchanged; and no shim builds whose
//! compiler sees a field elsewhere (`build/layout.rs`).

#[rustfmt::skip]
#[allow(
    dead_code,
    reason = "both sides have the codes; not all of them are named by both"
)]
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    unreachable_pub,
    missing_docs,
    reason = "made by bindgen"
)]
mod border;
pub(crate) mod guard;

use std::sync::OnceLock;

pub(crate) use border::*;

// SAFETY: a shim is static data that nobody changes after it was attached.
unsafe impl Sync for RaddleShim {}
// SAFETY: as above.
unsafe impl Send for RaddleShim {}

static SHIM: OnceLock<&'static RaddleShim> = OnceLock::new();

/// The shim, once it is attached.
pub(crate) fn shim() -> Option<&'static RaddleShim> {
    SHIM.get().copied()
}

/// Attaches a shim.
///
/// # Errors
/// One line, if one of its tables lacks a function.
pub(crate) fn attach(shim: &'static RaddleShim) -> Result<(), &'static str> {
    // SAFETY: the shim points to its static table of functions, or to nothing.
    let channel = unsafe { shim.channel.as_ref() };
    if !channel.is_some_and(is_whole) || !is_whole(&shim.plain) {
        return Err("the shim lacks a function");
    }
    // The same shim again changes nothing.
    let _ = SHIM.set(shim);
    Ok(())
}

/// Whether no pointer of a table, which has nothing but pointers to functions, is NULL.
fn is_whole<Table>(table: &Table) -> bool {
    let words = size_of::<Table>() / size_of::<usize>();
    let first = std::ptr::from_ref(table).cast::<usize>();
    // SAFETY: a table is an array of as many pointers; C may have left one out, which is read as a number.
    (0..words).all(|at| unsafe { first.add(at).read() } != 0)
}

#[cfg(test)]
mod tests {
    use raddle_trace::CollectiveKind;
    use raddle_wire::{DataType, Operation, native::Collective};

    use super::*;
    use crate::reason::Reason;

    #[test]
    fn codes_of_collectives_are_those_of_the_wire() {
        let all = [
            (Collective::Allreduce, RADDLE_ALLREDUCE),
            (Collective::Reduce, RADDLE_REDUCE),
            (Collective::Barrier, RADDLE_BARRIER),
            (Collective::Bcast, RADDLE_BCAST),
        ];
        assert_eq!(all.map(|(one, _)| one), Collective::ALL);
        for (one, code) in all {
            assert_eq!(u32::from(one.code()), code, "{one:?}");
        }
    }

    #[test]
    fn codes_of_operations_are_those_of_the_wire() {
        let all = [
            (Operation::Max, RADDLE_OP_MAX),
            (Operation::Min, RADDLE_OP_MIN),
            (Operation::Sum, RADDLE_OP_SUM),
            (Operation::Prod, RADDLE_OP_PROD),
            (Operation::LogicalAnd, RADDLE_OP_LAND),
            (Operation::BitAnd, RADDLE_OP_BAND),
            (Operation::LogicalOr, RADDLE_OP_LOR),
            (Operation::BitOr, RADDLE_OP_BOR),
            (Operation::LogicalXor, RADDLE_OP_LXOR),
            (Operation::BitXor, RADDLE_OP_BXOR),
            (Operation::MaxLoc, RADDLE_OP_MAXLOC),
            (Operation::MinLoc, RADDLE_OP_MINLOC),
        ];
        assert_eq!(all.map(|(one, _)| one), Operation::ALL);
        for (one, code) in all {
            assert_eq!(u32::from(one.code()), code, "{one:?}");
        }
        assert_eq!(Operation::from_code(RADDLE_OP_NONE as u8), None);
    }

    #[test]
    fn codes_of_types_are_those_of_the_wire() {
        let all = [
            (DataType::Int8, RADDLE_DATA_INT8),
            (DataType::Uint8, RADDLE_DATA_UINT8),
            (DataType::Int16, RADDLE_DATA_INT16),
            (DataType::Uint16, RADDLE_DATA_UINT16),
            (DataType::Int32, RADDLE_DATA_INT32),
            (DataType::Uint32, RADDLE_DATA_UINT32),
            (DataType::Int64, RADDLE_DATA_INT64),
            (DataType::Uint64, RADDLE_DATA_UINT64),
            (DataType::Float, RADDLE_DATA_FLOAT),
            (DataType::Double, RADDLE_DATA_DOUBLE),
            (DataType::Int16Index, RADDLE_DATA_INT16_INDEX),
            (DataType::Int32Index, RADDLE_DATA_INT32_INDEX),
            (DataType::Int64Index, RADDLE_DATA_INT64_INDEX),
            (DataType::FloatIndex, RADDLE_DATA_FLOAT_INDEX),
            (DataType::DoubleIndex, RADDLE_DATA_DOUBLE_INDEX),
        ];
        assert_eq!(all.map(|(one, _)| one), DataType::ALL);
        for (one, code) in all {
            assert_eq!(u32::from(one.code()), code, "{one:?}");
        }
        assert_eq!(DataType::from_code(RADDLE_DATA_NONE as u8), None);
    }

    #[test]
    fn codes_of_recorded_collectives_are_those_of_traces() {
        let all = [
            (CollectiveKind::Barrier, RADDLE_KIND_BARRIER),
            (CollectiveKind::Bcast, RADDLE_KIND_BCAST),
            (CollectiveKind::Reduce, RADDLE_KIND_REDUCE),
            (CollectiveKind::Allreduce, RADDLE_KIND_ALLREDUCE),
            (CollectiveKind::Gather, RADDLE_KIND_GATHER),
            (CollectiveKind::Allgather, RADDLE_KIND_ALLGATHER),
            (CollectiveKind::Scatter, RADDLE_KIND_SCATTER),
            (CollectiveKind::ReduceScatter, RADDLE_KIND_REDUCE_SCATTER),
            (CollectiveKind::Alltoall, RADDLE_KIND_ALLTOALL),
            (CollectiveKind::Scan, RADDLE_KIND_SCAN),
            (CollectiveKind::Exscan, RADDLE_KIND_EXSCAN),
        ];
        assert_eq!(all.map(|(one, _)| one), CollectiveKind::ALL);
        assert!((0..).zip(all).all(|(number, (_, code))| code == number));
    }

    #[test]
    fn codes_of_reasons_are_the_first_of_all_reasons() {
        let all = [
            (Reason::Eligible, RADDLE_ELIGIBLE),
            (Reason::NoElements, RADDLE_NO_ELEMENTS),
            (Reason::Arguments, RADDLE_ARGUMENTS),
            (Reason::Type, RADDLE_TYPE),
            (Reason::Operation, RADDLE_OPERATION),
        ];
        assert!(all.iter().all(|(one, code)| *one as u32 == *code));
    }

    #[test]
    fn a_table_that_lacks_a_function_is_noticed() {
        assert!(is_whole(&[7_usize, 8]));
        assert!(!is_whole(&[7_usize, 0]));
    }
}
