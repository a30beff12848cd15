//! The two ends of a measurement.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use raddle_host::rails::{Buffer, Node, NodeEvent, UseError};
use raddle_units::{Bytes, Span, Time};

use crate::{contents::Contents, error::MeasureError, screen::Screen};

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

/// One-way times in microseconds: half of what a message takes there and back.
#[derive(Debug)]
pub(crate) struct Latency {
    /// Bytes of a message.
    pub size: u64,
    /// Messages sent, with those that were not measured.
    pub messages: u64,
    /// Those that were.
    pub measured: u64,
    pub median_us: f64,
    pub p99_us: f64,
    pub least_us: f64,
}

/// What a server does for a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    /// Bytes of the longest message.
    pub longest: u64,
    /// Whether to look at every byte of messages that stay.
    pub check: bool,
    /// How long to look for packets before sleeping.
    pub spin: Span,
    /// How long the client may send nothing.
    pub idle: Span,
}

/// Receives, and sends back what is for the port that does, until `ended`; gives the messages that came.
pub(crate) fn serve(
    node: &mut Node,
    service: Service,
    ended: &AtomicBool,
) -> Result<u64, MeasureError> {
    let longest = service.longest;
    let count = (MEMORY / 2 / longest.max(1)).clamp(1, BUFFERS);
    for port in [SINK, ECHO] {
        node.open_port(port, longest)?;
        for _ in 0..count {
            let buffer = node.register(vec![0; longest as usize]);
            node.provide(port, buffer)?;
        }
    }
    let (mut messages, mut by_port) = (0, BTreeMap::new());
    let (mut came, mut came_at) = (0, node.now());
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
                    if service.check {
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
        let placed = node.connection().counters().placed_bytes;
        if placed != came {
            (came, came_at) = (placed, node.now());
        } else if node.now().since(came_at) >= service.idle {
            return Err(MeasureError::Idle { span: service.idle });
        }
        node.wait(service.spin)?;
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

/// How latency is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo {
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages to measure.
    pub count: usize,
    /// Time after which no more of them are sent, though one is measured in any case.
    pub time: Span,
    /// How long to look for packets before sleeping.
    pub spin: Span,
}

/// Messages there and back, one at a time.
struct Probe<'a> {
    node: &'a mut Node,
    echo: Echo,
    free: Vec<Buffer>,
    sent: u64,
    began: Time,
    /// When the message that is on its way was sent.
    begun: Option<Time>,
    /// Messages that came back before any was measured.
    before: usize,
    /// Half of what each took, in microseconds.
    times: Vec<f64>,
    /// Whether enough of them, or enough time, has gone by.
    is_done: bool,
}

/// Sends messages back and forth, one at a time.
pub(crate) fn latency(
    node: &mut Node,
    echo: Echo,
    screen: &mut Screen,
) -> Result<Latency, MeasureError> {
    node.open_port(ECHO, echo.bytes)?;
    for _ in 0..(MEMORY / echo.bytes.max(1)).clamp(2, ECHOES) {
        let buffer = node.register(vec![0; echo.bytes as usize]);
        node.provide(ECHO, buffer)?;
    }
    let free = vec![node.register(vec![1; echo.bytes as usize])];
    let began = node.now();
    let probe = Probe {
        node,
        echo,
        free,
        sent: 0,
        began,
        begun: None,
        before: 0,
        times: Vec::with_capacity(echo.count),
        is_done: false,
    };
    probe.run(screen)
}

impl Probe<'_> {
    fn run(mut self, screen: &mut Screen) -> Result<Latency, MeasureError> {
        let size = Bytes(self.echo.bytes);
        // All that was sent is known to have arrived before this ends: the other side counts it.
        while !self.is_done || self.free.is_empty() {
            while let Some(event) = self.node.poll_event() {
                self.on_event(event)?;
            }
            if !self.is_done
                && self.begun.is_none()
                && let Some(buffer) = self.free.pop()
            {
                self.begun = Some(self.node.now());
                self.node.send(0, ECHO, buffer, self.echo.bytes)?;
                self.sent += 1;
            }
            screen.progress(|| {
                let (measured, count) = (self.times.len(), self.echo.count);
                format!("latency: {measured} of {count} messages of {size}")
            });
            self.node.wait(self.echo.spin)?;
        }
        self.times.sort_by(f64::total_cmp);
        let at = |part: f64| self.times[((self.times.len() - 1) as f64 * part) as usize];
        Ok(Latency {
            size: self.echo.bytes,
            messages: self.sent,
            measured: self.times.len() as u64,
            median_us: at(0.5),
            p99_us: at(0.99),
            least_us: at(0.0),
        })
    }

    fn on_event(&mut self, event: NodeEvent) -> Result<(), MeasureError> {
        match event {
            NodeEvent::Sent { token: buffer } => self.free.push(buffer),
            NodeEvent::Received { token: buffer, .. } => {
                if let Some(begun) = self.begun.take() {
                    self.on_return(begun);
                }
                self.node.provide(ECHO, buffer)?;
            }
            NodeEvent::SendFailed { error, .. } => return Err(error.into()),
            NodeEvent::Failed(failure) => return Err(failure.into()),
            _ => {}
        }
        Ok(())
    }

    /// The first tenth of the messages, or those of the first tenth of the time, are not measured.
    fn on_return(&mut self, begun: Time) {
        let now = self.node.now();
        let (since, echo) = (now.since(self.began), &self.echo);
        let is_early = self.before <= echo.count / 10 && since.0 < echo.time.0 / 10;
        if is_early && self.times.is_empty() {
            self.before += 1;
            return;
        }
        self.times.push(now.since(begun).as_ns() as f64 / 2e3);
        self.is_done = self.times.len() >= echo.count || since >= echo.time;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddrV4},
        thread,
    };

    use raddle_host::rails::RailAddress;
    use raddle_rails::Config;
    use raddle_units::BitRate;
    use raddle_wire::{PORT_ROCE, native::JobKey};

    use super::*;

    /// A node and another one at loopback addresses that no other process has.
    fn node(local: u32) -> Node {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let end = |side: u32| {
            let address = Ipv4Addr::new(127, high, low, 200 + side as u8);
            SocketAddrV4::new(address, PORT_ROCE)
        };
        let peer = 1 - local;
        let rates = vec![BitRate::from_gbps(10)];
        let config = Config::new(1, JobKey::new([3; 16]), local, peer, 10 + local, rates);
        let rail = RailAddress {
            local: end(local),
            peer: end(peer),
        };
        Node::open(config, &[rail]).unwrap()
    }

    #[test]
    fn a_client_that_is_there_and_sends_nothing_loses_its_place() {
        let (over, spin) = (AtomicBool::new(false), Span::ZERO);
        let service = Service {
            longest: 100,
            check: false,
            spin,
            idle: Span::from_ms(300),
        };
        let (mut client, mut server) = (node(0), node(1));
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    while client.poll_event().is_some() {}
                    client.wait(spin).unwrap();
                }
            });
            let outcome = serve(&mut server, service, &AtomicBool::new(false));
            over.store(true, Ordering::Release);
            outcome
        });
        assert!(
            matches!(outcome, Err(MeasureError::Idle { span }) if span == service.idle),
            "{outcome:?}"
        );
        assert!(server.now().since(Time::ZERO) < Span::from_ms(5_000));
    }
}
