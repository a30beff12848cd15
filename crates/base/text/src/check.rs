//! A value beside its schema: the first thing that is wrong with it, and where.
//!
//! Of alternatives (`kind = "..."`, a number or a name) the one is taken whose kind of value, tag and needed keys fit. Where
//! none or several do, what is inside is left to the reader of the type.

use raddle_units::many;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    finding::{Finding, FindingKind, Step},
    limits::{Length, ONE_LINE, Quantity, Range, keyword},
};

/// Longest text that a message repeats, in characters.
const SHOWN: usize = 60;

/// Judges what was read for a `T`: kinds of values, units, limits, unknown and missing keys.
///
/// # Errors
/// The first thing that is wrong.
pub fn check<T: JsonSchema>(value: &Value) -> Result<(), Finding> {
    let schema = schema_for!(T).to_value();
    Checker { root: &schema }.check(&schema, value)
}

/// Judges a value that was made in memory: its limits.
///
/// # Errors
/// The first setting that is out of its limits.
pub fn check_value<T: JsonSchema + Serialize>(value: &T) -> Result<(), Finding> {
    match serde_json::to_value(value) {
        Ok(value) => check::<T>(&value),
        Err(error) => Err(Finding::new(FindingKind::Value(error.to_string()))),
    }
}

type Parts<'s> = Vec<&'s Map<String, Value>>;

struct Checker<'s> {
    root: &'s Value,
}

impl<'s> Checker<'s> {
    fn check(&self, schema: &'s Value, value: &Value) -> Result<(), Finding> {
        let mut parts = Parts::new();
        self.gather(schema, value, &mut parts)?;
        let about = || {
            let about = keyword(&parts, "description").and_then(Value::as_str);
            about.map(|text| text.replace('\n', " "))
        };
        let judged = match Quantity::of(&parts) {
            Some(kind) => quantity(kind, &parts, value),
            None => self.judge(&parts, value),
        };
        judged.map_err(|mut finding| {
            if finding.path.is_empty() && finding.about.is_none() {
                finding.about = about();
            }
            finding
        })
    }

    /// All schemas that hold for a value: `schema`, what it refers to, and the alternative that is meant.
    fn gather(
        &self,
        schema: &'s Value,
        value: &Value,
        parts: &mut Parts<'s>,
    ) -> Result<(), Finding> {
        let Value::Object(own) = schema else {
            return Ok(());
        };
        parts.push(own);
        if let Some(target) = self.target(own) {
            self.gather(target, value, parts)?;
        }
        if Quantity::of(&[own]).is_none()
            && let Some(meant) = self.choose(own, value)?
        {
            self.gather(meant, value, parts)?;
        }
        Ok(())
    }

    fn target(&self, schema: &Map<String, Value>) -> Option<&'s Value> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(name)
    }

    /// The alternative that is meant.
    fn choose(
        &self,
        schema: &'s Map<String, Value>,
        value: &Value,
    ) -> Result<Option<&'s Value>, Finding> {
        let mut all = Vec::new();
        self.alternatives(schema, &mut all);
        if all.is_empty() {
            return Ok(None);
        }
        let fitting: Vec<&Alternative<'_>> = all
            .iter()
            .filter(|one| one.kinds.iter().any(|kind| is_kind(kind, value)))
            .collect();
        if fitting.is_empty() {
            return Err(wrong_kind(&expected(&all), value));
        }
        match value {
            Value::String(word) => choose_word(&fitting, word),
            Value::Object(table) => choose_table(&fitting, table),
            _ => Ok(Some(fitting[0].schema)),
        }
    }

    fn alternatives(&self, schema: &'s Map<String, Value>, into: &mut Vec<Alternative<'s>>) {
        let listed = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema.get(*key)?.as_array());
        for one in listed.flatten() {
            let mut parts = Parts::new();
            let mut next = Some(one);
            while let Some(Value::Object(part)) = next {
                parts.push(part);
                next = self.target(part);
            }
            let before = into.len();
            if Quantity::of(&parts).is_none() {
                for part in &parts {
                    self.alternatives(part, into);
                }
            }
            if into.len() == before {
                into.push(Alternative::new(one, parts));
            }
        }
    }

    fn judge(&self, parts: &Parts<'s>, value: &Value) -> Result<(), Finding> {
        let kinds = kinds_of(parts);
        let words = words_of(parts);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(kind, value)) {
            let expected = match words.as_slice() {
                [] => kind_words(&kinds),
                words => one_of(words),
            };
            return Err(wrong_kind(&expected, value));
        }
        match value {
            Value::Number(number) => in_range(parts, number),
            Value::String(word) if !words.is_empty() && !words.contains(&word.as_str()) => {
                Err(unknown_word(word, words))
            }
            Value::String(text) => {
                length(parts, text.chars().count())?;
                let odd = text.trim().is_empty() || text.contains(char::is_control);
                if keyword(parts, ONE_LINE).is_some() && odd {
                    let message = "it must be one line of words".to_owned();
                    return Err(Finding::new(FindingKind::Value(message)));
                }
                Ok(())
            }
            Value::Array(items) => {
                length(parts, items.len())?;
                self.items(parts, items)
            }
            Value::Object(table) => self.table(parts, table),
            _ => Ok(()),
        }
    }

    fn items(&self, parts: &Parts<'s>, items: &[Value]) -> Result<(), Finding> {
        let first = keyword(parts, "prefixItems").and_then(Value::as_array);
        let rest = keyword(parts, "items");
        for (index, item) in items.iter().enumerate() {
            let own = first.and_then(|first| first.get(index)).or(rest);
            if let Some(schema) = own {
                self.check(schema, item)
                    .map_err(|finding| finding.within(Step::Item(index)))?;
            }
        }
        Ok(())
    }

    fn table(&self, parts: &Parts<'s>, table: &Map<String, Value>) -> Result<(), Finding> {
        let properties = || {
            parts
                .iter()
                .filter_map(|part| part.get("properties")?.as_object())
        };
        let others = keyword(parts, "additionalProperties");
        // An unknown key first: it may be a slip of the one that is missing.
        for (key, value) in table {
            let at = |finding: Finding| finding.within(Step::Key(key.clone()));
            match (properties().find_map(|own| own.get(key)), others) {
                (Some(schema), _) => self.check(schema, value).map_err(at)?,
                (None, Some(Value::Bool(false))) => {
                    let known = properties().flat_map(|own| own.keys().cloned()).collect();
                    return Err(at(Finding::new(FindingKind::UnknownKey { known })));
                }
                (None, Some(schema)) => self.check(schema, value).map_err(at)?,
                (None, None) => {}
            }
        }
        let needed = parts
            .iter()
            .filter_map(|part| part.get("required")?.as_array());
        let mut needed = needed.flatten().filter_map(Value::as_str);
        match needed.find(|key| !table.contains_key(*key)) {
            Some(key) => Err(Finding::new(FindingKind::Missing {
                key: key.to_owned(),
            })),
            None => Ok(()),
        }
    }
}

