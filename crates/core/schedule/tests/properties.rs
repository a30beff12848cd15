//! What holds for any messages, placement and settings; and the same schedules from a model that is written from the
//! definitions, without regard to time.

use std::collections::{BTreeMap, VecDeque};

use proptest::{collection::vec, prelude::*, sample::Index};
use raddle_schedule::{
    Distance, Graphs, Join, Message, MessageSet, Parcel, Placement, Priority, Reorder, Schedule,
    Scope, Settings, Start, Variant, growth_factor,
    parcel::{HEAD_BYTES, PART_BYTES},
    reorder, schedule,
};
use raddle_units::{BitRate, Bytes};

/// Nodes of ranks, and messages.
#[derive(Debug, Clone)]
struct Case {
    placement: Placement,
    messages: Vec<Message>,
}

impl Case {
    fn set(&self) -> MessageSet<'_> {
        MessageSet::new(&self.messages, &self.placement).unwrap()
    }
}

fn case() -> impl Strategy<Value = Case> {
    let nodes = vec(prop::sample::select(vec![0_u32, 1, 2, 5, 9]), 1..10);
    let size = prop_oneof![
        1 => Just(0),
        4 => 1_u64..64,
        4 => 64_u64..2048,
        3 => 2048_u64..20_000,
        1 => Just(16 << 20),
        1 => Just(u64::MAX),
    ];
    let messages = vec((any::<Index>(), any::<Index>(), size), 0..60);
    (nodes, messages).prop_map(|(nodes, messages)| {
        let messages = messages.into_iter().map(|(source, target, bytes)| Message {
            source: source.index(nodes.len()) as u32,
            target: target.index(nodes.len()) as u32,
            bytes: Bytes(bytes),
        });
        Case {
            messages: messages.collect(),
            placement: Placement::new(&nodes).unwrap(),
        }
    })
}

/// Not symmetric, and with many ties.
fn crooked(from: u32, to: u32) -> u32 {
    (7 * from + 3 * to) % 4
}

fn settings() -> impl Strategy<Value = Settings<'static>> {
    use prop::sample::select;
    let order = (
        any::<bool>(),
        select(vec![Priority::Near, Priority::Far]),
        select(vec![Start::Process, Start::Node]),
    );
    let order = order.prop_map(|(crooks, priority, start)| Reorder {
        distance: if crooks {
            Distance::Metric(&crooked)
        } else {
            Distance::NodeNumbers
        },
        priority,
        start,
    });
    let max = u64::MAX;
    let join = (
        select(vec![
            Scope::RankToRank,
            Scope::RankToNode,
            Scope::NodeToNode,
        ]),
        select(vec![0, 256, 1500, 4096]),
        select(vec![1, 100, 1000, 16_384, max]),
        select(vec![0, 500, 65_536, max]),
        select(vec![2000, 1 << 20, max]),
        select(vec![0, 1, 2, 5, 1024]),
        select(vec![0, 150, 200, 300, 1000]),
        select(vec![0, 100]),
        0_u32..4,
    );
    let join = join.prop_map(
        |(scope, mtu, alone, eager_limit, cap, most_parts, copy, network, leaders)| Join {
            scope,
            mtu: Bytes(mtu),
            alone: Bytes(alone),
            eager_limit: Bytes(eager_limit),
            cap: Bytes(cap),
            most_parts,
            copy_rate: BitRate::from_gbps(copy),
            network_rate: BitRate::from_gbps(network),
            leaders,
            waits: false,
        },
    );
    let variant = select(Variant::ALL.to_vec());
    (variant, order, join).prop_map(|(variant, reorder, join)| Settings {
        variant,
        reorder,
        join,
    })
}

/// The parcels of every rank, as lists of messages.
type Lists = Vec<Vec<Vec<u32>>>;

fn lists(case: &Case, plan: &Schedule) -> Lists {
    let parts = |parcel: &Parcel| plan.parts(parcel).iter().map(|part| part.message).collect();
    (0..case.placement.ranks() as u32)
        .map(|rank| plan.sends(rank).iter().map(parts).collect())
        .collect()
}

