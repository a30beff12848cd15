//! EFI, TFI and table entries of trees that can be counted by hand: one CN of two L0 and two L1 switches, two hosts
//! on each L0 (0 and 1 on the first, 2 and 3 on the second).

use std::sync::Arc;

use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{
    Broadcast, CMr4lms, CMr4lmsSettings, Group, Measures, Mgid, MulticastEngine, MulticastTables,
    RootChoice, TableMode,
};
use raddle_units::{LinkId, NodeId};

fn one_cn() -> Arc<Fabric> {
    Arc::new(CnTn::new(2, 2, 0, 1, 1).build().unwrap())
}

fn groups(members: &[&[u32]]) -> Vec<Group> {
    (0..)
        .map(Mgid)
        .zip(members)
        .map(|(mgid, hosts)| Group::new(mgid, hosts.iter().copied().map(NodeId).collect()))
        .collect()
}

fn settings(fault_tolerant: bool) -> CMr4lmsSettings {
    CMr4lmsSettings {
        colours: 1,
        roots: RootChoice::Fixed,
        fault_tolerant,
    }
}

fn measure(engine: &dyn MulticastEngine, fabric: &Fabric, mode: TableMode) -> Measures {
    let trees = engine.trees();
    let tables = MulticastTables::of_trees(fabric, mode, &trees);
    Measures::of(fabric, &trees, &tables)
}

#[test]
fn a_tree_has_an_entry_at_both_ends_of_each_link_but_not_at_hosts() {
    let fabric = one_cn();
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings(false)).unwrap();
    engine.route(&groups(&[&[0, 2]])).unwrap();
    let found = measure(&engine, &fabric, TableMode::PerPort);
    assert_eq!((found.groups, found.trees_left, found.merges), (1, 1, 0));
    // Two links of hosts, two to the L1.
    assert_eq!((found.used_links, found.max_efi), (4, 1));
    assert_eq!(found.efi_distribution, [(1, 4)]);
    // Two ports of each of the three switches.
    assert_eq!((found.table_entries, found.table_entries_max), (6, 1));
    assert_eq!(found.entries_distribution, [(1, 3)]);
}

#[test]
fn a_pair_is_one_tree_and_a_group_counts_once_on_its_members_links() {
    let fabric = one_cn();
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings(true)).unwrap();
    engine.route(&groups(&[&[0, 2]])).unwrap();
    assert_eq!(engine.trees().len(), 2);
    let found = measure(&engine, &fabric, TableMode::PerPort);
    assert_eq!((found.groups, found.trees_left, found.merges), (1, 1, 0));
    assert_eq!((found.max_tfi, found.mean_tfi), (1, 1.0));
    assert_eq!(found.tfi_distribution, [(1, 1)]);
    // Two links of hosts, carrying both copies, and two to each L1.
    assert_eq!(found.efi_distribution, [(1, 6)]);
    for host in [0, 2].map(NodeId) {
        let link = fabric.ports_of(host)[0].link;
        assert_eq!(found.efi_of(link), 1);
    }
    // An L0 has an entry at the host's port and at both uplinks, an L1 at both of its ports.
    assert_eq!((found.table_entries, found.table_entries_max), (10, 1));
    assert_eq!(found.entries_distribution, [(1, 4)]);
}

#[test]
fn merged_pairs_count_every_group() {
    let fabric = one_cn();
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings(true)).unwrap();
    // One colour and m / 2 = 1 pair: whoever meets shares.
    engine.route(&groups(&[&[0, 2], &[0, 3]])).unwrap();
    let found = measure(&engine, &fabric, TableMode::PerPort);
    assert_eq!((found.groups, found.trees_left, found.merges), (2, 1, 1));
    assert_eq!(found.tfi_distribution, [(2, 1)]);
    assert_eq!(found.efi_distribution, [(2, 7)]);
    assert_eq!(found.mean_efi, 2.0);
}

#[test]
fn a_member_that_only_the_second_tree_reaches_counts() {
    let fabric = one_cn();
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings(true)).unwrap();
    engine.route(&groups(&[&[0, 2]])).unwrap();
    let mut trees = engine.trees();
    let lost = trees[0].up.remove(0);
    assert!(fabric.is_host(lost.node));
    let tables = MulticastTables::of_trees(&fabric, TableMode::PerPort, &trees);
    let found = Measures::of(&fabric, &trees, &tables);
    assert_eq!(found.efi_of(fabric.port(lost.port).link), 1);
    assert_eq!(found.used_links, 6);
    // Without a first tree the second stands for the pair.
    let found = Measures::of(&fabric, &trees[1..], &tables);
    assert_eq!((found.groups, found.trees_left), (1, 1));
}

#[test]
fn a_lone_host_has_a_link_but_no_entry_at_its_port() {
    let fabric = one_cn();
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings(false)).unwrap();
    engine.route(&groups(&[&[1]])).unwrap();
    let per_port = measure(&engine, &fabric, TableMode::PerPort);
    assert_eq!((per_port.used_links, per_port.max_efi), (1, 1));
    // What comes in by that port would leave by no other.
    assert_eq!((per_port.table_entries, per_port.table_entries_max), (0, 0));
    assert_eq!(per_port.entries_distribution, []);
    // A table per switch cannot know where a packet came in.
    let per_switch = measure(&engine, &fabric, TableMode::PerSwitch);
    assert_eq!(per_switch.table_entries, 1);
    assert_eq!(per_switch.entries_distribution, [(1, 1)]);
}

#[test]
fn tables_of_one_broadcast_tree_are_counted_per_port_or_as_a_whole() {
    let fabric = one_cn();
    for (mode, entries) in [(TableMode::PerPort, 8), (TableMode::PerSwitch, 3)] {
        let mut engine = Broadcast::new(&fabric, mode, 4).unwrap();
        engine.route(&groups(&[&[0, 2], &[1, 3], &[0, 1]])).unwrap();
        let found = measure(&engine, &fabric, mode);
        assert_eq!((found.trees_left, found.merges, found.max_tfi), (1, 2, 3));
        // Four hosts and two L0 switches below the root.
        assert_eq!(found.efi_distribution, [(3, 6)], "{mode:?}");
        assert_eq!(found.table_entries, entries, "{mode:?}");
        assert_eq!(found.table_entries_max, 1, "{mode:?}");
        let unused = fabric.links().len() as u32;
        let unused = (0..unused).filter(|&link| found.efi_of(LinkId(link)) == 0);
        assert_eq!(unused.count(), 2);
    }
}

#[test]
fn nothing_measures_as_nothing() {
    let fabric = one_cn();
    let tables = MulticastTables::new(&fabric, TableMode::PerPort);
    let found = Measures::of(&fabric, &[], &tables);
    assert_eq!(
        (found.groups, found.trees_left, found.used_links),
        (0, 0, 0)
    );
    assert_eq!((found.mean_efi, found.mean_tfi), (0.0, 0.0));
    assert_eq!(found.efi_distribution, []);
}
