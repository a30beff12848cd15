//! Measures one core: messages per second through send, join, parse and match, from one process to another, by size.
//! Receives are posted before the messages come, or after. The median of the runs counts; one JSON object per line.
//!
//! `cargo run --release -p raddle-matching --example matching_benchmark [messages [runs]]` (10^6 and 9 unless given)
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::{hint::black_box, time::Instant};

use raddle_matching::{Event, Matcher, Mode, Outgoing, Parcel, Refused, Sent, Settings, Wanted};
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

impl Wire {
    /// Makes a call, then does what the matcher wants done.
    #[inline]
    fn after<T>(&mut self, matcher: &mut Matcher, call: impl FnOnce(&mut Matcher) -> T) -> T {
        let outcome = call(matcher);
        if matcher.has_output() {
            self.drain(matcher, &[]);
        }
        outcome
    }

    fn bring(&mut self, matcher: &mut Matcher, from: u32, parcel: &[u8]) -> Result<(), Refused> {
        matcher.handle_parcel(from, parcel)?;
        self.drain(matcher, parcel);
        Ok(())
    }

    fn drain(&mut self, matcher: &mut Matcher, parcel: &[u8]) {
        while let Some(event) = matcher.poll_event() {
            if let Event::Delivered { contents, .. } = event {
                let bytes = contents.bytes(parcel);
                self.buffer[..bytes.len()].copy_from_slice(bytes);
                self.delivered += 1;
                matcher.give_back(contents);
            }
        }
        while let Some(transmit) = matcher.poll_transmit() {
            self.parcels.push(transmit.parcel);
        }
    }
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
            let sent = wire.after(&mut zero, |matcher| matcher.send(&message, fill))?;
            assert_eq!(sent, Sent::Copied);
        }
        wire.after(&mut zero, |matcher| matcher.flush());
        for parcel in std::mem::take(&mut wire.parcels) {
            wire.bring(&mut one, 0, parcel.bytes())?;
            zero.recycle(parcel);
        }
        if !posted_first {
            receive(&mut one, superstep, bytes, wild, &mut wire)?;
        }
        back.parcels.append(&mut wire.parcels);
        for parcel in std::mem::take(&mut back.parcels) {
            back.bring(&mut zero, 1, parcel.bytes())?;
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
        wire.after(one, |matcher| {
            matcher.receive(&wanted, bytes, superstep * SUPERSTEP + number)
        })?;
    }
    Ok(())
}
