//! Whole numbers and node names in TOML and JSON, with errors that say what was expected.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::build::MAX_NODES;

/// A whole number from 0 that fits in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Whole(pub(crate) u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl de::Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0, without quotes")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Whole, E> {
        u32::try_from(value).map(Whole).map_err(|_| {
            E::custom(format!(
                "the number is too large: a map has at most {MAX_NODES} nodes"
            ))
        })
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Whole, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::custom("the number is negative: it starts at 0")),
        }
    }

    // TOML reads what needs more than 64 bits as these.
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Whole, E> {
        if value < 0 {
            self.visit_i64(i64::MIN)
        } else {
            self.visit_u64(u64::MAX)
        }
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Whole, E> {
        self.visit_u64(u64::MAX)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Whole, E> {
        Err(E::custom(format!("{value} is not a whole number, like 16")))
    }
}

/// For `deserialize_with`: a whole number.
pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Whole::deserialize(deserializer).map(|number| number.0)
}

/// For `deserialize_with`: a whole number that may be absent.
pub(crate) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    Ok(Option::<Whole>::deserialize(deserializer)?.map(|number| number.0))
}

/// For `deserialize_with`: the level of a switch, 1 to 255, that may be absent.
pub(crate) fn optional_level<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u8>, D::Error> {
    let Some(Whole(level)) = Option::<Whole>::deserialize(deserializer)? else {
        return Ok(None);
    };
    match u8::try_from(level) {
        Ok(level) if level > 0 => Ok(Some(level)),
        _ => Err(de::Error::custom(format!(
            "level {level}: the level of a switch is 1 to 255"
        ))),
    }
}

/// For `deserialize_with`: the name or the number of a node.
pub(crate) fn node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name or the number of a node, like \"h0\" or 0")
        }
        fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
            Ok(name.to_owned())
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            WholeVisitor
                .visit_u64(number)
                .map(|number| number.0.to_string())
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
            WholeVisitor
                .visit_i64(number)
                .map(|number| number.0.to_string())
        }
    }
    deserializer.deserialize_any(Visitor)
}
