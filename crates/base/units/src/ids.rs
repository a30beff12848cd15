//! Identifiers. Ids are dense indexes made by one owner (the fabric, the engine); they are never added up.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a vector of its owner.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    };
}

id!(
    /// A host or a switch: its number in the fabric (hosts and switches share one numbering).
    NodeId, "node"
);
id!(
    /// A port of the whole fabric (dense over all nodes). The number of a port *on its node* is a plain `u16`, from 1.
    PortId, "port"
);
id!(
    /// A full-duplex link between two ports.
    LinkId, "link"
);
id!(
    /// A flow: one message on its way, in order of creation within a run.
    FlowId, "flow"
);
