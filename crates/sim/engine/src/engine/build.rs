//! From network and settings to switches, ports and an engine at time 0.

use std::{ops::Range, panic::resume_unwind, sync::Arc};

use raddle_dataplane::{
    BufferConfig, ExactStamp, IngressLimit, LogStamp, PortConfig, QUEUE_ACKS, Share, Stamping,
    Switch, SwitchConfig, SwitchMemory,
};
use raddle_fabric::Fabric;
use raddle_transport::{
    cc::{FlowLimits, Signals, Telemetry},
    telemetry::MAX_HOPS,
};
use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time};
use raddle_workload::Workload;

use super::{
    combine::Combines,
    context::{Context, Layout},
    cut::Cut,
    delays::Delays,
    fault::{self, Change},
    frames::Replay,
    groups::Groups,
    host::{Hosts, Nic},
    link::{Device, LinkEnd, PortHistory},
    look_ahead,
    mail::Post,
    offload::{self, Offloads},
    process::{Base, Process},
    rails::RailHosts,
    records::Records,
    route::Router,
    sample::Sampler,
    tiles::Tiles,
    traffic::Traffic,
    what::Keys,
    wires::Wires,
};
use crate::{
    chance::Chance,
    event::{EventQueue, Width},
    index::{Arena, List, NicIndex, PortIndex, ProcessIndex, SwitchIndex},
    packets::{PacketMemory, Packets},
    paths::{ACK_BYTES, HEADER_BYTES},
    semantics::TieOrder,
    setup::{Network, RunConfig, RunSummary, SetupError},
};

/// The reference's PFC frame, and an Ethernet frame of least size, which a real one is (IEEE 802.1Qbb).
const PFC_BYTES_REFERENCE: u32 = 43;
const PFC_BYTES: u32 = 64;
/// Acknowledgement: link, network and 12 bytes of transport header, padded to [`ACK_BYTES`] where telemetry is short.
const ACK_HEADER_BYTES: u64 = 14 + 20 + 12;

impl Layout {
    fn new(signals: &Signals, network: &Network, config: &RunConfig) -> Result<Self, SetupError> {
        let scheme = config.scheme.name();
        let longest = network.environment.max_switch_hops;
        let records = network.semantics.hop_records.unwrap_or(longest).max(1);
        let telemetry_bytes = match signals.telemetry {
            Telemetry::None => 0,
            Telemetry::Timestamp => 8,
            Telemetry::Digest { .. } => 2,
            Telemetry::Hops => {
                let rates = network.environment.link_rates.len();
                if rates > 8 {
                    return Err(SetupError::TooManyLinkRates { scheme, rates });
                }
                if records > MAX_HOPS {
                    let (hops, max) = (records, MAX_HOPS);
                    return Err(SetupError::TooManyHops { scheme, hops, max });
                }
                8 * records as u64 + 2
            }
        };
        let ack = (ACK_HEADER_BYTES + telemetry_bytes).max(ACK_BYTES);
        Ok(Self {
            mtu: config.mtu.0,
            header_bytes: (HEADER_BYTES + telemetry_bytes) as u32,
            ack_bytes: ack as u32,
            pfc_bytes: if network.semantics.exact_headroom {
                PFC_BYTES
            } else {
                PFC_BYTES_REFERENCE
            },
            record_room: records.min(MAX_HOPS) as u8,
            ack_queue: network
                .semantics
                .acks_in_control_queue
                .then_some(QUEUE_ACKS),
            data_classes: config.data_classes,
        })
    }

    fn largest_packet(&self) -> u64 {
        self.mtu + u64::from(self.header_bytes)
    }
}

/// Headroom that a port needs for what may still arrive after a pause was decided.
fn headroom(rate: BitRate, delay: Span, layout: &Layout, network: &Network) -> u64 {
    if !network.semantics.exact_headroom {
        // 3 x rate x delay / 8, in the reference's integer arithmetic.
        return 3 * (u128::from(rate.0) * u128::from(delay.0) / 8_000_000_000_000) as u64;
    }
    // The PAUSE waits for one packet at this port, then takes its own time and the way; the peer finishes the packet it
    // has begun, and all of it travels the way back. One more packet has crossed the threshold already.
    // Other classes' PFC frames may be queued before it.
    let pfc = u64::from(layout.pfc_bytes) * u64::from(layout.data_classes);
    rate.bytes_in(delay * 2).0 + 3 * layout.largest_packet() + pfc
}

