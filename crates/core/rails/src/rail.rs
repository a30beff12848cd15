//! One rail of a connection: its numbers, its congestion control, whether it works.

use std::collections::VecDeque;

use raddle_units::{BitRate, Bytes, Span, Time};
use raddle_wire::rails::Ack;

use super::{
    config::{Config, HEARTBEATS},
    control::Control,
    lateness::Longest,
    pending_acks::PendingAcks,
    rtt::Rtt,
    sent::{Content, NeverSent, Piece, Sent},
    split::Path,
};
use raddle_transport::{cc, telemetry::Echo};

/// Doublings of the patience with a silent rail.
const BACK_OFF: u32 = 6;

/// Whether a rail works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RailStatus {
    /// No: nothing was acknowledged yet, or for three heartbeats. It gets probes.
    #[default]
    Down,
    /// Yes.
    Up,
    /// An acknowledgement is overdue: it gets probes, and no data until one is answered.
    Suspect,
}

/// What happened to a rail's standing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    None,
    Rose,
    Fell,
}

/// One rail.
#[derive(Debug)]
pub(super) struct Rail {
    index: usize,
    status: RailStatus,
    sent: Sent,
    /// What came by it.
    pub(super) pending_acks: PendingAcks,
    rtt: Rtt,
    /// How long hosts let packets and acknowledgements wait.
    waits: Longest,
    /// What other connections of this host have in flight by it, and how late they found hosts.
    others: (Bytes, Span),
    control: Option<Control>,
    /// When the next data packet may leave.
    pace_at: Time,
    rate: BitRate,
    /// Bytes in flight that stand in no queue.
    on_the_way: u64,
    /// Pieces bound to this rail.
    pub(super) assigned: VecDeque<Piece>,
    /// A hello is to be sent.
    pub(super) hello: bool,
    /// A probe is to be sent.
    pub(super) probe: bool,
    /// When a packet was acknowledged last, or the rail was begun: both directions worked.
    proved: Time,
    /// When the other node was heard again, on any rail, after it had been silent on all.
    awake: Time,
    heartbeat_at: Time,
    timeouts: u32,
}

impl Rail {
    pub(super) fn new(index: usize, now: Time) -> Self {
        Self {
            index,
            status: RailStatus::Down,
            sent: Sent::default(),
            pending_acks: PendingAcks::new(now),
            rtt: Rtt::default(),
            waits: Longest::default(),
            others: (Bytes(0), Span::ZERO),
            control: None,
            pace_at: now,
            rate: BitRate(0),
            on_the_way: 0,
            assigned: VecDeque::new(),
            hello: true,
            probe: false,
            proved: now,
            awake: now,
            heartbeat_at: Time::NEVER,
            timeouts: 0,
        }
    }

    pub(super) const fn index(&self) -> usize {
        self.index
    }

    pub(super) const fn status(&self) -> RailStatus {
        self.status
    }

    pub(super) const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    pub(super) const fn in_flight(&self) -> u64 {
        self.sent.in_flight()
    }

    pub(super) const fn bytes_sent(&self) -> u64 {
        self.sent.total()
    }

    /// Both nodes know each other: it is tried out.
    pub(super) fn begin(&mut self, now: Time, config: &Config) {
        self.probe = true;
        self.heartbeat_at = now + config.heartbeat;
    }

    // Sending.

    /// Notes a numbered packet of `bytes` bytes; gives its number. Data moves the pace.
    pub(super) fn send(&mut self, now: Time, bytes: usize, content: Content) -> u64 {
        if let (Content::Piece(_), Some(control)) = (content, &self.control) {
            let earliest = Time(now.0.saturating_sub(control.lateness().0));
            let rate = BitRate(control.rate().max(1));
            self.pace_at = self.pace_at.max(earliest) + rate.transmission_time(Bytes(bytes as u64));
        }
        self.sent.send(now, bytes as u32, content)
    }

