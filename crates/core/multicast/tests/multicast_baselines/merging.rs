//! Which groups mr4lms merges, and when it takes detours.

use std::collections::BTreeSet;

use proptest::prelude::*;
use raddle_fabric::{Fabric, dumbbell};
use raddle_multicast::{
    Colour, Group, Mgid, Mr4lms, Mr4lmsSettings, MulticastEngine, TableMode, Tree,
    groups::{Grid, Layering, RandomGroups},
};
use raddle_units::NodeId;

use crate::common::{config, fabrics, groups_of, leaf_spine, no_sharing, paper_fabric};

proptest! {
    #![proptest_config(config())]

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

fn grid(fabric: &Fabric, dims: &[u32], per_terminal: u32) -> Vec<Group> {
    let grid = Grid {
        dims: dims.to_vec(),
        processes_per_terminal: per_terminal,
        layering: Layering::Tight,
    };
    groups_on(fabric, &grid.groups(fabric.hosts().len() as u32).unwrap())
}

fn groups_on(fabric: &Fabric, set: &raddle_multicast::groups::GroupSet) -> Vec<Group> {
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
