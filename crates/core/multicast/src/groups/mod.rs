//! Sets of communicators: which terminals belong together, and in which layer.
//!
//! A *terminal* is a host, named here by its position in the fabric's order of hosts ([`raddle_fabric::Fabric::hosts`]);
//! each runs `P` processes with consecutive numbers, terminals are filled in order. A *communicator* is the terminals
//! whose processes take part, ascending and distinct. A *layer* is a set of communicators of which a terminal is in at
//! most one: layers get disjoint ranges of colours, so that no terminal meets a colour twice (Chen et al., C-MR4LMS
//! (JCRD, 10.7544/issn1000-1239.20210582), section 3.1).
//!
//! - [`Grid`]: rows, columns and lines of a process grid.
//! - [`RandomGroups`]: every process joins a group at random.
//! - [`Hierarchy`]: nested blocks of processes, one layer per level.
//! - [`read_groups`]: groups from a TOML or CSV file.

mod file;
mod grid;
mod hierarchy;
mod layering;
mod random_groups;

pub use file::{FileGroup, GroupFile, GroupFormat, MAX_MGID, read_groups, write_groups};
pub use grid::{Grid, Layering};
pub use hierarchy::Hierarchy;
pub use layering::{cycle_colour, cycle_colours};
pub use random_groups::RandomGroups;

use raddle_units::{NodeId, many};

/// Processes that a pattern may have.
pub const MAX_PROCESSES: u64 = 1 << 27;
/// Members of all communicators together.
pub const MAX_MEMBERSHIPS: u64 = 1 << 30;

/// The terminals of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Communicator {
    /// Its name in files and messages, as `x-y3-z2` for the row at y = 3 and z = 2.
    pub name: String,
    /// The layer it belongs to, counted from 0; see [`GroupSet::layered`].
    pub layer: u32,
    /// Positions of its terminals in the fabric's order of hosts, ascending and distinct.
    pub members: Vec<u32>,
}

/// Communicators over the first terminals of a fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSet {
    /// The communicators; those of one layer in the order in which they take trees.
    pub communicators: Vec<Communicator>,
    /// Layers that the communicators are numbered with: 0 to `layers - 1`.
    pub layers: u32,
    /// Whether a terminal is in at most one communicator of each layer. Where it is not, only
    /// [`crate::mgid::allocate_general`] gives MGIDs.
    pub layered: bool,
    /// Terminals that run processes: the first ones of the fabric.
    pub terminals: u32,
}

impl GroupSet {
    /// Communicators that are not layered, in one nominal layer; members are sorted and doubles removed.
    pub fn unlayered(
        terminals: u32,
        groups: impl IntoIterator<Item = (String, Vec<u32>)>,
    ) -> Result<Self, GroupError> {
        let mut communicators = Vec::new();
        for (name, mut members) in groups {
            members.sort_unstable();
            members.dedup();
            if let Some(&member) = members.last().filter(|&&last| last >= terminals) {
                return Err(GroupError::UnknownTerminal {
                    group: name,
                    member,
                    terminals,
                });
            }
            communicators.push(Communicator {
                name,
                layer: 0,
                members,
            });
        }
        Ok(Self {
            communicators,
            layers: 1,
            layered: false,
            terminals,
        })
    }

    /// Communicators in each layer.
    pub fn layer_sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0; self.layers as usize];
        for communicator in &self.communicators {
            sizes[communicator.layer as usize] += 1;
        }
        sizes
    }

    /// Members of all communicators together.
    pub fn memberships(&self) -> u64 {
        self.communicators
            .iter()
            .map(|communicator| communicator.members.len() as u64)
            .sum()
    }

    /// The first terminal that is in two communicators of one layer, and their numbers.
    pub fn layer_clash(&self) -> Option<(u32, [usize; 2])> {
        let mut by_layer: Vec<Vec<usize>> = vec![Vec::new(); self.layers as usize];
        for (number, communicator) in self.communicators.iter().enumerate() {
            by_layer[communicator.layer as usize].push(number);
        }
        let mut seen_in = vec![usize::MAX; self.terminals as usize];
        for numbers in by_layer {
            seen_in.fill(usize::MAX);
            for number in numbers {
                for &member in &self.communicators[number].members {
                    let seen = &mut seen_in[member as usize];
                    if *seen != usize::MAX {
                        return Some((member, [*seen, number]));
                    }
                    *seen = number;
                }
            }
        }
        None
    }
}

