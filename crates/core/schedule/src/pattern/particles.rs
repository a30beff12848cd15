//! Particles that change their rank.

use raddle_random::Random;
use raddle_units::Bytes;

use super::{PatternError, draws, grid::Grid, product};
use crate::set::Message;

/// The exchange of a particle code (PIC, molecular dynamics) after a time step: boxes in a periodic 3-D grid, and in each a
/// random number of particles that leave it, most of them across a face, some across an edge or a corner, and a few fast
/// ones to any other rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Particles {
    /// Ranks along each dimension; the last one runs fastest.
    pub ranks: [u32; 3],
    /// Particles that leave a rank, on average; uniform from 0 to twice this.
    pub leaving: u32,
    /// One in so many of them goes to a rank drawn at random; 0: none does.
    pub far_one_in: u32,
    /// Bytes of a particle.
    pub particle: Bytes,
    /// Bytes before the particles of a message (their number, say). Every neighbour gets a message, without particles too.
    pub head: Bytes,
    /// Seed of all draws.
    pub seed: u64,
}

/// Of so many steps across a face one also crosses the next face of another dimension.
const DIAGONAL_ONE_IN: u64 = 8;

impl Particles {
    /// The messages of one exchange: each rank to its neighbours (faces, then edges and corners), then to ranks that only
    /// fast particles reach, by rank.
    ///
    /// # Errors
    /// When a dimension has no rank, or ranks or bytes are too many.
    pub fn superstep(&self) -> Result<Vec<Message>, PatternError> {
        let grid = Grid::new(self.ranks)?;
        let offsets = Grid::<3>::offsets(true);
        let most = product("bytes", &[2, u64::from(self.leaving), self.particle.0])?;
        most.checked_add(self.head.0).ok_or(PatternError::TooMany {
            what: "bytes",
            bits: 64,
        })?;
        let size = |particles: u64| self.head + self.particle * particles;
        let mut messages = Vec::new();
        for source in 0..grid.count() {
            let mut draws = draws(self.seed, source);
            // By offset: steps -1, 0 and 1 as digits of a number to base 3.
            let mut near = [0_u64; 27];
            let mut far = Vec::new();
            for _ in 0..draws.below(2 * u64::from(self.leaving) + 1) {
                let one_in = u64::from(self.far_one_in);
                if one_in > 0 && draws.below(one_in) == 0 {
                    far.push(draws.below(u64::from(grid.count())) as u32);
                } else {
                    near[digits(step(&mut draws))] += 1;
                }
            }
            let mut send = |target, bytes| {
                if target != source {
                    messages.push(Message {
                        source,
                        target,
                        bytes,
                    });
                }
            };
            for &offset in &offsets {
                if let Some(target) = grid.neighbour(source, offset, true) {
                    send(target, size(near[digits(offset)]));
                }
            }
            far.sort_unstable();
            for same in far.chunk_by(|a, b| a == b) {
                send(same[0], size(same.len() as u64));
            }
        }
        Ok(messages)
    }
}

/// Where a particle goes: across one of the six faces, sometimes across others as well.
fn step(draws: &mut Random) -> [i8; 3] {
    let sign = |draws: &mut Random| if draws.below(2) == 0 { -1 } else { 1 };
    let across = draws.below(3) as usize;
    let mut step = [0; 3];
    for (dimension, along) in step.iter_mut().enumerate() {
        if dimension == across || draws.below(DIAGONAL_ONE_IN) == 0 {
            *along = sign(draws);
        }
    }
    step
}

fn digits(offset: [i8; 3]) -> usize {
    offset
        .iter()
        .fold(0, |number, &step| 3 * number + (step + 1) as usize)
}
