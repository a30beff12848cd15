//! A list of flows in memory, and streams of flows, as workloads.

use raddle_units::{Bytes, Time};

use crate::error::MAX_CLASSES;
use crate::message::is_tested_class;
use crate::{Message, TrafficError, Workload};

/// Flows in order of start, all of them in memory (40 bytes each).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowList {
    messages: Vec<Message>,
    classes: Vec<String>,
    next: usize,
    bytes: Bytes,
}

impl FlowList {
    /// A list of these messages, sorted by start; equal times keep their order. Tags become the place in the list.
    pub fn new(mut messages: Vec<Message>, classes: Vec<String>) -> Self {
        messages.sort_by_key(|message| message.start);
        for (index, message) in messages.iter_mut().enumerate() {
            message.tag = index as u64;
        }
        let bytes = messages.iter().map(|message| message.size).sum();
        Self {
            messages,
            classes,
            next: 0,
            bytes,
        }
    }

    /// Everything that `workload` sends, if that does not depend on deliveries.
    ///
    /// # Errors
    /// A closed loop, whose messages depend on deliveries, or a flow file that cannot be read to its end.
    pub fn collect(workload: &mut dyn Workload) -> Result<Self, TrafficError> {
        if workload.has_dependencies() {
            return Err(TrafficError::Write {
                target: "a list of flows".to_owned(),
                problem: "its messages start when others are delivered, so only a simulation knows their times"
                    .to_owned(),
            });
        }
        let classes = workload.classes().to_vec();
        let mut messages = Vec::new();
        while let Some(message) = workload.pop() {
            messages.push(message);
        }
        match workload.fault() {
            Some(fault) => Err(fault.clone()),
            None => Ok(Self::new(messages, classes)),
        }
    }

    /// All flows, whether popped or not.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The list from its beginning.
    pub fn rewound(&self) -> Self {
        Self {
            next: 0,
            ..self.clone()
        }
    }

    /// Only the flows of tested classes, or nothing if there are none or no others.
    pub fn isolated(&self) -> Option<Self> {
        let tested: Vec<bool> = self
            .classes
            .iter()
            .map(|name| is_tested_class(name))
            .collect();
        let messages: Vec<Message> = self
            .messages
            .iter()
            .copied()
            .filter(|message| tested.get(usize::from(message.class)) == Some(&true))
            .collect();
        if messages.is_empty() || messages.len() == self.messages.len() {
            return None;
        }
        Some(Self::new(messages, self.classes.clone()))
    }
}

impl Workload for FlowList {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.messages.get(self.next).map(|message| message.start)
    }
    fn pop(&mut self) -> Option<Message> {
        let message = self.messages.get(self.next).copied()?;
        self.next += 1;
        Some(message)
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.messages.len() as u64)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }
    fn expected_last_start(&self) -> Option<Time> {
        self.messages.last().map(|message| message.start)
    }
    fn finished(&self) -> bool {
        self.next >= self.messages.len()
    }
}

/// What is known beforehand of messages in all.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Their number.
    pub messages: Option<u64>,
    /// Their payload; an estimate where sizes are random.
    pub bytes: Option<Bytes>,
    /// When the last one starts; an estimate where starts are random.
    pub last_start: Option<Time>,
}

/// A sorted iterator of messages as a workload: one message is held, so memory does not grow with their number.
#[derive(Debug)]
pub struct Streamed<I> {
    messages: I,
    head: Option<Message>,
    classes: Vec<String>,
    expected: Expected,
    fault: Option<TrafficError>,
}

impl<I: Iterator<Item = Result<Message, TrafficError>>> Streamed<I> {
    /// The iterator must be sorted by start; it ends at its first error, which [`Workload::fault`] then shows.
    pub fn new(messages: I, classes: Vec<String>, expected: Expected) -> Self {
        let mut streamed = Self {
            messages,
            head: None,
            classes,
            expected,
            fault: None,
        };
        streamed.advance();
        streamed
    }

    fn advance(&mut self) {
        self.head = match self.messages.next() {
            Some(Ok(message)) => Some(message),
            Some(Err(fault)) => {
                self.fault = Some(fault);
                None
            }
            None => None,
        };
    }
}

impl<I: Iterator<Item = Result<Message, TrafficError>> + Send> Workload for Streamed<I> {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.head.map(|message| message.start)
    }
    fn pop(&mut self) -> Option<Message> {
        let message = self.head?;
        self.advance();
        Some(message)
    }
    fn expected_messages(&self) -> Option<u64> {
        self.expected.messages
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        self.expected.bytes
    }
    fn expected_last_start(&self) -> Option<Time> {
        self.expected.last_start
    }
    fn finished(&self) -> bool {
        self.head.is_none()
    }
    fn fault(&self) -> Option<&TrafficError> {
        self.fault.as_ref()
    }
}

/// Class names in order of appearance, as indexes.
#[derive(Clone, Default, Debug)]
pub(crate) struct ClassTable {
    names: Vec<String>,
}

impl ClassTable {
    /// The index of `name`, or nothing if there are too many.
    pub(crate) fn index(&mut self, name: &str) -> Option<u8> {
        // Flow files have a handful of classes, mostly in runs, so a scan beats a map.
        if let Some(found) = self.names.iter().position(|known| known == name) {
            return u8::try_from(found).ok();
        }
        if self.names.len() >= MAX_CLASSES {
            return None;
        }
        self.names.push(name.to_owned());
        u8::try_from(self.names.len() - 1).ok()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}
