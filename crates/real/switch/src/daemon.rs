//! The loop of a switch: one thread that owns the sockets and everything a frame touches.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    net::Ipv4Addr,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use raddle_offload::{
    published,
    switch::{DropReason, Switch, SwitchConfig, SwitchEvent},
};
use raddle_units::{Span, Time};
use tokio::sync::oneshot;

use crate::{
    bridge::Bridge,
    config::Config,
    control::{Inbox, Order},
    fast::{FastPath, Route},
    faults::{FaultPoints, Held},
    lock::PortLocks,
    node::{Drop, Node},
    ports::{Change, Ports, Traffic},
    reload::Live,
    socket::{Frames, PacketSocket, Sending},
    spin::{Idle, Spin},
    status::{Counters, Drops, JobStatus, PublishedStatus, Status},
};
use raddle_host::{
    clock::{Clock, duration, epoch},
    netdevice,
};

/// How often interfaces are looked up and silent stations forgotten.
const TICK: Span = Span::from_ms(200);
/// How often a busy loop looks for questions and signals.
const LOOK: Span = Span::from_ms(1);
/// How often the status is told at most: making it takes time that frames wait for.
const TELL: Span = Span::from_ms(20);
/// The longest sleep.
const SLEEP: Span = Span::from_ms(200);
/// Age at which the clock starts again at zero as soon as no group would notice, and at which it does in any case: its range
/// ends after 213 days.
const RENEW: [Time; 2] = [
    Time(Span::from_ms(150 * 86_400_000).0),
    Time(Span::from_ms(200 * 86_400_000).0),
];

/// A switch that runs.
pub struct Daemon {
    config: Config,
    socket: PacketSocket,
    frames: Frames,
    node: Node,
    switch: SwitchConfig,
    ports: Ports,
    traffic: Vec<Traffic>,
    /// What the fast path was told of neighbours.
    routes: BTreeMap<Ipv4Addr, Route>,
    faults: Option<Box<FaultPoints>>,
    fast: Option<Box<dyn FastPath>>,
    inbox: Inbox,
    locks: PortLocks,
    /// Who waits for the status.
    asked: Vec<oneshot::Sender<Status>>,
    stop: Arc<AtomicBool>,
    started: Clock,
    clock: Clock,
    spin: Spin,
    overflow: u64,
    draining: Option<Time>,
    next_tick: Time,
    next_look: Time,
    /// When the status may be told again.
    next_tell: Time,
    /// When the fast path is asked next whom it has heard.
    next_refresh: Time,
}

impl Daemon {
    /// Opens the sockets of a switch. `locks` are asked for interfaces that come; `stop` is set when it is to drain and end.
    ///
    /// # Errors
    /// The caller lacks the capability `CAP_NET_RAW`, or the kernel has no memory or descriptor left for a packet socket.
    pub fn open(
        config: Config,
        switch: SwitchConfig,
        fast: Option<Box<dyn FastPath>>,
        inbox: Inbox,
        locks: PortLocks,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let socket = PacketSocket::open()?;
        let bridge = Bridge::new(config.ageing);
        let mut node = Node::new(
            config.address,
            config.mac,
            config.ports.len(),
            bridge,
            Switch::new(switch.clone()),
        );
        node.native = config.native;
        node.published = published_switch(&config);
        let faults = config.faults.map(FaultPoints::new).map(Box::new);
        let clock = Clock::start();
        let spin = Spin::new(config.spin);
        let mut daemon = Self {
            ports: Ports::new(&config.ports),
            traffic: vec![Traffic::default(); config.ports.len()],
            config,
            socket,
            frames: Frames::default(),
            node,
            switch,
            routes: BTreeMap::new(),
            faults,
            fast,
            inbox,
            locks,
            asked: Vec::new(),
            stop,
            started: clock,
            clock,
            spin,
            overflow: 0,
            draining: None,
            next_tick: Time::ZERO,
            next_look: Time::ZERO,
            next_tell: Time::ZERO,
            next_refresh: Time::ZERO,
        };
        daemon.tick(Time::ZERO)?;
        Ok(daemon)
    }

