//! The `[traffic]` table of an experiment: a generator with its fields, or a flow file.

use std::io::Cursor;

use bytes::Bytes as Buffer;
use raddle_units::{BitRate, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::cdf::SizeCdf;
use crate::error::{PlaceUnit, Problem};
use crate::format::{CsvFlows, HpccFlows, ParquetFlows, stream_flows};
use crate::generate::{
    AllToAll, Flows, Gpcnet, HpcMix, Incast, Multicast, Permutation, Poisson, SizeTable,
};
use crate::message::is_tested_class;
use crate::{
    FlowFormat, FlowList, FlowTimes, ReadOptions, TrafficError, Workload, apply_class_file,
    read_flows,
};

/// A generator of traffic, named by `generator`, with its fields.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TrafficSpec {
    /// The HPC mix of Sun et al. with its isolated twin.
    HpcMix(HpcMix),
    /// GPCNeT's congestors and victims, closed loop.
    Gpcnet(Gpcnet),
    /// Poisson arrivals with a size distribution.
    Poisson(Poisson),
    /// Every host sends to one other.
    Permutation(Permutation),
    /// Many hosts send to one.
    Incast(Incast),
    /// Every host sends to every other of its group.
    AllToAll(AllToAll),
    /// Collectives of the rows and columns of a grid of processes, or of random groups, over multicast.
    Multicast(Multicast),
    /// Flows listed in the table itself.
    Flows(Flows),
}

impl TrafficSpec {
    /// All generators: name and one line about it.
    pub const GENERATORS: [(&'static str, &'static str); 8] = [
        (
            "hpc-mix",
            "tested flows of 20 % of the hosts among background flows of the others",
        ),
        ("gpcnet", "GPCNeT's congestors and victims, closed loop"),
        ("poisson", "random arrivals with sizes from a distribution"),
        ("permutation", "every host sends to one other"),
        ("incast", "many hosts send to one"),
        ("all-to-all", "every host sends to every other of its group"),
        (
            "multicast",
            "collectives of the rows and columns of a grid, or of random groups, over multicast",
        ),
        ("flows", "flows listed in the experiment itself"),
    ];

    /// The messages. `hosts` are those of the fabric, `host_rate` their link rate; the same seed gives the same
    /// messages on every machine.
    ///
    /// # Errors
    /// A field out of range or a fabric with too few hosts, with the cure.
    pub fn build(
        &self,
        hosts: &[NodeId],
        host_rate: BitRate,
        seed: u64,
    ) -> Result<Box<dyn Workload>, TrafficError> {
        Ok(match self {
            Self::HpcMix(spec) => Box::new(spec.build(hosts, seed)?),
            Self::Gpcnet(spec) => Box::new(spec.build(hosts, seed)?),
            Self::Poisson(spec) => Box::new(spec.build(hosts, host_rate, seed)?),
            Self::Permutation(spec) => Box::new(spec.build(hosts, seed)?),
            Self::Incast(spec) => Box::new(spec.build(hosts, seed)?),
            Self::AllToAll(spec) => Box::new(spec.build(hosts, seed)?),
            Self::Multicast(spec) => Box::new(spec.build(hosts, seed)?),
            Self::Flows(spec) => Box::new(spec.build(hosts)?),
        })
    }

    /// The twin with only the tested flows, where this has tested flows and others.
    pub fn isolated(&self) -> Option<Self> {
        match self {
            Self::HpcMix(spec) => spec.background.then(|| Self::HpcMix(spec.isolated())),
            Self::Gpcnet(spec) => spec.congestion.then(|| Self::Gpcnet(spec.isolated())),
            Self::Flows(spec) => spec.isolated().map(Self::Flows),
            _ => None,
        }
    }

    /// The time in which flows start, where the generator fixes it: the window against which load is measured.
    pub fn window(&self) -> Option<Span> {
        match self {
            Self::HpcMix(spec) => Some(spec.window),
            Self::Poisson(spec) => spec.duration,
            _ => None,
        }
    }

    /// Files that [`resolve`](Self::resolve) will ask for.
    pub fn files(&self) -> Vec<&str> {
        match self {
            Self::Poisson(Poisson {
                sizes: SizeTable::File(file),
                ..
            }) => vec![file],
            _ => Vec::new(),
        }
    }

    /// Puts the contents of files in the place of their names. `read` gives the bytes of a file named as in the
    /// experiment.
    ///
    /// # Errors
    /// `read` fails, or a line of the file is wrong.
    pub fn resolve(&mut self, read: &mut ReadFile<'_>) -> Result<(), TrafficError> {
        if let Self::Poisson(Poisson { sizes, .. }) = self
            && let SizeTable::File(file) = sizes
        {
            let cdf = SizeCdf::parse(Cursor::new(read_file(read, file)?), file)?;
            *sizes = SizeTable::Table(cdf.points().collect());
        }
        Ok(())
    }
}

/// How a caller gives the contents of a file: bytes, or what went wrong.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

fn read_file(read: &mut ReadFile<'_>, file: &str) -> Result<Vec<u8>, TrafficError> {
    read(file)
        .map_err(|problem| TrafficError::at(file, PlaceUnit::File, Problem::Unreadable { problem }))
}

