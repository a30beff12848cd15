//! Computes the tables: classes of hosts, searches from 64 of them at once, rows.

use std::{cmp::Reverse, collections::BTreeMap};

use raddle_fabric::{Fabric, NodeKind};
use raddle_units::{BitRate, NodeId, PortId, Span};
use rustc_hash::FxHashMap;

use crate::{
    LinkState, RoutingError,
    rows::Rows,
    search::{Choices, Neighbours, Part, Search, part},
    stretch::{CHUNK, Stretch},
    tables::{EvenClasses, NextHopOrder, UnicastTables},
};

/// One port of a host: the switch, rate and delay, and whether the link is up.
type Attachment = (NodeId, BitRate, Span, bool);

/// What the ways out of a host depend on: its working ports and their switches. With one port only, any switch of
/// the same connected part will do.
type RowKey = Vec<(u16, u32)>;

/// Most ports in blocks: places have 32 bits.
const MAX_PORTS: u64 = 1 << 32;

/// Ways out of the hosts that share a row.
struct HostRow {
    /// Position (in the host's list of ports) and switch of each working port, in the wanted order.
    ways: Vec<(u16, u32)>,
    /// Where the ways out begin in a host's block, behind its last hops.
    start: u32,
    /// Searches of the chunk in hand that have not reached any of the switches.
    waiting: u64,
}

/// Lists of ports that are no stretch of their block; they stand behind it.
#[derive(Default)]
struct Scattered {
    /// Where each list of a row stands among those of the row. Looked up, never walked.
    places: FxHashMap<(u32, Box<[u16]>), u32>,
    /// For each row with such lists: all of them, one after the other.
    lists: BTreeMap<u32, Vec<u16>>,
}

impl Scattered {
    /// The stretch of a row's block, the first part of which has `size` ports, with these choices among them.
    fn stretch(&mut self, row: u32, size: u32, choices: &Choices) -> Stretch {
        let place = match choices.scattered() {
            None => u32::from(choices.first),
            Some(list) => {
                size + *self.places.entry((row, list.into())).or_insert_with(|| {
                    let lists = self.lists.entry(row).or_default();
                    lists.extend_from_slice(list);
                    (lists.len() - list.len()) as u32
                })
            }
        };
        Stretch {
            place,
            count: choices.count,
            at_destination: false,
        }
    }

    fn of(&self, row: u32) -> &[u16] {
        self.lists.get(&row).map_or(&[], Vec::as_slice)
    }
}

impl UnicastTables {
    /// Finds all shortest paths (in hops) over the links that are up. Hosts never forward.
    ///
    /// Time: classes / 64 x links between switches, as long as the switches of 64 neighbouring classes are about as
    /// far from any other; at worst classes x links. Memory: 4 bytes for each port, and what is said above.
    ///
    /// # Errors
    /// A link state of another fabric; tables of more than 16 GiB.
    pub fn compute(
        fabric: &Fabric,
        links: &LinkState,
        order: NextHopOrder,
    ) -> Result<Self, RoutingError> {
        if links.link_count() != fabric.links().len() {
            return Err(RoutingError::ForeignLinkState {
                state: links.link_count(),
                fabric: fabric.links().len(),
            });
        }
        Compute::new(fabric, links, order).run()
    }
}

struct Compute<'a> {
    fabric: &'a Fabric,
    links: &'a LinkState,
    order: NextHopOrder,
    /// Number of each switch among the switches, by node id.
    ordinal: Vec<u32>,
    /// Neighbour switches of each switch over working links, in the wanted order, and the ports to them.
    neighbours: Neighbours,
    neighbour_ports: Vec<PortId>,
    class_of: Vec<u32>,
    classes: Vec<Vec<NodeId>>,
}

impl<'a> Compute<'a> {
    fn new(fabric: &'a Fabric, links: &'a LinkState, order: NextHopOrder) -> Self {
        let mut ordinal = vec![u32::MAX; fabric.node_count()];
        for (index, switch) in (0..).zip(fabric.switches()) {
            ordinal[switch.index()] = index;
        }
        let mut starts = vec![0];
        let (mut peers, mut ports) = (Vec::new(), Vec::new());
        let mut ways = Vec::new();
        for &switch in fabric.switches() {
            ways.clear();
            let first = fabric.first_port(switch);
            for (id, port) in (first.0..).map(PortId).zip(fabric.ports_of(switch)) {
                let peer = fabric.port(port.peer).node;
                if fabric.kind(peer) == NodeKind::Switch && links.is_up(port.link) {
                    ways.push((ordinal[peer.index()], id));
                }
            }
            if order == NextHopOrder::DescendingNodeId {
                // Ordinals ascend with node ids; the sort is stable, so parallel links stay in order of their ports.
                ways.sort_by_key(|&(peer, _)| Reverse(peer));
            }
            peers.extend(ways.iter().map(|way| way.0));
            ports.extend(ways.iter().map(|way| way.1));
            starts.push(peers.len() as u32);
        }
        let mut this = Self {
            fabric,
            links,
            order,
            ordinal,
            neighbours: Neighbours { starts, peers },
            neighbour_ports: ports,
            class_of: Vec::new(),
            classes: Vec::new(),
        };
        this.classify();
        this
    }

