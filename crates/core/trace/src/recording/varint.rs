//! Integers in as few bytes as they need.

/// Appends `value`, 7 bits a byte, least first; all bytes but the last have their highest bit set. At most 10 bytes.
#[inline]
pub(super) fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2, 2 become 0 to 4.
#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

/// The inverse of [`zigzag`].
#[inline]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Why there is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VarintError {
    /// The bytes end first.
    Short,
    /// It has more than 64 bits.
    Long,
}

/// The number at the start of `bytes`, and how many bytes it has.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && byte > 1 {
            return Err(VarintError::Long);
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            return Ok((value, at + 1));
        }
    }
    Err(VarintError::Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_take_a_byte_per_seven_bits() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                push(&mut bytes, value);
                let bits = 64 - value.leading_zeros();
                assert_eq!(bytes.len() as u32, bits.div_ceil(7).max(1));
                assert_eq!(read(&bytes), Ok((value, bytes.len())));
                assert_eq!(read(&bytes[..bytes.len() - 1]), Err(VarintError::Short));
                let signed = value.cast_signed();
                assert_eq!(unzigzag(zigzag(signed)), signed);
                assert_eq!(
                    unzigzag(zigzag(signed.wrapping_neg())),
                    signed.wrapping_neg()
                );
            }
        }
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        assert_eq!(read(&[0xff; 10]), Err(VarintError::Long));
    }
}
