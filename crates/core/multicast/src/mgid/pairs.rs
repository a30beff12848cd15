//! Numbers of fault-tolerant pairs where an entry is a whole MLID: two groups carry what one carries.
//!
//! With a table per input port one MGID serves both trees of a pair (equation (4)). An InfiniBand switch has one mask of
//! ports per MLID, on which two trees would loop, so that a pair takes two MLIDs and, since a member tells groups by
//! their MGID, two MGIDs. The rule that joins them is one of numbers alone: bit 63 marks both, bit 62 is the copy, what
//! is below is the number of the pair. A sender sends every packet to both, a member joins both and drops the copy that
//! comes second.

use crate::Mgid;

/// Which of the two trees of a pair a group has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Copy {
    /// The tree of the first half of the tree groups.
    First,
    /// The tree of the second half.
    Second,
}

impl Mgid {
    /// Set in both MGIDs of a pair.
    pub const PAIR: u64 = 1 << 63;
    /// Set in the second one of them.
    pub const SECOND: u64 = 1 << 62;

    /// Which copy of a pair this group carries; `None`: it is an ordinary group.
    pub const fn copy(self) -> Option<Copy> {
        match (self.0 & Self::PAIR != 0, self.0 & Self::SECOND != 0) {
            (false, _) => None,
            (true, false) => Some(Copy::First),
            (true, true) => Some(Copy::Second),
        }
    }

    /// The group that carries the other copy; `None` for an ordinary group.
    pub const fn companion(self) -> Option<Self> {
        match self.copy() {
            Some(_) => Some(Self(self.0 ^ Self::SECOND)),
            None => None,
        }
    }

    /// The number that equations (2) and (4) take: that of the pair, or the group's own.
    pub const fn tree_key(self) -> Self {
        match self.copy() {
            Some(_) => Self(self.0 & !(Self::PAIR | Self::SECOND)),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_differs_in_one_bit_and_has_one_number() {
        for number in [0, 1, 77, (1 << 62) - 1] {
            let first = Mgid(Mgid::PAIR | number);
            let second = first.companion().unwrap();
            assert_eq!(second.companion(), Some(first));
            assert_eq!((first.0 ^ second.0).count_ones(), 1);
            assert_eq!(first.copy(), Some(Copy::First));
            assert_eq!(second.copy(), Some(Copy::Second));
            assert_eq!(
                (first.tree_key(), second.tree_key()),
                (Mgid(number), Mgid(number))
            );
        }
    }

    #[test]
    fn other_groups_have_no_companion() {
        for number in [0, 1, Mgid::SECOND, Mgid::SECOND | 9, Mgid::PAIR - 1] {
            let group = Mgid(number);
            assert_eq!((group.copy(), group.companion()), (None, None));
            assert_eq!(group.tree_key(), group);
        }
    }
}
