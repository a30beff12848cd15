//! When a host's rails come and go in the simulator, for `tests/net/test_conformance_rails.py`: a scenario (JSON, as that program
//! writes it) in, JSON out: `events`, a list of `{"at_s", "rail", "up"}` of the host that sends, and `messages` that arrived.
#![expect(clippy::print_stdout, reason = "its result")]

use std::{error::Error, fs, sync::Arc};

use raddle_engine::{
    LinkFault, Network, Progress, Recorder, RunConfig, Semantics,
    rails::{Cut, PolicyName, Protocol, Rails, Streams, multi_plane},
    record::{FlowRecord, RailRecord},
    simulate,
};
use raddle_fabric::LeafSpine;
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_wire::rails::DATA_OVERHEAD;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Scenario {
    /// Mbit/s of each rail.
    rails_mbps: Vec<u64>,
    message_bytes: u64,
    /// Messages under way at once.
    window: u32,
    end_ms: u64,
    /// The rail that is cut, if one is: at the receiver's end.
    cut: Option<Outage>,
}

#[derive(Debug, Deserialize)]
struct Outage {
    rail: usize,
    down_ms: u64,
    up_ms: Option<u64>,
}

struct Heard {
    sender: NodeId,
    events: Vec<RailRecord>,
    messages: u64,
}

impl Recorder for Heard {
    fn rail(&mut self, rail: &RailRecord) {
        if rail.host == self.sender {
            self.events.push(*rail);
        }
    }

    fn flow(&mut self, flow: &FlowRecord) {
        self.messages += u64::from(flow.fct.is_some());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: rail_events SCENARIO.json")?;
    let scenario: Scenario = serde_json::from_slice(&fs::read(file)?)?;
    let rates: Vec<BitRate> = scenario
        .rails_mbps
        .iter()
        .map(|mbps| BitRate(mbps * 1_000_000))
        .collect();
    let plane = LeafSpine {
        leaves: 1,
        spines: 1,
        hosts_per_leaf: 2,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(1),
        fabric_rate: BitRate::from_gbps(1),
        delay: Span::from_us(1),
        radix: None,
    };
    let fabric = multi_plane(&plane.build()?, &rates)?;
    let [sender, receiver] = [fabric.hosts()[0], fabric.hosts()[1]];
    let at = |ms: u64| Time::ZERO + Span::from_ms(ms);
    let faults = scenario.cut.iter().map(|cut| LinkFault {
        link: fabric.ports_of(receiver)[cut.rail].link,
        down: at(cut.down_ms),
        up: cut.up_ms.map(at),
    });
    let faults = faults.collect();
    let protocol = Protocol::default();
    let mtu = Bytes(DATA_OVERHEAD as u64 + u64::from(protocol.segment));
    let network = Network::new(Arc::new(fabric), Semantics::CORRECTED, mtu)?;
    let (scheme, _) = SchemeSettings::default()
        .resolve("none", &network.environment)
        .ok_or("no such scheme")?;
    let told = protocol.config(PolicyName::Dynamic, Cut::Weighted, rates.len());
    let config = RunConfig {
        mtu,
        faults,
        end: Some(at(scenario.end_ms)),
        record_rails: true,
        rails: Some(Arc::new(Rails::new(told))),
        ..RunConfig::new(scheme, 1, network.environment.line_rate)
    };
    let mut load = Streams::new(
        vec![(sender, receiver)],
        Bytes(scenario.message_bytes),
        scenario.window,
        Span::ZERO,
    );
    let mut heard = Heard {
        sender,
        events: Vec::new(),
        messages: 0,
    };
    simulate(
        &network,
        &config,
        &mut load,
        &mut heard,
        &Progress::default(),
    )?;
    let events = heard.events.iter().map(|event| {
        serde_json::json!({
            "at_s": event.at.as_secs_f64(),
            "rail": event.rail,
            "up": event.up,
        })
    });
    println!(
        "{}",
        serde_json::json!({
            "events": serde_json::Value::from_iter(events),
            "messages": heard.messages,
        })
    );
    Ok(())
}
