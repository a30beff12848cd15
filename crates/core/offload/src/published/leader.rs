//! A leader of the published protocol: the rank that speaks for those of its node or socket.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::{
    Bth, Class, DataType, Deth, ExtensionView, MacAddress, Opcode, Operation, Path, classify,
    compat::{
        Content, Control, ControlKind, DATA_GROUPS, Encapsulation, Envelope, Head, MAX_DATA,
        RcLayout, UcpTag,
    },
};
use thiserror::Error;

use super::{Refusal, blank, source_port};
use crate::roles::Roles;

/// Ranks that a UCP tag has room for.
const MOST_RANKS: u32 = 1 << 20;
/// Leaders that 16 bits count.
const MOST_LEADERS: u32 = 0xffff;

/// What RoCEv2 messages travel in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Unreliable datagrams.
    Ud,
    /// Reliable connections, with UCX's headers as this layout has them.
    Rc(RcLayout),
}

/// The queue pair of a leader: packets to two leaders of one host differ in nothing else. 0 and 1 are reserved (IBTA).
#[must_use]
pub const fn queue_pair(rank: u32) -> u32 {
    rank + 2
}

/// What a leader is told when it starts.
#[derive(Debug, Clone)]
pub struct LeaderConfig {
    /// Who leads.
    pub roles: Roles,
    /// This leader's rank.
    pub rank: u32,
    /// The group's number, 3 to 254, which rank 0 draws.
    pub group: u8,
    /// How messages travel.
    pub transport: Transport,
    /// Address of each node, by number.
    pub nodes: Vec<Ipv4Addr>,
    /// Time until a silent master or leader is given up, while the group is set up.
    pub give_up: Span,
    /// Time after which a round without a result is overdue: the others are asked, and when all have begun the round, as
    /// much time passes again before it is lost. Longer than any packet is on its way.
    pub overdue: Span,
}

/// Why there is no such leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The rank is not the least of its node or socket.
    #[error("rank {0} leads nothing")]
    NoLeader(u32),
    /// 8 bits, of which some have other meanings.
    #[error("group {0} is not in 3..=254")]
    Group(u8),
    /// The layout has 16 bits for leaders and 20 for ranks.
    #[error(
        "{leaders} leaders, or rank {rank}: the layout has room for 65,535 leaders and 1,048,576 ranks"
    )]
    TooMany {
        /// Leaders.
        leaders: u32,
        /// The greatest rank that leads.
        rank: u32,
    },
    /// There must be an address for each node.
    #[error("{found} addresses for {nodes} nodes")]
    Nodes {
        /// Addresses.
        found: usize,
        /// Nodes.
        nodes: u32,
    },
}

/// What master and switches have agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Operations: bit code - 1.
    pub operations: u16,
    /// Element types: bit code.
    pub types: u16,
    /// Leaders below the leader's TOR.
    pub local: u16,
    /// 0, or why there is no group.
    pub fail_cause: u8,
    /// A switch that computes was met.
    pub computing: bool,
}

impl Terms {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const SIZE: usize = 8;

    /// The terms of a leader whose set-up failed.
    #[must_use]
    pub const fn refused(refusal: Refusal) -> Self {
        Self {
            operations: 0,
            types: 0,
            local: 0,
            fail_cause: refusal.code(),
            computing: false,
        }
    }

