//! A graph under way: which steps are free, and when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use raddle_units::{Bytes, NodeId, Span, Time};

use super::{Step, Work, order};
use crate::{Destination, Message, Workload};

/// The steps of a graph, which all its parts share.
///
/// Deliveries that a step waits for may be told to several parts at a time: the latest end and the number of those that
/// are missing are the same in any order.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) work: Vec<Work>,
    /// Of each step: where its followers begin, and the end of the last one's.
    pub(super) offsets: Vec<u32>,
    pub(super) followers: Vec<u32>,
    pub(super) classes: Vec<String>,
    pub(super) messages: u64,
    pub(super) bytes: Bytes,
    /// Not before this, in ps: the given time and what is done already.
    earliest: Vec<AtomicU64>,
    /// Steps that are still waited for.
    missing: Vec<AtomicU32>,
}

impl Steps {
    /// Steps of which none is done.
    pub(super) fn new(
        (work, not_before): (Vec<Work>, Vec<Time>),
        (offsets, followers, missing): (Vec<u32>, Vec<u32>, Vec<u32>),
        classes: Vec<String>,
        (messages, bytes): (u64, Bytes),
    ) -> Self {
        Self {
            work,
            offsets,
            followers,
            classes,
            messages,
            bytes,
            earliest: (not_before.into_iter())
                .map(|time| AtomicU64::new(time.0))
                .collect(),
            missing: missing.into_iter().map(AtomicU32::new).collect(),
        }
    }

    fn followers(&self, step: u32) -> &[u32] {
        let step = step as usize;
        &self.followers[self.offsets[step] as usize..self.offsets[step + 1] as usize]
    }

    fn earliest(&self, step: u32) -> Time {
        Time(self.earliest[step as usize].load(Ordering::Relaxed))
    }

    fn missing(&self, step: u32) -> u32 {
        self.missing[step as usize].load(Ordering::Acquire)
    }

    /// One less to wait for; whether it was the last. Whoever hears so sees the ends of all others.
    fn pass(&self, step: u32, done: Time) -> bool {
        self.earliest[step as usize].fetch_max(done.0, Ordering::Relaxed);
        self.missing[step as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The message that a tag names, as its sender, its destination, and the host that has it when it is delivered:
    /// nobody in particular for a group.
    fn message(&self, tag: u64) -> Option<(u32, NodeId, Option<NodeId>)> {
        let step = u32::try_from(tag).ok()?;
        match *self.work.get(step as usize)? {
            Work::Message { src, dst, .. } => {
                let had = match dst {
                    Destination::Host(host) => Some(host),
                    Destination::Group(_) => None,
                    Destination::Reduction(_) | Destination::Offload(_) => Some(src),
                };
                Some((step, src, had))
            }
            Work::Gap(_) => None,
        }
    }
}

impl Clone for Steps {
    fn clone(&self) -> Self {
        let steps = 0..self.work.len() as u32;
        let earliest = steps.clone().map(|step| self.earliest(step)).collect();
        let missing = steps.map(|step| self.missing(step)).collect();
        Self::new(
            (self.work.clone(), earliest),
            (self.offsets.clone(), self.followers.clone(), missing),
            self.classes.clone(),
            (self.messages, self.bytes),
        )
    }
}

/// Whose messages follow on a step, through nothing but gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    /// Those of one host; a message is at home with its sender.
    Host(NodeId),
    /// Those of several hosts: a gap that each part passes for itself, by news alone.
    Everyone,
    /// No message's: nobody waits, and whoever is told of a delivery passes the gap at once.
    Nobody,
}

impl Home {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nobody, home) | (home, Self::Nobody) => home,
            (one, other) if one == other => one,
            _ => Self::Everyone,
        }
    }
}

/// How the graph was cut.
#[derive(Debug)]
struct Cut {
    /// By step.
    homes: Vec<Home>,
    parts: BTreeMap<NodeId, usize>,
}

