//! What a run says while it goes on: results to standard output, and on a terminal a line of progress.

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::error::MeasureError;

/// How often the line of progress changes.
const PERIOD: Duration = Duration::from_millis(200);
/// Goes to the line's begin and empties it.
const CLEAR: &str = "\r\x1b[2K";

/// Where a run says what it finds.
#[derive(Debug)]
pub(crate) struct Screen {
    /// When the line of progress changes next; `None` if nobody watches.
    next: Option<Instant>,
    /// Whether the line says something.
    is_written: bool,
}

impl Screen {
    /// Progress is for people who watch: on a terminal, and unless `RADDLE_NO_PROGRESS` is set.
    pub(crate) fn new() -> Self {
        let wanted = env::var_os("RADDLE_NO_PROGRESS").is_none_or(|value| value.is_empty());
        Self {
            next: (wanted && io::stderr().is_terminal()).then(Instant::now),
            is_written: false,
        }
    }

    /// Prints a line, or several.
    ///
    /// # Errors
    /// Standard output is closed, or its disk is full.
    pub(crate) fn print(&mut self, text: impl Display) -> Result<(), MeasureError> {
        self.clear();
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        written.map_err(MeasureError::Output)
    }

    /// Says at once what begins.
    pub(crate) fn begin(&mut self, what: &str) {
        if self.next.is_some() {
            self.write(what);
        }
    }

    /// Says how far it is, if somebody watches and it has not just been said.
    #[inline]
    pub(crate) fn progress(&mut self, text: impl FnOnce() -> String) {
        if let Some(next) = self.next
            && Instant::now() >= next
        {
            self.write(&text());
        }
    }

    /// Empties the line of progress.
    pub(crate) fn clear(&mut self) {
        if self.is_written {
            let _ = write!(io::stderr(), "{CLEAR}");
            self.is_written = false;
        }
    }

    #[cold]
    fn write(&mut self, text: &str) {
        // Who cannot see it can do without.
        let _ = write!(io::stderr(), "{CLEAR}{text}");
        self.is_written = true;
        self.next = Some(Instant::now() + PERIOD);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
