//! Numbers of groups: what the engine's equations take for a MGID of 16 bytes.

use std::collections::{BTreeMap, BTreeSet};

use raddle_multicast::Mgid;

/// A group's GID.
pub(crate) type Gid = [u8; 16];

/// Added to the number of a group whose low half another group has already: odd, so that in the end every number is
/// tried.
const STEP: u64 = (1 << 48) | 1;

/// The groups that there are, and their numbers.
///
/// The low half of a MGID is what an allocator of MGIDs numbers, and what says whether a group is half of a pair; GIDs
/// that differ only above it are told apart. The two groups of a pair differ in one bit ([`Mgid::SECOND`]), as GIDs and
/// as numbers, in whichever order they come.
#[derive(Default)]
pub(crate) struct Numbers {
    by_gid: BTreeMap<Gid, Mgid>,
    gids: BTreeMap<Mgid, Gid>,
}

impl Numbers {
    /// The number of a group, which gets one if it has none.
    pub(crate) fn number(&mut self, gid: Gid) -> Mgid {
        if let Some(&mgid) = self.by_gid.get(&gid) {
            return mgid;
        }
        let mut low = [0; 8];
        low.copy_from_slice(&gid[8..]);
        let mut mgid = Mgid(u64::from_be_bytes(low));
        let other = companion(gid).and_then(|other| self.by_gid.get(&other));
        match other.and_then(|other| other.companion()) {
            Some(free) => mgid = free,
            None => {
                while self.is_taken(mgid) {
                    mgid = next(mgid);
                }
            }
        }
        self.by_gid.insert(gid, mgid);
        self.gids.insert(mgid, gid);
        mgid
    }

    /// A group with this number is there, or the other half of its pair, which the number is kept for.
    fn is_taken(&self, mgid: Mgid) -> bool {
        let there = |mgid: &Mgid| self.gids.contains_key(mgid);
        there(&mgid) || mgid.companion().is_some_and(|other| there(&other))
    }

    /// The GID of a number.
    pub(crate) fn gid(&self, mgid: Mgid) -> Option<&Gid> {
        self.gids.get(&mgid)
    }

    /// Forgets a group; the number that it had.
    pub(crate) fn remove(&mut self, gid: Gid) -> Option<Mgid> {
        let mgid = self.by_gid.remove(&gid)?;
        self.gids.remove(&mgid);
        Some(mgid)
    }

    /// The groups that are not among `others`.
    pub(crate) fn without(&self, others: &BTreeSet<Gid>) -> Vec<Gid> {
        self.by_gid
            .keys()
            .filter(|gid| !others.contains(*gid))
            .copied()
            .collect()
    }
}

/// The next number to try, of the same half of a pair.
const fn next(mgid: Mgid) -> Mgid {
    let kind = mgid.0 & (Mgid::PAIR | Mgid::SECOND);
    Mgid(kind | (mgid.0.wrapping_add(STEP) & !(Mgid::PAIR | Mgid::SECOND)))
}

/// The MGID of a pair's other group; `None` for an ordinary group.
fn companion(mut gid: Gid) -> Option<Gid> {
    let mut low = [0; 8];
    low.copy_from_slice(&gid[8..]);
    let other = Mgid(u64::from_be_bytes(low)).companion()?;
    gid[8..].copy_from_slice(&other.0.to_be_bytes());
    Some(gid)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn gid(text: &str) -> Gid {
        text.parse::<Ipv6Addr>().unwrap().octets()
    }

    #[test]
    fn the_low_half_is_the_number() {
        let mut numbers = Numbers::default();
        let group = gid("ff15:a01b::1:0:0:7");
        assert_eq!(numbers.number(group), Mgid((1 << 48) + 7));
        assert_eq!(numbers.number(group), Mgid((1 << 48) + 7));
        assert_eq!(numbers.gid(Mgid((1 << 48) + 7)), Some(&group));
        assert_eq!(numbers.remove(group), Some(Mgid((1 << 48) + 7)));
        assert_eq!(numbers.remove(group), None);
    }

    /// The documented rule: the fifth word of the text is 8000 or above in the first group, with c000 in the second.
    #[test]
    fn the_groups_of_a_pair_differ_in_one_bit() {
        let (first, second) = (gid("ff15:a01b::8000:0:0:7"), gid("ff15:a01b::c000:0:0:7"));
        assert_eq!(companion(first), Some(second));
        assert_eq!(companion(second), Some(first));
        assert_eq!(companion(gid("ff12:401b:ffff::ffff:ffff")), None);
        for order in [[first, second], [second, first]] {
            let mut numbers = Numbers::default();
            let [a, b] = order.map(|gid| numbers.number(gid));
            assert_eq!(a.companion(), Some(b));
        }
    }

    /// Pairs with one low half: each keeps its companion, whoever comes first.
    #[test]
    fn pairs_that_differ_above_the_low_half_keep_their_companions() {
        let pairs: Vec<[Gid; 2]> = (0..40u16)
            .map(|high| {
                let first = gid(&format!("ff15:a01b:{high:x}::8000:0:0:7"));
                [first, companion(first).unwrap()]
            })
            .collect();
        for turn in 0..4usize {
            let mut numbers = Numbers::default();
            for (place, pair) in pairs.iter().enumerate() {
                numbers.number(pair[(place + turn) % 2]);
            }
            for pair in pairs.iter().rev() {
                let [a, b] = pair.map(|gid| numbers.number(gid));
                assert_eq!(a.companion(), Some(b));
            }
            let told: BTreeSet<Mgid> = numbers.gids.keys().copied().collect();
            assert_eq!(told.len(), 2 * pairs.len());
        }
    }

    #[test]
    fn the_next_numbers_are_new_ones_of_the_same_half() {
        for first in [7, Mgid::PAIR | 7, Mgid::PAIR | Mgid::SECOND | 7] {
            let tried: BTreeSet<Mgid> =
                std::iter::successors(Some(Mgid(first)), |mgid| Some(next(*mgid)))
                    .take(100_000)
                    .collect();
            assert_eq!(tried.len(), 100_000);
            assert!(tried.iter().all(|mgid| mgid.copy() == Mgid(first).copy()));
        }
    }
}
