//! Where the time of messages goes: closed forms, sums, known culprits.

use raddle_engine::{
    LinkFault, RunConfig,
    blame::{Cause, Journal, Part, PortName, Taken},
};
use raddle_fabric::{Dumbbell, KAryFatTree, LeafSpine};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, Span, Time};
use raddle_workload::{FlowList, Message};

use crate::common::{Draws, HEADERS, Lab, Log, MTU, SCHEMES, message, star};

const RATE: BitRate = BitRate::from_gbps(100);
const DELAY: Span = Span::from_us(1);
/// Classes of messages in these tests.
const VICTIM: u8 = 0;
const CULPRIT: u8 = 1;
const BYSTANDER: u8 = 2;

fn of(class: u8, message: Message) -> Message {
    Message { class, ..message }
}

fn classes() -> Vec<String> {
    ["victim", "culprit", "bystander"]
        .map(String::from)
        .to_vec()
}

fn time(bytes: u64) -> Span {
    RATE.transmission_time(Bytes(bytes))
}

/// A run's messages and what is known of them.
struct Told<'a> {
    lab: &'a Lab,
    log: Log,
    journal: Journal,
}

impl<'a> Told<'a> {
    fn new(lab: &'a Lab, config: &RunConfig, messages: &[Message]) -> Self {
        let config = RunConfig {
            record_delays: Some(256),
            ..config.clone()
        };
        let mut flows = FlowList::new(messages.to_vec(), classes());
        let (_, log) = lab.drive(&config, &mut flows).unwrap();
        let mut journal = Journal::default();
        for record in &log.delays {
            journal.delay(record);
        }
        for pause in &log.pauses {
            journal.pause(pause);
        }
        for flow in &log.flows {
            journal.flow(flow);
        }
        assert_eq!(journal.followed(), 0, "what is over is not kept");
        Self { lab, log, journal }
    }

    fn of_class(&self, class: u8) -> &Taken {
        let mut all = self.journal.messages().iter();
        all.find(|taken| taken.class == class).unwrap()
    }

    fn parts(&self, taken: &Taken) -> Vec<Part> {
        self.journal.parts(taken, &self.lab.network.fabric)
    }
}

fn sum(parts: &[Part], wanted: impl Fn(&Part) -> bool) -> Span {
    parts
        .iter()
        .filter(|part| wanted(part))
        .map(|part| part.time)
        .sum()
}

/// The port of a node that leads to another.
fn port_towards(lab: &Lab, from: NodeId, to: NodeId) -> PortName {
    let fabric = &lab.network.fabric;
    let mut ports = fabric.ports_of(from).iter();
    let port = ports.find(|port| fabric.port(port.peer).node == to);
    (from, port.unwrap().number)
}

fn pair() -> Lab {
    Lab::new(star(&[(RATE, DELAY); 4]))
}

#[test]
fn a_message_alone_is_transfer_and_nothing_else() {
    let lab = pair();
    for size in [1, 1000, 64_000, 1_000_000] {
        let flow = message(Time(7), NodeId(0), NodeId(1), size);
        let told = Told::new(&lab, &lab.config("none"), &[flow]);
        let [taken] = told.journal.messages() else {
            panic!("one message");
        };
        let expected =
            time(size + size.div_ceil(MTU) * HEADERS) + time(size.min(MTU) + HEADERS) + DELAY * 2;
        assert_eq!(taken.delivered.since(taken.start), expected);
        let parts = told.parts(taken);
        assert_eq!(parts.len(), 1, "{parts:?}");
        assert_eq!((parts[0].cause, parts[0].time), (Cause::Transfer, expected));
    }
}

#[test]
fn the_second_of_two_packets_waits_for_the_first() {
    let lab = pair();
    let messages = [
        of(CULPRIT, message(Time(0), NodeId(0), NodeId(2), 1000)),
        of(VICTIM, message(Time(60_000), NodeId(1), NodeId(2), 500)),
    ];
    let told = Told::new(&lab, &lab.config("none"), &messages);
    let parts = told.parts(told.of_class(VICTIM));
    let came = Span::from_ns(60) + time(548);
    let expected = Part {
        cause: Cause::Queue,
        culprit: Some(CULPRIT),
        port: Some(port_towards(&lab, NodeId(4), NodeId(2))),
        time: time(1048) * 2 - came,
    };
    assert_eq!(parts[1], expected, "{parts:?}");
    assert_eq!(parts.len(), 2);
}

