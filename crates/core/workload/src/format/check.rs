//! What every flow must satisfy, whichever format it came in.

use raddle_units::{Bytes, NodeId, Time};

use super::{ReadOptions, columns::Names};
use crate::error::{MAX_SIZE_BYTES, MAX_START_PS, PlaceUnit, Problem};
use crate::{Destination, Message, TrafficError};

/// One flow as its file gives it.
pub(super) struct RawFlow {
    pub(super) src: u64,
    pub(super) dst: u64,
    pub(super) size: u64,
    pub(super) start_ps: u64,
    pub(super) priority: u64,
    pub(super) class: u8,
}

/// Turns raw flows into messages, one after the other.
pub(super) struct Checker {
    pub(super) source: String,
    /// Ascending.
    hosts: Option<Vec<NodeId>>,
    last_start: Time,
    pub(super) count: u64,
    bytes: u64,
}

impl Checker {
    pub(super) fn new(options: &ReadOptions<'_>) -> Self {
        let hosts = options.hosts.map(|hosts| {
            let mut hosts = hosts.to_vec();
            hosts.sort_unstable();
            hosts
        });
        Self {
            source: options.source_name.to_owned(),
            hosts,
            last_start: Time::ZERO,
            count: 0,
            bytes: 0,
        }
    }

    pub(super) fn fail<T>(&self, unit: PlaceUnit, problem: Problem) -> Result<T, TrafficError> {
        Err(TrafficError::at(&self.source, unit, problem))
    }

    pub(super) fn message(
        &mut self,
        unit: PlaceUnit,
        raw: &RawFlow,
        names: Names,
    ) -> Result<Message, TrafficError> {
        let problem = match self.convert(raw, names) {
            Ok(message) => return Ok(message),
            Err(problem) => problem,
        };
        self.fail(unit, problem)
    }

    fn convert(&mut self, raw: &RawFlow, names: Names) -> Result<Message, Problem> {
        let src = self.host("src", raw.src)?;
        let dst = self.host("dst", raw.dst)?;
        if src == dst {
            return Err(Problem::SelfFlow { host: src.0 });
        }
        if raw.size == 0 {
            return Err(Problem::NoBytes { field: names.size });
        }
        if raw.size > MAX_SIZE_BYTES {
            return Err(Problem::TooLarge {
                field: names.size,
                text: raw.size.to_string(),
                limit: "1 TiB",
            });
        }
        if raw.start_ps > MAX_START_PS {
            return Err(Problem::TooLarge {
                field: names.start,
                text: Time(raw.start_ps).to_string(),
                limit: "one day",
            });
        }
        let priority = match u8::try_from(raw.priority) {
            Ok(priority) if priority < 8 => priority,
            _ => {
                return Err(Problem::TooLarge {
                    field: names.priority,
                    text: raw.priority.to_string(),
                    limit: "7, the last of the eight queues",
                });
            }
        };
        self.bytes = self
            .bytes
            .checked_add(raw.size)
            .ok_or(Problem::TooManyBytes { field: names.size })?;
        let start = Time(raw.start_ps);
        if start < self.last_start {
            return Err(Problem::Unsorted);
        }
        self.last_start = start;
        let tag = self.count;
        self.count += 1;
        Ok(Message {
            start,
            src,
            dst: Destination::Host(dst),
            size: Bytes(raw.size),
            class: raw.class,
            priority,
            tag,
        })
    }

    fn host(&self, field: &'static str, node: u64) -> Result<NodeId, Problem> {
        let id = u32::try_from(node).ok().map(NodeId);
        match (&self.hosts, id) {
            (None, Some(id)) => Ok(id),
            (Some(hosts), Some(id)) if hosts.binary_search(&id).is_ok() => Ok(id),
            (hosts, _) => Err(Problem::UnknownHost {
                field,
                node,
                hosts: describe_hosts(hosts.as_deref()),
            }),
        }
    }
}

/// `0 to 319`, or `320 between 0 and 400` where ids have gaps.
fn describe_hosts(hosts: Option<&[NodeId]>) -> String {
    match hosts {
        Some([first, .., last]) => {
            let count = hosts.map_or(0, <[NodeId]>::len);
            if (last.0 - first.0) as usize + 1 == count {
                format!("{} to {}", first.0, last.0)
            } else {
                format!("{count} between {} and {}", first.0, last.0)
            }
        }
        Some([only]) => only.0.to_string(),
        Some([]) => "none".to_owned(),
        None => "ids up to 4294967295".to_owned(),
    }
}
