//! What a run says while it goes on: one trait, called per flow, pause or sample, never per packet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use raddle_unicast::FlowHash;
use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time};
use raddle_workload::{Destination, GroupId};
use serde::{Deserialize, Serialize};

/// A flow that ended, or that had not when the run did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host, or group.
    pub dst: Destination,
    /// Source port: 10000 + number of earlier flows of the same pair.
    pub sport: u16,
    /// Message size.
    pub size: Bytes,
    /// When the flow started.
    pub start: Time,
    /// From start until the sender processed the last acknowledgement (of a group: all members have the message); `None`: not
    /// finished.
    pub fct: Option<Span>,
    /// The same in an idle fabric at line rate (a lower bound in the default mode).
    pub ideal_fct: Span,
    /// Index into the workload's classes.
    pub class: u8,
    /// The message's tag.
    pub tag: u64,
}

/// What became of a message to a group at one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The message's tag.
    pub tag: u64,
    /// The member.
    pub member: NodeId,
    /// Sending host.
    pub src: NodeId,
    /// The group's place in the list.
    pub group: u32,
    /// Source port: with `src` and the group what [`FlowRecord`] has.
    pub sport: u16,
    /// When the member had the whole message; `None`: never.
    pub delivered: Option<Time>,
}

/// Where a way ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WayEnd {
    /// At the receiving host.
    Host(NodeId),
    /// At the members of a group.
    Group(GroupId),
    /// At the root of an in-network reduction.
    Root(NodeId),
}

/// A step of a way: a node, and the port by which packets leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Links between the sender and this node.
    pub depth: u16,
    /// The node.
    pub node: NodeId,
    /// Its port, from 1.
    pub port: u16,
    /// The node at the other end of the port's link.
    pub peer: NodeId,
}

/// The way of a flow's data packets, from its start on or since routes changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRecord<'a> {
    /// Sending host.
    pub src: NodeId,
    /// Where the way ends.
    pub dst: WayEnd,
    /// Source port, as in [`FlowRecord`]; `None`: it is the way of all messages of the pair over a rail.
    pub sport: Option<u16>,
    /// The rail, from 0; 0 where there are none.
    pub rail: u8,
    /// From when on.
    pub since: Time,
    /// Step by step. To a group: the tree, nearest first. It ends early where there is no route.
    pub hops: &'a [Hop],
}

/// A port's data class was paused by its peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// The paused node: where the PFC frame was received.
    pub node: NodeId,
    /// Its port, from 1.
    pub port: u16,
    /// When the pause was received.
    pub start: Time,
    /// When the resume was received, or the end of the run.
    pub end: Time,
}

/// One acknowledgement at its sender, after congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AckRecord {
    /// When it was processed.
    pub time: Time,
    /// The flow's sender.
    pub src: NodeId,
    /// The flow's receiver.
    pub dst: NodeId,
    /// The flow's source port.
    pub sport: u16,
    /// A NACK (true) or an ACK.
    pub nack: bool,
    /// Acknowledged bytes.
    pub seq: u64,
    /// ECN echo.
    pub ecn: bool,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// Rate in bit/s.
    pub rate: u64,
    /// Reference rate in bit/s (see `Inspection`).
    pub reference_rate: u64,
    /// The scheme's measure (see `Inspection`).
    pub measure: f64,
}

/// A time of packets of one class of messages; `None`: of packets that no class is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTime {
    /// Index into the workload's classes.
    pub class: Option<u8>,
    /// How long.
    pub time: Span,
}

/// What names a packet that is followed: no card sends two at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PacketName {
    /// The sending host.
    pub src: NodeId,
    /// Of its addresses and ports.
    pub hash: FlowHash,
    /// When it left its sender.
    pub sent_at: Time,
}

/// The packet with a message's last byte leaves its sender's card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The packet.
    pub packet: PacketName,
    /// Receiving host.
    pub dst: NodeId,
    /// Source port of the flow, as in [`FlowRecord`].
    pub sport: u16,
    /// Index into the workload's classes.
    pub class: u8,
    /// The message's tag.
    pub tag: u64,
    /// When the message started.
    pub start: Time,
    /// The sending host.
    pub node: NodeId,
    /// Number of its port, from 1.
    pub port: u16,
    /// For how long the card sent other packets since then, by class.
    pub sent: Vec<ClassTime>,
    /// How long the message's packets before this one take.
    pub once: Span,
    /// How long packets took that were sent again.
    pub again: Span,
    /// For how long the card was paused since then.
    pub paused: Span,
    /// How long it was from one of the message's packets to the next, before those that were sent for the first time.
    pub gaps_once: Span,
    /// The same before those that were sent again.
    pub gaps_again: Span,
}

/// A followed packet leaves a switch's port for which it has waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// The packet.
    pub packet: PacketName,
    /// The switch.
    pub node: NodeId,
    /// Number of the port, from 1.
    pub port: u16,
    /// When it came to the switch.
    pub since: Time,
    /// When the port began to send it.
    pub until: Time,
    /// For how long the port sent other packets meanwhile, by class. The rest it was paused.
    pub sent: Vec<ClassTime>,
}

/// A switch asks the peer of a port to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseCause {
    /// The switch.
    pub node: NodeId,
    /// Number of the port whose peer is to pause, from 1.
    pub port: u16,
    /// When the buffer said so.
    pub at: Time,
    /// By which of its ports most of what came in there is to leave.
    pub towards: u16,
    /// Whose packets most of those are that wait at that port.
    pub class: Option<u8>,
}

