//! Groups, their MLIDs, and the blocks of the switches' tables that were sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use raddle_fabric::NodeKind;
use raddle_multicast::{Change, Colour, Growth, MAX_MLIDS, Mgid, PerSwitch};
use raddle_units::{NodeId, PortId};

use crate::{
    config::{Config, Recolour, Unicast as UnicastChoice},
    moves::{Moves, Why},
    numbers::Numbers,
    subnet::{Findings, Map},
    unicast::{Destination, Unicast},
};

/// The first MLID; colour 0.
pub(crate) const FIRST_MLID: u16 = 0xc000;
/// MLIDs of a block of a multicast table.
pub(crate) const BLOCK_MLIDS: usize = 32;
/// Ports of a position of a multicast table.
const POSITION_PORTS: usize = 16;
const POSITIONS: usize = 16;
/// With more groups, statistics are counted only now and then: they walk all trees.
const FEW_GROUPS: usize = 2_000;

/// What the engine asks of OpenSM.
pub(crate) trait Host {
    fn error(&self, message: &str);
    fn info(&self, message: &str);
    fn send(&self, switch: u32, block: u16, position: u8, masks: &[u16; BLOCK_MLIDS]);
    fn mask(&self, switch: u32, mlid: u16, port: u8);
    fn move_group(&self, mgid: &[u8; 16], mlid: u16);
}

/// A sweep: what was found, and what OpenSM knows of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) found: Findings,
    /// OpenSM's number of each switch.
    pub(crate) switch_index: BTreeMap<u64, u32>,
    /// Node's GUID, port's GUID, its number, LID, LMC.
    pub(crate) endports: Vec<(u64, u64, u8, u16, u8)>,
    pub(crate) mlids: u32,
    /// Switches whose tables are to be sent again, by OpenSM's number.
    pub(crate) stale: BTreeSet<u32>,
    pub(crate) resend: bool,
}

/// A group as OpenSM has it.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) mgid: [u8; 16],
    pub(crate) mlid: u16,
    pub(crate) fixed: bool,
    /// Port GUIDs.
    pub(crate) ports: Vec<u64>,
}

type Block = [[u16; POSITIONS]; BLOCK_MLIDS];

/// Running totals.
#[derive(Clone, Copy, Default, Debug)]
struct Totals {
    sweeps: u64,
    batches: u64,
    entries: u64,
    blocks: u64,
    moved: u64,
}

