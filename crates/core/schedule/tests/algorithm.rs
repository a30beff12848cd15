//! Algorithm 1 on an example small enough for paper, in all readings, and the growing window in closed form.

use raddle_schedule::{
    Before, Distance, Edge, Graphs, Join, LIBRARY, Message, MessageSet, Place, Placement, Priority,
    Reorder, Scope, SetError, Settings, Start, Variant, Window, growth_factor, reorder, schedule,
    schedule_next,
};
use raddle_units::{BitRate, Bytes};

/// Ranks 0 and 1 on node 0, 2 and 3 on node 1, 4 and 5 on node 2, 6 and 7 on node 3.
fn example() -> (Vec<Message>, Placement) {
    let messages = [
        (0, 2, 10),
        (0, 6, 100),
        (1, 4, 700),
        (0, 1, 5), // inside node 0
        (1, 3, 500),
        (2, 0, 40),
        (2, 4, 40),
        (0, 3, 20),
        (0, 2, 30),
    ];
    let messages = messages.map(|(source, target, bytes)| Message {
        source,
        target,
        bytes: Bytes(bytes),
    });
    (messages.into(), Placement::blocks(8, 2).unwrap())
}

fn order(reading: &Reorder<'_>) -> Vec<u32> {
    let (messages, placement) = example();
    reorder(&MessageSet::new(&messages, &placement).unwrap(), reading)
}

/// What a rank sends, as lists of messages.
fn sends(settings: &Settings<'_>, rank: u32) -> Vec<Vec<u32>> {
    let (messages, placement) = example();
    let plan = schedule(&MessageSet::new(&messages, &placement).unwrap(), settings);
    let parts = |parcel| plan.parts(parcel).iter().map(|part| part.message).collect();
    plan.sends(rank).iter().map(parts).collect()
}

#[test]
fn graphs_have_the_sums_of_messages_between_nodes() {
    let (messages, placement) = example();
    let graphs = Graphs::new(&MessageSet::new(&messages, &placement).unwrap());
    let edge = |(from, to, bytes)| Edge {
        from,
        to,
        bytes: Bytes(bytes),
    };
    let nodes = [
        (0, 1, 560),
        (0, 2, 700),
        (0, 3, 100),
        (1, 0, 40),
        (1, 2, 40),
    ]
    .map(edge);
    assert_eq!(graphs.nodes.edges(), nodes);
    let processes = [
        (0, 2, 40),
        (0, 3, 20),
        (0, 6, 100),
        (1, 3, 500),
        (1, 4, 700),
        (2, 0, 40),
        (2, 4, 40),
    ];
    assert_eq!(graphs.processes.edges(), processes.map(edge));
    assert_eq!(graphs.nodes.out_degree(0), 3);
    assert_eq!(graphs.nodes.in_degree(2), 2);
    assert_eq!(graphs.nodes.received(2), Bytes(740));
    assert_eq!(graphs.processes.sent(0), Bytes(160));
}

/// Distance 1 are (0,1), (1,0), (1,2), then (0,2), then (0,3). In (0,1) the target node receives 560, process 1 sends 1200
/// and process 0 sends 160, so 1->3 weighs max(1200, 560), and 0->2 and 0->3 both 560: 0->2 is sent first.
#[test]
fn short_distances_first_and_the_start_is_the_process() {
    assert_eq!(order(&Reorder::default()), [4, 0, 8, 7, 5, 6, 2, 1]);
}

/// Node 0 sends 1360, node 1 sends 80: (0,1) weighs 1360, (1,2) max(80, 740), (1,0) max(80, 40). In (0,1) all weigh the
/// same, and 0->2 is its source's first message, 1->3 its second, 0->3 its fourth.
#[test]
fn short_distances_first_and_the_start_is_the_node() {
    let reading = Reorder {
        start: Start::Node,
        ..Reorder::default()
    };
    assert_eq!(order(&reading), [0, 8, 4, 7, 6, 5, 2, 1]);
}

#[test]
fn long_distances_first() {
    let far = |start| Reorder {
        priority: Priority::Far,
        start,
        ..Reorder::default()
    };
    assert_eq!(order(&far(Start::Process)), [1, 2, 4, 0, 8, 7, 5, 6]);
    assert_eq!(order(&far(Start::Node)), [1, 2, 0, 8, 4, 7, 6, 5]);
}

