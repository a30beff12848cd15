//! Joins the parts of all runs into one file per table, in the order of the plan.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{UInt32Type, UInt64Type},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use raddle_disk::replace_file;
use raddle_fabric::{Fabric, NodeKind};
use raddle_tables::{Cell, TableWriter};
use raddle_units::{LinkId, NodeId};

use super::{
    ResultsError, RunStats, part_folder,
    run::remove_leftovers,
    tables::{RUN_TABLES, Table},
};
use crate::{PlannedRun, Resolved, Variant};

/// Rows that are read at once.
const BATCH_ROWS: usize = 65_536;

/// Joins the parts whose stamps are those of the plan: loaded runs into `out`, isolated ones into `out`/isolated; of jobs that
/// ran alone only their times, beside those of loaded runs.
/// Runs that are not done are left out; tables of which no run has a part are removed. Every file is replaced by rename.
///
/// # Errors
/// [`ResultsError`]: disk, or a part that is damaged.
pub fn merge(resolved: &Resolved, out: &Path) -> Result<(), ResultsError> {
    for variant in [Variant::Loaded, Variant::Isolated] {
        let isolated = variant == Variant::Isolated;
        let done: Vec<&PlannedRun> = resolved
            .runs
            .iter()
            .filter(|run| run.variant == variant && is_done(out, run))
            .collect();
        let folder = if isolated {
            out.join("isolated")
        } else {
            out.to_owned()
        };
        if isolated && done.is_empty() {
            // Nothing of an earlier experiment in the same folder may look like a twin of this one.
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(ResultsError::disk("remove", &folder))?;
            }
            continue;
        }
        fs::create_dir_all(&folder).map_err(ResultsError::disk("make the folder", &folder))?;
        for table in RUN_TABLES {
            let parts: Vec<PathBuf> = done
                .iter()
                .map(|run| part_folder(out, &run.name).join(table.file()))
                .filter(|part| part.exists())
                .collect();
            if parts.is_empty() {
                remove(&folder.join(table.file()))?;
            } else if matches!(table, Table::Jobs) {
                replace(&folder, table, |writer| jobs(resolved, out, &done, writer))?;
            } else {
                replace(&folder, table, |writer| copy(&parts, writer))?;
            }
        }
        let fabric = &resolved.network.fabric;
        replace(&folder, Table::Nodes, |writer| {
            write_nodes(fabric, writer);
            Ok(())
        })?;
        replace(&folder, Table::Links, |writer| {
            write_links(fabric, writer);
            Ok(())
        })?;
    }
    Ok(())
}

fn is_done(out: &Path, run: &PlannedRun) -> bool {
    let file = part_folder(out, &run.name).join("stats.json");
    let stats = fs::read_to_string(file).ok();
    let stats = stats.and_then(|text| serde_json::from_str::<RunStats>(&text).ok());
    stats.is_some_and(|stats| stats.stamp == run.stamp)
}

/// Writes a table under another name and gives it its own when it is whole.
fn replace(
    folder: &Path,
    table: Table,
    fill: impl FnOnce(&mut TableWriter) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    remove_leftovers(folder, &format!(".{}.", table.file()))?;
    replace_file(&folder.join(table.file()), |open| {
        let mut writer = TableWriter::create(open.to_owned(), table.schema())?;
        fill(&mut writer)?;
        writer.finish()?;
        Ok(())
    })
}

fn remove(file: &Path) -> Result<(), ResultsError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ResultsError::disk("remove", file)(error))
        }
        _ => Ok(()),
    }
}