/// Everything about the subnet.
pub(crate) struct Engine {
    config: Config,
    map: Option<Map>,
    groups: Option<PerSwitch>,
    unicast: Option<Unicast>,
    /// OpenSM's number of each node of the map that is a switch.
    switch_index: Vec<u32>,
    node_at: Vec<Option<NodeId>>,
    /// The node at each port GUID.
    at_port: BTreeMap<u64, NodeId>,
    numbers: Numbers,
    /// Switches that are members themselves (their port 0), by group.
    switch_members: BTreeMap<Mgid, BTreeSet<NodeId>>,
    complained: BTreeSet<[u8; 16]>,
    /// Tables as sent, by the switch's GUID and block.
    tables: BTreeMap<(u64, u16), Box<Block>>,
    /// What has to be sent: block, position, the switch's GUID. OpenSM's numbers of switches change with a sweep.
    dirty: BTreeSet<(u16, u8, u64)>,
    /// Groups have changed since all were coloured.
    changed: bool,
    /// All groups have to be placed anew.
    remade: bool,
    /// Not told yet.
    moves: Moves,
    totals: Totals,
    last: Totals,
    refusal: String,
    counted: Option<Instant>,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            map: None,
            groups: None,
            unicast: None,
            switch_index: Vec::new(),
            node_at: Vec::new(),
            at_port: BTreeMap::new(),
            numbers: Numbers::default(),
            switch_members: BTreeMap::new(),
            complained: BTreeSet::new(),
            tables: BTreeMap::new(),
            dirty: BTreeSet::new(),
            changed: false,
            remade: false,
            moves: Moves::default(),
            totals: Totals::default(),
            last: Totals::default(),
            refusal: String::new(),
            counted: None,
        }
    }

    pub(crate) fn routes_unicast(&self) -> bool {
        self.map.is_some() && self.config.unicast == UnicastChoice::Raddle
    }

    pub(crate) fn shares(&self) -> bool {
        self.groups.is_some() && self.config.share
    }

    /// Takes a sweep; false: OpenSM routes this subnet.
    pub(crate) fn sweep(&mut self, sweep: &Sweep, host: &impl Host) -> bool {
        match self.take_sweep(sweep, host) {
            Ok(()) => {
                self.refusal.clear();
                true
            }
            Err(reason) => {
                if reason != self.refusal {
                    host.error(&format!("OpenSM's own routing is used: {reason}"));
                }
                self.refusal = reason;
                self.map = None;
                self.groups = None;
                self.unicast = None;
                self.tables.clear();
                self.dirty.clear();
                false
            }
        }
    }

    fn take_sweep(&mut self, sweep: &Sweep, host: &impl Host) -> Result<(), String> {
        let started = Instant::now();
        let mlids = match self.config.mlids {
            0 => sweep.mlids,
            most => sweep.mlids.min(most),
        }
        .min(MAX_MLIDS);
        let (map, new) = Map::after(self.map.take(), &sweep.found)?;
        let links = map.links_up(&sweep.found);
        self.switch_index = vec![u32::MAX; map.fabric.node_count()];
        self.node_at = vec![None; sweep.switch_index.len()];
        for (&guid, &index) in &sweep.switch_index {
            if let Some(node) = map.node(guid) {
                self.switch_index[node.index()] = index;
                if let Some(place) = self.node_at.get_mut(index as usize) {
                    *place = Some(node);
                }
            }
        }
        let mut destinations = Vec::with_capacity(sweep.endports.len());
        self.at_port.clear();
        for &(node, guid, port, lid, lmc) in &sweep.endports {
            if let Some(node) = map.node(node) {
                self.at_port.insert(guid, node);
                destinations.push(Destination {
                    node,
                    port,
                    lid,
                    lmc,
                });
            }
        }
        let mut lost = 0;
        if self.config.unicast == UnicastChoice::Raddle {
            let mut unicast = Unicast::new(&map, &links);
            unicast.run(&map, &links, &destinations);
            lost = unicast.without_way(&destinations);
            self.unicast = Some(unicast);
        }
        let reuse = self
            .groups
            .take()
            .filter(|groups| !new && groups.mlids() == mlids);
        let change = match reuse {
            Some(mut groups) => {
                let change = groups.set_links(links).map_err(|error| error.to_string())?;
                self.groups = Some(groups);
                Some(change)
            }
            None => {
                let growth = match self.config.recolour {
                    Recolour::Never => Growth::Keep,
                    Recolour::Growth | Recolour::Sweep => Growth::Move,
                };
                let (fabric, places) = (map.fabric.clone(), map.places.clone());
                let groups = PerSwitch::new(fabric, places, links, mlids, growth)
                    .and_then(|groups| match self.config.pairs {
                        true => groups.with_pairs(),
                        false => Ok(groups),
                    })
                    .map_err(|error| error.to_string())?;
                self.groups = Some(groups);
                None
            }
        };
        let shape = map.places.shape();
        self.map = Some(map);
        match change {
            Some(change) => self.apply(&change, Why::Link, host),
            None => {
                self.forget_entries();
                self.remade = true;
            }
        }
        self.send_again(sweep);
        self.totals.sweeps += 1;
        host.info(&format!(
            "fat tree {shape}: {} nodes, {} links, {mlids} MLIDs, {lost} LFT entries without a way, {} ms",
            sweep.found.nodes.len(),
            sweep.found.cables.len(),
            started.elapsed().as_millis()
        ));
        Ok(())
    }

    /// A new map: all entries are empty until the groups are set again, what was sent is compared with what they get.
    fn forget_entries(&mut self) {
        let mut cleared = Vec::new();
        for (&(guid, block), masks) in &mut self.tables {
            for row in masks.iter_mut() {
                for (position, mask) in (0u8..).zip(row.iter_mut()) {
                    if std::mem::take(mask) != 0 {
                        cleared.push((block, position, guid));
                    }
                }
            }
        }
        self.dirty.extend(cleared);
    }

    /// Marks the tables of switches that lost them. Blocks that are empty now are sent too: the switch may remember
    /// another manager's.
    fn send_again(&mut self, sweep: &Sweep) {
        let Some(map) = &self.map else { return };
        let Some(last) = self.tables.keys().map(|&(_, block)| block).max() else {
            return;
        };
        for (index, node) in (0..).zip(&self.node_at) {
            let Some(node) = *node else { continue };
            if sweep.resend || sweep.stale.contains(&index) {
                let positions = positions(map, node);
                for block in 0..=last {
                    let all = positions
                        .clone()
                        .map(|place| (block, place, map.guid(node)));
                    self.dirty.extend(all);
                }
            }
        }
    }

    pub(crate) fn table(&self, switch: u32) -> &[u8] {
        let node = self.node_at.get(switch as usize).copied().flatten();
        match (node, &self.unicast) {
            (Some(node), Some(unicast)) => unicast.table(node),
            _ => &[],
        }
    }

    /// An MLID for a group that does not exist yet.
    pub(crate) fn new_group(&mut self, gid: [u8; 16], port: u64, host: &impl Host) -> Option<u16> {
        let node = *self.at_port.get(&port)?;
        let mgid = self.numbers.number(gid);
        let change = self.groups.as_mut()?.set(mgid, &[node], None, false);
        match change {
            Ok(change) => self.apply(&change, Why::Grew, host),
            Err(error) => {
                host.error(&error.to_string());
                return None;
            }
        }
        let colour = self.groups.as_ref()?.colour(mgid)?;
        Some(FIRST_MLID + colour.0)
    }

    /// A group has gone; false: it was not known.
    pub(crate) fn gone(&mut self, gid: [u8; 16], host: &impl Host) -> bool {
        let Some(mgid) = self.numbers.remove(gid) else {
            return false;
        };
        self.switch_members.remove(&mgid);
        self.complained.remove(&gid);
        if let Some(groups) = &mut self.groups {
            let change = groups.remove(mgid);
            self.apply(&change, Why::Grew, host);
        }
        true
    }

    /// Brings groups up to date; `all`: there are no others.
    pub(crate) fn sync(&mut self, list: &[Members], all: bool, host: &impl Host) {
        if all {
            let there: BTreeSet<[u8; 16]> = list.iter().map(|group| group.mgid).collect();
            for gid in self.numbers.without(&there) {
                self.gone(gid, host);
            }
        }
        let why = if self.remade { Why::Map } else { Why::Grew };
        for group in list {
            self.sync_group(group, why, host);
        }
        self.remade &= !all;
        if all && self.config.recolour == Recolour::Sweep && std::mem::take(&mut self.changed) {
            let change = self.groups.as_mut().map(PerSwitch::recolour);
            self.apply(&change.unwrap_or_default(), Why::Sweep, host);
            self.changed = false;
        }
        self.flush(host);
    }

    fn sync_group(&mut self, group: &Members, why: Why, host: &impl Host) {
        let mgid = self.numbers.number(group.mgid);
        let mut nodes = Vec::with_capacity(group.ports.len());
        let mut unknown = None;
        for port in &group.ports {
            match self.at_port.get(port) {
                Some(&node) => nodes.push(node),
                None => unknown = Some(*port),
            }
        }
        if let Some(port) = unknown
            && self.complained.insert(group.mgid)
        {
            host.error(&format!(
                "group {}: port {port:#018x} is not in the map of this sweep and is left out until it is",
                text(&group.mgid)
            ));
        }
        let Some(map) = &self.map else { return };
        let switches: BTreeSet<NodeId> = nodes
            .iter()
            .copied()
            .filter(|&node| map.fabric.kind(node) == NodeKind::Switch)
            .collect();
        if switches.is_empty() {
            self.switch_members.remove(&mgid);
        } else {
            self.switch_members.insert(mgid, switches);
        }
        let at = group.mlid.checked_sub(FIRST_MLID).map(Colour);
        let Some(groups) = &mut self.groups else {
            return;
        };
        match groups.set(mgid, &nodes, at, group.fixed) {
            Ok(change) => self.apply(&change, why, host),
            Err(error) => {
                if self.complained.insert(group.mgid) {
                    host.error(&format!("group {}: {error}", text(&group.mgid)));
                }
            }
        }
    }

    fn apply(&mut self, change: &Change, why: Why, host: &impl Host) {
        self.changed |= !change.entries.is_empty();
        for entry in &change.entries {
            self.write(entry.switch, entry.colour);
        }
        for (mgid, colour) in &change.moved {
            if let Some(gid) = self.numbers.gid(*mgid) {
                host.move_group(gid, FIRST_MLID + colour.0);
                self.totals.moved += 1;
                self.moves.add(why);
            }
        }
    }

    /// How many changes of a group's MLID have not been told yet.
    pub(crate) fn moved(&self) -> u64 {
        self.moves.count()
    }

    /// Tells them; `asked` hosts were asked to join their groups again.
    pub(crate) fn tell_moves(&mut self, asked: u32, host: &impl Host) {
        let moves = std::mem::take(&mut self.moves);
        if moves.count() > 0 {
            host.info(&moves.text(asked));
        }
    }

    /// Compares an entry with what was sent and marks the blocks that differ. Of a block that was never sent all
    /// positions are: the switch may remember another manager's, or ours before it was started again.
    fn write(&mut self, switch: NodeId, colour: Colour) {
        let (Some(map), Some(groups)) = (&self.map, &self.groups) else {
            return;
        };
        let mut row = [0u16; POSITIONS];
        for &port in groups.entry(switch, colour) {
            let number = usize::from(map.number(port));
            row[number / POSITION_PORTS] |= 1 << (number % POSITION_PORTS);
        }
        if self.is_member(switch, colour) {
            row[0] |= 1;
        }
        let guid = map.guid(switch);
        let block = (colour.index() / BLOCK_MLIDS) as u16;
        let table = self.tables.entry((guid, block)).or_insert_with(|| {
            let all = positions(map, switch).map(|position| (block, position, guid));
            self.dirty.extend(all);
            Box::new([[0; POSITIONS]; BLOCK_MLIDS])
        });
        let known = &mut table[colour.index() % BLOCK_MLIDS];
        let before = std::mem::replace(known, row);
        self.totals.entries += u64::from(before != row);
        for (position, (old, new)) in (0u8..).zip(before.iter().zip(&row)) {
            if old != new {
                self.dirty.insert((block, position, guid));
            }
        }
    }

    /// Whether the switch itself (port 0) receives from an MLID.
    fn is_member(&self, switch: NodeId, colour: Colour) -> bool {
        self.switch_members.iter().any(|(&mgid, switches)| {
            switches.contains(&switch)
                && self
                    .groups
                    .as_ref()
                    .is_some_and(|groups| groups.colour(mgid) == Some(colour))
        })
    }

    /// Sends the blocks that changed, striped over the switches.
    pub(crate) fn flush(&mut self, host: &impl Host) {
        let Some(map) = &self.map else { return };
        self.totals.batches += 1;
        for (block, position, guid) in std::mem::take(&mut self.dirty) {
            // A switch that is not in the last sweep gets all its blocks when it is found again.
            let index = map
                .node(guid)
                .map_or(u32::MAX, |node| self.switch_index[node.index()]);
            if index == u32::MAX {
                continue;
            }
            let mut masks = [0; BLOCK_MLIDS];
            if let Some(table) = self.tables.get(&(guid, block)) {
                for (mask, row) in masks.iter_mut().zip(table.iter()) {
                    *mask = row[usize::from(position)];
                }
            }
            host.send(index, block, position, &masks);
            self.totals.blocks += 1;
        }
        self.report(host);
    }

    /// Reports the ports of an MLID, for OpenSM's own record.
    pub(crate) fn masks(&self, mlid: u16, host: &impl Host) {
        let (Some(map), Some(groups)) = (&self.map, &self.groups) else {
            return;
        };
        let Some(colour) = mlid.checked_sub(FIRST_MLID).map(Colour) else {
            return;
        };
        for (switch, ports) in groups.entries_of(colour) {
            let index = self.switch_index[switch.index()];
            if index == u32::MAX {
                continue;
            }
            if self.is_member(switch, colour) {
                host.mask(index, mlid, 0);
            }
            for &port in ports {
                host.mask(index, mlid, map.number(port));
            }
        }
    }

    fn report(&mut self, host: &impl Host) {
        let Some(groups) = &self.groups else { return };
        let path = &self.config.statistics;
        let many = groups.groups().count() > FEW_GROUPS;
        let soon = |at: Instant| at.elapsed() < Duration::from_secs(5);
        if path.as_os_str().is_empty() || (many && self.counted.is_some_and(soon)) {
            return;
        }
        self.counted = Some(Instant::now());
        let measures = groups.measures();
        let (now, last) = (self.totals, std::mem::replace(&mut self.last, self.totals));
        let mut page = String::from("{\n  \"schema\": 1");
        for (key, value) in [
            ("groups", measures.groups as u64),
            ("trees", measures.trees as u64),
            ("merged_groups", measures.merged_groups as u64),
            ("mlids", measures.mlids as u64),
            (
                "most_groups_on_a_switch",
                measures.most_groups_on_a_switch as u64,
            ),
            (
                "most_entries_of_a_switch",
                measures.most_entries_of_a_switch as u64,
            ),
            ("entries", measures.entries as u64),
            ("foreign_deliveries", measures.foreign_deliveries),
            ("unreached_members", measures.unreached_members as u64),
            ("displaced_groups", measures.displaced_groups as u64),
            ("pairs", measures.pairs as u64),
            (
                "pairs_on_a_common_link",
                measures.pairs_on_a_common_link as u64,
            ),
            ("sweeps", now.sweeps),
            ("batches", now.batches),
            ("entries_changed", now.entries),
            ("blocks_sent", now.blocks),
            ("groups_moved", now.moved),
            ("last_entries_changed", now.entries - last.entries),
            ("last_blocks_sent", now.blocks - last.blocks),
        ] {
            // Writing to a string cannot fail.
            let _ = write!(page, ",\n  \"{key}\": {value}");
        }
        page.push_str("\n}\n");
        if let Err(error) = replace(path, &page) {
            host.error(&format!(
                "{}: {error}; statistics are not written",
                path.display()
            ));
            self.config.statistics.clear();
        }
    }
}

/// The positions of a switch's multicast table that have ports.
fn positions(map: &Map, switch: NodeId) -> std::ops::RangeInclusive<u8> {
    let first = map.fabric.first_port(switch).0;
    let count = map.fabric.ports_of(switch).len() as u32;
    let numbers = (first..first + count).map(|port| map.number(PortId(port)));
    0..=numbers.max().unwrap_or(0) / POSITION_PORTS as u8
}

/// Writes a file whole or not at all.
fn replace(path: &Path, content: &str) -> std::io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, content)?;
    std::fs::rename(&part, path)
}

fn text(gid: &[u8; 16]) -> String {
    std::net::Ipv6Addr::from(*gid).to_string()
}