/// In a fat tree with nodes 0 and 2 below one switch and 1 and 3 below another, (0,2) is two hops, all others four.
#[test]
fn hops_of_a_topology_are_a_distance() {
    let hops = [[0, 4, 2, 4], [4, 0, 4, 2], [2, 4, 0, 4], [4, 2, 4, 0]];
    let metric = |from: u32, to: u32| hops[from as usize][to as usize];
    let reading = Reorder {
        distance: Distance::Metric(&metric),
        ..Reorder::default()
    };
    // Then (0,1), (0,3), (1,0), (1,2), by nodes.
    assert_eq!(order(&reading), [2, 4, 0, 8, 7, 1, 5, 6]);
}

#[test]
fn a_metric_hears_the_numbers_of_nodes() {
    let placement = Placement::new(&[70, 3, 70]).unwrap();
    let message = |source, target| Message {
        source,
        target,
        bytes: Bytes(1),
    };
    let messages = [message(1, 0), message(2, 1), message(0, 2)];
    let set = MessageSet::new(&messages, &placement).unwrap();
    // Node 3 is the first vertex of G', node 70 the second.
    let metric = |from: u32, to: u32| match (from, to) {
        (3, 70) => 9,
        (70, 3) => 1,
        _ => unreachable!("asked for {from} to {to}"),
    };
    let reading = Reorder {
        distance: Distance::Metric(&metric),
        ..Reorder::default()
    };
    assert_eq!(reorder(&set, &reading), [1, 0]);
    assert_eq!(
        (
            placement.number(0),
            placement.leader(0, 0, 1),
            placement.leader(1, 0, 1)
        ),
        (3, 1, 0)
    );
}

#[test]
fn a_message_inside_a_node_keeps_its_place() {
    let settings = Settings {
        variant: Variant::Reorder,
        ..Settings::default()
    };
    // Its program: 0, 1, 3 (inside the node), 7, 8; the order of the others: 0, 8, 7, 1.
    assert_eq!(sends(&settings, 0), [[0], [8], [3], [7], [1]]);
    let node = Settings {
        reorder: Reorder {
            start: Start::Node,
            ..Reorder::default()
        },
        ..settings
    };
    assert_eq!(sends(&settings, 2), [[5], [6]]);
    assert_eq!(sends(&node, 2), [[6], [5]]);
}

#[test]
fn variants_differ_in_what_they_do() {
    let with = |variant, scope| Settings {
        variant,
        join: Join {
            scope,
            ..Join::default()
        },
        ..Settings::default()
    };
    let process = |variant| sends(&with(variant, Scope::RankToNode), 0);
    assert_eq!(process(Variant::None), [[0], [1], [3], [7], [8]]);
    // The first to node 1 goes as it is, the other two as one, when the program sends the first of them.
    let aggregate: [&[u32]; 4] = [&[0], &[1], &[3], &[7, 8]];
    assert_eq!(process(Variant::Aggregate), aggregate);
    let both: [&[u32]; 4] = [&[0], &[8, 7], &[3], &[1]];
    assert_eq!(process(Variant::Both), both);
    // Nothing joins 0->2 and 0->3.
    let pair = sends(&with(Variant::Both, Scope::RankToRank), 0);
    assert_eq!(pair, [[0], [8], [3], [7], [1]]);
    // The heaviest of node 0 to node 1 is rank 1's; what follows travels as one and rank 0 sends it.
    let node = |rank| sends(&with(Variant::Both, Scope::NodeToNode), rank);
    let rank_0: [&[u32]; 3] = [&[0, 8, 7], &[3], &[1]];
    assert_eq!(node(0), rank_0);
    assert_eq!(node(1), [[4], [2]]);
}

#[test]
fn variants_are_read_by_name() {
    for variant in Variant::ALL {
        assert_eq!(variant.name().parse(), Ok(variant));
    }
    let error = "all".parse::<Variant>().unwrap_err();
    assert!(error.to_string().contains("`all`") && error.to_string().contains("reorder"));
}

