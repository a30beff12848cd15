//! Reliable multicast to a group: the sender's progress, the member that congestion control listens to, and members that
//! get every packet twice.
//!
//! Every member acknowledges as in [`crate::reliability`]. The sender's progress is the least over the members, so that its
//! window and its go-back-N are those of the slowest; what is sent again goes to the whole group, and members drop what they
//! have.

use raddle_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::reliability::{Answer, NackPolicy, Receiver};

/// What the members of a group have acknowledged of one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupProgress {
    /// By member; [`GONE`]: the sender does not wait for it any more.
    acked: Box<[u64]>,
    least: u64,
    /// Members whose progress is the least.
    at_least: usize,
}

const GONE: u64 = u64::MAX;

impl GroupProgress {
    /// A message of which `members` members (one or more) have nothing yet.
    pub fn new(members: usize) -> Self {
        Self {
            acked: vec![0; members].into(),
            least: 0,
            at_least: members,
        }
    }

    /// Member `member` has all bytes below `seq`. Gives the bytes that are new of this member.
    #[inline]
    pub fn on_ack(&mut self, member: usize, seq: u64) -> u64 {
        let acked = &mut self.acked[member];
        if seq <= *acked {
            return 0;
        }
        let before = std::mem::replace(acked, seq);
        if before == self.least {
            self.at_least -= 1;
            if self.at_least == 0 {
                self.find_least();
            }
        }
        seq - before
    }

    /// All members have all bytes below. [`u64::MAX`]: none is left to wait for.
    #[inline]
    pub const fn least(&self) -> u64 {
        self.least
    }

    /// The sender does not wait for a member any more.
    pub fn is_gone(&self, member: usize) -> bool {
        self.acked[member] == GONE
    }

    /// The sender gives up waiting for the members that have least, and goes on with the others. Gives their places.
    pub fn leave_slowest(&mut self) -> Vec<usize> {
        let slowest: Vec<usize> = (0..self.acked.len())
            .filter(|&member| self.acked[member] == self.least && self.least != GONE)
            .collect();
        for &member in &slowest {
            self.acked[member] = GONE;
        }
        self.find_least();
        slowest
    }

    // The least grows each time: at most once per segment of the message.
    fn find_least(&mut self) {
        self.least = self.acked.iter().copied().min().unwrap_or(GONE);
        self.at_least = self
            .acked
            .iter()
            .filter(|&&acked| acked == self.least)
            .count();
    }
}

/// The member whose acknowledgements congestion control is fed with: the one whose path delays packets most, as the acker
/// of pgmcc (Rizzo, SIGCOMM 2000). All of them together would mix the telemetry and the times of different paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acker {
    member: Option<u32>,
    delay: Span,
}

/// What a member's acknowledgement is to congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckerChoice {
    /// The acker's: hand it on.
    Same,
    /// A new acker's: hand it on as the first of another path.
    Changed,
    /// Another member's: keep its mark for the acker's next.
    Other,
}

impl Acker {
    /// An acknowledgement of `member`, whose packet took `delay` longer than on the idle path. Another member becomes the
    /// acker when its delay is by a third larger (pgmcc's c = 0.75) and by more than `margin`, which is below what one packet
    /// in the way makes.
    pub fn on_ack(&mut self, member: u32, delay: Span, margin: Span) -> AckerChoice {
        match self.member {
            Some(acker) if acker == member => {
                self.delay = delay;
                AckerChoice::Same
            }
            Some(_) if delay.0 <= self.delay.0 + (self.delay.0 / 3).max(margin.0) => {
                AckerChoice::Other
            }
            before => {
                (self.member, self.delay) = (Some(member), delay);
                if before.is_some() {
                    AckerChoice::Changed
                } else {
                    AckerChoice::Same
                }
            }
        }
    }

    /// The sender does not wait for `member` any more: the next to acknowledge takes its place.
    pub fn forget(&mut self, member: u32) {
        if self.member == Some(member) {
            *self = Self::default();
        }
    }
}

/// The receiver's half at a member of a group, whose packets may come twice: over two trees without a common link, of which
/// one may be cut. The first copy counts; the second one is dropped without an answer.
///
/// The copies of a packet carry the same time of sending, a packet that is sent again carries a later one: what was sent no
/// later than something that came before is a second copy (or the first, if that one was lost). Links keep the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemberReceiver {
    receiver: Receiver,
    /// The latest time of sending seen, plus 1 ps; 0: nothing came yet.
    seen: u64,
}

impl MemberReceiver {
    /// A data packet of `payload` bytes from byte `seq` on, sent at `sent_at`. `None`: a second copy. `twice`: every packet is
    /// sent over two trees, so that a gap is one only when the other tree has passed it too.
    pub fn on_data(
        &mut self,
        now: Time,
        sent_at: Time,
        seq: u64,
        payload: u64,
        twice: bool,
        policy: &NackPolicy,
    ) -> Option<Answer> {
        let first = sent_at.0 >= self.seen;
        self.seen = self.seen.max(sent_at.0 + 1);
        let expected = self.receiver.expected();
        if twice && !first && seq < expected {
            return None;
        }
        if twice && first && seq > expected {
            return Some(Answer::Silence);
        }
        Some(self.receiver.on_data(now, seq, payload, policy))
    }

