//! Numbered places that are used again.
//!
//! Not the crate `slab`: a ticket of a program's must be refused when its place has another item by now. Not `slotmap`: the
//! queues link places by numbers of 32 bits, and its keys have 64.

/// A place of a [`Slab`], and which of those who had it is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) index: u32,
    round: u32,
}

impl Place {
    pub(crate) const fn to_bits(self) -> u64 {
        (self.round as u64) << 32 | self.index as u64
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            round: (bits >> 32) as u32,
        }
    }
}

/// Items in numbered places.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }

    pub(crate) fn insert(&mut self, item: T) -> Place {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (round, place) = &mut self.places[index as usize];
        *place = Some(item);
        Place {
            index,
            round: *round,
        }
    }

    /// The item, if it is still that one.
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        let (round, item) = self.places.get_mut(place.index as usize)?;
        item.as_mut().filter(|_| *round == place.round)
    }

    /// Takes the item out, if it is still that one.
    pub(crate) fn take(&mut self, place: Place) -> Option<T> {
        self.get_mut(place)?;
        self.take_at(place.index)
    }

    /// The item of a place.
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.1.as_ref()
    }

    /// Takes an item out by the number of its place.
    pub(crate) fn take_at(&mut self, index: u32) -> Option<T> {
        let (round, place) = self.places.get_mut(index as usize)?;
        let item = place.take()?;
        *round = round.wrapping_add(1);
        self.free.push(index);
        Some(item)
    }

    /// Who has the place now.
    pub(crate) fn place(&self, index: u32) -> Place {
        Place {
            index,
            round: self.places[index as usize].0,
        }
    }

    /// Places and their items.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.places)
            .filter_map(|(index, (_, item))| Some((index, item.as_ref()?)))
    }
}
