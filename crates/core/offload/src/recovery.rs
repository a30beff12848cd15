//! Leaving offload together: from host to host, so that it works when switches do not.
//!
//! A [`Recovery`] knows how far its member is: [`begin`](Recovery::begin) and [`complete`](Recovery::complete) say so.
//! Once it is *frozen* it takes no more results from switches, and its `completed` does not change. When all members
//! have told theirs, the greatest, c, is the last round that counts; who lacks its result fetches it from one who has
//! it. Later rounds are plain MPI everywhere (`docs/concepts/offload.md`).

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::{
    DataType,
    native::{Body, Collective, Header, HeaderView, JobKey, Kind, Reason},
};

use crate::payload::verified;

/// Bytes of a result in one message; small enough for any network.
const CHUNK: usize = 1024;
/// Chunks asked for at once.
const WINDOW: u32 = 16;
/// Doublings of the time between repetitions.
const BACK_OFF: u32 = 6;

/// What a member is told about its group when that stands.
#[derive(Debug, Clone)]
pub struct RecoveryConfig {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// The group.
    pub group: u32,
    /// The member's number.
    pub member: u32,
    /// Addresses of all members, by number, for messages from host to host.
    pub members: Vec<SocketAddrV4>,
    /// Time until a message is sent again; it doubles with each repetition, up to 64 times.
    pub retry: Span,
    /// Time between questions who is late, and time that a member may leave one unanswered.
    pub give_up: Span,
}

/// Where a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryState {
    /// Offload goes on.
    Running,
    /// Frozen: others have not told how far they are, or the last result is being fetched.
    Frozen(Reason),
    /// All members leave after the same round, and this one has the results up to it.
    Agreed {
        /// The last round that counts. Whoever waits for it finds the result in [`Recovery::result`].
        completed_through: u32,
        /// Why this member left.
        reason: Reason,
    },
}

/// What is known of another member.
#[derive(Debug, Clone, Copy, Default)]
struct Peer {
    /// Its last round with a result, once it is frozen.
    completed: Option<u32>,
    /// Last round that it is known to have begun.
    begun: u32,
    /// It has not answered the present question.
    asked: bool,
}

/// The question who is late.
#[derive(Debug, Clone, Copy)]
struct Inquiry {
    round: u32,
    /// Answers are awaited until then; after that, questions begin anew.
    ends: Time,
    tries: u32,
    due: Time,
    /// Everyone has begun the round.
    all: bool,
    /// The member has been told.
    told: bool,
}

/// Fetching the result of the last round.
#[derive(Debug)]
struct Fetch {
    have: Vec<bool>,
    base: u32,
    /// Chunks up to here have been asked for.
    asked: u32,
    left: u32,
    from: usize,
}

/// How one member leaves one group.
#[derive(Debug)]
pub struct Recovery {
    config: RecoveryConfig,
    now: Time,
    begun: u32,
    completed: u32,
    /// Result of `completed`, or of the round that was fetched.
    result: Vec<u8>,
    collective: Collective,
    /// Bytes that the result of `begun` will have.
    expected: usize,
    frozen: Option<Reason>,
    agreed: Option<u32>,
    peers: Vec<Peer>,
    inquiry: Option<Inquiry>,
    fetch: Option<Fetch>,
    tries: u32,
    due: Time,
    out: VecDeque<(SocketAddrV4, Header, Option<u32>)>,
}

impl Recovery {
    /// A member of a group that stands.
    #[must_use]
    pub fn new(config: RecoveryConfig) -> Self {
        let peers = vec![Peer::default(); config.members.len()];
        Self {
            config,
            now: Time::ZERO,
            begun: 0,
            completed: 0,
            result: Vec::new(),
            collective: Collective::Barrier,
            expected: 0,
            frozen: None,
            agreed: None,
            peers,
            inquiry: None,
            fetch: None,
            tries: 0,
            due: Time::NEVER,
            out: VecDeque::new(),
        }
    }

    /// The member begins a round whose result has this many bytes. False: offload is over, the round is plain.
    #[must_use]
    pub fn begin(&mut self, round: u32, collective: Collective, bytes: usize) -> bool {
        if self.frozen.is_some() {
            return false;
        }
        self.begun = round;
        self.collective = collective;
        self.expected = bytes;
        true
    }

