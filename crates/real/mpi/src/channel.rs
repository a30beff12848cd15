//! The channel between the ranks of a job, which the shim keeps beside the program's messages: what the matcher and rails have
//! it do there.

use raddle_matching::{Envelope, Event, Fetch, Matcher, Parcel, Transmit};
use slab::Slab;

use crate::ffi::{self, RaddleChannel, RaddleEnvelope};

impl From<Envelope> for RaddleEnvelope {
    fn from(message: Envelope) -> Self {
        Self {
            bytes: message.bytes,
            context: message.context,
            source: message.source,
            tag: message.tag,
        }
    }
}

/// A message that was offered to this process and matched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    pub(crate) receive: u64,
    pub(crate) envelope: Envelope,
    pub(crate) key: u32,
}

/// What the matcher decides goes to the shim after each call.
pub(crate) struct Wire {
    pub(crate) channel: &'static RaddleChannel,
    /// On their way out, by slot.
    parcels: Slab<Parcel>,
    /// For rails, since the last turn.
    pub(crate) matched: Vec<Matched>,
    pub(crate) notices: Vec<(u32, Vec<u8>)>,
}

impl Wire {
    /// What the shim does for the matcher; `None`: no shim is attached.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the table of an attached shim is static.
        let channel = unsafe { ffi::shim()?.channel.as_ref()? };
        Some(Self {
            channel,
            parcels: Slab::new(),
            matched: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// The shim has sent what is in this slot; its parcel can be used again.
    pub(crate) fn sent(&mut self, slot: u32) -> Option<Parcel> {
        self.parcels.try_remove(slot as usize)
    }

    /// Does what the matcher has found in a call; `parcel` is the one that was handled, if one was.
    #[inline]
    pub(crate) fn drain(&mut self, matcher: &mut Matcher, parcel: &[u8]) {
        if matcher.has_output() {
            self.drain_all(matcher, parcel);
        }
    }

    fn drain_all(&mut self, matcher: &mut Matcher, parcel: &[u8]) {
        while let Some(event) = matcher.poll_event() {
            match event {
                Event::Delivered {
                    receive,
                    message,
                    contents,
                } => {
                    self.deliver(receive, message, contents.bytes(parcel));
                    matcher.give_back(contents);
                }
                Event::Fetch {
                    receive,
                    message,
                    from,
                    ..
                } => self.fetch(receive, message, from),
                Event::SetAside {
                    aside,
                    message,
                    key,
                } => {
                    let message = RaddleEnvelope::from(message);
                    // SAFETY: a call with a record that lives as long.
                    unsafe { (self.channel.set_aside)(aside, &raw const message, key) }
                }
                Event::Notice { from, contents } => {
                    self.notices.push((from, contents.bytes(parcel).to_vec()));
                }
            }
        }
        while let Some(Transmit { to, parcel }) = matcher.poll_transmit() {
            self.send(to, parcel);
        }
    }

    fn send(&mut self, to: u32, parcel: Parcel) {
        let bytes = parcel.bytes();
        let (start, length) = (bytes.as_ptr().cast(), bytes.len());
        // The bytes stay where they are when their owner moves.
        let slot = self.parcels.insert(parcel) as u32;
        // SAFETY: the bytes stay until the shim calls `sent` with this slot.
        unsafe { (self.channel.send)(to, start, length, slot) }
    }

    fn deliver(&self, receive: u64, message: Envelope, bytes: &[u8]) {
        let message = RaddleEnvelope::from(message);
        // SAFETY: the shim gave this name to a receive that is not complete; it copies the bytes.
        unsafe {
            (self.channel.deliver)(
                receive,
                &raw const message,
                bytes.as_ptr().cast(),
                bytes.len(),
            );
        }
    }

    fn fetch(&mut self, receive: u64, envelope: Envelope, from: Fetch) {
        let message = RaddleEnvelope::from(envelope);
        // SAFETY: the shim gave this name to a receive that is not complete.
        unsafe {
            match from {
                Fetch::Key(key) => (self.channel.fetch)(receive, &raw const message, key),
                Fetch::Aside(aside) => {
                    (self.channel.fetch_aside)(receive, &raw const message, aside);
                }
                Fetch::Offered(key) => self.matched.push(Matched {
                    receive,
                    envelope,
                    key,
                }),
            }
        }
    }
}
