//! Rounds of in-network reductions while the run goes on.

use std::net::SocketAddrV4;

use raddle_dataplane::QUEUE_ACKS;
use raddle_offload::published::Verdict;
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, Time};
use raddle_wire::DataType;
use raddle_workload::{Message as Round, OffloadId};

use super::{
    super::{
        flow::address,
        process::Base,
        records::Record,
        what::{Kind, What},
    },
    Adder, Datagram, FIRST_PORT, Offloads, Speaker, ip, native, node_of, published, sport,
    switch_socket,
};
use crate::{
    index::{DatagramSlot, MemberIndex, PacketSlot, PortIndex},
    offload::OffloadProtocol,
    packet::{Envelope, Packet},
    record::ReductionRecord,
    setup::SetupError,
};

/// What member `place` of `size` brings: elements place + 1 as floats, or bytes of 1; and the sum, exact up to 2^24.
fn values(place: u32, size: u32, bytes: usize) -> (DataType, usize, Vec<u8>, Vec<u8>) {
    if bytes.is_multiple_of(4) {
        let repeat = |value: f32| value.to_be_bytes().repeat(bytes / 4);
        let sum = size as f32 * (size + 1) as f32 / 2.0;
        let own = repeat((place + 1) as f32);
        return (DataType::Float, bytes / 4, own, repeat(sum));
    }
    let own = vec![1; bytes];
    (DataType::Uint8, bytes, own, vec![size as u8; bytes])
}

impl Offloads {
    /// The member that a packet of our own protocol is for.
    fn native_member(&self, datagram: &Datagram) -> Option<MemberIndex> {
        let member = u32::from(datagram.to.port().wrapping_sub(FIRST_PORT));
        (self.protocol == OffloadProtocol::Native).then_some(MemberIndex(member))
    }

    /// Reports a member's packet where that is asked for; whether it is lost on purpose.
    fn loses(
        &mut self,
        base: &mut Base<'_>,
        member: MemberIndex,
        sent: bool,
        payload: &[u8],
    ) -> bool {
        let records = base.cx.config.record_reductions;
        if !records && self.lost.is_empty() {
            return false;
        }
        let Some(leader) = self.leaders.get_mut(member) else {
            return false;
        };
        leader.packets[usize::from(sent)] += 1;
        let number = leader.packets[usize::from(sent)];
        if records {
            let record = ReductionRecord {
                at: base.cx.now,
                member: member.0,
                sent,
                payload: payload.to_vec(),
            };
            base.cx.record(leader.host, Record::Reduction(record));
        }
        self.lost
            .iter()
            .any(|lost| lost.has(member.0, sent, number))
    }

    /// Gives a packet to the member that it is for, and says which that is.
    fn hand_over(&mut self, now: Time, host: NodeId, datagram: &Datagram) -> Option<MemberIndex> {
        if let Some(member) = self.native_member(datagram) {
            let leader = self.leaders.get_mut(member)?;
            if let Speaker::Native(core) = &mut leader.core {
                core.handle_packet(now, &datagram.bytes);
            }
            return Some(member);
        }
        let mut members = self.on_host.get(&host)?.iter().copied();
        members.find(|&member| match &mut self.leaders[member].core {
            Speaker::Published(core) => core.handle_frame(now, &datagram.bytes),
            Speaker::Native(_) => false,
        })
    }

    /// A member begins its next round.
    pub(in super::super) fn start(
        &mut self,
        base: &mut Base<'_>,
        message: &Round,
        OffloadId(id): OffloadId,
    ) {
        let member = MemberIndex(id);
        match self.begin(base.cx.now, message, member) {
            Ok(()) => self.drain(base, member),
            Err(problem) => base.cx.stop(SetupError::OffloadRound {
                tag: message.tag,
                member: id,
                problem,
            }),
        }
    }