/// The definitions, read aloud.
struct Model<'a> {
    case: &'a Case,
    settings: Settings<'static>,
}

impl Model<'_> {
    fn message(&self, index: u32) -> Message {
        self.case.messages[index as usize]
    }

    fn ends(&self, index: u32) -> (u32, u32) {
        let message = self.message(index);
        (message.source, message.target)
    }

    fn nodes(&self, index: u32) -> (u32, u32) {
        let (source, target) = self.ends(index);
        let placement = &self.case.placement;
        (placement.node(source), placement.node(target))
    }

    fn is_remote(&self, index: u32) -> bool {
        let (from, to) = self.nodes(index);
        from != to
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        0..self.case.messages.len() as u32
    }

    /// Bytes of the messages between nodes that are like this.
    fn sum(&self, like: impl Fn(u32) -> bool) -> u64 {
        self.all()
            .filter(|&index| self.is_remote(index) && like(index))
            .fold(0, |sum, index| {
                sum.saturating_add(self.message(index).bytes.0)
            })
    }

    /// How many messages the source has sent before.
    fn place(&self, index: u32) -> usize {
        let source = self.message(index).source;
        (0..index)
            .filter(|&earlier| self.message(earlier).source == source)
            .count()
    }

    /// What Algorithm 1 sorts by, as the documentation says.
    fn key(&self, index: u32) -> impl Ord + use<> {
        let (from, to) = self.nodes(index);
        let placement = &self.case.placement;
        let [a, b] = [from, to].map(|node| placement.number(node));
        let reading = &self.settings.reorder;
        let distance = match reading.distance {
            Distance::NodeNumbers => i64::from(a) - i64::from(b),
            Distance::Metric(metric) => i64::from(metric(a, b)),
        };
        let distance = match reading.priority {
            Priority::Near => distance.abs(),
            Priority::Far => -distance.abs(),
        };
        let source = self.message(index).source;
        let sent = match reading.start {
            Start::Process => self.sum(|other| self.message(other).source == source),
            Start::Node => self.sum(|other| self.nodes(other).0 == from),
        };
        let weight = sent.max(self.sum(|other| self.nodes(other).1 == to));
        let lighter_last = u64::MAX - weight;
        let by_node = if reading.start == Start::Node {
            lighter_last
        } else {
            0
        };
        let mut all = self.all();
        let first = all.find(|&other| self.ends(other) == self.ends(index));
        let first = self.place(first.unwrap());
        (
            distance,
            by_node,
            (from, to),
            lighter_last,
            first,
            self.ends(index),
            index,
        )
    }

    /// The messages between nodes in the order in which they are issued and joined.
    fn line(&self) -> Vec<u32> {
        let mut line: Vec<u32> = self.all().filter(|&index| self.is_remote(index)).collect();
        if self.settings.variant.reorders() {
            line.sort_by_cached_key(|&index| self.key(index));
        } else {
            line.sort_by_cached_key(|&index| (self.place(index), self.message(index).source));
        }
        line
    }

    fn group(&self, index: u32) -> (u32, u32) {
        let (source, target) = self.ends(index);
        let (from, to) = self.nodes(index);
        match self.settings.join.scope {
            Scope::RankToRank => (source, target),
            Scope::RankToNode => (source, to),
            Scope::NodeToNode => (from, to),
        }
    }

    /// alpha of a message's nodes after the copy rate's clamp; `None`: nothing grows.
    fn growth(&self, index: u32) -> Option<f64> {
        let (from, to) = self.nodes(index);
        let remote = || self.all().filter(|&other| self.is_remote(other));
        let mut targets: Vec<u32> = remote()
            .filter(|&other| self.nodes(other).0 == from)
            .map(|other| self.nodes(other).1)
            .collect();
        let mut sources: Vec<u32> = remote()
            .filter(|&other| self.nodes(other).1 == to)
            .map(|other| self.nodes(other).0)
            .collect();
        for nodes in [&mut targets, &mut sources] {
            nodes.sort_unstable();
            nodes.dedup();
        }
        let alpha = growth_factor(targets.len() as u32, sources.len() as u32);
        let join = &self.settings.join;
        match (join.copy_rate.0, join.network_rate.0) {
            (_, 0) => Some(alpha),
            (copy, network) if copy < 2 * network => None,
            (copy, network) => Some(alpha.min(copy as f64 / network as f64)),
        }
    }

    /// The messages of a group, cut into parcels.
    fn cut(&self, group: &[u32]) -> Vec<Vec<u32>> {
        let join = &self.settings.join;
        let limit = join.eager_limit.min(join.cap).0 as f64;
        let size = |parcel: &[u32]| {
            parcel.iter().fold(HEAD_BYTES as u64, |sum, &index| {
                sum.saturating_add(self.message(index).bytes.0)
                    .saturating_add(PART_BYTES as u64)
            }) as f64
        };
        let alone = |index| self.message(index).bytes >= join.alone || size(&[index]) > limit;
        let mut parcels = vec![vec![group[0]]];
        let mut room = size(&group[..1]);
        let mut rest = &group[1..];
        while !rest.is_empty() {
            let before = size(parcels.last().unwrap());
            let grown = self
                .growth(group[0])
                .map_or(0.0, |growth| growth * room.max(before));
            room = grown.max(join.mtu.0 as f64).min(limit);
            let fits = |&parts: &usize| {
                parts <= join.most_parts as usize
                    && size(&rest[..parts]) <= room
                    && !rest[..parts].iter().any(|&index| alone(index))
            };
            let parts = (1..=rest.len()).take_while(fits).last().unwrap_or(1);
            parcels.push(rest[..parts].to_vec());
            rest = &rest[parts..];
        }
        parcels
    }

    fn schedule(&self) -> Lists {
        let line = self.line();
        let mut parcels: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        if self.settings.variant.aggregates() {
            let mut groups: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
            for &index in &line {
                groups.entry(self.group(index)).or_default().push(index);
            }
            let cut = groups.values().flat_map(|group| self.cut(group));
            parcels.extend(cut.map(|parcel| (parcel[0], parcel)));
        } else {
            parcels.extend(line.iter().map(|&index| (index, vec![index])));
        }
        let ranks = self.case.placement.ranks() as u32;
        let rank = |rank| {
            let own = |&index: &u32| self.message(index).source == rank;
            let mut issue = line.iter().copied().filter(own);
            let program = self.all().filter(own);
            let next = |index| {
                if self.is_remote(index) {
                    return parcels.get(&issue.next().unwrap()).cloned();
                }
                Some(vec![index])
            };
            program.filter_map(next).collect()
        };
        (0..ranks).map(rank).collect()
    }
}

