//! C-MR4LMS on maps in which links are missing from the start: what is found in a real subnet.

use std::{collections::BTreeSet, sync::Arc};

use proptest::{prelude::*, sample::Index};
use raddle_fabric::{CnTn, CnTnMap, Fabric, FabricBuilder};
use raddle_multicast::{
    CMr4lms, CMr4lmsSettings, Flood, Group, Mgid, MulticastEngine, MulticastTables, RootChoice,
    Senders,
};
use raddle_units::{LinkId, NodeId};

/// A fat tree, and links between switches that are missing.
#[derive(Clone, Debug)]
struct Case {
    whole: Arc<Fabric>,
    missing: BTreeSet<LinkId>,
    groups: Vec<Group>,
    settings: CMr4lmsSettings,
}

/// The same nodes with the same numbers, without some links; `None` where that leaves a map in several parts.
fn without(fabric: &Fabric, missing: &BTreeSet<LinkId>) -> Option<Arc<Fabric>> {
    let mut builder = FabricBuilder::new("degraded");
    let mut nodes: Vec<NodeId> = [fabric.hosts(), fabric.switches()].concat();
    nodes.sort_unstable();
    for node in nodes {
        let same = if fabric.is_host(node) {
            builder.host()
        } else {
            builder.switch(fabric.level(node))
        };
        assert_eq!(same, node);
    }
    for (number, link) in (0..).zip(fabric.links()) {
        if !missing.contains(&LinkId(number)) {
            let [a, b] = link.ports.map(|port| fabric.port(port).node);
            builder.connect(a, b, link.rate, link.delay);
        }
    }
    builder.finish().ok().map(Arc::new)
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = (3..5u32, 3..5u32, 1..3u32, 2..4u32, 2..4u32, 1..3u32);
    let groups = prop::collection::vec(prop::collection::vec(any::<Index>(), 2..7), 1..12);
    let settings = (1..5u32, any::<bool>(), any::<bool>());
    let missing = prop::collection::vec(any::<Index>(), 1..4);
    (shape, groups, settings, missing).prop_map(|(shape, groups, settings, missing)| {
        let (m, q, p, k, w, t) = shape;
        let mut spec = CnTn::new(m, q, p, k, w);
        spec.terminals_per_l0 = Some(t);
        let whole = spec.build().expect("a fabric");
        let between: Vec<LinkId> = (0..)
            .zip(whole.links())
            .filter(|(_, link)| {
                link.ports
                    .iter()
                    .all(|&port| !whole.is_host(whole.port(port).node))
            })
            .map(|(number, _)| LinkId(number))
            .collect();
        let groups = (0..)
            .zip(groups)
            .map(|(mgid, members)| {
                let hosts = members.iter().map(|index| *index.get(whole.hosts()));
                Group::new(Mgid(mgid), hosts.collect())
            })
            .collect();
        let (colours, dynamic, fault_tolerant) = settings;
        Case {
            missing: missing.iter().map(|index| *index.get(&between)).collect(),
            whole: Arc::new(whole),
            groups,
            settings: CMr4lmsSettings {
                colours,
                roots: if dynamic {
                    RootChoice::Dynamic
                } else {
                    RootChoice::Fixed
                },
                fault_tolerant,
            },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(500), failure_persistence: None, ..ProptestConfig::default() })]

    /// Trees of a degraded map reach all members but those that are named as cut off, loop nowhere and send into no link
    /// that is not there; with as many trees as there are L1 switches, one missing link cuts nobody off.
    #[test]
    fn trees_of_a_degraded_map_reach_all_who_are_not_cut_off(case in cases()) {
        let Some(degraded) = without(&case.whole, &case.missing) else {
            return Ok(());
        };
        prop_assert!(CnTnMap::recognise(&degraded).is_ok(), "{:?}", CnTnMap::recognise(&degraded).err());
        let mut engine = CMr4lms::new(Arc::clone(&degraded), case.settings).expect("an engine");
        let mut tables = MulticastTables::new(&degraded, engine.table_mode());
        tables.apply(&engine.route(&case.groups).expect("routes").branches);

        let cut_off: BTreeSet<(Mgid, NodeId)> = engine.cut_off().into_iter().collect();
        if case.missing.len() == 1 {
            prop_assert!(cut_off.is_empty(), "{cut_off:?}");
        }
        let mut flood = Flood::new(&degraded, &tables, None);
        for group in &case.groups {
            let reached = group.members.iter().copied();
            let reached = reached.filter(|&host| !cut_off.contains(&(group.mgid, host)));
            let rest = Group::new(group.mgid, reached.collect());
            let colour = engine.colour_of(group.mgid).expect("a colour");
            let report = flood.group(&rest, colour, Senders::All);
            prop_assert_eq!((report.looping, report.lost), (0, 0));
            if case.settings.fault_tolerant {
                // A member may be on one tree of the pair only; the colour is that of both.
                prop_assert!(report.missing == 0 || !cut_off.is_empty());
            } else {
                prop_assert_eq!((report.missing, report.duplicate), (0, 0));
            }
        }
    }
}
