//! Fills the tables of one run while it goes on.

use std::{path::Path, sync::Arc};

use raddle_fabric::Fabric;
use raddle_tables::{Cell, TableWriter};
use raddle_units::{Span, Time};
use raddle_workload::{Destination, GroupId, OffloadId, ReductionId};

use super::{ResultsError, port_queues::PortQueues, tables::Table};
use raddle_engine::{
    RunConfig,
    blame::Journal,
    record::{
        AckRecord, DelayRecord, FlowRecord, MemberRecord, PathRecord, PauseRecord, PortRecord,
        Recorder, Sample, WayEnd,
    },
};

/// Numbers of groups begin here: hosts have those below, so that a column has room for both.
const FIRST_GROUP_NUMBER: u32 = 1 << 31;

/// How tables number a group.
const fn group_number(group: GroupId) -> u32 {
    FIRST_GROUP_NUMBER | group.0
}

/// How tables number who receives a flow.
const fn number(dst: Destination) -> u32 {
    match dst {
        Destination::Host(host) => host.0,
        // Flows go to hosts and groups.
        Destination::Group(GroupId(group))
        | Destination::Reduction(ReductionId(group))
        | Destination::Offload(OffloadId(group)) => group_number(GroupId(group)),
    }
}

/// Writes what a run reports into Parquet files of a folder. The first error stops the run and is told at the end.
pub struct RunRecorder {
    scheme: String,
    seed: u64,
    classes: Vec<String>,
    flows: TableWriter,
    pauses: TableWriter,
    ports: TableWriter,
    throughput: TableWriter,
    flow_throughput: TableWriter,
    queues: TableWriter,
    acks: Option<TableWriter>,
    members: Option<TableWriter>,
    paths: Option<TableWriter>,
    port_queues: Option<PortQueues>,
    journal: Option<Journal>,
    fabric: Arc<Fabric>,
    flows_seen: u64,
    flows_finished: u64,
}

impl RunRecorder {
    /// New files in `folder`. `classes` are the workload's; what not every run records has a file where `config` has it.
    ///
    /// # Errors
    /// [`ResultsError::Disk`] with the file that cannot be made.
    pub fn create(
        folder: &Path,
        scheme: &str,
        seed: u64,
        classes: &[String],
        config: &RunConfig,
        fabric: &Arc<Fabric>,
    ) -> Result<Self, ResultsError> {
        let table = |table: Table| TableWriter::create(folder.join(table.file()), table.schema());
        let optional = |wanted: bool, name| wanted.then(|| table(name)).transpose();
        Ok(Self {
            scheme: scheme.to_owned(),
            seed,
            classes: classes.to_vec(),
            flows: table(Table::Flows)?,
            pauses: table(Table::Pauses)?,
            ports: table(Table::Ports)?,
            throughput: table(Table::Throughput)?,
            flow_throughput: table(Table::FlowThroughput)?,
            queues: table(Table::Queues)?,
            acks: optional(config.record_acks, Table::Acks)?,
            members: optional(config.multicast.is_some(), Table::Members)?,
            paths: optional(config.record_paths, Table::Paths)?,
            port_queues: PortQueues::create(folder, scheme, seed, &config.port_series, fabric)?,
            journal: config.record_delays.map(|_| Journal::default()),
            fabric: Arc::clone(fabric),
            flows_seen: 0,
            flows_finished: 0,
        })
    }

    /// What kept the messages of the run, where that is recorded.
    pub(super) fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Closes all files. Gives the flows that were reported and how many of them finished.
    ///
    /// # Errors
    /// The first [`ResultsError::Disk`] of the run.
    pub fn finish(self) -> Result<(u64, u64), ResultsError> {
        let tables = [
            self.flows,
            self.pauses,
            self.ports,
            self.throughput,
            self.flow_throughput,
            self.queues,
        ];
        let optional = [self.acks, self.members, self.paths];
        for table in tables.into_iter().chain(optional.into_iter().flatten()) {
            table.finish()?;
        }
        if let Some(port_queues) = self.port_queues {
            port_queues.finish()?;
        }
        Ok((self.flows_seen, self.flows_finished))
    }
}

