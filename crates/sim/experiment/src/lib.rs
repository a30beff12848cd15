//! Experiments as files: read, checked, resolved to runs with every default explicit, and planned.
//!
//! - [`raddle_text`]: the text with its includes as one tree, from there to typed values, errors of one screen.
//! - `fields`, `job_tables`, `rails`, `switch`: the tables of the file, and their JSON Schema; `names`: nodes in them.
//! - `jobs`: programs that share the fabric, their hosts, and what the network carries for them.
//! - `check`: what types cannot say.
//! - `resolve` makes of it what can run, `resolved`: network, schemes, runs, what each run is driven with.
//! - `settings`, `sources`, `ports`: every setting with its source; maps and files
//!   outside; ports by their names.
//! - `estimate`, `measure`, `plan`: what runs will cost, counted and measured; all of it as JSON.
//! - [`results`]: runs the experiment and leaves its tables in a folder.
//! - `describe`: maps and flow files for the command line.
//!
//! ```
//! use raddle_experiment::{MemoryFiles, Resolved};
//! let text = r#"
//! schema = 1
//! [fabric]
//! kind = "dumbbell"
//! hosts_per_side = 2
//! [traffic]
//! generator = "permutation"
//! size = "64KiB"
//! [simulation]
//! schemes = ["hpcc", "dcqcn"]
//! "#;
//! let resolved = Resolved::new(text, "example.toml", &MemoryFiles::default()).unwrap();
//! assert_eq!(resolved.runs.len(), 2);
//! ```

mod check;
mod describe;
#[cfg(test)]
mod describe_tests;
mod estimate;
#[cfg(test)]
mod estimate_tests;
mod fields;
mod job_tables;
mod jobs;
mod limits;
mod measure;
mod multicast;
mod names;
mod plan;
mod ports;
mod rails;
#[cfg(test)]
mod rails_tests;
mod resolve;
mod resolved;
pub mod results;
mod settings;
mod sources;
mod stamp;
mod switch;
#[cfg(test)]
mod switch_tests;
#[cfg(test)]
mod tests;

pub use describe::{
    FabricInput, FlowsInput, ImportRequest, fabric_net, fabric_summary, fabric_text, import_map,
    load_fabric, traffic_summary, write_traffic,
};
pub use estimate::Estimate;
pub use fields::{
    Compat, Experiment, Fault, Reading, RecordTable, ScoreTable, ScoreWeights, SimulationTable,
    Variance, experiment_schema,
};
pub use job_tables::{
    ApplicationTable, CollectiveTable, Generator, HostsTable, JobTable, MulticastTable,
    OffloadTable, PlacementSource, ProgramSource, Rule, Scheduling, SetupTable, SizesName,
};
pub use jobs::SetupJobs;
pub use names::NodeName;
pub use raddle_disk::DiskFiles;
pub use raddle_text::{Files, InputError as ExperimentError, MemoryFiles, Place, Problem};
pub use rails::RailsTable;
pub use resolved::{PlannedRun, Resolved, SchemeRun, Variant};
pub use settings::Setting;
pub use switch::{EgressTable, IngressTable, PortsTable, SharingName, SwitchTable};
