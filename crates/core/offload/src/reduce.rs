//! One operation on two operands, element by element, on bytes in the order of the wire (big-endian).
//!
//! `left` is what MPI calls `in`, `right` what it calls `inout`: the result is `left op right` (MPI 4.1, 6.9.7). With
//! floats and equal or unordered values it matters which is which:
//!
//! | operation | result |
//! |---|---|
//! | SUM, PROD on whole numbers | modulo 2^bits |
//! | SUM, PROD on floats | rounded to nearest, ties to even. A NaN comes out quiet with its payload, the left one of two; an invalid operation (`inf - inf`, `0 * inf`) gives the NaN of x86: negative, no payload |
//! | MAX | `left > right ? left : right`, so of +0 and -0, or with a NaN, the right one |
//! | MIN | `left < right ? left : right`, likewise |
//! | LAND, LOR, LXOR | 1 or 0 |
//! | MAXLOC, MINLOC | the greater (less) value with its index; of equal values the right one with the lesser index; with a NaN the right one |
//!
//! MPI libraries agree with that on most operations and types, not on all: Open MPI 4.1 adds 8- and 16-bit numbers with
//! saturation where its vector unit does it, MPICH 4.0 compares unsigned numbers as signed ones, and which of two zeros MAX
//! keeps depends on the processor. [`Probe`] finds out.

use raddle_wire::{DataType, Operation};
use thiserror::Error;

/// Why two operands cannot be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReduceError {
    /// MPI has no such operation on this type.
    #[error("{} is not defined on {}", operation.name(), data_type.name())]
    Undefined {
        /// The operation.
        operation: Operation,
        /// The type.
        data_type: DataType,
    },
    /// The operands are not equally long, or not whole elements.
    #[error(
        "operands of {left} and {right} bytes and a result of {into} bytes are not equally many {}",
        data_type.name()
    )]
    Length {
        /// Bytes of the left operand.
        left: usize,
        /// Bytes of the right operand.
        right: usize,
        /// Bytes of the room for the result.
        into: usize,
        /// The type.
        data_type: DataType,
    },
}

/// Writes `left op right` to `into`, all of the same length.
///
/// # Errors
/// When MPI does not define the operation on the type, or lengths differ or are no multiple of the type's size;
/// `into` is unchanged then.
pub fn combine(
    operation: Operation,
    data_type: DataType,
    left: &[u8],
    right: &[u8],
    into: &mut [u8],
) -> Result<(), ReduceError> {
    check(operation, data_type, [left.len(), right.len(), into.len()])?;
    into.copy_from_slice(right);
    apply(operation, data_type, left, into, false);
    Ok(())
}

/// Makes `right` into `left op right`, as `MPI_Reduce_local` does.
///
/// # Errors
/// As [`combine`].
pub fn combine_into_right(
    operation: Operation,
    data_type: DataType,
    left: &[u8],
    right: &mut [u8],
) -> Result<(), ReduceError> {
    check(operation, data_type, [left.len(), right.len(), right.len()])?;
    apply(operation, data_type, left, right, false);
    Ok(())
}

/// Makes `left` into `left op right`.
///
/// # Errors
/// As [`combine`].
pub fn combine_into_left(
    operation: Operation,
    data_type: DataType,
    left: &mut [u8],
    right: &[u8],
) -> Result<(), ReduceError> {
    check(operation, data_type, [left.len(), right.len(), left.len()])?;
    apply(operation, data_type, right, left, true);
    Ok(())
}

/// Whether the tree of operations can change a bit of the result: for floats only. Their MIN and MAX too, because of
/// NaN and the two zeros.
#[must_use]
pub const fn order_matters(operation: Operation, data_type: DataType) -> bool {
    operation.accepts(data_type) && data_type.is_float()
}

fn check(
    operation: Operation,
    data_type: DataType,
    [left, right, into]: [usize; 3],
) -> Result<(), ReduceError> {
    if !operation.accepts(data_type) {
        return Err(ReduceError::Undefined {
            operation,
            data_type,
        });
    }
    if left != right || right != into || !left.is_multiple_of(data_type.size()) {
        return Err(ReduceError::Length {
            left,
            right,
            into,
            data_type,
        });
    }
    Ok(())
}

/// Combines into `kept`, which is the right operand, or the left one if `kept_is_left`. Checked before.
fn apply(
    operation: Operation,
    data_type: DataType,
    other: &[u8],
    kept: &mut [u8],
    kept_is_left: bool,
) {
    let run = match data_type {
        DataType::Int8 => whole_i8,
        DataType::Uint8 => whole_u8,
        DataType::Int16 => whole_i16,
        DataType::Uint16 => whole_u16,
        DataType::Int32 => whole_i32,
        DataType::Uint32 => whole_u32,
        DataType::Int64 => whole_i64,
        DataType::Uint64 => whole_u64,
        DataType::Float => float_f32,
        DataType::Double => float_f64,
        DataType::Int16Index => pair_i16,
        DataType::Int32Index => pair_i32,
        DataType::Int64Index => pair_i64,
        DataType::FloatIndex => pair_f32,
        DataType::DoubleIndex => pair_f64,
    };
    run(operation, other, kept, kept_is_left);
}

