//! Fault-tolerant pairs: two copies for every member, and one still when a link is cut.

use std::collections::BTreeSet;

use proptest::prelude::*;
use raddle_fabric::{CnTnMap, Fabric, Role};
use raddle_multicast::{
    Growth, Mgid, PerSwitch, PerSwitchError,
    mgid::{Copy, MgidError, SpanningTrees},
};
use raddle_unicast::LinkState;
use raddle_units::{LinkId, NodeId};

use crate::common::{Tables, check, engine, fabric, group, members};

fn with_pairs(fabric: &Fabric, mlids: u32, growth: Growth) -> PerSwitch {
    engine(fabric, mlids, growth).with_pairs().unwrap()
}

fn pair(number: u64) -> [Mgid; 2] {
    let first = Mgid(Mgid::PAIR | number);
    [first, first.companion().unwrap()]
}

fn between_switches(fabric: &Fabric) -> impl Iterator<Item = LinkId> + '_ {
    let all = (0..fabric.links().len() as u32).map(LinkId);
    all.filter(|&link| {
        let ends = fabric.link(link).ports;
        ends.iter()
            .all(|&port| !fabric.is_host(fabric.port(port).node))
    })
}

/// The links between switches that a group's tree uses.
fn links_of(engine: &PerSwitch, mgid: Mgid) -> BTreeSet<LinkId> {
    let fabric = engine.fabric();
    let inner: BTreeSet<LinkId> = between_switches(fabric).collect();
    engine
        .tree(mgid)
        .flat_map(|(_, ports)| ports)
        .map(|&port| fabric.port(port).link)
        .filter(|link| inner.contains(link))
        .collect()
}

/// How many copies each other member gets when a member sends to both groups of a pair: (fewest, most).
fn copies(
    engine: &PerSwitch,
    tables: &Tables,
    links: &LinkState,
    groups: [Mgid; 2],
) -> (usize, usize) {
    let (mut fewest, mut most) = (usize::MAX, 0);
    let all: Vec<NodeId> = engine.members(groups[0]).collect();
    for &source in &all {
        let mut got = Vec::new();
        for mgid in groups {
            let colour = engine.colour(mgid).unwrap();
            got.extend(
                tables
                    .flood(engine.fabric(), links, colour, source)
                    .expect("no loop"),
            );
        }
        for member in all.iter().filter(|&&member| member != source) {
            let count = got.iter().filter(|host| *host == member).count();
            (fewest, most) = (fewest.min(count), most.max(count));
        }
    }
    (fewest, most)
}

fn set(engine: &mut PerSwitch, tables: &mut Tables, mgid: Mgid, members: &[NodeId]) {
    tables.apply(engine.set(mgid, members, None, false).unwrap());
}

