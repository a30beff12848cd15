//! Lists by (context, source, tag): the oldest of each in O(1), and any one out of its list in O(1).

use std::collections::hash_map::Entry;

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

#[derive(Debug)]
struct Ends {
    first: u32,
    last: u32,
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
    pub(crate) fn first(&self, key: Key) -> Option<u32> {
        self.ends.get(&key).map(|ends| ends.first)
    }

    /// Puts an item at the end of a list, by its link number `link`.
    pub(crate) fn push(&mut self, link: usize, key: Key, item: u32) {
        if self.links.len() <= item as usize {
            self.links.resize(item as usize + 1, [LOOSE; LINKS]);
        }
        let before = match self.ends.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Ends {
                    first: item,
                    last: item,
                });
                NOBODY
            }
            Entry::Occupied(ends) => std::mem::replace(&mut ends.into_mut().last, item),
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
        if before == NOBODY && after == NOBODY {
            self.ends.remove(&key);
            return;
        }
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
            } else {
                ends.last = before;
            }
        }
    }
}
