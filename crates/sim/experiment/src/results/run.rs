//! A run from plan to folder. While it goes on it has another name; the last step is one rename.

use std::{
    fs,
    path::{Path, PathBuf},
};

use raddle_replay::{Diaries, JobTime, Spent};
use raddle_tables::{Cell, TableWriter};
use raddle_workload::{TrafficError, Workload};
use serde::{Deserialize, Serialize};

use super::{ResultsError, RunRecorder, tables::Table};
use crate::{Files, PlannedRun, Resolved, resolved::AfterRun};
use raddle_engine::{
    Discard, Progress, RunConfig,
    blame::{Journal, PortName},
    ranks::{Alone, Ranks},
    simulate_in_ranks,
};

/// What a finished run says about itself, in `stats.json` beside its tables: the same on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// Name of the run.
    pub name: String,
    /// The plan's stamp: results are reused only where it is the same.
    pub stamp: String,
    /// Link traversals of data packets and acknowledgements.
    pub packet_hops: u64,
    /// Simulated time at its end.
    pub simulated_ps: u64,
    /// Flows that were started.
    pub flows: u64,
    /// Flows that finished.
    pub finished: u64,
    /// Events handled.
    #[serde(default)]
    pub events: u64,
    /// Packets dropped.
    #[serde(default)]
    pub drops: u64,
    /// Packets marked (ECN).
    #[serde(default)]
    pub ecn_marks: u64,
    /// PAUSE frames received.
    #[serde(default)]
    pub pauses: u64,
    /// Retransmission timeouts.
    #[serde(default)]
    pub timeouts: u64,
    /// NACKs received.
    #[serde(default)]
    pub nacks: u64,
    /// What became of messages to groups; absent in runs without groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<MulticastStats>,
}

/// Counts of a run with messages to groups, as in [`raddle_engine::RunSummary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastStats {
    /// Members that received a message in full, over all messages.
    pub members_reached: u64,
    /// Members that did not.
    pub members_missed: u64,
    /// Second copies that members dropped.
    pub second_copies: u64,
    /// Packets that reached hosts outside their group.
    pub foreign_copies: u64,
    /// Packets that came after their message was over.
    pub late_copies: u64,
    /// Packets that ended in a switch without a port to leave by.
    pub dead_ends: u64,
}

/// The folder of a run's tables below the results folder `out`.
pub fn part_folder(out: &Path, run: &str) -> PathBuf {
    out.join(".runs").join(run)
}

/// Simulates run `index` and leaves its tables and `stats.json` in [`part_folder`]. Whatever goes wrong, nothing
/// half-written has that name. The `threads` that the run may use (see [`RunConfig::threads`]) change its time, no byte.
///
/// # Errors
/// [`ResultsError`]: disk, traffic, or the run was cancelled through `progress`.
pub fn run_planned(
    resolved: &Resolved,
    index: usize,
    out: &Path,
    files: &dyn Files,
    threads: usize,
    progress: &Progress,
) -> Result<RunStats, ResultsError> {
    run_leading(resolved, index, out, files, threads, progress, &mut Alone)
}

/// The same as the first of several ranks, all of which have the plan; [`run_following`] is for the others.
///
/// # Errors
/// As [`run_planned`], and when a rank cannot be reached. All ranks end then.
pub fn run_leading(
    resolved: &Resolved,
    index: usize,
    out: &Path,
    files: &dyn Files,
    threads: usize,
    progress: &Progress,
    ranks: &mut dyn Ranks,
) -> Result<RunStats, ResultsError> {
    let prepared = prepare(resolved, index, out, files, threads);
    meet(prepared.as_ref().err(), resolved, index, ranks)?;
    let prepared = prepared?;
    let run = &resolved.runs[index];
    let folder = part_folder(out, &run.name);
    let open = prepared.open;
    let to = (prepared.recorder, open.folder.as_path());
    let stats = simulate_into(resolved, run, files, to, threads, progress, ranks)?;
    let file = open.folder.join("stats.json");
    let text = serde_json::to_string_pretty(&stats).unwrap_or_default() + "\n";
    fs::write(&file, text).map_err(ResultsError::disk("write", &file))?;
    open.rename(&folder)?;
    Ok(stats)
}

/// A run as another rank than the first: nothing is written.
///
/// # Errors
/// As [`run_leading`].
pub fn run_following(
    resolved: &Resolved,
    index: usize,
    files: &dyn Files,
    threads: usize,
    ranks: &mut dyn Ranks,
) -> Result<(), ResultsError> {
    let prepared = planned(resolved, index).and_then(|run| Ok(resolved.workload(run, files)?));
    meet(prepared.as_ref().err(), resolved, index, ranks)?;
    drop(prepared?);
    let run = &resolved.runs[index];
    let config = settings(resolved, run, threads);
    let (summary, after) = resolved.drive(run, files, |workload| {
        let (network, progress) = (&resolved.network, Progress::default());
        simulate_in_ranks(network, &config, workload, &mut Discard, &progress, ranks)
    })?;
    summary?;
    gather(after, ranks)?;
    Ok(())
}

