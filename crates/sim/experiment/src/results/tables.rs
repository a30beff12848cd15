//! The tables of a results folder: names, columns in order, and the unit of each column in its metadata.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// A table of a results folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    Flows,
    Pauses,
    Ports,
    Throughput,
    FlowThroughput,
    Queues,
    Acks,
    Members,
    Paths,
    PortQueues,
    Jobs,
    Blame,
    Delays,
    Ranks,
    Nodes,
    Links,
}

/// Tables of every run, in the order in which they are written.
pub(crate) const RUN_TABLES: [Table; 14] = [
    Table::Flows,
    Table::Pauses,
    Table::Ports,
    Table::Throughput,
    Table::FlowThroughput,
    Table::Queues,
    Table::Acks,
    Table::Members,
    Table::Paths,
    Table::PortQueues,
    Table::Jobs,
    Table::Blame,
    Table::Delays,
    Table::Ranks,
];

impl Table {
    /// Name of its file.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Flows => "flows.parquet",
            Self::Pauses => "pauses.parquet",
            Self::Ports => "ports.parquet",
            Self::Throughput => "throughput.parquet",
            Self::FlowThroughput => "flow_throughput.parquet",
            Self::Queues => "queues.parquet",
            Self::Acks => "acks.parquet",
            Self::Members => "members.parquet",
            Self::Paths => "paths.parquet",
            Self::PortQueues => "port_queues.parquet",
            Self::Jobs => "jobs.parquet",
            Self::Blame => "blame.parquet",
            Self::Delays => "delays.parquet",
            Self::Ranks => "ranks.parquet",
            Self::Nodes => "nodes.parquet",
            Self::Links => "links.parquet",
        }
    }

    pub(crate) fn schema(self) -> SchemaRef {
        use DataType::{Boolean, Float64, UInt8, UInt16, UInt32, UInt64, Utf8};
        let run = [("scheme", Utf8), ("seed", UInt64)];
        let own: &[(&str, DataType)] = match self {
            Self::Flows => &[
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("size_bytes", UInt64),
                ("start_ps", UInt64),
                ("fct_ps", UInt64),
                ("class", Utf8),
                ("ideal_fct_ps", UInt64),
            ],
            Self::Pauses => &[
                ("node", UInt32),
                ("port", UInt16),
                ("start_ps", UInt64),
                ("end_ps", UInt64),
            ],
            Self::Ports => &[
                ("node", UInt32),
                ("port", UInt16),
                ("peer", UInt32),
                ("rate_bps", UInt64),
                ("tx_bytes", UInt64),
                ("tx_packets", UInt64),
                ("ecn_marks", UInt64),
                ("max_queue_bytes", UInt64),
                ("pause_ps", UInt64),
                ("drops", UInt64),
            ],
            Self::Throughput => &[
                ("time_ps", UInt64),
                ("class", Utf8),
                ("delivered_bytes", UInt64),
            ],
            Self::FlowThroughput => &[
                ("time_ps", UInt64),
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("delivered_bytes", UInt64),
            ],
            Self::Queues => &[
                ("time_ps", UInt64),
                ("buffered_bytes", UInt64),
                ("max_port_bytes", UInt64),
                ("paused_ports", UInt64),
            ],
            Self::Acks => &[
                ("time_ps", UInt64),
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("kind", Utf8),
                ("seq", UInt64),
                ("ecn", Boolean),
                ("snd_nxt", UInt64),
                ("rate_bps", UInt64),
                ("ref", UInt64),
                ("x", Float64),
            ],
            Self::Members => &[
                ("group", UInt32),
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("message", UInt64),
                ("member", UInt32),
                ("delivered_ps", UInt64),
            ],
            Self::Paths => &[
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("rail", UInt8),
                ("since_ps", UInt64),
                ("hop", UInt16),
                ("node", UInt32),
                ("port", UInt16),
                ("name", Utf8),
                ("peer", UInt32),
            ],
            Self::PortQueues => &[
                ("time_ps", UInt64),
                ("node", UInt32),
                ("port", UInt16),
                ("name", Utf8),
                ("queue_bytes", UInt64),
                ("ingress_bytes", UInt64),
                ("paused", Boolean),
                ("tx_bytes", UInt64),
                ("ecn_marks", UInt64),
            ],
            Self::Jobs => &[
                ("job", Utf8),
                ("ranks", UInt32),
                ("start_ps", UInt64),
                ("time_ps", UInt64),
                ("alone_ps", UInt64),
                ("slowdown", Float64),
                ("host_calls", UInt64),
                ("multicast_calls", UInt64),
                ("offload_calls", UInt64),
            ],
            Self::Blame => &[
                ("job", Utf8),
                ("cause", Utf8),
                ("culprit", Utf8),
                ("port", Utf8),
                ("time_ps", UInt64),
            ],
            Self::Delays => &[
                ("src", UInt32),
                ("dst", UInt32),
                ("sport", UInt16),
                ("class", Utf8),
                ("start_ps", UInt64),
                ("cause", Utf8),
                ("culprit", Utf8),
                ("port", Utf8),
                ("time_ps", UInt64),
            ],
            Self::Ranks => &[
                ("job", Utf8),
                ("rank", UInt32),
                ("start_ps", UInt64),
                ("end_ps", UInt64),
                ("activity", Utf8),
                ("from_rank", UInt32),
                ("late_ps", UInt64),
                ("cause", Utf8),
                ("culprit", Utf8),
                ("port", Utf8),
            ],
            Self::Nodes => &[
                ("node", UInt32),
                ("kind", Utf8),
                ("level", UInt8),
                ("name", Utf8),
            ],
            Self::Links => &[
                ("link", UInt32),
                ("node_a", UInt32),
                ("port_a", UInt16),
                ("node_b", UInt32),
                ("port_b", UInt16),
                ("rate_bps", UInt64),
                ("delay_ps", UInt64),
            ],
        };
        let of_run = !matches!(self, Self::Nodes | Self::Links);
        let columns = run.iter().filter(|_| of_run).chain(own);
        // Much time has no culprit and no place, and a rank that does not wait has nobody to wait for. A flow or a job that
        // did not finish has no time, a job that did not run alone nothing to compare with, a member
        // that missed its message no delivery, and the way of all messages over a rail no port; nothing else is ever absent.
        let absent = |name: &str| match self {
            Self::Paths => name == "sport",
            Self::Jobs => matches!(name, "time_ps" | "alone_ps" | "slowdown"),
            Self::Blame | Self::Delays => matches!(name, "culprit" | "port"),
            Self::Ranks => matches!(name, "from_rank" | "late_ps" | "cause" | "culprit" | "port"),
            _ => matches!(name, "fct_ps" | "delivered_ps"),
        };
        let fields: Vec<Field> = columns
            .map(|(name, kind)| field(name, kind, absent(name)))
            .collect();
        Arc::new(Schema::new(fields))
    }
}

fn field(name: &str, kind: &DataType, absent: bool) -> Field {
    let field = Field::new(name, kind.clone(), absent);
    match unit(name) {
        Some(unit) => field.with_metadata(HashMap::from([("unit".to_owned(), unit.to_owned())])),
        None => field,
    }
}

/// The unit that a column's values count.
fn unit(name: &str) -> Option<&'static str> {
    match name {
        "seq" | "snd_nxt" => return Some("B"),
        "ref" => return Some("bit/s"),
        _ => {}
    }
    let (_, suffix) = name.rsplit_once('_')?;
    match suffix {
        "ps" => Some("ps"),
        "bytes" => Some("B"),
        "bps" => Some("bit/s"),
        "packets" | "marks" => Some("packets"),
        _ => None,
    }
}