    /// What two leaders have in common; all leaders join their terms before the first round.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        let cause = match (self.fail_cause, other.fail_cause) {
            (0, 0) if self.local != other.local => Refusal::Uneven.code(),
            (0, cause) | (cause, _) => cause,
        };
        Self {
            operations: self.operations & other.operations,
            types: self.types & other.types,
            local: self.local,
            fail_cause: cause,
            computing: self.computing && other.computing,
        }
    }

    /// As leaders tell them each other by plain MPI.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        let [a, b] = self.operations.to_be_bytes();
        let [c, d] = self.types.to_be_bytes();
        let [e, f] = self.local.to_be_bytes();
        [a, b, c, d, e, f, self.fail_cause, self.computing as u8]
    }

    /// What [`to_bytes`](Self::to_bytes) wrote.
    #[must_use]
    pub const fn from_bytes([a, b, c, d, e, f, fail_cause, computing]: [u8; Self::SIZE]) -> Self {
        Self {
            operations: u16::from_be_bytes([a, b]),
            types: u16::from_be_bytes([c, d]),
            local: u16::from_be_bytes([e, f]),
            fail_cause,
            computing: computing != 0,
        }
    }

    /// Whether rounds can be offloaded at all (3b, section 7, step 8).
    #[must_use]
    pub const fn usable(&self) -> bool {
        self.operations != 0 && self.computing && self.fail_cause == 0
    }

    /// Whether a round of these can be offloaded: all leaders decide alike.
    #[must_use]
    pub fn allow(&self, operation: Operation, data_type: DataType, count: usize) -> bool {
        let bit = |mask: u16, at: u8| mask.checked_shr(at.into()).unwrap_or(0) & 1 == 1;
        self.usable()
            && data_type.is_compat()
            && count.saturating_mul(data_type.size()) <= MAX_DATA
            && bit(self.operations, operation.code() - 1)
            && bit(self.types, data_type.code())
    }
}

/// Where the set-up of a leader's group stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Queries or the notify are awaited.
    Asking,
    /// A master has all queries. Masters agree on rank 0's SPINE (`None` if all are below one TOR); then comes
    /// [`Leader::notify`].
    Collected(Option<Ipv4Addr>),
    /// It is over. All leaders join their terms; then comes [`Leader::open`].
    Set(Terms),
    /// Rounds may begin.
    Open,
}

/// How a round stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// None was started.
    Idle,
    /// No result yet.
    Pending,
    /// No result for longer than `overdue`.
    Overdue,
    /// The result, most significant bytes first.
    Done(&'a [u8]),
}

/// What happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaderCounters {
    /// Rounds begun.
    pub rounds: u64,
    /// Packets for this leader that were not taken: damaged, repeated, without the flag of a result, of other rounds.
    pub dropped: u64,
}

#[derive(Debug, Clone, Copy)]
enum Out {
    Query,
    Notify(u32),
    Kill(u32),
    Data,
}

/// What a master has heard.
#[derive(Debug)]
struct Collection {
    /// Leaders that ask, and whether they have.
    queries: Vec<(u32, bool)>,
    /// Leaders of its kind below its own TOR, itself included.
    local: u32,
    spine: Option<(u32, Ipv4Addr)>,
    terms: Terms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Pending,
    Done,
}

/// One leader of one group. Its driver sends what [`poll_transmit`](Self::poll_transmit) gives after every call.
#[derive(Debug)]
pub struct Leader {
    config: LeaderConfig,
    stage: Stage,
    /// Of a master.
    collection: Option<Collection>,
    /// What the notify says besides terms.
    spine: Ipv4Addr,
    due: Time,
    terms: Terms,
    round: u32,
    state: State,
    spec: Option<(Operation, DataType, u16)>,
    /// Operands, then the result.
    values: [u8; MAX_DATA],
    length: usize,
    /// To whom data go.
    next: u32,
    psn: u32,
    out: VecDeque<Out>,
    counters: LeaderCounters,
}