/// Bytes that an ingress of a run must be able to hold above its threshold so that nothing is lost while a PAUSE takes effect;
/// `None` where the scheme does not fit the network.
pub fn needed_headroom(network: &Network, config: &RunConfig, port: PortId) -> Option<u64> {
    let layout = Layout::new(config.scheme.signals(), network, config).ok()?;
    let fabric = &network.fabric;
    Some(headroom(
        fabric.rate(port),
        fabric.delay(port),
        &layout,
        network,
    ))
}

/// The shares of a switch: what its ports may hold, and what their queues may.
fn buffer(
    network: &Network,
    config: &RunConfig,
    layout: &Layout,
    node: NodeId,
) -> Result<(BufferConfig, Vec<Share>), SetupError> {
    let fabric = &network.fabric;
    let first = fabric.first_port(node).0;
    let ports: Vec<PortId> = (first..)
        .map(PortId)
        .take(fabric.ports_of(node).len())
        .collect();
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let limit = |&port: &PortId| {
        let ingress = &config.buffers.of(port).ingress;
        let needed = || headroom(fabric.rate(port), fabric.delay(port), layout, network);
        let headroom = ingress.headroom.map_or_else(needed, |given| given.0);
        IngressLimit {
            reserve: bytes(ingress.reserve.0),
            // What is left to share is known when all reserves are.
            share: Share::ALL,
            headroom: if config.lossless { bytes(headroom) } else { 0 },
            resume_offset: bytes(ingress.resume_offset.0),
        }
    };
    let mut buffer = BufferConfig {
        total: config.buffer.0,
        classes: usize::from(config.data_classes),
        limits: ports.iter().map(limit).collect(),
        lossless: config.lossless,
        as_reference: !network.semantics.exact_headroom,
    };
    let shared = buffer.total.saturating_sub(buffer.reserved());
    let part = shared / (ports.len() * buffer.classes).max(1) as u64;
    let mut egress = Vec::with_capacity(ports.len());
    for (limit, &port) in buffer.limits.iter_mut().zip(&ports) {
        // Faster ports may take more of what is free.
        let ratio = fabric.rate(port).0 / network.environment.line_rate.0.max(1);
        let own = config.buffers.of(port);
        limit.share = own.ingress.sharing.share(ratio, part);
        egress.push(own.egress.share(ratio, part));
    }
    check_room(&buffer, layout, || fabric.node_name(node).into_owned())?;
    Ok((buffer, egress))
}

/// Refuses a buffer that cannot hold its reserves, or a port that can never take a packet.
fn check_room(
    buffer: &BufferConfig,
    layout: &Layout,
    node: impl Fn() -> String,
) -> Result<(), SetupError> {
    let packet = layout.largest_packet();
    let reserved = buffer.reserved();
    let needed = reserved + if buffer.lossless { packet } else { 0 };
    if needed > buffer.total {
        return Err(SetupError::BufferTooSmall {
            node: node(),
            ports: buffer.limits.len(),
            buffer: Bytes(buffer.total),
            reserved: Bytes(needed),
        });
    }
    let takes = |limit: &IngressLimit| limit.takes(packet, buffer.total - reserved);
    match buffer.limits.iter().position(|limit| !takes(limit)) {
        None => Ok(()),
        Some(index) => Err(SetupError::NoRoom {
            node: node(),
            port: index + 1,
            packet: Bytes(packet),
        }),
    }
}

fn switch(
    network: &Network,
    config: &RunConfig,
    layout: &Layout,
    signals: &Signals,
    node: NodeId,
    memory: &mut SwitchMemory,
) -> Result<Switch, SetupError> {
    let fabric = &network.fabric;
    let first = fabric.first_port(node).0;
    let (buffer, egress) = buffer(network, config, layout, node)?;
    let ecn = |rate: BitRate| {
        signals.ecn.map(|profile| {
            let (kmin, kmax) = profile.thresholds(rate);
            (kmin, kmax, profile.pmax)
        })
    };
    let port = |(port, egress)| {
        let rate = fabric.rate(PortId(port));
        PortConfig {
            rate: rate.0,
            ecn: ecn(rate),
            egress,
        }
    };
    let rtt_ns = network.environment.base_rtt.as_ns();
    let config = SwitchConfig {
        ports: (first..).zip(egress).map(port).collect(),
        buffer,
        pfc_frame_bytes: layout.pfc_bytes,
        queue_view_with_departing: network.semantics.queue_view
            == crate::semantics::QueueView::WithDeparting,
        stamping: match signals.telemetry {
            Telemetry::None | Telemetry::Timestamp => Stamping::None,
            Telemetry::Hops => Stamping::Hops(network.environment.telemetry_units()),
            Telemetry::Digest { base } if network.semantics.pint_logarithms => {
                Stamping::PintLogs(LogStamp::new(rtt_ns, base), rtt_ns)
            }
            Telemetry::Digest { base } => {
                Stamping::PintExact(ExactStamp::new(rtt_ns, base), rtt_ns)
            }
        },
    };
    Ok(Switch::new(config, memory))
}

