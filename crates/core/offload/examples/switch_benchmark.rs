//! Measures one core: nanoseconds that a contribution costs in a switch, sending included, and what a message to a group
//! costs that is not there; the median of 15 runs.
//!
//! `cargo run --release -p raddle-offload --example switch_benchmark`
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::{
    hint::black_box,
    net::{Ipv4Addr, SocketAddrV4},
    time::Instant,
};

use raddle_offload::{
    order::Expression,
    program::Program,
    switch::{Abilities, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_units::Time;
use raddle_wire::{
    DataType, Operation,
    native::{ChildEntry, Header, JobKey, Kind, ProgramHead, StepEntry, write_program},
};

const ROUNDS: u32 = 20_000;
const SLOTS: u16 = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = SiteSecret::new([7; 32]);
    let key = job_key(&secret, 1);
    let master = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000);
    let mut buffer = [0; 9000];
    for (children, bytes, ordered) in [
        (4, 8, false),
        (4, 8, true),
        (4, 256, false),
        (4, 256, true),
        (16, 8, true),
        (16, 256, true),
    ] {
        let mut switch = Switch::new(SwitchConfig {
            address: Ipv4Addr::new(10, 255, 0, 1),
            tier: 1,
            epoch: 1,
            secret: secret.clone(),
            quotas: Quotas::default(),
            abilities: Abilities::default(),
        });
        let expression = Expression::in_rank_order(children).ok_or("no ranks")?;
        let below: Vec<Vec<u32>> = (0..children).map(|rank| vec![rank]).collect();
        let program = Program::for_node(&expression, &below)?;
        let head = ProgramHead {
            group_size: children,
            lease_ms: 5000,
            slots: SLOTS,
            segment_bytes: 256,
            ..ProgramHead::default()
        };
        let entries: Vec<ChildEntry> = (0..children)
            .map(|rank| ChildEntry {
                address: Ipv4Addr::new(10, 0, 0, rank as u8 + 1),
                port: 40_000,
                operands: 1,
                rank,
            })
            .collect();
        let steps = program.steps.iter().map(|step| StepEntry {
            into: step.into,
            left: step.left,
            right: step.right,
        });
        let steps: Vec<StepEntry> = steps.collect();
        let mut body = [0; 8192];
        let size = write_program(&mut body, &head, &entries, &steps, &program.outputs)?;
        let header = Header {
            group: 9,
            ..Header::of(Kind::Program, 1)
        };
        let length = header.write_message(&mut buffer, &body[..size], &key)?;
        let message = buffer[..length].to_vec();
        switch.handle_packet(Time::ZERO, master, &message);
        while switch.poll_transmit(&mut buffer).is_some() {}

        let mut times = Vec::new();
        for run in 0..15 {
            let mut messages = Vec::new();
            for round in 1..=ROUNDS {
                for rank in 0..children {
                    let header = Header {
                        group: 9,
                        round: run * ROUNDS + round,
                        segments: 1,
                        rank,
                        ordered,
                        slot: (round % u32::from(SLOTS)) as u16,
                        ..Header::of(Kind::Contribution, 1)
                    }
                    .with_data(
                        Operation::Sum,
                        DataType::Double,
                        (bytes / 8) as u16,
                    );
                    let mut message = vec![0; 56 + bytes];
                    header.write_message(&mut message, &vec![0x3f; bytes], &key)?;
                    messages.push(message);
                }
            }
            let start = Instant::now();
            let mut results = 0;
            for message in &messages {
                switch.handle_packet(Time::ZERO, master, message);
                while switch.poll_transmit(&mut buffer).is_some() {
                    results += 1;
                }
            }
            times.push(start.elapsed().as_nanos() as f64 / messages.len() as f64);
            assert_eq!(results, messages.len(), "every round has its results");
        }
        times.sort_by(f64::total_cmp);
        let kind = if ordered { "ordered" } else { "any order" };
        println!(
            "{children:>3} children, {bytes:>3} B, {kind:<9} {:>6.0} ns per contribution  ({:.0}..{:.0})",
            times[7], times[0], times[14]
        );
    }
    unknown(&secret, &key)?;
    Ok(())
}

/// Messages to no group: forged ones of a kind that would be answered and of one that would not, and one to be refused.
fn unknown(secret: &SiteSecret, key: &JobKey) -> Result<(), Box<dyn std::error::Error>> {
    let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000);
    let mut buffer = [0; 9000];
    for (what, kind, key) in [
        (
            "forged contribution",
            Kind::Contribution,
            &JobKey::new([0; 16]),
        ),
        ("forged result", Kind::Result, &JobKey::new([0; 16])),
        ("contribution, refused", Kind::Contribution, key),
    ] {
        let mut switch = Switch::new(SwitchConfig {
            address: Ipv4Addr::new(10, 255, 0, 1),
            tier: 1,
            epoch: 1,
            secret: secret.clone(),
            quotas: Quotas::default(),
            abilities: Abilities::default(),
        });
        let header = Header {
            group: 9,
            round: 1,
            segments: 1,
            ..Header::of(kind, 1)
        }
        .with_data(Operation::Sum, DataType::Double, 1);
        let mut message = [0; 64];
        header.write_message(&mut message, &[0x3f; 8], key)?;
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..ROUNDS {
                    switch.handle_packet(Time::ZERO, from, black_box(&message));
                    while switch.poll_transmit(&mut buffer).is_some() {}
                }
                start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "no group, {what:<22} {:>13.0} ns  ({:.0}..{:.0})",
            times[7], times[0], times[14]
        );
    }
    Ok(())
}
