//! Whole groups of the published protocol in virtual time. What must hold, always:
//!
//! - every result is what the definition gives;
//! - a call is offloaded for all leaders or plain for all;
//! - nobody hangs;
//! - without faults all calls are offloaded, and kill leaves nothing in the switches.

mod packets;
mod world;

use raddle_offload::{
    order::{self, HostMpi, Order, Placement, Plan},
    published::{Refusal, Transport, additions},
    reduce::Comparison,
};
use raddle_random::Random;
use raddle_units::Time;
use raddle_wire::{DataType, Operation, compat::RcLayout, native::Collective};
use world::{Call, Conditions, Fault, Shape, World, expected};

const CALM: Conditions = Conditions {
    loss: 0,
    longest_delay_us: 20,
    think_us: 10,
    fault: None,
};

fn shape(sockets: u32, tors: u32, servers_per_tor: u32) -> Shape {
    Shape {
        sockets,
        tors,
        servers_per_tor,
        ranks_per_leader: 4,
        transport: Transport::Ud,
    }
}

/// All calls of all leaders are alike, and offloaded ones are right. Gives how many were offloaded.
fn check(world: &World, seed: u64) -> usize {
    let all: Vec<&[Call]> = world.calls().collect();
    let mut offloaded = 0;
    for call in 0..all[0].len() {
        for calls in &all {
            assert_eq!(calls[call], all[0][call], "seed {seed}, call {call}");
        }
        if let Call::Offloaded(result) = &all[0][call] {
            assert_eq!(
                *result,
                expected(world.leaders(), call),
                "seed {seed}, call {call}"
            );
            assert_eq!(
                offloaded, call,
                "seed {seed}: plain calls come after offloaded ones"
            );
            offloaded += 1;
        }
    }
    offloaded
}

#[test]
fn all_calls_are_offloaded_without_faults() {
    for (sockets, tors, servers) in [
        (1, 1, 2),
        (1, 1, 4),
        (1, 3, 3),
        (2, 3, 3),
        (1, 4, 4),
        (2, 4, 4),
        (2, 1, 3),
        (1, 7, 5),
    ] {
        let codes = [RcLayout::Code, RcLayout::Paper, RcLayout::TagMatching];
        let transports = codes.map(Transport::Rc).into_iter().chain([Transport::Ud]);
        for transport in transports {
            let shape = Shape {
                transport,
                ..shape(sockets, tors, servers)
            };
            let mut world = World::new(1, shape.clone(), CALM, 300);
            assert!(world.run(), "{shape:?} hangs");
            assert_eq!(check(&world, 1), 300, "{shape:?}: {:?}", world.terms);
            assert_eq!(world.groups(), tors as usize + usize::from(tors > 1));
            world.kill();
            assert_eq!(world.groups(), 0, "{shape:?}");
        }
    }
}

/// The paper's data plane: a packet up and a packet down for each leader, and for each TOR one to the SPINE and one back.
#[test]
fn a_round_costs_two_packets_for_each_leader_and_each_tor() {
    let frames = |calls| {
        let mut world = World::new(1, shape(2, 3, 3), CALM, calls);
        assert!(world.run());
        world.frames
    };
    assert_eq!(frames(150) - frames(50), 100 * (2 * 18 + 2 * 3));
}

#[test]
fn a_server_alone_below_its_tor_is_refused() {
    let mut world = World::new(1, shape(1, 3, 1), CALM, 3);
    assert!(world.run());
    assert_eq!(check(&world, 1), 0);
    assert_eq!(world.terms.unwrap().fail_cause, Refusal::Alone.code());
}

/// One random schedule; says whether it fell back, and how many calls were offloaded.
fn schedule(seed: u64) -> (bool, usize) {
    let mut chance = Random::new(seed ^ 0x9b11, 0);
    let tors = chance.between(1, 4) as u32;
    let shape = Shape {
        sockets: chance.between(1, 2) as u32,
        tors,
        servers_per_tor: chance.between(2, 4) as u32,
        ranks_per_leader: chance.between(1, 5) as u32,
        transport: [Transport::Ud, Transport::Rc(RcLayout::Code)][chance.index(2)],
    };
    let switch = chance.below(u64::from(tors) + 1) as usize;
    let at = Time(chance.between(1, 3_000) * 1_000_000);
    let fault = match chance.below(4) {
        0 => Some((at, Fault::Restart(switch))),
        1 => Some((at, Fault::Death(switch))),
        _ => None,
    };
    let loss = [0, 0, 300, 3_000, 30_000, 200_000][chance.index(6)];
    let conditions = Conditions {
        loss,
        longest_delay_us: [2, 20, 400][chance.index(3)],
        think_us: [1, 100, 3_000][chance.index(3)],
        fault,
    };
    let calls = chance.between(1, 30) as usize;
    let mut world = World::new(seed, shape, conditions, calls);
    assert!(world.run(), "seed {seed}: somebody hangs");
    let offloaded = check(&world, seed);
    if fault.is_none() && loss == 0 {
        assert_eq!(offloaded, calls, "seed {seed}: {:?}", world.terms);
    }
    (world.fell_back(), offloaded)
}

fn many(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let (mut fallbacks, mut offloaded) = (0, 0);
    for seed in seeds {
        let (fell, calls) = schedule(seed);
        fallbacks += u64::from(fell);
        offloaded += calls as u64;
    }
    // Both ways were taken, or this would test little.
    assert!(
        fallbacks > count / 5 && fallbacks < count * 4 / 5,
        "{fallbacks} of {count}"
    );
    assert!(offloaded > 3 * count, "{offloaded} of {count}");
}

#[test]
fn every_call_is_right_and_the_same_for_all_leaders() {
    many(0..4_000);
}

#[test]
#[ignore = "scale: 100,000 schedules"]
fn every_call_is_right_and_the_same_for_all_leaders_in_100_000_schedules() {
    many(1_000_000..1_100_000);
}

/// With powers of two everywhere, ranks, TORs and SPINE make the tree of recursive doubling over all ranks (which is what
/// Open MPI makes of a short Allreduce of one rank per node); with others most do not: three pairs do.
#[test]
fn additions_of_powers_of_two_are_those_of_the_plain_call() {
    let plain = |size| {
        let call = order::Call {
            collective: Collective::Allreduce,
            operation: Operation::Sum,
            data_type: DataType::Double,
            count: 1,
            size,
            root: 0,
            placement: Placement::OnePerNode,
            comparison: Comparison::Same,
        };
        match Order::Host(HostMpi::OpenMpi41).plan(&call) {
            Plan::Tree(tree) => tree,
            other => panic!("{other:?}"),
        }
    };
    for (ranks, local, leaders) in [
        (1, 4, 4),
        (1, 2, 4),
        (1, 4, 16),
        (2, 4, 8),
        (4, 2, 8),
        (1, 2, 6),
    ] {
        let tree = additions(ranks, local, leaders).expect("it divides");
        assert!(tree.combines_as(&plain(ranks * leaders), true));
        assert!(!tree.clone().mirrored().combines_as(&tree, true));
        assert!(tree.clone().mirrored().combines_as(&tree, false));
    }
    for (ranks, local, leaders) in [(1, 3, 9), (3, 2, 4)] {
        let tree = additions(ranks, local, leaders).expect("it divides");
        assert!(!tree.combines_as(&plain(ranks * leaders), false));
    }
    assert_eq!(additions(1, 4, 9), None);
    assert_eq!(additions(1, 0, 4), None);
}
