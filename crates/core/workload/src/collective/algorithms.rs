//! Who sends to whom: algorithms as Open MPI 4.0 has them (`coll/base`, `coll/tuned` with its fixed decisions).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Script, even_parts};

/// Below so many ranks Open MPI's fixed decision for Reduce of less than 512 bytes is the linear algorithm, else the binomial
/// tree (`ompi_coll_tuned_reduce_intra_dec_fixed`).
const LINEAR_BELOW: u32 = 8;

/// Allreduce by recursive doubling: what Open MPI 4.0 does with less than 10,000 bytes.
///
/// With `ranks` = 2^k + r the first 2r ranks meet in pairs before and after; then rank i exchanges with i xor 1, 2, 4, ...
pub fn allreduce_recursive_doubling(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    if ranks < 2 {
        return script;
    }
    let full = 1 << ranks.ilog2();
    let extra = ranks - full;
    for pair in 0..extra {
        script.transfer(2 * pair, 2 * pair + 1, bytes);
    }
    let real = |virtual_rank: u32| {
        if virtual_rank < extra {
            2 * virtual_rank + 1
        } else {
            virtual_rank + extra
        }
    };
    let mut mask = 1;
    while mask < full {
        for one in (0..full).filter(|one| one & mask == 0) {
            script.exchange(real(one), real(one ^ mask), bytes);
        }
        mask <<= 1;
    }
    for pair in 0..extra {
        script.transfer(2 * pair + 1, 2 * pair, bytes);
    }
    script
}

/// Barrier by dissemination (Bruck): in step k rank i sends to i + 2^k and hears from i - 2^k; for any number of ranks.
pub fn barrier_dissemination(ranks: u32) -> Script {
    let mut script = Script::new(ranks);
    let mut distance = 1;
    while distance < ranks {
        for rank in 0..ranks {
            let to = (rank + distance) % ranks;
            script.ranks[rank as usize].push(super::Action::Send { to, bytes: 0 });
        }
        for rank in 0..ranks {
            let from = (rank + ranks - distance) % ranks;
            script.ranks[rank as usize].push(super::Action::Receive { from });
        }
        distance <<= 1;
    }
    script
}

/// Barrier as Open MPI 4.0 decides (`ompi_coll_tuned_barrier_intra_dec_fixed`): powers of two by recursive doubling, others by
/// dissemination.
pub fn barrier(ranks: u32) -> Script {
    if ranks.is_power_of_two() {
        allreduce_recursive_doubling(ranks, 0)
    } else {
        barrier_dissemination(ranks)
    }
}

/// How a host's ranks reduce to their leader and hear from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaderTree {
    /// Reduce as Open MPI decides; broadcast by the binary tree that the text of Li et al. (2022) names.
    #[default]
    Text,
    /// Both binomial, as in the library that they published.
    Library,
}

/// Allreduce through switches that compute: every host's ranks in `leaders_per_host` parts, each reduced to its first rank,
/// the leader; one round of the network among the leaders; each leader's part gets the result by a tree
/// (Li et al. 2022, 3.4 and 3.5: Node mode has a leader per host, Socket mode one per socket). Members are numbered in order of
/// their ranks.
pub fn allreduce_offloaded(
    hosts: u32,
    ranks_per_host: u32,
    leaders_per_host: u32,
    tree: LeaderTree,
    bytes: u64,
) -> Script {
    let mut script = Script::new(hosts * ranks_per_host);
    let mut member = 0;
    for host in 0..hosts {
        let first = host * ranks_per_host;
        for part in even_parts(ranks_per_host, leaders_per_host.max(1)) {
            let part = first + part.start..first + part.end;
            if part.is_empty() {
                continue;
            }
            match tree {
                LeaderTree::Text => reduce(&mut script, part.clone(), bytes),
                LeaderTree::Library => reduce_binomial(&mut script, part.clone(), bytes),
            }
            script.offload(part.start, member, bytes);
            match tree {
                LeaderTree::Text => broadcast_binary(&mut script, part, bytes),
                LeaderTree::Library => broadcast_binomial(&mut script, part, bytes),
            }
            member += 1;
        }
    }
    script
}

/// Reduce to the first rank of `part`.
pub(super) fn reduce(script: &mut Script, part: Range<u32>, bytes: u64) {
    let count = part.end - part.start;
    if count < LINEAR_BELOW {
        // The root takes them from the last rank on (`ompi_coll_base_reduce_intra_basic_linear`).
        for rank in (part.start + 1..part.end).rev() {
            script.transfer(rank, part.start, bytes);
        }
        return;
    }
    reduce_binomial(script, part, bytes);
}

fn reduce_binomial(script: &mut Script, part: Range<u32>, bytes: u64) {
    let count = part.end - part.start;
    let mut mask = 1;
    while mask < count {
        for place in (0..count - mask).step_by(2 * mask as usize) {
            let to = part.start + place;
            script.transfer(to + mask, to, bytes);
        }
        mask <<= 1;
    }
}

/// Broadcast from the first rank of `part` by a binomial tree: 2^k ranks have it after k steps, those of the largest subtrees
/// first.
pub(super) fn broadcast_binomial(script: &mut Script, part: Range<u32>, bytes: u64) {
    let count = part.end - part.start;
    let mut mask = count.next_power_of_two() / 2;
    while mask > 0 {
        for place in (0..count.saturating_sub(mask)).step_by(2 * mask as usize) {
            let from = part.start + place;
            script.transfer(from, from + mask, bytes);
        }
        mask /= 2;
    }
}

