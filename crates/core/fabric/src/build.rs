//! Putting a map together node by node and link by link, and refusing what cannot work.

use std::collections::BTreeMap;

use raddle_text::{Finding, check_value};
use raddle_units::{BitRate, LinkId, NodeId, PortId, Span};

use crate::{
    error::{FabricError, Place},
    limits::LinkSettings,
    map::{Fabric, Link, NodeKind, Port, default_name},
};

/// Most nodes of one map.
pub const MAX_NODES: u64 = 2_000_000;
/// Most links of one map.
pub const MAX_LINKS: u64 = 10_000_000;

/// Most ports of one node: their numbers have 16 bits.
const MAX_PORTS: usize = u16::MAX as usize;
/// Level of a switch whose level follows from its distance to the nearest host.
const BY_DISTANCE: u8 = 0;

struct Cable {
    ends: [NodeId; 2],
    rate: BitRate,
    delay: Span,
    line: u32,
    /// Cables of one call of [`FabricBuilder::connect_parallel`] share this number.
    bundle: u32,
}

/// Ports and links by their ids; the first port of each node and the end.
struct Wiring {
    port_starts: Vec<u32>,
    ports: Vec<Port>,
    links: Vec<Link>,
}

/// Collects nodes and links; [`FabricBuilder::finish`] checks them and makes the [`Fabric`].
///
/// ```
/// use raddle_fabric::FabricBuilder;
/// use raddle_units::{BitRate, Span};
/// let mut builder = FabricBuilder::new("pair");
/// let (a, b) = (builder.host(), builder.host());
/// let switch = builder.switch(1);
/// for host in [a, b] {
///     builder.connect(host, switch, BitRate::from_gbps(100), Span::from_us(1));
/// }
/// let fabric = builder.finish().unwrap();
/// assert_eq!(fabric.ports_of(switch).len(), 2);
/// ```
pub struct FabricBuilder {
    name: String,
    source: String,
    line: u32,
    radix: Option<u32>,
    kinds: Vec<NodeKind>,
    levels: Vec<u8>,
    /// Line of each node; stays empty as long as there are no lines.
    node_lines: Vec<u32>,
    names: BTreeMap<NodeId, String>,
    cables: Vec<Cable>,
    bundles: u32,
}

