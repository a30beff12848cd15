//! Reading and printing quantities: `b` is a bit, `B` a byte, `k M G T` are decimal, `Ki Mi Gi Ti` binary.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{BitRate, Bytes, Span, Time};

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// No digits, a sign, an exponent, `nan`, or more than one point.
    #[error("`{text}` is not a number with a unit, like {example}")]
    NotANumber {
        /// What was read.
        text: String,
        /// A correct value of this kind.
        example: &'static str,
    },
    /// A number without a unit (only 0 may stand alone).
    #[error("`{text}` has no unit: write it like {example}")]
    NoUnit {
        /// What was read.
        text: String,
        /// A correct value of this kind.
        example: &'static str,
    },
    /// A unit of another kind, or unknown.
    #[error("`{unit}` is not a unit of {kind}: use one of {known}")]
    UnknownUnit {
        /// The unit as it was read.
        unit: String,
        /// What was expected.
        kind: &'static str,
        /// All units of the kind.
        known: String,
    },
    /// Less than zero.
    #[error("`{text}` is negative: {kind} starts at 0")]
    Negative {
        /// What was read.
        text: String,
        /// What was expected.
        kind: &'static str,
    },
    /// More than 64 bits of the base unit.
    #[error("`{text}` is too large for {kind}")]
    TooLarge {
        /// What was read.
        text: String,
        /// What was expected.
        kind: &'static str,
    },
    /// Not a whole number of the base unit.
    #[error("`{text}` is finer than {kind} can hold (the base unit is {base})")]
    TooFine {
        /// What was read.
        text: String,
        /// What was expected.
        kind: &'static str,
        /// The base unit.
        base: &'static str,
    },
}

struct Kind {
    name: &'static str,
    example: &'static str,
    base: &'static str,
    /// Unit and its size in base units; the first that divides a value exactly is used for printing.
    units: &'static [(&'static str, u64)],
    /// Other spellings that are read but not printed.
    aliases: &'static [(&'static str, u64)],
}

const SPAN: Kind = Kind {
    name: "a time",
    example: "\"1.5us\"",
    base: "1 ps",
    units: &[
        ("s", 1_000_000_000_000),
        ("ms", 1_000_000_000),
        ("us", 1_000_000),
        ("ns", 1000),
        ("ps", 1),
    ],
    aliases: &[("µs", 1_000_000), ("min", 60_000_000_000_000)],
};

const BYTES: Kind = Kind {
    name: "a size",
    example: "\"64KiB\"",
    base: "1 B",
    units: &[
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1000),
        ("B", 1),
    ],
    aliases: &[("KB", 1000)],
};

const RATE: Kind = Kind {
    name: "a data rate",
    example: "\"100Gbps\"",
    base: "1 bps",
    units: &[
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("kbps", 1000),
        ("bps", 1),
    ],
    aliases: &[
        ("Tb/s", 1_000_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Mb/s", 1_000_000),
        ("Mbit/s", 1_000_000),
        ("Kbps", 1000),
        ("kb/s", 1000),
        ("b/s", 1),
    ],
};

impl Kind {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let not_a_number = || UnitError::NotANumber {
            text: text.to_owned(),
            example: self.example,
        };
        let (negative, unsigned) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed),
        };
        let split = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(unsigned.len());
        let (number, unit) = unsigned.split_at(split);
        let unit = unit.trim();
        let number: String = number.chars().filter(|&c| c != '_').collect();
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.is_empty() || fraction.contains('.') {
            return Err(not_a_number());
        }
        if negative {
            return Err(UnitError::Negative {
                text: text.to_owned(),
                kind: self.name,
            });
        }
        let too_large = || UnitError::TooLarge {
            text: text.to_owned(),
            kind: self.name,
        };
        let digits: u128 = format!("{whole}{fraction}")
            .parse()
            .map_err(|_| too_large())?;
        if unit.is_empty() {
            return if digits == 0 {
                Ok(0)
            } else {
                Err(UnitError::NoUnit {
                    text: text.to_owned(),
                    example: self.example,
                })
            };
        }
        let size = self
            .units
            .iter()
            .chain(self.aliases)
            .find(|(name, _)| *name == unit)
            .map(|&(_, size)| size)
            .ok_or_else(|| UnitError::UnknownUnit {
                unit: unit.to_owned(),
                kind: self.name,
                known: self
                    .units
                    .iter()
                    .rev()
                    .map(|(name, _)| *name)
                    .collect::<Vec<_>>()
                    .join(", "),
            })?;
        let scale = u32::try_from(fraction.len())
            .ok()
            .and_then(|places| 10u128.checked_pow(places))
            .ok_or_else(not_a_number)?;
        let scaled = digits.checked_mul(u128::from(size)).ok_or_else(too_large)?;
        if scaled % scale != 0 {
            return Err(UnitError::TooFine {
                text: text.to_owned(),
                kind: self.name,
                base: self.base,
            });
        }
        u64::try_from(scaled / scale).map_err(|_| too_large())
    }

    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Up to three decimals keep values short and still exact: 1.5us, 12.48us.
        for &(name, size) in self.units {
            if value < size || size == 0 {
                continue;
            }
            let decimal = size.is_multiple_of(1000);
            if value.is_multiple_of(size) {
                return write!(f, "{}{name}", value / size);
            }
            if decimal && (value % size).is_multiple_of(size / 1000) {
                let fraction = format!("{:03}", value % size / (size / 1000));
                return write!(
                    f,
                    "{}.{}{name}",
                    value / size,
                    fraction.trim_end_matches('0')
                );
            }
        }
        let smallest = self.units.last().map_or("", |(name, _)| name);
        write!(f, "{value}{smallest}")
    }
}

