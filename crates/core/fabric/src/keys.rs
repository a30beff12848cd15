//! Reading a description in two steps, so that errors keep their place: first every key of every kind with its type
//! ([`AllKeys`], where a wrong value is refused at its line), then the keys that the kind really has.

use std::fmt;

use raddle_text::words::closest;
use raddle_units::{BitRate, Span};
use schemars::schema_for;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IntoDeserializer, value::MapAccessDeserializer},
};

use crate::{
    builders::{
        CnTn, Dumbbell, FatTree, FatTree320, Graph, HostEntry, KAryFatTree, LeafSpine, LinkEntry,
        Small20, SwitchEntry,
    },
    error::shorten_word,
    numbers::Whole,
    spec::{FabricFile, FabricFormat, FabricSource, FabricSpec},
};

/// What is wrong with the keys as a whole.
pub(crate) struct KeyProblem {
    /// The key that should not be there; `None` where one is missing.
    pub(crate) key: Option<String>,
    pub(crate) message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Dumbbell,
    Small20,
    LeafSpine,
    FatTree,
    FatTree320,
    KAryFatTree,
    CnTn,
    Graph,
}

const KINDS: [(&str, Kind); 8] = [
    ("dumbbell", Kind::Dumbbell),
    ("small-20", Kind::Small20),
    ("leaf-spine", Kind::LeafSpine),
    ("fat-tree", Kind::FatTree),
    ("fat-tree-320", Kind::FatTree320),
    ("k-ary-fat-tree", Kind::KAryFatTree),
    ("cn-tn", Kind::CnTn),
    ("graph", Kind::Graph),
];

impl Kind {
    fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, kind)| kind)
    }

    /// The keys that a map of this kind may have, beside `kind`; taken from the schema, so they cannot drift.
    pub(crate) fn keys(self) -> Vec<String> {
        let schema = match self {
            Self::Dumbbell => schema_for!(Dumbbell),
            Self::Small20 => schema_for!(Small20),
            Self::LeafSpine => schema_for!(LeafSpine),
            Self::FatTree => schema_for!(FatTree),
            Self::FatTree320 => schema_for!(FatTree320),
            Self::KAryFatTree => schema_for!(KAryFatTree),
            Self::CnTn => schema_for!(CnTn),
            Self::Graph => schema_for!(Graph),
        };
        let properties = schema.get("properties").and_then(|value| value.as_object());
        properties
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default()
    }
}

/// Every key of every kind.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllKeys {
    #[serde(skip_serializing)]
    pub(crate) schema: Option<Whole>,
    #[serde(skip_serializing)]
    kind: Option<String>,
    #[serde(skip_serializing)]
    file: Option<String>,
    #[serde(skip_serializing)]
    format: Option<FabricFormat>,

    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    radix: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_rate: Option<BitRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fabric_rate: Option<BitRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tor_rate: Option<BitRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core_rate: Option<BitRate>,

    #[serde(skip_serializing_if = "Option::is_none")]
    hosts_per_side: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spines: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts_per_leaf: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links_per_spine: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tors_per_pod: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts_per_tor: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregations_per_pod: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores_per_aggregation: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    w: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminals_per_l0: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cns: Option<Whole>,

    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Vec<HostEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<Vec<SwitchEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Vec<LinkEntry>>,
}

