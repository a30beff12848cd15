//! GPCNeT's congestors and victims, closed loop: every rank starts its next operation when the last one is done.
//!
//! After GPCNeT 1.3 (`network_load_test`). Ranks with the same number on their hosts form a slice; victims and each
//! kind of congestor have one communicator per slice. Times of operations follow from the network, so this workload
//! has dependencies and cannot be written as a flow file. It measures messages; GPCNeT's start-up, its warm-up
//! iterations and its ten-second limits are left out.

mod exchange;
mod part;
mod program;
mod run;

use raddle_units::{Bytes, NodeId, Span, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::run::Run;
use crate::{TrafficError, Workload, limits};
use raddle_random::Random;

/// Shuffles hosts into victims and congestors.
const SPLIT_STREAM: u64 = 0;
/// Shuffles congestor hosts over the kinds.
const COLOUR_STREAM: u64 = 1;
/// Random rings of slice `i` use stream `FIRST_RING_STREAM + i`.
const FIRST_RING_STREAM: u64 = 2;

/// What congests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestor {
    /// Pairwise exchanges with everyone in turn (xor partners if the group is a power of two, shifts otherwise).
    Alltoall,
    /// Everyone sends to rank 0.
    P2pIncast,
    /// Everyone puts into rank 0's memory and waits for completion.
    PutIncast,
    /// Everyone reads from rank 0: a request there, the data back (a broadcast, seen from rank 0).
    GetIncast,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// 8 B to both neighbours of a random ring.
    Latency,
    /// 8 messages of 128 KiB to both neighbours of a random ring, then a barrier.
    Bandwidth,
    /// Allreduce of 8 B: recursive doubling.
    Allreduce,
}

/// GPCNeT's load test: 20 % of the hosts run measured tests while 80 % congest the network without a pause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gpcnet {
    /// Share of the hosts that congest, rounded down to a whole host. Default 0.8.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub congestor_share: f64,
    /// Whether the congestors run; `false` is the baseline twin, with the same victims and rings. Default true.
    pub congestion: bool,
    /// Kinds of congestors, running at once in groups of (almost) equal size. Default: all four.
    #[schemars(length(min = 1, max = 64))]
    pub congestors: Vec<Congestor>,
    /// Message of a congestor. Default 4096B.
    #[schemars(transform = limits::size())]
    pub congestor_size: Bytes,
    /// Request of a get. Default 16B, the extended header of an RDMA read.
    #[schemars(transform = limits::size())]
    pub get_request_size: Bytes,
    /// Ranks per host. Default 1.
    #[schemars(range(min = 1, max = 1024))]
    pub ranks_per_host: u32,
    /// Tests, in this order. Default: latency, bandwidth, allreduce.
    #[schemars(length(min = 1, max = 1000))]
    pub victims: Vec<Victim>,
    /// Time that the congestors run before the victims begin. Default 50us.
    #[schemars(transform = limits::start())]
    pub warmup: Span,
    /// Random rings per ring test (GPCNeT: 30). Default 2.
    #[schemars(range(min = 1, max = 1000))]
    pub rings: u32,
    /// Exchanges per ring of the latency test (GPCNeT: 200). Default 8.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub latency_iterations: u32,
    /// Exchanges per ring of the bandwidth test (GPCNeT: 8). Default 2.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub bandwidth_iterations: u32,
    /// Allreduces (GPCNeT: 200 per test). Default 8.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub allreduce_iterations: u32,
    /// Message of the latency test. Default 8B.
    #[schemars(transform = limits::size())]
    pub latency_size: Bytes,
    /// Message of the bandwidth test. Default 128KiB.
    #[schemars(transform = limits::size())]
    pub bandwidth_size: Bytes,
    /// Messages to each neighbour at once in the bandwidth test. Default 8.
    #[schemars(range(min = 1, max = 1024))]
    pub bandwidth_window: u32,
    /// Message of the Allreduce test. Default 8B.
    #[schemars(transform = limits::size())]
    pub allreduce_size: Bytes,
    /// Message of a barrier. Default 8B.
    #[schemars(transform = limits::size())]
    pub barrier_size: Bytes,
}

impl Default for Gpcnet {
    fn default() -> Self {
        Self {
            congestor_share: 0.8,
            congestion: true,
            congestors: vec![
                Congestor::Alltoall,
                Congestor::P2pIncast,
                Congestor::PutIncast,
                Congestor::GetIncast,
            ],
            congestor_size: Bytes(4096),
            get_request_size: Bytes(16),
            ranks_per_host: 1,
            victims: vec![Victim::Latency, Victim::Bandwidth, Victim::Allreduce],
            warmup: Span::from_us(50),
            rings: 2,
            latency_iterations: 8,
            bandwidth_iterations: 2,
            allreduce_iterations: 8,
            latency_size: Bytes(8),
            bandwidth_size: Bytes(128 << 10),
            bandwidth_window: 8,
            allreduce_size: Bytes(8),
            barrier_size: Bytes(8),
        }
    }
}

impl Gpcnet {
    /// The baseline twin: the same victims, no congestors.
    pub fn isolated(&self) -> Self {
        Self {
            congestion: false,
            ..self.clone()
        }
    }

    /// The closed loop; memory grows with the ranks and rings, not with the messages.
    ///
    /// # Errors
    /// A field out of range; fewer than two victims or two hosts per kind of congestor (10 hosts by default); more
    /// messages of a rank than can be told apart, 2^39.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        self.check(hosts.len())?;
        let mut order = hosts.to_vec();
        order.sort_unstable();
        Random::new(seed, SPLIT_STREAM).shuffle(&mut order);
        let victims = order.split_off(self.congestor_hosts(hosts.len()));
        let mut congestors = order;
        Random::new(seed, COLOUR_STREAM).shuffle(&mut congestors);
        Run::new(self, &victims, &congestors, seed)
    }

    fn congestor_hosts(&self, hosts: usize) -> usize {
        // 0.8 x 10 must not become 7 by a last bit.
        libm::floor(hosts as f64 * self.congestor_share + 1e-9) as usize
    }

    fn check(&self, hosts: usize) -> Result<(), TrafficError> {
        const MOST_RANKS: u64 = 1 << 24;
        limits::check(self)?;
        let wrong = |field, problem: String| Err(TrafficError::spec(field, problem));
        if hosts as u64 * u64::from(self.ranks_per_host) > MOST_RANKS {
            return wrong("ranks_per_host", "more than 2^24 ranks in all".to_owned());
        }
        let congestors = self.congestor_hosts(hosts);
        let wanted = 2 * self.congestors.len();
        if congestors < wanted || hosts - congestors < 2 {
            let problem = format!(
                "of {} {congestors} congest and {} are measured, but {wanted} and 2 are needed: \
                 use a larger fabric, fewer `congestors` or another `congestor_share`",
                many(hosts, "host"),
                hosts.saturating_sub(congestors)
            );
            return wrong("congestor_share", problem);
        }
        Ok(())
    }
}
