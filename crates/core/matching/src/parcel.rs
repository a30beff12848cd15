//! A parcel on its way out.

use raddle_schedule::parcel::{HEAD_BYTES, PART_BYTES, ParcelWriter, PartHead};

/// A joined parcel, in memory that is used again: give it back by [`Matcher::recycle`](crate::Matcher::recycle) when it
/// was sent.
#[derive(Debug, Default)]
pub struct Parcel {
    /// At least as long as the longest that was in it, so that it need not be cleared.
    memory: Vec<u8>,
    length: usize,
    parts: u32,
}

impl Parcel {
    /// What is to be sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    pub(crate) const fn parts(&self) -> u32 {
        self.parts
    }

    pub(crate) const fn clear(&mut self) {
        self.length = 0;
        self.parts = 0;
    }

    /// Appends a part of this length, whose bytes `fill` writes.
    pub(crate) fn append(&mut self, head: &PartHead, bytes: usize, fill: impl FnOnce(&mut [u8])) {
        let length = self.length.max(HEAD_BYTES);
        let end = length + PART_BYTES + bytes;
        if self.memory.len() < end {
            self.memory.resize(end.next_power_of_two(), 0);
        }
        let mut writer = ParcelWriter::resume(&mut self.memory, length, self.parts);
        let room = writer.part(head, bytes);
        fill(room.expect("room was made, within the limits of a parcel"));
        self.length = end;
        self.parts += 1;
    }

    /// Writes the head.
    pub(crate) fn finish(&mut self) {
        ParcelWriter::resume(&mut self.memory, self.length, self.parts).finish();
    }
}
