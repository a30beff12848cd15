//! Memory for messages that nobody has asked for yet: blocks of 2^k bytes, used again.

/// What a kept message takes beside its block: its place in the queues and its links.
const ENTRY: u64 = 128;
const LEAST: u64 = 32;
/// Blocks that are kept for later use take at most this many bytes.
const MOST_SPARE: u64 = 16 << 20;

/// What a message of this length counts in its pair's window, in bytes; both ends compute it.
pub(crate) const fn cost(bytes: u64) -> u64 {
    match bytes.checked_next_power_of_two() {
        Some(block) if block >= LEAST => block.saturating_add(ENTRY),
        Some(_) => LEAST + ENTRY,
        None => u64::MAX,
    }
}

/// The bytes of one message.
#[derive(Debug)]
pub(crate) struct Block {
    memory: Box<[u8]>,
    length: usize,
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// Leaves `length` bytes at most.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.length]
    }
}

/// Blocks that can be used again, by the logarithm of their size.
#[derive(Debug)]
pub(crate) struct Store {
    spare: [Vec<Box<[u8]>>; 64],
    spare_bytes: u64,
}

impl Store {
    pub(crate) const fn new() -> Self {
        Self {
            spare: [const { Vec::new() }; 64],
            spare_bytes: 0,
        }
    }

    /// A block of this length; it holds anything.
    pub(crate) fn block(&mut self, length: usize) -> Block {
        if length == 0 {
            return Block {
                memory: Box::default(),
                length,
            };
        }
        let size = (length as u64).max(LEAST).next_power_of_two();
        let memory = match self.spare[size.trailing_zeros() as usize].pop() {
            Some(memory) => {
                self.spare_bytes -= size;
                memory
            }
            None => vec![0; size as usize].into(),
        };
        Block { memory, length }
    }

    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Block {
        let mut block = self.block(bytes.len());
        block.bytes_mut().copy_from_slice(bytes);
        block
    }

    pub(crate) fn give_back(&mut self, block: Block) {
        let size = block.memory.len() as u64;
        if size > 0 && self.spare_bytes + size <= MOST_SPARE {
            self.spare_bytes += size;
            self.spare[size.trailing_zeros() as usize].push(block.memory);
        }
    }

    /// Bytes that can be used again.
    #[cfg(test)]
    pub(crate) const fn spare(&self) -> u64 {
        self.spare_bytes
    }
}
