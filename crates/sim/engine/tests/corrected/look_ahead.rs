//! Looking ahead reads what coming events will touch; it must never take one kind of event for another.

use raddle_engine::{LinkFault, RunConfig};
use raddle_fabric::KAryFatTree;
use raddle_transport::cc::{SchemeSettings, dcqcn};
use raddle_units::{Bytes, LinkId, Span, Time};
use raddle_workload::{Message, Permutation};

use crate::{
    common::{Lab, message},
    partitions::hold_equal,
};

/// A timer's word holds its flow's generation where an arrival has its port: once a slot was used often enough it names a
/// port far beyond those of the fabric. (Look-ahead begins at 2,048 of them.)
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

/// Small processes look ahead over several lists of events, and large ones within one; next hops that were looked up meanwhile
/// are forgotten when a link fails or returns.
#[test]
fn what_is_fetched_ahead_changes_no_record_however_the_fabric_is_cut() {
    let lab = Lab::new(KAryFatTree::new(12).build().unwrap());
    let fabric = &lab.network.fabric;
    assert!(fabric.port_count() > 2048, "no look-ahead");
    let hosts = fabric.hosts().len() as u32;
    let mut config = lab.config("hpcc");
    for link in [hosts, hosts + 100] {
        config.faults.push(LinkFault {
            link: LinkId(link),
            down: Time(6_500_000),
            up: Some(Time(11_100_000)),
        });
    }
    config.retransmission_timeout = Span::from_us(400);
    let traffic = Permutation {
        size: Bytes(60_000),
        ..Permutation::default()
    };
    // Seed 0 has two ranks besides.
    let outcome = hold_equal(0, &lab, &config, || {
        Box::new(traffic.build(lab.hosts(), 1).unwrap())
    });
    let (summary, _) = outcome.unwrap();
    assert_eq!(summary.flows_finished, u64::from(hosts));
    assert!(summary.packet_hops > 200_000);
}
