//! C-MR4LMS against its equations, theorems and brute force.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::prelude::*;
use raddle_fabric::{CnTn, CnTnMap, Fabric};
use raddle_multicast::{
    CMr4lms, CMr4lmsSettings, Colour, Flood, FloodReport, Group, Measures, Mgid, MulticastEngine,
    MulticastError, MulticastTables, RootChoice, Senders, TableMode, Tree,
};
use raddle_unicast::LinkState;
use raddle_units::{LinkId, NodeId};

const FIXED: CMr4lmsSettings = CMr4lmsSettings {
    colours: 2,
    roots: RootChoice::Fixed,
    fault_tolerant: false,
};

fn fat_tree(m: u32, q: u32, p: u32, k: u32, w: u32, t: u32, cns: Option<u32>) -> Arc<Fabric> {
    let mut spec = CnTn::new(m, q, p, k, w);
    spec.terminals_per_l0 = Some(t);
    spec.cns = cns;
    Arc::new(spec.build().expect("a fabric"))
}

fn engine(fabric: &Arc<Fabric>, settings: CMr4lmsSettings) -> CMr4lms {
    CMr4lms::new(Arc::clone(fabric), settings).expect("an engine")
}

fn group(mgid: u64, hosts: &[u32]) -> Group {
    Group::new(Mgid(mgid), hosts.iter().copied().map(NodeId).collect())
}

fn links_of(fabric: &Fabric, tree: &Tree) -> BTreeSet<LinkId> {
    tree.links(fabric).collect()
}

/// Equations (1) to (3) as printed: the colour and the TN of every MGID of two periods.
#[test]
fn an_mgid_names_its_colour_and_tree_by_equation_3() {
    for (m, p, c) in
        (1..=5).flat_map(|m| (0..=3).flat_map(move |p| (1..=4).map(move |c| (m, p, c))))
    {
        let fabric = fat_tree(m, 2, p, 1, 1, 1, None);
        let settings = CMr4lmsSettings {
            colours: c,
            ..FIXED
        };
        let engine = engine(&fabric, settings);
        assert_eq!(engine.spanning_trees(), (c * m) as usize);
        let mut seen = BTreeSet::new();
        for mgid in 0..u64::from(2 * c * m) {
            let name = engine.own_spanning_tree(Mgid(mgid));
            let colour = (mgid / u64::from(m)) % u64::from(c);
            assert_eq!(u64::from(name.colour.0), colour);
            assert_eq!(u64::from(name.l1), mgid % u64::from(m));
            let tn = (p > 0)
                .then(|| (mgid % u64::from(m)) * u64::from(p) + colour % u64::from(p.max(1)));
            assert_eq!(name.tn.map(u64::from), tn);
            assert_eq!(name.second, None);
            seen.insert(name);
        }
        assert_eq!(seen.len(), (c * m) as usize, "every tree is named");
    }
}

/// Equation (4): the two trees of a pair have different L1 switches, and no two MGIDs of a period share one.
#[test]
fn an_mgid_names_two_disjoint_trees_by_equation_4() {
    for (m, p, c) in
        (2..=7).flat_map(|m| (1..=3).flat_map(move |p| (1..=4).map(move |c| (m, p, c))))
    {
        let fabric = fat_tree(m, 2, p, 1, 1, 1, None);
        let settings = CMr4lmsSettings {
            colours: c,
            fault_tolerant: true,
            ..FIXED
        };
        let engine = engine(&fabric, settings);
        let h = m / 2;
        assert_eq!(engine.spanning_trees(), (c * h) as usize);
        let mut seen = BTreeSet::new();
        for mgid in 0..c * h {
            let name = engine.own_spanning_tree(Mgid(mgid.into()));
            let (colour, g) = (mgid / h % c, mgid % h);
            assert_eq!(name.colour, Colour(colour as u16));
            assert_eq!((name.l1, name.tn), (g, Some(g * p + colour % p)));
            assert_eq!(name.second, Some((g + h, Some((g + h) * p + colour % p))));
            assert!(seen.insert((name.colour, name.l1)) && seen.insert((name.colour, g + h)));
        }
    }
}