    fn classify(&mut self) {
        let mut known: BTreeMap<Vec<Attachment>, u32> = BTreeMap::new();
        self.class_of = vec![u32::MAX; self.fabric.node_count()];
        for &host in self.fabric.hosts() {
            let attachments: Vec<Attachment> = self
                .fabric
                .ports_of(host)
                .iter()
                .map(|port| {
                    let link = self.fabric.link(port.link);
                    let switch = self.fabric.port(port.peer).node;
                    (switch, link.rate, link.delay, self.links.is_up(port.link))
                })
                .collect();
            let class = *known.entry(attachments).or_insert_with(|| {
                self.classes.push(Vec::new());
                self.classes.len() as u32 - 1
            });
            self.class_of[host.index()] = class;
            self.classes[class as usize].push(host);
        }
        // Switches are no destinations: they take the place behind the last class.
        for &switch in self.fabric.switches() {
            self.class_of[switch.index()] = self.classes.len() as u32;
        }
    }

    fn run(self) -> Result<UnicastTables, RoutingError> {
        let (mut host_rows, row_of_class) = self.host_rows();
        let switches = self.neighbours.switches();
        // One place more than classes: for what is no host.
        let width = (self.classes.len() + 1).div_ceil(CHUNK);
        let mut rows = Rows::new(switches + host_rows.len(), width)?;
        let mut scattered = Scattered::default();
        let mut search = Search::new(switches);
        let mut parts = Vec::new();
        for (index, classes) in self.classes.chunks(CHUNK).enumerate() {
            search.clear();
            for (bit, hosts) in classes.iter().enumerate() {
                self.begin(hosts[0], 1 << bit, &mut search, &mut rows);
            }
            for row in &mut host_rows {
                row.waiting = u64::MAX >> (CHUNK - classes.len());
            }
            loop {
                self.leave_hosts(
                    &search,
                    &mut host_rows,
                    &mut rows,
                    &mut scattered,
                    &mut parts,
                );
                if !search.step(&self.neighbours) {
                    break;
                }
                for &switch in search.reached() {
                    let new = search.front(switch);
                    let peers = self.neighbours.of(switch);
                    let closer = peers.iter().map(|&peer| search.before(peer) & new);
                    part(closer, &mut parts);
                    for part in &parts {
                        let stretch = scattered.stretch(switch, peers.len() as u32, &part.choices);
                        rows.add(switch as usize, part.searches, stretch);
                    }
                }
            }
            rows.close(index)?;
        }
        if self.classes.len().is_multiple_of(CHUNK) {
            rows.close(width - 1)?;
        }
        self.finish(rows, &scattered, &host_rows, &row_of_class)
    }

    /// Begins the search for the class of `host`, and enters its last hops.
    fn begin(&self, host: NodeId, search: u64, searches: &mut Search, rows: &mut Rows) {
        let mut place = 0;
        for switch in self.attached_switches(host) {
            searches.begin(switch, search);
            let ports = self.working_ports(host);
            let count = ports.filter(|port| port.1 == switch).count() as u16;
            let last_hop = Stretch {
                place,
                count,
                at_destination: true,
            };
            rows.add(switch as usize, search, last_hop);
            place += u32::from(count);
        }
    }

    /// Enters the ways out of hosts for searches that have just reached the first of a host's switches.
    fn leave_hosts(
        &self,
        search: &Search,
        host_rows: &mut [HostRow],
        rows: &mut Rows,
        scattered: &mut Scattered,
        parts: &mut Vec<Part>,
    ) {
        let switches = self.neighbours.switches();
        for (index, row) in host_rows.iter_mut().enumerate() {
            if row.waiting == 0 {
                continue;
            }
            let waiting = row.waiting;
            let ways = row.ways.iter();
            part(ways.map(|way| search.front(way.1) & waiting), parts);
            for part in &*parts {
                let number = (switches + index) as u32;
                let mut stretch = scattered.stretch(number, row.ways.len() as u32, &part.choices);
                stretch.place += row.start;
                rows.add(switches + index, part.searches, stretch);
                row.waiting &= !part.searches;
            }
        }
    }

