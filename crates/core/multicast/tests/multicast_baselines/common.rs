//! Fabrics, engines and groups to try, and what holds for any engine at any time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{CnTn, Fabric, FabricBuilder, FatTree320, KAryFatTree, LeafSpine, dumbbell};
use raddle_multicast::{
    Broadcast, Colour, Group, Mgid, Mr4lms, Mr4lmsSettings, MulticastEngine, MulticastTables,
    OpenSmLike, RootRule, TableMode, Tree,
};
use raddle_unicast::LinkState;
use raddle_units::{BitRate, NodeId, PortId, Span};

const RATE: BitRate = BitRate::from_gbps(100);
const DELAY: Span = Span::from_us(1);

/// Switches in a ring, one host on each.
pub(crate) fn ring(switches: u32) -> Fabric {
    let mut builder = FabricBuilder::new("ring");
    let hosts: Vec<NodeId> = (0..switches).map(|_| builder.host()).collect();
    let ring: Vec<NodeId> = (0..switches).map(|_| builder.switch(1)).collect();
    for (&host, &switch) in hosts.iter().zip(&ring) {
        builder.connect(host, switch, RATE, DELAY);
    }
    for (at, &switch) in ring.iter().enumerate() {
        builder.connect(switch, ring[(at + 1) % ring.len()], RATE, DELAY);
    }
    builder.finish().unwrap()
}

pub(crate) fn leaf_spine(
    leaves: u32,
    spines: u32,
    hosts_per_leaf: u32,
    links_per_spine: u32,
) -> Fabric {
    let spec = LeafSpine {
        leaves,
        spines,
        hosts_per_leaf,
        links_per_spine,
        host_rate: RATE,
        fabric_rate: RATE,
        delay: DELAY,
        radix: None,
    };
    spec.build().unwrap()
}

/// A random connected graph of switches: a random tree and some more links, hosts on random switches, a few of them
/// with a second port.
pub(crate) fn random_fabric(switches: u32, hosts: u32, draws: &[u32]) -> Fabric {
    let mut draws = draws.iter().cycle().copied().enumerate();
    let mut draw = |limit: u32| {
        let (at, value) = draws.next().unwrap();
        (value ^ (at as u32).wrapping_mul(2_654_435_761)) % limit
    };
    let mut builder = FabricBuilder::new("random");
    let hosts: Vec<NodeId> = (0..hosts).map(|_| builder.host()).collect();
    let nodes: Vec<NodeId> = (0..switches).map(|_| builder.switch(0)).collect();
    let mut joined = BTreeSet::new();
    for at in 1..switches {
        let to = draw(at);
        joined.insert((to, at));
    }
    for _ in 0..switches {
        let (a, b) = (draw(switches), draw(switches));
        if a != b {
            joined.insert((a.min(b), a.max(b)));
        }
    }
    for (a, b) in joined {
        builder.connect(nodes[a as usize], nodes[b as usize], RATE, DELAY);
    }
    for &host in &hosts {
        let first = draw(switches);
        builder.connect(host, nodes[first as usize], RATE, DELAY);
        if draw(5) == 0 {
            let second = (first + 1) % switches;
            if second != first {
                builder.connect(host, nodes[second as usize], RATE, DELAY);
            }
        }
    }
    builder.finish().unwrap()
}

pub(crate) fn fabrics() -> Vec<Fabric> {
    vec![
        CnTn::new(2, 3, 2, 2, 2).build().unwrap(),
        CnTn::new(3, 2, 1, 1, 2).build().unwrap(),
        CnTn::new(2, 2, 0, 1, 1).build().unwrap(),
        KAryFatTree::new(4).build().unwrap(),
        leaf_spine(3, 2, 4, 1),
        leaf_spine(3, 2, 2, 3),
        FatTree320::default().build().unwrap(),
        dumbbell(3).unwrap(),
        ring(5),
        random_fabric(9, 12, &[7, 123, 5, 99, 31, 4, 871]),
    ]
}

pub(crate) fn engines(
    fabric: &Fabric,
    mode: TableMode,
    colours: u32,
) -> Vec<Box<dyn MulticastEngine + '_>> {
    let straight = Mr4lmsSettings { detours: false };
    vec![
        Box::new(Broadcast::new(fabric, mode, colours).unwrap()),
        Box::new(OpenSmLike::new(fabric, mode, 64, RootRule::LeastMean).unwrap()),
        Box::new(OpenSmLike::new(fabric, mode, 64, RootRule::LeastMax).unwrap()),
        Box::new(Mr4lms::new(fabric, mode, colours, Mr4lmsSettings::default()).unwrap()),
        Box::new(Mr4lms::new(fabric, mode, colours, straight).unwrap()),
    ]
}

/// Every group's members from a list of draws.
pub(crate) fn groups_of(fabric: &Fabric, count: u32, draws: &[u32]) -> Vec<Group> {
    let hosts = fabric.hosts();
    (0..count)
        .map(|mgid| {
            let size = 1 + draws[mgid as usize % draws.len()] as usize % hosts.len().min(9);
            let at = |i: usize| draws[(mgid as usize * 5 + i) % draws.len()] as usize * 31 + i * 17;
            let members = (0..size).map(|i| hosts[(at(i) + mgid as usize) % hosts.len()]);
            Group::new(Mgid(u64::from(mgid) * 3), members.collect())
        })
        .collect()
}

