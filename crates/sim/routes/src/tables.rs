//! The tables of a results folder: names, columns in order.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// A table of a results folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// A row per group (two with fault tolerance).
    Trees,
    /// A row per table entry.
    Tables,
    /// A row per engine and link.
    Links,
    /// A row per tree that groups share.
    Merges,
    /// A row per node of the map.
    Nodes,
}

impl Table {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Trees,
        Self::Tables,
        Self::Links,
        Self::Merges,
        Self::Nodes,
    ];

    /// Name of its file.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Trees => "trees.parquet",
            Self::Tables => "tables.parquet",
            Self::Links => "links.parquet",
            Self::Merges => "merges.parquet",
            Self::Nodes => "nodes.parquet",
        }
    }

    /// Its columns.
    pub(crate) fn schema(self) -> SchemaRef {
        use DataType::{UInt8, UInt16, UInt32, UInt64, Utf8};
        let list = |of: DataType| DataType::List(Arc::new(Field::new_list_field(of, false)));
        let columns: Vec<(&str, DataType)> = match self {
            // `group` counts the groups of the file from 0, `tree` the trees of the engine; `members` and `root` are
            // nodes of the map.
            Self::Trees => vec![
                ("engine", Utf8),
                ("group", UInt32),
                ("name", Utf8),
                ("mgid", UInt64),
                ("tree", UInt32),
                ("copy", UInt8),
                ("colour", UInt16),
                ("root", UInt32),
                ("members", list(UInt32)),
            ],
            // Ports are numbered from 1 on their switch; `in_port` is null with one table per switch.
            Self::Tables => vec![
                ("engine", Utf8),
                ("switch", UInt32),
                ("in_port", UInt16),
                ("colour", UInt16),
                ("out_ports", list(UInt16)),
            ],
            Self::Links => vec![
                ("engine", Utf8),
                ("link", UInt32),
                ("node_a", UInt32),
                ("port_a", UInt16),
                ("node_b", UInt32),
                ("port_b", UInt16),
                ("efi", UInt32),
            ],
            Self::Merges => vec![
                ("engine", Utf8),
                ("tree", UInt32),
                ("groups", list(UInt32)),
                ("reason", Utf8),
            ],
            Self::Nodes => vec![
                ("node", UInt32),
                ("kind", Utf8),
                ("level", UInt8),
                ("name", Utf8),
            ],
        };
        let fields: Vec<Field> = columns
            .into_iter()
            .map(|(name, kind)| Field::new(name, kind, name == "in_port"))
            .collect();
        Arc::new(Schema::new(fields))
    }
}
