//! Lines of a text file, one at a time, none of them long enough to hurt.

use std::io::{BufRead, Read};

use crate::TrafficError;
use crate::error::{PlaceUnit, Problem};

const MAX_LINE: usize = 4096;

/// Reads lines and counts them.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    pub(crate) number: u64,
    expected: &'static str,
}

impl<R: BufRead> Lines<R> {
    /// `expected` says what the file should be, for errors.
    pub(crate) fn new(reader: R, expected: &'static str) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
            expected,
        }
    }

    /// The next line that is not blank, without its end.
    pub(crate) fn next_line(&mut self, source: &str) -> Result<Option<&str>, TrafficError> {
        loop {
            self.buffer.clear();
            let place = PlaceUnit::Line(self.number + 1);
            let read = self
                .reader
                .by_ref()
                .take(MAX_LINE as u64 + 1)
                .read_until(b'\n', &mut self.buffer)
                .map_err(|error| {
                    let problem = Problem::Unreadable {
                        problem: error.to_string(),
                    };
                    TrafficError::at(source, place, problem)
                })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.buffer.len() > MAX_LINE {
                let problem = Problem::LineTooLong {
                    limit: MAX_LINE,
                    expected: self.expected,
                };
                return Err(TrafficError::at(source, place, problem));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        match std::str::from_utf8(self.buffer.trim_ascii()) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(TrafficError::at(
                source,
                PlaceUnit::Line(self.number),
                Problem::NotText,
            )),
        }
    }
}
