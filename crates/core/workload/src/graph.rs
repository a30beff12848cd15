//! A workload as a graph: messages and compute gaps that start after a time and after others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use raddle_units::{Bytes, NodeId, Span, Time};

use crate::error::{MAX_CLASSES, MAX_SIZE_BYTES};
use crate::message::{DATA_PRIORITY, PLAIN_CLASS};
use crate::{Destination, Message, TrafficError, Workload};

/// A step of a [`MessageGraph`]: a message or a gap, in order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step(pub u32);

#[derive(Clone, Copy, Debug)]
enum Work {
    Message {
        src: NodeId,
        dst: Destination,
        size: Bytes,
        class: u8,
        priority: u8,
    },
    Gap(Span),
}

/// Collects the steps of a graph and what each waits for.
///
/// ```
/// use raddle_units::{Bytes, NodeId, Span};
/// use raddle_workload::{GraphBuilder, Workload};
/// let mut graph = GraphBuilder::new();
/// let request = graph.message(NodeId(0), NodeId(1), Bytes(64));
/// let compute = graph.gap(Span::from_us(3));
/// let answer = graph.message(NodeId(1), NodeId(0), Bytes(4096));
/// graph.after(compute, request).after(answer, compute);
/// let mut graph = graph.finish().unwrap();
/// let sent = graph.pop().unwrap();
/// assert!(graph.next_start().is_none());
/// graph.on_delivered(sent.start + Span::from_us(1), sent.tag);
/// assert_eq!(graph.next_start().unwrap().0, 4_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    work: Vec<Work>,
    not_before: Vec<Time>,
    /// (step, what it waits for).
    waits: Vec<(u32, u32)>,
    classes: Vec<String>,
    class: u8,
    priority: u8,
    fault: Option<TrafficError>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphBuilder {
    /// An empty graph; messages have the class `flow` and the data priority until told otherwise.
    pub fn new() -> Self {
        Self {
            work: Vec::new(),
            not_before: Vec::new(),
            waits: Vec::new(),
            classes: vec![PLAIN_CLASS.to_owned()],
            class: 0,
            priority: DATA_PRIORITY,
            fault: None,
        }
    }

    /// Messages made from now on have this class. More than 255 classes fail in [`finish`](Self::finish).
    pub fn set_class(&mut self, name: &str) -> &mut Self {
        let known = self.classes.iter().position(|class| class == name);
        let index = known.unwrap_or_else(|| {
            self.classes.push(name.to_owned());
            self.classes.len() - 1
        });
        match u8::try_from(index) {
            Ok(index) if usize::from(index) < MAX_CLASSES => self.class = index,
            _ => self.fail(self.work.len(), "more than 255 classes: use fewer names"),
        }
        self
    }

    /// Messages made from now on have this priority, 0 to 7.
    pub fn set_priority(&mut self, priority: u8) -> &mut Self {
        if priority > 7 {
            self.fail(
                self.work.len(),
                "the priority is above 7: there are eight queues",
            );
        }
        self.priority = priority;
        self
    }

    /// A message of `size` bytes.
    pub fn message(&mut self, src: NodeId, dst: impl Into<Destination>, size: Bytes) -> Step {
        let (step, dst) = (self.work.len(), dst.into());
        if dst == Destination::Host(src) {
            self.fail(
                step,
                &format!("a message from host {} to itself: change one end", src.0),
            );
        }
        if size.0 == 0 || size.0 > MAX_SIZE_BYTES {
            self.fail(step, "a message has between 1 byte and 1 TiB");
        }
        let (class, priority) = (self.class, self.priority);
        self.push(Work::Message {
            src,
            dst,
            size,
            class,
            priority,
        })
    }

    /// A time in which something is computed.
    pub fn gap(&mut self, span: Span) -> Step {
        self.push(Work::Gap(span))
    }

    /// `step` starts no earlier than `time`.
    pub fn at(&mut self, step: Step, time: Time) -> &mut Self {
        match self.not_before.get_mut(step.0 as usize) {
            Some(slot) => *slot = time,
            None => self.fail(step.0 as usize, "no such step"),
        }
        self
    }

    /// `step` starts after `before` is done: a message when it is delivered, a gap when it is over.
    pub fn after(&mut self, step: Step, before: Step) -> &mut Self {
        let steps = self.work.len() as u32;
        if step.0 >= steps || before.0 >= steps {
            self.fail(step.0.max(before.0) as usize, "no such step");
        } else {
            self.waits.push((step.0, before.0));
        }
        self
    }

    /// The graph as a workload.
    ///
    /// # Errors
    /// A message to its own sender, without bytes or too large; an unknown step; steps that wait for each other in a
    /// cycle; more than 2^32 steps.
    pub fn finish(mut self) -> Result<MessageGraph, TrafficError> {
        if u32::try_from(self.work.len().max(self.waits.len())).is_err() {
            self.fail(0, "more than 2^32 steps or arrows");
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let steps = self.work.len();
        let mut missing = vec![0u32; steps];
        let mut offsets = vec![0u32; steps + 1];
        for &(step, before) in &self.waits {
            missing[step as usize] += 1;
            offsets[before as usize + 1] += 1;
        }
        for index in 0..steps {
            offsets[index + 1] += offsets[index];
        }
        let mut followers = vec![0u32; self.waits.len()];
        let mut cursor = offsets.clone();
        for &(step, before) in &self.waits {
            let slot = &mut cursor[before as usize];
            followers[*slot as usize] = step;
            *slot += 1;
        }
        check_cycles(&missing, &offsets, &followers)?;
        let (mut messages, mut bytes) = (0, 0u64);
        for (index, work) in self.work.iter().enumerate() {
            if let Work::Message { size, .. } = work {
                messages += 1;
                bytes = size
                    .0
                    .checked_add(bytes)
                    .ok_or_else(|| TrafficError::Graph {
                        step: index as u32,
                        problem: "the messages up to here are more than 2^64 bytes together"
                            .to_owned(),
                    })?;
            }
        }
        let mut graph = MessageGraph {
            has_dependencies: !self.waits.is_empty(),
            work: self.work,
            earliest: self.not_before,
            missing,
            offsets,
            followers,
            classes: self.classes,
            ready: BinaryHeap::new(),
            messages,
            undelivered: messages,
            bytes: Bytes(bytes),
        };
        // Starting a gap lowers `missing` of its followers, so what is free must be known before the first start.
        let free: Vec<u32> = (0..steps as u32)
            .filter(|&step| graph.missing[step as usize] == 0)
            .collect();
        for step in free {
            graph.start(step);
        }
        Ok(graph)
    }

    fn push(&mut self, work: Work) -> Step {
        self.work.push(work);
        self.not_before.push(Time::ZERO);
        Step((self.work.len() - 1) as u32)
    }

    fn fail(&mut self, step: usize, problem: &str) {
        if self.fault.is_none() {
            let problem = problem.to_owned();
            self.fault = Some(TrafficError::Graph {
                step: step as u32,
                problem,
            });
        }
    }
}

/// Kahn's algorithm: what is never free is on a cycle or behind one.
fn check_cycles(missing: &[u32], offsets: &[u32], followers: &[u32]) -> Result<(), TrafficError> {
    let mut missing = missing.to_vec();
    let mut free: Vec<usize> = (0..missing.len())
        .filter(|&step| missing[step] == 0)
        .collect();
    while let Some(step) = free.pop() {
        for &follower in &followers[offsets[step] as usize..offsets[step + 1] as usize] {
            missing[follower as usize] -= 1;
            if missing[follower as usize] == 0 {
                free.push(follower as usize);
            }
        }
    }
    match missing.iter().position(|&count| count > 0) {
        None => Ok(()),
        Some(step) => Err(TrafficError::Graph {
            step: step as u32,
            problem: "it waits for itself through a cycle of `after`: remove one of them"
                .to_owned(),
        }),
    }
}

/// Messages and compute gaps with what they wait for; [`Message::tag`] is the step.
#[derive(Clone, Debug)]
pub struct MessageGraph {
    work: Vec<Work>,
    /// Not before this: the given time and what is done already.
    earliest: Vec<Time>,
    /// Steps that are still waited for.
    missing: Vec<u32>,
    offsets: Vec<u32>,
    followers: Vec<u32>,
    classes: Vec<String>,
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    messages: u64,
    undelivered: u64,
    bytes: Bytes,
    has_dependencies: bool,
}

impl MessageGraph {
    /// Puts a free message in line; walks through free gaps, whose ends are known at once.
    fn start(&mut self, step: u32) {
        let mut free = vec![step];
        while let Some(step) = free.pop() {
            let begin = self.earliest[step as usize];
            match self.work[step as usize] {
                Work::Message { .. } => self.ready.push(Reverse((begin, step))),
                Work::Gap(span) => {
                    self.complete(step, Time(begin.0.saturating_add(span.0)), &mut free);
                }
            }
        }
    }

    /// When a gap is over, once all that it waits for is done; `None`: not yet, or a message.
    pub fn gap_end(&self, step: Step) -> Option<Time> {
        let index = step.0 as usize;
        match self.work.get(index)? {
            Work::Gap(span) if self.missing[index] == 0 => {
                Some(Time(self.earliest[index].0.saturating_add(span.0)))
            }
            _ => None,
        }
    }

    fn complete(&mut self, step: u32, done: Time, free: &mut Vec<u32>) {
        let range = self.offsets[step as usize] as usize..self.offsets[step as usize + 1] as usize;
        for &follower in &self.followers[range] {
            let follower_index = follower as usize;
            self.earliest[follower_index] = self.earliest[follower_index].max(done);
            self.missing[follower_index] -= 1;
            if self.missing[follower_index] == 0 {
                free.push(follower);
            }
        }
    }
}

impl Workload for MessageGraph {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|&Reverse((time, _))| time)
    }
    fn pop(&mut self) -> Option<Message> {
        let Reverse((start, step)) = self.ready.pop()?;
        match self.work[step as usize] {
            Work::Message {
                src,
                dst,
                size,
                class,
                priority,
            } => Some(Message {
                start,
                src,
                dst,
                size,
                class,
                priority,
                tag: u64::from(step),
            }),
            Work::Gap(_) => None,
        }
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let Ok(step) = u32::try_from(tag) else { return };
        if step as usize >= self.work.len() {
            return;
        }
        self.undelivered = self.undelivered.saturating_sub(1);
        let mut free = Vec::new();
        self.complete(step, now, &mut free);
        for step in free {
            self.start(step);
        }
    }
    fn has_dependencies(&self) -> bool {
        self.has_dependencies
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.messages)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }
    fn finished(&self) -> bool {
        if self.has_dependencies {
            self.undelivered == 0
        } else {
            self.ready.is_empty()
        }
    }
}
