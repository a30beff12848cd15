//! Registered memory: who may touch it when.

use raddle_transport::rails::{Payload, Placement};
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

/// All registered memory of a node.
#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: Vec<(Vec<u8>, Use)>,
    released: Vec<u32>,
}

impl Memory {
    pub(super) fn register(&mut self, bytes: Vec<u8>) -> Buffer {
        if let Some(index) = self.released.pop() {
            self.buffers[index as usize] = (bytes, Use::Free);
            return Buffer(index);
        }
        self.buffers.push((bytes, Use::Free));
        Buffer(self.buffers.len() as u32 - 1)
    }

    pub(super) fn release(&mut self, buffer: Buffer) -> Result<Vec<u8>, BufferError> {
        let bytes = std::mem::take(self.free(buffer)?);
        self.buffers[buffer.0 as usize].1 = Use::Released;
        self.released.push(buffer.0);
        Ok(bytes)
    }

    pub(super) fn bytes(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        match self.buffers.get(buffer.0 as usize) {
            Some((bytes, Use::Free | Use::Sending)) => Ok(bytes),
            Some((_, Use::Receiving)) => Err(BufferError::InUse),
            Some((_, Use::Released)) | None => Err(BufferError::Unknown),
        }
    }

    pub(super) fn bytes_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.free(buffer).map(Vec::as_mut_slice)
    }

    fn free(&mut self, buffer: Buffer) -> Result<&mut Vec<u8>, BufferError> {
        match self.buffers.get_mut(buffer.0 as usize) {
            Some((bytes, Use::Free)) => Ok(bytes),
            Some((_, Use::Sending | Use::Receiving)) => Err(BufferError::InUse),
            Some((_, Use::Released)) | None => Err(BufferError::Unknown),
        }
    }

    /// Whether a buffer may be lent for a message of `needed` bytes.
    pub(super) fn check_free(&mut self, buffer: Buffer, needed: u64) -> Result<(), BufferError> {
        let found = self.free(buffer)?.len() as u64;
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
        &self.buffers[payload.token as usize].0[from..from + usize::from(payload.bytes)]
    }

    /// Bytes that came.
    pub(super) fn fill(&mut self, place: &Placement, payload: &[u8]) {
        let from = place.offset as usize;
        let buffer = &mut self.buffers[place.token as usize].0;
        buffer[from..from + payload.len()].copy_from_slice(payload);
    }
}
