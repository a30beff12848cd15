//! What a switch has to send. Results are not copied: an entry names their slot, and stays until all children have them.

use core::net::SocketAddrV4;
use std::collections::VecDeque;

use raddle_wire::native::{Header, JobKey};

/// Entries that a driver may leave without draining; more are lost, as packets are.
const MOST: usize = 4096;

/// A message to send, or several.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A message without a body.
    Control(SocketAddrV4, [u8; Header::SIZE]),
    /// A slot's message to the parent.
    Up { group: u32, slot: u16 },
    /// A slot's message to a child.
    Down { group: u32, slot: u16, child: u16 },
    /// A slot's message to all children from `next` on.
    All { group: u32, slot: u16, next: u16 },
    /// A message without a body to all children from `next` on.
    Relay {
        group: u32,
        bytes: [u8; Header::SIZE],
        next: u16,
    },
}

/// First in, first out.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Outgoing>);

impl Outbox {
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        if self.0.len() < MOST {
            self.0.push_back(outgoing);
        }
    }

    pub(super) fn control(&mut self, to: SocketAddrV4, header: &Header, key: &JobKey) {
        let mut bytes = [0; Header::SIZE];
        if header.seal_message(&mut bytes, 0, key).is_ok() {
            self.send(Outgoing::Control(to, bytes));
        }
    }

    pub(super) fn relay(&mut self, group: u32, bytes: [u8; Header::SIZE]) {
        self.send(Outgoing::Relay {
            group,
            bytes,
            next: 0,
        });
    }

    pub(super) fn next(&mut self) -> Option<Outgoing> {
        self.0.pop_front()
    }

    /// Puts back the rest of what [`next`](Self::next) gave.
    pub(super) fn again(&mut self, outgoing: Outgoing) {
        self.0.push_front(outgoing);
    }
}
