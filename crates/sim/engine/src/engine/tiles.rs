//! Tiles: parts of a process that run through a window one after the other.
//!
//! A large fabric does not fit into a cache, and in the order of time each event is at another end of it. Tile by tile, what a
//! window touches of a switch is fetched once. A tile has a list of events, a clock, and messages to start; all else is the
//! process's, and a packet that passes from tile to tile stays in its place. What happens in one tile reaches another no earlier
//! than in the next window, as between processes, so their order changes no result.
//!
//! Only runs have tiles whose nodes know of each other by nothing but packets and PFC frames ([`super::build`] decides).

use raddle_units::Time;
use raddle_workload::Message;

use super::{
    context::Context,
    cut::Cut,
    process::{Base, Process, Stop},
    traffic::Traffic,
};
use crate::{
    chunks::{Chunks, End},
    event::{Event, EventQueue},
    index::{List, PortIndex, ProcessIndex, TileIndex},
    setup::SetupError,
};

/// What a tile has of its own. While it runs, this holds what the process has between its tiles.
struct Tile<'a> {
    queue: EventQueue,
    traffic: Traffic<'a>,
    now: Time,
    /// When something happens next, but for what is in its inbox.
    due: Time,
}

/// What has come for a tile since it ran last. (Its list of events is not in the cache while others run.)
struct Inbox {
    /// Of a list in [`Tiles::events`].
    end: End,
    earliest: Time,
}

/// The tiles of a process; none where it runs as a whole.
#[derive(Default)]
pub(super) struct Tiles<'a> {
    tiles: List<TileIndex, Tile<'a>>,
    inboxes: List<TileIndex, Inbox>,
    /// What is in the inboxes.
    events: Chunks<Event>,
    of_port: List<PortIndex, TileIndex>,
}

impl Tiles<'_> {
    /// Of this process, with such lists of events.
    pub(super) fn new(cut: &Cut, own: ProcessIndex, queue: impl Fn() -> EventQueue) -> Self {
        let mut made = Self::default();
        let count = cut.tiles(own);
        if count < 2 {
            return made;
        }
        for _ in 0..count {
            made.tiles.push(Tile {
                queue: queue(),
                traffic: Traffic::new(None, false),
                now: Time::ZERO,
                due: Time::NEVER,
            });
            made.inboxes.push(Inbox {
                end: 0,
                earliest: Time::NEVER,
            });
        }
        made
    }

    /// The next port is part of this tile.
    pub(super) fn add_port(&mut self, tile: TileIndex) {
        if !self.is_empty() {
            self.of_port.push(tile);
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tiles.len() == 0
    }

    /// The tile that a port is part of.
    #[inline]
    pub(super) fn of(&self, port: PortIndex) -> TileIndex {
        self.of_port[port]
    }

    /// Adds an event to a tile that is not running.
    #[inline]
    pub(super) fn push(&mut self, tile: TileIndex, event: Event) {
        let inbox = &mut self.inboxes[tile];
        inbox.earliest = inbox.earliest.min(event.time);
        self.events.push(&mut inbox.end, event);
    }

    /// When something happens next in a tile.
    fn due_in(&self, tile: TileIndex) -> Time {
        self.tiles[tile].due.min(self.inboxes[tile].earliest)
    }

    /// A message starts in a tile in the next window, not before those that were handed out.
    fn hand_out(&mut self, tile: TileIndex, message: Message) {
        let tile = &mut self.tiles[tile];
        tile.due = tile.due.min(message.start);
        tile.traffic.hand_out(message);
    }

    /// When something happens next in any of them.
    fn due(&self) -> Time {
        let due = self.tiles.places().map(|tile| self.due_in(tile));
        due.min().unwrap_or(Time::NEVER)
    }
}

impl Context<'_> {
    /// The tile that is running takes in what has come for it.
    fn take_in(&mut self, tile: TileIndex) {
        let inbox = &mut self.tiles.inboxes[tile];
        inbox.earliest = Time::NEVER;
        while inbox.end != 0 {
            for &event in self.tiles.events.take_last(&mut inbox.end) {
                self.queue.push(event);
            }
        }
    }
}

impl Base<'_> {
    /// Makes a tile the one that is running, or puts it back.
    fn exchange_with(&mut self, tile: TileIndex) {
        let cx = &mut self.cx;
        let tile = &mut cx.tiles.tiles[tile];
        cx.queue.exchange(&mut tile.queue);
        std::mem::swap(&mut cx.now, &mut tile.now);
        std::mem::swap(&mut self.traffic, &mut tile.traffic);
    }
}

impl Process<'_> {
    /// A message starts here in the next window, not before those that were handed out.
    pub(super) fn hand_out(&mut self, message: Message) {
        let Base { cx, traffic, .. } = &mut self.base;
        if cx.tiles.is_empty() {
            traffic.hand_out(message);
        } else {
            cx.tiles.hand_out(cx.cut.tile(message.src), message);
        }
    }

    /// When something happens next, `done` at the earliest.
    pub(super) fn next_due(&mut self, done: Time) -> Time {
        if self.base.cx.tiles.is_empty() {
            let event = self.next_event();
            event.min(self.base.traffic.next_after(done))
        } else {
            self.base.cx.tiles.due()
        }
    }

    /// Runs all tiles through a window, one after the other.
    pub(super) fn run_tiles(&mut self, begin: Time, end: Time) -> Stop {
        let mut first: Option<(Time, SetupError)> = None;
        for tile in self.base.cx.tiles.tiles.places() {
            if self.base.cx.tiles.due_in(tile) >= end {
                continue;
            }
            self.base.exchange_with(tile);
            self.base.cx.take_in(tile);
            self.run_whole(begin, end, u64::MAX);
            let due = self.next_event().min(self.base.traffic.next_after(end));
            let fault = self.base.cx.fault.take();
            self.base.exchange_with(tile);
            let cx = &mut self.base.cx;
            let tile = &mut cx.tiles.tiles[tile];
            tile.due = due;
            cx.now = cx.now.max(tile.now);
            if let Some(fault) = fault
                && first.as_ref().is_none_or(|known| fault.0 < known.0)
            {
                first = Some(fault);
            }
        }
        self.base.cx.fault = first;
        Stop::Window
    }
}
