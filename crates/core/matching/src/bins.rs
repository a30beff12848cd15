//! Lists by (context, source, tag): the oldest of each in O(1), and any one out of its list in O(1).

use rustc_hash::FxHashMap;

/// How a receive chooses: 0 by source and tag, 1 from any source, 2 with any tag, 3 any.
pub(crate) const WAYS: usize = 4;

const ANY_SOURCE: u32 = u32::MAX;
const ANY_TAG: i32 = -1;
const NOBODY: u32 = u32::MAX;

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    context: u32,
    source: u32,
    tag: i32,
}

impl Key {
    /// The list in which `way` looks for this source and tag.
    pub(crate) const fn new(way: usize, context: u32, source: u32, tag: i32) -> Self {
        Self {
            context,
            source: if way & 1 == 0 { source } else { ANY_SOURCE },
            tag: if way & 2 == 0 { tag } else { ANY_TAG },
        }
    }
}

/// Both are `NOBODY` in a list without items.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    /// Those of a list of one item.
    const fn of(item: u32) -> Self {
        Self {
            first: item,
            last: item,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

const LOOSE: Link = Link {
    before: NOBODY,
    after: NOBODY,
};

/// Lists of numbered items, each of which can be in `LINKS` lists.
#[derive(Debug)]
pub(crate) struct Bins<const LINKS: usize> {
    /// Lists that became empty stay, since programs use the same tags again; until there is no room for another.
    ends: FxHashMap<Key, Ends>,
    links: Vec<[Link; LINKS]>,
}

impl<const LINKS: usize> Bins<LINKS> {
    pub(crate) fn new() -> Self {
        Self {
            ends: FxHashMap::default(),
            links: Vec::new(),
        }
    }

    /// The oldest of a list.
    #[inline]
    pub(crate) fn first(&self, key: Key) -> Option<u32> {
        let first = self.ends.get(&key)?.first;
        (first != NOBODY).then_some(first)
    }

    /// Takes the oldest of a list out of it; its items are there by their links number `link`.
    #[inline]
    pub(crate) fn pop(&mut self, link: usize, key: Key) -> Option<u32> {
        let ends = self.ends.get_mut(&key)?;
        let first = ends.first;
        let after = self.links.get(first as usize)?[link].after;
        match self.links.get_mut(after as usize) {
            Some(links) => {
                links[link].before = NOBODY;
                ends.first = after;
            }
            None => *ends = Ends::of(NOBODY),
        }
        Some(first)
    }

    /// Puts an item at the end of a list, by its link number `link`.
    #[inline]
    pub(crate) fn push(&mut self, link: usize, key: Key, item: u32) {
        if self.links.len() <= item as usize {
            self.links.resize(item as usize + 1, [LOOSE; LINKS]);
        }
        let before = match self.ends.get_mut(&key) {
            Some(ends) if ends.first != NOBODY => std::mem::replace(&mut ends.last, item),
            Some(ends) => {
                *ends = Ends::of(item);
                NOBODY
            }
            None => {
                self.begin(key, item);
                NOBODY
            }
        };
        if let Some(links) = self.links.get_mut(before as usize) {
            links[link].after = item;
        }
        self.links[item as usize][link] = Link {
            before,
            after: NOBODY,
        };
    }

    /// Takes an item out of the list in which it is by its link number `link`.
    pub(crate) fn remove(&mut self, link: usize, key: Key, item: u32) {
        let Link { before, after } = self.links[item as usize][link];
        if let Some(links) = self.links.get_mut(before as usize) {
            links[link].after = after;
        }
        if let Some(links) = self.links.get_mut(after as usize) {
            links[link].before = before;
        }
        if before != NOBODY && after != NOBODY {
            return;
        }
        if let Some(ends) = self.ends.get_mut(&key) {
            if before == NOBODY {
                ends.first = after;
            }
            if after == NOBODY {
                ends.last = before;
            }
        }
    }

    /// A list that was never there, or is forgotten.
    fn begin(&mut self, key: Key, item: u32) {
        if self.ends.len() == self.ends.capacity() {
            self.forget_empty();
        }
        self.ends.insert(key, Ends::of(item));
    }

    /// Makes room in place of what is empty; at least for half of all lists, so that this is rare.
    fn forget_empty(&mut self) {
        let empty = self.ends.values().filter(|ends| ends.first == NOBODY);
        if 2 * empty.count() >= self.ends.len() {
            self.ends.retain(|_, ends| ends.first != NOBODY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_empty_take_no_more_room_than_those_that_are_not() {
        let mut bins = Bins::<1>::new();
        let key = |tag| Key::new(0, 1, 2, tag);
        for tag in 0..100_000 {
            bins.push(0, key(tag), 7);
            assert_eq!(bins.first(key(tag)), Some(7));
            bins.remove(0, key(tag), 7);
            assert_eq!(bins.first(key(tag)), None);
            assert_eq!(bins.pop(0, key(tag)), None);
        }
        assert!(bins.ends.capacity() < 10);
    }

    #[test]
    fn the_oldest_leaves_first_whatever_was_removed_between() {
        let mut bins = Bins::<1>::new();
        let key = Key::new(0, 0, 0, 0);
        for item in 0..6 {
            bins.push(0, key, item);
        }
        for item in [0, 3, 5] {
            bins.remove(0, key, item);
        }
        let left: Vec<_> = std::iter::from_fn(|| bins.pop(0, key)).collect();
        assert_eq!(left, [1, 2, 4]);
        bins.push(0, key, 3);
        assert_eq!(bins.pop(0, key), Some(3));
    }
}
