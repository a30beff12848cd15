//! Registered memory: who may touch it when.
#![expect(
    unsafe_code,
    reason = "memory that a program lends is known by its address only"
)]

use std::{ptr::NonNull, slice};

use raddle_rails::{Payload, Placement};
use thiserror::Error;

/// Registered memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer(u32);

impl Buffer {
    /// Its number, for who cannot hold this value.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The buffer of a number; that of another number is unknown or somebody else's.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Its token in the core.
    pub(super) const fn token(self) -> u64 {
        self.0 as u64
    }
}

/// Why a buffer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BufferError {
    /// It is on its way, or provided.
    #[error("the buffer is in use: wait for the event that gives it back")]
    InUse,
    /// It was released, or is another node's.
    #[error("the buffer is not registered")]
    Unknown,
    /// It is too short.
    #[error("the buffer has {found} bytes, {needed} are needed")]
    Short {
        /// Bytes of the buffer.
        found: u64,
        /// Bytes needed.
        needed: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Sending,
    Receiving,
    Released,
}

/// Where a buffer's bytes are.
#[derive(Debug)]
enum Region {
    Owned(Vec<u8>),
    Lent { start: NonNull<u8>, length: usize },
}

// SAFETY: who lends memory says that it may be used until its buffer is given back, from whichever thread has the node.
unsafe impl Send for Region {}

impl Region {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            // SAFETY: `Memory::lend` was promised that these bytes stay, and that nobody writes to them meanwhile.
            Self::Lent { start, length } => unsafe {
                slice::from_raw_parts(start.as_ptr(), *length)
            },
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Owned(bytes) => bytes,
            // SAFETY: `Memory::lend` was promised that nobody else touches bytes that are to be received.
            Self::Lent { start, length } => unsafe {
                slice::from_raw_parts_mut(start.as_ptr(), *length)
            },
        }
    }
}

/// All registered memory of a node.
#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: Vec<(Region, Use)>,
    released: Vec<u32>,
}

impl Memory {
    pub(super) fn register(&mut self, bytes: Vec<u8>) -> Buffer {
        self.add(Region::Owned(bytes))
    }

    /// # Safety
    /// The bytes stay until the buffer is free again or the node is gone. Meanwhile nobody writes to what is sent, and nobody
    /// else touches what is received into.
    pub(super) unsafe fn lend(&mut self, start: NonNull<u8>, length: usize) -> Buffer {
        self.add(Region::Lent { start, length })
    }

    fn add(&mut self, region: Region) -> Buffer {
        if let Some(index) = self.released.pop() {
            self.buffers[index as usize] = (region, Use::Free);
            return Buffer(index);
        }
        self.buffers.push((region, Use::Free));
        Buffer(self.buffers.len() as u32 - 1)
    }

    /// Lent memory stays where it is: it gives none.
    pub(super) fn release(&mut self, buffer: Buffer) -> Result<Vec<u8>, BufferError> {
        let none = Region::Owned(Vec::new());
        let region = std::mem::replace(self.free(buffer)?, none);
        self.buffers[buffer.0 as usize].1 = Use::Released;
        self.released.push(buffer.0);
        Ok(match region {
            Region::Owned(bytes) => bytes,
            Region::Lent { .. } => Vec::new(),
        })
    }

    pub(super) fn bytes(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        match self.buffers.get(buffer.0 as usize) {
            Some((region, Use::Free | Use::Sending)) => Ok(region.bytes()),
            Some((_, Use::Receiving)) => Err(BufferError::InUse),
            Some((_, Use::Released)) | None => Err(BufferError::Unknown),
        }
    }

    pub(super) fn bytes_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.free(buffer).map(Region::bytes_mut)
    }

    fn free(&mut self, buffer: Buffer) -> Result<&mut Region, BufferError> {
        match self.buffers.get_mut(buffer.0 as usize) {
            Some((region, Use::Free)) => Ok(region),
            Some((_, Use::Sending | Use::Receiving)) => Err(BufferError::InUse),
            Some((_, Use::Released)) | None => Err(BufferError::Unknown),
        }
    }

    /// Whether a buffer may be lent for a message of `needed` bytes.
    pub(super) fn check_free(&mut self, buffer: Buffer, needed: u64) -> Result<(), BufferError> {
        let found = self.free(buffer)?.bytes().len() as u64;
        if found < needed {
            Err(BufferError::Short { found, needed })
        } else {
            Ok(())
        }
    }

    pub(super) fn lend_for_sending(&mut self, buffer: Buffer) {
        self.buffers[buffer.0 as usize].1 = Use::Sending;
    }

    pub(super) fn lend_for_receiving(&mut self, buffer: Buffer) {
        self.buffers[buffer.0 as usize].1 = Use::Receiving;
    }

    /// The core gives a token back.
    pub(super) fn give_back(&mut self, token: u64) -> Buffer {
        self.buffers[token as usize].1 = Use::Free;
        Buffer(token as u32)
    }

    /// Bytes to send.
    pub(super) fn payload(&self, payload: &Payload) -> &[u8] {
        if payload.bytes == 0 {
            return &[];
        }
        let from = payload.offset as usize;
        &self.buffers[payload.token as usize].0.bytes()[from..from + usize::from(payload.bytes)]
    }

    /// Bytes that came. False: there is no room for them.
    pub(super) fn fill(&mut self, place: &Placement, payload: &[u8]) -> bool {
        let from = place.offset as usize;
        let buffer = self.buffers[place.token as usize].0.bytes_mut();
        let room = buffer.get_mut(from..from.saturating_add(payload.len()));
        let there = room.is_some();
        if let Some(room) = room {
            room.copy_from_slice(payload);
        }
        there
    }
}
