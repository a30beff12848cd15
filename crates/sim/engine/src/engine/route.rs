//! The next hop: tables of the links that are up, and the choice among equals.

use std::{ops::Deref, sync::Arc};

use raddle_fabric::Fabric;
use raddle_unicast::{DModK, FlowHash, PathChoice, UnicastTables};
use raddle_units::{NodeId, PortId};

/// Tables that all processes share.
#[derive(Clone, Debug)]
pub(super) enum Tables<'a> {
    /// Those of the network.
    Given(&'a UnicastTables),
    /// Those that followed a change of links.
    Computed(Arc<UnicastTables>),
}

impl Deref for Tables<'_> {
    type Target = UnicastTables;

    #[inline(always)]
    fn deref(&self) -> &UnicastTables {
        match self {
            Self::Given(tables) => tables,
            Self::Computed(tables) => tables,
        }
    }
}

/// Routes as they are now.
#[derive(Debug)]
pub(super) struct Router<'a> {
    pub(super) tables: Tables<'a>,
    d_mod_k: Option<DModK>,
}

impl<'a> Router<'a> {
    pub(super) fn new(tables: &'a UnicastTables, choice: PathChoice, fabric: &Fabric) -> Self {
        Self {
            tables: Tables::Given(tables),
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