/// Takes random steps until nothing is left: one item of one queue at a time, first in, first out.
fn drain<K: Ord + Copy, T>(
    queues: &mut BTreeMap<K, VecDeque<T>>,
    choice: Index,
    take: &mut impl FnMut(K, T),
) {
    let open: Vec<K> = queues.keys().copied().collect();
    let key = open[choice.index(open.len())];
    let queue = queues.get_mut(&key).unwrap();
    take(key, queue.pop_front().unwrap());
    if queue.is_empty() {
        queues.remove(&key);
    }
}

/// In which order messages reach their targets if every way is first in, first out, but some ways are slower than others:
/// from issuer to receiver, and inside a node from receiver to target.
fn arrivals(plan: &Schedule, choices: &[Index]) -> Vec<u32> {
    let receive = plan.receive_plan();
    let mut network: BTreeMap<(u32, u32), VecDeque<Parcel>> = BTreeMap::new();
    for &parcel in plan.parcels() {
        let way = (parcel.issuer, parcel.receiver);
        network.entry(way).or_default().push_back(parcel);
    }
    let mut memory: BTreeMap<(u32, u32), VecDeque<u32>> = BTreeMap::new();
    let mut arrived = Vec::new();
    for choice in choices.iter().cycle() {
        let hand_on = !memory.is_empty() && (network.is_empty() || choice.index(3) == 0);
        if hand_on {
            drain(&mut memory, *choice, &mut |_, message| {
                arrived.push(message)
            });
        } else if network.is_empty() {
            break;
        } else {
            drain(&mut network, *choice, &mut |_, parcel| {
                for hand_on in receive.hand_on(&parcel) {
                    let messages = hand_on.parts.iter().map(|part| part.message);
                    if hand_on.target == parcel.receiver {
                        arrived.extend(messages);
                    } else {
                        let way = (parcel.receiver, hand_on.target);
                        memory.entry(way).or_default().extend(messages);
                    }
                }
            });
        }
    }
    arrived
}

