//! The smallest driver: a network without contention, for statistics and tests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use raddle_units::{BitRate, Span, Time};

use crate::{Message, Workload};

/// A network where every message travels alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdealNetwork {
    /// Time from the last bit sent to the message's delivery.
    pub latency: Span,
    /// Rate at which each message is sent, above 0.
    pub rate: BitRate,
}

impl IdealNetwork {
    /// When `message` is delivered.
    pub fn delivery(&self, message: &Message) -> Time {
        let span = self
            .rate
            .transmission_time(message.size)
            .0
            .saturating_add(self.latency.0);
        Time(message.start.0.saturating_add(span))
    }
}

/// Runs `workload` over an ideal network, telling `each` message and its delivery in order of start, until it has
/// finished or `limit` messages were sent. Gives the number of messages.
pub fn drive_ideal(
    workload: &mut dyn Workload,
    network: IdealNetwork,
    limit: u64,
    mut each: impl FnMut(&Message, Time),
) -> u64 {
    let reports = workload.has_dependencies();
    let mut under_way = BinaryHeap::new();
    let mut sent = 0;
    while sent < limit && !(workload.is_open_ended() && workload.finished()) {
        let start = workload.next_start().unwrap_or(Time::NEVER);
        if let Some(&Reverse((at, _, tag))) = under_way.peek()
            && at <= start
        {
            under_way.pop();
            workload.on_delivered(at, tag);
            continue;
        }
        let Some(message) = workload.pop() else {
            if workload.next_start().is_none() && under_way.is_empty() {
                break;
            }
            continue;
        };
        let delivered = network.delivery(&message);
        each(&message, delivered);
        if reports {
            under_way.push(Reverse((delivered, sent, message.tag)));
        }
        sent += 1;
    }
    sent
}
