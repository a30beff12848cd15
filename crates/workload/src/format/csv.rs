//! Flows as CSV: a header whose names carry units, then a flow per line.

use std::io::{Read, Write};

use csv::{ReaderBuilder, StringRecord, Trim};
use raddle_units::Bytes;

use super::check::{Checker, RawFlow};
use super::columns::Layout;
use super::hpcc::integer;
use super::{FlowReader, ReadOptions, parse_decimal};
use crate::error::{PlaceUnit, Problem};
use crate::list::ClassTable;
use crate::message::{DATA_PRIORITY, PLAIN_CLASS};
use crate::{Message, TrafficError, Workload};

const EXPECTED: &str = "a header line like `src,dst,size_bytes,start_ns`, then a flow per line";
const LAYOUT: &str = "as in the header";

/// Reads a CSV flow file record by record.
pub struct CsvFlows<R> {
    reader: csv::Reader<R>,
    record: StringRecord,
    layout: Layout,
    columns: usize,
    checker: Checker,
    classes: ClassTable,
    done: bool,
}

impl<R: Read> CsvFlows<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// No header, an unknown or doubled column, one without its unit, a missing one.
    pub fn new(reader: R, options: &ReadOptions<'_>) -> Result<Self, TrafficError> {
        let checker = Checker::new(options);
        let mut reader = ReaderBuilder::new()
            .trim(Trim::All)
            .flexible(true)
            .from_reader(reader);
        let header = match reader.headers() {
            Ok(header) => header.clone(),
            Err(error) => return checker.fail(PlaceUnit::Line(1), from_csv(&error)),
        };
        if header.is_empty() {
            return checker.fail(PlaceUnit::File, Problem::Empty { expected: EXPECTED });
        }
        let layout = match Layout::from_names(header.iter()) {
            Ok(layout) => layout,
            Err(problem) => return checker.fail(PlaceUnit::Line(1), problem),
        };
        Ok(Self {
            reader,
            record: StringRecord::new(),
            layout,
            columns: header.len(),
            checker,
            classes: ClassTable::default(),
            done: false,
        })
    }

    fn read(&mut self) -> Result<Option<Message>, TrafficError> {
        let line = self.reader.position().line();
        match self.reader.read_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                let line = error.position().map_or(line, csv::Position::line);
                return self.checker.fail(PlaceUnit::Line(line), from_csv(&error));
            }
        }
        let place = PlaceUnit::Line(self.record.position().map_or(line, csv::Position::line));
        match self.parse() {
            Ok(raw) => self.checker.message(place, &raw).map(Some),
            Err(problem) => self.checker.fail(place, problem),
        }
    }

    fn parse(&mut self) -> Result<RawFlow, Problem> {
        let Self {
            record,
            layout,
            columns,
            classes,
            ..
        } = self;
        if record.len() != *columns {
            let (got, expected) = (record.len(), *columns);
            return Err(Problem::FieldCount {
                got,
                expected,
                layout: LAYOUT,
            });
        }
        let text = |index: usize| record.get(index).unwrap_or_default();
        let priority = match layout.priority {
            Some(index) => integer(text(index), "priority")?,
            None => u64::from(DATA_PRIORITY),
        };
        let class = layout.class.map_or(PLAIN_CLASS, text);
        Ok(RawFlow {
            src: integer(text(layout.src), "src")?,
            dst: integer(text(layout.dst), "dst")?,
            size: integer(text(layout.size), "size_bytes")?,
            start_ps: parse_decimal(text(layout.start), layout.start_shift, "start")?,
            priority,
            class: classes.index(class).ok_or(Problem::TooManyClasses)?,
        })
    }
}

impl<R: Read> Iterator for CsvFlows<R> {
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

impl<R: Read> FlowReader for CsvFlows<R> {
    fn classes(&self) -> &[String] {
        self.classes.names()
    }
}

fn from_csv(error: &csv::Error) -> Problem {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => Problem::NotText,
        _ => Problem::Unreadable {
            problem: error.to_string(),
        },
    }
}

/// Writes what is left of `workload` as CSV: `src,dst,size_bytes,start_ps,class,priority`, one flow at a time.
///
/// # Errors
/// A closed loop has no flow file; the writer's own failure.
pub fn write_csv<W: Write>(workload: &mut dyn Workload, out: &mut W) -> Result<(), TrafficError> {
    super::check_open(workload, "the CSV file")?;
    let failed = |error: csv::Error| TrafficError::Write {
        target: "the CSV file".to_owned(),
        problem: error.to_string(),
    };
    let classes = workload.classes().to_vec();
    let mut writer = csv::Writer::from_writer(out);
    writer
        .write_record(["src", "dst", "size_bytes", "start_ps", "class", "priority"])
        .map_err(failed)?;
    while let Some(message) = workload.pop() {
        let Message {
            start,
            src,
            dst,
            size: Bytes(size),
            class,
            priority,
            ..
        } = message;
        let class = classes
            .get(usize::from(class))
            .map_or(PLAIN_CLASS, String::as_str);
        writer
            .write_record([
                &src.0.to_string(),
                &dst.0.to_string(),
                &size.to_string(),
                &start.0.to_string(),
                class,
                &priority.to_string(),
            ])
            .map_err(failed)?;
    }
    writer.flush().map_err(|error| failed(error.into()))?;
    workload.fault().map_or(Ok(()), |fault| Err(fault.clone()))
}
