//! A switch of the published protocol.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, VecDeque};

use raddle_units::{Span, Time};
use raddle_wire::{
    Bth, Class, Deth, Edit, MacAddress, Opcode, Path, classify,
    compat::{
        Content, Control, ControlKind, DATA_GROUPS, Encapsulation, Envelope, Head, MAX_DATA, UcpTag,
    },
};

use super::{
    FRAME_ROOM, Refusal,
    group::{Group, Spec, Standing},
    source_port,
};

/// Where a switch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Hosts are connected to it.
    Tor,
    /// TORs are connected to it.
    Spine,
}

/// What a switch is told when it starts.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// Its own address.
    pub address: Ipv4Addr,
    /// Where it stands.
    pub tier: Tier,
    /// Most groups at a time.
    pub groups: usize,
    /// A group without a packet for this long is forgotten.
    pub idle: Span,
    /// Operations that it computes: bit code - 1.
    pub operations: u16,
    /// Element types that it computes with: bit code.
    pub types: u16,
}

impl SwitchConfig {
    /// A switch that computes all that [`crate::reduce`] does, for 252 groups, idle for ten minutes at most.
    #[must_use]
    pub const fn new(address: Ipv4Addr, tier: Tier) -> Self {
        Self {
            address,
            tier,
            groups: 252,
            idle: Span::from_ms(600_000),
            // MAX to BXOR; MAXLOC and MINLOC have pairs, which this layout does not name.
            operations: 0x03ff,
            // INT8 to DOUBLE.
            types: 0x07fe,
        }
    }
}

/// What is to be done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not of this protocol, or nothing of it changed: forward it.
    Forward,
    /// It was changed in place: forward it, by way of the SPINE of this address if one is named.
    Rewritten(Option<Ipv4Addr>),
    /// It was taken: nothing is to be forwarded now.
    Taken,
    /// It is not to be forwarded.
    Dropped(Drop),
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Drop {
    /// Cut short, or with contents that cannot be.
    Malformed,
    /// Its ICRC is wrong.
    Damaged,
    /// Data of a group that the switch does not know.
    UnknownGroup,
    /// From a rank or an address that is not of the group.
    Stranger,
    /// The switch has this one already.
    Repeated,
    /// Of a round that cannot be the next one.
    WrongRound,
    /// Operation, type or count differ from those of others in the round, or cannot be computed.
    Mismatch,
}

impl Drop {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Damaged,
        Self::UnknownGroup,
        Self::Stranger,
        Self::Repeated,
        Self::WrongRound,
        Self::Mismatch,
    ];

    /// The name in metrics and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Damaged => "damaged",
            Self::UnknownGroup => "unknown_group",
            Self::Stranger => "stranger",
            Self::Repeated => "repeated",
            Self::WrongRound => "wrong_round",
            Self::Mismatch => "mismatch",
        }
    }
}

/// Where a frame that the switch sends goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transmit {
    /// It was held: forward it to the hardware address that it names.
    Released,
    /// To another switch: the driver fills in both hardware addresses, which the ICRC does not cover.
    To(Ipv4Addr),
}

/// What happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    drops: [u64; Drop::ALL.len()],
    /// Queries, notifies and kills that passed.
    pub controls: u64,
    /// Packets of leaders that were held.
    pub held: u64,
    /// Rounds whose result went back.
    pub rounds: u64,
    /// Groups that were set up.
    pub groups: u64,
    /// Groups that were forgotten because nothing came.
    pub forgotten: u64,
    /// Groups that were refused.
    pub refused: u64,
}

impl SwitchCounters {
    /// Packets dropped for a reason.
    #[must_use]
    pub const fn dropped(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }
}

/// What is to be sent.
#[derive(Debug, Clone, Copy)]
enum Out {
    /// The held packet of a child, with this round's result.
    Release { group: u8, child: usize, spec: Spec },
    /// A TOR's sum.
    Sum { group: u8, spec: Spec, round: u8 },
    /// A SPINE's result for a TOR.
    Result {
        group: u8,
        child: usize,
        spec: Spec,
        round: u8,
    },
}

/// A switch of the published protocol. After each `handle_frame` the driver sends what `poll_transmit` gives until that is
/// `None`: packets that are held are overwritten by those of the next round.
#[derive(Debug)]
pub struct Switch {
    config: SwitchConfig,
    groups: BTreeMap<u8, Group>,
    out: VecDeque<Out>,
    draining: bool,
    psn: u32,
    counters: SwitchCounters,
}

/// What a data packet says.
struct Packet {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    head: Head,
    group: u8,
    round: u8,
    spec: Spec,
    elements: [u8; MAX_DATA],
}

