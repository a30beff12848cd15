//! The engine: takes events in order and drives switches, NICs, senders and receivers with them.
//!
//! A run is cut into processes, each with a part of the fabric, that run through windows of time on their own
//! (`windows.rs`). A [`process::Process`] consists of parts that each own their state. `Base` is what every process has: the
//! clock and the list of events (`Context`), links and switches (`Wires`), cards and flows (`Hosts`), the workload (`Traffic`) and
//! the counts between samples (`Sampler`). The other parts stand beside it, borrow it, and cost nothing where they are not used;
//! it knows none of them.
//!
//! | file | what it drives |
//! |---|---|
//! | `windows.rs` | the run: windows, samples, progress |
//! | `between.rs`, `ending.rs` | what concerns the whole fabric: between windows, and at the end |
//! | `exchange.rs` | what ranks that share a run tell each other |
//! | `cut.rs`, `crew.rs` | which process a node belongs to; threads |
//! | `mail.rs`, `records.rs` | what passes between processes, and what they report |
//! | `process.rs` | one process: its events, and who handles which |
//! | `tiles.rs` | the parts of a process that run one after the other |
//! | `what.rs`, `context.rs` | events: what they are, their order, the clock |
//! | `wires.rs`, `link.rs`, `frames.rs` | the wire: transmission, PFC, switches |
//! | `host.rs` | the NIC: which flow sends next |
//! | `flow.rs` | a flow's state from message to record |
//! | `receive.rs`, `reception.rs`, `timers.rs` | receivers, acknowledgements, congestion control and its timers |
//! | `traffic.rs` | the workload |
//! | `groups/` | messages to groups: copies in switches, members, the sender's progress |
//! | `combine.rs` | reductions of groups on their trees |
//! | `offload/` | in-network reductions: members on hosts, switches that compute |
//! | `rails.rs` | messages over rails: connections on hosts |
//! | `rail_notices.rs` | what their receivers know of messages |
//! | `rail_packets.rs`, `bus.rs` | their packets, and the bus between memory and cards |
//! | `build.rs`, `footprint.rs` | all of it from network and settings, and the memory that it takes |
//! | `route.rs` | the next hop |
//! | `look_ahead.rs` | the cache: what the next events will touch |
//! | `fault.rs` | links that fail and return, and routes that follow |
//! | `sample.rs` | series over time, port counters at the end |
//! | `ways.rs`, `delays.rs` | the ways that packets take and what keeps them there, for the record |

mod between;
mod build;
mod bus;
mod combine;
mod context;
mod crew;
mod cut;
mod delays;
mod ending;
mod exchange;
mod fault;
mod flow;
pub mod footprint;
mod frames;
mod groups;
mod host;
mod link;
mod look_ahead;
mod mail;
mod offload;
mod process;
mod rail_notices;
mod rail_packets;
mod rails;
mod receive;
mod reception;
mod records;
mod route;
mod sample;
mod tiles;
mod timers;
mod traffic;
mod ways;
mod what;
mod windows;
mod wires;

pub use build::{can_have_tiles, check_run, needed_headroom, one_thread};
pub use windows::{simulate, simulate_in_ranks};
