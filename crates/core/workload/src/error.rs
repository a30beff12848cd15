//! Why traffic is refused: the place, what is wrong there, and the cure.

use raddle_units::many;
use std::fmt;

/// Largest message that is taken: 1 TiB. More is a unit mistake.
pub const MAX_SIZE_BYTES: u64 = 1 << 40;

/// Latest start that is taken: one day. More is a unit mistake.
pub const MAX_START_PS: u64 = 86_400 * 1_000_000_000_000;

/// Most classes of one workload.
pub(crate) const MAX_CLASSES: usize = 255;

/// Where in a file something is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Name of the file, or what stands for it.
    pub source: String,
    /// What is counted.
    pub unit: PlaceUnit,
}

/// A position in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceUnit {
    /// The file as a whole.
    File,
    /// Line of a text file, from 1.
    Line(u64),
    /// Row of a table, from 1.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            PlaceUnit::File => write!(f, "{}", self.source),
            PlaceUnit::Line(line) => write!(f, "{}:{line}", self.source),
            PlaceUnit::Row(row) => write!(f, "{} row {row}", self.source),
        }
    }
}

/// Why a workload cannot be read, built or written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A flow file or another input is wrong at one place.
    #[error("{place}: {problem}")]
    Input {
        /// Where.
        place: Place,
        /// What, with the cure.
        problem: Problem,
    },
    /// A field of the `[traffic]` table has an impossible value.
    #[error("[traffic] {field}: {problem}")]
    Spec {
        /// Key in the table.
        field: String,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// A workload cannot be written as a list of flows.
    #[error("cannot write {target}: {problem}")]
    Write {
        /// File or format.
        target: String,
        /// Why.
        problem: String,
    },
    /// A message graph is impossible.
    #[error("message graph: step {step}: {problem}")]
    Graph {
        /// Step in order of creation, from 0.
        step: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
}

/// What is wrong at a place of an input file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing in the file.
    #[error("the file is empty: {expected}")]
    Empty {
        /// What should be there.
        expected: &'static str,
    },
    /// Too few or too many fields, as in a truncated line.
    #[error("{} instead of {expected} ({layout}): complete or remove the line", many(*.got, "field"))]
    FieldCount {
        /// Fields found.
        got: usize,
        /// Fields wanted.
        expected: usize,
        /// Their names.
        layout: &'static str,
    },
    /// Not a number of the wanted kind.
    #[error("`{field}` is `{text}`, which is not {wanted}")]
    NotANumber {
        /// Column.
        field: &'static str,
        /// What was read, shortened.
        text: String,
        /// What is wanted, with an example.
        wanted: &'static str,
    },
    /// Below zero.
    #[error("`{field}` is `{text}`: it must not be negative")]
    Negative {
        /// Column.
        field: &'static str,
        /// What was read, shortened.
        text: String,
    },
    /// Beyond what a network can mean.
    #[error("`{field}` is `{text}`, more than {limit}: check the unit")]
    TooLarge {
        /// Column.
        field: &'static str,
        /// What was read, shortened.
        text: String,
        /// The limit.
        limit: &'static str,
    },
    /// A message without bytes.
    #[error(
        "`{field}` is 0: a flow carries at least one byte, so remove the line or give its size"
    )]
    NoBytes {
        /// Column.
        field: &'static str,
    },
    /// More bytes in all flows than can be counted.
    #[error("`{field}`: the flows up to here are more than 2^64 bytes together: check the unit")]
    TooManyBytes {
        /// Column.
        field: &'static str,
    },
    /// From a host to itself.
    #[error("a flow from host {host} to itself never enters the network: change `src` or `dst`")]
    SelfFlow {
        /// The host.
        host: u32,
    },
    /// Not a host of the fabric.
    #[error("`{field}` is {node}, which is not a host of this fabric (hosts: {hosts})")]
    UnknownHost {
        /// Column.
        field: &'static str,
        /// Node as it was read.
        node: u64,
        /// Which hosts there are.
        hosts: String,
    },
    /// Earlier than the line before.
    #[error(
        "starts before the flow above it: sort the flows by start (order decides ties and source ports, so it is not changed silently)"
    )]
    Unsorted,
    /// The count in the first line and the flows differ.
    #[error(
        "the first line announces {} but {found} follow: correct the count, or the file was cut short",
        many(*.announced, "flow")
    )]
    CountMismatch {
        /// Number in the first line.
        announced: u64,
        /// Flows in the file.
        found: u64,
    },
    /// A column that means nothing here.
    #[error("unknown column `{name}`{hint}; known: {known}")]
    UnknownColumn {
        /// Its name.
        name: String,
        /// `, did you mean ...?` or nothing.
        hint: String,
        /// All columns.
        known: &'static str,
    },
    /// A column whose name lacks its unit.
    #[error("column `{name}` has no unit: name it {cure}")]
    MissingUnit {
        /// Its name.
        name: String,
        /// Correct names.
        cure: &'static str,
    },
    /// A needed column is not there.
    #[error(
        "column `{name}` is missing; needed: src, dst, size_bytes and a start (start_ps, start_ns, start_us, start_ms or start_s)"
    )]
    MissingColumn {
        /// Its name.
        name: &'static str,
    },
    /// The same column twice.
    #[error("column `{name}` is there twice: remove one")]
    DuplicateColumn {
        /// Its name.
        name: String,
    },
    /// A column of a wrong type (Parquet), or an absent value.
    #[error("column `{name}` {problem}")]
    ColumnType {
        /// Its name.
        name: String,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// A destination port other than the reference's.
    #[error(
        "`dport` is {got}: only 100, the port of the reference flow files, is simulated; write 100"
    )]
    Port {
        /// What was read.
        got: u64,
    },
    /// A line that no flow file has.
    #[error("the line is longer than {limit} bytes: this is not {expected}")]
    LineTooLong {
        /// Limit in bytes.
        limit: usize,
        /// What the file should be.
        expected: &'static str,
    },
    /// Quotes that do not pair up.
    #[error("a quote is not closed, or text follows it: write fields without quotes")]
    Quotes,
    /// Bytes that are not text.
    #[error("not text (UTF-8): is this another kind of file?")]
    NotText,
    /// A class file that does not fit its flow file.
    #[error("does not belong to this flow file: {problem}")]
    ClassFile {
        /// What differs.
        problem: String,
    },
    /// More classes than fit.
    #[error("more than 255 different classes: is this the right column?")]
    TooManyClasses,
    /// A size distribution that is not valid.
    #[error("not a cumulative distribution: {problem}")]
    Distribution {
        /// What is wrong, and the cure.
        problem: String,
    },
    /// The medium or the container format failed.
    #[error("cannot be read: {problem}")]
    Unreadable {
        /// What the reader said.
        problem: String,
    },
}

impl TrafficError {
    pub(crate) fn at(source: &str, unit: PlaceUnit, problem: Problem) -> Self {
        Self::Input {
            place: Place {
                source: source.to_owned(),
                unit,
            },
            problem,
        }
    }

    pub(crate) fn spec(field: &str, problem: impl Into<String>) -> Self {
        Self::Spec {
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}

/// At most 40 characters of `text`, so that an error stays on one screen whatever the input.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 40;
    if text.chars().count() <= LIMIT {
        return text
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
    }
    let head: String = text
        .chars()
        .take(LIMIT - 3)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    format!("{head}...")
}
