//! Two workloads on one fabric, which know nothing of each other.

use std::collections::VecDeque;

use raddle_units::{Bytes, NodeId, Span, Time};

use crate::{Message, TrafficError, Workload};

/// Tags of the second workload have this bit, which no other tag has.
const SECOND: u64 = 1 << 63;

/// The messages of two workloads in order of time; the first one's come first where times are equal. Classes of the second
/// follow those of the first. Each hears of its own messages alone.
///
/// Where one of them waits for deliveries and is cut, the other one's messages are all held in memory if it waits for
/// nothing but time.
#[derive(Debug)]
pub struct Beside<A, B> {
    first: A,
    second: B,
    classes: Vec<String>,
    /// Classes of the first.
    shift: u8,
}

impl<A: Workload, B: Workload> Beside<A, B> {
    /// Both, with 256 classes at most in all.
    pub fn new(first: A, second: B) -> Self {
        let classes = [first.classes(), second.classes()].concat();
        Self {
            shift: first.classes().len() as u8,
            first,
            second,
            classes,
        }
    }

    /// The first workload, if it is the first one's message, or the second, with the tag that it knows.
    fn owner(&mut self, tag: u64) -> (&mut dyn Workload, u64) {
        if tag & SECOND == 0 {
            (&mut self.first, tag)
        } else {
            (&mut self.second, tag & !SECOND)
        }
    }

    fn asked(&self, tag: u64) -> (&dyn Workload, u64) {
        if tag & SECOND == 0 {
            (&self.first, tag)
        } else {
            (&self.second, tag & !SECOND)
        }
    }
}

/// The parts of a workload, whether or not it waits for deliveries.
fn parts_of<'w>(
    workload: &'w mut dyn Workload,
    parts: usize,
    part_of: &dyn Fn(NodeId) -> usize,
) -> Option<Vec<Box<dyn Workload + 'w>>> {
    if workload.has_dependencies() {
        return workload.split(parts, part_of);
    }
    let mut queues: Vec<Queue> = (0..parts).map(|_| Queue::default()).collect();
    while let Some(message) = workload.pop() {
        queues[part_of(message.src)].0.push_back(message);
    }
    let queues = queues.into_iter();
    Some(
        queues
            .map(|queue| Box::new(queue) as Box<dyn Workload>)
            .collect(),
    )
}

impl<A: Workload, B: Workload> Workload for Beside<A, B> {
    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn next_start(&self) -> Option<Time> {
        let starts = [self.first.next_start(), self.second.next_start()];
        starts.into_iter().flatten().min()
    }

    fn pop(&mut self) -> Option<Message> {
        let next = self.next_start()?;
        if self.first.next_start() == Some(next) {
            return self.first.pop();
        }
        let message = self.second.pop()?;
        Some(Message {
            class: message.class + self.shift,
            tag: message.tag | SECOND,
            ..message
        })
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        let (owner, tag) = self.owner(tag);
        owner.on_delivered(now, tag);
    }

    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let (owner, tag) = self.owner(tag);
        owner.on_member_delivered(now, tag, member);
    }

    fn has_dependencies(&self) -> bool {
        self.first.has_dependencies() || self.second.has_dependencies()
    }

    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        if !self.is_divisible() {
            return None;
        }
        let (classes, shift) = (&self.classes, self.shift);
        let first = parts_of(&mut self.first, parts, part_of)?;
        let second = parts_of(&mut self.second, parts, part_of)?;
        let both = first.into_iter().zip(second).map(|(first, second)| {
            let both = Beside {
                first,
                second,
                classes: classes.clone(),
                shift,
            };
            Box::new(both) as Box<dyn Workload + '_>
        });
        Some(both.collect())
    }

    fn is_divisible(&self) -> bool {
        let divides = |one: &dyn Workload| one.is_divisible() || !one.has_dependencies();
        self.has_dependencies() && divides(&self.first) && divides(&self.second)
    }

    fn longest_window(&self) -> Span {
        let first = self.first.longest_window();
        first.min(self.second.longest_window())
    }

    fn is_news(&self, tag: u64) -> bool {
        let (owner, tag) = self.asked(tag);
        owner.is_news(tag)
    }

    fn news_for(&self, tag: u64) -> Option<NodeId> {
        let (owner, tag) = self.asked(tag);
        owner.news_for(tag)
    }

    fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        let (owner, tag) = self.owner(tag);
        owner.on_news(now, tag, member);
    }

    fn expected_messages(&self) -> Option<u64> {
        Some(self.first.expected_messages()? + self.second.expected_messages()?)
    }

    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.first.expected_bytes()? + self.second.expected_bytes()?)
    }

    fn expected_last_start(&self) -> Option<Time> {
        let first = self.first.expected_last_start()?;
        Some(first.max(self.second.expected_last_start()?))
    }

    fn is_open_ended(&self) -> bool {
        self.first.is_open_ended() || self.second.is_open_ended()
    }

    fn finished(&self) -> bool {
        self.first.finished() && self.second.finished()
    }

    fn round_starts(&self) -> &[Time] {
        match self.first.round_starts() {
            [] => self.second.round_starts(),
            starts => starts,
        }
    }

    fn fault(&self) -> Option<&TrafficError> {
        self.first.fault().or_else(|| self.second.fault())
    }
}

