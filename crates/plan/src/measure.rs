//! Figures of an engine's trees.

use std::collections::BTreeMap;

use raddle_fabric::Fabric;
use raddle_routing::multicast::{MulticastTables, TableMode, Tree};
use serde::Serialize;

/// A value and how often it occurs.
pub(crate) type Distribution = Vec<(u64, u64)>;

/// EFI, TFI and table entries of an engine's trees.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// Largest EFI of a link: groups whose tree uses it, those of merged trees counted each.
    pub(crate) max_efi: u64,
    /// Mean over used links.
    pub(crate) mean_efi: f64,
    /// Most groups on a tree.
    pub(crate) max_tfi: u64,
    /// Mean over trees.
    pub(crate) mean_tfi: f64,
    /// Trees after merging; with fault tolerance both of a pair.
    pub(crate) trees_left: u64,
    /// Groups that lost a tree of their own to merging.
    pub(crate) merges: u64,
    /// Entries in the fullest table of a switch port or switch.
    pub(crate) table_entries_max: u64,
    /// (EFI, links with it), used links only.
    pub(crate) efi_distribution: Distribution,
    /// (TFI, trees with it).
    pub(crate) tfi_distribution: Distribution,
    /// (entries in a switch's fullest table, switches with so many), switches with entries only.
    pub(crate) entries_distribution: Distribution,
}

/// EFI of every link, by link number.
pub(crate) fn efi_of_links(fabric: &Fabric, trees: &[Tree]) -> Vec<u32> {
    let mut efi = vec![0; fabric.links().len()];
    for tree in trees {
        for link in tree.links(fabric) {
            efi[link.index()] += tree.groups.len() as u32;
        }
    }
    efi
}

/// The figures of trees, whose EFI and tables are given.
pub(crate) fn figures(
    fabric: &Fabric,
    trees: &[Tree],
    efi: &[u32],
    tables: &MulticastTables,
) -> Figures {
    let used = || {
        efi.iter()
            .filter(|&&efi| efi > 0)
            .map(|&efi| u64::from(efi))
    };
    let tfi = || trees.iter().map(|tree| tree.groups.len() as u64);
    // The second tree of a pair is the same groups' again.
    let first = || trees.iter().filter(|tree| tree.copy == 0);
    let fullest: Vec<u64> = fabric
        .switches()
        .iter()
        .map(|&switch| fullest_table(tables, switch))
        .filter(|&entries| entries > 0)
        .collect();
    Figures {
        max_efi: used().max().unwrap_or(0),
        mean_efi: mean(used()),
        max_tfi: tfi().max().unwrap_or(0),
        mean_tfi: mean(tfi()),
        trees_left: trees.len() as u64,
        merges: first().map(|tree| tree.groups.len() as u64 - 1).sum(),
        table_entries_max: fullest.iter().copied().max().unwrap_or(0),
        efi_distribution: distribution(used()),
        tfi_distribution: distribution(tfi()),
        entries_distribution: distribution(fullest.into_iter()),
    }
}

/// Entries of a switch's table, or of its fullest port.
fn fullest_table(tables: &MulticastTables, switch: raddle_units::NodeId) -> u64 {
    let mut per_port: BTreeMap<Option<u8>, u64> = BTreeMap::new();
    for entry in tables.entries(switch) {
        *per_port.entry(entry.in_port).or_default() += 1;
    }
    debug_assert!(tables.mode() == TableMode::PerPort || per_port.len() <= 1);
    per_port.into_values().max().unwrap_or(0)
}

fn mean(values: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = values.fold((0u64, 0u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        0.0
    } else {
        sum as f64 / count as f64
    }
}

fn distribution(values: impl Iterator<Item = u64>) -> Distribution {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}
