//! Measures one core: messages per second through send, join, parse and match, from one process to another, by size.
//! Receives are posted before the messages come, or after. The median of the runs counts; one JSON object per line.
//!
//! `cargo run --release -p raddle-matching --example matching_benchmark [messages [runs]]` (10^6 and 9 unless given)
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::{hint::black_box, time::Instant};

use raddle_matching::{
    Actions, Envelope, Fetch, Matcher, Mode, Outgoing, Parcel, Sent, Settings, Wanted,
};
use raddle_schedule::{Distance, Placement};

/// Messages of a superstep.
const SUPERSTEP: u64 = 32;

/// Carries parcels, and copies what is delivered as a driver would.
#[derive(Default)]
struct Wire {
    parcels: Vec<Parcel>,
    buffer: Vec<u8>,
    delivered: u64,
}

impl Actions for Wire {
    fn send(&mut self, _to: u32, parcel: Parcel) {
        self.parcels.push(parcel);
    }
    fn deliver(&mut self, _receive: u64, _message: &Envelope, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.delivered += 1;
    }
    fn fetch(&mut self, _receive: u64, _capacity: u64, _message: &Envelope, _from: Fetch) {}
    fn set_aside(&mut self, _aside: u64, _message: &Envelope, _key: u32) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let runs: usize = arguments.next().map_or(Ok(9), |n| n.parse())?;
    for bytes in [8_u64, 64, 256, 1024, 4096] {
        for (name, posted_first, wild) in [
            ("posted", true, false),
            ("unexpected", false, false),
            ("wildcards", true, true),
            ("unexpected wildcards", false, true),
        ] {
            let mut rates = Vec::new();
            let mut parcels = 0;
            for _ in 0..runs.max(1) {
                let start = Instant::now();
                parcels = exchange(count, bytes, posted_first, wild)?;
                rates.push(count as f64 / start.elapsed().as_secs_f64());
            }
            rates.sort_by(f64::total_cmp);
            println!(
                "{{\"bytes\": {bytes}, \"receives\": \"{name}\", \"messages\": {count}, \"parcels\": {parcels}, \
                 \"messages_per_s\": {:.0}, \"least\": {:.0}, \"most\": {:.0}}}",
                rates[rates.len() / 2],
                rates[0],
                rates[rates.len() - 1],
            );
        }
    }
    Ok(())
}

/// Sends and receives; gives the number of parcels.
fn exchange(
    count: u64,
    bytes: u64,
    posted_first: bool,
    wild: bool,
) -> Result<u64, Box<dyn std::error::Error>> {
    let placement = Placement::blocks(2, 1)?;
    let settings = Settings::default();
    let new = |rank| Matcher::new(rank, &placement, &Distance::default(), &settings);
    let (mut zero, mut one) = (new(0)?, new(1)?);
    let contents = vec![7_u8; bytes as usize];
    let mut wire = Wire {
        buffer: vec![0; bytes as usize],
        ..Wire::default()
    };
    let mut back = Wire::default();
    for superstep in 0..count / SUPERSTEP {
        if posted_first {
            receive(&mut one, superstep, bytes, wild, &mut wire)?;
        }
        for number in 0..SUPERSTEP {
            let message = Outgoing {
                to: 1,
                context: 0,
                tag: number as i32,
                bytes,
                mode: Mode::Standard,
            };
            let fill = |room: &mut [u8]| room.copy_from_slice(&contents);
            let sent = zero.send(&message, fill, &mut wire)?;
            assert_eq!(sent, Sent::Copied);
        }
        zero.flush(&mut wire);
        for parcel in std::mem::take(&mut wire.parcels) {
            one.handle_parcel(0, parcel.bytes(), &mut wire)?;
            zero.recycle(parcel);
        }
        if !posted_first {
            receive(&mut one, superstep, bytes, wild, &mut wire)?;
        }
        back.parcels.append(&mut wire.parcels);
        for parcel in std::mem::take(&mut back.parcels) {
            zero.handle_parcel(1, parcel.bytes(), &mut back)?;
            one.recycle(parcel);
        }
    }
    assert_eq!(wire.delivered, count / SUPERSTEP * SUPERSTEP);
    black_box(&wire.buffer);
    Ok(zero.statistics().parcels)
}

fn receive(
    one: &mut Matcher,
    superstep: u64,
    bytes: u64,
    wild: bool,
    wire: &mut Wire,
) -> Result<(), Box<dyn std::error::Error>> {
    for number in 0..SUPERSTEP {
        let wanted = Wanted {
            context: 0,
            source: (!wild).then_some(0),
            tag: Some(number as i32),
        };
        one.receive(&wanted, bytes, superstep * SUPERSTEP + number, wire)?;
    }
    Ok(())
}
