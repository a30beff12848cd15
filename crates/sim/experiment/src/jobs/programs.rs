//! What ranks of a job do: recorded, written as a GOAL schedule, or generated.

use bytes::Bytes as Buffer;
use raddle_replay::{Application, Generate, Sizes};
use raddle_text::{
    Files, InputError as ExperimentError, MOST_DATA, Node, Problem, clip, words::suggest,
};
use raddle_trace::{Action, Collective, CollectiveKind, Event, Interval, Trace, chakra, goal};
use raddle_units::Bytes;

use super::refused;
use crate::job_tables::{CollectiveTable, Generator, JobTable, ProgramSource, SizesName};

/// The program of a job.
///
/// # Errors
/// A file that cannot be read, or is no program; a number of ranks that is missing or not the program's.
pub(super) fn load(
    job: &JobTable,
    root: &Node,
    at: (&str, usize),
    files: &dyn Files,
) -> Result<Trace, ExperimentError> {
    let wrong = |key: &str, message: &str| refused(root, at, key, message);
    let per_host = job.ranks_per_host.unwrap_or(1);
    let ranks = || {
        job.ranks
            .ok_or_else(|| wrong("program", "a generator needs `ranks` beside `program`"))
    };
    let fixed = |trace: Trace, name: &str| {
        let has = trace.ranks.len() as u32;
        match job.ranks.filter(|ranks| *ranks != has) {
            None => Ok(trace),
            Some(ranks) => {
                let message = format!("{name} has {has} ranks, not {ranks}: remove `ranks`");
                Err(wrong("ranks", &message))
            }
        }
    };
    match &job.program {
        ProgramSource::File(name) => {
            let place = root.item(&[at.0], at.1).locate(&["program"]);
            let bytes = files.read(name, MOST_DATA).map_err(|reason| {
                let file = name.clone();
                ExperimentError::at(place, Problem::Unreadable { file, reason })
                    .with_hint("files are found relative to the file that names them")
            })?;
            let trace = if name.ends_with(FIRST_RANK) {
                chakra_of(bytes, name, files)
            } else {
                read(bytes, name)
            };
            let trace = trace.map_err(|problem| {
                ExperimentError::in_named_file(place, Problem::Refused(problem))
            })?;
            fixed(trace, name)
        }
        ProgramSource::Generated(Generator::Training(table)) => {
            if job.ranks_per_host.is_some() {
                let message = "workers of a host are the program's: write `per_host` in it";
                return Err(wrong("ranks_per_host", message));
            }
            let trace = table.trace();
            let trace = trace.map_err(|error| wrong("program", &error.to_string()))?;
            fixed(trace, "the training")
        }
        ProgramSource::Generated(Generator::Application(table)) => {
            let known = Application::ALL.map(Application::name);
            let application: Application = table.application.parse().map_err(|_| {
                let name = &table.application;
                let message = format!("`{}` is no kind of program", clip(name));
                wrong("program", &message).with_hint(suggest(name, &known))
            })?;
            let generate = Generate {
                application,
                sizes: match table.sizes {
                    SizesName::Small => Sizes::Small,
                    SizesName::Large => Sizes::Large,
                },
                ranks: ranks()?,
                per_host,
                exchanges: table.exchanges,
                gap: table.compute,
                seed: 1,
            };
            let trace = generate.trace();
            trace.map_err(|error| wrong("program", &error.to_string()))
        }
        ProgramSource::Generated(Generator::Collective(table)) => {
            let known = CollectiveKind::ALL.map(CollectiveKind::name);
            let kind = table.collective.parse().map_err(|_| {
                let name = &table.collective;
                let message = format!("`{}` is no collective", clip(name));
                wrong("program", &message).with_hint(suggest(name, &known))
            })?;
            Ok(collectives(table, kind, ranks()?, per_host))
        }
    }
}

/// How the name of a Chakra trace's first file ends.
const FIRST_RANK: &str = ".0.et";

/// What lies beside the first file of a Chakra trace: those of further ranks, with their names. Nothing beside other programs.
pub(crate) fn further_files(
    name: &str,
    files: &dyn Files,
) -> impl Iterator<Item = (String, Vec<u8>)> {
    let stem = name.strip_suffix(FIRST_RANK).map(str::to_owned);
    (1_u32..).map_while(move |rank| {
        let next = format!("{}.{rank}.et", stem.as_deref()?);
        let bytes = files.read(&next, MOST_DATA).ok()?;
        Some((next, bytes))
    })
}

/// A Chakra trace, by its first file.
fn chakra_of(first: Vec<u8>, name: &str, files: &dyn Files) -> Result<Trace, String> {
    let first = (name.to_owned(), first);
    let ranks: Vec<_> = [first]
        .into_iter()
        .chain(further_files(name, files))
        .collect();
    let ranks = ranks.iter();
    let ranks: Vec<chakra::File<'_>> = ranks
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    chakra::read(&ranks).map_err(|error| error.to_string())
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
        processors: None,
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