    /// The round that was begun has its result. False: too late, the member is frozen, and what counts is agreed on.
    #[must_use]
    pub fn complete(&mut self, result: &[u8]) -> bool {
        if self.frozen.is_some() {
            return false;
        }
        self.completed = self.begun;
        self.result.clear();
        self.result.extend_from_slice(result);
        self.inquiry = None;
        true
    }

    /// No result of the round came for long: asks all members whether they have begun it. May be called again and again.
    pub fn overdue(&mut self, now: Time) {
        self.now = now;
        if self.frozen.is_some() || self.inquiry.is_some() {
            return;
        }
        self.ask_who_is_late();
    }

    /// Results come again: nobody needs to be asked.
    pub fn resumed(&mut self) {
        self.inquiry = None;
    }

    /// True once when it is known that everyone has begun the round: what the member lacks was lost.
    pub fn take_all_have_begun(&mut self) -> bool {
        self.inquiry
            .as_mut()
            .is_some_and(|inquiry| inquiry.all && !std::mem::replace(&mut inquiry.told, true))
    }

    fn ask_who_is_late(&mut self) {
        for (number, peer) in self.peers.iter_mut().enumerate() {
            peer.asked = number != self.config.member as usize && older(peer.begun, self.begun);
        }
        self.inquiry = Some(Inquiry {
            round: self.begun,
            ends: self.now + self.config.give_up,
            tries: 0,
            due: self.now,
            all: false,
            told: false,
        });
        self.look_at_answers();
    }

    /// Leaves offload, for this reason.
    pub fn freeze(&mut self, now: Time, reason: Reason) {
        self.now = now;
        if self.frozen.is_some() {
            return;
        }
        self.frozen = Some(reason);
        self.inquiry = None;
        self.tries = 0;
        self.due = now;
        self.agree();
    }

    /// A UDP payload that came to the port for messages from host to host. True when it was for this member.
    pub fn handle_packet(&mut self, now: Time, payload: &[u8]) -> bool {
        self.now = now;
        self.take(payload).is_some()
    }

