//! What a lab and `raddle config` ask of Rust.

use pyo3::prelude::*;
use raddle_offload::switch::{self, SiteSecret};

/// The table of settings that the MPI library is built with.
const SETTINGS: &str = include_str!("../../../real/mpi/settings.toml");

/// Every `RADDLE_*` variable: name, who reads it, values, default, meaning; as TOML.
#[pyfunction]
pub(crate) fn settings() -> &'static str {
    SETTINGS
}

/// The key of a job at a site.
#[pyfunction]
pub(crate) fn job_key(secret: [u8; 32], job: u32) -> [u8; 16] {
    switch::job_key(&SiteSecret::new(secret), job).to_bytes()
}
