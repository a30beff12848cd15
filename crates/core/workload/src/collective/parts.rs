//! Collectives whose messages carry parts of the operand: rings, chains, doubling and two trees.
//!
//! What is made first is a [`Recipe`], which also says which part a message carries and whether its receiver combines it
//! with its own. Tests hold it against what the collective is; a [`Script`] is the same without that.

use super::{Action, Script};

/// An operand is cut for a pipeline into chunks of at least so many bytes (up to [`MOST_CHUNKS`] of them).
const CHUNK_BYTES: u64 = 128 << 10;

/// Chunks of a pipeline at most: from 32 MiB on chunks grow instead.
const MOST_CHUNKS: u64 = 256;

/// After how many chunks a rank of two trees counts on what a neighbour does with the first. Messages that leave a network
/// card at once share it, so that with 1 ranks wait for each other; more fill the pipeline later.
const HOP_SLOTS: u32 = 2;

/// What a rank does with a part of the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Send { to: u32, part: u32 },
    Receive { from: u32, part: u32, combine: bool },
}

/// The steps of every rank, in order.
#[derive(Debug)]
struct Recipe {
    ranks: Vec<Vec<Step>>,
    part_bytes: u64,
}

impl Recipe {
    fn new(ranks: u32, part_bytes: u64) -> Self {
        Self {
            ranks: vec![Vec::new(); ranks as usize],
            part_bytes,
        }
    }

    fn send(&mut self, from: u32, to: u32, part: u32) {
        self.ranks[from as usize].push(Step::Send { to, part });
    }

    fn receive(&mut self, to: u32, from: u32, part: u32, combine: bool) {
        let step = Step::Receive {
            from,
            part,
            combine,
        };
        self.ranks[to as usize].push(step);
    }

    fn script(self) -> Script {
        let bytes = self.part_bytes;
        let action = |step| match step {
            Step::Send { to, .. } => Action::Send { to, bytes },
            Step::Receive { from, .. } => Action::Receive { from },
        };
        let ranks = self.ranks.into_iter();
        Script {
            ranks: ranks
                .map(|steps| steps.into_iter().map(action).collect())
                .collect(),
        }
    }
}

/// Allreduce in a ring (Patarasuk and Yuan 2009): p - 1 steps of a reduce-scatter and p - 1 of an allgather. In each step
/// every rank sends one of p parts of the operand to the next rank.
pub fn allreduce_ring_both(ranks: u32, bytes: u64) -> Script {
    ring(ranks, bytes).script()
}

fn ring(ranks: u32, bytes: u64) -> Recipe {
    let mut recipe = Recipe::new(ranks, bytes.div_ceil(u64::from(ranks.max(1))));
    for step in 0..2 * ranks.saturating_sub(1) {
        // Rank i sends part i first, then what it has just received.
        let part = |rank: u32| (rank + 2 * ranks - step) % ranks;
        for rank in 0..ranks {
            let before = (rank + ranks - 1) % ranks;
            recipe.send(rank, (rank + 1) % ranks, part(rank));
            recipe.receive(rank, before, part(before), step < ranks - 1);
        }
    }
    recipe
}

/// Allreduce by two binary trees (Sanders, Speck and Träff 2009; NCCL's "double binary tree"). Each tree reduces half of the
/// operand to its root and hands the result down again, in chunks that follow each other. Whoever has children in one tree
/// has none in the other, so every rank sends and receives about twice the operand.
///
/// A rank's sends must not keep it until they are delivered, or chunks do not overlap.
pub fn allreduce_double_tree(ranks: u32, bytes: u64) -> Script {
    double_tree(ranks, bytes).script()
}

fn double_tree(ranks: u32, bytes: u64) -> Recipe {
    let half = bytes.div_ceil(2);
    let chunks = chunks(half);
    let mut recipe = Recipe::new(ranks, half.div_ceil(chunks));
    if ranks < 2 {
        return recipe;
    }
    let trees = [Tree::first(ranks), Tree::second(ranks)];
    let slots = trees.iter().map(|tree| tree.height[tree.root as usize]);
    let root_slot = slots.max().unwrap_or(0);
    for rank in 0..ranks {
        // A rank takes part in many chunks at once. It does first what can be done first: chunk s goes up from height h in
        // slot s + 2 h, and down from depth d in slot s + 2 d after the root's.
        let mut todo = Vec::new();
        for chunk in 0..chunks as u32 {
            for (tree, own) in (0..).zip(&trees) {
                let (height, depth) = (own.height[rank as usize], own.depth(rank));
                todo.push((chunk + HOP_SLOTS * height, false, tree, chunk));
                todo.push((chunk + HOP_SLOTS * (root_slot + depth), true, tree, chunk));
            }
        }
        todo.sort_unstable();
        for (_, down, tree, chunk) in todo {
            let own = &trees[tree as usize];
            let (children, parent) = (&own.children[rank as usize], own.parent[rank as usize]);
            let part = 2 * chunk + tree;
            if down {
                if let Some(parent) = parent {
                    recipe.receive(rank, parent, part, false);
                }
                for &child in children {
                    recipe.send(rank, child, part);
                }
            } else {
                for &child in children {
                    recipe.receive(rank, child, part, true);
                }
                if let Some(parent) = parent {
                    recipe.send(rank, parent, part);
                }
            }
        }
    }
    recipe
}

