//! Links that fail and return at given times, and routes that follow.

use std::sync::Arc;

use raddle_unicast::UnicastTables;
use raddle_units::{LinkId, Span, Time};

use super::{
    flow::FlowTo,
    link::Device,
    process::{Base, Process},
    records::Record,
    what::Keys,
    windows::{Processes, Run, locked},
};
use crate::{
    index::{FlowSlot, PacketSlot, PortIndex},
    packet::Packet,
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
    /// Whether ways may be others afterwards.
    pub(super) const fn moves(self) -> bool {
        matches!(self, Self::Reroute(_) | Self::Multicast(..))
    }

    /// When it happens.
    pub(super) const fn at(self) -> Time {
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

impl<'a> Run<'a> {
    /// The changes that are due at `time`.
    pub(super) fn change(&mut self, processes: Processes<'_, 'a>, time: Time) {
        self.done = time;
        for process in processes {
            locked(process).begin_change(time);
        }
        while let Some(&change) = self.changes.get(self.changed)
            && change.at() == time
        {
            self.changed += 1;
            self.summary.events += 1;
            let before: Vec<_> = if change.moves() && self.config.record_paths {
                processes
                    .iter()
                    .map(|process| locked(process).ways())
                    .collect()
            } else {
                Vec::new()
            };
            self.apply(processes, change);
            for (process, before) in processes.iter().zip(&before) {
                locked(process).record_new_ways(before);
            }
        }
        self.scratch.active = (0..processes.len()).collect();
        self.close(processes);
    }

    fn apply(&mut self, processes: Processes<'_, 'a>, change: Change) {
        let fabric = &*self.network.fabric;
        match change {
            Change::Down(_, link) | Change::Up(_, link) => {
                let up = matches!(change, Change::Up(..));
                self.links.set(link, up);
                for port in fabric.link(link).ports {
                    let process = self.cut.process(fabric.port(port).node);
                    let Some(place) = self.exchange.place(process) else {
                        continue;
                    };
                    let port = self.cut.port(fabric, port);
                    let process = &mut *locked(&processes[place]);
                    if up {
                        process.restore(port)
                    } else {
                        process.fail(port)
                    }
                }
            }
            Change::Multicast(_, update) => {
                for process in processes {
                    let process = &mut *locked(process);
                    process.groups.update(&mut process.base, update);
                }
            }
            Change::Reroute(_) => {
                let rules = self.network.semantics.next_hops;
                // The same fabric had tables before: only the set of links differs, so this cannot fail.
                if let Ok(tables) = UnicastTables::compute(fabric, &self.links, rules) {
                    let tables = Arc::new(tables);
                    self.for_each_packet(processes, Packet::forget_out);
                    for process in processes {
                        locked(process).reroute(&tables);
                    }
                }
            }
        }
    }
}

impl Process<'_> {
    /// What follows is a change at `time`, before all events of that instant.
    pub(super) fn begin_change(&mut self, time: Time) {
        self.take_in_mail();
        (self.base.cx.now, self.base.cx.key) = (time, Keys::FIRST);
        self.base.cx.window_end = time;
    }

    /// The link of a port returns.
    pub(super) fn restore(&mut self, port: PortIndex) {
        self.base.wires.ends[port].up = true;
        self.look_for_work(port, self.base.wires.ends[port].device);
    }

    /// Routes have changed.
    pub(super) fn reroute(&mut self, tables: &Arc<UnicastTables>) {
        let wires = &mut self.base.wires;
        wires.router.tables = Arc::clone(tables);
        for index in self.base.hosts.flows.places() {
            self.base.move_to_working_port(index);
            self.rails.refill(&mut self.base);
        }
    }

    /// The link of a port fails.
    pub(super) fn fail(&mut self, port: PortIndex) {
        let lost = self.base.cut(port);
        if self.base.nic_at(port).is_some() {
            self.rails.drop_from_host(&self.base, &lost);
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
    fn cut(&mut self, port: PortIndex) -> Vec<PacketSlot> {
        let (cx, wires) = (&mut self.cx, &mut self.wires);
        let end = &mut wires.ends[port];
        end.up = false;
        wires.history[port].failed_at = cx.now;
        let (device, paused) = (end.device, std::mem::take(&mut end.paused));
        if paused != 0 {
            let pause = wires.end_pause(cx.now, port);
            cx.record(pause.node, Record::Pause(pause));
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
        let port = self.wires.ends[self.hosts.nics[old].port].id;
        let router = &self.wires.router;
        if router.tables.next_hops(src, dst).contains(&port) {
            return;
        }
        let port = router.next_hop(src, dst, hash);
        let port = port.map(|port| self.cx.cut.port(self.cx.fabric, port));
        let Some(new) = port.and_then(|port| self.nic_at(port)) else {
            return;
        };
        self.hosts.nics[old].leave(index);
        self.hosts.nics[new].flows.push(index);
        self.hosts.flows[index].nic = new;
        self.nic_transmit(new);
    }
}
