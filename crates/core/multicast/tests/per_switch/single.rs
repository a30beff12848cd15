//! Trees and MLIDs for tables per switch: disjoint, as few as can be, still where nothing happens.

use std::collections::BTreeSet;

use proptest::prelude::*;
use raddle_fabric::CnTnMap;
use raddle_multicast::{Change, Colour, Growth, Mgid, PerSwitch, PerSwitchError};
use raddle_unicast::LinkState;
use raddle_units::{LinkId, NodeId};

use crate::common::{Tables, check, engine, fabric, group, members, shape};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Joins, leaves, links that fail and return, with many and with few MLIDs.
    #[test]
    fn every_member_gets_every_packet_once(
        (m, q, p, k, w) in shape(),
        mlids in prop::sample::select(vec![1u32, 2, 5, 70]),
        keep in any::<bool>(),
        steps in prop::collection::vec((0..6u8, 0..12u64, group()), 1..30),
    ) {
        let fabric = fabric(m, q, p, k, w);
        let growth = if keep { Growth::Keep } else { Growth::Move };
        let mut engine = engine(&fabric, mlids, growth);
        let mut tables = Tables::default();
        for (what, mgid, picks) in steps {
            let mgid = Mgid(mgid);
            let change = match what {
                0 | 1 => engine.set(mgid, &members(&fabric, &picks), None, false).unwrap(),
                2 => engine.join(mgid, members(&fabric, &picks)[0]).unwrap(),
                3 => engine.leave(mgid, members(&fabric, &picks)[0]),
                4 => engine.recolour(),
                _ => {
                    let mut links = engine.links().clone();
                    let link = LinkId((picks[0] % fabric.links().len()) as u32);
                    links.set(link, !links.is_up(link));
                    engine.set_links(links).unwrap()
                }
            };
            tables.apply(change);
            check(&engine, &tables);
        }
    }

    /// On one spanning tree the conflicts are those of subtrees: as many MLIDs as groups on the busiest switch, no more.
    #[test]
    fn one_tree_takes_as_many_mlids_as_groups_on_its_busiest_switch(
        (m, q, k, w) in (1..4u32, 1..4u32, 1..4u32, 1..3u32),
        groups in prop::collection::vec(group(), 1..40),
    ) {
        let fabric = fabric(m, q, 1, k, w);
        let mut engine = engine(&fabric, 64, Growth::Move);
        for (number, picks) in groups.iter().enumerate() {
            // MGIDs of one TN: equation (3) with p = 1 and equal remainders modulo m.
            engine.set(Mgid(number as u64 * u64::from(m)), &members(&fabric, picks), None, false).unwrap();
        }
        engine.recolour();
        let measures = engine.measures();
        prop_assert_eq!(measures.mlids, measures.most_groups_on_a_switch);
        prop_assert_eq!(measures.merged_groups, 0);
    }

    /// What is not asked to change does not: other groups keep MLIDs, and while there is room also their entries.
    #[test]
    fn nothing_else_moves(
        (m, q, p, k, w) in shape(),
        groups in prop::collection::vec(group(), 2..20),
        late in group(),
        cut in 0..10_000usize,
    ) {
        let fabric = fabric(m, q, p, k, w);
        let mut engine = engine(&fabric, 70, Growth::Move);
        for (number, picks) in groups.iter().enumerate() {
            engine.set(Mgid(number as u64), &members(&fabric, picks), None, false).unwrap();
        }
        let before = engine.clone();
        let late_group = Mgid(1000);
        engine.set(late_group, &members(&fabric, &late), None, false).unwrap();
        for mgid in before.groups() {
            prop_assert_eq!(before.colour(mgid), engine.colour(mgid));
            prop_assert!(before.tree(mgid).eq(engine.tree(mgid)));
        }
        engine.remove(late_group);
        prop_assert!(before.entries().eq(engine.entries()));

        let link = LinkId((cut % fabric.links().len()) as u32);
        let ends = fabric.link(link).ports;
        let mut links = engine.links().clone();
        links.set(link, false);
        engine.set_links(links.clone()).unwrap();
        for mgid in before.groups() {
            let used = before.tree(mgid).any(|(_, ports)| ports.iter().any(|port| ends.contains(port)));
            if !used {
                prop_assert_eq!(before.colour(mgid), engine.colour(mgid));
                prop_assert!(before.tree(mgid).eq(engine.tree(mgid)));
            }
        }
        // The same once more: nothing.
        prop_assert_eq!(engine.set_links(links.clone()).unwrap(), Change::default());
        links.set(link, true);
        engine.set_links(links).unwrap();
        for mgid in before.groups() {
            prop_assert!(before.tree(mgid).eq(engine.tree(mgid)), "the tree has not returned");
        }
    }
}

