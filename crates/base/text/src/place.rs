//! Places in texts.

use std::{ops::Range, sync::Arc};

/// Columns of a line that an error shows.
const SHOWN_COLUMNS: usize = 96;

/// A text and its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, for messages.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

/// A place in one of the texts.
#[derive(Clone, Debug)]
pub struct Location {
    /// The text.
    pub source: Arc<Source>,
    /// Bytes of it.
    pub span: Range<usize>,
}

/// Where a file is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The experiment as a whole, or another file of it.
    File(String),
    /// The problem says it itself.
    Said,
    /// Another file, whose name and line the problem gives itself.
    Named {
        /// Where that file is named, as `file:line`.
        by: String,
    },
    /// A place in a text.
    Text {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The line, cut to what fits on a screen.
        excerpt: String,
        /// Characters before the mark in `excerpt`.
        mark_from: usize,
        /// Length of the mark in characters, at least 1.
        mark_len: usize,
    },
}

impl Location {
    /// The line, from 1.
    pub fn line(&self) -> u32 {
        let text = self.source.text.as_bytes();
        let before = &text[..self.span.start.min(text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1
    }

    /// The place with line, column and excerpt.
    pub fn place(&self) -> Place {
        let text: &Arc<str> = &self.source.text;
        let start = floor_boundary(text, self.span.start);
        let end = floor_boundary(text, self.span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let before = text[line_start..start].chars().count();
        let marked = text[start..end.min(line_end).max(start)]
            .chars()
            .count()
            .max(1);
        let line: Vec<char> = text[line_start..line_end].trim_end().chars().collect();
        // A window around the mark, so that a line of any length stays on one screen.
        let from = if before + marked <= SHOWN_COLUMNS {
            0
        } else {
            before.saturating_sub(16)
        };
        let mut excerpt: String = if from > 0 {
            "...".into()
        } else {
            String::new()
        };
        let shown = line.iter().skip(from).take(SHOWN_COLUMNS);
        excerpt.extend(shown.map(|&c| if c.is_control() { ' ' } else { c }));
        if line.len() > from + SHOWN_COLUMNS {
            excerpt.push_str("...");
        }
        let shift = if from > 0 { 3 } else { 0 };
        Place::Text {
            file: self.source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            excerpt,
            mark_from: before - from + shift,
            mark_len: marked.min(SHOWN_COLUMNS.saturating_sub(before - from).max(1)),
        }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
