//! Random schedules: loss, doubling, reordering, damage, repetition, slow and broken rails, full receive queues. Always: every
//! byte right, every message once and in order, nobody waits for ever, and all memory is given back.

use raddle_rails::{Ask, Policy, Segmentation};
use raddle_random::Random;
use raddle_units::{BitRate, Bytes, Span, Time};

use crate::world::{Link, Plan, World};

fn links(chance: &mut Random) -> Vec<Link> {
    let loss = chance.pick([0, 0, 1_000, 10_000, 50_000, 200_000]);
    let double = chance.pick([0, 0, 10_000, 200_000]);
    let reorder = chance.pick([0, 0, 10_000, 300_000]);
    let damage = chance.pick([0, 0, 30_000]);
    let count = chance.between(1, 4);
    (0..count)
        .map(|_| Link {
            rate: BitRate(chance.pick([100_000_000, 1_000_000_000, 4_000_000_000, 10_000_000_000])),
            latency: Span::from_us(chance.pick([1, 5, 20, 200])),
            queue: chance.pick([8_000, 64_000, 1 << 20]),
            loss,
            double,
            reorder,
            damage,
        })
        .collect()
}

/// One schedule; gives the packets that were taken.
fn schedule(seed: u64) -> u64 {
    let mut chance = Random::new(seed, 0);
    let links = links(&mut chance);
    let all = (1_u16 << links.len()) as u8 - 1;
    let policies = [0, 1].map(|_| {
        let send = chance.between(1, u64::from(all)) as u8;
        chance.pick([
            Policy::Dynamic,
            Policy::Dynamic,
            Policy::Static,
            Policy::Unidirectional { send },
        ])
    });
    let cutting = [0, 1].map(|_| chance.pick([Segmentation::WaterFill, Segmentation::Equal]));
    let ask = chance.pick([Ask::Hint, Ask::Wait]);
    let segments = [0, 1].map(|_| chance.pick([64, 300, 1392]));
    let scheme = chance.pick(["swift", "swift", "timely", "none"]);
    let queue = chance.pick([1, 3, 64]);
    let mut world = World::new(seed, &links, |node, config| {
        config.policy = policies[node];
        config.segmentation = cutting[node];
        config.ask = ask;
        config.segment = segments[node];
        config.short = Bytes(1000);
        config.stale = Span::from_us(50);
        config.scheme = scheme.to_owned();
        config.send_queue = queue;
        config.give_up = Span::from_ms(5_000);
        config.epoch = 1 + (seed as u32).wrapping_mul(2) % 1_000_000 + node as u32;
    });
    let mut expected = [0; 2];
    let longest = chance.pick([0, 500, 5_000, 40_000]);
    for node in [0, 1] {
        world.nodes[node].keeps = Span::from_us(chance.pick([0, 10, 500]));
        let ports = chance.between(1, 3) as u16;
        for port in 0..ports {
            let buffers = chance.pick([1, 2, 16]);
            world.open(1 - node, 10 + port, longest, buffers);
        }
        expected[1 - node] = chance.between(0, 12);
        for _ in 0..expected[1 - node] {
            let plan = Plan {
                source_port: chance.below(2) as u16,
                target_port: 10 + chance.below(ports.into()) as u16,
                length: chance.below(longest + 1),
            };
            world.plan(Time(chance.below(2_000_000_000)), node, plan);
        }
    }
    // Rails are cut and restored; the first one is whole from 20 ms on.
    for rail in 0..links.len() {
        for _ in 0..chance.pick([0, 0, 1, 5]) {
            let from = chance.below(20_000_000_000);
            let to = from + chance.below(6_000_000_000);
            world.cut(Time(from), rail, false);
            world.cut(Time(to), rail, true);
        }
        world.cut(Time::ZERO + Span::from_ms(30), rail, true);
    }
    let ended = world.run(Time::ZERO + Span::from_ms(20_000), |nodes| {
        nodes[0].received == expected[0]
            && nodes[1].received == expected[1]
            && nodes[0].sent == expected[1]
            && nodes[1].sent == expected[0]
    });
    let state: Vec<_> = world
        .nodes
        .iter()
        .map(|node| (node.sent, node.received, node.failure))
        .collect();
    assert!(
        ended,
        "seed {seed}: {expected:?} messages are to come, {state:?} at {:?}, {links:?}",
        world.now
    );
    // Buffers that are kept come back, and nothing comes twice.
    world.run(world.now + Span::from_ms(10), |_| false);
    for (node, program) in world.nodes.iter().enumerate() {
        assert_eq!(program.received, expected[node], "seed {seed}");
        assert_eq!(
            (program.connection.sending(), program.connection.receiving()),
            (0, 0)
        );
    }
    world.check_drops();
    world
        .nodes
        .iter()
        .map(|node| node.connection.counters().taken)
        .sum()
}

#[test]
fn every_message_comes_once_in_order_and_whole() {
    let packets: u64 = (0..1_000).map(schedule).sum();
    assert!(packets > 70_000, "{packets} packets");
}

/// A hundred thousand of them, on two threads: `cargo test -p raddle-rails --test rails -- --ignored`.
#[test]
#[ignore = "scale: some minutes"]
fn every_message_comes_once_in_order_and_whole_long() {
    let halves = [0, 50_000].map(|first| {
        std::thread::spawn(move || (first..first + 50_000).map(schedule).sum::<u64>())
    });
    let packets: u64 = halves
        .into_iter()
        .map(|half| half.join().expect("no schedule fails"))
        .sum();
    assert!(packets > 6_000_000, "{packets} packets");
}

/// Both nodes send to each other until all receive queues are full, and nobody provides a buffer for a while: acknowledgements
/// and grants still pass, so that everything goes on with the first buffer.
#[test]
fn full_receive_queues_do_not_block_each_other() {
    let link = Link::plain(BitRate::from_gbps(10), Span::from_us(5));
    let mut world = World::new(3, &[link; 2], |_, config| config.send_queue = 64);
    for node in [0, 1] {
        world.nodes[node].keeps = Span::from_ms(200);
        world.open(node, 1, 10_000, 2);
        world.plan_stream(node, 64, 10_000);
    }
    let full = |nodes: &[crate::world::Program; 2]| nodes.iter().all(|node| node.received == 2);
    assert!(world.run(Time::ZERO + Span::from_ms(100), full));
    assert!(!world.run(world.now + Span::from_ms(90), |nodes| nodes[0].received > 2));
    assert!(
        world.nodes.iter().all(|node| node.falls.is_empty()),
        "rails stay up"
    );
    let all = |nodes: &[crate::world::Program; 2]| nodes.iter().all(|node| node.received == 64);
    assert!(world.run(Time::ZERO + Span::from_ms(10_000), all));
}
