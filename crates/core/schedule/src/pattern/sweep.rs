//! Wavefronts through a grid of columns (Koch, Baker and Alcouffe's sweep, as in Sn transport codes).

use raddle_units::Bytes;

use super::{PatternError, grid::Grid, product};
use crate::set::Message;

/// A sweep from each of the four corners of a 2-D grid of ranks, one after the other; every rank has a column of cells, cut
/// into blocks. In a step a rank solves a block and sends what leaves it to the next rank along both dimensions, away
/// from the corner; so block b passes the ranks i + j = s - b in step s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// Ranks along both dimensions; the last one runs fastest.
    pub ranks: [u32; 2],
    /// Cells of a rank along both dimensions.
    pub cells: [u64; 2],
    /// Planes of cells in a block.
    pub planes: u64,
    /// Blocks of a column, for all octants that start in a corner together.
    pub blocks: u32,
    /// Angles that are solved together.
    pub angles: u64,
    /// Bytes of the flux of one angle through one side of a cell.
    pub value: Bytes,
}

impl Sweep {
    /// The messages of every step, a superstep each; steps without messages are left out.
    ///
    /// # Errors
    /// When a dimension has no rank, or ranks or bytes are too many.
    pub fn supersteps(&self) -> Result<impl Iterator<Item = Vec<Message>> + use<>, PatternError> {
        let grid = Grid::new(self.ranks)?;
        let face = |cells| {
            let factors = [cells, self.planes, self.angles, self.value.0];
            product("bytes", &factors).map(Bytes)
        };
        // A side along one dimension has the cells of the other.
        let sides = [face(self.cells[1])?, face(self.cells[0])?];
        let [rows, columns] = self.ranks.map(u64::from);
        let steps = rows + columns + u64::from(self.blocks);
        let corners = [[1, 1], [1, -1], [-1, 1], [-1, -1]];
        let sweep = *self;
        Ok(corners
            .into_iter()
            .flat_map(move |away| (0..steps).map(move |step| (away, step)))
            .map(move |(away, step)| sweep.step(&grid, away, sides, step))
            .filter(|messages| !messages.is_empty()))
    }

    /// The messages of a step of the sweep whose directions are `away`.
    fn step(&self, grid: &Grid<2>, away: [i8; 2], sides: [Bytes; 2], step: u64) -> Vec<Message> {
        let [rows, columns] = self.ranks;
        let passed =
            |at: u32, all: u32, away: i8| u64::from(if away > 0 { at } else { all - 1 - at });
        let mut messages = Vec::new();
        for source in 0..grid.count() {
            let begins = passed(source / columns, rows, away[0])
                + passed(source % columns, columns, away[1]);
            if !(begins..begins + u64::from(self.blocks)).contains(&step) {
                continue;
            }
            for (offset, bytes) in [[away[0], 0], [0, away[1]]].into_iter().zip(sides) {
                if let Some(target) = grid.neighbour(source, offset, false) {
                    messages.push(Message {
                        source,
                        target,
                        bytes,
                    });
                }
            }
        }
        messages
    }
}
