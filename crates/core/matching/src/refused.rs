//! Why a parcel is refused.

use raddle_schedule::parcel::ParcelError;
use thiserror::Error;

/// Why a parcel was refused. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The bytes are not a parcel.
    #[error(transparent)]
    Parcel(#[from] ParcelError),
    /// A part has a value that its sender cannot have sent.
    #[error("part {part} of a parcel: {field} is {found}, expected {right}")]
    Part {
        /// Which part, from 0.
        part: u32,
        /// What is wrong.
        field: &'static str,
        /// What it is.
        found: u64,
        /// What it may be.
        right: &'static str,
    },
}

impl Refused {
    #[cold]
    pub(crate) const fn part(
        part: u32,
        field: &'static str,
        found: u64,
        right: &'static str,
    ) -> Self {
        Self::Part {
            part,
            field,
            found,
            right,
        }
    }
}
