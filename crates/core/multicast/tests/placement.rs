//! Jobs that share no link (Theorem 4), refusals against a search through all placements, and the planner.

use std::collections::BTreeSet;

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{CnTn, CnTnMap, Fabric};
use raddle_multicast::Mgid;
use raddle_multicast::capacity::{colours_needed, fewest_colours, groups_carried, plan_layers};
use raddle_multicast::groups::{Grid, GroupSet, Layering};
use raddle_multicast::mgid::{Places, SpanningTrees, allocate_layered, share_trees};
use raddle_multicast::placement::{
    JobClass, JobRequest, Machine, Outcome, Placement, PlacementError, host_positions,
};
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};
use raddle_units::{LinkId, NodeId};

fn job(name: &str, terminals: u32) -> JobRequest {
    JobRequest {
        name: name.to_owned(),
        terminals,
    }
}

/// The links on all shortest paths between any two terminals.
fn links_between(
    fabric: &Fabric,
    tables: &UnicastTables,
    terminals: &[NodeId],
) -> BTreeSet<LinkId> {
    let mut links = BTreeSet::new();
    for &dst in terminals {
        let mut seen = BTreeSet::new();
        let mut open: Vec<NodeId> = terminals.iter().copied().filter(|&t| t != dst).collect();
        while let Some(node) = open.pop() {
            if node == dst || !seen.insert(node) {
                continue;
            }
            for &port in tables.next_hops(node, dst) {
                links.insert(fabric.port(port).link);
                open.push(fabric.peer_node(port));
            }
        }
    }
    links
}

/// Theorem 4 on the real paths; terminal links included, so rule 1 as well.
fn check_no_shared_link(fabric: &Fabric, tables: &UnicastTables, jobs: &[Placement]) {
    let mut owner = vec![None; fabric.links().len()];
    for (number, job) in jobs.iter().enumerate() {
        for link in links_between(fabric, tables, &job.terminals) {
            assert!(
                owner[link.index()].is_none(),
                "{link} is used by {:?} and {:?}",
                jobs[owner[link.index()].unwrap_or(0)],
                job
            );
            owner[link.index()] = Some(number);
        }
    }
}

/// Whether the jobs keep the rules, each job's class taken from its terminals: 16 terminals, 2 on an L0, 2 L0 in a CN,
/// 2 CNs in a block.
fn keeps_rules(jobs: &[Vec<u32>]) -> bool {
    for size in [2, 4, 8] {
        for region in 0..16 / size {
            let beyond = jobs.iter().filter(|job| {
                job.iter().any(|t| t / size == region) && job.iter().any(|t| t / size != region)
            });
            if beyond.count() > 1 {
                return false;
            }
        }
    }
    true
}

