//! MGIDs: Theorem 3 and equations (1) to (4) exhaustively on small sizes, cycle colourings against brute force, the
//! general allocator by properties, and the published figures.

use std::{collections::BTreeSet, sync::Arc};

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{CnTn, CnTnMap};
use raddle_multicast::groups::{
    Grid, GroupError, GroupSet, Hierarchy, Layering, RandomGroups, cycle_colour, cycle_colours,
};
use raddle_multicast::mgid::{
    Allocation, MgidError, Overlap, Places, SpanningTrees, allocate_general, allocate_layered,
    find_clash, share_colours, share_trees,
};
use raddle_multicast::{CMr4lms, CMr4lmsSettings, Mgid, MulticastEngine, RootChoice};

fn grid(dims: &[u32], processes_per_terminal: u32, layering: Layering) -> Grid {
    Grid {
        dims: dims.to_vec(),
        processes_per_terminal,
        layering,
    }
}

/// The paper's fabric: m = w = 16, q = k = 32, p = 6, 64 CNs, 16 terminals on an L0.
fn paper_places() -> Places {
    Places::regular(64, 32, 16, 16)
}

fn paper_trees() -> SpanningTrees {
    SpanningTrees::new(32, 16, 6, false).unwrap()
}

#[test]
fn equations_1_to_3_give_every_tree_of_every_colour_once() {
    for (m, p, colours) in
        (1..7).flat_map(|m| (0..5).flat_map(move |p| (1..7).map(move |c| (m, p, c))))
    {
        let trees = SpanningTrees::new(colours, m, p, false).unwrap();
        assert_eq!(trees.count(), u64::from(colours * m));
        let mut seen = BTreeSet::new();
        for mgid in 0..trees.count() {
            let place = trees.first(Mgid(mgid));
            // Equation (3) as it stands, and equation (2): later rounds repeat the trees.
            assert_eq!(
                u64::from(place.colour),
                mgid / u64::from(m) % u64::from(colours)
            );
            assert_eq!(u64::from(place.group), mgid % u64::from(m));
            if p > 0 {
                assert_eq!(place.tn, place.group * p + place.colour % p);
            }
            assert_eq!(trees.first(Mgid(mgid + 3 * trees.count())), place);
            assert_eq!(trees.second(Mgid(mgid)), None);
            assert!(seen.insert((place.colour, place.group)));
        }
    }
}

#[test]
fn equation_4_gives_two_trees_in_different_groups_and_no_tree_twice() {
    for (m, p, colours) in
        (2..8).flat_map(|m| (1..5).flat_map(move |p| (1..6).map(move |c| (m, p, c))))
    {
        let trees = SpanningTrees::new(colours, m, p, true).unwrap();
        let half = u64::from(m / 2);
        assert_eq!(trees.count(), u64::from(colours) * half);
        let mut seen = BTreeSet::new();
        for mgid in 0..trees.count() {
            let (a, b) = (trees.first(Mgid(mgid)), trees.second(Mgid(mgid)).unwrap());
            assert_eq!(u64::from(a.colour), mgid / half % u64::from(colours));
            let group = (mgid % half) as u32;
            assert_eq!(
                (a.tn, b.tn),
                (group * p + a.colour % p, (group + m / 2) * p + a.colour % p)
            );
            assert!(b.group < m);
            assert!(seen.insert((a.colour, a.group)) && seen.insert((b.colour, b.group)));
        }
    }
}

#[test]
fn impossible_tree_counts_are_refused() {
    assert_eq!(
        SpanningTrees::new(0, 4, 1, false),
        Err(MgidError::NoColours)
    );
    assert_eq!(SpanningTrees::new(4, 0, 1, false), Err(MgidError::NoTrees));
    let error = SpanningTrees::new(4, 1, 1, true).unwrap_err();
    assert!(error.to_string().contains("m = 1"), "{error}");
    assert!(SpanningTrees::new(u32::MAX, u32::MAX, 1, false).is_err());
}

