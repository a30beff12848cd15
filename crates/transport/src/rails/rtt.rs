//! Round-trip times of a rail and the time after which silence is asked about (RFC 9002, sections 5 and 6.2).

use raddle_units::{Span, Time};

/// Round-trip times of one rail.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    sampled: bool,
    latest: Span,
    smoothed: Span,
    variation: Span,
    least: Span,
}

impl Rtt {
    /// A packet sent at `sent` was acknowledged at `now` by a receiver that waited for `delay`.
    pub(super) fn sample(&mut self, now: Time, sent: Time, delay: Span) {
        let whole = now.since(sent);
        if !self.sampled {
            *self = Self {
                sampled: true,
                latest: whole,
                smoothed: whole,
                variation: Span(whole.0 / 2),
                least: whole,
            };
            return;
        }
        self.least = self.least.min(whole);
        // What the receiver says is believed only as far as it leaves the least time.
        self.latest = if whole >= self.least + delay {
            whole - delay
        } else {
            whole
        };
        let difference = self.smoothed.0.abs_diff(self.latest.0);
        self.variation = Span((3 * self.variation.0 + difference) / 4);
        self.smoothed = Span((7 * self.smoothed.0 + self.latest.0) / 8);
    }

    /// Whether there is a sample.
    pub(super) const fn is_known(&self) -> bool {
        self.sampled
    }

    /// The last one.
    pub(super) const fn latest(&self) -> Span {
        self.latest
    }

    /// The least one.
    pub(super) const fn least(&self) -> Span {
        self.least
    }

    /// The mean, older ones counting less.
    pub(super) const fn smoothed(&self) -> Span {
        self.smoothed
    }

    /// How long an acknowledgement may take, with a receiver that waits for up to `delay`; at least `least` (PTO, section 6.2.1).
    pub(super) fn patience(&self, delay: Span, least: Span) -> Span {
        (self.smoothed + Span(4 * self.variation.0) + delay).max(least)
    }

    /// How long after a packet one sent before it counts as lost: 9/8 of a round trip (section 6.1.2).
    pub(super) fn reordering(&self) -> Span {
        let rtt = self.smoothed.max(self.latest);
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
        // Section 5.3: adjusted 120, rttvar 3/4 50 + 1/4 20, smoothed 7/8 100 + 1/8 120.
        rtt.sample(at(us(150)), Time::ZERO, us(30));
        assert_eq!((rtt.latest(), rtt.smoothed()), (us(120), Span(102_500_000)));
        assert_eq!(rtt.variation, Span(42_500_000));
        assert_eq!(rtt.patience(us(10), us(1)), Span(282_500_000));
        assert_eq!(rtt.patience(us(10), us(500)), us(500));
        assert_eq!(rtt.reordering(), us(135));
        // A delay that would lead below the least is not believed.
        rtt.sample(at(us(110)), Time::ZERO, us(30));
        assert_eq!(rtt.latest(), us(110));
    }
}
