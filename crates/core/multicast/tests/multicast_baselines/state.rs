//! Who is reached and which table writes lead there, whatever was asked in which order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{
    Changes, Colour, Group, Mgid, Mr4lms, Mr4lmsSettings, MulticastEngine, MulticastError,
    MulticastTables, TableMode, Tree,
};
use raddle_unicast::LinkState;
use raddle_units::{LinkId, NodeId};

use crate::common::{check_state, config, engines, fabrics, groups_of, random_fabric};

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
    #![proptest_config(config())]

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