impl Cut {
    fn new(steps: &Steps, parts: usize, part_of: &dyn Fn(NodeId) -> usize) -> Self {
        let mut cut = Self {
            homes: vec![Home::Nobody; steps.work.len()],
            parts: BTreeMap::new(),
        };
        for (home, work) in cut.homes.iter_mut().zip(&steps.work) {
            if let Work::Message { src, dst, .. } = *work {
                *home = Home::Host(src);
                for host in [Some(src), dst.host()].into_iter().flatten() {
                    let part = *cut.parts.entry(host).or_insert_with(|| part_of(host));
                    assert!(part < parts, "host {} is in part {part} of {parts}", host.0);
                }
            }
        }
        let order = order(&steps.offsets, &steps.followers).expect("a graph has no cycle");
        for step in order.into_iter().rev() {
            if let Work::Gap(_) = steps.work[step as usize] {
                let followers = steps.followers(step).iter();
                cut.homes[step as usize] = followers
                    .map(|&follower| cut.homes[follower as usize])
                    .fold(Home::Nobody, Home::and);
            }
        }
        cut
    }
}

/// What a part has been told of a step that is done, or knows by itself.
#[derive(Clone, Copy)]
enum Told {
    /// A delivery, at once; to this host.
    AtOnce(NodeId),
    /// A delivery, at the window's end; to this host, or to a whole group.
    AsNews(Option<NodeId>),
    /// A gap of one host, or of nobody, is over.
    Gap,
    /// A gap of everyone is over, as each part knows.
    SharedGap,
}

/// The steps of some hosts: a gap that several hosts wait for is passed in each part.
#[derive(Clone, Debug)]
struct Part {
    steps: Arc<Steps>,
    /// `None`: the part is the whole, told of all deliveries at once.
    cut: Option<Arc<Cut>>,
    number: usize,
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    /// Of each gap of everyone: not before this, and what is missing.
    shared: BTreeMap<u32, (Time, u32)>,
    /// Messages to its hosts.
    undelivered: u64,
}

impl Part {
    /// Whether it passes a step after `told`.
    fn passes(&self, step: u32, told: Told) -> bool {
        let Some(cut) = &self.cut else { return true };
        let is_own = |host| cut.parts[host] == self.number;
        match (&cut.homes[step as usize], told) {
            (_, Told::Gap) => true,
            (Home::Host(host), Told::AtOnce(had)) => *host == had,
            (Home::Host(host), Told::AsNews(had)) => Some(*host) != had && is_own(host),
            (Home::Host(host), Told::SharedGap) => is_own(host),
            (Home::Everyone, Told::AtOnce(_)) => false,
            (Home::Everyone, Told::AsNews(_) | Told::SharedGap) => true,
            // One part has to, and somebody has heard of what has a receiver already.
            (Home::Nobody, Told::AtOnce(_)) => true,
            (Home::Nobody, Told::AsNews(had)) => had.is_none() && self.number == 0,
            (Home::Nobody, Told::SharedGap) => self.number == 0,
        }
    }

    /// A step is done: lets what follows go on, through gaps, whose ends are known at once.
    fn complete(&mut self, step: u32, done: Time, told: Told) {
        let steps = Arc::clone(&self.steps);
        let mut open = vec![(step, done, told)];
        while let Some((step, done, told)) = open.pop() {
            for &follower in steps.followers(step) {
                if self.passes(follower, told) && self.pass(follower, done) {
                    open.extend(self.begin(follower));
                }
            }
        }
    }

    fn pass(&mut self, step: u32, done: Time) -> bool {
        let Some((earliest, missing)) = self.shared.get_mut(&step) else {
            return self.steps.pass(step, done);
        };
        *earliest = done.max(*earliest);
        *missing -= 1;
        *missing == 0
    }

