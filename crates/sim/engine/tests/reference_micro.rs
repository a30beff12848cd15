//! Compat mode against per-ACK traces of the HPCC repository's ns-3 simulator (commit 9f4be2a): equal to the nanosecond.
//!
//! tests/data/hpcc-ns3 holds the traces (README.md there says how they were made). Random ECN marks (DCQCN v4 to v7)
//! are replayed from the trace, and in a second set drawn from ns-3's documented generator; PINT's random rounding comes
//! from libc's.

use std::{fs, io::Read, path::PathBuf, sync::Arc};

use flate2::read::GzDecoder;
use raddle_engine::{
    MarkReplay, Network, Progress, Recorder, RunConfig, Semantics,
    record::{AckRecord, FlowRecord, PauseRecord},
    simulate,
};
use raddle_fabric::{Fabric, FatTree320, Small20};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes};
use raddle_workload::{FlowFormat, FlowTimes, ReadOptions, read_flows};

#[derive(Default)]
struct Trace {
    acks: Vec<AckRecord>,
    flows: Vec<FlowRecord>,
    pauses: Vec<PauseRecord>,
}

impl Recorder for Trace {
    fn ack(&mut self, ack: &AckRecord) {
        self.acks.push(*ack);
    }
    fn flow(&mut self, flow: &FlowRecord) {
        self.flows.push(*flow);
    }
    fn pause(&mut self, pause: &PauseRecord) {
        self.pauses.push(*pause);
    }
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/data/hpcc-ns3")
        .join(name)
}

fn unpacked(name: &str) -> String {
    let mut text = String::new();
    let packed = fs::File::open(data(name)).unwrap();
    GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text
}

fn fabric(vector: &str) -> Fabric {
    if vector == "v7" {
        let fabric_rate = BitRate::from_gbps(400);
        FatTree320 {
            fabric_rate,
            ..FatTree320::default()
        }
        .build()
        .unwrap()
    } else {
        Small20::default().build().unwrap()
    }
}

