//! The bytes of a joined parcel: a head, then each part's head and bytes, one after the other. Numbers are big-endian.
//!
//! | bytes | head |
//! |---|---|
//! | 0 to 1 | 0x5250 ("RP") |
//! | 2 | version, 1 |
//! | 3 | 0 |
//! | 4 to 7 | number of parts, at least 1 |
//! | 8 to 11 | bytes of the whole parcel |
//!
//! | bytes | head of a part |
//! |---|---|
//! | 0 to 3 | sending rank |
//! | 4 to 7 | rank that the message is for |
//! | 8 to 11 | communicator |
//! | 12 to 15 | tag |
//! | 16 to 19 | sequence |
//! | 20 to 23 | bytes of the message, which follow |
//!
//! A parcel may come from anywhere, so it is checked as a whole before anything of it is used. Whether ranks and
//! communicators exist is the reader's question.
//!
//! ```
//! use raddle_schedule::parcel::{PartHead, ParcelView, ParcelWriter};
//! let mut buffer = [0; 100];
//! let mut writer = ParcelWriter::new(&mut buffer).unwrap();
//! let head = PartHead { source: 1, target: 9, context: 0, tag: 7, sequence: 3 };
//! writer.push(&head, b"abc").unwrap();
//! writer.push(&PartHead { sequence: 4, ..head }, b"").unwrap();
//! let length = writer.finish();
//! let parcel = ParcelView::parse(&buffer[..length]).unwrap();
//! let parts: Vec<_> = parcel.parts().collect();
//! assert_eq!(parts, [(head, &b"abc"[..]), (PartHead { sequence: 4, ..head }, &b""[..])]);
//! ```

use thiserror::Error;

/// Bytes of the head of a parcel.
pub const HEAD_BYTES: usize = 12;
/// Bytes of the head of a part.
pub const PART_BYTES: usize = 24;

const MAGIC: u16 = 0x5250;
const VERSION: u8 = 1;

/// What is told of a part beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartHead {
    /// Sending rank, in the numbering that both ends agreed on.
    pub source: u32,
    /// Rank that the message is for.
    pub target: u32,
    /// Which communicator, in the numbering that both ends agreed on.
    pub context: u32,
    /// MPI's tag.
    pub tag: i32,
    /// The message's number among those of its (source, target); see [`crate::Part::sequence`].
    pub sequence: u32,
}

/// Why bytes are no parcel, or a part does not fit into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("parcel: {field} at byte {offset}: {problem}")]
pub struct ParcelError {
    /// What is wrong, by its name in the tables of this module's page.
    pub field: &'static str,
    /// Where it begins.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is not enough.
    #[error("{needed} bytes are needed, {left} are left")]
    Short {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are from its start.
        left: usize,
    },
    /// The value is not the only one that it may have.
    #[error("{found}, expected {expected}")]
    Differs {
        /// The value found.
        found: usize,
        /// The right one.
        expected: usize,
    },
    /// The value does not fit into 32 bits.
    #[error("{found} does not fit into 32 bits")]
    Range {
        /// The value given.
        found: usize,
    },
}

impl ParcelError {
    #[cold]
    const fn short(field: &'static str, offset: usize, needed: usize, left: usize) -> Self {
        Self {
            field,
            offset,
            problem: Problem::Short { needed, left },
        }
    }

    #[cold]
    const fn differs(field: &'static str, offset: usize, found: usize, expected: usize) -> Self {
        Self {
            field,
            offset,
            problem: Problem::Differs { found, expected },
        }
    }
}

/// Writes a parcel into a buffer, part by part.
#[derive(Debug)]
pub struct ParcelWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
    parts: u32,
}

impl<'a> ParcelWriter<'a> {
    /// Begins a parcel at the start of `buffer`.
    ///
    /// # Errors
    /// When the buffer is too short for a head.
    pub fn new(buffer: &'a mut [u8]) -> Result<Self, ParcelError> {
        if buffer.len() < HEAD_BYTES {
            return Err(ParcelError::short("head", 0, HEAD_BYTES, buffer.len()));
        }
        Ok(Self {
            buffer,
            length: HEAD_BYTES,
            parts: 0,
        })
    }

    /// Goes on with a parcel that was begun at the start of `buffer` and has this length and so many parts, as
    /// [`Self::length`] and [`Self::parts`] said; so that the buffer can grow in between.
    ///
    /// # Panics
    /// If the buffer is too short for that.
    #[must_use]
    pub fn resume(buffer: &'a mut [u8], length: usize, parts: u32) -> Self {
        assert!((HEAD_BYTES..=buffer.len()).contains(&length));
        Self {
            buffer,
            length,
            parts,
        }
    }