/// A tree of all ranks.
#[derive(Debug)]
struct Tree {
    root: u32,
    parent: Vec<Option<u32>>,
    children: Vec<Vec<u32>>,
    /// Steps from a rank down to its farthest descendant.
    height: Vec<u32>,
}

impl Tree {
    /// NCCL's `ncclGetBtree`: rank 0 above a binary tree in order, whose leaves are the odd ranks.
    fn first(ranks: u32) -> Self {
        Self::of(ranks, |rank| rank)
    }

    /// The same with other names (NCCL's `ncclGetDtree`): mirrored where the number of ranks is even, else shifted by one.
    fn second(ranks: u32) -> Self {
        Self::of(ranks, |rank| {
            if ranks.is_multiple_of(2) {
                ranks - 1 - rank
            } else {
                (rank + 1) % ranks
            }
        })
    }

    fn of(ranks: u32, name: impl Fn(u32) -> u32) -> Self {
        let size = ranks as usize;
        let mut tree = Self {
            root: name(0),
            parent: vec![None; size],
            children: vec![Vec::new(); size],
            height: vec![0; size],
        };
        for place in 1..ranks {
            let bit = 1 << place.trailing_zeros();
            // The parent of x10..0 is (x with its last bit cleared, then 1)0..0, or the other side where that is too large.
            let up = (place ^ bit) | (bit << 1);
            let up = if up >= ranks { place ^ bit } else { up };
            tree.parent[name(place) as usize] = Some(name(up));
            tree.children[name(up) as usize].push(name(place));
        }
        // Ranks with lower bits are below; the root is 0.
        let mut places: Vec<u32> = (1..ranks).collect();
        places.sort_by_key(|place| place.trailing_zeros());
        for place in places {
            let own = name(place);
            if let Some(parent) = tree.parent[own as usize] {
                let height = tree.height[own as usize] + 1;
                let above = &mut tree.height[parent as usize];
                *above = height.max(*above);
            }
        }
        tree
    }

    fn depth(&self, rank: u32) -> u32 {
        let above = |&rank: &u32| self.parent[rank as usize];
        std::iter::successors(Some(rank), above).count() as u32 - 1
    }
}

/// Into how many chunks a pipeline cuts `bytes`.
fn chunks(bytes: u64) -> u64 {
    bytes.div_ceil(CHUNK_BYTES).clamp(1, MOST_CHUNKS)
}

/// Broadcast along a chain of all ranks: chunks of the operand follow each other from rank to rank.
///
/// A rank's sends must not keep it until they are delivered, or chunks do not overlap.
pub fn bcast_chain(ranks: u32, bytes: u64) -> Script {
    chain(ranks, bytes).script()
}

fn chain(ranks: u32, bytes: u64) -> Recipe {
    let chunks = chunks(bytes);
    let mut recipe = Recipe::new(ranks, bytes.div_ceil(chunks));
    for chunk in 0..chunks as u32 {
        for rank in 0..ranks {
            if rank > 0 {
                recipe.receive(rank, rank - 1, chunk, false);
            }
            if rank + 1 < ranks {
                recipe.send(rank, rank + 1, chunk);
            }
        }
    }
    recipe
}

/// Allreduce as a Reduce to rank 0 and a Bcast from it.
pub fn allreduce_reduce_bcast(ranks: u32, bytes: u64) -> Script {
    super::reduce(ranks, bytes).then(super::bcast_binomial(ranks, bytes))
}

/// Allgather by doubling: after k steps a rank has the shares of 2^k ranks. Powers of two exchange with rank i xor 2^k
/// (recursive doubling), other numbers hand to the rank 2^k before (Bruck et al. 1997; Thakur et al. 2005, 3.1).
pub fn allgather_recursive_doubling(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    let mut have = 1;
    while have < ranks {
        let shares = have.min(ranks - have);
        for rank in 0..ranks {
            let (to, from) = if ranks.is_power_of_two() {
                (rank ^ have, rank ^ have)
            } else {
                ((rank + ranks - have) % ranks, (rank + have) % ranks)
            };
            let bytes = bytes * u64::from(shares);
            script.ranks[rank as usize].push(Action::Send { to, bytes });
            script.ranks[rank as usize].push(Action::Receive { from });
        }
        have *= 2;
    }
    script
}

