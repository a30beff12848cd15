//! Traffic: who sends how much to whom, and when.

mod error;
mod format;
mod list;
mod message;

pub use error::{MAX_SIZE_BYTES, MAX_START_PS, Place, PlaceUnit, Problem, TrafficError};
pub use format::{
    CsvFlows, FlowFormat, FlowReader, FlowTimes, HpccFlows, ParquetFlows, ReadOptions,
    apply_class_file, read_flows, stream_flows, write_csv, write_hpcc_ns3, write_parquet,
};
pub use list::{FlowList, Streamed};
pub use message::{DATA_PRIORITY, Message, PLAIN_CLASS, TESTED_PREFIX, Workload, is_tested_class};