    fn finish(
        self,
        rows: Rows,
        scattered: &Scattered,
        host_rows: &[HostRow],
        row_of_class: &[u32],
    ) -> Result<UnicastTables, RoutingError> {
        let (rows, starts, chunks) = rows.finish();
        let nodes = self.fabric.node_count();
        let (mut row_of, mut blocks) = (vec![0; nodes], vec![0; nodes]);
        let mut ports = Vec::with_capacity(self.fabric.port_count());
        for (number, &switch) in (0..).zip(self.fabric.switches()) {
            row_of[switch.index()] = starts[number as usize];
            blocks[switch.index()] = ports.len() as u32;
            let start = self.neighbours.starts[number as usize] as usize;
            let own = &self.neighbour_ports[start..start + self.neighbours.of(number).len()];
            ports.extend_from_slice(own);
            let lists = scattered.of(number).iter();
            ports.extend(lists.map(|&choice| own[usize::from(choice)]));
        }
        let switches = self.neighbours.switches();
        for &host in self.fabric.hosts() {
            let row = row_of_class[self.class_of[host.index()] as usize];
            let number = switches + row as usize;
            row_of[host.index()] = starts[number];
            blocks[host.index()] = ports.len() as u32;
            self.write_last_hops(host, &mut ports);
            let ways = &host_rows[row as usize].ways;
            let out = |way: &(u16, u32)| PortId(self.fabric.first_port(host).0 + u32::from(way.0));
            ports.extend(ways.iter().map(out));
            let lists = scattered.of(number as u32).iter();
            ports.extend(lists.map(|&choice| out(&ways[usize::from(choice)])));
        }
        if ports.len() as u64 > MAX_PORTS {
            return Err(RoutingError::TooLarge {
                entries: ports.len() as u64,
                limit: MAX_PORTS,
            });
        }
        ports.shrink_to_fit();
        let mut class_starts = vec![0];
        let mut class_hosts = Vec::with_capacity(self.fabric.hosts().len());
        for hosts in &self.classes {
            class_hosts.extend_from_slice(hosts);
            class_starts.push(class_hosts.len() as u32);
        }
        Ok(UnicastTables {
            even: EvenClasses::find(&self.class_of, self.classes.len() as u32),
            class_of: self.class_of,
            row_of,
            rows,
            chunks,
            blocks,
            ports,
            class_starts,
            class_hosts,
        })
    }

    /// Position and switch (ordinal) of each working port of a host.
    fn working_ports(&self, host: NodeId) -> impl Iterator<Item = (u16, u32)> {
        let ports = (0..).zip(self.fabric.ports_of(host));
        ports
            .filter(|(_, port)| self.links.is_up(port.link))
            .map(|(position, port)| {
                let switch = self.fabric.port(port.peer).node;
                (position, self.ordinal[switch.index()])
            })
    }

    /// The switches (ordinals) that a host is attached to over working links, each once, ascending.
    fn attached_switches(&self, host: NodeId) -> Vec<u32> {
        let mut switches: Vec<u32> = self.working_ports(host).map(|port| port.1).collect();
        switches.sort_unstable();
        switches.dedup();
        switches
    }

    /// The ports that lead to a host, by switch as [`Self::attached_switches`] has them, then by number.
    fn write_last_hops(&self, host: NodeId, ports: &mut Vec<PortId>) {
        let from = ports.len();
        let own = self.fabric.ports_of(host);
        ports.extend(
            self.working_ports(host)
                .map(|(position, _)| own[usize::from(position)].peer),
        );
        // Ports ascend with their nodes, and switches with their numbers.
        ports[from..].sort_unstable();
    }

    /// Rows for hosts: one for all classes that leave in the same way. Also the row of each class.
    fn host_rows(&self) -> (Vec<HostRow>, Vec<u32>) {
        let parts = self.connected_parts();
        let mut known: BTreeMap<RowKey, u32> = BTreeMap::new();
        let mut rows = Vec::new();
        let row_of_class = self
            .classes
            .iter()
            .map(|hosts| {
                let mut ways: RowKey = self.working_ports(hosts[0]).collect();
                let key = match ways.as_slice() {
                    &[(position, switch)] => vec![(position, parts[switch as usize])],
                    _ => ways.clone(),
                };
                *known.entry(key).or_insert_with(|| {
                    if self.order == NextHopOrder::DescendingNodeId {
                        ways.sort_by_key(|&(_, switch)| Reverse(switch));
                    }
                    let start = ways.len() as u32;
                    rows.push(HostRow {
                        ways,
                        start,
                        waiting: 0,
                    });
                    rows.len() as u32 - 1
                })
            })
            .collect();
        (rows, row_of_class)
    }

    /// For each switch the lowest switch that it is connected with.
    fn connected_parts(&self) -> Vec<u32> {
        let mut parts = vec![u32::MAX; self.neighbours.switches()];
        let mut open = Vec::new();
        for part in 0..parts.len() as u32 {
            if parts[part as usize] != u32::MAX {
                continue;
            }
            parts[part as usize] = part;
            open.push(part);
            while let Some(switch) = open.pop() {
                for &peer in self.neighbours.of(switch) {
                    if parts[peer as usize] == u32::MAX {
                        parts[peer as usize] = part;
                        open.push(peer);
                    }
                }
            }
        }
        parts
    }
}
