//! Flow files: the reference simulator's text format, CSV and Parquet, in and out.
//!
//! Readers are iterators over any byte source, so that a file of 10^7 flows need not fit in memory. All of them refuse
//! the same things with the place and a cure; flows out of order are an error in every format, because their order
//! decides ties and source ports.

mod check;
mod classes;
mod columns;
mod csv;
mod decimal;
mod guard;
mod hpcc;
mod lines;
mod parquet;

use std::io::Cursor;

use bytes::Bytes as Buffer;
use raddle_units::{Bytes, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::{Expected, Streamed};
use crate::{FlowList, Message, TrafficError, Workload};

const CLOSED_LOOP: &str =
    "its messages start when others are delivered, so only a simulation knows their times";

pub use self::classes::apply_class_file;
pub use self::csv::{CsvFlows, write_csv};
pub use self::guard::guarded;
pub use self::hpcc::{HpccFlows, write_hpcc_ns3};
pub use self::parquet::{ParquetFlows, write_parquet};
pub(crate) use self::{decimal::parse_decimal, lines::Lines};

/// How the start times of a reference flow file are understood. CSV and Parquet are always exact.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FlowTimes {
    /// The decimal number, to the nearest picosecond.
    #[default]
    Exact,
    /// As the reference simulator does: the number as a double, times 2^64, cut, turned into whole nanoseconds and
    /// cut again; 0.000020000 becomes 19,999 ns.
    HpccNs3,
}

/// Kinds of flow files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum FlowFormat {
    /// The reference simulator's: a count, then `src dst pg dport bytes start_s` per line.
    #[serde(rename = "hpcc-ns3")]
    HpccNs3,
    /// A header with units in the names (`src,dst,size_bytes,start_ns`), then a flow per line.
    #[serde(rename = "csv")]
    Csv,
    /// The same columns in Apache Parquet.
    #[serde(rename = "parquet")]
    Parquet,
}

impl FlowFormat {
    /// What the file name says: `.csv`, `.parquet`; everything else is the reference format.
    pub fn from_file_name(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("csv") => Self::Csv,
            Some("parquet") => Self::Parquet,
            _ => Self::HpccNs3,
        }
    }
}

/// How to read a flow file.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<'a> {
    /// Name for messages: the path as the user wrote it.
    pub source_name: &'a str,
    /// The hosts of the fabric; flows of other nodes are refused. `None` takes every node.
    pub hosts: Option<&'a [NodeId]>,
    /// Meaning of start times in the reference format.
    pub times: FlowTimes,
}

impl<'a> ReadOptions<'a> {
    /// Any host, exact times.
    pub fn new(source_name: &'a str) -> Self {
        Self {
            source_name,
            hosts: None,
            times: FlowTimes::Exact,
        }
    }
}

/// A reader of flows that learns the class names as it goes.
pub trait FlowReader: Iterator<Item = Result<Message, TrafficError>> {
    /// Classes seen so far, in order of first appearance.
    fn classes(&self) -> &[String];
}

/// A whole flow file that is already in memory.
///
/// # Errors
/// The first place that is not a flow, with the cure.
pub fn read_flows(
    bytes: &[u8],
    format: FlowFormat,
    options: &ReadOptions<'_>,
) -> Result<FlowList, TrafficError> {
    match format {
        FlowFormat::HpccNs3 => collect(HpccFlows::new(Cursor::new(bytes), options)?),
        FlowFormat::Csv => collect(CsvFlows::new(Cursor::new(bytes), options)?),
        FlowFormat::Parquet => collect(ParquetFlows::new(Buffer::copy_from_slice(bytes), options)?),
    }
}

fn collect(mut reader: impl FlowReader) -> Result<FlowList, TrafficError> {
    let mut messages = Vec::new();
    for message in reader.by_ref() {
        messages.push(message?);
    }
    Ok(FlowList::new(messages, reader.classes().to_vec()))
}

/// A flow file as a workload that holds one flow at a time. `open` gives a fresh reader; it is called twice: the first
/// reads everything once, so that a broken file is refused before the run begins, the second feeds the run.
///
/// # Errors
/// The first place that is not a flow, with the cure.
pub fn stream_flows<R, F>(open: F) -> Result<Streamed<R>, TrafficError>
where
    R: FlowReader,
    F: Fn() -> Result<R, TrafficError>,
{
    let mut check = open()?;
    let (mut messages, mut bytes, mut last_start) = (0, 0u64, None);
    for message in check.by_ref() {
        let message = message?;
        messages += 1;
        // The reader refuses files whose sum does not fit.
        bytes += message.size.0;
        last_start = Some(message.start);
    }
    let classes = check.classes().to_vec();
    Ok(Streamed::new(
        open()?,
        classes,
        Expected {
            messages: Some(messages),
            bytes: Some(Bytes(bytes)),
            last_start,
        },
    ))
}

/// Refuses to write what has no times of its own.
/// The host that a flow of a file goes to: files know nothing else.
fn host_of(message: &Message, target: &str) -> Result<NodeId, TrafficError> {
    message.dst.host().ok_or_else(|| TrafficError::Write {
        target: target.to_owned(),
        problem: format!(
            "a message goes to {}, and flows go from host to host",
            message.dst
        ),
    })
}

fn check_open(workload: &dyn Workload, target: &str) -> Result<(), TrafficError> {
    if workload.has_dependencies() {
        return Err(TrafficError::Write {
            target: target.to_owned(),
            problem: CLOSED_LOOP.to_owned(),
        });
    }
    Ok(())
}
