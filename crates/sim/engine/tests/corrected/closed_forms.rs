//! Completion times that can be written down: one flow, several on one link, permutations without contention.

use raddle_engine::record::FlowRecord;
use raddle_fabric::{CnTn, Dumbbell, Fabric, FabricBuilder, KAryFatTree, LeafSpine};
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_workload::Message;

use crate::common::{ACK, HEADERS, Lab, MTU, message, star, wire_bytes};

const SIZES: [u64; 7] = [1, 999, 1000, 1001, 65_536, 1_234_567, 10_000_000];

const fn gbps(rate: u64) -> BitRate {
    BitRate::from_gbps(rate)
}

/// Hosts at both ends of a chain of switches whose links have these rates and delays.
fn chain(links: &[(u64, u64)]) -> Fabric {
    let mut builder = FabricBuilder::new("chain");
    let ends = [builder.host(), builder.host()];
    let mut nodes = vec![ends[0]];
    nodes.extend((1..links.len()).map(|_| builder.switch(1)));
    nodes.push(ends[1]);
    for (pair, &(rate, delay_ns)) in nodes.windows(2).zip(links) {
        builder.connect(pair[0], pair[1], gbps(rate), Span::from_ns(delay_ns));
    }
    builder.finish().unwrap()
}

fn fabrics() -> Vec<Fabric> {
    let delay = Span::from_ns(700);
    let leaf_spine = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        links_per_spine: 1,
        host_rate: gbps(100),
        fabric_rate: gbps(400),
        delay,
        radix: None,
    };
    vec![
        Dumbbell {
            fabric_rate: gbps(400),
            ..Dumbbell::new(2)
        }
        .build()
        .unwrap(),
        leaf_spine.build().unwrap(),
        KAryFatTree::new(4).build().unwrap(),
        CnTn::new(2, 2, 1, 2, 1).build().unwrap(),
        star(&[(gbps(25), delay), (gbps(400), delay), (gbps(10), Span(1))]),
    ]
}

/// One flow alone at line rate: the sum over links of one packet's time and the delay, one slot of the slowest link for
/// each further packet, and the acknowledgement's way back. An independent statement of it, for equal links:
///
/// fct = h (L/C + d) + (n-2) L/C + l/C + max(0, A - l)/C + h (A/C + d)
///
/// with h links of rate C and delay d, n > 1 packets of L bytes of which the last has l, acknowledgements of A bytes. (The
/// last packet follows the one before it all the way; its acknowledgement waits for that one's, if that is longer than
/// the packet.) One packet: fct = h (l/C + d) + h (A/C + d). Exact: link rates here move a byte in whole picoseconds.
#[test]
fn one_flow_on_equal_links_takes_the_sum_of_its_parts() {
    for (rate, links) in [(100, 2u64), (25, 3), (400, 6)] {
        let lab = Lab::new(chain(&vec![(rate, 600); links as usize]));
        let time = |bytes| gbps(rate).transmission_time(Bytes(bytes)).0;
        let delay = Span::from_ns(600).0;
        for size in SIZES {
            let (summary, log) = lab.run(
                &lab.config("none"),
                &[message(Time(5), NodeId(0), NodeId(1), size)],
            );
            let packets = size.div_ceil(MTU);
            let last = size - (packets - 1) * MTU + HEADERS;
            let full = MTU + HEADERS;
            let there = if packets == 1 {
                links * (time(last) + delay)
            } else {
                // The last full packet leaves the last link, then the last packet.
                links * (time(full) + delay) + (packets - 2) * time(full) + time(last)
            };
            let waits = if packets == 1 {
                0
            } else {
                time(ACK).saturating_sub(time(last))
            };
            let back = waits + links * (time(ACK) + delay);
            assert_eq!(
                log.flows[0].fct,
                Some(Span(there + back)),
                "{size} B at {rate}G"
            );
            assert_eq!(log.flows[0].ideal_fct, Span(there + back));
            assert_eq!(summary.packet_hops, 2 * links * packets);
        }
    }
}

/// The record's ideal time is what a flow alone takes, to the picosecond, on any fabric and for every scheme that
/// starts at line rate and sees no congestion where there is none. (HPCC and PINT aim at 95 % of the line: below.)
#[test]
fn one_flow_alone_takes_its_ideal_time() {
    for fabric in fabrics() {
        let lab = Lab::new(fabric);
        let hosts = lab.hosts();
        let equal_rates = hosts.iter().all(|&host| {
            let fabric = &lab.network.fabric;
            fabric.rate(fabric.first_port(host)) == lab.network.environment.line_rate
        });
        // Into a slower host's link a queue grows, to which schemes react.
        let schemes: &[&str] = if equal_rates {
            &["none", "dctcp", "dcqcn", "timely", "swift"]
        } else {
            &["none"]
        };
        for scheme in schemes {
            let config = lab.config(scheme);
            for (src, dst) in [(0, hosts.len() - 1), (hosts.len() - 1, 1), (0, 1)] {
                for size in SIZES {
                    let flow = message(Time(0), hosts[src], hosts[dst], size);
                    let (_, log) = lab.run(&config, &[flow]);
                    let record = log.flows[0];
                    assert_eq!(record.fct, Some(record.ideal_fct), "{scheme}: {flow:?}");
                }
            }
        }
    }
}

