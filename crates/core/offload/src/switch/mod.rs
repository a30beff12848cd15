//! A switch's part of groups: it combines what its children send, and hands down results.
//!
//! The driver calls one of [`handle_packet`](Switch::handle_packet), [`handle_timeout`](Switch::handle_timeout) or
//! [`pass`](Switch::pass), then drains [`poll_transmit`](Switch::poll_transmit) and
//! [`poll_event`](Switch::poll_event); [`poll_timeout`](Switch::poll_timeout) says when to come back at the latest.
//! Nothing is allocated per packet: a group takes all its memory, which counts towards its job's quota, when it is
//! installed.

mod group;
mod key;
mod outbox;
mod status;

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        Body, Collective, Header, HeaderView, JobKey, Kind, PathEntry, ProgramView, Reason, Terms,
        Unverified, type_bit,
    },
};
use rustc_hash::FxHashMap;

pub use group::{Child, GroupPlan};
pub use key::{SiteSecret, job_key};
pub use status::{DropReason, Drops, GroupStatus, JobCounters, JobStatus, Status};

use group::{Group, Verdict};
use outbox::{Outbox, Outgoing};

/// What groups may use in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Groups of all jobs.
    pub groups: u32,
    /// Bytes of slots of all jobs.
    pub bytes: u64,
    /// Groups of a job.
    pub job_groups: u32,
    /// Slots of a job, in all its groups together.
    pub job_slots: u32,
    /// Bytes of slots of a job.
    pub job_bytes: u64,
    /// Longest lease.
    pub lease: Span,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            groups: 4096,
            bytes: 1 << 30,
            job_groups: 256,
            job_slots: 16_384,
            job_bytes: 64 << 20,
            lease: Span::from_ms(60_000),
        }
    }
}

/// What a switch can do; queries that pass are cut down to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Operations, bit code - 1.
    pub operations: u16,
    /// Collectives, bit code - 1.
    pub collectives: u16,
    /// Element types, as in [`type_bit`].
    pub types: u32,
    /// Most bytes of an operand in a message.
    pub segment_bytes: u16,
    /// Most slots of a group.
    pub slots: u16,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            operations: Operation::ALL.iter().fold(0, |mask, op| mask | op.bit()),
            collectives: Collective::ALL.iter().fold(0, |mask, c| mask | c.bit()),
            types: DataType::ALL.iter().fold(0, |mask, t| mask | type_bit(*t)),
            segment_bytes: 1024,
            slots: 256,
        }
    }
}

/// What a switch is told at its start.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// Its own address.
    pub address: Ipv4Addr,
    /// Its tier: 1 next to hosts, one more with each step towards the root.
    pub tier: u8,
    /// Which life of the switch this is: other than the one before.
    pub epoch: u32,
    /// The site's secret.
    pub secret: SiteSecret,
    /// What groups may use.
    pub quotas: Quotas,
    /// What it can do.
    pub abilities: Abilities,
}

/// What became of a message that only crosses a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// It goes on as it is.
    Unchanged,
    /// It goes on as `out` has it.
    Rewritten,
}

/// What a fast path must hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchEvent {
    /// A group was installed; all its slots are empty.
    GroupInstalled(Box<GroupPlan>),
    /// A group is gone.
    GroupFreed {
        /// Its job.
        job: u32,
        /// Its id.
        group: u32,
    },
}

/// What a job uses, and what it did. Gone with its last group.
#[derive(Debug)]
struct Job {
    key: JobKey,
    groups: u32,
    slots: u32,
    bytes: u64,
    counters: JobCounters,
}

impl Job {
    fn of(key: JobKey) -> Self {
        Self {
            key,
            groups: 0,
            slots: 0,
            bytes: 0,
            counters: JobCounters::default(),
        }
    }
}

/// A switch that combines.
#[derive(Debug)]
pub struct Switch {
    config: SwitchConfig,
    /// Places of groups; free ones are `None`, so that a place is a plain index.
    groups: Vec<Option<Group>>,
    by_id: FxHashMap<(u32, u32), u32>,
    jobs: FxHashMap<u32, Job>,
    bytes: u64,
    out: Outbox,
    events: VecDeque<SwitchEvent>,
    drops: Drops,
    /// Not after the end of any lease.
    next_look: Time,
    draining: bool,
}

