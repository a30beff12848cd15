//! What the readers of recordings and GOAL schedules promise about any input, used by the fuzz targets and by the tests of
//! `crates/core/trace`: no panic, errors that name a place, and what is accepted can be told again.

#![allow(dead_code, reason = "each user takes some of the functions")]

use raddle_trace::{RankRecording, assemble, chakra, goal};

/// What a rank recorded.
pub(crate) fn recording(bytes: &[u8]) {
    match RankRecording::decode(bytes) {
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            let text = error.to_string();
            assert!(text.contains(error.field) && text.len() < 200, "{text}");
        }
        // A second reading gives the same; what cannot be a trace is told.
        Ok(recording) => {
            assert_eq!(RankRecording::decode(bytes).as_ref(), Ok(&recording));
            if let Err(error) = assemble(vec![recording]) {
                assert!(error.to_string().len() < 400, "{error}");
            }
        }
    }
}

/// A rank of a Chakra trace, as the only one and as two.
pub(crate) fn chakra_file(bytes: &[u8]) {
    for files in [
        &[("one.0.et", bytes)][..],
        &[("two.0.et", bytes), ("two.1.et", bytes)],
    ] {
        match chakra::read(files) {
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains(".et: ") && told.len() < 400, "{told}");
            }
            Ok(trace) => assert_eq!(trace.ranks.len(), files.len()),
        }
    }
}

/// A GOAL schedule; what is accepted is written and read again.
pub(crate) fn goal_schedule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match goal::read(text) {
        Err(error) => {
            let told = error.to_string();
            assert!(error.line <= text.split('\n').count(), "{told}");
            assert!(told.starts_with("line ") && told.len() < 300, "{told}");
        }
        Ok(trace) => {
            let written = goal::write(&trace).expect("GOAL has no collectives");
            let again = goal::read(&written).expect("what was written can be read");
            assert_eq!(again.ranks.len(), trace.ranks.len());
            let settled = goal::write(&again).expect("GOAL has no collectives");
            assert_eq!(goal::read(&settled).as_ref(), Ok(&again));
        }
    }
}
