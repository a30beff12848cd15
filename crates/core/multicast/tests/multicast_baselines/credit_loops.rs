//! Whether unicast routes and trees can wait for each other in a circle.

use std::collections::BTreeSet;

use proptest::prelude::*;
use raddle_fabric::{CnTn, Fabric, FatTree320, KAryFatTree};
use raddle_multicast::{
    Broadcast, Colour, CreditGraph, Group, Mgid, MulticastEngine, MulticastTables, OpenSmLike,
    RootRule, TableMode, Tree,
};
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};
use raddle_units::{LinkId, NodeId, PortId};

use crate::common::{config, engines, groups_of, paper_fabric, random_fabric, ring};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_credit_loop_is_found_exactly_where_the_routes_have_one(
        switches in 2..8u32,
        hosts in 2..8u32,
        draws in prop::collection::vec(any::<u32>(), 5..20),
        down in prop::collection::vec(any::<u32>(), 0..3),
        trees in 0..4u32,
    ) {
        let fabric = random_fabric(switches, hosts, &draws);
        let mut links = LinkState::all_up(&fabric);
        for link in down {
            links.set(LinkId(link % fabric.links().len() as u32), false);
        }
        let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
        let small: Vec<u32> = draws.iter().map(|draw| draw % 1000).collect();
        let mut engine = OpenSmLike::new(&fabric, TableMode::PerPort, 6, RootRule::LeastMean).unwrap();
        engine.route(&groups_of(&fabric, trees, &small)).unwrap();
        let trees = engine.trees();
        let mut needs = unicast_needs(&fabric, &tables);
        needs.extend(trees.iter().flat_map(|tree| tree_needs(&fabric, tree)));

        let mut by_tree = CreditGraph::new(&fabric).unwrap();
        by_tree.add_unicast(&tables);
        let mut by_table = by_tree.clone();
        trees.iter().for_each(|tree| by_tree.add_tree(tree));
        by_table.add_multicast(&MulticastTables::of_trees(&fabric, TableMode::PerPort, &trees));
        let found = by_tree.find_loop();
        prop_assert_eq!(&found, &by_table.find_loop());
        prop_assert_eq!(found.is_some(), has_cycle(&needs));
        if let Some(found) = found {
            for (at, &channel) in found.channels.iter().enumerate() {
                let next = found.channels[(at + 1) % found.channels.len()];
                prop_assert!(needs.contains(&(channel, next)), "{}", found.describe(&fabric));
            }
        }
    }
}

/// Consecutive channels between switches of every route between two hosts, by walking each of them.
fn unicast_needs(fabric: &Fabric, tables: &UnicastTables) -> BTreeSet<(PortId, PortId)> {
    let mut needs = BTreeSet::new();
    let between = |port: PortId| {
        !fabric.is_host(fabric.port(port).node) && !fabric.is_host(fabric.peer_node(port))
    };
    for &src in fabric.hosts() {
        for &dst in fabric.hosts() {
            let mut ways: Vec<PortId> = tables.next_hops(src, dst).to_vec();
            let mut seen = BTreeSet::new();
            while let Some(port) = ways.pop() {
                if !seen.insert(port) {
                    continue;
                }
                for &next in tables.next_hops(fabric.peer_node(port), dst) {
                    if between(port) && between(next) {
                        needs.insert((port, next));
                    }
                    ways.push(next);
                }
            }
        }
    }
    needs
}

/// Consecutive channels between switches of every way between two members of a tree.
fn tree_needs(fabric: &Fabric, tree: &Tree) -> BTreeSet<(PortId, PortId)> {
    let between = |port: PortId| {
        !fabric.is_host(fabric.port(port).node) && !fabric.is_host(fabric.peer_node(port))
    };
    let ports = tree
        .up
        .iter()
        .flat_map(|up| [up.port, fabric.port(up.port).peer]);
    let ports: Vec<PortId> = ports.filter(|&port| between(port)).collect();
    let pairs = ports
        .iter()
        .flat_map(|&a| ports.iter().map(move |&b| (a, b)));
    pairs
        .filter(|&(a, b)| fabric.peer_node(a) == fabric.port(b).node && fabric.port(a).peer != b)
        .collect()
}

