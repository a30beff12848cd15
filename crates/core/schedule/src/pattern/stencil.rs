//! Halos of a regular grid.

use raddle_units::Bytes;

use super::{PatternError, grid::Grid, product};
use crate::set::Message;

/// Halo exchange of a stencil code in D dimensions (2 or 3 in practice): each rank has a box of points and sends the layers
/// at its surface to the ranks that it touches.
///
/// A message across a face, an edge or a corner has, along each dimension, `points` where the neighbour is beside it and
/// `width` where it is beyond: in 3-D a corner has width^3 points. A rank that is its own neighbour copies without a
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stencil<const D: usize> {
    /// Ranks along each dimension; the last one runs fastest, as in MPI_Cart_create.
    pub ranks: [u32; D],
    /// Points of a rank along each dimension.
    pub points: [u64; D],
    /// Layers that are sent.
    pub width: u64,
    /// Bytes of a point.
    pub point: Bytes,
    /// Whether edges and corners are sent too (9-point instead of 5-point, 27 instead of 7).
    pub diagonals: bool,
    /// Whether the grid closes on itself.
    pub periodic: bool,
}

impl<const D: usize> Stencil<D> {
    /// The messages of one exchange. Each rank sends across faces first, dimension by dimension.
    ///
    /// # Errors
    /// When a dimension has no rank, or ranks or bytes are too many.
    pub fn superstep(&self) -> Result<Vec<Message>, PatternError> {
        let grid = Grid::new(self.ranks)?;
        let mut neighbours = Vec::new();
        for offset in Grid::<D>::offsets(self.diagonals) {
            let mut factors = vec![self.point.0];
            for (&points, step) in self.points.iter().zip(offset) {
                factors.push(if step == 0 { points } else { self.width });
            }
            neighbours.push((offset, Bytes(product("bytes", &factors)?)));
        }
        let mut messages = Vec::new();
        for source in 0..grid.count() {
            for &(offset, bytes) in &neighbours {
                let target = grid.neighbour(source, offset, self.periodic);
                if let Some(target) = target.filter(|&target| target != source) {
                    messages.push(Message {
                        source,
                        target,
                        bytes,
                    });
                }
            }
        }
        Ok(messages)
    }
}