impl AllKeys {
    /// Reads the keys; an unknown one is refused with what was meant, where the reader keeps places at its place.
    pub(crate) fn deserialize_checked<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CheckedVisitor)
    }

    pub(crate) fn into_source(self) -> Result<FabricSource, KeyProblem> {
        if self.schema.is_some_and(|schema| schema.0 != 1) {
            let message = "`schema` must be 1, the only version so far".to_owned();
            return Err(KeyProblem {
                key: Some("schema".to_owned()),
                message,
            });
        }
        match (self.file.clone(), &self.kind) {
            (Some(_), Some(_)) => Err(KeyProblem {
                key: Some("file".to_owned()),
                message:
                    "`kind` and `file` cannot both be given: describe the map or name its file"
                        .to_owned(),
            }),
            (Some(file), None) => self.into_file(file),
            (None, _) => self.into_spec().map(FabricSource::Spec),
        }
    }

    fn into_file(self, file: String) -> Result<FabricSource, KeyProblem> {
        let format = self.format.unwrap_or_default();
        match self.table()?.keys().next() {
            None => Ok(FabricSource::File(FabricFile { file, format })),
            Some(key) => Err(KeyProblem {
                key: Some(key.clone()),
                message: format!("`{key}` cannot stand beside `file`: the file describes the map"),
            }),
        }
    }

    fn into_spec(mut self) -> Result<FabricSpec, KeyProblem> {
        if self.format.is_some() {
            let message = "`format` needs `file`, the file to read".to_owned();
            return Err(KeyProblem {
                key: Some("format".to_owned()),
                message,
            });
        }
        let kind = self.kind()?;
        if kind == Kind::Graph {
            // Straight, because the lists may be long.
            let graph = Graph {
                name: self.name.take(),
                radix: self.radix.take().map(|radix| radix.0),
                host: self.host.take().unwrap_or_default(),
                switch: self.switch.take().unwrap_or_default(),
                link: self.link.take().unwrap_or_default(),
            };
            return match self.table()?.keys().next() {
                None => Ok(FabricSpec::Graph(graph)),
                Some(key) => Err(not_of_kind(kind, key)),
            };
        }
        let table = self.table()?;
        let keys = kind.keys();
        if let Some(key) = table.keys().find(|key| !keys.contains(key)) {
            return Err(not_of_kind(kind, key));
        }
        Ok(match kind {
            Kind::Dumbbell => FabricSpec::Dumbbell(parameters(kind, table)?),
            Kind::Small20 => FabricSpec::Small20(parameters(kind, table)?),
            Kind::LeafSpine => FabricSpec::LeafSpine(parameters(kind, table)?),
            Kind::FatTree => FabricSpec::FatTree(parameters(kind, table)?),
            Kind::FatTree320 => FabricSpec::FatTree320(parameters(kind, table)?),
            Kind::KAryFatTree => FabricSpec::KAryFatTree(parameters(kind, table)?),
            Kind::CnTn => FabricSpec::CnTn(parameters(kind, table)?),
            Kind::Graph => FabricSpec::Graph(parameters(kind, table)?),
        })
    }

    fn kind(&self) -> Result<Kind, KeyProblem> {
        let known = || KINDS.map(|(name, _)| name).join(", ");
        let Some(name) = &self.kind else {
            if self.host.is_some() || self.switch.is_some() || self.link.is_some() {
                return Ok(Kind::Graph);
            }
            let message = format!("`kind` is missing: it is one of {}", known());
            return Err(KeyProblem { key: None, message });
        };
        Kind::of_name(name).ok_or_else(|| {
            let cure = match closest(name, KINDS.iter().map(|(known, _)| *known)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("it is one of {}", known()),
            };
            let message = format!(
                "there is no kind of fabric `{}`: {cure}",
                shorten_word(name)
            );
            KeyProblem {
                key: Some("kind".to_owned()),
                message,
            }
        })
    }

    /// The parameters that were given.
    fn table(&self) -> Result<toml::Table, KeyProblem> {
        toml::Table::try_from(self).map_err(|error| KeyProblem {
            key: None,
            message: error.to_string(),
        })
    }
}

fn not_of_kind(kind: Kind, key: &str) -> KeyProblem {
    let keys = kind.keys();
    let cure = match closest(key, keys.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("its keys are {}", keys.join(", ")),
    };
    let message = format!("`{key}` is not a key of kind = \"{}\": {cure}", kind.name());
    KeyProblem {
        key: Some(key.to_owned()),
        message,
    }
}

fn parameters<T: de::DeserializeOwned>(kind: Kind, table: toml::Table) -> Result<T, KeyProblem> {
    T::deserialize(table).map_err(|error| {
        let message = match error.message().split('`').nth(1) {
            Some(key) if error.message().starts_with("missing field") => {
                format!("kind = \"{}\" needs `{key}`, which is missing", kind.name())
            }
            _ => error.message().to_owned(),
        };
        KeyProblem { key: None, message }
    })
}

impl<'de> Deserialize<'de> for FabricSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match FabricSource::deserialize(deserializer)? {
            FabricSource::Spec(spec) => Ok(spec),
            FabricSource::File(_) => Err(de::Error::custom(
                "`file` cannot stand here: describe the map itself, starting with `kind`",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for FabricSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = AllKeys::deserialize_checked(deserializer)?;
        keys.into_source()
            .map_err(|problem| de::Error::custom(problem.message))
    }
}

struct CheckedVisitor;

impl<'de> de::Visitor<'de> for CheckedVisitor {
    type Value = AllKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table that describes a fabric, starting with `kind` or `file`")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<AllKeys, A::Error> {
        let mut known: Vec<String> = KINDS.iter().flat_map(|(_, kind)| kind.keys()).collect();
        known.extend(["kind", "schema", "file", "format"].map(str::to_owned));
        AllKeys::deserialize(MapAccessDeserializer::new(CheckedMap { map, known }))
    }
}

/// Passes a map on and looks at its keys, from inside their own reading: that is where readers add the place.
struct CheckedMap<A> {
    map: A,
    known: Vec<String>,
}

impl<'de, A: de::MapAccess<'de>> de::MapAccess<'de> for CheckedMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.map.next_key_seed(CheckedKey {
            seed,
            known: &self.known,
        })
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct CheckedKey<'k, K> {
    seed: K,
    known: &'k [String],
}

impl<'de, K: de::DeserializeSeed<'de>> de::DeserializeSeed<'de> for CheckedKey<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        if !self.known.contains(&key) {
            let cure = match closest(&key, self.known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "which keys there are depends on `kind`".to_owned(),
            };
            let key = shorten_word(&key);
            return Err(de::Error::custom(format!("unknown key `{key}`: {cure}")));
        }
        self.seed.deserialize(key.into_deserializer())
    }
}
