//! From the tree to typed values by serde, with the place of whatever is wrong.

use std::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::{
    document::{Entry, Location, Node, Table, Value},
    error::{InputError, Problem, clip, suggest},
};

/// Keys that decide how a table is understood.
const TAGS: [&str; 4] = ["kind", "generator", "file", "format"];
/// Widest table or list in which the culprit of an unplaced error is searched.
const SEARCHED_ENTRIES: usize = 256;

/// Reads a `T`; errors point to the key or value that is wrong.
///
/// # Errors
/// An unknown key (with what may have been meant), a missing one, a value of the wrong type.
pub fn read<T: DeserializeOwned>(node: &Node) -> Result<T, InputError> {
    T::deserialize(Reader(node)).map_err(|mut fault| {
        // Tagged tables are read through a buffer without places: look for the entry that is to blame.
        if !fault.exact {
            let table = path_node(node, &fault.path);
            let (at, key) = culprit_in::<T>(node, table, &fault);
            if let Some(key) = key {
                fault.path.push(key);
            }
            fault.at = Some(at);
        }
        fault.into_error(node)
    })
}

fn path_node<'a>(node: &'a Node, path: &[String]) -> &'a Node {
    let mut at = node;
    for key in path {
        let next = match &at.value {
            Value::Table(table) => table.get(key).map(|entry| &entry.node),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        };
        let Some(next) = next else { break };
        at = next;
    }
    at
}

/// What serde found, and where as far as it is known.
#[derive(Debug)]
pub(crate) struct Fault {
    kind: Kind,
    /// Keys from the root to the value.
    path: Vec<String>,
    at: Option<Location>,
    /// Whether `at` is the value itself and not a table around it.
    exact: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    UnknownKey { key: String, known: Vec<String> },
    UnknownWord { word: String, known: Vec<String> },
    Missing { key: String },
    Value { message: String },
}

impl Fault {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            path: Vec::new(),
            at: None,
            exact: false,
        }
    }

    /// Where `self` comes from, seen from the value of `key`.
    fn within(mut self, key: &str, at: &Location, exact: bool) -> Self {
        if self.at.is_none() {
            self.at = Some(at.clone());
            self.exact = exact;
        }
        self.path.insert(0, key.to_owned());
        self
    }

    fn into_error(self, root: &Node) -> InputError {
        let at = self.at.unwrap_or_else(|| root.at.clone());
        let named = |path: &[String]| -> Vec<String> {
            path.iter()
                .filter(|key| key.parse::<usize>().is_err())
                .cloned()
                .collect()
        };
        let table = |path: &[String]| match named(path).as_slice() {
            [] => String::new(),
            keys => format!(" in [{}]", keys.join(".")),
        };
        match self.kind {
            Kind::UnknownKey { key, known } => {
                let parents = &self.path[..self.path.len().saturating_sub(1)];
                let within = table(if self.path.last() == Some(&key) {
                    parents
                } else {
                    &self.path
                });
                let hint = suggest(&key, &words(&known));
                let problem = Problem::UnknownKey {
                    key: clip(&key),
                    within,
                };
                InputError::at(&at, problem).with_hint(hint)
            }
            Kind::UnknownWord { word, known } => {
                let what = named(&self.path)
                    .pop()
                    .unwrap_or_else(|| "value".to_owned());
                let hint = suggest(&word, &words(&known));
                let problem = Problem::UnknownWord {
                    what: format!("`{what}`"),
                    word: clip(&word),
                };
                InputError::at(&at, problem).with_hint(hint)
            }
            Kind::Missing { key } => {
                let within = table(&self.path);
                InputError::at(&at, Problem::Missing { key, within })
            }
            Kind::Value { message } => {
                let key = named(&self.path).pop();
                let key = key.map_or_else(String::new, |key| format!("`{key}`: "));
                InputError::at(
                    &at,
                    Problem::Value {
                        key,
                        message: clip(&message),
                    },
                )
            }
        }
    }
}

/// The entry below `table` that makes reading `T` from `root` fail as in `fault`, and its key.
fn culprit_in<T: DeserializeOwned>(
    root: &Node,
    table: &Node,
    fault: &Fault,
) -> (Location, Option<String>) {
    let test = |probe: &Node| {
        let root = replaced(root, &fault.path, probe);
        T::deserialize(Reader(&root)).is_err_and(|found| found.kind == fault.kind)
    };
    let mut ordered = table.clone();
    if let Value::Table(table) = &mut ordered.value {
        table
            .entries
            .sort_by_key(|entry| !TAGS.contains(&entry.key.as_str()));
    }
    let unknown = match &fault.kind {
        Kind::UnknownKey { key, .. } => Some(key.as_str()),
        _ => None,
    };
    culprit(&ordered, unknown, &test)
}

/// `root` with the value at `path` replaced.
fn replaced(root: &Node, path: &[String], probe: &Node) -> Node {
    let mut copy = root.clone();
    let mut at = &mut copy;
    for key in path {
        let next = match &mut at.value {
            Value::Table(table) => table
                .entries
                .iter_mut()
                .find(|entry| entry.key == *key)
                .map(|entry| &mut entry.node),
            Value::Array(items) => key
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return copy };
        at = next;
    }
    *at = probe.clone();
    copy
}

