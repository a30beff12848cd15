//! How much memory a run takes, counted from what the engine keeps.

use raddle_dataplane::SwitchMemory;
use raddle_fabric::Fabric;
use raddle_units::NodeId;

use super::{
    flow::{Flow, FlowName},
    host::Nic,
    link::{LinkEnd, PortHistory},
    reception::Reception,
};
use crate::packet::Packet;

/// A flow of a pair of hosts at its sender, and at its receiver with its hash in a list with a table of places, which are at least
/// 7/16 full, as is the pair's.
pub const FLOW_BYTES: u64 = (size_of::<Flow>() + HEAP_BYTES + RECEPTION_BYTES + PAIR_BYTES) as u64;
/// State of congestion control, and the lists of a card: about so much (HPCC, 8,192 and 65,536 hosts with a flow each).
const HEAP_BYTES: usize = 400;
const RECEPTION_BYTES: usize =
    (size_of::<(u64, FlowName, Reception)>() + size_of::<usize>() + 1) * 16 / 7;
const PAIR_BYTES: usize = 32;

/// A packet under way, with its places in queues and in the list of events: about 40 B for each packet at the fullest time
/// (262,144 and 265,302 hosts, 66 packets of each).
pub const PACKET_BYTES: u64 = size_of::<Packet>() as u64 + 40;

/// What there is before the first message: ports, switches, cards.
pub fn fixed_bytes(fabric: &Fabric, data_classes: u8) -> u64 {
    let of_end = size_of::<LinkEnd>() + size_of::<PortHistory>();
    let of_switch = of_end + SwitchMemory::port_bytes(usize::from(data_classes));
    let of_host = of_end + size_of::<Nic>();
    let ports = |nodes: &[NodeId]| -> u64 {
        let count = |&node: &NodeId| fabric.ports_of(node).len() as u64;
        nodes.iter().map(count).sum()
    };
    ports(fabric.switches()) * of_switch as u64 + ports(fabric.hosts()) * of_host as u64
}
