//! From the tree to typed values, with the place of whatever is wrong.
//!
//! What a type's schema says is checked first, where every place is known; what only the type itself knows comes after.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde_json::Value as Json;

use crate::{
    check::check,
    error::{InputError, Problem, clip},
    finding::{Finding, FindingKind, Step},
    place::Location,
    tree::{Entry, Node, Value},
    words,
};

/// Reads a `T`; errors point to the key or value that is wrong.
///
/// # Errors
/// An unknown key (with what may have been meant), a missing one, a value of the wrong kind or out of its limits, and what
/// `T` itself refuses.
pub fn read<T: DeserializeOwned + JsonSchema>(node: &Node) -> Result<T, InputError> {
    check::<T>(&plain(node)?).map_err(|finding| placed(node, &finding))?;
    T::deserialize(Reader(node)).map_err(|fault| fault.into_error(node))
}

/// The tree without its places.
fn plain(node: &Node) -> Result<Json, InputError> {
    Ok(match &node.value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        Value::Date(text) => {
            let message = format!("a date ({text}) means nothing here");
            return Err(value_error(&node.at, None, &message));
        }
        Value::Array(items) => Json::Array(items.iter().map(plain).collect::<Result<_, _>>()?),
        Value::Table(table) => {
            let entries = table.entries.iter();
            let entries = entries.map(|entry| Ok((entry.key.clone(), plain(&entry.node)?)));
            Json::Object(entries.collect::<Result<_, _>>()?)
        }
    })
}

/// What is wrong, at its place in the text.
fn placed(root: &Node, finding: &Finding) -> InputError {
    let at = place_of(root, &finding.path, &finding.kind);
    let keys: Vec<&str> = finding.keys().collect();
    let within = |keys: &[&str]| match keys {
        [] => String::new(),
        keys => format!(" in [{}]", keys.join(".")),
    };
    let key = finding.key().map(|key| format!("`{key}`"));
    let problem = match &finding.kind {
        FindingKind::UnknownKey { .. } => Problem::UnknownKey {
            key: clip(finding.key().unwrap_or_default()),
            within: within(&keys[..keys.len().saturating_sub(1)]),
        },
        FindingKind::Missing { key } => Problem::Missing {
            key: key.clone(),
            within: within(&keys),
        },
        FindingKind::UnknownWord { word, .. } => Problem::UnknownWord {
            what: match key {
                Some(key) if finding.in_list() => format!("word in {key}:"),
                key => key.unwrap_or_else(|| "value".to_owned()),
            },
            word: clip(word),
        },
        FindingKind::Value(message) => {
            return value_error(&at, finding.key(), message).hinted(finding);
        }
    };
    InputError::at(&at, problem).hinted(finding)
}

impl InputError {
    fn hinted(self, finding: &Finding) -> Self {
        match finding.hint() {
            Some(hint) => self.with_hint(clip(&hint)),
            None => self,
        }
    }
}

fn value_error(at: &Location, key: Option<&str>, message: &str) -> InputError {
    let problem = Problem::Value {
        key: key.map_or_else(String::new, |key| format!("`{key}`: ")),
        message: clip(message),
    };
    InputError::at(at, problem)
}

/// The value at the end of the path, or the key where it is the key that is wrong.
fn place_of(root: &Node, path: &[Step], kind: &FindingKind) -> Location {
    let (mut node, mut key) = (root, None);
    for step in path {
        let next = match (step, &node.value) {
            (Step::Key(name), Value::Table(table)) => table
                .get(name)
                .map(|entry| (&entry.node, Some(&entry.key_at))),
            (Step::Item(index), Value::Array(items)) => items.get(*index).map(|item| (item, None)),
            _ => None,
        };
        let Some(next) = next else { break };
        (node, key) = next;
    }
    match (kind, key) {
        (FindingKind::UnknownKey { .. }, Some(key)) => key.clone(),
        _ => node.at.clone(),
    }
}

/// What a type refused, and where as far as it is known.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    /// Keys from the root to the value.
    path: Vec<String>,
    at: Option<Location>,
}

impl Fault {
    /// Where `self` comes from, seen from the value of `key`.
    fn within(mut self, key: &str, at: &Location) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self.path.insert(0, key.to_owned());
        self
    }

    fn into_error(self, root: &Node) -> InputError {
        let at = self.at.unwrap_or_else(|| root.at.clone());
        let mut keys = self.path.iter().rev();
        let key = keys.find(|key| key.parse::<usize>().is_err());
        value_error(&at, key.map(String::as_str), &words::plain(&self.message))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            path: Vec::new(),
            at: None,
        }
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
            .map_err(|fault| fault.within(&entry.key, &entry.key_at))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some(entry) = self.open else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(Reader(&entry.node)).map_err(|fault| {
            let at = match entry.node.value {
                Value::Table(_) | Value::Array(_) => &entry.key_at,
                _ => &entry.node.at,
            };
            fault.within(&entry.key, at)
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
        let made = seed.deserialize(Reader(item));
        made.map(Some)
            .map_err(|fault| fault.within(&index.to_string(), &item.at))
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
            .map_err(|fault| fault.within(&self.0.key, &self.0.key_at))?;
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
            .map_err(|fault| fault.within(&self.0.key, &self.0.node.at))
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
