//! Ranks in a grid.

use super::PatternError;

/// Ranks in a grid of D dimensions; the last coordinate runs fastest, as in MPI_Cart_create.
pub(super) struct Grid<const D: usize> {
    ranks: [u32; D],
    count: u32,
}

impl<const D: usize> Grid<D> {
    pub(super) fn new(ranks: [u32; D]) -> Result<Self, PatternError> {
        let mut count = 1_u32;
        for along in ranks {
            super::at_least_1("ranks", u64::from(along))?;
            count = count.checked_mul(along).ok_or(PatternError::TooMany {
                what: "ranks",
                bits: 32,
            })?;
        }
        Ok(Self { ranks, count })
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The rank at an offset from another; `None` outside the grid, where it does not close on itself.
    pub(super) fn neighbour(&self, rank: u32, offset: [i8; D], periodic: bool) -> Option<u32> {
        let mut rest = rank;
        let mut neighbour = 0;
        let mut stride = 1;
        for dimension in (0..D).rev() {
            let along = self.ranks[dimension];
            let at = i64::from(rest % along) + i64::from(offset[dimension]);
            rest /= along;
            let inside = at.rem_euclid(i64::from(along));
            if inside != at && !periodic {
                return None;
            }
            neighbour += inside as u32 * stride;
            // The product of all is `count`, which fits.
            stride *= along;
        }
        Some(neighbour)
    }

    /// Offsets to neighbours: first across faces in the order of MPI_Neighbor_alltoall (each dimension down, then up), then,
    /// with `diagonals`, across edges and corners by coordinates.
    pub(super) fn offsets(diagonals: bool) -> Vec<[i8; D]> {
        let mut offsets = Vec::new();
        for dimension in 0..D {
            for step in [-1, 1] {
                let mut offset = [0; D];
                offset[dimension] = step;
                offsets.push(offset);
            }
        }
        if diagonals {
            for number in 0..3_usize.pow(D as u32) {
                let offset: [i8; D] = std::array::from_fn(|d| {
                    (number / 3_usize.pow((D - 1 - d) as u32) % 3) as i8 - 1
                });
                if offset.iter().filter(|&&step| step != 0).count() > 1 {
                    offsets.push(offset);
                }
            }
        }
        offsets
    }
}
