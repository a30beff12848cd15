//! Large messages over all rails of a host (`docs/concepts/matching.md`): what carries the messages that the matcher offers. A
//! [`Carrier`](raddle_matching::Carrier) per other process says how, `link` does it on `raddle_host::rails`.

mod ends;
mod link;

use std::{num::NonZeroUsize, time::Duration};

use raddle_host::{
    clock,
    interfaces::{self, Interface},
};
use raddle_matching::{BadNotice, Envelope, Matcher, Notice};
use raddle_units::Span;
use raddle_wire::{native::JobKey, rails::MAX_RAILS};
use serde_json::{Value, json};

use self::link::{Link, Offer};
use crate::{
    channel::{Matched, Wire},
    ffi::RaddleEnvelope,
    log,
    settings::RailNames,
};

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
struct Process<'a> {
    matcher: &'a mut Matcher,
    wire: &'a mut Wire,
    counters: &'a mut Counters,
    interfaces: &'a [Interface],
    secret: Secret,
    rank: u32,
    give_up: Span,
}

impl Process<'_> {
    fn notify(&mut self, to: u32, notice: &Notice) {
        let sent = self.matcher.notify(to, &notice.bytes());
        self.wire.drain(self.matcher, &[]);
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

    /// Where the message of a receive is to go, as an address; `None`: there is no memory for it.
    fn land(&self, receive: u64, envelope: &Envelope) -> Option<NonZeroUsize> {
        let envelope = RaddleEnvelope::from(*envelope);
        // SAFETY: the shim gave this name to a receive that is not complete.
        let room = unsafe { (self.wire.channel.land)(receive, &raw const envelope) };
        NonZeroUsize::new(room as usize)
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

/// The rails of this process.
pub(crate) struct Rails {
    interfaces: Vec<Interface>,
    /// Interfaces that were named and are not there.
    missing: usize,
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
        let (interfaces, missing) = usable(names, interfaces::list().unwrap_or_default());
        if !missing.is_empty() {
            log::plain(&complaint(names, &missing, interfaces.len()));
        }
        Self {
            interfaces,
            missing: missing.len(),
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
        let (link, mut process) = self.with_process(matched.envelope.source, matcher, wire);
        link.matched(
            now,
            matched.key,
            matched.receive,
            matched.envelope,
            &mut process,
        );
    }

    /// A message that was offered to us came on the shadow channel.
    pub(crate) fn message_came(&mut self, source: u32, key: u32) {
        let now = clock::now();
        self.link(source).message_came(now, key);
    }

    /// Another process says something.
    ///
    /// # Errors
    /// [`BadNotice`] when the bytes are not those of a notice, or of one that does not fit what was said before.
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
        let (link, mut process) = self.with_process(from, matcher, wire);
        link.notice(now, bytes, &mut process)
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
            let (link, mut process) = self.with_process(peer, matcher, wire);
            found += usize::from(link.step(now, &mut process));
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
    pub(crate) fn describe(&self) -> [(&'static str, Value); 7] {
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
            ("interfaces_missing", json!(self.missing)),
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

    fn with_process<'a>(
        &'a mut self,
        peer: u32,
        matcher: &'a mut Matcher,
        wire: &'a mut Wire,
    ) -> (&'a mut Link, Process<'a>) {
        let known = &mut self.known;
        let link = self.links[peer as usize].get_or_insert_with(|| {
            known.push(peer);
            Box::new(Link::new(peer))
        });
        let process = Process {
            matcher,
            wire,
            counters: &mut self.counters,
            interfaces: &self.interfaces,
            secret: self.secret,
            rank: self.rank,
            give_up: self.give_up,
        };
        (link, process)
    }
}

/// The interfaces of `all` that rails may use, up to 8, and the names that none has.
fn usable(names: &RailNames, all: Vec<Interface>) -> (Vec<Interface>, Vec<&str>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    match names {
        RailNames::Off => {}
        RailNames::All => found.extend(all.into_iter().filter(|one| !one.address.is_loopback())),
        RailNames::Named(names) => {
            for name in names {
                match all.iter().find(|one| one.name == *name) {
                    Some(one) => found.push(one.clone()),
                    None => missing.push(name.as_str()),
                }
            }
        }
    }
    found.truncate(MAX_RAILS);
    (found, missing)
}

/// The line for a user who named interfaces that are missing; `left` are used.
fn complaint(names: &RailNames, missing: &[&str], left: usize) -> String {
    let outcome = match left {
        0 | 1 => "no rails are used, since they take two",
        _ => "the others are used",
    };
    let missing = missing.join(", ");
    format!("RADDLE_RAILS={names}: no interface {missing} is up and has an IPv4 address; {outcome}")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn interfaces(names: &[&str]) -> Vec<Interface> {
        let interface = |(at, name): (u8, &&str)| Interface {
            name: (*name).to_owned(),
            address: match *name {
                "lo" => Ipv4Addr::LOCALHOST,
                _ => Ipv4Addr::new(10, 0, at, 1),
            },
            mask: Ipv4Addr::new(255, 255, 255, 0),
            mtu: 1500,
        };
        (0..).zip(names).map(interface).collect()
    }

    fn chosen<'a>(names: &'a RailNames, all: &[&str]) -> (Vec<String>, Vec<&'a str>) {
        let (found, missing) = usable(names, interfaces(all));
        (found.into_iter().map(|one| one.name).collect(), missing)
    }

    #[test]
    fn named_interfaces_are_taken_in_their_order_and_what_is_missing_is_told() {
        let names = |text: &str| RailNames::Named(text.split(',').map(str::to_owned).collect());
        let (three, all) = (names("e1,gone,e0"), ["lo", "e0", "e1", "e2"]);
        let (found, missing) = chosen(&three, &all);
        assert_eq!((found.len(), missing), (2, vec!["gone"]));
        assert_eq!(found, ["e1", "e0"]);
        assert_eq!(chosen(&names("e0,e1"), &all).1, [""; 0]);
        let told = complaint(&three, &["gone"], 2);
        assert!(told.contains("RADDLE_RAILS=e1,gone,e0") && told.ends_with("the others are used"));
        assert!(complaint(&three, &["gone", "e0"], 1).contains("gone, e0"));
        assert!(complaint(&three, &["gone", "e0"], 1).contains("no rails are used"));
    }

    #[test]
    fn without_names_it_is_the_first_eight_but_the_loopback() {
        let all = ["lo", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(chosen(&RailNames::All, &all).0, all[1..9]);
        assert_eq!(chosen(&RailNames::Off, &all), (vec![], vec![]));
    }
}
