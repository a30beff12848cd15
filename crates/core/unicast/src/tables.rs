//! Shortest paths to every host, as compressed tables.
//!
//! Hosts with the same attachments form one destination class. A breadth-first search over the switches gives the
//! distances to each class; the next hops of a switch are all its ports to a neighbour one hop closer. A table holds
//! one word per switch and class: where the list of next hops stands. Equal lists of a switch stand only once.
//!
//! Two kinds of lists differ between the hosts of one class: the last hop (each host has its own port at the switch)
//! and the first hop (each host has its own ports). Their words are relative to a block that every host has.

use std::collections::BTreeMap;

use raddle_fabric::{Fabric, NodeKind};
use raddle_prefetch::prefetch;
use raddle_units::{BitRate, LinkId, NodeId, PortId, Span};

use crate::{LinkState, RoutingError};

/// Order of the next hops in a list; the hash picks by index, so the order decides paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextHopOrder {
    /// By the number of the port.
    ByPort,
    /// By the id of the neighbour, highest first: the order of the reference simulator's runs (compat).
    DescendingNodeId,
}

/// Hosts that are attached in the same way: the same switches, rates and delays in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u32);

/// Most words of a table (16 GiB).
const MAX_WORDS: u64 = 1 << 32;
/// The list is in the block of the destination: its number of the last hop.
const AT_DESTINATION: u32 = 1 << 31;
/// The list is in the block of the host that asks: its ways out.
const AT_SOURCE: u32 = 1 << 30;
const KIND_MASK: u32 = AT_DESTINATION | AT_SOURCE;
/// Distance of a switch that the search has not reached.
const FAR: u32 = u32::MAX;

/// Next hops from every node to every host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnicastTables {
    /// Class of each node; switches have the last column, which is always empty.
    class_of: Vec<u32>,
    /// Row of each node in `words`.
    row_of: Vec<u32>,
    /// Columns of `words`: one per class and one for what is no host.
    width: usize,
    /// Per row and class: a list's place in `lists`, absolute or relative to a host's block.
    words: Vec<u32>,
    /// Per node: start of its block in `lists` (hosts only).
    blocks: Vec<u32>,
    /// Lists of ports: first their count, then the ports. The list at 0 is empty.
    lists: Vec<PortId>,
    /// Per class: start of its hosts in `class_hosts`, and the end.
    class_starts: Vec<u32>,
    class_hosts: Vec<NodeId>,
}

impl UnicastTables {
    /// Finds all shortest paths (in hops) over the links that are up. Hosts never forward.
    ///
    /// Time: classes x links between switches. Memory: 4 bytes x switches x classes.
    ///
    /// # Errors
    /// A link state of another fabric; more than 2^32 table words.
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
        Compute::new(fabric, links, order)?.run()
    }

    /// Ports on shortest paths from `at` towards host `dst`; empty where there is no way, where `dst` is not a host
    /// and where it is `at` itself.
    ///
    /// # Panics
    /// When a node is not one of the fabric.
    #[inline(always)]
    pub fn next_hops(&self, at: NodeId, dst: NodeId) -> &[PortId] {
        let class = self.class_of[dst.index()] as usize;
        let row = self.row_of[at.index()] as usize;
        let word = self.words[row * self.width + class];
        let place = match word & KIND_MASK {
            0 => word,
            AT_DESTINATION => self.blocks[dst.index()] + (word & !KIND_MASK),
            _ if at == dst => 0,
            _ => self.blocks[at.index()] + (word & !KIND_MASK),
        } as usize;
        let count = self.lists[place].index();
        &self.lists[place + 1..place + 1 + count]
    }

    /// Hints that [`Self::next_hops`] will be asked the same soon.
    #[inline]
    pub fn prefetch(&self, at: NodeId, dst: NodeId) {
        let class = self.class_of[dst.index()] as usize;
        let row = self.row_of[at.index()] as usize;
        prefetch(&self.words[row * self.width + class]);
    }

    /// The classes of hosts, ascending by their first host.
    pub fn destination_classes(&self) -> impl ExactSizeIterator<Item = ClassId> + use<> {
        (0..self.class_starts.len() as u32 - 1).map(ClassId)
    }

    /// The class of a host; `None` for a switch.
    pub fn class_of(&self, host: NodeId) -> Option<ClassId> {
        let class = self.class_of[host.index()];
        (class as usize + 1 < self.width).then_some(ClassId(class))
    }

    /// The hosts of a class, ascending.
    pub fn class_hosts(&self, class: ClassId) -> &[NodeId] {
        let index = class.0 as usize;
        let (start, end) = (self.class_starts[index], self.class_starts[index + 1]);
        &self.class_hosts[start as usize..end as usize]
    }

    /// Hops (links) from `at` to host `dst`, 0 for the host itself; `None` where there is no way.
    ///
    /// Walks the first choice, so it takes time in proportion to the answer.
    pub fn distance(&self, fabric: &Fabric, at: NodeId, dst: NodeId) -> Option<u32> {
        let mut node = at;
        let mut hops = 0;
        while node != dst {
            node = fabric.peer_node(*self.next_hops(node, dst).first()?);
            hops += 1;
        }
        Some(hops)
    }

    /// The egress ports on the way from `src` to host `dst` when always the first next hop is taken; empty where
    /// there is no way. For sums of delays and rates.
    pub fn first_path<'a>(
        &'a self,
        fabric: &'a Fabric,
        src: NodeId,
        dst: NodeId,
    ) -> impl Iterator<Item = PortId> + 'a {
        let mut node = src;
        std::iter::from_fn(move || {
            let port = *self.next_hops(node, dst).first()?;
            node = fabric.peer_node(port);
            Some(port)
        })
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.class_of)
            + size_of_val(&*self.row_of)
            + size_of_val(&*self.words)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.lists)
            + size_of_val(&*self.class_starts)
            + size_of_val(&*self.class_hosts)
    }
}

