//! An attempt message by message: what a member does from its first query until the group is used, or is given up.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddrV4},
};

use raddle_offload::{
    endpoint::Started,
    member::RoundSpec,
    order::Expression,
    setup::{Attempt, AttemptConfig, MemberPlace, SetupOutcome, all_terms},
    switch::{Abilities, Pass, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Collective, Kind, PORT, Reason, Terms, Unverified},
};

const JOB: u32 = 3;
const TOR: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 1);
const LEASE: Span = Span::from_ms(300);

fn host(number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number as u8 + 1), 40_000)
}

fn secret() -> SiteSecret {
    SiteSecret::new([3; 32])
}

fn switch(epoch: u32) -> Switch {
    Switch::new(SwitchConfig {
        address: TOR,
        tier: 1,
        epoch,
        secret: secret(),
        quotas: Quotas::default(),
        abilities: Abilities::default(),
    })
}

/// Two members of a rank each below one switch; links are perfect and take no time.
struct World {
    now: Time,
    switch: Switch,
    members: [Attempt; 2],
    /// Messages of these kinds are lost.
    lost: Vec<Kind>,
}

impl World {
    fn new() -> Self {
        let config = |member: usize| AttemptConfig {
            job: JOB,
            key: job_key(&secret(), JOB),
            group: 9,
            member: member as u32,
            places: (0..2)
                .map(|number| MemberPlace {
                    address: host(number),
                    ranks: vec![number as u32],
                })
                .collect(),
            peers: vec![host(0), host(1)],
            terms: Terms {
                lease_ms: 300,
                ..all_terms(2)
            },
            expression: Expression::in_rank_order(2),
            results: None,
            datagram: 1472,
            set_up_retry: Span::from_ms(1),
            set_up_give_up: Span::from_ms(100),
            retry: Span::from_ms(1),
            give_up: Span::from_ms(10),
        };
        Self {
            now: Time::ZERO,
            switch: switch(1),
            members: [0, 1].map(|member| Attempt::new(Time::ZERO, config(member))),
            lost: Vec::new(),
        }
    }

    fn kind(payload: &[u8]) -> Kind {
        Unverified::parse(payload, 0).unwrap().kind()
    }

    /// All messages come to where they go.
    fn settle(&mut self) {
        let mut queue = VecDeque::new();
        let mut buffer = [0; 9000];
        let tor = SocketAddrV4::new(TOR, PORT);
        loop {
            for (number, member) in self.members.iter_mut().enumerate() {
                while let Some((to, length)) = member.poll_transmit(&mut buffer) {
                    queue.push_back((host(number), to, buffer[..length].to_vec()));
                }
            }
            while let Some((to, length)) = self.switch.poll_transmit(&mut buffer) {
                queue.push_back((tor, to, buffer[..length].to_vec()));
            }
            let Some((from, to, payload)) = queue.pop_front() else {
                return;
            };
            if self.lost.contains(&Self::kind(&payload)) {
                continue;
            }
            if to == tor {
                self.switch.handle_packet(self.now, from, &payload);
                continue;
            }
            let mut passed = payload.clone();
            if Self::kind(&payload) == Kind::Query {
                let pass = self.switch.pass(self.now, &payload, &mut passed);
                assert_eq!(pass, Pass::Rewritten);
            }
            let number = usize::from(to == host(1));
            self.members[number].handle_packet(self.now, from, &passed);
        }
    }

    fn after(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now += Span::from_ms(1);
            self.switch.handle_timeout(self.now);
            for member in &mut self.members {
                member.handle_timeout(self.now);
            }
            self.settle();
        }
    }

    fn outcomes(&self) -> [Option<bool>; 2] {
        [0, 1].map(|number| match self.members[number].outcome() {
            SetupOutcome::Pending => None,
            SetupOutcome::Ready(_) => Some(true),
            SetupOutcome::Failed(_) => Some(false),
        })
    }
}

#[test]
fn a_group_that_nobody_uses_yet_keeps_its_lease_and_works() {
    let mut world = World::new();
    world.settle();
    assert_eq!(world.outcomes(), [Some(true); 2]);
    world.after(Span(20 * LEASE.0));
    assert_eq!(
        (world.outcomes(), world.switch.group_count()),
        ([Some(true); 2], 1)
    );
    let spec = RoundSpec {
        collective: Collective::Allreduce,
        operation: Some(Operation::Sum),
        data_type: Some(DataType::Int32),
        count: 1,
        ordered: false,
        root: 0,
    };
    for member in world.members {
        let (_, mut endpoint) = member.into_endpoint().expect("it is ready");
        let operand = 5_i32.to_be_bytes();
        let started = endpoint.start(world.now, &spec, &operand).unwrap();
        assert_eq!(started, Started::Offloaded(1));
    }
}

#[test]
fn a_master_that_is_ready_answers_a_member_whose_notify_was_lost() {
    let mut world = World::new();
    world.lost = vec![Kind::Notify];
    world.settle();
    assert_eq!(world.outcomes(), [Some(true), None]);
    world.after(Span::from_ms(20));
    world.lost.clear();
    world.after(Span::from_ms(20));
    assert_eq!(world.outcomes(), [Some(true); 2]);
}

#[test]
fn what_is_cancelled_is_forgotten_at_once() {
    for ready in [true, false] {
        let mut world = World::new();
        if !ready {
            world.lost = vec![Kind::Notify];
        }
        world.settle();
        assert_eq!(world.switch.group_count(), 1);
        for member in &mut world.members {
            member.cancel(Reason::Unsupported);
        }
        world.settle();
        assert_eq!(
            (world.outcomes(), world.switch.group_count()),
            ([Some(false); 2], 0)
        );
    }
}

#[test]
fn a_member_that_hears_nothing_fails_in_time() {
    let mut world = World::new();
    world.lost = vec![Kind::Query];
    world.after(Span::from_ms(90));
    assert_eq!(world.outcomes(), [None; 2]);
    world.after(Span::from_ms(20));
    assert_eq!(world.outcomes(), [Some(false); 2]);
}

/// The lease comes to a switch that does not know the group; the other member hears of it.
#[test]
fn a_switch_that_starts_anew_before_the_group_is_used_ends_the_attempt() {
    let mut world = World::new();
    world.settle();
    assert_eq!(world.outcomes(), [Some(true); 2]);
    world.switch = switch(2);
    world.after(LEASE);
    assert_eq!(world.outcomes(), [Some(false); 2]);
    assert_eq!(world.switch.group_count(), 0);
}