#[test]
fn bad_settings_and_groups_are_refused() {
    let fabric = fat_tree(1, 2, 1, 1, 2, 2, None);
    let with = |settings| CMr4lms::new(Arc::clone(&fabric), settings).map(|_| ());
    let none = CMr4lmsSettings {
        colours: 0,
        ..FIXED
    };
    assert!(matches!(with(none), Err(MulticastError::BadColours { .. })));
    let many = CMr4lmsSettings {
        colours: 16_385,
        ..FIXED
    };
    assert!(matches!(with(many), Err(MulticastError::BadColours { .. })));
    let pair = CMr4lmsSettings {
        fault_tolerant: true,
        ..FIXED
    };
    assert_eq!(with(pair), Err(MulticastError::NoSecondTree { m: 1 }));
    let ring = Arc::new(raddle_fabric::dumbbell(2).expect("a map"));
    let refused = CMr4lms::new(ring, FIXED).map(|_| ());
    assert!(matches!(refused, Err(MulticastError::NotCnTn(_))));

    let mut engine = engine(&fabric, FIXED);
    let switch = fabric.switches()[0].0;
    assert!(matches!(
        engine.join(&group(0, &[0, switch])),
        Err(MulticastError::NotAHost { .. })
    ));
    assert!(matches!(
        engine.join(&group(0, &[0, 999])),
        Err(MulticastError::NotAHost { .. })
    ));
    assert!(matches!(
        engine.join(&group(0, &[])),
        Err(MulticastError::EmptyGroup { .. })
    ));
    assert!(engine.join(&group(0, &[0, 1])).is_ok());
    assert!(matches!(
        engine.join(&group(0, &[2])),
        Err(MulticastError::DuplicateMgid { .. })
    ));
    assert!(matches!(
        engine.leave(Mgid(9)),
        Err(MulticastError::UnknownMgid { .. })
    ));
    let twice = [group(1, &[0]), group(1, &[1])];
    assert!(matches!(
        engine.route(&twice),
        Err(MulticastError::DuplicateMgid { .. })
    ));
    assert_eq!(engine.groups().len(), 1, "what fails changes nothing");
    let far = LinkId(fabric.links().len() as u32);
    assert!(matches!(
        engine.fail(far),
        Err(MulticastError::UnknownLink { .. })
    ));
}