    fn begin(
        &mut self,
        now: Time,
        message: &Round,
        member: MemberIndex,
    ) -> Result<(), &'static str> {
        let Some(leader) = self.leaders.get_mut(member) else {
            return Err("which is in none of the run's groups");
        };
        if leader.host != message.src {
            return Err("which is on another host");
        }
        let bytes = message.size.0 as usize;
        let (data_type, count, own, _) = values(leader.place, leader.size, bytes);
        if leader.running {
            return Err("whose last round is not over");
        }
        if !leader.core.start(now, data_type, count, &own) {
            return Err("whose protocol cannot carry so many bytes");
        }
        (leader.tag, leader.running) = (message.tag, true);
        Ok(())
    }

    /// Sends what a member has to send, and sets its timer.
    fn drain(&mut self, base: &mut Base<'_>, member: MemberIndex) {
        let host = self.leaders[member].host;
        let Some(nic) = base.nic_of(host) else {
            return;
        };
        let from = SocketAddrV4::new(ip(host), sport(member));
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some((to, length)) = self.leaders[member].core.poll_transmit(&mut buffer) {
            if self.loses(base, member, true, &buffer[..length]) {
                continue;
            }
            let packet = self.packet(base, host, from, to, &buffer[..length]);
            base.queue_control(nic, packet);
        }
        self.buffer = buffer;
        base.nic_transmit(nic);
        let leader = &mut self.leaders[member];
        let due = leader.core.poll_timeout().filter(|_| leader.running);
        let due = due.unwrap_or(Time::NEVER);
        if due != leader.timer {
            leader.timer = due;
            if due != Time::NEVER {
                let port = base.cx.first_port(host);
                let what = What::Retry(member);
                base.cx.schedule(due, (Kind::Retry, port, member.0), what);
            }
        }
    }

    /// A member may have to send again.
    pub(in super::super) fn member_timer(&mut self, base: &mut Base<'_>, member: MemberIndex) {
        let leader = &mut self.leaders[member];
        leader.timer = Time::NEVER;
        if leader.core.handle_timeout(base.cx.now) {
            return self.drain(base, member);
        }
        base.cx.stop(SetupError::OffloadRound {
            tag: leader.tag,
            member: member.0,
            problem: "which has waited one second for its result",
        });
    }

    /// Bytes on the wire around what the core writes.
    const fn outside(&self) -> u32 {
        match self.protocol {
            OffloadProtocol::Native => native::OUTSIDE,
            OffloadProtocol::Published(_) => published::OUTSIDE,
        }
    }

    fn packet(
        &self,
        base: &mut Base<'_>,
        src: NodeId,
        from: SocketAddrV4,
        to: SocketAddrV4,
        bytes: &[u8],
    ) -> Packet {
        let dst = node_of(*to.ip());
        let ports = u32::from(from.port()) | u32::from(to.port()) << 16;
        let datagram = base.wires.datagrams.insert(Datagram {
            from,
            to,
            bytes: bytes.to_vec(),
        });
        let envelope = Envelope {
            src,
            hash: FlowHash::new(address(src), address(dst), ports),
            queue: QUEUE_ACKS,
            sent_at: base.cx.now,
            bytes: bytes.len() as u32 + self.outside(),
            payload: 0,
        };
        Packet::offload(dst, datagram, envelope)
    }

    /// A packet of a reduction is wholly received at a switch: it is for its unit, or goes on. A leaf switch of the published
    /// protocol takes what one of its hosts sends to another.
    pub(in super::super) fn arrives(
        &mut self,
        base: &mut Base<'_>,
        port: PortIndex,
        handle: PacketSlot,
    ) {
        let (cx, wires) = (&mut base.cx, &mut base.wires);
        let (node, dst) = (wires.node(port), wires.packets.get(handle).dst());
        let published = self.protocol != OffloadProtocol::Native;
        if dst != node && !(published && cx.fabric.is_host(dst)) {
            return self.forward(base, node, port, handle);
        }
        let Some(unit) = self.units.get_mut(&node) else {
            return wires.drop_packet(cx, handle);
        };
        let (at, number) = unit.work(cx.now, self.compute);
        let place = (Kind::Compute, cx.first_port(node), number);
        cx.schedule(at, place, What::Compute(node, handle));
    }

    /// The unit of a switch is through with a packet.
    pub(in super::super) fn computed(
        &mut self,
        base: &mut Base<'_>,
        node: NodeId,
        handle: PacketSlot,
    ) {
        let first = base.cx.first_port(node);
        let place: DatagramSlot = base.wires.packets.get(handle).datagram();
        base.wires.packets.remove(handle);
        let mut datagram = base.wires.datagrams.take(place);
        let now = base.cx.now;
        let Some(unit) = self.units.get_mut(&node) else {
            return;
        };
        let passes = match &mut unit.core {
            Adder::Native(core) => {
                core.handle_packet(now, datagram.from, &datagram.bytes);
                false
            }
            Adder::Published(core) => matches!(
                core.handle_frame(now, &mut datagram.bytes),
                Verdict::Forward | Verdict::Rewritten(_)
            ),
        };
        if passes {
            let Datagram { from, to, bytes } = &datagram;
            let packet = self.packet(base, node, *from, *to, bytes);
            let handle = base.wires.packets.insert(packet);
            self.forward(base, node, first, handle);
        }
        let from = switch_socket(node);
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(unit) = self.units.get_mut(&node)
            && let Some((to, length)) = unit.core.poll_transmit(&mut buffer)
        {
            let packet = self.packet(base, node, from, to, &buffer[..length]);
            let handle = base.wires.packets.insert(packet);
            self.forward(base, node, first, handle);
        }
        self.buffer = buffer;
    }

    /// Sends a packet on from a switch, which it came to by `port`.
    fn forward(&self, base: &mut Base<'_>, node: NodeId, port: PortIndex, handle: PacketSlot) {
        let (cx, wires) = (&mut base.cx, &mut base.wires);
        let packet = wires.packets.get(handle);
        let (dst, hash) = (packet.dst(), packet.hash);
        let out = if cx.fabric.is_host(dst) {
            wires.router.next_hop(node, dst, hash)
        } else {
            self.ways.get(&(node, dst)).copied()
        };
        let out = out.map(|out| wires.here(port, out));
        match out.filter(|&out| wires.ends[out].up) {
            Some(out) => wires.send_control(cx, out, handle),
            None => wires.lose(cx, port, handle),
        }
    }

    /// A packet of a reduction is wholly received at a host.
    pub(in super::super) fn receive(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let packet = base.wires.packets.get(handle);
        let (place, host) = (packet.datagram(), packet.dst());
        base.wires.packets.remove(handle);
        let datagram = base.wires.datagrams.take(place);
        let now = base.cx.now;
        if let Some(member) = self.native_member(&datagram)
            && self.loses(base, member, false, &datagram.bytes)
        {
            return;
        }
        let Some(member) = self.hand_over(now, host, &datagram) else {
            return;
        };
        let leader = &mut self.leaders[member];
        let result = leader.core.result(now).filter(|_| leader.running);
        let Some(result) = result else {
            return self.drain(base, member);
        };
        let (_, _, _, sum) = values(leader.place, leader.size, result.len());
        if result == sum {
            base.cx.summary.reductions += 1;
        } else {
            base.cx.summary.wrong_reductions += 1;
        }
        leader.running = false;
        let (host, tag) = (leader.host, leader.tag);
        self.drain(base, member);
        base.traffic.delivered(&base.cx, host, tag);
        base.traffic.schedule_start(&mut base.cx);
    }
}
