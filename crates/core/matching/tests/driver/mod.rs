//! Drives a matcher as a program's driver does: makes calls, hands parcels in and keeps what comes out. The tests here,
//! those inside the crate and the fuzz target share it.

use raddle_matching::{Envelope, Event, Matcher, Parcel, Refused, Transmit};

/// What a matcher gave out, in order.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    /// Parcels to send, each with its receiver.
    pub(crate) parcels: Vec<(u32, Parcel)>,
    /// What receives got: receive, message, and the bytes that fit.
    pub(crate) delivered: Vec<(u64, Envelope, Vec<u8>)>,
    /// Messages by reference that are to be fetched or set aside.
    pub(crate) by_reference: Vec<Event>,
    /// Notices, each with its sender.
    pub(crate) notices: Vec<(u32, Vec<u8>)>,
}

impl Driver {
    /// Makes a call, then does what the matcher wants done.
    pub(crate) fn call<T>(
        &mut self,
        matcher: &mut Matcher,
        call: impl FnOnce(&mut Matcher) -> T,
    ) -> T {
        let outcome = call(matcher);
        self.drain(matcher, &[]);
        outcome
    }

    /// Hands a parcel in, then does what the matcher wants done.
    pub(crate) fn handle_parcel(
        &mut self,
        matcher: &mut Matcher,
        from: u32,
        parcel: &[u8],
    ) -> Result<(), Refused> {
        let outcome = matcher.handle_parcel(from, parcel);
        self.drain(matcher, parcel);
        outcome
    }

    fn drain(&mut self, matcher: &mut Matcher, parcel: &[u8]) {
        while let Some(event) = matcher.poll_event() {
            match event {
                Event::Delivered {
                    receive,
                    message,
                    contents,
                } => {
                    let bytes = contents.bytes(parcel).to_vec();
                    self.delivered.push((receive, message, bytes));
                    matcher.give_back(contents);
                }
                Event::Fetch { .. } | Event::SetAside { .. } => self.by_reference.push(event),
                Event::Notice { from, contents } => {
                    self.notices.push((from, contents.bytes(parcel).to_vec()));
                    matcher.give_back(contents);
                }
            }
        }
        while let Some(Transmit { to, parcel }) = matcher.poll_transmit() {
            self.parcels.push((to, parcel));
        }
    }
}