#[test]
fn messages_of_one_host_wait_for_each_other_at_its_card() {
    let lab = pair();
    let messages = [
        of(CULPRIT, message(Time(0), NodeId(0), NodeId(1), 10_000)),
        of(VICTIM, message(Time(0), NodeId(0), NodeId(2), 10_000)),
    ];
    let told = Told::new(&lab, &lab.config("none"), &messages);
    let parts = told.parts(told.of_class(VICTIM));
    // They take turns, and the victim is second.
    let expected = Part {
        cause: Cause::Queue,
        culprit: Some(CULPRIT),
        port: Some((NodeId(0), 1)),
        time: time(1048) * 10,
    };
    assert_eq!(parts[1], expected, "{parts:?}");
    assert_eq!((parts.len(), parts[0].cause), (2, Cause::Transfer));
}

/// An incast below the second switch pauses the link between the switches: a message to another host there suffers, though nothing
/// else is sent to its host.
#[test]
fn a_pause_is_blamed_on_the_root_of_its_tree() {
    let dumbbell = Dumbbell {
        fabric_rate: BitRate::from_gbps(800),
        ..Dumbbell::new(8)
    };
    let lab = Lab::new(dumbbell.build().unwrap());
    let hosts = lab.hosts().to_vec();
    let mut messages: Vec<Message> = (0..7)
        .map(|src| of(CULPRIT, message(Time(0), hosts[src], hosts[8], 2_000_000)))
        .collect();
    messages.push(of(
        VICTIM,
        message(Time::ZERO + Span::from_us(200), hosts[7], hosts[9], 100_000),
    ));
    messages.push(of(
        BYSTANDER,
        message(Time(0), hosts[10], hosts[11], 1_000_000),
    ));
    let mut config = lab.config("none");
    config.buffer = Bytes(lab.smallest_buffer(&config).0 * 2);
    let told = Told::new(&lab, &config, &messages);
    assert!(!told.log.pauses.is_empty());
    let taken = told.of_class(VICTIM);
    let parts = told.parts(taken);
    let fabric = &lab.network.fabric;
    let below = fabric.peer_node(fabric.first_port(hosts[8]));
    let root = port_towards(&lab, below, hosts[8]);
    let paused = sum(&parts, |part| part.cause == Cause::Pause);
    let known = sum(&parts, |part| {
        part.cause == Cause::Pause && part.culprit == Some(CULPRIT) && part.port == Some(root)
    });
    assert!(
        paused.0 > taken.delivered.since(taken.start).0 / 3,
        "{parts:?}"
    );
    assert_eq!(known, paused, "{parts:?}");
    assert!(parts.iter().all(|part| part.culprit != Some(BYSTANDER)));
}

#[test]
fn congestion_control_holds_back() {
    let lab = Lab::new(Dumbbell::new(2).build().unwrap());
    let hosts = lab.hosts();
    let messages = [0, 1].map(|place| {
        let class = place as u8;
        of(
            class,
            message(Time(0), hosts[place], hosts[2 + place], 1_000_000),
        )
    });
    for scheme in ["hpcc", "dctcp", "swift"] {
        let told = Told::new(&lab, &lab.config(scheme), &messages);
        for taken in told.journal.messages() {
            let parts = told.parts(taken);
            let held = sum(&parts, |part| part.cause == Cause::Pacing);
            let all = taken.delivered.since(taken.start);
            assert!(held.0 > all.0 / 10, "{scheme}: {parts:?}");
        }
    }
}

#[test]
fn what_is_lost_is_sent_again() {
    let lab = pair();
    let messages = [0, 1, 2].map(|src| {
        let class = src as u8;
        of(class, message(Time(0), NodeId(src), NodeId(3), 2_000_000))
    });
    let mut config = lab.config("none");
    config.lossless = false;
    config.buffer = Bytes(200_000);
    let told = Told::new(&lab, &config, &messages);
    let mut again = Span::ZERO;
    for taken in told.journal.messages() {
        let parts = told.parts(taken);
        again += sum(&parts, |part| part.cause == Cause::Retransmission);
    }
    assert_eq!(told.journal.messages().len(), 3);
    assert!(again > time(1048), "{again}");
}