    /// Switches until it was told to stop and has no groups any more, or its time for that is over.
    ///
    /// # Errors
    /// The kernel has no memory left, or the packet socket fails for good. An interface that goes down is no error.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            let count = self.socket.receive(&mut self.frames).or_else(|error| {
                // An interface that goes down tells the socket so once.
                tracing::debug!(%error, "receive");
                match error.raw_os_error() {
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV | libc::EINVAL) => Ok(0),
                    _ => Err(error),
                }
            })?;
            let now = self.clock.now();
            self.spin.looked(now, count > 0);
            if count > 0 {
                self.handle_frames(now);
            }
            if self.node.switch.poll_timeout().is_some_and(|at| at <= now) {
                self.node.switch.handle_timeout(now);
            }
            if let Some(published) = &mut self.node.published
                && published.poll_timeout().is_some_and(|at| at <= now)
            {
                published.handle_timeout(now);
            }
            // Before anybody is told that a group is there, so that the fast path sees its first rounds.
            while let Some(event) = self.node.switch.poll_event() {
                self.handle_event(now, &event);
            }
            self.flush(now);
            self.tell_stations(now);
            // Until the places of all its members are known, a group's rounds wake this thread.
            if self.node.neighbours.take_changed() && self.node.switch.group_count() > 0 {
                self.tell_routes(now);
            }
            if now >= self.next_look && self.look(now)? {
                return Ok(());
            }
            if count > 0 {
                continue;
            }
            match self.spin.idle(now) {
                // Whoever will send the next frame may need this core.
                Idle::Look => thread::yield_now(),
                Idle::Sleep => self.sleep(now)?,
            }
        }
    }

    #[inline]
    fn handle_frames(&mut self, now: Time) {
        if self.faults.is_some() {
            return self.handle_frames_with_faults(now);
        }
        for (slot, received) in self.frames.received().iter().enumerate() {
            // Frames of an interface that has just gone belong to no port.
            let Some(port) = self.ports.by_interface(received.interface) else {
                continue;
            };
            let frame = self.frames.bytes(received);
            self.traffic[port.index()].receive(frame);
            self.node
                .handle_frame(now, port, received.offload, frame, slot);
        }
    }

    /// The same, one frame after the other, where frames suffer on purpose.
    #[cold]
    fn handle_frames_with_faults(&mut self, now: Time) {
        for slot in 0..self.frames.received().len() {
            let Some(faults) = &mut self.faults else {
                return;
            };
            let received = self.frames.received()[slot];
            let Some(port) = self.ports.by_interface(received.interface) else {
                continue;
            };
            let frame = self.frames.bytes(&received);
            let survivors = faults
                .arriving
                .pass(Held::new(port, received.offload, frame));
            for survivor in survivors {
                self.traffic[survivor.port.index()].receive(&survivor.frame);
                let Held {
                    port,
                    offload,
                    ref frame,
                } = survivor;
                self.node.handle_frame(now, port, offload, frame, slot);
                self.node.poll_switch(now);
                self.send_with_faults(frame);
            }
        }
    }

    /// A group has come or gone.
    fn handle_event(&mut self, now: Time, event: &SwitchEvent) {
        match event {
            SwitchEvent::GroupInstalled(plan) => {
                let children = plan.children.len();
                tracing::info!(
                    job = plan.job,
                    group = plan.group,
                    children,
                    "group installed"
                );
                // Who takes part was heard already, mostly; the fast path needs to know where.
                self.tell_routes(now);
            }
            SwitchEvent::GroupFreed { job, group } => {
                tracing::info!(job, group, "group freed");
            }
        }
        if let Some(fast) = &mut self.fast
            && let Err(error) = fast.event(event)
        {
            tracing::info!(%error, "this group runs without the fast path");
        }
    }

    /// Tells the fast path which neighbours have moved, come or gone since the last time.
    fn tell_routes(&mut self, now: Time) {
        let Some(fast) = &mut self.fast else {
            return;
        };
        let routes: BTreeMap<Ipv4Addr, Route> = self
            .node
            .neighbours
            .known()
            .into_iter()
            .filter_map(|(address, _)| {
                let (station, port) = self.node.route(now, address)?;
                let route = Route {
                    port,
                    index: self.ports.interface(port)?,
                    mac: station.mac,
                    vlan: station.vlan,
                };
                Some((address, route))
            })
            .collect();
        for address in self.routes.keys() {
            if !routes.contains_key(address) {
                fast.route_changed(*address, None);
            }
        }
        for (address, route) in &routes {
            if self.routes.get(address) != Some(route) {
                fast.route_changed(*address, Some(*route));
            }
        }
        self.routes = routes;
    }

    /// Tells the fast path which stations have moved, come or gone.
    #[inline]
    fn tell_stations(&mut self, now: Time) {
        while let Some(station) = self.node.bridge.take_change() {
            let Some(fast) = &mut self.fast else {
                continue;
            };
            let port = self.node.bridge.find(now, station);
            fast.station_changed(station, port.and_then(|port| self.ports.interface(port)));
        }
    }

    /// Sends what is to go out.
    #[inline]
    fn flush(&mut self, now: Time) {
        self.node.poll_switch(now);
        if self.faults.is_some() {
            return self.send_with_faults(&[]);
        }
        let outbox = &self.node.outbox;
        if outbox.frames().is_empty() {
            return;
        }
        let (frames, ports, traffic) = (&self.frames, &self.ports, &mut self.traffic);
        // A port that has just gone takes its frames along.
        let sendings = outbox.frames().iter().filter_map(|outgoing| {
            Some(Sending {
                port: outgoing.port,
                interface: ports.interface(outgoing.port)?,
                offload: outgoing.offload,
                frame: outbox.bytes(outgoing, |slot| frames.bytes(&frames.received()[slot])),
            })
        });
        self.socket.send(sendings, |sending, result| {
            traffic[sending.port.index()].send(&sending, &result);
        });
        self.node.outbox.clear();
    }

    /// The same where frames suffer on purpose. `received` is the one frame that came.
    #[cold]
    fn send_with_faults(&mut self, received: &[u8]) {
        let Some(faults) = &mut self.faults else {
            return;
        };
        let outbox = &self.node.outbox;
        for outgoing in outbox.frames() {
            let frame = outbox.bytes(outgoing, |_| received);
            let held = Held::new(outgoing.port, outgoing.offload, frame);
            let survivors = faults.leaving.pass(held);
            let (ports, traffic) = (&self.ports, &mut self.traffic);
            let sendings = survivors.iter().filter_map(|survivor| {
                Some(Sending {
                    port: survivor.port,
                    interface: ports.interface(survivor.port)?,
                    offload: survivor.offload,
                    frame: &survivor.frame,
                })
            });
            self.socket.send(sendings, |sending, result| {
                traffic[sending.port.index()].send(&sending, &result);
            });
        }
        self.node.outbox.clear();
    }

    /// Follows orders and signals, ticks; true if the switch is to end.
    fn look(&mut self, now: Time) -> io::Result<bool> {
        self.next_look = now + LOOK;
        while let Ok(order) = self.inbox.orders.try_recv() {
            match order {
                Order::Tell(asked) => self.asked.push(asked),
                Order::Change(live) => self.change(now, *live)?,
            }
        }
        if !self.asked.is_empty() && now >= self.next_tell {
            self.next_tell = now + TELL;
            let status = self.status();
            for asked in self.asked.drain(..) {
                // Who has gone does not want it.
                let _ = asked.send(status.clone());
            }
        }
        if now >= self.next_tick {
            self.tick(now)?;
        }
        if self.stop.load(Ordering::Relaxed) && self.draining.is_none() {
            let groups = self.node.switch.group_count();
            tracing::info!(groups, "draining: no new groups");
            self.node.switch.drain();
            // Nobody can be told to leave: leaders notice that no result comes.
            if let Some(published) = &mut self.node.published {
                published.drain();
            }
            self.draining = Some(now + self.config.drain);
        }
        let Some(limit) = self.draining else {
            return Ok(false);
        };
        let groups = self.node.switch.group_count();
        if groups > 0 && now >= limit {
            tracing::warn!(
                groups,
                "the time to drain is over: these groups are cut off"
            );
        }
        Ok(groups == 0 || now >= limit)
    }

    /// What is to be done a few times per second.
    fn tick(&mut self, now: Time) -> io::Result<()> {
        self.next_tick = now + TICK;
        // By the name of now: the file may have another one, and the lock was taken before there was an interface.
        let is_ours = |index| netdevice::name(index).is_some_and(|name| self.locks.has(&name));
        let changes = self.ports.look(&self.socket, is_ours);
        self.follow(&changes)?;
        if let Some(fast) = &mut self.fast
            && now >= self.next_refresh
        {
            self.next_refresh = now + Span(self.config.ageing.0 / 4);
            for station in fast.heard() {
                self.node.bridge.refresh(now, station);
            }
        }
        self.node.forget_silent(now);
        self.tell_routes(now);
        if let Some(fast) = &mut self.fast {
            fast.tick(now);
        }
        self.overflow += self.socket.overflow()?;
        let [renew, renew_now] = RENEW;
        if now >= renew && (self.node.switch.group_count() == 0 || now >= renew_now) {
            tracing::info!("the clock starts again at zero");
            self.renew()?;
        }
        Ok(())
    }

    /// Ports have come or gone.
    fn follow(&mut self, changes: &[Change]) -> io::Result<()> {
        for change in changes {
            match change {
                Change::Up(link) => {
                    tracing::info!(port = link.interface, index = link.index, "port up");
                    self.node.set_port(link.port, true);
                    if let Some(fast) = &mut self.fast
                        && let Err(error) = fast.link_up(link)
                    {
                        tracing::warn!(port = link.interface, %error, "no fast path");
                    }
                }
                Change::Down(link) => {
                    tracing::warn!(port = link.interface, "port down");
                    self.node.set_port(link.port, false);
                    if let Some(fast) = &mut self.fast {
                        fast.link_down(link);
                    }
                }
            }
        }
        if !changes.is_empty() {
            let fast = self.fast.as_ref();
            self.ports.listen(&self.socket, |index| fast?.mark(index))?;
        }
        Ok(())
    }

    /// Goes on with other settings; no group notices.
    fn change(&mut self, now: Time, live: Live) -> io::Result<()> {
        let Live {
            secret,
            quotas,
            spin,
            ageing,
            drain,
            ports,
        } = live;
        // Both hold for the life of the switch that begins when the clock does.
        (self.switch.secret, self.switch.quotas) = (secret.clone(), quotas);
        self.node.switch.set_secret(secret);
        self.node.switch.set_quotas(quotas);
        self.spin.set_most(spin);
        self.node.bridge.set_ageing(ageing);
        (self.config.ageing, self.config.drain) = (ageing, drain);
        let gone = self.ports.change(&ports, &mut self.traffic, &self.socket);
        self.follow(&gone)?;
        // New ports come with the next tick.
        self.next_tick = now;
        Ok(())
    }

    /// Begins a new life: the clock starts again, and everything that holds times with it.
    fn renew(&mut self) -> io::Result<()> {
        self.switch.epoch = epoch().map_err(io::Error::other)?;
        for group in self.node.switch.status().groups {
            let (job, group) = (group.job, group.group);
            self.handle_event(Time::ZERO, &SwitchEvent::GroupFreed { job, group });
        }
        self.node.switch = Switch::new(self.switch.clone());
        self.node.published = published_switch(&self.config);
        self.node.bridge.clear();
        self.node.neighbours.clear();
        self.clock = Clock::start();
        self.spin.restart();
        (self.next_tick, self.next_look) = (Time::ZERO, Time::ZERO);
        (self.next_refresh, self.next_tell) = (Time::ZERO, Time::ZERO);
        self.draining = None;
        Ok(())
    }

    /// Sleeps until a frame comes, somebody asks, or something is due.
    fn sleep(&mut self, now: Time) -> io::Result<()> {
        let published = self.node.published.as_ref();
        let published = published.and_then(published::Switch::poll_timeout);
        let both = [self.node.switch.poll_timeout(), published];
        let mut due = both.into_iter().flatten().min().unwrap_or(Time::NEVER);
        if !self.asked.is_empty() {
            due = due.min(self.next_tell);
        }
        let limit = due.min(self.next_tick).since(now);
        let limit = duration(Span(limit.0.min(SLEEP.0)));
        self.socket.wait(self.inbox.wake.as_fd(), Some(limit))?;
        // Whatever woke us, `look` finds it; the pipe must only be empty again.
        let mut nothing = [0; 64];
        while matches!(self.inbox.wake.read(&mut nothing), Ok(1..)) {}
        self.next_look = Time::ZERO;
        Ok(())
    }

    fn status(&self) -> Status {
        let node = &self.node;
        let counters = &node.counters;
        let mut drops: Vec<Drops> = Drop::ALL
            .iter()
            .map(|reason| Drops {
                reason: reason.name().to_owned(),
                count: counters.dropped(*reason),
            })
            .collect();
        drops.push(Drops {
            reason: "too_long".to_owned(),
            count: self.frames.too_long(),
        });
        drops.push(Drops {
            reason: "no_neighbour".to_owned(),
            count: node.neighbours.lost(),
        });
        let core = node.switch.status();
        drops.extend(DropReason::ALL.iter().map(|reason| Drops {
            reason: format!("message_{}", reason.name()),
            count: core.drops.of(*reason),
        }));
        let mut ports = self.ports.status(&self.traffic);
        let mut jobs: Vec<JobStatus> = core.jobs.iter().map(JobStatus::from).collect();
        if let Some(fast) = &self.fast {
            let counters = fast.counters();
            for (port, status) in &mut ports {
                if let Some(more) = counters.ports.get(port.index()) {
                    status.add(more);
                }
            }
            for job in &mut jobs {
                for (id, what, count) in &counters.jobs {
                    if *id == job.job {
                        job.add(what, *count);
                    }
                }
            }
            drops.extend(counters.drops.iter().map(|(reason, count)| Drops {
                reason: format!("fast_{reason}"),
                count: *count,
            }));
        }
        if let Some(published) = &node.published {
            drops.extend(published::Drop::ALL.iter().map(|reason| Drops {
                reason: format!("published_{}", reason.name()),
                count: published.counters().dropped(*reason),
            }));
        }
        let (state, backend) = (
            if self.draining.is_some() {
                "draining"
            } else {
                "running"
            },
            self.fast.as_ref().map_or("sockets", |fast| fast.name()),
        );
        Status {
            schema: 1,
            name: self.config.name.clone(),
            address: self.config.address.to_string(),
            mac: self.config.mac.to_string(),
            tier: self.config.tier,
            backend: backend.to_owned(),
            state: state.to_owned(),
            uptime_s: self.started.nanoseconds() / 1_000_000_000,
            epoch: self.switch.epoch,
            stations: node.bridge.len() as u64,
            neighbours: node.neighbours.known().len() as u64,
            ports: ports.into_iter().map(|(_, status)| status).collect(),
            jobs,
            published: node.published.as_ref().map(PublishedStatus::from),
            counters: Counters {
                messages: counters.messages,
                messages_sent: counters.sent,
                rewritten: counters.rewritten,
                arp_answers: counters.arps,
                pings: counters.pings,
                moves: node.bridge.moves(),
                unlearnt: node.bridge.unlearnt(),
                overflow: self.overflow,
            },
            drops,
        }
    }
}

/// The switch of the published protocol, if the file asks for one.
fn published_switch(config: &Config) -> Option<published::Switch> {
    let tier = match config.tier {
        1 => published::Tier::Tor,
        _ => published::Tier::Spine,
    };
    let switch = || published::Switch::new(published::SwitchConfig::new(config.address, tier));
    config.published.then(switch)
}
