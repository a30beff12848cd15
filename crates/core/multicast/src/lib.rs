//! Multicast when switches have few table entries: groups in, trees, colours and table entries out.
//!
//! A table entry number is a *colour* (InfiniBand: MLID). A group keeps one colour on its whole tree. With a table per
//! input port two trees may use one colour exactly when they share no link; with one table per switch, when they share
//! no switch. Groups that cannot be kept apart are merged: they share one tree, and each hears the others' packets.
//!
//! - `types` here: [`Mgid`], [`Colour`], [`Group`], [`TableMode`], and [`MulticastEngine`], the trait of all engines.
//! - `cmr4lms`: [`CMr4lms`], the engine for tables per input port, with fixed or dynamic roots.
//! - `measures`: [`Measures`], EFI, TFI and table entries; `flood`: [`Flood`], packets walk through the tables.
//! - `per_switch`: [`PerSwitch`], C-MR4LMS for tables per switch (InfiniBand).
//! - `broadcast`, `opensm_like`, `mr4lms`: [`Broadcast`], [`OpenSmLike`], [`Mr4lms`], what the paper compares with.
//! - `credit_loops`: [`CreditGraph`], whether unicast and multicast tables together can deadlock.
//! - `tree`: [`Tree`], which links a tree uses.
//! - `entries`: [`PortSet`], [`Branch`], [`TableWrite`], what one switch does for one tree; `tables`: [`MulticastTables`],
//!   what the switches read.
//! - [`groups`]: sets of communicators: grids, random groups, hierarchies, files.
//! - [`mgid`]: numbers for groups, which decide their trees; [`capacity`]: how many groups fit.
//! - [`placement`]: jobs on terminals, so that they share no link.
//!
//! Nothing here knows of time or packets: a fabric and a link state go in, tables come out.
//!
//! Source: Chen et al., C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582).

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

pub mod capacity;
pub mod groups;
pub mod mgid;
pub mod placement;

mod cmr4lms;
mod entries;
mod flood;
mod measures;
mod per_switch;
mod tables;
mod tree;

mod broadcast;
mod credit_loops;
mod fabric_state;
mod hops;
mod mr4lms;
mod opensm_like;

use std::fmt;

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use broadcast::Broadcast;
pub use cmr4lms::{
    CMr4lms, CMr4lmsSettings, MAX_COLOURS, Merge, RootChoice, SpanningTreeName, TerminalConflict,
};
pub use credit_loops::{CreditGraph, CreditGraphTooLarge, CreditLoop};
pub use entries::{Branch, PortSet, Ports, TableWrite};
pub use flood::{Flood, FloodReport, Senders};
pub use measures::{Distribution, Measures};
pub use mr4lms::{Mr4lms, Mr4lmsSettings, Mr4lmsSteps};
pub use opensm_like::{OpenSmLike, RootRule};
pub use per_switch::{
    Change, Entry, Growth, MAX_MLIDS, PerSwitch, PerSwitchError, PerSwitchMeasures,
};
pub use tables::MulticastTables;
pub use tree::{Tree, UpLink};

/// Number of a group as equations (1) and (3) use it; not the 128-bit GID of InfiniBand.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Mgid(pub u64);

/// Number of a multicast table entry, from 0 (InfiniBand: the index of the MLID, 0xC000 being 0).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Colour(pub u16);

impl Colour {
    /// The colour as an index into a vector.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Mgid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}", self.0)
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "colour {}", self.0)
    }
}

/// A multicast group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its number.
    pub mgid: Mgid,
    /// Its hosts, ascending and distinct.
    pub members: Vec<NodeId>,
}

impl Group {
    /// A group of these hosts; they are sorted, and who is named twice counts once.
    pub fn new(mgid: Mgid, mut members: Vec<NodeId>) -> Self {
        members.sort_unstable();
        members.dedup();
        Self { mgid, members }
    }

