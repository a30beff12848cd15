//! Packet-hops per second of one run: the engine alone, with congestion control, telemetry, PFC and statistics on.
//!
//! ```text
//! cargo run --release --example hop_benchmark -- --hosts 320 --traffic hpc-mix --scheme hpcc
//! cargo run --release --example hop_benchmark -- --hosts 8192 --traffic permutation --flows 8192
//! cargo run --release --example hop_benchmark -- --hosts 65536 --levels 4 --traffic permutation
//! ```
//! Prints one JSON object. `--levels N` makes the fabric a k-ary n-tree of so many levels, `--cn-tn` a CN/TN fabric of four levels
//! and 262,144 hosts, whatever `--hosts` says; `--threads N` runs on so many, `--parts N` cuts the fabric into so many processes;
//! `--effort` counts how much several threads can do at the same time, `--delays` records what keeps each message. `--flows N`
//! stops the workload after N flows: instructions per packet-hop are the difference of a run and one twice as long under
//! `valgrind --tool=callgrind`.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use lexopt::prelude::*;
use raddle_engine::{
    Discard, Network, Partition, Progress, Recorder, RunConfig, Semantics,
    blame::Journal,
    effort::{Effort, THREADS},
    simulate,
};
use raddle_fabric::{CnTn, FatTree320, KAryFatTree, Xgft};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes};
use raddle_workload::{HpcMix, Message, Permutation, Workload};

struct Options {
    hosts: u32,
    levels: Option<usize>,
    cn_tn: bool,
    traffic: String,
    scheme: String,
    size: Bytes,
    flows: u64,
    compat: bool,
    threads: usize,
    effort: bool,
    delays: bool,
    parts: Option<u16>,
}

fn options() -> Result<Options, Box<dyn std::error::Error>> {
    let mut options = Options {
        hosts: 320,
        levels: None,
        cn_tn: false,
        traffic: "hpc-mix".into(),
        scheme: "hpcc".into(),
        size: Bytes(1_000_000),
        flows: u64::MAX,
        compat: false,
        threads: 1,
        effort: false,
        delays: false,
        parts: None,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("hosts") => options.hosts = parser.value()?.parse()?,
            Long("levels") => options.levels = Some(parser.value()?.parse()?),
            Long("cn-tn") => options.cn_tn = true,
            Long("traffic") => options.traffic = parser.value()?.string()?,
            Long("scheme") => options.scheme = parser.value()?.string()?,
            Long("size") => options.size = parser.value()?.parse()?,
            Long("flows") => options.flows = parser.value()?.parse()?,
            Long("compat") => options.compat = true,
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("effort") => options.effort = true,
            Long("delays") => options.delays = true,
            Long("parts") => options.parts = Some(parser.value()?.parse()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    Ok(options)
}

/// The first flows of a workload.
struct First<W> {
    inner: W,
    left: u64,
}

impl<W: Workload> Workload for First<W> {
    fn classes(&self) -> &[String] {
        self.inner.classes()
    }
    fn next_start(&self) -> Option<raddle_units::Time> {
        self.inner.next_start().filter(|_| self.left > 0)
    }
    fn pop(&mut self) -> Option<Message> {
        self.left = self.left.checked_sub(1)?;
        self.inner.pop()
    }
    fn finished(&self) -> bool {
        self.left == 0 || self.inner.finished()
    }
}

#[expect(clippy::print_stdout, reason = "the benchmark's result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    let setup = Instant::now();
    let fabric = match options.hosts {
        _ if options.cn_tn => CnTn::new(16, 32, 6, 32, 16).build()?,
        hosts if let Some(levels) = options.levels => {
            let k = (2..=128u32).find(|k| k.pow(levels as u32) >= hosts);
            Xgft::k_ary_n_tree(k.ok_or("at most 128 hosts on a switch")?, levels).build()?
        }
        320 => FatTree320::default().build()?,
        hosts => {
            let k = (2..=128).step_by(2).find(|k| k * k * k / 4 >= hosts);
            KAryFatTree::new(k.ok_or("at most 524,288 hosts")?).build()?
        }
    };
    let semantics = if options.compat {
        Semantics::HPCC_NS3
    } else {
        Semantics::CORRECTED
    };
    let network = Network::new(Arc::new(fabric), semantics, Bytes(1000))?;
    let hosts = network.fabric.hosts();
    let line_rate = BitRate::from_gbps(100);
    let workload: Box<dyn Workload> = match options.traffic.as_str() {
        "hpc-mix" => Box::new(HpcMix::default().build(hosts, 1)?),
        "permutation" => Box::new(
            Permutation {
                size: options.size,
                ..Permutation::default()
            }
            .build(hosts, 1)?,
        ),
        other => return Err(format!("traffic `{other}`: hpc-mix or permutation").into()),
    };
    let mut workload = First {
        inner: workload,
        left: options.flows,
    };
    let (scheme, _) = SchemeSettings::default()
        .resolve(&options.scheme, &network.environment)
        .ok_or("no such scheme")?;
    let mut config = RunConfig::new(scheme, 1, line_rate);
    config.buffer = Bytes::from_mib(32);
    config.threads = options.threads;
    config.record_delays = options.delays.then_some(256);
    let mut recorder: Box<dyn Recorder> = if options.delays {
        Box::new(Journal::default())
    } else {
        Box::new(Discard)
    };
    let effort = options.effort.then(Arc::default);
    config.effort = effort.clone();
    if let Some(parts) = options.parts {
        config.partition = Partition::Parts(parts);
    }
    let setup_s = setup.elapsed().as_secs_f64();
    let start = Instant::now();
    let summary = simulate(
        &network,
        &config,
        &mut workload,
        recorder.as_mut(),
        &Progress::default(),
    )?;
    let wall_s = start.elapsed().as_secs_f64();
    println!(
        "{{\"scheme\": \"{}\", \"hosts\": {}, \"flows\": {}, \"finished\": {}, \"packet_hops\": {}, \"events\": {}, \"simulated_ms\": {:.3}, \"pauses\": {}, \"drops\": {}, \"setup_s\": {setup_s:.2}, \"wall_s\": {wall_s:.3}, \"packet_hops_per_s\": {:.0}}}",
        options.scheme,
        hosts.len(),
        summary.flows_started,
        summary.flows_finished,
        summary.packet_hops,
        summary.events,
        summary.end_ps as f64 / 1e9,
        summary.pauses,
        summary.drops,
        summary.packet_hops as f64 / wall_s,
    );
    if let Some(effort) = effort {
        let Effort {
            windows,
            events,
            carried,
            longest,
        } = *effort.lock().unwrap_or_else(PoisonError::into_inner);
        let gains: Vec<String> = THREADS
            .iter()
            .zip(longest)
            .map(|(threads, longest)| {
                format!("\"{threads}\": {:.2}", events as f64 / longest as f64)
            })
            .collect();
        println!(
            "{{\"windows\": {windows}, \"events_per_window\": {:.0}, \"carried_per_hop\": {:.3}, \"events_over_longest_thread\": {{{}}}}}",
            events as f64 / windows as f64,
            carried as f64 / summary.packet_hops as f64,
            gains.join(", "),
        );
    }
    Ok(())
}
