//! What members of an in-network Allreduce say and hear in the simulator, for `tests/net/test_conformance.py`: a scenario (JSON, as
//! that program writes it) in, a JSON list `{"member", "at_us", "sent", "what"}` out.
#![expect(clippy::print_stdout, reason = "its result")]

use std::{error::Error, fs, sync::Arc};

use raddle_engine::{
    LostPackets, Network, Offload, OffloadGroup, Progress, Recorder, RunConfig, Semantics,
    record::ReductionRecord, simulate,
};
use raddle_fabric::LeafSpine;
use raddle_offload::{
    seen::Seen,
    switch::{SiteSecret, job_key},
};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes, Span};
use raddle_workload::{GraphBuilder, OffloadId};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Scenario {
    members: u32,
    rounds: u32,
    elements: u32,
    retry_ms: u64,
    lost: Vec<Lost>,
    /// Bytes that member 0's host sends to member 1's meanwhile.
    beside: u64,
}

#[derive(Debug, Deserialize)]
struct Lost {
    member: u32,
    sent: bool,
    first: u64,
    count: u64,
}

#[derive(Debug, Default)]
struct Heard(Vec<ReductionRecord>);

impl Recorder for Heard {
    fn reduction(&mut self, packet: &ReductionRecord) {
        self.0.push(packet.clone());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: reduction_events SCENARIO.json")?;
    let scenario: Scenario = serde_json::from_slice(&fs::read(file)?)?;
    let fabric = LeafSpine {
        leaves: 1,
        spines: 1,
        hosts_per_leaf: scenario.members,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(10),
        fabric_rate: BitRate::from_gbps(10),
        delay: Span::from_us(1),
        radix: None,
    };
    let fabric = fabric.build()?;
    let hosts = fabric.hosts().to_vec();
    let root = fabric.peer_node(fabric.first_port(hosts[0]));
    let group = OffloadGroup {
        members: hosts.clone(),
        root,
    };
    let mut graph = GraphBuilder::new();
    if scenario.beside > 0 {
        graph.message(hosts[0], hosts[1], Bytes(scenario.beside));
    }
    for (member, &host) in (0..).zip(&hosts) {
        let mut last = None;
        for _ in 0..scenario.rounds {
            let round = graph.message(
                host,
                OffloadId(member),
                Bytes(8 * u64::from(scenario.elements)),
            );
            if let Some(last) = last {
                graph.after(round, last);
            }
            last = Some(round);
        }
    }
    let mut graph = graph.finish()?;
    let network = Network::new(Arc::new(fabric), Semantics::CORRECTED, Bytes(1000))?;
    let schemes = SchemeSettings::default();
    let (scheme, _) = schemes
        .resolve("none", &network.environment)
        .ok_or("no such scheme")?;
    let lost = scenario.lost.iter().map(|lost| LostPackets {
        member: lost.member,
        sent: lost.sent,
        first: lost.first,
        count: lost.count,
    });
    let config = RunConfig {
        record_reductions: true,
        offload: Some(Arc::new(Offload {
            retry: Span::from_ms(scenario.retry_ms),
            slots: 16,
            segment_bytes: 256,
            lost: lost.collect(),
            ..Offload::new(vec![group], Span::ZERO)
        })),
        ..RunConfig::new(scheme, 1, network.environment.line_rate)
    };
    let mut heard = Heard::default();
    // A round without a result ends the run; what was said until then counts.
    let _ = simulate(
        &network,
        &config,
        &mut graph,
        &mut heard,
        &Progress::default(),
    );
    let key = job_key(&SiteSecret::new([0; 32]), 1);
    let events = heard.0.iter().filter_map(|packet| {
        let seen = Seen::of(&packet.payload, &key)?;
        Some(serde_json::json!({
            "member": packet.member,
            "at_us": packet.at.0 as f64 / 1e6,
            "sent": packet.sent,
            "what": seen.to_string(),
        }))
    });
    println!("{}", serde_json::Value::from_iter(events));
    Ok(())
}