/// Theorem 1: one colour carries m spanning trees that share only the hosts' links, and every link between an L0 and
/// an L1 switch is used, so that there is no room for another.
#[test]
fn one_colour_carries_m_link_disjoint_spanning_trees() {
    for (m, q, p, k, w, t) in [
        (2, 2, 1, 2, 2, 1),
        (3, 2, 2, 2, 2, 2),
        (4, 3, 2, 3, 2, 1),
        (3, 2, 1, 1, 3, 2),
        (5, 2, 0, 1, 1, 2),
        (1, 2, 1, 2, 2, 1),
    ] {
        let fabric = fat_tree(m, q, p, k, w, t, None);
        let hosts: Vec<u32> = fabric.hosts().iter().map(|h| h.0).collect();
        let settings = CMr4lmsSettings {
            colours: 2,
            ..FIXED
        };
        for colour in 0..2 {
            let mut used = BTreeSet::new();
            for g in 0..m {
                let mut engine = engine(&fabric, settings);
                engine
                    .join(&group(u64::from(colour * m + g), &hosts))
                    .expect("a join");
                let trees = engine.trees();
                assert_eq!(trees.len(), 1);
                assert_eq!(trees[0].colour, Colour(colour as u16));
                let reached: Vec<u32> = trees[0].hosts(&fabric).map(|h| h.0).collect();
                assert_eq!(reached, hosts, "it spans");
                for up in &trees[0].up {
                    let link = fabric.port(up.port).link;
                    if !fabric.is_host(up.node) {
                        assert!(used.insert(link), "shared link");
                    }
                }
            }
            let l0_links = fabric.links().iter().filter(|l| {
                let levels = l.ports.map(|port| fabric.level(fabric.port(port).node));
                levels == [1, 2]
            });
            let used_l0 = used.iter().filter(|l| {
                fabric
                    .link(**l)
                    .ports
                    .map(|port| fabric.level(fabric.port(port).node))
                    == [1, 2]
            });
            assert_eq!(used_l0.count(), l0_links.count());
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    fabric: Arc<Fabric>,
    colours: u32,
    groups: Vec<Group>,
}

fn fabrics() -> impl Strategy<Value = Arc<Fabric>> {
    (
        1u32..=4,
        1u32..=3,
        0u32..=2,
        1u32..=3,
        1u32..=3,
        1u32..=3,
        1u32..=9,
    )
        .prop_filter_map("a fat tree", |(m, q, p, k, w, t, cns)| {
            let most = if p == 0 { 1 } else { k * w };
            let fabric = fat_tree(m, q, p, k, w, t, Some(1 + (cns - 1) % most));
            CnTnMap::recognise(&fabric).is_ok().then_some(fabric)
        })
}

/// Random groups; many share hosts, colours and trees.
fn cases() -> impl Strategy<Value = Case> {
    (fabrics(), 1u32..=4).prop_flat_map(|(fabric, colours)| {
        let hosts = fabric.hosts().len() as u32;
        let members = prop::collection::btree_set(0..hosts, 1..=(hosts.min(6) as usize));
        let groups = prop::collection::btree_map(0u64..40, members, 0..14);
        (Just(fabric), Just(colours), groups).prop_map(|(fabric, colours, groups)| Case {
            fabric,
            colours,
            groups: groups
                .into_iter()
                .map(|(mgid, m)| Group::new(Mgid(mgid), m.into_iter().map(NodeId).collect()))
                .collect(),
        })
    })
}

/// Drops groups until no host has two trees of one colour: the precondition of Theorem 2.
fn with_precondition(case: &Case) -> Vec<Group> {
    let engine = engine(
        &case.fabric,
        CMr4lmsSettings {
            colours: case.colours,
            ..FIXED
        },
    );
    let mut at: BTreeMap<(NodeId, Colour), u32> = BTreeMap::new();
    let mut kept = Vec::new();
    for group in &case.groups {
        let name = engine.own_spanning_tree(group.mgid);
        let clash = group.members.iter().any(|host| {
            at.get(&(*host, name.colour))
                .is_some_and(|l1| *l1 != name.l1)
        });
        if !clash {
            at.extend(
                group
                    .members
                    .iter()
                    .map(|host| ((*host, name.colour), name.l1)),
            );
            kept.push(group.clone());
        }
    }
    kept
}

/// The trees as the switches have them: sent and counted.
fn flood(engine: &CMr4lms, tables: &MulticastTables, links: Option<&LinkState>) -> FloodReport {
    let groups = engine.groups();
    let mut walker = Flood::new(engine.fabric(), tables, links);
    walker.groups(&groups, |mgid| engine.colour_of(mgid), Senders::All)
}

/// What must hold of any trees of a table per port: disjoint links within a colour (but for the hosts' links of a
/// pair), every group once, and tables that equal the trees.
fn check(engine: &CMr4lms, tables: &MulticastTables) {
    let fabric = engine.fabric();
    let trees = engine.trees();
    let mut used: BTreeMap<(Colour, LinkId), usize> = BTreeMap::new();
    let mut groups = Vec::new();
    for (number, tree) in trees.iter().enumerate() {
        if tree.copy == 0 {
            groups.extend(&tree.groups);
        }
        for up in &tree.up {
            let link = fabric.port(up.port).link;
            let before = used.insert((tree.colour, link), number);
            let pair = |other: usize| trees[other].groups == tree.groups && fabric.is_host(up.node);
            assert!(
                before.is_none_or(pair),
                "two trees of {} on {link}",
                tree.colour
            );
        }
    }
    groups.sort_unstable();
    let there: Vec<_> = engine.groups().iter().map(|g| g.mgid).collect();
    assert_eq!(groups.into_iter().copied().collect::<Vec<_>>(), there);
    let expected = MulticastTables::of_trees(fabric, TableMode::PerPort, &trees);
    assert_eq!(
        tables, &expected,
        "the writes lead to other tables than the trees"
    );
}

/// Foreign copies of a flood without failures: for every sender the hosts of its tree that are no members.
fn expected_foreign(engine: &CMr4lms) -> u64 {
    let groups: BTreeMap<_, _> = engine.groups().into_iter().map(|g| (g.mgid, g)).collect();
    let trees = engine.trees();
    let all = trees
        .iter()
        .flat_map(|tree| tree.groups.iter().map(move |mgid| (tree, mgid)));
    all.map(|(tree, mgid)| {
        let members = &groups[mgid].members;
        let hosts = tree
            .hosts(engine.fabric())
            .filter(|h| !members.contains(h))
            .count();
        // Inside the sender's L0 switch the second tree brings nothing.
        (hosts * members.len()) as u64 * u64::from(tree.copy == 0)
    })
    .sum()
}

fn start(case: &Case, settings: CMr4lmsSettings, groups: &[Group]) -> (CMr4lms, MulticastTables) {
    let mut engine = engine(&case.fabric, settings);
    let mut tables = MulticastTables::new(&case.fabric, TableMode::PerPort);
    tables.apply(&engine.route(groups).expect("routes").branches);
    (engine, tables)
}

fn settings(case: &Case, dynamic: bool) -> CMr4lmsSettings {
    CMr4lmsSettings {
        colours: case.colours,
        roots: if dynamic {
            RootChoice::Dynamic
        } else {
            RootChoice::Fixed
        },
        fault_tolerant: false,
    }
}

/// Algorithms 1 to 3 taken literally, one group after the other: the links of a tentative tree, all groups found on
/// them with the colour, one union. `None` where the union conflicts with a third: Theorem 2 is broken.
fn single_pass(case: &Case, groups: &[Group]) -> Option<Vec<BTreeSet<Mgid>>> {
    let alone = |members: Vec<NodeId>, mgid: Mgid| -> (Colour, BTreeSet<LinkId>) {
        let mut engine = engine(&case.fabric, settings(case, false));
        engine.join(&Group::new(mgid, members)).expect("a join");
        let tree = &engine.trees()[0];
        (tree.colour, links_of(&case.fabric, tree))
    };
    type Virtual = (BTreeSet<Mgid>, Vec<NodeId>, Colour, BTreeSet<LinkId>);
    let mut placed: Vec<Virtual> = Vec::new();
    for group in groups {
        let (colour, links) = alone(group.members.clone(), group.mgid);
        let (met, mut apart): (Vec<_>, Vec<_>) = placed
            .into_iter()
            .partition(|v| v.2 == colour && v.3.intersection(&links).next().is_some());
        let mut names = BTreeSet::from([group.mgid]);
        let mut members = group.members.clone();
        let mut parts = links;
        for (other, hosts, _, links) in met {
            names.extend(other);
            members.extend(hosts);
            parts.extend(links);
        }
        let (_, links) = alone(members.clone(), group.mgid);
        // Lemma 1: every link of the merged tree is a link of one of its parts.
        if !links.is_subset(&parts)
            || apart
                .iter()
                .any(|v| v.2 == colour && v.3.intersection(&links).next().is_some())
        {
            return None;
        }
        assert_eq!(links, parts, "links are only added");
        apart.push((names, members, colour, links));
        placed = apart;
    }
    let mut names: Vec<_> = placed.into_iter().map(|v| v.0).collect();
    names.sort();
    Some(names)
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize),
    Leave(usize),
    Change(usize, u32),
    Fail(usize),
    Repair(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0usize..64).prop_map(Step::Join),
        3 => (0usize..64).prop_map(Step::Leave),
        1 => (0usize..64, 0u32..999).prop_map(|(g, h)| Step::Change(g, h)),
        1 => (0usize..999).prop_map(Step::Fail),
        1 => (0usize..999).prop_map(Step::Repair),
    ];
    prop::collection::vec(step, 0..24)
}

