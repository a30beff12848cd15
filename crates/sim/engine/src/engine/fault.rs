//! Links that fail and return at given times, and routes that follow.

use std::borrow::Cow;

use raddle_unicast::UnicastTables;
use raddle_units::{LinkId, PortId, Span, Time};

use super::{
    Base, Engine,
    flow::FlowTo,
    link::Device,
    what::{Kind, What},
};
use crate::{
    index::{ChangeIndex, FlowSlot, PacketSlot},
    setup::LinkFault,
};

/// Something that happens to a link or to the routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Down(Time, LinkId),
    Up(Time, LinkId),
    Reroute(Time),
    /// Multicast tables change, by place in the list of updates.
    Multicast(Time, usize),
}

impl Change {
    const fn at(self) -> Time {
        match self {
            Self::Down(at, _) | Self::Up(at, _) | Self::Reroute(at) | Self::Multicast(at, _) => at,
        }
    }
}

pub(super) fn changes(faults: &[LinkFault], reroute_delay: Span) -> Vec<Change> {
    merged(faults)
        .into_iter()
        .flat_map(|fault| {
            let up = fault.up.map(|at| {
                [
                    Change::Up(at, fault.link),
                    Change::Reroute(at + reroute_delay),
                ]
            });
            let down = [
                Change::Down(fault.down, fault.link),
                Change::Reroute(fault.down + reroute_delay),
            ];
            down.into_iter().chain(up.into_iter().flatten())
        })
        .collect()
}

/// Faults of one link that overlap are one: it is back when the last of them is over.
fn merged(faults: &[LinkFault]) -> Vec<LinkFault> {
    let mut sorted = faults.to_vec();
    sorted.sort_by_key(|fault| (fault.link, fault.down));
    let mut merged: Vec<LinkFault> = Vec::with_capacity(sorted.len());
    for fault in sorted {
        match merged.last_mut() {
            Some(last) if last.link == fault.link && last.up.is_none_or(|up| fault.down <= up) => {
                last.up = last.up.zip(fault.up).map(|(a, b)| a.max(b));
            }
            _ => merged.push(fault),
        }
    }
    merged
}

impl Engine<'_> {
    pub(super) fn schedule_changes(&mut self) {
        for change in self.changes.places() {
            let place = (Kind::Change, PortId(0), change.0);
            let at = self.changes[change].at();
            self.base.cx.schedule(at, place, What::Change(change));
        }
    }

    pub(super) fn change(&mut self, index: ChangeIndex) {
        let change = self.changes[index];
        let moves = matches!(change, Change::Reroute(_) | Change::Multicast(..));
        let before = (moves && self.base.cx.config.record_paths).then(|| self.ways());
        match change {
            Change::Down(_, link) => {
                self.base.wires.links.set(link, false);
                for port in self.base.cx.fabric.link(link).ports {
                    self.fail(port);
                }
            }
            Change::Up(_, link) => {
                self.base.wires.links.set(link, true);
                for port in self.base.cx.fabric.link(link).ports {
                    self.base.wires.ends[port].up = true;
                    self.look_for_work(port);
                }
            }
            Change::Multicast(_, update) => self.groups.update(&mut self.base, update),
            Change::Reroute(_) => self.reroute(),
        }
        if let Some(before) = before {
            self.record_new_ways(&before);
        }
    }

    fn reroute(&mut self) {
        let (cx, wires) = (&self.base.cx, &mut self.base.wires);
        // The same fabric had tables before: only the set of links differs, so this cannot fail.
        if let Ok(tables) = UnicastTables::compute(cx.fabric, &wires.links, cx.semantics.next_hops)
        {
            wires.router.tables = Cow::Owned(tables);
            wires.packets.forget_routes();
            for index in self.base.hosts.flows.places() {
                self.base.move_to_working_port(index);
                self.rails.refill(&mut self.base);
            }
        }
    }

    /// The link of a port fails.
    fn fail(&mut self, port: PortId) {
        let lost = self.base.cut(port);
        if self.base.nic_at(port).is_some() {
            self.rails.leave_host(&self.base, &lost);
            self.base.wires.history[port].lost += lost.len() as u64;
        }
        for handle in lost {
            self.base.wires.drop_packet(&mut self.base.cx, handle);
        }
        if self.base.nic_at(port).is_some() {
            let host = self.base.wires.node(port);
            self.rails.drain_host(&mut self.base, host);
        }
    }
}

impl Base<'_> {
    /// Takes a port off the network; the packets that waited there.
    fn cut(&mut self, port: PortId) -> Vec<PacketSlot> {
        let (cx, wires) = (&mut self.cx, &mut self.wires);
        let end = &mut wires.ends[port];
        end.up = false;
        wires.history[port].failed_at = cx.now;
        let (device, paused) = (end.device, std::mem::take(&mut end.paused));
        if paused != 0 {
            wires.end_pause(cx, port);
        }
        match device {
            Device::Switch(switch) => wires.flush(cx, port, switch),
            Device::Nic(nic) => {
                let nic = &mut self.hosts.nics[nic];
                nic.paused = 0;
                nic.acks.drain(..).chain(nic.rails.drain(..)).collect()
            }
        }
    }

    /// A flow of a host with several ports leaves one that no longer leads to its destination, if another one does.
    fn move_to_working_port(&mut self, index: FlowSlot) {
        let flow = &self.hosts.flows[index];
        let FlowTo::Host(dst) = flow.to else {
            return;
        };
        let (src, hash, old) = (flow.src, flow.hash, flow.nic);
        if !flow.live || self.cx.fabric.ports_of(src).len() == 1 {
            return;
        }
        let port = self.hosts.nics[old].port;
        let router = &self.wires.router;
        if router.tables.next_hops(src, dst).contains(&port) {
            return;
        }
        let port = router.next_hop(src, dst, hash);
        let Some(new) = port.and_then(|port| self.nic_at(port)) else {
            return;
        };
        self.hosts.nics[old].leave(index);
        self.hosts.nics[new].flows.push(index);
        self.hosts.flows[index].nic = new;
        self.nic_transmit(new);
    }
}
