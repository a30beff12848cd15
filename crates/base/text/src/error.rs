//! What is wrong with a file, where it stands and how to cure it: one screen per error.

use std::fmt;

use crate::place::{Location, Place};

/// Characters of a foreign message that an error shows.
const SHOWN_MESSAGE: usize = 600;

/// Why an experiment, a route file or a file that one names is refused. Its text is the whole message: place, line with a mark, what is wrong, cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(Box<Report>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    place: Place,
    problem: Problem,
    hint: Option<String>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// A key that means nothing here.
    #[error("unknown key `{key}`{within}")]
    UnknownKey {
        /// The key.
        key: String,
        /// ` in [table]`, or empty.
        within: String,
    },
    /// A word that is not one of the possible ones.
    #[error("unknown {what} `{word}`")]
    UnknownWord {
        /// What kind of word: scheme, generator, value ...
        what: String,
        /// The word.
        word: String,
    },
    /// A needed key is not there.
    #[error("`{key}` is missing{within}")]
    Missing {
        /// The key.
        key: String,
        /// ` in [table]`, or empty.
        within: String,
    },
    /// A value of the wrong type, without a unit, or out of range.
    #[error("{key}{message}")]
    Value {
        /// `` `key`: ``, or empty.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// Files that include each other.
    #[error("these files include each other: {chain}")]
    IncludeCycle {
        /// The files, each including the next.
        chain: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// What a core refused: a map, groups, traffic, a set-up.
    #[error("{0}")]
    Refused(String),
}

impl InputError {
    fn new(place: Place, problem: Problem) -> Self {
        Self(Box::new(Report {
            place,
            problem,
            hint: None,
        }))
    }

    /// An error of a whole file.
    pub fn of_file(file: &str, problem: Problem) -> Self {
        Self::new(Place::File(file.to_owned()), problem)
    }

    /// An error whose text says where it is.
    pub fn plain(problem: Problem) -> Self {
        Self::new(Place::Said, problem)
    }

    /// An error at a place of a text.
    pub fn at(location: &Location, problem: Problem) -> Self {
        Self::new(location.place(), problem)
    }

    /// An error in a file that the text names at `location`; the message says where in that file.
    pub fn in_named_file(location: &Location, problem: Problem) -> Self {
        let by = match location.place() {
            Place::Text { file, line, .. } => format!("{file}:{line}"),
            Place::File(by) | Place::Named { by } => by,
            Place::Said => String::new(),
        };
        Self::new(Place::Named { by }, problem)
    }

    /// The same with a cure.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// What is wrong, as data.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Where.
    pub fn place(&self) -> &Place {
        &self.0.place
    }
}

impl Problem {
    /// What a core says, cut to what fits on a screen.
    pub fn refused(error: &impl fmt::Display) -> Self {
        Self::Refused(clip(&error.to_string()))
    }
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            place,
            problem,
            hint,
        } = self.0.as_ref();
        match place {
            Place::File(file) => write!(f, "{file}: {}", problem)?,
            Place::Said => write!(f, "{}", problem)?,
            Place::Named { by } => write!(f, "{}\n  in the file that is named at {by}", problem)?,
            Place::Text {
                file,
                line,
                column,
                excerpt,
                mark_from,
                mark_len,
            } => {
                let margin = line.to_string().len().max(3);
                write!(f, "{file}:{line}:{column}: {}", problem)?;
                write!(f, "\n  {line:>margin$} | {excerpt}")?;
                write!(
                    f,
                    "\n  {:>margin$} | {:mark_from$}{}",
                    "",
                    "",
                    "^".repeat(*mark_len)
                )?;
            }
        }
        match hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A message that fits on a screen, without control characters other than line breaks.
pub fn clip(message: &str) -> String {
    let clean = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let mut short: String = message.chars().take(SHOWN_MESSAGE).map(clean).collect();
    if message.chars().nth(SHOWN_MESSAGE).is_some() {
        short.push_str("...");
    }
    short
}