/// Without congestion control there is no pace: what is waited for after a loss is the timer. 16 flows at once into a buffer that
/// holds few of their packets.
#[test]
fn waiting_for_a_lost_packet_is_not_pacing() {
    let mut links = vec![(RATE, DELAY); 17];
    links[16].0 = BitRate::from_gbps(1);
    let lab = Lab::new(star(&links));
    let messages: Vec<Message> = (0..16)
        .map(|src| message(Time(0), NodeId(src), NodeId(16), 6_000))
        .collect();
    let timeout = Span::from_us(500);
    let mut config = lab.config("none");
    config.lossless = false;
    config.buffer = Bytes(17 * 4096);
    config.retransmission_timeout = timeout;
    let told = Told::new(&lab, &config, &messages);
    assert_eq!(told.journal.messages().len(), 16);
    let mut resent = 0;
    for taken in told.journal.messages() {
        let parts = told.parts(taken);
        let of = |cause| sum(&parts, |part| part.cause == cause);
        assert_eq!(of(Cause::Pacing), Span::ZERO, "{parts:?}");
        resent += u32::from(of(Cause::Retransmission) >= timeout);
    }
    assert!(resent > 3, "{resent}");
}

/// Flows that are paced and lose packets, too, waited for both.
#[test]
fn pacing_stays_pacing_beside_losses() {
    let lab = pair();
    let messages = [0, 1, 2].map(|src| {
        let class = src as u8;
        of(class, message(Time(0), NodeId(src), NodeId(3), 2_000_000))
    });
    let mut config = lab.config("dctcp");
    config.lossless = false;
    config.buffer = Bytes(120_000);
    let told = Told::new(&lab, &config, &messages);
    let (mut paced, mut again) = (Span::ZERO, Span::ZERO);
    for taken in told.journal.messages() {
        let parts = told.parts(taken);
        paced += sum(&parts, |part| part.cause == Cause::Pacing);
        again += sum(&parts, |part| part.cause == Cause::Retransmission);
    }
    assert!(again > time(1048) && paced > again, "{paced} {again}");
}

/// Whatever happens, parts add up; and on links of one rate without losses the transfer is what it would be alone.
#[test]
fn parts_add_up_and_the_transfer_is_that_of_an_idle_fabric() {
    let leaf_spine = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        links_per_spine: 1,
        host_rate: RATE,
        fabric_rate: RATE,
        delay: DELAY,
        radix: None,
    };
    let labs = [
        Lab::new(leaf_spine.build().unwrap()),
        Lab::new(KAryFatTree::new(4).build().unwrap()),
        pair(),
    ];
    // Telemetry is a few bytes of each packet: HPCC's of each switch on the longest way.
    let headers = labs
        .each_ref()
        .map(|lab| SCHEMES.map(|scheme| headers(lab, scheme)));
    assert!(headers.iter().all(|of| of[0] == HEADERS && of[4] > of[5]));
    let mut draws = Draws(11);
    let (mut pauses, mut losses) = (0, 0);
    for case in 0..84 {
        let lab = &labs[case % 3];
        let hosts = lab.hosts();
        let count = hosts.len() as u64;
        let mut config = lab.config(SCHEMES[case % 7]);
        if draws.below(2) == 0 {
            config.buffer = Bytes(lab.smallest_buffer(&config).0 * 2);
        } else if draws.below(3) == 0 {
            config.lossless = false;
            config.buffer = Bytes(8 * 4096 + 20_000);
        }
        let messages: Vec<Message> = (0..80)
            .map(|_| {
                let src = draws.below(count);
                // Some hosts are liked more than others.
                let dst = if draws.below(2) == 0 {
                    0
                } else {
                    draws.below(count)
                };
                let dst = if dst == src { (src + 1) % count } else { dst };
                let size = [1, 500, 1000, 30_000, 300_000][draws.below(5) as usize];
                let start = Time(draws.below(50_000_000));
                let flow = message(start, hosts[src as usize], hosts[dst as usize], size);
                of(draws.below(3) as u8, flow)
            })
            .collect();
        let told = Told::new(lab, &config, &messages);
        pauses += told.log.pauses.len();
        let mut again = Span::ZERO;
        assert_eq!(told.journal.messages().len(), messages.len());
        for taken in told.journal.messages() {
            let parts = told.parts(taken);
            let all = taken.delivered.since(taken.start);
            assert_eq!(sum(&parts, |_| true), all);
            let flow = told
                .log
                .flows
                .iter()
                .find(|flow| flow.tag == taken.tag)
                .unwrap();
            assert_eq!(
                (flow.src, flow.sport, flow.start),
                (taken.src, taken.sport, taken.start)
            );
            assert!(taken.delivered <= flow.start + flow.fct.unwrap());
            again += sum(&parts, |part| part.cause == Cause::Retransmission);
            let transfer = sum(&parts, |part| part.cause == Cause::Transfer);
            let alone = idle(lab, headers[case % 3][case % 7], flow.size.0, taken);
            assert_eq!(transfer, alone, "{parts:?}");
        }
        if config.lossless {
            assert_eq!(again, Span::ZERO);
        }
        losses += u32::from(again != Span::ZERO);
    }
    assert!(losses > 2, "{losses}");
    assert!(pauses > 100, "{pauses}");
}

