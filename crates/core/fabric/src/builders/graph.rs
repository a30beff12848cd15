//! Any graph, node by node and link by link: the explicit form of a TOML map.

use std::collections::BTreeMap;

use raddle_text::{
    one_line,
    words::{closest, shorten},
};
use raddle_units::{BitRate, NodeId, Span, many};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{bad, check_size, default_delay, default_rate, one};
use crate::{
    build::FabricBuilder,
    error::{FabricError, Place},
    limits,
    map::{Fabric, Link, NodeKind, default_name},
};

const NAME: &str = "graph";
/// Characters of the longest name of a node.
pub(crate) const LONGEST_NODE_NAME: u32 = 200;

/// Any map: hosts, switches and links, each listed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Name of the map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = one_line(100))]
    pub name: Option<String>,
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
    /// Hosts, one entry for each or for each row of equal ones.
    #[serde(default)]
    pub host: Vec<HostEntry>,
    /// Switches, one entry for each or for each row of equal ones.
    #[serde(default)]
    pub switch: Vec<SwitchEntry>,
    /// Links; a node's ports are numbered from 1 in the order of its links.
    #[serde(default)]
    pub link: Vec<LinkEntry>,
}

/// One host or a row of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// Name of the host; with `count`, the names are this and a number from 0 (`node0`, `node1`, ...). Without it
    /// host 7 is called `h7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = one_line(LONGEST_NODE_NAME))]
    pub name: Option<String>,
    /// Number of the first host of the entry. Entries without it take the lowest free numbers, hosts before switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// How many hosts the entry stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
}

/// One switch or a row of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchEntry {
    /// Name of the switch; with `count`, the names are this and a number from 0. Without it switch 9 is called `s9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = one_line(LONGEST_NODE_NAME))]
    pub name: Option<String>,
    /// Number of the first switch of the entry. Entries without it take the lowest free numbers, hosts before
    /// switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// How many switches the entry stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
    /// Level: 1 next to the hosts, more further up. Without it: the distance to the nearest host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub level: Option<u8>,
}

/// One cable, or several equal ones side by side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEntry {
    /// One end: the name or number of a node.
    #[serde(deserialize_with = "node")]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub a: String,
    /// The other end: the name or number of a node.
    #[serde(deserialize_with = "node")]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub b: String,
    /// Rate in each direction.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub rate: BitRate,
    /// Propagation delay in each direction.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Parallel cables between the two nodes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub count: u32,
}

