//! Members alone: what they do when switches are silent, refuse, or are not needed any more.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::{
    endpoint::{CallOutcome, Endpoint, Started},
    member::{MemberConfig, RoundSpec, StartError},
    recovery::RecoveryState,
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Body, Collective, Header, JobKey, Kind, Reason, Unverified},
};

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 1, 1), 61_347);

fn key() -> JobKey {
    JobKey::new([1; 16])
}

fn host(number: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number as u8 + 1), 40_000)
}

/// Two members, with a switch that the test plays.
struct Pair {
    now: Time,
    members: [Endpoint; 2],
    /// What went to the switch: member, kind, round, segment, again.
    to_switch: Vec<(usize, Kind, u32, u32, bool)>,
    /// Messages between the members are lost.
    cut: bool,
}

const SPEC: RoundSpec = RoundSpec {
    collective: Collective::Allreduce,
    operation: Some(Operation::Sum),
    data_type: Some(DataType::Int64),
    count: 1,
    ordered: false,
    root: 0,
};

impl Pair {
    fn new() -> Self {
        let member = |number| {
            let config = MemberConfig {
                job: 1,
                key: key(),
                group: 1,
                member: number,
                switch: SWITCH,
                slots: 4,
                segment_bytes: 24,
                operands: 1,
                lease: Span::from_ms(300),
                retry: Span::from_us(100),
                give_up: Span::from_ms(10),
            };
            Endpoint::new(Time::ZERO, config, vec![host(0), host(1)])
        };
        Self {
            now: Time::ZERO,
            members: [member(0), member(1)],
            to_switch: Vec::new(),
            cut: false,
        }
    }

    fn start(&mut self, member: usize) -> Started {
        let operand = 21_i64.to_be_bytes();
        let started = self.members[member].start(self.now, &SPEC, &operand);
        self.carry();
        started.unwrap()
    }

    /// Carries what is between the members; keeps what goes to the switch.
    fn carry(&mut self) {
        let mut buffer = [0; 9000];
        let mut idle = 0;
        let mut member = 0;
        while idle < 2 {
            idle += 1;
            while let Some((to, length)) = self.members[member].poll_transmit(&mut buffer) {
                let message = &buffer[..length];
                if to == SWITCH {
                    let read = Unverified::parse(message, 0)
                        .unwrap()
                        .verify(&key())
                        .unwrap();
                    let header = read.header;
                    self.to_switch.push((
                        member,
                        read.kind,
                        header.round(),
                        header.segment(),
                        header.resent(),
                    ));
                } else if !self.cut {
                    assert_eq!(to, host(1 - member as u32));
                    self.members[1 - member].handle_packet(self.now, message);
                    idle = 0;
                }
            }
            member = 1 - member;
        }
    }

    /// Time passes, timer by timer.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        for _ in 0..10_000 {
            let due = self.members.iter().filter_map(Endpoint::poll_timeout).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            for member in &mut self.members {
                member.handle_timeout(self.now);
            }
            self.carry();
        }
        panic!("timers do not end");
    }

    fn switch_sends(&mut self, member: usize, kind: Kind, round: u32, reason: u8) {
        let mut header = Header {
            group: 1,
            round,
            reason,
            ..Header::of(kind, 1)
        };
        let mut body: &[u8] = &[];
        let sum = 42_i64.to_be_bytes();
        if kind == Kind::Result {
            let slot = ((round - 1) % 4) as u16;
            header = Header {
                segments: 1,
                slot,
                ..header
            }
            .with_data(Operation::Sum, DataType::Int64, 1);
            body = &sum;
        }
        let mut message = vec![0; 56 + body.len()];
        header.write_message(&mut message, body, &key()).unwrap();
        self.members[member].handle_packet(self.now, &message);
        self.carry();
    }
}

const SUM: [u8; 8] = 42_i64.to_be_bytes();

#[test]
fn a_late_rank_is_waited_for_however_long() {
    let mut pair = Pair::new();
    pair.start(0);
    pair.pass(Span::from_ms(500));
    assert_eq!(pair.members[0].state(), RecoveryState::Running);
    assert_eq!(pair.members[0].outcome(), CallOutcome::Pending);
    pair.start(1);
    pair.switch_sends(0, Kind::Result, 1, 0);
    pair.switch_sends(1, Kind::Result, 1, 0);
    assert_eq!(pair.members[0].outcome(), CallOutcome::Done(&SUM));
    assert_eq!(pair.members[1].outcome(), CallOutcome::Done(&SUM));
}

#[test]
fn a_silent_switch_makes_all_leave_after_the_same_round() {
    let mut pair = Pair::new();
    pair.start(0);
    pair.start(1);
    // One has the result, computes and makes no call; the other's was lost, and the switch is dead.
    pair.switch_sends(0, Kind::Result, 1, 0);
    pair.pass(Span::from_ms(50));
    assert_eq!(pair.members[1].outcome(), CallOutcome::Done(&SUM));
    for member in &pair.members {
        let agreed = RecoveryState::Agreed {
            completed_through: 1,
            reason: Reason::Overdue,
        };
        assert_eq!(member.state(), agreed);
    }
    assert_eq!(pair.start(0), Started::Plain);
    assert_eq!(pair.start(1), Started::Plain);
    // Both have told the switch, once.
    let kills = pair
        .to_switch
        .iter()
        .filter(|(_, kind, ..)| *kind == Kind::Kill);
    assert_eq!(kills.count(), 2);
}