impl Switch {
    /// A switch without groups.
    #[must_use]
    pub const fn new(config: SwitchConfig) -> Self {
        Self {
            config,
            groups: BTreeMap::new(),
            out: VecDeque::new(),
            draining: false,
            psn: 0,
            counters: SwitchCounters {
                drops: [0; Drop::ALL.len()],
                controls: 0,
                held: 0,
                rounds: 0,
                groups: 0,
                forgotten: 0,
                refused: 0,
            },
        }
    }

    /// A frame passes, or is for the switch itself.
    pub fn handle_frame(&mut self, now: Time, frame: &mut [u8]) -> Verdict {
        let verdict = self.judge(now, frame);
        if let Verdict::Dropped(reason) = verdict {
            self.counters.drops[reason as usize] += 1;
        }
        verdict
    }

    fn judge(&mut self, now: Time, frame: &mut [u8]) -> Verdict {
        let (packet, message) = match classify(frame) {
            Ok(Class::Compat(packet, message)) => (packet, message),
            Ok(_) => return Verdict::Forward,
            Err(_) => return Verdict::Dropped(Drop::Malformed),
        };
        if packet.verify_icrc().is_err() {
            return Verdict::Dropped(Drop::Damaged);
        }
        let ipv4 = packet.datagram.ipv4;
        let (source, destination) = (ipv4.source(), ipv4.destination());
        let head = message.head.values();
        match message.content {
            Content::Control(kind, control) => {
                let control = control.values();
                let at = message.head_at() - packet.payload_at();
                self.control(now, frame, at, (source, destination), kind, head, control)
            }
            Content::Data(data) => {
                let mut elements = [0; MAX_DATA];
                elements[..data.elements.len()].copy_from_slice(data.elements);
                let packet = Packet {
                    source,
                    destination,
                    head,
                    group: data.group,
                    round: data.round,
                    spec: Spec {
                        operation: data.operation,
                        data_type: data.data_type,
                        count: data.count,
                    },
                    elements,
                };
                match self.data(now, frame, &packet) {
                    Ok(()) => Verdict::Taken,
                    Err(reason) => Verdict::Dropped(reason),
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one packet")]
    fn control(
        &mut self,
        now: Time,
        frame: &mut [u8],
        at: usize,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        kind: ControlKind,
        mut head: Head,
        mut control: Control,
    ) -> Verdict {
        self.counters.controls += 1;
        let first = control.hops == 0;
        let number = u8::try_from(control.true_comm_id).ok();
        let number = number.filter(|number| DATA_GROUPS.contains(number));
        let mut via = None;
        let refusal = match (kind, number) {
            (_, None) => Some(Refusal::NoTree),
            (ControlKind::Query, Some(group)) => {
                self.query(now, group, source, destination, &head, &mut control)
            }
            (ControlKind::Notify, Some(group)) => {
                let found = self.notify(now, group, source, &head, &mut control);
                found.map_or_else(Some, |spine| {
                    via = spine;
                    None
                })
            }
            (ControlKind::Kill, Some(group)) => {
                if self
                    .groups
                    .get(&group)
                    .is_some_and(|found| found.master == source)
                {
                    self.groups.remove(&group);
                }
                None
            }
        };
        if let Some(refusal) = refusal {
            self.counters.refused += u64::from(control.fail_cause == 0);
            control.fail_cause = refusal.code();
        }
        if control.hops == 15 {
            return Verdict::Dropped(Drop::Malformed);
        }
        control.hops += 1;
        control.sup_allreduce_op &= self.config.operations;
        control.sup_data_type &= self.config.types;
        head.data_flag = 1;
        match self.config.tier {
            Tier::Tor if first => control.tor1_ip = self.config.address,
            Tier::Tor => control.tor2_ip = self.config.address,
            Tier::Spine if kind == ControlKind::Query => control.spine_ip = self.config.address,
            Tier::Spine => {}
        }
        match rewrite(frame, at, &head, &control) {
            Some(()) => Verdict::Rewritten(via),
            None => Verdict::Dropped(Drop::Malformed),
        }
    }

    /// A leader asks its master.
    fn query(
        &mut self,
        now: Time,
        group: u8,
        source: Ipv4Addr,
        master: Ipv4Addr,
        head: &Head,
        control: &mut Control,
    ) -> Option<Refusal> {
        if self.config.tier == Tier::Spine {
            let taken = self
                .groups
                .get(&group)
                .is_some_and(|found| found.master != master);
            if !taken {
                // The master's program began anew; what stood is of one that is gone.
                self.groups.remove(&group);
            }
            let room = self.config.groups - self.groups.len().min(self.config.groups);
            control.ava_grp_num = room as u32;
            return match (control.hops, room, taken) {
                (0, ..) => Some(Refusal::NoTree),
                (_, 0, _) => Some(Refusal::NoRoom),
                (.., true) => Some(Refusal::Taken),
                _ => self.draining.then_some(Refusal::Draining),
            };
        }
        if self.draining {
            return Some(Refusal::Draining);
        }
        if control.hops != 0 {
            return None;
        }
        let full = self.groups.len() >= self.config.groups;
        let found = match self.groups.entry(group) {
            std::collections::btree_map::Entry::Vacant(_) if full => return Some(Refusal::NoRoom),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Group::new(now, master))
            }
            std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
        };
        if found.master != master {
            return Some(Refusal::Taken);
        }
        if found.standing.is_some() {
            // The master's program began anew; what stood is of one that is gone.
            *found = Group::new(now, master);
        }
        found.heard = now;
        (!found.know(head.src_rank, source, 1)).then_some(Refusal::Taken)
    }

    /// A master answers. Gives the SPINE by which the packet is to go on, if it leaves a TOR upwards.
    fn notify(
        &mut self,
        now: Time,
        group: u8,
        source: Ipv4Addr,
        head: &Head,
        control: &mut Control,
    ) -> Result<Option<Ipv4Addr>, Refusal> {
        let leaders = u32::from(control.global_group_size);
        let spine = (!control.spine_ip.is_unspecified()).then_some(control.spine_ip);
        if self.config.tier == Tier::Spine {
            if spine != Some(self.config.address) || control.fail_cause != 0 {
                return Ok(None);
            }
            let full = self.groups.len() >= self.config.groups;
            let found = match self.groups.entry(group) {
                std::collections::btree_map::Entry::Vacant(_) if full => {
                    return Err(Refusal::NoRoom);
                }
                std::collections::btree_map::Entry::Vacant(place) => {
                    self.counters.groups += 1;
                    place.insert(Group::new(now, source))
                }
                std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
            };
            if found.master != source {
                return Err(Refusal::Taken);
            }
            found.heard = now;
            match &found.standing {
                Some(standing) if standing.leaders == leaders => {}
                Some(_) => return Err(Refusal::NoTree),
                None => {
                    found.standing = Some(Standing {
                        leaders,
                        spine: None,
                        program: None,
                    });
                }
            }
            return Ok(None);
        }
        let masters = u32::from(control.master_num).max(1);
        let first = control.hops == 0;
        let full = self.groups.len() >= self.config.groups;
        let found = match self.groups.entry(group) {
            // The masters' TOR has seen no query if all other leaders are elsewhere.
            std::collections::btree_map::Entry::Vacant(_) if !first => return Err(Refusal::NoTree),
            std::collections::btree_map::Entry::Vacant(_) if full => return Err(Refusal::NoRoom),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Group::new(now, source))
            }
            std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
        };
        if found.master != source {
            return Err(Refusal::Taken);
        }
        found.heard = now;
        if first {
            found.masters = masters;
            // Leaders that ask count one each; masters are counted by `masters`, whether they were seen or not.
            if !found.know(head.src_rank, source, 0) {
                return Err(Refusal::Taken);
            }
        }
        let local = found.local();
        let below = found
            .children
            .binary_search_by_key(&control.dst_rank, |child| child.rank)
            .is_ok();
        if !below && !first {
            return Err(Refusal::NoTree);
        }
        if below {
            control.local_group_size = local as u16;
        }
        if local < 2 * masters {
            return Err(Refusal::Alone);
        }
        if spine.is_none() && local != leaders {
            return Err(Refusal::NoTree);
        }
        match &found.standing {
            Some(standing) if (standing.leaders, standing.spine) == (leaders, spine) => {}
            Some(_) => return Err(Refusal::NoTree),
            None if control.fail_cause != 0 => {}
            None => {
                self.counters.groups += 1;
                found.standing = Some(Standing {
                    leaders,
                    spine: spine.filter(|_| local != leaders),
                    program: None,
                });
            }
        }
        Ok(spine.filter(|_| !below))
    }

