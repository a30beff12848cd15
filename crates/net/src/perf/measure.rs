//! The two ends of a measurement.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use raddle_net::rails::{Buffer, Node, NodeEvent, UseError};
use raddle_transport::rails::{Failure, PortError, RailStatus, SendFailure};
use raddle_units::Span;
use thiserror::Error;

/// Port of the server that takes messages.
const SINK: u16 = 1;
/// Port that messages are sent back to, of both sides.
const ECHO: u16 = 2;
/// Receive buffers of a port of the server.
const BUFFERS: u64 = 64;
/// The same of the client, which gets one message at a time: so many that grants are rare.
const ECHOES: u64 = 16;
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
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("a message was not sent: {0}")]
    Send(#[from] SendFailure),
}

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

/// One-way times in microseconds: half of what a message takes there and back.
#[derive(Debug)]
pub(crate) struct Latency {
    /// Messages sent, with those that were not measured.
    pub messages: u64,
    pub median_us: f64,
    pub p99_us: f64,
    pub least_us: f64,
}

/// Receives, and sends back what is for the port that does, until `ended`; gives the messages that came.
pub(crate) fn serve(
    node: &mut Node,
    longest: u64,
    spin: Span,
    ended: &AtomicBool,
) -> Result<u64, MeasureError> {
    let count = (MEMORY / 2 / longest.max(1)).clamp(1, BUFFERS);
    for port in [SINK, ECHO] {
        node.open_port(port, longest)?;
        for _ in 0..count {
            let buffer = node.register(vec![0; longest as usize]);
            node.provide(port, buffer)?;
        }
    }
    let mut messages = 0;
    loop {
        // Looked at first: what the client knows to have arrived has made its event before the client ended.
        let last = ended.load(Ordering::Acquire);
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Received {
                    buffer,
                    target_port,
                    length,
                    ..
                } => {
                    messages += 1;
                    match target_port {
                        ECHO => node.send(ECHO, ECHO, buffer, length)?,
                        _ => node.provide(target_port, buffer)?,
                    }
                }
                NodeEvent::Sent { buffer } => node.provide(ECHO, buffer)?,
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        if last {
            return Ok(messages);
        }
        node.wait(spin)?;
    }
}

/// Sends for a while, and waits until all has arrived. Time is measured from an arrival to an arrival, so that it holds whole
/// messages.
pub(crate) fn goodput(node: &mut Node, load: Load, spin: Span) -> Result<Goodput, MeasureError> {
    let content = vec![1; load.bytes as usize];
    let mut free: Vec<Buffer> = (0..load.window)
        .map(|_| node.register(content.clone()))
        .collect();
    let rails = node.connection().config().rails.len() as u64;
    let source = |sent: u64| load.source_port.unwrap_or((sent % rails) as u16);
    let (mut sent, mut arrived) = (0_u64, 0);
    let (mut first, mut begun, mut found) = (None, None, None);
    loop {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Sent { buffer } => {
                    arrived += 1;
                    free.push(buffer);
                    let now = node.now();
                    let first = *first.get_or_insert(now);
                    if begun.is_none() && now.since(first) >= load.warm_up {
                        begun = Some((now, arrived, shares(node)));
                    }
                    if let Some((since, before, rails)) = &begun
                        && found.is_none()
                        && now.since(*since) >= load.time
                    {
                        let seconds = now.since(*since).as_secs_f64();
                        found = Some((seconds, arrived - before, later(node, rails)));
                    }
                }
                NodeEvent::SendFailed { error, .. } => return Err(error.into()),
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        if let Some((seconds, measured, rails)) = &mut found {
            if free.len() == load.window {
                for buffer in free {
                    node.release(buffer).map_err(UseError::from)?;
                }
                return Ok(Goodput {
                    seconds: *seconds,
                    measured: *measured,
                    messages: sent,
                    rails: std::mem::take(rails),
                });
            }
        } else {
            while let Some(buffer) = free.pop() {
                node.send(source(sent), SINK, buffer, load.bytes)?;
                sent += 1;
            }
        }
        node.wait(spin)?;
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

/// Sends messages back and forth, one at a time.
pub(crate) fn latency(
    node: &mut Node,
    bytes: u64,
    count: usize,
    spin: Span,
) -> Result<Latency, MeasureError> {
    node.open_port(ECHO, bytes)?;
    for _ in 0..(MEMORY / bytes.max(1)).clamp(2, ECHOES) {
        let buffer = node.register(vec![0; bytes as usize]);
        node.provide(ECHO, buffer)?;
    }
    let warm_up = count / 10 + 1;
    let mut free = vec![node.register(vec![1; bytes as usize])];
    let (mut times, mut begun) = (Vec::with_capacity(count + warm_up), None);
    // All that was sent is known to have arrived before this ends: the other side counts it.
    while times.len() < count + warm_up || free.is_empty() {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Sent { buffer } => free.push(buffer),
                NodeEvent::Received { buffer, .. } => {
                    let begun = begun.take();
                    times.extend(begun.map(|begun| node.now().since(begun).as_ns() as f64 / 2e3));
                    node.provide(ECHO, buffer)?;
                }
                NodeEvent::SendFailed { error, .. } => return Err(error.into()),
                NodeEvent::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        if times.len() < count + warm_up
            && begun.is_none()
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
        messages: (count + warm_up) as u64,
        median_us: at(0.5),
        p99_us: at(0.99),
        least_us: at(0.0),
    })
}
