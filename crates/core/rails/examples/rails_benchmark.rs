//! What a data packet over rails costs its two ends, and a short message that is answered, without network and without copying:
//! nanoseconds on one core.
//!
//! `cargo run --release -p raddle-rails --example rails_benchmark`
#![allow(clippy::print_stdout, reason = "a program that prints figures")]

use std::{collections::VecDeque, time::Instant};

use raddle_rails::{Config, Connection, Event, Reception, Transmit};
use raddle_units::{BitRate, Span, Time};
use raddle_wire::native::JobKey;

const MESSAGE: u64 = 1 << 20;
const PACKETS: u64 = 1_000_000;
const SHORT: u64 = 8;
const SHORT_MESSAGES: u64 = 100_000;
/// Of which the shortest counts.
const TRIES: usize = 5;
const DELAY: Span = Span::from_us(20);

/// Packets on their way to one of the nodes, by arrival.
type Pipe = VecDeque<(Time, Transmit)>;

struct Pair {
    nodes: [Connection; 2],
    pipes: [Pipe; 2],
    key: JobKey,
    datagram: Vec<u8>,
    payload: Vec<u8>,
    on_the_wire: bool,
    /// Messages are answered, one at a time; otherwise 16 are always under way in one direction.
    answers: bool,
    received: u64,
}

impl Pair {
    fn new(rails: usize, on_the_wire: bool, answers: bool) -> Self {
        let key = JobKey::new([3; 16]);
        let node = |local| {
            let rates = vec![BitRate::from_gbps(100); rails];
            let config = Config::new(1, key, local, 1 - local, 5 + local, rates);
            Connection::new(Time::ZERO, config).expect("the configuration is right")
        };
        let mut nodes = [node(0), node(1)];
        for node in &mut nodes {
            node.open_port(1, MESSAGE).expect("it is not open");
            for token in 0..16 {
                node.provide(1, token).expect("it is open");
            }
        }
        let (length, count) = if answers { (SHORT, 1) } else { (MESSAGE, 16) };
        for token in 0..count {
            nodes[0]
                .send(0, 1, length, token)
                .expect("there are tokens");
        }
        Self {
            nodes,
            pipes: [Pipe::new(), Pipe::new()],
            key,
            datagram: vec![0; 2000],
            payload: vec![7; 2000],
            on_the_wire,
            answers,
            received: 0,
        }
    }

    /// When something arrives or is due.
    fn next(&self) -> Time {
        let arrivals = self.pipes.iter().filter_map(|pipe| pipe.front());
        let arrivals = arrivals.map(|(at, _)| *at);
        let due = self.nodes.iter().filter_map(Connection::poll_timeout);
        arrivals.chain(due).min().unwrap_or(Time::NEVER)
    }

    /// Both ends do what is due at `now`.
    fn step(&mut self, now: Time) {
        for at in [0, 1] {
            while let Some((due, transmit)) = self.pipes[at].front().copied()
                && due <= now
            {
                self.pipes[at].pop_front();
                self.arrive(at, now, &transmit);
            }
            let node = &mut self.nodes[at];
            if node.poll_timeout().is_some_and(|due| due <= now) {
                node.handle_timeout(now);
            }
            while let Some(event) = node.poll_event() {
                match event {
                    Event::Sent { token } if !self.answers => {
                        node.send(0, 1, MESSAGE, token).expect("one came back");
                    }
                    Event::Received { token, .. } => {
                        self.received += 1;
                        node.provide(1, token).expect("it is open");
                        if self.answers {
                            node.send(0, 1, SHORT, 0).expect("few are under way");
                        }
                    }
                    _ => {}
                }
            }
            while let Some(transmit) = node.poll_transmit(now) {
                self.pipes[1 - at].push_back((now + DELAY, transmit));
            }
        }
    }

    fn arrive(&mut self, at: usize, now: Time, transmit: &Transmit) {
        let node = &mut self.nodes[at];
        if !self.on_the_wire {
            let how = Reception::default();
            let taken = node.handle_packet(now, transmit.rail, &transmit.packet, how);
            assert!(taken.is_ok());
            return;
        }
        let payload = &self.payload[..usize::from(transmit.payload.bytes)];
        let written = transmit
            .packet
            .write(&mut self.datagram, payload, &self.key);
        let length = written.expect("the buffer is long enough");
        let (datagram, how) = (&self.datagram[..length], Reception::default());
        let taken = node.handle_datagram(now, transmit.rail, datagram, how);
        assert!(taken.is_ok());
    }
}

/// Nanoseconds per data packet of long messages.
fn long(rails: usize, on_the_wire: bool) -> f64 {
    let mut pair = Pair::new(rails, on_the_wire, false);
    let mut now = Time::ZERO;
    let begun = Instant::now();
    while pair.nodes[0].counters().segments < PACKETS {
        now += Span::from_us(1);
        pair.step(now);
    }
    begun.elapsed().as_nanos() as f64 / pair.nodes[0].counters().segments as f64
}

/// Nanoseconds per short message.
fn short(rails: usize) -> f64 {
    let mut pair = Pair::new(rails, false, true);
    let mut now = Time::ZERO;
    let mut run = || {
        let (begun, until) = (Instant::now(), pair.received + SHORT_MESSAGES);
        while pair.received < until {
            now = now.max(pair.next());
            pair.step(now);
        }
        begun.elapsed().as_nanos() as f64 / SHORT_MESSAGES as f64
    };
    (0..TRIES).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!(
        "ns at both ends, acknowledgements included: per data packet of 1392 B of long messages, per answered message of 8 B"
    );
    println!(
        "{:>5} {:>12} {:>22} {:>8}",
        "rails", "cores only", "with header and tag", "8 B"
    );
    for rails in [1, 2, 4, 8] {
        let (cores, wire) = (long(rails, false), long(rails, true));
        println!(
            "{rails:>5} {cores:>12.0} {wire:>22.0} {:>8.0}",
            short(rails)
        );
    }
}
