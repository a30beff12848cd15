//! What the library says: nothing, unless `RADDLE_LOG=info`.

use std::{
    fmt,
    io::{self, Write},
    process,
};

use crate::settings;

/// One line on standard error.
pub(crate) fn info(line: fmt::Arguments<'_>) {
    if settings::get().log {
        plain(&line.to_string());
    }
}

/// One line on standard error about something that the user asked for in another way and that cannot be done.
pub(crate) fn plain(line: &str) {
    // One write: lines of several ranks must not mix. A program without standard error goes on without it.
    let _ = io::stderr().write_all(format!("raddle[{}]: {line}\n", process::id()).as_bytes());
}