    /// Operands of a leader, a sum of a TOR, or the SPINE's result.
    fn data(&mut self, now: Time, frame: &[u8], packet: &Packet) -> Result<(), Drop> {
        let (tier, own) = (self.config.tier, self.config.address);
        let group = self
            .groups
            .get_mut(&packet.group)
            .ok_or(Drop::UnknownGroup)?;
        if group.standing.is_none() {
            return Err(Drop::UnknownGroup);
        }
        match tier {
            Tier::Tor if packet.destination == own => {
                Self::result(&mut self.out, &mut self.counters, group, packet)?;
            }
            Tier::Tor => {
                let held = Self::hold(&mut self.out, &mut self.counters, group, frame, packet);
                held?;
            }
            Tier::Spine if packet.destination == own => {
                Self::sum(&mut self.out, &mut self.counters, group, packet)?;
            }
            Tier::Spine => return Err(Drop::Stranger),
        }
        group.heard = now;
        Ok(())
    }

    /// A TOR takes a leader's packet.
    fn hold(
        out: &mut VecDeque<Out>,
        counters: &mut SwitchCounters,
        group: &mut Group,
        frame: &[u8],
        packet: &Packet,
    ) -> Result<(), Drop> {
        let at = group
            .children
            .binary_search_by_key(&packet.head.src_rank, |child| child.rank)
            .map_err(|_| Drop::Stranger)?;
        if group.children[at].address != packet.source {
            return Err(Drop::Stranger);
        }
        group.round(packet.round)?;
        if frame.len() > FRAME_ROOM {
            return Err(Drop::Malformed);
        }
        // All masters are known once each of them has sent a notify.
        if group.children.len() as u32 != group.local() {
            return Err(Drop::UnknownGroup);
        }
        let bytes = &packet.elements[..packet.spec.bytes()];
        let last = group.take(at, packet.spec, bytes)?;
        let held = &mut group.children[at].frame;
        held.clear();
        held.extend_from_slice(frame);
        counters.held += 1;
        if !last {
            return Ok(());
        }
        group.add_up()?;
        let spec = packet.spec;
        if group
            .standing
            .as_ref()
            .is_some_and(|standing| standing.spine.is_some())
        {
            group.waiting = true;
            out.push_back(Out::Sum {
                group: packet.group,
                spec,
                round: packet.round,
            });
        } else {
            Self::release(out, counters, packet.group, group, spec);
        }
        Ok(())
    }