/// Alltoall at once: rank i sends `bytes`, a block, to i + 1, i + 2, ..., then receives from i - 1, i - 2, ... (Open MPI's
/// `coll/basic` linear algorithm).
pub fn alltoall_linear(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for rank in 0..ranks {
        let own = &mut script.ranks[rank as usize];
        let sends = (1..ranks).map(|step| Action::Send {
            to: (rank + step) % ranks,
            bytes,
        });
        own.extend(sends);
        own.extend((1..ranks).map(|step| Action::Receive {
            from: (rank + ranks - step) % ranks,
        }));
    }
    script
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    /// How often each rank's contribution is in a part.
    type Value = Vec<u32>;

    /// Runs a recipe on sums of contributions; who has each part at the end. Panics where ranks wait for ever, or a message
    /// brings another part than its receiver expects.
    fn run(recipe: &Recipe, parts: u32, has: impl Fn(u32, u32) -> Value) -> Vec<Vec<Value>> {
        let ranks = recipe.ranks.len() as u32;
        let mut values: Vec<Vec<Value>> = (0..ranks)
            .map(|rank| (0..parts).map(|part| has(rank, part)).collect())
            .collect();
        let mut at = vec![0; ranks as usize];
        let mut mail: BTreeMap<(u32, u32), VecDeque<(u32, Value)>> = BTreeMap::new();
        loop {
            let mut moved = false;
            for rank in 0..ranks {
                let own = rank as usize;
                while let Some(&step) = recipe.ranks[own].get(at[own]) {
                    match step {
                        Step::Send { to, part } => {
                            let value = values[own][part as usize].clone();
                            mail.entry((rank, to)).or_default().push_back((part, value));
                        }
                        Step::Receive {
                            from,
                            part,
                            combine,
                        } => {
                            let waiting = mail.get_mut(&(from, rank));
                            let Some((sent, value)) = waiting.and_then(VecDeque::pop_front) else {
                                break;
                            };
                            assert_eq!(sent, part, "from {from} to {rank}");
                            let have = &mut values[own][part as usize];
                            if combine {
                                have.iter_mut()
                                    .zip(value)
                                    .for_each(|(have, more)| *have += more);
                            } else {
                                *have = value;
                            }
                        }
                    }
                    at[own] += 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for (steps, at) in recipe.ranks.iter().zip(at) {
            assert_eq!(steps.len(), at, "a rank waits for ever");
        }
        assert!(mail.values().all(VecDeque::is_empty), "all is received");
        values
    }

    fn only(rank: u32, ranks: u32) -> Value {
        (0..ranks).map(|other| u32::from(other == rank)).collect()
    }

    #[test]
    fn every_rank_has_the_contribution_of_each_exactly_once() {
        for ranks in 1..40 {
            for bytes in [8_u64, 3 << 20] {
                let all = vec![1; ranks as usize];
                let parts = 2 * chunks(bytes.div_ceil(2)) as u32;
                for (recipe, parts) in [
                    (ring(ranks, bytes), ranks),
                    (double_tree(ranks, bytes), parts),
                ] {
                    let found = run(&recipe, parts, |rank, _| only(rank, ranks));
                    assert!(found.iter().flatten().all(|value| *value == all), "{ranks}");
                    assert!(recipe.part_bytes * u64::from(parts) >= bytes);
                }
                let recipe = chain(ranks, bytes);
                let found = run(&recipe, chunks(bytes) as u32, |rank, _| only(rank, ranks));
                let root = only(0, ranks);
                assert!(
                    found.iter().flatten().all(|value| *value == root),
                    "{ranks}"
                );
            }
        }
    }

    /// Nobody has children in both trees, but for few ranks and their roots (Sanders et al. 2009, 2).
    #[test]
    fn who_is_inside_one_tree_is_a_leaf_of_the_other() {
        for ranks in [2, 4, 8, 16, 64, 256] {
            let (one, other) = (Tree::first(ranks), Tree::second(ranks));
            for rank in 0..ranks as usize {
                assert!(one.children[rank].is_empty() || other.children[rank].is_empty());
                assert!(one.children[rank].len() <= 2);
            }
            assert_eq!(one.height[one.root as usize], ranks.ilog2());
        }
    }

    /// Shares that ranks have, by the messages of a script, each of which carries the newest that its size has room for.
    #[test]
    fn doubling_moves_every_share_to_every_rank() {
        for ranks in 1..40 {
            let script = allgather_recursive_doubling(ranks, 3);
            let steps = script.rank(0).len() / 2;
            assert_eq!(steps as u32, ranks.next_power_of_two().ilog2());
            let mut have: Vec<Vec<u32>> = (0..ranks).map(|rank| vec![rank]).collect();
            for step in 0..steps {
                let before = have.clone();
                for rank in 0..ranks {
                    let Action::Receive { from } = script.rank(rank)[2 * step + 1] else {
                        panic!("a receive follows a send");
                    };
                    let Action::Send { to, bytes } = script.rank(from)[2 * step] else {
                        panic!("a send comes first");
                    };
                    assert_eq!(to, rank);
                    let sent = &before[from as usize][..(bytes / 3) as usize];
                    have[rank as usize].extend(sent);
                }
            }
            for mut own in have {
                own.sort_unstable();
                assert!(own.into_iter().eq(0..ranks), "each share once");
            }
        }
    }
}