/// Runs steps; after each the writes must lead to the trees' tables. Gives the failed links.
fn run(
    case: &Case,
    settings: CMr4lmsSettings,
    steps: &[Step],
) -> (CMr4lms, MulticastTables, LinkState) {
    let half = case.groups.len() / 2;
    let (mut engine, mut tables) = start(case, settings, &case.groups[..half]);
    let mut inside: Vec<Group> = case.groups[..half].to_vec();
    let mut outside: Vec<Group> = case.groups[half..].to_vec();
    let mut links = LinkState::all_up(&case.fabric);
    let count = case.fabric.links().len();
    let hosts = case.fabric.hosts();
    for step in steps {
        let names = |engine: &CMr4lms| -> BTreeMap<Mgid, _> {
            let groups = engine.groups();
            groups
                .iter()
                .map(|g| (g.mgid, engine.spanning_tree_of(g.mgid)))
                .collect()
        };
        let before = names(&engine);
        let (changes, own) = match *step {
            Step::Join(n) if !outside.is_empty() => {
                let group = outside.swap_remove(n % outside.len());
                let changes = engine.join(&group);
                let own = group.mgid;
                inside.push(group);
                (changes, Some(own))
            }
            Step::Leave(n) if !inside.is_empty() => {
                let group = inside.swap_remove(n % inside.len());
                let changes = engine.leave(group.mgid);
                let own = group.mgid;
                outside.push(group);
                (changes, Some(own))
            }
            Step::Change(n, host) if !inside.is_empty() => {
                let n = n % inside.len();
                let host = hosts[host as usize % hosts.len()];
                let group = &mut inside[n];
                match group.members.binary_search(&host) {
                    Ok(at) if group.members.len() > 1 => {
                        group.members.remove(at);
                    }
                    Ok(_) => {}
                    Err(at) => group.members.insert(at, host),
                }
                (engine.change(group), Some(group.mgid))
            }
            Step::Fail(n) => {
                let link = LinkId((n % count) as u32);
                links.set(link, false);
                (engine.fail(link), None)
            }
            Step::Repair(n) => {
                let link = LinkId((n % count) as u32);
                links.set(link, true);
                (engine.repair(link), None)
            }
            _ => continue,
        };
        let changes = changes.expect("a step");
        tables.apply(&changes.branches);
        check(&engine, &tables);
        let after = names(&engine);
        for (mgid, tree) in &before {
            let moved = after.get(mgid).is_some_and(|now| now != tree);
            if moved && Some(*mgid) != own {
                assert!(
                    changes.moved.contains(mgid),
                    "{mgid} moved and nobody was told"
                );
            }
        }
    }
    (engine, tables, links)
}

