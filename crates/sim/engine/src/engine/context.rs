//! What all parts of a process borrow: the clock, the list of events, the settings, and where to report.

use raddle_fabric::Fabric;
use raddle_transport::cc::{FlowLimits, Signals};
use raddle_units::{NodeId, Time};

use super::{
    cut::Cut,
    mail::Post,
    records::{Record, Records},
    tiles::Tiles,
    what::{Keys, Kind, What},
};
use crate::{
    event::{Event, EventQueue},
    index::{PortIndex, ProcessIndex, TileIndex},
    semantics::Semantics,
    setup::{RunConfig, RunSummary, SetupError},
};

/// Sizes and choices that the hot path reads, fixed for the run.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) mtu: u64,
    /// Bytes of a data packet beside its payload, and of an acknowledgement.
    pub(super) header_bytes: u32,
    pub(super) ack_bytes: u32,
    pub(super) pfc_bytes: u32,
    /// Hop records a packet has room for.
    pub(super) record_room: u8,
    /// Queue of acknowledgements; `None`: that of their data.
    pub(super) ack_queue: Option<u8>,
    pub(super) data_classes: u8,
}

/// See the module.
pub(super) struct Context<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) cut: &'a Cut,
    /// Which of the processes this is.
    pub(super) own: ProcessIndex,
    /// The run has one process, in which everything is known at once: nothing waits for the end of a window.
    pub(super) serial: bool,
    pub(super) config: &'a RunConfig,
    pub(super) semantics: Semantics,
    pub(super) signals: Signals,
    pub(super) limits: FlowLimits,
    pub(super) layout: Layout,
    pub(super) records: Records,
    /// What other processes are to have at the window's end.
    pub(super) post: Post,
    pub(super) summary: RunSummary,

    pub(super) now: Time,
    /// Where the window that is under way ends.
    pub(super) window_end: Time,
    /// Key of the event being handled.
    pub(super) key: u64,
    /// The first message that does not fit the run's groups, members or rails, and when: the run ends.
    pub(super) fault: Option<(Time, SetupError)>,
    /// After each event the process may have to stop: its run has one process, or a fault.
    pub(super) may_stop: bool,
    /// What coming events will touch is fetched ahead of them.
    pub(super) looks_ahead: bool,
    pub(super) keys: Keys,
    /// Of the tile that is running.
    pub(super) queue: EventQueue,
    pub(super) tiles: Tiles<'a>,
}

impl Context<'_> {
    /// Has something happen at `at` in the place that `key` gives it.
    #[inline]
    pub(super) fn push(&mut self, at: Time, key: u64, what: What) {
        self.queue.push(Event {
            time: at,
            key,
            what: what.pack(),
        });
    }

    /// [`Self::push`] of what happens in a tile that is not running.
    #[inline]
    pub(super) fn push_to(&mut self, tile: TileIndex, at: Time, key: u64, what: What) {
        let what = what.pack();
        let event = Event {
            time: at,
            key,
            what,
        };
        self.tiles.push(tile, event);
    }

    /// Has a packet or PFC frame arrive in whichever tile that is; none is running.
    #[inline]
    pub(super) fn push_arrival(&mut self, event: Event) {
        if self.tiles.is_empty() {
            self.queue.push(event);
        } else {
            let tile = self.tiles.of(What::arrives_at(event.what));
            self.tiles.push(tile, event);
        }
    }

    /// Has something happen at `at`, in its place among what happens at `port` then; the key of that place.
    #[inline]
    pub(super) fn schedule(
        &mut self,
        at: Time,
        (kind, port, sequence): (Kind, PortIndex, u32),
        what: What,
    ) -> u64 {
        let key = self.keys.next(kind, port, sequence);
        self.push(at, key, what);
        key
    }

    /// Reports what `node` has to report.
    pub(super) fn record(&mut self, node: NodeId, record: Record) {
        self.records.push(self.now, self.key, node, record);
    }

    /// A host's first port.
    #[inline]
    pub(super) fn first_port(&self, node: NodeId) -> PortIndex {
        self.cut.first_port(node)
    }

    /// Timeouts in a row that a sender bears.
    pub(super) fn patience(&self) -> u32 {
        self.config.max_timeouts.min(255)
    }

    /// The run ends with an error.
    pub(super) fn stop(&mut self, fault: SetupError) {
        self.fault.get_or_insert((self.now, fault));
        self.may_stop = true;
    }
}
