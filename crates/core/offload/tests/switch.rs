//! A switch alone: what it refuses, repeats, drops and frees.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::switch::{
    Abilities, DropReason, Pass, Quotas, SiteSecret, Switch, SwitchConfig, SwitchEvent, job_key,
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        Body, ChildEntry, Collective, Header, Kind, PORT, ProgramHead, Reason, StepEntry, Terms,
        Unverified, write_program,
    },
};

const MASTER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000);
const PARENT: Ipv4Addr = Ipv4Addr::new(10, 255, 2, 1);
const JOB: u32 = 3;
const GROUP: u32 = 9;

fn secret() -> SiteSecret {
    SiteSecret::new([1; 32])
}

fn switch_with(quotas: Quotas) -> Switch {
    Switch::new(SwitchConfig {
        address: Ipv4Addr::new(10, 255, 1, 1),
        tier: 1,
        epoch: 6,
        secret: secret(),
        quotas,
        abilities: Abilities::default(),
    })
}

fn head(parent: Ipv4Addr) -> ProgramHead {
    ProgramHead {
        parent,
        group_size: 2,
        lease_ms: 100,
        slots: 4,
        segment_bytes: 16,
        ..ProgramHead::default()
    }
}

fn child(rank: u32) -> ChildEntry {
    ChildEntry {
        address: Ipv4Addr::new(10, 0, 0, rank as u8 + 1),
        port: 40_000 + rank as u16,
        operands: 1,
        rank,
    }
}

const STEP: StepEntry = StepEntry {
    into: 1,
    left: 0,
    right: 1,
};

/// A message as bytes.
fn message(header: Header, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 56 + body.len()];
    let key = job_key(&secret(), header.job);
    header.write_message(&mut bytes, body, &key).unwrap();
    bytes
}

fn header(kind: Kind, group: u32) -> Header {
    Header {
        group,
        ..Header::of(kind, JOB)
    }
}

fn program(group: u32, head: &ProgramHead, children: &[ChildEntry]) -> Vec<u8> {
    let mut body = [0; 1000];
    let size = write_program(&mut body, head, children, &[STEP], &[1]).unwrap();
    message(header(Kind::Program, group), &body[..size])
}

fn contribution(rank: u32, round: u32) -> Header {
    Header {
        round,
        segments: 1,
        rank,
        slot: (round % 4) as u16,
        ..header(Kind::Contribution, GROUP)
    }
    .with_data(Operation::Sum, DataType::Int64, 1)
}