impl FabricBuilder {
    /// An empty map. Errors name it until [`FabricBuilder::source`] gives a better name.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            source: name.clone(),
            name,
            line: 0,
            radix: None,
            kinds: Vec::new(),
            levels: Vec::new(),
            node_lines: Vec::new(),
            names: BTreeMap::new(),
            cables: Vec::new(),
            bundles: 0,
        }
    }

    /// Names the file that the map comes from, for error messages.
    pub fn source(&mut self, source: impl Into<String>) -> &mut Self {
        self.source = source.into();
        self
    }

    /// The line (from 1) of what is added from now on, for error messages.
    pub fn line(&mut self, line: u32) -> &mut Self {
        self.line = line;
        self
    }

    /// Ports that every switch has; more links than that are refused.
    pub fn radix(&mut self, radix: Option<u32>) -> &mut Self {
        self.radix = radix;
        self
    }

    /// Adds a host.
    pub fn host(&mut self) -> NodeId {
        self.add(NodeKind::Host, 0)
    }

    /// Adds a switch of a level: 1 next to the hosts, more further up. 0 stands for "the distance to the nearest host".
    pub fn switch(&mut self, level: u8) -> NodeId {
        self.add(NodeKind::Switch, level)
    }

    /// Gives a node its own name.
    pub fn set_name(&mut self, node: NodeId, name: impl Into<String>) -> &mut Self {
        self.names.insert(node, name.into());
        self
    }

    /// Joins two nodes with one cable. Ports are numbered in the order of these calls.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: BitRate, delay: Span) {
        self.connect_parallel(a, b, rate, delay, 1);
    }

    /// Joins two nodes with `count` equal cables side by side.
    pub fn connect_parallel(
        &mut self,
        a: NodeId,
        b: NodeId,
        rate: BitRate,
        delay: Span,
        count: u32,
    ) {
        let (line, bundle) = (self.line, self.bundles);
        self.bundles += 1;
        for _ in 0..count {
            self.cables.push(Cable {
                ends: [a, b],
                rate,
                delay,
                line,
                bundle,
            });
        }
    }

    /// Checks everything and makes the map.
    ///
    /// # Errors
    /// The first of: too many nodes or links, no host, unknown node, link to itself, host joined to a host, rate 0,
    /// duplicate link, duplicate name, more links than ports, host without link, disconnected.
    pub fn finish(self) -> Result<Fabric, FabricError> {
        self.check_size()?;
        self.check_cables()?;
        self.check_duplicate_links()?;
        let named = self.name_index()?;
        let Wiring {
            port_starts,
            ports,
            links,
        } = self.lay_out_ports()?;
        let of_kind = |kind| {
            let ids = (0..).map(NodeId).zip(&self.kinds);
            ids.filter(|&(_, &k)| k == kind)
                .map(|(node, _)| node)
                .collect::<Vec<_>>()
        };
        let mut fabric = Fabric {
            hosts: of_kind(NodeKind::Host),
            switches: of_kind(NodeKind::Switch),
            levels: Vec::new(),
            port_starts,
            ports,
            links,
            named,
            radix: self.radix,
            name: String::new(),
            kinds: Vec::new(),
            names: BTreeMap::new(),
        };
        self.check_reachable(&fabric)?;
        let mut levels = self.levels;
        fill_levels(&fabric, &mut levels);
        fabric.levels = levels;
        fabric.name = self.name;
        fabric.kinds = self.kinds;
        fabric.names = self.names;
        Ok(fabric)
    }

    fn add(&mut self, kind: NodeKind, level: u8) -> NodeId {
        let node = NodeId(u32::try_from(self.kinds.len()).unwrap_or(u32::MAX));
        if self.line != 0 {
            self.node_lines.resize(self.kinds.len(), 0);
            self.node_lines.push(self.line);
        }
        self.kinds.push(kind);
        self.levels.push(level);
        node
    }

    fn place(&self, line: u32) -> Place {
        Place {
            source: self.source.clone(),
            line: (line != 0).then_some(line),
        }
    }

    fn node_place(&self, node: NodeId) -> Place {
        self.place(self.node_lines.get(node.index()).copied().unwrap_or(0))
    }

    fn node_name(&self, node: NodeId) -> String {
        match self.names.get(&node) {
            Some(name) => name.clone(),
            None => default_name(self.kinds[node.index()], node),
        }
    }

    fn check_size(&self) -> Result<(), FabricError> {
        let at = || self.place(0);
        check_limit(at, "nodes", self.kinds.len() as u128, MAX_NODES, "the map")?;
        check_limit(at, "links", self.cables.len() as u128, MAX_LINKS, "the map")?;
        if !self.kinds.contains(&NodeKind::Host) {
            return Err(FabricError::NoHosts { at: at() });
        }
        Ok(())
    }

    fn check_cables(&self) -> Result<(), FabricError> {
        // A map has few kinds of links, and may have millions of links.
        let mut judged: BTreeMap<(BitRate, Span), Result<(), Finding>> = BTreeMap::new();
        for cable in &self.cables {
            let [a, b] = cable.ends;
            let at = || self.place(cable.line);
            for node in [a, b] {
                if node.index() >= self.kinds.len() {
                    return Err(FabricError::UnknownNode {
                        at: at(),
                        name: node.0.to_string(),
                        hint: format!("; nodes are numbered 0 to {}", self.kinds.len() - 1),
                    });
                }
            }
            if a == b {
                return Err(FabricError::SelfLink {
                    at: at(),
                    name: self.node_name(a),
                });
            }
            if [a, b]
                .iter()
                .all(|node| self.kinds[node.index()] == NodeKind::Host)
            {
                let (a, b) = (self.node_name(a), self.node_name(b));
                return Err(FabricError::HostToHost { at: at(), a, b });
            }
            let (rate, delay) = (cable.rate, cable.delay);
            let kind = judged
                .entry((rate, delay))
                .or_insert_with(|| check_value(&LinkSettings { rate, delay }));
            if let Err(finding) = kind {
                let (a, b) = (self.node_name(a), self.node_name(b));
                let problem = finding.told();
                return Err(FabricError::BadLink {
                    at: at(),
                    a,
                    b,
                    problem,
                });
            }
        }
        Ok(())
    }

    fn check_duplicate_links(&self) -> Result<(), FabricError> {
        let mut pairs: Vec<(NodeId, NodeId, u32, u32)> = (0..)
            .zip(&self.cables)
            .map(|(index, cable)| {
                let [a, b] = cable.ends;
                (a.min(b), a.max(b), cable.bundle, index)
            })
            .collect();
        pairs.sort_unstable();
        let twice = pairs
            .windows(2)
            .filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1))
            .filter(|pair| pair[0].2 != pair[1].2)
            .min_by_key(|pair| pair[1].3);
        let Some(pair) = twice else { return Ok(()) };
        let (first, second) = (
            &self.cables[pair[0].3 as usize],
            &self.cables[pair[1].3 as usize],
        );
        Err(FabricError::DuplicateLink {
            at: self.place(second.line),
            a: self.node_name(second.ends[0]),
            b: self.node_name(second.ends[1]),
            first: match first.line {
                0 => String::new(),
                line => format!(" in line {line}"),
            },
        })
    }

    fn name_index(&self) -> Result<BTreeMap<String, NodeId>, FabricError> {
        let mut named = BTreeMap::new();
        for (&node, name) in &self.names {
            let taken = named.insert(name.clone(), node).is_some();
            // `h7` as an own name must not shadow the default name of host 7.
            let shadows = (name.strip_prefix('h').or_else(|| name.strip_prefix('s')))
                .unwrap_or(name)
                .parse()
                .is_ok_and(|id| {
                    let other = NodeId(id);
                    other != node
                        && other.index() < self.kinds.len()
                        && !self.names.contains_key(&other)
                        && default_name(self.kinds[other.index()], other) == *name
                });
            if taken || shadows {
                let (at, name) = (self.node_place(node), name.clone());
                return Err(FabricError::DuplicateNode { at, name });
            }
        }
        Ok(named)
    }

    fn lay_out_ports(&self) -> Result<Wiring, FabricError> {
        let nodes = self.kinds.len();
        let mut starts = vec![0u32; nodes + 1];
        for cable in &self.cables {
            for node in cable.ends {
                starts[node.index() + 1] += 1;
            }
        }
        for (index, &count) in starts[1..].iter().enumerate() {
            let host = self.kinds[index] == NodeKind::Host;
            let radix = self
                .radix
                .filter(|_| !host)
                .map_or(MAX_PORTS, |radix| MAX_PORTS.min(radix as usize));
            if count as usize > radix {
                return Err(self.over_radix(NodeId(index as u32), count as usize, radix));
            }
        }
        for index in 0..nodes {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let none = Port {
            node: NodeId(0),
            number: 0,
            peer: PortId(0),
            link: LinkId(0),
        };
        let mut ports = vec![none; self.cables.len() * 2];
        let mut links = Vec::with_capacity(self.cables.len());
        for (link, cable) in (0..).map(LinkId).zip(&self.cables) {
            let ids = cable.ends.map(|node| {
                let id = PortId(next[node.index()]);
                next[node.index()] += 1;
                id
            });
            for side in 0..2 {
                let node = cable.ends[side];
                let number = (ids[side].0 - starts[node.index()] + 1) as u16;
                ports[ids[side].index()] = Port {
                    node,
                    number,
                    peer: ids[1 - side],
                    link,
                };
            }
            links.push(Link {
                ports: ids,
                rate: cable.rate,
                delay: cable.delay,
            });
        }
        Ok(Wiring {
            port_starts: starts,
            ports,
            links,
        })
    }

    fn over_radix(&self, node: NodeId, ports: usize, radix: usize) -> FabricError {
        let first_too_many = self
            .cables
            .iter()
            .filter(|cable| cable.ends.contains(&node))
            .nth(radix);
        FabricError::PortOverRadix {
            at: first_too_many.map_or_else(|| self.node_place(node), |c| self.place(c.line)),
            name: self.node_name(node),
            ports,
            radix,
        }
    }

    fn check_reachable(&self, fabric: &Fabric) -> Result<(), FabricError> {
        for &host in &fabric.hosts {
            if fabric.ports_of(host).is_empty() {
                let (at, name) = (self.node_place(host), self.node_name(host));
                return Err(FabricError::HostWithoutLink {
                    at,
                    name,
                    node: host,
                });
            }
        }
        let distance = distances(fabric, self.kinds.len(), &[NodeId(0)]);
        let Some(lost) = distance.iter().position(|&hops| hops == u32::MAX) else {
            return Ok(());
        };
        let lost = NodeId(lost as u32);
        Err(FabricError::Disconnected {
            at: self.node_place(lost),
            name: self.node_name(lost),
            from: self.node_name(NodeId(0)),
            reached: distance.iter().filter(|&&hops| hops != u32::MAX).count(),
            nodes: self.kinds.len(),
        })
    }
}

