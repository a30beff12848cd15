//! What a member says and hears, in words: drivers write it down, so that what happens in two worlds can be compared.

use core::fmt::{self, Display, Formatter};

use raddle_wire::native::{JobKey, Kind, Unverified};

/// A message between a member and its switch, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// The round.
    pub round: u32,
    /// The segment, numbered on through all rounds.
    pub segment: u32,
    /// Whether it was sent before.
    pub resent: bool,
}

impl Seen {
    /// The message that a datagram carries; `None`: it is none of the key's job.
    #[must_use]
    pub fn of(payload: &[u8], key: &JobKey) -> Option<Self> {
        let message = Unverified::parse(payload, 0).ok()?.verify(key).ok()?;
        Some(Self {
            kind: message.kind,
            round: message.header.round(),
            segment: message.header.segment(),
            resent: message.header.resent(),
        })
    }
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let again = if self.resent { " again" } else { "" };
        write!(f, "{:?} {}.{}{again}", self.kind, self.round, self.segment)
    }
}
