//! The baselines (broadcast, opensm, mr4lms) against brute force: who is reached, who shares what, which root, which
//! table writes; and the credit-loop check against all routes enumerated.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{CnTn, Fabric, FabricBuilder, FatTree320, KAryFatTree, LeafSpine, dumbbell};
use raddle_routing::{
    LinkState, NextHopOrder, UnicastTables,
    groups::{Grid, Layering, RandomGroups},
    multicast::{
        Broadcast, Changes, Colour, CreditGraph, Group, Mgid, Mr4lms, Mr4lmsSettings,
        MulticastEngine, MulticastError, MulticastTables, OpenSmLike, RootRule, TableMode, Tree,
    },
};
use raddle_units::{BitRate, LinkId, NodeId, PortId, Span};

const RATE: BitRate = BitRate::from_gbps(100);
const DELAY: Span = Span::from_us(1);

/// Switches in a ring, one host on each.
fn ring(switches: u32) -> Fabric {
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

fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32, links_per_spine: u32) -> Fabric {
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
fn random_fabric(switches: u32, hosts: u32, draws: &[u32]) -> Fabric {
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

fn fabrics() -> Vec<Fabric> {
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

fn engines(fabric: &Fabric, mode: TableMode, colours: u32) -> Vec<Box<dyn MulticastEngine + '_>> {
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
fn groups_of(fabric: &Fabric, count: u32, draws: &[u32]) -> Vec<Group> {
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
fn flood(
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
fn check_state(
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

fn check_is_tree(fabric: &Fabric, tree: &Tree, links: &LinkState) {
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

fn no_sharing(fabric: &Fabric, mode: TableMode, trees: &[Tree]) -> bool {
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

#[test]
fn every_engine_reaches_exactly_the_members_on_every_fabric() {
    for fabric in fabrics() {
        let groups = groups_of(&fabric, 20, &[3, 8, 1, 17, 2, 30, 11, 6, 5, 41, 9]);
        for mode in [TableMode::PerPort, TableMode::PerSwitch] {
            for colours in [1, 3, 70] {
                for mut engine in engines(&fabric, mode, colours) {
                    let mut tables = MulticastTables::new(&fabric, mode);
                    tables.apply(&engine.route(&groups).unwrap().branches);
                    check_state(&fabric, &*engine, &LinkState::all_up(&fabric), &tables);
                    // The same groups once more: nothing changes but what depends on the order of arrival.
                    tables.apply(&engine.route(&groups).unwrap().branches);
                    check_state(&fabric, &*engine, &LinkState::all_up(&fabric), &tables);
                    tables.apply(&engine.route(&[]).unwrap().branches);
                    assert_eq!(tables, MulticastTables::new(&fabric, mode));
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Join(u32, Vec<u32>),
    Leave(u32),
    Change(u32, Vec<u32>),
    Fail(u32),
    Repair(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let members = || prop::collection::vec(any::<u32>(), 1..8);
    prop_oneof![
        4 => (0..12u32, members()).prop_map(|(mgid, members)| Step::Join(mgid, members)),
        1 => (0..12u32).prop_map(Step::Leave),
        2 => (0..12u32, members()).prop_map(|(mgid, members)| Step::Change(mgid, members)),
        2 => any::<u32>().prop_map(Step::Fail),
        1 => any::<u32>().prop_map(Step::Repair),
    ]
}

fn take(
    engine: &mut dyn MulticastEngine,
    fabric: &Fabric,
    links: &mut LinkState,
    step: &Step,
) -> Result<Changes, MulticastError> {
    let hosts = fabric.hosts();
    let group = |mgid: u32, members: &[u32]| {
        let members = members.iter().map(|&m| hosts[m as usize % hosts.len()]);
        Group::new(Mgid(mgid.into()), members.collect())
    };
    let link = |draw: u32| LinkId(draw % fabric.links().len() as u32);
    match step {
        Step::Join(mgid, members) => engine.join(&group(*mgid, members)),
        Step::Leave(mgid) => engine.leave(Mgid(u64::from(*mgid))),
        Step::Change(mgid, members) => engine.change(&group(*mgid, members)),
        Step::Fail(draw) => {
            links.set(link(*draw), false);
            engine.fail(link(*draw))
        }
        Step::Repair(draw) => {
            links.set(link(*draw), true);
            engine.repair(link(*draw))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_sequence_of_steps_keeps_tables_trees_and_groups_in_agreement(
        which in 0..10usize,
        colours in 1..5u32,
        per_switch in any::<bool>(),
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let fabric = match which {
            6 => random_fabric(7, 9, &[5, 77, 13, 2, 1000]),
            _ => fabrics().swap_remove(which),
        };
        let mode = if per_switch { TableMode::PerSwitch } else { TableMode::PerPort };
        for mut engine in engines(&fabric, mode, colours) {
            let mut tables = MulticastTables::new(&fabric, mode);
            let mut links = LinkState::all_up(&fabric);
            for step in &steps {
                let before = engine.trees();
                match take(&mut *engine, &fabric, &mut links, step) {
                    Ok(changes) => {
                        tables.apply(&changes.branches);
                        check_moved(&before, &engine.trees(), &changes);
                    }
                    Err(_) => prop_assert_eq!(&before, &engine.trees()),
                }
                check_state(&fabric, &*engine, &links, &tables);
            }
            // With all links back nobody is cut off.
            for link in 0..fabric.links().len() as u32 {
                tables.apply(&engine.repair(LinkId(link)).unwrap().branches);
            }
            prop_assert_eq!(engine.cut_off(), []);
            check_state(&fabric, &*engine, &LinkState::all_up(&fabric), &tables);
        }
    }

    #[test]
    fn mr4lms_merges_exactly_where_brute_force_finds_no_colour(
        which in 0..10usize,
        colours in 1..4u32,
        per_switch in any::<bool>(),
        count in 2..25u32,
        draws in prop::collection::vec(0..1000u32, 5..30),
    ) {
        let fabric = fabrics().swap_remove(which);
        let mode = if per_switch { TableMode::PerSwitch } else { TableMode::PerPort };
        // The first three are fat trees, on which straight trees are all tried; detours are on every fabric.
        for detours in [true, false].into_iter().filter(|detours| *detours || which < 3) {
            let mut engine = Mr4lms::new(&fabric, mode, colours, Mr4lmsSettings { detours }).unwrap();
            for group in groups_of(&fabric, count, &draws) {
                let before = engine.trees();
                let absorbed = engine.steps().absorbed;
                engine.join(&group).unwrap();
                let fits = (0..colours as u16).any(|colour| {
                    let free = free_links(&fabric, mode, &before, Colour(colour));
                    match detours {
                        true => joined(&fabric, &group.members, &free),
                        false => joined_straight(&fabric, &group.members, &free),
                    }
                });
                prop_assert_eq!(engine.steps().absorbed == absorbed, fits);
            }
        }
    }

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

/// The links on which a tree of a colour may be put.
fn free_links(fabric: &Fabric, mode: TableMode, trees: &[Tree], colour: Colour) -> Vec<bool> {
    let mut free = vec![true; fabric.links().len()];
    for tree in trees.iter().filter(|tree| tree.colour == colour) {
        match mode {
            TableMode::PerPort => tree
                .links(fabric)
                .for_each(|link| free[link.index()] = false),
            TableMode::PerSwitch => {
                for port in tree
                    .branches(fabric)
                    .iter()
                    .flat_map(|b| fabric.ports_of(b.switch))
                {
                    free[port.link.index()] = false;
                }
            }
        }
    }
    free
}

/// Whether free links join all hosts.
fn joined(fabric: &Fabric, hosts: &[NodeId], free: &[bool]) -> bool {
    let seen = reached(fabric, hosts[0], free, |_, _| true);
    // A lone host needs a free link as well.
    let attached = |host: NodeId| fabric.ports_of(host).iter().any(|p| free[p.link.index()]);
    hosts
        .iter()
        .all(|host| seen.contains(host) && attached(*host))
}

/// Whether some switch is above all hosts by free links that lead only upwards.
fn joined_straight(fabric: &Fabric, hosts: &[NodeId], free: &[bool]) -> bool {
    let above = |&host: &NodeId| {
        reached(fabric, host, free, |from, to| {
            fabric.level(from) < fabric.level(to)
        })
    };
    let sets: Vec<BTreeSet<NodeId>> = hosts.iter().map(above).collect();
    let switches = fabric.switches();
    switches
        .iter()
        .any(|switch| sets.iter().all(|set| set.contains(switch)))
}

/// What a host reaches by free links and allowed steps; other hosts do not forward.
fn reached(
    fabric: &Fabric,
    from: NodeId,
    free: &[bool],
    allowed: impl Fn(NodeId, NodeId) -> bool,
) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if fabric.is_host(node) && node != from {
            continue;
        }
        for port in fabric
            .ports_of(node)
            .iter()
            .filter(|port| free[port.link.index()])
        {
            let peer = fabric.port(port.peer).node;
            if allowed(node, peer) && seen.insert(peer) {
                open.push(peer);
            }
        }
    }
    seen
}

/// Groups that stay and use another colour or root are those reported; nobody else.
fn check_moved(before: &[Tree], after: &[Tree], changes: &Changes) {
    let places = |trees: &[Tree]| -> BTreeMap<Mgid, (Colour, NodeId)> {
        let groups = trees.iter().flat_map(|tree| {
            tree.groups
                .iter()
                .map(|&mgid| (mgid, (tree.colour, tree.root)))
        });
        groups.collect()
    };
    let (was, is) = (places(before), places(after));
    let moved = is
        .iter()
        .filter(|(mgid, place)| was.get(mgid).is_some_and(|old| old != *place));
    let moved: Vec<Mgid> = moved.map(|(&mgid, _)| mgid).collect();
    assert_eq!(changes.moved, moved);
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
        "8 of 40 groups find no free entry among 32; use more colours or an engine that merges"
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

#[test]
fn bad_calls_are_refused_and_change_nothing() {
    let fabric = CnTn::new(2, 2, 1, 2, 2).build().unwrap();
    let switch = fabric.switches()[0];
    let group = |mgid: u64, members: &[NodeId]| Group::new(Mgid(mgid), members.to_vec());
    let hosts = &fabric.hosts()[..3];
    for mut engine in engines(&fabric, TableMode::PerPort, 4) {
        engine.join(&group(1, hosts)).unwrap();
        let before = engine.trees();
        let twice = [group(2, hosts), group(2, hosts)];
        let mgid = Mgid(2);
        assert_eq!(
            engine.route(&twice),
            Err(MulticastError::DuplicateMgid { mgid })
        );
        assert_eq!(
            engine.join(&group(2, &[])),
            Err(MulticastError::EmptyGroup { mgid })
        );
        let node = switch;
        let no_host = Err(MulticastError::NotAHost { mgid, node });
        assert_eq!(engine.join(&group(2, &[switch])), no_host);
        let mgid = Mgid(1);
        assert_eq!(
            engine.join(&group(1, hosts)),
            Err(MulticastError::DuplicateMgid { mgid })
        );
        let mgid = Mgid(9);
        assert_eq!(
            engine.leave(mgid),
            Err(MulticastError::UnknownMgid { mgid })
        );
        assert_eq!(
            engine.change(&group(9, hosts)),
            Err(MulticastError::UnknownMgid { mgid })
        );
        let links = fabric.links().len();
        let link = LinkId(links as u32);
        assert_eq!(
            engine.fail(link),
            Err(MulticastError::UnknownLink { link, links })
        );
        assert_eq!(
            engine.repair(link),
            Err(MulticastError::UnknownLink { link, links })
        );
        assert_eq!(engine.trees(), before);
    }
    for colours in [0, 65_537] {
        let refused = Mr4lms::new(
            &fabric,
            TableMode::PerPort,
            colours,
            Mr4lmsSettings::default(),
        );
        let limit = 65_536;
        assert_eq!(
            refused.err(),
            Some(MulticastError::BadColours { colours, limit })
        );
    }
}

#[test]
fn mr4lms_merges_only_what_finds_no_colour() {
    // Two hosts on one switch, in each of the groups: one colour per group at each host's link.
    let fabric = dumbbell(2).unwrap();
    let members = fabric.hosts()[..2].to_vec();
    let groups: Vec<Group> = (0..5)
        .map(|i| Group::new(Mgid(i), members.clone()))
        .collect();
    let mut engine =
        Mr4lms::new(&fabric, TableMode::PerPort, 3, Mr4lmsSettings::default()).unwrap();
    engine.route(&groups).unwrap();
    let sizes = |engine: &Mr4lms| {
        let mut sizes: Vec<usize> = engine.trees().iter().map(|t| t.groups.len()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(&engine).iter().sum::<usize>(), 5);
    assert_eq!(sizes(&engine).len(), 3);
    assert_eq!(engine.steps().absorbed, 2);
    // Merged groups part when there is room again.
    let alone = engine
        .trees()
        .into_iter()
        .find(|tree| tree.groups.len() == 1)
        .unwrap();
    engine.leave(alone.groups[0]).unwrap();
    let merged = engine
        .trees()
        .into_iter()
        .find(|tree| tree.groups.len() > 1)
        .unwrap();
    engine.leave(merged.groups[0]).unwrap();
    assert_eq!(sizes(&engine), [1, 1, 1]);
}

#[test]
fn mr4lms_merges_with_the_most_alike_group() {
    // Both colours of host 0 are taken: by the group {0, 1} and by the group {0, 2, 3}.
    let fabric = leaf_spine(1, 1, 6, 1);
    let hosts = fabric.hosts();
    let group = |mgid: u64, members: &[usize]| {
        Group::new(Mgid(mgid), members.iter().map(|&m| hosts[m]).collect())
    };
    let mut engine =
        Mr4lms::new(&fabric, TableMode::PerPort, 2, Mr4lmsSettings::default()).unwrap();
    engine
        .route(&[group(0, &[0, 1]), group(1, &[0, 2, 3])])
        .unwrap();
    // Common members of unions: 1 of 4 with the first, 3 of 4 with the second.
    engine.join(&group(2, &[0, 2, 3, 4])).unwrap();
    let together: Vec<Vec<Mgid>> = engine.trees().into_iter().map(|tree| tree.groups).collect();
    assert_eq!(together, [vec![Mgid(0)], vec![Mgid(1), Mgid(2)]]);
}

#[test]
fn mr4lms_detours_where_a_colour_is_free_only_that_way() {
    let fabric = leaf_spine(4, 2, 3, 1);
    let hosts = fabric.hosts();
    let pair = |mgid: u64, a: usize, b: usize| Group::new(Mgid(mgid), vec![hosts[a], hosts[b]]);
    // Leaves 0 and 3 meet in one spine, leaves 2 and 3 in the other. From leaf 0 to leaf 2 the one colour is free only
    // by the second spine, leaf 1 and the first spine.
    let groups = [pair(0, 0, 9), pair(1, 6, 10), pair(2, 1, 7)];
    let with = |detours: bool| {
        let settings = Mr4lmsSettings { detours };
        let mut engine = Mr4lms::new(&fabric, TableMode::PerPort, 1, settings).unwrap();
        engine.route(&groups).unwrap();
        (
            engine.trees().len(),
            engine.steps().detoured,
            engine.trees()[engine.trees().len() - 1].up.len(),
        )
    };
    assert_eq!(with(true), (3, 1, 6));
    let (trees, detoured, _) = with(false);
    assert_eq!((trees, detoured), (2, 0));
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
            .map(|other| raddle_routing::multicast::UpLink {
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

/// The fabric of the paper: 32,768 terminals.
fn paper_fabric() -> Fabric {
    let mut spec = CnTn::new(16, 32, 6, 32, 16);
    spec.cns = Some(64);
    spec.build().unwrap()
}

fn grid(fabric: &Fabric, dims: &[u32], per_terminal: u32) -> Vec<Group> {
    let grid = Grid {
        dims: dims.to_vec(),
        processes_per_terminal: per_terminal,
        layering: Layering::Tight,
    };
    groups_on(fabric, &grid.groups(fabric.hosts().len() as u32).unwrap())
}

fn groups_on(fabric: &Fabric, set: &raddle_routing::groups::GroupSet) -> Vec<Group> {
    let groups = (0..).zip(&set.communicators);
    groups
        .map(|(mgid, c)| Group::new(Mgid(mgid), c.nodes(fabric.hosts()).unwrap()))
        .collect()
}

fn routed(fabric: &Fabric, groups: &[Group]) -> (usize, usize) {
    let settings = Mr4lmsSettings::default();
    let mut engine = Mr4lms::new(fabric, TableMode::PerPort, 32, settings).unwrap();
    engine.route(groups).unwrap();
    let trees = engine.trees();
    assert!(no_sharing(fabric, TableMode::PerPort, &trees));
    (
        trees.len(),
        trees.iter().map(|tree| tree.groups.len()).max().unwrap(),
    )
}

/// Claim (a) of section 4: with one process per terminal MR4LMS never merges.
#[test]
fn mr4lms_does_not_merge_a_grid_of_181_by_181_on_the_papers_fabric() {
    let fabric = paper_fabric();
    assert_eq!(routed(&fabric, &grid(&fabric, &[181, 181], 1)), (362, 1));
}

/// Claims (a), (e), (f), (g) of section 4 about MR4LMS.
#[test]
#[ignore = "scale: the paper's patterns on 32,768 terminals, about 20 s"]
fn mr4lms_merges_as_published_on_the_papers_fabric() {
    let fabric = paper_fabric();
    let once: [&[u32]; 6] = [
        &[512, 64],
        &[181, 181],
        &[100, 327],
        &[64, 32, 16],
        &[32, 32, 32],
        &[25, 50, 26],
    ];
    for dims in once {
        let groups = grid(&fabric, dims, 1);
        assert_eq!(routed(&fabric, &groups), (groups.len(), 1), "{dims:?}");
    }
    let four_times: [&[u32]; 5] = [
        &[512, 256],
        &[362, 362],
        &[200, 655],
        &[256, 32, 16],
        &[128, 32, 32],
    ];
    for dims in four_times {
        let groups = grid(&fabric, dims, 4);
        assert_eq!(routed(&fabric, &groups), (groups.len(), 1), "{dims:?}");
    }
    // Published: mean TFI 1.1, max 168.
    let groups = grid(&fabric, &[100, 50, 26], 4);
    let (trees, most) = routed(&fabric, &groups);
    let mean = groups.len() as f64 / trees as f64;
    assert!((1.0..1.2).contains(&mean), "mean TFI {mean}, max {most}");
    // Published: 32 trees left.
    let random = RandomGroups {
        count: 1000,
        seed: 1,
        processes_per_terminal: 4,
        members_per_group: None,
    };
    let groups = groups_on(&fabric, &random.groups(32_768).unwrap());
    let (trees, _) = routed(&fabric, &groups);
    assert!((32..=40).contains(&trees), "{trees} trees");
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