fn run(vector: &str, scheme: &str, replay: bool) -> (Trace, String) {
    let reference = unpacked(&format!("{vector}_{scheme}.ack.gz"));
    let network = Network::new(Arc::new(fabric(vector)), Semantics::HPCC_NS3, Bytes(1000)).unwrap();
    let (parameters, _) = SchemeSettings::default()
        .resolve(scheme, &network.environment)
        .unwrap();
    let mut config = RunConfig::new(parameters, 1, BitRate::from_gbps(100));
    config.record_acks = true;
    config.buffer = Bytes::from_mib(if vector == "v6" { 2 } else { 32 });
    // DCTCP marks by a step, which leaves nothing to chance.
    if replay && scheme != "dctcp" {
        config.marks = Some(Arc::new(MarkReplay::parse(&reference, scheme).unwrap()));
    }
    let name = format!("{vector}_flow.txt");
    let options = ReadOptions {
        times: FlowTimes::HpccNs3,
        ..ReadOptions::new(&name)
    };
    let flows = fs::read(data(&name)).unwrap();
    let mut workload = read_flows(&flows, FlowFormat::HpccNs3, &options).unwrap();
    let mut trace = Trace::default();
    let summary = simulate(
        &network,
        &config,
        &mut workload,
        &mut trace,
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(summary.drops, 0);
    (trace, reference)
}

/// The trace's line for an acknowledgement, without its last column.
fn line(ack: &AckRecord) -> String {
    format!(
        "{} {} {} {} {} {} {} {} {} {}",
        ack.time.as_ns(),
        ack.src.0,
        ack.dst.0,
        ack.sport,
        if ack.nack { 'N' } else { 'A' },
        ack.seq,
        u8::from(ack.ecn),
        ack.snd_nxt,
        ack.rate,
        ack.reference_rate
    )
}

fn check(vector: &str, scheme: &str, replay: bool) {
    let (trace, reference) = run(vector, scheme, replay);
    for (number, (ack, expected)) in trace.acks.iter().zip(reference.lines()).enumerate() {
        let (exact, measure) = expected.rsplit_once(' ').unwrap();
        assert_eq!(
            line(ack),
            exact,
            "{vector} {scheme}: acknowledgement {number}"
        );
        // Nine digits are printed.
        let measure: f64 = measure.parse().unwrap();
        let error = (ack.measure - measure).abs();
        assert!(
            error <= 2e-8 * measure.abs().max(1e-3),
            "{vector} {scheme}: acknowledgement {number} measures {}, not {measure}",
            ack.measure
        );
    }
    assert_eq!(
        trace.acks.len(),
        reference.lines().count(),
        "{vector} {scheme}"
    );
    check_completions(vector, scheme, &trace);
    check_pauses(vector, scheme, &trace);
}

fn check_completions(vector: &str, scheme: &str, trace: &Trace) {
    let text = fs::read_to_string(data(&format!("{vector}_{scheme}.fct"))).unwrap();
    let host = |address: &str| u32::from_str_radix(address, 16).unwrap() >> 8 & 0xffff;
    let expected: Vec<_> = text
        .lines()
        .map(|line| {
            let field: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| field[index].parse::<u64>().unwrap();
            (
                host(field[0]),
                host(field[1]),
                number(2),
                number(4),
                number(5),
                number(6),
                number(7),
            )
        })
        .collect();
    let own: Vec<_> = trace
        .flows
        .iter()
        .map(|flow| {
            let fct = flow.fct.expect("all flows finish").as_ns();
            let sport = u64::from(flow.sport);
            let ideal = flow.ideal_fct.as_ns();
            (
                flow.src.0,
                flow.dst.host().unwrap().0,
                sport,
                flow.size.0,
                flow.start.as_ns(),
                fct,
                ideal,
            )
        })
        .collect();
    assert_eq!(own, expected, "{vector} {scheme}: completions");
}

fn check_pauses(vector: &str, scheme: &str, trace: &Trace) {
    let path = data(&format!("{vector}_{scheme}.pfc"));
    let text = if path.exists() {
        fs::read_to_string(path).unwrap()
    } else {
        String::new()
    };
    let mut expected: Vec<(u64, u64, u64, u64)> = text
        .lines()
        .map(|line| {
            let field: Vec<u64> = line
                .split_whitespace()
                .map(|f| f.parse().unwrap())
                .collect();
            (field[0], field[1], field[3], field[4])
        })
        .collect();
    let mut own: Vec<_> = trace
        .pauses
        .iter()
        .flat_map(|pause| {
            let (node, port) = (u64::from(pause.node.0), u64::from(pause.port));
            [
                (pause.start.as_ns(), node, port, 1),
                (pause.end.as_ns(), node, port, 0),
            ]
        })
        .collect();
    expected.sort_unstable();
    own.sort_unstable();
    assert_eq!(own, expected, "{vector} {scheme}: PFC log");
}

macro_rules! vectors {
    ($($module:ident($scheme:ident, $replay:literal): $($vector:ident)+;)+) => {
        $(mod $module {
            $(#[test]
            fn $vector() {
                super::check(stringify!($vector), stringify!($scheme), $replay);
            })+
        })+
    };
}

vectors! {
    none(none, true): v1 v2 v3 v4 v5 v6 v7;
    dctcp(dctcp, true): v1 v2 v3 v4 v5;
    dcqcn(dcqcn, true): v1 v2 v3 v4 v5 v6 v7;
    dcqcn_draws_its_marks(dcqcn, false): v4 v5 v6 v7;
    timely(timely, true): v1 v2 v3 v4 v5;
    hpcc(hpcc, true): v1 v2 v3 v4 v5 v6 v7;
    pint(pint, true): v1 v2 v3 v4 v5;
}