#[test]
fn ranks_without_a_place_are_refused() {
    let placement = Placement::in_turn(4, 2).unwrap();
    let message = |source, target| Message {
        source,
        target,
        bytes: Bytes(1),
    };
    let messages = [message(0, 3), message(1, 4)];
    let error = MessageSet::new(&messages, &placement).unwrap_err();
    let expected = SetError::Rank {
        message: 1,
        rank: 4,
        ranks: 4,
    };
    assert_eq!(error, expected);
    let none = Placement::new(&[]).unwrap();
    let set = MessageSet::new(&[], &none).unwrap();
    assert!(schedule(&set, &Settings::default()).parcels().is_empty());
}

/// alpha = 1.5 + log2(max(NDout, NDin)), by hand for powers of two and with log2 3 = 1.5849625, log2 15 = 3.9068906.
#[test]
fn the_growth_factor_is_the_papers() {
    for (out, into, alpha) in [
        (1, 1, 1.5),
        (2, 1, 2.5),
        (1, 2, 2.5),
        (8, 5, 4.5),
        (16, 16, 5.5),
        (0, 0, 1.5),
        (3, 1, 3.084_962_5),
        (4, 15, 5.406_890_6),
    ] {
        let found = growth_factor(out, into);
        assert!((found - alpha).abs() < 1e-7, "{out} {into}: {found}");
    }
}

/// Parts per parcel for messages of 76 B, which are 100 B with their head; a parcel has 12 B more.
fn parts(join: &Join, degree: u32, parcels: usize) -> Vec<u32> {
    let mut window = Window::new(join, degree, 1);
    let mut parts: Vec<u32> = Vec::new();
    loop {
        match window.place(Bytes(76)) {
            Place::Same => *parts.last_mut().unwrap() += 1,
            Place::New if parts.len() == parcels => return parts,
            Place::New => parts.push(1),
        }
    }
}

/// With degree 2 alpha is 2.5: rooms of 112, 280, 700, 1750 and 4375 B hold 1, 2, 6, 17 and 43 messages.
#[test]
fn parcels_grow_by_the_growth_factor() {
    assert_eq!(parts(&Join::published(), 2, 5), [1, 2, 6, 17, 43]);
    // 112, 168, 252, 378, 567, 850, 1275: two fit from the third on.
    assert_eq!(parts(&Join::published(), 1, 7), [1, 1, 2, 3, 5, 8, 12]);
}

/// 63 KiB: what a library's receiver provides. 112 B grow by 2.5 up to there, and stay; with degree 1 by 1.5.
#[test]
fn the_published_window_grows_up_to_the_receivers_limit() {
    let limit = 63 << 10;
    for (degree, alpha, parcels) in [(2, 2.5_f64, 9), (1, 1.5, 18)] {
        let found = parts(&Join::published_within(Bytes(limit)), degree, parcels);
        let rooms =
            (0..parcels as i32).map(|parcel| (112.0 * alpha.powi(parcel)).min(limit as f64));
        let expected: Vec<u32> = rooms.map(|room| ((room - 12.0) / 100.0) as u32).collect();
        assert_eq!(found, expected, "degree {degree}");
        assert_eq!(*found.last().unwrap(), (limit as u32 - 12) / 100);
    }
}

/// Leaders are spread over a node's ranks, and sources take them in turn.
#[test]
fn leaders_are_spread_over_the_ranks_of_a_node() {
    let placement = Placement::blocks(16, 8).unwrap();
    let of = |leaders| [0, 1, 2, 3, 4].map(|source| placement.leader(1, source, leaders));
    assert_eq!(of(0), [8; 5]);
    assert_eq!(of(1), [8; 5]);
    assert_eq!(of(2), [8, 12, 8, 12, 8]);
    assert_eq!(of(3), [8, 10, 13, 8, 10]);
    assert_eq!(of(100), [8, 9, 10, 11, 12]);
    let leading = |leaders| {
        (8..16)
            .filter(|&rank| placement.leads(rank, leaders))
            .count()
    };
    assert_eq!([0, 1, 2, 3, 8, 100].map(leading), [1, 1, 2, 3, 8, 8]);
}