/// Whether a relation has a cycle: takes out what has no successor until nothing is left, or nothing goes.
fn has_cycle(needs: &BTreeSet<(PortId, PortId)>) -> bool {
    let mut needs = needs.clone();
    loop {
        let starts: BTreeSet<PortId> = needs.iter().map(|need| need.0).collect();
        let left: BTreeSet<_> = needs
            .iter()
            .filter(|n| starts.contains(&n.1))
            .copied()
            .collect();
        if left.len() == needs.len() {
            return !left.is_empty();
        }
        needs = left;
    }
}

#[test]
fn a_ring_has_a_credit_loop_and_a_fat_tree_has_none() {
    let looped = |fabric: &Fabric| {
        let links = LinkState::all_up(fabric);
        let tables = UnicastTables::compute(fabric, &links, NextHopOrder::ByPort).unwrap();
        let mut graph = CreditGraph::new(fabric).unwrap();
        graph.add_unicast(&tables);
        graph.find_loop().map(|found| found.describe(fabric))
    };
    // Switches of a ring of n are 5 to 2n-1; a triangle has no route over two of its links.
    assert_eq!(looped(&ring(3)), None);
    let found = looped(&ring(5)).unwrap();
    let forth = "s5 -> s6 -> s7 -> s8 -> s9 -> s5"
        .split(" -> ")
        .collect::<Vec<_>>();
    let names: Vec<&str> = found.split(" -> ").collect();
    assert_eq!(names.len(), 6);
    assert_eq!(names[0], names[5]);
    assert_eq!(
        names.iter().collect::<BTreeSet<_>>(),
        forth.iter().collect()
    );
    for fabric in [
        CnTn::new(3, 4, 2, 2, 2).build().unwrap(),
        KAryFatTree::new(4).build().unwrap(),
        FatTree320::default().build().unwrap(),
    ] {
        assert_eq!(looped(&fabric), None, "{}", fabric.name());
    }
}

#[test]
fn trees_that_turn_round_a_triangle_close_a_credit_loop() {
    let fabric = ring(3);
    let switch = |i: usize| fabric.switches()[i];
    let port = |a: NodeId, b: NodeId| {
        let first = fabric.first_port(a).0;
        let port = (first..)
            .map(PortId)
            .find(|&port| fabric.peer_node(port) == b);
        port.unwrap()
    };
    // A tree with its root in switch i joins the other two: a way of two links through switch i.
    let tree = |i: usize| Tree {
        colour: Colour(i as u16),
        copy: 0,
        root: switch(i),
        groups: vec![Mgid(i as u64)],
        up: [(i + 1) % 3, (i + 2) % 3]
            .map(|other| raddle_multicast::UpLink {
                node: switch(other),
                port: port(switch(other), switch(i)),
            })
            .to_vec(),
    };
    let mut graph = CreditGraph::new(&fabric).unwrap();
    graph.add_tree(&tree(0));
    graph.add_tree(&tree(1));
    assert_eq!(graph.find_loop(), None);
    graph.add_tree(&tree(2));
    assert_eq!(graph.find_loop().unwrap().channels.len(), 3);
}

#[test]
fn baselines_without_detours_close_no_credit_loop_on_a_fat_tree() {
    let fabric = CnTn::new(2, 3, 2, 2, 2).build().unwrap();
    let links = LinkState::all_up(&fabric);
    let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
    let groups = groups_of(&fabric, 40, &[3, 8, 1, 17, 2, 30, 11, 6, 5, 41, 9]);
    let mut engines = engines(&fabric, TableMode::PerPort, 2);
    let detours = engines.remove(3);
    assert_eq!(detours.name(), "mr4lms");
    for mut engine in engines {
        engine.route(&groups).unwrap();
        let mut graph = CreditGraph::new(&fabric).unwrap();
        graph.add_unicast(&tables);
        engine.trees().iter().for_each(|tree| graph.add_tree(tree));
        let found = graph.find_loop().map(|found| found.describe(&fabric));
        assert_eq!(found, None, "{}", engine.name());
    }
}

#[test]
#[ignore = "scale: unicast tables of 32,768 terminals"]
fn the_papers_fabric_has_no_credit_loop() {
    let fabric = paper_fabric();
    let links = LinkState::all_up(&fabric);
    let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
    let mut graph = CreditGraph::new(&fabric).unwrap();
    graph.add_unicast(&tables);
    let mut engine = Broadcast::new(&fabric, TableMode::PerPort, 1).unwrap();
    engine
        .join(&Group::new(Mgid(0), fabric.hosts().to_vec()))
        .unwrap();
    engine.trees().iter().for_each(|tree| graph.add_tree(tree));
    assert_eq!(graph.find_loop(), None);
}
