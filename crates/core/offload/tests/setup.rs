//! Set-up message by message: what the master sends to whom, and what happens when a switch refuses.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::{
    order::Expression,
    setup::{
        MasterConfig, MasterSetup, MemberPlace, MemberSetup, MemberSetupConfig, SetupOutcome,
        all_terms,
    },
    switch::{SiteSecret, job_key},
};
use raddle_units::{Span, Time};
use raddle_wire::native::{
    Body, Collective, Header, JobKey, Kind, PORT, PathEntry, Reason, Terms, Unverified,
};

const JOB: u32 = 1;
const GROUP: u32 = 2;
const SPINE: Ipv4Addr = Ipv4Addr::new(10, 255, 2, 1);
const TOR1: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 1);
const TOR2: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 2);

fn key() -> JobKey {
    job_key(&SiteSecret::new([3; 32]), JOB)
}

fn member(number: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number as u8 + 1), 40_000)
}

const fn switch(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, PORT)
}

/// Members 0 and 1 below the first switch, 2 and 3 below the second; two ranks each, dealt out in turn.
fn master(datagram: usize) -> MasterSetup {
    let members = (0..4).map(|number| MemberPlace {
        address: member(number),
        ranks: vec![number, number + 4],
    });
    MasterSetup::new(
        Time::ZERO,
        MasterConfig {
            job: JOB,
            key: key(),
            group: GROUP,
            members: members.collect(),
            terms: all_terms(4),
            expression: Expression::in_rank_order(8),
            results: None,
            datagram,
            retry: Span::from_us(100),
            give_up: Span::from_ms(10),
        },
    )
}

fn message(header: Header, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 56 + body.len()];
    let header = Header {
        group: GROUP,
        ..header
    };
    header.write_message(&mut bytes, body, &key()).unwrap();
    bytes
}

/// A query as it arrives, with the switches that it passed.
fn query(rank: u32, path: &[(Ipv4Addr, u8)], terms: Terms) -> Vec<u8> {
    let mut body = vec![0; Terms::SIZE + PathEntry::SIZE * path.len()];
    let terms = Terms {
        hops: path.len() as u8,
        ..terms
    };
    terms.write(&mut body, 0).unwrap();
    for (at, (address, tier)) in path.iter().enumerate() {
        let entry = PathEntry {
            address: *address,
            tier: *tier,
            room: 9,
            ..PathEntry::default()
        };
        entry
            .write(&mut body, Terms::SIZE + PathEntry::SIZE * at)
            .unwrap();
    }
    message(
        Header {
            rank,
            ..Header::of(Kind::Query, JOB)
        },
        &body,
    )
}

fn all_queries(master: &mut MasterSetup) {
    let (near, far) = ([(TOR1, 1)], [(TOR2, 1), (SPINE, 2), (TOR1, 1)]);
    for (rank, path) in [(1, &near[..]), (2, &far[..]), (3, &far[..])] {
        master.handle_packet(Time::ZERO, member(rank), &query(rank, path, all_terms(4)));
    }
}

fn answer(kind: Kind, reason: u8) -> Vec<u8> {
    message(
        Header {
            answer: true,
            reason,
            ..Header::of(kind, JOB)
        },
        &[],
    )
}

/// What the master sends: where, kind, and the reason.
fn sent(master: &mut MasterSetup) -> Vec<(SocketAddrV4, Kind, u8)> {
    let mut buffer = [0; 9000];
    let mut all = Vec::new();
    while let Some((to, length)) = master.poll_transmit(&mut buffer) {
        let read = Unverified::parse(&buffer[..length], 0)
            .unwrap()
            .verify(&key())
            .unwrap();
        all.push((to, read.kind, read.header.reason()));
    }
    all
}

#[test]
fn switches_are_programmed_from_the_top_and_members_told_last() {
    let mut setup = master(1472);
    all_queries(&mut setup);
    assert_eq!(sent(&mut setup), [(switch(SPINE), Kind::Program, 0)]);
    // Nothing comes back: again.
    setup.handle_timeout(Time::ZERO + Span::from_us(100));
    assert_eq!(sent(&mut setup), [(switch(SPINE), Kind::Program, 0)]);
    setup.handle_packet(Time::ZERO, switch(SPINE), &answer(Kind::Lease, 0));
    assert_eq!(
        sent(&mut setup),
        [
            (switch(TOR1), Kind::Program, 0),
            (switch(TOR2), Kind::Program, 0)
        ]
    );
    setup.handle_packet(Time::ZERO, switch(TOR2), &answer(Kind::Lease, 0));
    assert!(sent(&mut setup).is_empty());
    assert_eq!(setup.outcome(), SetupOutcome::Pending);
    setup.handle_packet(Time::ZERO, switch(TOR1), &answer(Kind::Lease, 0));
    let notes = [1, 2, 3].map(|number| (member(number), Kind::Notify, 0));
    assert_eq!(sent(&mut setup), notes);
    let SetupOutcome::Ready(agreement) = setup.outcome() else {
        panic!()
    };
    assert_eq!((agreement.switch, agreement.tiers), (switch(TOR1), 2));
    // Ranks 0, 4 and 1, 5 do not fall together: two operands of a member, up to four of a switch, and all must fit.
    assert_eq!(agreement.segment_bytes, 336);
    assert!(agreement.supports(Collective::Barrier, None, None));
    // A notify was lost: the member asks again.
    setup.handle_packet(Time::ZERO, member(2), &query(2, &[(TOR2, 1)], all_terms(4)));
    assert_eq!(sent(&mut setup), [(member(2), Kind::Notify, 0)]);
    // The ranks do not agree: all is taken back.
    setup.cancel(Reason::NoAnswer);
    let kills = sent(&mut setup)
        .iter()
        .filter(|(_, kind, _)| *kind == Kind::Kill)
        .count();
    assert_eq!(kills, 2 + 2 + 2);
}

