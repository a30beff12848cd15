//! Collectives that the network carries: which, for whom, and what their ranks do then.

use std::collections::BTreeMap;

use raddle_text::at_most;
use raddle_trace::{Action, Collective, CollectiveKind, Trace};
use raddle_units::{Bytes, NodeId};
use raddle_workload::{Destination, GroupId, OffloadId, ReductionId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};

/// Who carries out a collective.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// The hosts, by messages between ranks.
    #[default]
    Host,
    /// Multicast groups: a Bcast is copied by switches, a Barrier or an Allreduce is combined on the group's tree.
    Multicast,
    /// Switches that compute: a Barrier, an Allreduce or a Reduce is a round of an in-network Allreduce.
    Offload,
}

/// Who carries out which collectives; all others are messages between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Collectives {
    /// MPI_Allreduce.
    pub allreduce: Carrier,
    /// MPI_Barrier.
    pub barrier: Carrier,
    /// MPI_Bcast: `host` or `multicast`.
    pub bcast: Carrier,
    /// MPI_Reduce: `host` or `offload`.
    pub reduce: Carrier,
    /// Operands of more bytes stay with the hosts. A tree of a multicast group combines 63 packets at most.
    pub largest: Bytes,
}

impl Default for Collectives {
    fn default() -> Self {
        Self::all(Carrier::Host)
    }
}

/// The longest operand that goes into the network where nothing else is said.
const LARGEST: Bytes = Bytes(64 << 10);

impl Collectives {
    /// All that a carrier can do: of multicast Bcast and Barrier, of switches that compute Allreduce, Reduce and Barrier.
    #[must_use]
    pub const fn all(carrier: Carrier) -> Self {
        let host = Carrier::Host;
        let (sums, bcast) = match carrier {
            Carrier::Host => (host, host),
            Carrier::Multicast => (host, carrier),
            Carrier::Offload => (carrier, host),
        };
        Self {
            allreduce: sums,
            barrier: carrier,
            bcast,
            reduce: sums,
            largest: LARGEST,
        }
    }

    /// Who carries out a collective with so many bytes.
    #[must_use]
    pub fn of(&self, kind: CollectiveKind, bytes: u64) -> Carrier {
        let carrier = match kind {
            CollectiveKind::Allreduce => self.allreduce,
            CollectiveKind::Barrier => self.barrier,
            CollectiveKind::Bcast => self.bcast,
            CollectiveKind::Reduce => self.reduce,
            _ => Carrier::Host,
        };
        if bytes > self.largest.0 {
            Carrier::Host
        } else {
            carrier
        }
    }

    /// Whether the network carries any.
    #[must_use]
    pub fn any(&self) -> bool {
        let all = [self.allreduce, self.barrier, self.bcast, self.reduce];
        all.iter().any(|carrier| *carrier != Carrier::Host)
    }
}

/// Who carries out collectives: one carrier for all that it can do, or a table with one for each.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it stands for its schema")]
enum Written {
    /// All that this carrier can do.
    All(Carrier),
    /// Each by itself.
    Each(Each),
}

impl JsonSchema for Collectives {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Collectives".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

/// Who carries out which collectives.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CollectivesTable")]
struct Each {
    /// MPI_Allreduce.
    allreduce: Carrier,
    /// MPI_Barrier.
    barrier: Carrier,
    /// MPI_Bcast: `host` or `multicast`.
    bcast: Carrier,
    /// MPI_Reduce: `host` or `offload`.
    reduce: Carrier,
    /// Operands of more bytes stay with the hosts. A tree of a multicast group combines 63 packets at most.
    #[schemars(transform = at_most("1TiB"))]
    largest: Bytes,
}

impl Default for Each {
    fn default() -> Self {
        let Collectives {
            allreduce,
            barrier,
            bcast,
            reduce,
            largest,
        } = Collectives::default();
        Self {
            allreduce,
            barrier,
            bcast,
            reduce,
            largest,
        }
    }
}

impl<'de> Deserialize<'de> for Collectives {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's untagged enums answer "did not match any variant"; what is there decides here, so errors name it.
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.is_string() {
            return Carrier::deserialize(value)
                .map(Self::all)
                .map_err(de::Error::custom);
        }
        let Each {
            allreduce,
            barrier,
            bcast,
            reduce,
            largest,
        } = Each::deserialize(value).map_err(de::Error::custom)?;
        if bcast == Carrier::Offload {
            return Err(de::Error::custom(
                "`bcast`: switches that compute carry no Bcast: use \"host\" or \"multicast\"",
            ));
        }
        if reduce == Carrier::Multicast {
            return Err(de::Error::custom(
                "`reduce`: a multicast group's tree gives its sum to all: use \"host\" or \"offload\"",
            ));
        }
        Ok(Self {
            allreduce,
            barrier,
            bcast,
            reduce,
            largest,
        })
    }
}

/// Hosts of a communicator that a network carrier is asked to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The communicator.
    pub comm: u32,
    /// `Multicast` or `Offload`.
    pub carrier: Carrier,
    /// Its hosts, ascending, two at least.
    pub hosts: Vec<NodeId>,
    /// Calls of the communicator that would use it.
    pub calls: u64,
}

/// What was granted to a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Its multicast group.
    pub group: Option<GroupId>,
    /// The reduction member of the first of its hosts; the others follow in order of hosts.
    pub first_member: Option<OffloadId>,
}