    fn take(&mut self, payload: &[u8]) -> Option<()> {
        let (job, group) = (self.config.job, self.config.group);
        let message = verified(payload, job, group, &self.config.key)?;
        let header = message.header;
        let number = header.rank() as usize;
        if number == self.config.member as usize {
            return None;
        }
        let from = *self.config.members.get(number)?;
        match message.kind {
            Kind::Progress => self.on_progress(number, header, from),
            Kind::Fallback => {
                let round = header.round();
                // Nobody completes a round without all, so what they completed differs by one at most.
                if !matches!(round.wrapping_sub(self.completed).cast_signed(), -1..=1) {
                    return None;
                }
                let reason = Reason::from_code(header.reason()).unwrap_or(Reason::NoAnswer);
                self.freeze(self.now, reason);
                self.peers[number].completed.get_or_insert(round);
                if !header.answer() {
                    self.tell(from, Kind::Fallback, self.completed, true);
                }
                self.agree();
            }
            Kind::Ask => self.on_ask(header, from)?,
            Kind::Result => {
                let body = match message.body {
                    Body::Data(_, bytes) => bytes,
                    _ => &[],
                };
                self.on_result(header, body)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn on_progress(&mut self, number: usize, header: HeaderView<'_>, from: SocketAddrV4) {
        if self.frozen.is_some() {
            return self.tell(from, Kind::Fallback, self.completed, false);
        }
        let peer = &mut self.peers[number];
        if older(peer.begun, header.round()) {
            peer.begun = header.round();
        }
        if header.answer() {
            peer.asked = false;
        } else {
            self.tell(from, Kind::Progress, self.begun, true);
        }
        self.look_at_answers();
    }

    /// Leaves when everyone has begun the round and nobody has a reason to be waited for.
    fn look_at_answers(&mut self) {
        let own = self.config.member as usize;
        let Some(inquiry) = &mut self.inquiry else {
            return;
        };
        let round = inquiry.round;
        let others = self.peers.iter().enumerate().filter(|(n, _)| *n != own);
        if !inquiry.all && others.clone().all(|(_, peer)| !older(peer.begun, round)) {
            // Their contributions may still be on their way: one more `give_up` from when the last is known to be there.
            inquiry.all = true;
            inquiry.ends = self.now + self.config.give_up;
        }
    }

    fn on_ask(&mut self, header: HeaderView<'_>, from: SocketAddrV4) -> Option<()> {
        // Only what is final is given away: a frozen member's result is that of its last round, or of the agreed one.
        let has = self.frozen.is_some() && header.round() == self.completed;
        let chunks = chunks(self.result.len());
        if !has || header.segments() != chunks || header.segment() >= chunks {
            return None;
        }
        let (at, length) = chunk(header.segment(), self.result.len());
        if usize::from(header.count()) != length || at + length > self.result.len() {
            return None;
        }
        let answer = Header {
            kind: Kind::Result.code(),
            rank: self.config.member,
            ..header.values()
        };
        self.out.push_back((from, answer, Some(header.segment())));
        Some(())
    }

    fn on_result(&mut self, header: HeaderView<'_>, body: &[u8]) -> Option<()> {
        let fetch = self.fetch.as_mut()?;
        let segment = header.segment();
        let (at, length) = chunk(segment, self.expected);
        let have = fetch.have.get_mut(segment as usize)?;
        if header.round() != self.begun || body.len() != length || *have {
            return None;
        }
        *have = true;
        self.result[at..at + length].copy_from_slice(body);
        fetch.left -= 1;
        while fetch.have.get(fetch.base as usize) == Some(&true) {
            fetch.base += 1;
        }
        if fetch.left == 0 {
            self.fetched();
        } else if fetch.base >= fetch.asked {
            self.tries = 0;
            self.due = self.now;
        }
        Some(())
    }

    /// The result of the last round is here.
    fn fetched(&mut self) {
        self.fetch = None;
        self.agreed = Some(self.begun);
        self.due = Time::NEVER;
    }

    /// Finds the last round that counts once all have told theirs.
    fn agree(&mut self) {
        if self.agreed.is_some() || self.fetch.is_some() {
            return;
        }
        let own = self.config.member as usize;
        let mut last = self.completed;
        let mut who = None;
        for (number, peer) in self.peers.iter().enumerate() {
            if number == own {
                continue;
            }
            let Some(completed) = peer.completed else {
                return;
            };
            if older(last, completed) {
                last = completed;
                who = Some(number);
            }
        }
        let Some(from) = who else {
            self.agreed = Some(last);
            self.due = Time::NEVER;
            return;
        };
        self.result.clear();
        self.result.resize(self.expected, 0);
        let count = chunks(self.expected);
        if count == 0 {
            return self.fetched();
        }
        self.fetch = Some(Fetch {
            have: vec![false; count as usize],
            base: 0,
            asked: 0,
            left: count,
            from,
        });
        self.tries = 0;
        self.due = self.now;
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if let Some(inquiry) = &mut self.inquiry {
            if now >= inquiry.ends {
                let silent = self.peers.iter().any(|peer| peer.asked);
                if inquiry.all || silent {
                    let reason = if inquiry.all {
                        Reason::Overdue
                    } else {
                        Reason::NoAnswer
                    };
                    self.freeze(now, reason);
                } else {
                    self.ask_who_is_late();
                }
            } else if now >= inquiry.due {
                inquiry.due = now + Span(self.config.retry.0 << inquiry.tries.min(BACK_OFF));
                inquiry.tries += 1;
                for number in 0..self.peers.len() {
                    if self.peers[number].asked {
                        self.tell(
                            self.config.members[number],
                            Kind::Progress,
                            self.begun,
                            false,
                        );
                    }
                }
            }
        }
        if self.frozen.is_none() || now < self.due {
            return;
        }
        self.due = now + Span(self.config.retry.0 << self.tries.min(BACK_OFF));
        self.tries += 1;
        if self.fetch.is_some() {
            self.ask_for_chunks();
        } else if self.agreed.is_none() {
            for number in 0..self.peers.len() {
                if number != self.config.member as usize && self.peers[number].completed.is_none() {
                    self.tell(
                        self.config.members[number],
                        Kind::Fallback,
                        self.completed,
                        false,
                    );
                }
            }
        }
    }

    fn ask_for_chunks(&mut self) {
        let tries = self.tries;
        let begun = self.begun;
        let Some(fetch) = &mut self.fetch else { return };
        if tries > 1 {
            // The one asked may be slow or gone: another who has it is asked in turn.
            let count = self.peers.len();
            let others = (1..=count).map(|step| (fetch.from + step) % count);
            let mut has = others.filter(|n| self.peers[*n].completed == Some(begun));
            fetch.from = has.next().unwrap_or(fetch.from);
        }
        let to = self.config.members[fetch.from];
        let last = (fetch.base + WINDOW).min(fetch.have.len() as u32);
        fetch.asked = last;
        for segment in fetch.base..last {
            if fetch.have[segment as usize] {
                continue;
            }
            let (_, length) = chunk(segment, self.expected);
            let ask = Header {
                group: self.config.group,
                round: begun,
                segment,
                segments: fetch.have.len() as u32,
                rank: self.config.member,
                collective: self.collective.code(),
                data_type: DataType::Uint8.code(),
                count: length as u16,
                ..Header::of(Kind::Ask, self.config.job)
            };
            self.out.push_back((to, ask, None));
        }
    }

    fn tell(&mut self, to: SocketAddrV4, kind: Kind, round: u32, answer: bool) {
        let reason = match (kind, self.frozen) {
            (Kind::Fallback, Some(reason)) => reason.code(),
            _ => 0,
        };
        let header = Header {
            group: self.config.group,
            round,
            rank: self.config.member,
            answer,
            reason,
            ..Header::of(kind, self.config.job)
        };
        self.out.push_back((to, header, None));
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None` when there is nothing to wait for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if let Some(inquiry) = &self.inquiry {
            let asks = self.peers.iter().any(|peer| peer.asked);
            return Some(if asks {
                inquiry.due.min(inquiry.ends)
            } else {
                inquiry.ends
            });
        }
        (self.frozen.is_some() && self.due != Time::NEVER).then_some(self.due)
    }

    /// The next message to send: writes it to `buffer`, which has room for 56 + 8192 bytes, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        loop {
            let (to, header, segment) = self.out.pop_front()?;
            let mut body = 0;
            if let Some(segment) = segment {
                let (at, length) = chunk(segment, self.result.len());
                let room = buffer.get_mut(Header::SIZE..Header::SIZE + length)?;
                room.copy_from_slice(&self.result[at..at + length]);
                body = length;
            }
            if let Ok(length) = header.seal_message(buffer, body, &self.config.key) {
                return Some((to, length));
            }
        }
    }

    /// The address of this member, as all have it.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        let own = self.config.members.get(self.config.member as usize);
        own.map(|address| *address.ip())
    }

    /// Where the member stands.
    #[must_use]
    pub fn state(&self) -> RecoveryState {
        match (self.frozen, self.agreed) {
            (None, _) => RecoveryState::Running,
            (Some(reason), None) => RecoveryState::Frozen(reason),
            (Some(reason), Some(completed_through)) => RecoveryState::Agreed {
                completed_through,
                reason,
            },
        }
    }

    /// The result of the last round that counts, or while offload goes on, that has one.
    #[must_use]
    pub fn result(&self) -> &[u8] {
        &self.result
    }

    /// Members that have not told how far they are: while one is dead the others wait, as in plain MPI.
    pub fn waiting_for(&self) -> impl Iterator<Item = u32> + '_ {
        let own = self.config.member;
        let frozen = self.frozen.is_some();
        (0..).zip(&self.peers).filter_map(move |(number, peer)| {
            (frozen && number != own && peer.completed.is_none()).then_some(number)
        })
    }
}

/// Whether round `a` comes before round `b`, on a circle (RFC 1982).
const fn older(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

/// Messages that a result of so many bytes takes.
const fn chunks(bytes: usize) -> u32 {
    bytes.div_ceil(CHUNK) as u32
}

/// Where a chunk begins, and its length.
const fn chunk(segment: u32, bytes: usize) -> (usize, usize) {
    let at = segment as usize * CHUNK;
    let left = bytes.saturating_sub(at);
    (at, if left < CHUNK { left } else { CHUNK })
}
