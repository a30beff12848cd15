//! What the switches read: for a colour (and an input port) the output ports.

use raddle_fabric::Fabric;
use raddle_units::NodeId;

use super::{Branch, Colour, PortSet, TableMode, TableWrite, Tree};

/// The multicast tables of all switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MulticastTables {
    mode: TableMode,
    /// Per node: its entries by (colour, input port), ascending; port 0 stands for all ports. None is empty.
    rows: Vec<Vec<Entry>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    colour: Colour,
    in_port: u8,
    out_ports: PortSet,
}

impl MulticastTables {
    /// Empty tables for a fabric.
    pub fn new(fabric: &Fabric, mode: TableMode) -> Self {
        Self {
            mode,
            rows: vec![Vec::new(); fabric.node_count()],
        }
    }

    /// The tables that carry these trees.
    pub fn of_trees(fabric: &Fabric, mode: TableMode, trees: &[Tree]) -> Self {
        let mut tables = Self::new(fabric, mode);
        for branch in trees.iter().flat_map(|tree| tree.branches(fabric)) {
            for write in branch.writes(mode).filter(|w| !w.out_ports.is_empty()) {
                tables.rows[write.switch.index()].push(Entry {
                    colour: write.colour,
                    in_port: write.in_port.unwrap_or(0),
                    out_ports: write.out_ports,
                });
            }
        }
        for row in &mut tables.rows {
            row.sort_by_key(|entry| (entry.colour, entry.in_port));
            // Both trees of a fault-tolerant pair start at one port: its copies go both ways.
            row.dedup_by(|next, kept| {
                let same = (next.colour, next.in_port) == (kept.colour, kept.in_port);
                if same {
                    kept.out_ports = kept.out_ports.union(&next.out_ports);
                }
                same
            });
        }
        tables
    }

    /// One table per input port or per switch.
    pub fn mode(&self) -> TableMode {
        self.mode
    }

    /// Writes one entry. An entry of the other table mode or of a node that is not there is ignored.
    pub fn write(&mut self, write: &TableWrite) {
        let Some(row) = self.rows.get_mut(write.switch.index()) else {
            return;
        };
        let in_port = match (self.mode, write.in_port) {
            (TableMode::PerPort, Some(port)) => port,
            (TableMode::PerSwitch, None) => 0,
            _ => return,
        };
        let at = (write.colour, in_port);
        match row.binary_search_by_key(&at, |entry| (entry.colour, entry.in_port)) {
            Ok(index) if write.out_ports.is_empty() => {
                row.remove(index);
            }
            Ok(index) => row[index].out_ports = write.out_ports,
            Err(_) if write.out_ports.is_empty() => {}
            Err(index) => row.insert(
                index,
                Entry {
                    colour: write.colour,
                    in_port,
                    out_ports: write.out_ports,
                },
            ),
        }
    }

    /// Writes all entries of branches, in order.
    pub fn apply(&mut self, branches: &[Branch]) {
        let mode = self.mode;
        for write in branches.iter().flat_map(|branch| branch.writes(mode)) {
            self.write(&write);
        }
    }

    /// Where a packet of a colour that comes in by a port leaves; never the port by which it came.
    #[inline]
    pub fn out_ports(&self, switch: NodeId, in_port: u8, colour: Colour) -> PortSet {
        let Some(row) = self.rows.get(switch.index()) else {
            return PortSet::EMPTY;
        };
        let port = match self.mode {
            TableMode::PerPort => in_port,
            TableMode::PerSwitch => 0,
        };
        match row.binary_search_by_key(&(colour, port), |entry| (entry.colour, entry.in_port)) {
            Ok(index) => row[index].out_ports.without(in_port),
            Err(_) => PortSet::EMPTY,
        }
    }

    /// The entries of a switch by colour and input port, those that are not empty.
    pub fn entries(&self, switch: NodeId) -> impl Iterator<Item = TableWrite> + '_ {
        let per_port = self.mode == TableMode::PerPort;
        let row = self.rows.get(switch.index()).into_iter().flatten();
        row.map(move |entry| TableWrite {
            switch,
            in_port: per_port.then_some(entry.in_port),
            colour: entry.colour,
            out_ports: entry.out_ports,
        })
    }

    /// The output ports of the entry at the place of another one.
    fn entry(&self, at: &TableWrite) -> Option<PortSet> {
        let row = self.rows.get(at.switch.index())?;
        let key = (at.colour, at.in_port.unwrap_or(0));
        let index = row.binary_search_by_key(&key, |entry| (entry.colour, entry.in_port));
        index.ok().map(|index| row[index].out_ports)
    }

    /// The writes that lead from other tables of the same fabric and mode to these, by switch; what is cleared comes
    /// first.
    pub fn writes_since(&self, before: &Self) -> Vec<TableWrite> {
        let mut writes = Vec::new();
        let nodes = || (0..).map(NodeId).take(self.rows.len());
        for switch in nodes() {
            let gone = before
                .entries(switch)
                .filter(|old| self.entry(old).is_none());
            writes.extend(gone.map(|old| TableWrite {
                out_ports: PortSet::EMPTY,
                ..old
            }));
        }
        for switch in nodes() {
            writes.extend(
                self.entries(switch)
                    .filter(|new| before.entry(new) != Some(new.out_ports)),
            );
        }
        writes
    }
}