    /// Whether congestion control lets a packet of `bytes` bytes leave, pace apart.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let Some(control) = &self.control else {
            return false;
        };
        let after = self.sent.in_flight() + bytes as u64;
        self.status == RailStatus::Up && (self.sent.in_flight() == 0 || after <= control.window())
    }

    /// Whether a data packet of `bytes` bytes may leave at `now`.
    pub(super) fn may_send(&self, now: Time, bytes: usize) -> bool {
        self.pace_at <= now && self.has_room(bytes)
    }

    /// When a data packet may leave that only the pace holds back at `now`.
    pub(super) fn paced_until(&self, now: Time, bytes: usize) -> Option<Time> {
        (self.pace_at > now && self.has_room(bytes)).then_some(self.pace_at)
    }

    /// Other connections of this host have so much in flight by it, found hosts so late, and the network once so quick.
    pub(super) fn note_others(&mut self, in_flight: Bytes, lateness: Span, least_rtt: Span) {
        self.others = (in_flight, lateness);
        self.rtt.hear(least_rtt);
    }

    /// How long hosts let a packet and its acknowledgement wait lately.
    pub(super) fn lateness(&self) -> Span {
        self.waits.get()
    }

    /// The rail as the split sees it. What is in flight beyond the bandwidth-delay product, and what others have, stands in a
    /// queue.
    pub(super) const fn path(&self) -> Path {
        Path {
            latency: Span(self.rtt.least().0 / 2),
            rate: self.rate,
            backlog: Bytes(self.sent.in_flight().saturating_sub(self.on_the_way) + self.others.0.0),
        }
    }

    /// What congestion control allows: its rate, and its window once per round trip; 0 while the rail is down.
    pub(super) const fn rate(&self) -> BitRate {
        self.rate
    }

    /// Congestion control has changed its mind, or the round-trip time has.
    fn measure(&mut self) {
        self.rate = self.control.as_ref().map_or(BitRate(0), |control| {
            let rate = control.rate();
            let bits = control.window() as f64 * 8.0;
            let per_rtt = (bits / self.rtt.smoothed().as_secs_f64()) as u64;
            BitRate(rate.min(per_rtt).max(1))
        });
        self.on_the_way = self.rate.bytes_in(self.rtt.least()).0;
    }

    // Receiving.

    /// The acknowledgement that is due at `now`.
    pub(super) fn take_ack(&mut self, now: Time) -> Option<Ack> {
        if self.pending_acks.due() > now {
            return None;
        }
        let interval = self.control.as_ref().map(Control::echo_interval);
        self.pending_acks
            .take_ack(now, interval.unwrap_or(Span::ZERO))
    }

    /// Whether it moves data: packets are in flight, also those of others, or assigned, or a segment came within a round trip.
    pub(super) fn is_busy(&self, now: Time) -> bool {
        self.sent.in_flight() + self.others.0.0 > 0
            || !self.assigned.is_empty()
            || self.receives(now)
    }

    /// Whether a segment came by it within a round trip.
    pub(super) fn receives(&self, now: Time) -> bool {
        let at = self.pending_acks.segment_at();
        at.is_some_and(|at| now.since(at) <= self.rtt.smoothed())
    }

    // Acknowledgements, losses and silence.

    /// An acknowledgement that this host let wait for `held`: contents that arrived and those that are lost go to the two lists.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        held: Span,
        ack: &Ack,
        config: &Config,
        arrived: &mut Vec<Content>,
        lost: &mut Vec<Content>,
    ) -> Result<Change, NeverSent> {
        let told = self.sent.acknowledge(ack, arrived)?;
        if let Some(sent) = told.late.filter(|_| self.rtt.is_known()) {
            self.undo_timeout(now, sent);
        }
        let Some(newest) = told.newest else {
            return Ok(Change::None);
        };
        // RFC 9002, section 5.1; a first sample that is too long is better than none.
        if told.is_largest || !self.rtt.is_known() {
            let waited = held.0.saturating_add(Span::from_ns(ack.delay_ns.into()).0);
            self.rtt.sample(now, newest.at, Span(waited));
            let late = Span(waited.saturating_sub(config.ack_delay.0));
            self.waits.add(now, late, config.heartbeat);
        }
        let change = self.prove(now, config);
        let allowance = config.allowance(self.waits.get().max(self.others.1));
        if let Some(control) = &mut self.control {
            control.allow(config, self.index, self.rtt.least(), allowance);
            let signal = cc::Ack {
                seq: newest.end,
                next: self.sent.total(),
                newly_acked: told.bytes,
                marked: ack.marked,
                rtt: self.rtt.latest(),
                echo: Echo::None,
                complete: false,
                random: 0,
            };
            control.on_ack(now, &signal, !self.sent.may_still_arrive());
        }
        self.find_lost(now, lost);
        self.measure();
        Ok(change)
    }

    /// A packet that was given up has arrived after all: it was late, not lost.
    fn undo_timeout(&mut self, now: Time, sent: Time) {
        self.rtt.sample(now, sent, Span::ZERO);
        if let Some(control) = &mut self.control {
            control.undo_timeout();
        }
    }

    /// Something was acknowledged: the rail works in both directions.
    fn prove(&mut self, now: Time, config: &Config) -> Change {
        self.proved = now;
        self.timeouts = 0;
        self.heartbeat_at = now + config.heartbeat;
        let before = std::mem::replace(&mut self.status, RailStatus::Up);
        if before != RailStatus::Down {
            return Change::None;
        }
        self.control = Some(Control::new(config, self.index));
        self.pace_at = now;
        Change::Rose
    }

    fn find_lost(&mut self, now: Time, lost: &mut Vec<Content>) {
        let counts = self.sent.find_lost(now, self.rtt.reordering(), lost);
        if let Some(control) = self.control.as_mut().filter(|_| counts) {
            control.on_loss(now);
        }
    }

    /// When [`Self::on_timeout`] has something to do.
    pub(super) fn due(&self, config: &Config) -> Time {
        let control = self.control.as_ref().map_or(Time::NEVER, Control::due);
        let times = [
            self.pending_acks.due(),
            self.heartbeat_at,
            self.sent.loss_at(),
            self.falls_at(config),
            self.overdue_at(config),
            control,
        ];
        times.into_iter().min().unwrap_or(Time::NEVER)
    }

    /// When it is down unless something is acknowledged.
    fn falls_at(&self, config: &Config) -> Time {
        match self.status {
            RailStatus::Down => Time::NEVER,
            _ => self.proved + config.heartbeat * HEARTBEATS,
        }
    }

    /// When silence is to be asked about: never while nothing is in flight, and not on a rail that is down, whose heartbeats
    /// ask.
    fn overdue_at(&self, config: &Config) -> Time {
        if self.status == RailStatus::Down || self.sent.in_flight() == 0 || self.probe {
            return Time::NEVER;
        }
        let packet = Bytes(config.datagram() as u64);
        // Round-trip times may be those of probes so far.
        let whole = config.ack_delay + config.rails[self.index].transmission_time(packet);
        let patience = self.rtt.patience(whole, config.patience);
        let patience = Span(patience.0 << self.timeouts.min(BACK_OFF)).min(config.heartbeat);
        self.sent.last().max(self.awake) + patience
    }

    /// The other node is heard again that was silent on all rails: each has its time to answer from now on.
    pub(super) const fn wake(&mut self, now: Time) {
        self.awake = now;
    }

    /// Whether it has answered since `time`, and could carry more.
    pub(super) fn answers_since(&self, time: Time) -> bool {
        self.status == RailStatus::Up && self.proved >= time
    }

    /// Time has passed. `alone`: no other rail answers that could carry what this one has.
    pub(super) fn on_timeout(
        &mut self,
        now: Time,
        config: &Config,
        alone: bool,
        lost: &mut Vec<Content>,
    ) -> Change {
        if self.heartbeat_at <= now {
            self.probe = true;
            self.heartbeat_at = now + config.heartbeat;
        }
        if let Some(control) = &mut self.control {
            control.on_timers(now);
        }
        if self.status == RailStatus::Down {
            let old = config.heartbeat * HEARTBEATS;
            if now >= Time::ZERO + old {
                self.sent.give_up(now - old, lost);
            }
            return Change::None;
        }
        if self.falls_at(config) <= now {
            self.fall(now, lost);
            return Change::Fell;
        }
        if self.sent.loss_at() <= now {
            self.find_lost(now, lost);
        }
        if self.overdue_at(config) <= now {
            self.suspect(now, alone, lost);
        }
        self.measure();
        Change::None
    }

    /// An acknowledgement is overdue. A rail that is alone goes on until the second time: it is the other host that is late.
    fn suspect(&mut self, now: Time, alone: bool, lost: &mut Vec<Content>) {
        self.timeouts += 1;
        self.probe = true;
        if alone && self.timeouts == 1 {
            return;
        }
        self.status = RailStatus::Suspect;
        self.release(lost);
        if self.sent.give_up(now, lost)
            && let Some(control) = &mut self.control
        {
            control.on_timeout(now);
        }
    }

    /// The rail is down: everything it had goes to the others.
    fn fall(&mut self, now: Time, lost: &mut Vec<Content>) {
        self.status = RailStatus::Down;
        self.control = None;
        self.rtt.restart();
        self.timeouts = 0;
        self.release(lost);
        self.sent.give_up(now, lost);
        self.measure();
    }

    /// Gives back the pieces that were bound to it.
    fn release(&mut self, lost: &mut Vec<Content>) {
        lost.extend(self.assigned.drain(..).map(Content::Piece));
    }
}
