//! `credit_check`: whether an engine's trees and the unicast routes can wait for each other in a circle.

use std::time::Instant;

use raddle_fabric::Fabric;
use raddle_multicast::{CreditGraph, Tree};
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};

/// What one engine's check gives.
pub(crate) struct LoopCheck {
    /// One circle as the names of its switches.
    pub found: Option<String>,
    /// Why there was no check.
    pub error: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// The dependencies of unicast on all shortest paths: made once for a fabric, before the engines.
pub(crate) struct Unicast<'a> {
    fabric: &'a Fabric,
    graph: Result<CreditGraph<'a>, String>,
    /// How long it took.
    pub seconds: f64,
}

impl<'a> Unicast<'a> {
    pub(crate) fn new(fabric: &'a Fabric) -> Self {
        let start = Instant::now();
        let graph = CreditGraph::new(fabric).map_err(|error| error.to_string());
        let graph = graph.and_then(|mut graph| {
            let links = LinkState::all_up(fabric);
            let tables = UnicastTables::compute(fabric, &links, NextHopOrder::ByPort)
                .map_err(|error| error.to_string())?;
            graph.add_unicast(&tables);
            Ok(graph)
        });
        Self {
            fabric,
            graph,
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    /// Unicast and these trees together.
    pub(crate) fn with(&self, trees: &[Tree]) -> LoopCheck {
        let start = Instant::now();
        let found = self.graph.clone().map(|mut graph| {
            trees.iter().for_each(|tree| graph.add_tree(tree));
            graph.find_loop().map(|found| found.describe(self.fabric))
        });
        let (found, error) = match found {
            Ok(found) => (found, None),
            Err(error) => (None, Some(error)),
        };
        LoopCheck {
            found,
            error,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}