/// Sends a packet into the fabric by a host's port and counts how often each host gets it. Fails where a packet goes
/// round.
pub(crate) fn flood(
    fabric: &Fabric,
    tables: &MulticastTables,
    colour: Colour,
    from: PortId,
) -> BTreeMap<NodeId, u32> {
    let mut got = BTreeMap::new();
    let mut packets = VecDeque::from([(fabric.port(from).peer, 0)]);
    while let Some((in_port, hops)) = packets.pop_front() {
        assert!(hops <= fabric.node_count(), "a packet goes round");
        let at = fabric.port(in_port);
        if fabric.is_host(at.node) {
            *got.entry(at.node).or_default() += 1;
            continue;
        }
        let in_number = u8::try_from(at.number).unwrap();
        for number in tables.out_ports(at.node, in_number, colour).iter() {
            let out = PortId(fabric.first_port(at.node).0 + u32::from(number) - 1);
            packets.push_back((fabric.port(out).peer, hops + 1));
        }
    }
    got
}

/// Everything that holds for any engine at any time: each group in one tree, each tree a tree that joins exactly the
/// members of its groups (`all_hosts`: all hosts), no sharing, and tables that deliver once to each.
pub(crate) fn check_state(
    fabric: &Fabric,
    engine: &dyn MulticastEngine,
    links: &LinkState,
    written: &MulticastTables,
) {
    let trees = engine.trees();
    let groups: BTreeMap<Mgid, Vec<NodeId>> = engine
        .groups()
        .into_iter()
        .map(|group| (group.mgid, group.members))
        .collect();
    let cut_off: BTreeSet<(Mgid, NodeId)> = engine.cut_off().into_iter().collect();
    let mut in_trees: Vec<Mgid> = trees.iter().flat_map(|tree| tree.groups.clone()).collect();
    in_trees.sort_unstable();
    assert!(in_trees.iter().eq(groups.keys()), "each group has one tree");
    for tree in &trees {
        let mut wanted = BTreeSet::new();
        for mgid in &tree.groups {
            assert_eq!(engine.colour_of(*mgid), Some(tree.colour));
            wanted.extend(
                groups[mgid]
                    .iter()
                    .filter(|&&m| !cut_off.contains(&(*mgid, m))),
            );
        }
        let hosts: BTreeSet<NodeId> = tree.hosts(fabric).collect();
        if engine.name() == "broadcast" {
            assert!(hosts.is_superset(&wanted));
        } else {
            assert_eq!(hosts, wanted, "{} {tree:?}", engine.name());
        }
        check_is_tree(fabric, tree, links);
        for up in tree.up.iter().filter(|up| fabric.is_host(up.node)) {
            let mut wanted: BTreeMap<NodeId, u32> = hosts.iter().map(|&host| (host, 1)).collect();
            wanted.remove(&up.node);
            assert_eq!(flood(fabric, written, tree.colour, up.port), wanted);
        }
    }
    assert!(no_sharing(fabric, engine.table_mode(), &trees));
    let anew = MulticastTables::of_trees(fabric, engine.table_mode(), &trees);
    assert_eq!(*written, anew, "the writes lead to the tables of the trees");
}

pub(crate) fn check_is_tree(fabric: &Fabric, tree: &Tree, links: &LinkState) {
    assert!(
        tree.up.is_sorted_by(|a, b| a.node < b.node),
        "one way up for each node"
    );
    let up: BTreeMap<NodeId, PortId> = tree.up.iter().map(|up| (up.node, up.port)).collect();
    for link in &tree.up {
        assert_eq!(fabric.port(link.port).node, link.node);
        assert!(
            links.is_up(fabric.port(link.port).link),
            "only links that work"
        );
        let mut node = link.node;
        for _ in 0..=tree.up.len() {
            match up.get(&node) {
                Some(&port) => node = fabric.peer_node(port),
                None => break,
            }
        }
        assert_eq!(node, tree.root, "all ways up end at the root");
    }
}

pub(crate) fn no_sharing(fabric: &Fabric, mode: TableMode, trees: &[Tree]) -> bool {
    let mut seen = BTreeSet::new();
    trees.iter().all(|tree| {
        let places: BTreeSet<u32> = match mode {
            TableMode::PerPort => tree.links(fabric).map(|link| link.0).collect(),
            TableMode::PerSwitch => tree.branches(fabric).iter().map(|b| b.switch.0).collect(),
        };
        places
            .into_iter()
            .all(|place| seen.insert((tree.colour, place)))
    })
}

/// The fabric of the paper: 32,768 terminals.
pub(crate) fn paper_fabric() -> Fabric {
    let mut spec = CnTn::new(16, 32, 6, 32, 16);
    spec.cns = Some(64);
    spec.build().unwrap()
}

pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 100,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}
