//! What stands in messages whose every byte is checked.

/// The contents of the messages of a source port: each has a number, and others at the same places than those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contents {
    pub source_port: u16,
    /// Number of the message among those of its port, from 0.
    pub number: u64,
}

impl Contents {
    /// Eight bytes of a message, the `index`th (splitmix64, whose outputs are all different for different inputs).
    fn word(self, index: usize) -> [u8; 8] {
        let seed = u64::from(self.source_port) << 48 ^ self.number << 26;
        let mut word = (seed ^ index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31).to_le_bytes()
    }

    /// Writes them.
    pub(crate) fn fill(self, bytes: &mut [u8]) {
        for (index, piece) in bytes.chunks_mut(8).enumerate() {
            piece.copy_from_slice(&self.word(index)[..piece.len()]);
        }
    }

    /// The first byte, rounded down to a multiple of eight, that is another one.
    pub(crate) fn differs_at(self, bytes: &[u8]) -> Option<usize> {
        let mut pieces = bytes.chunks(8).enumerate();
        let wrong = pieces.find(|(index, piece)| **piece != self.word(*index)[..piece.len()]);
        wrong.map(|(index, _)| index * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_byte_message_or_port_is_seen() {
        let contents = Contents {
            source_port: 3,
            number: 70,
        };
        for length in [0, 1, 8, 1001] {
            let mut bytes = vec![0; length];
            contents.fill(&mut bytes);
            assert_eq!(contents.differs_at(&bytes), None);
            for at in (0..length).step_by(7) {
                bytes[at] ^= 1;
                assert_eq!(contents.differs_at(&bytes), Some(at / 8 * 8));
                bytes[at] ^= 1;
            }
        }
        let mut bytes = vec![0; 100];
        contents.fill(&mut bytes);
        for (source_port, number) in [(2, 70), (3, 69), (3, 71), (3, 70 << 8)] {
            let other = Contents {
                source_port,
                number,
            };
            assert_eq!(other.differs_at(&bytes), Some(0));
        }
    }
}
