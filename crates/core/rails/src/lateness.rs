//! How long hosts let packets wait, as far back as it matters.

use raddle_units::{Span, Time};

/// The longest of what was seen in this period and in the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Longest {
    begun: Time,
    now: Span,
    before: Span,
}

impl Longest {
    /// Something took `span`; periods are `period` long.
    pub(super) fn add(&mut self, now: Time, span: Span, period: Span) {
        let age = now.since(self.begun);
        if age >= period {
            self.before = if age < period * 2 {
                self.now
            } else {
                Span::ZERO
            };
            self.now = Span::ZERO;
            self.begun = now;
        }
        self.now = self.now.max(span);
    }

    /// The longest.
    pub(super) fn get(&self) -> Span {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all that was seen: nothing of the last period is forgotten, nothing older than two is remembered.
    #[test]
    fn it_is_between_the_longest_of_one_and_of_two_periods() {
        let (mut longest, mut seen) = (Longest::default(), Vec::<(Time, Span)>::new());
        let (mut now, mut state, period) = (Time::ZERO, 1_u64, Span::from_us(20));
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            now +=
                Span::from_us((state >> 33) % 5 + 60 * u64::from((state >> 40).is_multiple_of(50)));
            let span = Span((state >> 45) % 1000);
            longest.add(now, span, period);
            seen.push((now, span));
            let lately = |age: Span| {
                let young = seen.iter().rev().take_while(|(at, _)| now.since(*at) < age);
                young.map(|(_, span)| *span).max()
            };
            assert!(lately(period).is_none_or(|least| longest.get() >= least));
            assert!(lately(period * 3).is_some_and(|most| longest.get() <= most));
        }
    }
}
