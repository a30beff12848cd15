//! Which root a tree has, and that its ways are shortest: opensm and broadcast.

use proptest::prelude::*;
use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{
    Broadcast, Colour, Group, Mgid, MulticastEngine, MulticastError, OpenSmLike, RootRule,
    TableMode, Tree,
};
use raddle_units::NodeId;

use crate::common::{config, groups_of, random_fabric};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn opensm_roots_have_the_least_hops_by_brute_force(
        switches in 1..9u32,
        hosts in 2..8u32,
        draws in prop::collection::vec(any::<u32>(), 5..20),
    ) {
        let fabric = random_fabric(switches, hosts, &draws);
        let hops = all_hops(&fabric);
        let groups = groups_of(&fabric, 6, &draws.iter().map(|d| d % 1000).collect::<Vec<_>>());
        // OpenSM and we count a host where its first port leads.
        let home = |host: NodeId| fabric.peer_node(fabric.first_port(host));
        for rule in [RootRule::LeastMean, RootRule::LeastMax] {
            let mut engine = OpenSmLike::new(&fabric, TableMode::PerPort, 6, rule).unwrap();
            engine.route(&groups).unwrap();
            for (group, tree) in groups.iter().zip(engine.trees()) {
                let rank = |switch: NodeId| {
                    let way = |m: &NodeId| hops[switch.index()][home(*m).index()];
                    match rule {
                        RootRule::LeastMean => group.members.iter().map(way).sum::<u32>(),
                        RootRule::LeastMax => group.members.iter().map(way).max().unwrap(),
                    }
                };
                let least = fabric.switches().iter().map(|&switch| rank(switch)).min().unwrap();
                prop_assert_eq!(rank(tree.root), least);
                check_shortest(&fabric, &tree, &hops);
            }
        }
    }

    #[test]
    fn the_broadcast_root_is_nearest_to_the_farthest_host_by_brute_force(
        switches in 1..12u32,
        hosts in 1..90u32,
        draws in prop::collection::vec(any::<u32>(), 5..20),
    ) {
        let fabric = random_fabric(switches, hosts, &draws);
        let hops = all_hops(&fabric);
        let home = |host: &NodeId| fabric.peer_node(fabric.first_port(*host)).index();
        let rank = |switch: NodeId| {
            let ways = || fabric.hosts().iter().map(|host| hops[switch.index()][home(host)]);
            (ways().max(), ways().sum::<u32>(), switch)
        };
        let mut engine = Broadcast::new(&fabric, TableMode::PerPort, 1).unwrap();
        engine.join(&Group::new(Mgid(0), vec![fabric.hosts()[0]])).unwrap();
        let tree = &engine.trees()[0];
        let best = fabric.switches().iter().map(|&switch| rank(switch)).min().unwrap();
        prop_assert_eq!(rank(tree.root), best);
        prop_assert!(tree.hosts(&fabric).eq(fabric.hosts().iter().copied()));
        check_shortest(&fabric, tree, &hops);
    }
}

/// Hops between all nodes over switches, by Floyd and Warshall.
fn all_hops(fabric: &Fabric) -> Vec<Vec<u32>> {
    let nodes = fabric.node_count();
    let mut hops = vec![vec![u32::MAX / 2; nodes]; nodes];
    for link in fabric.links() {
        let [a, b] = link.ports.map(|port| fabric.port(port).node);
        if !fabric.is_host(a) && !fabric.is_host(b) {
            hops[a.index()][b.index()] = 1;
            hops[b.index()][a.index()] = 1;
        }
    }
    for via in 0..nodes {
        for a in 0..nodes {
            for b in 0..nodes {
                hops[a][b] = hops[a][b].min(hops[a][via] + hops[via][b]);
            }
        }
    }
    for (node, row) in hops.iter_mut().enumerate() {
        row[node] = 0;
    }
    hops
}

/// Each switch of a tree is as far from the root as the fabric has it.
fn check_shortest(fabric: &Fabric, tree: &Tree, hops: &[Vec<u32>]) {
    let to_root = |node: NodeId| hops[node.index()][tree.root.index()];
    for up in tree.up.iter().filter(|up| !fabric.is_host(up.node)) {
        assert_eq!(to_root(up.node), to_root(fabric.peer_node(up.port)) + 1);
    }
}

#[test]
fn opensm_refuses_more_groups_than_entries_and_changes_nothing() {
    let fabric = CnTn::new(2, 2, 1, 2, 2).build().unwrap();
    let groups = groups_of(&fabric, 40, &[3, 8, 1, 17, 2]);
    let mut engine = OpenSmLike::new(&fabric, TableMode::PerPort, 32, RootRule::LeastMean).unwrap();
    engine.route(&groups[..32]).unwrap();
    let before = engine.trees();
    let refused = engine.route(&groups).unwrap_err();
    let expected = MulticastError::GroupsWithoutEntry {
        without: 8,
        groups: 40,
        colours: 32,
    };
    assert_eq!(refused, expected);
    assert_eq!(
        refused.to_string(),
        "there is no free entry among 32 for 8 groups of 40; use more colours or an engine that merges"
    );
    let refused = engine.join(&groups[32]).unwrap_err();
    assert!(matches!(
        refused,
        MulticastError::OutOfColours { colours: 32, .. }
    ));
    assert_eq!(engine.trees(), before);
    // An entry that is given back serves the next group.
    engine.leave(groups[5].mgid).unwrap();
    engine.join(&groups[32]).unwrap();
    assert_eq!(engine.colour_of(groups[32].mgid), Some(Colour(5)));
}