/// The ranks of a communicator by host.
#[derive(Clone, Debug)]
struct Members {
    /// Ascending.
    hosts: Vec<NodeId>,
    /// Of each host, in the order of the communicator.
    ranks: Vec<Vec<u32>>,
    /// By rank: the place of its host.
    places: BTreeMap<u32, u32>,
}

impl Members {
    fn new(members: &[u32], nodes: &[NodeId]) -> Self {
        let mut by_host = BTreeMap::<NodeId, Vec<u32>>::new();
        for &rank in members {
            by_host.entry(nodes[rank as usize]).or_default().push(rank);
        }
        let places = (0..).zip(by_host.values());
        let places = places.flat_map(|(place, ranks)| ranks.iter().map(move |rank| (*rank, place)));
        let places = places.collect();
        let (hosts, ranks) = by_host.into_iter().unzip();
        Self {
            hosts,
            ranks,
            places,
        }
    }
}

/// The groups that a program's communicators would use, in the order of communicators.
#[must_use]
pub fn wishes(trace: &Trace, nodes: &[NodeId], collectives: &Collectives) -> Vec<Wish> {
    if !collectives.any() {
        return Vec::new();
    }
    let mut calls = BTreeMap::<(u32, Carrier), u64>::new();
    for (rank, events) in (0..).zip(&trace.ranks) {
        for event in events {
            let Action::Collective { call, .. } = &event.action else {
                continue;
            };
            let carrier = collectives.of(call.kind, call.bytes.0);
            let leads = trace.communicators[call.comm as usize].first() == Some(&rank);
            if carrier != Carrier::Host {
                *calls.entry((call.comm, carrier)).or_default() += u64::from(leads);
            }
        }
    }
    let wish = |((comm, carrier), calls)| {
        let members = Members::new(&trace.communicators[comm as usize], nodes);
        (members.hosts.len() > 1).then_some(Wish {
            comm,
            carrier,
            hosts: members.hosts,
            calls,
        })
    };
    calls.into_iter().filter_map(wish).collect()
}

/// What a rank does with the network in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Gives its host's share, and waits for the result.
    Contribute {
        /// As a member of a reduction.
        to: Destination,
        /// Bytes of the operand.
        bytes: u64,
    },
    /// Sends to the group.
    Send {
        /// The group.
        group: GroupId,
        /// Bytes.
        bytes: u64,
    },
    /// Waits for what was sent to the group.
    Arrive,
}

/// A step of a rank in a collective that the network carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// To a rank of the same host.
    Give(u32, u64),
    /// From a rank of the same host.
    Take(u32, u64),
    /// With the network.
    Network(Part),
}

/// The communicators of a program that the network serves.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    collectives: Collectives,
    of: BTreeMap<u32, (Members, Granted)>,
}

impl Carried {
    /// Communicators of `trace`, whose rank r is on `nodes[r]`, with what they were granted.
    #[must_use]
    pub fn new(
        trace: &Trace,
        nodes: &[NodeId],
        collectives: Collectives,
        granted: &BTreeMap<u32, Granted>,
    ) -> Self {
        let of = granted.iter().map(|(&comm, &granted)| {
            let members = Members::new(&trace.communicators[comm as usize], nodes);
            (comm, (members, granted))
        });
        Self {
            collectives,
            of: of.collect(),
        }
    }

    /// Whether multicast carries a collective that the network carries.
    pub(crate) fn is_multicast(&self, call: &Collective) -> bool {
        self.collectives.of(call.kind, call.bytes.0) == Carrier::Multicast
    }

    /// What a rank does in a collective; `None`: the network does not carry it.
    pub(crate) fn moves(&self, rank: u32, call: &Collective) -> Option<Vec<Move>> {
        let bytes = call.bytes.0;
        let carrier = self.collectives.of(call.kind, bytes);
        let (members, granted) = self.of.get(&call.comm)?;
        let place = *members.places.get(&rank)?;
        let mut own = members.ranks[place as usize].clone();
        // The root leads its host, since it has what the others need.
        if let Some(at) = own.iter().position(|rank| Some(*rank) == call.root) {
            own.swap(0, at);
        }
        let (leader, others) = own.split_first()?;
        let leads = *leader == rank;
        let mut moves = Vec::new();
        if call.kind == CollectiveKind::Bcast {
            let group = granted.group.filter(|_| carrier == Carrier::Multicast)?;
            if !leads {
                return Some(vec![Move::Take(*leader, bytes)]);
            }
            moves.push(Move::Network(if call.root == Some(rank) {
                Part::Send { group, bytes }
            } else {
                Part::Arrive
            }));
            moves.extend(others.iter().map(|other| Move::Give(*other, bytes)));
            return Some(moves);
        }
        let to = match carrier {
            Carrier::Host => return None,
            Carrier::Multicast => ReductionId(granted.group?.0).into(),
            Carrier::Offload => OffloadId(granted.first_member?.0 + place).into(),
        };
        // A Reduce leaves its sum with the root alone.
        let all_hear = call.kind != CollectiveKind::Reduce;
        if !leads {
            moves.push(Move::Give(*leader, bytes));
            if all_hear {
                moves.push(Move::Take(*leader, bytes));
            }
            return Some(moves);
        }
        moves.extend(others.iter().map(|other| Move::Take(*other, bytes)));
        moves.push(Move::Network(Part::Contribute { to, bytes }));
        if all_hear {
            moves.extend(others.iter().map(|other| Move::Give(*other, bytes)));
        }
        Some(moves)
    }
}
