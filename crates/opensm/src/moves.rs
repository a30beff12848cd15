//! Groups that got another MLID, counted until they are told.

use std::fmt::Write as _;

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
    "grew into another group of theirs",
    "met one when a link failed or came back",
    "were placed anew on a new map of the subnet",
    "were placed anew by recolour = \"sweep\"",
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
        let mut line = match self.count() {
            1 => String::from("1 group has got another MLID: "),
            count => format!("{count} groups have got another MLID: "),
        };
        let reasons = self.0.iter().zip(TEXTS).filter(|&(&count, _)| count > 0);
        for (place, (count, text)) in reasons.enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{count} {text}", if place > 0 { ", " } else { "" });
        }
        let hosts = if asked == 1 { "host was" } else { "hosts were" };
        let _ = write!(line, "; {asked} {hosts} asked to join again");
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
            "3 groups have got another MLID: 2 grew into another group of theirs, \
             1 met one when a link failed or came back; 17 hosts were asked to join again"
        );
    }
}
