//! From a file to a trace.

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, ListArray, PrimitiveArray, RecordBatch, StringArray,
    UInt32Array, UInt64Array, cast::AsArray, types::ArrowPrimitiveType, types::UInt32Type,
};
use parquet::{
    arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    file::reader::ChunkReader,
};
use raddle_trace::{Action, Collective, Event, Interval, Message, Trace, Wildcards};
use raddle_units::Bytes;
use raddle_workload::guarded;

use super::{BATCH_ROWS, TraceFileError, metadata};

/// Reads a trace; `name` is the file's, for errors.
///
/// # Errors
/// As [`super::read_file`].
pub fn read<T: ChunkReader + 'static>(input: T, name: &str) -> Result<Trace, TraceFileError> {
    let file = || name.to_owned();
    let trace = guarded(|| read_trace(input)).map_err(|problem| TraceFileError::Malformed {
        file: file(),
        problem,
    })?;
    trace.check().map_err(|problem| TraceFileError::Trace {
        file: file(),
        problem,
    })?;
    Ok(trace)
}

fn read_trace<T: ChunkReader + 'static>(input: T) -> Result<Trace, String> {
    // Without the embedded Arrow schema texts and lists arrive as the plain types, whoever wrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(input, options)
        .map_err(|error| format!("it is not a complete Parquet file: {}", words(&error)))?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let mut trace = metadata::read(pairs.map_or(&[], Vec::as_slice))?;
    let batches = builder.with_batch_size(BATCH_ROWS).build();
    let mut row = 0;
    for batch in batches.map_err(|error| words(&error))? {
        let batch = batch.map_err(|error| format!("after row {row}: {}", words(&error)))?;
        let rows = Rows::new(&batch)?;
        for at in 0..batch.num_rows() {
            rows.read(at, &mut trace)
                .map_err(|problem| format!("row {}: {problem}", row + at))?;
        }
        row += batch.num_rows();
    }
    Ok(trace)
}

/// What a reader says, without the names that each of its layers puts before it.
fn words(error: &impl std::fmt::Display) -> String {
    let mut told = error.to_string();
    for layer in ["Parquet argument error: ", "Parquet error: ", "EOF: "] {
        told = told.replace(layer, "");
    }
    told
}

/// The columns of a batch.
struct Rows {
    rank: UInt32Array,
    start: UInt64Array,
    end: UInt64Array,
    action: StringArray,
    peer: UInt32Array,
    tag: Int32Array,
    comm: UInt32Array,
    bytes: UInt64Array,
    request: UInt32Array,
    requests: ListArray,
    any_source: BooleanArray,
    any_tag: BooleanArray,
}

impl Rows {
    fn new(batch: &RecordBatch) -> Result<Self, String> {
        let column = |name: &str| {
            let column = batch.column_by_name(name);
            column.ok_or_else(|| format!("the column `{name}` is missing"))
        };
        let boolean = |name| typed(column(name)?, name, |array| array.as_boolean_opt());
        Ok(Self {
            rank: numbers(column("rank")?, "rank")?,
            start: numbers(column("start_ns")?, "start_ns")?,
            end: numbers(column("end_ns")?, "end_ns")?,
            action: typed(column("action")?, "action", |array| array.as_string_opt())?,
            peer: numbers(column("peer")?, "peer")?,
            tag: numbers(column("tag")?, "tag")?,
            comm: numbers(column("comm")?, "comm")?,
            bytes: numbers(column("bytes")?, "bytes")?,
            request: numbers(column("request")?, "request")?,
            requests: typed(column("requests")?, "requests", |array| array.as_list_opt())?,
            any_source: boolean("any_source")?,
            any_tag: boolean("any_tag")?,
        })
    }

    fn read(&self, row: usize, trace: &mut Trace) -> Result<(), String> {
        let rank = present(&self.rank, row, "rank")?;
        let last = trace.ranks.len();
        let Some(events) = trace.ranks.get_mut(rank as usize) else {
            return Err(format!(
                "rank {rank}, but only {last} ranks are placed on hosts"
            ));
        };
        events.push(Event {
            at: Interval::new(
                present(&self.start, row, "start_ns")?,
                present(&self.end, row, "end_ns")?,
            ),
            action: self.action(row)?,
        });
        Ok(())
    }

    fn action(&self, row: usize) -> Result<Action, String> {
        if self.action.is_null(row) {
            return Err("`action` is empty".to_owned());
        }
        let request = optional(&self.request, row);
        Ok(match self.action.value(row) {
            "send" => Action::Send {
                message: self.message(row)?,
                request,
            },
            "receive" => Action::Receive {
                message: self.message(row)?,
                request,
                any: Wildcards {
                    source: self.any_source.is_valid(row) && self.any_source.value(row),
                    tag: self.any_tag.is_valid(row) && self.any_tag.value(row),
                },
            },
            "wait" => Action::Wait {
                requests: self.requests(row)?,
            },
            "end" => Action::End,
            name => Action::Collective {
                call: Collective {
                    kind: name.parse().map_err(|_| {
                        let shown: String = name.chars().take(30).collect();
                        format!("`{shown}` is not an action")
                    })?,
                    comm: present(&self.comm, row, "comm")?,
                    bytes: Bytes(present(&self.bytes, row, "bytes")?),
                    root: optional(&self.peer, row),
                },
                request,
            },
        })
    }

    fn message(&self, row: usize) -> Result<Message, String> {
        Ok(Message {
            peer: present(&self.peer, row, "peer")?,
            tag: present(&self.tag, row, "tag")?,
            comm: present(&self.comm, row, "comm")?,
            bytes: Bytes(present(&self.bytes, row, "bytes")?),
        })
    }

    fn requests(&self, row: usize) -> Result<Box<[u32]>, String> {
        if self.requests.is_null(row) {
            return Err("`requests` is empty".to_owned());
        }
        let list = self.requests.value(row);
        let Some(list) = list.as_primitive_opt::<UInt32Type>() else {
            return Err("`requests` has items other than uint32".to_owned());
        };
        if list.null_count() > 0 {
            return Err("`requests` has an empty item".to_owned());
        }
        Ok(list.values().as_ref().into())
    }
}

fn typed<A: Clone>(
    column: &ArrayRef,
    name: &str,
    cast: impl FnOnce(&dyn Array) -> Option<&A>,
) -> Result<A, String> {
    let found = column.data_type();
    let array = cast(column.as_ref()).cloned();
    array.ok_or_else(|| format!("the column `{name}` has type {found}"))
}

fn numbers<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    name: &str,
) -> Result<PrimitiveArray<T>, String> {
    typed(column, name, |array| array.as_primitive_opt::<T>())
}

fn optional<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

fn present<T: ArrowPrimitiveType>(
    column: &PrimitiveArray<T>,
    row: usize,
    name: &str,
) -> Result<T::Native, String> {
    optional(column, row).ok_or_else(|| format!("`{name}` is empty"))
}