impl Leader {
    /// Begins the set-up: a master awaits queries, others ask.
    ///
    /// # Errors
    /// When the layout has no room for the group, or the rank leads nothing.
    pub fn new(now: Time, config: LeaderConfig) -> Result<Self, ConfigError> {
        let (roles, rank, group) = (config.roles, config.rank, config.group);
        if roles.number(rank).is_none() {
            return Err(ConfigError::NoLeader(rank));
        }
        if !DATA_GROUPS.contains(&group) {
            return Err(ConfigError::Group(group));
        }
        let greatest = roles.masters().chain(roles.others()).last().unwrap_or(0);
        let leaders = roles.leaders();
        if leaders > MOST_LEADERS || greatest >= MOST_RANKS {
            return Err(ConfigError::TooMany {
                leaders,
                rank: greatest,
            });
        }
        let nodes = leaders / roles.sockets();
        if config.nodes.len() != nodes as usize {
            let found = config.nodes.len();
            return Err(ConfigError::Nodes { found, nodes });
        }
        let open = Terms {
            operations: u16::MAX,
            types: u16::MAX,
            local: 0,
            fail_cause: 0,
            computing: true,
        };
        let mut leader = Self {
            stage: Stage::Asking,
            collection: None,
            spine: Ipv4Addr::UNSPECIFIED,
            due: now + config.give_up,
            terms: open,
            round: 0,
            state: State::Idle,
            spec: None,
            values: [0; MAX_DATA],
            length: 0,
            next: rank,
            psn: 0,
            out: VecDeque::new(),
            counters: LeaderCounters::default(),
            config,
        };
        if roles.asks(rank).is_some() {
            leader.out.push_back(Out::Query);
        } else {
            leader.collection = Some(Collection {
                queries: roles.answers(rank).map(|leader| (leader, false)).collect(),
                local: 1,
                spine: None,
                terms: open,
            });
            leader.collected();
        }
        Ok(leader)
    }

    /// Whether a packet to this queue pair is for this leader.
    #[must_use]
    pub const fn is_for(&self, destination_qp: u32) -> bool {
        destination_qp == queue_pair(self.config.rank)
    }

