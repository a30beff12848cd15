//! The network in virtual time: a queue of events, links that lose, double and reorder, switches that die and return.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    net::{Ipv4Addr, SocketAddrV4},
};

use raddle_offload::switch::{Abilities, Pass, Quotas, SiteSecret, Switch, SwitchConfig, job_key};
use raddle_random::Random;
use raddle_units::{Span, Time};
use raddle_wire::native::{JobKey, Kind, PORT, Unverified};

use crate::world::{JOB, Shape};

pub(crate) fn key() -> JobKey {
    job_key(&secret(), JOB)
}

fn secret() -> SiteSecret {
    SiteSecret::new(*b"the secret of a site, 32 bytes!!")
}

struct SwitchNode {
    address: Ipv4Addr,
    tier: u8,
    epoch: u32,
    quotas: Quotas,
    /// `None`: it is dead.
    switch: Option<Switch>,
    armed: Option<Time>,
}

impl SwitchNode {
    /// Begins a life in which it knows nothing of those before.
    fn start(&mut self) {
        self.epoch += 1;
        self.switch = Some(Switch::new(SwitchConfig {
            address: self.address,
            tier: self.tier,
            epoch: self.epoch,
            secret: secret(),
            quotas: self.quotas,
            abilities: Abilities::default(),
        }));
    }
}

/// What happens at a time. Events of hosts are the world's.
#[derive(Debug)]
pub(crate) enum Event<Host> {
    Deliver(SocketAddrV4, SocketAddrV4, Vec<u8>),
    SwitchTimer(usize),
    Host(Host),
}

pub(crate) struct Network<Host> {
    pub chance: Random,
    pub now: Time,
    pub packets: u64,
    /// Probability of loss, of doubling, and of reordering, each in millionths.
    loss: u32,
    /// A dead TOR also cuts its hosts off from all others.
    cuts: bool,
    queue: BinaryHeap<Reverse<(Time, u64, usize)>>,
    events: Vec<Option<Event<Host>>>,
    free: Vec<usize>,
    serial: u64,
    switches: Vec<SwitchNode>,
    place_of: BTreeMap<Ipv4Addr, usize>,
    host_of: BTreeMap<SocketAddrV4, usize>,
    tor_of: Vec<usize>,
    /// Switches that a query of each member passes.
    paths: Vec<Vec<usize>>,
    results_at: Option<SocketAddrV4>,
}

impl<Host> Network<Host> {
    pub(crate) fn new(
        mut chance: Random,
        shape: &Shape,
        loss: u32,
        cuts: bool,
        hosts: &[SocketAddrV4],
        results_at: Option<SocketAddrV4>,
    ) -> Self {
        let mut switches = Vec::new();
        let counts = [shape.tors, shape.spines, shape.cores];
        for (tier, count) in (1..).zip(counts) {
            for number in 0..count {
                let mut quotas = Quotas::default();
                if shape.first_tor_is_full && tier == 1 && number == 0 {
                    quotas.job_groups = 0;
                }
                let mut node = SwitchNode {
                    address: Ipv4Addr::new(10, 255, tier, number as u8 + 1),
                    tier,
                    epoch: 0,
                    quotas,
                    switch: None,
                    armed: None,
                };
                node.start();
                switches.push(node);
            }
        }
        let [tors, spines, cores] = counts;
        // With cores, TORs stand in two pods whose spines are different ones.
        let pods = if cores > 0 { 2.min(tors) } else { 1 };
        let tor_of: Vec<usize> = (0..shape.members).map(|_| chance.index(tors)).collect();
        let tor_of = if shape.in_turn {
            (0..shape.members).map(|member| member % tors).collect()
        } else {
            tor_of
        };
        let spine = |chance: &mut Random, pod: usize| {
            let own = (0..spines).filter(|s| s % pods == pod).collect::<Vec<_>>();
            tors + own[chance.index(own.len())]
        };
        let mut paths = vec![Vec::new()];
        for member in 1..shape.members {
            let (from, to) = (tor_of[member], tor_of[0]);
            paths.push(if from == to {
                vec![from]
            } else if from % pods == to % pods {
                vec![from, spine(&mut chance, from % pods), to]
            } else {
                let core = tors + spines + chance.index(cores);
                let (up, down) = (
                    spine(&mut chance, from % pods),
                    spine(&mut chance, to % pods),
                );
                vec![from, up, core, down, to]
            });
        }
        let place_of = (0..)
            .zip(&switches)
            .map(|(at, node)| (node.address, at))
            .collect();
        Self {
            chance,
            now: Time::ZERO,
            packets: 0,
            loss,
            cuts,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            serial: 0,
            switches,
            place_of,
            host_of: hosts.iter().copied().zip(0..).collect(),
            tor_of,
            paths,
            results_at,
        }
    }

