//! Judges what an MPI library computed: reads the lines of `tests/mpi/order_probe.c` and says for each whether we compute
//! the same bits.
//!
//! `probe | cargo run -p raddle-offload --example order_of -- openmpi|mpich`
//!
//! Answers, one line each: `same`, `mirrored` (left and right exchanged), `plain REASON` (we would take the plain call), or
//! `DIFFERS`, followed by the line. Lines "zeros" stand for what `reduce::Probe` finds.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

use std::{
    collections::HashMap,
    io::{BufRead, Write, stdin, stdout},
};

use raddle_offload::{
    order::{Call, HostMpi, Order, Placement, Plan},
    reduce::{Comparison, combine},
};
use raddle_wire::{DataType, Operation, native::Collective};

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// An element as the probe makes it, in wire order. Only floats are asked.
fn element(data_type: DataType, kind: &str, seed: u64, rank: u32, index: usize) -> Vec<u8> {
    let draw = mix(mix(mix(seed) ^ u64::from(rank)) ^ index as u64);
    let wide = matches!(data_type, DataType::Double | DataType::DoubleIndex);
    let mut bytes = match (wide, kind) {
        (true, "w") => {
            (draw >> 63 << 63 | (1003 + (draw >> 52) % 41) << 52 | draw & 0xf_ffff_ffff_ffff)
                .to_be_bytes()
                .to_vec()
        }
        (true, _) => (draw >> 62 << 63 | if draw >> 61 & 1 == 1 { 0x3ff << 52 } else { 0 })
            .to_be_bytes()
            .to_vec(),
        (false, "w") => ((draw >> 63 << 31) as u32
            | ((123 + (draw >> 52) % 9) as u32 * (1 << 23))
            | (draw & 0x7f_ffff) as u32)
            .to_be_bytes()
            .to_vec(),
        (false, _) => (((draw >> 62 << 31) as u32 & 0x8000_0000)
            | if draw >> 61 & 1 == 1 { 0x7f << 23 } else { 0 })
        .to_be_bytes()
        .to_vec(),
    };
    if data_type.is_pair() {
        let number = (mix(seed + index as u64) as u32 % 5).wrapping_add(rank);
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn operation(name: &str) -> Operation {
    *Operation::ALL
        .iter()
        .find(|o| o.name() == name)
        .expect("an operation")
}

fn data_type(name: &str) -> DataType {
    *DataType::ALL
        .iter()
        .find(|t| t.name() == name)
        .expect("a type")
}

/// The verdict on a line "local ...".
fn local(words: &[&str]) -> String {
    let (operation, data_type) = (operation(words[1]), data_type(words[2]));
    let [left, right, result] = [3, 4, 5].map(|at| hex(words[at]));
    let is = |left: &[u8], right: &[u8]| {
        let mut into = vec![0; result.len()];
        combine(operation, data_type, left, right, &mut into).expect("defined");
        into == result
    };
    match (is(&left, &right), is(&right, &left)) {
        (true, _) => "same".into(),
        (false, true) => "mirrored".into(),
        (false, false) => "DIFFERS".into(),
    }
}

/// The verdict on a line "call ...".
fn call(host: HostMpi, zeros: &HashMap<String, Comparison>, words: &[&str]) -> String {
    let asked = [words[2], words[3], words[5]].join(" ");
    let call = Call {
        collective: match words[1] {
            "allreduce" => Collective::Allreduce,
            _ => Collective::Reduce,
        },
        operation: operation(words[2]),
        data_type: data_type(words[3]),
        count: words[5].parse().expect("a count"),
        size: words[6].parse().expect("a size"),
        root: words[7].parse().expect("a rank"),
        placement: Placement::OneNode,
        comparison: zeros.get(&asked).copied().unwrap_or(Comparison::Same),
    };
    let seed = words[8].parse().expect("a seed");
    let tree = match Order::Host(host).plan(&call) {
        Plan::Tree(tree) => tree,
        Plan::Plain(why) => return format!("plain {}", why.name()),
        Plan::Any => return "any".into(),
    };
    let operands: Vec<Vec<u8>> = (0..call.size)
        .map(|rank| {
            (0..call.count)
                .flat_map(|index| element(call.data_type, words[4], seed, rank, index))
                .collect()
        })
        .collect();
    let result = tree
        .evaluate(call.operation, call.data_type, &operands)
        .expect("defined");
    let ours = digest(&result);
    let same = words[9..]
        .iter()
        .all(|theirs| u64::from_str_radix(theirs, 16) == Ok(ours));
    if same { "same" } else { "DIFFERS" }.into()
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let host = match arguments.get(1).map(String::as_str) {
        Some("openmpi") => HostMpi::OpenMpi41,
        Some("mpich") => HostMpi::Mpich40,
        _ => {
            eprintln!("usage: order_of openmpi|mpich");
            std::process::exit(2);
        }
    };
    let mut zeros = HashMap::new();
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let verdict = match words.first() {
            Some(&"local") => local(&words),
            Some(&"call") => call(host, &zeros, &words),
            Some(&"zeros") => {
                let comparison = match words[4] {
                    "right" => Comparison::Same,
                    "left" => Comparison::Mirrored,
                    _ => Comparison::Other,
                };
                zeros.insert(words[1..4].join(" "), comparison);
                continue;
            }
            _ => continue,
        };
        writeln!(out, "{verdict}\t{line}")?;
    }
    Ok(())
}