    /// Puts a free message in line, or gives the gap with its end.
    fn begin(&mut self, step: u32) -> Option<(u32, Time, Told)> {
        let shared = self.shared.get(&step).map(|&(earliest, _)| earliest);
        let begin = shared.unwrap_or_else(|| self.steps.earliest(step));
        match self.steps.work[step as usize] {
            Work::Message { .. } => {
                self.ready.push(Reverse((begin, step)));
                None
            }
            Work::Gap(span) => {
                let told = shared.map_or(Told::Gap, |_| Told::SharedGap);
                Some((step, gap_end(begin, span), told))
            }
        }
    }

    fn gap_end(&self, step: u32) -> Option<Time> {
        let shared = self.shared.get(&step).copied();
        let state = || (self.steps.earliest(step), self.steps.missing(step));
        match (*self.steps.work.get(step as usize)?, shared) {
            (Work::Gap(span), shared) => {
                let (earliest, missing) = shared.unwrap_or_else(state);
                (missing == 0).then(|| gap_end(earliest, span))
            }
            (Work::Message { .. }, _) => None,
        }
    }

    fn is_delivered(&mut self) {
        self.undelivered = self.undelivered.saturating_sub(1);
    }
}

fn gap_end(begin: Time, span: Span) -> Time {
    Time(begin.0.saturating_add(span.0))
}

impl Workload for Part {
    fn classes(&self) -> &[String] {
        &self.steps.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|&Reverse((time, _))| time)
    }
    fn pop(&mut self) -> Option<Message> {
        let Reverse((start, step)) = self.ready.pop()?;
        match self.steps.work[step as usize] {
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
        match (self.steps.message(tag), &self.cut) {
            (Some((step, _, Some(had))), Some(_)) => {
                self.is_delivered();
                self.complete(step, now, Told::AtOnce(had));
            }
            (Some((step, ..)), None) => {
                self.is_delivered();
                self.complete(step, now, Told::Gap);
            }
            _ => {}
        }
    }
    fn has_dependencies(&self) -> bool {
        !self.steps.followers.is_empty()
    }
    fn is_news(&self, tag: u64) -> bool {
        let (Some((step, _, had)), Some(cut)) = (self.steps.message(tag), &self.cut) else {
            return false;
        };
        let waits = |follower: &u32| match cut.homes[*follower as usize] {
            Home::Host(host) => Some(host) != had,
            Home::Everyone => true,
            Home::Nobody => false,
        };
        had.is_none() || self.steps.followers(step).iter().any(waits)
    }
    fn news_for(&self, tag: u64) -> Option<NodeId> {
        let (step, _, had) = self.steps.message(tag)?;
        let (cut, had) = (self.cut.as_ref()?, had?);
        let followers = self.steps.followers(step).iter();
        let homes = followers.map(|&follower| cut.homes[follower as usize]);
        let waiting = homes.filter(|&home| home != Home::Host(had));
        match waiting.fold(Home::Nobody, Home::and) {
            Home::Host(host) => Some(host),
            Home::Everyone | Home::Nobody => None,
        }
    }
    fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        let (Some((step, src, had)), Some(cut)) = (self.steps.message(tag), &self.cut) else {
            return;
        };
        if had.is_none() {
            if member.is_some() {
                return;
            }
            if cut.parts[&src] == self.number {
                self.is_delivered();
            }
        }
        self.complete(step, now, Told::AsNews(had));
    }
    fn expected_messages(&self) -> Option<u64> {
        Some(self.steps.messages)
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        Some(self.steps.bytes)
    }
    fn finished(&self) -> bool {
        if self.has_dependencies() {
            self.undelivered == 0
        } else {
            self.ready.is_empty()
        }
    }
}

/// Messages and compute gaps with what they wait for; [`Message::tag`] is the step.
///
/// Cut, it takes 8 bytes more for each step, and about 30 for each part and gap that several hosts wait for.
#[derive(Debug)]
pub struct MessageGraph {
    /// One until it is cut.
    parts: Vec<Part>,
}

