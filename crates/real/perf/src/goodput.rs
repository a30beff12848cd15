//! The client's stream of messages: goodput, as a whole and now and then.

use std::collections::BTreeMap;

use raddle_host::rails::{Buffer, Node, NodeEvent, UseError};
use raddle_rails::RailStatus;
use raddle_units::{Bytes, Span, Time};
use serde::Serialize;

use crate::{contents::Contents, error::MeasureError, measure::SINK, screen::Screen};

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
    /// How long to measure, if that is what ends it.
    pub time: Option<Span>,
    /// How many bytes are to arrive, if that ends it; whichever is first.
    pub total: Option<u64>,
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
    free: Vec<Buffer>,
    sent: u64,
    /// Messages sent by each source port.
    by_port: BTreeMap<u16, u64>,
    arrived: u64,
    first: Option<Time>,
    begun: Option<Begin>,
    found: Option<Goodput>,
    /// Since when, and with which messages before, the present interval runs.
    interval: (Time, u64),
    last_arrival: Time,
    longest_gap: Span,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(node: &'a mut Node, load: Load) -> Self {
        let content = vec![1; load.bytes as usize];
        let free = (0..load.window)
            .map(|_| node.register(content.clone()))
            .collect();
        let now = node.now();
        Self {
            node,
            load,
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

    /// Sends until the time or the bytes are there. Time is measured from an arrival to an arrival, so that it holds whole messages.
    pub(crate) fn measure(
        &mut self,
        spin: Span,
        screen: &mut Screen,
    ) -> Result<Goodput, MeasureError> {
        loop {
            self.take_events(screen)?;
            if let Some(found) = self.found.take() {
                return Ok(found);
            }
            self.send()?;
            screen.progress(|| self.so_far());
            self.node.wait(spin)?;
        }
    }

    /// Waits until all that was sent has arrived; gives the messages, with those before and after what was measured.
    pub(crate) fn finish(mut self, spin: Span, screen: &mut Screen) -> Result<u64, MeasureError> {
        while self.free.len() < self.load.window {
            screen.progress(|| {
                let left = self.load.window - self.free.len();
                format!("waiting for the last messages to arrive: {left}")
            });
            self.node.wait(spin)?;
            self.take_events(screen)?;
        }
        for buffer in self.free {
            self.node.release(buffer).map_err(UseError::from)?;
        }
        Ok(self.sent)
    }

    fn take_events(&mut self, screen: &mut Screen) -> Result<(), MeasureError> {
        while let Some(event) = self.node.poll_event() {
            self.on_event(event, screen)?;
        }
        Ok(())
    }

    /// How far it is, for who watches.
    fn so_far(&self) -> String {
        let sent = self.node.connection().counters().segment_bytes as f64 / 1e6;
        let Some(begun) = &self.begun else {
            return format!(
                "warming up: {sent:.1} MB sent, {} messages arrived",
                self.arrived
            );
        };
        let seconds = self.node.now().since(begun.at).as_secs_f64();
        let bytes = (self.arrived - begun.arrived) * self.load.bytes;
        let of = |whole: Option<String>| whole.map_or_else(String::new, |all| format!(" of {all}"));
        let time = of(self.load.time.map(|time| time.to_string()));
        let total = of(self.load.total.map(|total| Bytes(total).to_string()));
        let rate = mbit_per_s((bytes as f64 * 8.0 / seconds) as u64);
        let done = bytes as f64 / 1e6;
        format!("goodput {rate}: {seconds:.1} s{time}, {done:.1} MB{total}")
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

    fn on_event(&mut self, event: NodeEvent, screen: &mut Screen) -> Result<(), MeasureError> {
        match event {
            NodeEvent::Sent { token: buffer } => {
                self.free.push(buffer);
                self.on_arrival(screen)?;
            }
            NodeEvent::RailUp { rail } => self.tell_rail(rail, true, screen)?,
            NodeEvent::RailDown { rail } => self.tell_rail(rail, false, screen)?,
            NodeEvent::SendFailed { error, .. } => return Err(error.into()),
            NodeEvent::Failed(failure) => return Err(failure.into()),
            _ => {}
        }
        Ok(())
    }

    fn on_arrival(&mut self, screen: &mut Screen) -> Result<(), MeasureError> {
        let now = self.node.now();
        self.arrived += 1;
        self.longest_gap = self.longest_gap.max(now.since(self.last_arrival));
        self.last_arrival = now;
        self.tell_interval(now, screen)?;
        let first = *self.first.get_or_insert(now);
        let Some(begun) = &self.begun else {
            if now.since(first) >= self.load.warm_up {
                self.begun = Some(Begin {
                    at: now,
                    arrived: self.arrived,
                    rails: shares(self.node),
                });
            }
            return Ok(());
        };
        let (time, measured) = (now.since(begun.at), self.arrived - begun.arrived);
        if self.found.is_none() && self.load.is_enough(time, measured) {
            self.found = Some(Goodput {
                seconds: time.as_secs_f64(),
                measured,
                rails: later(self.node, &begun.rails),
            });
        }
        Ok(())
    }

    fn tell_interval(&mut self, now: Time, screen: &mut Screen) -> Result<(), MeasureError> {
        let (since, before) = self.interval;
        let span = now.since(since);
        if self.load.interval.is_none_or(|interval| span < interval) {
            return Ok(());
        }
        let bits = (self.arrived - before) as f64 * self.load.bytes as f64 * 8.0;
        let told = Told::Interval {
            at_s: now.as_secs_f64(),
            goodput_bps: (bits / span.as_secs_f64()) as u64,
            longest_gap_ms: self.longest_gap.as_secs_f64() * 1e3,
        };
        self.interval = (now, self.arrived);
        self.longest_gap = Span::ZERO;
        told.print(screen)
    }

    fn tell_rail(&self, rail: usize, up: bool, screen: &mut Screen) -> Result<(), MeasureError> {
        if self.load.interval.is_none() {
            return Ok(());
        }
        let at_s = self.node.now().as_secs_f64();
        Told::Rail { at_s, rail, up }.print(screen)
    }
}

impl Load {
    /// Whether this time, or so many messages, are what was asked for.
    fn is_enough(&self, time: Span, messages: u64) -> bool {
        let bytes = messages.saturating_mul(self.bytes);
        let has_time = self.time.is_some_and(|asked| time >= asked);
        has_time || self.total.is_some_and(|asked| bytes >= asked)
    }
}

impl Told {
    fn print(&self, screen: &mut Screen) -> Result<(), MeasureError> {
        // It is made of numbers and fixed words.
        let line = serde_json::to_string(self).unwrap_or_default();
        screen.print(line)
    }
}

/// A rate for people: "735.2 Mbit/s".
pub(crate) fn mbit_per_s(bps: u64) -> String {
    format!("{:.1} Mbit/s", bps as f64 / 1e6)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_or_bytes_whichever_is_there_first_is_enough() {
        let load = |time: Option<u64>, total| Load {
            bytes: 1000,
            window: 4,
            source_port: None,
            warm_up: Span::ZERO,
            time: time.map(Span::from_ms),
            total,
            check: false,
            interval: None,
        };
        let after = |load: Load, ms, messages| load.is_enough(Span::from_ms(ms), messages);
        assert!(after(load(Some(5), None), 5, 0));
        assert!(!after(load(Some(5), None), 4, u64::MAX));
        assert!(after(load(None, Some(2500)), 0, 3));
        assert!(!after(load(None, Some(2500)), u64::from(u32::MAX), 2));
        assert!(after(load(Some(5), Some(2500)), 4, 3));
        assert!(after(load(Some(5), Some(2500)), 5, 2));
    }
}
