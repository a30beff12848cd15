//! Traces as files, `NAME.trace.parquet`: a row per call, and what concerns all calls in the file's metadata.
//!
//! | column | |
//! |---|---|
//! | `rank` | rank of MPI_COMM_WORLD, ascending; a rank's calls in order |
//! | `start_ns`, `end_ns` | since the rank's start |
//! | `action` | `send`, `receive`, `wait`, `end` or the name of a collective |
//! | `peer` | the other end of a message, the root of a collective |
//! | `tag`, `comm`, `bytes` | of a message; `comm` and `bytes` of a collective too |
//! | `request` | what a call that comes back early starts |
//! | `requests` | what a wait completes |
//! | `any_source`, `any_tag` | wildcards of a receive |
//!
//! Keys of the metadata: `raddle.trace` (version, 1), `raddle.placement` (host of each rank), `raddle.hosts` (names),
//! `raddle.communicators` (of each, its members as runs: first rank, and the one after the last), all JSON; `raddle.fabric`
//! (TOML), `raddle.program`, `raddle.mpi`.

mod assemble;
mod columns;
mod metadata;
mod read;

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
};

use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};
use raddle_disk::{DiskError, open_file, replace_file};
use raddle_text::ReadError;
use raddle_trace::{Trace, TraceError};
use thiserror::Error;

use crate::table::write_error;
use columns::{Columns, schema};

pub use assemble::assemble_folder;
pub use read::read;

/// The end of a trace's file name.
pub const TRACE_SUFFIX: &str = ".trace.parquet";

/// Rows held in memory at once, in both directions.
const BATCH_ROWS: usize = 65_536;

/// Why a trace cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// There is no such file.
    #[error(
        "{file}: no such file\n  hint: `raddle record` makes the trace of a program, `raddle trace generate` one of a \
         known kind of program"
    )]
    Missing {
        /// The file's name.
        file: String,
    },
    /// The file is not that of a trace.
    #[error(
        "{file}: {problem}\n  hint: copy it anew or record it again: `raddle record` writes a trace whole or not at all; \
         `raddle trace import` reads GOAL"
    )]
    Malformed {
        /// The file's name.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// The file has calls that go against MPI or each other.
    #[error("{file}: {problem}")]
    Trace {
        /// The file's name.
        file: String,
        /// What is wrong.
        problem: TraceError,
    },
    /// The system refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Reads the file of a trace.
///
/// # Errors
/// No file, no trace, a damaged one, or one of another version; calls that [`Trace::check`] refuses.
pub fn read_file(path: &Path) -> Result<Trace, TraceFileError> {
    let name = path.display().to_string();
    match open_file(path) {
        Ok(file) => read(file, &name),
        Err(ReadError::Missing) => Err(TraceFileError::Missing { file: name }),
        Err(problem) => Err(TraceFileError::Malformed {
            file: name,
            problem: problem.to_string(),
        }),
    }
}

/// Writes the file of a trace, whole or not at all.
///
/// # Errors
/// The folder does not exist or cannot be written, or the disk is full.
pub fn write_file(trace: &Trace, path: &Path) -> Result<(), TraceFileError> {
    replace_file(path, |open| {
        let file = File::create(open).map_err(DiskError::at("write", open))?;
        let written = write(trace, BufWriter::new(file));
        written.map_err(|error| TraceFileError::Disk(write_error(path, error)))
    })
}

/// Writes a trace.
///
/// # Errors
/// `out` cannot be written.
pub fn write(trace: &Trace, out: impl Write + Send) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by("raddle".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(metadata::of(trace)))
        .build();
    let schema = schema();
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?;
    let mut columns = Columns::default();
    for (rank, events) in (0..).zip(&trace.ranks) {
        for event in events {
            columns.push(rank, event);
            if columns.rows() == BATCH_ROWS {
                writer.write(&columns.finish(&schema)?)?;
            }
        }
    }
    writer.write(&columns.finish(&schema)?)?;
    // Flushing by hand: dropping a buffered file hides errors.
    writer.into_inner()?.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests;
