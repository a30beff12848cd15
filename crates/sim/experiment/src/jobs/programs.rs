//! What ranks of a job do: recorded, written as a GOAL schedule, or generated.

use bytes::Bytes as Buffer;
use raddle_replay::{Application, Generate, Sizes};
use raddle_text::{
    Files, InputError as ExperimentError, MOST_DATA, Node, Problem, at_most, words::suggest,
};
use raddle_trace::{Action, Collective, CollectiveKind, Event, Interval, Trace, goal};
use raddle_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{JobTable, refused};

/// What ranks of a job do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum ProgramSource {
    /// A file: a trace (`NAME.trace.parquet`), else a GOAL schedule.
    File(String),
    /// A generator with its fields.
    Generated(Generator),
}

/// A generator of programs, named by `generator`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "kebab-case")]
pub enum Generator {
    /// Supersteps of a known kind of program, as `raddle trace generate` makes them.
    Application(ApplicationTable),
    /// The same collective again and again, with computing between.
    Collective(CollectiveTable),
}

/// Supersteps of a known kind of program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationTable {
    /// The kind: particle-in-cell, electromagnetics, transport, laser-fusion, radiation-hydrodynamics or molecular-dynamics.
    pub application: String,
    /// How long most messages are. Default: large.
    #[serde(default)]
    pub sizes: SizesName,
    /// Exchanges, or sweeps from all corners. Default: 10.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub exchanges: u32,
    /// Computing before each superstep. Default: 0.
    #[serde(default)]
    #[schemars(transform = at_most("3600s"))]
    pub compute: Span,
}

/// How long most messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SizesName {
    /// Up to about a kilobyte.
    Small,
    /// Tens of kilobytes.
    #[default]
    Large,
}

/// The same collective again and again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectiveTable {
    /// The collective: barrier, bcast, reduce, allreduce, gather, allgather, scatter, reduce_scatter, alltoall, scan or exscan.
    pub collective: String,
    /// A rank's share: of a Bcast what is sent to everybody, of an Allreduce an operand. Default: 8 B.
    #[serde(default = "eight")]
    #[schemars(transform = at_most("1GiB"))]
    pub size: Bytes,
    /// Calls. Default: 10.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeat: u32,
    /// Computing before each call. Default: 0.
    #[serde(default)]
    #[schemars(transform = at_most("3600s"))]
    pub compute: Span,
}

const fn ten() -> u32 {
    10
}

const fn eight() -> Bytes {
    Bytes(8)
}

impl<'de> Deserialize<'de> for ProgramSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's untagged enums answer "did not match any variant"; what is there decides here, so errors name the field.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(file) => Ok(Self::File(file)),
            other => Generator::deserialize(other)
                .map(Self::Generated)
                .map_err(de::Error::custom),
        }
    }
}

/// The program of a job.
///
/// # Errors
/// A file that cannot be read, or is no program; a number of ranks that is missing or not the file's.
pub(super) fn load(
    job: &JobTable,
    root: &Node,
    at: (&str, usize),
    files: &dyn Files,
) -> Result<Trace, ExperimentError> {
    let wrong = |key: &str, message: &str| refused(root, at, key, message);
    let per_host = job.ranks_per_host.unwrap_or(1);
    match &job.program {
        ProgramSource::File(name) => {
            let place = root.item(&[at.0], at.1).locate(&["program"]);
            let bytes = files.read(name, MOST_DATA).map_err(|reason| {
                let file = name.clone();
                ExperimentError::at(place, Problem::Unreadable { file, reason })
                    .with_hint("files are found relative to the file that names them")
            })?;
            let trace = read(bytes, name).map_err(|problem| {
                ExperimentError::in_named_file(place, Problem::Refused(problem))
            })?;
            let has = trace.ranks.len() as u32;
            if let Some(ranks) = job.ranks.filter(|ranks| *ranks != has) {
                let message = format!("{name} has {has} ranks, not {ranks}: remove `ranks`");
                return Err(wrong("ranks", &message));
            }
            Ok(trace)
        }
        ProgramSource::Generated(generator) => {
            let Some(ranks) = job.ranks else {
                return Err(wrong("program", "a generator needs `ranks` beside `program`"));
            };
            match generator {
                Generator::Application(table) => {
                    let known = Application::ALL.map(Application::name);
                    let application: Application = table.application.parse().map_err(|_| {
                        let name = &table.application;
                        let message = format!("`{name}` is no kind of program");
                        wrong("program", &message).with_hint(suggest(name, &known))
                    })?;
                    let generate = Generate {
                        application,
                        sizes: match table.sizes {
                            SizesName::Small => Sizes::Small,
                            SizesName::Large => Sizes::Large,
                        },
                        ranks,
                        per_host,
                        exchanges: table.exchanges,
                        gap: table.compute,
                        seed: 1,
                    };
                    let trace = generate.trace();
                    trace.map_err(|error| wrong("program", &error.to_string()))
                }
                Generator::Collective(table) => {
                    let known = CollectiveKind::ALL.map(CollectiveKind::name);
                    let kind = table.collective.parse().map_err(|_| {
                        let name = &table.collective;
                        let message = format!("`{name}` is no collective");
                        wrong("program", &message).with_hint(suggest(name, &known))
                    })?;
                    Ok(collectives(table, kind, ranks, per_host))
                }
            }
        }
    }
}

fn read(bytes: Vec<u8>, name: &str) -> Result<Trace, String> {
    if bytes.starts_with(b"PAR1") {
        return raddle_tables::trace::read(Buffer::from(bytes), name)
            .map_err(|error| error.to_string());
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{name} is neither a trace (Parquet) nor a GOAL schedule (text)"))?;
    goal::read(&text).map_err(|error| format!("{name}: {error}"))
}

fn collectives(table: &CollectiveTable, kind: CollectiveKind, ranks: u32, per_host: u32) -> Trace {
    let bytes = if kind == CollectiveKind::Barrier {
        Bytes(0)
    } else {
        table.size
    };
    let call = Collective {
        kind,
        comm: 0,
        bytes,
        root: kind.has_root().then_some(0),
    };
    let gap = table.compute.as_ns();
    let events = (1..=u64::from(table.repeat)).map(|number| Event {
        at: Interval::instant(number * gap),
        action: Action::Collective {
            call,
            request: None,
        },
    });
    let end = Event {
        at: Interval::instant(u64::from(table.repeat) * gap),
        action: Action::End,
    };
    let events: Vec<Event> = events.chain([end]).collect();
    let hosts = ranks.div_ceil(per_host);
    Trace {
        ranks: vec![events; ranks as usize],
        placement: (0..ranks).map(|rank| rank / per_host).collect(),
        hosts: (0..hosts).map(|host| format!("host{host}")).collect(),
        communicators: vec![(0..ranks).collect()],
        fabric: String::new(),
        program: format!("generated: {}", kind.name()),
        mpi: "generated".to_owned(),
    }
}

/// The host of each rank, counted from 0 through those that the job uses.
pub(super) fn hosts_of_ranks(job: &JobTable, trace: &Trace) -> Vec<u32> {
    let ranks = 0..trace.ranks.len() as u32;
    if let Some(per_host) = job.ranks_per_host {
        return ranks.map(|rank| rank / per_host).collect();
    }
    let mut known = std::collections::BTreeMap::new();
    let placement = trace.placement.iter();
    placement
        .map(|&host| {
            let next = known.len() as u32;
            *known.entry(host).or_insert(next)
        })
        .collect()
}
