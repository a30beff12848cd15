//! Measures one core: nanoseconds to parse, build, check and change packets, the median of 15 runs.
//!
//! `cargo run --release -p raddle-wire --example wire_benchmark`
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::{hint::black_box, time::Instant};

use raddle_wire::{
    Bth, DataType, Datagram, Deth, Edit, MacAddress, Opcode, Operation, Path, RocePacket,
    WireError, classify,
    compat::{Encapsulation, Envelope, Head, RcLayout, UcpTag},
    icrc,
    native::{Carrier, Header, JobKey, Kind, Unverified},
};

/// Runs `work` often enough for a stable time; prints the median over 15 runs.
fn measure(name: &str, mut work: impl FnMut()) {
    const CALLS: u32 = 200_000;
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                work();
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<52}{:>8.1} ns  ({:.1}..{:.1})",
        times[7], times[0], times[14]
    );
}

fn main() -> Result<(), WireError> {
    let path = Path::between(
        MacAddress([2, 0, 0, 0, 0, 1]),
        MacAddress([2, 0, 0, 0, 0, 2]),
        [10, 0, 0, 1].into(),
        [10, 0, 0, 2].into(),
        50_000,
    );
    let bth = |opcode| Bth {
        opcode,
        partition_key: 0xffff,
        destination_qp: 5,
        psn: 6,
        ..Bth::default()
    };
    let deth = Deth {
        queue_key: 1,
        reserved: 0,
        source_qp: 2,
    };
    let key = JobKey::new([7; 16]);
    for size in [8, 256] {
        let count = (size / 8) as u16;
        let body = vec![0x3f; size];
        let mut frame = [0; 600];

        let envelope = Envelope {
            path,
            bth: bth(Opcode::RC_SEND_ONLY),
            encapsulation: Encapsulation::Rc(RcLayout::Code),
            ucp_tag: UcpTag::of(1, 2),
        };
        let head = Head::data(1, 3, 1, Operation::Sum, DataType::Double, count);
        let length = envelope.write_data(&mut frame, &head, &body)?;
        println!("compat, RC, {size} B of doubles: frame of {length} B");
        let packet = frame[..length].to_vec();
        measure("  classify", || {
            let _ = black_box(classify(black_box(&packet)));
        });
        measure("  build, with ICRC", || {
            let _ = black_box(envelope.write_data(black_box(&mut frame), &head, &body));
        });
        measure("  ICRC", || {
            let _ = black_box(icrc(black_box(&packet[14..length - 4])));
        });
        let parsed = Datagram::find(&packet)?
            .map(RocePacket::parse)
            .transpose()?;
        if let Some(parsed) = parsed {
            measure("  check ICRC and IPv4 checksum of a parsed packet", || {
                let _ = black_box((parsed.verify_icrc(), parsed.datagram.verify_ipv4()));
            });
        }
        let mut changed = packet.clone();
        measure("  replace the elements in place, with ICRC", || {
            if let Ok(Some(mut edit)) = Edit::begin(black_box(&mut changed)) {
                let _ = edit.set_payload(45, &body);
                let _ = black_box(edit.finish());
            }
        });

        let header = Header {
            group: 9,
            round: 1,
            segments: 1,
            ..Header::of(Kind::Contribution, 42)
        }
        .with_data(Operation::Sum, DataType::Double, count);
        let length = header.write_message(&mut frame, &body, &key)?;
        println!("native, {size} B of doubles: message of {length} B");
        let message = frame[..length].to_vec();
        measure("  parse", || {
            let _ = black_box(Unverified::parse(black_box(&message), 0));
        });
        measure("  parse and check the tag", || {
            let _ =
                black_box(Unverified::parse(black_box(&message), 0).and_then(|m| m.verify(&key)));
        });
        measure("  build with tag", || {
            let _ = black_box(header.write_message(black_box(&mut frame), &body, &key));
        });
        let carrier = Carrier::RoceUd(bth(Opcode::UD_SEND_ONLY), deth);
        measure("  build a RoCEv2 frame with tag and ICRC", || {
            let _ =
                black_box(header.write_frame(black_box(&mut frame), &path, carrier, &body, &key));
        });
    }
    Ok(())
}