impl Switch {
    /// A switch without groups.
    #[must_use]
    pub fn new(config: SwitchConfig) -> Self {
        Self {
            config,
            groups: Vec::new(),
            by_id: FxHashMap::default(),
            jobs: FxHashMap::default(),
            bytes: 0,
            out: Outbox::default(),
            events: VecDeque::new(),
            drops: Drops::default(),
            next_look: Time::NEVER,
            draining: false,
        }
    }

    /// A UDP payload that came to the switch's own address and port. What is wrong with it is counted.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddrV4, payload: &[u8]) {
        let Ok(message) = Unverified::parse(payload, 0) else {
            return self.drops.count(DropReason::Malformed);
        };
        let (job, id, length) = (message.job(), message.group(), message.length());
        let found = self.by_id.get(&(job, id)).copied();
        let group = found.and_then(|place| self.groups.get_mut(place as usize)?.as_mut());
        let Some(group) = group else {
            // Only what is acted on or answered is worth a key.
            if !matches!(
                message.kind(),
                Kind::Program | Kind::Contribution | Kind::Lease
            ) {
                return self.drops.count(DropReason::UnknownGroup);
            }
            let key = self.key_of(job);
            let Ok(message) = message.verify(&key) else {
                return self.drops.count(DropReason::Forged);
            };
            return match (message.kind, message.body) {
                (Kind::Program, Body::Program(program)) => {
                    self.install(now, from, key, message.header, program);
                }
                _ => {
                    self.drops.count(DropReason::UnknownGroup);
                    self.refuse(from, &key, message.header, Reason::UnknownGroup);
                }
            };
        };
        let Ok(message) = message.verify(&group.plan.key) else {
            return self.drops.count(DropReason::Forged);
        };
        let place = found.unwrap_or_default();
        let header = message.header;
        match (message.kind, message.body) {
            (Kind::Contribution, body) => {
                group.deadline = now + group.plan.lease;
                let verdict = group.contribute(header, body);
                self.act(place, from, header, verdict);
            }
            (Kind::Result, _) if group.plan.parent.is_some() => {
                let verdict = group.take_result(header, &payload[..length]);
                self.act(place, from, header, verdict);
            }
            (Kind::Lease, _) => {
                if group.child(header.rank()).is_none() {
                    return self.drops.count(DropReason::NoChild);
                }
                group.deadline = now + group.plan.lease;
                let due = now.since(group.passed) >= Span(group.plan.lease.0 / 4);
                if due && let Some(parent) = group.plan.parent {
                    group.passed = now;
                    let lease = Header {
                        group: id,
                        rank: group.plan.rank,
                        epoch: self.config.epoch,
                        ..Header::of(Kind::Lease, job)
                    };
                    self.out.control(parent, &lease, &group.plan.key);
                }
            }
            (Kind::Kill, _) => match group.child(header.rank()) {
                Some(child) => {
                    if group.leave(child) {
                        self.free(place);
                    }
                }
                None => self.drops.count(DropReason::NoChild),
            },
            (Kind::Refuse, _) if group.plan.parent.is_some_and(|p| p.ip() == from.ip()) => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.counters.refusals += 1;
                }
                if let Some(bytes) = payload.first_chunk() {
                    self.out.relay(place, *bytes);
                }
            }
            (Kind::Program, Body::Program(program)) => {
                if *group.body == *program.bytes() {
                    group.deadline = now + group.plan.lease;
                    let key = group.plan.key;
                    self.confirm(from, &key, header);
                } else {
                    let key = group.plan.key;
                    self.refuse(from, &key, header, Reason::Mismatch);
                }
            }
            _ => self.drops.count(DropReason::Unexpected),
        }
    }

    /// A UDP payload that crosses the switch on its way to another address. A query is cut down to what this switch can
    /// do, and gets its entry; `out` then has the new payload. Anything else, and what is not genuine, goes on unchanged.
    pub fn pass(&mut self, _now: Time, payload: &[u8], out: &mut Vec<u8>) -> Pass {
        let Ok(message) = Unverified::parse(payload, 0) else {
            return Pass::Unchanged;
        };
        if message.kind() != Kind::Query {
            return Pass::Unchanged;
        }
        let key = self.key_of(message.job());
        let Ok(message) = message.verify(&key) else {
            self.drops.count(DropReason::Forged);
            return Pass::Unchanged;
        };
        let Body::Terms(terms, path) = message.body else {
            return Pass::Unchanged;
        };
        let terms = terms.values();
        let Some(hops) = terms.hops.checked_add(1) else {
            return Pass::Unchanged;
        };
        let able = self.config.abilities;
        let longest = self.config.quotas.lease.as_ns() / 1_000_000;
        let terms = Terms {
            operations: terms.operations & able.operations,
            collectives: terms.collectives & able.collectives,
            types: terms.types & able.types,
            segment_bytes: terms.segment_bytes.min(able.segment_bytes),
            slots: terms.slots.min(able.slots),
            lease_ms: terms
                .lease_ms
                .min(u32::try_from(longest).unwrap_or(u32::MAX)),
            hops,
            ..terms
        };
        let entry = PathEntry {
            address: self.config.address,
            tier: self.config.tier,
            reserved: 0,
            room: self.room(message.header.job()),
        };
        let path = path.bytes();
        let entry_at = Header::SIZE + Terms::SIZE + path.len();
        let length = entry_at + PathEntry::SIZE;
        out.clear();
        out.resize(length, 0);
        out[entry_at - path.len()..entry_at].copy_from_slice(path);
        let written = terms
            .write(out, Header::SIZE)
            .and_then(|()| entry.write(out, entry_at))
            .and_then(|()| {
                let header = message.header.values();
                header.seal_message(out, length - Header::SIZE, &key)
            });
        match written {
            Ok(_) => Pass::Rewritten,
            Err(_) => Pass::Unchanged,
        }
    }

    /// Time has passed: groups whose lease ran out are freed.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.next_look {
            return;
        }
        for place in 0..self.groups.len() {
            let group = self.groups[place].as_ref();
            if group.is_some_and(|group| group.deadline <= now) {
                self.free(place as u32);
            }
        }
        let deadlines = self.groups.iter().flatten().map(|group| group.deadline);
        self.next_look = deadlines.min().unwrap_or(Time::NEVER);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None` without groups.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.next_look != Time::NEVER).then_some(self.next_look)
    }

    /// The next message to send: writes it to `buffer`, which has room for 56 + 8192 bytes, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        loop {
            let outgoing = self.out.next()?;
            let (to, message): (_, &[u8]) = match &outgoing {
                Outgoing::Control(to, bytes) => (*to, bytes),
                Outgoing::Up { group, slot } => {
                    let Some(group) = self.group(*group) else {
                        continue;
                    };
                    let Some(parent) = group.plan.parent else {
                        continue;
                    };
                    (parent, group.message(*slot))
                }
                Outgoing::Down { group, slot, child } => {
                    let Some(group) = self.group(*group) else {
                        continue;
                    };
                    let Some(child) = group.plan.children.get(usize::from(*child)) else {
                        continue;
                    };
                    (child.address, group.message(*slot))
                }
                Outgoing::All { group, slot, next } => {
                    let (place, slot, next) = (*group, *slot, *next);
                    let Some(group) = self.groups.get(place as usize).and_then(Option::as_ref)
                    else {
                        continue;
                    };
                    let Some((to, more)) = address_of(&group.plan, next) else {
                        continue;
                    };
                    if more {
                        self.out.again(Outgoing::All {
                            group: place,
                            slot,
                            next: next + 1,
                        });
                    }
                    (to, group.message(slot))
                }
                Outgoing::Relay { group, bytes, next } => {
                    let (place, bytes, next) = (*group, *bytes, *next);
                    let Some(group) = self.groups.get(place as usize).and_then(Option::as_ref)
                    else {
                        continue;
                    };
                    let Some(child) = group.plan.children.get(usize::from(next)) else {
                        continue;
                    };
                    let to = child.address;
                    self.out.again(Outgoing::Relay {
                        group: place,
                        bytes,
                        next: next + 1,
                    });
                    let room = buffer.get_mut(..bytes.len())?;
                    room.copy_from_slice(&bytes);
                    return Some((to, bytes.len()));
                }
            };
            let room = buffer.get_mut(..message.len())?;
            room.copy_from_slice(message);
            return Some((to, message.len()));
        }
    }

    /// The next event for a fast path.
    pub fn poll_event(&mut self) -> Option<SwitchEvent> {
        self.events.pop_front()
    }

    /// From now on no group is installed; those that are go on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Other limits for groups that come. Those that are installed stay, whatever they use.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        self.config.quotas = quotas;
    }

    /// Another secret of the site. Jobs that have groups here keep the key that they have, until their last group is gone.
    pub fn set_secret(&mut self, secret: SiteSecret) {
        self.config.secret = secret;
    }

    /// Groups at this moment.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.by_id.len()
    }

    /// All that there is to show. Walks through all slots.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut groups: Vec<GroupStatus> = self
            .groups
            .iter()
            .flatten()
            .map(|group| GroupStatus {
                job: group.plan.job,
                group: group.plan.group,
                children: group.plan.children.len(),
                is_root: group.plan.parent.is_none(),
                slots: group.plan.slots,
                slots_in_use: group.slots_in_use(),
                bytes: group.plan.bytes(),
                lease_ends: group.deadline,
            })
            .collect();
        groups.sort_by_key(|group| (group.job, group.group));
        let mut jobs: Vec<u32> = self.jobs.keys().copied().collect();
        jobs.sort_unstable();
        let jobs = jobs.iter().filter_map(|id| {
            let job = self.jobs.get(id)?;
            Some(JobStatus {
                job: *id,
                groups: job.groups,
                slots: job.slots,
                bytes: job.bytes,
                counters: job.counters,
            })
        });
        Status {
            jobs: jobs.collect(),
            groups,
            drops: self.drops,
            bytes: self.bytes,
            draining: self.draining,
        }
    }

    /// The key of a job: from one of its groups, where it has any.
    fn key_of(&self, job: u32) -> JobKey {
        match self.jobs.get(&job) {
            Some(job) => job.key,
            None => job_key(&self.config.secret, job),
        }
    }

    fn group(&self, place: u32) -> Option<&Group> {
        self.groups.get(place as usize)?.as_ref()
    }

    /// Does what a message asks for.
    fn act(&mut self, place: u32, from: SocketAddrV4, header: HeaderView<'_>, verdict: Verdict) {
        let slot = header.slot();
        let Some(counters) = self
            .jobs
            .get_mut(&header.job())
            .map(|job| &mut job.counters)
        else {
            return;
        };
        if header.kind() == Kind::Contribution.code() {
            counters.contributions += 1;
        }
        let all = Outgoing::All {
            group: place,
            slot,
            next: 0,
        };
        let up = Outgoing::Up { group: place, slot };
        match verdict {
            Verdict::Stored => {}
            Verdict::SendUp => self.out.send(up),
            Verdict::Answer => {
                counters.segments += 1;
                counters.rounds += u64::from(header.segment() + 1 == header.segments());
                self.out.send(all);
            }
            Verdict::AnswerAgain(child) => {
                counters.repeats += 1;
                self.out.send(Outgoing::Down {
                    group: place,
                    slot,
                    child,
                });
            }
            Verdict::SendUpAgain => {
                counters.repeats += 1;
                self.out.send(up);
            }
            Verdict::Waiting => counters.repeats += 1,
            Verdict::Stale => {
                counters.stale += 1;
                self.drops.count(DropReason::Stale);
            }
            Verdict::Nobody => self.drops.count(DropReason::NoChild),
            Verdict::NotAwaited => self.drops.count(DropReason::NotAwaited),
            Verdict::Refuse(reason) => {
                counters.refusals += 1;
                if let Some(key) = self.group(place).map(|group| group.plan.key) {
                    self.refuse(from, &key, header, reason);
                }
            }
        }
    }

    /// Groups that a job may still install.
    fn room(&self, job: u32) -> u32 {
        if self.draining {
            return 0;
        }
        let used = self.jobs.get(&job).map_or(0, |job| job.groups);
        let quotas = self.config.quotas;
        let all = quotas.groups.saturating_sub(self.by_id.len() as u32);
        all.min(quotas.job_groups.saturating_sub(used))
    }

    fn install(
        &mut self,
        now: Time,
        from: SocketAddrV4,
        key: JobKey,
        header: HeaderView<'_>,
        program: ProgramView<'_>,
    ) {
        let plan = match self.admit(key, header, program) {
            Ok(plan) => plan,
            Err(reason) => return self.refuse(from, &key, header, reason),
        };
        let bytes = plan.bytes();
        let job = self.jobs.entry(plan.job).or_insert_with(|| Job::of(key));
        job.groups += 1;
        job.slots += u32::from(plan.slots);
        job.bytes += bytes;
        self.bytes += bytes;
        let free = self.groups.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        self.by_id.insert((plan.job, plan.group), place as u32);
        self.events
            .push_back(SwitchEvent::GroupInstalled(Box::new(plan.clone())));
        let group = Group::new(plan, program.bytes(), self.config.epoch, now);
        self.next_look = self.next_look.min(group.deadline);
        self.groups[place] = Some(group);
        self.confirm(from, &key, header);
    }

    /// Whether a group may be installed.
    fn admit(
        &self,
        key: JobKey,
        header: HeaderView<'_>,
        program: ProgramView<'_>,
    ) -> Result<GroupPlan, Reason> {
        if self.draining {
            return Err(Reason::Draining);
        }
        let plan = GroupPlan::read(self.config.address, key, header, program)?;
        let (quotas, able) = (self.config.quotas, self.config.abilities);
        if plan.lease > quotas.lease
            || plan.slots > able.slots
            || plan.segment_bytes > able.segment_bytes
        {
            return Err(Reason::Unsupported);
        }
        let bytes = plan.bytes();
        if self.by_id.len() as u64 >= u64::from(quotas.groups) || self.bytes + bytes > quotas.bytes
        {
            return Err(Reason::NoRoom);
        }
        let none = Job::of(key);
        let job = self.jobs.get(&plan.job).unwrap_or(&none);
        if job.groups >= quotas.job_groups
            || job.slots + u32::from(plan.slots) > quotas.job_slots
            || job.bytes + bytes > quotas.job_bytes
        {
            return Err(Reason::Quota);
        }
        Ok(plan)
    }

    /// Frees a group and tells the parent.
    fn free(&mut self, place: u32) {
        let Some(group) = self.groups.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        let plan = &group.plan;
        self.by_id.remove(&(plan.job, plan.group));
        self.bytes -= plan.bytes();
        if let Some(job) = self.jobs.get_mut(&plan.job) {
            job.groups -= 1;
            job.slots -= u32::from(plan.slots);
            job.bytes -= plan.bytes();
            if job.groups == 0 {
                self.jobs.remove(&plan.job);
            }
        }
        if let Some(parent) = plan.parent {
            let kill = Header {
                group: plan.group,
                rank: plan.rank,
                epoch: self.config.epoch,
                ..Header::of(Kind::Kill, plan.job)
            };
            self.out.control(parent, &kill, &plan.key);
        }
        self.events.push_back(SwitchEvent::GroupFreed {
            job: plan.job,
            group: plan.group,
        });
    }

    /// Tells a master that its program is in place.
    fn confirm(&mut self, to: SocketAddrV4, key: &JobKey, header: HeaderView<'_>) {
        let lease = Header {
            group: header.group(),
            epoch: self.config.epoch,
            answer: true,
            ..Header::of(Kind::Lease, header.job())
        };
        self.out.control(to, &lease, key);
    }

    fn refuse(&mut self, to: SocketAddrV4, key: &JobKey, header: HeaderView<'_>, reason: Reason) {
        let refusal = Header {
            group: header.group(),
            round: header.round(),
            segment: header.segment(),
            slot: header.slot(),
            epoch: self.config.epoch,
            reason: reason.code(),
            answer: true,
            ..Header::of(Kind::Refuse, header.job())
        };
        self.out.control(to, &refusal, key);
    }
}

/// The address to which the `next`-th copy of a result goes, and whether there are more.
fn address_of(plan: &GroupPlan, next: u16) -> Option<(SocketAddrV4, bool)> {
    if let Some(results) = plan.results {
        return Some((results, false));
    }
    let child = plan.children.get(usize::from(next))?;
    Some((child.address, usize::from(next) + 1 < plan.children.len()))
}
