//! Which sizes are faster on rails: measured by the receiver, per class of sizes, in episodes that take turns.
//!
//! An *episode* is a time in which messages of the other process are under way: from the first answer to when all have come. So
//! it is one message where the program sends one at a time, and a window where it sends many.

use raddle_units::Time;

/// The least message that is offered.
pub const LEAST_OFFER: u64 = 1 << FIRST;
const FIRST: u32 = 16;
/// Classes from 2^16 B on, each twice as long; the last one has no end.
const CLASSES: usize = 16;
/// Episodes of each way that are compared.
const EPISODES: usize = 5;

/// A message's class; `None`: it is too short.
fn class(bytes: u64) -> Option<usize> {
    let above = bytes.checked_ilog2()?.checked_sub(FIRST)?;
    Some((above as usize).min(CLASSES - 1))
}

/// Whether a message is in one of these classes.
pub(super) fn is_worth(worth: u32, bytes: u64) -> bool {
    class(bytes).is_some_and(|class| worth >> class & 1 == 1)
}

/// The least size from which on all classes are among these.
pub(super) fn least(worth: u32) -> Option<u64> {
    let not = !worth & ((1 << CLASSES) - 1);
    let first = 32 - not.leading_zeros();
    ((first as usize) < CLASSES).then(|| 1 << (FIRST + first))
}

#[derive(Debug, Clone, Default)]
struct Class {
    /// Picoseconds per KiB of each way's episodes.
    rails: Vec<f64>,
    plain: Vec<f64>,
    /// Which way is faster, once it is known.
    settled: Option<bool>,
}

impl Class {
    /// Whether the next episode is on the rails.
    fn by_rails(&self) -> bool {
        self.settled.unwrap_or(self.rails.len() <= self.plain.len())
    }

    fn note(&mut self, by_rails: bool, time: f64) {
        let times = if by_rails {
            &mut self.rails
        } else {
            &mut self.plain
        };
        times.push(time);
        if self.rails.len() >= EPISODES && self.plain.len() >= EPISODES {
            self.settled = Some(median(&mut self.rails) <= median(&mut self.plain));
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Episode {
    class: usize,
    by_rails: bool,
    begun: Time,
    bytes: u64,
    under_way: u32,
    /// All messages are of one class and way.
    pure: bool,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Choice {
    classes: [Class; CLASSES],
    episode: Option<Episode>,
}

impl Choice {
    /// A message is answered. True: by rails, which is possible if they have a `free` slot.
    pub(super) fn begin(&mut self, now: Time, bytes: u64, free: bool) -> bool {
        let Some(index) = class(bytes) else {
            return false;
        };
        let class = &self.classes[index];
        let Some(episode) = &mut self.episode else {
            let by_rails = free && class.by_rails();
            self.episode = Some(Episode {
                class: index,
                by_rails,
                begun: now,
                bytes,
                under_way: 1,
                pure: true,
            });
            return by_rails;
        };
        let by_rails = free && class.settled.unwrap_or(episode.by_rails);
        episode.bytes = episode.bytes.saturating_add(bytes);
        episode.under_way += 1;
        episode.pure &= index == episode.class && by_rails == episode.by_rails;
        by_rails
    }

    /// A message that was answered has come.
    pub(super) fn end(&mut self, now: Time) {
        let Some(episode) = &mut self.episode else {
            return;
        };
        episode.under_way -= 1;
        if episode.under_way > 0 {
            return;
        }
        let class = &mut self.classes[episode.class];
        if episode.pure && class.settled.is_none() {
            let time = now.since(episode.begun).0 as f64 * 1024.0 / episode.bytes as f64;
            class.note(episode.by_rails, time);
        }
        self.episode = None;
    }

    /// Classes that are not known to be slower on the rails, a bit each.
    pub(super) fn worth(&self) -> u32 {
        let bits = self.classes.iter().enumerate();
        bits.fold(0, |worth, (index, class)| {
            worth | u32::from(class.settled != Some(false)) << index
        })
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use raddle_units::Span;

    use super::*;

    /// Messages of this size, one at a time, which take so many microseconds by rails and plain; gives how many went by rails.
    fn run(choice: &mut Choice, bytes: u64, count: usize, rails: u64, plain: u64) -> usize {
        let mut now = Time(0);
        let mut on_rails = 0;
        for _ in 0..count {
            let by_rails = choice.begin(now, bytes, true);
            on_rails += usize::from(by_rails);
            now += Span::from_us(if by_rails { rails } else { plain });
            choice.end(now);
        }
        on_rails
    }

    #[test]
    fn both_ways_take_turns_until_the_faster_one_is_known() {
        let mut choice = Choice::default();
        assert_eq!(run(&mut choice, 1 << 20, 10, 5, 9), 5);
        assert_eq!(run(&mut choice, 1 << 20, 10, 5, 9), 10);
        assert_eq!(run(&mut choice, 1 << 17, 10, 9, 5), 5);
        assert_eq!(run(&mut choice, 1 << 17, 10, 9, 5), 0);
        let worth = choice.worth();
        assert!(is_worth(worth, 1 << 20) && !is_worth(worth, 1 << 17) && is_worth(worth, 1 << 18));
        assert!(!is_worth(worth, LEAST_OFFER - 1) && is_worth(worth, LEAST_OFFER));
        assert_eq!(least(worth), Some(1 << 18));
        assert_eq!(least(u32::MAX), Some(LEAST_OFFER));
        assert_eq!(least(0), None);
        assert!(is_worth(u32::MAX, u64::MAX));
    }

    /// A window of messages is one episode; one in which sizes are mixed says nothing.
    #[test]
    fn windows_are_measured_whole() {
        let mut choice = Choice::default();
        for episode in 0..12 {
            let begun = Time(0) + Span::from_us(1000 * episode);
            let by_rails = choice.begin(begun, 1 << 20, true);
            for _ in 0..3 {
                assert_eq!(choice.begin(begun, 1 << 20, true), by_rails);
            }
            let took = if by_rails { 100 } else { 200 };
            (0..4).for_each(|_| choice.end(begun + Span::from_us(took)));
            assert_eq!(by_rails, episode % 2 == 0 || episode >= 10);
        }
        for _ in 0..40 {
            assert!(choice.begin(Time(0), 1 << 17, true));
            choice.begin(Time(0), 1 << 18, true);
            choice.end(Time(0));
            choice.end(Time(0) + Span::from_us(1));
        }
        assert_eq!(choice.classes[1].settled, None);
        assert!(!choice.begin(Time(0), 1 << 17, false));
    }
}