/// On a chain of any rates, faster and slower links in any order, the ideal time stays exact.
#[test]
fn one_flow_alone_takes_its_ideal_time_through_any_rates() {
    let rates = [10, 25, 40, 100, 200, 400];
    let mut draws = crate::common::Draws(7);
    for _ in 0..60 {
        let links: Vec<_> = (0..2 + draws.below(5))
            .map(|_| (rates[draws.below(6) as usize], draws.below(3000)))
            .collect();
        let lab = Lab::new(chain(&links));
        let size = 1 + draws.below(60_000);
        let flow = message(Time(0), NodeId(0), NodeId(1), size);
        let (_, log) = lab.run(&lab.config("none"), &[flow]);
        assert_eq!(
            log.flows[0].fct,
            Some(log.flows[0].ideal_fct),
            "{links:?} {size} B"
        );
    }
}

/// HPCC and PINT hold a link at eta = 95 %: a long flow alone takes between its ideal time and 1/0.95 of it, plus what the
/// start costs (a few round trips) and PINT's rounding (base 1.05: up to 5 %).
#[test]
fn one_flow_alone_reaches_the_target_utilisation() {
    let lab = Lab::new(Dumbbell::new(2).build().unwrap());
    for (scheme, most) in [("hpcc", 1.0 / 0.95 + 0.02), ("pint", 1.0 / 0.95 + 0.06)] {
        let flow = message(Time(0), NodeId(0), NodeId(3), 20_000_000);
        let (_, log) = lab.run(&lab.config(scheme), &[flow]);
        let record = log.flows[0];
        let ratio = record.fct.unwrap().as_secs_f64() / record.ideal_fct.as_secs_f64();
        assert!((1.0..most).contains(&ratio), "{scheme}: {ratio}");
    }
}

/// n flows into one link, all at time 0 and at line rate: the link never idles from the first packet to the last, so
///
/// last completion = L/C + d + n W/C + d + 2 (A/C + d)
///
/// with W all bytes of one message with headers (the last packet not shorter than an acknowledgement). n = 2 is "two flows on one link". Exact, and the buffer is large
/// enough that nothing is paused.
#[test]
fn incast_lasts_as_long_as_its_bytes_take() {
    let (rate, delay) = (gbps(100), Span::from_us(1));
    for senders in [2usize, 3, 8, 16] {
        for size in [1000u64, 1500, 64_000, 65_536] {
            let lab = Lab::new(star(&vec![(rate, delay); senders + 1]));
            let sink = lab.hosts()[senders];
            let messages: Vec<Message> = (0..senders)
                .map(|source| message(Time(0), lab.hosts()[source], sink, size))
                .collect();
            let (summary, log) = lab.run(&lab.config("none"), &messages);
            assert_eq!(summary.pauses, 0);
            let time = |bytes| rate.transmission_time(Bytes(bytes));
            let expected = time(size.min(MTU) + HEADERS)
                + time(senders as u64 * wire_bytes(size, HEADERS))
                + time(ACK) * 2
                + delay * 4;
            assert_eq!(
                log.last_completion(),
                Time(0) + expected,
                "{senders} x {size} B"
            );
        }
    }
}

/// Two endless flows on one link get half each: of the packets that leave, every other one is theirs (equal arrivals at
/// a FIFO), so that their goodputs differ by at most one packet per sample.
#[test]
fn two_flows_share_a_link_in_halves() {
    let lab = Lab::new(star(&[(gbps(100), Span::from_us(1)); 3]));
    let hosts = lab.hosts();
    let messages = [0, 1].map(|source| message(Time(0), hosts[source], hosts[2], 2_000_000));
    let config = raddle_engine::RunConfig {
        sample_interval: Span::from_us(20),
        ..lab.config("none")
    };
    let (_, log) = lab.run(&config, &messages);
    let whole = &log.samples[1..log.samples.len() - 2];
    assert!(whole.len() > 10);
    for sample in whole {
        let bytes: Vec<u64> = sample.watched.iter().map(|flow| flow.1).collect();
        assert!(
            bytes.len() == 2 && bytes[0].abs_diff(bytes[1]) <= MTU,
            "{sample:?}"
        );
        // 100 Gbit/s for 20 us less headers, to within a packet at either end.
        let payload = 250_000 * MTU / (MTU + HEADERS);
        assert!(sample.delivered.abs_diff(payload) <= MTU, "{sample:?}");
    }
}

/// A shift permutation on a k-ary fat tree has a path without contention for every flow, and D-mod-K finds it (Zahavi
/// 2011): links carry the data of one flow and the acknowledgements of another, so that a flow of n packets takes at most
/// its ideal time plus n acknowledgements, and half a packet per link for meeting one in transmission. ECMP by hash puts
/// several flows on some links.
#[test]
fn d_mod_k_carries_shift_permutations_at_full_rate() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    let hosts = lab.hosts();
    let slowed = |choice, shift: usize| {
        let messages: Vec<Message> = (0..hosts.len())
            .map(|at| {
                message(
                    Time(0),
                    hosts[at],
                    hosts[(at + shift) % hosts.len()],
                    100_000,
                )
            })
            .collect();
        let config = raddle_engine::RunConfig {
            path_choice: choice,
            ..lab.config("none")
        };
        let (_, log) = lab.run(&config, &messages);
        let time = |bytes| gbps(100).transmission_time(Bytes(bytes));
        let acks = time(ACK) * 100 + time(MTU + HEADERS) * 3;
        let is_slow = |flow: &&FlowRecord| flow.fct.unwrap() > flow.ideal_fct + acks;
        log.flows.iter().filter(is_slow).count()
    };
    let mut hashed = 0;
    for shift in 1..hosts.len() {
        assert_eq!(slowed(PathChoice::DModK, shift), 0, "shift by {shift}");
        hashed += slowed(PathChoice::EcmpMurmur3, shift);
    }
    assert!(hashed > 50, "{hashed}");
}
