//! Processors that ranks take turns on.

use std::collections::{BTreeMap, VecDeque};

use raddle_units::Span;

/// Who has which processor, and who waits for it. Ranks are counted within their part.
///
/// A rank keeps its processor until it gives it back; then whoever has waited longest has it.
#[derive(Debug)]
pub(super) struct Processors {
    /// Of each rank.
    of: Vec<u32>,
    /// How many ranks are on each.
    ranks: Vec<u32>,
    taken: Vec<bool>,
    /// Who worked last.
    last: Vec<usize>,
    lines: Vec<VecDeque<usize>>,
    in_line: Vec<bool>,
    /// What ranks of each processor take that look for messages in vain, each once.
    looking: Vec<Span>,
    /// What each takes while it looks.
    looks: Vec<Span>,
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
        let mut ranks = vec![0; last.len()];
        for &processor in &of {
            ranks[processor as usize] += 1;
        }
        Self {
            ranks,
            taken: vec![false; last.len()],
            lines: vec![VecDeque::new(); last.len()],
            looking: vec![Span::ZERO; last.len()],
            last,
            in_line: vec![false; of.len()],
            looks: vec![Span::ZERO; of.len()],
            of,
        }
    }

    /// Gives a rank its processor, or else a place in the line for it, one at most.
    pub(super) fn take(&mut self, rank: usize) -> bool {
        let processor = self.of(rank);
        let own = std::mem::take(&mut self.looks[rank]);
        self.looking[processor] -= own;
        if !self.taken[processor] {
            self.taken[processor] = true;
            return true;
        }
        if !std::mem::replace(&mut self.in_line[rank], true) {
            self.lines[processor].push_back(rank);
        }
        false
    }

    /// Takes a rank's processor back, and gives it to the one that comes back. From now on the rank looks for messages, and takes so
    /// long for that.
    pub(super) fn give_back(&mut self, rank: usize, look: Span) -> Option<usize> {
        let processor = self.of(rank);
        self.looks[rank] = look;
        self.looking[processor] += look;
        let next = self.lines[processor].pop_front();
        match next {
            Some(next) => self.in_line[next] = false,
            None => self.taken[processor] = false,
        }
        next
    }

    /// How long ranks take that look for messages in vain on the processor of this one, each once.
    pub(super) fn looking(&self, rank: usize) -> Span {
        self.looking[self.of(rank)]
    }

    /// Whether others wait for the processor of this one.
    pub(super) fn is_wanted(&self, rank: usize) -> bool {
        !self.lines[self.of(rank)].is_empty()
    }

    /// Whether other ranks are on the processor of this one.
    pub(super) fn is_shared(&self, rank: usize) -> bool {
        self.ranks[self.of(rank)] > 1
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

    const LOOK: Span = Span::from_us(1);

    #[test]
    fn a_processor_goes_to_whoever_has_waited_longest() {
        let mut processors = Processors::new((0..5).map(|rank| rank % 2));
        assert!(processors.take(0) && processors.take(1));
        assert!(!processors.take(4) && !processors.take(2) && !processors.take(4));
        assert_eq!(processors.give_back(0, LOOK), Some(4));
        assert_eq!(processors.give_back(1, LOOK), None);
        assert!(processors.take(3));
        assert_eq!(processors.give_back(4, LOOK), Some(2));
        assert_eq!(processors.give_back(2, LOOK), None);
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
            processors.give_back(rank, LOOK);
            looking.push(processors.looking(4));
        }
        assert!(processors.take(2) && !processors.take(0) && !processors.take(0));
        looking.push(processors.looking(4));
        assert_eq!(looking, [1, 2, 3, 1].map(|ranks| LOOK * ranks));
        assert_eq!(processors.looking(1), Span::ZERO);
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
        assert!((0..3).all(|rank| processors.give_back(rank, LOOK).is_none()));
    }
}