/// A pair of all hosts: equation (4) names the two trees, each has a link up from every L0 switch, every CN and every L2
/// switch. No other cut costs a copy than one of these, and none costs two.
#[test]
fn a_pair_of_all_hosts_by_closed_form() {
    for (m, q, p, k, w) in [
        (2, 3, 2, 2, 2),
        (4, 2, 1, 3, 2),
        (3, 3, 2, 1, 2),
        (2, 4, 0, 1, 1),
        (5, 2, 3, 2, 2),
    ] {
        let fabric = fabric(m, q, p, k, w);
        let map = CnTnMap::recognise(&fabric).unwrap();
        let cns = map.shape().cns;
        let per_tree = q * cns + if p > 0 { cns } else { 0 } + if k > 1 { k } else { 0 };
        let (mlids, number) = (10, 13);
        let mut engine = with_pairs(&fabric, mlids, Growth::Move);
        let mut tables = Tables::default();
        let groups = pair(number);
        for mgid in groups {
            set(&mut engine, &mut tables, mgid, fabric.hosts());
        }
        let trees = SpanningTrees::new(mlids, m, p, true).unwrap();
        let places = [
            trees.first(Mgid(number)),
            trees.second(Mgid(number)).unwrap(),
        ];
        for (mgid, place) in groups.into_iter().zip(places) {
            for (node, _) in engine.tree(mgid) {
                match map.role(node) {
                    Role::L1 { g, .. } => assert_eq!(g, place.group),
                    Role::L2 { tn, .. } | Role::L3 { tn, .. } => assert_eq!(tn, place.tn),
                    Role::L0 { .. } | Role::Host { .. } => {}
                }
            }
            assert_eq!(
                links_of(&engine, mgid).len() as u32,
                per_tree,
                "{m} {q} {p} {k} {w}"
            );
        }
        let all_up = LinkState::all_up(&fabric);
        assert_eq!(copies(&engine, &tables, &all_up, groups), (2, 2));
        let mut costly = 0;
        for link in between_switches(&fabric) {
            let mut cut = all_up.clone();
            cut.set(link, false);
            let (fewest, most) = copies(&engine, &tables, &cut, groups);
            assert!(fewest >= 1 && most <= 2);
            costly += u32::from(fewest == 1);
        }
        assert_eq!(costly, 2 * per_tree, "{m} {q} {p} {k} {w}");
        let measures = engine.measures();
        assert_eq!((measures.pairs, measures.pairs_on_a_common_link), (1, 0));
        assert_eq!(engine.colour(groups[0]).unwrap().0 % 2, 0);
        assert_eq!(engine.colour(groups[1]).unwrap().0 % 2, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Pairs among ordinary groups, with few and with many MLIDs, while links fail and return: every packet once in each
    /// group, and no pair on a common link while no more than one link is down and both halves have two tree groups.
    #[test]
    fn pairs_stay_apart(
        (m, q, p, k, w) in (2..6u32, 1..3u32, 1..3u32, 1..3u32, 1..3u32),
        mlids in prop::sample::select(vec![2u32, 3, 5, 70]),
        keep in any::<bool>(),
        steps in prop::collection::vec((0..6u8, 0..12u64, group()), 1..25),
    ) {
        let fabric = fabric(m, q, p, k, w);
        let growth = if keep { Growth::Keep } else { Growth::Move };
        let mut engine = with_pairs(&fabric, mlids, growth);
        let mut tables = Tables::default();
        for (what, number, picks) in steps {
            let mgid = match number % 3 {
                0 => Mgid(number),
                copy => pair(number / 3)[copy as usize - 1],
            };
            let hosts = members(&fabric, &picks);
            let change = match what {
                0 | 1 => engine.set(mgid, &hosts, None, false).unwrap(),
                2 => engine.join(mgid, hosts[0]).unwrap(),
                3 => engine.leave(mgid, hosts[0]),
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
            for mgid in engine.groups() {
                let parity = engine.colour(mgid).unwrap().0 % 2;
                prop_assert!(mgid.copy().is_none_or(|copy| parity == u16::from(copy == Copy::Second)));
            }
            let down = between_switches(&fabric).filter(|&link| !engine.links().is_up(link)).count();
            if down == 0 || (down == 1 && m >= 4) {
                prop_assert_eq!(engine.measures().pairs_on_a_common_link, 0);
            }
        }
    }

    /// Any one link is cut: every member has a copy before anything is routed anew, and both afterwards.
    #[test]
    fn any_one_cut_leaves_a_copy(
        (m, q, p, k, w) in (2..6u32, 1..4u32, 1..3u32, 1..3u32, 1..3u32),
        picks in prop::collection::vec(0..10_000usize, 2..7),
        number in 0..1_000u64,
    ) {
        let fabric = fabric(m, q, p, k, w);
        let mut engine = with_pairs(&fabric, 70, Growth::Move);
        let mut tables = Tables::default();
        let groups = pair(number);
        let hosts = members(&fabric, &picks);
        for mgid in groups {
            set(&mut engine, &mut tables, mgid, &hosts);
        }
        prop_assume!(engine.members(groups[0]).count() > 1);
        let all_up = engine.links().clone();
        prop_assert_eq!(copies(&engine, &tables, &all_up, groups), (2, 2));
        let used: Vec<BTreeSet<LinkId>> = groups.iter().map(|&mgid| links_of(&engine, mgid)).collect();
        prop_assert!(used[0].is_disjoint(&used[1]));
        for link in between_switches(&fabric) {
            let mut cut = all_up.clone();
            cut.set(link, false);
            let carried = used.iter().any(|links| links.contains(&link));
            let expected = if carried { (1, 2) } else { (2, 2) };
            let (fewest, most) = copies(&engine, &tables, &cut, groups);
            prop_assert_eq!(fewest, expected.0);
            prop_assert!(most <= expected.1);

            let (mut engine, mut tables) = (engine.clone(), Tables(tables.0.clone()));
            tables.apply(engine.set_links(cut.clone()).unwrap());
            prop_assert_eq!(copies(&engine, &tables, &cut, groups), (2, 2));
        }
    }
}

/// Two L1 switches, and an L0 switch that has lost its link to one: no two ways lead there. The second copy shares that
/// one link, and one more by which it leaves the other tree; all other members keep two ways.
#[test]
fn where_no_second_way_is_left_little_is_shared() {
    let fabric = fabric(2, 4, 0, 1, 1);
    let map = CnTnMap::recognise(&fabric).unwrap();
    let mut engine = with_pairs(&fabric, 8, Growth::Move);
    let mut tables = Tables::default();
    let groups = pair(0);
    for mgid in groups {
        set(&mut engine, &mut tables, mgid, fabric.hosts());
    }
    let l0 = fabric.port(fabric.ports_of(fabric.hosts()[0])[0].peer).node;
    let cut = map.port_between(l0, map.l1(0, 1).unwrap()).unwrap();
    let mut links = engine.links().clone();
    links.set(fabric.port(cut).link, false);
    tables.apply(engine.set_links(links.clone()).unwrap());
    assert_eq!(copies(&engine, &tables, &links, groups), (2, 2));
    let common: Vec<LinkId> = links_of(&engine, groups[0])
        .intersection(&links_of(&engine, groups[1]))
        .copied()
        .collect();
    assert_eq!(common.len(), 2);
    assert_eq!(engine.measures().pairs_on_a_common_link, 1);
    links.set(fabric.port(cut).link, true);
    engine.set_links(links).unwrap();
    assert_eq!(engine.measures().pairs_on_a_common_link, 0);
}

#[test]
fn without_a_second_tree_or_mlid_pairs_are_refused() {
    let one_tree = engine(&fabric(1, 2, 1, 1, 2), 8, Growth::Move).with_pairs();
    assert_eq!(
        one_tree.err(),
        Some(PerSwitchError::Trees(MgidError::NoPairs))
    );
    let one_mlid = engine(&fabric(2, 2, 1, 1, 2), 1, Growth::Move).with_pairs();
    assert_eq!(one_mlid.err(), Some(PerSwitchError::OneMlid));
}
