//! What a lab and `raddle config` ask of Rust.

use pyo3::prelude::*;
use raddle_offload::switch::{self, SiteSecret};

/// Every `RADDLE_*` variable: name, who reads it, values, default, meaning; as TOML.
#[pyfunction]
pub(crate) fn settings() -> &'static str {
    raddle_text::ENVIRONMENT
}

/// The key of a job at a site.
#[pyfunction]
pub(crate) fn job_key(secret: [u8; 32], job: u32) -> [u8; 16] {
    switch::job_key(&SiteSecret::new(secret), job).to_bytes()
}