    /// A SPINE takes a TOR's sum.
    fn sum(
        out: &mut VecDeque<Out>,
        counters: &mut SwitchCounters,
        group: &mut Group,
        packet: &Packet,
    ) -> Result<(), Drop> {
        let leaders = group
            .standing
            .as_ref()
            .map_or(0, |standing| standing.leaders);
        let own = u32::from(packet.head.rsv);
        let known = group
            .children
            .binary_search_by_key(&packet.head.src_rank, |child| child.rank);
        let at = match known {
            Ok(at) => at,
            Err(at) => {
                if own == 0 || group.leaders() + own > leaders {
                    return Err(Drop::Stranger);
                }
                group.round(packet.round)?;
                if !group.know(packet.head.src_rank, packet.source, own) {
                    return Err(Drop::Stranger);
                }
                at
            }
        };
        let child = &group.children[at];
        if (child.address, child.leaders) != (packet.source, own) {
            return Err(Drop::Stranger);
        }
        group.round(packet.round)?;
        let bytes = &packet.elements[..packet.spec.bytes()];
        group.take(at, packet.spec, bytes)?;
        if group.came < group.children.len() || group.leaders() < leaders {
            return Ok(());
        }
        group.add_up()?;
        for child in 0..group.children.len() {
            out.push_back(Out::Result {
                group: packet.group,
                child,
                spec: packet.spec,
                round: packet.round,
            });
        }
        counters.rounds += 1;
        group.next_round();
        Ok(())
    }

    /// A TOR takes the SPINE's result.
    fn result(
        out: &mut VecDeque<Out>,
        counters: &mut SwitchCounters,
        group: &mut Group,
        packet: &Packet,
    ) -> Result<(), Drop> {
        let spine = group.standing.as_ref().and_then(|standing| standing.spine);
        if spine != Some(packet.source) || packet.head.data_flag == 0 {
            return Err(Drop::Stranger);
        }
        group.round(packet.round)?;
        if !group.waiting {
            return Err(Drop::WrongRound);
        }
        if group.spec != Some(packet.spec) {
            return Err(Drop::Mismatch);
        }
        group.result = packet.elements;
        Self::release(out, counters, packet.group, group, packet.spec);
        Ok(())
    }

    fn release(
        out: &mut VecDeque<Out>,
        counters: &mut SwitchCounters,
        number: u8,
        group: &mut Group,
        spec: Spec,
    ) {
        for child in 0..group.children.len() {
            out.push_back(Out::Release {
                group: number,
                child,
                spec,
            });
        }
        counters.rounds += 1;
        group.next_round();
    }

