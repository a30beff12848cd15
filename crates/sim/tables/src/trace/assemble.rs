//! From a folder of recordings to a trace.

use std::{fs, path::Path};

use raddle_disk::{DiskError, read_file};
use raddle_text::MOST_DATA;
use raddle_trace::{RankRecording, Trace, assemble};

use super::TraceFileError;

/// Reads all recordings `rank-N.rec` of a folder as one trace.
///
/// # Errors
/// A folder without recordings, a damaged one, ranks that are missing or do not agree.
pub fn assemble_folder(folder: &Path) -> Result<Trace, TraceFileError> {
    let failed = |file: &Path, problem: String| TraceFileError::Malformed {
        file: file.display().to_string(),
        problem,
    };
    let entries = fs::read_dir(folder).map_err(DiskError::at("read", folder))?;
    let mut recordings = Vec::new();
    for entry in entries {
        let path = entry.map_err(DiskError::at("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !(name.starts_with("rank-") && name.ends_with(".rec")) {
            continue;
        }
        let bytes =
            read_file(&path, MOST_DATA).map_err(|error| failed(&path, error.to_string()))?;
        let recording = RankRecording::decode(&bytes);
        recordings.push(recording.map_err(|error| failed(&path, error.to_string()))?);
    }
    assemble(recordings).map_err(|error| failed(folder, error.to_string()))
}
