//! Every receive gets what MPI's matching gives it, for random programs, placements, settings and delays.

mod world;

use std::{cell::RefCell, collections::BTreeMap};

use proptest::{prelude::*, test_runner::TestRunner};
use raddle_matching::Statistics;
use world::{
    Sending, World,
    cases::{Case, Kind, Op, cases},
    model::{Record, takes},
};

/// The world compares each call with the model, and checks bytes, room, and that nothing is left.
#[test]
fn random_programs() {
    let reached = RefCell::new(Statistics::default());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(200));
    let run = runner.run(&cases(Kind::Any), |case| {
        let mut world = World::new(&case);
        world.run();
        for (rank, records) in (0..).zip(world.records()) {
            legal(rank, records, &world.messages);
        }
        let mut reached = reached.borrow_mut();
        for own in world.statistics() {
            reached.without_room += own.without_room;
            reached.grants += own.grants;
            reached.handed_on += own.handed_on;
            reached.unexpected += own.unexpected;
            reached.set_aside += own.set_aside;
            reached.offered += own.offered;
        }
        Ok(())
    });
    run.unwrap();
    let reached = reached.borrow();
    let counts = [
        reached.without_room,
        reached.grants,
        reached.handed_on,
        reached.unexpected,
        reached.set_aside,
        reached.offered,
    ];
    assert!(counts.iter().all(|&count| count > 50), "{reached:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Without wildcards the k-th receive of a source and tag gets the k-th message, whatever the delays are.
    #[test]
    fn receives_without_wildcards_are_determined(case in cases(Kind::Determined), other: u64) {
        let first = outcome(&case);
        prop_assert_eq!(&first, &outcome(&Case { seed: other, ..case.clone() }));
        for (rank, records) in (0_u32..).zip(&first) {
            let mut taken = BTreeMap::new();
            for (wanted, got) in records {
                let taken = taken.entry(*wanted).or_insert(0);
                let (context, source, tag) = *wanted;
                let number = numbers(&case, source, (rank, context, tag)).nth(*taken);
                *taken += 1;
                prop_assert_eq!(*got, number);
            }
        }
    }
}

/// What MPI 4.0, section 3.5, forbids, without regard to when messages came.
fn legal(rank: u32, records: &[Record], messages: &[Sending]) {
    let mut got = BTreeMap::new();
    for (id, record) in records.iter().enumerate() {
        if let Some(message) = record.message {
            assert_eq!(messages[message].target, rank);
            assert_eq!(got.insert(message, id), None, "received twice");
        }
    }
    for (id, record) in records.iter().enumerate() {
        let (Some(wanted), Some(message)) = (&record.wanted, record.message) else {
            continue;
        };
        let envelope = &messages[message].envelope;
        assert!(takes(wanted, envelope));
        for (earlier, other) in messages[..message].iter().enumerate() {
            let same_pair = other.target == rank && other.envelope.source == envelope.source;
            if same_pair && takes(wanted, &other.envelope) {
                let by = got[&earlier];
                let claimed = records[by].wanted.is_none();
                assert!(claimed || by < id, "message {message} overtook {earlier}");
            }
        }
    }
    for (id, record) in records.iter().enumerate() {
        let Some(wanted) = record.wanted.filter(|_| !record.cancelled) else {
            continue;
        };
        for later in &records[id + 1..] {
            let (Some(_), Some(message)) = (later.wanted, later.message) else {
                continue;
            };
            if takes(&wanted, &messages[message].envelope) {
                let own = record.message.expect("a later receive got its message");
                let same = messages[own].envelope.source == messages[message].envelope.source;
                assert!(!same || own < message, "receives are not in order");
            }
        }
    }
}

/// By rank: what each receive of the program asked for, and which of its source's messages it got.
type Outcome = Vec<Vec<((u32, u32, i32), Option<usize>)>>;

fn outcome(case: &Case) -> Outcome {
    let mut world = World::new(case);
    world.run();
    let messages = &world.messages;
    // How the messages of all ranks are interleaved depends on the seed, so they are counted by source.
    let number = |message: usize| {
        let source = messages[message].envelope.source;
        let before = messages[..message].iter();
        before
            .filter(|other| other.envelope.source == source)
            .count()
    };
    let records = world.records().into_iter().map(|records| {
        let receives = records.iter().filter_map(|record| {
            let wanted = record.wanted?;
            let key = (wanted.context, wanted.source?, wanted.tag?);
            Some((key, record.message.map(number)))
        });
        receives.collect()
    });
    records.collect()
}

/// Places among its sends of those of a program that go to (rank, context, tag).
fn numbers(case: &Case, source: u32, to: (u32, u32, i32)) -> impl Iterator<Item = usize> {
    let sends = case.programs[source as usize]
        .iter()
        .filter_map(|op| match op {
            Op::Send(message) => Some((message.to, message.context, message.tag)),
            _ => None,
        });
    sends
        .enumerate()
        .filter(move |(_, message)| *message == to)
        .map(|(number, _)| number)
}
