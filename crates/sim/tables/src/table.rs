//! One table as a Parquet file: rows are gathered in columns, written in groups, and errors are kept for the end.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{
        BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, UInt8Builder, UInt16Builder,
        UInt32Builder, UInt64Builder,
    },
};
use arrow_schema::{DataType, SchemaRef};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use raddle_disk::DiskError;

/// Rows of a row group; also the rows that are held in memory.
const GROUP_ROWS: usize = 65_536;

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// An unsigned number of 8 bits.
    U8(u8),
    /// An unsigned number of 16 bits.
    U16(u16),
    /// An unsigned number of 32 bits.
    U32(u32),
    /// An unsigned number of 64 bits.
    U64(u64),
    /// A real number.
    F64(f64),
    /// Yes or no.
    Bool(bool),
    /// Words.
    Text(&'a str),
    /// A list of 16-bit numbers.
    U16s(&'a [u16]),
    /// A list of 32-bit numbers.
    U32s(&'a [u32]),
    /// Absent, in a column of numbers.
    Null,
}

enum Column {
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    U16s(ListBuilder<UInt16Builder>),
    U32s(ListBuilder<UInt32Builder>),
}

impl Column {
    fn new(kind: &DataType) -> Self {
        match kind {
            DataType::UInt8 => Self::U8(UInt8Builder::new()),
            DataType::UInt16 => Self::U16(UInt16Builder::new()),
            DataType::UInt32 => Self::U32(UInt32Builder::new()),
            DataType::Float64 => Self::F64(Float64Builder::new()),
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::List(item) if *item.data_type() == DataType::UInt16 => {
                Self::U16s(ListBuilder::new(UInt16Builder::new()).with_field(Arc::clone(item)))
            }
            DataType::List(item) => {
                Self::U32s(ListBuilder::new(UInt32Builder::new()).with_field(Arc::clone(item)))
            }
            _ => Self::U64(UInt64Builder::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::U8(column), Cell::U8(value)) => column.append_value(value),
            (Self::U16(column), Cell::U16(value)) => column.append_value(value),
            (Self::U32(column), Cell::U32(value)) => column.append_value(value),
            (Self::U64(column), Cell::U64(value)) => column.append_value(value),
            (Self::U16(column), Cell::Null) => column.append_null(),
            (Self::U32(column), Cell::Null) => column.append_null(),
            (Self::U64(column), Cell::Null) => column.append_null(),
            (Self::F64(column), Cell::F64(value)) => column.append_value(value),
            (Self::F64(column), Cell::Null) => column.append_null(),
            (Self::Bool(column), Cell::Bool(value)) => column.append_value(value),
            (Self::Text(column), Cell::Text(value)) => column.append_value(value),
            (Self::Text(column), Cell::Null) => column.append_null(),
            (Self::U16s(column), Cell::U16s(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (Self::U32s(column), Cell::U32s(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (_, cell) => debug_assert!(false, "{cell:?} does not fit its column"),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::U8(column) => Arc::new(column.finish()),
            Self::U16(column) => Arc::new(column.finish()),
            Self::U32(column) => Arc::new(column.finish()),
            Self::U64(column) => Arc::new(column.finish()),
            Self::F64(column) => Arc::new(column.finish()),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::U16s(column) => Arc::new(column.finish()),
            Self::U32s(column) => Arc::new(column.finish()),
        }
    }
}

/// Writes a table row by row. After an error it takes rows and does nothing; [`TableWriter::finish`] tells.
pub struct TableWriter {
    path: PathBuf,
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    writer: Option<ArrowWriter<BufWriter<File>>>,
    error: Option<DiskError>,
}

impl TableWriter {
    /// A new file at `path` with the columns of `schema`: numbers, booleans, text, and lists of u16 or u32.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: PathBuf, schema: SchemaRef) -> Result<Self, DiskError> {
        let file = File::create(&path).map_err(DiskError::at("write", &path))?;
        let writer = ArrowWriter::try_new(
            BufWriter::new(file),
            Arc::clone(&schema),
            Some(properties()),
        )
        .map_err(|error| write_error(&path, error))?;
        let columns = schema
            .fields()
            .iter()
            .map(|field| Column::new(field.data_type()))
            .collect();
        Ok(Self {
            path,
            schema,
            columns,
            rows: 0,
            writer: Some(writer),
            error: None,
        })
    }

    /// Adds a row; `cells` are in the order of the columns.
    pub fn row(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.path.display());
        for (column, &cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.write_rows();
        }
    }

    /// Adds whole batches, as they are read from parts.
    pub fn batch(&mut self, batch: &RecordBatch) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.write(batch)
        {
            self.fail(error);
        }
    }

    /// Whether something could not be written.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes what is left and closes the file; gives its path.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub fn finish(mut self) -> Result<PathBuf, DiskError> {
        self.write_rows();
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(writer) = self.writer {
            // Writes the footer; the buffered file must be flushed by hand, because dropping it hides errors.
            let buffer = writer
                .into_inner()
                .map_err(|error| write_error(&self.path, error))?;
            buffer
                .into_inner()
                .map_err(|error| DiskError::at("write", &self.path)(error.into_error()))?;
        }
        Ok(self.path)
    }

    fn write_rows(&mut self) {
        if self.rows == 0 {
            return;
        }
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        match RecordBatch::try_new(Arc::clone(&self.schema), columns) {
            Ok(batch) => self.batch(&batch),
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&mut self, error: parquet::errors::ParquetError) {
        self.writer = None;
        self.error = Some(write_error(&self.path, error));
    }
}

fn properties() -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    WriterProperties::builder()
        .set_created_by("raddle".to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build()
}

/// The system's own error where there is one.
pub(crate) fn write_error(path: &Path, error: parquet::errors::ParquetError) -> DiskError {
    let source = match error {
        parquet::errors::ParquetError::External(inner) => {
            match inner.downcast::<std::io::Error>() {
                Ok(error) => *error,
                Err(other) => std::io::Error::other(other.to_string()),
            }
        }
        other => std::io::Error::other(other.to_string()),
    };
    DiskError::at("write", path)(source)
}