impl Recorder for RunRecorder {
    fn flow(&mut self, flow: &FlowRecord) {
        self.flows_seen += 1;
        self.flows_finished += u64::from(flow.fct.is_some());
        if let Some(journal) = &mut self.journal {
            journal.flow(flow);
        }
        let class = self
            .classes
            .get(usize::from(flow.class))
            .map_or("", String::as_str);
        self.flows.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U32(flow.src.0),
            Cell::U32(number(flow.dst)),
            Cell::U16(flow.sport),
            Cell::U64(flow.size.0),
            Cell::U64(flow.start.0),
            flow.fct.map_or(Cell::Null, |Span(fct)| Cell::U64(fct)),
            Cell::Text(class),
            Cell::U64(flow.ideal_fct.0),
        ]);
    }

    fn member(&mut self, member: &MemberRecord) {
        let Some(members) = &mut self.members else {
            return;
        };
        members.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U32(member.group),
            Cell::U32(member.src.0),
            Cell::U32(group_number(GroupId(member.group))),
            Cell::U16(member.sport),
            Cell::U64(member.tag),
            Cell::U32(member.member.0),
            member
                .delivered
                .map_or(Cell::Null, |Time(at)| Cell::U64(at)),
        ]);
    }

    fn path(&mut self, path: &PathRecord<'_>) {
        let Some(paths) = &mut self.paths else { return };
        for hop in path.hops {
            paths.row(&[
                Cell::Text(&self.scheme),
                Cell::U64(self.seed),
                Cell::U32(path.src.0),
                Cell::U32(match path.dst {
                    WayEnd::Host(node) | WayEnd::Root(node) => node.0,
                    WayEnd::Group(group) => group_number(group),
                }),
                path.sport.map_or(Cell::Null, Cell::U16),
                Cell::U8(path.rail),
                Cell::U64(path.since.0),
                Cell::U16(hop.depth),
                Cell::U32(hop.node.0),
                Cell::U16(hop.port),
                Cell::Text(&self.fabric.node_name(hop.node)),
                Cell::U32(hop.peer.0),
            ]);
        }
    }

    fn delay(&mut self, delay: &DelayRecord) {
        if let Some(journal) = &mut self.journal {
            journal.delay(delay);
        }
    }

    fn pause(&mut self, pause: &PauseRecord) {
        if let Some(journal) = &mut self.journal {
            journal.pause(pause);
        }
        self.pauses.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U32(pause.node.0),
            Cell::U16(pause.port),
            Cell::U64(pause.start.0),
            Cell::U64(pause.end.0),
        ]);
    }

    fn ack(&mut self, ack: &AckRecord) {
        let Some(acks) = &mut self.acks else { return };
        acks.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U64(ack.time.0),
            Cell::U32(ack.src.0),
            Cell::U32(ack.dst.0),
            Cell::U16(ack.sport),
            Cell::Text(if ack.nack { "N" } else { "A" }),
            Cell::U64(ack.seq),
            Cell::Bool(ack.ecn),
            Cell::U64(ack.snd_nxt),
            Cell::U64(ack.rate),
            Cell::U64(ack.reference_rate),
            Cell::F64(ack.measure),
        ]);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let (scheme, seed) = (Cell::Text(&self.scheme), Cell::U64(self.seed));
        let time = Cell::U64(sample.time.0);
        for (class, &bytes) in self.classes.iter().zip(sample.delivered_by_class) {
            self.throughput
                .row(&[scheme, seed, time, Cell::Text(class), Cell::U64(bytes)]);
        }
        for &(src, dst, sport, bytes) in sample.watched {
            self.flow_throughput.row(&[
                scheme,
                seed,
                time,
                Cell::U32(src.0),
                Cell::U32(number(dst)),
                Cell::U16(sport),
                Cell::U64(bytes),
            ]);
        }
        self.queues.row(&[
            scheme,
            seed,
            time,
            Cell::U64(sample.buffered_bytes),
            Cell::U64(sample.max_port_bytes),
            Cell::U64(sample.paused_ports),
        ]);
        if let Some(port_queues) = &mut self.port_queues {
            port_queues.sample(sample);
        }
    }

    fn port(&mut self, port: &PortRecord) {
        self.ports.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U32(port.node.0),
            Cell::U16(port.port),
            Cell::U32(port.peer.0),
            Cell::U64(port.rate.0),
            Cell::U64(port.tx_bytes),
            Cell::U64(port.tx_packets),
            Cell::U64(port.ecn_marks),
            Cell::U64(port.max_queue_bytes),
            Cell::U64(port.pause.0),
            Cell::U64(port.drops),
        ]);
    }

    fn failed(&self) -> bool {
        let tables = [
            &self.flows,
            &self.pauses,
            &self.ports,
            &self.throughput,
            &self.flow_throughput,
            &self.queues,
        ];
        tables
            .into_iter()
            .chain(&self.acks)
            .chain(&self.members)
            .chain(&self.paths)
            .any(TableWriter::failed)
            || self.port_queues.as_ref().is_some_and(PortQueues::failed)
    }
}