/// `f(left, right)` over elements of `N` bytes.
#[inline]
fn each<const N: usize>(
    other: &[u8],
    kept: &mut [u8],
    kept_is_left: bool,
    f: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (other, kept) = (other.as_chunks().0, kept.as_chunks_mut().0);
    if kept_is_left {
        for (right, left) in other.iter().zip(kept) {
            *left = f(*left, *right);
        }
    } else {
        for (left, right) in other.iter().zip(kept) {
            *right = f(*left, *right);
        }
    }
}

macro_rules! on_numbers {
    ($name:ident, $type:ty, { $($operation:ident => $f:expr,)+ }) => {
        fn $name(operation: Operation, other: &[u8], kept: &mut [u8], kept_is_left: bool) {
            match operation {
                $(Operation::$operation => each(other, kept, kept_is_left, |left, right| {
                    let f: fn($type, $type) -> $type = $f;
                    f(<$type>::from_be_bytes(left), <$type>::from_be_bytes(right)).to_be_bytes()
                }),)+
                _ => debug_assert!(false, "checked by the caller"),
            }
        }
    };
}

macro_rules! on_whole_numbers {
    ($($name:ident = $type:ty),+) => {$(
        on_numbers!($name, $type, {
            Max => |left, right| left.max(right),
            Min => |left, right| left.min(right),
            Sum => <$type>::wrapping_add,
            Prod => <$type>::wrapping_mul,
            LogicalAnd => |left, right| <$type>::from(left != 0 && right != 0),
            LogicalOr => |left, right| <$type>::from(left != 0 || right != 0),
            LogicalXor => |left, right| <$type>::from((left != 0) != (right != 0)),
            BitAnd => |left, right| left & right,
            BitOr => |left, right| left | right,
            BitXor => |left, right| left ^ right,
        });
    )+};
}
on_whole_numbers!(
    whole_i8 = i8,
    whole_u8 = u8,
    whole_i16 = i16,
    whole_u16 = u16,
    whole_i32 = i32,
    whole_u32 = u32,
    whole_i64 = i64,
    whole_u64 = u64
);

macro_rules! on_floats {
    ($($name:ident = $type:ty, $nan:ident, $quiet:expr, $invalid:expr);+) => {$(
        on_numbers!($name, $type, {
            Max => |left, right| if left > right { left } else { right },
            Min => |left, right| if left < right { left } else { right },
            Sum => |left, right| {
                let sum = left + right;
                if sum.is_nan() { $nan(left, right) } else { sum }
            },
            Prod => |left, right| {
                let product = left * right;
                if product.is_nan() { $nan(left, right) } else { product }
            },
        });

        /// The NaN that comes of two values. Spelled out because compilers may swap the operands of `+` and `*`.
        #[cold]
        fn $nan(left: $type, right: $type) -> $type {
            let bits = if left.is_nan() {
                left.to_bits() | $quiet
            } else if right.is_nan() {
                right.to_bits() | $quiet
            } else {
                $invalid
            };
            <$type>::from_bits(bits)
        }
    )+};
}
on_floats!(
    float_f32 = f32, nan_f32, 1 << 22, 0xffc0_0000;
    float_f64 = f64, nan_f64, 1 << 51, 0xfff8_0000_0000_0000
);

macro_rules! on_pairs {
    ($($name:ident = $type:ty, $size:literal),+) => {$(
        fn $name(operation: Operation, other: &[u8], kept: &mut [u8], kept_is_left: bool) {
            let greatest = operation == Operation::MaxLoc;
            each::<$size>(other, kept, kept_is_left, |left, right| {
                const VALUE: usize = size_of::<$type>();
                let value = |pair: &[u8; $size]| {
                    let mut bytes = [0; VALUE];
                    bytes.copy_from_slice(&pair[..VALUE]);
                    <$type>::from_be_bytes(bytes)
                };
                let (a, b) = (value(&left), value(&right));
                if if greatest { a > b } else { a < b } {
                    return left;
                }
                let mut result = right;
                if a == b {
                    let index = |pair: &[u8; $size]| {
                        let mut bytes = [0; 4];
                        bytes.copy_from_slice(&pair[VALUE..]);
                        i32::from_be_bytes(bytes)
                    };
                    let least = index(&left).min(index(&right));
                    result[VALUE..].copy_from_slice(&least.to_be_bytes());
                }
                result
            });
        }
    )+};
}
on_pairs!(
    pair_i16 = i16,
    6,
    pair_i32 = i32,
    8,
    pair_i64 = i64,
    12,
    pair_f32 = f32,
    8,
    pair_f64 = f64,
    12
);