/// Broadcast from the first rank of `part` by a binary tree: level k has 2^k ranks, place p's parent is (p - 1) / 2 in the order
/// of levels. The paper names this tree for its broadcasts within a host.
fn broadcast_binary(script: &mut Script, part: Range<u32>, bytes: u64) {
    let count = part.end - part.start;
    for place in 1..count {
        let parent = (place - 1) / 2;
        script.transfer(part.start + parent, part.start + place, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Action;

    /// Runs a script on sets of ranks: a send carries what the sender has, a receive adds it; offload gives everybody all that
    /// members brought. Panics where ranks wait for ever.
    fn contributions(script: &Script) -> Vec<Vec<u32>> {
        let size = script.size() as usize;
        let mut have: Vec<Vec<u32>> = (0..script.size()).map(|rank| vec![rank]).collect();
        let mut at = vec![0; size];
        let mut mail: std::collections::BTreeMap<(u32, u32), std::collections::VecDeque<Vec<u32>>> =
            std::collections::BTreeMap::new();
        let mut brought: Vec<Option<Vec<u32>>> = vec![None; size];
        let members = (0..script.size())
            .flat_map(|rank| script.rank(rank))
            .filter(|action| matches!(action, Action::Offload { .. }))
            .count();
        loop {
            let mut moved = false;
            for rank in 0..script.size() {
                let place = rank as usize;
                while let Some(&action) = script.rank(rank).get(at[place]) {
                    match action {
                        Action::Send { to, .. } => {
                            let value = have[place].clone();
                            mail.entry((rank, to)).or_default().push_back(value);
                        }
                        Action::Receive { from } => {
                            let Some(value) = mail
                                .get_mut(&(from, rank))
                                .and_then(|queue| queue.pop_front())
                            else {
                                break;
                            };
                            have[place].extend(value);
                            have[place].sort_unstable();
                            have[place].dedup();
                        }
                        Action::Offload { member, .. } => {
                            brought[member as usize].get_or_insert_with(|| have[place].clone());
                            if brought.iter().flatten().count() < members {
                                break;
                            }
                            have[place] = brought.iter().flatten().flatten().copied().collect();
                            have[place].sort_unstable();
                        }
                    }
                    at[place] += 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for rank in 0..script.size() {
            assert_eq!(
                at[rank as usize],
                script.rank(rank).len(),
                "rank {rank} waits"
            );
        }
        assert!(
            mail.values().all(|queue| queue.is_empty()),
            "all is received"
        );
        have
    }

    #[test]
    fn everybody_has_everybodys_value() {
        for ranks in 1..70 {
            let all: Vec<u32> = (0..ranks).collect();
            for script in [
                allreduce_recursive_doubling(ranks, 8),
                barrier_dissemination(ranks),
                barrier(ranks),
            ] {
                assert!(contributions(&script).iter().all(|have| *have == all));
            }
        }
        for (hosts, per_host) in [(1, 1), (4, 8), (9, 8), (16, 32), (3, 7), (2, 3)] {
            for (leaders, tree) in (1..4).flat_map(|leaders| {
                [LeaderTree::Text, LeaderTree::Library].map(|tree| (leaders, tree))
            }) {
                let all: Vec<u32> = (0..hosts * per_host).collect();
                let script = allreduce_offloaded(hosts, per_host, leaders, tree, 8);
                assert!(
                    contributions(&script).iter().all(|have| *have == all),
                    "{hosts} hosts of {per_host} ranks, {leaders} leaders, {tree:?}"
                );
            }
        }
    }

    /// What ranks know at the end follows from what the collective is.
    #[test]
    fn every_rank_ends_with_what_its_collective_gives() {
        use crate::collective::{
            allgather_ring, allreduce_ring, alltoall_pairwise, bcast_binomial, gather_linear,
            reduce as reduce_all, scan_linear, scatter_linear,
        };
        for ranks in 1..=20 {
            let all: Vec<u32> = (0..ranks).collect();
            for script in [
                allgather_ring(ranks, 8),
                alltoall_pairwise(ranks, 8),
                allreduce_ring(ranks, 80_000),
            ] {
                assert!(contributions(&script).iter().all(|have| *have == all));
            }
            for script in [gather_linear(ranks, 8), reduce_all(ranks, 8)] {
                assert_eq!(contributions(&script)[0], all);
            }
            for script in [bcast_binomial(ranks, 8), scatter_linear(ranks, 8)] {
                let have = contributions(&script);
                assert!(have.iter().all(|have| have.contains(&0)), "{ranks}");
                let sends = (0..ranks).flat_map(|rank| script.rank(rank));
                let sends = sends.filter(|action| matches!(action, Action::Send { .. }));
                assert_eq!(sends.count() as u32, ranks - 1);
            }
            for (rank, have) in (0..).zip(contributions(&scan_linear(ranks, 8))) {
                assert_eq!(have, (0..=rank).collect::<Vec<u32>>());
            }
        }
    }

    /// 2^k ranks: k messages each; 2^k + r: the first r pairs two more in all (Thakur et al. 2005, 4.1).
    #[test]
    fn recursive_doubling_has_its_number_of_messages() {
        for (ranks, messages) in [(8, 24), (64, 384), (72, 64 * 6 + 16), (576, 512 * 9 + 128)] {
            let script = allreduce_recursive_doubling(ranks, 8);
            let sends = (0..ranks)
                .flat_map(|rank| script.rank(rank))
                .filter(|action| matches!(action, Action::Send { .. }))
                .count();
            assert_eq!(sends, messages);
        }
    }
}