/// Whether groups, trees and tables equal those of an engine that is told everything at once.
fn equals_routing_from_nothing(engine: &CMr4lms, tables: &MulticastTables, links: &LinkState) {
    let fabric = Arc::new(engine.fabric().clone());
    let mut fresh = CMr4lms::new(Arc::clone(&fabric), engine.settings()).expect("an engine");
    for link in (0..fabric.links().len() as u32).map(LinkId) {
        if !links.is_up(link) {
            fresh.fail(link).expect("a failure");
        }
    }
    let mut other = MulticastTables::new(&fabric, TableMode::PerPort);
    other.apply(&fresh.route(&engine.groups()).expect("routes").branches);
    assert_eq!(engine.trees(), fresh.trees());
    assert_eq!(tables, &other);
    assert_eq!(engine.cut_off(), fresh.cut_off());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), failure_persistence: None, ..ProptestConfig::default() })]

    /// Theorem 2 and Lemma 1: under the precondition one merge is enough, links are only added, and the result is the
    /// engine's.
    #[test]
    fn under_the_precondition_one_merge_is_enough(case in cases()) {
        let groups = with_precondition(&case);
        let expected = single_pass(&case, &groups).expect("theorem 2");
        let (engine, tables) = start(&case, settings(&case, false), &groups);
        check(&engine, &tables);
        let mut clusters: Vec<BTreeSet<Mgid>> =
            engine.trees().into_iter().map(|tree| tree.groups.into_iter().collect()).collect();
        clusters.sort();
        prop_assert_eq!(clusters, expected);
        prop_assert_eq!(engine.terminal_conflicts(), vec![]);
        for group in &groups {
            prop_assert_eq!(engine.spanning_tree_of(group.mgid), Some(engine.own_spanning_tree(group.mgid)));
        }
        let report = flood(&engine, &tables, None);
        prop_assert_eq!((report.missing, report.duplicate, report.looping, report.lost), (0, 0, 0, 0));
        prop_assert_eq!(report.foreign, expected_foreign(&engine));
    }

    /// Without the precondition too: disjoint trees, everything delivered once, conflicts named.
    #[test]
    fn any_groups_are_delivered_once(case in cases(), dynamic: bool) {
        let (engine, tables) = start(&case, settings(&case, dynamic), &case.groups);
        check(&engine, &tables);
        let report = flood(&engine, &tables, None);
        prop_assert_eq!((report.missing, report.duplicate, report.looping, report.lost), (0, 0, 0, 0));
        prop_assert_eq!(report.foreign, expected_foreign(&engine));
        let broken = with_precondition(&case).len() < case.groups.len();
        prop_assert_eq!(broken, !engine.terminal_conflicts().is_empty());
        let trees = engine.trees();
        let measures = Measures::of(&case.fabric, &trees, &tables);
        prop_assert_eq!(measures.groups, case.groups.len() as u64);
        prop_assert_eq!(engine.merges().len() as u64, measures.merges);
        for tree in &trees {
            for mgid in &tree.groups {
                prop_assert_eq!(engine.explain(*mgid).map(|m| m.len()), Some(tree.groups.len() - 1));
            }
        }
        let ends = trees.iter().filter(|tree| tree.up.len() > 1).flat_map(|tree| {
            tree.up.iter().map(|up| 1 + u64::from(!case.fabric.is_host(up.node)))
        });
        prop_assert_eq!(measures.table_entries, ends.sum::<u64>(), "a lone host has no way out");
    }

    /// Fixed roots: what is routed depends on the groups and the failed links alone.
    #[test]
    fn fixed_routes_do_not_depend_on_history(case in cases(), steps in steps()) {
        let (engine, tables, links) = run(&case, settings(&case, false), &steps);
        equals_routing_from_nothing(&engine, &tables, &links);
        let report = flood(&engine, &tables, Some(&links));
        prop_assert_eq!((report.duplicate, report.looping), (0, 0));
        if engine.cut_off().is_empty() {
            prop_assert_eq!((report.missing, report.lost), (0, 0));
        }
    }

    /// The same for pairs; every member gets a packet while one tree of each pair is whole.
    #[test]
    fn pairs_do_not_depend_on_history(case in cases(), steps in steps()) {
        let settings = CMr4lmsSettings { fault_tolerant: true, ..settings(&case, false) };
        if CMr4lms::new(Arc::clone(&case.fabric), settings).is_ok() {
            let (engine, tables, links) = run(&case, settings, &steps);
            equals_routing_from_nothing(&engine, &tables, &links);
            let report = flood(&engine, &tables, Some(&links));
            prop_assert_eq!(report.looping, 0);
            if engine.cut_off().is_empty() {
                prop_assert_eq!(report.missing, 0);
            }
        }
    }

    /// Dynamic roots: valid after any history.
    #[test]
    fn dynamic_routes_stay_valid(case in cases(), steps in steps(), fault_tolerant: bool) {
        let settings = CMr4lmsSettings { fault_tolerant, ..settings(&case, true) };
        if CMr4lms::new(Arc::clone(&case.fabric), settings).is_ok() {
            let (engine, tables, links) = run(&case, settings, &steps);
            let report = flood(&engine, &tables, Some(&links));
            prop_assert_eq!(report.looping, 0);
            if engine.cut_off().is_empty() {
                prop_assert_eq!(report.missing, 0);
            }
        }
    }

    /// Under the precondition nobody's tree moves when others join and leave.
    #[test]
    fn joins_and_leaves_move_nobody(case in cases(), steps in steps()) {
        let groups = with_precondition(&case);
        let case = Case { groups, ..case };
        let steps: Vec<Step> = steps
            .into_iter()
            .filter(|step| matches!(step, Step::Join(_) | Step::Leave(_)))
            .collect();
        let (engine, _, _) = run(&case, settings(&case, false), &steps);
        for group in engine.groups() {
            prop_assert_eq!(engine.spanning_tree_of(group.mgid), Some(engine.own_spanning_tree(group.mgid)));
        }
    }

    /// One failed link between switches: only groups whose tree crosses it move, and the repair brings them back.
    #[test]
    fn one_dead_link_moves_only_what_used_it(case in cases(), n in 0usize..999) {
        let groups = with_precondition(&case);
        let (mut engine, mut tables) = start(&case, settings(&case, false), &groups);
        let link = LinkId((n % case.fabric.links().len()) as u32);
        let alone: BTreeSet<Mgid> = groups
            .iter()
            .filter(|group| {
                let (one, _) = start(&case, settings(&case, false), std::slice::from_ref(*group));
                links_of(&case.fabric, &one.trees()[0]).contains(&link)
            })
            .map(|group| group.mgid)
            .collect();
        let before = (engine.trees(), tables.clone());
        let changes = engine.fail(link).expect("a failure");
        tables.apply(&changes.branches);
        // Groups of one tree that share a host move together.
        let knots: BTreeSet<NodeId> = groups
            .iter()
            .filter(|group| alone.contains(&group.mgid))
            .flat_map(|group| group.members.clone())
            .collect();
        let shared = |mgid: &Mgid| groups.iter().any(|g| g.mgid == *mgid && g.members.iter().any(|h| knots.contains(h)));
        if groups.iter().all(|g| g.members.iter().filter(|h| knots.contains(h)).count() == 0 || alone.contains(&g.mgid)) {
            prop_assert!(changes.moved.iter().all(|mgid| alone.contains(mgid) || shared(mgid)));
        }
        let changes = engine.repair(link).expect("a repair");
        tables.apply(&changes.branches);
        prop_assert_eq!((engine.trees(), tables), before);
    }
}

