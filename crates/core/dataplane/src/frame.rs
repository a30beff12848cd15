//! Frames, and the queues of a port that they wait in.

/// PFC frames: first of all, never paused, in no buffer's account.
pub const QUEUE_PFC: u8 = 0;
/// Acknowledgements where they travel apart from data: next, never paused, in no buffer's account.
pub const QUEUE_ACKS: u8 = 1;
/// The first data class; class `c` uses queue `QUEUE_DATA + c`.
pub const QUEUE_DATA: u8 = 2;

/// What a frame is to the data plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// Passed on as it is.
    Plain,
    /// Marked by ECN and stamped with telemetry.
    Data,
    /// [`Self::Data`] of which there are copies in other ports: the ingress bytes are released with the last one. Made by
    /// [`crate::Switch::enqueue_copies`].
    Copy,
    /// PFC: stop sending a data class.
    Pause,
    /// PFC: send a data class again.
    Resume,
}

/// A frame in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The driver's name for it. PFC frames are made here: theirs is the data class.
    pub handle: u32,
    /// Bytes on the wire, at most 64 KiB.
    pub bytes: u32,
    /// Port it came in by (index, from 0).
    pub in_port: u16,
    /// Queue, [`QUEUE_PFC`] to the last data class.
    pub queue: u8,
    /// What is done with it.
    pub kind: FrameKind,
}
