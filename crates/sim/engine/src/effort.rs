//! How much of a run several threads can do at the same time, by counting events: without a clock, so that the figures are
//! the same on every machine. They depend on the cut, as no result does.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Numbers of threads that [`Effort::longest`] is about.
pub const THREADS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// Counts of all windows of a run ([`crate::RunConfig::effort`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Windows in which anything happened.
    pub windows: u64,
    /// Events in them.
    pub events: u64,
    /// Packets that passed from one process to another, 128 bytes each.
    pub carried: u64,
    /// Events of the thread that had most in each window, summed, by number of threads ([`THREADS`]): processes go to threads as
    /// the run gives them out, the costliest of the window before first.
    pub longest: [u64; THREADS.len()],
}

impl Effort {
    /// A window is over. `order`: events of its processes, in the order in which they were given out.
    pub(crate) fn window(&mut self, order: &[u64], carried: u64) {
        self.windows += 1;
        self.events += order.iter().sum::<u64>();
        self.carried += carried;
        for (threads, longest) in THREADS.into_iter().zip(&mut self.longest) {
            let mut busy: BinaryHeap<Reverse<u64>> = vec![Reverse(0); threads].into();
            for events in order {
                if let Some(mut least) = busy.peek_mut() {
                    least.0 += events;
                }
            }
            *longest += busy
                .into_iter()
                .map(|Reverse(events)| events)
                .max()
                .unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_thread_is_counted() {
        let mut effort = Effort::default();
        // Two threads: 7 and then 4 + 3 (+ 1 on either).
        effort.window(&[7, 4, 3, 1], 5);
        effort.window(&[2], 0);
        assert_eq!((effort.windows, effort.events, effort.carried), (2, 17, 5));
        assert_eq!(effort.longest[0], 8 + 2);
        assert_eq!(effort.longest[1..], [7 + 2; 5]);
    }
}
