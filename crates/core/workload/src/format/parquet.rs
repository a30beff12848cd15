//! Flows as Parquet: the columns of the CSV format, read and written a batch at a time.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;

use super::check::{Checker, RawFlow};
use super::columns::Layout;
use super::guard::guarded;
use super::{FlowReader, ReadOptions};
use crate::error::{PlaceUnit, Problem};
use crate::list::ClassTable;
use crate::message::{DATA_PRIORITY, PLAIN_CLASS};
use crate::{Message, TrafficError, Workload};

/// Rows held in memory at once, in both directions.
const BATCH_ROWS: usize = 65_536;
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Reads a Parquet flow file batch by batch.
pub struct ParquetFlows {
    batches: ParquetRecordBatchReader,
    batch: Option<Batch>,
    layout: Layout,
    checker: Checker,
    classes: ClassTable,
    row: u64,
    done: bool,
}

/// One batch, its columns turned into what a flow needs.
struct Batch {
    next: usize,
    src: Vec<u64>,
    dst: Vec<u64>,
    size: Vec<u64>,
    start: Vec<u64>,
    priority: Option<Vec<u64>>,
    class: Option<StringArray>,
}

impl ParquetFlows {
    /// Reads the schema. `input` is a file or bytes in memory.
    ///
    /// # Errors
    /// Not Parquet, truncated, an unknown column, one without its unit, a missing one.
    pub fn new<T: ChunkReader + 'static>(
        input: T,
        options: &ReadOptions<'_>,
    ) -> Result<Self, TrafficError> {
        let checker = Checker::new(options);
        // Without the embedded Arrow schema every string column arrives as the one plain string type.
        let reader_options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let opened = guarded(|| {
            ParquetRecordBatchReaderBuilder::try_new_with_options(input, reader_options)
                .map_err(|error| error.to_string())
        });
        let builder = match opened {
            Ok(builder) => builder,
            Err(problem) => {
                return checker.fail(PlaceUnit::File, Problem::Unreadable { problem });
            }
        };
        let schema = Arc::clone(builder.schema());
        let layout = match Layout::from_names(schema.fields().iter().map(|f| f.name().as_str())) {
            Ok(layout) => layout,
            Err(problem) => return checker.fail(PlaceUnit::File, problem),
        };
        let built = guarded(|| {
            builder
                .with_batch_size(BATCH_ROWS)
                .build()
                .map_err(|error| error.to_string())
        });
        let batches = match built {
            Ok(batches) => batches,
            Err(problem) => {
                return checker.fail(PlaceUnit::File, Problem::Unreadable { problem });
            }
        };
        Ok(Self {
            batches,
            batch: None,
            layout,
            checker,
            classes: ClassTable::default(),
            row: 0,
            done: false,
        })
    }

    fn read(&mut self) -> Result<Option<Message>, TrafficError> {
        loop {
            if let Some(batch) = &mut self.batch
                && batch.next < batch.src.len()
            {
                self.row += 1;
                let place = PlaceUnit::Row(self.row);
                return match batch.flow(&mut self.classes, &self.layout) {
                    Ok(raw) => {
                        let names = self.layout.names();
                        self.checker.message(place, &raw, names).map(Some)
                    }
                    Err(problem) => self.checker.fail(place, problem),
                };
            }
            let place = PlaceUnit::Row(self.row + 1);
            let batches = &mut self.batches;
            let next = guarded(|| {
                batches
                    .next()
                    .transpose()
                    .map_err(|error| error.to_string())
            });
            let batch = match next {
                Ok(None) => return Ok(None),
                Ok(Some(batch)) => Batch::new(&batch, &self.layout),
                Err(problem) => Err(Problem::Unreadable { problem }),
            };
            match batch {
                Ok(batch) => self.batch = Some(batch),
                Err(problem) => return self.checker.fail(place, problem),
            }
        }
    }
}

impl Iterator for ParquetFlows {
    type Item = Result<Message, TrafficError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

impl FlowReader for ParquetFlows {
    fn classes(&self) -> &[String] {
        self.classes.names()
    }
}

impl Batch {
    fn new(batch: &RecordBatch, layout: &Layout) -> Result<Self, Problem> {
        let numbers = |index: usize, name: &'static str| integers(batch.column(index), name);
        let class = match layout.class {
            Some(index) => Some(strings(batch.column(index))?),
            None => None,
        };
        Ok(Self {
            next: 0,
            src: numbers(layout.src, "src")?,
            dst: numbers(layout.dst, "dst")?,
            size: numbers(layout.size, "size_bytes")?,
            start: numbers(layout.start, layout.names().start)?,
            priority: layout
                .priority
                .map(|index| numbers(index, "priority"))
                .transpose()?,
            class,
        })
    }

