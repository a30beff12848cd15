//! A workload as a graph: messages and compute gaps that start after a time and after others.

mod run;

use raddle_units::{Bytes, NodeId, Span, Time};

use crate::error::{MAX_CLASSES, MAX_SIZE_BYTES};
use crate::message::{DATA_PRIORITY, PLAIN_CLASS};
use crate::{Destination, TrafficError};

pub use run::MessageGraph;
use run::Steps;

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
        order(&offsets, &followers).map_err(on_cycle)?;
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
        Ok(MessageGraph::new(Steps::new(
            (self.work, self.not_before),
            (offsets, followers, missing),
            self.classes,
            (messages, Bytes(bytes)),
        )))
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

/// Steps, each after all that it waits for (Kahn's algorithm).
///
/// # Errors
/// The first step that is never free: it is on a cycle or behind one.
fn order(offsets: &[u32], followers: &[u32]) -> Result<Vec<u32>, u32> {
    let steps = offsets.len() - 1;
    let mut missing = vec![0_u32; steps];
    for &follower in followers {
        missing[follower as usize] += 1;
    }
    let mut order: Vec<u32> = (0..steps as u32)
        .filter(|&step| missing[step as usize] == 0)
        .collect();
    let mut done = 0;
    while let Some(&step) = order.get(done) {
        done += 1;
        let step = step as usize;
        for &follower in &followers[offsets[step] as usize..offsets[step + 1] as usize] {
            missing[follower as usize] -= 1;
            if missing[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    match missing.iter().position(|&count| count > 0) {
        None => Ok(order),
        Some(step) => Err(step as u32),
    }
}

fn on_cycle(step: u32) -> TrafficError {
    TrafficError::Graph {
        step,
        problem: "it waits for itself through a cycle of `after`: remove one of them".to_owned(),
    }
}
