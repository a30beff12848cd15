//! Round-trip times of a rail, with and without the time that hosts take, and the time after which silence is asked about
//! (RFC 9002, sections 5 and 6.2).

use raddle_units::{Span, Time};

/// Round-trip times of one rail.
///
/// Deviation from RFC 9002, section 5.3: what the receiver says of its delay is not left out of the times that tell when a
/// packet is overdue or lost, for those compare with times at which this host looks. The network's own time is kept beside
/// them, for congestion control: there a host that lets packets wait is no queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    sampled: bool,
    whole: Span,
    smoothed_whole: Span,
    variation: Span,
    least: Span,
    network: Span,
    smoothed: Span,
}

impl Rtt {
    /// A packet sent at `sent` was acknowledged at `now`; hosts let it and its acknowledgement wait for `waited` in all.
    pub(super) fn sample(&mut self, now: Time, sent: Time, waited: Span) {
        let whole = now.since(sent);
        if !self.sampled {
            *self = Self {
                sampled: true,
                whole,
                smoothed_whole: whole,
                variation: Span(whole.0 / 2),
                least: match self.least {
                    Span::ZERO => whole,
                    least => least.min(whole),
                },
                network: whole,
                smoothed: whole,
            };
            return;
        }
        self.whole = whole;
        let difference = self.smoothed_whole.0.abs_diff(whole.0);
        self.variation = Span((3 * self.variation.0 + difference) / 4);
        self.smoothed_whole = Span((7 * self.smoothed_whole.0 + whole.0) / 8);
        self.least = self.least.min(whole);
        // What hosts say is believed as far as it leaves the least time.
        self.network = Span(whole.0.saturating_sub(waited.0)).max(self.least);
        self.smoothed = Span((7 * self.smoothed.0 + self.network.0) / 8);
    }

    /// Another connection over the same links found `least`; 0: it found none. Who begins beside others sees their queue in
    /// each of its own samples, would take it for the links' own time, and would aim at a longer queue than they do.
    pub(super) fn hear(&mut self, least: Span) {
        if least > Span::ZERO && (self.least == Span::ZERO || least < self.least) {
            self.least = least;
        }
    }

    /// The rail was silent: all begins anew but the least time, lest that of a queue on its return be taken for it.
    pub(super) fn restart(&mut self) {
        *self = Self {
            least: self.least,
            ..Self::default()
        };
    }

    /// Whether there is a sample.
    pub(super) const fn is_known(&self) -> bool {
        self.sampled
    }

    /// The network's last one.
    pub(super) const fn latest(&self) -> Span {
        self.network
    }

    /// The least one.
    pub(super) const fn least(&self) -> Span {
        self.least
    }

    /// The network's mean, older ones counting less.
    pub(super) const fn smoothed(&self) -> Span {
        self.smoothed
    }

    /// How long an acknowledgement may take, with a receiver that waits for up to `delay`; at least `least` (PTO, section 6.2.1).
    pub(super) fn patience(&self, delay: Span, least: Span) -> Span {
        (self.smoothed_whole + Span(4 * self.variation.0) + delay).max(least)
    }

    /// How long after a packet one sent before it counts as lost: 9/8 of a round trip (section 6.1.2).
    pub(super) fn reordering(&self) -> Span {
        let rtt = self.smoothed_whole.max(self.whole);
        Span(rtt.0 + rtt.0 / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_rfc_9002() {
        let mut rtt = Rtt::default();
        let us = Span::from_us;
        let at = |span: Span| Time::ZERO + span;
        rtt.sample(at(us(100)), Time::ZERO, us(50));
        assert_eq!(
            (rtt.smoothed(), rtt.variation, rtt.least()),
            (us(100), us(50), us(100))
        );
        // Section 5.3: rttvar 3/4 50 + 1/4 50, smoothed 7/8 100 + 1/8 150; of the network 120, 7/8 100 + 1/8 120.
        rtt.sample(at(us(150)), Time::ZERO, us(30));
        assert_eq!((rtt.latest(), rtt.smoothed()), (us(120), Span(102_500_000)));
        assert_eq!(
            (rtt.smoothed_whole, rtt.variation),
            (Span(106_250_000), us(50))
        );
        assert_eq!(rtt.patience(us(10), us(1)), Span(316_250_000));
        assert_eq!(rtt.patience(us(10), us(500)), us(500));
        assert_eq!(rtt.reordering(), Span(168_750_000), "9/8 of 150 us");
    }

    #[test]
    fn the_least_may_be_heard_from_others() {
        let us = Span::from_us;
        let mut rtt = Rtt::default();
        rtt.hear(Span::ZERO);
        rtt.sample(Time::ZERO + us(900), Time::ZERO, Span::ZERO);
        assert_eq!(rtt.least(), us(900));
        rtt.hear(us(1000));
        assert_eq!(rtt.least(), us(900));
        rtt.hear(us(100));
        rtt.sample(Time::ZERO + us(900), Time::ZERO, Span::ZERO);
        assert_eq!((rtt.least(), rtt.latest()), (us(100), us(900)));
        // Before any sample too.
        let mut early = Rtt::default();
        early.hear(us(100));
        early.sample(Time::ZERO + us(900), Time::ZERO, Span::ZERO);
        assert_eq!((early.least(), early.smoothed()), (us(100), us(900)));
    }

    #[test]
    fn a_host_that_waits_is_no_queue_and_no_loss() {
        let mut rtt = Rtt::default();
        let us = Span::from_us;
        rtt.sample(Time::ZERO + us(100), Time::ZERO, Span::ZERO);
        for _ in 0..50 {
            rtt.sample(Time::ZERO + us(900), Time::ZERO, us(780));
        }
        assert_eq!(rtt.latest(), us(120));
        assert!(rtt.smoothed() <= us(120));
        assert!(rtt.reordering() > us(900) && rtt.patience(us(0), us(0)) > us(850));
        let mut again = rtt;
        again.restart();
        assert!(!again.is_known() && again.smoothed() == Span::ZERO);
        again.sample(Time::ZERO + us(5000), Time::ZERO, Span::ZERO);
        assert_eq!((again.least(), again.latest()), (us(100), us(5000)));
        // No more is left out than leaves the least.
        rtt.sample(Time::ZERO + us(900), Time::ZERO, us(890));
        assert_eq!(rtt.latest(), us(100));
    }
}
