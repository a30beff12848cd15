//! Collectives of MPI as message graphs: what every rank does, and what it costs on its host.
//!
//! [`Script`] has the actions of each rank in order (send, receive, a round of in-network computing). [`Hosts`] says
//! where ranks sit and what an action costs ([`HostCosts`], after LogGP); [`Hosts::graph`] makes a
//! [`crate::MessageGraph`] of both, whose messages between hosts travel through the simulator.

mod algorithms;
mod hosts;
mod linear;
mod parts;

pub use algorithms::{
    LeaderTree, allreduce_offloaded, allreduce_recursive_doubling, barrier, barrier_dissemination,
};
pub use hosts::{Binding, CollectiveGraph, Dies, HostCosts, Hosts};
pub use linear::{
    allgather_ring, allreduce_ring, alltoall_pairwise, bcast_binomial, gather_linear, reduce,
    scan_linear, scatter_linear,
};
pub use parts::{
    allgather_recursive_doubling, allreduce_double_tree, allreduce_reduce_bcast,
    allreduce_ring_both, alltoall_linear, bcast_chain,
};

use std::ops::Range;

/// What a rank does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Hands `bytes` to another rank; goes on when its own part is done.
    Send {
        /// The other rank.
        to: u32,
        /// Bytes of the program's data.
        bytes: u64,
    },
    /// Waits for the next message of another rank and takes it in (in a reduction: combines it).
    Receive {
        /// The other rank.
        from: u32,
    },
    /// Gives `bytes` to the network as member `member` of a group and waits for the result.
    Offload {
        /// Number of the member in its group.
        member: u32,
        /// Bytes of the program's data.
        bytes: u64,
    },
}

/// The actions of every rank, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    ranks: Vec<Vec<Action>>,
}

impl Script {
    /// `ranks` ranks that do nothing yet.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks: vec![Vec::new(); ranks as usize],
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// What a rank does.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn rank(&self, rank: u32) -> &[Action] {
        &self.ranks[rank as usize]
    }

    /// What `other` does, after what is there.
    ///
    /// # Panics
    /// If it has another number of ranks.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        assert_eq!(self.size(), other.size(), "both are of the same ranks");
        for (own, more) in self.ranks.iter_mut().zip(other.ranks) {
            own.extend(more);
        }
        self
    }

    /// `from` sends to `to`, which receives: the next action of both.
    fn transfer(&mut self, from: u32, to: u32, bytes: u64) {
        self.ranks[from as usize].push(Action::Send { to, bytes });
        self.ranks[to as usize].push(Action::Receive { from });
    }

    /// Both send, then both receive.
    fn exchange(&mut self, one: u32, other: u32, bytes: u64) {
        for (rank, peer) in [(one, other), (other, one)] {
            self.ranks[rank as usize].push(Action::Send { to: peer, bytes });
        }
        for (rank, peer) in [(one, other), (other, one)] {
            self.ranks[rank as usize].push(Action::Receive { from: peer });
        }
    }

    fn offload(&mut self, rank: u32, member: u32, bytes: u64) {
        self.ranks[rank as usize].push(Action::Offload { member, bytes });
    }
}

/// The parts of `ranks` ranks cut evenly into `parts`; earlier ones are larger by at most one.
fn even_parts(ranks: u32, parts: u32) -> impl Iterator<Item = Range<u32>> {
    let (least, more) = (ranks / parts, ranks % parts);
    (0..parts).map(move |part| {
        let start = part * least + part.min(more);
        start..start + least + u32::from(part < more)
    })
}