/// The fewest colours of a cycle whose windows differ, by trying everything.
fn fewest_colours(length: usize, window: usize) -> u64 {
    fn fill(colours: &mut Vec<u64>, length: usize, window: usize, most: u64) -> bool {
        let at = colours.len();
        if at == length {
            // What wraps around.
            return (0..length).all(|i| {
                (1..window.min(length)).all(|gap| colours[i] != colours[(i + gap) % length])
            });
        }
        // Colours are named in order of appearance: no case is lost.
        let named = colours.iter().max().map_or(0, |most| most + 1);
        for colour in 0..most.min(named + 1) {
            if (1..window)
                .take_while(|gap| *gap <= at)
                .all(|gap| colours[at - gap] != colour)
            {
                colours.push(colour);
                if fill(colours, length, window, most) {
                    return true;
                }
                colours.pop();
            }
        }
        false
    }
    (1..)
        .find(|&most| fill(&mut Vec::new(), length, window, most))
        .unwrap()
}

#[test]
fn cycles_are_coloured_with_the_fewest_colours() {
    for window in 1..=5 {
        for length in 1..=13 {
            assert_eq!(
                cycle_colours(length, window),
                fewest_colours(length as usize, window as usize),
                "length {length}, window {window}"
            );
        }
    }
}

#[test]
fn cycle_colours_differ_in_every_window() {
    for window in 1..=8u64 {
        for length in 1..=120u64 {
            let colour = |at: u64| cycle_colour(at % length, length, window);
            let used: BTreeSet<u64> = (0..length).map(colour).collect();
            assert_eq!(used.len() as u64, cycle_colours(length, window));
            assert_eq!(used.last(), Some(&(cycle_colours(length, window) - 1)));
            for at in 0..length {
                for gap in 1..window.min(length) {
                    assert_ne!(colour(at), colour(at + gap), "{length} {window} {at} {gap}");
                }
            }
        }
    }
}

