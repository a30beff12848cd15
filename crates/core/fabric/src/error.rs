//! What can be wrong with a map, where it stands and how to cure it.

use std::fmt;

use raddle_text::InputError;
use raddle_units::NodeId;

/// A place in a source: the source's name and, where there is one, the line (from 1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Name of the file, or of the builder that made the map.
    pub source: String,
    /// Line in the source, from 1.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// Why a map is refused. Each message names the place and the cure.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// Both ends of a link are the same node.
    #[error("{at}: the link joins {name} to itself; a link needs two different nodes")]
    SelfLink {
        /// Where the link stands.
        at: Place,
        /// The node's name.
        name: String,
    },
    /// Two nodes are joined twice without saying so.
    #[error(
        "{at}: {a} and {b} are already joined{first}; remove this link, or write one link with `count` for parallel cables"
    )]
    DuplicateLink {
        /// Where the second link stands.
        at: Place,
        /// One end.
        a: String,
        /// The other end.
        b: String,
        /// Where the first one stands, as ` in line 7`, or empty.
        first: String,
    },
    /// A link names a node that does not exist.
    #[error("{at}: there is no node `{name}`{hint}")]
    UnknownNode {
        /// Where it is named.
        at: Place,
        /// What was written.
        name: String,
        /// A cure, starting with `; ` or `: `.
        hint: String,
    },
    /// Two nodes have the same name or number.
    #[error("{at}: `{name}` names two nodes; give each node its own name and number")]
    DuplicateNode {
        /// Where the second one stands.
        at: Place,
        /// The name that is used twice.
        name: String,
    },
    /// Two hosts are joined directly.
    #[error(
        "{at}: {a} and {b} are both hosts; hosts are joined through a switch, put one between them"
    )]
    HostToHost {
        /// Where the link stands.
        at: Place,
        /// One host.
        a: String,
        /// The other host.
        b: String,
    },
    /// A host has no link.
    #[error("{at}: host {name} has no link; join it to a switch or remove it")]
    HostWithoutLink {
        /// Where the host stands.
        at: Place,
        /// The host's name.
        name: String,
        /// The host.
        node: NodeId,
    },
    /// Not every node can be reached.
    #[error(
        "{at}: the map falls apart: {name} cannot be reached from {from} ({reached} of {nodes} nodes can); add the missing link or remove the node"
    )]
    Disconnected {
        /// Where the lost node stands.
        at: Place,
        /// The first node that cannot be reached.
        name: String,
        /// The node where the search began.
        from: String,
        /// How many nodes can be reached from there.
        reached: usize,
        /// How many there are.
        nodes: usize,
    },
    /// A switch has more links than ports.
    #[error(
        "{at}: switch {name} has {ports} links, but its radix is {radix}; raise `radix` or remove links"
    )]
    PortOverRadix {
        /// Where the switch or the link too many stands.
        at: Place,
        /// The switch's name.
        name: String,
        /// Links that end there.
        ports: usize,
        /// Ports that a switch has.
        radix: usize,
    },
    /// A link has a rate or a delay that no link has.
    #[error("{at}: the link between {a} and {b}: {problem}")]
    BadLink {
        /// Where the link stands.
        at: Place,
        /// One end.
        a: String,
        /// The other end.
        b: String,
        /// What is out of range, and what it may be.
        problem: String,
    },
    /// There is no host.
    #[error("{at}: the map has no hosts; add at least one")]
    NoHosts {
        /// The map.
        at: Place,
    },
    /// More nodes or links than we hold.
    #[error("{at}: {count} {what} are too many: the limit is {limit}; make {parameters} smaller")]
    TooLarge {
        /// The map.
        at: Place,
        /// `nodes` or `links`.
        what: &'static str,
        /// How many were asked for, or `more than 10^38`.
        count: String,
        /// How many are possible.
        limit: u64,
        /// What decides the number.
        parameters: &'static str,
    },
    /// A parameter of a builder has a value that makes no sense.
    #[error("{at}: `{key}`: {problem}")]
    BadParameter {
        /// The map.
        at: Place,
        /// The parameter.
        key: String,
        /// Its value and what it may be.
        problem: String,
    },
    /// A line of a topology file is not what it should be.
    #[error("{at}: {message}")]
    Malformed {
        /// Where.
        at: Place,
        /// What is wrong and how to cure it.
        message: String,
    },
    /// A TOML text is not a map.
    #[error(transparent)]
    Text(#[from] InputError),
}

impl FabricError {
    /// Where the error is, to be made more precise by whoever knows more.
    pub(crate) fn place_mut(&mut self) -> Option<&mut Place> {
        Some(match self {
            Self::SelfLink { at, .. }
            | Self::DuplicateLink { at, .. }
            | Self::UnknownNode { at, .. }
            | Self::DuplicateNode { at, .. }
            | Self::HostToHost { at, .. }
            | Self::HostWithoutLink { at, .. }
            | Self::Disconnected { at, .. }
            | Self::PortOverRadix { at, .. }
            | Self::BadLink { at, .. }
            | Self::NoHosts { at }
            | Self::TooLarge { at, .. }
            | Self::BadParameter { at, .. }
            | Self::Malformed { at, .. } => at,
            // The error of a text has its own place.
            Self::Text(_) => return None,
        })
    }
}