    /// Appends a part of `bytes` bytes and gives the room for them, e.g. for MPI_Pack. The room holds what the buffer held.
    ///
    /// # Errors
    /// When the part does not fit into the buffer, or the parcel would be longer than 32 bits can say; it stays as it was.
    pub fn part(&mut self, head: &PartHead, bytes: usize) -> Result<&mut [u8], ParcelError> {
        let begin = self.length;
        let range = |found| ParcelError {
            field: "bytes",
            offset: begin,
            problem: Problem::Range { found },
        };
        let end = (begin + PART_BYTES)
            .checked_add(bytes)
            .filter(|&end| u32::try_from(end).is_ok())
            .ok_or_else(|| range(bytes))?;
        let left = self.buffer.len() - begin;
        let Some(room) = self.buffer.get_mut(begin..end) else {
            return Err(ParcelError::short("part", begin, end - begin, left));
        };
        let (own, room) = room.split_at_mut(PART_BYTES);
        let fields = [
            head.source,
            head.target,
            head.context,
            head.tag.cast_unsigned(),
            head.sequence,
            bytes as u32,
        ];
        for (field, value) in own.chunks_exact_mut(4).zip(fields) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        self.length = end;
        self.parts += 1;
        Ok(room)
    }

    /// Appends a part.
    ///
    /// # Errors
    /// As [`Self::part`].
    pub fn push(&mut self, head: &PartHead, bytes: &[u8]) -> Result<(), ParcelError> {
        self.part(head, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Number of parts so far.
    #[must_use]
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// Length so far.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Writes the head and gives the parcel's length. A parcel without parts cannot be read.
    pub fn finish(self) -> usize {
        let Self {
            buffer,
            length,
            parts,
        } = self;
        buffer[..2].copy_from_slice(&MAGIC.to_be_bytes());
        buffer[2..4].copy_from_slice(&[VERSION, 0]);
        buffer[4..8].copy_from_slice(&parts.to_be_bytes());
        buffer[8..HEAD_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
        length
    }
}

/// A parcel that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParcelView<'a> {
    /// Everything after the head.
    body: &'a [u8],
    parts: u32,
}

impl<'a> ParcelView<'a> {
    /// Checks the head, the heads of all parts, and that they fill `bytes` exactly. Allocates nothing.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParcelError> {
        let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(ParcelError::short("head", 0, HEAD_BYTES, bytes.len()));
        };
        let [m0, m1, version, zero, p0, p1, p2, p3, l0, l1, l2, l3] = *head;
        let magic = u16::from_be_bytes([m0, m1]);
        let parts = u32::from_be_bytes([p0, p1, p2, p3]);
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        for (field, offset, found, expected) in [
            ("magic", 0, usize::from(magic), usize::from(MAGIC)),
            ("version", 2, usize::from(version), usize::from(VERSION)),
            ("reserved", 3, usize::from(zero), 0),
            ("length", 8, length, bytes.len()),
        ] {
            if found != expected {
                return Err(ParcelError::differs(field, offset, found, expected));
            }
        }

        let mut rest = body;
        let mut counted = 0_u32;
        while !rest.is_empty() {
            let offset = bytes.len() - rest.len();
            let Some((_, size, after)) = split_part(rest) else {
                return Err(ParcelError::short("part", offset, PART_BYTES, rest.len()));
            };
            let Some(next) = after.get(size..) else {
                let begin = offset + PART_BYTES;
                return Err(ParcelError::short("bytes", begin, size, after.len()));
            };
            rest = next;
            // The length fits into 32 bits, so the number of parts does.
            counted += 1;
        }
        if counted != parts || parts == 0 {
            let expected = counted.max(1) as usize;
            return Err(ParcelError::differs("parts", 4, parts as usize, expected));
        }
        Ok(Self { body, parts })
    }

    /// How many parts there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.parts
    }

    /// The parts in order, with their bytes.
    pub fn parts(&self) -> impl Iterator<Item = (PartHead, &'a [u8])> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (head, size, after) = split_part(rest)?;
            let (bytes, next) = after.split_at_checked(size)?;
            rest = next;
            Some((head, bytes))
        })
    }
}

/// The head of the first part, the bytes that it announces, and what follows the head.
fn split_part(bytes: &[u8]) -> Option<(PartHead, usize, &[u8])> {
    let (head, after) = bytes.split_first_chunk::<PART_BYTES>()?;
    let field = |number: usize| {
        let at = 4 * number;
        u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
    };
    let part = PartHead {
        source: field(0),
        target: field(1),
        context: field(2),
        tag: field(3).cast_signed(),
        sequence: field(4),
    };
    Some((part, field(5) as usize, after))
}
