//! Large messages over all rails of a host (`docs/matching.md`): what carries the messages that the matcher offers. A
//! [`Carrier`](raddle_matching::Carrier) per other process says how, `link` does it on `raddle_net::rails`.

mod link;
mod meeting;

use std::time::Duration;

use raddle_matching::{BadNotice, Envelope, Matcher, Notice};
use raddle_net::interfaces::{self, Interface};
use raddle_units::{BitRate, Span};
use raddle_wire::{native::JobKey, rails::MAX_RAILS};
use serde_json::{Value, json};

use self::link::{Link, Offer};
use crate::{
    clock,
    messages::{Wire, abi::RaddleEnvelope},
    settings::RailNames,
};

/// Upper bound for an interface whose driver names no rate.
const USUAL_RATE: BitRate = BitRate(10_000_000_000);

/// Number and key of the job's rails, made by rank 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret {
    job: u32,
    key: [u8; 16],
}

impl Secret {
    pub(crate) const SIZE: usize = 20;

    /// From random bytes.
    pub(crate) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let &[j0, j1, j2, j3, ref key @ ..] = bytes;
        Self {
            job: u32::from_be_bytes([j0, j1, j2, j3]),
            key: *key,
        }
    }

    const fn key(&self) -> JobKey {
        JobKey::new(self.key)
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    by_rails: u64,
    by_rails_bytes: u64,
    answered_plain: u64,
    fell_back: u64,
    rails_failed: u64,
}

/// What a link needs of this process.
struct Around<'a> {
    matcher: &'a mut Matcher,
    wire: &'a mut Wire,
    counters: &'a mut Counters,
    interfaces: &'a [Interface],
    secret: Secret,
    rank: u32,
    give_up: Span,
}

impl Around<'_> {
    fn notify(&mut self, to: u32, notice: &Notice) {
        let sent = self.matcher.notify(to, &notice.bytes(), self.wire);
        debug_assert!(sent.is_ok(), "a rank of the job, and a short notice");
    }

    fn send_plain(&self, offer: u64, key: u32) {
        // SAFETY: the shim gave this name to an offer that is not sent.
        unsafe { (self.wire.channel.send_offered)(offer, key) }
    }

    fn sent(&self, offer: u64) {
        // SAFETY: as above.
        unsafe { (self.wire.channel.offer_sent)(offer) }
    }

    /// Where the message of a receive is to go.
    fn land(&self, receive: u64, envelope: &Envelope) -> *mut u8 {
        let envelope = RaddleEnvelope::from(*envelope);
        // SAFETY: the shim gave this name to a receive that is not complete.
        unsafe { (self.wire.channel.land)(receive, &raw const envelope).cast() }
    }

    fn landed(&self, receive: u64) {
        // SAFETY: as above.
        unsafe { (self.wire.channel.landed)(receive) }
    }

    fn fetch(&self, receive: u64, envelope: &Envelope, key: u32) {
        let envelope = RaddleEnvelope::from(*envelope);
        // SAFETY: as above.
        unsafe { (self.wire.channel.fetch_offered)(receive, &raw const envelope, key) }
    }
}

/// A message that was offered to this process and matched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    pub(crate) receive: u64,
    pub(crate) envelope: Envelope,
    pub(crate) key: u32,
}

/// The rails of this process.
pub(crate) struct Rails {
    interfaces: Vec<Interface>,
    secret: Secret,
    rank: u32,
    give_up: Span,
    /// Whether a rank is on another node.
    far: Vec<bool>,
    /// By rank.
    links: Vec<Option<Box<Link>>>,
    /// Ranks of links that there are.
    known: Vec<u32>,
    counters: Counters,
    closed: bool,
}

impl Rails {
    /// `far` says of each rank whether it is on another node.
    pub(crate) fn new(
        names: &RailNames,
        secret: Secret,
        rank: u32,
        far: Vec<bool>,
        give_up: Duration,
    ) -> Self {
        let mut links = Vec::new();
        links.resize_with(far.len(), || None);
        Self {
            interfaces: usable(names),
            secret,
            rank,
            give_up: clock::span(give_up),
            far,
            links,
            known: Vec::new(),
            counters: Counters::default(),
            closed: false,
        }
    }

    /// Whether a message is to be offered.
    pub(crate) fn wants(&mut self, to: u32, bytes: u64) -> bool {
        if self.interfaces.len() < 2 || !self.far.get(to as usize).is_some_and(|far| *far) {
            return false;
        }
        self.link(to).wants(bytes)
    }

