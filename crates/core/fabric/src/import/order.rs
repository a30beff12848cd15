//! The order in which links are added: it gives ports their numbers.

use std::{cmp::Reverse, collections::BinaryHeap};

use raddle_units::NodeId;

/// Cables between the same two nodes together, in an order in which every node's ports ascend where there is one.
///
/// `ends` are the node and port number of both ends. The result has indexes into `ends`.
pub(super) fn bundles(ends: &[[(NodeId, u16); 2]], nodes: usize) -> Vec<Vec<usize>> {
    let pair = |index: usize| {
        let [(a, _), (b, _)] = ends[index];
        (a.min(b), a.max(b))
    };
    let port_at = |index: usize, node: NodeId| {
        let [(a, first), (_, second)] = ends[index];
        if a == node { first } else { second }
    };
    let mut sorted: Vec<usize> = (0..ends.len()).collect();
    sorted.sort_by_key(|&index| (pair(index), port_at(index, pair(index).0)));
    let bundles: Vec<Vec<usize>> = (sorted.chunk_by(|&a, &b| pair(a) == pair(b)))
        .map(<[usize]>::to_vec)
        .collect();

    let mut at_node: Vec<Vec<(u16, usize)>> = vec![Vec::new(); nodes];
    for (index, bundle) in bundles.iter().enumerate() {
        let (a, b) = pair(bundle[0]);
        for node in [a, b] {
            let first = bundle.iter().map(|&cable| port_at(cable, node)).min();
            at_node[node.index()].push((first.unwrap_or(0), index));
        }
    }
    for list in &mut at_node {
        list.sort_unstable();
        list.reverse();
    }
    // A bundle can come when it is the next one at both of its nodes.
    let mut done = vec![false; bundles.len()];
    let mut next_at = vec![0u8; bundles.len()];
    let mut ready: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut order = Vec::with_capacity(bundles.len());
    let advance = |list: &mut Vec<(u16, usize)>,
                   done: &[bool],
                   next_at: &mut [u8],
                   ready: &mut BinaryHeap<Reverse<usize>>| {
        while list.last().is_some_and(|&(_, bundle)| done[bundle]) {
            list.pop();
        }
        if let Some(&(_, bundle)) = list.last() {
            next_at[bundle] += 1;
            if next_at[bundle] == 2 {
                ready.push(Reverse(bundle));
            }
        }
    };
    for list in &mut at_node {
        advance(list, &done, &mut next_at, &mut ready);
    }
    let mut oldest = 0;
    while order.len() < bundles.len() {
        let bundle = if let Some(Reverse(bundle)) = ready.pop() {
            bundle
        } else {
            // The port numbers contradict each other: take the first that is left.
            while done[oldest] {
                oldest += 1;
            }
            oldest
        };
        if done[bundle] {
            continue;
        }
        done[bundle] = true;
        order.push(bundle);
        let (a, b) = pair(bundles[bundle][0]);
        for node in [a, b] {
            let list = &mut at_node[node.index()];
            if list.last().is_some_and(|&(_, last)| last == bundle) {
                advance(list, &done, &mut next_at, &mut ready);
            }
        }
    }
    order
        .into_iter()
        .map(|bundle| bundles[bundle].clone())
        .collect()
}