    /// Whether the group can be routed on a fabric: it has members, all of them hosts of the fabric, ascending and
    /// distinct.
    ///
    /// # Errors
    /// No members, members out of order or twice, or a member that is not a host of the fabric.
    pub fn check(&self, fabric: &Fabric) -> Result<(), MulticastError> {
        let mgid = self.mgid;
        if self.members.is_empty() {
            return Err(MulticastError::EmptyGroup { mgid });
        }
        if !self.members.is_sorted_by(|a, b| a < b) {
            return Err(MulticastError::UnsortedMembers { mgid });
        }
        match self
            .members
            .iter()
            .find(|node| node.index() >= fabric.node_count() || !fabric.is_host(**node))
        {
            Some(&node) => Err(MulticastError::NotAHost { mgid, node }),
            None => Ok(()),
        }
    }
}

/// How a switch keeps its multicast table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableMode {
    /// One table per input port (the paper's switch): trees of one colour may meet in a switch but share no link.
    #[default]
    PerPort,
    /// One table per switch (InfiniBand): trees of one colour must not meet in a switch.
    PerSwitch,
}

/// What an operation of an engine changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Table entries that change, in the order in which they are to be written. What is cleared comes before what is
    /// set. [`Branch::writes`] gives the single entries.
    pub branches: Vec<Branch>,
    /// Groups that were there before, stay, and now use another colour or another spanning tree; ascending.
    pub moved: Vec<Mgid>,
}

impl Changes {
    /// Nothing to write and nobody moved.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.moved.is_empty()
    }

    /// The table entries one by one, in order.
    pub fn writes(&self, mode: TableMode) -> impl Iterator<Item = TableWrite> + '_ {
        self.branches
            .iter()
            .flat_map(move |branch| branch.writes(mode))
    }
}

/// An engine that keeps trees for a set of groups that changes.
///
/// Every call that changes something reports the table writes that bring the switches from the state before to the
/// state after. A call that fails changes nothing.
pub trait MulticastEngine {
    /// The engine's name in route files and results, such as `c-mr4lms-fixed`.
    fn name(&self) -> &'static str;

    /// What kind of tables the trees are made for.
    fn table_mode(&self) -> TableMode;

    /// Number of colours that may be used.
    fn colours(&self) -> u32;

    /// Routes these groups and no others, from nothing, in the order given where the engine depends on the order.
    /// Failed links stay failed. The changes lead from the tables before to those after.
    ///
    /// # Errors
    /// A bad group, an MGID twice, or no room where the engine does not merge.
    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError>;

    /// A new group.
    ///
    /// # Errors
    /// A bad group, an MGID that is there already, or no room where the engine does not merge.
    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError>;

    /// A group ends.
    ///
    /// # Errors
    /// An MGID that is not there.
    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError>;

    /// A group gets other members; what is common to both stays.
    ///
    /// # Errors
    /// A bad group, an MGID that is not there.
    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError>;

    /// A link fails, both directions. Failing it twice changes nothing.
    ///
    /// # Errors
    /// A link that the fabric does not have.
    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError>;

    /// A link works again. Repairing a link that works changes nothing.
    ///
    /// # Errors
    /// A link that the fabric does not have.
    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError>;

    /// The groups in place, by ascending MGID.
    fn groups(&self) -> Vec<Group>;

    /// The colour with which a group's packets are sent; `None` for a group that is not there.
    fn colour_of(&self, mgid: Mgid) -> Option<Colour>;

    /// All trees: one for each group or merged set of groups (two with fault tolerance, the second with
    /// `copy = 1`), by lowest MGID, then copy.
    fn trees(&self) -> Vec<Tree>;

    /// Hosts that their group cannot reach because links failed or are missing, by MGID and host.
    fn cut_off(&self) -> Vec<(Mgid, NodeId)>;
}

