//! What a connection over rails promises about any packets, used by the fuzz target and by `crates/core/transport/tests/hostile.rs`:
//! no panic, bounded answers, and what is not made with the job's key changes nothing.
//!
//! The bytes are commands of eight: which packet of a connection to take, which of its values to change, whether with the job's
//! key (as a hostile program of the job can) or by turning a bit of it, to send it by which rail, how much time passes.

#![allow(dead_code, reason = "each user takes some of the functions")]

use raddle_rails::{Config, Connection, Event, Reception};
use raddle_units::{BitRate, Span, Time};
use raddle_wire::{
    native::JobKey,
    rails::{Ack, Body, Grant, Hello, Numbers, Packet, Segment, Unverified},
};

const LONGEST: u64 = 3000;

fn key() -> JobKey {
    JobKey::new([3; 16])
}

fn connection(local: u32) -> Connection {
    let rails = vec![BitRate::from_gbps(1); 2];
    let mut config = Config::new(1, key(), local, 1 - local, 10 + local, rails);
    config.segment = 200;
    let made = Connection::new(Time::ZERO, config);
    made.expect("the configuration is right")
}

/// A node that is attacked; the other one is what its packets are told to come from.
struct Stage {
    now: Time,
    node: Connection,
    templates: Vec<Body>,
    /// Messages of the node that were not given back, and its receive buffers that were not.
    sends: usize,
    buffers: usize,
}

/// Runs commands.
pub(crate) fn packets(bytes: &[u8]) {
    let mut stage = Stage::new();
    for command in bytes.chunks_exact(8) {
        stage.command(command.try_into().expect("chunks of eight"));
    }
    stage.end();
}

/// Gives raw bytes to a reader and to a node, which must be as before.
pub(crate) fn raw(bytes: &[u8]) {
    if let Ok(packet) = Unverified::parse(bytes) {
        let _ = (packet.job(), packet.source(), packet.verify(&key()));
    }
    let mut stage = Stage::new();
    let before = stage.node.counters().taken;
    assert!(
        stage
            .node
            .handle_datagram(stage.now, 0, bytes, Reception::default())
            .is_err()
    );
    assert_eq!(stage.node.counters().taken, before);
}

impl Stage {
    fn new() -> Self {
        let mut nodes = [connection(0), connection(1)];
        for node in &mut nodes {
            for port in [1, 2] {
                node.open_port(port, LONGEST).expect("it is not open");
                for token in 0..3 {
                    node.provide(port, token).expect("it is open");
                }
            }
        }
        for token in 0..4 {
            nodes[0]
                .send(0, 1 + token as u16 % 2, 700, token)
                .expect("there are tokens");
        }
        for _ in 0..4 {
            for from in [0, 1] {
                while let Some(transmit) = nodes[from].poll_transmit(Time::ZERO) {
                    // Data stays on the way, so that there is something to acknowledge.
                    if !matches!(transmit.packet.body, Body::Data(_)) {
                        let to = &mut nodes[1 - from];
                        let how = Reception::default();
                        let _ = to.handle_packet(Time::ZERO, transmit.rail, &transmit.packet, how);
                    }
                }
            }
        }
        let [node, _] = nodes;
        Self {
            now: Time::ZERO,
            node,
            templates: templates(),
            sends: 4,
            buffers: 6,
        }
    }

    fn command(&mut self, command: &[u8; 8]) {
        let [which, field, value, shift, how, place, time, timeout] = *command;
        let amount = u64::from(value) << (shift % 57);
        let body = self.templates[usize::from(which) % self.templates.len()];
        let mut packet = Packet {
            job: 1,
            source: 1,
            target: 0,
            source_epoch: 11,
            target_epoch: 10,
            rail: place % 2,
            number: if body.is_numbered() { 5 } else { 0 },
            ..Packet::of(body)
        };
        change(&mut packet, field, amount);
        self.now += Span::from_us(u64::from(time) * u64::from(time));
        let mut buffer = [0; 400];
        let payload = [9; 256];
        let bytes = match packet.body {
            Body::Data(segment) => usize::from(segment.payload).min(payload.len()),
            _ => 0,
        };
        if let Ok(length) = packet.write(&mut buffer, &payload[..bytes], &key()) {
            self.give(&mut buffer[..length], how, place);
        }
        if timeout.is_multiple_of(4) {
            self.node.handle_timeout(self.now);
        }
        self.drain();
    }

    fn give(&mut self, datagram: &mut [u8], how: u8, place: u8) {
        let rail = usize::from(how / 4) % 3;
        if how.is_multiple_of(2) {
            let reception = Reception {
                held: Span::from_us(u64::from(place) << (how % 32)),
                marked: how & 64 != 0,
            };
            let placed = self
                .node
                .handle_datagram(self.now, rail, datagram, reception);
            if let Ok(Some((placement, payload))) = placed {
                assert_eq!(usize::from(placement.bytes), payload.len());
                assert!(placement.offset + u64::from(placement.bytes) <= LONGEST);
            }
            return;
        }
        let at = usize::from(place) % datagram.len();
        datagram[at] ^= 1 << (how / 2 % 8);
        let before = (
            self.node.counters().taken,
            self.node.sending(),
            self.node.receiving(),
        );
        assert!(
            self.node
                .handle_datagram(self.now, rail, datagram, Reception::default())
                .is_err()
        );
        let after = (
            self.node.counters().taken,
            self.node.sending(),
            self.node.receiving(),
        );
        assert_eq!(before, after);
    }

