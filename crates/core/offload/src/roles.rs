//! Who leads, who answers whom and who sends to whom: equations (1) to (6) of Li et al. (2022; `INCRoCE` in
//! `docs/references.bib`), for the published layout. Our own protocol needs none of their conditions (equally many
//! processes on each node and socket, ranks without gaps); its roles are those of `docs/concepts/offload.md`.
//!
//! Of each socket the least rank leads. The leaders of the first node are *masters* (MRR), the others of their kind ask
//! them (NMRR). Node mode is one socket per node.
//!
//! ```
//! use raddle_offload::roles::Roles;
//! let roles = Roles::new(2, 9, 4).unwrap(); // two sockets per node, nine nodes, four ranks per socket
//! assert_eq!(roles.masters().collect::<Vec<_>>(), [0, 4]);
//! assert_eq!(roles.asks(12), Some(4));
//! assert_eq!(roles.ring(0, 3), Some(vec![0, 8, 16])); // first leader of each node under the first TOR
//! ```

/// The numbers that the equations speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Roles {
    sockets: u32,
    nodes: u32,
    ranks: u32,
}

impl Roles {
    /// `sockets` per node (N), `nodes` (S) and `ranks` per socket (P); in Node mode one socket with all ranks of a node.
    /// `None` if one is 0 or there are more than 2^32 ranks.
    #[must_use]
    pub fn new(sockets: u32, nodes: u32, ranks: u32) -> Option<Self> {
        let product = sockets.checked_mul(nodes)?.checked_mul(ranks)?;
        (product > 0).then_some(Self {
            sockets,
            nodes,
            ranks,
        })
    }

    /// Ranks of the masters, eq. (1): `i P` for `0 <= i < N`.
    pub fn masters(&self) -> impl Iterator<Item = u32> {
        let ranks = self.ranks;
        (0..self.sockets).map(move |i| i * ranks)
    }

    /// Ranks of the other leaders, eq. (2): `i P` for `N <= i < S N`.
    pub fn others(&self) -> impl Iterator<Item = u32> {
        let ranks = self.ranks;
        (self.sockets..self.nodes * self.sockets).map(move |i| i * ranks)
    }

    /// The master that a leader asks (query), eq. (3). The paper counts leaders from 1 and has leader `i` ask master
    /// `j = (i - 1) mod N + 1`. `None` for masters and for ranks that lead nothing.
    #[must_use]
    pub fn asks(&self, leader: u32) -> Option<u32> {
        let number = self.number(leader)?;
        (number >= self.sockets).then(|| number % self.sockets * self.ranks)
    }

    /// The leaders that a master answers (notify), eq. (4): from master `i` to leaders `j = k N + i`, `1 <= k < S`.
    /// Nothing for ranks that are no master.
    pub fn answers(&self, master: u32) -> impl Iterator<Item = u32> {
        let number = self.number(master).filter(|&number| number < self.sockets);
        let (nodes, sockets, ranks) = (self.nodes, self.sockets, self.ranks);
        number
            .into_iter()
            .flat_map(move |number| (1..nodes).map(move |k| (k * sockets + number) * ranks))
    }

    /// The ring in which the leaders of one TOR send, from `leader` on: to the leader `N` further, eq. (5), and from the
    /// last `N` back to the first of their kind, eq. (6). `below` is the number of nodes under that TOR, whose nodes are
    /// consecutive from a multiple of `below` on; the last TOR may have fewer. `None` if the rank leads nothing.
    #[must_use]
    pub fn ring(&self, leader: u32, below: u32) -> Option<Vec<u32>> {
        let mut ring = vec![leader];
        loop {
            let next = self.next_in_ring(*ring.last()?, below)?;
            if next == leader {
                return Some(ring);
            }
            ring.push(next);
        }
    }

    /// The leader that `leader` sends to, eqs. (5) and (6); see [`ring`](Self::ring).
    #[must_use]
    pub fn next_in_ring(&self, leader: u32, below: u32) -> Option<u32> {
        let number = self.number(leader)?;
        let first = (number / self.sockets).checked_div(below)? * below;
        let end = first.saturating_add(below).min(self.nodes);
        let next = if number / self.sockets + 1 < end {
            number + self.sockets
        } else {
            first * self.sockets + number % self.sockets
        };
        Some(next * self.ranks)
    }

