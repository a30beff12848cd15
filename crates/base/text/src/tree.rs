//! A TOML text as a tree in which every key and value knows its place, over all included files.

use std::{collections::BTreeMap, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    error::{InputError, Problem, clip},
    files::Files,
    place::{Location, Source},
};

/// Files that a text may be made of.
const MAX_FILES: usize = 100;
/// Bytes of the largest file of settings.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its place.
    pub at: Location,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A finite real number.
    Float(f64),
    /// Yes or no.
    Boolean(bool),
    /// Dates mean nothing in our files; kept as text for the message.
    Date(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// The entries of a table in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Keys are distinct.
    pub entries: Vec<Entry>,
}

/// One `key = value`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its place.
    pub key_at: Location,
    /// The value with its place.
    pub node: Node,
}

impl Table {
    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Takes the entry of a key out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
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
    pub fn find(&self, path: &[&str]) -> Option<&Self> {
        let mut node = self;
        for key in path {
            let Value::Table(table) = &node.value else {
                return None;
            };
            node = &table.get(key)?.node;
        }
        Some(node)
    }

    /// The same, to change it.
    pub fn find_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
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

    /// Item `index` of the list at a path of keys; what is there where it is no such list.
    pub fn item(&self, path: &[&str], index: usize) -> &Self {
        let node = self.find(path).unwrap_or(self);
        match &node.value {
            Value::Array(items) => items.get(index).unwrap_or(node),
            _ => node,
        }
    }

    /// Where the value at a path stands, or the nearest table around it.
    pub fn locate(&self, path: &[&str]) -> &Location {
        (0..=path.len())
            .rev()
            .find_map(|n| self.find(&path[..n]))
            .map_or(&self.at, |node| &node.at)
    }
}

/// Reads `text` and all that it includes (`include = [...]`) into one tree.
///
/// # Errors
/// Not TOML, a file that cannot be read, files that include each other, more than 100 files or 16 MiB.
pub fn load(text: &str, name: &str, files: &dyn Files) -> Result<Node, InputError> {
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
    fn load(&mut self, text: &str, name: &str) -> Result<Node, InputError> {
        if text.len() > MAX_FILE_BYTES {
            let problem = Problem::Value {
                key: String::new(),
                message: format!(
                    "larger than {} MiB: is this the right file?",
                    MAX_FILE_BYTES >> 20
                ),
            };
            return Err(InputError::of_file(name, problem));
        }
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
                return Err(
                    InputError::at(&at, problem).with_hint("remove one of these `include` entries")
                );
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
///
/// # Errors
/// The file cannot be read, is too large, or is no UTF-8 text.
pub fn read_text(files: &dyn Files, file: &str, at: &Location) -> Result<String, InputError> {
    files.read_text(file).map_err(|reason| {
        let file = file.to_owned();
        InputError::at(at, Problem::Unreadable { file, reason })
            .with_hint("files are found relative to the file that names them")
    })
}

fn included(include: &Node) -> Result<Vec<(String, Location)>, InputError> {
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

fn value_error(at: &Location, message: String) -> InputError {
    InputError::at(
        at,
        Problem::Value {
            key: String::new(),
            message,
        },
    )
}

/// One text as a tree, includes not followed. Its length has no limit here: maps are long.
///
/// # Errors
/// Not TOML.
pub fn parse(text: &str, name: &str) -> Result<Node, InputError> {
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
        InputError::at(&at, Problem::Syntax(clip(error.message())))
    })?;
    let value = convert_table(table.into_inner(), &source)?;
    // Errors of the document as a whole point to its first line.
    Ok(Node {
        value,
        at: locate(0..0),
    })
}

fn convert_table(table: DeTable<'_>, source: &Arc<Source>) -> Result<Value, InputError> {
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

fn convert(value: Spanned<DeValue<'_>>, source: &Arc<Source>) -> Result<Node, InputError> {
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
