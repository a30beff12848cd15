//! Links that fail and return at given times, and routes that follow.

use std::borrow::Cow;

use raddle_unicast::UnicastTables;
use raddle_units::{LinkId, PortId, Span, Time};

use super::{Engine, Kind, link::frame_access, multicast::NO_SEND};
use crate::setup::LinkFault;

/// Something that happens to a link or to the routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Down(Time, LinkId),
    Up(Time, LinkId),
    Reroute(Time),
    /// Multicast tables change, by place in the list of updates.
    Multicast(Time, u32),
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
    pub(super) fn schedule_faults(&mut self) {
        for index in 0..self.changes.len() {
            let (Change::Down(at, _)
            | Change::Up(at, _)
            | Change::Reroute(at)
            | Change::Multicast(at, _)) = self.changes[index];
            let key = self.keys.next(Kind::Link, PortId(0), index as u32);
            self.push(at, key, Kind::Link.pack(0, index as u32));
        }
    }

    pub(super) fn change_link(&mut self, index: usize) {
        let change = self.changes[index];
        let moves = matches!(change, Change::Reroute(_) | Change::Multicast(..));
        let before = (moves && self.config.record_paths).then(|| self.ways());
        match change {
            Change::Down(_, link) => self.fail_link(link),
            Change::Up(_, link) => self.restore_link(link),
            Change::Multicast(_, update) => self.multicast.update(update),
            Change::Reroute(_) => {
                // The same fabric had tables before: only the set of links differs, so this cannot fail.
                if let Ok(tables) =
                    UnicastTables::compute(self.fabric, &self.links, self.semantics.next_hops)
                {
                    self.router.tables = Cow::Owned(tables);
                    self.packets.forget_routes();
                    self.move_flows_to_working_ports();
                }
            }
        }
        if let Some(before) = before {
            self.record_new_ways(&before);
        }
    }

    /// Flows of hosts with several ports leave a port that no longer leads to their destination, if another one does.
    fn move_flows_to_working_ports(&mut self) {
        for index in 0..self.flows.len() as u32 {
            let flow = &self.flows[index as usize];
            if !flow.live || flow.send != NO_SEND || self.fabric.ports_of(flow.src).len() == 1 {
                continue;
            }
            let (src, dst, hash, old) = (flow.src, flow.dst, flow.hash, flow.nic);
            let port = self.nics[old as usize].port;
            if self.router.tables.next_hops(src, dst).contains(&port) {
                continue;
            }
            let Some(port) = self.router.next_hop(src, dst, hash) else {
                continue;
            };
            let new = self.ends[port.index()].device;
            let left = &mut self.nics[old as usize];
            left.flows.retain(|&other| other != index);
            left.served = 0;
            self.nics[new as usize].flows.push(index);
            self.flows[index as usize].nic = new;
            self.nic_transmit(new);
        }
    }

    fn fail_link(&mut self, link: LinkId) {
        self.links.set(link, false);
        for port in self.fabric.link(link).ports {
            let end = &mut self.ends[port.index()];
            end.up = false;
            self.history[port.index()].failed_at = self.now;
            let end = &mut self.ends[port.index()];
            let (is_switch, device, index) = (end.is_switch, end.device as usize, end.index);
            let node = end.node;
            if end.paused != 0 {
                end.paused = 0;
                self.end_pause(port);
            }
            let mut lost = Vec::new();
            if is_switch {
                let frames = frame_access!(self, node);
                let resumed =
                    self.switches[device].flush(index, &frames, |frame| lost.push(frame.handle));
                for other in resumed {
                    self.switch_transmit(self.port_on(port, other));
                }
            } else {
                let nic = &mut self.nics[device];
                nic.paused = 0;
                lost.extend(nic.acks.drain(..));
                lost.extend(nic.rails.drain(..));
                self.leave_host(&lost);
                self.history[port.index()].lost += lost.len() as u64;
            }
            for handle in lost {
                self.drop_packet(handle);
            }
            if !is_switch {
                self.drain_host(node);
            }
        }
    }

    fn restore_link(&mut self, link: LinkId) {
        self.links.set(link, true);
        for port in self.fabric.link(link).ports {
            let end = &mut self.ends[port.index()];
            end.up = true;
            let (is_switch, device) = (end.is_switch, end.device);
            if is_switch {
                self.switch_transmit(port);
            } else {
                self.nic_transmit(device);
            }
        }
    }
}
