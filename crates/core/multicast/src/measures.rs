//! What trees cost: EFI of links, TFI of trees, table entries.

use raddle_fabric::Fabric;
use raddle_units::LinkId;
use serde::Serialize;

use super::{MulticastTables, Tree};

/// A value and how often it occurs, by ascending value.
pub type Distribution = Vec<(u64, u64)>;

/// Measures of a set of trees (Chen et al., C-MR4LMS, definitions 5 and 6).
///
/// The two trees of a fault-tolerant pair count as one: they carry the same groups, and a group counts once on a link
/// that both use (those of its members). So groups are always trees and merges together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// Groups.
    pub groups: u64,
    /// Trees (pairs with fault tolerance) that are left after merging.
    pub trees_left: u64,
    /// Groups without a tree (a pair) of their own: groups minus trees.
    pub merges: u64,
    /// The largest EFI of a link. The EFI of a link is the number of groups whose tree uses it; every group of a merged
    /// tree counts.
    pub max_efi: u64,
    /// Mean EFI over the links that some tree uses; 0 without trees.
    pub mean_efi: f64,
    /// Links that some tree uses.
    pub used_links: u64,
    /// EFI and the links that have it, from EFI 1.
    pub efi_distribution: Distribution,
    /// The largest TFI of a tree: the groups that share it.
    pub max_tfi: u64,
    /// Mean TFI over the trees; 0 without trees.
    pub mean_tfi: f64,
    /// TFI and the trees that have it.
    pub tfi_distribution: Distribution,
    /// Most entries in use in one table (of an input port, or of a switch): the colours it needs.
    pub table_entries_max: u64,
    /// Table entries in use in all switches.
    pub table_entries: u64,
    /// Entries in use in a switch's fullest table, and the switches that have so many, from one entry.
    pub entries_distribution: Distribution,
    /// EFI by link.
    #[serde(skip)]
    pub efi: Vec<u32>,
}

impl Measures {
    /// Measures trees of a fabric, as [`super::MulticastEngine::trees`] orders them, and the tables that carry them
    /// ([`MulticastTables::of_trees`]). Time: links of the trees, and entries.
    pub fn of(fabric: &Fabric, trees: &[Tree], tables: &MulticastTables) -> Self {
        let mut efi = vec![0u32; fabric.links().len()];
        let mut tfis = Vec::new();
        let mut before: Option<&Tree> = None;
        for tree in trees {
            let first = before.filter(|first| tree.copy > 0 && first.groups == tree.groups);
            if first.is_none() {
                tfis.push(tree.groups.len() as u64);
            }
            for up in &tree.up {
                if first.is_none_or(|first| first.up.binary_search(up).is_err()) {
                    efi[fabric.port(up.port).link.index()] += tree.groups.len() as u32;
                }
            }
            before = Some(tree);
        }
        let mut table_entries = 0;
        let mut fullest = Vec::new();
        for &switch in fabric.switches() {
            let mut by_table = [0u64; 256];
            for entry in tables.entries(switch) {
                table_entries += 1;
                by_table[usize::from(entry.in_port.unwrap_or(0))] += 1;
            }
            fullest.extend(by_table.into_iter().max().filter(|&entries| entries > 0));
        }
        let used: Vec<u64> = efi.iter().map(|&n| n.into()).filter(|&n| n > 0).collect();
        let groups = tfis.iter().sum();
        let trees_left = tfis.len() as u64;
        Self {
            groups,
            trees_left,
            merges: groups - trees_left,
            max_efi: most(&used),
            mean_efi: mean(&used),
            used_links: used.len() as u64,
            efi_distribution: distribution(used),
            max_tfi: most(&tfis),
            mean_tfi: mean(&tfis),
            tfi_distribution: distribution(tfis),
            table_entries_max: most(&fullest),
            table_entries,
            entries_distribution: distribution(fullest),
            efi,
        }
    }

    /// EFI of a link.
    pub fn efi_of(&self, link: LinkId) -> u32 {
        self.efi[link.index()]
    }
}

fn most(values: &[u64]) -> u64 {
    values.iter().copied().max().unwrap_or(0)
}

fn mean(values: &[u64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

fn distribution(mut values: Vec<u64>) -> Distribution {
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as u64)).collect()
}
