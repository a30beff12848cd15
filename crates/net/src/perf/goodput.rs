//! The client's stream of messages: goodput, as a whole and now and then.

use std::collections::BTreeMap;

use raddle_net::rails::{Buffer, Node, NodeEvent, UseError};
use raddle_transport::rails::RailStatus;
use raddle_units::{Span, Time};
use serde::Serialize;

use crate::{
    contents::Contents,
    measure::{MeasureError, SINK},
};

/// What is sent, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages on their way at once.
    pub window: usize,
    /// The port that messages leave from; as many in turn as there are rails if it is not given.
    pub source_port: Option<u16>,
    /// How long to send before.
    pub warm_up: Span,
    /// How long to measure.
    pub time: Span,
    /// Bytes that are to arrive meanwhile, however long that takes.
    pub least: u64,
    /// The server looks at every byte.
    pub check: bool,
    /// How often to tell what came.
    pub interval: Option<Span>,
}

/// What is told while it is measured.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Told {
    /// What came since the last time.
    Interval {
        /// Seconds since the node was opened.
        at_s: f64,
        /// Of messages that arrived.
        goodput_bps: u64,
        /// Longest time from an arrival to the next.
        longest_gap_ms: f64,
    },
    /// A rail came or went.
    Rail {
        /// Seconds since the node was opened.
        at_s: f64,
        rail: usize,
        up: bool,
    },
}

/// What a rail did while goodput was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RailShare {
    pub up: bool,
    pub sent_bytes: u64,
    pub rtt: Span,
}

/// What a measurement of goodput found.
#[derive(Debug)]
pub(crate) struct Goodput {
    /// Time that was measured.
    pub seconds: f64,
    /// Messages that arrived in it.
    pub measured: u64,
    /// Messages sent, with those before and after; all arrived.
    pub messages: u64,
    pub rails: Vec<RailShare>,
}

/// When something begins to be counted.
#[derive(Debug)]
struct Begin {
    at: Time,
    arrived: u64,
    rails: Vec<RailShare>,
}

/// A measurement that goes on.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    node: &'a mut Node,
    load: Load,
    tell: fn(&Told),
    free: Vec<Buffer>,
    sent: u64,
    /// Messages sent by each source port.
    by_port: BTreeMap<u16, u64>,
    arrived: u64,
    first: Option<Time>,
    begun: Option<Begin>,
    found: Option<(f64, u64, Vec<RailShare>)>,
    /// Since when, and with which messages before, the present interval runs.
    interval: (Time, u64),
    last_arrival: Time,
    longest_gap: Span,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(node: &'a mut Node, load: Load, tell: fn(&Told)) -> Self {
        let content = vec![1; load.bytes as usize];
        let free = (0..load.window)
            .map(|_| node.register(content.clone()))
            .collect();
        let now = node.now();
        Self {
            node,
            load,
            tell,
            free,
            sent: 0,
            by_port: BTreeMap::new(),
            arrived: 0,
            first: None,
            begun: None,
            found: None,
            interval: (now, 0),
            last_arrival: now,
            longest_gap: Span::ZERO,
        }
    }

    /// Sends for a while, and waits until all has arrived. Time is measured from an arrival to an arrival, so that it holds whole
    /// messages.
    pub(crate) fn run(mut self, spin: Span) -> Result<Goodput, MeasureError> {
        loop {
            while let Some(event) = self.node.poll_event() {
                self.on_event(event)?;
            }
            if self.found.is_none() {
                self.send()?;
            } else if self.free.len() == self.load.window
                && let Some((seconds, measured, rails)) = self.found.take()
            {
                for buffer in self.free {
                    self.node.release(buffer).map_err(UseError::from)?;
                }
                return Ok(Goodput {
                    seconds,
                    measured,
                    messages: self.sent,
                    rails,
                });
            }
            self.node.wait(spin)?;
        }
    }

    fn send(&mut self) -> Result<(), MeasureError> {
        let rails = self.node.connection().config().rails.len() as u64;
        while let Some(buffer) = self.free.pop() {
            let in_turn = (self.sent % rails) as u16;
            let source_port = self.load.source_port.unwrap_or(in_turn);
            let number = self.by_port.entry(source_port).or_default();
            if self.load.check {
                let contents = Contents {
                    source_port,
                    number: *number,
                };
                contents.fill(self.node.bytes_mut(buffer).map_err(UseError::from)?);
            }
            *number += 1;
            self.node.send(source_port, SINK, buffer, self.load.bytes)?;
            self.sent += 1;
        }
        Ok(())
    }

    fn on_event(&mut self, event: NodeEvent) -> Result<(), MeasureError> {
        match event {
            NodeEvent::Sent { token: buffer } => {
                self.free.push(buffer);
                self.on_arrival();
            }
            NodeEvent::RailUp { rail } => self.tell_rail(rail, true),
            NodeEvent::RailDown { rail } => self.tell_rail(rail, false),
            NodeEvent::SendFailed { error, .. } => return Err(error.into()),
            NodeEvent::Failed(failure) => return Err(failure.into()),
            _ => {}
        }
        Ok(())
    }

    fn on_arrival(&mut self) {
        let now = self.node.now();
        self.arrived += 1;
        self.longest_gap = self.longest_gap.max(now.since(self.last_arrival));
        self.last_arrival = now;
        self.tell_interval(now);
        let first = *self.first.get_or_insert(now);
        if self.begun.is_none() && now.since(first) >= self.load.warm_up {
            self.begun = Some(Begin {
                at: now,
                arrived: self.arrived,
                rails: shares(self.node),
            });
        }
        if let Some(begun) = &self.begun
            && self.found.is_none()
            && now.since(begun.at) >= self.load.time
            && (self.arrived - begun.arrived) * self.load.bytes >= self.load.least
        {
            let seconds = now.since(begun.at).as_secs_f64();
            let rails = later(self.node, &begun.rails);
            self.found = Some((seconds, self.arrived - begun.arrived, rails));
        }
    }

    fn tell_interval(&mut self, now: Time) {
        let (since, before) = self.interval;
        let span = now.since(since);
        if self.load.interval.is_none_or(|interval| span < interval) {
            return;
        }
        let bits = (self.arrived - before) as f64 * self.load.bytes as f64 * 8.0;
        (self.tell)(&Told::Interval {
            at_s: now.as_secs_f64(),
            goodput_bps: (bits / span.as_secs_f64()) as u64,
            longest_gap_ms: self.longest_gap.as_secs_f64() * 1e3,
        });
        self.interval = (now, self.arrived);
        self.longest_gap = Span::ZERO;
    }

    fn tell_rail(&self, rail: usize, up: bool) {
        if self.load.interval.is_some() {
            let at_s = self.node.now().as_secs_f64();
            (self.tell)(&Told::Rail { at_s, rail, up });
        }
    }
}

/// All rails, since the connection began.
fn shares(node: &Node) -> Vec<RailShare> {
    let rails = node.connection().rails();
    rails
        .map(|rail| RailShare {
            up: rail.status == RailStatus::Up,
            sent_bytes: rail.sent,
            rtt: rail.rtt,
        })
        .collect()
}

/// All rails, since they were as in `before`.
fn later(node: &Node, before: &[RailShare]) -> Vec<RailShare> {
    let mut shares = shares(node);
    for (now, before) in shares.iter_mut().zip(before) {
        now.sent_bytes -= before.sent_bytes;
    }
    shares
}