    /// The next frame to send: writes it to `buffer`, which has room for [`FRAME_ROOM`] bytes.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(Transmit, usize)> {
        loop {
            let out = self.out.pop_front()?;
            let made = match out {
                Out::Release { group, child, spec } => self.released(buffer, group, child, spec),
                Out::Sum { group, spec, round } => self.message(buffer, group, None, spec, round),
                Out::Result {
                    group,
                    child,
                    spec,
                    round,
                } => self.message(buffer, group, Some(child), spec, round),
            };
            // A group that was killed meanwhile sends nothing.
            if made.is_some() {
                return made;
            }
        }
    }

    /// The held packet of a child with the result in it.
    fn released(
        &self,
        buffer: &mut [u8],
        group: u8,
        child: usize,
        spec: Spec,
    ) -> Option<(Transmit, usize)> {
        let group = self.groups.get(&group)?;
        let held = &group.children.get(child)?.frame;
        let frame = buffer.get_mut(..held.len())?;
        frame.copy_from_slice(held);
        let (at, head) = match classify(frame) {
            Ok(Class::Compat(packet, message)) => (
                message.head_at() - packet.payload_at(),
                message.head.values(),
            ),
            _ => return None,
        };
        let mut bytes = [0; Head::SIZE];
        Head {
            data_flag: 1,
            ..head
        }
        .write(&mut bytes, 0)
        .ok()?;
        let mut edit = Edit::begin(frame).ok()??;
        edit.set_payload(at, &bytes).ok()?;
        edit.set_payload(at + Head::SIZE, &group.result[..spec.bytes()])
            .ok()?;
        let length = edit.finish().ok()?;
        Some((Transmit::Released, length))
    }

    /// A sum to the SPINE, or a result to a TOR.
    fn message(
        &mut self,
        buffer: &mut [u8],
        number: u8,
        child: Option<usize>,
        spec: Spec,
        round: u8,
    ) -> Option<(Transmit, usize)> {
        let group = self.groups.get(&number)?;
        let (to, rank, leaders) = match child {
            Some(child) => {
                let child = group.children.get(child)?;
                (child.address, child.rank, child.leaders)
            }
            None => {
                let standing = group.standing.as_ref()?;
                let least = group.children.first()?.rank;
                (standing.spine?, least, group.local())
            }
        };
        let head = Head {
            data_flag: u8::from(child.is_some()),
            rsv: u16::try_from(leaders).ok()?,
            ..Head::data(
                rank,
                number,
                round,
                spec.operation,
                spec.data_type,
                spec.count,
            )
        };
        self.psn = self.psn.wrapping_add(1) & 0xff_ffff;
        let none = MacAddress::default();
        let bth = Bth {
            opcode: Opcode::UD_SEND_ONLY,
            partition_key: 0xffff,
            psn: self.psn,
            ..Bth::default()
        };
        let envelope = Envelope {
            path: Path::between(none, none, self.config.address, to, source_port(rank)),
            bth,
            encapsulation: Encapsulation::Ud(Deth::default(), [0; 8]),
            ucp_tag: UcpTag::of(rank & 0xf_ffff, 0),
        };
        let length = envelope
            .write_data(buffer, &head, &group.result[..spec.bytes()])
            .ok()?;
        Some((Transmit::To(to), length))
    }

    /// Time has passed: groups of which nothing was heard are forgotten.
    pub fn handle_timeout(&mut self, now: Time) {
        let (before, idle) = (self.groups.len(), self.config.idle);
        self.groups.retain(|_, group| now < group.ends(idle));
        self.counters.forgotten += (before - self.groups.len()) as u64;
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let idle = self.config.idle;
        self.groups.values().map(|group| group.ends(idle)).min()
    }

    /// The switch is about to stop: it takes no new groups.
    pub const fn drain(&mut self) {
        self.draining = true;
    }

    /// Groups that are known.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// What happened.
    #[must_use]
    pub const fn counters(&self) -> &SwitchCounters {
        &self.counters
    }
}

/// Writes head and control payload into a frame whose ICRC was right.
fn rewrite(frame: &mut [u8], at: usize, head: &Head, control: &Control) -> Option<()> {
    let mut bytes = [0; Head::SIZE + Control::SIZE];
    head.write(&mut bytes, 0).ok()?;
    control.write(&mut bytes, Head::SIZE).ok()?;
    let mut edit = Edit::begin(frame).ok()??;
    edit.set_payload(at, &bytes).ok()?;
    edit.finish().ok().map(|_| ())
}