    pub(crate) fn push(&mut self, at: Time, event: Event<Host>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[index] = Some(event);
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, index)));
    }

    /// The next event, whose time is now; `None` when none comes up to `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<Event<Host>> {
        let Reverse((at, _, index)) = self.queue.peek().copied()?;
        if at > end {
            return None;
        }
        assert!(at >= self.now);
        self.queue.pop();
        self.now = at;
        self.free.push(index);
        self.events[index].take()
    }

    pub(crate) fn host_at(&self, address: &SocketAddrV4) -> Option<usize> {
        self.host_of.get(address).copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.switches.len()
    }

    pub(crate) fn is_dead(&self, switch: usize) -> bool {
        self.switches[switch].switch.is_none()
    }

    pub(crate) fn kill(&mut self, switch: usize) {
        self.switches[switch].switch = None;
    }

    pub(crate) fn start(&mut self, switch: usize) {
        self.switches[switch].start();
    }

    /// A packet leaves; links do their worst.
    pub(crate) fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        self.packets += 1;
        if Some(to) == self.results_at {
            // Copies to the children below the sender, each with a fate of its own.
            let hosts = self.host_of.keys().copied();
            let switches = (self.switches.iter())
                .map(|node| SocketAddrV4::new(node.address, PORT))
                .filter(|to| to != &from);
            for one in hosts.chain(switches).collect::<Vec<_>>() {
                self.send(from, one, payload);
            }
            return;
        }
        if self.cuts {
            let hosts = [from, to].map(|end| self.host_at(&end));
            let cut = |host: Option<usize>| host.is_some_and(|h| self.is_dead(self.tor_of[h]));
            if hosts.into_iter().any(cut) {
                return;
            }
        }
        let loss = self.loss;
        let copies = if self.chance.happens(loss) {
            0
        } else {
            1 + usize::from(self.chance.happens(loss))
        };
        for _ in 0..copies {
            let mut delay = self.chance.between(1_000, 3_000);
            if self.chance.happens(loss) {
                delay += self.chance.between(1_000, 400_000);
            }
            let at = self.now + Span::from_ns(delay);
            self.push(at, Event::Deliver(from, to, payload.to_vec()));
        }
    }

    /// A packet arrives at a switch, or on its way to a host passes some. Gives it if it is a host's, whose number comes first.
    pub(crate) fn arrive(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        mut payload: Vec<u8>,
    ) -> Option<(usize, Vec<u8>)> {
        let now = self.now;
        if let Some(&at) = self.place_of.get(to.ip()) {
            if let Some(switch) = &mut self.switches[at].switch {
                switch.handle_packet(now, from, &payload);
                while switch.poll_event().is_some() {}
                self.drain(at);
            }
            return None;
        }
        let member = self.host_at(&to);
        let member = member.unwrap_or_else(|| panic!("nobody is at {to}"));
        let is_query = Unverified::parse(&payload, 0).is_ok_and(|m| m.kind() == Kind::Query);
        if is_query && let Some(sender) = self.host_at(&from) {
            let mut out = Vec::new();
            for at in self.paths[sender].clone() {
                let switch = self.switches[at].switch.as_mut()?;
                assert_eq!(switch.pass(now, &payload, &mut out), Pass::Rewritten);
                std::mem::swap(&mut payload, &mut out);
            }
        }
        Some((member, payload))
    }

    pub(crate) fn switch_timer(&mut self, at: usize) {
        let now = self.now;
        let node = &mut self.switches[at];
        if node.armed != Some(now) {
            return;
        }
        node.armed = None;
        if let Some(switch) = &mut node.switch {
            switch.handle_timeout(now);
        }
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        let mut buffer = [0; 9000];
        let from = SocketAddrV4::new(self.switches[at].address, PORT);
        while let Some(switch) = &mut self.switches[at].switch {
            let Some((to, length)) = switch.poll_transmit(&mut buffer) else {
                break;
            };
            self.send(from, to, &buffer[..length]);
        }
        let node = &mut self.switches[at];
        let due = node.switch.as_ref().and_then(Switch::poll_timeout);
        if let Some(due) = due.map(|due| due.max(self.now))
            && node.armed.is_none_or(|armed| due < armed)
        {
            node.armed = Some(due);
            self.push(due, Event::SwitchTimer(at));
        }
    }

    /// Groups that switches still hold.
    pub(crate) fn groups(&self) -> usize {
        let alive = self.switches.iter().filter_map(|node| node.switch.as_ref());
        alive
            .map(|switch| {
                let status = switch.status();
                let (jobs, bytes) = (status.jobs.len(), status.bytes);
                assert_eq!(switch.group_count() == 0, jobs == 0 && bytes == 0);
                switch.group_count()
            })
            .sum()
    }
}
