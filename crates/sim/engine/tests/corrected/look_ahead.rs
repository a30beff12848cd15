//! Looking ahead reads what coming events will touch; it must never take one kind of event for another.

use raddle_engine::RunConfig;
use raddle_fabric::KAryFatTree;
use raddle_transport::cc::{SchemeSettings, dcqcn};
use raddle_units::{Bytes, Span, Time};
use raddle_workload::Message;

use crate::common::{Lab, message};

/// A timer's word holds its flow's generation where an arrival has its port: once a slot was used often enough it names a
/// port far beyond those of the fabric. (Look-ahead at ports begins at 8,192 of them.)
#[test]
fn timers_of_often_used_flow_slots_are_not_taken_for_ports() {
    let lab = Lab::new(KAryFatTree::new(18).build().unwrap());
    let ports = lab.network.fabric.port_count();
    assert!((8193..64 * 256).contains(&ports), "{ports} ports");
    let settings = SchemeSettings {
        dcqcn: dcqcn::Settings {
            ecn_kmin: Some(Bytes(2_000)),
            ecn_kmax: Some(Bytes(4_000)),
            ..dcqcn::Settings::default()
        },
        ..SchemeSettings::default()
    };
    let config = RunConfig {
        scheme: lab.scheme_with("dcqcn", &settings),
        ..lab.config("none")
    };
    // One after the other, so that a few slots are used again and again; two at a time, so that packets are marked.
    let gap = Span::from_us(60).0;
    let messages: Vec<Message> = (0..160u64)
        .map(|index| {
            let source = 1 + (index % 2) as usize;
            let start = Time(index / 2 * gap);
            message(start, lab.hosts()[source], lab.hosts()[0], 40_000)
        })
        .collect();
    let (summary, _) = lab.run(&config, &messages);
    assert_eq!(summary.flows_finished, 160);
    assert!(summary.ecn_marks > 160, "{} marks", summary.ecn_marks);
}
