//! Flows as CSV: a header whose names carry units, then a flow per line.

use std::io::{BufRead, Write};

use raddle_units::Bytes;

use super::check::{Checker, RawFlow};
use super::columns::Layout;
use super::hpcc::integer;
use super::{FlowReader, Lines, ReadOptions, parse_decimal};
use crate::error::{PlaceUnit, Problem};
use crate::list::ClassTable;
use crate::message::{DATA_PRIORITY, PLAIN_CLASS};
use crate::{Message, TrafficError, Workload};

const EXPECTED: &str = "a header line like `src,dst,size_bytes,start_ns`, then a flow per line";
const LAYOUT: &str = "as in the header";

/// Reads a CSV flow file line by line. Fields may be quoted, but a line is a flow: no line breaks within quotes.
pub struct CsvFlows<R> {
    lines: Lines<R>,
    /// Fields of the current line, reused.
    fields: Vec<String>,
    layout: Layout,
    columns: usize,
    checker: Checker,
    classes: ClassTable,
    done: bool,
}

impl<R: BufRead> CsvFlows<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// No header, an unknown or doubled column, one without its unit, a missing one.
    pub fn new(reader: R, options: &ReadOptions<'_>) -> Result<Self, TrafficError> {
        let checker = Checker::new(options);
        let mut lines = Lines::new(reader, EXPECTED);
        let mut fields = Vec::new();
        let Some(header) = lines.next_line(&checker.source)? else {
            return checker.fail(PlaceUnit::File, Problem::Empty { expected: EXPECTED });
        };
        // Spreadsheets like to begin a file with a byte order mark.
        let columns = match split(header.trim_start_matches('\u{feff}'), &mut fields) {
            Ok(columns) => columns,
            Err(problem) => return checker.fail(PlaceUnit::Line(lines.number), problem),
        };
        let layout = match Layout::from_names(fields.iter().map(String::as_str)) {
            Ok(layout) => layout,
            Err(problem) => return checker.fail(PlaceUnit::Line(lines.number), problem),
        };
        let classes = ClassTable::default();
        Ok(Self {
            lines,
            fields,
            layout,
            columns,
            checker,
            classes,
            done: false,
        })
    }

    fn read(&mut self) -> Result<Option<Message>, TrafficError> {
        let Self {
            lines,
            fields,
            layout,
            columns,
            checker,
            classes,
            ..
        } = self;
        let Some(line) = lines.next_line(&checker.source)? else {
            return Ok(None);
        };
        let raw = match split(line, fields) {
            Ok(got) if got == *columns => parse(&fields[..got], layout, classes),
            Ok(got) => Err(Problem::FieldCount {
                got,
                expected: *columns,
                layout: LAYOUT,
            }),
            Err(problem) => Err(problem),
        };
        let place = PlaceUnit::Line(lines.number);
        match raw {
            Ok(raw) => checker.message(place, &raw, layout.names()).map(Some),
            Err(problem) => checker.fail(place, problem),
        }
    }
}

fn parse(fields: &[String], layout: &Layout, classes: &mut ClassTable) -> Result<RawFlow, Problem> {
    let text = |index: usize| fields[index].as_str();
    let priority = match layout.priority {
        Some(index) => integer(text(index), "priority")?,
        None => u64::from(DATA_PRIORITY),
    };
    let class = layout.class.map_or(PLAIN_CLASS, text);
    Ok(RawFlow {
        src: integer(text(layout.src), "src")?,
        dst: integer(text(layout.dst), "dst")?,
        size: integer(text(layout.size), "size_bytes")?,
        start_ps: parse_decimal(text(layout.start), layout.start_shift, layout.names().start)?,
        priority,
        class: classes.index(class).ok_or(Problem::TooManyClasses)?,
    })
}

/// Splits a line into the first elements of `fields` and gives their number. A field may stand in quotes, with `""` for
/// a quote in it.
fn split(line: &str, fields: &mut Vec<String>) -> Result<usize, Problem> {
    let mut count = 0;
    let mut rest = line;
    loop {
        if fields.len() == count {
            fields.push(String::new());
        }
        let field = &mut fields[count];
        field.clear();
        count += 1;
        rest = rest.trim_start();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            loop {
                let Some(end) = quoted.find('"') else {
                    return Err(Problem::Quotes);
                };
                field.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(after) => {
                        field.push('"');
                        quoted = after;
                    }
                    None => break,
                }
            }
            rest = quoted.trim_start();
            if rest.is_empty() {
                return Ok(count);
            }
            rest = rest.strip_prefix(',').ok_or(Problem::Quotes)?;
        } else {
            let (before, after) = match rest.split_once(',') {
                Some((before, after)) => (before, Some(after)),
                None => (rest, None),
            };
            field.push_str(before.trim_end());
            match after {
                Some(after) => rest = after,
                None => return Ok(count),
            }
        }
    }
}

impl<R: BufRead> Iterator for CsvFlows<R> {
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

impl<R: BufRead> FlowReader for CsvFlows<R> {
    fn classes(&self) -> &[String] {
        self.classes.names()
    }
}

/// Writes what is left of `workload` as CSV: `src,dst,size_bytes,start_ps,class,priority`, one flow at a time.
///
/// # Errors
/// A closed loop, whose messages depend on deliveries, or output that cannot be written.
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
        let dst = super::host_of(&message, "the CSV file")?;
        let Message {
            start,
            src,
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
