//! Ranks: programs, on one machine or on several, that share one run.
//!
//! Each has some of the run's processes; between two windows they exchange letters. How many ranks there are changes where a
//! run's memory lies and how long it takes, never what it records. Rank 0 tells its recorder everything, the others nothing.

/// How a rank reaches the others.
pub trait Ranks {
    /// The number of this rank, from 0.
    fn number(&self) -> usize;

    /// How many there are, this one included.
    fn count(&self) -> usize;

    /// Gives each rank its letter, by rank, and takes one from each. All ranks call it equally often; the own letter is empty
    /// and comes back as it is.
    ///
    /// # Errors
    /// Why a rank cannot be reached, in words: the run ends.
    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String>;
}

/// One rank for everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn number(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        Ok(letters)
    }
}
