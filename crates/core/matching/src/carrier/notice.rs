//! What the two sides of a pair say to each other, and its bytes: a kind, then fields in network order.

use thiserror::Error;

use super::SLOTS;

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// How an offered message is to be sent.
    Answer {
        /// Its key.
        key: u32,
        /// On the rails, to this slot; `None`: on the shadow channel.
        slot: Option<usize>,
        /// Which classes of sizes are worth offering, a bit each.
        worth: u32,
    },
    /// The rails failed before this message came: it is to be sent on the channel.
    Again {
        /// Its key.
        key: u32,
    },
    /// The rails are closed at this end; what was not named by `Again` has come.
    Off,
    /// The driver's, to open rails: up to 255 bytes.
    Hello(Vec<u8>),
    /// The driver waits for an answer on the rails.
    Nudge,
}

/// Why bytes are not a valid notice. They changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadNotice {
    /// Its bytes are those of no kind.
    #[error("{length} bytes that begin with {kind} are not a notice")]
    Bytes {
        /// The first byte; 0 where there is none.
        kind: u8,
        /// How many there are.
        length: usize,
    },
    /// No message that waits for it.
    #[error("an unexpected notice about key {0}")]
    Key(u32),
}

const ANSWER: u8 = 1;
const AGAIN: u8 = 2;
const OFF: u8 = 3;
const HELLO: u8 = 4;
const NUDGE: u8 = 5;
/// In the place of a slot.
const PLAIN: u8 = u8::MAX;

impl Notice {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Answer { key, slot, worth } => {
                let mut bytes = vec![ANSWER, slot.map_or(PLAIN, |slot| slot as u8)];
                bytes.extend(key.to_be_bytes());
                bytes.extend(worth.to_be_bytes());
                bytes
            }
            Self::Again { key } => [&[AGAIN][..], &key.to_be_bytes()].concat(),
            Self::Off => vec![OFF],
            Self::Hello(hello) => [&[HELLO][..], hello].concat(),
            Self::Nudge => vec![NUDGE],
        }
    }

    /// Reads a notice.
    ///
    /// # Errors
    /// The bytes have another kind or length than every notice.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadNotice> {
        Ok(match *bytes {
            [ANSWER, slot, k0, k1, k2, k3, w0, w1, w2, w3]
                if slot == PLAIN || usize::from(slot) < SLOTS =>
            {
                Self::Answer {
                    key: u32::from_be_bytes([k0, k1, k2, k3]),
                    slot: (slot != PLAIN).then_some(slot.into()),
                    worth: u32::from_be_bytes([w0, w1, w2, w3]),
                }
            }
            [AGAIN, k0, k1, k2, k3] => Self::Again {
                key: u32::from_be_bytes([k0, k1, k2, k3]),
            },
            [OFF] => Self::Off,
            [HELLO, ref hello @ ..] => Self::Hello(hello.to_vec()),
            [NUDGE] => Self::Nudge,
            _ => {
                return Err(BadNotice::Bytes {
                    kind: bytes.first().copied().unwrap_or_default(),
                    length: bytes.len(),
                });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_as_it_was_written_and_nothing_else_is_one() {
        let answer = |slot| Notice::Answer {
            key: 0x0102_0304,
            slot,
            worth: 7,
        };
        let all = [
            answer(None),
            answer(Some(SLOTS - 1)),
            Notice::Again { key: 9 },
            Notice::Off,
            Notice::Hello(vec![1, 2, 3]),
            Notice::Nudge,
        ];
        for notice in all {
            assert_eq!(Notice::parse(&notice.bytes()), Ok(notice));
        }
        let mut bad = answer(Some(0)).bytes();
        bad[1] = SLOTS as u8;
        for bytes in [&bad[..], &bad[..9], &[], &[0], &[OFF, 0], &[AGAIN, 1], &[6]] {
            assert!(Notice::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
