//! The map of a subnet, kept over sweeps.
//!
//! The first sweep that finds something new makes the map; later sweeps that find less are the same map with links
//! down. So a switch keeps its place in the fat tree while its neighbours fail and return, and only groups on failed
//! links move. A node or link that the map does not have makes a new map of the old and the new; a port that leads
//! elsewhere than before makes a new map of what is there.

use std::collections::BTreeMap;

use raddle_fabric::{CnTnMap, Fabric, FabricBuilder};
use raddle_unicast::LinkState;
use raddle_units::{BitRate, LinkId, NodeId, PortId, Span};

/// One end of a cable: GUID of the node, number of its port.
pub(crate) type End = (u64, u8);

/// A sweep's findings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Findings {
    /// GUID and whether it is a switch.
    pub(crate) nodes: BTreeMap<u64, bool>,
    /// Cables by their lower end.
    pub(crate) cables: BTreeMap<End, End>,
}

impl Findings {
    /// What both have found; `None` if they contradict each other.
    fn union(&self, other: &Self) -> Option<Self> {
        let mut all = self.clone();
        for (&guid, &switch) in &other.nodes {
            if *all.nodes.entry(guid).or_insert(switch) != switch {
                return None;
            }
        }
        all.cables.extend(&other.cables);
        let mut used: BTreeMap<End, End> = BTreeMap::new();
        for cable in self.cables.iter().chain(&other.cables) {
            for (&end, &far) in [cable, (cable.1, cable.0)] {
                if *used.entry(end).or_insert(far) != far {
                    return None;
                }
            }
        }
        Some(all)
    }
}

/// The map and how it belongs to the subnet.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    findings: Findings,
    pub(crate) fabric: Fabric,
    pub(crate) places: CnTnMap,
    node_of: BTreeMap<u64, NodeId>,
    guids: Vec<u64>,
    /// Number that the switch or adapter itself gives each port.
    numbers: Vec<u8>,
    /// The link at each lower end.
    link_of: BTreeMap<End, LinkId>,
}

impl Map {
    /// The map after this sweep, and whether it is another than `before`.
    pub(crate) fn after(before: Option<Self>, found: &Findings) -> Result<(Self, bool), String> {
        let Some(before) = before else {
            return Ok((Self::new(found.clone())?, true));
        };
        match before.findings.union(found) {
            Some(all) if all == before.findings => Ok((before, false)),
            Some(all) => match Self::new(all) {
                Ok(map) => Ok((map, true)),
                Err(_) => Ok((Self::new(found.clone())?, true)),
            },
            None => Ok((Self::new(found.clone())?, true)),
        }
    }

    fn new(findings: Findings) -> Result<Self, String> {
        let mut builder = FabricBuilder::new("subnet");
        let mut node_of = BTreeMap::new();
        let mut guids = Vec::with_capacity(findings.nodes.len());
        for wanted in [false, true] {
            for (&guid, _) in findings
                .nodes
                .iter()
                .filter(|&(_, &switch)| switch == wanted)
            {
                let node = if wanted {
                    builder.switch(0)
                } else {
                    builder.host()
                };
                node_of.insert(guid, node);
                guids.push(guid);
            }
        }
        // Rates and delays do not matter to routes.
        let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
        let mut pairs: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
        let mut cables = Vec::with_capacity(findings.cables.len());
        for (&a, &b) in &findings.cables {
            let (Some(&from), Some(&to)) = (node_of.get(&a.0), node_of.get(&b.0)) else {
                continue;
            };
            *pairs.entry((from.min(to), from.max(to))).or_default() += 1;
            cables.push((a, b, from, to));
        }
        if let Some((&(a, b), _)) = pairs.iter().find(|&(_, &count)| count > 1) {
            return Err(format!(
                "{:#018x} and {:#018x} are joined by parallel cables, which this engine does not route",
                guids[a.index()],
                guids[b.index()]
            ));
        }
        for &(_, _, from, to) in &cables {
            builder.connect(from, to, rate, delay);
        }
        let fabric = builder.finish().map_err(|error| error.to_string())?;
        let mut numbers = vec![0; fabric.port_count()];
        let mut link_of = BTreeMap::new();
        for (link, (id, &(a, b, ..))) in fabric.links().iter().zip((0..).map(LinkId).zip(&cables)) {
            numbers[link.ports[0].index()] = a.1;
            numbers[link.ports[1].index()] = b.1;
            link_of.insert(a, id);
        }
        let places = CnTnMap::recognise(&fabric).map_err(|reason| {
            let mut text = reason.to_string();
            if let Some(node) = fabric.find_node(&reason.node) {
                text = format!("{text} ({:#018x})", guids[node.index()]);
            }
            text
        })?;
        Ok(Self {
            findings,
            fabric,
            places,
            node_of,
            guids,
            numbers,
            link_of,
        })
    }

    /// Which links a sweep has found.
    pub(crate) fn links_up(&self, found: &Findings) -> LinkState {
        let mut links = LinkState::all_up(&self.fabric);
        for (end, &link) in &self.link_of {
            if !found.cables.contains_key(end) {
                links.set(link, false);
            }
        }
        links
    }

    pub(crate) fn node(&self, guid: u64) -> Option<NodeId> {
        self.node_of.get(&guid).copied()
    }

    pub(crate) fn guid(&self, node: NodeId) -> u64 {
        self.guids[node.index()]
    }

    /// The number that the node itself gives the port.
    pub(crate) fn number(&self, port: PortId) -> u8 {
        self.numbers[port.index()]
    }
}
