//! The two ends of a measurement.

use std::{
    collections::BTreeMap,
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use raddle_net::rails::{Node, NodeEvent, UseError};
use raddle_transport::rails::{Failure, PortError, SendFailure};
use raddle_units::Span;
use thiserror::Error;

use crate::contents::Contents;

/// Port of the server that takes messages.
pub(crate) const SINK: u16 = 1;
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
    #[error("message {number} of port {port} is wrong from byte {at} on: please report this")]
    Wrong { port: u16, number: u64, at: usize },
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

/// Receives, and sends back what is for the port that does, until `ended`; gives the messages that came. `check`: looks at every
/// byte of those that stay.
pub(crate) fn serve(
    node: &mut Node,
    longest: u64,
    check: bool,
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
    let (mut messages, mut by_port) = (0, BTreeMap::new());
    loop {
        // Looked at first: what the client knows to have arrived has made its event before the client ended.
        let last = ended.load(Ordering::Acquire);
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Received {
                    token: buffer,
                    source_port,
                    target_port,
                    length,
                } => {
                    messages += 1;
                    if target_port == ECHO {
                        node.send(ECHO, ECHO, buffer, length)?;
                        continue;
                    }
                    if check {
                        let bytes = node.bytes(buffer).map_err(UseError::from)?;
                        look_at(&bytes[..length as usize], source_port, &mut by_port)?;
                    }
                    node.provide(target_port, buffer)?;
                }
                NodeEvent::Sent { token: buffer } => node.provide(ECHO, buffer)?,
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

/// Looks at the next message of a port; `by_port` counts them.
fn look_at(bytes: &[u8], port: u16, by_port: &mut BTreeMap<u16, u64>) -> Result<(), MeasureError> {
    let next = by_port.entry(port).or_default();
    let number = *next;
    *next += 1;
    let contents = Contents {
        source_port: port,
        number,
    };
    match contents.differs_at(bytes) {
        Some(at) => Err(MeasureError::Wrong { port, number, at }),
        None => Ok(()),
    }
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
                NodeEvent::Sent { token: buffer } => free.push(buffer),
                NodeEvent::Received { token: buffer, .. } => {
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