/// The name or the number of a node.
fn node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected the name or the number of a node, like \"h0\" or 0"
    )]
    enum End {
        Name(String),
        Number(u32),
    }
    Ok(match End::deserialize(deserializer)? {
        End::Name(name) => name,
        End::Number(number) => number.to_string(),
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Where the entries of a graph stand in their file; all empty for a graph that comes from no file.
#[derive(Default)]
pub(crate) struct Origin<'a> {
    pub(crate) source: Option<&'a str>,
    pub(crate) host_lines: Vec<u32>,
    pub(crate) switch_lines: Vec<u32>,
    pub(crate) link_lines: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    kind: NodeKind,
    name: Option<&'a str>,
    id: Option<u32>,
    count: Option<u32>,
    level: u8,
    line: u32,
}

#[derive(Clone)]
struct Node {
    kind: NodeKind,
    level: u8,
    name: Option<String>,
    line: u32,
}

impl Graph {
    /// Makes the map.
    ///
    /// # Errors
    /// Numbers that leave gaps or overlap, unknown nodes, too many nodes or links, and all that
    /// [`FabricBuilder::finish`] refuses.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        self.build_from(&Origin::default())
    }

    pub(crate) fn build_from(&self, origin: &Origin<'_>) -> Result<Fabric, FabricError> {
        let name = self.name.as_deref().unwrap_or(NAME);
        let source = origin.source.unwrap_or(name);
        let place = |line: u32| Place {
            source: source.to_owned(),
            line: (line != 0).then_some(line),
        };
        let entries = self.entries(origin);
        let nodes = entries
            .iter()
            .map(|entry| u128::from(entry.count.unwrap_or(1)))
            .sum();
        let links = self.link.iter().map(|link| u128::from(link.count)).sum();
        check_size(source, nodes, links, "`count`")?;

        let mut builder = FabricBuilder::new(name);
        builder.source(source).radix(self.radix);
        let mut by_name = BTreeMap::new();
        for (id, node) in (0..)
            .map(NodeId)
            .zip(number(&entries, nodes as usize, &place)?)
        {
            builder.line(node.line);
            match node.kind {
                NodeKind::Host => builder.host(),
                NodeKind::Switch => builder.switch(node.level),
            };
            let word = node
                .name
                .clone()
                .unwrap_or_else(|| default_name(node.kind, id));
            if let Some(name) = node.name {
                builder.set_name(id, name);
            }
            if by_name.insert(word.clone(), id).is_some() {
                return Err(FabricError::DuplicateNode {
                    at: place(node.line),
                    name: word,
                });
            }
        }
        for (index, link) in self.link.iter().enumerate() {
            let line = origin.link_lines.get(index).copied().unwrap_or(0);
            if link.count == 0 {
                return Err(FabricError::BadParameter {
                    at: place(line),
                    key: "count".to_owned(),
                    problem: "0 is out of range: a link stands for at least 1 cable; remove it or count the cables"
                        .to_owned(),
                });
            }
            let end = |word: &str| find(&by_name, word, nodes as usize, || place(line));
            let (a, b) = (end(&link.a)?, end(&link.b)?);
            builder
                .line(line)
                .connect_parallel(a, b, link.rate, link.delay, link.count);
        }
        builder.finish()
    }

    fn entries(&self, origin: &Origin<'_>) -> Vec<Entry<'_>> {
        let line = |lines: &[u32], index: usize| lines.get(index).copied().unwrap_or(0);
        let hosts = self.host.iter().enumerate().map(|(index, entry)| Entry {
            kind: NodeKind::Host,
            name: entry.name.as_deref(),
            id: entry.id,
            count: entry.count,
            level: 0,
            line: line(&origin.host_lines, index),
        });
        let switches = self.switch.iter().enumerate().map(|(index, entry)| Entry {
            kind: NodeKind::Switch,
            name: entry.name.as_deref(),
            id: entry.id,
            count: entry.count,
            level: entry.level.unwrap_or(0),
            line: line(&origin.switch_lines, index),
        });
        hosts.chain(switches).collect()
    }

    /// The explicit form of any map: writing it and building it again gives the same map.
    pub fn of(fabric: &Fabric) -> Self {
        Self {
            link: LinkEntry::all_of(fabric).collect(),
            ..Self::nodes_of(fabric)
        }
    }

    /// [`Self::of`] without links.
    pub(crate) fn nodes_of(fabric: &Fabric) -> Self {
        let mut graph = Self {
            name: Some(fabric.name().to_owned()),
            radix: fabric.radix(),
            ..Self::default()
        };
        let nodes: Vec<NodeId> = (0..fabric.node_count() as u32).map(NodeId).collect();
        // Rows of nodes that differ in nothing but their number become one entry.
        let alike = |a: &NodeId, b: &NodeId| {
            let plain = |node| !fabric.names.contains_key(node);
            plain(a)
                && plain(b)
                && fabric.kind(*a) == fabric.kind(*b)
                && fabric.level(*a) == fabric.level(*b)
        };
        for row in nodes.chunk_by(alike) {
            let name = fabric.names.get(&row[0]).cloned();
            let id = Some(row[0].0);
            let count = (row.len() > 1).then_some(row.len() as u32);
            match fabric.kind(row[0]) {
                NodeKind::Host => graph.host.push(HostEntry { name, id, count }),
                NodeKind::Switch => {
                    let level = Some(fabric.level(row[0]));
                    graph.switch.push(SwitchEntry {
                        name,
                        id,
                        count,
                        level,
                    });
                }
            }
        }
        graph
    }
}

impl LinkEntry {
    /// The links of a map in their order; equal ones side by side are one entry.
    pub(crate) fn all_of(fabric: &Fabric) -> impl Iterator<Item = Self> {
        let ends = |link: &Link| link.ports.map(|port| fabric.port(port).node);
        let equal =
            move |a: &Link, b: &Link| ends(a) == ends(b) && (a.rate, a.delay) == (b.rate, b.delay);
        fabric.links().chunk_by(equal).map(move |cables| {
            let [a, b] = ends(&cables[0]).map(|node| fabric.node_name(node).into_owned());
            Self {
                a,
                b,
                rate: cables[0].rate,
                delay: cables[0].delay,
                count: cables.len() as u32,
            }
        })
    }
}

/// Gives every node its number: entries with an `id` first, the others into what is left.
fn number(
    entries: &[Entry<'_>],
    total: usize,
    place: &impl Fn(u32) -> Place,
) -> Result<Vec<Node>, FabricError> {
    let mut nodes: Vec<Option<Node>> = vec![None; total];
    let node = |entry: &Entry<'_>, index: u32| Node {
        kind: entry.kind,
        level: entry.level,
        name: match (entry.name, entry.count) {
            (Some(name), Some(_)) => Some(format!("{name}{index}")),
            (Some(name), None) => Some(name.to_owned()),
            (None, _) => None,
        },
        line: entry.line,
    };
    for entry in entries {
        if entry.count == Some(0) {
            let mut error = bad(
                "",
                "count",
                "0 is out of range: an entry stands for at least 1 node; remove it",
            );
            if let FabricError::BadParameter { at, .. } = &mut error {
                *at = place(entry.line);
            }
            return Err(error);
        }
        if let (Some(name), Some(count)) = (entry.name, entry.count)
            && format!("{name}{}", count - 1).chars().count() > LONGEST_NODE_NAME as usize
        {
            return Err(FabricError::BadParameter {
                at: place(entry.line),
                key: "name".to_owned(),
                problem: format!(
                    "with its number it has more than {LONGEST_NODE_NAME} characters: shorten it"
                ),
            });
        }
        let Some(first) = entry.id else { continue };
        for index in 0..entry.count.unwrap_or(1) {
            let id = first as usize + index as usize;
            let Some(slot) = nodes.get_mut(id) else {
                return Err(FabricError::BadParameter {
                    at: place(entry.line),
                    key: "id".to_owned(),
                    problem: format!(
                        "{id} is too large: {} are numbered 0 to {} without gaps",
                        many(total, "node"),
                        total - 1
                    ),
                });
            };
            if slot.is_some() {
                let (at, name) = (place(entry.line), id.to_string());
                return Err(FabricError::DuplicateNode { at, name });
            }
            *slot = Some(node(entry, index));
        }
    }
    let mut rest = entries
        .iter()
        .filter(|entry| entry.id.is_none())
        .flat_map(|entry| (0..entry.count.unwrap_or(1)).map(move |index| node(entry, index)));
    Ok(nodes
        .into_iter()
        .filter_map(|slot| slot.or_else(|| rest.next()))
        .collect())
}

fn find(
    by_name: &BTreeMap<String, NodeId>,
    word: &str,
    nodes: usize,
    at: impl Fn() -> Place,
) -> Result<NodeId, FabricError> {
    if let Some(&node) = by_name.get(word) {
        return Ok(node);
    }
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if digits && let Some(id) = word.parse().ok().filter(|&id: &u32| (id as usize) < nodes) {
        return Ok(NodeId(id));
    }
    let hint = match closest(word, by_name.keys().map(String::as_str)) {
        Some(name) => format!(": did you mean `{name}`?"),
        None => "; add it as a [[host]] or a [[switch]]".to_owned(),
    };
    Err(FabricError::UnknownNode {
        at: at(),
        name: shorten(word),
        hint,
    })
}