/// How a library's `MPI_Reduce_local` compares with [`combine`] for an operation, type and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The same bits.
    Same,
    /// The same bits once left and right are exchanged.
    Mirrored,
    /// Other bits.
    Other,
}

/// Questions to a library's `MPI_Reduce_local` that tell its arithmetic from ours. What it does can depend on the
/// processor and on the number of elements (vectors, and what is left over), so that it is asked where it runs, once per
/// operation, type and count.
///
/// ```
/// use raddle_offload::reduce::{Comparison, Probe, combine};
/// use raddle_wire::{DataType, Operation};
/// let mut probe = Probe::new(Operation::Max, DataType::Double, 3).unwrap();
/// while let Some([left, mut right]) = probe.question() {
///     let inout = right.clone(); // here MPI_Reduce_local(left, right, ...) runs
///     combine(Operation::Max, DataType::Double, &left, &inout, &mut right).unwrap();
///     probe.answer(&right);
/// }
/// assert_eq!(probe.comparison(), Comparison::Same);
/// ```
#[derive(Debug, Clone)]
pub struct Probe {
    operation: Operation,
    data_type: DataType,
    count: usize,
    round: usize,
    same: bool,
    mirrored: bool,
}

impl Probe {
    /// A probe with `count` elements.
    ///
    /// # Errors
    /// When MPI does not define the operation on the type.
    pub fn new(
        operation: Operation,
        data_type: DataType,
        count: usize,
    ) -> Result<Self, ReduceError> {
        check(operation, data_type, [0; 3])?;
        Ok(Self {
            operation,
            data_type,
            count,
            round: 0,
            same: true,
            mirrored: true,
        })
    }

    /// The next operands, `in` and `inout`, in wire order; `None` when all was asked.
    #[must_use]
    pub fn question(&self) -> Option<[Vec<u8>; 2]> {
        let pair = probe_pair(self.operation, self.data_type, self.round)?;
        Some(pair.map(|element| element.repeat(self.count)))
    }

    /// What became of `inout`, in wire order.
    pub fn answer(&mut self, inout: &[u8]) {
        let Some([left, right]) = self.question() else {
            return;
        };
        let is = |left: &[u8], right: &[u8]| {
            let mut into = right.to_vec();
            combine_into_right(self.operation, self.data_type, left, &mut into).is_ok()
                && into == inout
        };
        let (same, mirrored) = (is(&left, &right), is(&right, &left));
        self.same &= same;
        self.mirrored &= mirrored;
        self.round += 1;
    }

    /// The verdict on all answers so far.
    #[must_use]
    pub const fn comparison(&self) -> Comparison {
        if self.same {
            Comparison::Same
        } else if self.mirrored {
            Comparison::Mirrored
        } else {
            Comparison::Other
        }
    }
}

/// The element pair of a round: overflow and signs of whole numbers; both zeros, NaN on either side and infinities of
/// floats. Two NaNs are not asked in sums and products: which one remains is promised by nobody.
fn probe_pair(operation: Operation, data_type: DataType, round: usize) -> Option<[Vec<u8>; 2]> {
    const DOUBLES: [[f64; 2]; 7] = [
        [0.0, -0.0],
        [-0.0, 0.0],
        [f64::NAN, 1.0],
        [1.0, f64::NAN],
        [1.5, 2.25],
        [-3.0, f64::INFINITY],
        [f64::MAX, f64::MAX],
    ];
    // All bits, the sign bit, all but the sign bit, small numbers.
    const WHOLE: [[u64; 2]; 6] = [
        [u64::MAX, 1],
        [1, u64::MAX],
        [1 << 63, 1 << 63],
        [u64::MAX >> 1, 1],
        [3, 5],
        [0, 2],
    ];
    const INDICES: [[i32; 2]; 2] = [[1, 2], [2, 1]];

    let indices = if data_type.is_pair() {
        INDICES.len()
    } else {
        1
    };
    let index = INDICES[round % indices];
    let round = round / indices;
    let value_size = if data_type.is_pair() {
        data_type.size() - 4
    } else {
        data_type.size()
    };
    let [left, right] = if data_type.is_float() {
        let &values = DOUBLES.get(round)?;
        let sum = matches!(operation, Operation::Sum | Operation::Prod);
        debug_assert!(!sum || !values.iter().all(|value| value.is_nan()));
        values.map(|value| match value_size {
            // A double's greatest number is infinite as a float.
            4 => (value as f32).to_be_bytes().to_vec(),
            _ => value.to_be_bytes().to_vec(),
        })
    } else {
        WHOLE.get(round)?.map(|bits| {
            let bytes = bits.to_be_bytes();
            // Small numbers are those, great ones are cut to the width at their lower end.
            let start = if bits < 8 { 8 - value_size } else { 0 };
            bytes[start..start + value_size].to_vec()
        })
    };
    let mut pair = [left, right];
    if data_type.is_pair() {
        for (element, index) in pair.iter_mut().zip(index) {
            element.extend(index.to_be_bytes());
        }
    }
    Some(pair)
}