/// Messages by (source, target), in the order in which they stand in `messages`.
fn by_pair(case: &Case, messages: &[u32]) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut pairs: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for &index in messages {
        let message = case.messages[index as usize];
        pairs
            .entry((message.source, message.target))
            .or_default()
            .push(index);
    }
    pairs
}

fn ascending(pairs: &BTreeMap<(u32, u32), Vec<u32>>) -> bool {
    pairs.values().all(|messages| messages.is_sorted())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn schedules_are_those_of_the_definitions(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        let model = Model { case: &case, settings };
        prop_assert_eq!(lists(&case, &plan), model.schedule());
    }

    #[test]
    fn every_message_is_sent_once(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        let mut sent: Vec<u32> = plan.all_parts().iter().map(|part| part.message).collect();
        sent.sort_unstable();
        prop_assert!(sent.into_iter().eq(0..case.messages.len() as u32));
        let by_rank = (0..case.placement.ranks() as u32).flat_map(|rank| {
            assert!(plan.sends(rank).iter().all(|parcel| parcel.issuer == rank));
            plan.sends(rank)
        });
        prop_assert!(by_rank.eq(plan.parcels()));
        for part in plan.all_parts() {
            let Message { source, target, .. } = case.messages[part.message as usize];
            prop_assert_eq!((part.source, part.target), (source, target));
        }
    }

    #[test]
    fn only_messages_of_one_pair_of_nodes_are_joined(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        let node = |rank| case.placement.node(rank);
        for parcel in plan.parcels() {
            let parts = plan.parts(parcel);
            prop_assert_eq!(parcel.issuer, parts[0].source);
            prop_assert_eq!(parcel.is_joined(), parts.len() > 1);
            prop_assert_eq!(node(parcel.receiver), node(parts[0].target));
            let same = |f: &dyn Fn(&raddle_schedule::Part) -> u32| {
                parts.iter().all(|part| f(part) == f(&parts[0]))
            };
            let one_source = same(&|part| part.source);
            let one_target = same(&|part| part.target);
            if one_target {
                prop_assert_eq!(parcel.receiver, parts[0].target);
            } else {
                prop_assert_eq!(parcel.receiver, case.placement.leader(node(parts[0].target), parcel.issuer, settings.join.leaders));
                prop_assert!(case.placement.leads(parcel.receiver, settings.join.leaders));
            }
            if !parcel.is_joined() {
                continue;
            }
            prop_assert!(settings.variant.aggregates());
            prop_assert!(same(&|part| node(part.source)) && same(&|part| node(part.target)));
            prop_assert!(node(parts[0].source) != node(parts[0].target));
            prop_assert!(one_source || settings.join.scope == Scope::NodeToNode);
            prop_assert!(one_target || settings.join.scope != Scope::RankToRank);
        }
    }

    #[test]
    fn joined_parcels_stay_within_limits(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        let join = &settings.join;
        for parcel in plan.parcels() {
            let sizes = plan.parts(parcel).iter().map(|part| case.messages[part.message as usize].bytes.0);
            if !parcel.is_joined() {
                prop_assert_eq!(parcel.bytes.0, sizes.sum::<u64>());
                continue;
            }
            prop_assert!(sizes.clone().all(|bytes| bytes < join.alone.0));
            let heads = HEAD_BYTES + PART_BYTES * sizes.len();
            prop_assert_eq!(parcel.bytes.0, heads as u64 + sizes.sum::<u64>());
            prop_assert!(parcel.bytes <= join.eager_limit.min(join.cap));
            prop_assert!(plan.parts(parcel).len() <= join.most_parts as usize);
        }
    }

    /// A process issues the messages of a pair that it issues itself in program order, and sequences count the pair.
    #[test]
    fn the_order_of_a_pair_stays(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        for rank in 0..case.placement.ranks() as u32 {
            let parts = plan.sends(rank).iter().flat_map(|parcel| plan.parts(parcel));
            let issued: Vec<u32> = parts.map(|part| part.message).collect();
            prop_assert!(ascending(&by_pair(&case, &issued)));
        }
        let mut parts = plan.all_parts().to_vec();
        parts.sort_unstable_by_key(|part| part.message);
        let mut next = BTreeMap::new();
        for part in parts {
            let sequence = next.entry((part.source, part.target)).or_insert(0);
            prop_assert_eq!(part.sequence, *sequence);
            *sequence += 1;
        }
    }

    /// However long the ways take: released by sequence, each source's messages reach the program in program order, and
    /// none is left over. Where nothing is handed on it needs no sequence.
    #[test]
    fn receivers_see_no_message_of_a_pair_overtake_another(
        case in case(),
        settings in settings(),
        choices in vec(any::<Index>(), 1..100),
    ) {
        let plan = schedule(&case.set(), &settings);
        let mut sequence = vec![0; case.messages.len()];
        for part in plan.all_parts() {
            sequence[part.message as usize] = part.sequence;
        }
        let arrived = arrivals(&plan, &choices);
        prop_assert_eq!(arrived.len(), case.messages.len());
        let direct = !settings.variant.aggregates() || settings.join.scope == Scope::RankToRank;
        prop_assert!(!direct || ascending(&by_pair(&case, &arrived)));

        let mut waiting: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
        let mut next: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut released = Vec::new();
        for message in arrived {
            let Message { source, target, .. } = case.messages[message as usize];
            waiting.insert((source, target, sequence[message as usize]), message);
            let next = next.entry((source, target)).or_insert(0);
            while let Some(message) = waiting.remove(&(source, target, *next)) {
                released.push(message);
                *next += 1;
            }
        }
        prop_assert!(waiting.is_empty());
        let all: Vec<u32> = (0..case.messages.len() as u32).collect();
        prop_assert_eq!(by_pair(&case, &released), by_pair(&case, &all));
    }

    #[test]
    fn receivers_know_what_comes(case in case(), settings in settings()) {
        let plan = schedule(&case.set(), &settings);
        let receive = plan.receive_plan();
        let mut incoming = Vec::new();
        for rank in 0..case.placement.ranks() as u32 {
            let own = receive.incoming(rank);
            prop_assert!(own.is_sorted(), "an issuer's in the order of issue");
            prop_assert!(own.iter().all(|&parcel| plan.parcels()[parcel as usize].receiver == rank));
            incoming.extend_from_slice(own);

            let deliveries = receive.deliveries(rank);
            prop_assert!(deliveries.is_sorted_by_key(|delivery| (delivery.source, delivery.sequence)));
            for delivery in deliveries {
                let parcel = &plan.parcels()[delivery.parcel as usize];
                let parts = plan.parts(parcel);
                let part = parts.iter().find(|part| part.message == delivery.message).unwrap();
                prop_assert_eq!(
                    (part.source, part.target, part.sequence),
                    (delivery.source, rank, delivery.sequence)
                );
            }
            let expected = case.messages.iter().filter(|message| message.target == rank);
            prop_assert_eq!(deliveries.len(), expected.count());
        }
        incoming.sort_unstable();
        prop_assert!(incoming.into_iter().eq(0..plan.parcels().len() as u32));
        for parcel in plan.parcels() {
            let mut parts = plan.parts(parcel).to_vec();
            parts.sort_by_key(|part| part.target);
            let handed = receive.hand_on(parcel);
            let targets: Vec<u32> = receive.hand_on(parcel).map(|hand_on| hand_on.target).collect();
            prop_assert!(targets.is_sorted_by(|a, b| a < b));
            let handed: Vec<_> = handed.flat_map(|hand_on| hand_on.parts.to_vec()).collect();
            prop_assert_eq!(handed, parts);
        }
    }

    /// Ranks send at the same time, so how their messages are interleaved in the set means nothing.
    #[test]
    fn interleaving_of_sources_makes_no_difference(
        case in case(),
        settings in settings(),
        choices in vec(any::<Index>(), 60),
    ) {
        let mut queues: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
        for (index, message) in (0..).zip(&case.messages) {
            queues.entry(message.source).or_default().push_back(index);
        }
        let mut order = Vec::new();
        for &choice in &choices[..case.messages.len()] {
            drain(&mut queues, choice, &mut |_, index| order.push(index));
        }
        let mixed = Case {
            messages: order.iter().map(|&index| case.messages[index as usize]).collect(),
            placement: case.placement.clone(),
        };
        let plan = schedule(&case.set(), &settings);
        let other = schedule(&mixed.set(), &settings);
        let mut renamed = lists(&mixed, &other);
        for message in renamed.iter_mut().flatten().flatten() {
            *message = order[*message as usize];
        }
        prop_assert_eq!(renamed, lists(&case, &plan));
        prop_assert!(other.parcels().iter().eq(plan.parcels()));
    }

    #[test]
    fn the_order_is_a_bijection_with_pairs_adjacent(case in case(), settings in settings()) {
        let order = reorder(&case.set(), &settings.reorder);
        let variant = Variant::Both;
        let model = Model { case: &case, settings: Settings { variant, ..settings } };
        prop_assert_eq!(&order, &model.line());
        let node = |rank| case.placement.node(rank);
        let message = |index: &u32| case.messages[*index as usize];
        let processes = |index: &u32| (message(index).source, message(index).target);
        let nodes = |index: &u32| (node(message(index).source), node(message(index).target));
        for key in [&processes as &dyn Fn(&u32) -> (u32, u32), &nodes] {
            let mut seen: Vec<_> = order.iter().map(key).collect();
            seen.dedup();
            let runs = seen.len();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(runs, seen.len());
        }
        let mut all = order;
        all.sort_unstable();
        let remote = (0..case.messages.len() as u32).filter(|index| nodes(index).0 != nodes(index).1);
        prop_assert!(all.into_iter().eq(remote));
    }

    #[test]
    fn graphs_hold_every_byte_between_nodes(case in case()) {
        let graphs = Graphs::new(&case.set());
        for graph in [&graphs.processes, &graphs.nodes] {
            prop_assert!(graph.edges().is_sorted_by(|a, b| (a.from, a.to) < (b.from, b.to)));
            let out = |vertex| graph.edges().iter().filter(move |edge| edge.from == vertex);
            let into = |vertex| graph.edges().iter().filter(move |edge| edge.to == vertex);
            let sum = |bytes: u64, edge: &raddle_schedule::Edge| bytes.saturating_add(edge.bytes.0);
            for edge in graph.edges() {
                let (from, to) = (edge.from, edge.to);
                prop_assert_eq!(graph.out_degree(from) as usize, out(from).count());
                prop_assert_eq!(graph.in_degree(to) as usize, into(to).count());
                prop_assert_eq!(graph.sent(from).0, out(from).fold(0, sum));
                prop_assert_eq!(graph.received(to).0, into(to).fold(0, sum));
            }
        }
        let total = |edges: &[raddle_schedule::Edge]| {
            edges.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.bytes.0))
        };
        let remote = case.messages.iter().filter(|message| {
            case.placement.node(message.source) != case.placement.node(message.target)
        });
        let bytes = remote.fold(0_u64, |sum, message| sum.saturating_add(message.bytes.0));
        prop_assert_eq!(total(graphs.processes.edges()), bytes);
        prop_assert_eq!(total(graphs.nodes.edges()), bytes);
    }
}