/// Two groups of one tree in one L0 switch or CN, and when they meet.
#[test]
fn a_merged_group_splits_when_what_tied_it_leaves() {
    // m = 2, q = 2, p = 1, k = 2, w = 2, one host per L0: host n is L0 switch n, CN n / 2.
    let fabric = fat_tree(2, 2, 1, 2, 2, 2, None);
    let mut engine = engine(
        &fabric,
        CMr4lmsSettings {
            colours: 1,
            ..FIXED
        },
    );
    let trees = 2;
    engine.join(&group(0, &[0, 2])).expect("a join");
    engine.join(&group(trees, &[1, 3])).expect("a join");
    let merged = engine.trees();
    assert_eq!(merged.len(), 1, "both use the way from L0 to L1");
    assert_eq!(engine.explain(Mgid(0)).map(|merges| merges.len()), Some(1));
    engine.change(&group(trees, &[1, 5])).expect("a change");
    assert_eq!(engine.trees().len(), 1);
    engine.change(&group(trees, &[5, 7])).expect("a change");
    assert_eq!(engine.trees().len(), 2, "in another CN nothing is shared");
    engine.join(&group(2 * trees, &[3, 4])).expect("a join");
    assert_eq!(engine.trees().len(), 1, "the third ties them");
    engine.leave(Mgid(2 * trees)).expect("a leave");
    assert_eq!(engine.trees().len(), 2);
}