/// Theorem 3 over all small grids: a terminal is in at most one group of each layer. To try every place of a terminal
/// in the grid, wrap-around included, the layers of the groups of any P consecutive processes are compared.
#[test]
fn theorem_3_holds_for_every_terminal_of_every_small_grid() {
    let mut cases = 0;
    for per_terminal in 1..=6u32 {
        for x in per_terminal..=9 {
            for y in 1..=7 {
                for z in 0..=6 {
                    for layering in [Layering::Tight, Layering::Literal] {
                        let dims = if z == 0 { vec![x, y] } else { vec![x, y, z] };
                        if layering == Layering::Literal && z > 0 && y == 1 && per_terminal > 1 {
                            continue;
                        }
                        check_windows(&dims, per_terminal, layering);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 3000, "{cases}");
}

fn check_windows(dims: &[u32], per_terminal: u32, layering: Layering) {
    // Every process on a terminal of its own shows which process is in which group; layers are those for P.
    let layered = grid(dims, per_terminal, layering).groups(u32::MAX).unwrap();
    let alone = grid(dims, 1, Layering::None).groups(u32::MAX).unwrap();
    assert_eq!(layered.communicators.len(), alone.communicators.len());
    let processes: u32 = dims.iter().product();
    let mut groups_of = vec![Vec::new(); processes as usize];
    for (number, communicator) in alone.communicators.iter().enumerate() {
        assert_eq!(communicator.name, layered.communicators[number].name);
        for &process in &communicator.members {
            groups_of[process as usize].push(number);
        }
    }
    for first in 0..processes {
        let mut groups: Vec<usize> = (first..first + per_terminal)
            .flat_map(|process| groups_of[(process % processes) as usize].clone())
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let layers: BTreeSet<u32> = groups
            .iter()
            .map(|&group| layered.communicators[group].layer)
            .collect();
        assert_eq!(
            layers.len(),
            groups.len(),
            "{dims:?}, P = {per_terminal}, {layering:?}, from process {first}"
        );
    }
    assert_eq!(layered.layer_clash(), None);
}

#[test]
fn more_processes_per_terminal_than_a_row_are_refused_in_layers_only() {
    for layering in [Layering::Tight, Layering::Literal] {
        let error = grid(&[3, 9, 9], 4, layering).groups(1000).unwrap_err();
        assert!(matches!(error, GroupError::NotLayered { .. }), "{error}");
        assert!(error.to_string().contains("general allocator"), "{error}");
    }
    let set = grid(&[3, 9, 9], 4, Layering::None).groups(1000).unwrap();
    let trees = SpanningTrees::new(32, 4, 2, false).unwrap();
    let allocation = allocate_general(&set, &trees, None, Overlap::Refuse).unwrap();
    assert_eq!(find_clash(&set, &allocation.mgids, &trees), None);
    assert!(matches!(
        allocate_layered(&set, &trees),
        Err(MgidError::NotLayered { .. })
    ));
}

#[test]
fn processes_sit_where_equation_5_says() {
    let (x_len, y_len, z_len, per_terminal) = (5u32, 4, 3, 3);
    let set = grid(&[x_len, y_len, z_len], per_terminal, Layering::Tight)
        .groups(20)
        .unwrap();
    let find = |name: String| set.communicators.iter().find(|c| c.name == name).unwrap();
    for terminal in 0..20 {
        let first = terminal * per_terminal;
        let (a, b, c) = (first % x_len, first / x_len % y_len, first / x_len / y_len);
        for n in 0..per_terminal {
            let x = (a + n) % x_len;
            let y = (b + (a + n) / x_len) % y_len;
            let z = c + (b * x_len + a + n) / (x_len * y_len);
            for name in [
                format!("x-y{y}-z{z}"),
                format!("y-x{x}-z{z}"),
                format!("z-x{x}-y{y}"),
            ] {
                assert!(find(name).members.contains(&terminal));
            }
        }
    }
    assert_eq!(set.terminals, 20);
    let row = find("x-y1-z0".to_owned());
    assert_eq!(row.members, [1, 2, 3]);
}

#[test]
fn layers_get_colours_in_proportion_and_at_least_one() {
    assert_eq!(share_colours(&[512, 1024, 2048], 32).unwrap(), [4, 9, 19]);
    assert_eq!(
        share_colours(&[1024, 1024, 1024], 32).unwrap(),
        [10, 10, 12]
    );
    assert_eq!(share_colours(&[1, 1000, 1], 3).unwrap(), [1, 1, 1]);
    assert_eq!(share_colours(&[0, 5, 0], 7).unwrap(), [0, 7, 0]);
    assert_eq!(share_colours(&[], 7).unwrap(), [0; 0]);
    let error = share_colours(&[1, 1, 1], 2).unwrap_err();
    assert!(
        error.to_string().contains("raise `colours` to 3"),
        "{error}"
    );
}

#[test]
fn a_layer_takes_the_trees_of_its_colours_in_turn() {
    let set = grid(&[64, 32, 16], 1, Layering::Tight)
        .groups(32_768)
        .unwrap();
    let trees = paper_trees();
    let allocation = allocate_layered(&set, &trees).unwrap();
    assert_eq!(allocation.layers.len(), 3);
    let mut in_layer = [0u64; 3];
    for (communicator, mgid) in set.communicators.iter().zip(&allocation.mgids) {
        let layer = communicator.layer as usize;
        let range = allocation.layers[layer];
        let (b, x, i) = (
            u64::from(range.first_colour),
            u64::from(range.colours),
            in_layer[layer],
        );
        assert_eq!(trees.tree_number(*mgid), b * 16 + i % (x * 16));
        in_layer[layer] += 1;
    }
    let different: BTreeSet<_> = allocation.mgids.iter().collect();
    assert_eq!(different.len(), set.communicators.len());
}

#[test]
fn four_processes_need_10_tight_and_21_literal_layers() {
    let layers = |layering| {
        let set = grid(&[100, 50, 26], 4, layering).groups(32_768).unwrap();
        set.layer_sizes().iter().filter(|&&size| size > 0).count()
    };
    assert_eq!(
        (layers(Layering::Tight), layers(Layering::Literal)),
        (10, 21)
    );
}

/// Max TFI and trees left of a grid with 32 colours on the paper's fabric.
fn tfi(dims: &[u32], per_terminal: u32, layering: Layering) -> (usize, usize) {
    let set = grid(dims, per_terminal, layering).groups(32_768).unwrap();
    let allocation = allocate_layered(&set, &paper_trees()).unwrap();
    assert_eq!(find_clash(&set, &allocation.mgids, &paper_trees()), None);
    let sharing = share_trees(&set, &allocation.mgids, &paper_trees(), &paper_places()).unwrap();
    (sharing.max_tfi, sharing.trees_left)
}

#[test]
fn published_max_tfi_come_out_with_one_process_per_terminal() {
    for (dims, max_tfi) in [([64, 32, 16], 7), ([32, 32, 32], 6)] {
        for layering in [Layering::Tight, Layering::Literal] {
            let (found, trees_left) = tfi(&dims, 1, layering);
            assert_eq!(found, max_tfi, "{dims:?}");
            assert!(
                (1840..=5408).contains(&trees_left),
                "{dims:?}: {trees_left}"
            );
        }
    }
}

#[test]
fn published_max_tfi_come_out_with_four_processes_per_terminal() {
    // Literal layers give more; the values are those of an independent count.
    for (dims, tight, literal) in [([256, 32, 16], 26, 43), ([100, 50, 26], 20, 38)] {
        let (found, trees_left) = tfi(&dims, 4, Layering::Tight);
        assert_eq!(found, tight, "{dims:?}");
        assert!(
            (1840..=5408).contains(&trees_left),
            "{dims:?}: {trees_left}"
        );
        assert_eq!(tfi(&dims, 4, Layering::Literal).0, literal, "{dims:?}");
    }
}

#[test]
fn two_dimensional_grids_below_512_groups_share_nothing() {
    for dims in [[181, 181], [100, 327]] {
        let set = grid(&dims, 1, Layering::Tight).groups(32_768).unwrap();
        let (max_tfi, trees_left) = tfi(&dims, 1, Layering::Tight);
        assert_eq!((max_tfi, trees_left), (1, set.communicators.len()));
    }
}

#[test]
fn random_groups_with_four_processes_keep_terminals_apart() {
    for count in [1000, 3000, 5000] {
        let random = RandomGroups {
            count,
            seed: 1,
            processes_per_terminal: 4,
            members_per_group: None,
        };
        let set = random.groups(32_768).unwrap();
        assert_eq!(set.memberships(), 4 * 32_768);
        let allocation = allocate_layered(&set, &paper_trees()).unwrap();
        assert_eq!(find_clash(&set, &allocation.mgids, &paper_trees()), None);
        assert_eq!(random.groups(32_768).unwrap(), set);
        assert_ne!(
            RandomGroups { seed: 2, ..random }.groups(32_768).unwrap(),
            set
        );
    }
}

#[test]
fn random_groups_of_a_size_are_cut_from_random_orders() {
    let random = RandomGroups {
        count: 100,
        seed: 9,
        processes_per_terminal: 4,
        members_per_group: Some(16),
    };
    let set = random.groups(512).unwrap();
    assert_eq!(set.communicators.len(), 100);
    assert!(set.communicators.iter().all(|c| c.members.len() == 16));
    assert_eq!(set.layer_sizes(), [25; 4]);
    assert_eq!(set.layer_clash(), None);
    let error = random.groups(256).unwrap_err();
    assert!(
        error.to_string().contains("7 processes per terminal"),
        "{error}"
    );
}

#[test]
fn a_hierarchy_has_a_layer_per_level() {
    let hierarchy = Hierarchy {
        sizes: vec![16, 512, 4096],
        processes: None,
        processes_per_terminal: 2,
        leaders_only: false,
    };
    let set = hierarchy.groups(2048).unwrap();
    assert_eq!(set.layer_sizes(), [256, 8, 1]);
    assert_eq!(set.layer_clash(), None);
    assert_eq!(set.communicators[1].members, (8..16).collect::<Vec<_>>());
    let leaders = Hierarchy {
        leaders_only: true,
        ..hierarchy.clone()
    };
    let set = leaders.groups(2048).unwrap();
    assert_eq!(
        set.communicators[257].members,
        (0..32).map(|i| 256 + i * 8).collect::<Vec<_>>()
    );
    assert_eq!(
        set.communicators[264].members,
        (0..8).map(|i| i * 256).collect::<Vec<_>>()
    );
    let odd = Hierarchy {
        sizes: vec![16, 40],
        ..hierarchy
    };
    assert!(
        odd.groups(2048)
            .unwrap_err()
            .to_string()
            .contains("multiple of 16")
    );
}

#[test]
fn bad_patterns_are_refused_with_the_cure() {
    let cases: [(Grid, u32, &str); 5] = [
        (grid(&[4], 1, Layering::Tight), 64, "2 or 3 lengths"),
        (grid(&[4, 0, 4], 1, Layering::Tight), 64, "at least 1"),
        (
            grid(&[4, 4, 4], 0, Layering::Tight),
            64,
            "at least 1 process",
        ),
        (
            grid(&[4, 4, 5], 1, Layering::Tight),
            64,
            "make the pattern smaller",
        ),
        (
            grid(&[u32::MAX; 3], 1, Layering::Tight),
            u32::MAX,
            "too many",
        ),
    ];
    for (grid, terminals, cure) in cases {
        let error = grid.groups(terminals).unwrap_err().to_string();
        assert!(error.contains(cure), "{error}");
    }
    let random = |count, processes_per_terminal, members_per_group| {
        let random = RandomGroups {
            count,
            seed: 0,
            processes_per_terminal,
            members_per_group,
        };
        random.groups(64).unwrap_err().to_string()
    };
    assert!(random(0, 1, None).contains("at least 1 group"));
    assert!(random(3, 4, None).contains("at least 4 groups"));
    assert!(random(3, 1, Some(0)).contains("at least 1 member"));
    assert!(random(3, 1, Some(65)).contains("only 64 terminals"));
}

#[test]
fn a_full_terminal_is_named_with_its_groups() {
    let groups = (0..5).map(|number| (format!("g{number}"), vec![7, 10 + number]));
    let set = GroupSet::unlayered(64, groups).unwrap();
    let trees = SpanningTrees::new(4, 4, 2, false).unwrap();
    let error = allocate_general(&set, &trees, None, Overlap::Refuse).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("terminal 7 is in 5 groups (g0, g1, g2, g3, g4)"),
        "{text}"
    );
    let shared = allocate_general(&set, &trees, None, Overlap::Share).unwrap();
    assert_eq!(find_clash(&set, &shared.mgids, &trees), None);
    let numbers: BTreeSet<u64> = shared
        .mgids
        .iter()
        .map(|&mgid| trees.tree_number(mgid))
        .collect();
    assert_eq!(numbers.len(), 4);
}

#[test]
fn groups_without_layers_are_refused_with_the_number_that_was_found() {
    // Five groups, each two of which share a terminal of their own: no terminal is full with 2 colours.
    let mut members = vec![Vec::new(); 5];
    let mut terminal = 0;
    for a in 0..5 {
        for b in a + 1..5 {
            members[a].push(terminal);
            members[b].push(terminal);
            terminal += 1;
        }
    }
    let groups = members.into_iter().enumerate();
    let set = GroupSet::unlayered(10, groups.map(|(n, m)| (format!("g{n}"), m))).unwrap();
    let trees = SpanningTrees::new(2, 4, 2, false).unwrap();
    let error = allocate_general(&set, &trees, None, Overlap::Refuse).unwrap_err();
    assert!(
        error.to_string().contains("raise `colours` to 5"),
        "{error}"
    );
    let shared = allocate_general(&set, &trees, None, Overlap::Share).unwrap();
    assert_eq!(find_clash(&set, &shared.mgids, &trees), None);
}

#[test]
fn places_of_a_built_fabric_are_regular() {
    let mut cn_tn = CnTn::new(4, 3, 2, 3, 2);
    cn_tn.cns = Some(5);
    let fabric = cn_tn.build().unwrap();
    let map = CnTnMap::recognise(&fabric).unwrap();
    assert_eq!(Places::of_map(&fabric, &map), Places::regular(5, 3, 4, 2));
}

#[test]
fn the_general_allocator_does_as_well_as_the_layers_on_grids() {
    for dims in [[64, 32, 16], [32, 32, 32]] {
        let set = grid(&dims, 1, Layering::None).groups(32_768).unwrap();
        let allocation =
            allocate_general(&set, &paper_trees(), Some(&paper_places()), Overlap::Refuse).unwrap();
        assert_eq!(find_clash(&set, &allocation.mgids, &paper_trees()), None);
        let sharing =
            share_trees(&set, &allocation.mgids, &paper_trees(), &paper_places()).unwrap();
        let (max_tfi, trees_left) = tfi(&dims, 1, Layering::Tight);
        assert!(
            sharing.max_tfi <= max_tfi && sharing.trees_left >= trees_left,
            "{dims:?}: {} and {} against {max_tfi} and {trees_left}",
            sharing.max_tfi,
            sharing.trees_left
        );
    }
}

/// Trees of the engine with fixed roots, as sets of groups.
fn trees_of_engine(
    cn_tn: &CnTn,
    set: &GroupSet,
    mgids: &[Mgid],
    trees: &SpanningTrees,
) -> BTreeSet<Vec<Mgid>> {
    let fabric = Arc::new(cn_tn.build().unwrap());
    let settings = CMr4lmsSettings {
        colours: trees.colours(),
        roots: RootChoice::Fixed,
        fault_tolerant: trees.fault_tolerant(),
    };
    let mut engine = CMr4lms::new(Arc::clone(&fabric), settings).unwrap();
    let allocation = Allocation {
        mgids: mgids.to_vec(),
        layers: Vec::new(),
    };
    engine
        .route(&allocation.groups(set, fabric.hosts()).unwrap())
        .unwrap();
    engine.trees().into_iter().map(|tree| tree.groups).collect()
}

fn trees_of_sharing(mgids: &[Mgid], tree_of: &[usize]) -> BTreeSet<Vec<Mgid>> {
    let mut groups = vec![Vec::new(); mgids.len()];
    for (&mgid, &tree) in mgids.iter().zip(tree_of) {
        groups[tree].push(mgid);
    }
    groups.iter_mut().for_each(|groups| groups.sort_unstable());
    groups
        .into_iter()
        .filter(|groups| !groups.is_empty())
        .collect()
}

#[test]
fn the_engine_shares_trees_as_foreseen_on_the_paper_s_fabric() {
    let mut cn_tn = CnTn::new(16, 32, 6, 32, 16);
    cn_tn.cns = Some(64);
    for (dims, per_terminal, max_tfi) in [([64, 32, 16], 1, 7), ([100, 50, 26], 4, 20)] {
        let set = grid(&dims, per_terminal, Layering::Tight)
            .groups(32_768)
            .unwrap();
        let mgids = allocate_layered(&set, &paper_trees()).unwrap().mgids;
        let sharing = share_trees(&set, &mgids, &paper_trees(), &paper_places()).unwrap();
        let routed = trees_of_engine(&cn_tn, &set, &mgids, &paper_trees());
        assert_eq!(routed.iter().map(Vec::len).max(), Some(max_tfi));
        assert_eq!(routed, trees_of_sharing(&mgids, &sharing.tree_of));
    }
}

/// Random communicators over the terminals of a small fabric.
fn communicators() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(0u32..48, 1..12), 1..40)
}

fn set_of(members: Vec<Vec<u32>>) -> GroupSet {
    let groups = members.into_iter().enumerate();
    GroupSet::unlayered(48, groups.map(|(n, m)| (format!("g{n}"), m))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_general_allocator_keeps_terminals_apart_or_says_why(
        members in communicators(),
        colours in 1u32..20,
        m in 1u32..5,
        share in any::<bool>(),
        local in any::<bool>(),
        pairs in any::<bool>(),
    ) {
        let set = set_of(members);
        let trees = SpanningTrees::new(colours, m, 2, pairs && m > 1).unwrap();
        let places = Places::regular(4, 3, 4, 2);
        let overlap = if share { Overlap::Share } else { Overlap::Refuse };
        let result = allocate_general(&set, &trees, local.then_some(&places), overlap);
        let mut degree = [0u32; 48];
        for communicator in &set.communicators {
            for &member in &communicator.members {
                degree[member as usize] += 1;
            }
        }
        let most = *degree.iter().max().unwrap();
        match result {
            Ok(allocation) => {
                prop_assert_eq!(find_clash(&set, &allocation.mgids, &trees), None);
                let different: BTreeSet<_> = allocation.mgids.iter().collect();
                prop_assert_eq!(different.len(), set.communicators.len());
                let given: u32 = allocation.layers.iter().map(|layer| layer.colours).sum();
                prop_assert_eq!(given, colours);
                if !share {
                    // No colour twice at any terminal.
                    for terminal in 0..48 {
                        let colours: Vec<u32> = (0..set.communicators.len())
                            .filter(|&g| set.communicators[g].members.contains(&terminal))
                            .map(|g| trees.colour(allocation.mgids[g]))
                            .collect();
                        let distinct: BTreeSet<_> = colours.iter().collect();
                        prop_assert_eq!(distinct.len(), colours.len());
                    }
                }
            }
            Err(MgidError::TerminalFull { terminal, count, .. }) => {
                prop_assert!(!share);
                prop_assert_eq!(count as u32, degree[terminal as usize]);
                prop_assert!(count as u32 > colours);
            }
            Err(MgidError::NoLayers { found, .. }) => {
                prop_assert!(!share && found > colours && most <= colours);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn the_engine_shares_trees_as_foreseen(
        members in communicators(),
        (m, q, p, k, w) in (1u32..4, 1u32..4, 1u32..3, 1u32..4, 1u32..4),
        colours in 1u32..24,
        pairs in any::<bool>(),
    ) {
        let mut cn_tn = CnTn::new(m, q, p, k, w);
        cn_tn.terminals_per_l0 = Some(48u32.div_ceil(q * k * w));
        let set = set_of(members);
        let trees = SpanningTrees::new(colours, m, p, pairs && m > 1).unwrap();
        let fabric = cn_tn.build().unwrap();
        let places = Places::of_map(&fabric, &CnTnMap::recognise(&fabric).unwrap());
        let allocation = allocate_general(&set, &trees, Some(&places), Overlap::Share).unwrap();
        let sharing = share_trees(&set, &allocation.mgids, &trees, &places).unwrap();
        prop_assert_eq!(
            trees_of_engine(&cn_tn, &set, &allocation.mgids, &trees),
            trees_of_sharing(&allocation.mgids, &sharing.tree_of)
        );
    }

    #[test]
    fn sharing_is_the_closure_of_common_links(
        members in communicators(),
        numbers in prop::collection::vec(0u64..6, 40),
    ) {
        // Two groups on one tree number share in the end exactly if a chain of merged groups has common links:
        // recomputed here with sets of named links instead of numbers and owners.
        let set = set_of(members);
        let trees = SpanningTrees::new(6, 1, 1, false).unwrap();
        let mgids: Vec<Mgid> = numbers[..set.communicators.len()].iter().map(|&n| Mgid(n)).collect();
        let sharing = share_trees(&set, &mgids, &trees, &Places::regular(4, 3, 4, 2)).unwrap();
        let links = |members: &BTreeSet<u32>| -> BTreeSet<(u8, u32)> {
            let level = |size: u32| members.iter().map(|t| t / size).collect::<BTreeSet<u32>>();
            let (l0s, cns, blocks) = (level(4), level(12), level(24));
            let mut links: BTreeSet<_> = members.iter().map(|&t| (0, t)).collect();
            if l0s.len() > 1 { links.extend(l0s.iter().map(|&n| (1, n))); }
            if cns.len() > 1 { links.extend(cns.iter().map(|&n| (2, n))); }
            if blocks.len() > 1 { links.extend(blocks.iter().map(|&n| (3, n))); }
            links
        };
        let mut parts: Vec<(u64, BTreeSet<usize>, BTreeSet<u32>)> = set.communicators.iter().enumerate()
            .map(|(n, c)| (mgids[n].0, BTreeSet::from([n]), c.members.iter().copied().collect()))
            .collect();
        'again: loop {
            for a in 0..parts.len() {
                for b in a + 1..parts.len() {
                    if parts[a].0 == parts[b].0 && !links(&parts[a].2).is_disjoint(&links(&parts[b].2)) {
                        let (_, groups, members) = parts.remove(b);
                        parts[a].1.extend(groups);
                        parts[a].2.extend(members);
                        continue 'again;
                    }
                }
            }
            break;
        }
        prop_assert_eq!(sharing.trees_left, parts.len());
        for (_, groups, _) in parts {
            let lowest = *groups.first().unwrap();
            for group in groups {
                prop_assert_eq!(sharing.tree_of[group], lowest);
            }
        }
    }
}

#[test]
#[ignore = "scale: 262,144 terminals, about 20 s"]
fn the_full_fabric_is_numbered_in_seconds() {
    let places = Places::regular(512, 32, 16, 16);
    let trees = paper_trees();
    let random = RandomGroups {
        count: 100_000,
        seed: 1,
        processes_per_terminal: 7,
        members_per_group: Some(16),
    };
    let layered = random.groups(262_144).unwrap();
    let allocation = allocate_layered(&layered, &trees).unwrap();
    assert_eq!(find_clash(&layered, &allocation.mgids, &trees), None);
    let sharing = share_trees(&layered, &allocation.mgids, &trees, &places).unwrap();
    // Every group spans the machine: the layers' groups over their trees, 14,286 / 64.
    assert_eq!((sharing.max_tfi, sharing.trees_left), (224, 512));
    let groups = layered.communicators.iter();
    let set =
        GroupSet::unlayered(262_144, groups.map(|c| (c.name.clone(), c.members.clone()))).unwrap();
    let allocation = allocate_general(&set, &trees, Some(&places), Overlap::Refuse).unwrap();
    assert_eq!(find_clash(&set, &allocation.mgids, &trees), None);
    let sharing = share_trees(&set, &allocation.mgids, &trees, &places).unwrap();
    // 100,000 groups over 512 trees are 196 at least.
    assert!(
        (196..=204).contains(&sharing.max_tfi),
        "{}",
        sharing.max_tfi
    );
    let set = grid(&[128, 64, 32], 1, Layering::Tight)
        .groups(262_144)
        .unwrap();
    let allocation = allocate_layered(&set, &trees).unwrap();
    let sharing = share_trees(&set, &allocation.mgids, &trees, &places).unwrap();
    // The lines: 8,192 over 19 * 16 trees.
    assert_eq!(sharing.max_tfi, 27);
}
