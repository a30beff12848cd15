//! The reference simulator's flow file: a count, then `src dst pg dport bytes start_s` per line.

use raddle_units::many;
use std::io::{BufRead, Write};

use super::check::{Checker, RawFlow};
use super::columns::Names;
use super::{FlowReader, FlowTimes, Lines, ReadOptions, parse_decimal};
use crate::error::{PlaceUnit, Problem, shorten};
use crate::message::PLAIN_CLASS;
use crate::{FlowList, Message, TrafficError, Workload};

const NAMES: Names = Names {
    size: "bytes",
    start: "start_s",
    priority: "pg",
};

const LAYOUT: &str = "src dst pg dport bytes start_s";
const FIELDS: usize = 6;
const DPORT: u64 = 100;
const EXPECTED: &str =
    "a flow file: the number of flows, then `src dst pg dport bytes start_s` per line";

/// Reads a reference flow file line by line.
pub struct HpccFlows<R> {
    lines: Lines<R>,
    checker: Checker,
    times: FlowTimes,
    announced: u64,
    classes: Vec<String>,
    done: bool,
}

impl<R: BufRead> HpccFlows<R> {
    /// Reads the count in the first line.
    ///
    /// # Errors
    /// An empty file, or a first line that is not a count.
    pub fn new(reader: R, options: &ReadOptions<'_>) -> Result<Self, TrafficError> {
        let checker = Checker::new(options);
        let mut lines = Lines::new(reader, EXPECTED);
        let Some(first) = lines.next_line(&checker.source)? else {
            return checker.fail(PlaceUnit::File, Problem::Empty { expected: EXPECTED });
        };
        let announced = match integer(first, "count") {
            Ok(count) => count,
            Err(problem) => return checker.fail(PlaceUnit::Line(lines.number), problem),
        };
        Ok(Self {
            lines,
            checker,
            times: options.times,
            announced,
            classes: vec![PLAIN_CLASS.to_owned()],
            done: false,
        })
    }

    /// Number of flows that the first line announces.
    pub fn announced(&self) -> u64 {
        self.announced
    }

    fn read(&mut self) -> Result<Option<Message>, TrafficError> {
        let Some(line) = self.lines.next_line(&self.checker.source)? else {
            if self.checker.count != self.announced {
                let problem = Problem::CountMismatch {
                    announced: self.announced,
                    found: self.checker.count,
                };
                return self.checker.fail(PlaceUnit::Line(1), problem);
            }
            return Ok(None);
        };
        let raw = parse_line(line, self.times);
        let place = PlaceUnit::Line(self.lines.number);
        match raw {
            Ok(raw) => self.checker.message(place, &raw, NAMES).map(Some),
            Err(problem) => self.checker.fail(place, problem),
        }
    }
}

impl<R: BufRead> Iterator for HpccFlows<R> {
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

impl<R: BufRead> FlowReader for HpccFlows<R> {
    fn classes(&self) -> &[String] {
        &self.classes
    }
}

fn parse_line(line: &str, times: FlowTimes) -> Result<RawFlow, Problem> {
    let mut fields = [""; FIELDS];
    let mut got = 0;
    for field in line.split_ascii_whitespace() {
        if let Some(slot) = fields.get_mut(got) {
            *slot = field;
        }
        got += 1;
    }
    if got != FIELDS {
        return Err(Problem::FieldCount {
            got,
            expected: FIELDS,
            layout: LAYOUT,
        });
    }
    let [src, dst, priority, dport, size, start] = fields;
    let dport = integer(dport, "dport")?;
    if dport != DPORT {
        return Err(Problem::Port { got: dport });
    }
    Ok(RawFlow {
        src: integer(src, "src")?,
        dst: integer(dst, "dst")?,
        priority: integer(priority, NAMES.priority)?,
        size: integer(size, NAMES.size)?,
        start_ps: start_ps(start, times)?,
        class: 0,
    })
}

/// A whole number without sign.
pub(super) fn integer(text: &str, field: &'static str) -> Result<u64, Problem> {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('-')
        && all_digits(rest)
    {
        return Err(Problem::Negative {
            field,
            text: shorten(text),
        });
    }
    if !all_digits(text) {
        let wanted = "a whole number";
        return Err(Problem::NotANumber {
            field,
            text: shorten(text),
            wanted,
        });
    }
    text.parse().map_err(|_| Problem::TooLarge {
        field,
        text: shorten(text),
        limit: "64 bits can hold",
    })
}

fn start_ps(text: &str, times: FlowTimes) -> Result<u64, Problem> {
    const FIELD: &str = NAMES.start;
    let exact = parse_decimal(text, 12, FIELD)?;
    if times == FlowTimes::Exact {
        return Ok(exact);
    }
    // The reference: ns(x) = floor(floor(x * 2^64) * 10^9 / 2^64) with x as a double. Scaling by 2^64 is exact.
    let seconds: f64 = text.parse().map_err(|_| Problem::NotANumber {
        field: FIELD,
        text: shorten(text),
        wanted: "a decimal number like 0.000020",
    })?;
    let fixed = (seconds * 18_446_744_073_709_551_616.0) as u128;
    // `exact` fits in 64 bits of picoseconds, so this is below 2^25 s * 2^64 * 2^30.
    let ns = (fixed * 1_000_000_000) >> 64;
    u64::try_from(ns * 1000).map_err(|_| Problem::TooLarge {
        field: FIELD,
        text: shorten(text),
        limit: "one day",
    })
}

/// Writes what is left of `workload` as a reference flow file; classes are lost. Times have nine decimals (ns), or
/// twelve where they are finer. Without a known number of messages all of them are held in memory first.
///
/// # Errors
/// A closed loop, whose messages depend on deliveries, or output that cannot be written.
pub fn write_hpcc_ns3<W: Write>(
    workload: &mut dyn Workload,
    out: &mut W,
) -> Result<(), TrafficError> {
    if workload.has_dependencies() || workload.expected_messages().is_none() {
        let mut list = FlowList::collect(workload)?;
        return write_counted(&mut list, out);
    }
    write_counted(workload, out)
}

fn write_counted<W: Write>(workload: &mut dyn Workload, out: &mut W) -> Result<(), TrafficError> {
    let failed = |error: std::io::Error| TrafficError::Write {
        target: "the flow file".to_owned(),
        problem: error.to_string(),
    };
    let announced = workload.expected_messages().unwrap_or(0);
    writeln!(out, "{announced}").map_err(failed)?;
    let mut written = 0;
    while let Some(message) = workload.pop() {
        let dst = super::host_of(&message, "the flow file")?;
        let Message {
            start,
            src,
            size,
            priority,
            ..
        } = message;
        let seconds = start.0 / 1_000_000_000_000;
        let rest = start.0 % 1_000_000_000_000;
        let (fraction, width) = if rest.is_multiple_of(1000) {
            (rest / 1000, 9)
        } else {
            (rest, 12)
        };
        writeln!(
            out,
            "{} {} {priority} {DPORT} {} {seconds}.{fraction:0width$}",
            src.0, dst.0, size.0
        )
        .map_err(failed)?;
        written += 1;
    }
    if let Some(fault) = workload.fault() {
        return Err(fault.clone());
    }
    if written != announced {
        return Err(TrafficError::Write {
            target: "the flow file".to_owned(),
            problem: format!("{} announced, {written} came", many(announced, "flow")),
        });
    }
    out.flush().map_err(failed)
}
