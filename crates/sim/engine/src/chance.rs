//! Where a run's randomness comes from: a stream per node, the reference's generators, or marks replayed from a trace.

use raddle_units::NodeId;
use rustc_hash::FxHashMap;

use crate::{index::NodeIndex, mrg32k3a::StreamHeads, semantics::Randomness};

/// Streams that ns-3 has used up before the first packet: two of the links' error model, six of every node's network
/// stack. (The micro vectors on two maps pin both numbers: any other start contradicts their marks.)
const NS3_STREAMS: u64 = 2;
const NS3_STREAMS_PER_NODE: u64 = 6;

/// Randomness of one run.
#[derive(Debug)]
pub(crate) enum Chance {
    /// Each node draws from a stream of its own, so that the order in which nodes are simulated, or another node's
    /// draws, never changes what a node draws.
    PerNode(Vec<SplitMix64>),
    /// The draws of HPCC's simulator, in its order: ECN from ns-3's uniform streams, a fresh one for every decision
    /// (and for every PFC frame), PINT from libc.
    HpccNs3(Box<Ns3Draws>),
}

/// The generators of HPCC's simulator.
#[derive(Debug)]
pub(crate) struct Ns3Draws {
    libc: LibcRand,
    heads: StreamHeads,
}

impl Chance {
    /// For these nodes. In ns-3's streams `seed` is the run number (RngRun, 1 where nothing is set).
    pub(crate) fn new(seed: u64, nodes: &[NodeId], source: Randomness) -> Self {
        match source {
            Randomness::PerNode => Self::PerNode(
                nodes
                    .iter()
                    .map(|node| {
                        // Neighbouring seeds and nodes start far apart: the seed is mixed before the node is added,
                        // and again.
                        let node = u64::from(node.0).wrapping_mul(0xd134_2543_de82_ef95);
                        let mixed = SplitMix64(seed).next() ^ node;
                        SplitMix64(SplitMix64(mixed).next())
                    })
                    .collect(),
            ),
            Randomness::HpccNs3 => {
                let used = NS3_STREAMS + NS3_STREAMS_PER_NODE * nodes.len() as u64;
                Self::HpccNs3(Box::new(Ns3Draws {
                    libc: LibcRand::new(1),
                    heads: StreamHeads::new(1, seed, used),
                }))
            }
        }
    }

    /// True with the given probability.
    pub(crate) fn happens(&mut self, node: NodeIndex, probability: f64) -> bool {
        match self {
            Self::PerNode(streams) => {
                let bits = streams[node.0 as usize].next() >> 11;
                (bits as f64) * (1.0 / (1u64 << 53) as f64) < probability
            }
            Self::HpccNs3(draws) => draws.heads.next() < probability,
        }
    }

    /// 31 random bits.
    pub(crate) fn bits(&mut self, node: NodeIndex) -> u32 {
        match self {
            Self::PerNode(streams) => (streams[node.0 as usize].next() >> 33) as u32,
            Self::HpccNs3(draws) => draws.libc.next(),
        }
    }

    /// A PFC frame was made: HPCC's simulator draws its IP identification.
    pub(crate) fn pfc_frame(&mut self) {
        if let Self::HpccNs3(draws) = self {
            draws.heads.skip();
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one word of state, fit for a stream per node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// A stream of its own for each seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// The additive feedback generator behind glibc's `rand()` (random(3), TYPE_3): what HPCC's simulator draws from.
#[derive(Clone, Debug)]
struct LibcRand {
    ring: [u32; 31],
    at: usize,
}

impl LibcRand {
    fn new(seed: u32) -> Self {
        let mut ring = [0u32; 31];
        let mut word = i64::from(seed.max(1));
        for slot in &mut ring {
            *slot = word as u32;
            word = word * 16_807 % 2_147_483_647;
        }
        let mut generator = Self { ring, at: 3 };
        for _ in 0..310 {
            generator.next();
        }
        generator
    }

    fn next(&mut self) -> u32 {
        let sum = self.ring[self.at].wrapping_add(self.ring[(self.at + 28) % 31]);
        self.ring[self.at] = sum;
        self.at = (self.at + 1) % 31;
        sum >> 1
    }
}

/// Congestion marks taken from a per-ACK trace instead of being drawn.
#[derive(Clone, Debug, Default)]
pub struct MarkReplay {
    /// (src, dst, sport, acknowledged byte) of packets that were marked.
    marked: FxHashMap<(u32, u32, u16, u64), bool>,
}

/// A line of a trace that is not one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{source_name}:{line}: field {field} is missing or not a number; a line is `time_ns node peer sport A|N ack_seq ecn …`"
)]
pub struct TraceError {
    /// Name of the file.
    pub source_name: String,
    /// Line, from 1.
    pub line: usize,
    /// Field, from 1.
    pub field: usize,
}

impl MarkReplay {
    /// Reads the marks of a trace with lines `time_ns node peer sport A|N ack_seq ecn …`.
    ///
    /// # Errors
    /// [`TraceError`] with the line and field that cannot be read.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, TraceError> {
        let mut marked = FxHashMap::default();
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let number = |field: usize| {
                fields
                    .get(field)
                    .and_then(|text| text.parse::<u64>().ok())
                    .ok_or_else(|| TraceError {
                        source_name: source_name.to_owned(),
                        line: index + 1,
                        field: field + 1,
                    })
            };
            let key = (
                number(1)? as u32,
                number(2)? as u32,
                number(3)? as u16,
                number(5)?,
            );
            *marked.entry(key).or_insert(false) |= number(6)? != 0;
        }
        Ok(Self { marked })
    }

    pub(crate) fn is_marked(&self, src: NodeId, dst: NodeId, sport: u16, acked: u64) -> bool {
        self.marked
            .get(&(src.0, dst.0, sport, acked))
            .copied()
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_generator_gives_the_well_known_first_numbers_of_seed_1() {
        let mut generator = LibcRand::new(1);
        let first: Vec<u32> = (0..5).map(|_| generator.next()).collect();
        assert_eq!(
            first,
            [
                1_804_289_383,
                846_930_886,
                1_681_692_777,
                1_714_636_915,
                1_957_747_793
            ]
        );
    }

    #[test]
    fn split_mix_gives_its_published_first_numbers() {
        // Reference values of Vigna's splitmix64.c for seed 1234567.
        let mut stream = SplitMix64(1_234_567);
        assert_eq!(stream.next(), 6_457_827_717_110_365_317);
        assert_eq!(stream.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_broken_trace_names_line_and_field() {
        let error =
            MarkReplay::parse("1 0 4 10000 A 1000 0\n2 0 4 x A 2000 1\n", "t.ack").unwrap_err();
        assert_eq!((error.line, error.field), (2, 4));
    }
}