/// Refuses a number of nodes or links above the limit. `count` saturates, so that products cannot wrap round.
pub(crate) fn check_limit(
    at: impl Fn() -> Place,
    what: &'static str,
    count: u128,
    limit: u64,
    parameters: &'static str,
) -> Result<(), FabricError> {
    if count <= u128::from(limit) {
        return Ok(());
    }
    let count = if count == u128::MAX {
        "more than 10^38".to_owned()
    } else {
        count.to_string()
    };
    Err(FabricError::TooLarge {
        at: at(),
        what,
        count,
        limit,
        parameters,
    })
}

/// Hops from the nearest of `from` to every node; `u32::MAX` where there is no way. Hosts forward here.
fn distances(fabric: &Fabric, nodes: usize, from: &[NodeId]) -> Vec<u32> {
    let mut distance = vec![u32::MAX; nodes];
    for node in from {
        distance[node.index()] = 0;
    }
    let mut queue = from.to_vec();
    let mut head = 0;
    while let Some(&node) = queue.get(head) {
        head += 1;
        for port in fabric.ports_of(node) {
            let peer = fabric.port(port.peer).node;
            if distance[peer.index()] == u32::MAX {
                distance[peer.index()] = distance[node.index()] + 1;
                queue.push(peer);
            }
        }
    }
    distance
}

fn fill_levels(fabric: &Fabric, levels: &mut [u8]) {
    let missing = |levels: &[u8]| {
        fabric
            .switches
            .iter()
            .any(|node| levels[node.index()] == BY_DISTANCE)
    };
    if !missing(levels) {
        return;
    }
    let distance = distances(fabric, levels.len(), &fabric.hosts);
    for &node in &fabric.switches {
        if levels[node.index()] == BY_DISTANCE {
            levels[node.index()] = u8::try_from(distance[node.index()]).unwrap_or(u8::MAX);
        }
    }
}
