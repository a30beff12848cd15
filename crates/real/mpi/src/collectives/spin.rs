//! Whether a rank that waits for a result looks again at once, or lets other threads of its core run first.
//!
//! Where every rank has a core of its own, it never yields. Where ranks share cores, the last of a core to contribute
//! waits for the network only, and the others wait for it: the former should look on, the latter yield at once. A rank
//! cannot see which it is, but roles follow each other regularly, so that what happened in the rounds before tells:
//! this is a branch predictor with one round of history.

/// Fruitless looks before a rank that expects its result yields after all; a look is a system call, about 0.4 us.
const LOOKS: u32 = 40;
/// Where looking on did not help, it is tried again after so many rounds, then after twice as many, and so on.
const TRY_AGAIN: u32 = 64;
/// At most so many: a program's roles may change.
const TRY_AGAIN_AT_LAST: u32 = 4096;
/// Successes that are remembered.
const MOST: u8 = 3;

/// How looking on has gone after one kind of round.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// Helped more often than not while at least 2.
    score: u8,
    /// Rounds without a try.
    rounds: u32,
    /// Rounds until the next.
    pause: u32,
}

/// How the program's thread waits for the results of one link.
#[derive(Debug)]
pub(crate) struct Spin {
    /// After a round that ended without yielding, and after one that yielded.
    records: [Record; 2],
    /// Which of them counts in this round.
    history: usize,
    /// Looks that are left before the rank yields.
    looks: u32,
    tries: bool,
    yielded: bool,
}

impl Spin {
    pub(crate) const fn new() -> Self {
        let record = Record {
            score: MOST,
            rounds: 0,
            pause: TRY_AGAIN,
        };
        Self {
            records: [record; 2],
            history: 0,
            looks: 0,
            tries: false,
            yielded: false,
        }
    }

    /// A round begins.
    pub(crate) const fn begin(&mut self) {
        self.yielded = false;
        let record = &mut self.records[self.history];
        self.tries = record.score >= 2 || record.rounds >= record.pause;
        self.looks = if self.tries { LOOKS } else { 0 };
        record.rounds = if self.tries { 0 } else { record.rounds + 1 };
    }

    /// A look was fruitless: whether to yield before the next.
    pub(crate) const fn must_yield(&mut self) -> bool {
        if self.looks > 0 {
            self.looks -= 1;
            return false;
        }
        self.yielded = true;
        true
    }

    /// The round has its result.
    pub(crate) const fn end(&mut self) {
        let record = &mut self.records[self.history];
        if self.tries && self.yielded {
            if record.score == 0 && record.pause < TRY_AGAIN_AT_LAST {
                record.pause *= 2;
            }
            record.score = record.score.saturating_sub(1);
        } else if self.tries {
            record.pause = TRY_AGAIN;
            if record.score < MOST {
                record.score += 1;
            }
        }
        self.history = self.yielded as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a round whose result is there after so many looks without a yield, or at the first look after a yield.
    fn round(spin: &mut Spin, looks: u32) -> bool {
        spin.begin();
        let mut seen = 0;
        while seen < looks && !spin.must_yield() {
            seen += 1;
        }
        spin.end();
        spin.yielded
    }

    #[test]
    fn a_core_of_its_own_is_never_yielded() {
        let mut spin = Spin::new();
        assert!((0..1000).all(|_| !round(&mut spin, 30)));
    }

    #[test]
    fn two_on_a_core_learn_who_yields() {
        let mut spin = Spin::new();
        // Whoever yielded in the round before is the last now: its result comes soon. The other's never does.
        let mut failures = 0;
        for _ in 0..1000 {
            let looks = if spin.history == 1 { 20 } else { u32::MAX };
            let tried = spin.records[spin.history].score >= 2;
            let yielded = round(&mut spin, looks);
            failures += u32::from(yielded && tried);
        }
        assert!(failures <= 2, "{failures} rounds looked on in vain");
        assert_eq!(spin.records[1].score, MOST);
    }

    #[test]
    fn many_on_a_core_yield_and_try_again_ever_more_seldom() {
        let mut spin = Spin::new();
        let mut tried_in = |rounds: u32| {
            let tried = |_: &u32| round(&mut spin, u32::MAX) && spin.tries;
            (0..rounds).filter(tried).count()
        };
        // One failure of the first kind of round and two of the second; then pauses of 64, 64, 128, 256 and so on to 4096.
        assert_eq!(tried_in(10_000), 3 + 8);
        assert_eq!(tried_in(41_000), 10);
        // Roles change: the next try helps, and looking on is the rule again.
        let helped = (0..8192).filter(|_| !round(&mut spin, 20)).count();
        assert!(helped > 3000, "{helped}");
    }
}
