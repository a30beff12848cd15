//! Collectives from or to one rank, in rings and in pairs: what Open MPI and MPICH do with most sizes (Thakur et al. 2005).
//!
//! Rank 0 is the root; users renumber.

use super::{Script, algorithms};

/// Broadcast by a binomial tree: 2^k ranks have it after k steps, those of the largest subtrees first.
pub fn bcast_binomial(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    algorithms::broadcast_binomial(&mut script, 0..ranks, bytes);
    script
}

/// Reduce as Open MPI 4.0 does it with less than 512 bytes: binomial, linear for few ranks.
pub fn reduce(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    algorithms::reduce(&mut script, 0..ranks, bytes);
    script
}

/// Gather: every other rank sends `bytes` to the root.
pub fn gather_linear(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for rank in 1..ranks {
        script.transfer(rank, 0, bytes);
    }
    script
}

/// Scatter: the root sends `bytes` to every other rank.
pub fn scatter_linear(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for rank in 1..ranks {
        script.transfer(0, rank, bytes);
    }
    script
}

/// Allgather in a ring: in each of n - 1 steps every rank hands `bytes`, a rank's share, to the next one.
pub fn allgather_ring(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for _ in 1..ranks {
        shift(&mut script, 1, bytes);
    }
    script
}

/// Alltoall in pairs: in step k rank i sends `bytes`, a block, to i + k and receives from i - k.
pub fn alltoall_pairwise(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for step in 1..ranks {
        shift(&mut script, step, bytes);
    }
    script
}

/// Allreduce of long operands: a reduce-scatter in pairs, then an allgather in a ring, both with shares of the operand.
pub fn allreduce_ring(ranks: u32, bytes: u64) -> Script {
    let share = bytes.div_ceil(u64::from(ranks.max(1)));
    let mut script = alltoall_pairwise(ranks, share);
    for _ in 1..ranks {
        shift(&mut script, 1, share);
    }
    script
}

/// Scan: rank i hands what ranks 0 to i have to rank i + 1.
pub fn scan_linear(ranks: u32, bytes: u64) -> Script {
    let mut script = Script::new(ranks);
    for rank in 1..ranks {
        script.transfer(rank - 1, rank, bytes);
    }
    script
}

/// Every rank sends to the one `distance` after it, then receives from the one before.
fn shift(script: &mut Script, distance: u32, bytes: u64) {
    let ranks = script.size();
    for rank in 0..ranks {
        let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
        script.ranks[rank as usize].push(super::Action::Send { to, bytes });
        script.ranks[rank as usize].push(super::Action::Receive { from });
    }
}
