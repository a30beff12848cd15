//! The reference's files.

use std::{collections::BTreeMap, fs, io::Read, path::PathBuf};

use flate2::read::GzDecoder;
use raddle_workload::{
    FlowFormat, FlowList, FlowTimes, PLAIN_CLASS, ReadOptions, apply_class_file, read_flows,
};

use super::{Completion, Outcome};

/// Hosts that send the long flows of `small`.
pub(super) const LONG_SENDERS: [u32; 2] = [0, 1];
/// Flows from this size on are long, where the reference has no class file.
const LONG_FROM: u64 = 1_000_000;

/// The files of one experiment.
pub(super) struct Reference {
    experiment: &'static str,
}

/// The class of a flow: the class file's, or by size.
pub(super) fn class_of(size: u64, class: Option<&String>) -> String {
    match class {
        Some(class) if class != PLAIN_CLASS => class.clone(),
        _ if size >= LONG_FROM => "long".into(),
        _ => "short".into(),
    }
}

impl Reference {
    pub(super) fn new(experiment: &'static str) -> Self {
        Self { experiment }
    }

    /// A packed file; nothing if there is none.
    fn unpacked(folder: &str, name: &str) -> Option<String> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../../tests/data/hpcc-ns3")
            .join(folder)
            .join(format!("{name}.gz"));
        let mut text = String::new();
        let packed = fs::File::open(path).ok()?;
        GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        Some(text)
    }

    /// Both fat trees carry the same flows.
    fn flow_folder(&self) -> &'static str {
        match self.experiment {
            "large100" => "large",
            other => other,
        }
    }

    /// The flow file, with classes where there are any.
    pub(super) fn flows(&self, truncated_times: bool) -> FlowList {
        let text = Self::unpacked(self.flow_folder(), "flow.txt").unwrap();
        let times = if truncated_times {
            FlowTimes::HpccNs3
        } else {
            FlowTimes::Exact
        };
        let options = ReadOptions {
            times,
            ..ReadOptions::new("flow.txt")
        };
        let flows = read_flows(text.as_bytes(), FlowFormat::HpccNs3, &options).unwrap();
        match Self::unpacked(self.flow_folder(), "class.txt") {
            Some(classes) => apply_class_file(&flows, classes.as_bytes(), "class.txt").unwrap(),
            None => flows,
        }
    }

    pub(super) fn outcome(&self, variant: &str) -> Outcome {
        let flows = self.flows(true);
        let names = raddle_workload::Workload::classes(&flows).to_vec();
        let mut classes = BTreeMap::new();
        let mut used = BTreeMap::new();
        for message in flows.messages() {
            let Some(dst) = message.dst.host() else {
                continue;
            };
            let pair = (message.src.0, dst.0);
            let sport: &mut u16 = used.entry(pair).or_insert(10_000);
            let class = class_of(message.size.0, names.get(usize::from(message.class)));
            classes.insert((pair.0, pair.1, *sport), class);
            *sport += 1;
        }
        let text = Self::unpacked(self.experiment, &format!("{variant}.fct")).unwrap();
        let completions: Vec<_> = text
            .lines()
            .map(|line| completion(line, &classes))
            .collect();
        let pauses = Self::unpacked(self.experiment, &format!("{variant}.pfc"));
        let progress = Self::unpacked(self.experiment, &format!("{variant}.tput"));
        Outcome {
            unfinished: classes.len() - completions.len(),
            completions,
            pauses: pauses.map_or_else(Vec::new, |text| paused(&text)),
            progress: progress.map_or_else(Vec::new, |text| acknowledged(&text)),
        }
    }
}

/// `sip dip sport dport size start_ns fct_ns standalone_ns`.
fn completion(line: &str, classes: &BTreeMap<(u32, u32, u16), String>) -> Completion {
    let field: Vec<&str> = line.split_whitespace().collect();
    let host = |address: &str| u32::from_str_radix(address, 16).unwrap() >> 8 & 0xffff;
    let number = |index: usize| field[index].parse::<u64>().unwrap();
    let flow = (host(field[0]), host(field[1]), number(2) as u16);
    Completion {
        flow,
        class: classes[&flow].clone(),
        size: number(4),
        start: number(5),
        fct: number(6),
    }
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace()
        .map(|field| field.parse().unwrap())
        .collect()
}

/// `time_ns node nodetype ifindex type`, 1 for a pause and 0 for its end.
fn paused(text: &str) -> Vec<(u32, u32, u64, u64)> {
    let (mut open, mut pauses) = (BTreeMap::new(), Vec::new());
    for field in text.lines().map(numbers) {
        let (time, node, port) = (field[0], field[1] as u32, field[3] as u32);
        if field[4] == 1 {
            open.insert((node, port), time);
        } else if let Some(start) = open.remove(&(node, port)) {
            pauses.push((node, port, start, time));
        }
    }
    pauses
}

/// `time_ns src dst sport snd_nxt snd_una rate_bps`.
fn acknowledged(text: &str) -> Vec<(u64, u32, u64)> {
    text.lines()
        .map(numbers)
        .map(|field| (field[0], field[1] as u32, field[5]))
        .collect()
}
