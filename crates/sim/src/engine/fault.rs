//! Links that fail and return at given times, and routes that follow.

use std::borrow::Cow;

use raddle_routing::UnicastTables;
use raddle_units::{LinkId, NodeId, Span, Time};

use super::{Engine, Kind};
use crate::setup::LinkFault;

/// Something that happens to a link or to the routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Down(Time, LinkId),
    Up(Time, LinkId),
    Reroute(Time),
}

pub(super) fn changes(faults: &[LinkFault], reroute_delay: Span) -> Vec<Change> {
    faults
        .iter()
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

impl Engine<'_> {
    pub(super) fn schedule_faults(&mut self) {
        for index in 0..self.changes.len() {
            let (Change::Down(at, _) | Change::Up(at, _) | Change::Reroute(at)) =
                self.changes[index];
            let key = self.keys.next(Kind::Link, NodeId(0), 0, index as u32);
            self.push(at, key, Kind::Link.pack(0, index as u32));
        }
    }

    pub(super) fn change_link(&mut self, index: usize) {
        match self.changes[index] {
            Change::Down(_, link) => self.fail_link(link),
            Change::Up(_, link) => self.restore_link(link),
            Change::Reroute(_) => {
                // The same fabric had tables before: only the set of links differs, so this cannot fail.
                if let Ok(tables) =
                    UnicastTables::compute(self.fabric, &self.links, self.semantics.next_hops)
                {
                    self.tables = Cow::Owned(tables);
                }
            }
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
            if end.paused != 0 {
                end.paused = 0;
                self.end_pause(port);
            }
            let mut lost = Vec::new();
            if is_switch {
                let resumed = self.switches[device].flush(index, |frame| lost.push(frame.handle));
                for other in resumed {
                    self.switch_transmit(self.port_on(port, other));
                }
            } else {
                let nic = &mut self.nics[device];
                nic.paused = 0;
                lost.extend(nic.acks.drain(..));
            }
            for handle in lost {
                self.drop_packet(handle);
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