    fn flow(&mut self, classes: &mut ClassTable, layout: &Layout) -> Result<RawFlow, Problem> {
        let row = self.next;
        self.next += 1;
        let class = self
            .class
            .as_ref()
            .map_or(PLAIN_CLASS, |names| names.value(row));
        let start = self.start[row];
        let start_ps = start
            .checked_mul(10u64.pow(layout.start_shift.unsigned_abs()))
            .ok_or_else(|| Problem::TooLarge {
                field: layout.names().start,
                text: start.to_string(),
                limit: "one day",
            })?;
        Ok(RawFlow {
            src: self.src[row],
            dst: self.dst[row],
            size: self.size[row],
            start_ps,
            priority: self
                .priority
                .as_ref()
                .map_or_else(|| u64::from(DATA_PRIORITY), |values| values[row]),
            class: classes.index(class).ok_or(Problem::TooManyClasses)?,
        })
    }
}

fn integers(array: &ArrayRef, name: &'static str) -> Result<Vec<u64>, Problem> {
    no_nulls(array, name)?;
    macro_rules! unsigned {
        ($type:ty) => {
            Ok(array
                .as_primitive::<$type>()
                .values()
                .iter()
                .map(|&v| u64::from(v))
                .collect())
        };
    }
    macro_rules! signed {
        ($type:ty) => {
            array
                .as_primitive::<$type>()
                .values()
                .iter()
                .map(|&v| {
                    u64::try_from(v).map_err(|_| Problem::Negative {
                        field: name,
                        text: v.to_string(),
                    })
                })
                .collect()
        };
    }
    match array.data_type() {
        DataType::UInt8 => unsigned!(UInt8Type),
        DataType::UInt16 => unsigned!(UInt16Type),
        DataType::UInt32 => unsigned!(UInt32Type),
        DataType::UInt64 => unsigned!(UInt64Type),
        DataType::Int8 => signed!(Int8Type),
        DataType::Int16 => signed!(Int16Type),
        DataType::Int32 => signed!(Int32Type),
        DataType::Int64 => signed!(Int64Type),
        other => Err(Problem::ColumnType {
            name: name.to_owned(),
            problem: format!(
                "has type {other}: store whole numbers (write start_ps or start_ns, not fractions)"
            ),
        }),
    }
}

fn strings(array: &ArrayRef) -> Result<StringArray, Problem> {
    no_nulls(array, "class")?;
    match array.as_string_opt::<i32>() {
        Some(strings) => Ok(strings.clone()),
        None => Err(Problem::ColumnType {
            name: "class".to_owned(),
            problem: format!("has type {}: store text", array.data_type()),
        }),
    }
}

fn no_nulls(array: &ArrayRef, name: &str) -> Result<(), Problem> {
    if array.null_count() == 0 {
        return Ok(());
    }
    Err(Problem::ColumnType {
        name: name.to_owned(),
        problem: format!(
            "has {} empty values in this batch: fill them",
            array.null_count()
        ),
    })
}

/// Writes what is left of `workload` as Parquet: `src`, `dst`, `size_bytes`, `start_ps`, `class`, `priority`; units
/// also in the field metadata (`unit`). At most 2^20 flows are held in memory.
///
/// # Errors
/// A closed loop, whose messages depend on deliveries, or output that cannot be written.
pub fn write_parquet<W: Write + Send>(
    workload: &mut dyn Workload,
    out: W,
) -> Result<(), TrafficError> {
    super::check_open(workload, "the Parquet file")?;
    let failed = |error: parquet::errors::ParquetError| TrafficError::Write {
        target: "the Parquet file".to_owned(),
        problem: error.to_string(),
    };
    let schema = Arc::new(schema());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut writer =
        ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(failed)?;
    let classes = workload.classes().to_vec();
    let (mut rows, mut targets) = (Vec::with_capacity(BATCH_ROWS), Vec::new());
    loop {
        rows.clear();
        targets.clear();
        while rows.len() < BATCH_ROWS
            && let Some(message) = workload.pop()
        {
            targets.push(super::host_of(&message, "the Parquet file")?.0);
            rows.push(message);
        }
        if rows.is_empty() {
            break;
        }
        let batch =
            to_batch(&rows, &targets, &classes, &schema).map_err(|error| TrafficError::Write {
                target: "the Parquet file".to_owned(),
                problem: error.to_string(),
            })?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    workload.fault().map_or(Ok(()), |fault| Err(fault.clone()))
}

fn schema() -> Schema {
    let with_unit = |name: &str, kind: DataType, unit: &str| {
        Field::new(name, kind, false)
            .with_metadata(HashMap::from([("unit".to_owned(), unit.to_owned())]))
    };
    Schema::new(vec![
        with_unit("src", DataType::UInt32, "node"),
        with_unit("dst", DataType::UInt32, "node"),
        with_unit("size_bytes", DataType::UInt64, "B"),
        with_unit("start_ps", DataType::UInt64, "ps"),
        Field::new("class", DataType::Utf8, false),
        Field::new("priority", DataType::UInt8, false),
    ])
}

fn to_batch(
    rows: &[Message],
    targets: &[u32],
    classes: &[String],
    schema: &Arc<Schema>,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let class_name = |row: &Message| {
        classes
            .get(usize::from(row.class))
            .map_or(PLAIN_CLASS, String::as_str)
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from_iter_values(
            rows.iter().map(|row| row.src.0),
        )),
        Arc::new(UInt32Array::from_iter_values(targets.iter().copied())),
        Arc::new(UInt64Array::from_iter_values(
            rows.iter().map(|row| row.size.0),
        )),
        Arc::new(UInt64Array::from_iter_values(
            rows.iter().map(|row| row.start.0),
        )),
        Arc::new(StringArray::from_iter_values(rows.iter().map(class_name))),
        Arc::new(UInt8Array::from_iter_values(
            rows.iter().map(|row| row.priority),
        )),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns)
}