impl Communicator {
    /// The members as nodes: positions are looked up in `hosts`, the fabric's hosts or the terminals of a job in the
    /// order of their processes. Ascending; a position beyond `hosts` gives `None`.
    pub fn nodes(&self, hosts: &[NodeId]) -> Option<Vec<NodeId>> {
        let mut nodes = self
            .members
            .iter()
            .map(|&member| hosts.get(member as usize).copied())
            .collect::<Option<Vec<_>>>()?;
        nodes.sort_unstable();
        Some(nodes)
    }
}

/// Why there are no communicators.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A parameter has an impossible value.
    #[error("`{key}` is {value}: {cure}")]
    BadParameter {
        /// The parameter.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        cure: String,
    },
    /// More processes than terminals can run.
    #[error(
        "{processes} processes do not fit on {} with {per_terminal} each ({room} at most): \
         make the pattern smaller, the fabric larger or raise `processes_per_terminal`",
        many(*.terminals, "terminal")
    )]
    NoRoom {
        /// Processes of the pattern.
        processes: u64,
        /// Terminals of the fabric.
        terminals: u32,
        /// Processes on a terminal.
        per_terminal: u32,
        /// Processes that fit.
        room: u64,
    },
    /// More than we hold.
    #[error("{count} {what} are too many, the limit is {limit}: make the pattern smaller")]
    TooLarge {
        /// `processes`, `memberships` or `groups`.
        what: &'static str,
        /// How many there would be.
        count: u128,
        /// How many are possible.
        limit: u64,
    },
    /// A layered pattern whose layers would not keep a terminal's groups apart.
    #[error(
        "a {layering} layering needs {rule}, but there are {per_terminal} processes per terminal on a grid of {dims}: \
         {cure}"
    )]
    NotLayered {
        /// `tight` or `literal`.
        layering: &'static str,
        /// The condition of Theorem 3.
        rule: &'static str,
        /// Processes on a terminal.
        per_terminal: u32,
        /// The grid, as `64x32x16`.
        dims: String,
        /// The way out.
        cure: &'static str,
    },
    /// A member that is no terminal.
    #[error(
        "group `{group}` has member {member}, but terminals run from 0 to {}: correct the member",
        terminals.saturating_sub(1)
    )]
    UnknownTerminal {
        /// The group's name.
        group: String,
        /// The member.
        member: u32,
        /// Terminals that there are.
        terminals: u32,
    },
}

pub(crate) fn bad(key: &'static str, value: impl ToString, cure: impl Into<String>) -> GroupError {
    GroupError::BadParameter {
        key,
        value: value.to_string(),
        cure: cure.into(),
    }
}

/// A number of processes that we hold.
fn countable(processes: u128) -> Result<u64, GroupError> {
    u64::try_from(processes)
        .ok()
        .filter(|&processes| processes <= MAX_PROCESSES)
        .ok_or(GroupError::TooLarge {
            what: "processes",
            count: processes,
            limit: MAX_PROCESSES,
        })
}

/// Checks that `processes` fit on `terminals`; gives the terminals that are used.
fn used_terminals(processes: u64, terminals: u32, per_terminal: u32) -> Result<u32, GroupError> {
    if per_terminal == 0 {
        return Err(bad(
            "processes_per_terminal",
            0,
            "a terminal runs at least 1 process",
        ));
    }
    let processes = countable(processes.into())?;
    let room = u64::from(terminals) * u64::from(per_terminal);
    if processes > room {
        return Err(GroupError::NoRoom {
            processes,
            terminals,
            per_terminal,
            room,
        });
    }
    Ok(processes.div_ceil(per_terminal.into()) as u32)
}

/// The terminals of ascending processes, each once.
fn terminals_of(processes: impl Iterator<Item = u64>, per_terminal: u32) -> Vec<u32> {
    let mut members: Vec<u32> = processes
        .map(|process| (process / u64::from(per_terminal)) as u32)
        .collect();
    members.dedup();
    members
}
