//! C's layout of values and the wire's: most significant byte first, pairs without a gap.

use raddle_wire::DataType;

/// Where the parts of a pair are in C's structure, which may have a gap.
struct Pair {
    value: usize,
    index_at: usize,
    stride: usize,
}

/// `None`: a number, which C lays out as the wire does but for the order of bytes.
const fn pair(data_type: DataType) -> Option<Pair> {
    let (value, index_at, stride) = match data_type {
        DataType::Int16Index => (2, 4, 8),
        DataType::Int32Index | DataType::FloatIndex => (4, 4, 8),
        DataType::Int64Index | DataType::DoubleIndex => (8, 8, 16),
        _ => return None,
    };
    Some(Pair {
        value,
        index_at,
        stride,
    })
}

const INDEX: usize = 4;

/// Bytes from one element to the next in a C array.
pub(crate) const fn stride(data_type: DataType) -> usize {
    match pair(data_type) {
        Some(pair) => pair.stride,
        None => data_type.size(),
    }
}

/// Writes the elements of the C array `native` to `wire`, which has room for as many.
pub(crate) fn to_wire(data_type: DataType, native: &[u8], wire: &mut [u8]) {
    let Some(pair) = pair(data_type) else {
        return swap(data_type.size(), native, wire);
    };
    let size = data_type.size();
    for (from, to) in native
        .chunks_exact(pair.stride)
        .zip(wire.chunks_exact_mut(size))
    {
        reversed(&from[..pair.value], &mut to[..pair.value]);
        reversed(
            &from[pair.index_at..pair.index_at + INDEX],
            &mut to[pair.value..],
        );
    }
}

/// Writes the elements of `wire` to the C array `native`, which has as many. Gaps keep what they hold.
pub(crate) fn from_wire(data_type: DataType, wire: &[u8], native: &mut [u8]) {
    let Some(pair) = pair(data_type) else {
        return swap(data_type.size(), wire, native);
    };
    let size = data_type.size();
    for (from, to) in wire
        .chunks_exact(size)
        .zip(native.chunks_exact_mut(pair.stride))
    {
        reversed(&from[..pair.value], &mut to[..pair.value]);
        reversed(
            &from[pair.value..],
            &mut to[pair.index_at..pair.index_at + INDEX],
        );
    }
}

#[cfg(target_endian = "little")]
fn reversed(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.iter().rev().zip(to) {
        *to = *from;
    }
}

#[cfg(target_endian = "little")]
fn swap(size: usize, from: &[u8], to: &mut [u8]) {
    fn each<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
        let pairs = from
            .as_chunks::<SIZE>()
            .0
            .iter()
            .zip(to.as_chunks_mut::<SIZE>().0);
        for (from, to) in pairs {
            *to = *from;
            to.reverse();
        }
    }
    match size {
        8 => each::<8>(from, to),
        4 => each::<4>(from, to),
        2 => each::<2>(from, to),
        _ => {
            let common = from.len().min(to.len());
            to[..common].copy_from_slice(&from[..common]);
        }
    }
}

#[cfg(not(target_endian = "little"))]
compile_error!("the layouts of big-endian machines are not written");

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct DoubleInt {
        value: f64,
        index: i32,
    }

    #[repr(C)]
    struct ShortInt {
        value: i16,
        index: i32,
    }

    #[repr(C)]
    struct FloatInt {
        value: f32,
        index: i32,
    }

    /// The expected bytes are the definition: value, then index, each with its most significant byte first.
    #[test]
    fn pairs_lose_their_gaps_on_the_wire() {
        assert_eq!(size_of::<DoubleInt>(), stride(DataType::DoubleIndex));
        assert_eq!(size_of::<ShortInt>(), stride(DataType::Int16Index));
        assert_eq!(size_of::<FloatInt>(), stride(DataType::FloatIndex));
        assert_eq!(std::mem::offset_of!(ShortInt, index), 4);
        let mut native = [0xee_u8; 32];
        for (at, (value, index)) in [(0, (1.5_f64, 7_i32)), (16, (-0.25, -2))] {
            native[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            native[at + 8..at + 12].copy_from_slice(&index.to_ne_bytes());
        }
        let mut wire = [0; 24];
        to_wire(DataType::DoubleIndex, &native, &mut wire);
        let mut expected = 1.5_f64.to_be_bytes().to_vec();
        expected.extend(7_i32.to_be_bytes());
        expected.extend((-0.25_f64).to_be_bytes());
        expected.extend((-2_i32).to_be_bytes());
        assert_eq!(wire.to_vec(), expected);
        let mut back = [0xee; 32];
        from_wire(DataType::DoubleIndex, &wire, &mut back);
        assert_eq!(back, native);
    }

    #[test]
    fn numbers_turn_round() {
        for data_type in DataType::ALL {
            let native: Vec<u8> = (0..).take(3 * stride(data_type)).collect();
            let mut wire = vec![0; 3 * data_type.size()];
            to_wire(data_type, &native, &mut wire);
            let mut back = native.clone();
            from_wire(data_type, &wire, &mut back);
            assert_eq!(back, native, "{data_type:?}");
        }
        let mut wire = [0; 8];
        to_wire(
            DataType::Int32,
            &[1_i32.to_ne_bytes(), (-2_i32).to_ne_bytes()].concat(),
            &mut wire,
        );
        assert_eq!(wire, [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]);
    }
}