/// How far ahead most events lie: a packet's time on the slowest link plus the longest delay.
fn horizon(fabric: &Fabric, layout: &Layout) -> Span {
    fabric
        .links()
        .iter()
        .map(|link| link.delay + link.rate.transmission_time(Bytes(layout.largest_packet())))
        .max()
        .unwrap_or_default()
}

/// The window: what happens at one node reaches no other sooner than a link's delay and the shortest packet take.
fn window(fabric: &Fabric, layout: &Layout) -> Span {
    let packet = layout.ack_bytes.min(layout.header_bytes + 1);
    let shortest = Bytes(
        packet
            .min(layout.pfc_bytes)
            .min(offload::LEAST_BYTES)
            .into(),
    );
    let ahead = |rate: BitRate, delay: Span| delay + rate.transmission_time(shortest);
    let links = fabric.links().iter();
    let least = links.map(|link| ahead(link.rate, link.delay)).min();
    least.unwrap_or(Span(1)).max(Span(1))
}

/// Ports, switches and cards of a process.
#[derive(Default)]
struct Devices {
    ends: List<PortIndex, LinkEnd>,
    switches: List<SwitchIndex, Switch>,
    memory: SwitchMemory,
    nics: List<NicIndex, Nic>,
}

impl Devices {
    fn new(
        network: &Network,
        config: &RunConfig,
        layout: &Layout,
        signals: &Signals,
        cut: &Cut,
        own: ProcessIndex,
    ) -> Result<Self, SetupError> {
        let fabric = &network.fabric;
        let switches = cut.nodes(own).iter().filter(|&&node| !fabric.is_host(node));
        let ports = switches.map(|&node| fabric.ports_of(node).len()).sum();
        let mut made = Self {
            memory: SwitchMemory::with_room(ports, layout.data_classes.into()),
            ..Self::default()
        };
        for &node in cut.nodes(own) {
            let switch = if fabric.is_host(node) {
                None
            } else {
                let memory = &mut made.memory;
                let switch = switch(network, config, layout, signals, node, memory)?;
                Some(made.switches.push(switch))
            };
            for port in fabric.ports_of(node) {
                let id = PortId(fabric.first_port(node).0 + u32::from(port.number) - 1);
                let device = match switch {
                    Some(switch) => Device::Switch(switch),
                    None => {
                        let port = PortIndex(made.ends.len() as u32);
                        Device::Nic(made.nics.push(Nic::new(port)))
                    }
                };
                made.ends.push(LinkEnd::new(network, cut, id, device));
            }
        }
        Ok(made)
    }
}

/// The parts of a process beside its base that can refuse what they are to do.
struct OtherParts<'a> {
    groups: Groups<'a>,
    offload: Offloads,
    rails: RailHosts<'a>,
}

impl<'a> OtherParts<'a> {
    /// Of a process with so many nodes and ports.
    fn new(
        network: &'a Network,
        config: &'a RunConfig,
        nodes: usize,
        ports: usize,
    ) -> Result<Self, SetupError> {
        let fabric = &network.fabric;
        Ok(Self {
            groups: Groups::new(config.multicast.as_deref(), fabric, nodes)?,
            offload: Offloads::new(config.offload.as_deref(), fabric)?,
            rails: RailHosts::new(config, nodes, ports)?,
        })
    }
}

/// Refuses settings that do not fit a network, without the memory of a run.
///
/// # Errors
/// Those of [`super::simulate`] before anything has been simulated.
pub fn check_run(
    network: &Network,
    config: &RunConfig,
    workload: &dyn Workload,
) -> Result<(), SetupError> {
    let built = Built::new(network, config, workload)?;
    let fabric = &*network.fabric;
    for &node in fabric.switches() {
        buffer(network, config, &built.layout, node)?;
    }
    OtherParts::new(network, config, fabric.node_count(), fabric.port_count()).map(|_| ())
}