/// One of several kinds of value that a setting may be.
struct Alternative<'s> {
    schema: &'s Value,
    parts: Parts<'s>,
    kinds: Vec<&'s str>,
}

impl<'s> Alternative<'s> {
    fn new(schema: &'s Value, parts: Parts<'s>) -> Self {
        let kinds = kinds_of(&parts);
        Self {
            schema,
            parts,
            kinds,
        }
    }

    /// The words that it may be; none where any text will do.
    fn words(&self) -> Vec<&'s str> {
        words_of(&self.parts)
    }

    /// Keys whose value says that this alternative is meant.
    fn tags(&self) -> Vec<(&'s str, &'s str)> {
        let properties = self
            .parts
            .iter()
            .filter_map(|part| part.get("properties")?.as_object());
        properties
            .flatten()
            .filter_map(|(key, schema)| Some((key.as_str(), schema.get("const")?.as_str()?)))
            .collect()
    }

    fn has_needed_keys_of(&self, table: &Map<String, Value>) -> bool {
        let needed = self
            .parts
            .iter()
            .filter_map(|part| part.get("required")?.as_array());
        let mut needed = needed.flatten().filter_map(Value::as_str);
        needed.all(|key| table.contains_key(key))
    }
}

fn choose_word<'s>(fitting: &[&Alternative<'s>], word: &str) -> Result<Option<&'s Value>, Finding> {
    let own = |one: &&&Alternative<'s>| {
        let words = one.words();
        words.is_empty() || words.contains(&word)
    };
    match fitting.iter().find(own) {
        Some(one) => Ok(Some(one.schema)),
        None => Err(unknown_word(
            word,
            fitting.iter().flat_map(|one| one.words()),
        )),
    }
}

fn choose_table<'s>(
    fitting: &[&Alternative<'s>],
    table: &Map<String, Value>,
) -> Result<Option<&'s Value>, Finding> {
    let says = |(key, word): &(&str, &str)| table.get(*key).is_some_and(|value| value == word);
    let meant: Vec<_> = fitting
        .iter()
        .filter(|one| match one.tags().as_slice() {
            [] => one.has_needed_keys_of(table),
            tags => tags.iter().all(says),
        })
        .collect();
    if let [one] = meant.as_slice() {
        return Ok(Some(one.schema));
    }
    let tags: Vec<_> = fitting.iter().flat_map(|one| one.tags()).collect();
    let said = tags
        .iter()
        .find_map(|(key, _)| Some((*key, table.get(*key)?)));
    match said {
        Some((key, value)) if meant.is_empty() => {
            let known = || {
                tags.iter()
                    .filter(|(tag, _)| *tag == key)
                    .map(|(_, word)| *word)
            };
            let finding = match value {
                Value::String(word) => unknown_word(word, known()),
                other => wrong_kind("a word in quotes", other),
            };
            Err(finding.within(Step::Key(key.to_owned())))
        }
        _ => Ok(None),
    }
}

