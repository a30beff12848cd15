//! What the state machines of in-network Allreduce promise about any packets, used by the fuzz target and by
//! `crates/core/offload/tests/hostile.rs`: no panic, and what is not made with the job's key changes nothing.
//!
//! The bytes are commands: which of some messages to take, which byte of it to change, whether to make its tag anew (as a
//! hostile program of the job itself can), whom to give it to, how much time passes.

#![allow(dead_code, reason = "each user takes some of the functions")]

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::{
    endpoint::Endpoint,
    member::{MemberConfig, RoundSpec},
    setup::{MasterConfig, MasterSetup, MemberPlace, all_terms},
    switch::{Abilities, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        ChildEntry, Collective, Header, HeaderView, JobKey, Kind, ProgramHead, StepEntry, Terms,
        write_program,
    },
};

const JOB: u32 = 7;
const OTHER_JOB: u32 = 8;
const GROUP: u32 = 1;
const SLOTS: u16 = 4;

fn secret() -> SiteSecret {
    SiteSecret::new([9; 32])
}

const fn at(last: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 40_000)
}

/// What is attacked, and what attacks it.
struct Stage {
    now: Time,
    switch: Switch,
    endpoint: Endpoint,
    master: MasterSetup,
    messages: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    limit: Quotas,
}

/// Runs commands.
pub(crate) fn packets(bytes: &[u8]) {
    let mut stage = Stage::new();
    for command in bytes.chunks_exact(8) {
        stage.command(command);
    }
    stage.end();
}

/// Gives raw bytes to everybody, who must be as before.
pub(crate) fn raw(bytes: &[u8]) {
    let mut stage = Stage::new();
    let before = (stage.switch.status().groups, stage.endpoint.state());
    stage.give(bytes);
    let after = (stage.switch.status().groups, stage.endpoint.state());
    assert_eq!(before, after);
}

impl Stage {
    fn new() -> Self {
        let key = job_key(&secret(), JOB);
        let limit = Quotas {
            groups: 8,
            job_groups: 4,
            ..Quotas::default()
        };
        let mut switch = Switch::new(SwitchConfig {
            address: Ipv4Addr::new(10, 255, 1, 1),
            tier: 1,
            epoch: 1,
            secret: secret(),
            quotas: limit,
            abilities: Abilities::default(),
        });
        let messages = messages(&key);
        switch.handle_packet(Time::ZERO, at(1), &messages[0]);
        assert_eq!(switch.group_count(), 1);
        let config = MemberConfig {
            job: JOB,
            key,
            group: GROUP,
            member: 0,
            switch: at(200),
            slots: SLOTS,
            segment_bytes: 24,
            operands: 1,
            lease: Span::from_ms(100),
            retry: Span::from_us(100),
            give_up: Span::from_ms(10),
        };
        let mut endpoint = Endpoint::new(Time::ZERO, config, vec![at(1), at(2), at(3)]);
        let spec = RoundSpec {
            collective: Collective::Allreduce,
            operation: Some(Operation::Sum),
            data_type: Some(DataType::Int64),
            count: 5,
            ordered: false,
            root: 0,
        };
        let started = endpoint.start(Time::ZERO, &spec, &[1; 40]);
        assert!(started.is_ok());
        let members = (1..4).map(|member| MemberPlace {
            address: at(member),
            ranks: vec![u32::from(member) - 1],
        });
        let master = MasterSetup::new(
            Time::ZERO,
            MasterConfig {
                job: JOB,
                key,
                group: GROUP,
                members: members.collect(),
                terms: all_terms(3),
                expression: None,
                results: None,
                datagram: 1472,
                retry: Span::from_us(100),
                give_up: Span::from_ms(10),
            },
        );
        Self {
            now: Time::ZERO,
            switch,
            endpoint,
            master,
            messages,
            buffer: vec![0; 9000],
            limit,
        }
    }

    fn command(&mut self, command: &[u8]) {
        let original = self.messages[usize::from(command[0]) % self.messages.len()].clone();
        let mut message = original.clone();
        // Two bytes change; 0 leaves them.
        for pair in command[1..5].chunks_exact(2) {
            let place = usize::from(pair[0]) % message.len();
            message[place] ^= pair[1];
        }
        let changed = message != original;
        self.now += Span::from_us(u64::from(command[5]) * u64::from(command[5]));
        match command[6] % 4 {
            // A stranger: the tag is not made anew.
            0 | 1 if changed => {
                let before = (self.switch.status().groups, self.endpoint.state());
                let counted = self.switch.status().jobs;
                self.give(&message);
                assert_eq!(before.0, self.switch.status().groups);
                assert_eq!(counted, self.switch.status().jobs);
                assert_eq!(before.1, self.endpoint.state());
            }
            // A hostile program of this job, or of another one.
            2 => {
                seal(&mut message, &job_key(&secret(), JOB));
                self.give(&message);
            }
            3 => {
                let before = (self.switch.status().groups, self.endpoint.state());
                seal(&mut message, &job_key(&secret(), OTHER_JOB));
                if message.get(8..12) == Some(&JOB.to_be_bytes()) {
                    self.give(&message);
                    assert_eq!(before.0, self.switch.status().groups);
                    assert_eq!(before.1, self.endpoint.state());
                }
            }
            _ => self.give(&message),
        }
        if command[7].is_multiple_of(8) {
            self.switch.handle_timeout(self.now);
            self.endpoint.handle_timeout(self.now);
            self.master.handle_timeout(self.now);
            self.drain();
        }
        let status = self.switch.status();
        assert!(status.groups.len() <= self.limit.groups as usize);
        assert!(
            status
                .jobs
                .iter()
                .all(|job| job.groups <= self.limit.job_groups)
        );
        assert_eq!(
            status.bytes,
            status.groups.iter().map(|group| group.bytes).sum::<u64>()
        );
    }