    /// A frame came. True if it was for this leader and was taken.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> bool {
        let Ok(Class::Compat(packet, message)) = classify(frame) else {
            return false;
        };
        let own = self.address(self.config.rank);
        if !self.is_for(packet.bth.destination_qp())
            || Some(packet.datagram.ipv4.destination()) != own
        {
            return false;
        }
        let transport = match packet.extension {
            ExtensionView::Deth(_) => self.config.transport == Transport::Ud,
            _ => self.config.transport != Transport::Ud,
        };
        let head = message.head.values();
        let taken = transport
            && packet.verify_icrc().is_ok()
            && match message.content {
                Content::Control(kind, control) => {
                    let control = control.values();
                    let source = packet.datagram.ipv4.source();
                    u32::from(self.config.group) == control.true_comm_id
                        && control.dst_rank == self.config.rank
                        && self.address(head.src_rank) == Some(source)
                        && self.control(now, kind, &head, &control)
                }
                Content::Data(data) => {
                    let right = self.state == State::Pending
                        && head.data_flag != 0
                        && data.group == self.config.group
                        && data.round == self.round as u8
                        && self.spec == Some((data.operation, data.data_type, data.count));
                    if right {
                        self.values[..data.elements.len()].copy_from_slice(data.elements);
                        self.state = State::Done;
                    }
                    right
                }
            };
        self.counters.dropped += u64::from(!taken);
        taken
    }

    fn control(&mut self, now: Time, kind: ControlKind, head: &Head, control: &Control) -> bool {
        if self.stage != Stage::Asking {
            return false;
        }
        match (kind, &mut self.collection) {
            (ControlKind::Query, Some(collection)) => {
                let mut asking = collection.queries.iter_mut();
                let Some((_, heard)) =
                    asking.find(|(rank, heard)| *rank == head.src_rank && !heard)
                else {
                    return false;
                };
                *heard = true;
                if control.hops == 1 {
                    collection.local += 1;
                }
                let room = control.ava_grp_num;
                let better = collection.spine.is_none_or(|(most, _)| room > most);
                if !control.spine_ip.is_unspecified() && better {
                    collection.spine = Some((room, control.spine_ip));
                }
                let terms = &mut collection.terms;
                terms.operations &= control.sup_allreduce_op;
                terms.types &= control.sup_data_type;
                terms.computing &= head.data_flag != 0;
                if terms.fail_cause == 0 {
                    terms.fail_cause = control.fail_cause;
                }
                self.due = now + self.config.give_up;
                self.collected();
                true
            }
            (ControlKind::Notify, None) => {
                self.stage = Stage::Set(Terms {
                    operations: control.sup_allreduce_op,
                    types: control.sup_data_type,
                    local: control.local_group_size,
                    fail_cause: control.fail_cause,
                    computing: head.data_flag != 0,
                });
                true
            }
            _ => false,
        }
    }

    /// A master looks whether all have asked.
    fn collected(&mut self) {
        if let Some(collection) = &self.collection
            && collection.queries.iter().all(|(_, heard)| *heard)
        {
            self.stage = Stage::Collected(collection.spine.map(|(_, address)| address));
        }
    }

    /// Whether it is a master: others ask it, and it says which SPINE the group has.
    #[must_use]
    pub const fn is_master(&self) -> bool {
        self.collection.is_some()
    }

    /// Why the set-up of a master's group has failed so far; 0: it has not.
    #[must_use]
    pub fn fail_cause(&self) -> u8 {
        let collection = self.collection.as_ref();
        collection.map_or(0, |collection| collection.terms.fail_cause)
    }

    /// A master answers all that asked it: `spine` is rank 0's, `refused` whether a master's set-up failed.
    pub fn notify(&mut self, spine: Option<Ipv4Addr>, refused: u8) {
        let (Stage::Collected(_), Some(collection)) = (self.stage, &mut self.collection) else {
            return;
        };
        if collection.terms.fail_cause == 0 {
            collection.terms.fail_cause = refused;
        }
        self.spine = spine.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let asked = collection
            .queries
            .iter()
            .map(|(rank, _)| Out::Notify(*rank));
        self.out.extend(asked);
        self.stage = Stage::Set(Terms {
            local: (collection.local * self.config.roles.sockets()) as u16,
            ..collection.terms
        });
    }

    /// All leaders have joined their terms to these: rounds may begin if they are usable.
    pub fn open(&mut self, terms: Terms) {
        if !terms.usable() || !matches!(self.stage, Stage::Set(_)) {
            return;
        }
        let roles = self.config.roles;
        let below = u32::from(terms.local) / roles.sockets();
        if let Some(next) = roles.next_in_ring(self.config.rank, below) {
            self.next = next;
            self.terms = terms;
            self.stage = Stage::Open;
        }
    }

    /// Begins a round with operands, most significant bytes first; gives its number, from 1. `None`, and nothing is sent, if
    /// the group is not open, the terms do not allow it, or a round goes on.
    pub fn start(
        &mut self,
        now: Time,
        operation: Operation,
        data_type: DataType,
        operands: &[u8],
    ) -> Option<u32> {
        let count = operands.len() / data_type.size();
        if self.stage != Stage::Open
            || self.state == State::Pending
            || !operands.len().is_multiple_of(data_type.size())
            || !self.terms.allow(operation, data_type, count)
        {
            return None;
        }
        self.round = self.round.checked_add(1)?;
        self.spec = Some((operation, data_type, count as u16));
        self.length = operands.len();
        self.values[..self.length].copy_from_slice(operands);
        self.state = State::Pending;
        self.due = now + self.config.overdue;
        self.out.push_back(Out::Data);
        self.counters.rounds += 1;
        Some(self.round)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.stage == Stage::Asking && now >= self.due {
            self.stage = match &mut self.collection {
                // Those that asked are told; the others' own time runs out.
                Some(collection) => {
                    collection.terms = Terms::refused(Refusal::NoAnswer);
                    collection.queries.retain(|(_, heard)| *heard);
                    Stage::Collected(None)
                }
                None => Stage::Set(Terms::refused(Refusal::NoAnswer)),
            };
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, or the round becomes overdue.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.stage == Stage::Asking || self.state == State::Pending).then_some(self.due)
    }

    /// The next frame: writes it to `buffer`, which has room for [`FRAME_ROOM`](super::FRAME_ROOM) bytes, without hardware
    /// addresses, and gives the address that it goes to and its length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(Ipv4Addr, usize)> {
        loop {
            let out = self.out.pop_front()?;
            // What does not fit the layout was refused by `new` and `start`.
            if let Some(made) = self.write(buffer, out) {
                return Some(made);
            }
        }
    }

    fn write(&mut self, buffer: &mut [u8], out: Out) -> Option<(Ipv4Addr, usize)> {
        let (rank, group, roles) = (self.config.rank, self.config.group, self.config.roles);
        let to = match out {
            Out::Query => roles.asks(rank)?,
            Out::Notify(to) | Out::Kill(to) => to,
            Out::Data => self.next,
        };
        let (source, destination) = (self.address(rank)?, self.address(to)?);
        self.psn = self.psn.wrapping_add(1) & 0xff_ffff;
        let none = MacAddress::default();
        let mut path = Path::between(none, none, source, destination, source_port(rank));
        // A raw socket fills in an identification of 0, and the ICRC covers it.
        path.identification = self.psn as u16 | 1;
        let (opcode, encapsulation) = match self.config.transport {
            Transport::Ud => {
                let deth = Deth {
                    source_qp: queue_pair(rank),
                    ..Deth::default()
                };
                (Opcode::UD_SEND_ONLY, Encapsulation::Ud(deth, [0; 8]))
            }
            Transport::Rc(layout) => (Opcode::RC_SEND_ONLY, Encapsulation::Rc(layout)),
        };
        let envelope = Envelope {
            path,
            bth: Bth {
                opcode,
                partition_key: 0xffff,
                destination_qp: queue_pair(to),
                psn: self.psn,
                ..Bth::default()
            },
            encapsulation,
            ucp_tag: UcpTag::of(rank, 0),
        };
        let length = if let Out::Data = out {
            let (operation, data_type, count) = self.spec?;
            let head = Head::data(rank, group, self.round as u8, operation, data_type, count);
            envelope.write_data(buffer, &head, &self.values[..self.length])
        } else {
            envelope.write_control(buffer, &Head::control(rank), &self.say(out, to))
        };
        length.ok().map(|length| (destination, length))
    }

    /// The control payload of a packet.
    fn say(&self, out: Out, to: u32) -> Control {
        let roles = self.config.roles;
        let of = |kind| blank(kind, roles.sockets(), self.config.group, roles.leaders());
        let control = match out {
            Out::Notify(_) => {
                let terms = match self.stage {
                    Stage::Set(terms) => terms,
                    _ => self.terms,
                };
                Control {
                    fail_cause: terms.fail_cause,
                    sup_allreduce_op: terms.operations,
                    sup_data_type: terms.types & of(ControlKind::Notify).sup_data_type,
                    spine_ip: self.spine,
                    ..of(ControlKind::Notify)
                }
            }
            Out::Kill(_) => Control {
                sup_allreduce_op: self.terms.operations,
                sup_data_type: self.terms.types,
                local_group_size: self.terms.local,
                spine_ip: self.spine,
                ..of(ControlKind::Kill)
            },
            Out::Query | Out::Data => of(ControlKind::Query),
        };
        Control {
            dst_rank: to,
            ..control
        }
    }

    /// A master ends the group: switches forget it. Others do nothing.
    pub fn kill(&mut self) {
        let (roles, rank) = (self.config.roles, self.config.rank);
        self.out.extend(roles.answers(rank).map(Out::Kill));
    }

    /// Where the set-up stands.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How the last round stands.
    #[must_use]
    pub fn outcome(&self, now: Time) -> Outcome<'_> {
        match self.state {
            State::Idle => Outcome::Idle,
            State::Pending if now >= self.due => Outcome::Overdue,
            State::Pending => Outcome::Pending,
            State::Done => Outcome::Done(&self.values[..self.length]),
        }
    }

    /// The last round that was started, 0 before the first.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// How long a round waits for its result before others are asked.
    #[must_use]
    pub const fn overdue(&self) -> Span {
        self.config.overdue
    }

    /// What happened.
    #[must_use]
    pub const fn counters(&self) -> LeaderCounters {
        self.counters
    }

    /// The address of a leader's node.
    fn address(&self, leader: u32) -> Option<Ipv4Addr> {
        let node = self.config.roles.node(leader)?;
        self.config.nodes.get(node as usize).copied()
    }
}
