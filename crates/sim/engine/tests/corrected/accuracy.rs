//! Queues against formulas: PFC headroom, the wait of an M/D/1 queue, ECN's marking probability.

use raddle_engine::{RunConfig, RunSummary};
use raddle_transport::cc::{SchemeSettings, dcqcn};
use raddle_units::{BitRate, Bytes, Span, Time};
use raddle_workload::Message;

use crate::common::{Draws, HEADERS, Lab, MTU, message, star};

const PACKET: u64 = MTU + HEADERS;
const PFC_FRAME: u64 = 64;
/// Bytes that an ingress holds before it uses the shared part (crates/core/dataplane).
const RESERVE: u64 = 4096;

/// Two hosts at `rate`, one far slower. Host 0 fills its ingress; host 1 keeps the way back to host 0 busy, so that the
/// PAUSE has to wait for a packet. `phase` shifts the two against each other.
fn overload(rate: BitRate, delay: Span, phase: Span) -> (RunSummary, u64, u64) {
    let slow = BitRate(rate.0 / 5000);
    let lab = Lab::new(star(&[(rate, delay), (rate, delay), (slow, delay)]));
    let hosts = lab.hosts();
    let headroom = rate.bytes_in(delay * 2).0 + 3 * PACKET + PFC_FRAME;
    let size = 2 * headroom + 20_000;
    let flows = [
        message(Time(0) + phase, hosts[0], hosts[2], size),
        message(Time(0), hosts[1], hosts[0], size),
    ];
    let mut config = RunConfig {
        // One overload is enough; the slow port would need long for the rest.
        end: Some(Time(0) + delay * 8 + rate.transmission_time(Bytes(2 * size))),
        ..lab.config("none")
    };
    config.buffer = lab.smallest_buffer(&config);
    let (summary, log) = lab.run(&config, &flows);
    // All that host 0 sends goes to the slow port, so the longest queue there is what its ingress held.
    let port = log
        .ports
        .iter()
        .find(|port| port.node.0 == 3 && port.port == 3)
        .unwrap();
    (summary, port.max_queue_bytes, headroom)
}

/// Headroom = 2 d C + 3 L + F: between the packet that crosses the threshold and the moment when nothing more comes there
/// are that packet (L), the packet that the PAUSE waits for (L), the PAUSE (F) and its way (d C), the packet that the
/// peer has just begun (L), and what is on the way back (d C). With the smallest buffer the threshold is just above the
/// reserve: the ingress never holds more than reserve, one packet in the shared part, and headroom; nothing drops. The
/// worst of 16 phases comes within two packets of it: the formula gives no more away than whole packets do.
#[test]
fn headroom_is_enough_and_not_much_more() {
    for delay_ns in [100, 1_000, 3_333, 10_000] {
        for gbps in [25, 100, 400, 800] {
            let (rate, delay) = (BitRate::from_gbps(gbps), Span::from_ns(delay_ns));
            let slot = rate.transmission_time(Bytes(PACKET));
            let (mut most, mut headroom) = (0, 0);
            for phase in 0..16 {
                let (summary, held, allowed) = overload(rate, delay, Span(slot.0 * phase / 16));
                assert_eq!(summary.drops, 0, "{gbps}G, {delay_ns} ns");
                assert!(summary.pauses > 0);
                assert!(held <= RESERVE + PACKET + allowed);
                most = most.max(held);
                headroom = allowed;
            }
            // The reserve takes whole packets only, hence RESERVE - PACKET.
            let used = most - (RESERVE - PACKET);
            assert!(
                used + 2 * PACKET >= headroom,
                "{gbps}G, {delay_ns} ns: {used} of {headroom}"
            );
        }
    }
}

