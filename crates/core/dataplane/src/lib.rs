//! The data plane of one switch: output queues, one shared buffer with PFC, ECN marks and telemetry stamps.
//!
//! A driver hands in frames with their output ports and takes frames out when a port is free; frames are handles of the
//! driver's, so the simulator's headers and a real switch's buffers pass through the same code. Randomness and access to
//! frame contents come from the driver through [`Frames`]. Not here: where a frame goes (`raddle-unicast`) and how long
//! a port is busy (the driver).
//!
//! The order of steps is that of a shared-buffer switch with dynamic thresholds: admission, accounting, pause check on
//! arrival; release, ECN, telemetry, resume check on departure. Every call is O(1); nothing is allocated per frame once
//! queues have grown to their working size.

mod buffer;
mod data_plane;
mod frame;
mod memory;
mod pint;
mod queues;

pub use buffer::{BufferConfig, IngressLimit, RESERVE_BYTES, RESUME_OFFSET_BYTES, Share};
pub use data_plane::{
    Copies, Departure, Frames, PortCounters, Refused, Stamping, Switch, SwitchConfig,
};
pub use frame::{Frame, FrameKind, QUEUE_ACKS, QUEUE_DATA, QUEUE_PFC};
pub use memory::{PortConfig, SwitchMemory};
pub use pint::{ExactStamp, LogStamp, PintInput, PintStamp};
