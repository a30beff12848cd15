//! Fabrics, engines, switches that apply what engines report, and packets that walk through their tables.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use raddle_fabric::{CnTn, CnTnMap, Fabric, NodeKind};
use raddle_multicast::{Change, Colour, Growth, PerSwitch};
use raddle_unicast::LinkState;
use raddle_units::{NodeId, PortId};

pub(crate) fn fabric(m: u32, q: u32, p: u32, k: u32, w: u32) -> Fabric {
    CnTn::new(m, q, p, k, w).build().unwrap()
}

pub(crate) fn engine(fabric: &Fabric, mlids: u32, growth: Growth) -> PerSwitch {
    let map = CnTnMap::recognise(fabric).unwrap();
    let links = LinkState::all_up(fabric);
    PerSwitch::new(fabric.clone(), map, links, mlids, growth).unwrap()
}

/// Applies changes to tables of its own, as a switch would.
#[derive(Default)]
pub(crate) struct Tables(pub(crate) BTreeMap<(NodeId, Colour), Vec<PortId>>);

impl Tables {
    pub(crate) fn apply(&mut self, change: Change) {
        for entry in change.entries {
            if entry.ports.is_empty() {
                self.0.remove(&(entry.switch, entry.colour));
            } else {
                self.0.insert((entry.switch, entry.colour), entry.ports);
            }
        }
    }

    /// Hosts that get a packet of `source`, each as often as it arrives; `None` if it loops. Links that are down carry
    /// nothing.
    pub(crate) fn flood(
        &self,
        fabric: &Fabric,
        links: &LinkState,
        colour: Colour,
        source: NodeId,
    ) -> Option<Vec<NodeId>> {
        let mut arrivals = Vec::new();
        let mut seen = BTreeSet::new();
        let first = fabric.ports_of(source)[0];
        let mut queue = VecDeque::new();
        if links.is_up(first.link) {
            queue.push_back(first.peer);
        }
        while let Some(came) = queue.pop_front() {
            let switch = fabric.port(came).node;
            if !seen.insert(switch) {
                return None;
            }
            for &out in self.0.get(&(switch, colour)).into_iter().flatten() {
                let port = fabric.port(out);
                if out == came || !links.is_up(port.link) {
                    continue;
                }
                let peer = fabric.port(port.peer).node;
                match fabric.kind(peer) {
                    NodeKind::Host => arrivals.push(peer),
                    NodeKind::Switch => queue.push_back(port.peer),
                }
            }
        }
        arrivals.sort_unstable();
        Some(arrivals)
    }
}

/// Whether all switches reach each other.
pub(crate) fn in_one_piece(fabric: &Fabric, links: &LinkState) -> bool {
    let mut seen = BTreeSet::from([fabric.switches()[0]]);
    let mut queue = vec![fabric.switches()[0]];
    while let Some(switch) = queue.pop() {
        for port in fabric.ports_of(switch) {
            let peer = fabric.port(port.peer).node;
            if links.is_up(port.link) && !fabric.is_host(peer) && seen.insert(peer) {
                queue.push(peer);
            }
        }
    }
    seen.len() == fabric.switches().len()
}

/// Every member that has a working link gets every packet once; others only what groups that share the tree send.
pub(crate) fn check(engine: &PerSwitch, tables: &Tables) {
    let (fabric, links) = (engine.fabric(), engine.links());
    let connected = |host: NodeId| links.is_up(fabric.ports_of(host)[0].link);
    let whole = in_one_piece(fabric, links);
    for mgid in engine.groups() {
        let colour = engine.colour(mgid).unwrap();
        let sharing: BTreeSet<NodeId> = engine
            .sharing(mgid)
            .iter()
            .flat_map(|&other| engine.members(other))
            .filter(|&host| connected(host))
            .collect();
        for source in engine.members(mgid).filter(|&host| connected(host)) {
            let got = tables
                .flood(fabric, links, colour, source)
                .expect("no loop");
            let expected: Vec<NodeId> = sharing
                .iter()
                .copied()
                .filter(|&host| host != source)
                .collect();
            if whole {
                assert_eq!(got, expected, "{mgid} from {source}");
            } else {
                assert!(got.iter().all(|host| expected.contains(host)));
                assert!(got.is_sorted_by(|a, b| a < b), "a second copy");
            }
        }
    }
    for (switch, _, ports) in engine.entries() {
        let dead = ports
            .iter()
            .find(|port| !links.is_up(fabric.port(**port).link));
        assert_eq!(dead, None, "an entry of {switch} leads onto a dead link");
    }
    let held: BTreeMap<_, _> = engine
        .entries()
        .map(|(switch, colour, ports)| ((switch, colour), ports.to_vec()))
        .collect();
    assert_eq!(
        held, tables.0,
        "the reported changes do not add up to the tables"
    );
}

pub(crate) fn members(fabric: &Fabric, picks: &[usize]) -> Vec<NodeId> {
    let hosts = fabric.hosts();
    picks
        .iter()
        .map(|&pick| hosts[pick % hosts.len()])
        .collect()
}

pub(crate) fn group() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..10_000usize, 1..7)
}

pub(crate) fn shape() -> impl Strategy<Value = (u32, u32, u32, u32, u32)> {
    (1..4u32, 1..4u32, 1..3u32, 1..4u32, 1..3u32)
}
