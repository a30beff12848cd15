//! What one switch does for one tree: sets of ports, table entries, and the branch that holds them.

use std::fmt;

use raddle_units::NodeId;

use super::{Colour, TableMode};

/// A set of ports of one switch, by their numbers on it (from 1; 0 is InfiniBand's management port).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// No port.
    pub const EMPTY: Self = Self([0; 4]);
    /// The highest number.
    pub const LAST: u8 = u8::MAX;

    /// Adds a port.
    #[inline]
    pub const fn insert(&mut self, number: u8) {
        self.0[(number >> 6) as usize] |= 1 << (number & 63);
    }

    /// Takes a port out.
    #[inline]
    pub const fn remove(&mut self, number: u8) {
        self.0[(number >> 6) as usize] &= !(1 << (number & 63));
    }

    /// The set without one port.
    #[inline]
    pub const fn without(mut self, number: u8) -> Self {
        self.remove(number);
        self
    }

    /// Whether a port is in it.
    #[inline]
    pub const fn contains(&self, number: u8) -> bool {
        self.0[(number >> 6) as usize] >> (number & 63) & 1 == 1
    }

    /// Whether no port is in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }

    /// How many ports are in it.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.0[0].count_ones()
            + self.0[1].count_ones()
            + self.0[2].count_ones()
            + self.0[3].count_ones()
    }

    /// What is in either.
    #[inline]
    pub const fn union(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        Self([a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]])
    }

    /// What is in this and not in the other.
    #[inline]
    pub const fn minus(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        Self([a[0] & !b[0], a[1] & !b[1], a[2] & !b[2], a[3] & !b[3]])
    }

    /// The set with every number raised by this much; numbers beyond [`Self::LAST`] are lost.
    #[inline]
    pub(super) const fn raised(&self, by: u8) -> Self {
        let (words, bits) = ((by >> 6) as usize, by & 63);
        let mut raised = [0; 4];
        let mut index = words;
        while index < raised.len() {
            raised[index] = self.0[index - words] << bits;
            if bits > 0 && index > words {
                raised[index] |= self.0[index - words - 1] >> (64 - bits);
            }
            index += 1;
        }
        Self(raised)
    }

    /// Whether a port is in both.
    #[inline]
    pub const fn meets(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        a[0] & b[0] | a[1] & b[1] | a[2] & b[2] | a[3] & b[3] != 0
    }

    /// The four words: bit `n % 64` of word `n / 64` is port `n`. InfiniBand's port masks are their 16-bit parts.
    #[inline]
    pub const fn words(&self) -> [u64; 4] {
        self.0
    }

    /// The ports, ascending.
    #[inline]
    pub const fn iter(&self) -> Ports {
        Ports {
            words: self.0,
            at: 0,
        }
    }
}

/// The ports of a [`PortSet`], ascending.
#[derive(Clone, Debug)]
pub struct Ports {
    words: [u64; 4],
    /// The word that is read; those before it are empty.
    at: usize,
}

impl Iterator for Ports {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        while let Some(word) = self.words.get_mut(self.at) {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some((self.at as u32 * 64 + bit) as u8);
            }
            self.at += 1;
        }
        None
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        let mut set = Self::EMPTY;
        for number in numbers {
            set.insert(number);
        }
        set
    }
}

impl fmt::Debug for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// One table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableWrite {
    /// The switch.
    pub switch: NodeId,
    /// The input port whose table it is; `None`: the one table of the switch.
    pub in_port: Option<u8>,
    /// The number of the entry.
    pub colour: Colour,
    /// Where packets leave; empty: the entry is cleared. With one table per switch a packet never leaves by the port
    /// by which it came, although the set may have it.
    pub out_ports: PortSet,
}

/// What one switch does for one tree: all its table entries at once.
///
/// A packet that comes from below leaves by all other ports of the branch; one that comes from above leaves by all
/// ports below. (A branch has one port above, none at the root, and two where a fault-tolerant pair starts.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The switch.
    pub switch: NodeId,
    /// The colour.
    pub colour: Colour,
    /// Ports away from the root.
    pub down: PortSet,
    /// Ports towards the root.
    pub up: PortSet,
    /// Ports whose entry for the colour is cleared first.
    pub cleared: PortSet,
}

impl Branch {
    /// Where a packet that comes in by a port leaves; empty for a port that is not of the branch.
    #[inline]
    pub fn out_ports(&self, in_port: u8) -> PortSet {
        if self.down.contains(in_port) {
            self.down.union(&self.up).without(in_port)
        } else if self.up.contains(in_port) {
            self.down
        } else {
            PortSet::EMPTY
        }
    }

    /// The entries one by one; those that are cleared first.
    pub fn writes(&self, mode: TableMode) -> impl Iterator<Item = TableWrite> + use<> {
        let branch = *self;
        let ports = branch.down.union(&branch.up);
        let write = move |in_port, out_ports| TableWrite {
            switch: branch.switch,
            in_port,
            colour: branch.colour,
            out_ports,
        };
        let per_port = mode == TableMode::PerPort;
        let (cleared, set) = match per_port {
            true => (branch.cleared.minus(&ports), ports),
            false => (PortSet::EMPTY, PortSet::EMPTY),
        };
        cleared
            .iter()
            .map(move |port| write(Some(port), PortSet::EMPTY))
            .chain(
                set.iter()
                    .map(move |port| write(Some(port), branch.out_ports(port))),
            )
            .chain((!per_port).then(|| write(None, ports)))
    }
}

#[cfg(test)]
mod tests {
    use super::PortSet;

    #[test]
    fn raised_sets_are_those_of_the_raised_numbers() {
        let numbers = [0, 1, 15, 62, 63, 64, 127, 128, 190, 191, 192, 255];
        for by in [0, 1, 2, 63, 64, 65, 128, 191, 255] {
            let raised = numbers.iter().filter_map(|n: &u8| n.checked_add(by));
            let set = PortSet::from_iter(numbers).raised(by);
            assert_eq!(set, PortSet::from_iter(raised), "by {by}");
        }
    }
}
