//! InfiniBand fabrics as other programs write them, in and out.
//!
//! - `speed`: `4xHDR` and the like.
//! - `write_ibsim`: net files for the simulator ibsim.

mod speed;
mod write_ibsim;

pub use write_ibsim::{ibsim_guid, write_ibsim};
