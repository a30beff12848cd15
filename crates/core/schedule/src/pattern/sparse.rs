//! The halo of a sparse matrix.

use raddle_units::Bytes;

use super::{PatternError, at_least_1, draws, product};
use crate::set::Message;

/// Before a sparse matrix is multiplied by a vector, each rank needs the vector's values in the columns in which its rows
/// have entries and that other ranks own. Rows are cut into equal blocks by rank; most entries are near the diagonal, some
/// anywhere, as in unstructured meshes with long-range couplings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseRows {
    /// Ranks.
    pub ranks: u32,
    /// Rows of a rank.
    pub rows: u32,
    /// Entries of a row beside the diagonal; some may fall on the same column.
    pub entries: u32,
    /// Entries are at most so many columns from the diagonal, uniformly; what falls outside the matrix is left out.
    pub band: u32,
    /// One entry in so many is in any column instead; 0: none is.
    pub far_one_in: u32,
    /// Bytes of a value.
    pub value: Bytes,
    /// Seed of all draws.
    pub seed: u64,
}

impl SparseRows {
    /// The messages of one exchange: each rank sends every value once to each rank that needs it, by target.
    ///
    /// # Errors
    /// When there are no ranks or rows, or rows or bytes are too many.
    pub fn superstep(&self) -> Result<Vec<Message>, PatternError> {
        at_least_1("ranks", u64::from(self.ranks))?;
        at_least_1("rows", u64::from(self.rows))?;
        let rows = u64::from(self.rows);
        let all = u64::from(self.ranks) * rows;
        product("bytes", &[rows, self.value.0])?;
        let mut messages = Vec::new();
        for target in 0..self.ranks {
            let mut draws = draws(self.seed, target);
            let own = u64::from(target) * rows..(u64::from(target) + 1) * rows;
            let mut needed = Vec::new();
            for row in own.clone() {
                for _ in 0..self.entries {
                    let one_in = u64::from(self.far_one_in);
                    let column = if one_in > 0 && draws.below(one_in) == 0 {
                        Some(draws.below(all))
                    } else {
                        let band = u64::from(self.band);
                        (row + draws.below(2 * band + 1)).checked_sub(band)
                    };
                    let column = column.filter(|&column| column < all);
                    needed.extend(column.filter(|column| !own.contains(column)));
                }
            }
            needed.sort_unstable();
            needed.dedup();
            for same in needed.chunk_by(|a, b| a / rows == b / rows) {
                messages.push(Message {
                    source: (same[0] / rows) as u32,
                    target,
                    bytes: self.value * same.len() as u64,
                });
            }
        }
        messages.sort_unstable_by_key(|message| (message.source, message.target));
        Ok(messages)
    }
}