/// Why a run keeps to one thread however many it may use; `None`: it can be cut. Results are the same either way.
pub fn one_thread(
    network: &Network,
    config: &RunConfig,
    workload: &dyn Workload,
) -> Option<&'static str> {
    if network.semantics.ties == TieOrder::Insertion {
        return Some("it repeats another simulator's order of events");
    }
    if config.marks.is_some() {
        return Some("recorded congestion marks name flows in the order of the whole run");
    }
    if !workload.has_dependencies() {
        return None;
    }
    // Whoever simulates is told why there is no layout.
    let layout = Layout::new(config.scheme.signals(), network, config).ok()?;
    let late = window(&network.fabric, &layout) > workload.longest_window();
    (late || !workload.is_divisible())
        .then_some("what its hosts do depends at once on what happens at other hosts")
}

/// Whether a run may go through a window tile by tile: on a large fabric it does then, which spares it much of what such a fabric
/// costs. Results are the same either way.
pub fn can_have_tiles(network: &Network, config: &RunConfig, workload: &dyn Workload) -> bool {
    // All else keeps lists for all hosts of a process, or touches ports between windows.
    let plain = config.multicast.is_none()
        && config.offload.is_none()
        && config.rails.is_none()
        && config.faults.is_empty();
    plain && !workload.has_dependencies() && one_thread(network, config, workload).is_none()
}

