//! Flows written out in the experiment itself: for small experiments that need no flow file.

use raddle_text::one_line;
use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message;
use crate::list::ClassTable;
use crate::message::PLAIN_CLASS;
use crate::{FlowList, TrafficError, limits};

/// Most flows of one table: more belong into a file.
const MOST_FLOWS: u64 = 10_000_000;

/// A host, or several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Nodes {
    /// One host.
    One(NodeId),
    /// Several, in this order.
    Many(#[schemars(length(min = 1))] Vec<NodeId>),
}

impl Nodes {
    fn as_slice(&self) -> &[NodeId] {
        match self {
            Self::One(node) => std::slice::from_ref(node),
            Self::Many(nodes) => nodes,
        }
    }
}

/// Flows from every source to every destination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Source host, or a list.
    pub src: Nodes,
    /// Destination host, or a list.
    pub dst: Nodes,
    /// Size of each flow.
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Start of each flow. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub start: Span,
    /// Flows per pair of hosts, all at once: every pair once, then every pair again. Default 1.
    #[serde(default = "one")]
    #[schemars(range(max = 10_000_000))]
    pub count: u64,
    /// Class of the flows; `tested-...` classes are judged, others are background. Default `flow`.
    #[serde(default = "plain")]
    #[schemars(transform = one_line(100))]
    pub class: String,
}

fn one() -> u64 {
    1
}

fn plain() -> String {
    PLAIN_CLASS.to_owned()
}

/// Flows that are listed in the table itself, as `[[traffic.flow]]` entries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The flows, in groups; equal starts keep this order.
    pub flow: Vec<FlowGroup>,
}

impl Flows {
    /// The flows as a list.
    ///
    /// # Errors
    /// A field out of range, an unknown host, a flow from a host to itself.
    pub fn build(&self, hosts: &[NodeId]) -> Result<FlowList, TrafficError> {
        limits::check(self)?;
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        let mut classes = ClassTable::default();
        let mut messages = Vec::new();
        for group in &self.flow {
            let (sources, targets) = (group.src.as_slice(), group.dst.as_slice());
            for (field, nodes) in [("flow.src", sources), ("flow.dst", targets)] {
                if let Some(node) = nodes.iter().find(|node| hosts.binary_search(node).is_err()) {
                    let problem = format!("{node} is not a host of this fabric");
                    return Err(TrafficError::spec(field, problem));
                }
            }
            let flows = (sources.len() as u64 * targets.len() as u64).saturating_mul(group.count);
            if flows.saturating_add(messages.len() as u64) > MOST_FLOWS {
                let problem = "more than ten million flows: put them into a flow file";
                return Err(TrafficError::spec("flow.count", problem));
            }
            let Some(class) = classes.index(&group.class) else {
                return Err(TrafficError::spec("flow.class", "more than 255 classes"));
            };
            let start = Time(group.start.0);
            if let Some(host) = sources.iter().find(|host| targets.contains(host)) {
                let problem = format!("a flow from host {} to itself", host.0);
                return Err(TrafficError::spec("flow.dst", problem));
            }
            for _ in 0..group.count {
                for &src in sources {
                    for &dst in targets {
                        messages.push(message(start, src, dst, group.size, class, 0));
                    }
                }
            }
        }
        Ok(FlowList::new(messages, classes.names().to_vec()))
    }

    /// Only the groups of tested classes, or nothing if there are none or no others.
    pub fn isolated(&self) -> Option<Self> {
        let tested: Vec<FlowGroup> = self
            .flow
            .iter()
            .filter(|group| crate::is_tested_class(&group.class))
            .cloned()
            .collect();
        (!tested.is_empty() && tested.len() < self.flow.len()).then_some(Self { flow: tested })
    }
}