#[test]
fn a_refusal_takes_back_what_was_programmed() {
    let mut setup = master(1472);
    all_queries(&mut setup);
    setup.handle_packet(Time::ZERO, switch(SPINE), &answer(Kind::Lease, 0));
    sent(&mut setup);
    setup.handle_packet(
        Time::ZERO,
        switch(TOR2),
        &answer(Kind::Refuse, Reason::Quota.code()),
    );
    assert_eq!(setup.outcome(), SetupOutcome::Failed(Reason::Quota));
    let all = sent(&mut setup);
    assert!(all.contains(&(switch(SPINE), Kind::Kill, 0)));
    for number in 1..4 {
        assert!(all.contains(&(member(number), Kind::Refuse, Reason::Quota.code())));
    }
}

#[test]
fn what_cannot_be_is_told_to_all() {
    let outcome = |setup: &mut MasterSetup, reason: Reason| {
        assert_eq!(setup.outcome(), SetupOutcome::Failed(reason));
        let all = sent(setup);
        assert_eq!(
            all,
            [1, 2, 3].map(|number| (member(number), Kind::Refuse, reason.code()))
        );
    };
    // No switch that computes.
    let mut setup = master(1472);
    for rank in 1..4 {
        setup.handle_packet(Time::ZERO, member(rank), &query(rank, &[], all_terms(4)));
    }
    outcome(&mut setup, Reason::NoSwitch);
    // A network that carries no program.
    let mut setup = master(100);
    all_queries(&mut setup);
    outcome(&mut setup, Reason::Unsupported);
    // A member whose query never comes.
    let mut setup = master(1472);
    setup.handle_packet(Time::ZERO, member(1), &query(1, &[(TOR1, 1)], all_terms(4)));
    assert_eq!(setup.waiting_for().collect::<Vec<_>>(), [2, 3]);
    setup.handle_timeout(Time::ZERO + Span::from_ms(10));
    outcome(&mut setup, Reason::NoAnswer);
}

#[test]
fn terms_are_what_all_support() {
    let mut setup = master(1472);
    let path = [(TOR1, 1)];
    for rank in 1..4 {
        let terms = Terms {
            collectives: Collective::Allreduce.bit()
                | if rank == 2 {
                    0
                } else {
                    Collective::Bcast.bit()
                },
            slots: 10 + rank as u16,
            segment_bytes: 100,
            ..all_terms(4)
        };
        setup.handle_packet(Time::ZERO, member(rank), &query(rank, &path, terms));
    }
    sent(&mut setup);
    setup.handle_packet(Time::ZERO, switch(TOR1), &answer(Kind::Lease, 0));
    let SetupOutcome::Ready(agreement) = setup.outcome() else {
        panic!()
    };
    assert_eq!((agreement.slots, agreement.segment_bytes), (11, 96));
    assert!(!agreement.supports(Collective::Bcast, None, None));
    assert!(agreement.supports(Collective::Allreduce, None, None));
}

#[test]
fn a_member_asks_until_it_is_answered() {
    let mut setup = MemberSetup::new(
        Time::ZERO,
        MemberSetupConfig {
            job: JOB,
            key: key(),
            group: GROUP,
            member: 3,
            master: member(0),
            terms: all_terms(4),
            retry: Span::from_us(100),
            give_up: Span::from_ms(10),
        },
    );
    let mut buffer = [0; 9000];
    let (to, length) = setup.poll_transmit(&mut buffer).unwrap();
    let read = Unverified::parse(&buffer[..length], 0)
        .unwrap()
        .verify(&key())
        .unwrap();
    assert_eq!(
        (to, read.kind, read.header.rank()),
        (member(0), Kind::Query, 3)
    );
    assert!(matches!(read.body, Body::Terms(_, path) if path.entries().len() == 0));
    assert!(setup.poll_transmit(&mut buffer).is_none());
    setup.handle_timeout(setup.poll_timeout().unwrap());
    assert!(setup.poll_transmit(&mut buffer).is_some());
    // Another member's notify is not its own.
    let notify = |destination| {
        let terms = Terms {
            destination,
            parent: TOR2,
            ..all_terms(4)
        };
        let mut body = [0; Terms::SIZE];
        terms.write(&mut body, 0).unwrap();
        message(Header::of(Kind::Notify, JOB), &body)
    };
    assert!(!setup.handle_packet(Time::ZERO, &notify(2)));
    assert!(setup.handle_packet(Time::ZERO, &notify(3)));
    let SetupOutcome::Ready(agreement) = setup.outcome() else {
        panic!()
    };
    assert_eq!(agreement.switch, switch(TOR2));
    assert_eq!(setup.poll_timeout(), None);
}
