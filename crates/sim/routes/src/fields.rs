//! The tables of a route file. The comments here are the descriptions in the published JSON Schema.

use raddle_fabric::FabricSource;
use raddle_text::{list_names, one_line, schema_text};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::registry;

/// A raddle route file: a fabric, multicast groups on it, and the engines that route them.
///
/// Files are found relative to the file that names them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "raddle route file")]
pub struct RouteFile {
    /// Version of this format: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u32,
    /// Name in results and reports. Default: the file's name without its ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = one_line(120))]
    pub name: Option<String>,
    /// Route files to start from. Tables are merged key by key, later files and this one win; lists are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The network: `kind = "..."` with its parameters, or `file` and `format`.
    pub fabric: FabricSource,
    /// The groups.
    pub groups: GroupsTable,
    /// The engines and the switches' tables.
    #[serde(default)]
    pub multicast: MulticastTable,
}

/// Which groups there are and who joins them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsTable {
    /// Where the groups come from.
    pub pattern: Pattern,
    /// grid: 2 or 3 lengths, x first; every line of processes along a direction is a group. hierarchy: processes of a
    /// block at each level, the lowest level first; every block at every level is a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(range(min = 1)))]
    pub dims: Option<Vec<u32>>,
    /// Processes on each terminal; terminals are filled in order. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub processes_per_terminal: Option<u32>,
    /// random: groups. Each process joins one of them; process i of a terminal one of layer i.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
    /// random: members of each group. Default: every process joins one group, and sizes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub members_per_group: Option<u32>,
    /// random: seed of the draws. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// grid: how many layers the colours are split into. Default: tight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layers>,
    /// hierarchy: only the first process of a block takes part in the level above. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaders_only: Option<bool>,
    /// file: groups with their members, `.toml` or `.csv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Where groups come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// The rows, columns and lines of a grid of processes.
    Grid,
    /// Drawn at random.
    Random,
    /// Communicators that are split again and again.
    Hierarchy,
    /// A file that lists them.
    File,
}

/// How many layers the colours of a grid are split into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layers {
    /// As few as needed so that no terminal meets a colour twice.
    #[default]
    Tight,
    /// 2P - 1 layers per direction for P processes per terminal, as the paper's equation (5) gives them.
    Literal,
    /// Found by the general allocator, which knows nothing of the grid.
    General,
}

/// The engines, and what the switches' tables can hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MulticastTable {
    /// Engines that route the groups, side by side. Default: c-mr4lms-fixed, c-mr4lms-dynamic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), transform = name_engines)]
    pub engines: Option<Vec<String>>,
    /// Table entries of a switch port (per-port) or of a switch (per-switch). Default: 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub colours: Option<u32>,
    /// Whether each port of a switch has its own table, or the switch one. Default: per-port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<TableKind>,
    /// Two link-disjoint trees for each group (C-MR4LMS). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_tolerant: Option<bool>,
    /// Look for credit loops: whether unicast on all shortest paths and an engine's trees together can deadlock. Seconds
    /// on 32,768 terminals. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_check: Option<bool>,
}

/// Where a switch keeps its multicast table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Each port has a table of its own (the paper's switches).
    #[default]
    PerPort,
    /// One table for all ports of a switch (InfiniBand).
    PerSwitch,
}

/// Lists the engines in the schema, taken from the registry.
fn name_engines(schema: &mut Schema) {
    list_names(schema, &registry::names());
}

/// The JSON Schema of a route file, indented, with a line break at its end.
pub fn route_schema() -> String {
    schema_text::<RouteFile>()
}

impl Pattern {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Random => "random",
            Self::Hierarchy => "hierarchy",
            Self::File => "file",
        }
    }
}