/// A piece of what kept a message ([`crate::blame::Journal`] puts them together).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DelayRecord {
    /// At its sender.
    Sent(Sent),
    /// On the way.
    Waited(Waited),
    /// The receiver has the whole message.
    Delivered(PacketName, Time),
    /// Why ports are paused.
    Pause(PauseCause),
}

/// A port at a sampling instant, and what it did since the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSample {
    /// The port.
    pub id: PortId,
    /// Its node.
    pub node: NodeId,
    /// Its number on the node, from 1.
    pub port: u16,
    /// Bytes that wait to leave by it, in a switch: 0 for a host's card.
    pub queue_bytes: u64,
    /// Bytes that came in by it and are in the switch's buffer: what PFC's threshold is about. 0 for a host's card.
    pub ingress_bytes: u64,
    /// Its peer has paused it.
    pub paused: bool,
    /// Bytes that it began to send since the last sample, headers included.
    pub tx_bytes: u64,
    /// Packets that it marked (ECN) since the last sample.
    pub ecn_marks: u64,
}

/// The state of the fabric at one sampling instant, and what happened since the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The instant.
    pub time: Time,
    /// Payload bytes delivered in order since the last sample, by class.
    pub delivered_by_class: &'a [u64],
    /// Watched flows (src, dst, sport) and payload bytes delivered since the last sample; flows without any are left out.
    pub watched: &'a [(NodeId, Destination, u16, u64)],
    /// Bytes in all switch buffers.
    pub buffered_bytes: u64,
    /// Bytes in the fullest egress port.
    pub max_port_bytes: u64,
    /// Ports that are paused.
    pub paused_ports: u64,
    /// Ports with a series ([`crate::PortSeries`]), in order.
    pub ports: &'a [PortSample],
}

/// Counters of one egress port over the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortRecord {
    /// Its node.
    pub node: NodeId,
    /// Its number on the node, from 1.
    pub port: u16,
    /// The node at the other end.
    pub peer: NodeId,
    /// Line rate.
    pub rate: BitRate,
    /// Bytes sent, headers included.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets marked (ECN).
    pub ecn_marks: u64,
    /// Most bytes queued at once.
    pub max_queue_bytes: u64,
    /// Total time for which the port was paused.
    pub pause: Span,
    /// Packets dropped: refused by the buffer of this node coming in at this port, by this port's full queue, or lost on this
    /// port's failed link.
    pub drops: u64,
}

/// A member of an in-network reduction sent a packet, or one came for it; also those that are lost on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReductionRecord {
    /// When.
    pub at: Time,
    /// The member, counted through all groups.
    pub member: u32,
    /// Whether it sent it.
    pub sent: bool,
    /// The datagram's payload.
    pub payload: Vec<u8>,
}

/// A host finds that one of its rails to another host carries data, or no longer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailRecord {
    /// When.
    pub at: Time,
    /// The host.
    pub host: NodeId,
    /// The other one.
    pub peer: NodeId,
    /// The rail's number, from 0.
    pub rail: u8,
    /// Whether it carries data from now on.
    pub up: bool,
}

/// Receives what a run reports. All methods do nothing by default.
pub trait Recorder {
    /// A flow ended (in order of completion), or the run did without it (then in order of start).
    fn flow(&mut self, _flow: &FlowRecord) {}
    /// A member of a group has a message, or will not get it: once per message and member other than its sender.
    fn member(&mut self, _member: &MemberRecord) {}
    /// A pause ended.
    fn pause(&mut self, _pause: &PauseRecord) {}
    /// A flow takes this way from now on; only when the run records ways.
    fn path(&mut self, _path: &PathRecord<'_>) {}
    /// An acknowledgement was processed; only when the run records acknowledgements.
    fn ack(&mut self, _ack: &AckRecord) {}
    /// A piece of what kept a message is known; only when the run records delays.
    fn delay(&mut self, _delay: &DelayRecord) {}
    /// A member of a reduction sent or got a packet; only when the run records reductions.
    fn reduction(&mut self, _packet: &ReductionRecord) {}
    /// A host's rail came or went; only when the run records rails.
    fn rail(&mut self, _rail: &RailRecord) {}
    /// A sampling instant was passed.
    fn sample(&mut self, _sample: &Sample<'_>) {}
    /// A port's counters, at the end, in order of node and port.
    fn port(&mut self, _port: &PortRecord) {}
    /// An output error to stop the run for (asked about once per 65,536 events).
    fn failed(&self) -> bool {
        false
    }
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct Discard;

impl Recorder for Discard {}

/// Shared with whoever watches a run from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    simulated_ps: AtomicU64,
    packet_hops: AtomicU64,
    flows_done: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Asks the run to stop soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Simulated picoseconds so far.
    pub fn simulated_ps(&self) -> u64 {
        self.simulated_ps.load(Ordering::Relaxed)
    }

    /// Completed link traversals so far.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops.load(Ordering::Relaxed)
    }

    /// Flows finished so far.
    pub fn flows_done(&self) -> u64 {
        self.flows_done.load(Ordering::Relaxed)
    }

    pub(crate) fn update(&self, now: Time, packet_hops: u64, flows_done: u64) {
        self.simulated_ps.store(now.0, Ordering::Relaxed);
        self.packet_hops.store(packet_hops, Ordering::Relaxed);
        self.flows_done.store(flows_done, Ordering::Relaxed);
    }
}