    /// The next byte it waits for: all below have arrived.
    pub const fn expected(&self) -> u64 {
        self.receiver.expected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::Duplicates;

    const POLICY: NackPolicy = NackPolicy {
        interval: Span::from_us(500),
        duplicates: Duplicates::Acknowledge,
    };

    #[test]
    fn progress_is_the_least_over_the_members() {
        let mut progress = GroupProgress::new(3);
        for (member, seq, new, least) in [
            (0, 1000, 1000, 0),
            (2, 3000, 3000, 0),
            (1, 2000, 2000, 1000),
            (0, 500, 0, 1000),
            (0, 3000, 2000, 2000),
            (1, 3000, 1000, 3000),
        ] {
            assert_eq!(progress.on_ack(member, seq), new);
            assert_eq!(progress.least(), least);
        }
    }

    #[test]
    fn the_slowest_members_can_be_left_behind() {
        let mut progress = GroupProgress::new(4);
        for (member, seq) in [(0, 1000), (1, 2000), (3, 1000)] {
            progress.on_ack(member, seq);
        }
        assert_eq!(progress.leave_slowest(), [2]);
        assert_eq!((progress.least(), progress.is_gone(2)), (1000, true));
        assert_eq!(progress.on_ack(2, 5000), 0);
        assert_eq!(progress.leave_slowest(), [0, 3]);
        assert_eq!(progress.leave_slowest(), [1]);
        assert_eq!(progress.least(), u64::MAX);
        assert!(progress.leave_slowest().is_empty());
    }

    #[test]
    fn the_acker_changes_only_to_a_member_that_is_clearly_slower() {
        let (mut acker, margin) = (Acker::default(), Span(10));
        for (member, delay, choice) in [
            (4, 0, AckerChoice::Same),
            (5, 10, AckerChoice::Other),
            (5, 11, AckerChoice::Changed),
            (5, 90, AckerChoice::Same),
            (4, 120, AckerChoice::Other),
            (4, 121, AckerChoice::Changed),
            (4, 6, AckerChoice::Same),
            (5, 90, AckerChoice::Changed),
        ] {
            assert_eq!(acker.on_ack(member, Span(delay), margin), choice);
        }
        acker.forget(4);
        assert_eq!(acker.on_ack(4, Span(1), margin), AckerChoice::Other);
        acker.forget(5);
        assert_eq!(acker.on_ack(4, Span(1), margin), AckerChoice::Same);
    }

    /// Every way to lose packets on two trees with every way of their copies to overtake each other: the member takes each
    /// byte once, and answers no copy whose twin it has.
    #[test]
    fn whatever_one_tree_loses_the_other_brings() {
        const PACKETS: usize = 4;
        for lost in 0..1u32 << (2 * PACKETS) {
            // Bit i of `order` says which tree delivers next.
            for order in 0..1u32 << (2 * PACKETS) {
                if order.count_ones() as usize != PACKETS {
                    continue;
                }
                let (mut member, mut at, mut taken) = (MemberReceiver::default(), [0; 2], 0);
                for step in 0..2 * PACKETS {
                    let tree = (order >> step & 1) as usize;
                    let packet = at[tree];
                    at[tree] += 1;
                    if lost >> (tree * PACKETS + packet) & 1 == 1 {
                        continue;
                    }
                    let (sent_at, seq) = (Time(packet as u64), packet as u64);
                    let answer =
                        member.on_data(Time(100 + step as u64), sent_at, seq, 1, true, &POLICY);
                    match answer {
                        Some(Answer::Ack(upto)) => {
                            assert_eq!(upto, seq + 1);
                            taken += 1;
                        }
                        Some(Answer::AckAgain(_)) => {
                            panic!("{lost:b} {order:b}: a twin was answered")
                        }
                        Some(Answer::Nack(from)) => assert!(
                            at.iter().all(|&passed| passed as u64 > from),
                            "{lost:b} {order:b}: byte {from} may still come"
                        ),
                        Some(Answer::Silence) | None => {}
                    }
                }
                assert_eq!(taken, member.expected());
                let one_tree_whole = [0, 1]
                    .iter()
                    .any(|tree| lost >> (tree * PACKETS) & ((1 << PACKETS) - 1) == 0);
                if one_tree_whole {
                    assert_eq!(taken, PACKETS as u64, "{lost:b} {order:b}");
                }
            }
        }
    }

    #[test]
    fn what_is_sent_again_is_acknowledged_again() {
        let mut member = MemberReceiver::default();
        let mut data = |sent_at, seq| member.on_data(Time(0), Time(sent_at), seq, 1, true, &POLICY);
        assert_eq!(data(5, 0), Some(Answer::Ack(1)));
        assert_eq!(data(5, 0), None);
        assert_eq!(data(9, 0), Some(Answer::AckAgain(1)));
        assert_eq!(data(9, 0), None);
    }
}
