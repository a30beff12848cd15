//! What trees cost: EFI of links, TFI of trees, table entries.

use raddle_fabric::Fabric;
use raddle_units::LinkId;
use serde::Serialize;

use super::{TableMode, Tree};

/// Measures of a set of trees (Chen et al., C-MR4LMS, definitions 5 and 6).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// Groups.
    pub groups: usize,
    /// Trees (pairs with fault tolerance) that are left after merging.
    pub trees_left: usize,
    /// Groups that share the tree of another one: groups minus trees.
    pub merges: usize,
    /// The largest EFI of a link. The EFI of a link is the number of groups whose tree uses it; every group of a merged
    /// tree counts.
    pub max_efi: u64,
    /// Mean EFI over the links that some tree uses; 0 without trees.
    pub mean_efi: f64,
    /// Links that some tree uses.
    pub used_links: usize,
    /// How many links have an EFI: pairs of EFI and links, ascending, from EFI 1.
    pub efi_distribution: Vec<(u64, usize)>,
    /// The largest TFI of a tree: the groups that share it.
    pub max_tfi: u64,
    /// Mean TFI over the trees; 0 without trees.
    pub mean_tfi: f64,
    /// How many trees have a TFI: pairs of TFI and trees, ascending.
    pub tfi_distribution: Vec<(u64, usize)>,
    /// Most entries in use in one table (of an input port, or of a switch): the colours it needs.
    pub table_entries_max: u32,
    /// Table entries in use in all switches.
    pub table_entries: u64,
    /// Table entries in use by switch, in the order of [`Fabric::switches`].
    #[serde(skip)]
    pub entries_by_switch: Vec<u32>,
    /// Table entries in use by colour, from colour 0 to the highest used.
    #[serde(skip)]
    pub entries_by_colour: Vec<u64>,
    /// EFI by link.
    #[serde(skip)]
    pub efi: Vec<u32>,
}

impl Measures {
    /// Measures trees of a fabric. Time: links of the trees.
    pub fn of(fabric: &Fabric, mode: TableMode, trees: &[Tree]) -> Self {
        let mut efi = vec![0u32; fabric.links().len()];
        let mut tables = vec![0u32; fabric.port_count()];
        let mut by_node = vec![0u32; fabric.node_count()];
        let mut entries_by_colour = Vec::new();
        let mut tfis = Vec::new();
        for tree in trees {
            if tree.copy == 0 {
                tfis.push(tree.groups.len() as u64);
            }
            let mut entries = 0;
            for up in &tree.up {
                let port = fabric.port(up.port);
                // Both trees of a pair use the same links of hosts, for one group.
                let again = tree.copy > 0 && fabric.is_host(up.node);
                if !again {
                    efi[port.link.index()] += tree.groups.len() as u32;
                    tables[port.peer.index()] += 1;
                    entries += 1;
                    by_node[fabric.port(port.peer).node.index()] += 1;
                }
                if !fabric.is_host(up.node) {
                    tables[up.port.index()] += 1;
                    entries += 1;
                    by_node[up.node.index()] += 1;
                }
            }
            let colour = tree.colour.index();
            if entries_by_colour.len() <= colour {
                entries_by_colour.resize(colour + 1, 0u64);
            }
            entries_by_colour[colour] += entries;
        }
        if mode == TableMode::PerSwitch {
            by_node.fill(0);
            entries_by_colour.fill(0);
            let mut pairs: Vec<_> = Vec::new();
            for tree in trees {
                let switches = tree.up.iter().map(|up| up.node);
                let switches = switches.filter(|node| !fabric.is_host(*node));
                pairs.extend(switches.chain([tree.root]).map(|s| (s, tree.colour)));
            }
            pairs.sort_unstable();
            pairs.dedup();
            for (switch, colour) in pairs {
                by_node[switch.index()] += 1;
                entries_by_colour[colour.index()] += 1;
            }
        }
        let fullest = match mode {
            TableMode::PerPort => tables.iter().max(),
            TableMode::PerSwitch => by_node.iter().max(),
        };
        let table_entries_max = fullest.copied().unwrap_or(0);
        let switches = fabric.switches().iter();
        let entries_by_switch: Vec<u32> = switches.map(|node| by_node[node.index()]).collect();
        let used: Vec<u64> = efi.iter().map(|&n| n.into()).filter(|&n| n > 0).collect();
        let groups = tfis.iter().sum::<u64>() as usize;
        Self {
            groups,
            trees_left: tfis.len(),
            merges: groups - tfis.len(),
            max_efi: used.iter().copied().max().unwrap_or(0),
            mean_efi: mean(&used),
            used_links: used.len(),
            efi_distribution: distribution(used),
            max_tfi: tfis.iter().copied().max().unwrap_or(0),
            mean_tfi: mean(&tfis),
            tfi_distribution: distribution(tfis),
            table_entries_max,
            table_entries: entries_by_switch.iter().map(|&n| u64::from(n)).sum(),
            entries_by_switch,
            entries_by_colour,
            efi,
        }
    }

    /// EFI of a link.
    pub fn efi_of(&self, link: LinkId) -> u32 {
        self.efi[link.index()]
    }
}

fn mean(values: &[u64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

fn distribution(mut values: Vec<u64>) -> Vec<(u64, usize)> {
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len())).collect()
}
