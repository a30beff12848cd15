//! Single cases: who has a round, and what stays behind.

use raddle_offload::switch::SwitchEvent;
use raddle_switch::{
    fast::FastPath as _,
    xdp::{Action, LeftToCore},
};
use raddle_units::Time;
use raddle_wire::{
    Operation,
    native::{Header, Kind, Reason},
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;

use crate::{
    model::{JOB, Run, drain},
    shapes::{DOUBLE, Shape, Spec},
    world::{World, child_address},
};

/// A contribution that differs from the others' takes its round away from the program: it and all later messages of
/// the round go to the core, where repetitions bring both sides together and the refusal comes from.
pub(crate) fn disagreement(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut run = Run::new(world, &mut random, Spec::plain(), false);
    let mut give = |slot: u16, child, shape| {
        run.rounds[usize::from(slot)].1 = shape;
        let (header, body) = run.contribution(&mut random, slot, child);
        let mut message = vec![0; Header::SIZE + body.len()];
        header
            .write_message(&mut message, &body, &run.key)
            .expect("a message");
        let (source, from) = run.address(&message, header.kind);
        let length = run.wrap(&message, source);
        let frame = run.frame[..length].to_vec();
        let action = run.world.fast.run(&frame, &mut run.out).expect("it runs");
        if action == Action::Pass {
            run.behind.handle_packet(Time::ZERO, from, &message);
        }
        (action, drain(&mut run.behind))
    };
    let other = Shape {
        operation: Some(Operation::Max),
        ..DOUBLE
    };
    assert_eq!(give(0, 0, DOUBLE), (Action::Drop, vec![]));
    assert_eq!(give(0, 1, other), (Action::Pass, vec![]));
    // Child 0 sends again, because no result came: now the core has both.
    let (action, sent) = give(0, 0, DOUBLE);
    assert_eq!(action, Action::Pass);
    let refusal = &sent[0].1;
    assert_eq!(
        (refusal[3], refusal[43]),
        (Kind::Refuse.code(), Reason::Mismatch.code())
    );
    // Other rounds are not concerned, nor is the slot's next one.
    for child in 0..2 {
        assert_eq!(give(1, child, DOUBLE).0, Action::Drop);
    }
    assert_eq!(give(1, 2, DOUBLE).0, Action::Redirect);
}

/// As long as a child's place is unknown the core has all rounds; the program begins with one that the core has not
/// seen, and what belongs to older ones goes on to the core.
pub(crate) fn late_neighbour(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut run = Run::new(world, &mut random, Spec::plain(), false);
    let fast = &mut run.world.fast;
    fast.remove(JOB, run.group);
    fast.route_changed(child_address(1), None);
    let event = run.installed.clone().expect("it was installed");
    fast.event(&event).expect("within the limits");
    assert_eq!(
        fast.waits_for(JOB, run.group),
        Some(LeftToCore::Unknown(child_address(1)))
    );
    for slot in 0..4_u16 {
        run.rounds[usize::from(slot)] = (1 + u32::from(slot), DOUBLE);
    }
    let mut give = |run: &mut Run<'_>, slot, child| {
        let (header, body) = run.contribution(&mut random, slot, child);
        run.exchange(&header, &body, false)
    };
    // Rounds 1 and 2: the first is complete, the second has begun.
    for (slot, child) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        assert_eq!(give(&mut run, slot, child), Action::Pass);
    }
    run.world.know(child_address(1), 1);
    assert_eq!(run.world.fast.waits_for(JOB, run.group), None);
    assert_eq!(
        give(&mut run, 1, 1),
        Action::Pass,
        "round 2 stays with the core"
    );
    assert_eq!(
        give(&mut run, 2, 0),
        Action::Drop,
        "round 3 is the program's"
    );
    assert_eq!(give(&mut run, 1, 2), Action::Pass);
    assert_eq!(
        give(&mut run, 0, 1),
        Action::Pass,
        "a repetition of round 1"
    );
    assert_eq!(give(&mut run, 2, 1), Action::Drop);
    assert_eq!(give(&mut run, 2, 2), Action::Redirect);
    // A neighbour that is forgotten for lack of ordinary frames is still there.
    run.world.fast.route_changed(child_address(1), None);
    assert_eq!(give(&mut run, 3, 0), Action::Drop);
}

/// Tables of groups that are gone are free again, from the next tick on.
pub(crate) fn install_and_free(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    // Each takes four of the 64 slots.
    for _ in 0..200 {
        let run = Run::new(world, &mut random, Spec::plain(), false);
        let group = run.group;
        world.fast.remove(JOB, group);
        world.fast.tick(Time::ZERO);
    }
    let mut groups = Vec::new();
    let mut last = None;
    for _ in 0..16 {
        let run = Run::new(world, &mut random, Spec::plain(), false);
        groups.push(run.group);
        last = run.installed;
    }
    let Some(SwitchEvent::GroupInstalled(mut plan)) = last else {
        panic!("all of them were installed");
    };
    plan.group ^= 1;
    let event = SwitchEvent::GroupInstalled(plan);
    let full = world.fast.event(&event);
    assert!(full.is_err(), "17 groups of 4 slots do not fit into 64");
    world.fast.remove(JOB, groups[3]);
    let early = world.fast.event(&event);
    assert!(early.is_err(), "a program may still run with the old group");
    world.fast.tick(Time::ZERO);
    world.fast.event(&event).expect("four slots are free");
}

/// Prints the time of messages that change nothing: the check of the tag, and everything but combining.
pub(crate) fn times(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut run = Run::new(world, &mut random, Spec::plain(), false);
    for (slot, elements) in [(0, 1), (1, 32)] {
        run.rounds[slot] = (1, Shape { elements, ..DOUBLE });
        let (header, body) = run.contribution(&mut random, slot as u16, 0);
        assert_eq!(run.exchange(&header, &body, false), Action::Drop);
        for (what, change) in [("repetition", 0), ("forged", 1), ("not ours", 2)] {
            let mut message = vec![0; Header::SIZE + body.len()];
            header
                .write_message(&mut message, &body, &run.key)
                .expect("a message");
            let length = run.wrap(&message, child_address(0));
            match change {
                1 => run.frame[length - 1] ^= 1,
                2 => run.frame[12] ^= 1,
                _ => {}
            }
            let time = run
                .world
                .fast
                .time(&run.frame[..length], 1_000_000)
                .expect("it runs");
            println!("{what}, {} B of operand: {time:?}", body.len());
        }
    }
}
