//! Processors that ranks take turns on.

use std::collections::{BTreeMap, VecDeque};

/// Who has which processor, and who waits for it. Ranks are counted within their part.
///
/// A rank keeps its processor until it gives it back; then whoever has waited longest has it.
#[derive(Debug)]
pub(super) struct Processors {
    /// Of each rank.
    of: Vec<u32>,
    taken: Vec<bool>,
    /// Who worked last.
    last: Vec<usize>,
    lines: Vec<VecDeque<usize>>,
    in_line: Vec<bool>,
    /// Ranks of each processor that look for messages in vain.
    looking: Vec<u32>,
    looks: Vec<bool>,
}

impl Processors {
    /// Those that ranks are on; `names` has a number for each rank's, the same for one that they share.
    pub(super) fn new(names: impl Iterator<Item = u32>) -> Self {
        let (mut of, mut last, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (rank, name) in names.enumerate() {
            let processor = *known.entry(name).or_insert(last.len() as u32);
            if processor as usize == last.len() {
                last.push(rank);
            }
            of.push(processor);
        }
        Self {
            taken: vec![false; last.len()],
            lines: vec![VecDeque::new(); last.len()],
            looking: vec![0; last.len()],
            last,
            in_line: vec![false; of.len()],
            looks: vec![false; of.len()],
            of,
        }
    }

    /// Gives a rank its processor, or else a place in the line for it, one at most.
    pub(super) fn take(&mut self, rank: usize) -> bool {
        let processor = self.of(rank);
        if std::mem::take(&mut self.looks[rank]) {
            self.looking[processor] -= 1;
        }
        if !self.taken[processor] {
            self.taken[processor] = true;
            return true;
        }
        if !std::mem::replace(&mut self.in_line[rank], true) {
            self.lines[processor].push_back(rank);
        }
        false
    }

    /// Takes a rank's processor back, and gives it to the one that comes back. From now on the rank looks for messages.
    pub(super) fn give_back(&mut self, rank: usize) -> Option<usize> {
        let processor = self.of(rank);
        self.looks[rank] = true;
        self.looking[processor] += 1;
        let next = self.lines[processor].pop_front();
        match next {
            Some(next) => self.in_line[next] = false,
            None => self.taken[processor] = false,
        }
        next
    }

    /// Ranks that look for messages in vain on the processor of this one.
    pub(super) fn looking(&self, rank: usize) -> u32 {
        self.looking[self.of(rank)]
    }

    /// Whether a rank that begins to work finds the processor as another has left it.
    pub(super) fn switches(&mut self, rank: usize) -> bool {
        let processor = self.of(rank);
        std::mem::replace(&mut self.last[processor], rank) != rank
    }

    fn of(&self, rank: usize) -> usize {
        self.of[rank] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_goes_to_whoever_has_waited_longest() {
        let mut processors = Processors::new((0..5).map(|rank| rank % 2));
        assert!(processors.take(0) && processors.take(1));
        assert!(!processors.take(4) && !processors.take(2) && !processors.take(4));
        assert_eq!(processors.give_back(0), Some(4));
        assert_eq!(processors.give_back(1), None);
        assert!(processors.take(3));
        assert_eq!(processors.give_back(4), Some(2));
        assert_eq!(processors.give_back(2), None);
        assert!(processors.take(4));
    }

    #[test]
    fn who_gave_a_processor_back_looks_until_it_has_work() {
        let mut processors = Processors::new((0..5).map(|rank| rank % 2));
        assert_eq!(
            [0, 2, 4].map(|rank| processors.take(rank)),
            [true, false, false]
        );
        let mut looking = Vec::new();
        for rank in [0, 2, 4] {
            processors.give_back(rank);
            looking.push(processors.looking(4));
        }
        assert!(processors.take(2) && !processors.take(0) && !processors.take(0));
        looking.push(processors.looking(4));
        assert_eq!(looking, [1, 2, 3, 1]);
        assert_eq!(processors.looking(1), 0);
    }

    #[test]
    fn a_processor_switches_from_one_rank_to_another() {
        let mut processors = Processors::new((0..4).map(|rank| rank % 2));
        let switches = [0, 2, 2, 1, 0, 3].map(|rank| processors.switches(rank));
        assert_eq!(switches, [false, true, false, false, true, true]);
    }

    #[test]
    fn ranks_have_their_own_where_none_are_counted() {
        let mut processors = Processors::new(0..3);
        assert!((0..3).all(|rank| processors.take(rank)));
        assert!((0..3).all(|rank| processors.give_back(rank).is_none()));
    }
}