/// A flow file as the source of traffic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The file, relative to the experiment's folder.
    pub file: String,
    /// Its format. Default: by its name (`.csv`, `.parquet`, otherwise `hpcc-ns3`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FlowFormat>,
    /// Class file beside a reference flow file: `src dst sport bytes start_ns class` in the same order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
    /// Take only flows of tested classes (`tested-...`). Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tested_only: bool,
}

impl FlowFile {
    /// The format that is given, or that the name says.
    pub fn format(&self) -> FlowFormat {
        self.format
            .unwrap_or_else(|| FlowFormat::from_file_name(&self.file))
    }
}

/// The `[traffic]` table: `generator = "..."` or `file = "..."`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum TrafficSource {
    /// A generator.
    Spec(TrafficSpec),
    /// A flow file.
    File(FlowFile),
}

impl<'de> Deserialize<'de> for TrafficSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's untagged enums answer "did not match any variant"; the key decides here, so errors name the field.
        let table = serde_json::Map::deserialize(deserializer)?;
        let (generator, file) = (table.contains_key("generator"), table.contains_key("file"));
        let value = serde_json::Value::Object(table);
        match (generator, file) {
            (true, false) => TrafficSpec::deserialize(value)
                .map(Self::Spec)
                .map_err(de::Error::custom),
            (false, true) => FlowFile::deserialize(value)
                .map(Self::File)
                .map_err(de::Error::custom),
            (true, true) => Err(de::Error::custom(
                "[traffic] has both `generator` and `file`: keep one of them",
            )),
            (false, false) => Err(de::Error::custom(
                "[traffic] needs `generator = \"...\"` (such as \"hpc-mix\") or `file = \"...\"`",
            )),
        }
    }
}

impl TrafficSource {
    /// The messages, with files read through `read`. `times` says how starts in a reference flow file are understood.
    ///
    /// # Errors
    /// As [`TrafficSpec::build`] and [`read_flows`]; everything in a file is checked before the run begins.
    pub fn build(
        &self,
        read: &mut ReadFile<'_>,
        hosts: &[NodeId],
        host_rate: BitRate,
        seed: u64,
        times: FlowTimes,
    ) -> Result<Box<dyn Workload>, TrafficError> {
        let source = match self {
            Self::Spec(spec) => {
                let mut spec = spec.clone();
                spec.resolve(read)?;
                return spec.build(hosts, host_rate, seed);
            }
            Self::File(source) => source,
        };
        let options = ReadOptions {
            source_name: &source.file,
            hosts: Some(hosts),
            times,
        };
        let bytes = Buffer::from(read_file(read, &source.file)?);
        if source.classes.is_some() || source.tested_only {
            return Ok(Box::new(classified(source, &bytes, read, &options)?));
        }
        Ok(match source.format() {
            FlowFormat::HpccNs3 => Box::new(stream_flows(|| {
                HpccFlows::new(Cursor::new(bytes.clone()), &options)
            })?),
            FlowFormat::Csv => Box::new(stream_flows(|| {
                CsvFlows::new(Cursor::new(bytes.clone()), &options)
            })?),
            FlowFormat::Parquet => {
                Box::new(stream_flows(|| ParquetFlows::new(bytes.clone(), &options))?)
            }
        })
    }

    /// The twin with only the tested flows. For a file this is asked before its classes are known: there is no twin
    /// unless [`has_isolated_twin`] says so of the workload.
    pub fn isolated(&self) -> Option<Self> {
        match self {
            Self::Spec(spec) => spec.isolated().map(Self::Spec),
            Self::File(file) => (!file.tested_only).then(|| {
                Self::File(FlowFile {
                    tested_only: true,
                    ..file.clone()
                })
            }),
        }
    }

    /// Files that [`build`](Self::build) will ask for, as named in the experiment.
    pub fn files(&self) -> Vec<&str> {
        match self {
            Self::Spec(spec) => spec.files(),
            Self::File(file) => std::iter::once(file.file.as_str())
                .chain(file.classes.as_deref())
                .collect(),
        }
    }

    /// The time in which flows start, where it is fixed.
    pub fn window(&self) -> Option<Span> {
        match self {
            Self::Spec(spec) => spec.window(),
            Self::File(_) => None,
        }
    }
}

fn classified(
    source: &FlowFile,
    bytes: &[u8],
    read: &mut ReadFile<'_>,
    options: &ReadOptions<'_>,
) -> Result<FlowList, TrafficError> {
    let mut list = read_flows(bytes, source.format(), options)?;
    if let Some(file) = &source.classes {
        list = apply_class_file(&list, &read_file(read, file)?, file)?;
    }
    if !source.tested_only {
        return Ok(list);
    }
    if !list.classes().iter().any(|class| is_tested_class(class)) {
        return Err(TrafficError::spec(
            "tested_only",
            "the file has no class that begins with `tested-`; name its `classes` file or leave this out",
        ));
    }
    Ok(list.isolated().unwrap_or(list))
}

/// Whether these classes hold tested flows and others, so that an isolated twin makes sense.
pub fn has_isolated_twin(classes: &[String]) -> bool {
    let tested = classes
        .iter()
        .filter(|class| is_tested_class(class))
        .count();
    tested > 0 && tested < classes.len()
}
