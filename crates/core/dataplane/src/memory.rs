//! What switches keep of their ports, in tables for many switches.

use raddle_prefetch::prefer_huge_pages;

use crate::{
    buffer::{Ingress, Share},
    frame::QUEUE_DATA,
    queues::{FrameMemory, Queue},
};

/// Settings of one port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortConfig {
    /// Line rate in bit/s.
    pub rate: u64,
    /// ECN (kmin, kmax in bytes, pmax); `None`: no marks.
    pub ecn: Option<(u64, u64, f64)>,
    /// What each of its data queues may hold of the buffer's shared part; an empty queue takes a frame whatever is free.
    pub egress: Share,
}

/// One port, in one cache line: what every frame touches.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Port {
    /// Of the first data class.
    pub(crate) data: Queue,
    pub(crate) queued_bytes: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) tx_packets: u64,
    pub(crate) max_queue_bytes: u64,
    pub(crate) kmin: u64,
    /// Bit per queue: not empty, and paused.
    pub(crate) backlog: u8,
    pub(crate) paused: u8,
    /// The queue served last, for the round robin of data classes.
    pub(crate) served: u8,
    pub(crate) rate_code: u8,
}

const _: () = assert!(size_of::<Port>() == 64);

/// The rest of a port.
#[derive(Debug)]
pub(crate) struct PortRest {
    pub(crate) kmax: u64,
    pub(crate) pmax: f64,
    pub(crate) ecn_marks: u64,
    pub(crate) drops: u64,
    pub(crate) egress: Share,
    // For PINT.
    pub(crate) last_tx_ns: u64,
    pub(crate) last_bytes: u32,
    pub(crate) utilisation: f64,
    pub(crate) bytes_per_s: u64,
}

/// The ports, queues and accounts of switches: each kind in a table of its own, so that a large fabric has them in huge pages.
/// A switch is always used with the memory that it was made in.
#[derive(Debug, Default)]
pub struct SwitchMemory {
    pub(crate) ports: Vec<Port>,
    pub(crate) rest: Vec<PortRest>,
    /// The queues that are not in [`Port`]: port by port PFC frames, acknowledgements, further data classes.
    pub(crate) queues: Vec<Queue>,
    /// Port by port, class by class.
    pub(crate) accounts: Vec<Ingress>,
    pub(crate) frames: FrameMemory,
}

impl SwitchMemory {
    /// With room for the ports of switches with so many data classes.
    pub fn with_room(ports: usize, classes: usize) -> Self {
        let made = Self {
            ports: Vec::with_capacity(ports),
            rest: Vec::with_capacity(ports),
            queues: Vec::with_capacity(ports * other_queues(classes)),
            accounts: Vec::with_capacity(ports * classes),
            frames: FrameMemory::default(),
        };
        prefer_huge_pages(&made.ports);
        prefer_huge_pages(&made.rest);
        prefer_huge_pages(&made.queues);
        prefer_huge_pages(&made.accounts);
        made
    }

    /// Memory that a port takes before anything is queued, in bytes.
    pub const fn port_bytes(classes: usize) -> usize {
        size_of::<Port>()
            + size_of::<PortRest>()
            + other_queues(classes) * size_of::<Queue>()
            + classes * size_of::<Ingress>()
    }

    pub(crate) fn add_port(&mut self, settings: &PortConfig, rate_code: u8, queues: usize) {
        let (kmin, kmax, pmax) = settings.ecn.unwrap_or((u64::MAX, u64::MAX, 0.0));
        self.ports.push(Port {
            data: Queue::EMPTY,
            queued_bytes: 0,
            tx_bytes: 0,
            tx_packets: 0,
            max_queue_bytes: 0,
            kmin,
            backlog: 0,
            paused: 0,
            served: QUEUE_DATA,
            rate_code,
        });
        self.rest.push(PortRest {
            kmax,
            pmax,
            ecn_marks: 0,
            drops: 0,
            egress: settings.egress,
            last_tx_ns: 0,
            last_bytes: 0,
            utilisation: 0.0,
            bytes_per_s: settings.rate / 8,
        });
        self.queues
            .extend(std::iter::repeat_n(Queue::EMPTY, queues));
    }
}

/// Queues of a port beside that of the first data class.
pub(crate) const fn other_queues(classes: usize) -> usize {
    QUEUE_DATA as usize + classes - 1
}
