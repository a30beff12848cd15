//! An experiment's text as a tree in which every key and value knows its place, over all included files.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{ExperimentError, Problem, clip},
    files::Files,
};

/// Files that an experiment may be made of.
const MAX_FILES: usize = 100;
/// Largest experiment file.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A text and its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
}

/// A place in one of the texts.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Range<usize>,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Location,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// Dates mean nothing in an experiment; kept as text for the message.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// The entries of a table in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// One `key = value`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Location,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Puts `over` on top: tables are merged key by key, everything else is replaced.
    fn overlay(&mut self, over: Self) {
        // Positions by key keep the merge linear for wide tables.
        let mut index: BTreeMap<String, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(at, entry)| (entry.key.clone(), at))
            .collect();
        for entry in over.entries {
            let Some(&at) = index.get(&entry.key) else {
                index.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
                continue;
            };
            let base = &mut self.entries[at];
            match (&mut base.node.value, entry.node.value) {
                (Value::Table(below), Value::Table(above)) => {
                    below.overlay(above);
                    base.node.at = entry.node.at;
                    base.key_at = entry.key_at;
                }
                (_, value) => {
                    base.node = Node {
                        value,
                        at: entry.node.at,
                    };
                    base.key_at = entry.key_at;
                }
            }
        }
    }
}

impl Node {
    /// The value at a path of keys.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&Self> {
        let mut node = self;
        for key in path {
            let Value::Table(table) = &node.value else {
                return None;
            };
            node = &table.get(key)?.node;
        }
        Some(node)
    }

    pub(crate) fn find_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        let mut node = self;
        for key in path {
            let Value::Table(table) = &mut node.value else {
                return None;
            };
            node = &mut table
                .entries
                .iter_mut()
                .find(|entry| entry.key == *key)?
                .node;
        }
        Some(node)
    }

    /// Where the value at a path stands, or the nearest table around it.
    pub(crate) fn locate(&self, path: &[&str]) -> &Location {
        (0..=path.len())
            .rev()
            .find_map(|n| self.find(&path[..n]))
            .map_or(&self.at, |node| &node.at)
    }
}

/// Reads `text` and all that it includes into one tree.
pub(crate) fn load(text: &str, name: &str, files: &dyn Files) -> Result<Node, ExperimentError> {
    let mut loader = Loader {
        files,
        chain: Vec::new(),
        loaded: 0,
    };
    loader.load(text, name)
}

struct Loader<'a> {
    files: &'a dyn Files,
    chain: Vec<String>,
    loaded: usize,
}

impl Loader<'_> {
    fn load(&mut self, text: &str, name: &str) -> Result<Node, ExperimentError> {
        let mut own = parse(text, name)?;
        let Value::Table(table) = &mut own.value else {
            return Ok(own);
        };
        let Some(include) = table.remove("include") else {
            return Ok(own);
        };
        let bases = included(&include.node)?;
        self.chain.push(name.to_owned());
        let mut merged = Table::default();
        for (base, at) in bases {
            let file = self.files.beside(name, &base);
            if let Some(first) = self.chain.iter().position(|open| *open == file) {
                let mut chain = self.chain[first..].to_vec();
                chain.push(file);
                let problem = Problem::IncludeCycle {
                    chain: clip(&chain.join(" -> ")),
                };
                return Err(ExperimentError::at(&at, problem)
                    .with_hint("remove one of these `include` entries"));
            }
            self.loaded += 1;
            if self.loaded > MAX_FILES {
                return Err(value_error(
                    &at,
                    format!("more than {MAX_FILES} files are included"),
                ));
            }
            let text = read_text(self.files, &file, &at)?;
            let base = self.load(&text, &file)?;
            if let Value::Table(base) = base.value {
                merged.overlay(base);
            }
        }
        self.chain.pop();
        merged.overlay(std::mem::take(table));
        own.value = Value::Table(merged);
        Ok(own)
    }
}

/// The file's text, or an error at the place that names it.
pub(crate) fn read_text(
    files: &dyn Files,
    file: &str,
    at: &Location,
) -> Result<String, ExperimentError> {
    let unreadable = |reason| {
        ExperimentError::at(
            at,
            Problem::Unreadable {
                file: file.to_owned(),
                reason,
            },
        )
    };
    let bytes = files.read(file).map_err(|reason| {
        unreadable(reason).with_hint("files are found relative to the file that names them")
    })?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not text (UTF-8)".to_owned()))
}

fn included(include: &Node) -> Result<Vec<(String, Location)>, ExperimentError> {
    let wrong = |at: &Location| {
        value_error(
            at,
            "`include` is a list of files, like include = [\"base.toml\"]".to_owned(),
        )
    };
    let Value::Array(items) = &include.value else {
        return Err(wrong(&include.at));
    };
    let file = |item: &Node| match &item.value {
        Value::String(file) => Ok((file.clone(), item.at.clone())),
        _ => Err(wrong(&item.at)),
    };
    items.iter().map(file).collect()
}

fn value_error(at: &Location, message: String) -> ExperimentError {
    ExperimentError::at(
        at,
        Problem::Value {
            key: String::new(),
            message,
        },
    )
}

/// One text as a tree, includes not followed.
pub(crate) fn parse(text: &str, name: &str) -> Result<Node, ExperimentError> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!(
            "larger than {} MiB: is this an experiment?",
            MAX_FILE_BYTES >> 20
        );
        let problem = Problem::Value {
            key: String::new(),
            message,
        };
        return Err(ExperimentError::of_file(name, problem));
    }
    let source = Arc::new(Source {
        name: name.to_owned(),
        text: text.into(),
    });
    let locate = |span| Location {
        source: source.clone(),
        span,
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = locate(error.span().unwrap_or(text.len()..text.len()));
        ExperimentError::at(&at, Problem::Syntax(clip(error.message())))
    })?;
    let value = convert_table(table.into_inner(), &source)?;
    // Errors of the document as a whole point to its first line.
    Ok(Node {
        value,
        at: locate(0..0),
    })
}

fn convert_table(table: DeTable<'_>, source: &Arc<Source>) -> Result<Value, ExperimentError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_at = Location {
            source: source.clone(),
            span: key.span(),
        };
        let node = convert(value, source)?;
        entries.push(Entry {
            key: key.into_inner().into_owned(),
            key_at,
            node,
        });
    }
    entries.sort_by_key(|entry| entry.key_at.span.start);
    Ok(Value::Table(Table { entries }))
}

fn convert(value: Spanned<DeValue<'_>>, source: &Arc<Source>) -> Result<Node, ExperimentError> {
    let at = Location {
        source: source.clone(),
        span: value.span(),
    };
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => {
            let wide = i128::from_str_radix(number.as_str(), number.radix()).ok();
            let Some(value) = wide.and_then(|wide| i64::try_from(wide).ok()) else {
                return Err(value_error(
                    &at,
                    "the number is too large (limit: 2^63)".to_owned(),
                ));
            };
            Value::Integer(value)
        }
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(value) if f64::is_finite(value) => Value::Float(value),
            _ => {
                return Err(value_error(
                    &at,
                    format!("{} is not a number with a value", number.as_str()),
                ));
            }
        },
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| convert(item, source))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => convert_table(table, source)?,
    };
    Ok(Node { value, at })
}
