//! Typed places in the engine's tables, and the tables.
//!
//! A place is a number with a type of its own: a flow's cannot be taken for a packet's. Tables that give places back use
//! them again, so that a long run stays as small as its busiest time.

use serde::{Deserialize, Serialize};
use std::{
    fmt::Debug,
    marker::PhantomData,
    ops::{Index, IndexMut},
};

use raddle_prefetch::make_room;

/// A place in a table.
pub(crate) trait Place: Copy + Eq + Debug {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! places {
    ($word:ty: $($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub(crate) struct $name(pub(crate) $word);

        impl Place for $name {
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                Self(index as $word)
            }
            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

places! { u32:
    /// A port, among those of its process: numbered in the fabric's order.
    PortIndex;
    /// A node, among those of its process.
    NodeIndex;
    /// A packet on its way: the data plane calls it a frame's handle.
    PacketSlot;
    /// A flow at its sender.
    FlowSlot;
    /// A host's network card.
    NicIndex;
    /// A switch.
    SwitchIndex;
    /// A message on its way to a group.
    SendSlot;
    /// What a sender knows of a group.
    SessionIndex;
    /// One tree of a group's reductions.
    TreeIndex;
    /// A member of an in-network reduction.
    MemberIndex;
    /// A packet of an in-network reduction.
    DatagramSlot;
    /// One host's half of a connection over rails.
    HalfIndex;
    /// A packet over rails.
    SegmentSlot;
    /// A message between the steps of its start.
    PendingIndex;
}

places! { u16:
    /// A logical process: a part of the fabric with its own clock.
    ProcessIndex;
    /// A part of a process with a list of events of its own.
    TileIndex;
}

/// A table that only grows.
#[derive(Debug)]
pub(crate) struct List<I, T> {
    items: Vec<T>,
    places: PhantomData<fn(I)>,
}

impl<I, T> Default for List<I, T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: PhantomData,
        }
    }
}

impl<I: Place, T> List<I, T> {
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> I {
        make_room(&mut self.items);
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    pub(crate) fn get_mut(&mut self, place: I) -> Option<&mut T> {
        self.items.get_mut(place.index())
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<I: Place, T> Index<I> for List<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, place: I) -> &T {
        &self.items[place.index()]
    }
}

impl<I: Place, T> IndexMut<I> for List<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, place: I) -> &mut T {
        &mut self.items[place.index()]
    }
}

/// A table whose places are given back and used again, the last one first. What was there stays until then.
#[derive(Debug)]
pub(crate) struct Arena<I, T> {
    slots: List<I, T>,
    free: Vec<I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self {
            slots: List::default(),
            free: Vec::new(),
        }
    }
}

impl<I: Place, T> Arena<I, T> {
    #[inline]
    pub(crate) fn insert(&mut self, item: T) -> I {
        if let Some(place) = self.free.pop() {
            self.slots[place] = item;
            return place;
        }
        self.slots.push(item)
    }

    /// Gives a place back.
    #[inline]
    pub(crate) fn free(&mut self, place: I) {
        self.free.push(place);
    }

    /// Gives a place back; what was there.
    pub(crate) fn take(&mut self, place: I) -> T
    where
        T: Default,
    {
        self.free.push(place);
        std::mem::take(&mut self.slots[place])
    }

    /// What was last in the place that is given out next; `None`: that will be a new one.
    pub(crate) fn next(&self) -> Option<&T> {
        self.free.last().map(|&place| &self.slots[place])
    }

    /// All places that were ever in use.
    pub(crate) fn places(&self) -> impl Iterator<Item = I> + use<I, T> {
        self.slots.places()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.slots.iter_mut()
    }
}

impl<I: Place, T> Index<I> for Arena<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, place: I) -> &T {
        &self.slots[place]
    }
}

impl<I: Place, T> IndexMut<I> for Arena<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, place: I) -> &mut T {
        &mut self.slots[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_the_last_one_first() {
        let mut arena: Arena<FlowSlot, char> = Arena::default();
        let [a, b, c] = ['a', 'b', 'c'].map(|letter| arena.insert(letter));
        assert_eq!((a, b, c), (FlowSlot(0), FlowSlot(1), FlowSlot(2)));
        arena.free(a);
        arena.free(c);
        assert_eq!(arena.next(), Some(&'c'));
        assert_eq!((arena.insert('d'), arena.insert('e')), (c, a));
        assert_eq!((arena[c], arena[a], arena[b]), ('d', 'e', 'b'));
    }
}
