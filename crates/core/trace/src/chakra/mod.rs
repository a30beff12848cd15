//! Chakra, the execution traces of MLCommons (`Chakra` in `docs/references.bib`): a graph of tasks for every rank, one protobuf
//! file each.
//!
//! A trace is one sequence of calls per rank, a Chakra file a partial order, so [`read`] chooses a sequence: of the tasks that
//! may go next the one with the least id. Communication does not keep its rank: what another task depends on is waited for before
//! that task, the rest at the end. Computing takes its `duration_micros`, one task after the other, also where the graph would
//! let tasks overlap. A process group (`pg_name`) has those members that call it; without a name it is all ranks.
//!
//! | node | attributes | becomes |
//! |---|---|---|
//! | `COMP_NODE`, `MEM_LOAD_NODE`, `MEM_STORE_NODE`, `STORAGE_NODE`, `CHECKPOINT_NODE`, `BATCH_NODE` | | computing for `duration_micros` |
//! | `COMM_SEND_NODE`, `COMM_RECV_NODE` | `comm_dst`, `comm_src`, `comm_size`, `comm_tag` (0) | a send or receive |
//! | `COMM_COLL_NODE` | `comm_type`, `comm_size`, `pg_name`, `root` (the first member) | a collective; `comm_size` is the rank's share ([`CollectiveKind`]) |
//! | `METADATA_NODE` | | nothing |

mod schema;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use prost::Message as _;
use raddle_units::Bytes;
use thiserror::Error;

use crate::{
    Action, Collective, CollectiveKind, Collectives, Event, Interval, Message, Pairing, Trace,
    Wildcards,
};
use schema::{CollectiveCommType, GlobalMetadata, Node, NodeType};

/// Bytes of a message at most.
const MOST_BYTES: u64 = 1 << 40;

/// Why files are no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {}{problem}", node.map(|node| format!("node {node}: ")).unwrap_or_default())]
pub struct ChakraError {
    /// The file.
    pub file: String,
    /// The node, by its id, if it is about one.
    pub node: Option<u64>,
    /// What is wrong, and what is right.
    pub problem: String,
}

/// A file: its name in errors, and its bytes.
pub type File<'a> = (&'a str, &'a [u8]);