/// Packets before the last one follow each other on the first link; the last one goes all the way.
fn idle(lab: &Lab, headers: u64, size: u64, taken: &Taken) -> Span {
    let fabric = &lab.network.fabric;
    let packets = size.div_ceil(MTU);
    let last = time(size - (packets - 1) * MTU + headers);
    let leaf = |host| fabric.peer_node(fabric.first_port(host));
    let pod = |host| {
        let mut above: Vec<NodeId> = fabric
            .ports_of(leaf(host))
            .iter()
            .map(|port| fabric.port(port.peer).node)
            .filter(|node| !fabric.is_host(*node))
            .collect();
        above.sort_unstable();
        above
    };
    let links = if leaf(taken.src) == leaf(taken.dst) {
        2
    } else if pod(taken.src) == pod(taken.dst) {
        4
    } else {
        6
    };
    let delay = fabric.delay(fabric.first_port(taken.src));
    time(MTU + headers) * (packets - 1) + (last + delay) * links
}

/// Bytes around a packet's payload under a scheme: from the time of one that is alone on two links of [`RATE`].
fn headers(lab: &Lab, scheme: &str) -> u64 {
    let [src, dst] = [lab.hosts()[0], lab.hosts()[1]];
    let told = Told::new(lab, &lab.config(scheme), &[message(Time(0), src, dst, MTU)]);
    let taken = &told.journal.messages()[0];
    let fabric = &lab.network.fabric;
    let sending = taken.delivered.since(taken.start) - fabric.delay(fabric.first_port(src)) * 2;
    RATE.bytes_in(sending).0 / 2 - MTU
}

/// Links that fail and return, with and without another way: what is lost on them, and waited for, is part of the sum.
#[test]
fn parts_add_up_where_links_fail() {
    let labs = [
        crate::common::leaf_spine(),
        Lab::new(KAryFatTree::new(4).build().unwrap()),
        pair(),
    ];
    let mut draws = Draws(12);
    let mut again = 0;
    for case in 0..63 {
        let lab = &labs[case % 3];
        let (hosts, links) = (lab.hosts(), lab.network.fabric.links().len() as u64);
        let count = hosts.len() as u64;
        let mut config = lab.config(SCHEMES[case % 7]);
        config.retransmission_timeout = Span::from_us(100);
        config.lossless = case % 2 == 0;
        config.faults = (0..2)
            .map(|_| {
                let down = Time(draws.below(60_000_000));
                LinkFault {
                    link: LinkId(draws.below(links) as u32),
                    down,
                    up: Some(down + Span::from_us(1 + draws.below(80))),
                }
            })
            .collect();
        if config.faults[0].link == config.faults[1].link {
            config.faults.pop();
        }
        let messages: Vec<Message> = (0..40)
            .map(|_| {
                let src = draws.below(count);
                let dst = (src + 1 + draws.below(count - 1)) % count;
                let size = [1, 1000, 30_000, 300_000][draws.below(4) as usize];
                let start = Time(draws.below(50_000_000));
                let flow = message(start, hosts[src as usize], hosts[dst as usize], size);
                of(draws.below(3) as u8, flow)
            })
            .collect();
        let told = Told::new(lab, &config, &messages);
        assert_eq!(told.journal.messages().len(), messages.len(), "{case}");
        for taken in told.journal.messages() {
            let parts = told.parts(taken);
            assert_eq!(sum(&parts, |_| true), taken.delivered.since(taken.start));
            let of = |cause| sum(&parts, |part| part.cause == cause);
            again += u32::from(of(Cause::Retransmission) > Span::ZERO);
        }
    }
    assert!(again > 20, "{again} messages were sent again");
}
