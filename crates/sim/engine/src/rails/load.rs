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

/// Lends out the parts of a workload that consists of them.
fn lend<W: Workload>(parts: &mut [W]) -> Vec<Box<dyn Workload + '_>> {
    let parts = parts.iter_mut();
    parts.map(|part| Box::new(part) as Box<dyn Workload + '_>).collect()
}

/// Processes that send without end, each a stream of its own with `window` messages under way. A process takes `choose` of its
/// time for each message before it leaves.
#[derive(Clone, Debug)]
pub struct Streams {
    ways: Vec<Way>,
    names: Vec<String>,
    size: Bytes,
    window: u32,
    choose: Span,
    /// When each process has time, and how many messages it has begun with.
    processes: Vec<(Time, u64)>,
    /// Messages that wait for nothing but a time: start, number in their stream, stream.
    ready: BinaryHeap<Reverse<(Time, u64, u32)>>,
    parts: Vec<Self>,
    is_part: bool,
}

impl Streams {
    /// `ways[i]` is stream i, up to 64 of them; all start at once.
    #[must_use]
    pub fn new(ways: Vec<Way>, size: Bytes, window: u32, choose: Span) -> Self {
        let names = (0..ways.len()).map(|stream| format!("stream {stream}"));
        let mut made = Self {
            names: names.collect(),
            processes: Vec::new(),
            ways,
            size,
            window,
            choose,
            ready: BinaryHeap::new(),
            parts: Vec::new(),
            is_part: false,
        };
        made.begin(&|_| true);
        made
    }

    /// All streams begin that such a host sends.
    fn begin(&mut self, is_own: &dyn Fn(NodeId) -> bool) {
        self.processes = vec![(Time::ZERO, 0); self.ways.len()];
        self.ready.clear();
        for _ in 0..self.window {
            for stream in 0..self.ways.len() {
                if is_own(self.ways[stream].0) {
                    self.next(Time::ZERO, stream);
                }
            }
        }
    }

    /// A process begins with its next message.
    fn next(&mut self, now: Time, stream: usize) {
        let (free_at, number) = &mut self.processes[stream];
        *free_at = now.max(*free_at) + self.choose;
        self.ready.push(Reverse((*free_at, *number, stream as u32)));
        *number += 1;
    }

    /// The stream of a message.
    const fn stream(tag: u64) -> usize {
        (tag & 0xff) as usize
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
        let Reverse((start, number, stream)) = self.ready.pop()?;
        let tag = number << 8 | u64::from(stream);
        let way = self.ways[stream as usize];
        Some(message(start, way, self.size, stream, tag))
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        // Who sends the next one is another host.
        if !self.is_part {
            self.next(now, Self::stream(tag));
        }
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn is_divisible(&self) -> bool {
        true
    }

    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let part = |number| {
            let mut part = Self {
                is_part: true,
                ..self.clone()
            };
            part.begin(&|host| part_of(host) == number);
            part
        };
        self.parts = (0..parts).map(part).collect();
        Some(lend(&mut self.parts))
    }

    fn is_news(&self, _tag: u64) -> bool {
        true
    }

    fn news_for(&self, tag: u64) -> Option<NodeId> {
        Some(self.ways[Self::stream(tag)].0)
    }

    fn on_news(&mut self, now: Time, tag: u64, _member: Option<NodeId>) {
        self.next(now, Self::stream(tag));
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
    /// Messages to send, there and back.
    count: u64,
    /// The next message: when it leaves, and its number.
    next: Option<(Time, u64)>,
    /// Messages that hosts of this part are still to have.
    left: u64,
    /// Sums of the times at which timed messages began and came in this part, in ps.
    begun: u128,
    come: u128,
    parts: Vec<Self>,
}

impl PingPong {
    /// `rounds` of them that are timed; each message takes `choose` of a process's time before it leaves.
    #[must_use]
    pub fn new(way: Way, size: Bytes, rounds: u32, choose: Span, pause: Span) -> Self {
        let count = 2 * (1 + u64::from(rounds));
        Self {
            way,
            names: ["message".to_owned()],
            size,
            choose,
            pause,
            count,
            next: Some((Time::ZERO + choose, 0)),
            left: count,
            begun: 0,
            come: 0,
            parts: Vec::new(),
        }
    }

    /// Mean time of a message from the process that sends it to the one that has it; `None` before all have come.
    #[must_use]
    pub fn latency(&self) -> Option<Span> {
        let timed = self.count - 2;
        if !self.finished() || timed == 0 {
            return None;
        }
        let parts = || self.parts.iter().chain([self]);
        let come: u128 = parts().map(|part| part.come).sum();
        let begun: u128 = parts().map(|part| part.begun).sum();
        Some(Span(((come - begun) / u128::from(timed)) as u64))
    }

    /// Messages go there and back in turns.
    fn way_of(&self, number: u64) -> Way {
        let (here, there) = self.way;
        if number.is_multiple_of(2) {
            (here, there)
        } else {
            (there, here)
        }
    }

    const fn is_timed(number: u64) -> bool {
        number >= 2
    }
}

impl Workload for PingPong {
    fn classes(&self) -> &[String] {
        &self.names
    }

    fn next_start(&self) -> Option<Time> {
        self.next.map(|(start, _)| start)
    }

    fn pop(&mut self) -> Option<Message> {
        let (start, number) = self.next.take()?;
        Some(message(start, self.way_of(number), self.size, 0, number))
    }

    /// Who has a message sends the next.
    fn on_delivered(&mut self, now: Time, number: u64) {
        self.left -= 1;
        if Self::is_timed(number) {
            self.come += u128::from(now.0);
        }
        let (next, begun) = (number + 1, now + self.pause);
        if next < self.count {
            if Self::is_timed(next) {
                self.begun += u128::from(begun.0);
            }
            self.next = Some((begun + self.choose, next));
        }
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn is_divisible(&self) -> bool {
        true
    }

    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let part = |number| {
            let is_own = |host| part_of(host) == number;
            let (here, there) = self.way;
            let ends = u64::from(is_own(here)) + u64::from(is_own(there));
            Self {
                next: self.next.filter(|_| is_own(here)),
                left: ends * self.count / 2,
                ..self.clone()
            }
        };
        self.parts = (0..parts).map(part).collect();
        self.left = 0;
        Some(lend(&mut self.parts))
    }

    fn expected_messages(&self) -> Option<u64> {
        Some(self.count)
    }

    fn is_open_ended(&self) -> bool {
        true
    }

    fn finished(&self) -> bool {
        self.left == 0 && self.parts.iter().all(Self::finished)
    }
}