/// Everything that the switch sends: where, kind, reason, body.
fn sent(switch: &mut Switch) -> Vec<(SocketAddrV4, Kind, u8, Vec<u8>)> {
    let mut buffer = [0; 9000];
    let mut all = Vec::new();
    while let Some((to, length)) = switch.poll_transmit(&mut buffer) {
        let read = Unverified::parse(&buffer[..length], 0).unwrap();
        let key = job_key(&secret(), read.job());
        let read = read.verify(&key).unwrap();
        let body = match read.body {
            Body::Data(_, bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        all.push((to, read.kind, read.header.reason(), body));
    }
    all
}

/// A switch with a group of members 0 and 1.
fn ready(parent: Ipv4Addr) -> Switch {
    let mut switch = switch_with(Quotas::default());
    let children = [child(0), child(1)];
    switch.handle_packet(
        Time::ZERO,
        MASTER,
        &program(GROUP, &head(parent), &children),
    );
    let answers = sent(&mut switch);
    assert_eq!(answers, [(MASTER, Kind::Lease, 0, vec![])]);
    switch
}

const ROOT: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

fn give(switch: &mut Switch, rank: u32, round: u32, value: i64) {
    let bytes = message(contribution(rank, round), &value.to_be_bytes());
    switch.handle_packet(Time::ZERO, MASTER, &bytes);
}

fn address(rank: u32) -> SocketAddrV4 {
    SocketAddrV4::new(child(rank).address, child(rank).port)
}

#[test]
fn the_key_of_a_job_is_keyed_blake3() {
    // Computed with the reference implementation's Python binding: blake3(bytes([0,0,0,3]), key=bytes([1]*32)).
    let header = Header::of(Kind::Kill, 3);
    let mut with_ours = [0; 56];
    header
        .write_message(&mut with_ours, &[], &job_key(&secret(), 3))
        .unwrap();
    let reference = BLAKE3_KEY_OF_JOB_3;
    let mut with_reference = [0; 56];
    let key = raddle_wire::native::JobKey::new(reference);
    header
        .write_message(&mut with_reference, &[], &key)
        .unwrap();
    assert_eq!(with_ours, with_reference);
}

const BLAKE3_KEY_OF_JOB_3: [u8; 16] = [
    0x5a, 0x49, 0xf7, 0x52, 0x0b, 0x3f, 0xa5, 0x15, 0x03, 0x15, 0x14, 0x50, 0x5e, 0x1d, 0x79, 0x18,
];

#[test]
fn a_root_answers_all_children_and_repeats_to_one() {
    let mut switch = ready(ROOT);
    give(&mut switch, 0, 1, 5);
    assert!(sent(&mut switch).is_empty());
    // A repetition adds nothing.
    give(&mut switch, 0, 1, 5);
    assert!(sent(&mut switch).is_empty());
    give(&mut switch, 1, 1, 37);
    let sum = 42_i64.to_be_bytes().to_vec();
    let to = |rank| (address(rank), Kind::Result, 0, sum.clone());
    assert_eq!(sent(&mut switch), [to(0), to(1)]);
    give(&mut switch, 1, 1, 37);
    assert_eq!(sent(&mut switch), [to(1)]);
    // Round 5 has the same slot; round 1 is stale from then on.
    give(&mut switch, 0, 5, 1);
    give(&mut switch, 1, 1, 37);
    assert!(sent(&mut switch).is_empty());
    let status = switch.status();
    let counters = status.jobs[0].counters;
    assert_eq!(
        (counters.rounds, counters.repeats, counters.stale),
        (1, 2, 1)
    );
    assert_eq!(status.drops.of(DropReason::Stale), 1);
    assert_eq!(status.groups[0].slots_in_use, 1);
}

#[test]
fn rounds_may_pass_the_end_of_their_numbers() {
    let mut switch = ready(ROOT);
    for round in [u32::MAX - 3, u32::MAX, 0, 1, 4] {
        give(&mut switch, 0, round, 1);
        give(&mut switch, 1, round, 1);
        assert_eq!(sent(&mut switch).len(), 2, "round {round}");
    }
    give(&mut switch, 0, u32::MAX - 3, 1);
    assert!(sent(&mut switch).is_empty());
}

#[test]
fn a_switch_below_sends_up_once_complete_and_hands_down_what_it_gets() {
    let mut switch = ready(PARENT);
    let parent = SocketAddrV4::new(PARENT, PORT);
    give(&mut switch, 0, 1, 5);
    give(&mut switch, 1, 1, 37);
    let up = (parent, Kind::Contribution, 0, 42_i64.to_be_bytes().to_vec());
    assert_eq!(sent(&mut switch), std::slice::from_ref(&up));
    // The result is not there: the contribution may be lost.
    give(&mut switch, 0, 1, 5);
    assert_eq!(sent(&mut switch), [up]);
    let mut result = contribution(0, 1);
    result.kind = Kind::Result.code();
    let result = message(result, &100_i64.to_be_bytes());
    switch.handle_packet(Time::ZERO, parent, &result);
    let down = sent(&mut switch);
    assert_eq!(down.len(), 2);
    assert!(
        down.iter()
            .all(|(_, kind, _, body)| *kind == Kind::Result && body == &100_i64.to_be_bytes())
    );
    // A second copy is not handed down again.
    switch.handle_packet(Time::ZERO, parent, &result);
    assert!(sent(&mut switch).is_empty());
    assert_eq!(switch.status().drops.of(DropReason::NotAwaited), 1);
}

#[test]
fn who_disagrees_is_refused() {
    let base = contribution(1, 1);
    let others = [
        Header {
            operation: Operation::Max.code(),
            ..base
        },
        Header {
            data_type: DataType::Uint64.code(),
            ..base
        },
        Header {
            collective: Collective::Reduce.code(),
            ..base
        },
        Header { root: 1, ..base },
        Header {
            segments: 2,
            ..base
        },
        Header {
            ordered: true,
            ..base
        },
        Header { count: 2, ..base },
    ];
    for other in others {
        let mut switch = ready(ROOT);
        give(&mut switch, 0, 1, 5);
        let body = vec![0; 8 * usize::from(other.count)];
        switch.handle_packet(Time::ZERO, address(1), &message(other, &body));
        let refusal = (address(1), Kind::Refuse, Reason::Mismatch.code(), vec![]);
        assert_eq!(sent(&mut switch), [refusal], "{other:?}");
        // The right one still comes through.
        give(&mut switch, 1, 1, 6);
        assert_eq!(sent(&mut switch).len(), 2);
    }
}

#[test]
fn a_refusal_of_the_parent_reaches_all_children() {
    let mut switch = ready(PARENT);
    let refusal = Header {
        reason: Reason::UnknownGroup.code(),
        ..header(Kind::Refuse, GROUP)
    };
    switch.handle_packet(
        Time::ZERO,
        SocketAddrV4::new(PARENT, PORT),
        &message(refusal, &[]),
    );
    let reason = Reason::UnknownGroup.code();
    let to = |rank| (address(rank), Kind::Refuse, reason, vec![]);
    assert_eq!(sent(&mut switch), [to(0), to(1)]);
    // Not everybody is the parent.
    switch.handle_packet(Time::ZERO, address(0), &message(refusal, &[]));
    assert!(sent(&mut switch).is_empty());
}

#[test]
fn a_switch_that_lost_its_groups_says_so() {
    let mut switch = switch_with(Quotas::default());
    give(&mut switch, 0, 1, 5);
    let refusal = (MASTER, Kind::Refuse, Reason::UnknownGroup.code(), vec![]);
    assert_eq!(sent(&mut switch), [refusal]);
}

#[test]
fn what_goes_to_no_group_is_counted_by_reason() {
    for kind in Kind::ALL {
        let (header, body) = match kind {
            Kind::Query | Kind::Notify => (header(kind, GROUP), vec![0; Terms::SIZE]),
            Kind::Program => continue,
            kind if kind < Kind::Contribution => (header(kind, GROUP), vec![]),
            Kind::Ask => (contribution(0, 1), vec![]),
            _ => (contribution(0, 1), vec![0; 8]),
        };
        let header = Header {
            kind: kind.code(),
            ..header
        };
        let genuine = message(header, &body);
        let mut forged = genuine.clone();
        forged[55] ^= 1;
        let answered = matches!(kind, Kind::Contribution | Kind::Lease);
        // Without groups, and with another group of the job.
        for mut switch in [switch_with(Quotas::default()), {
            let mut switch = switch_with(Quotas::default());
            let other = program(GROUP + 1, &head(ROOT), &[child(0), child(1)]);
            switch.handle_packet(Time::ZERO, MASTER, &other);
            sent(&mut switch);
            switch
        }] {
            switch.handle_packet(Time::ZERO, MASTER, &forged);
            assert_eq!(sent(&mut switch), []);
            switch.handle_packet(Time::ZERO, MASTER, &genuine);
            let refusals = sent(&mut switch);
            assert_eq!(refusals.len(), usize::from(answered), "{kind:?}");
            let drops = switch.status().drops;
            let count = |reason| drops.of(reason);
            assert_eq!(
                (count(DropReason::Forged), count(DropReason::UnknownGroup)),
                if answered { (1, 1) } else { (0, 2) },
                "{kind:?}"
            );
        }
    }
}

#[test]
fn leases_are_passed_on_and_end() {
    let mut switch = ready(PARENT);
    let parent = SocketAddrV4::new(PARENT, PORT);
    let lease = |rank| {
        let header = Header {
            rank,
            ..header(Kind::Lease, GROUP)
        };
        message(header, &[])
    };
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    switch.handle_packet(at(10), address(0), &lease(0));
    assert!(
        sent(&mut switch).is_empty(),
        "a quarter of the lease has not passed"
    );
    switch.handle_packet(at(30), address(0), &lease(0));
    assert_eq!(sent(&mut switch), [(parent, Kind::Lease, 0, vec![])]);
    switch.handle_packet(at(31), address(1), &lease(1));
    assert!(sent(&mut switch).is_empty());
    switch.handle_timeout(at(130));
    assert_eq!(switch.group_count(), 1);
    assert_eq!(switch.poll_timeout(), Some(at(131)));
    switch.handle_timeout(at(131));
    assert_eq!(switch.group_count(), 0);
    assert_eq!(switch.poll_timeout(), None);
    assert_eq!(sent(&mut switch), [(parent, Kind::Kill, 0, vec![])]);
    assert!(
        matches!(switch.poll_event(), Some(SwitchEvent::GroupInstalled(plan)) if plan.children.len() == 2)
    );
    let freed = SwitchEvent::GroupFreed {
        job: JOB,
        group: GROUP,
    };
    assert_eq!(switch.poll_event(), Some(freed));
}

#[test]
fn a_group_stays_for_others_when_one_has_left() {
    let mut switch = ready(ROOT);
    give(&mut switch, 0, 1, 5);
    give(&mut switch, 1, 1, 37);
    sent(&mut switch);
    let kill = |rank| {
        message(
            Header {
                rank,
                ..header(Kind::Kill, GROUP)
            },
            &[],
        )
    };
    switch.handle_packet(Time::ZERO, MASTER, &kill(0));
    switch.handle_packet(Time::ZERO, MASTER, &kill(0));
    give(&mut switch, 1, 1, 37);
    assert_eq!(
        sent(&mut switch).len(),
        1,
        "its result was lost, and it asks again"
    );
    switch.handle_packet(Time::ZERO, MASTER, &kill(1));
    assert_eq!((switch.group_count(), switch.status().bytes), (0, 0));
}

#[test]
fn quotas_and_contradictions_are_refused_with_their_reason() {
    let reason = |switch: &mut Switch, bytes: &[u8]| {
        switch.handle_packet(Time::ZERO, MASTER, bytes);
        let answers = sent(switch);
        assert_eq!(answers.len(), 1);
        (answers[0].1, Reason::from_code(answers[0].2))
    };
    let good = head(ROOT);
    let pair = [child(0), child(1)];
    let lease = (Kind::Lease, None);
    let refused = |reason| (Kind::Refuse, Some(reason));

    let one = Quotas {
        job_groups: 1,
        ..Quotas::default()
    };
    let mut switch = switch_with(one);
    assert_eq!(reason(&mut switch, &program(1, &good, &pair)), lease);
    // The same again is confirmed again; another of the same id is not.
    assert_eq!(reason(&mut switch, &program(1, &good, &pair)), lease);
    let other = ProgramHead { slots: 8, ..good };
    assert_eq!(
        reason(&mut switch, &program(1, &other, &pair)),
        refused(Reason::Mismatch)
    );
    assert_eq!(
        reason(&mut switch, &program(2, &good, &pair)),
        refused(Reason::Quota)
    );

    let slots = Quotas {
        job_slots: 7,
        ..Quotas::default()
    };
    let mut switch = switch_with(slots);
    assert_eq!(reason(&mut switch, &program(1, &good, &pair)), lease);
    assert_eq!(
        reason(&mut switch, &program(2, &good, &pair)),
        refused(Reason::Quota)
    );

    let mut switch = switch_with(Quotas {
        groups: 1,
        ..Quotas::default()
    });
    assert_eq!(reason(&mut switch, &program(1, &good, &pair)), lease);
    assert_eq!(
        reason(&mut switch, &program(2, &good, &pair)),
        refused(Reason::NoRoom)
    );

    let mut switch = switch_with(Quotas {
        job_bytes: 500,
        ..Quotas::default()
    });
    assert_eq!(
        reason(&mut switch, &program(1, &good, &pair)),
        refused(Reason::Quota)
    );

    let mut switch = switch_with(Quotas::default());
    for (head, children) in [
        (ProgramHead { slots: 1, ..good }, vec![child(0), child(1)]),
        (
            ProgramHead {
                segment_bytes: 0,
                ..good
            },
            vec![child(0), child(1)],
        ),
        (
            ProgramHead {
                lease_ms: 0,
                ..good
            },
            vec![child(0), child(1)],
        ),
        (
            ProgramHead {
                parent: Ipv4Addr::new(10, 255, 1, 1),
                ..good
            },
            vec![child(0), child(1)],
        ),
        (
            ProgramHead {
                results: Ipv4Addr::new(10, 0, 0, 9),
                ..good
            },
            vec![child(0), child(1)],
        ),
        (good, vec![child(1), child(0)]),
        (good, vec![child(0), child(0)]),
        // The step reads an operand that nobody sends.
        (good, vec![child(0)]),
        (
            good,
            vec![
                child(0),
                ChildEntry {
                    port: 0,
                    ..child(1)
                },
            ],
        ),
        (
            good,
            vec![
                child(0),
                ChildEntry {
                    operands: 600,
                    ..child(1)
                },
            ],
        ),
        (
            good,
            vec![
                child(0),
                ChildEntry {
                    address: Ipv4Addr::BROADCAST,
                    ..child(1)
                },
            ],
        ),
    ] {
        let found = reason(&mut switch, &program(1, &head, &children));
        assert_eq!(found, refused(Reason::BadProgram), "{head:?} {children:?}");
    }
    for head in [
        ProgramHead {
            lease_ms: 100_000,
            ..good
        },
        ProgramHead {
            slots: 1000,
            ..good
        },
        ProgramHead {
            segment_bytes: 4096,
            ..good
        },
    ] {
        assert_eq!(
            reason(&mut switch, &program(1, &head, &pair)),
            refused(Reason::Unsupported)
        );
    }
    switch.drain();
    assert_eq!(
        reason(&mut switch, &program(1, &good, &pair)),
        refused(Reason::Draining)
    );
    assert_eq!((switch.group_count(), switch.status().jobs.len()), (0, 0));
}

#[test]
fn other_quotas_hold_for_groups_that_come() {
    let mut switch = ready(ROOT);
    switch.set_quotas(Quotas {
        groups: 1,
        lease: Span::from_ms(50),
        ..Quotas::default()
    });
    let ask = |switch: &mut Switch, group: u32| {
        let children = [child(0), child(1)];
        switch.handle_packet(Time::ZERO, MASTER, &program(group, &head(ROOT), &children));
        sent(switch).pop().unwrap()
    };
    // Its lease of 100 ms is longer than what is given now.
    let (_, kind, reason, _) = ask(&mut switch, GROUP + 1);
    assert_eq!((kind, reason), (Kind::Refuse, Reason::Unsupported.code()));
    // The one that is there goes on, and its program is confirmed again.
    assert_eq!(ask(&mut switch, GROUP).1, Kind::Lease);
    give(&mut switch, 0, 0, 1);
    give(&mut switch, 1, 0, 2);
    assert_eq!(sent(&mut switch).len(), 2);
    switch.set_quotas(Quotas {
        groups: 1,
        ..Quotas::default()
    });
    let (_, kind, reason, _) = ask(&mut switch, GROUP + 1);
    assert_eq!((kind, reason), (Kind::Refuse, Reason::NoRoom.code()));
    switch.set_quotas(Quotas::default());
    assert_eq!(ask(&mut switch, GROUP + 1).1, Kind::Lease);
}

#[test]
fn another_secret_holds_for_jobs_that_come() {
    let mut switch = ready(ROOT);
    let other = SiteSecret::new([2; 32]);
    switch.set_secret(other.clone());
    // The job that has a group here keeps its key, for further groups too.
    give(&mut switch, 0, 0, 1);
    give(&mut switch, 1, 0, 2);
    assert_eq!(sent(&mut switch).len(), 2);
    let children = [child(0), child(1)];
    let more = program(GROUP + 1, &head(ROOT), &children);
    switch.handle_packet(Time::ZERO, MASTER, &more);
    assert_eq!(sent(&mut switch).pop().unwrap().1, Kind::Lease);
    // Without groups it has the new one, as all other jobs have.
    switch.handle_timeout(Time::ZERO + Span::from_ms(1_000));
    assert_eq!(switch.group_count(), 0);
    sent(&mut switch);
    let before = switch.status().drops.of(DropReason::Forged);
    switch.handle_packet(Time::ZERO, MASTER, &more);
    assert_eq!(switch.group_count(), 0);
    assert_eq!(switch.status().drops.of(DropReason::Forged), before + 1);
    let mut body = [0; 1000];
    let size = write_program(&mut body, &head(ROOT), &children, &[STEP], &[1]).unwrap();
    let mut bytes = vec![0; 56 + size];
    let key = job_key(&other, JOB);
    let of_new_key = header(Kind::Program, GROUP);
    of_new_key
        .write_message(&mut bytes, &body[..size], &key)
        .unwrap();
    switch.handle_packet(Time::ZERO, MASTER, &bytes);
    assert_eq!(switch.group_count(), 1);
}

#[test]
fn another_jobs_messages_change_nothing() {
    let mut switch = ready(ROOT);
    give(&mut switch, 0, 1, 5);
    let before = switch.status();
    // A job that knows its own key writes the other's id, and its own id with the other's group.
    for kind in Kind::ALL {
        let body = if kind >= Kind::Contribution && kind != Kind::Ask {
            vec![0; 8]
        } else {
            vec![]
        };
        let forged = Header {
            kind: kind.code(),
            ..contribution(1, 1)
        };
        let mut bytes = vec![0; 56 + body.len()];
        let own = job_key(&secret(), 4);
        if forged.write_message(&mut bytes, &body, &own).is_ok() {
            switch.handle_packet(Time::ZERO, address(1), &bytes);
        }
        let mine = Header { job: 4, ..forged };
        if mine.write_message(&mut bytes, &body, &own).is_ok() {
            switch.handle_packet(Time::ZERO, address(1), &bytes);
        }
    }
    let refusals = sent(&mut switch);
    assert!(refusals.iter().all(|(_, kind, ..)| *kind == Kind::Refuse));
    let after = switch.status();
    assert_eq!(
        (&before.jobs, &before.groups, before.bytes),
        (&after.jobs, &after.groups, after.bytes)
    );
    assert!(after.drops.of(DropReason::Forged) >= 3);
}

#[test]
fn a_passing_query_is_cut_down_and_gets_an_entry() {
    let mut switch = ready(ROOT);
    let terms = Terms {
        operations: 0xffff,
        collectives: 0xffff,
        types: u32::MAX,
        segment_bytes: 9000,
        slots: 9000,
        lease_ms: u32::MAX,
        ..Terms::default()
    };
    let mut body = [0; Terms::SIZE];
    terms.write(&mut body, 0).unwrap();
    let query = message(header(Kind::Query, GROUP), &body);
    let mut out = Vec::new();
    assert_eq!(switch.pass(Time::ZERO, &query, &mut out), Pass::Rewritten);
    let read = Unverified::parse(&out, 0).unwrap();
    let read = read.verify(&job_key(&secret(), JOB)).unwrap();
    let Body::Terms(terms, path) = read.body else {
        panic!("{read:?}")
    };
    assert_eq!(
        (terms.operations(), terms.collectives(), terms.types()),
        (0xfff, 0xf, 0x1f_07fe)
    );
    assert_eq!(
        (terms.segment_bytes(), terms.slots(), terms.lease_ms()),
        (1024, 256, 60_000)
    );
    let entry = path.entries().next().unwrap();
    assert_eq!(
        (entry.address(), entry.tier(), entry.room()),
        (Ipv4Addr::new(10, 255, 1, 1), 1, 255)
    );
    switch.drain();
    assert_eq!(switch.pass(Time::ZERO, &query, &mut out), Pass::Rewritten);
    let room_at = out.len() - 4;
    assert_eq!(out[room_at..], [0; 4]);

    let mut forged = query.clone();
    forged[60] ^= 1;
    assert_eq!(switch.pass(Time::ZERO, &forged, &mut out), Pass::Unchanged);
    let other = message(header(Kind::Kill, GROUP), &[]);
    assert_eq!(switch.pass(Time::ZERO, &other, &mut out), Pass::Unchanged);
}