/// Whether a job of `size` can be placed beside `jobs` in its class: all sets of free terminals are tried.
fn can_be_placed(jobs: &[Vec<u32>], size: u32) -> bool {
    let region = match size {
        0..=2 => 2,
        3..=4 => 4,
        5..=8 => 8,
        _ => 16,
    };
    (0u32..1 << 16)
        .filter(|set| set.count_ones() == size)
        .any(|set| {
            let terminals: Vec<u32> = (0..16).filter(|t| set >> t & 1 == 1).collect();
            let mut all = jobs.to_vec();
            let one_region = terminals
                .iter()
                .all(|t| t / region == terminals[0] / region);
            let free = terminals
                .iter()
                .all(|t| all.iter().all(|job| !job.contains(t)));
            all.push(terminals);
            one_region && free && keeps_rules(&all)
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn theorem_4_placed_jobs_share_no_link(
        (m, q, p, k, w) in (1u32..4, 1u32..4, 1u32..3, 1u32..4, 1u32..4),
        terminals in 1u32..4,
        gap in 0u32..3,
        sizes in prop::collection::vec((1u32..40, any::<bool>()), 1..25),
        widen in any::<bool>(),
    ) {
        let mut cn_tn = CnTn::new(m, q, p, k, w);
        cn_tn.terminals_per_l0 = Some(terminals);
        cn_tn.cns = Some((k * w).saturating_sub(gap).max(1));
        let fabric = cn_tn.build().unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap();
        let up = LinkState::all_up(&fabric);
        let tables = UnicastTables::compute(&fabric, &up, NextHopOrder::ByPort).unwrap();
        let mut machine = Machine::of_map(&map);
        machine.widen(widen);
        for (number, &(size, ends)) in sizes.iter().enumerate() {
            let before = machine.free();
            match machine.place(&job(&number.to_string(), size)) {
                Ok(placed) => {
                    prop_assert_eq!(placed.terminals.len() as u32, size);
                    prop_assert_eq!(machine.free(), before - size);
                    prop_assert!(host_positions(&placed, &fabric).is_some());
                }
                Err(PlacementError::Refused { needed, offer, .. }) => {
                    prop_assert!(offer.usable < needed);
                    let withheld: u32 = offer.withheld.iter().map(|(_, count)| count).sum();
                    prop_assert_eq!(offer.free, offer.usable + withheld);
                    prop_assert_eq!(machine.free(), before);
                }
                Err(PlacementError::TooLarge { terminals, .. }) => prop_assert!(size > terminals),
                Err(other) => prop_assert!(false, "{}", other),
            }
            if ends && let Some(first) = machine.jobs().first() {
                machine.release(&first.job).unwrap();
            }
            prop_assert!(machine.broken_rules().is_empty());
        }
        check_no_shared_link(&fabric, &tables, &machine.jobs());
    }

    #[test]
    fn a_job_is_refused_only_if_no_placement_keeps_the_rules(
        sizes in prop::collection::vec((1u32..14, any::<bool>()), 1..10),
    ) {
        let mut machine = Machine::regular(4, 2, 2, 2);
        for (number, &(size, ends)) in sizes.iter().enumerate() {
            let jobs: Vec<Vec<u32>> = machine.jobs().iter()
                .map(|job| job.terminals.iter().map(|node| node.0).collect())
                .collect();
            prop_assert!(keeps_rules(&jobs));
            let placed = machine.place(&job(&number.to_string(), size)).is_ok();
            prop_assert_eq!(placed, can_be_placed(&jobs, size), "{:?} and {}", jobs, size);
            if ends && let Some(first) = machine.jobs().first() {
                machine.release(&first.job).unwrap();
            }
        }
    }
}

#[test]
fn two_jobs_that_break_a_rule_do_share_a_link() {
    // The counter-example: without rule 5 the check above must fail.
    let fabric = CnTn::new(2, 2, 1, 2, 2).build().unwrap();
    let up = LinkState::all_up(&fabric);
    let tables = UnicastTables::compute(&fabric, &up, NextHopOrder::ByPort).unwrap();
    let mut machine = Machine::of_map(&CnTnMap::recognise(&fabric).unwrap());
    assert_eq!(machine.occupy("a", &[NodeId(0), NodeId(2)]).unwrap(), []);
    let broken = machine.occupy("b", &[NodeId(1), NodeId(3)]).unwrap();
    assert_eq!(broken.len(), 2);
    assert!(
        broken[0].to_string().starts_with("rule 5 "),
        "{}",
        broken[0]
    );
    assert!(
        broken[0].to_string().contains("L0 0 of CN 0"),
        "{}",
        broken[0]
    );
    let jobs = machine.jobs();
    let links = |job: &Placement| links_between(&fabric, &tables, &job.terminals);
    assert!(!links(&jobs[0]).is_disjoint(&links(&jobs[1])));
}

#[test]
fn classes_follow_the_terminals_that_are_there() {
    // 3 terminals on an L0, 4 L0 in a CN, 2 CNs in a block, 6 CNs.
    for (size, class) in [
        (3, JobClass::T0),
        (4, JobClass::T1),
        (12, JobClass::T1),
        (13, JobClass::T2),
        (24, JobClass::T2),
        (25, JobClass::T3),
        (72, JobClass::T3),
    ] {
        let placed = Machine::regular(6, 4, 3, 2).place(&job("a", size)).unwrap();
        assert_eq!(placed.class, class, "{size}");
    }
}

#[test]
fn a_refusal_names_the_rule_and_what_is_missing() {
    let refusal = |machine: &mut Machine, size| {
        let error = machine.place(&job("new", size)).unwrap_err();
        let PlacementError::Refused { rule, .. } = &error else {
            panic!("{error}");
        };
        (rule.number(), error.to_string())
    };
    // 2 CNs of 2 L0 with 4 terminals, one block.
    let mut machine = Machine::regular(2, 2, 4, 2);
    machine.occupy("a", &[0, 1, 4].map(NodeId)).unwrap();
    machine.occupy("b", &[8, 12].map(NodeId)).unwrap();
    let (rule, text) = refusal(&mut machine, 5);
    assert_eq!(rule, 5, "{text}");
    assert!(
        text.contains("`new` needs 5 terminals as a T1 job"),
        "{text}"
    );
    assert!(
        text.contains("withholds 5") || text.contains("withholds 6"),
        "{text}"
    );
    assert!(text.contains("missing: 5"), "{text}");
    // Only 11 terminals are free.
    assert_eq!(refusal(&mut machine, 12).0, 1);
    // Nobody has four free on one L0.
    machine.occupy("c", &[NodeId(5)]).unwrap();
    assert_eq!(refusal(&mut machine, 4).0, 2);
    // Rule 6: both CNs hold a T2 job.
    let mut machine = Machine::regular(2, 2, 4, 2);
    machine.occupy("a", &[0, 8].map(NodeId)).unwrap();
    let (rule, text) = refusal(&mut machine, 9);
    assert_eq!(rule, 6, "{text}");
    // A CN with room enough is named, though another one has more that the rules allow.
    let mut machine = Machine::regular(2, 2, 4, 2);
    for (name, nodes) in [
        ("a", [0, 4]),
        ("b", [8, 9]),
        ("c", [10, 11]),
        ("d", [12, 13]),
    ] {
        machine.occupy(name, &nodes.map(NodeId)).unwrap();
    }
    let (rule, text) = refusal(&mut machine, 5);
    assert_eq!(rule, 5, "{text}");
    assert!(
        text.contains("CN 0 has 6 free terminals, 0 of them usable"),
        "{text}"
    );
    // Rule 7.
    let mut machine = Machine::regular(4, 1, 2, 2);
    machine.occupy("a", &[0, 4].map(NodeId)).unwrap();
    let (rule, text) = refusal(&mut machine, 6);
    assert!(rule >= 5, "{text}");
    // What can never run.
    let error = machine.place(&job("new", 9)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "job `new` asks for 9 terminals, but the machine has 8; make it smaller"
    );
    assert!(matches!(
        machine.place(&job("new", 0)),
        Err(PlacementError::Empty { .. })
    ));
    assert!(matches!(
        machine.place(&job("a", 1)),
        Err(PlacementError::DuplicateJob { .. })
    ));
    assert!(matches!(
        machine.release("z"),
        Err(PlacementError::UnknownJob { .. })
    ));
    let error = machine.occupy("x", &[NodeId(99)]).unwrap_err();
    assert!(matches!(error, PlacementError::UnknownTerminal { .. }));
    let error = machine.occupy("x", &[NodeId(0)]).unwrap_err();
    assert!(error.to_string().contains("which runs job `a`"), "{error}");
}

#[test]
fn a_queue_waits_in_order_or_is_backfilled() {
    let queue = [
        job("wide", 9),
        job("full", 16),
        job("small", 2),
        job("huge", 17),
        job("last", 1),
    ];
    let mut machine = Machine::regular(2, 2, 4, 2);
    let outcomes = machine.place_queue(&queue, false);
    assert!(matches!(&outcomes[0], Outcome::Placed(p) if p.class == JobClass::T2));
    assert!(matches!(
        &outcomes[1],
        Outcome::Refused(PlacementError::Refused { .. })
    ));
    assert_eq!(outcomes[2], Outcome::Behind("full".to_owned()));
    assert_eq!(outcomes[4], Outcome::Behind("full".to_owned()));
    let mut machine = Machine::regular(2, 2, 4, 2);
    let outcomes = machine.place_queue(&queue, true);
    assert!(matches!(&outcomes[2], Outcome::Placed(p) if p.class == JobClass::T0));
    assert!(matches!(
        &outcomes[3],
        Outcome::Refused(PlacementError::TooLarge { .. })
    ));
    assert!(matches!(&outcomes[4], Outcome::Placed(_)));
    // What can never run holds nobody up.
    let mut machine = Machine::regular(2, 2, 4, 2);
    let outcomes = machine.place_queue(&queue[3..], false);
    assert!(matches!(&outcomes[1], Outcome::Placed(_)));
}

#[test]
fn jobs_of_the_paper_fill_its_fabric() {
    // 64 CNs of 32 L0 with 16 terminals, 16 CNs in a block.
    let mut machine = Machine::regular(64, 32, 16, 16);
    for block in 0..4 {
        let placed = machine.place(&job(&format!("b{block}"), 8192)).unwrap();
        assert_eq!(placed.class, JobClass::T2);
    }
    assert_eq!(machine.free(), 0);
    for block in 0..4 {
        machine.release(&format!("b{block}")).unwrap();
    }
    assert_eq!(
        machine.place(&job("all", 32_768)).unwrap().class,
        JobClass::T3
    );
}

#[test]
fn a_wider_placement_uses_what_is_left() {
    let mut machine = Machine::regular(1, 3, 4, 1);
    for l0 in 0..3 {
        let nodes: Vec<NodeId> = (0..2).map(|t| NodeId(l0 * 4 + t)).collect();
        machine.occupy(&format!("a{l0}"), &nodes).unwrap();
    }
    assert!(machine.place(&job("b", 3)).is_err());
    machine.widen(true);
    assert_eq!(machine.place(&job("b", 3)).unwrap().class, JobClass::T1);
}

#[test]
fn corollary_2_holds_in_figures() {
    // 40-port switches: m = 20 of 40 ports lead upwards.
    assert!(groups_carried(256, 20, false).unwrap() >= 5120);
    assert_eq!(colours_needed(5120, 20, false).unwrap(), 256);
    assert_eq!(colours_needed(5121, 20, false).unwrap(), 257);
    assert_eq!(groups_carried(256, 20, true).unwrap(), 2560);
    assert_eq!(groups_carried(32, 16, false).unwrap(), 512);
    assert!(groups_carried(32, 1, true).is_err());
    assert!(groups_carried(0, 16, false).is_err());
}

#[test]
fn corollary_2_is_tight_where_groups_span_the_machine() {
    // Groups over all L0 switches, no terminal in two: n groups take exactly ceil(n/m) colours.
    let places = Places::regular(4, 4, 8, 2);
    let (m, p) = (2, 2);
    for count in 1..=8u32 {
        let groups = (0..count).map(|n| (n.to_string(), (0..16).map(|l0| l0 * 8 + n).collect()));
        let mut set = GroupSet::unlayered(128, groups).unwrap();
        set.layered = true;
        let found = fewest_colours(&set, (m, p, false), &places, 32, allocate_layered).unwrap();
        let (colours, sharing) = found.unwrap();
        assert_eq!(
            u64::from(colours),
            colours_needed(count.into(), m, false).unwrap()
        );
        assert_eq!(sharing.max_tfi, 1);
        // One colour less cannot do, however they are numbered.
        if colours > 1 {
            let trees = SpanningTrees::new(colours - 1, m, p, false).unwrap();
            let mgids: Vec<Mgid> = (0..u64::from(count)).map(Mgid).collect();
            assert!(share_trees(&set, &mgids, &trees, &places).unwrap().merges() > 0);
        }
    }
}

#[test]
fn layers_are_planned_with_what_they_need() {
    let trees = SpanningTrees::new(32, 16, 6, false).unwrap();
    let plan = plan_layers(&[512, 1024, 2048], &trees).unwrap();
    assert_eq!(plan.colours_without_sharing, 32 + 64 + 128);
    let colours: Vec<u32> = plan
        .layers
        .iter()
        .map(|layer| layer.range.colours)
        .collect();
    assert_eq!(colours, [4, 9, 19]);
    let per_tree: Vec<u64> = plan
        .layers
        .iter()
        .map(|layer| layer.groups_per_tree)
        .collect();
    assert_eq!(per_tree, [8, 8, 7]);
    assert!(plan_layers(&[1; 33], &trees).is_err());
    let empty = plan_layers(&[], &trees).unwrap();
    assert_eq!((empty.spare, empty.colours_without_sharing), (0, 0));
}

#[test]
fn fewer_colours_do_for_groups_that_lie_apart() {
    // Rows of 16 lie on one L0 each and use no uplink: one colour for all of them.
    let grid = Grid {
        dims: vec![16, 128],
        processes_per_terminal: 1,
        layering: Layering::Tight,
    };
    let mut set = grid.groups(2048).unwrap();
    set.communicators
        .retain(|communicator| communicator.layer == 0);
    let places = Places::regular(4, 32, 16, 16);
    let found = fewest_colours(&set, (16, 6, false), &places, 32, allocate_layered).unwrap();
    assert_eq!(found.unwrap().0, 1);
    let whole = grid.groups(2048).unwrap();
    let found = fewest_colours(&whole, (16, 6, false), &places, 32, allocate_layered).unwrap();
    assert!(found.unwrap().0 <= 1 + 8);
}
