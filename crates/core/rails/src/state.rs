//! What is known of the other node's rails, and how old it is.

use raddle_units::{Span, Time};

use super::rail_set::RailSet;

/// Whether a message that must choose waits until it knows the other node's rails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ask {
    /// No: what is known is used, and asked for anew. It costs nothing and may be wrong.
    #[default]
    Hint,
    /// Yes, for the answer to its question: a round trip ([MNC, section 3]: SReq and SAck).
    Wait,
}

/// The other node's rails as its last packet told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PeerState {
    busy: RailSet,
    heard: Option<Time>,
    /// A question is out that has not been answered.
    asked: bool,
    /// An answer came to a question that a message waits for.
    answered: bool,
}

/// What a message may do that is to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PeerKnowledge {
    /// Go on; `ask` says whether a question is to go out beside.
    Known {
        /// The other node's busy rails.
        busy: RailSet,
        /// The state is old: send a probe.
        ask: bool,
    },
    /// Wait; `ask` says whether a question is to go out, or is out already.
    Unknown {
        /// Send a probe.
        ask: bool,
    },
}

impl PeerState {
    /// Any packet of the other node says which of its rails are busy.
    pub(super) fn hear(&mut self, now: Time, busy: RailSet) {
        self.busy = busy;
        self.heard = Some(now);
    }

    /// An acknowledgement of a probe came: the question is answered.
    pub(super) fn answer(&mut self) {
        self.answered |= self.asked;
        self.asked = false;
    }

    /// What a message knows that is to choose at `now`, with what is older than `stale` being too old. An answer to a
    /// question serves one message, however old it is when the message looks.
    pub(super) fn consult(&mut self, now: Time, stale: Span, ask: Ask) -> PeerKnowledge {
        let fresh = self.heard.is_some_and(|heard| now.since(heard) <= stale);
        let answered = std::mem::take(&mut self.answered);
        if fresh || answered {
            return PeerKnowledge::Known {
                busy: self.busy,
                ask: false,
            };
        }
        let first = !std::mem::replace(&mut self.asked, true);
        match ask {
            Ask::Hint => PeerKnowledge::Known {
                busy: self.busy,
                ask: first,
            },
            Ask::Wait => PeerKnowledge::Unknown { ask: first },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: Span = Span::from_us(100);

    #[test]
    fn old_knowledge_is_asked_for_once_and_the_answer_serves_one_message() {
        let mut peer = PeerState::default();
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(
            peer.consult(at(0), STALE, Ask::Wait),
            PeerKnowledge::Unknown { ask: true }
        );
        assert_eq!(
            peer.consult(at(1), STALE, Ask::Wait),
            PeerKnowledge::Unknown { ask: false }
        );
        peer.hear(at(2), 0b10);
        assert_eq!(
            peer.consult(at(3), STALE, Ask::Wait),
            PeerKnowledge::Known {
                busy: 0b10,
                ask: false
            }
        );
        peer.answer();
        assert_eq!(
            peer.consult(at(900), STALE, Ask::Wait),
            PeerKnowledge::Known {
                busy: 0b10,
                ask: false
            }
        );
        assert_eq!(
            peer.consult(at(901), STALE, Ask::Wait),
            PeerKnowledge::Unknown { ask: true }
        );
    }

    #[test]
    fn a_hint_goes_on_with_what_is_known() {
        let mut peer = PeerState::default();
        peer.hear(Time::ZERO, 0b01);
        let late = Time::ZERO + Span::from_ms(1);
        assert_eq!(
            peer.consult(late, STALE, Ask::Hint),
            PeerKnowledge::Known {
                busy: 0b01,
                ask: true
            }
        );
        assert_eq!(
            peer.consult(late, STALE, Ask::Hint),
            PeerKnowledge::Known {
                busy: 0b01,
                ask: false
            }
        );
    }
}
