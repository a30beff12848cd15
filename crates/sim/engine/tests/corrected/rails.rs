//! Hosts with several ports.

use raddle_engine::{LinkFault, RunConfig};
use raddle_fabric::{Fabric, FabricBuilder};
use raddle_units::{BitRate, LinkId, NodeId, Span, Time};

use crate::common::{Lab, SCHEMES, message};

/// `hosts` hosts, each with a link to each of two switches. With `joined` the switches are linked too, so that data and
/// acknowledgements may use different ports. Links 2h and 2h+1 are host h's.
pub(crate) fn two_rails(hosts: usize, joined: bool) -> Fabric {
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let mut builder = FabricBuilder::new("two rails");
    let hosts: Vec<NodeId> = (0..hosts).map(|_| builder.host()).collect();
    let switches = [builder.switch(1), builder.switch(1)];
    for host in hosts {
        for switch in switches {
            builder.connect(host, switch, rate, delay);
        }
    }
    if joined {
        builder.connect(switches[0], switches[1], rate, delay);
    }
    builder.finish().unwrap()
}

/// Flows of one pair spread over both rails and together exceed one link's rate; none waits for a timeout because its
/// acknowledgements come in by the other port.
#[test]
fn flows_use_both_rails() {
    for joined in [false, true] {
        let lab = Lab::new(two_rails(4, joined));
        let hosts = lab.hosts();
        for scheme in SCHEMES {
            let flows = [(); 8].map(|()| message(Time(0), hosts[0], hosts[1], 1_000_000));
            let (summary, log) = lab.run(&lab.config(scheme), &flows);
            assert_eq!(
                (summary.flows_finished, summary.timeouts),
                (8, 0),
                "{scheme}"
            );
            let used = log
                .ports
                .iter()
                .filter(|port| port.node == hosts[0] && port.tx_bytes > 0);
            assert_eq!(used.count(), 2, "{scheme}");
            // 8 MB over one link take 670 us.
            let last = log.last_completion();
            assert!(
                last < Time(Span::from_us(650).0),
                "{scheme} joined {joined}: {last:?}"
            );
        }
    }
}

/// A rail is lost for ever, at the sender, at the receiver: its flows go on over the other.
#[test]
fn flows_of_a_lost_rail_move_to_the_other() {
    for joined in [false, true] {
        let lab = Lab::new(two_rails(4, joined));
        let hosts = lab.hosts();
        let flows = [(); 8].map(|()| message(Time(0), hosts[0], hosts[1], 1_000_000));
        for link in 0..4 {
            for down in [Time(0), Time(100_000_000)] {
                let config = RunConfig {
                    faults: vec![LinkFault {
                        link: LinkId(link),
                        down,
                        up: None,
                    }],
                    retransmission_timeout: Span::from_us(200),
                    ..lab.config("hpcc")
                };
                let (summary, _) = lab.run(&config, &flows);
                assert_eq!(summary.flows_finished, 8, "link {link}, {summary:?}");
                assert_eq!(summary.payload_delivered, 8_000_000);
            }
        }
    }
}
