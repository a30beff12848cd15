//! The acknowledgement that a rail owes: of which packets, when, and what it says beside.

use raddle_units::{Span, Time};
use raddle_wire::rails::Ack;

use super::{
    config::Config,
    received::{Arrival, Received},
};

/// A numbered packet that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) arrival: Arrival,
    pub(super) urgent: bool,
    /// How long it waited for the driver.
    pub(super) held: Span,
    /// It carries a congestion mark.
    pub(super) marked: bool,
    pub(super) has_segment: bool,
}

/// What came on a rail and is to be acknowledged.
#[derive(Debug)]
pub(super) struct PendingAcks {
    received: Received,
    /// When it is due ([`Time::NEVER`]: nothing to acknowledge).
    due: Time,
    /// Packets since the last one.
    packets: u32,
    /// When the packet with the largest number was there.
    largest_at: Time,
    /// A congestion mark came that was not told.
    marked: bool,
    echoed_at: Option<Time>,
    segment_at: Option<Time>,
}

impl PendingAcks {
    pub(super) fn new(now: Time) -> Self {
        Self {
            received: Received::default(),
            due: Time::NEVER,
            packets: 0,
            largest_at: now,
            marked: false,
            echoed_at: None,
            segment_at: None,
        }
    }

    /// What a packet with this number would be.
    pub(super) fn judge(&self, number: u64) -> Arrival {
        self.received.judge(number)
    }

    /// When it is due ([`Time::NEVER`]: nothing to acknowledge).
    pub(super) const fn due(&self) -> Time {
        self.due
    }

    /// When the last segment came.
    pub(super) const fn segment_at(&self) -> Option<Time> {
        self.segment_at
    }

    /// A numbered packet was taken: it is to be acknowledged.
    pub(super) fn take(&mut self, now: Time, packet: &Numbered, config: &Config) {
        let newest = self.received.newest_first().next();
        self.received.insert(packet.number);
        if newest.is_none_or(|newest| packet.number > newest.last) {
            self.largest_at = Time(now.0.saturating_sub(packet.held.0));
        }
        self.packets += 1;
        self.marked |= packet.marked;
        if packet.has_segment {
            self.segment_at = Some(now);
        }
        let at_once =
            packet.urgent || packet.arrival != Arrival::Next || self.packets >= config.ack_every;
        let due = if at_once { now } else { now + config.ack_delay };
        self.due = self.due.min(due);
    }

    /// The acknowledgement; `None` if nothing ever came. Marks are told at most every `echo_interval`.
    pub(super) fn take_ack(&mut self, now: Time, echo_interval: Span) -> Option<Ack> {
        self.due = Time::NEVER;
        self.packets = 0;
        let delay = u32::try_from(now.since(self.largest_at).as_ns()).unwrap_or(u32::MAX);
        let echo = self.echo(now, echo_interval);
        Ack::new(delay, echo, self.received.newest_first())
    }

    fn echo(&mut self, now: Time, interval: Span) -> bool {
        let may = self
            .echoed_at
            .is_none_or(|last| now.since(last) >= interval);
        if !self.marked || !may {
            return false;
        }
        self.marked = false;
        self.echoed_at = Some(now);
        true
    }
}
