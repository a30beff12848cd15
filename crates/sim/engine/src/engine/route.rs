//! The next hop: tables of the links that are up, and the choice among equals.

use std::sync::Arc;

use raddle_fabric::Fabric;
use raddle_unicast::{DModK, FlowHash, PathChoice, UnicastTables};
use raddle_units::{NodeId, PortId};

/// Routes as they are now.
#[derive(Debug)]
pub(super) struct Router {
    /// All processes share them: those of the network, or what followed a change of links.
    pub(super) tables: Arc<UnicastTables>,
    d_mod_k: Option<DModK>,
}

impl Router {
    pub(super) fn new(tables: Arc<UnicastTables>, choice: PathChoice, fabric: &Fabric) -> Self {
        Self {
            tables,
            d_mod_k: (choice == PathChoice::DModK).then(|| DModK::new(fabric)),
        }
    }

    /// The port by which a packet leaves `at`; `None` where there is no way.
    #[inline(always)]
    pub(super) fn next_hop(&self, at: NodeId, dst: NodeId, hash: FlowHash) -> Option<PortId> {
        match self.tables.next_hops(at, dst) {
            [] => None,
            [only] => Some(*only),
            several => {
                let index = match &self.d_mod_k {
                    None => (hash.at(at.0) % several.len() as u32) as usize,
                    Some(d_mod_k) => d_mod_k.index(at, dst, several.len()),
                };
                Some(several[index])
            }
        }
    }
}