/// One port of a host: the switch, rate and delay, and whether the link is up.
type Attachment = (NodeId, BitRate, Span, bool);

/// What the ways out of a host depend on: its working ports and their switches. With one port only, any switch of
/// the same connected part will do.
type RowKey = Vec<(u16, u32)>;

/// Ways out of the hosts that share a row.
#[derive(Default)]
struct HostRow {
    /// Position (in the host's list of ports) and switch of each working port, in the wanted order.
    ways: Vec<(u16, u32)>,
    /// Lists of positions that occur.
    patterns: Vec<Vec<u16>>,
    /// Where each pattern stands in a host's block.
    places: Vec<u32>,
    /// Size of the block so far.
    size: u32,
}

struct Compute<'a> {
    fabric: &'a Fabric,
    links: &'a LinkState,
    order: NextHopOrder,
    /// Number of each switch among the switches, by node id.
    ordinal: Vec<u32>,
    /// Neighbour switches of each switch over working links, in the wanted order: start, then (ordinal, port).
    starts: Vec<u32>,
    neighbours: Vec<(u32, PortId)>,
    class_of: Vec<u32>,
    classes: Vec<Vec<NodeId>>,
}

impl<'a> Compute<'a> {
    fn new(
        fabric: &'a Fabric,
        links: &'a LinkState,
        order: NextHopOrder,
    ) -> Result<Self, RoutingError> {
        let mut ordinal = vec![u32::MAX; fabric.node_count()];
        for (index, switch) in (0..).zip(fabric.switches()) {
            ordinal[switch.index()] = index;
        }
        let mut starts = vec![0];
        let mut neighbours = Vec::new();
        for &switch in fabric.switches() {
            let from = neighbours.len();
            let first = fabric.first_port(switch);
            for (id, port) in (first.0..).map(PortId).zip(fabric.ports_of(switch)) {
                let peer = fabric.port(port.peer).node;
                if fabric.kind(peer) == NodeKind::Switch && links.is_up(port.link) {
                    neighbours.push((ordinal[peer.index()], id));
                }
            }
            if order == NextHopOrder::DescendingNodeId {
                // Ordinals ascend with node ids; the sort is stable, so parallel links stay in order of their ports.
                neighbours[from..].sort_by_key(|&(peer, _)| std::cmp::Reverse(peer));
            }
            starts.push(neighbours.len() as u32);
        }
        let mut this = Self {
            fabric,
            links,
            order,
            ordinal,
            starts,
            neighbours,
            class_of: Vec::new(),
            classes: Vec::new(),
        };
        this.classify();
        let words = (fabric.switches().len() as u64 + 1) * (this.classes.len() as u64 + 1);
        if words > MAX_WORDS {
            return Err(RoutingError::TooLarge {
                words,
                limit: MAX_WORDS,
            });
        }
        Ok(this)
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
        // Switches are no destinations: they take the column behind the last class.
        for &switch in self.fabric.switches() {
            self.class_of[switch.index()] = self.classes.len() as u32;
        }
    }