fn unknown_word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Finding {
    let word = word.chars().take(SHOWN).collect();
    let known = known.into_iter().map(str::to_owned).collect();
    Finding::new(FindingKind::UnknownWord { word, known })
}

/// The words that a text may be; none where any will do.
fn words_of<'s>(parts: &Parts<'s>) -> Vec<&'s str> {
    let one = keyword(parts, "const").and_then(Value::as_str);
    let several = keyword(parts, "enum").and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(Value::as_str);
    one.into_iter().chain(several).collect()
}

fn kinds_of<'s>(parts: &Parts<'s>) -> Vec<&'s str> {
    if Quantity::of(parts).is_some() {
        // 0 needs no unit, and a number without one is told so.
        return vec!["string", "number"];
    }
    match keyword(parts, "type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_))
        | ("null", Value::Null) => true,
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

/// What may stand in the place of alternatives: `one of a, b`, or the kinds of values.
fn expected(all: &[Alternative<'_>]) -> String {
    let words: Vec<&str> = all.iter().flat_map(Alternative::words).collect();
    let mut told: Vec<String> = Vec::new();
    if !words.is_empty() {
        told.push(one_of(&words));
    }
    for one in all.iter().filter(|one| one.words().is_empty()) {
        let word = match Quantity::of(&one.parts) {
            Some(kind) => kind.expected().to_owned(),
            None => kind_words(&one.kinds),
        };
        if !word.is_empty() && !told.contains(&word) {
            told.push(word);
        }
    }
    told.join(" or ")
}

fn one_of(words: &[&str]) -> String {
    format!("one of \"{}\"", words.join("\", \""))
}

fn kind_words(kinds: &[&str]) -> String {
    let words = kinds.iter().filter_map(|kind| match *kind {
        "string" => Some("text in quotes"),
        "number" => Some("a number"),
        "integer" => Some("a whole number"),
        "boolean" => Some("true or false"),
        "array" => Some("a list"),
        "object" => Some("a table"),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" or ")
}

fn wrong_kind(expected: &str, value: &Value) -> Finding {
    Finding::new(FindingKind::Value(format!(
        "expected {expected}, found {}",
        told(value)
    )))
}

/// A value as a message repeats it.
fn told(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        Value::String(text) => {
            let mut shown: String = text.chars().take(SHOWN).collect();
            if text.chars().nth(SHOWN).is_some() {
                shown.push_str("...");
            }
            format!("\"{shown}\"")
        }
        plain => format!("`{plain}`"),
    }
}

fn out_of_range(found: &str, allowed: &str) -> Finding {
    let message = format!("{found} is out of range: it must be {allowed}");
    Finding::new(FindingKind::Value(message))
}

fn quantity(kind: Quantity, parts: &Parts<'_>, value: &Value) -> Result<(), Finding> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(wrong_kind(kind.expected(), other)),
    };
    let parsed = kind.parse(&text);
    let parsed = parsed.map_err(|error| Finding::new(FindingKind::Value(error.to_string())))?;
    let range = Range::of(parts);
    if range.holds_quantity(kind, parsed) {
        return Ok(());
    }
    Err(out_of_range(text.trim(), &range.told().unwrap_or_default()))
}

fn in_range(parts: &Parts<'_>, number: &serde_json::Number) -> Result<(), Finding> {
    let range = Range::of(parts);
    let value = number.as_f64().unwrap_or(f64::NAN);
    let fits = match keyword(parts, "format").and_then(Value::as_str) {
        Some(format @ ("uint8" | "uint16" | "uint32" | "uint64")) => {
            let most = match format {
                "uint8" => u8::MAX.into(),
                "uint16" => u16::MAX.into(),
                "uint32" => u32::MAX.into(),
                _ => u64::MAX,
            };
            number
                .as_u64()
                .is_some_and(|number| number <= most)
                .then_some(())
                .ok_or(most)
        }
        _ => Ok(()),
    };
    let allowed = match (range.holds(value), fits) {
        (true, Ok(())) => return Ok(()),
        (false, _) => range.told().unwrap_or_else(|| "0 or more".to_owned()),
        (true, Err(most)) => format!("at most {most}"),
    };
    Err(out_of_range(&number.to_string(), &allowed))
}

fn length(parts: &Parts<'_>, found: usize) -> Result<(), Finding> {
    let length = Length::in_parts(parts);
    if length.holds(found) {
        return Ok(());
    }
    let has = match found {
        0 => format!("the {} is empty", length.what()),
        found => format!("it has {}", many(found, length.of())),
    };
    let allowed = length.told().unwrap_or_default();
    Err(Finding::new(FindingKind::Value(format!(
        "{has}: it must have {allowed}"
    ))))
}
