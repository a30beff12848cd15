//! The two ends of a measurement.

use std::{fmt, io};

use raddle_net::rails::{Buffer, Node, NodeEvent, UseError};
use raddle_transport::rails::{PortError, RailStatus, SendFailure};
use raddle_units::{BitRate, Span};
use serde::Serialize;
use thiserror::Error;

/// Port of the server that takes messages.
const SINK: u16 = 1;
/// Port of the server that sends messages back, to the same port.
const ECHO: u16 = 2;
/// Receive buffers of a port.
const BUFFERS: usize = 64;
/// Memory of all of them at most.
const MEMORY: u64 = 1 << 30;

/// Why a measurement ended.
#[derive(Debug, Error)]
pub(crate) enum MeasureError {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Use(#[from] UseError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("{0}")]
    Failed(#[from] raddle_transport::rails::Failure),
    #[error("a message was not sent: {0}")]
    Send(SendFailure),
}

impl MeasureError {
    /// Whether a new connection would not help.
    pub(crate) const fn is_fatal(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub bytes: u64,
    /// Messages on their way at once.
    pub window: usize,
}

/// A rail's part.
#[derive(Debug, Serialize)]
struct RailPart {
    rail: usize,
    up: bool,
    sent_bytes: u64,
    rtt_us: f64,
}

/// What a bandwidth measurement found.
#[derive(Debug, Serialize)]
pub(crate) struct Bandwidth {
    message_bytes: u64,
    seconds: f64,
    messages: u64,
    goodput_bps: u64,
    segments: u64,
    resent_segments: u64,
    refused_packets: u64,
    rails: Vec<RailPart>,
}

/// What a latency measurement found: one-way times, half of what a message takes there and back.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    message_bytes: u64,
    count: usize,
    median_us: f64,
    p99_us: f64,
    least_us: f64,
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} messages of {} B in {:.2} s: {}",
            self.messages,
            self.message_bytes,
            self.seconds,
            BitRate(self.goodput_bps)
        )?;
        writeln!(
            out,
            "{} of {} segments sent again, {} packets refused by the system",
            self.resent_segments, self.segments, self.refused_packets
        )?;
        for rail in &self.rails {
            let status = if rail.up { "up" } else { "not up" };
            writeln!(
                out,
                "rail {}: {status}, {:.1} MB sent, round trip {:.1} us",
                rail.rail,
                rail.sent_bytes as f64 / 1e6,
                rail.rtt_us
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} messages of {} B one way: median {:.1} us, 99 % {:.1} us, least {:.1} us",
            self.count, self.message_bytes, self.median_us, self.p99_us, self.least_us
        )
    }
}

/// Receives until the connection fails.
pub(crate) fn serve(node: &mut Node, longest: u64, spin: Span) -> Result<(), MeasureError> {
    let count = (MEMORY / 2 / longest.max(1)).clamp(1, BUFFERS as u64);
    for port in [SINK, ECHO] {
        node.open_port(port, longest)?;
        for _ in 0..count {
            let buffer = node.register(vec![0; longest as usize]);
            node.provide(port, buffer)?;
        }
    }
    loop {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Received {
                    buffer,
                    target_port: ECHO,
                    length,
                    ..
                } => {
                    node.send(ECHO, ECHO, buffer, length)?;
                }
                NodeEvent::Received {
                    buffer,
                    target_port,
                    ..
                } => node.provide(target_port, buffer)?,
                NodeEvent::Sent { buffer } => node.provide(ECHO, buffer)?,
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        node.wait(spin)?;
    }
}

/// Sends for a while; counts the messages that arrived in `time`, after `warm_up`.
pub(crate) fn bandwidth(
    node: &mut Node,
    load: Load,
    warm_up: Span,
    time: Span,
    spin: Span,
) -> Result<Bandwidth, MeasureError> {
    let bytes = vec![1; load.bytes as usize];
    let mut free: Vec<Buffer> = (0..load.window)
        .map(|_| node.register(bytes.clone()))
        .collect();
    let mut first = None;
    let mut begun = None;
    let mut messages = 0;
    loop {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Sent { buffer } => {
                    let now = node.now();
                    let first = *first.get_or_insert(now);
                    if now.since(first) >= warm_up {
                        messages += u64::from(begun.is_some());
                        begun.get_or_insert(now);
                    }
                    free.push(buffer);
                }
                NodeEvent::SendFailed { error, .. } => return Err(MeasureError::Send(error)),
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        while let Some(buffer) = free.pop() {
            node.send(0, SINK, buffer, load.bytes)?;
        }
        if let Some(begun) = begun
            && node.now().since(begun) >= time
        {
            let seconds = node.now().since(begun).as_secs_f64();
            return Ok(judge(node, load, messages, seconds));
        }
        node.wait(spin)?;
    }
}

fn judge(node: &Node, load: Load, messages: u64, seconds: f64) -> Bandwidth {
    let counters = node.connection().counters();
    let rails = node.connection().rails().enumerate();
    Bandwidth {
        message_bytes: load.bytes,
        seconds,
        messages,
        goodput_bps: ((messages * load.bytes) as f64 * 8.0 / seconds) as u64,
        segments: counters.segments,
        resent_segments: counters.resent,
        refused_packets: node.refused(),
        rails: rails
            .map(|(rail, view)| RailPart {
                rail,
                up: view.status == RailStatus::Up,
                sent_bytes: view.sent,
                rtt_us: view.rtt.as_ns() as f64 / 1e3,
            })
            .collect(),
    }
}

/// Sends messages back and forth.
pub(crate) fn latency(
    node: &mut Node,
    bytes: u64,
    count: usize,
    spin: Span,
) -> Result<Latency, MeasureError> {
    node.open_port(ECHO, bytes)?;
    for _ in 0..2 {
        let buffer = node.register(vec![0; bytes as usize]);
        node.provide(ECHO, buffer)?;
    }
    let warm_up = count / 10 + 1;
    let mut free = vec![node.register(vec![1; bytes as usize])];
    let (mut times, mut begun) = (Vec::with_capacity(count + warm_up), None);
    while times.len() < count + warm_up {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Sent { buffer } => free.push(buffer),
                NodeEvent::Received { buffer, .. } => {
                    let begun = begun.take();
                    times.extend(begun.map(|begun| node.now().since(begun).as_ns() as f64 / 2e3));
                    node.provide(ECHO, buffer)?;
                }
                NodeEvent::SendFailed { error, .. } => return Err(MeasureError::Send(error)),
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        if begun.is_none()
            && let Some(buffer) = free.pop()
        {
            begun = Some(node.now());
            node.send(0, ECHO, buffer, bytes)?;
        }
        node.wait(spin)?;
    }
    times.drain(..warm_up);
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    Ok(Latency {
        message_bytes: bytes,
        count: times.len(),
        median_us: at(0.5),
        p99_us: at(0.99),
        least_us: at(0.0),
    })
}
