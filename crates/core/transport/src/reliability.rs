//! Go-back-N over a lossless or lossy network: the sender's and the receiver's sequence state.
//!
//! Sequence numbers count bytes of one message from 0. The receiver accepts data in order only; a gap makes it ask for
//! the first missing byte (NACK), at most once per [`NackPolicy::interval`] for the same byte. The sender then starts
//! again there. Source: the RoCE reliable connection as modelled in HPCC's simulator; where a real NIC differs
//! (duplicates are acknowledged again, a timeout exists) [`Duplicates`] and [`Sender::on_timeout`] say so.

use raddle_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// The sender's half: what was sent, what was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    size: u64,
    next: u64,
    acked: u64,
}

/// What an acknowledgement did to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More bytes are acknowledged than before.
    Advanced,
    /// Nothing new.
    Duplicate,
    /// The whole message is acknowledged (said once).
    Complete,
}

impl Sender {
    /// A message of `size` bytes, none of it sent.
    pub const fn new(size: u64) -> Self {
        Self {
            size,
            next: 0,
            acked: 0,
        }
    }

    /// Takes the next segment of at most `mtu` bytes: its first byte and length. The caller has checked
    /// [`Self::has_data`].
    #[inline]
    pub fn take_segment(&mut self, mtu: u64) -> (u64, u64) {
        let seq = self.next;
        let payload = mtu.min(self.size - seq);
        self.next += payload;
        (seq, payload)
    }

    /// A cumulative acknowledgement of all bytes below `seq`.
    #[inline]
    pub fn on_ack(&mut self, seq: u64) -> Progress {
        if seq <= self.acked {
            return Progress::Duplicate;
        }
        self.acked = seq.min(self.size);
        // After going back, an acknowledgement of earlier transmissions may overtake what is being sent again.
        self.next = self.next.max(self.acked);
        if self.acked == self.size {
            Progress::Complete
        } else {
            Progress::Advanced
        }
    }

    /// Go back to the first byte that is not acknowledged (NACK or timeout). Returns the bytes that will be sent again.
    pub fn on_timeout(&mut self) -> u64 {
        let again = self.next - self.acked;
        self.next = self.acked;
        again
    }

    /// Bytes of the message.
    #[inline]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The next byte to send (`snd_nxt`).
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The first byte that is not acknowledged (`snd_una`).
    #[inline]
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// Bytes sent and not yet acknowledged.
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.next - self.acked
    }

    /// Whether bytes are left to send.
    #[inline]
    pub const fn has_data(&self) -> bool {
        self.next < self.size
    }

    /// Whether all bytes are acknowledged.
    #[inline]
    pub const fn is_complete(&self) -> bool {
        self.acked >= self.size
    }
}

/// What a receiver does with data it already has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplicates {
    /// Acknowledge again, so that a lost acknowledgement is repaired (InfiniBand, IBTA 9.7.5.1.3).
    #[default]
    Acknowledge,
    /// Say nothing (the HPCC simulator).
    Ignore,
}

/// How often a missing byte is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackPolicy {
    /// Least time between two NACKs for the same byte.
    pub interval: Span,
    /// What to do with duplicates.
    pub duplicates: Duplicates,
}

/// The receiver's half: the next byte it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receiver {
    expected: u64,
    nack_again_at: Time,
    nacked: u64,
}

/// The receiver's answer to one data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Acknowledge all bytes below; the packet was accepted.
    Ack(u64),
    /// Acknowledge all bytes below again; the packet was a duplicate.
    AckAgain(u64),
    /// Ask for this byte; the packet was dropped.
    Nack(u64),
    /// Nothing; the packet was dropped.
    Silence,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            expected: 0,
            nack_again_at: Time::ZERO,
            nacked: u64::MAX,
        }
    }
}

impl Receiver {
    /// A data packet of `payload` bytes from byte `seq` on.
    #[inline]
    pub fn on_data(&mut self, now: Time, seq: u64, payload: u64, policy: &NackPolicy) -> Answer {
        if seq == self.expected {
            self.expected += payload;
            return Answer::Ack(self.expected);
        }
        self.on_disorder(now, seq, policy)
    }

    #[cold]
    fn on_disorder(&mut self, now: Time, seq: u64, policy: &NackPolicy) -> Answer {
        if seq > self.expected {
            if now >= self.nack_again_at || self.nacked != self.expected {
                self.nack_again_at = now + policy.interval;
                self.nacked = self.expected;
                return Answer::Nack(self.expected);
            }
            return Answer::Silence;
        }
        match policy.duplicates {
            Duplicates::Acknowledge => Answer::AckAgain(self.expected),
            Duplicates::Ignore => Answer::Silence,
        }
    }

    /// The next byte it waits for: all below have arrived.
    #[inline]
    pub const fn expected(&self) -> u64 {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: NackPolicy = NackPolicy {
        interval: Span::from_us(500),
        duplicates: Duplicates::Acknowledge,
    };

    #[test]
    fn a_gap_is_asked_for_once_per_interval() {
        let mut receiver = Receiver::default();
        assert_eq!(
            receiver.on_data(Time(0), 0, 1000, &POLICY),
            Answer::Ack(1000)
        );
        assert_eq!(
            receiver.on_data(Time(1), 2000, 1000, &POLICY),
            Answer::Nack(1000)
        );
        assert_eq!(
            receiver.on_data(Time(2), 3000, 1000, &POLICY),
            Answer::Silence
        );
        let later = Time(1) + POLICY.interval;
        assert_eq!(
            receiver.on_data(later, 4000, 1000, &POLICY),
            Answer::Nack(1000)
        );
        assert_eq!(
            receiver.on_data(later, 0, 1000, &POLICY),
            Answer::AckAgain(1000)
        );
    }

    #[test]
    fn an_old_acknowledgement_after_going_back_moves_both_ends() {
        let mut sender = Sender::new(5000);
        for _ in 0..4 {
            sender.take_segment(1000);
        }
        assert_eq!(sender.on_ack(1000), Progress::Advanced);
        assert_eq!(sender.on_timeout(), 3000);
        assert_eq!(sender.on_ack(3000), Progress::Advanced);
        assert_eq!((sender.next(), sender.in_flight()), (3000, 0));
        assert_eq!(sender.on_ack(5000), Progress::Complete);
        assert_eq!(sender.on_ack(5000), Progress::Duplicate);
    }

    #[test]
    fn any_loss_pattern_delivers_every_byte_once_and_in_order() {
        // Loss decided by the bits of a counter: every pattern of 12 transmissions is tried.
        for pattern in 0..1u32 << 12 {
            let (mut sender, mut receiver) = (Sender::new(3500), Receiver::default());
            let (mut now, mut sent, mut delivered) = (Time(0), 0, 0);
            while !sender.is_complete() {
                now += Span::from_ms(1);
                if !sender.has_data() {
                    sender.on_timeout();
                }
                let (seq, payload) = sender.take_segment(1000);
                let lost = sent < 12 && pattern >> sent & 1 == 1;
                sent += 1;
                assert!(sent < 100, "pattern {pattern:b} does not end");
                if lost {
                    continue;
                }
                match receiver.on_data(now, seq, payload, &POLICY) {
                    Answer::Ack(upto) => {
                        delivered += payload;
                        sender.on_ack(upto);
                    }
                    Answer::AckAgain(upto) => {
                        sender.on_ack(upto);
                    }
                    Answer::Nack(from) => {
                        sender.on_ack(from);
                        sender.on_timeout();
                    }
                    Answer::Silence => {}
                }
            }
            assert_eq!(delivered, 3500);
        }
    }
}