macro_rules! textual {
    ($name:ident, $kind:expr, $expected:literal, $pattern:literal) => {
        impl $name {
            /// What is expected where a value of this kind is read.
            pub const EXPECTED: &str = $expected;
        }

        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $kind.parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $kind.print(self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_u64(self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if !deserializer.is_human_readable() {
                    return u64::deserialize(deserializer).map($name);
                }
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($name::EXPECTED)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, value: u64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, value: f64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": concat!(stringify!($name), ": a number with its unit, or 0"),
                    "x-quantity": stringify!($name),
                    "oneOf": [{"type": "string", "pattern": $pattern}, {"const": 0}],
                })
            }
        }
    };
}

textual!(
    Span,
    SPAN,
    "a time with its unit, like \"1.5us\"",
    r"^[0-9][0-9_]*(\.[0-9]+)?\s*(ps|ns|us|µs|ms|s|min)$"
);
textual!(
    Bytes,
    BYTES,
    "a size with its unit, like \"64KiB\"",
    r"^[0-9][0-9_]*(\.[0-9]+)?\s*(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
);
textual!(
    BitRate,
    RATE,
    "a data rate with its unit, like \"100Gbps\"",
    r"^[0-9][0-9_]*(\.[0-9]+)?\s*(bps|kbps|Kbps|Mbps|Gbps|Tbps|b/s|kb/s|Mb/s|Mbit/s|Gb/s|Gbit/s|Tb/s)$"
);

/// So many of something: `1 host`, `4 hosts`, `2 switches`, `0 entries`.
pub fn many<N: fmt::Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    let vowel = |c: char| "aeiou".contains(c);
    match what.strip_suffix('y') {
        _ if number == N::from(1) => format!("{number} {what}"),
        Some(stem) if !stem.ends_with(vowel) => format!("{number} {stem}ies"),
        _ if what.ends_with(['s', 'x']) || what.ends_with("ch") => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_the_same_quantity() {
        for text in ["1.5us", "12.48us", "1ps", "3s", "0ps"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["64KiB", "32MiB", "10MB", "1000MiB", "5.52MB", "1B"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        for text in ["100Gbps", "1.6Tbps", "615Mbps", "12.5Gbps"] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_not_a_quantity() {
        use UnitError::*;
        assert!(matches!("64".parse::<Bytes>(), Err(NoUnit { .. })));
        assert!(matches!("-1us".parse::<Span>(), Err(Negative { .. })));
        assert!(matches!("nan".parse::<Span>(), Err(NotANumber { .. })));
        assert!(matches!("1.2.3us".parse::<Span>(), Err(NotANumber { .. })));
        assert!(matches!("1Gbps".parse::<Bytes>(), Err(UnknownUnit { .. })));
        assert!(matches!("1.5B".parse::<Bytes>(), Err(TooFine { .. })));
        assert!(matches!(
            "99999999999TiB".parse::<Bytes>(),
            Err(TooLarge { .. })
        ));
        assert!(matches!("".parse::<Bytes>(), Err(NotANumber { .. })));
    }

    #[test]
    fn one_of_something_has_no_plural() {
        assert_eq!(many(1u32, "host"), "1 host");
        assert_eq!(many(0usize, "host"), "0 hosts");
        assert_eq!(many(2u64, "switch"), "2 switches");
        assert_eq!(many(3u8, "entry"), "3 entries");
        assert_eq!(many(4u32, "array"), "4 arrays");
    }

    #[test]
    fn zero_needs_no_unit() {
        assert_eq!("0".parse::<Span>().unwrap(), Span::ZERO);
    }

    #[test]
    fn transmission_time_rounds_up_once_per_packet() {
        // 1048 B at 100 Gbit/s: 8,384 bits x 10 ps.
        assert_eq!(
            BitRate::from_gbps(100).transmission_time(Bytes(1048)),
            Span(83_840)
        );
        assert_eq!(
            BitRate(3).transmission_time(Bytes(1)),
            Span(2_666_666_666_667)
        );
        let message = BitRate::from_gbps(100).transmission_time(Bytes(1 << 40));
        assert_eq!(message, Span((1u64 << 40) * 80));
    }
}