/// What is known of jobs, over all programs that share the run.
fn gather(after: AfterRun, ranks: &mut dyn Ranks) -> Result<AfterRun, ResultsError> {
    if ranks.count() == 1 {
        return Ok(after);
    }
    let own = ranks.number();
    let letter = serde_json::to_vec(&after).unwrap_or_default();
    let letters = (0..ranks.count()).map(|rank| {
        if rank == 0 && rank != own {
            letter.clone()
        } else {
            Vec::new()
        }
    });
    let apart = |problem: String| ResultsError::Ranks { rank: own, problem };
    let heard = ranks.exchange(letters.collect()).map_err(apart)?;
    let mut all = after;
    if own == 0 {
        for letter in heard.iter().skip(1) {
            let other: AfterRun = serde_json::from_slice(letter)
                .map_err(|_| apart("it runs another version of Raddle".to_owned()))?;
            all.ended.extend(other.ended);
            all.diaries.extend(other.diaries);
        }
    }
    Ok(all)
}

fn planned(resolved: &Resolved, index: usize) -> Result<&PlannedRun, ResultsError> {
    resolved.runs.get(index).ok_or(ResultsError::NoSuchRun {
        runs: resolved.runs.len(),
        index,
    })
}

/// What a run needs: all that can fail before it begins has not.
struct Prepared {
    open: Unfinished,
    recorder: RunRecorder,
}

fn prepare(
    resolved: &Resolved,
    index: usize,
    out: &Path,
    files: &dyn Files,
    threads: usize,
) -> Result<Prepared, ResultsError> {
    let run = planned(resolved, index)?;
    drop(resolved.workload(run, files)?);
    let parent = out.join(".runs");
    fs::create_dir_all(&parent).map_err(ResultsError::disk("make the folder", &parent))?;
    remove_leftovers(&parent, &format!(".{}.", run.name))?;
    let folder = parent.join(format!(".{}.{}.tmp", run.name, std::process::id()));
    let open = Unfinished::create(folder)?;
    let recorder = RunRecorder::create(
        &open.folder,
        &resolved.schemes[run.scheme].name,
        run.seed,
        &resolved.classes,
        &settings(resolved, run, threads),
        &resolved.network.fabric,
    )?;
    Ok(Prepared { open, recorder })
}

fn settings(resolved: &Resolved, run: &PlannedRun, threads: usize) -> RunConfig {
    RunConfig {
        threads,
        ..resolved.run_config(run)
    }
}

/// All ranks tell each other that they are ready for the same run: one that is not would leave the others waiting.
fn meet(
    problem: Option<&ResultsError>,
    resolved: &Resolved,
    index: usize,
    ranks: &mut dyn Ranks,
) -> Result<(), ResultsError> {
    let stamp = resolved.runs.get(index).map(|run| run.stamp.clone());
    let said = match problem {
        Some(problem) => Err(problem.to_string()),
        None => Ok(stamp.unwrap_or_default()),
    };
    say(&said, ranks)
}

/// Tells the other ranks that this one cannot take part in a run: theirs end as well.
pub fn decline(problem: String, ranks: &mut dyn Ranks) {
    // They hear it, or are not there; the caller has an error to tell in either case.
    let _ = say(&Err(problem), ranks);
}

