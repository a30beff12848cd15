//! What is wrong with a setting, and the path to it.

use std::fmt;

use crate::words::suggest;

/// One step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into a list, from 0.
    Item(usize),
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// From the whole to the value. For an unknown key it ends with that key, for a missing one with its table.
    pub path: Vec<Step>,
    /// What is wrong there.
    pub kind: FindingKind,
    /// What the setting is for, where its schema says so.
    pub about: Option<String>,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A key that means nothing in its table.
    UnknownKey {
        /// The keys that the table may have.
        known: Vec<String>,
    },
    /// A key that the table needs is not there.
    Missing {
        /// The key.
        key: String,
    },
    /// A word that is not one of the possible ones.
    UnknownWord {
        /// The word.
        word: String,
        /// The possible ones.
        known: Vec<String>,
    },
    /// Another kind of value, something that is not a quantity, or a value out of range; a whole sentence.
    Value(String),
}

impl Finding {
    pub(crate) const fn new(kind: FindingKind) -> Self {
        Self {
            path: Vec::new(),
            kind,
            about: None,
        }
    }

    pub(crate) fn within(mut self, step: Step) -> Self {
        self.path.insert(0, step);
        self
    }

    /// The keys on the path, without numbers of items.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        })
    }

    /// The name of the setting: the last key on the path.
    pub fn key(&self) -> Option<&str> {
        self.keys().next_back()
    }

    /// What is wrong, without the key and without a hint.
    pub fn told(&self) -> String {
        match &self.kind {
            FindingKind::UnknownKey { .. } => "it is unknown".to_owned(),
            FindingKind::Missing { key } => format!("`{key}` is missing"),
            FindingKind::UnknownWord { word, .. } => format!("`{word}` is unknown"),
            FindingKind::Value(message) => message.clone(),
        }
    }

    /// Whether the value is an item of a list.
    pub fn in_list(&self) -> bool {
        matches!(self.path.last(), Some(Step::Item(_)))
    }

    /// What may have been meant, or what the setting is for.
    pub fn hint(&self) -> Option<String> {
        let words = |known: &[String], word: &str| {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Some(suggest(word, &known))
        };
        match &self.kind {
            FindingKind::UnknownKey { known } => words(known, self.key().unwrap_or_default()),
            FindingKind::UnknownWord { word, known } => words(known, word),
            FindingKind::Missing { .. } => None,
            FindingKind::Value(_) => self.about.clone(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key().unwrap_or("value");
        match &self.kind {
            FindingKind::UnknownKey { .. } => write!(f, "unknown key `{key}`")?,
            FindingKind::Missing { key } => write!(f, "`{key}` is missing")?,
            FindingKind::UnknownWord { word, .. } if self.in_list() => {
                write!(f, "unknown word `{word}` in `{key}`")?;
            }
            FindingKind::UnknownWord { word, .. } => write!(f, "unknown `{key}` `{word}`")?,
            FindingKind::Value(message) => write!(f, "`{key}`: {message}")?,
        }
        match self.hint() {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Finding {}
