//! Linear forwarding tables for fat trees: up*/down*, so that no cycle of buffers can form.
//!
//! To an adapter a packet goes up until a switch is above its destination, then down. Of several equally short ways up
//! the destination decides (its LID modulo their number), so that the ways to different hosts spread and a host's
//! packets stay in order. Switches are destinations too (their port 0); where up*/down* has no way to one, which only
//! happens between the tops of the tree, shortest paths lead there: such packets are management only.

use raddle_fabric::{NodeKind, Role};
use raddle_unicast::LinkState;
use raddle_units::NodeId;

use crate::subnet::Map;

/// OpenSM's `OSM_NO_PATH`.
const NO_PATH: u8 = 0xff;
const FAR: u16 = u16::MAX;

/// Switches, their neighbours and levels, in flat vectors.
pub(crate) struct Unicast {
    /// Number of each node among the switches.
    ordinal: Vec<u32>,
    switches: Vec<NodeId>,
    levels: Vec<u8>,
    /// Switches by descending level.
    from_top: Vec<u32>,
    starts: Vec<u32>,
    /// (neighbour, port number here)
    neighbours: Vec<(u32, u8)>,
    /// Tables by switch, one byte for each LID.
    tables: Vec<Vec<u8>>,
}

/// A destination: LIDs behind a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Destination {
    /// The switch itself, or the adapter.
    pub(crate) node: NodeId,
    /// Its port, 0 for a switch.
    pub(crate) port: u8,
    /// Its first LID.
    pub(crate) lid: u16,
    /// It has 2^lmc LIDs.
    pub(crate) lmc: u8,
}

impl Unicast {
    pub(crate) fn new(map: &Map, links: &LinkState) -> Self {
        let fabric = &map.fabric;
        let switches = fabric.switches().to_vec();
        let mut ordinal = vec![u32::MAX; fabric.node_count()];
        for (index, switch) in (0..).zip(&switches) {
            ordinal[switch.index()] = index;
        }
        let levels: Vec<u8> = switches
            .iter()
            .map(|&switch| match map.places.role(switch) {
                Role::Host { .. } => 0,
                Role::L0 { .. } => 1,
                Role::L1 { .. } => 2,
                Role::L2 { .. } => 3,
                Role::L3 { .. } => 4,
            })
            .collect();
        let mut starts = vec![0];
        let mut neighbours = Vec::new();
        for &switch in &switches {
            let from = neighbours.len();
            for port in fabric.ports_of(switch) {
                let peer = fabric.port(port.peer).node;
                if fabric.kind(peer) == NodeKind::Switch && links.is_up(port.link) {
                    let here = fabric.port(port.peer).peer;
                    neighbours.push((ordinal[peer.index()], map.number(here)));
                }
            }
            neighbours[from..].sort_unstable();
            starts.push(neighbours.len() as u32);
        }
        let mut from_top: Vec<u32> = (0..switches.len() as u32).collect();
        from_top.sort_by_key(|&switch| std::cmp::Reverse(levels[switch as usize]));
        Self {
            ordinal,
            tables: vec![Vec::new(); switches.len()],
            switches,
            levels,
            from_top,
            starts,
            neighbours,
        }
    }

    /// Computes the tables. Time: destinations' switches x links between switches.
    pub(crate) fn run(&mut self, map: &Map, links: &LinkState, destinations: &[Destination]) {
        let fabric = &map.fabric;
        let top = destinations
            .iter()
            .map(|to| usize::from(to.lid) + (1usize << to.lmc.min(7)))
            .max()
            .unwrap_or(0)
            .min(0xc000);
        for table in &mut self.tables {
            table.clear();
            table.resize(top, NO_PATH);
        }
        // The last switch on the way to each destination, and its port there.
        let mut last: Vec<(u32, u8, Destination)> = Vec::with_capacity(destinations.len());
        for &to in destinations {
            if fabric.kind(to.node) == NodeKind::Switch {
                last.push((self.ordinal[to.node.index()], 0, to));
                continue;
            }
            let attached = fabric.ports_of(to.node).iter().find(|port| {
                map.number(fabric.port(port.peer).peer) == to.port && links.is_up(port.link)
            });
            if let Some(port) = attached {
                let switch = fabric.port(port.peer).node;
                last.push((self.ordinal[switch.index()], map.number(port.peer), to));
            }
        }
        last.sort_unstable();
        let mut search = Search::new(self.switches.len());
        for group in last.chunk_by(|a, b| a.0 == b.0) {
            self.route_to(group, &mut search);
        }
    }