/// Why groups cannot be routed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MulticastError {
    /// A group without members.
    #[error("{mgid} has no members; give it at least one host")]
    EmptyGroup {
        /// The group.
        mgid: Mgid,
    },
    /// Members out of order or twice.
    #[error("the members of {mgid} must ascend and be distinct; make the group with `Group::new`")]
    UnsortedMembers {
        /// The group.
        mgid: Mgid,
    },
    /// A member that the fabric does not have, or a switch.
    #[error("{mgid} has {node} as a member, which is not a host of this fabric")]
    NotAHost {
        /// The group.
        mgid: Mgid,
        /// The member.
        node: NodeId,
    },
    /// A member that is not attached in the way the engine needs.
    #[error("{node}, a member of {mgid}, is not attached to an L0 switch of the fat tree")]
    NotAttached {
        /// The group.
        mgid: Mgid,
        /// The member.
        node: NodeId,
    },
    /// The MGID is in use.
    #[error("{mgid} already exists; let it leave first or change its members")]
    DuplicateMgid {
        /// The group.
        mgid: Mgid,
    },
    /// Nobody uses the MGID.
    #[error("{mgid} does not exist")]
    UnknownMgid {
        /// The group.
        mgid: Mgid,
    },
    /// A link of another fabric.
    #[error("{link} is not one of the {links} links of this fabric")]
    UnknownLink {
        /// The link.
        link: LinkId,
        /// Number of links.
        links: usize,
    },
    /// Zero colours, or more than a table can have.
    #[error("{colours} colours: it must be 1 to {limit}")]
    BadColours {
        /// The number given.
        colours: u32,
        /// The most that are possible.
        limit: u32,
    },
    /// The engine needs a fat tree.
    #[error("{0}; C-MR4LMS needs a fat tree, choose another engine for this fabric")]
    NotCnTn(raddle_fabric::NotCnTn),
    /// Fault tolerance needs two L1 switches per CN.
    #[error("fault tolerance needs m >= 2 L1 switches in each CN (m is {m}); turn it off")]
    NoSecondTree {
        /// L1 switches in each CN.
        m: u32,
    },
    /// The switch has more ports than a [`PortSet`] holds.
    #[error("switch {switch} has {ports} ports; multicast tables hold up to {limit}")]
    TooManyPorts {
        /// The switch.
        switch: NodeId,
        /// Its ports.
        ports: usize,
        /// The most that are possible.
        limit: usize,
    },
    /// The engine cannot make tables of this kind.
    #[error("{engine} cannot make {mode:?} tables; choose the other table mode")]
    UnsupportedMode {
        /// The engine.
        engine: &'static str,
        /// The mode.
        mode: TableMode,
    },
    /// The engine does not merge and has no colour left.
    #[error("no colour of {colours} is left for {mgid}; use more colours or an engine that merges")]
    OutOfColours {
        /// The group.
        mgid: Mgid,
        /// The number of colours.
        colours: u32,
    },
    /// The engine gives each group an entry of its own, and there are more groups than entries.
    #[error(
        "there is no free entry among {colours} for {} of {groups}; use more colours or an engine that merges",
        many(*.without, "group")
    )]
    GroupsWithoutEntry {
        /// Groups without an entry.
        without: usize,
        /// Groups in all.
        groups: usize,
        /// The number of colours.
        colours: u32,
    },
    /// A member cannot be reached by the links that are up.
    #[error("{node}, a member of {mgid}, cannot be reached by the links that are up")]
    Unreachable {
        /// The group.
        mgid: Mgid,
        /// The member.
        node: NodeId,
    },
    /// More groups than numbers for them.
    #[error("more than {limit} groups")]
    TooManyGroups {
        /// The most that are possible.
        limit: usize,
    },
}

/// Whether every switch has few enough ports for a [`PortSet`].
///
/// # Errors
/// The first switch with more.
pub fn check_ports(fabric: &Fabric) -> Result<(), MulticastError> {
    let limit = usize::from(PortSet::LAST);
    match fabric
        .switches()
        .iter()
        .find(|switch| fabric.ports_of(**switch).len() > limit)
    {
        Some(&switch) => Err(MulticastError::TooManyPorts {
            switch,
            ports: fabric.ports_of(switch).len(),
            limit,
        }),
        None => Ok(()),
    }
}