    fn run(self) -> Result<UnicastTables, RoutingError> {
        let (mut rows, row_of_class) = self.host_rows();
        let switches = self.fabric.switches().len();
        let width = self.classes.len() + 1;
        let words = (switches as u64 + rows.len() as u64) * width as u64;
        if words > MAX_WORDS {
            return Err(RoutingError::TooLarge {
                words,
                limit: MAX_WORDS,
            });
        }
        let mut words = vec![0u32; words as usize];
        let mut lists = Lists::new(self.neighbours.len());
        let mut search = Search::new(switches);
        let mut list = Vec::new();
        for (class, hosts) in self.classes.iter().enumerate() {
            let attached = self.attached_switches(hosts[0]);
            search.run(&attached, &self.starts, &self.neighbours);
            for (place, &switch) in attached.iter().enumerate() {
                let relative = self.last_hop_places(hosts[0])[place];
                words[switch as usize * width + class] = AT_DESTINATION | relative;
            }
            for &switch in &search.reached[attached.len()..] {
                let closer = search.distance[switch as usize] - 1;
                list.clear();
                let (from, to) = self.neighbours_of(switch);
                for index in from..to {
                    if search.distance[self.neighbours[index].0 as usize] == closer {
                        list.push(index as u32);
                    }
                }
                words[switch as usize * width + class] = lists.place(&list, &self.neighbours);
            }
            for (row, words) in rows
                .iter_mut()
                .zip(words[switches * width..].chunks_mut(width))
            {
                words[class] = row.word(&search.distance);
            }
        }
        self.finish(words, lists, rows, row_of_class)
    }

    fn finish(
        self,
        words: Vec<u32>,
        lists: Lists,
        rows: Vec<HostRow>,
        row_of_class: Vec<u32>,
    ) -> Result<UnicastTables, RoutingError> {
        let mut lists = lists.lists;
        let switches = self.fabric.switches().len() as u32;
        let mut row_of = vec![0; self.fabric.node_count()];
        let mut blocks = vec![0; self.fabric.node_count()];
        for (row, switch) in (0..).zip(self.fabric.switches()) {
            row_of[switch.index()] = row;
        }
        for &host in self.fabric.hosts() {
            let row = row_of_class[self.class_of[host.index()] as usize];
            row_of[host.index()] = switches + row;
            blocks[host.index()] = lists.len() as u32;
            self.write_block(host, &rows[row as usize], &mut lists);
        }
        if lists.len() as u64 > u64::from(AT_SOURCE) {
            let words = lists.len() as u64;
            return Err(RoutingError::TooLarge {
                words,
                limit: AT_SOURCE.into(),
            });
        }
        lists.shrink_to_fit();
        let mut class_starts = vec![0];
        let mut class_hosts = Vec::with_capacity(self.fabric.hosts().len());
        for hosts in &self.classes {
            class_hosts.extend_from_slice(hosts);
            class_starts.push(class_hosts.len() as u32);
        }
        let width = self.classes.len() + 1;
        let class_of = self.class_of;
        Ok(UnicastTables {
            class_of,
            row_of,
            width,
            words,
            blocks,
            lists,
            class_starts,
            class_hosts,
        })
    }

    fn neighbours_of(&self, switch: u32) -> (usize, usize) {
        (
            self.starts[switch as usize] as usize,
            self.starts[switch as usize + 1] as usize,
        )
    }

    /// Position, switch (ordinal) and link of each working port of a host.
    fn working_ports(&self, host: NodeId) -> impl Iterator<Item = (u16, u32, LinkId)> {
        let ports = (0..).zip(self.fabric.ports_of(host));
        ports
            .filter(|(_, port)| self.links.is_up(port.link))
            .map(|(position, port)| {
                let switch = self.fabric.port(port.peer).node;
                (position, self.ordinal[switch.index()], port.link)
            })
    }

    /// The switches (ordinals) that a host is attached to over working links, each once, ascending.
    fn attached_switches(&self, host: NodeId) -> Vec<u32> {
        let mut switches: Vec<u32> = self
            .working_ports(host)
            .map(|(_, switch, _)| switch)
            .collect();
        switches.sort_unstable();
        switches.dedup();
        switches
    }

    /// Where in a host's block the last hops of each attached switch stand. The same for a whole class.
    fn last_hop_places(&self, host: NodeId) -> Vec<u32> {
        let mut places = vec![0];
        for switch in self.attached_switches(host) {
            let ports = self
                .working_ports(host)
                .filter(|port| port.1 == switch)
                .count() as u32;
            places.push(places[places.len() - 1] + 1 + ports);
        }
        places
    }

