//! How a field says its limits.

use raddle_units::{BitRate, Bytes, Span, UnitError};
use schemars::Schema;
use serde_json::{Map, Value};

/// Keyword of a schema: the least value of a quantity, with its unit.
const LEAST: &str = "x-minimum";
/// Keyword of a schema: the largest value of a quantity, with its unit.
const MOST: &str = "x-maximum";
/// Keyword of a schema: a text of one line.
pub(crate) const ONE_LINE: &str = "x-one-line";
/// Keyword of a schema: which quantity a text is. The types of `units` set it.
const QUANTITY: &str = "x-quantity";

/// Limits of a quantity, for `#[schemars(transform = ...)]`: both are possible values, written with their unit.
pub fn between(least: &'static str, most: &'static str) -> impl Fn(&mut Schema) {
    move |schema| {
        set(schema, LEAST, least);
        set(schema, MOST, most);
    }
}

/// The least value of a quantity, for `#[schemars(transform = ...)]`.
pub fn at_least(least: &'static str) -> impl Fn(&mut Schema) {
    move |schema| set(schema, LEAST, least)
}

/// The largest value of a quantity, for `#[schemars(transform = ...)]`.
pub fn at_most(most: &'static str) -> impl Fn(&mut Schema) {
    move |schema| set(schema, MOST, most)
}

/// A text of one line: 1 to `most` characters, not all of them spaces and none of them a control character.
pub fn one_line(most: u32) -> impl Fn(&mut Schema) {
    move |schema| {
        schema.insert("minLength".to_owned(), 1.into());
        schema.insert("maxLength".to_owned(), most.into());
        schema.insert(ONE_LINE.to_owned(), true.into());
    }
}

/// Gives the items of a list what `limit` gives a field: `each(at_least("1bps"))`.
pub fn each(limit: impl Fn(&mut Schema)) -> impl Fn(&mut Schema) {
    move |schema| {
        if let Some(items) = schema.get_mut("items")
            && let Ok(items) = items.try_into()
        {
            limit(items);
        }
    }
}

fn set(schema: &mut Schema, keyword: &str, limit: &str) {
    debug_assert!(
        ["Span", "Bytes", "BitRate"]
            .iter()
            .any(|kind| Quantity::named(kind).is_some_and(|kind| kind.parse(limit).is_ok())),
        "{limit} is no quantity"
    );
    schema.insert(keyword.to_owned(), limit.into());
}

/// Adds to every field's description what its limits are, for the people who read a published schema.
pub fn describe(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let range = Range::of(&[&*map])
                .told()
                .or_else(|| Length::in_parts(&[&*map]).told());
            if let (Some(range), Some(Value::String(about))) = (range, map.get_mut("description")) {
                about.push_str(&format!(" Allowed: {range}."));
            }
            for (_, value) in map.iter_mut() {
                describe(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(describe),
        _ => {}
    }
}

/// A quantity that a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Span,
    Bytes,
    BitRate,
}

impl Quantity {
    pub(crate) fn of(parts: &[&Map<String, Value>]) -> Option<Self> {
        keyword(parts, QUANTITY)?.as_str().and_then(Self::named)
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "Span" => Some(Self::Span),
            "Bytes" => Some(Self::Bytes),
            "BitRate" => Some(Self::BitRate),
            _ => None,
        }
    }

    /// The value in base units.
    pub(crate) fn parse(self, text: &str) -> Result<u64, UnitError> {
        match self {
            Self::Span => text.parse().map(|Span(value)| value),
            Self::Bytes => text.parse().map(|Bytes(value)| value),
            Self::BitRate => text.parse().map(|BitRate(value)| value),
        }
    }

    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Span => Span::EXPECTED,
            Self::Bytes => Bytes::EXPECTED,
            Self::BitRate => BitRate::EXPECTED,
        }
    }
}

/// The first value of a keyword among the schemas that hold for a value.
pub(crate) fn keyword<'s>(parts: &[&'s Map<String, Value>], key: &str) -> Option<&'s Value> {
    parts.iter().find_map(|part| part.get(key))
}

/// The limits of a number or a quantity, as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) least: Option<Value>,
    pub(crate) most: Option<Value>,
    pub(crate) above: Option<Value>,
    pub(crate) below: Option<Value>,
    pub(crate) multiple_of: Option<Value>,
}

