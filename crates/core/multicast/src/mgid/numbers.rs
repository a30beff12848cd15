//! Spanning trees and their numbers: equations (1) to (4).

use super::MgidError;
use crate::Mgid;

/// The largest product of colours and trees per colour.
const MAX_TREES: u64 = 1 << 32;

/// The spanning trees of a fabric with C colours: C*m of them, or C*(m div 2) pairs in fault-tolerant mode
/// (Theorem 1, equations (1) to (4)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanningTrees {
    colours: u32,
    m: u32,
    p: u32,
    pairs: bool,
}

/// Colour and place of a spanning tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TreePlace {
    /// Table entry number, 0 to C-1.
    pub colour: u32,
    /// Tree group g, 0 to m-1: the L1 switch of each CN that the tree uses.
    pub group: u32,
    /// Number of the TN that holds the root, 0 to m*p-1; 0 where there are no TNs.
    pub tn: u32,
}

impl SpanningTrees {
    /// `colours` table entries (C), `m` L1 switches in each CN, `p` uplinks of an L1 switch (0 where there are no
    /// TNs); `fault_tolerant` gives every group two link-disjoint trees.
    ///
    /// # Errors
    /// C = 0, m = 0, m = 1 with fault tolerance, more than 2^32 trees.
    pub fn new(colours: u32, m: u32, p: u32, fault_tolerant: bool) -> Result<Self, MgidError> {
        if colours == 0 {
            return Err(MgidError::NoColours);
        }
        if m == 0 {
            return Err(MgidError::NoTrees);
        }
        if fault_tolerant && m == 1 {
            return Err(MgidError::NoPairs);
        }
        let trees = u64::from(colours) * u64::from(m);
        if trees > MAX_TREES {
            return Err(MgidError::TooManyTrees {
                trees,
                limit: MAX_TREES,
            });
        }
        Ok(Self {
            colours,
            m,
            p,
            pairs: fault_tolerant,
        })
    }

    /// Table entries C.
    pub fn colours(&self) -> u32 {
        self.colours
    }

    /// Trees of one colour that groups can have: m, or m div 2 pairs.
    pub fn per_colour(&self) -> u32 {
        if self.pairs { self.m / 2 } else { self.m }
    }

    /// Spanning trees, or pairs of them: C*m or C*(m div 2).
    pub fn count(&self) -> u64 {
        u64::from(self.colours) * u64::from(self.per_colour())
    }

    /// Whether every group has two trees.
    pub fn fault_tolerant(&self) -> bool {
        self.pairs
    }

    /// Number of the spanning tree (or pair) of an MGID: equation (2).
    pub fn tree_number(&self, mgid: Mgid) -> u64 {
        mgid.0 % self.count()
    }

    /// Colour of an MGID.
    pub fn colour(&self, mgid: Mgid) -> u32 {
        (self.tree_number(mgid) / u64::from(self.per_colour())) as u32
    }

    /// The tree of an MGID (equation (3)), in fault-tolerant mode the first of the two (equation (4)).
    pub fn first(&self, mgid: Mgid) -> TreePlace {
        let group = (self.tree_number(mgid) % u64::from(self.per_colour())) as u32;
        self.place(self.colour(mgid), group)
    }

    /// The second tree in fault-tolerant mode (equation (4)).
    pub fn second(&self, mgid: Mgid) -> Option<TreePlace> {
        let first = self.first(mgid);
        self.pairs
            .then(|| self.place(first.colour, first.group + self.m / 2))
    }

    fn place(&self, colour: u32, group: u32) -> TreePlace {
        TreePlace {
            colour,
            group,
            tn: if self.p == 0 {
                0
            } else {
                group * self.p + colour % self.p
            },
        }
    }
}
