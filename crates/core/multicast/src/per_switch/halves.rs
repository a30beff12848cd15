//! What each copy of a fault-tolerant pair may use: MLIDs, tree groups, links.

use std::ops::Range;

use raddle_fabric::{NodeKind, Role};
use raddle_units::{NodeId, PortId};

use super::PerSwitch;
use crate::{
    Colour, Mgid,
    mgid::{Copy, TreePlace},
};

const EVEN: u64 = 0x5555_5555_5555_5555;

/// A word of 64 MLIDs: those that a copy may use. Even and odd ones, so that both copies have low MLIDs.
pub(super) const fn colours_of(half: Option<Copy>) -> u64 {
    match half {
        None => u64::MAX,
        Some(Copy::First) => EVEN,
        Some(Copy::Second) => !EVEN,
    }
}

impl PerSwitch {
    /// Which copy of a pair a group carries; `None`: an ordinary group, or there are no pairs.
    pub(super) fn half(&self, mgid: Mgid) -> Option<Copy> {
        self.pairs.and_then(|_| mgid.copy())
    }

    pub(super) fn may_use(&self, mgid: Mgid, colour: Colour) -> bool {
        colours_of(self.half(mgid)) >> (colour.0 % 64) & 1 != 0
    }

    /// The tree that a group has while all links are up: equation (3) or (4).
    pub(super) fn home(&self, mgid: Mgid) -> TreePlace {
        let key = mgid.tree_key();
        match (self.half(mgid), self.pairs) {
            (Some(Copy::First), Some(pairs)) => pairs.first(key),
            (Some(Copy::Second), Some(pairs)) => {
                pairs.second(key).unwrap_or_else(|| pairs.first(key))
            }
            _ => self.trees.first(mgid),
        }
    }

    /// The tree groups that a group may use: all, the first m div 2, or the rest. Where m is odd equation (4) leaves one
    /// idle; it stands in for second copies when links fail.
    pub(super) fn tree_groups(&self, mgid: Mgid) -> Range<u32> {
        let m = self.map.shape().m;
        match self.half(mgid) {
            None => 0..m,
            Some(Copy::First) => 0..m / 2,
            Some(Copy::Second) => m / 2..m,
        }
    }

    /// The tree group whose trees use a switch; `None` for one that all use.
    pub(super) fn tree_group_of(&self, node: NodeId) -> Option<u32> {
        let p = self.map.shape().p.max(1);
        match self.map.role(node) {
            Role::Host { .. } | Role::L0 { .. } => None,
            Role::L1 { g, .. } => Some(g),
            Role::L2 { tn, .. } | Role::L3 { tn, .. } => Some(tn / p),
        }
    }

    /// How many pairs there are, and how many of them have trees with a common link between switches.
    pub(super) fn count_pairs(&self) -> (usize, usize) {
        let (mut pairs, mut joined) = (0, 0);
        if self.pairs.is_none() {
            return (pairs, joined);
        }
        for (&second, _) in self.groups.range(Mgid(Mgid::PAIR | Mgid::SECOND)..) {
            let Some(first) = second.companion() else {
                continue;
            };
            if self.groups.contains_key(&first) {
                pairs += 1;
                joined += usize::from(self.on_a_common_link(first, second));
            }
        }
        (pairs, joined)
    }

    fn on_a_common_link(&self, first: Mgid, second: Mgid) -> bool {
        let between_switches = |port: &&PortId| {
            let peer = self.fabric.port(self.fabric.port(**port).peer).node;
            self.fabric.kind(peer) == NodeKind::Switch
        };
        self.tree(first).any(|(node, ports)| {
            let others = self.ports_at(second, node);
            ports
                .iter()
                .filter(between_switches)
                .any(|port| others.binary_search(port).is_ok())
        })
    }

    fn ports_at(&self, mgid: Mgid, node: NodeId) -> &[PortId] {
        self.groups
            .get(&mgid)
            .and_then(|group| self.units.get(&group.unit)?.tree.ports.get(&node))
            .map_or(&[], |ports| ports)
    }
}