    /// Sockets per node (N).
    #[must_use]
    pub const fn sockets(&self) -> u32 {
        self.sockets
    }

    /// Leaders in all.
    #[must_use]
    pub const fn leaders(&self) -> u32 {
        self.sockets * self.nodes
    }

    /// The node of a leader, from 0. `None` if the rank leads nothing.
    #[must_use]
    pub fn node(&self, leader: u32) -> Option<u32> {
        self.number(leader).map(|number| number / self.sockets)
    }

    /// The number of a leader, from 0: its place among all leaders by rank. `None` if the rank leads nothing.
    #[must_use]
    pub fn number(&self, rank: u32) -> Option<u32> {
        let number = rank / self.ranks;
        (rank.is_multiple_of(self.ranks) && number < self.sockets * self.nodes).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Figure 8 of the paper: two sockets, nine servers, four processes per socket, three servers per TOR.
    #[test]
    fn figure_8() {
        let roles = Roles::new(2, 9, 4).unwrap();
        assert_eq!(roles.masters().collect::<Vec<_>>(), [0, 4]);
        let others: Vec<u32> = (8..=68).step_by(4).collect();
        assert_eq!(roles.others().collect::<Vec<_>>(), others);
        assert_eq!(roles.asks(8), Some(0));
        assert_eq!(roles.asks(68), Some(4));
        let kind: Vec<u32> = (12..=68).step_by(8).collect();
        assert_eq!(roles.answers(4).collect::<Vec<_>>(), kind);
        assert_eq!(roles.ring(0, 3).unwrap(), [0, 8, 16]);
        assert_eq!(roles.ring(4, 3).unwrap(), [4, 12, 20]);
        assert_eq!(roles.ring(32, 3).unwrap(), [32, 40, 24]);
    }

    #[test]
    fn node_mode_has_one_master_and_one_ring_per_tor() {
        let roles = Roles::new(1, 5, 8).unwrap();
        assert_eq!(roles.masters().collect::<Vec<_>>(), [0]);
        assert_eq!(roles.ring(0, 3).unwrap(), [0, 8, 16]);
        assert_eq!(roles.ring(24, 3).unwrap(), [24, 32]);
    }

    #[test]
    fn ranks_without_a_role_have_none() {
        let roles = Roles::new(2, 9, 4).unwrap();
        assert_eq!(roles.asks(0), None);
        assert_eq!(roles.asks(9), None);
        assert_eq!(roles.asks(72), None);
        assert_eq!(roles.answers(8).count(), 0);
        assert_eq!(roles.ring(72, 3), None);
        assert_eq!(roles.ring(0, 0), None);
        assert_eq!(Roles::new(0, 1, 1), None);
        assert_eq!(Roles::new(1 << 16, 1 << 16, 1), None);
    }

    proptest! {
        #[test]
        fn each_leader_has_one_master_and_one_closed_ring(
            sockets in 1_u32..5, nodes in 1_u32..20, ranks in 1_u32..9, below in 1_u32..7,
        ) {
            let roles = Roles::new(sockets, nodes, ranks).unwrap();
            let masters: BTreeSet<u32> = roles.masters().collect();
            let others: BTreeSet<u32> = roles.others().collect();
            prop_assert!(masters.is_disjoint(&others));
            prop_assert_eq!(masters.len() + others.len(), (sockets * nodes) as usize);
            for &leader in &others {
                let master = roles.asks(leader).unwrap();
                let answering: Vec<u32> = masters
                    .iter()
                    .copied()
                    .filter(|&master| roles.answers(master).any(|answered| answered == leader))
                    .collect();
                prop_assert_eq!(answering, vec![master]);
            }
            let node = |rank: u32| rank / (sockets * ranks);
            let mut seen = BTreeSet::new();
            for leader in roles.masters().chain(roles.others()) {
                let ring = roles.ring(leader, below).unwrap();
                let tor = node(leader) / below;
                let servers = (nodes - tor * below).min(below);
                prop_assert_eq!(ring.len(), servers as usize);
                prop_assert!(ring.iter().all(|&rank| node(rank) / below == tor));
                if ring.iter().min() == Some(&leader) {
                    prop_assert!(ring.iter().all(|&rank| seen.insert(rank)));
                }
            }
            prop_assert_eq!(seen.len(), (sockets * nodes) as usize);
        }
    }
}
