//! The packets that leaders and switches make, byte for byte, and what packets of others do to them.

#[path = "../../../../../fuzz/published.rs"]
mod fuzzed;

use std::net::Ipv4Addr;

use proptest::prelude::*;
use raddle_offload::{
    published::{
        Drop, FRAME_ROOM, Leader, LeaderConfig, Outcome, Stage, Switch, SwitchConfig, Terms, Tier,
        Transmit, Transport, Verdict,
    },
    roles::Roles,
};
use raddle_units::{Span, Time};
use raddle_wire::{
    Class, DataType, Datagram, Edit, Operation, RocePacket, classify,
    compat::{Content, ControlKind, RcLayout},
};

const TOR: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

fn leader(rank: u32, transport: Transport) -> Leader {
    let config = LeaderConfig {
        roles: Roles::new(1, 3, 2).unwrap(),
        rank,
        group: 7,
        transport,
        nodes: (1..4).map(|host| Ipv4Addr::new(10, 0, 0, host)).collect(),
        give_up: Span::from_ms(20),
        overdue: Span::from_ms(2),
    };
    Leader::new(Time::ZERO, config).unwrap()
}

fn frames(leader: &mut Leader) -> Vec<Vec<u8>> {
    let mut buffer = [0; FRAME_ROOM];
    let mut all = Vec::new();
    while let Some((_, length)) = leader.poll_transmit(&mut buffer) {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// Sets a group of three leaders up below one TOR.
fn set_up(transport: Transport) -> (Switch, Vec<Leader>, Vec<Vec<u8>>) {
    let mut switch = Switch::new(SwitchConfig::new(TOR, Tier::Tor));
    let mut leaders: Vec<Leader> = [0, 2, 4].map(|rank| leader(rank, transport)).into();
    let mut passed = Vec::new();
    for at in [1, 2] {
        for mut frame in frames(&mut leaders[at]) {
            passed.push(frame.clone());
            assert_eq!(
                switch.handle_frame(Time::ZERO, &mut frame),
                Verdict::Rewritten(None)
            );
            passed.push(frame.clone());
            assert!(leaders[0].handle_frame(Time::ZERO, &frame));
        }
    }
    assert_eq!(leaders[0].stage(), Stage::Collected(None));
    leaders[0].notify(None, 0);
    for (mut frame, at) in frames(&mut leaders[0]).into_iter().zip([1, 2]) {
        passed.push(frame.clone());
        assert_eq!(
            switch.handle_frame(Time::ZERO, &mut frame),
            Verdict::Rewritten(None)
        );
        passed.push(frame.clone());
        assert!(leaders[at].handle_frame(Time::ZERO, &frame));
    }
    let terms = leaders.iter().map(|leader| match leader.stage() {
        Stage::Set(terms) => terms,
        other => panic!("{other:?}"),
    });
    let terms = terms.reduce(Terms::join).unwrap();
    assert!(terms.usable(), "{terms:?}");
    assert_eq!(terms.local, 3);
    leaders.iter_mut().for_each(|leader| leader.open(terms));
    (switch, leaders, passed)
}

/// The vector of the protocol's independent description: UD, rank 2, group 7, SUM DOUBLE, round 1, one value, 1.0.
#[test]
fn a_data_packet_is_as_the_published_library_writes_it() {
    let (_, mut leaders, _) = set_up(Transport::Ud);
    let one = 1_f64.to_be_bytes();
    leaders[1]
        .start(Time::ZERO, Operation::Sum, DataType::Double, &one)
        .unwrap();
    let frame = frames(&mut leaders[1]).remove(0);
    let packet = RocePacket::parse(Datagram::find(&frame).unwrap().unwrap()).unwrap();
    packet.verify_icrc().unwrap();
    let message = &packet.payload()[16..];
    let vector = "443322110000000200070000030a0100000188776655\
                  3ff0000000000000\
                  0000";
    let bytes: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bytes, vector);
}

#[test]
fn control_packets_have_the_fields_of_the_description() {
    for transport in [Transport::Ud, Transport::Rc(RcLayout::Code)] {
        let (_, mut leaders, passed) = set_up(transport);
        let say = |frame: &[u8]| match classify(frame).unwrap() {
            Class::Compat(_, message) => match message.content {
                Content::Control(kind, control) => (kind, message.head.values(), control.values()),
                Content::Data(_) => panic!("data"),
            },
            other => panic!("{other:?}"),
        };
        let (kind, head, query) = say(&passed[0]);
        assert_eq!(
            (kind, head.src_rank, head.comm_id, head.data_flag),
            (ControlKind::Query, 2, 1, 0)
        );
        assert_eq!(
            (query.sup_allreduce_op, query.sup_data_type),
            (0xffff, 0x47ff)
        );
        assert_eq!((query.sup_comm_type, query.sup_max_data_size), (1, 256));
        assert_eq!(
            (query.master_num, query.hops, query.global_group_size),
            (1, 0, 3)
        );
        assert_eq!(
            (query.true_comm_id, query.dst_rank, query.ava_grp_num),
            (7, 0, 0)
        );
        let (_, head, query) = say(&passed[1]);
        assert_eq!((head.data_flag, query.hops, query.tor1_ip), (1, 1, TOR));
        assert_eq!(
            (query.sup_allreduce_op, query.sup_data_type),
            (0x03ff, 0x07fe & 0x47ff)
        );
        let (kind, _, notify) = say(&passed[4]);
        assert_eq!((kind, notify.local_group_size), (ControlKind::Notify, 0));
        let (_, _, notify) = say(&passed[5]);
        assert_eq!(
            (notify.local_group_size, notify.dst_rank, notify.hops),
            (3, 2, 1)
        );
        leaders[0].kill();
        let kills: Vec<_> = frames(&mut leaders[0])
            .iter()
            .map(|frame| say(frame))
            .collect();
        let all: Vec<_> = kills
            .iter()
            .map(|(kind, _, kill)| (*kind, kill.dst_rank))
            .collect();
        assert_eq!(all, [(ControlKind::Kill, 2), (ControlKind::Kill, 4)]);
        assert!(
            kills
                .iter()
                .all(|(_, _, kill)| kill.true_comm_id == 7 && kill.local_group_size == 3)
        );
    }
}

#[test]
fn held_packets_go_on_to_their_receivers_with_the_result() {
    let (mut switch, mut leaders, _) = set_up(Transport::Ud);
    let mut sent = Vec::new();
    for (at, value) in [1.5_f64, 2.0, 4.0].into_iter().enumerate() {
        let operands = value.to_be_bytes();
        leaders[at]
            .start(Time::ZERO, Operation::Sum, DataType::Double, &operands)
            .unwrap();
        let mut frame = frames(&mut leaders[at]).remove(0);
        sent.push(frame.clone());
        assert_eq!(switch.handle_frame(Time::ZERO, &mut frame), Verdict::Taken);
        // The same again is no second operand.
        let again = switch.handle_frame(Time::ZERO, &mut sent[at].clone());
        assert_eq!(again, Verdict::Dropped(Drop::Repeated));
    }
    let mut buffer = [0; FRAME_ROOM];
    for frame in &sent {
        let (transmit, length) = switch.poll_transmit(&mut buffer).unwrap();
        assert_eq!(transmit, Transmit::Released);
        let released = &buffer[..length];
        let packet = RocePacket::parse(Datagram::find(released).unwrap().unwrap()).unwrap();
        packet.verify_icrc().unwrap();
        // Head at 42 + 12 + 8 + 16: its flag, its values and the ICRC differ, nothing else.
        let differ: Vec<usize> = (0..frame.len())
            .filter(|&at| frame[at] != released[at])
            .collect();
        let (head, icrc) = (78, frame.len() - 4);
        assert!(
            differ
                .iter()
                .all(|&at| at == head + 8 || (head + 22..head + 30).contains(&at) || at >= icrc)
        );
        let at = [2, 4, 0]
            .iter()
            .position(|&rank| packet.bth.destination_qp() == rank + 2)
            .unwrap();
        assert!(leaders[[1, 2, 0][at]].handle_frame(Time::ZERO, released));
    }
    for leader in &leaders {
        let sum = 7.5_f64.to_be_bytes();
        assert_eq!(leader.outcome(Time::ZERO), Outcome::Done(&sum));
    }
    assert_eq!(switch.counters().rounds, 1);
}

/// Open MPI's recursive doubling: neighbours first, then pairs of blocks.
fn doubled(values: &[f64]) -> f64 {
    match values {
        [one] => *one,
        more => {
            let (low, high) = more.split_at(more.len() / 2);
            doubled(low) + doubled(high)
        }
    }
}

/// With equal powers of two everywhere, sums have the bits of the plain call.
#[test]
fn floats_are_added_as_open_mpi_does() {
    let roles = Roles::new(1, 4, 1).unwrap();
    let mut switch = Switch::new(SwitchConfig::new(TOR, Tier::Tor));
    let nodes: Vec<_> = (1..5).map(|host| Ipv4Addr::new(10, 0, 0, host)).collect();
    let make = |rank| {
        let (group, transport) = (9, Transport::Ud);
        let (give_up, overdue, nodes) = (Span::from_ms(20), Span::from_ms(2), nodes.clone());
        let config = LeaderConfig {
            roles,
            rank,
            group,
            transport,
            nodes,
            give_up,
            overdue,
        };
        Leader::new(Time::ZERO, config).unwrap()
    };
    let mut leaders = [0, 1, 2, 3].map(make);
    let mut pass = |leaders: &mut [Leader]| {
        let mut all: Vec<Vec<u8>> = leaders.iter_mut().flat_map(frames).collect();
        let mut buffer = [0; FRAME_ROOM];
        for frame in std::mem::take(&mut all) {
            let mut frame = frame;
            if switch.handle_frame(Time::ZERO, &mut frame) != Verdict::Taken {
                all.push(frame);
            }
        }
        while let Some((_, length)) = switch.poll_transmit(&mut buffer) {
            all.push(buffer[..length].to_vec());
        }
        for frame in &all {
            let taken = leaders
                .iter_mut()
                .filter_map(|leader| leader.handle_frame(Time::ZERO, frame).then_some(()));
            assert_eq!(taken.count(), 1);
        }
    };
    pass(&mut leaders);
    leaders[0].notify(None, 0);
    pass(&mut leaders);
    let Stage::Set(terms) = leaders[1].stage() else {
        panic!("no terms");
    };
    leaders.iter_mut().for_each(|leader| leader.open(terms));
    let mut draw = raddle_random::Random::new(5, 0);
    for _ in 0..200 {
        let values: Vec<f64> = (0..4).map(|_| (draw.unit() - 0.5) * 1e9).collect();
        for (leader, value) in leaders.iter_mut().zip(&values) {
            let operands = value.to_be_bytes();
            leader
                .start(Time::ZERO, Operation::Sum, DataType::Double, &operands)
                .unwrap();
        }
        pass(&mut leaders);
        let sum = doubled(&values).to_be_bytes();
        for leader in &leaders {
            assert_eq!(leader.outcome(Time::ZERO), Outcome::Done(&sum));
        }
    }
}

/// Operands and results look alike in the published protocol; a neighbour's operands must never pass for a result.
#[test]
fn a_leader_takes_no_operands_for_a_result() {
    let (_, mut leaders, _) = set_up(Transport::Ud);
    for leader in &mut leaders {
        leader
            .start(
                Time::ZERO,
                Operation::Sum,
                DataType::Int64,
                &1_i64.to_be_bytes(),
            )
            .unwrap();
    }
    let frame = frames(&mut leaders[0]).remove(0);
    assert!(!leaders[1].handle_frame(Time::ZERO, &frame));
    assert_eq!(leaders[1].counters().dropped, 1);
    let mut restarted = Switch::new(SwitchConfig::new(TOR, Tier::Tor));
    let verdict = restarted.handle_frame(Time::ZERO, &mut frame.clone());
    assert_eq!(verdict, Verdict::Dropped(Drop::UnknownGroup));
}

#[test]
fn groups_without_packets_are_forgotten() {
    let (mut switch, ..) = set_up(Transport::Ud);
    let due = switch.poll_timeout().unwrap();
    assert_eq!(due, Time::ZERO + Span::from_ms(600_000));
    switch.handle_timeout(due);
    assert_eq!((switch.group_count(), switch.counters().forgotten), (0, 1));
}

#[test]
fn another_master_cannot_take_a_number() {
    let (mut switch, _, passed) = set_up(Transport::Ud);
    // The query of another job: another master, the same number.
    let mut frame = passed[0].clone();
    let at = Datagram::find(&frame).unwrap().unwrap().ip_at();
    let mut ipv4 = Datagram::find(&frame).unwrap().unwrap().ipv4.values();
    assert!(at > 0);
    ipv4.destination = Ipv4Addr::new(10, 0, 0, 9);
    let mut edit = Edit::begin(&mut frame).unwrap().unwrap();
    edit.set_ipv4(&ipv4).unwrap();
    edit.finish().unwrap();
    assert_eq!(
        switch.handle_frame(Time::ZERO, &mut frame),
        Verdict::Rewritten(None)
    );
    let Class::Compat(_, message) = classify(&frame).unwrap() else {
        panic!("not of the layout");
    };
    let Content::Control(_, control) = message.content else {
        panic!("no control packet");
    };
    assert_eq!(control.fail_cause(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// See `fuzz/published.rs`: nearly right packets, with a right ICRC or not, to everybody.
    #[test]
    fn hostile_packets_harm_nobody(bytes in proptest::collection::vec(any::<u8>(), 8..200)) {
        fuzzed::packets(&bytes);
    }
}
