//! Queues of frames, in memory that they share.
//!
//! A queue is a chain of chunks from one pool, so that all queues together take as much memory as they hold frames, and what is
//! written to was used a short while ago. A chunk is one cache line.

use raddle_prefetch::make_room;

use crate::frame::{Frame, FrameKind};

/// Frames of a chunk.
const FRAMES: u32 = 5;
/// Bits of a place that are its number in a chunk: more than a chunk has frames, so that a place can be behind its last.
const NUMBER_BITS: u32 = 3;
const NUMBERS: u32 = (1 << NUMBER_BITS) - 1;
/// No chunk, and no place.
const NONE: u32 = u32::MAX;

/// A queue of frames in a [`FrameMemory`], always the same one.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Where the first frame is.
    first: u32,
    /// Behind the last frame; [`NONE`]: there is none.
    end: u32,
    bytes: u64,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        end: NONE,
        bytes: 0,
    };

    /// Of all its frames.
    #[inline(always)]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.end == NONE
    }
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Chunk {
    frames: [Frame; FRAMES as usize],
    /// The chunk behind it in its queue, or in the list of free ones.
    next: u32,
}

const _: () = assert!(size_of::<Chunk>() == 64 && FRAMES < NUMBERS);

impl Chunk {
    const EMPTY: Self = Self {
        frames: [Frame {
            handle: 0,
            bytes: 0,
            in_port: 0,
            queue: 0,
            kind: FrameKind::Plain,
        }; FRAMES as usize],
        next: NONE,
    };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct FrameMemory {
    chunks: Vec<Chunk>,
    free: u32,
}

impl Default for FrameMemory {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: NONE,
        }
    }
}

impl FrameMemory {
    #[inline(always)]
    fn frame(&self, place: u32) -> &Frame {
        &self.chunks[(place >> NUMBER_BITS) as usize].frames[(place & NUMBERS) as usize]
    }

    /// Adds a frame at the end of a queue.
    #[inline(always)]
    pub(crate) fn push(&mut self, queue: &mut Queue, frame: Frame) {
        queue.bytes += u64::from(frame.bytes);
        let (mut chunk, mut number) = (queue.end >> NUMBER_BITS, queue.end & NUMBERS);
        if number >= FRAMES {
            (chunk, number) = (self.lengthen(queue), 0);
        }
        self.chunks[chunk as usize].frames[number as usize] = frame;
        queue.end = (chunk << NUMBER_BITS) + number + 1;
    }

    /// Adds a chunk to a queue whose last one is full, or that has none.
    #[inline(always)]
    fn lengthen(&mut self, queue: &mut Queue) -> u32 {
        let chunk = match self.chunks.get_mut(self.free as usize) {
            Some(free) => std::mem::replace(&mut self.free, free.next),
            None => self.enlarge(),
        };
        match self.chunks.get_mut((queue.end >> NUMBER_BITS) as usize) {
            Some(last) => last.next = chunk,
            None => queue.first = chunk << NUMBER_BITS,
        }
        chunk
    }

    /// A new chunk.
    ///
    /// # Panics
    /// When there are 2^29 chunks, of more than 2^31 frames.
    #[inline(never)]
    fn enlarge(&mut self) -> u32 {
        let chunk = self.chunks.len();
        assert!(
            chunk < (NONE >> NUMBER_BITS) as usize,
            "no run has 2^31 frames"
        );
        make_room(&mut self.chunks);
        self.chunks.push(Chunk::EMPTY);
        chunk as u32
    }

    /// Takes the first frame of a queue.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: &mut Queue) -> Option<Frame> {
        if queue.is_empty() {
            return None;
        }
        let place = queue.first;
        let frame = *self.frame(place);
        queue.bytes -= u64::from(frame.bytes);
        queue.first = place + 1;
        let is_last = queue.first == queue.end;
        if is_last || queue.first & NUMBERS == FRAMES {
            let chunk = place >> NUMBER_BITS;
            let next = std::mem::replace(&mut self.chunks[chunk as usize].next, self.free);
            self.free = chunk;
            queue.first = next << NUMBER_BITS;
            if is_last {
                queue.end = NONE;
            }
        }
        Some(frame)
    }

    /// The first frame of a queue.
    #[inline]
    pub(crate) fn first(&self, queue: &Queue) -> Option<&Frame> {
        (!queue.is_empty()).then(|| self.frame(queue.first))
    }

    /// All frames of a queue, the first one first.
    pub(crate) fn iter(&self, queue: &Queue) -> impl Iterator<Item = &Frame> {
        let (mut place, end) = (queue.first, queue.end);
        std::iter::from_fn(move || {
            if end == NONE || place == end {
                return None;
            }
            if place & NUMBERS == FRAMES {
                place = self.chunks[(place >> NUMBER_BITS) as usize].next << NUMBER_BITS;
            }
            let frame = self.frame(place);
            place += 1;
            Some(frame)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn frame(handle: u32) -> Frame {
        Frame {
            handle,
            bytes: handle % 7,
            ..Chunk::EMPTY.frames[0]
        }
    }

    proptest! {
        /// Any number of queues hold what lists would, in no more chunks than their fullest time needs.
        #[test]
        fn queues_are_lists_that_share_their_memory(
            steps in prop::collection::vec((0usize..4, 0u8..20, any::<bool>()), 1..200),
        ) {
            let mut memory = FrameMemory::default();
            let mut queues = vec![Queue::EMPTY; 4];
            let mut lists = vec![VecDeque::<Frame>::new(); 4];
            let (mut handle, mut fullest) = (0, 0);
            for (queue, count, join) in steps {
                let (queue, list) = (&mut queues[queue], &mut lists[queue]);
                for _ in 0..count {
                    if join {
                        memory.push(queue, frame(handle));
                        list.push_back(frame(handle));
                        handle += 1;
                    } else {
                        prop_assert_eq!(memory.pop(queue), list.pop_front());
                    }
                    prop_assert_eq!(memory.first(queue), list.front());
                    prop_assert_eq!(queue.is_empty(), list.is_empty());
                }
                prop_assert!(memory.iter(queue).eq(&*list));
                let bytes: u32 = list.iter().map(|frame| frame.bytes).sum();
                prop_assert_eq!(queue.bytes(), u64::from(bytes));
                // A queue's first chunk has frames that are gone.
                let chunks = |list: &VecDeque<Frame>| list.len().div_ceil(FRAMES as usize) + 1;
                fullest = fullest.max(lists.iter().map(chunks).sum());
                prop_assert!(memory.chunks.len() <= fullest);
            }
        }
    }
}
