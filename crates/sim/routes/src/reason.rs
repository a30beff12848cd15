//! Why groups share a tree, in words.

use std::collections::BTreeMap;

use raddle_multicast::Tree;
use raddle_units::LinkId;

use crate::resolve::Resolved;

/// Why the groups of a tree share it: the colour, and the lowest place where two of them meet.
///
/// `groups` are their numbers in the file's order. A tree's links lie on the way from a member to the root, so that a
/// link which two groups need is one above members of both.
pub(crate) fn of_merge(resolved: &Resolved, tree: &Tree, groups: &[u32]) -> String {
    let fabric = &resolved.fabric;
    let name = |group: u32| resolved.set.communicators[group as usize].name.as_str();
    let up: BTreeMap<_, _> = tree.up.iter().map(|up| (up.node, up.port)).collect();
    let mut first_on: BTreeMap<LinkId, u32> = BTreeMap::new();
    // The lowest link that two groups need: the fewest steps from a host.
    let mut met: Option<(usize, LinkId, [u32; 2])> = None;
    for &group in groups.iter().take(LOOKED_AT) {
        for &member in &resolved.groups[group as usize].members {
            let mut node = member;
            let mut steps = 0;
            while let Some(&port) = up.get(&node) {
                let link = fabric.port(port).link;
                let other = *first_on.entry(link).or_insert(group);
                if other != group && met.is_none_or(|(lowest, ..)| steps < lowest) {
                    met = Some((steps, link, [other, group]));
                }
                node = fabric.peer_node(port);
                steps += 1;
            }
        }
    }
    let colour = tree.colour.0;
    match met {
        Some((_, link, [a, b])) => {
            let [below, above] = fabric.link(link).ports.map(|port| fabric.port(port).node);
            format!(
                "{} and {} both need the link {} – {} with colour {colour}",
                name(a),
                name(b),
                fabric.node_name(below),
                fabric.node_name(above),
            )
        }
        None => format!("the groups meet in switches with colour {colour}"),
    }
}

/// Groups of a tree that are looked at for a reason.
const LOOKED_AT: usize = 64;
