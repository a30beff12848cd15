//! Message sets that programs of known kinds make: one superstep of each, from parameters and a seed.
//!
//! - [`Stencil`]: halos of a grid in two or three dimensions.
//! - [`Sweep`]: wavefronts of discrete-ordinates transport, a superstep per step of the front.
//! - [`Particles`]: particles that leave their rank's box.
//! - [`SparseRows`]: the halo of a sparse matrix times a vector.
//!
//! Messages come by source, each source's in program order. Same parameters, same messages, on every machine.

mod grid;
mod particles;
mod sparse;
mod stencil;
mod sweep;

use raddle_random::Random;
use thiserror::Error;

pub use particles::Particles;
pub use sparse::SparseRows;
pub use stencil::Stencil;
pub use sweep::Sweep;

/// Why there is no such message set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A number that must be at least 1.
    #[error("{field} is 0, at least 1 is needed")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// More than can be numbered or counted.
    #[error("{what} do not fit into {bits} bits")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many bits there are.
        bits: u32,
    },
}

const fn at_least_1(field: &'static str, value: u64) -> Result<(), PatternError> {
    if value == 0 {
        return Err(PatternError::Zero { field });
    }
    Ok(())
}

fn product(what: &'static str, factors: &[u64]) -> Result<u64, PatternError> {
    let product = factors.iter().try_fold(1_u64, |a, &b| a.checked_mul(b));
    product.ok_or(PatternError::TooMany { what, bits: 64 })
}

/// Random draws of one rank. Each has its own stream, so that a rank's draws do not depend on how many ranks there are.
fn draws(seed: u64, rank: u32) -> Random {
    Random::new(seed, u64::from(rank))
}
