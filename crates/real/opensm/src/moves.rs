//! Groups that got another MLID, counted until they are told.

use std::fmt::Write as _;

use raddle_units::many;

/// Why a group gets another MLID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Why {
    /// Its members have changed, and its tree meets another group of its MLID.
    Grew,
    /// A link has failed or come back, and its tree has moved onto another group of its MLID.
    Link,
    /// The subnet has another shape or another number of MLIDs: all groups were placed anew.
    Map,
    /// `recolour = "sweep"`.
    Sweep,
}

const TEXTS: [&str; 4] = [
    "by growing into another group of the same MLID",
    "by meeting such a group when a link failed or came back",
    "by a new placing on a new map of the subnet",
    "by recolour = \"sweep\"",
];

/// How many groups moved for which reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Moves([u64; 4]);

impl Moves {
    pub(crate) fn add(&mut self, why: Why) {
        self.0[why as usize] += 1;
    }

    pub(crate) fn count(self) -> u64 {
        self.0.iter().sum()
    }

    /// A line for the log; `asked` hosts were asked to join their groups again.
    pub(crate) fn text(self, asked: u32) -> String {
        let mut line = format!("{} with another MLID: ", many(self.count(), "group"));
        let reasons = self.0.iter().zip(TEXTS).filter(|&(&count, _)| count > 0);
        for (place, (count, text)) in reasons.enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{count} {text}", if place > 0 { ", " } else { "" });
        }
        let _ = write!(line, "; {} asked to join again", many(asked, "host"));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{Moves, Why};

    #[test]
    fn a_burst_is_told_with_its_reasons() {
        let mut moves = Moves::default();
        for why in [Why::Link, Why::Grew, Why::Grew] {
            moves.add(why);
        }
        assert_eq!(
            moves.text(17),
            "3 groups with another MLID: 2 by growing into another group of the same MLID, \
             1 by meeting such a group when a link failed or came back; 17 hosts asked to join again"
        );
        let mut one = Moves::default();
        one.add(Why::Map);
        assert_eq!(
            one.text(1),
            "1 group with another MLID: 1 by a new placing on a new map of the subnet; \
             1 host asked to join again"
        );
    }
}
