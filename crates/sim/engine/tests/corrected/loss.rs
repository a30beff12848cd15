//! Lossy mode: packets really drop, and all of them are recovered.

use raddle_engine::RunConfig;
use raddle_units::{BitRate, Bytes, Span, Time};
use raddle_workload::Message;

use crate::common::{Lab, SCHEMES, message, star};

fn incast(lab: &Lab, senders: usize, size: u64) -> Vec<Message> {
    let sink = lab.hosts()[senders];
    (0..senders)
        .map(|source| message(Time(0), lab.hosts()[source], sink, size))
        .collect()
}

fn lossy(lab: &Lab, scheme: &str, buffer: u64) -> RunConfig {
    RunConfig {
        lossless: false,
        buffer: Bytes(buffer),
        retransmission_timeout: Span::from_us(500),
        ..lab.config(scheme)
    }
}

/// Every scheme through a buffer of a few packets: drops, then NACKs or timeouts, then everything has arrived once.
#[test]
fn what_drops_is_sent_again() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 9]));
    for scheme in SCHEMES {
        let config = lossy(&lab, scheme, 9 * 4096 + 60_000);
        let (summary, _) = lab.run(&config, &incast(&lab, 8, 300_000));
        assert!(
            summary.drops > 0 && summary.nacks > 0,
            "{scheme}: {summary:?}"
        );
        assert_eq!(summary.payload_delivered, 8 * 300_000, "{scheme}");
        assert_eq!(summary.pauses, 0);
    }
}

/// A gap is reported at once: while packets follow a lost one, no timeout is needed.
#[test]
fn a_loss_in_the_midst_is_recovered_by_a_nack() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 3]));
    // The second flow's few packets push out some of the first's, long before its end.
    let hosts = lab.hosts();
    let flows = [
        message(Time(0), hosts[0], hosts[2], 2_000_000),
        message(Time(50_000_000), hosts[1], hosts[2], 30_000),
    ];
    let (summary, log) = lab.run(&lossy(&lab, "none", 3 * 4096 + 16_000), &flows);
    assert!(summary.nacks > 0, "{summary:?}");
    let long = log.from(hosts[0]);
    assert!(
        long.fct.unwrap() < long.ideal_fct + Span::from_us(150),
        "{long:?}"
    );
}

/// The last packet of a flow has no successor to reveal its loss: only the timer can. 16 one-packet flows at once into a
/// buffer that holds few of them: the losers come back after whole timeouts.
#[test]
fn a_lost_tail_is_recovered_by_the_timer() {
    let rate = BitRate::from_gbps(100);
    let mut links = vec![(rate, Span::from_us(1)); 17];
    // Slow enough that the reserve of one ingress does not save its packets.
    links[16].0 = BitRate::from_gbps(1);
    let lab = Lab::new(star(&links));
    let (summary, log) = lab.run(&lossy(&lab, "none", 17 * 4096), &incast(&lab, 16, 6_000));
    assert!(summary.drops > 0 && summary.timeouts > 0, "{summary:?}");
    assert_eq!(summary.payload_delivered, 16 * 6_000);
    let timeout = Span::from_us(500);
    let late = log.flows.iter().filter(|flow| flow.fct.unwrap() > timeout);
    assert!(late.count() > 0);
}

/// Each ingress keeps its reserve of 4096 B even where others have filled all that is shared: single packets of a third
/// party get through an overloaded switch.
#[test]
fn the_reserve_of_a_port_is_not_taken_by_others() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 4]));
    let hosts = lab.hosts();
    let mut flows = vec![
        message(Time(0), hosts[0], hosts[3], 1_000_000),
        message(Time(0), hosts[1], hosts[3], 1_000_000),
    ];
    // Now and then one packet from host 2, alone in its ingress.
    flows.extend((1..15).map(|n| message(Time(n * 10_000_000), hosts[2], hosts[3], 1000)));
    let (summary, log) = lab.run(&lossy(&lab, "none", 4 * 4096 + 3_000), &flows);
    assert!(summary.drops > 0);
    let third = log
        .ports
        .iter()
        .find(|port| port.node.0 == 4 && port.port == 3)
        .unwrap();
    assert_eq!(third.drops, 0);
}