    /// A packet is answered by a bounded number of packets and events, and nothing is given back twice.
    fn drain(&mut self) {
        let mut sent = 0;
        while self.node.poll_transmit(self.now).is_some() {
            sent += 1;
            assert!(sent < 200, "it sends without end");
        }
        while let Some(event) = self.node.poll_event() {
            match event {
                Event::Sent { .. } | Event::SendFailed { .. } => self.sends -= 1,
                // A buffer is provided again, so that there are more than were granted.
                Event::Received {
                    token, target_port, ..
                } if self.node.provide(target_port, token).is_ok() => {}
                Event::Received { .. } | Event::Returned { .. } => self.buffers -= 1,
                _ => {}
            }
        }
        assert!(self.node.sending() <= self.sends && self.node.receiving() <= self.buffers);
        assert!(self.node.poll_timeout().is_some() || self.node.failure().is_some());
    }

    /// Without anything from the other node it fails, and gives everything back.
    fn end(&mut self) {
        for _ in 0..3 {
            self.now += Span::from_ms(11_000);
            self.node.handle_timeout(self.now);
            self.drain();
        }
        assert!(self.node.failure().is_some());
        assert_eq!(
            (
                self.sends,
                self.buffers,
                self.node.sending(),
                self.node.receiving()
            ),
            (0, 0, 0, 0)
        );
    }
}

/// One body of each kind, near to what the other node would send.
fn templates() -> Vec<Body> {
    let hello = Hello {
        segment: 200,
        rails: 2,
        reserved: 0,
        occupied: false,
        established: true,
    };
    let segment = |target_port, sequence, offset, bytes| {
        Body::Data(Segment {
            source_port: 0,
            target_port,
            payload: bytes,
            reserved: 0,
            sequence,
            length: 500,
            offset,
        })
    };
    let ranges = [Numbers { first: 4, last: 5 }, Numbers { first: 1, last: 2 }];
    let mut bodies = vec![
        Body::Hello(hello),
        Body::Hello(Hello {
            established: false,
            occupied: true,
            ..hello
        }),
        Body::Grant(Grant {
            port: 1,
            reserved: 0,
            messages: 9,
            longest: LONGEST,
        }),
        Body::Grant(Grant {
            port: 2,
            reserved: 0,
            messages: 1,
            longest: 100,
        }),
        Body::Probe,
    ];
    bodies.extend(
        (1..=2)
            .filter_map(|count| Ack::new(1000, true, ranges[..count].iter().copied()))
            .map(Body::Ack),
    );
    for (target_port, sequence) in [(1, 0), (1, 1), (2, 0), (2, 2), (3, 0)] {
        bodies.extend(
            [(0, 200), (200, 200), (400, 100)]
                .map(|(at, bytes)| segment(target_port, sequence, at, bytes)),
        );
    }
    bodies
}

/// Adds `amount` to one value of a packet; fields that are too small for it wrap.
fn change(packet: &mut Packet, field: u8, amount: u64) {
    let narrow = amount as u32;
    match field % 20 {
        0 => packet.number = packet.number.wrapping_add(amount),
        1 => packet.source_epoch = packet.source_epoch.wrapping_add(narrow),
        2 => packet.target_epoch = packet.target_epoch.wrapping_add(narrow),
        3 => packet.source = packet.source.wrapping_add(narrow),
        4 => packet.urgent = amount % 2 == 1,
        5 => packet.busy = amount as u8,
        6 | 7 => packet.number = 1 + amount % 64,
        field => match &mut packet.body {
            Body::Data(segment) => match field {
                8 => segment.sequence = segment.sequence.wrapping_add(amount),
                9 => segment.length = segment.length.wrapping_add(amount),
                10 => segment.offset = segment.offset.wrapping_add(amount),
                11 => segment.target_port = segment.target_port.wrapping_add(amount as u16),
                12 => segment.source_port = segment.source_port.wrapping_add(amount as u16),
                13 => segment.payload = amount as u16,
                _ => packet.number = 6 + amount % 8,
            },
            Body::Grant(grant) => match field {
                8 => grant.messages = grant.messages.wrapping_add(amount),
                9 => grant.longest = amount,
                _ => grant.port = grant.port.wrapping_add(amount as u16),
            },
            Body::Hello(hello) => match field {
                8 => hello.segment = amount as u16,
                9 => hello.rails = amount as u8,
                _ => hello.occupied = true,
            },
            Body::Ack(ack) => {
                let first = 1 + amount % 6;
                let last = if field < 12 {
                    first + amount % 3
                } else {
                    first.wrapping_add(amount)
                };
                if last >= first
                    && let Some(other) = Ack::new(narrow, false, [Numbers { first, last }])
                {
                    *ack = other;
                }
            }
            Body::Probe => {}
        },
    }
}