fn say(said: &Result<String, String>, ranks: &mut dyn Ranks) -> Result<(), ResultsError> {
    if ranks.count() == 1 {
        return Ok(());
    }
    let apart = |rank: usize, problem: String| ResultsError::Ranks { rank, problem };
    let letter = serde_json::to_vec(said).unwrap_or_default();
    let own = ranks.number();
    let letters = (0..ranks.count()).map(|rank| {
        if rank == own {
            Vec::new()
        } else {
            letter.clone()
        }
    });
    let heard = ranks
        .exchange(letters.collect())
        .map_err(|problem| apart(own, problem))?;
    for (rank, letter) in heard.iter().enumerate().filter(|(rank, _)| *rank != own) {
        let other: Result<String, String> = serde_json::from_slice(letter)
            .unwrap_or_else(|_| Err("it runs another version of Raddle".to_owned()));
        match other {
            Err(problem) => return Err(apart(rank, problem)),
            Ok(stamp) if said.as_ref().is_ok_and(|own| *own != stamp) => {
                let problem = "it reads other files: all ranks need the same ones".to_owned();
                return Err(apart(rank, problem));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

fn simulate_into(
    resolved: &Resolved,
    run: &PlannedRun,
    files: &dyn Files,
    (mut recorder, folder): (RunRecorder, &Path),
    threads: usize,
    progress: &Progress,
    ranks: &mut dyn Ranks,
) -> Result<RunStats, ResultsError> {
    let config = settings(resolved, run, threads);
    let (told, after) = resolved.drive(run, files, |workload| {
        let network = &resolved.network;
        let summary =
            simulate_in_ranks(network, &config, workload, &mut recorder, progress, ranks)?;
        Ok::<_, ResultsError>((summary, workload.fault().map(TrafficError::to_string)))
    })?;
    let (summary, fault) = told?;
    let after = gather(after, ranks)?;
    let journal = recorder.take_journal();
    let (flows, finished) = recorder.finish()?;
    if let Some(jobs) = resolved.jobs(run)
        && !summary.cancelled
    {
        let ended = after.ended.iter().copied();
        let times = jobs.set.times(ended, |job| resolved.takes_part(run, job));
        write_jobs(resolved, run, &times, folder)?;
        if let Some(journal) = journal.as_ref().filter(|_| resolved.blames(run)) {
            write_blame(resolved, run, &after.diaries, journal, folder)?;
        }
        if let Some(journal) = journal.as_ref().filter(|_| resolved.records_ranks(run)) {
            write_ranks(resolved, run, &after.diaries, journal, folder)?;
        }
    }
    if let Some(journal) = journal.filter(|_| resolved.records_delays(run)) {
        write_delays(resolved, run, &journal, folder)?;
    }
    if summary.cancelled {
        return Err(ResultsError::Cancelled {
            run: run.name.clone(),
        });
    }
    if let Some(reason) = fault {
        return Err(ResultsError::Traffic {
            run: run.name.clone(),
            reason,
        });
    }
    Ok(RunStats {
        name: run.name.clone(),
        stamp: run.stamp.clone(),
        packet_hops: summary.packet_hops,
        simulated_ps: summary.end_ps,
        flows,
        finished,
        events: summary.events,
        drops: summary.drops,
        ecn_marks: summary.ecn_marks,
        pauses: summary.pauses,
        timeouts: summary.timeouts,
        nacks: summary.nacks,
        multicast: config.multicast.is_some().then_some(MulticastStats {
            members_reached: summary.members_reached,
            members_missed: summary.members_missed,
            second_copies: summary.second_copies,
            foreign_copies: summary.foreign_copies,
            late_copies: summary.late_copies,
            dead_ends: summary.dead_ends,
        }),
    })
}

/// The table of a run's jobs. What they took alone is known when all runs are joined.
fn write_jobs(
    resolved: &Resolved,
    run: &PlannedRun,
    jobs: &[JobTime],
    folder: &Path,
) -> Result<(), ResultsError> {
    let file = folder.join(Table::Jobs.file());
    let mut table = TableWriter::create(file, Table::Jobs.schema())?;
    for job in jobs {
        table.row(&[
            Cell::Text(&resolved.schemes[run.scheme].name),
            Cell::U64(run.seed),
            Cell::Text(&job.name),
            Cell::U32(job.ranks),
            Cell::U64(job.start.0),
            job.time.map_or(Cell::Null, |time| Cell::U64(time.0)),
            Cell::Null,
            Cell::Null,
            Cell::U64(job.collectives.host),
            Cell::U64(job.collectives.multicast),
            Cell::U64(job.collectives.offload),
        ]);
    }
    table.finish()?;
    Ok(())
}

/// A class of messages by its name: a job's or one of the traffic.
fn class(resolved: &Resolved, class: Option<u8>) -> Cell<'_> {
    let name = class.and_then(|class| resolved.classes.get(usize::from(class)));
    name.map_or(Cell::Null, |name| Cell::Text(name))
}

/// A port as experiments name it.
fn port(resolved: &Resolved, port: Option<PortName>) -> Option<String> {
    let (node, number) = port?;
    Some(format!(
        "{}:{number}",
        resolved.network.fabric.node_name(node)
    ))
}

/// The table of what the times of a run's jobs were spent on.
fn write_blame(
    resolved: &Resolved,
    run: &PlannedRun,
    diaries: &Diaries,
    journal: &Journal,
    folder: &Path,
) -> Result<(), ResultsError> {
    let Some(jobs) = resolved.jobs(run) else {
        return Ok(());
    };
    let file = folder.join(Table::Blame.file());
    let mut table = TableWriter::create(file, Table::Blame.schema())?;
    for (place, name) in jobs.set.names().iter().enumerate() {
        let fabric = &resolved.network.fabric;
        for share in jobs.set.blame(place, diaries, journal, fabric) {
            let port = port(resolved, share.port);
            table.row(&[
                Cell::Text(&resolved.schemes[run.scheme].name),
                Cell::U64(run.seed),
                Cell::Text(name),
                Cell::Text(share.spent.name()),
                class(resolved, share.culprit),
                port.as_deref().map_or(Cell::Null, Cell::Text),
                Cell::U64(share.time.0),
            ]);
        }
    }
    table.finish()?;
    Ok(())
}

/// The table of what the ranks of a run's jobs did.
fn write_ranks(
    resolved: &Resolved,
    run: &PlannedRun,
    diaries: &Diaries,
    journal: &Journal,
    folder: &Path,
) -> Result<(), ResultsError> {
    let Some(jobs) = resolved.jobs(run) else {
        return Ok(());
    };
    let file = folder.join(Table::Ranks.file());
    let mut table = TableWriter::create(file, Table::Ranks.schema())?;
    for (place, name) in jobs.set.names().iter().enumerate() {
        let fabric = &resolved.network.fabric;
        for activity in jobs.set.activities(place, diaries, journal, fabric) {
            let wait = activity.wait;
            let port = port(resolved, wait.and_then(|wait| wait.port));
            let cause = wait.and_then(|wait| wait.spent).map(Spent::name);
            table.row(&[
                Cell::Text(&resolved.schemes[run.scheme].name),
                Cell::U64(run.seed),
                Cell::Text(name),
                Cell::U32(activity.rank),
                Cell::U64(activity.start.0),
                Cell::U64(activity.end.0),
                Cell::Text(activity.kind.name()),
                wait.map_or(Cell::Null, |wait| Cell::U32(wait.from)),
                wait.map_or(Cell::Null, |wait| Cell::U64(wait.late.0)),
                cause.map_or(Cell::Null, Cell::Text),
                class(resolved, wait.and_then(|wait| wait.culprit)),
                port.as_deref().map_or(Cell::Null, Cell::Text),
            ]);
        }
    }
    table.finish()?;
    Ok(())
}

/// The table of what kept the flows of a run.
fn write_delays(
    resolved: &Resolved,
    run: &PlannedRun,
    journal: &Journal,
    folder: &Path,
) -> Result<(), ResultsError> {
    let file = folder.join(Table::Delays.file());
    let mut table = TableWriter::create(file, Table::Delays.schema())?;
    for taken in journal.messages() {
        for part in journal.parts(taken, &resolved.network.fabric) {
            let port = port(resolved, part.port);
            table.row(&[
                Cell::Text(&resolved.schemes[run.scheme].name),
                Cell::U64(run.seed),
                Cell::U32(taken.src.0),
                Cell::U32(taken.dst.0),
                Cell::U16(taken.sport),
                class(resolved, Some(taken.class)),
                Cell::U64(taken.start.0),
                Cell::Text(part.cause.name()),
                class(resolved, part.culprit),
                port.as_deref().map_or(Cell::Null, Cell::Text),
                Cell::U64(part.time.0),
            ]);
        }
    }
    table.finish()?;
    Ok(())
}

/// Removes what processes that were killed left under temporary names; a results folder has one writer at a time.
pub(super) fn remove_leftovers(folder: &Path, prefix: &str) -> Result<(), ResultsError> {
    let entries = fs::read_dir(folder).map_err(ResultsError::disk("read", folder))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(prefix) && name.ends_with(".tmp")) {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(ResultsError::disk("remove", &path))?;
    }
    Ok(())
}

/// A folder that goes away unless it is renamed.
struct Unfinished {
    folder: PathBuf,
}

impl Unfinished {
    fn create(folder: PathBuf) -> Result<Self, ResultsError> {
        fs::create_dir(&folder).map_err(ResultsError::disk("make the folder", &folder))?;
        Ok(Self { folder })
    }

    fn rename(self, to: &Path) -> Result<(), ResultsError> {
        if to.exists() {
            // Results of another version of the experiment. Without `stats.json` they count as absent, so that a crash
            // between the two steps leaves nothing that looks finished.
            let stats = to.join("stats.json");
            if stats.exists() {
                fs::remove_file(&stats).map_err(ResultsError::disk("remove", &stats))?;
            }
            fs::remove_dir_all(to).map_err(ResultsError::disk("remove", to))?;
        }
        fs::rename(&self.folder, to).map_err(ResultsError::disk("rename to", to))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove; before it, an error was told already.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
