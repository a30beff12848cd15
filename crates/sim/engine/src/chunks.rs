//! Lists that share their memory.
//!
//! A list is a chain of chunks from one pool, so that all lists together take as much memory as they hold items, not as each held
//! at its longest, and what is written to was used a short while ago. Items come out in no order.

use raddle_prefetch::make_room;

/// Items of a chunk.
pub(crate) const CHUNK: u32 = 16;
/// No chunk.
const NONE: u32 = u32::MAX;

/// Where a list's next item goes, the only thing that is known of it. At the beginning of a chunk: the chunk before it is full, and
/// a new one follows; 0: the list is empty.
pub(crate) type End = u32;

/// The pool.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// [`CHUNK`] by [`CHUNK`].
    items: Vec<T>,
    /// The chunk that comes before each in its list, or after it among the free ones.
    links: Vec<u32>,
    free: u32,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            links: Vec::new(),
            free: NONE,
        }
    }
}

impl<T: Copy + Default> Chunks<T> {
    #[inline(always)]
    pub(crate) fn push(&mut self, end: &mut End, item: T) {
        if end.is_multiple_of(CHUNK) {
            *end = self.lengthen(*end);
        }
        self.items[*end as usize] = item;
        *end += 1;
    }

    /// Adds a chunk to a list; where it begins.
    #[inline(always)]
    fn lengthen(&mut self, end: End) -> u32 {
        let before = (end / CHUNK).wrapping_sub(1);
        let chunk = self.free;
        let Some(link) = self.links.get_mut(chunk as usize) else {
            return self.enlarge(before);
        };
        self.free = std::mem::replace(link, before);
        chunk * CHUNK
    }

    /// A new chunk of the pool; where it begins.
    ///
    /// # Panics
    /// When the lists have 2^32 items: the place behind the last one has to be a number of 32 bits too.
    #[inline(never)]
    fn enlarge(&mut self, before: u32) -> u32 {
        let begin = self.items.len() as u32;
        let end = u32::try_from(self.items.len() + CHUNK as usize);
        assert!(end.is_ok(), "no run has 2^32 events at once");
        for _ in 0..CHUNK {
            make_room(&mut self.items);
            self.items.push(T::default());
        }
        make_room(&mut self.links);
        self.links.push(before);
        begin
    }

    /// Takes the last chunk of a list that is not empty: its items, which stay until the chunk is taken again.
    #[inline(always)]
    pub(crate) fn take_last(&mut self, end: &mut End) -> &[T] {
        let last = *end - 1;
        let chunk = last / CHUNK;
        let before = std::mem::replace(&mut self.links[chunk as usize], self.free);
        self.free = chunk;
        *end = before.wrapping_add(1) * CHUNK;
        &self.items[(chunk * CHUNK) as usize..=last as usize]
    }

    /// The items of a list.
    pub(crate) fn iter(&self, end: End) -> impl Iterator<Item = &T> {
        let last = end.wrapping_sub(1);
        let mut next = (last / CHUNK, last % CHUNK + 1);
        let pieces = std::iter::from_fn(move || {
            let (chunk, count) = next;
            next = (*self.links.get(chunk as usize)?, CHUNK);
            let start = (chunk * CHUNK) as usize;
            Some(&self.items[start..start + count as usize])
        });
        pieces.flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any number of lists hold what vectors would, in no more chunks than their fullest time needs.
        #[test]
        fn lists_share_their_memory(
            steps in prop::collection::vec((0usize..4, 0u32..40, 0u8..3), 1..100),
        ) {
            let mut chunks = Chunks::<u32>::default();
            let mut ends: Vec<End> = vec![0; 4];
            let mut lists = vec![Vec::<u32>::new(); 4];
            let (mut next, mut fullest) = (0, 0);
            for (at, count, step) in steps {
                if step == 0 {
                    let mut taken = Vec::new();
                    while ends[at] != 0 {
                        taken.extend_from_slice(chunks.take_last(&mut ends[at]));
                    }
                    taken.sort_unstable();
                    prop_assert_eq!(&taken, &lists[at]);
                    lists[at].clear();
                }
                for _ in 0..count {
                    chunks.push(&mut ends[at], next);
                    lists[at].push(next);
                    next += 1;
                }
                for (&end, list) in ends.iter().zip(&lists) {
                    let mut held: Vec<u32> = chunks.iter(end).copied().collect();
                    held.sort_unstable();
                    prop_assert_eq!(&held, list);
                }
                let needed = |list: &Vec<u32>| list.len().div_ceil(CHUNK as usize);
                fullest = fullest.max(lists.iter().map(needed).sum());
                prop_assert!(chunks.links.len() <= fullest);
            }
        }
    }
}