/// What is made from each, in their order; so many threads share the work.
fn on_threads<T: Send, U: Send>(
    threads: usize,
    from: Vec<T>,
    make: impl Fn(T) -> U + Sync,
) -> Vec<U> {
    let threads = threads.clamp(1, from.len().max(1));
    if threads == 1 {
        return from.into_iter().map(make).collect();
    }
    let mut shares: Vec<Vec<(usize, T)>> = (0..threads).map(|_| Vec::new()).collect();
    for (place, one) in from.into_iter().enumerate() {
        shares[place % threads].push((place, one));
    }
    let mut made: Vec<(usize, U)> = std::thread::scope(|scope| {
        let make = &make;
        let work = |share: Vec<(usize, T)>| {
            scope.spawn(move || {
                let made = share.into_iter().map(|(place, one)| (place, make(one)));
                made.collect::<Vec<_>>()
            })
        };
        let working: Vec<_> = shares.into_iter().map(work).collect();
        let made = working.into_iter().map(|thread| thread.join());
        made.flat_map(|made| made.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    made.sort_by_key(|&(place, _)| place);
    made.into_iter().map(|(_, one)| one).collect()
}

/// What all processes of a run are made from.
pub(super) struct Built<'a> {
    network: &'a Network,
    config: &'a RunConfig,
    signals: Signals,
    layout: Layout,
    /// The run has one process, in which everything is known at once: [`one_thread`] says why.
    pub(super) serial: bool,
    /// Processes may run tile by tile.
    pub(super) tiled: bool,
    /// The length of windows.
    pub(super) window: Span,
    /// Where the packets of all its processes are.
    pub(super) memory: Arc<PacketMemory>,
    /// Changes of links, routes and tables, in order of time.
    pub(super) changes: Vec<Change>,
}

impl<'a> Built<'a> {
    pub(super) fn new(
        network: &'a Network,
        config: &'a RunConfig,
        workload: &dyn Workload,
    ) -> Result<Self, SetupError> {
        let signals = config.scheme.signals().clone();
        let layout = Layout::new(&signals, network, config)?;
        let mut changes = fault::changes(&config.faults, config.reroute_delay);
        changes.extend(Groups::changes(config.multicast.as_deref()));
        changes.sort_by_key(|change| change.at());
        let serial = one_thread(network, config, workload).is_some();
        let window = if serial {
            Span(u64::MAX)
        } else {
            window(&network.fabric, &layout)
        };
        Ok(Self {
            network,
            config,
            signals,
            layout,
            serial,
            tiled: can_have_tiles(network, config, workload),
            window,
            memory: PacketMemory::new(),
            changes,
        })
    }

    /// Those processes of the cut, and the workload where they have no part of it: where it waits for nothing but time.
    pub(super) fn processes(
        &self,
        cut: &'a Cut,
        near: Range<usize>,
        workload: &'a mut dyn Workload,
    ) -> Result<(Option<&'a mut dyn Workload>, Vec<Process<'a>>), SetupError> {
        let classes = workload.classes().len();
        let reacts = workload.has_dependencies();
        let count = cut.processes();
        let mut held = None;
        let mut parts: Vec<Option<Box<dyn Workload + 'a>>> = Vec::new();
        if self.serial {
            parts.push(Some(Box::new(workload)));
        } else if reacts {
            let part_of = |host: NodeId| usize::from(cut.process(host).0);
            let split = workload.split(count, &part_of);
            parts.extend(split.into_iter().flatten().map(Some));
        } else {
            held = Some(workload);
        }
        parts.resize_with(count, || None);
        let own = (0..)
            .map(ProcessIndex)
            .zip(parts)
            .skip(near.start)
            .take(near.len());
        let processes = on_threads(self.config.threads, own.collect(), |(own, part)| {
            let traffic = Traffic::new(part, reacts);
            self.process(cut, near.clone(), own, traffic, classes)
        });
        let processes = processes.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok((held, processes))
    }

    fn process(
        &self,
        cut: &'a Cut,
        near: Range<usize>,
        own: ProcessIndex,
        traffic: Traffic<'a>,
        classes: usize,
    ) -> Result<Process<'a>, SetupError> {
        let (network, config) = (self.network, self.config);
        let fabric = &*network.fabric;
        let nodes = cut.nodes(own);
        let Devices {
            ends,
            switches,
            memory,
            nics,
        } = Devices::new(network, config, &self.layout, &self.signals, cut, own)?;
        let OtherParts {
            groups,
            offload,
            rails,
        } = OtherParts::new(network, config, nodes.len(), ends.len())?;
        let combines = Combines::new(config.multicast.as_deref(), |port| fabric.peer_node(port));
        let place = |port| cut.port(fabric, port);
        let sampler = Sampler::new(config, classes, fabric, nodes, place);
        let line_rate = network.environment.line_rate.0;
        let semantics = network.semantics;
        let horizon = horizon(fabric, &self.layout);
        let queue = |width| EventQueue::new(horizon, width);
        let mut tiles = Tiles::new(cut, own, || queue(Width::Wide));
        for &node in nodes {
            for _ in fabric.ports_of(node) {
                tiles.add_port(cut.tile(node));
            }
        }
        let cx = Context {
            fabric,
            cut,
            own,
            serial: self.serial,
            config,
            semantics,
            limits: FlowLimits {
                line_rate,
                min_rate: config.min_rate.0.clamp(1, line_rate.max(1)),
            },
            queue: queue(Width::Narrow),
            tiles,
            signals: self.signals.clone(),
            layout: self.layout.clone(),
            records: Records::default(),
            post: Post::new(cut.processes(), near),
            summary: RunSummary::default(),
            now: Time::ZERO,
            window_end: Time::ZERO,
            key: 0,
            fault: None,
            may_stop: self.serial,
            looks_ahead: look_ahead::is_worth_it(fabric),
            keys: Keys::new(semantics.ties),
        };
        let mut history = List::default();
        for _ in ends.iter() {
            history.push(PortHistory::default());
        }
        let delays = config
            .record_delays
            .map(|_| Box::new(Delays::new(ends.len())));
        let wires = Wires {
            router: Router::new(Arc::clone(&network.tables), config.path_choice, fabric),
            idle_tables: &network.tables,
            history,
            ends,
            switches,
            memory,
            packets: Packets::new(Arc::clone(&self.memory)),
            delays,
            datagrams: Arena::default(),
            segments: Arena::default(),
            chance: Chance::new(config.seed, nodes, semantics.randomness),
            replay: config.marks.as_deref().map(Replay::new),
            may_fail: !self.changes.is_empty(),
            paused_ports: 0,
        };
        let mut begun = List::default();
        for _ in nodes {
            begun.push(0);
        }
        let hosts = Hosts {
            nics,
            begun,
            ..Hosts::default()
        };
        let mut base = Base {
            cx,
            wires,
            hosts,
            traffic,
            sampler,
        };
        base.traffic.schedule_start(&mut base.cx);
        Ok(Process {
            base,
            groups,
            combines,
            offload,
            rails,
            inbox: Vec::new(),
            watch: Vec::new(),
            cost: 0,
        })
    }
}
