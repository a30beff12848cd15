//! What of the published schema of Chakra is read (MLCommons, et_def.proto); other fields are passed over.

/// The first message of a file.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

/// A task, with what has to be done before it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(enumeration = "NodeType", tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum NodeType {
    Invalid = 0,
    Metadata = 1,
    MemLoad = 2,
    MemStore = 3,
    Comp = 4,
    CommSend = 5,
    CommRecv = 6,
    CommColl = 7,
    Storage = 8,
    Batch = 9,
    Checkpoint = 10,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum CollectiveCommType {
    AllReduce = 0,
    Reduce = 1,
    AllGather = 2,
    Gather = 3,
    Scatter = 4,
    Broadcast = 5,
    AllToAll = 6,
    ReduceScatter = 7,
    ReduceScatterBlock = 8,
    Barrier = 9,
}

/// A property of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 29")]
    pub(super) value: Option<Value>,
}

/// Its value, where it is a whole number or a text.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(string, tag = "29")]
    Text(String),
}

impl Value {
    /// As a whole number from 0; a text may be one.
    fn whole(&self) -> Option<u64> {
        match self {
            Self::Int32(number) | Self::Sint32(number) | Self::Sfixed32(number) => {
                u64::try_from(*number).ok()
            }
            Self::Int64(number) | Self::Sint64(number) | Self::Sfixed64(number) => {
                u64::try_from(*number).ok()
            }
            Self::Uint32(number) | Self::Fixed32(number) => Some(u64::from(*number)),
            Self::Uint64(number) | Self::Fixed64(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

impl Node {
    fn value(&self, name: &str) -> Option<&Value> {
        let mut all = self.attr.iter().filter(|attribute| attribute.name == name);
        all.next()?.value.as_ref()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.attr.iter().any(|attribute| attribute.name == name)
    }

    pub(super) fn whole(&self, name: &str) -> Option<u64> {
        self.value(name)?.whole()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        Some(match self.value(name)? {
            Value::Text(text) => text.trim().to_owned(),
            other => other.whole()?.to_string(),
        })
    }

    /// What has to be done before it.
    pub(super) fn deps(&self) -> impl Iterator<Item = u64> + '_ {
        self.ctrl_deps.iter().chain(&self.data_deps).copied()
    }
}