#[test]
fn growth_stops_at_what_copying_can_hide() {
    let copying = |gbps, mtu| Join {
        copy_rate: BitRate::from_gbps(gbps),
        network_rate: BitRate::from_gbps(100),
        mtu: Bytes(mtu),
        ..Join::published()
    };
    // Degree 15 would allow 5.4; twice as fast allows 2: 112, 224, 448, 896, 1792.
    assert_eq!(parts(&copying(200, 0), 15, 5), [1, 2, 4, 8, 17]);
    assert_eq!(parts(&copying(199, 0), 15, 5), [1, 1, 1, 1, 1]);
    // What fits into a packet of the network is joined all the same.
    assert_eq!(parts(&copying(199, 512), 15, 5), [1, 5, 5, 5, 5]);
    // 512, then 1280 and 3200.
    assert_eq!(parts(&copying(1000, 512), 2, 4), [1, 5, 12, 31]);
}

#[test]
fn parcels_stay_within_limits() {
    let eager = Join {
        eager_limit: Bytes(700),
        ..Join::published()
    };
    assert_eq!(parts(&eager, 2, 5), [1, 2, 6, 6, 6]);
    let cap = Join {
        cap: Bytes(611),
        ..Join::published()
    };
    assert_eq!(parts(&cap, 2, 5), [1, 2, 5, 5, 5]);
    let few = Join {
        most_parts: 3,
        ..Join::published()
    };
    assert_eq!(parts(&few, 2, 5), [1, 2, 3, 3, 3]);
    let none = Join {
        alone: Bytes(76),
        ..Join::default()
    };
    assert_eq!(parts(&none, 2, 5), [1, 1, 1, 1, 1]);
    // With its head a message of 76 B would be longer than may be sent at once.
    let tiny = Join {
        eager_limit: Bytes(111),
        ..Join::default()
    };
    assert_eq!(parts(&tiny, 2, 5), [1, 1, 1, 1, 1]);
}

/// While a large message is on its way a lot can be joined, but nothing is joined with it.
#[test]
fn a_large_message_goes_alone_and_opens_the_window() {
    let join = Join {
        alone: Bytes(5000),
        ..Join::published()
    };
    let mut window = Window::new(&join, 1, 1);
    let sizes = [76, 5000, 76, 76, 5000, 76];
    let places = sizes.map(|bytes| window.place(Bytes(bytes)));
    let [new, same] = [Place::New, Place::Same];
    assert_eq!(places, [new, new, new, same, new, new]);
}

#[test]
fn messages_without_bytes_are_joined_too() {
    let mut window = Window::new(&Join::default(), 1, 1);
    let places: Vec<Place> = (0..100).map(|_| window.place(Bytes(0))).collect();
    assert_eq!(places[..2], [Place::New, Place::New]);
    assert!(places[2..].iter().all(|&place| place == Place::Same));
}

/// Parts of each parcel of rank 0, superstep after superstep, where it sends so many messages of 100 B to rank 1.
fn parcels_of_supersteps(name: &str, counts: &[usize]) -> Vec<Vec<usize>> {
    let placement = Placement::blocks(2, 1).unwrap();
    let settings = Settings::named(name).unwrap();
    let mut before = Before::default();
    let superstep = |&count: &usize| {
        let message = Message {
            source: 0,
            target: 1,
            bytes: Bytes(100),
        };
        let messages = vec![message; count];
        let set = MessageSet::new(&messages, &placement).unwrap();
        let plan = schedule_next(&set, &settings, &mut before);
        plan.sends(0)
            .iter()
            .map(|parcel| plan.parts(parcel).len())
            .collect()
    };
    counts.iter().map(superstep).collect()
}

/// The first message goes alone, but waits for others where the last superstep that had any like it had several.
#[test]
fn the_library_waits_for_others_where_there_were_others_before() {
    let found = parcels_of_supersteps(LIBRARY, &[4, 4, 1, 4, 0, 4]);
    let expected: [&[usize]; 6] = [&[1, 3], &[4], &[1], &[1, 3], &[], &[4]];
    assert_eq!(found, expected);
    for name in ["both", "published"] {
        let found = parcels_of_supersteps(name, &[4, 4]);
        assert_eq!(found[0], found[1], "{name}");
    }
}
