//! What a data packet over rails costs its two ends, without network and without copying: nanoseconds on one core.
//!
//! `cargo run --release -p raddle-transport --example rails_benchmark`
#![allow(clippy::print_stdout, reason = "a program that prints figures")]

use std::{collections::VecDeque, time::Instant};

use raddle_transport::rails::{Config, Connection, Event, Reception, Transmit};
use raddle_units::{BitRate, Span, Time};
use raddle_wire::native::JobKey;

const MESSAGE: u64 = 1 << 20;
const PACKETS: u64 = 1_000_000;
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
}

impl Pair {
    fn new(rails: usize, on_the_wire: bool) -> Self {
        let key = JobKey::new([3; 16]);
        let node = |local| {
            let rates = vec![BitRate::from_gbps(100); rails];
            let config = Config::new(1, key, local, 1 - local, 5 + local, rates);
            Connection::new(Time::ZERO, config).expect("the configuration is right")
        };
        let mut nodes = [node(0), node(1)];
        nodes[1].open_port(1, MESSAGE).expect("it is not open");
        for token in 0..16 {
            nodes[1].provide(1, token).expect("it is open");
        }
        for token in 0..16 {
            nodes[0]
                .send(0, 1, MESSAGE, token)
                .expect("there are tokens");
        }
        Self {
            nodes,
            pipes: [Pipe::new(), Pipe::new()],
            key,
            datagram: vec![0; 2000],
            payload: vec![7; 2000],
            on_the_wire,
        }
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
            while let Some(transmit) = node.poll_transmit(now) {
                self.pipes[1 - at].push_back((now + DELAY, transmit));
            }
            while let Some(event) = node.poll_event() {
                match event {
                    Event::Sent { token } => {
                        node.send(0, 1, MESSAGE, token).expect("one came back")
                    }
                    Event::Received { token, .. } => node.provide(1, token).expect("it is open"),
                    _ => {}
                }
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

fn main() {
    println!("ns per data packet of 1392 B, both ends, acknowledgements included");
    println!(
        "{:>5} {:>12} {:>22}",
        "rails", "cores only", "with header and tag"
    );
    for rails in [1, 2, 4, 8] {
        let mut columns = Vec::new();
        for on_the_wire in [false, true] {
            let mut pair = Pair::new(rails, on_the_wire);
            let mut now = Time::ZERO;
            let begun = Instant::now();
            while pair.nodes[0].counters().segments < PACKETS {
                now += Span::from_us(1);
                pair.step(now);
            }
            let segments = pair.nodes[0].counters().segments;
            columns.push(begun.elapsed().as_nanos() as f64 / segments as f64);
        }
        println!("{rails:>5} {:>12.0} {:>22.0}", columns[0], columns[1]);
    }
}