/// What some hosts send, all of it known.
#[derive(Debug, Default)]
struct Queue(VecDeque<Message>);

impl Workload for Queue {
    fn classes(&self) -> &[String] {
        &[]
    }

    fn next_start(&self) -> Option<Time> {
        self.0.front().map(|message| message.start)
    }

    fn pop(&mut self) -> Option<Message> {
        self.0.pop_front()
    }

    fn finished(&self) -> bool {
        self.0.is_empty()
    }
}

/// Leaves out the messages of some classes; all others stay as they are.
///
/// It is for workloads whose messages wait for nothing but time.
#[derive(Debug)]
pub struct Without<W> {
    inner: W,
    /// Of each class: whether its messages are left out.
    left_out: Vec<bool>,
    head: Option<Message>,
}

impl<W: Workload> Without<W> {
    /// `workload` without the classes that `is_left_out` names.
    pub fn new(workload: W, is_left_out: impl Fn(&str) -> bool) -> Self {
        let classes = workload.classes().iter();
        let left_out = classes.map(|class| is_left_out(class)).collect();
        let mut made = Self {
            inner: workload,
            left_out,
            head: None,
        };
        made.advance();
        made
    }

    fn advance(&mut self) -> Option<Message> {
        let left_out = &self.left_out;
        let kept = |message: &Message| !left_out[usize::from(message.class)];
        let mut next = self.inner.pop();
        while next.as_ref().is_some_and(|message| !kept(message)) {
            next = self.inner.pop();
        }
        std::mem::replace(&mut self.head, next)
    }
}

impl<W: Workload> Workload for Without<W> {
    fn classes(&self) -> &[String] {
        self.inner.classes()
    }

    fn next_start(&self) -> Option<Time> {
        self.head.map(|message| message.start)
    }

    fn pop(&mut self) -> Option<Message> {
        self.advance()
    }

    fn finished(&self) -> bool {
        self.head.is_none()
    }

    fn fault(&self) -> Option<&TrafficError> {
        self.inner.fault()
    }
}

#[cfg(test)]
mod tests {
    use raddle_units::BitRate;

    use super::*;
    use crate::{FlowList, IdealNetwork, drive_ideal};

    fn message(start: u64, src: u32, class: u8) -> Message {
        Message {
            start: Time(start),
            src: NodeId(src),
            dst: NodeId(9).into(),
            size: Bytes(1),
            class,
            priority: 3,
            tag: 0,
        }
    }

    fn list(messages: &[(u64, u32, u8)], classes: &[&str]) -> FlowList {
        let messages = messages
            .iter()
            .map(|&(at, src, class)| message(at, src, class));
        let classes = classes.iter().map(|&class| class.to_owned()).collect();
        FlowList::new(messages.collect(), classes)
    }

    const NETWORK: IdealNetwork = IdealNetwork {
        rate: BitRate(8_000_000_000),
        latency: Span(1000),
    };

    #[test]
    fn both_keep_their_order_and_the_first_comes_first() {
        let first = list(&[(5, 0, 0), (10, 1, 0)], &["job"]);
        let second = list(&[(5, 2, 1), (7, 3, 0)], &["near", "far"]);
        let mut both = Beside::new(first, second);
        assert_eq!(both.classes(), ["job", "near", "far"]);
        let sent: Vec<(u32, u8)> = std::iter::from_fn(|| both.pop())
            .map(|message| (message.src.0, message.class))
            .collect();
        assert_eq!(sent, [(0, 0), (2, 2), (3, 1), (1, 0)]);
        assert!(both.finished());
    }

    #[test]
    fn tags_are_unique_and_go_back_to_their_owner() {
        let both = || Beside::new(list(&[(5, 0, 0)], &["a"]), list(&[(5, 1, 0)], &["b"]));
        let mut tags: Vec<u64> = Vec::new();
        let mut sent = both();
        while let Some(message) = sent.pop() {
            tags.push(message.tag);
        }
        assert_eq!(tags, [0, SECOND]);
        assert_eq!(drive_ideal(&mut both(), NETWORK, 10, |_, _| ()), 2);
    }

    #[test]
    fn classes_that_are_left_out_move_nothing_else() {
        let whole = list(&[(1, 0, 0), (2, 1, 1), (3, 2, 0), (4, 3, 1)], &["a", "b"]);
        let mut rest = Without::new(whole, |class| class == "b");
        let sent: Vec<u64> = std::iter::from_fn(|| rest.pop())
            .map(|message| message.start.0)
            .collect();
        assert_eq!(sent, [1, 3]);
        assert!(rest.finished() && rest.next_start().is_none());
    }
}