/// The shortest beginning of a table or list that still fails ends with the culprit; then the same inside it.
fn culprit(
    node: &Node,
    unknown: Option<&str>,
    test: &dyn Fn(&Node) -> bool,
) -> (Location, Option<String>) {
    let nothing = (node.at.clone(), None);
    let len = match &node.value {
        Value::Table(table) => table.entries.len(),
        Value::Array(items) => items.len(),
        _ => return nothing,
    };
    if len > SEARCHED_ENTRIES {
        return nothing;
    }
    let Some(shortest) = (0..=len).find(|&n| test(&beginning(node, n))) else {
        return nothing;
    };
    let Some(last) = shortest.checked_sub(1) else {
        return nothing;
    };
    let cut = beginning(node, shortest);
    match &node.value {
        Value::Table(table) => {
            let Entry {
                key,
                key_at,
                node: child,
            } = &table.entries[last];
            if unknown == Some(key) {
                return (key_at.clone(), Some(key.clone()));
            }
            let (at, inner) = culprit(child, unknown, &|probe| test(&with_last(&cut, probe)));
            (at, inner.or_else(|| Some(key.clone())))
        }
        Value::Array(items) => culprit(&items[last], unknown, &|probe| {
            test(&with_last(&cut, probe))
        }),
        _ => nothing,
    }
}

fn beginning(node: &Node, n: usize) -> Node {
    let value = match &node.value {
        Value::Table(table) => Value::Table(Table {
            entries: table.entries[..n].to_vec(),
        }),
        Value::Array(items) => Value::Array(items[..n].to_vec()),
        other => other.clone(),
    };
    Node {
        value,
        at: node.at.clone(),
    }
}

fn with_last(node: &Node, last: &Node) -> Node {
    let mut copy = node.clone();
    match &mut copy.value {
        Value::Table(table) => {
            if let Some(entry) = table.entries.last_mut() {
                entry.node = last.clone();
            }
        }
        Value::Array(items) => {
            if let Some(item) = items.last_mut() {
                *item = last.clone();
            }
        }
        _ => {}
    }
    copy
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Kind::UnknownWord { word, .. } => write!(f, "unknown word `{word}`"),
            Kind::Missing { key } => write!(f, "`{key}` is missing"),
            Kind::Value { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(understand(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!(
            "expected {expected}, found {}",
            describe(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        let range = match expected.as_str() {
            "u8" => Some(u64::from(u8::MAX)),
            "u16" => Some(u64::from(u16::MAX)),
            "u32" => Some(u64::from(u32::MAX)),
            "u64" => Some(u64::MAX),
            _ => None,
        };
        match range {
            Some(max) => Self::custom(format_args!(
                "expected a whole number from 0 to {max}, found {}",
                describe(found)
            )),
            None => Self::custom(format_args!(
                "expected {expected}, found {}",
                describe(found)
            )),
        }
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownWord {
            word: word.to_owned(),
            known: owned(known),
        })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownKey {
            key: key.to_owned(),
            known: owned(known),
        })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Kind::Missing {
            key: key.to_owned(),
        })
    }
}

fn owned(known: &[&str]) -> Vec<String> {
    known.iter().map(|&word| word.to_owned()).collect()
}

fn words(known: &[String]) -> Vec<&str> {
    known.iter().map(String::as_str).collect()
}

/// Tables that were buffered in between give their errors as text; serde's own sentences are taken apart again.
fn understand(message: String) -> Kind {
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    if message.starts_with("unknown field `")
        && let Some(key) = quoted.next()
    {
        return Kind::UnknownKey {
            key,
            known: quoted.collect(),
        };
    }
    if message.starts_with("unknown variant `")
        && let Some(word) = quoted.next()
    {
        return Kind::UnknownWord {
            word,
            known: quoted.collect(),
        };
    }
    if message.starts_with("missing field `")
        && let Some(key) = quoted.next()
    {
        return Kind::Missing { key };
    }
    Kind::Value { message }
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("`{value}`"),
        Unexpected::Signed(value) => format!("`{value}`"),
        Unexpected::Float(value) => format!("`{value}`"),
        Unexpected::Str(text) => format!("\"{}\"", text.chars().take(60).collect::<String>()),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// A node as a serde deserializer.
struct Reader<'a>(&'a Node);

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::String(text) => visitor.visit_string(text.clone()),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Date(text) => Err(de::Error::custom(format_args!(
                "a date ({text}) means nothing here"
            ))),
            Value::Array(items) => visitor.visit_seq(Items {
                items: items.iter(),
                index: 0,
            }),
            Value::Table(table) => visitor.visit_map(Entries {
                entries: table.entries.iter(),
                open: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::String(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            Value::Table(table) if table.entries.len() == 1 => {
                visitor.visit_enum(Variant(&table.entries[0]))
            }
            Value::Table(_) => Err(de::Error::custom("expected a table with one key")),
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, Entry>,
    open: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.open = Some(entry);
        let key: de::value::StrDeserializer<'_, Fault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|fault| fault.within(&entry.key, &entry.key_at, true))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some(entry) = self.open else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(Reader(&entry.node)).map_err(|fault| {
            let exact = !matches!(entry.node.value, Value::Table(_) | Value::Array(_));
            let at = if exact { &entry.node.at } else { &entry.key_at };
            fault.within(&entry.key, at, exact)
        })
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|fault| {
            let exact = !matches!(item.value, Value::Table(_) | Value::Array(_));
            fault.within(&index.to_string(), &item.at, exact)
        })
    }
}

struct Variant<'a>(&'a Entry);

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let key: de::value::StrDeserializer<'_, Fault> = self.0.key.as_str().into_deserializer();
        let name = seed
            .deserialize(key)
            .map_err(|fault| fault.within(&self.0.key, &self.0.key_at, true))?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(de::Error::custom(format_args!(
            "`{}` stands alone, without a table",
            self.0.key
        )))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(Reader(&self.0.node))
            .map_err(|fault| fault.within(&self.0.key, &self.0.node.at, false))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        Reader(&self.0.node).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        Reader(&self.0.node).deserialize_any(visitor)
    }
}