impl Range {
    pub(crate) fn of(parts: &[&Map<String, Value>]) -> Self {
        let get = |keys: [&str; 2]| keys.iter().find_map(|key| keyword(parts, key)).cloned();
        Self {
            least: get([LEAST, "minimum"]),
            most: get([MOST, "maximum"]),
            above: keyword(parts, "exclusiveMinimum").cloned(),
            below: keyword(parts, "exclusiveMaximum").cloned(),
            multiple_of: keyword(parts, "multipleOf").cloned(),
        }
    }

    /// Whether a number lies inside.
    pub(crate) fn holds(&self, number: f64) -> bool {
        let limit = |limit: &Option<Value>| limit.as_ref().and_then(Value::as_f64);
        limit(&self.least).is_none_or(|least| number >= least)
            && limit(&self.most).is_none_or(|most| number <= most)
            && limit(&self.above).is_none_or(|above| number > above)
            && limit(&self.below).is_none_or(|below| number < below)
            && limit(&self.multiple_of).is_none_or(|step| number % step == 0.0)
    }

    /// Whether a quantity lies inside.
    pub(crate) fn holds_quantity(&self, kind: Quantity, value: u64) -> bool {
        let limit = |limit: &Option<Value>| {
            let text = limit.as_ref().and_then(Value::as_str);
            text.and_then(|text| kind.parse(text).ok())
        };
        limit(&self.least).is_none_or(|least| value >= least)
            && limit(&self.most).is_none_or(|most| value <= most)
    }

    /// `from 1 to 8`, `at least 64B`, `above 0 and at most 2`; `None` where all is allowed that the type can hold.
    pub(crate) fn told(&self) -> Option<String> {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            // A whole number is written as one, also where the limit is a float.
            Value::Number(number) if number.is_f64() => {
                format!("{}", number.as_f64().unwrap_or_default())
            }
            other => other.to_string(),
        };
        if let (Some(least), Some(most)) = (&self.least, &self.most) {
            return Some(format!("from {} to {}", plain(least), plain(most)));
        }
        let ends = [
            ("at least", &self.least),
            ("above", &self.above),
            ("at most", &self.most),
            ("below", &self.below),
            ("a multiple of", &self.multiple_of),
        ];
        let told: Vec<String> = ends
            .into_iter()
            .filter_map(|(word, limit)| Some((word, limit.as_ref()?)))
            // Every unsigned number has this one.
            .filter(|(word, limit)| !(*word == "at least" && limit.as_f64() == Some(0.0)))
            .map(|(word, limit)| format!("{word} {}", plain(limit)))
            .collect();
        (!told.is_empty()).then(|| told.join(" and "))
    }
}

/// How long a list or a text may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Length {
    least: Option<u64>,
    most: Option<u64>,
    of_text: bool,
}

impl Length {
    pub(crate) fn in_parts(parts: &[&Map<String, Value>]) -> Self {
        let get = |key| keyword(parts, key).and_then(Value::as_u64);
        let of_text = get("minLength").is_some() || get("maxLength").is_some();
        Self {
            least: get("minItems").or_else(|| get("minLength")),
            most: get("maxItems").or_else(|| get("maxLength")),
            of_text,
        }
    }

    pub(crate) fn holds(self, length: usize) -> bool {
        let length = length as u64;
        self.least.is_none_or(|least| length >= least)
            && self.most.is_none_or(|most| length <= most)
    }

    /// What has the length.
    pub(crate) const fn what(self) -> &'static str {
        if self.of_text { "text" } else { "list" }
    }

    /// What is counted.
    pub(crate) const fn of(self) -> &'static str {
        if self.of_text { "character" } else { "item" }
    }

    /// `1 to 8 items`, `at least 1 item`, `1 to 120 characters`.
    pub(crate) fn told(self) -> Option<String> {
        let many = |number: u64| raddle_units::many(number, self.of());
        match (self.least, self.most) {
            (None, None) => None,
            (Some(least), None) => Some(format!("at least {}", many(least))),
            (None, Some(most)) => Some(format!("at most {}", many(most))),
            (Some(least), Some(most)) if least == most => Some(many(least)),
            (Some(least), Some(most)) => Some(format!("{least} to {}", many(most))),
        }
    }
}