    /// The last hops (in the places of [`Self::last_hop_places`]), then the ways out.
    fn write_block(&self, host: NodeId, row: &HostRow, lists: &mut Vec<PortId>) {
        let first = self.fabric.first_port(host);
        for switch in self.attached_switches(host) {
            let from = lists.len();
            lists.push(PortId(0));
            for (position, at, _) in self.working_ports(host) {
                if at == switch {
                    lists.push(self.fabric.ports_of(host)[position as usize].peer);
                }
            }
            lists[from] = PortId((lists.len() - from - 1) as u32);
            lists[from + 1..].sort_unstable();
        }
        for pattern in &row.patterns {
            lists.push(PortId(pattern.len() as u32));
            let out = pattern
                .iter()
                .map(|&position| PortId(first.0 + u32::from(position)));
            lists.extend(out);
        }
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
                let host = hosts[0];
                let mut ways: RowKey = self.working_ports(host).map(|(p, s, _)| (p, s)).collect();
                let key = match ways.as_slice() {
                    &[(position, switch)] => vec![(position, parts[switch as usize])],
                    _ => ways.clone(),
                };
                *known.entry(key).or_insert_with(|| {
                    if self.order == NextHopOrder::DescendingNodeId {
                        ways.sort_by_key(|&(_, switch)| std::cmp::Reverse(switch));
                    }
                    let size = self.last_hop_places(host).last().copied().unwrap_or(0);
                    rows.push(HostRow {
                        ways,
                        size,
                        ..HostRow::default()
                    });
                    rows.len() as u32 - 1
                })
            })
            .collect();
        (rows, row_of_class)
    }

    /// For each switch the lowest switch that it is connected with.
    fn connected_parts(&self) -> Vec<u32> {
        let switches = self.fabric.switches().len();
        let mut parts = vec![u32::MAX; switches];
        let mut search = Search::new(switches);
        for switch in 0..switches as u32 {
            if parts[switch as usize] == u32::MAX {
                search.run(&[switch], &self.starts, &self.neighbours);
                for &reached in &search.reached {
                    parts[reached as usize] = switch;
                }
            }
        }
        parts
    }
}

impl HostRow {
    /// The word for a destination with these distances: the working ports to the closest switches.
    fn word(&mut self, distance: &[u32]) -> u32 {
        let least = self
            .ways
            .iter()
            .map(|&(_, switch)| distance[switch as usize])
            .min();
        let Some(least) = least.filter(|&least| least != FAR) else {
            return 0;
        };
        let closest = |&&(_, switch): &&(u16, u32)| distance[switch as usize] == least;
        let known = self.patterns.iter().position(|pattern| {
            pattern.iter().eq(self
                .ways
                .iter()
                .filter(closest)
                .map(|(position, _)| position))
        });
        let index = known.unwrap_or_else(|| {
            let pattern: Vec<u16> = self.ways.iter().filter(closest).map(|way| way.0).collect();
            self.places.push(self.size);
            self.size += 1 + pattern.len() as u32;
            self.patterns.push(pattern);
            self.patterns.len() - 1
        });
        AT_SOURCE | self.places[index]
    }
}

/// Breadth-first search over the switches; its memory serves all classes.
struct Search {
    distance: Vec<u32>,
    /// Switches in the order in which they were reached.
    reached: Vec<u32>,
}

impl Search {
    fn new(switches: usize) -> Self {
        Self {
            distance: vec![FAR; switches],
            reached: Vec::with_capacity(switches),
        }
    }

    fn run(&mut self, from: &[u32], starts: &[u32], neighbours: &[(u32, PortId)]) {
        self.distance.fill(FAR);
        self.reached.clear();
        for &switch in from {
            self.distance[switch as usize] = 0;
            self.reached.push(switch);
        }
        let mut head = 0;
        while let Some(&switch) = self.reached.get(head) {
            head += 1;
            let next = self.distance[switch as usize] + 1;
            let range = starts[switch as usize] as usize..starts[switch as usize + 1] as usize;
            for &(peer, _) in &neighbours[range] {
                if self.distance[peer as usize] == FAR {
                    self.distance[peer as usize] = next;
                    self.reached.push(peer);
                }
            }
        }
    }
}

/// The lists of next hops of the switches, each list once per switch.
struct Lists {
    lists: Vec<PortId>,
    /// For each entry of `neighbours`: the last list that starts with it.
    heads: Vec<u32>,
    /// Chains of lists that start with the same port: (place, next), `u32::MAX` at the end.
    chains: Vec<(u32, u32)>,
}

impl Lists {
    fn new(neighbours: usize) -> Self {
        Self {
            lists: vec![PortId(0)],
            heads: vec![u32::MAX; neighbours],
            chains: Vec::new(),
        }
    }

    /// The place of a list, given as indexes into `neighbours` (of one switch).
    fn place(&mut self, list: &[u32], neighbours: &[(u32, PortId)]) -> u32 {
        let first = list[0] as usize;
        let ports = || list.iter().map(|&index| neighbours[index as usize].1);
        let mut chain = self.heads[first];
        while let Some(&(place, next)) = self.chains.get(chain as usize) {
            let start = place as usize + 1;
            let count = self.lists[place as usize].index();
            if count == list.len() && self.lists[start..start + count].iter().copied().eq(ports()) {
                return place;
            }
            chain = next;
        }
        let place = self.lists.len() as u32;
        self.lists.push(PortId(list.len() as u32));
        self.lists.extend(ports());
        self.chains.push((place, self.heads[first]));
        self.heads[first] = self.chains.len() as u32 - 1;
        place
    }
}