/// Mean wait in an M/D/1 queue: rho / (2 mu (1 - rho)) (Pollaczek and Khinchine with no variance of service).
///
/// One-packet flows arrive as a Poisson process, in turn from 64 hosts with links 20 times as fast, so that the wait
/// happens at the slow port. 60,000 arrivals; at rho = 0.8 the wait's standard deviation is about 2.5 services and
/// neighbours are correlated over about 1/(1-rho)^2 = 25 arrivals, so the mean is good to about 2.5 sqrt(50 / 60,000) = 7 %
/// of a service, or 3.6 % of the wait (one sigma). The bound is three times that; one fixed seed.
#[test]
fn single_packets_wait_as_in_an_md1_queue() {
    let (fast, slow, delay) = (
        BitRate::from_gbps(200),
        BitRate::from_gbps(10),
        Span::from_ns(100),
    );
    let mut links = vec![(fast, delay); 64];
    links.push((slow, delay));
    let lab = Lab::new(star(&links));
    let hosts = lab.hosts();
    let service = slow.transmission_time(Bytes(PACKET)).0 as f64;
    for (rho, bound) in [(0.3, 0.03), (0.5, 0.05), (0.8, 0.11)] {
        let (mut draws, mut at) = (Draws(11), 0.0);
        let flows: Vec<Message> = (0..60_000)
            .map(|n| {
                at -= libm::log(draws.unit()) * service / rho;
                message(Time(at as u64), hosts[n % 64], hosts[64], MTU)
            })
            .collect();
        let (_, log) = lab.run(&lab.config("none"), &flows);
        let waits = log
            .flows
            .iter()
            .map(|flow| (flow.fct.unwrap().0 - flow.ideal_fct.0) as f64);
        let mean = waits.sum::<f64>() / flows.len() as f64 / service;
        let expected = rho / (2.0 * (1.0 - rho));
        assert!(
            (mean / expected - 1.0).abs() < bound,
            "rho {rho}: {mean}, not {expected}"
        );
    }
}

/// ECN marks with probability pmax (q - kmin) / (kmax - kmin). A burst puts q bytes into the port, then a flow at exactly
/// the port's rate keeps them there (its rate cannot fall: the minimum is the line rate). n marks of N packets are
/// binomial: within four sigma, sqrt(p (1 - p) / N).
#[test]
fn ecn_marks_with_the_probability_of_the_queue() {
    let rate = BitRate::from_gbps(100);
    let lab = Lab::new(star(&[(rate, Span::from_us(1)); 3]));
    let hosts = lab.hosts();
    let (kmin, kmax, pmax) = (100_000u64, 500_000u64, 0.4);
    let settings = SchemeSettings {
        dcqcn: dcqcn::Settings {
            ecn_kmin: Some(Bytes(kmin)),
            ecn_kmax: Some(Bytes(kmax)),
            ecn_pmax: Some(pmax),
            notification_interval: Some(Span::ZERO),
            ..dcqcn::Settings::default()
        },
        ..SchemeSettings::default()
    };
    let config = RunConfig {
        scheme: lab.scheme_with("dcqcn", &settings),
        min_rate: rate,
        record_acks: true,
        ..lab.config("dcqcn")
    };
    for packets in [50, 150, 300, 450, 600] {
        let flows = [
            message(Time(0), hosts[0], hosts[2], 20_000 * MTU),
            message(Time(0), hosts[1], hosts[2], packets * MTU),
        ];
        let (_, log) = lab.run(&config, &flows);
        // The queue that a departing packet sees: the burst, itself included (it is still in the buffer).
        let queue = packets * PACKET;
        let expected = match queue {
            queue if queue <= kmin => 0.0,
            queue if queue > kmax => 1.0,
            queue => pmax * (queue - kmin) as f64 / (kmax - kmin) as f64,
        };
        // After the burst has been sent and before the long flow's end.
        let steady = log
            .acks
            .iter()
            .filter(|ack| ack.src == hosts[0] && ack.seq > 3_000 * MTU && ack.seq <= 19_000 * MTU);
        let (mut count, mut marked) = (0.0, 0.0);
        for ack in steady {
            count += 1.0;
            marked += f64::from(u8::from(ack.ecn));
        }
        let share: f64 = marked / count;
        let sigma = libm::sqrt(expected * (1.0 - expected) / count);
        // One packet more or less in the queue, by the phase in which the two meet.
        let step = if expected > 0.0 && expected < 1.0 {
            pmax * PACKET as f64 / (kmax - kmin) as f64
        } else {
            0.0
        };
        assert!(
            (share - expected).abs() <= 4.0 * sigma + step,
            "{queue} B: {share}, not {expected}"
        );
    }
}
