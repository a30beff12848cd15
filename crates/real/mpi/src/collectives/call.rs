//! A call and its communicator in the core's words.

use raddle_wire::{DataType, Operation, native::Collective};

use super::reason::Reason;
use crate::settings::Settings;

/// What the shim is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Plain,
    PlainTimed,
    Offload,
}

/// A communicator as MPI shows it.
pub(crate) struct View<M> {
    pub(crate) plain: M,
    pub(crate) settings: &'static Settings,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) inter: bool,
    pub(crate) world: bool,
    pub(crate) session: bool,
    pub(crate) name: String,
}

/// One call of this rank. The buffers are the program's and hold `count` elements; `receive` is null where this rank
/// gets nothing.
pub(crate) struct Call {
    pub(crate) send: *const u8,
    pub(crate) receive: *mut u8,
    /// Elements; bytes of a Bcast.
    pub(crate) count: usize,
    /// MPI's handle of the type.
    pub(crate) handle: usize,
    pub(crate) root: u32,
    pub(crate) collective: Collective,
    pub(crate) operation: Option<Operation>,
    pub(crate) data_type: Option<DataType>,
    /// Why the shim knows that it stays plain.
    pub(crate) reason: Reason,
}

impl Call {
    /// Bytes of the message.
    pub(crate) fn bytes(&self) -> usize {
        match self.collective {
            Collective::Barrier => 0,
            Collective::Bcast => self.count,
            _ => self
                .count
                .saturating_mul(self.data_type.map_or(0, DataType::size)),
        }
    }
}