fn copy(parts: &[PathBuf], writer: &mut TableWriter) -> Result<(), ResultsError> {
    for part in parts {
        for batch in batches(part)? {
            writer.batch(&batch?);
            if writer.failed() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The rows of a part.
fn batches(
    part: &Path,
) -> Result<impl Iterator<Item = Result<RecordBatch, ResultsError>> + use<'_>, ResultsError> {
    let damaged = |reason: String| ResultsError::Damaged {
        path: part.to_owned(),
        reason,
    };
    let file = File::open(part).map_err(ResultsError::disk("read", part))?;
    let batches = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
        .map_err(|error| damaged(error.to_string()))?;
    Ok(batches.map(move |batch| batch.map_err(|error| damaged(error.to_string()))))
}

/// The times of jobs in loaded runs, beside what each took alone where it did.
fn jobs(
    resolved: &Resolved,
    out: &Path,
    done: &[&PlannedRun],
    writer: &mut TableWriter,
) -> Result<(), ResultsError> {
    let rows = |run: &PlannedRun| {
        let part = part_folder(out, &run.name).join(Table::Jobs.file());
        let mut rows = Vec::new();
        for batch in batches(&part)? {
            rows.extend(JobRow::of(&batch?));
        }
        Ok::<_, ResultsError>(rows)
    };
    for run in done {
        let mut alone = BTreeMap::new();
        let twins = resolved.runs.iter().filter(|twin| {
            matches!(twin.variant, Variant::Alone(_))
                && (twin.scheme, twin.seed) == (run.scheme, run.seed)
                && is_done(out, twin)
        });
        for twin in twins {
            let times = rows(twin)?;
            alone.extend(times.into_iter().map(|row| (row.job, row.time)));
        }
        for row in rows(run)? {
            let alone = alone.get(&row.job).copied().flatten();
            let slowdown = row.time.zip(alone).filter(|(_, alone)| *alone > 0);
            let slowdown = slowdown.map(|(time, alone)| time as f64 / alone as f64);
            writer.row(&[
                Cell::Text(&resolved.schemes[run.scheme].name),
                Cell::U64(run.seed),
                Cell::Text(&row.job),
                Cell::U32(row.ranks),
                Cell::U64(row.start),
                row.time.map_or(Cell::Null, Cell::U64),
                alone.map_or(Cell::Null, Cell::U64),
                slowdown.map_or(Cell::Null, Cell::F64),
                Cell::U64(row.calls[0]),
                Cell::U64(row.calls[1]),
                Cell::U64(row.calls[2]),
            ]);
        }
    }
    Ok(())
}

/// A row of a part's table of jobs.
struct JobRow {
    job: String,
    ranks: u32,
    start: u64,
    time: Option<u64>,
    calls: [u64; 3],
}

impl JobRow {
    fn of(batch: &RecordBatch) -> Vec<Self> {
        let column = |name: &str| batch.column_by_name(name);
        let whole = |name: &str| column(name).map(|it| it.as_primitive::<UInt64Type>().clone());
        let names = column("job").map(|it| it.as_string::<i32>().clone());
        let ranks = column("ranks").map(|it| it.as_primitive::<UInt32Type>().clone());
        let (Some(names), Some(ranks), Some(starts), Some(times)) =
            (names, ranks, whole("start_ps"), whole("time_ps"))
        else {
            return Vec::new();
        };
        let calls = ["host_calls", "multicast_calls", "offload_calls"].map(whole);
        (0..batch.num_rows())
            .map(|row| Self {
                job: names.value(row).to_owned(),
                ranks: ranks.value(row),
                start: starts.value(row),
                time: times.is_valid(row).then(|| times.value(row)),
                calls: calls
                    .each_ref()
                    .map(|calls| calls.as_ref().map_or(0, |calls| calls.value(row))),
            })
            .collect()
    }
}

fn write_nodes(fabric: &Fabric, writer: &mut TableWriter) {
    for node in (0..fabric.node_count() as u32).map(NodeId) {
        let kind = match fabric.kind(node) {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
        };
        writer.row(&[
            Cell::U32(node.0),
            Cell::Text(kind),
            Cell::U8(fabric.level(node)),
            Cell::Text(&fabric.node_name(node)),
        ]);
    }
}

fn write_links(fabric: &Fabric, writer: &mut TableWriter) {
    for (id, link) in (0..).map(LinkId).zip(fabric.links()) {
        let [a, b] = link.ports.map(|port| fabric.port(port));
        writer.row(&[
            Cell::U32(id.0),
            Cell::U32(a.node.0),
            Cell::U16(a.number),
            Cell::U32(b.node.0),
            Cell::U16(b.number),
            Cell::U64(link.rate.0),
            Cell::U64(link.delay.0),
        ]);
    }
}
