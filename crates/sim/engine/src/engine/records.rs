//! What a process has to report, until the window's end: then all processes' reports are told in one order.

use raddle_units::{NodeId, PortId, Time};
use serde::{Deserialize, Serialize};

use super::{link::LinkEnd, what::Keys};
use crate::{
    index::{List, PortIndex},
    record::{
        AckRecord, DelayRecord, FlowRecord, Hop, MemberRecord, PathRecord, PauseRecord, RailRecord,
        Recorder, ReductionRecord, WayEnd,
    },
};

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Record {
    Flow(FlowRecord),
    Member(MemberRecord),
    Pause(PauseRecord),
    Ack(AckRecord),
    Way(Box<WayRecord>),
    Delay(DelayRecord),
    Reduction(ReductionRecord),
    Rail(RailRecord),
}

/// A [`PathRecord`] with its hops.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WayRecord {
    pub(super) src: NodeId,
    pub(super) dst: WayEnd,
    pub(super) sport: Option<u16>,
    pub(super) rail: u8,
    pub(super) since: Time,
    pub(super) hops: Vec<Hop>,
}

impl Record {
    pub(super) fn tell(&self, recorder: &mut dyn Recorder) {
        match self {
            Self::Flow(record) => recorder.flow(record),
            Self::Member(record) => recorder.member(record),
            Self::Pause(record) => recorder.pause(record),
            Self::Ack(record) => recorder.ack(record),
            Self::Delay(record) => recorder.delay(record),
            Self::Reduction(record) => recorder.reduction(record),
            Self::Rail(record) => recorder.rail(record),
            Self::Way(way) => recorder.path(&PathRecord {
                src: way.src,
                dst: way.dst,
                sport: way.sport,
                rail: way.rail,
                since: way.since,
                hops: &way.hops,
            }),
        }
    }
}

/// Where an event stands in the order of the whole run, whatever the cut: time, port (0 for starts of messages), the rest of its
/// key, and the node that it is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Moment {
    pub(super) time: Time,
    port: PortId,
    rest: u64,
    node: NodeId,
}

impl Moment {
    /// The beginning of an instant.
    pub(super) const fn at(time: Time) -> Self {
        Self {
            time,
            port: PortId(0),
            rest: 0,
            node: NodeId(0),
        }
    }

    pub(super) fn new(time: Time, key: u64, node: NodeId, ends: &List<PortIndex, LinkEnd>) -> Self {
        let (port, rest, starts) = Keys::parts(key);
        let port = if starts { PortId(0) } else { ends[port].id };
        Self {
            time,
            port,
            rest,
            node,
        }
    }
}

/// The reports of a process.
#[derive(Debug, Default)]
pub(super) struct Records {
    new: Vec<(Time, u64, NodeId, Record)>,
    /// With their places.
    placed: Vec<(Moment, Record)>,
}

impl Records {
    pub(super) fn push(&mut self, time: Time, key: u64, node: NodeId, record: Record) {
        self.new.push((time, key, node, record));
    }

    /// Gives all reports their places.
    pub(super) fn place(&mut self, ends: &List<PortIndex, LinkEnd>) {
        let placed = self.new.drain(..);
        self.placed.extend(
            placed.map(|(time, key, node, record)| (Moment::new(time, key, node, ends), record)),
        );
    }

    /// Takes out the reports with their places.
    pub(super) fn take_placed(&mut self, all: &mut Vec<(Moment, Record)>) {
        all.append(&mut self.placed);
    }

    /// Tells the reports in the order in which they were made.
    pub(super) fn tell(&mut self, recorder: &mut dyn Recorder) {
        for (.., record) in self.new.drain(..) {
            record.tell(recorder);
        }
    }
}