    /// A message was offered under this key: its bytes stay at `start` until the shim hears of `name`.
    pub(crate) fn offer(&mut self, to: u32, key: u32, start: usize, bytes: u64, name: u64) {
        let offer = Offer {
            start,
            bytes,
            name,
            on_rails: false,
        };
        self.link(to).offer(key, offer);
    }

    /// A message that was offered to us was matched.
    pub(crate) fn matched(&mut self, matched: &Matched, matcher: &mut Matcher, wire: &mut Wire) {
        let now = clock::now();
        let (link, mut around) = self.around(matched.envelope.source, matcher, wire);
        link.matched(
            now,
            matched.key,
            matched.receive,
            matched.envelope,
            &mut around,
        );
    }

    /// A message that was offered to us came on the shadow channel.
    pub(crate) fn came(&mut self, source: u32, key: u32) {
        let now = clock::now();
        self.link(source).came(now, key);
    }

    /// Another process says something.
    ///
    /// # Errors
    /// When it is nothing that it could say.
    pub(crate) fn notice(
        &mut self,
        from: u32,
        bytes: &[u8],
        matcher: &mut Matcher,
        wire: &mut Wire,
    ) -> Result<(), BadNotice> {
        if self.closed {
            return Ok(());
        }
        let now = clock::now();
        let (link, mut around) = self.around(from, matcher, wire);
        link.notice(now, bytes, &mut around)
    }

    /// One look at all rails on which something is under way; on how many something came.
    pub(crate) fn step(&mut self, matcher: &mut Matcher, wire: &mut Wire) -> usize {
        if self.known.is_empty() || self.closed {
            return 0;
        }
        let now = clock::now();
        let mut found = 0;
        for index in 0..self.known.len() {
            let peer = self.known[index];
            let (link, mut around) = self.around(peer, matcher, wire);
            found += usize::from(link.step(now, &mut around));
        }
        found
    }

    /// Offers that are open.
    pub(crate) fn open_offers(&self) -> usize {
        let links = self.links.iter().flatten();
        links.map(|link| link.carrier().open_offers()).sum()
    }

    /// All ranks have what was sent to them.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.links
            .iter_mut()
            .flatten()
            .for_each(|link| link.close());
    }

    /// For the report.
    pub(crate) fn describe(&self) -> [(&'static str, Value); 6] {
        let known = self.known.iter().filter_map(|peer| {
            let carrier = self.links[*peer as usize].as_ref()?.carrier();
            let state = match (carrier.is_off(), carrier.is_open()) {
                (true, _) => "off",
                (false, true) => "open",
                (false, false) => "closed",
            };
            Some(json!({"rank": peer, "state": state, "from": carrier.offers_from()}))
        });
        let counters = &self.counters;
        [
            ("by_rails", json!(counters.by_rails)),
            ("by_rails_bytes", json!(counters.by_rails_bytes)),
            ("answered_plain", json!(counters.answered_plain)),
            ("fell_back", json!(counters.fell_back)),
            ("rails_failed", json!(counters.rails_failed)),
            ("rails", known.collect()),
        ]
    }

    /// The link to a rank of the job.
    fn link(&mut self, peer: u32) -> &mut Link {
        let known = &mut self.known;
        self.links[peer as usize].get_or_insert_with(|| {
            known.push(peer);
            Box::new(Link::new(peer))
        })
    }

    fn around<'a>(
        &'a mut self,
        peer: u32,
        matcher: &'a mut Matcher,
        wire: &'a mut Wire,
    ) -> (&'a mut Link, Around<'a>) {
        let known = &mut self.known;
        let link = self.links[peer as usize].get_or_insert_with(|| {
            known.push(peer);
            Box::new(Link::new(peer))
        });
        let around = Around {
            matcher,
            wire,
            counters: &mut self.counters,
            interfaces: &self.interfaces,
            secret: self.secret,
            rank: self.rank,
            give_up: self.give_up,
        };
        (link, around)
    }
}

/// The interfaces that rails may use, up to 8.
fn usable(names: &RailNames) -> Vec<Interface> {
    let all = interfaces::list().unwrap_or_default();
    let mut found: Vec<Interface> = match names {
        RailNames::Off => Vec::new(),
        RailNames::All => all
            .into_iter()
            .filter(|one| !one.address.is_loopback())
            .collect(),
        RailNames::Named(names) => names
            .iter()
            .filter_map(|name| all.iter().find(|one| one.name == *name).cloned())
            .collect(),
    };
    found.truncate(MAX_RAILS);
    found
}
