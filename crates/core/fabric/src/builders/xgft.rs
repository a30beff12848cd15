//! Fat trees of any number of levels: how many children and parents a node of each level has.

use raddle_units::{BitRate, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{bad, check_limits, check_size, default_delay, default_rate, product};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "xgft";

/// A fat tree of one to eight levels of switches: the extended generalized fat tree
/// XGFT(h; m_1, ..., m_h; w_1, ..., w_h).
///
/// A switch of level `i` has `m_i` children (hosts at level 1), a node of level `i - 1` has `w_i` parents (S. R. Öhring,
/// M. Ibel, S. K. Das, M. J. Kumar, "On Generalized Fat Trees", IPPS 1995). So there are `m_1 ... m_h` hosts and
/// `m_(i+1) ... m_h w_1 ... w_i` switches of level `i`, and two hosts that meet at level `i` have `w_1 ... w_i` shortest
/// paths of `2i` links.
///
/// With `children = [k, k, k, k]` and `parents = [1, k, k, k]` it is the k-ary 4-tree (F. Petrini, M. Vanneschi, "k-ary
/// n-trees: High Performance Networks for Massively Parallel Architectures", IPPS 1997): 1,048,576 hosts for k = 32. Of
/// equal switches with 2k ports the top level needs half as many: `children = [k, k, k, 2k]`; with three levels that is
/// the k-ary fat tree of 2k ports.
///
/// Hosts come first, then the switches, lower levels first; below each top switch's children the numbers of a subtree
/// stand together. Links go from below to above in the same order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Xgft {
    /// Children of a switch, for each level from below: m_1 (hosts on each ToR switch), m_2, ...
    #[schemars(length(min = 1, max = 8), inner(range(min = 1)))]
    pub children: Vec<u32>,
    /// Parents of a node below, for each level from below: w_1 (ToR switches of a host, usually 1), w_2, ...; as many
    /// numbers as `children`.
    #[schemars(length(min = 1, max = 8), inner(range(min = 1)))]
    pub parents: Vec<u32>,
    /// Rate of the hosts' links.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

impl Xgft {
    /// A tree with 100 Gbit/s and 1 us everywhere.
    pub fn new(children: &[u32], parents: &[u32]) -> Self {
        Self {
            children: children.to_vec(),
            parents: parents.to_vec(),
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
            radix: None,
        }
    }

    /// The k-ary n-tree: `levels` levels, k^levels hosts.
    pub fn k_ary_n_tree(k: u32, levels: usize) -> Self {
        let mut parents = vec![k; levels];
        if let Some(first) = parents.first_mut() {
            *first = 1;
        }
        Self::new(&vec![k; levels], &parents)
    }

    /// Makes the map.
    ///
    /// # Errors
    /// Not as many numbers of parents as of children, a number below 1, too many levels, nodes or links, rate 0, more
    /// links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let levels = self.children.len();
        if self.parents.len() != levels {
            let problem = format!(
                "there are {} for {levels} levels: give as many numbers as `children` has",
                self.parents.len()
            );
            return Err(bad(NAME, "parents", problem));
        }
        let nodes: Vec<u128> = (0..=levels).map(|level| self.nodes(level)).collect();
        let links = nodes.iter().zip(&self.parents);
        let links = links.map(|(&nodes, &parents)| nodes.saturating_mul(parents.into()));
        let sum = |all: u128, one: u128| all.saturating_add(one);
        let parameters = "`children` or `parents`";
        let (all_nodes, all_links) = (nodes.iter().copied().fold(0, sum), links.fold(0, sum));
        check_size(NAME, all_nodes, all_links, parameters)?;

        let mut builder = FabricBuilder::new(NAME);
        builder.radix(self.radix);
        // The size was checked: the numbers of all nodes fit.
        let nodes: Vec<u32> = nodes.into_iter().map(|count| count as u32).collect();
        for _ in 0..nodes[0] {
            builder.host();
        }
        for (level, &count) in (0u8..).zip(&nodes).skip(1) {
            for _ in 0..count {
                builder.switch(level);
            }
        }
        self.connect(&nodes, &mut builder);
        builder.finish()
    }

    /// Nodes of a level: its subtrees, times the nodes at the top of each.
    fn nodes(&self, level: usize) -> u128 {
        let tops = product(&self.parents[..level]);
        product(&self.children[level..]).saturating_mul(tops)
    }

    fn connect(&self, nodes: &[u32], builder: &mut FabricBuilder) {
        // A node of level l is number v (of w_1 ... w_l) at the top of subtree s. Its parents are v*w to v*w + w-1 at
        // the top of the subtree s/m of the next level.
        let (mut below, mut tops) = (0, 1);
        for (level, (&children, &parents)) in self.children.iter().zip(&self.parents).enumerate() {
            let above = below + nodes[level];
            let rate = if level == 0 {
                self.host_rate
            } else {
                self.fabric_rate
            };
            for index in 0..nodes[level] {
                let (subtree, top) = (index / tops, index % tops);
                let first = above + (subtree / children * tops + top) * parents;
                for parent in first..first + parents {
                    builder.connect(NodeId(below + index), NodeId(parent), rate, self.delay);
                }
            }
            below = above;
            tops *= parents;
        }
    }
}