#[test]
fn a_refusal_is_enough_and_a_result_after_it_does_not_count() {
    let mut pair = Pair::new();
    pair.start(0);
    pair.start(1);
    pair.switch_sends(0, Kind::Refuse, 1, Reason::UnknownGroup.code());
    pair.pass(Span::ZERO);
    // Member 1 froze with member 0; the result that now comes was nobody's before.
    pair.switch_sends(1, Kind::Result, 1, 0);
    pair.pass(Span::from_ms(5));
    for member in &pair.members {
        assert_eq!(member.outcome(), CallOutcome::Plain(Reason::UnknownGroup));
    }
}

#[test]
fn nobody_decides_while_another_has_not_told() {
    let mut pair = Pair::new();
    pair.start(0);
    pair.start(1);
    pair.switch_sends(1, Kind::Result, 1, 0);
    pair.cut = true;
    pair.switch_sends(0, Kind::Refuse, 1, Reason::UnknownGroup.code());
    pair.pass(Span::from_ms(400));
    assert_eq!(pair.members[0].outcome(), CallOutcome::Pending);
    assert_eq!(pair.members[1].outcome(), CallOutcome::Done(&SUM));
    pair.cut = false;
    pair.pass(Span::from_ms(50));
    assert_eq!(pair.members[0].outcome(), CallOutcome::Done(&SUM));
}

#[test]
fn repetitions_come_seldom_and_leases_by_the_clock() {
    let mut pair = Pair::new();
    pair.start(0);
    pair.cut = true;
    pair.pass(Span::from_ms(9));
    let sent = |pair: &Pair, kind: Kind| {
        pair.to_switch
            .iter()
            .filter(|(member, k, ..)| *member == 0 && *k == kind)
            .count()
    };
    // At 0, then 0.1, 0.3, 0.7, 1.5, 3.1, 6.3 ms.
    assert_eq!(sent(&pair, Kind::Contribution), 7);
    assert!(
        pair.to_switch
            .iter()
            .filter(|(_, k, ..)| *k == Kind::Contribution)
            .skip(1)
            .all(|c| c.4)
    );
    assert_eq!(sent(&pair, Kind::Lease), 1);
    let mut idle = Pair::new();
    idle.carry();
    idle.pass(Span::from_ms(950));
    assert_eq!(sent(&idle, Kind::Lease), 10);
}

#[test]
fn the_window_is_half_of_the_slots() {
    let mut pair = Pair::new();
    // Ten segments of three elements.
    let long = RoundSpec { count: 30, ..SPEC };
    pair.members[0].start(pair.now, &long, &[0; 240]).unwrap();
    pair.carry();
    let segments = |pair: &Pair| -> Vec<u32> {
        let to = pair
            .to_switch
            .iter()
            .filter(|(_, kind, ..)| *kind == Kind::Contribution);
        to.map(|(_, _, _, segment, _)| *segment).collect()
    };
    assert_eq!(segments(&pair), [0, 1]);
    let result = |segment: u32| {
        let header = Header {
            group: 1,
            round: 1,
            segment,
            segments: 10,
            ..Header::of(Kind::Result, 1)
        }
        .with_data(Operation::Sum, DataType::Int64, 3);
        let mut message = vec![0; 56 + 24];
        header
            .write_message(&mut message, &[segment as u8; 24], &key())
            .unwrap();
        message
    };
    // The second one first: the window does not move.
    pair.members[0].handle_packet(pair.now, &result(1));
    pair.carry();
    assert_eq!(segments(&pair), [0, 1]);
    pair.members[0].handle_packet(pair.now, &result(0));
    pair.carry();
    assert_eq!(segments(&pair), [0, 1, 2, 3]);
    for segment in 2..10 {
        pair.members[0].handle_packet(pair.now, &result(segment));
        pair.carry();
    }
    let expected: Vec<u8> = (0..10).flat_map(|segment| [segment; 24]).collect();
    assert_eq!(pair.members[0].outcome(), CallOutcome::Done(&expected));
}

#[test]
fn a_call_that_contradicts_itself_is_refused_and_plain() {
    let mut pair = Pair::new();
    let band = RoundSpec {
        operation: Some(Operation::BitAnd),
        data_type: Some(DataType::Double),
        ..SPEC
    };
    assert_eq!(
        pair.members[0].start(pair.now, &band, &[0; 8]),
        Err(StartError::Call)
    );
    assert_eq!(
        pair.members[0].outcome(),
        CallOutcome::Plain(Reason::Unsupported)
    );
    let mut pair = Pair::new();
    let short = pair.members[0].start(pair.now, &SPEC, &[0; 7]);
    assert_eq!(
        short,
        Err(StartError::Length {
            found: 7,
            expected: 8
        })
    );
    pair.pass(Span::ZERO);
    assert_eq!(pair.start(1), Started::Plain);
}

#[test]
fn contributions_are_what_the_call_says() {
    let mut pair = Pair::new();
    let ordered = RoundSpec {
        ordered: true,
        data_type: Some(DataType::Double),
        ..SPEC
    };
    let value = 1.5_f64.to_be_bytes();
    pair.members[0].start(pair.now, &ordered, &value).unwrap();
    let mut buffer = [0; 9000];
    let mut seen = false;
    while let Some((_, length)) = pair.members[0].poll_transmit(&mut buffer) {
        let read = Unverified::parse(&buffer[..length], 0)
            .unwrap()
            .verify(&key())
            .unwrap();
        if read.kind != Kind::Contribution {
            continue;
        }
        seen = true;
        assert_eq!(read.body, Body::Data(Some(Operation::Sum), &value));
        let header = read.header;
        assert!(header.ordered() && !header.resent());
        assert_eq!(
            (header.round(), header.slot(), header.rank(), header.count()),
            (1, 0, 0, 1)
        );
    }
    assert!(seen);
}
