//! The engines by name: one line each.

use std::sync::Arc;

use raddle_fabric::{CnTnMap, Fabric};
use raddle_multicast::{
    Broadcast, CMr4lms, CMr4lmsSettings, Growth, Mr4lms, Mr4lmsSettings, MulticastEngine,
    MulticastError, OpenSmLike, RootChoice, RootRule, TableMode,
};

use crate::per_switch::PerSwitchEngine;

/// What an engine is made from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The map.
    pub fabric: &'a Arc<Fabric>,
    /// Its parts, where it is a CN/TN fat tree.
    pub map: Option<&'a Arc<CnTnMap>>,
    /// Table entries of a port or switch.
    pub colours: u32,
    /// Where switches keep their tables.
    pub mode: TableMode,
    /// Two trees for each group.
    pub fault_tolerant: bool,
}

/// What can be made of a [`Setup`].
pub type Made<'a> = Result<Box<dyn MulticastEngine + 'a>, MulticastError>;

/// An engine: its name, what it needs, and how it is made.
#[derive(Clone, Copy)]
pub struct EngineKind {
    /// Name in route files and results.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Whether it works on CN/TN fat trees only.
    pub cn_tn_only: bool,
    /// Whether it can give each group two trees; other engines ignore `fault_tolerant`.
    pub fault_tolerant: bool,
    /// Makes one.
    pub make: for<'a> fn(&Setup<'a>) -> Made<'a>,
}

/// All engines, in the order in which they are named to the user.
pub const ENGINES: &[EngineKind] = &[
    EngineKind {
        name: "c-mr4lms-fixed",
        about: "the MGID names the spanning tree, rooted in the first L3 switch of its TN",
        cn_tn_only: true,
        fault_tolerant: true,
        make: |s| c_mr4lms(s, "c-mr4lms-fixed", RootChoice::Fixed),
    },
    EngineKind {
        name: "c-mr4lms-dynamic",
        about: "the same, rooted in the least loaded free L3 switch of the TN",
        cn_tn_only: true,
        fault_tolerant: true,
        make: |s| c_mr4lms(s, "c-mr4lms-dynamic", RootChoice::Dynamic),
    },
    EngineKind {
        name: "mr4lms",
        about: "roots and links balanced, trees coloured one by one in order of arrival",
        cn_tn_only: false,
        fault_tolerant: false,
        make: |s| {
            let settings = Mr4lmsSettings::default();
            boxed(Mr4lms::new(s.fabric, s.mode, s.colours, settings))
        },
    },
    EngineKind {
        name: "broadcast",
        about: "one tree over all terminals, used by all groups",
        cn_tn_only: false,
        fault_tolerant: false,
        make: |s| boxed(Broadcast::new(s.fabric, s.mode, s.colours)),
    },
    EngineKind {
        name: "opensm",
        about: "a tree and a colour of its own for each group, as OpenSM; fails when colours run out",
        cn_tn_only: false,
        fault_tolerant: false,
        make: |s| {
            boxed(OpenSmLike::new(
                s.fabric,
                s.mode,
                s.colours,
                RootRule::default(),
            ))
        },
    },
];

fn c_mr4lms<'a>(setup: &Setup<'a>, engine: &'static str, roots: RootChoice) -> Made<'a> {
    if let (TableMode::PerSwitch, Some(map)) = (setup.mode, setup.map) {
        // Roots follow the MGID in both; a group that grows keeps its colour in one and takes a better one in the other.
        let growth = match roots {
            RootChoice::Fixed => Growth::Keep,
            RootChoice::Dynamic => Growth::Move,
        };
        let made = PerSwitchEngine::new(engine, setup.fabric, map, setup.colours, growth);
        return boxed(made);
    }
    let settings = CMr4lmsSettings {
        colours: setup.colours,
        roots,
        fault_tolerant: setup.fault_tolerant,
    };
    let fabric = Arc::clone(setup.fabric);
    boxed(match setup.map {
        Some(map) => CMr4lms::with_map(fabric, Arc::clone(map), settings),
        None => CMr4lms::new(fabric, settings),
    })
}

fn boxed<'a, E: MulticastEngine + 'a>(made: Result<E, MulticastError>) -> Made<'a> {
    made.map(|engine| -> Box<dyn MulticastEngine + 'a> { Box::new(engine) })
}

/// The engines that a route file gets when it names none.
pub const DEFAULT_ENGINES: [&str; 2] = ["c-mr4lms-fixed", "c-mr4lms-dynamic"];

/// Names of all engines.
pub fn names() -> Vec<&'static str> {
    ENGINES.iter().map(|engine| engine.name).collect()
}

/// The engine with a name.
pub fn find(name: &str) -> Option<&'static EngineKind> {
    ENGINES.iter().find(|engine| engine.name == name)
}