    fn give(&mut self, message: &[u8]) {
        let from = at(2);
        self.switch.handle_packet(self.now, from, message);
        self.endpoint.handle_packet(self.now, message);
        self.master.handle_packet(self.now, from, message);
        let mut out = Vec::new();
        let _ = self.switch.pass(self.now, message, &mut out);
        self.drain();
    }

    /// One packet is answered by a bounded number of packets.
    fn drain(&mut self) {
        let mut sent = 0;
        while self.switch.poll_transmit(&mut self.buffer).is_some() {
            sent += 1;
        }
        while self.endpoint.poll_transmit(&mut self.buffer).is_some() {
            sent += 1;
        }
        while self.master.poll_transmit(&mut self.buffer).is_some() {
            sent += 1;
        }
        while self.switch.poll_event().is_some() {}
        assert!(sent < 2000, "{sent} packets");
        let _ = (self.endpoint.outcome(), self.master.outcome());
    }

    /// Without signs of life nothing stays.
    fn end(&mut self) {
        self.now += Span::from_ms(60_001);
        self.switch.handle_timeout(self.now);
        assert_eq!(self.switch.group_count(), 0);
        let status = self.switch.status();
        assert_eq!((status.bytes, status.jobs.len()), (0, 0));
    }
}

/// Makes the tag anew, whatever the message says.
fn seal(message: &mut [u8], key: &JobKey) {
    let Ok(view) = Header::view(message, 0) else {
        return;
    };
    let header: Header = HeaderView::values(view);
    let length = usize::from(header.body_length).min(message.len() - Header::SIZE);
    let _ = header.seal_message(message, length, key);
}

/// One message of each kind, as they go round in a group.
fn messages(key: &JobKey) -> Vec<Vec<u8>> {
    let header = |kind| Header {
        group: GROUP,
        ..Header::of(kind, JOB)
    };
    let mut all = Vec::new();
    let mut add = |header: Header, body: &[u8]| {
        let mut bytes = vec![0; Header::SIZE + body.len()];
        if header.write_message(&mut bytes, body, key).is_ok() {
            all.push(bytes);
        }
    };
    let head = ProgramHead {
        parent: Ipv4Addr::new(10, 255, 2, 1),
        group_size: 3,
        lease_ms: 1000,
        slots: SLOTS,
        segment_bytes: 24,
        ..ProgramHead::default()
    };
    let children = [0, 1, 2].map(|rank| ChildEntry {
        address: Ipv4Addr::new(10, 0, 0, rank as u8 + 1),
        port: 40_000,
        operands: 1 + u16::from(rank == 1),
        rank,
    });
    let steps = [(1, 0, 1), (3, 2, 3)].map(|(into, left, right)| StepEntry { into, left, right });
    let mut body = [0; 200];
    for parent in [head.parent, Ipv4Addr::UNSPECIFIED] {
        let head = ProgramHead { parent, ..head };
        let outputs: &[u16] = if parent.is_unspecified() {
            &[1]
        } else {
            &[1, 3]
        };
        if let Ok(size) = write_program(&mut body, &head, &children, &steps, outputs) {
            let group = GROUP + u32::from(parent.is_unspecified());
            add(
                Header {
                    group,
                    ..header(Kind::Program)
                },
                &body[..size],
            );
        }
    }
    let mut terms = [0; Terms::SIZE];
    if all_terms(3).write(&mut terms, 0).is_ok() {
        for rank in 1..3 {
            add(
                Header {
                    rank,
                    ..header(Kind::Query)
                },
                &terms,
            );
        }
        add(header(Kind::Notify), &terms);
    }
    for kind in [
        Kind::Kill,
        Kind::Lease,
        Kind::Refuse,
        Kind::Fallback,
        Kind::Progress,
    ] {
        for rank in 0..3 {
            let answer = rank == 2;
            add(
                Header {
                    rank,
                    answer,
                    round: 1,
                    ..header(kind)
                },
                &[],
            );
        }
    }
    for segment in 0..2 {
        for rank in 0..3 {
            for (ordered, count) in [(false, 3), (true, 3), (true, 6)] {
                let data = Header {
                    round: 1,
                    segment,
                    segments: 2,
                    rank,
                    ordered,
                    slot: segment as u16,
                    ..header(Kind::Contribution)
                }
                .with_data(Operation::Sum, DataType::Int64, count);
                add(data, &vec![3; 8 * usize::from(count)]);
                add(
                    Header {
                        kind: Kind::Result.code(),
                        ..data
                    },
                    &vec![9; 8 * usize::from(count)],
                );
                add(
                    Header {
                        kind: Kind::Ask.code(),
                        ..data
                    },
                    &[],
                );
            }
        }
    }
    let barrier = Header {
        round: 2,
        segments: 1,
        collective: Collective::Barrier.code(),
        slot: 2,
        ..header(Kind::Contribution)
    };
    add(barrier, &[]);
    add(
        Header {
            kind: Kind::Result.code(),
            ..barrier
        },
        &[],
    );
    let bcast = Header {
        collective: Collective::Bcast.code(),
        data_type: DataType::Uint8.code(),
        count: 24,
        ..barrier
    };
    add(bcast, &[5; 24]);
    all
}