/// Reads the trace of a program: a file for each rank, in order.
///
/// # Errors
/// A file that is damaged or cut, nodes that wait for each other or for one that is not there, a task whose size, time or other
/// end is missing, ranks that do not agree on messages and collectives.
pub fn read(files: &[File<'_>]) -> Result<Trace, ChakraError> {
    let graphs: Vec<Graph> = files.iter().map(Graph::read).collect::<Result<_, _>>()?;
    let ranks = graphs.len() as u32;
    let mut members = BTreeMap::<String, BTreeSet<u32>>::new();
    for (graph, rank) in graphs.iter().zip(0..) {
        for group in graph.groups() {
            members.entry(group).or_default().insert(rank);
        }
    }
    let mut communicators = vec![(0..ranks).collect::<Vec<u32>>()];
    let mut numbers = BTreeMap::new();
    for (name, members) in members {
        if members.len() == ranks as usize {
            numbers.insert(name, 0);
        } else {
            numbers.insert(name, communicators.len() as u32);
            communicators.push(members.into_iter().collect());
        }
    }
    let mut calls = Vec::with_capacity(graphs.len());
    for graph in &graphs {
        calls.push(graph.calls(&numbers, &communicators)?);
    }
    let trace = Trace {
        ranks: calls,
        placement: (0..ranks).collect(),
        hosts: (0..ranks).map(|rank| format!("host{rank}")).collect(),
        communicators,
        fabric: String::new(),
        program: String::new(),
        mpi: "Chakra".to_owned(),
        processors: None,
    };
    let agreed = trace.check();
    let agreed = agreed.and_then(|()| Pairing::new(&trace).map(drop));
    let agreed = agreed.and_then(|()| Collectives::new(&trace).map(drop));
    match agreed {
        Ok(()) => Ok(trace),
        Err(problem) => Err(ChakraError {
            file: files.first().map_or("", |(name, _)| name).to_owned(),
            node: None,
            problem: format!("ranks do not agree: {problem}"),
        }),
    }
}

/// The nodes of a rank, by id.
struct Graph {
    file: String,
    nodes: BTreeMap<u64, Node>,
}

impl Graph {
    fn error(&self, node: Option<u64>, problem: impl Into<String>) -> ChakraError {
        ChakraError {
            file: self.file.clone(),
            node,
            problem: problem.into(),
        }
    }

    fn read(&(file, bytes): &File<'_>) -> Result<Self, ChakraError> {
        let mut graph = Self {
            file: file.to_owned(),
            nodes: BTreeMap::new(),
        };
        let mut rest = bytes;
        let broken = |graph: &Self, left: usize, error: prost::DecodeError| {
            let at = bytes.len() - left;
            let problem = format!("this is no Chakra trace, or it is cut: byte {at}: {error}");
            graph.error(None, problem)
        };
        if rest.is_empty() {
            return Err(graph.error(None, "the file is empty"));
        }
        let before = rest.len();
        GlobalMetadata::decode_length_delimited(&mut rest)
            .map_err(|error| broken(&graph, before, error))?;
        while !rest.is_empty() {
            let before = rest.len();
            let node = Node::decode_length_delimited(&mut rest)
                .map_err(|error| broken(&graph, before, error))?;
            let id = node.id;
            if graph.nodes.insert(id, node).is_some() {
                return Err(graph.error(Some(id), "there are two of this id"));
            }
        }
        Ok(graph)
    }

    /// The process groups that the rank calls.
    fn groups(&self) -> impl Iterator<Item = String> + '_ {
        let collectives = self
            .nodes
            .values()
            .filter(|node| node.kind() == NodeType::CommColl);
        collectives.filter_map(|node| node.text("pg_name").filter(|name| !name.is_empty()))
    }

    /// The ids in an order in which all can be done.
    fn order(&self) -> Result<Vec<u64>, ChakraError> {
        let mut missing = BTreeMap::<u64, usize>::new();
        let mut then = BTreeMap::<u64, Vec<u64>>::new();
        for (&id, node) in &self.nodes {
            let deps: BTreeSet<u64> = node.deps().collect();
            for dep in &deps {
                if !self.nodes.contains_key(dep) {
                    let problem = format!("it waits for node {dep}, which is not in the file");
                    return Err(self.error(Some(id), problem));
                }
                then.entry(*dep).or_default().push(id);
            }
            missing.insert(id, deps.len());
        }
        let free = missing.iter().filter(|(_, missing)| **missing == 0);
        let mut ready: BinaryHeap<Reverse<u64>> = free.map(|(&id, _)| Reverse(id)).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(id)) = ready.pop() {
            order.push(id);
            missing.remove(&id);
            for next in then.remove(&id).unwrap_or_default() {
                if let Some(left) = missing.get_mut(&next) {
                    *left -= 1;
                    if *left == 0 {
                        ready.push(Reverse(next));
                    }
                }
            }
        }
        match missing.keys().next() {
            None => Ok(order),
            Some(&id) => Err(self.error(Some(id), "it waits for itself, by way of others")),
        }
    }

    /// The calls of the rank.
    fn calls(
        &self,
        groups: &BTreeMap<String, u32>,
        communicators: &[Vec<u32>],
    ) -> Result<Vec<Event>, ChakraError> {
        let mut calls = Calls::default();
        for id in self.order()? {
            let node = &self.nodes[&id];
            calls.wait_for(node.deps());
            match node.kind() {
                NodeType::Metadata => {}
                NodeType::Invalid => return Err(self.error(Some(id), "its type is not known")),
                NodeType::CommSend => {
                    let message = self.message(node, "comm_dst", communicators[0].len())?;
                    calls.start(id, |request| Action::Send { message, request });
                }
                NodeType::CommRecv => {
                    let message = self.message(node, "comm_src", communicators[0].len())?;
                    calls.start(id, |request| Action::Receive {
                        message,
                        request,
                        any: Wildcards::default(),
                    });
                }
                NodeType::CommColl => {
                    let call = self.collective(node, groups, communicators)?;
                    calls.start(id, |request| Action::Collective { call, request });
                }
                _ => {
                    if node.duration_micros == 0 && node.has("num_ops") {
                        let problem =
                            "it has `num_ops` and no `duration_micros`: say how long it takes";
                        return Err(self.error(Some(id), problem));
                    }
                    let time = node.duration_micros.checked_mul(1000);
                    let now = time.and_then(|time| calls.now.checked_add(time));
                    // More than a u64 of picoseconds can hold is a mistake of units.
                    let now = now.filter(|now| *now < u64::MAX / 2000);
                    calls.now = now
                        .ok_or_else(|| self.error(Some(id), "`duration_micros` is out of range"))?;
                }
            }
        }
        Ok(calls.end())
    }

    fn size(&self, node: &Node) -> Result<Bytes, ChakraError> {
        let size = node.whole("comm_size").filter(|size| *size <= MOST_BYTES);
        size.map(Bytes).ok_or_else(|| {
            let problem = format!("`comm_size` must be a number of bytes, at most {MOST_BYTES}");
            self.error(Some(node.id), problem)
        })
    }

    fn message(&self, node: &Node, end: &str, ranks: usize) -> Result<Message, ChakraError> {
        let peer = node.whole(end).filter(|peer| *peer < ranks as u64);
        let Some(peer) = peer else {
            let problem = format!("`{end}` must be a rank, from 0 to {}", ranks - 1);
            return Err(self.error(Some(node.id), problem));
        };
        let tag = node.whole("comm_tag").unwrap_or(0);
        let Ok(tag) = i32::try_from(tag) else {
            return Err(self.error(Some(node.id), "`comm_tag` is out of range"));
        };
        Ok(Message {
            peer: peer as u32,
            tag,
            comm: 0,
            bytes: self.size(node)?,
        })
    }

    fn collective(
        &self,
        node: &Node,
        groups: &BTreeMap<String, u32>,
        communicators: &[Vec<u32>],
    ) -> Result<Collective, ChakraError> {
        let wrong = |problem: &str| self.error(Some(node.id), problem);
        let name = node.text("pg_name").unwrap_or_default();
        let comm = groups.get(&name).copied().unwrap_or(0);
        let members = &communicators[comm as usize];
        let kind = node
            .whole("comm_type")
            .and_then(|kind| i32::try_from(kind).ok());
        let kind = kind.and_then(|kind| CollectiveCommType::try_from(kind).ok());
        let kind = match kind.ok_or_else(|| wrong("`comm_type` must be from 0 to 9"))? {
            CollectiveCommType::AllReduce => CollectiveKind::Allreduce,
            CollectiveCommType::Reduce => CollectiveKind::Reduce,
            CollectiveCommType::AllGather => CollectiveKind::Allgather,
            CollectiveCommType::Gather => CollectiveKind::Gather,
            CollectiveCommType::Scatter => CollectiveKind::Scatter,
            CollectiveCommType::Broadcast => CollectiveKind::Bcast,
            CollectiveCommType::AllToAll => CollectiveKind::Alltoall,
            CollectiveCommType::ReduceScatter | CollectiveCommType::ReduceScatterBlock => {
                CollectiveKind::ReduceScatter
            }
            CollectiveCommType::Barrier => CollectiveKind::Barrier,
        };
        let root = match (kind.has_root(), node.whole("root")) {
            (false, _) => None,
            (true, None) => members.first().copied(),
            (true, Some(root)) => {
                let root = u32::try_from(root)
                    .ok()
                    .filter(|root| members.contains(root));
                Some(root.ok_or_else(|| wrong("`root` must be a member of its process group"))?)
            }
        };
        let bytes = if kind == CollectiveKind::Barrier {
            Bytes(0)
        } else {
            self.size(node)?
        };
        Ok(Collective {
            kind,
            comm,
            bytes,
            root,
        })
    }
}

/// The calls of a rank as they are chosen.
#[derive(Default)]
struct Calls {
    events: Vec<Event>,
    /// In nanoseconds.
    now: u64,
    /// Communication that nobody has waited for: its request, by node.
    open: BTreeMap<u64, u32>,
    requests: u32,
}

impl Calls {
    fn push(&mut self, action: Action) {
        let at = Interval::instant(self.now);
        self.events.push(Event { at, action });
    }

    fn start(&mut self, node: u64, action: impl FnOnce(Option<u32>) -> Action) {
        let request = self.requests;
        self.requests += 1;
        self.open.insert(node, request);
        self.push(action(Some(request)));
    }

    fn wait_for(&mut self, nodes: impl Iterator<Item = u64>) {
        let requests: BTreeSet<u32> = nodes.filter_map(|node| self.open.remove(&node)).collect();
        if !requests.is_empty() {
            let requests = requests.into_iter().collect();
            self.push(Action::Wait { requests });
        }
    }

    fn end(mut self) -> Vec<Event> {
        let open: Vec<u64> = self.open.keys().copied().collect();
        self.wait_for(open.into_iter());
        self.push(Action::End);
        self.events
    }
}

#[cfg(test)]
mod tests;
