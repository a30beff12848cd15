//! Which algorithm makes messages of a collective.

use std::collections::{BTreeMap, VecDeque};

use raddle_text::words::{shorten, suggest};
use raddle_trace::CollectiveKind;
use raddle_workload::collective::{self, Script};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// From so many bytes on an Allreduce cuts its operand (Open MPI 4.0, `coll/tuned`).
const LONG_ALLREDUCE: u64 = 10_000;

/// The algorithms of a kind of collective, each with its name.
macro_rules! named {
    ($(#[$about:meta])* $kind:ident { $($(#[$what:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
        pub enum $kind {
            /// What an MPI library would take for this many bytes and ranks.
            #[default]
            #[serde(rename = "automatic")]
            Automatic,
            $($(#[$what])* #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            const NAMES: &'static [&'static str] = &["automatic", $($name),*];

            fn named(name: &str) -> Option<Self> {
                match name {
                    "automatic" => Some(Self::Automatic),
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

named! {
    /// Algorithms of Allreduce.
    AllreduceAlgorithm {
        /// Partners at distances 1, 2, 4, ... exchange the whole operand.
        RecursiveDoubling = "recursive-doubling",
        /// A reduce-scatter and an allgather in a ring.
        Ring = "ring",
        /// Two binary trees, each with half of the operand in chunks.
        DoubleTree = "double-tree",
        /// A Reduce, then a Bcast.
        ReduceBcast = "reduce-bcast",
    }
}

named! {
    /// Algorithms of Bcast.
    BcastAlgorithm {
        /// A binomial tree.
        Binomial = "binomial",
        /// A chain of all ranks, through which chunks follow each other.
        Ring = "ring",
    }
}

named! {
    /// Algorithms of Allgather.
    AllgatherAlgorithm {
        /// Shares go round in a ring.
        Ring = "ring",
        /// Ranks at distances 1, 2, 4, ... hand on all that they have.
        RecursiveDoubling = "recursive-doubling",
    }
}

named! {
    /// Algorithms of Alltoall.
    AlltoallAlgorithm {
        /// In step k a rank sends to the k-th after it and receives from the k-th before it.
        Pairwise = "pairwise",
        /// A rank sends to all, then receives from all.
        Linear = "linear",
    }
}

named! {
    /// Algorithms of Barrier.
    BarrierAlgorithm {
        /// In step k a rank tells the one 2^k after it.
        Dissemination = "dissemination",
    }
}

/// The algorithm of each kind of collective that has several. The others have one each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Algorithms {
    /// Of Allreduce.
    pub allreduce: AllreduceAlgorithm,
    /// Of Bcast.
    pub bcast: BcastAlgorithm,
    /// Of Allgather.
    pub allgather: AllgatherAlgorithm,
    /// Of Alltoall.
    pub alltoall: AlltoallAlgorithm,
    /// Of Barrier.
    pub barrier: BarrierAlgorithm,
}

/// A choice of an algorithm that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownAlgorithm {
    /// It is no pair of names.
    #[error("`{choice}`: write COLLECTIVE=ALGORITHM, such as allreduce=ring")]
    Form {
        /// What was given.
        choice: String,
    },
    /// No collective of that name has a choice.
    #[error("`{name}` is not a collective that has several algorithms: {hint}")]
    Collective {
        /// The name.
        name: String,
        /// What was meant, and which there are.
        hint: String,
    },
    /// The collective has no such algorithm.
    #[error("`{name}` is not an algorithm of {collective}: {hint}")]
    Algorithm {
        /// The collective.
        collective: &'static str,
        /// The name.
        name: String,
        /// What was meant, and which there are.
        hint: String,
    },
}

impl Algorithms {
    const KINDS: [&str; 5] = ["allreduce", "bcast", "allgather", "alltoall", "barrier"];

    /// Chooses an algorithm by `choice`, such as `allreduce=double-tree`.
    ///
    /// # Errors
    /// [`UnknownAlgorithm`].
    pub fn choose(&mut self, choice: &str) -> Result<(), UnknownAlgorithm> {
        let Some((collective, name)) = choice.split_once('=') else {
            let choice = shorten(choice);
            return Err(UnknownAlgorithm::Form { choice });
        };
        let of = |collective, names| UnknownAlgorithm::Algorithm {
            collective,
            name: shorten(name),
            hint: suggest(name, names),
        };
        macro_rules! set {
            ($field:ident, $kind:ident) => {
                self.$field =
                    $kind::named(name).ok_or_else(|| of(stringify!($field), $kind::NAMES))?
            };
        }
        match collective {
            "allreduce" => set!(allreduce, AllreduceAlgorithm),
            "bcast" => set!(bcast, BcastAlgorithm),
            "allgather" => set!(allgather, AllgatherAlgorithm),
            "alltoall" => set!(alltoall, AlltoallAlgorithm),
            "barrier" => set!(barrier, BarrierAlgorithm),
            _ => {
                return Err(UnknownAlgorithm::Collective {
                    name: shorten(collective),
                    hint: suggest(collective, &Self::KINDS),
                });
            }
        }
        Ok(())
    }

    /// The messages of a collective whose members give `bytes` each.
    pub(super) fn recipe(&self, kind: CollectiveKind, ranks: u32, bytes: u64) -> Recipe {
        let share = bytes.div_ceil(u64::from(ranks.max(1)));
        let pipelined = match kind {
            CollectiveKind::Allreduce => self.allreduce == AllreduceAlgorithm::DoubleTree,
            CollectiveKind::Bcast => self.bcast == BcastAlgorithm::Ring,
            CollectiveKind::Alltoall => self.alltoall == AlltoallAlgorithm::Linear,
            _ => false,
        };
        let script = match kind {
            CollectiveKind::Barrier => match self.barrier {
                BarrierAlgorithm::Automatic | BarrierAlgorithm::Dissemination => {
                    collective::barrier_dissemination(ranks)
                }
            },
            CollectiveKind::Bcast => match self.bcast {
                BcastAlgorithm::Automatic | BcastAlgorithm::Binomial => {
                    collective::bcast_binomial(ranks, bytes)
                }
                BcastAlgorithm::Ring => collective::bcast_chain(ranks, bytes),
            },
            CollectiveKind::Reduce => collective::reduce(ranks, bytes),
            CollectiveKind::Allreduce => match self.allreduce {
                AllreduceAlgorithm::Automatic if bytes >= LONG_ALLREDUCE => {
                    collective::allreduce_ring(ranks, bytes)
                }
                AllreduceAlgorithm::Automatic | AllreduceAlgorithm::RecursiveDoubling => {
                    collective::allreduce_recursive_doubling(ranks, bytes)
                }
                AllreduceAlgorithm::Ring => collective::allreduce_ring_both(ranks, bytes),
                AllreduceAlgorithm::DoubleTree => collective::allreduce_double_tree(ranks, bytes),
                AllreduceAlgorithm::ReduceBcast => collective::allreduce_reduce_bcast(ranks, bytes),
            },
            CollectiveKind::Gather => collective::gather_linear(ranks, bytes),
            CollectiveKind::Scatter => collective::scatter_linear(ranks, bytes),
            CollectiveKind::Allgather => match self.allgather {
                AllgatherAlgorithm::Automatic | AllgatherAlgorithm::Ring => {
                    collective::allgather_ring(ranks, bytes)
                }
                AllgatherAlgorithm::RecursiveDoubling => {
                    collective::allgather_recursive_doubling(ranks, bytes)
                }
            },
            CollectiveKind::Alltoall => match self.alltoall {
                AlltoallAlgorithm::Automatic | AlltoallAlgorithm::Pairwise => {
                    collective::alltoall_pairwise(ranks, share)
                }
                AlltoallAlgorithm::Linear => collective::alltoall_linear(ranks, share),
            },
            CollectiveKind::ReduceScatter => collective::alltoall_pairwise(ranks, share),
            CollectiveKind::Scan | CollectiveKind::Exscan => collective::scan_linear(ranks, bytes),
        };
        Recipe::new(&script, pipelined)
    }
}

/// One message of a rank in a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Whether the rank sends it.
    pub(super) sends: bool,
    /// The other end.
    pub(super) peer: u32,
    /// Its bytes.
    pub(super) bytes: u64,
}

/// The messages of a collective.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Of each rank, in order.
    pub(super) ranks: Vec<Vec<Part>>,
    /// Sends do not keep their rank; what they take beyond that is waited for at the end.
    pub(super) pipelined: bool,
}

impl Recipe {
    /// Receives have the sizes of their messages: the n-th from a rank is that rank's n-th to the receiver.
    fn new(script: &Script, pipelined: bool) -> Self {
        let mut sent: BTreeMap<(u32, u32), VecDeque<u64>> = BTreeMap::new();
        for from in 0..script.size() {
            for action in script.rank(from) {
                if let collective::Action::Send { to, bytes } = *action {
                    sent.entry((from, to)).or_default().push_back(bytes);
                }
            }
        }
        let mut received = |rank, from| sent.get_mut(&(from, rank))?.pop_front();
        let ranks = (0..script.size())
            .map(|rank| {
                let part = |action: &collective::Action| match *action {
                    collective::Action::Send { to, bytes } => Some(Part {
                        sends: true,
                        peer: to,
                        bytes,
                    }),
                    collective::Action::Receive { from } => Some(Part {
                        sends: false,
                        peer: from,
                        bytes: received(rank, from)?,
                    }),
                    collective::Action::Offload { .. } => None,
                };
                script.rank(rank).iter().filter_map(part).collect()
            })
            .collect();
        Self { ranks, pipelined }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_made_by_name_and_slips_are_told() {
        let mut algorithms = Algorithms::default();
        algorithms.choose("allreduce=double-tree").unwrap();
        algorithms.choose("bcast=ring").unwrap();
        assert_eq!(algorithms.allreduce, AllreduceAlgorithm::DoubleTree);
        assert_eq!(algorithms.bcast, BcastAlgorithm::Ring);
        for (choice, expected) in [
            ("allreduce", "COLLECTIVE=ALGORITHM"),
            ("alreduce=ring", "did you mean `allreduce`?"),
            ("allreduce=double-tee", "did you mean `double-tree`?"),
            ("barrier=ring", "possible: automatic, dissemination"),
        ] {
            let told = algorithms.choose(choice).unwrap_err().to_string();
            assert!(told.contains(expected), "{told}");
        }
    }

    /// Names on the command line are those of files, and every one of them is known.
    #[test]
    fn every_name_is_the_same_in_files() {
        for name in AllreduceAlgorithm::NAMES {
            let mut algorithms = Algorithms::default();
            algorithms.choose(&format!("allreduce={name}")).unwrap();
            let json = serde_json::to_value(algorithms).unwrap();
            assert_eq!(json["allreduce"], *name);
            assert_eq!(
                serde_json::from_value::<Algorithms>(json).unwrap(),
                algorithms
            );
        }
    }
}
