//! Whether a switch without frames looks on or sleeps.
//!
//! Looking on finds the next frame tens of microseconds earlier than a wake-up does. The loop yields between looks, for
//! whoever sends that frame may need the core. If that one yields as well, or sleeps, the core comes back at once. If it
//! spins without yielding (MPICH waits so), the core comes back at the end of a time slice, milliseconds later, while a
//! switch that sleeps is woken by the frame and gets the core from it. So a yield that took long makes the switch sleep
//! for a while instead, longer each time, and frames that were found by looking on make that while shorter again.

use raddle_units::{Span, Time};

/// A yield that takes so long went to somebody who keeps the core.
const LONG: Span = Span::from_ms(1);
/// How long the switch sleeps instead of looking on, after one such yield and at most.
const PAUSE: [Span; 2] = [Span::from_ms(1), Span::from_ms(64)];

/// What a loop without frames does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// Yield, and look again.
    Look,
    /// Until a frame comes or something is due.
    Sleep,
}

/// The state between looks.
#[derive(Debug)]
pub(crate) struct Spin {
    /// How long to look on after a frame.
    most: Span,
    idle_since: Option<Time>,
    /// Begin of the yield that the loop comes back from.
    yielded: Option<Time>,
    pause: Span,
    until: Time,
}

impl Spin {
    pub(crate) const fn new(most: Span) -> Self {
        Self {
            most,
            idle_since: None,
            yielded: None,
            pause: Span(0),
            until: Time::ZERO,
        }
    }

    /// The loop has looked for frames.
    #[inline]
    pub(crate) fn looked(&mut self, now: Time, found: bool) {
        if let Some(begun) = self.yielded.take() {
            if now.since(begun) >= LONG {
                let [first, most] = PAUSE;
                self.pause = Span((self.pause.0 * 2).clamp(first.0, most.0));
                self.until = now + self.pause;
            } else if found && self.pause.0 > 0 {
                self.pause.0 -= self.pause.0 / 32;
                if self.pause < PAUSE[0] {
                    self.pause = Span(0);
                }
            }
        }
        if found {
            self.idle_since = None;
        }
    }

    /// No frame was there, and nothing else is to be done.
    #[inline]
    pub(crate) fn idle(&mut self, now: Time) -> Idle {
        let since = *self.idle_since.get_or_insert(now);
        if now < self.until || now.since(since) >= self.most {
            return Idle::Sleep;
        }
        self.yielded = Some(now);
        Idle::Look
    }

    /// It looks on for another time.
    pub(crate) const fn set_most(&mut self, most: Span) {
        self.most = most;
    }

    /// The clock begins anew.
    pub(crate) const fn restart(&mut self) {
        *self = Self::new(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames come every 50 us; a yield takes as long as said. The part of frames that were slept for.
    fn slept(frames: u32, yields: impl Fn(u32) -> Span) -> f64 {
        let (mut spin, mut now, mut slept) = (Spin::new(Span::from_us(200)), Time::ZERO, 0_u32);
        for frame in 0..frames {
            spin.looked(now, true);
            now += Span::from_us(1);
            spin.looked(now, false);
            match spin.idle(now) {
                Idle::Look => now += yields(frame),
                Idle::Sleep => {
                    slept += 1;
                    now += Span::from_us(50);
                }
            }
        }
        f64::from(slept) / f64::from(frames)
    }

    #[test]
    fn who_gets_the_core_back_looks_on() {
        assert_eq!(slept(10_000, |_| Span::from_us(50)), 0.0);
    }

    #[test]
    fn beside_somebody_who_keeps_the_core_it_sleeps() {
        assert!(slept(100_000, |_| Span::from_ms(4)) > 0.99);
    }

    #[test]
    fn one_long_yield_is_soon_forgotten() {
        // Every 2,000th: 100 ms apart.
        let part = slept(100_000, |frame| match frame % 2000 {
            1999 => Span::from_ms(3),
            _ => Span::from_us(50),
        });
        assert!(part < 0.02, "{part}");
    }

    #[test]
    fn without_frames_it_sleeps_after_its_time() {
        let mut spin = Spin::new(Span::from_us(200));
        assert_eq!(spin.idle(Time(0)), Idle::Look);
        assert_eq!(spin.idle(Time::ZERO + Span::from_us(199)), Idle::Look);
        assert_eq!(spin.idle(Time::ZERO + Span::from_us(200)), Idle::Sleep);
        spin.looked(Time::ZERO + Span::from_us(300), true);
        assert_eq!(spin.idle(Time::ZERO + Span::from_us(301)), Idle::Look);
        assert_eq!(Spin::new(Span(0)).idle(Time::ZERO), Idle::Sleep);
    }
}
