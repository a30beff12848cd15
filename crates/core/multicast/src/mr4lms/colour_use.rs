//! Who uses which colour where, and how many groups cross each link.

use raddle_units::LinkId;

/// A set of colours, one bit each, in words of 64.
pub(super) type Words = [u64];

/// The lowest colour of a set.
pub(super) fn lowest(set: &Words) -> Option<u16> {
    let (word, bits) = (0..).zip(set).find(|(_, bits)| **bits != 0)?;
    Some(word * 64 + bits.trailing_zeros() as u16)
}

/// Whether a set holds a colour.
pub(super) fn holds(set: &Words, colour: u16) -> bool {
    set[usize::from(colour / 64)] >> (colour % 64) & 1 == 1
}

/// Keeps of `set` what `other` holds as well; whether anything is left.
pub(super) fn intersect(set: &mut Words, other: &Words) -> bool {
    let mut any = 0;
    for (word, other) in set.iter_mut().zip(other) {
        *word &= other;
        any |= *word;
    }
    any != 0
}

/// Colours by *place*, a place being what two trees of one colour must not share: a link, or a switch where
/// tables are per switch.
#[derive(Clone, Debug)]
pub(super) struct ColourUse {
    words: usize,
    /// Colours that are free at each place.
    free: Vec<u64>,
    /// Who has a colour at each place: (colour, tree), ascending.
    owners: Vec<Vec<(u16, u32)>>,
    /// Groups whose tree crosses each link (EFI).
    load: Vec<u32>,
}

impl ColourUse {
    pub(super) fn new(places: usize, links: usize, colours: u32) -> Self {
        let words = colours.div_ceil(64) as usize;
        let mut all = vec![u64::MAX; words];
        if !colours.is_multiple_of(64) {
            all[words - 1] = (1 << (colours % 64)) - 1;
        }
        Self {
            words,
            free: all.repeat(places),
            owners: vec![Vec::new(); places],
            load: vec![0; links],
        }
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn free(&self, place: usize) -> &Words {
        &self.free[place * self.words..(place + 1) * self.words]
    }

    /// The tree that has a colour at a place.
    pub(super) fn owner(&self, place: usize, colour: u16) -> Option<u32> {
        if holds(self.free(place), colour) {
            return None;
        }
        let owners = &self.owners[place];
        let found = owners.binary_search_by_key(&colour, |&(colour, _)| colour);
        found.ok().map(|index| owners[index].1)
    }

    /// Everybody at a place, by colour.
    pub(super) fn owners(&self, place: usize) -> &[(u16, u32)] {
        &self.owners[place]
    }

    pub(super) fn take(&mut self, place: usize, colour: u16, tree: u32) {
        let owners = &mut self.owners[place];
        let index = owners.partition_point(|&(other, _)| other < colour);
        owners.insert(index, (colour, tree));
        self.free[place * self.words + usize::from(colour / 64)] &= !(1 << (colour % 64));
    }

    pub(super) fn give_back(&mut self, place: usize, colour: u16) {
        let owners = &mut self.owners[place];
        if let Ok(index) = owners.binary_search_by_key(&colour, |&(colour, _)| colour) {
            owners.remove(index);
        }
        self.free[place * self.words + usize::from(colour / 64)] |= 1 << (colour % 64);
    }

    pub(super) fn load(&self, link: LinkId) -> u32 {
        self.load[link.index()]
    }

    pub(super) fn add_load(&mut self, link: LinkId, groups: u32) {
        self.load[link.index()] += groups;
    }

    pub(super) fn remove_load(&mut self, link: LinkId, groups: u32) {
        self.load[link.index()] -= groups;
    }
}