    fn route_to(&mut self, group: &[(u32, u8, Destination)], search: &mut Search) {
        let target = group[0].0;
        self.search(target, search);
        for switch in 0..self.switches.len() as u32 {
            let ways: &[u8] = if switch == target {
                &[]
            } else {
                search.ways(self, switch)
            };
            let table = &mut self.tables[switch as usize];
            for (place, &(_, port, to)) in group.iter().enumerate() {
                for offset in 0..1usize << to.lmc.min(7) {
                    let lid = usize::from(to.lid) + offset;
                    if let Some(entry) = table.get_mut(lid) {
                        *entry = match ways.len() {
                            _ if switch == target => port,
                            0 => NO_PATH,
                            // hosts of a switch have neighbouring places; so have switches of a level
                            count => {
                                let turn = if to.port == 0 { target as usize } else { place };
                                ways[(turn + offset) % count]
                            }
                        };
                    }
                }
            }
        }
    }

    /// Distances to a switch: `down` for ways that only go down, `up_down`, and `any`, for where there is no other.
    fn search(&self, target: u32, search: &mut Search) {
        search.reset();
        search.down[target as usize] = 0;
        search.queue.push(target);
        let mut head = 0;
        while let Some(&switch) = search.queue.get(head) {
            head += 1;
            for &(peer, _) in self.of(switch) {
                if self.levels[peer as usize] > self.levels[switch as usize]
                    && search.down[peer as usize] == FAR
                {
                    search.down[peer as usize] = search.down[switch as usize] + 1;
                    search.queue.push(peer);
                }
            }
        }
        let mut missing = false;
        for &switch in &self.from_top {
            let place = switch as usize;
            search.up_down[place] = search.down[place];
            if search.down[place] == FAR {
                for &(peer, _) in self.of(switch) {
                    if self.levels[peer as usize] > self.levels[place] {
                        let over = search.up_down[peer as usize].saturating_add(1);
                        search.up_down[place] = search.up_down[place].min(over);
                    }
                }
                missing |= search.up_down[place] == FAR;
            }
        }
        if !missing {
            return;
        }
        search.any[target as usize] = 0;
        search.queue.clear();
        search.queue.push(target);
        let mut head = 0;
        while let Some(&switch) = search.queue.get(head) {
            head += 1;
            for &(peer, _) in self.of(switch) {
                if search.any[peer as usize] == FAR {
                    search.any[peer as usize] = search.any[switch as usize] + 1;
                    search.queue.push(peer);
                }
            }
        }
    }

    fn of(&self, switch: u32) -> &[(u32, u8)] {
        let (from, to) = (
            self.starts[switch as usize],
            self.starts[switch as usize + 1],
        );
        &self.neighbours[from as usize..to as usize]
    }

    /// The table of a switch: a port for each LID.
    pub(crate) fn table(&self, switch: NodeId) -> &[u8] {
        self.ordinal
            .get(switch.index())
            .and_then(|&ordinal| self.tables.get(ordinal as usize))
            .map_or(&[], |table| table)
    }

    /// Entries without a way, of switches that are there.
    pub(crate) fn without_way(&self, destinations: &[Destination]) -> usize {
        self.tables
            .iter()
            .enumerate()
            .filter(|&(switch, _)| !self.of(switch as u32).is_empty())
            .map(|(_, table)| {
                destinations
                    .iter()
                    .filter(|to| table.get(usize::from(to.lid)) == Some(&NO_PATH))
                    .count()
            })
            .sum()
    }
}

struct Search {
    down: Vec<u16>,
    up_down: Vec<u16>,
    any: Vec<u16>,
    queue: Vec<u32>,
    found: Vec<u8>,
}

impl Search {
    fn new(switches: usize) -> Self {
        Self {
            down: vec![FAR; switches],
            up_down: vec![FAR; switches],
            any: vec![FAR; switches],
            queue: Vec::new(),
            found: Vec::new(),
        }
    }

    fn reset(&mut self) {
        self.down.fill(FAR);
        self.up_down.fill(FAR);
        self.any.fill(FAR);
        self.queue.clear();
    }

    /// Ports on the shortest ways from a switch.
    fn ways(&mut self, unicast: &Unicast, switch: u32) -> &[u8] {
        let place = switch as usize;
        self.found.clear();
        let level = unicast.levels[place];
        for &(peer, port) in unicast.of(switch) {
            let at = peer as usize;
            let closer = if self.down[place] != FAR {
                unicast.levels[at] < level && self.down[at] < self.down[place]
            } else if self.up_down[place] != FAR {
                unicast.levels[at] > level && self.up_down[at] < self.up_down[place]
            } else {
                self.any[at] < self.any[place]
            };
            if closer {
                self.found.push(port);
            }
        }
        &self.found
    }
}