impl MessageGraph {
    pub(super) fn new(steps: Steps) -> Self {
        let undelivered = steps.messages;
        let mut whole = Part {
            steps: Arc::new(steps),
            cut: None,
            number: 0,
            ready: BinaryHeap::new(),
            shared: BTreeMap::new(),
            undelivered,
        };
        // A gap that begins frees its followers, so what is free must be known before.
        let free: Vec<u32> = (0..whole.steps.work.len() as u32)
            .filter(|&step| whole.steps.missing(step) == 0)
            .collect();
        for step in free {
            if let Some((gap, end, told)) = whole.begin(step) {
                whole.complete(gap, end, told);
            }
        }
        Self { parts: vec![whole] }
    }

    /// When a gap is over, once all that it waits for is done; `None`: not yet, or a message.
    pub fn gap_end(&self, step: Step) -> Option<Time> {
        self.parts.first()?.gap_end(step.0)
    }

    fn first(&self) -> &Part {
        self.parts.first().expect("a graph has a part")
    }

    /// The part with the earliest message, and its start.
    fn earliest(&self) -> Option<(Time, usize)> {
        let starts = self.parts.iter().map(Workload::next_start).zip(0..);
        starts
            .filter_map(|(start, part)| Some((start?, part)))
            .min()
    }
}

impl Clone for MessageGraph {
    fn clone(&self) -> Self {
        let steps = Arc::new(Steps::clone(&self.first().steps));
        let copy = |part: &Part| Part {
            steps: Arc::clone(&steps),
            ..part.clone()
        };
        Self {
            parts: self.parts.iter().map(copy).collect(),
        }
    }
}

impl Workload for MessageGraph {
    fn classes(&self) -> &[String] {
        self.first().classes()
    }
    fn next_start(&self) -> Option<Time> {
        self.earliest().map(|(start, _)| start)
    }
    fn pop(&mut self) -> Option<Message> {
        let (_, part) = self.earliest()?;
        self.parts[part].pop()
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        if let [whole] = &mut self.parts[..] {
            whole.on_delivered(now, tag);
        }
    }
    fn has_dependencies(&self) -> bool {
        self.first().has_dependencies()
    }
    fn is_divisible(&self) -> bool {
        true
    }
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let [whole] = &mut self.parts[..] else {
            return None;
        };
        let steps = Arc::clone(&whole.steps);
        let cut = Arc::new(Cut::new(&steps, parts, part_of));
        let shared: BTreeMap<u32, (Time, u32)> = (0..steps.work.len() as u32)
            .filter(|&step| cut.homes[step as usize] == Home::Everyone)
            .map(|step| (step, (steps.earliest(step), steps.missing(step))))
            .collect();
        let ready = std::mem::take(&mut whole.ready);
        self.parts = (0..parts)
            .map(|number| Part {
                steps: Arc::clone(&steps),
                cut: Some(Arc::clone(&cut)),
                number,
                ready: BinaryHeap::new(),
                shared: shared.clone(),
                undelivered: 0,
            })
            .collect();
        for tag in 0..steps.work.len() as u64 {
            if let Some((_, src, had)) = steps.message(tag) {
                self.parts[cut.parts[&had.unwrap_or(src)]].undelivered += 1;
            }
        }
        for Reverse((start, step)) in ready {
            if let Some((_, src, _)) = steps.message(u64::from(step)) {
                self.parts[cut.parts[&src]]
                    .ready
                    .push(Reverse((start, step)));
            }
        }
        let lent = self.parts.iter_mut();
        Some(lent.map(|part| Box::new(part) as Box<dyn Workload + '_>).collect())
    }
    fn expected_messages(&self) -> Option<u64> {
        self.first().expected_messages()
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        self.first().expected_bytes()
    }
    fn finished(&self) -> bool {
        self.parts.iter().all(Workload::finished)
    }
}
