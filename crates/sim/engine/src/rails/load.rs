//! What programs do that measure rails: streams of messages, and one message back and forth.

use std::{cmp::Reverse, collections::BinaryHeap};

use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{DATA_PRIORITY, Message, Workload};

/// One way: source and target.
type Way = (NodeId, NodeId);

fn message(start: Time, (src, dst): Way, size: Bytes, stream: u32, tag: u64) -> Message {
    Message {
        start,
        src,
        dst: dst.into(),
        size,
        class: stream as u8,
        priority: DATA_PRIORITY,
        tag,
    }
}

/// Processes that send without end, each a stream of its own with `window` messages under way. A process takes `choose` of its
/// time for each message before it leaves.
#[derive(Clone, Debug)]
pub struct Streams {
    ways: Vec<Way>,
    names: Vec<String>,
    size: Bytes,
    choose: Span,
    /// When each process has time.
    free_at: Vec<Time>,
    /// Messages that wait for nothing but a time: start, serial number, stream.
    ready: BinaryHeap<Reverse<(Time, u64, u32)>>,
    serial: u64,
}

impl Streams {
    /// `ways[i]` is stream i, up to 64 of them; all start at once.
    #[must_use]
    pub fn new(ways: Vec<Way>, size: Bytes, window: u32, choose: Span) -> Self {
        let streams = ways.len() as u32;
        let mut made = Self {
            names: (0..streams)
                .map(|stream| format!("stream {stream}"))
                .collect(),
            free_at: vec![Time::ZERO; ways.len()],
            ways,
            size,
            choose,
            ready: BinaryHeap::new(),
            serial: 0,
        };
        for _ in 0..window {
            for stream in 0..streams {
                made.next(Time::ZERO, stream);
            }
        }
        made
    }

    /// A process begins with its next message.
    fn next(&mut self, now: Time, stream: u32) {
        let free_at = &mut self.free_at[stream as usize];
        *free_at = now.max(*free_at) + self.choose;
        self.ready.push(Reverse((*free_at, self.serial, stream)));
        self.serial += 1;
    }
}

impl Workload for Streams {
    fn classes(&self) -> &[String] {
        &self.names
    }

    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|Reverse((start, ..))| *start)
    }

    fn pop(&mut self) -> Option<Message> {
        let Reverse((start, serial, stream)) = self.ready.pop()?;
        // The stream can be told from the tag.
        let tag = serial << 8 | u64::from(stream);
        let way = self.ways[stream as usize];
        Some(message(start, way, self.size, stream, tag))
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        self.next(now, (tag & 0xff) as u32);
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn is_open_ended(&self) -> bool {
        true
    }

    fn finished(&self) -> bool {
        false
    }
}

/// One message there and back, again and again; the next begins `pause` after the last has come. The first round makes the
/// connection and is not timed.
#[derive(Clone, Debug)]
pub struct PingPong {
    way: Way,
    names: [String; 1],
    size: Bytes,
    choose: Span,
    pause: Span,
    next: Option<Time>,
    /// Messages to send, there and back, and those delivered.
    count: u64,
    delivered: u64,
    begun: Time,
    under_way: Span,
}

impl PingPong {
    /// `rounds` of them that are timed; each message takes `choose` of a process's time before it leaves.
    #[must_use]
    pub fn new(way: Way, size: Bytes, rounds: u32, choose: Span, pause: Span) -> Self {
        Self {
            way,
            names: ["message".to_owned()],
            size,
            choose,
            pause,
            next: Some(Time::ZERO + choose),
            count: 2 * (1 + u64::from(rounds)),
            delivered: 0,
            begun: Time::ZERO,
            under_way: Span::ZERO,
        }
    }

    /// Mean time of a message from the process that sends it to the one that has it; `None` before all have come.
    #[must_use]
    pub fn latency(&self) -> Option<Span> {
        let timed = self.count - 2;
        (self.finished() && timed > 0).then(|| Span(self.under_way.0 / timed))
    }
}

impl Workload for PingPong {
    fn classes(&self) -> &[String] {
        &self.names
    }

    fn next_start(&self) -> Option<Time> {
        self.next
    }

    fn pop(&mut self) -> Option<Message> {
        let start = self.next.take()?;
        let (here, there) = self.way;
        let way = if self.delivered.is_multiple_of(2) {
            (here, there)
        } else {
            (there, here)
        };
        Some(message(start, way, self.size, 0, self.delivered))
    }

    fn on_delivered(&mut self, now: Time, _tag: u64) {
        self.delivered += 1;
        if self.delivered > 2 {
            self.under_way += now.since(self.begun);
        }
        if self.delivered < self.count {
            self.begun = now + self.pause;
            self.next = Some(self.begun + self.choose);
        }
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn expected_messages(&self) -> Option<u64> {
        Some(self.count)
    }

    fn is_open_ended(&self) -> bool {
        true
    }

    fn finished(&self) -> bool {
        self.delivered == self.count
    }
}