/// Colouring by exhaustive search is no better than the greedy one, on one tree.
#[test]
fn no_search_finds_fewer_mlids() {
    fn colourable(conflicts: &[Vec<bool>], colours: usize, given: &mut Vec<usize>) -> bool {
        let group = given.len();
        if group == conflicts.len() {
            return true;
        }
        for colour in 0..colours {
            if (0..group).all(|other| !conflicts[group][other] || given[other] != colour) {
                given.push(colour);
                if colourable(conflicts, colours, given) {
                    return true;
                }
                given.pop();
            }
        }
        false
    }
    let fabric = fabric(2, 2, 1, 2, 2);
    let hosts = fabric.hosts();
    let mut state = 1u64;
    for _ in 0..200 {
        let mut engine = engine(&fabric, 64, Growth::Move);
        for mgid in 0..7u64 {
            let picks: Vec<NodeId> = (0..3)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    hosts[(state >> 33) as usize % hosts.len()]
                })
                .collect();
            engine.set(Mgid(mgid * 2), &picks, None, false).unwrap();
        }
        engine.recolour();
        let trees: Vec<BTreeSet<NodeId>> = engine
            .groups()
            .map(|mgid| engine.tree(mgid).map(|(switch, _)| switch).collect())
            .collect();
        let conflicts: Vec<Vec<bool>> = trees
            .iter()
            .map(|a| trees.iter().map(|b| !a.is_disjoint(b)).collect())
            .collect();
        let used = engine.measures().mlids;
        assert!(used == 1 || !colourable(&conflicts, used - 1, &mut Vec::new()));
    }
}

#[test]
fn a_full_table_merges_where_it_costs_least() {
    // 3 L0 switches of 3 hosts below one L1: two MLIDs, a third group must share.
    let fabric = fabric(3, 3, 0, 1, 1);
    let hosts = fabric.hosts().to_vec();
    let mut engine = engine(&fabric, 2, Growth::Move);
    let mut set = |number: u64, members: &[usize]| {
        let members: Vec<NodeId> = members.iter().map(|&host| hosts[host]).collect();
        engine.set(Mgid(number), &members, None, false).unwrap();
        engine.colour(Mgid(number)).unwrap()
    };
    let first = set(0, &[0, 1, 3, 4]);
    let second = set(3, &[0, 3]);
    // with {0, 3}: 1 foreign delivery; with {0, 1, 3, 4}: 1 + 0 for {0, 3, 4} is 1 as well, the lower MLID wins
    let third = set(6, &[0, 3, 6]);
    assert_ne!(first, second);
    assert_eq!(
        third, second,
        "{{0, 3}} and {{0, 3, 6}}: 1 foreign; {{0, 1, 3, 4, 6}}: 3"
    );
    assert_eq!(engine.measures().foreign_deliveries, 1);
    engine.remove(Mgid(0));
    assert_eq!(
        engine.sharing(Mgid(6)).len(),
        2,
        "groups in place do not move"
    );
    engine.recolour();
    assert_eq!(engine.measures().foreign_deliveries, 0);
}

#[test]
fn bad_requests_are_refused() {
    let fabric = fabric(2, 2, 1, 1, 2);
    let map = CnTnMap::recognise(&fabric).unwrap();
    let links = LinkState::all_up(&fabric);
    for mlids in [0, 16_384] {
        let made = PerSwitch::new(
            fabric.clone(),
            map.clone(),
            links.clone(),
            mlids,
            Growth::Move,
        );
        assert!(matches!(made, Err(PerSwitchError::Mlids { .. })));
    }
    let mut engine = engine(&fabric, 4, Growth::Move);
    let nobody = NodeId(fabric.node_count() as u32);
    assert!(engine.set(Mgid(1), &[nobody], None, false).is_err());
    assert!(
        engine
            .set(Mgid(1), &[NodeId(0)], Some(Colour(4)), false)
            .is_err()
    );
    assert_eq!(engine.groups().count(), 0);
    let other = LinkState::all_up(&crate::common::fabric(1, 1, 0, 1, 1));
    assert!(engine.set_links(other).is_err());
}
