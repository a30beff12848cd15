//! The master's part of set-up: collects queries, builds the tree, programs the switches top first, tells all.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::native::{
    Body, ChildEntry, Header, JobKey, Kind, MAX_BODY, PORT, PathView, ProgramHead, ProgramView,
    Reason, StepEntry, Terms, TermsView, write_program,
};

use super::{Agreement, BACK_OFF, SetupOutcome, member_program};
use crate::{
    order::Expression,
    payload::verified,
    program::Program,
    tree::{Below, Hop, Tree},
};

/// Whole elements of any type fit into a multiple of this: the least common multiple of 1, 2, 4, 6, 8 and 12 bytes.
const ELEMENTS: usize = 24;

/// A member, as the master knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPlace {
    /// The port at which it expects results.
    pub address: SocketAddrV4,
    /// Its ranks in the communicator.
    pub ranks: Vec<u32>,
}

/// What the master is told about the group that it makes.
#[derive(Debug, Clone)]
pub struct MasterConfig {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// The group.
    pub group: u32,
    /// All members by number; the first is the master itself.
    pub members: Vec<MemberPlace>,
    /// What the master supports and asks for.
    pub terms: Terms,
    /// What ordered rounds compute; `None`: there are none.
    pub expression: Option<Expression>,
    /// Multicast address and port for results of switches; `None`: they send to each child.
    pub results: Option<SocketAddrV4>,
    /// Most bytes of a UDP payload that the network carries whole.
    pub datagram: usize,
    /// Time until a message is sent again; it doubles with each repetition, up to 16 times.
    pub retry: Span,
    /// Time after which there is no group.
    pub give_up: Span,
}

/// What is known of a switch of the tree.
#[derive(Debug)]
struct Programmed {
    address: Ipv4Addr,
    children: Vec<ChildEntry>,
    body: Vec<u8>,
    depth: usize,
    confirmed: bool,
}

/// What a member's query said.
type Asked = (Terms, Option<Vec<Hop>>);

/// Set-up on the master's side.
#[derive(Debug)]
pub struct MasterSetup {
    config: MasterConfig,
    outcome: SetupOutcome,
    queries: Vec<Option<Asked>>,
    terms: Terms,
    switches: Vec<Programmed>,
    /// The switch of each member.
    parents: Vec<Ipv4Addr>,
    ends: Time,
    due: Time,
    tries: u32,
    out: VecDeque<(SocketAddrV4, Vec<u8>)>,
}

impl MasterSetup {
    /// Begins: queries are awaited.
    #[must_use]
    pub fn new(now: Time, config: MasterConfig) -> Self {
        let mut setup = Self {
            outcome: SetupOutcome::Pending,
            queries: vec![None; config.members.len()],
            terms: config.terms,
            switches: Vec::new(),
            parents: Vec::new(),
            ends: now + config.give_up,
            due: Time::NEVER,
            tries: 0,
            out: VecDeque::new(),
            config,
        };
        if let Some(own) = setup.queries.first_mut() {
            *own = Some((setup.config.terms, None));
        }
        if setup.queries.len() < 2 {
            setup.outcome = SetupOutcome::Failed(Reason::NoSwitch);
        }
        setup
    }

    /// A UDP payload that came to the master's port. True when it was for this set-up.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddrV4, payload: &[u8]) -> bool {
        let config = &self.config;
        let Some(message) = verified(payload, config.job, config.group, &config.key) else {
            return false;
        };
        let header = message.header;
        match (message.kind, message.body) {
            (Kind::Query, Body::Terms(terms, path)) => {
                self.on_query(now, header.rank(), terms, path);
            }
            (Kind::Lease, _) if header.answer() => {
                let switch = self.switches.iter_mut().find(|s| s.address == *from.ip());
                let Some(switch) = switch else { return false };
                switch.confirmed = true;
                self.go_on(now);
            }
            (Kind::Refuse, _) if self.switches.iter().any(|s| s.address == *from.ip()) => {
                let reason = Reason::from_code(header.reason()).unwrap_or(Reason::Unsupported);
                self.fail(reason);
            }
            _ => return false,
        }
        true
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.outcome != SetupOutcome::Pending {
            return;
        }
        if now >= self.ends {
            return self.fail(Reason::NoAnswer);
        }
        if now >= self.due {
            self.send_programs(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.outcome == SetupOutcome::Pending).then(|| self.due.min(self.ends))
    }

    /// The next message to send: writes it to `buffer`, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        let (to, message) = self.out.pop_front()?;
        let room = buffer.get_mut(..message.len())?;
        room.copy_from_slice(&message);
        Some((to, message.len()))
    }

    /// There shall be no group, although it may stand: some rank is not ready.
    pub fn cancel(&mut self, reason: Reason) {
        self.outcome = SetupOutcome::Failed(reason);
        for at in 0..self.switches.len() {
            let to = SocketAddrV4::new(self.switches[at].address, PORT);
            for child in self.switches[at].children.clone() {
                let kill = Header {
                    rank: child.rank,
                    ..self.header(Kind::Kill)
                };
                self.send(to, &kill, &[]);
            }
        }
        for member in 1..self.config.members.len() as u32 {
            self.refuse(member, reason);
        }
    }

    /// How set-up stands.
    #[must_use]
    pub const fn outcome(&self) -> SetupOutcome {
        self.outcome
    }

    /// Members whose queries have not come.
    pub fn waiting_for(&self) -> impl Iterator<Item = u32> + '_ {
        let missing = |(number, query): (u32, &Option<Asked>)| query.is_none().then_some(number);
        (0..).zip(&self.queries).filter_map(missing)
    }

    fn on_query(&mut self, now: Time, member: u32, terms: TermsView<'_>, path: PathView<'_>) {
        let number = member as usize;
        let Some(place) = self.config.members.get(number).filter(|_| member > 0) else {
            return;
        };
        match self.outcome {
            SetupOutcome::Ready(_) => return self.notify(member),
            SetupOutcome::Failed(reason) => return self.refuse(member, reason),
            SetupOutcome::Pending => {}
        }
        let beside = place.address.ip() == self.config.members[0].address.ip();
        let hops: Vec<Hop> = path
            .entries()
            .map(|entry| Hop {
                address: entry.address(),
                tier: entry.tier(),
                room: entry.room(),
            })
            .collect();
        if self.queries[number].is_some() {
            return;
        }
        self.queries[number] = Some((terms.values(), (!beside).then_some(hops)));
        if self.queries.iter().all(Option::is_some)
            && let Err(reason) = self.plan(now)
        {
            self.fail(reason);
        }
    }

    /// All queries are here: builds the tree and its programs.
    fn plan(&mut self, now: Time) -> Result<(), Reason> {
        let queries: Vec<Asked> = self.queries.iter().flatten().cloned().collect();
        let mut terms = self.config.terms;
        for (asked, _) in &queries {
            terms.operations &= asked.operations;
            terms.collectives &= asked.collectives;
            terms.types &= asked.types;
            terms.segment_bytes = terms.segment_bytes.min(asked.segment_bytes);
            terms.slots = terms.slots.min(asked.slots);
            terms.lease_ms = terms.lease_ms.min(asked.lease_ms);
        }
        let paths: Vec<Option<Vec<Hop>>> = queries.into_iter().map(|(_, path)| path).collect();
        let tree = Tree::from_paths(&paths).map_err(|error| error.reason())?;

        let outputs = self.outputs()?;
        let programs: Vec<Option<Program>> = (0..tree.switches.len())
            .map(|at| self.program(&tree, at))
            .collect::<Result<_, _>>()?;
        let most = outputs
            .iter()
            .copied()
            .chain(programs.iter().flatten().map(|p| p.outputs.len()));
        let most = most.max().unwrap_or(1).max(1);
        let room = self.config.datagram.min(Header::SIZE + MAX_BODY);
        let fits = room.saturating_sub(Header::SIZE) / most;
        let segment = fits.min(usize::from(terms.segment_bytes)) / ELEMENTS * ELEMENTS;
        if segment == 0 || terms.slots < 2 || terms.lease_ms == 0 {
            return Err(Reason::Unsupported);
        }
        terms.segment_bytes = segment as u16;
        terms.group_size = self.config.members.len() as u32;
        terms.tiers = tree
            .switches
            .iter()
            .map(|s| s.depth as u8 + 1)
            .max()
            .unwrap_or(1);
        terms.hops = 0;
        if let Some(results) = self.config.results {
            terms.results = *results.ip();
            terms.results_port = results.port();
        }
        self.terms = terms;

        for (at, switch) in tree.switches.iter().enumerate() {
            let children: Vec<ChildEntry> = switch
                .children
                .iter()
                .map(|child| {
                    let (address, operands) = match *child {
                        Below::Member(member) => {
                            let place = &self.config.members[member as usize];
                            (place.address, outputs[member as usize])
                        }
                        Below::Switch(below) => (
                            SocketAddrV4::new(tree.switches[below].address, PORT),
                            programs[below].as_ref().map_or(1, |p| p.outputs.len()),
                        ),
                    };
                    ChildEntry {
                        address: *address.ip(),
                        port: address.port(),
                        operands: operands as u16,
                        rank: tree.least(*child),
                    }
                })
                .collect();
            let parent = switch.parent.map(|parent| tree.switches[parent].address);
            let body = self.body(parent, &children, programs[at].as_ref())?;
            self.switches.push(Programmed {
                address: switch.address,
                children,
                body,
                depth: switch.depth,
                confirmed: false,
            });
        }
        let of_member = tree.of_member.iter();
        self.parents = of_member.map(|at| tree.switches[*at].address).collect();
        self.send_programs(now);
        Ok(())
    }

    /// Operands that each member sends in ordered rounds.
    fn outputs(&self) -> Result<Vec<usize>, Reason> {
        let members = self.config.members.iter();
        let Some(expression) = &self.config.expression else {
            return Ok(vec![1; members.len()]);
        };
        members
            .map(|member| member_program(expression, &member.ranks).map(|p| p.outputs.len()))
            .collect::<Option<_>>()
            .ok_or(Reason::BadProgram)
    }

    fn program(&self, tree: &Tree, at: usize) -> Result<Option<Program>, Reason> {
        let Some(expression) = &self.config.expression else {
            return Ok(None);
        };
        let ranks = |below: &Below| {
            let members = tree.members(*below);
            let ranks = members
                .iter()
                .flat_map(|m| &self.config.members[*m as usize].ranks);
            ranks.copied().collect::<Vec<u32>>()
        };
        let children: Vec<Vec<u32>> = tree.switches[at].children.iter().map(ranks).collect();
        let program = Program::for_node(expression, &children).map_err(|_| Reason::BadProgram)?;
        Ok(Some(program))
    }

    /// The body of a switch's program.
    fn body(
        &self,
        parent: Option<Ipv4Addr>,
        children: &[ChildEntry],
        program: Option<&Program>,
    ) -> Result<Vec<u8>, Reason> {
        let (mut steps, mut outputs) = (Vec::new(), Vec::new());
        if let Some(program) = program {
            outputs.clone_from(&program.outputs);
            steps.extend(program.steps.iter().map(|step| StepEntry {
                into: step.into,
                left: step.left,
                right: step.right,
            }));
        }
        let size = ProgramView::size(children.len(), steps.len(), outputs.len());
        // A datagram in fragments would not be seen by every switch.
        if size > MAX_BODY || Header::SIZE + size > self.config.datagram {
            return Err(Reason::NoRoom);
        }
        let head = ProgramHead {
            parent: parent.unwrap_or(Ipv4Addr::UNSPECIFIED),
            results: self.terms.results,
            results_port: self.terms.results_port,
            master: *self.config.members[0].address.ip(),
            group_size: self.terms.group_size,
            lease_ms: self.terms.lease_ms,
            slots: self.terms.slots,
            segment_bytes: self.terms.segment_bytes,
            ..ProgramHead::default()
        };
        let mut body = vec![0; size];
        write_program(&mut body, &head, children, &steps, &outputs).map_err(|_| Reason::NoRoom)?;
        Ok(body)
    }

    /// A switch has confirmed: the next level, or all is done.
    fn go_on(&mut self, now: Time) {
        if self.outcome != SetupOutcome::Pending {
            return;
        }
        if !self.switches.iter().all(|switch| switch.confirmed) {
            let depth = self.depth();
            let open = self.switches.iter().filter(|s| s.depth == depth);
            // The level that was being programmed goes on by itself; a new one begins now.
            if open.clone().count() == open.filter(|s| !s.confirmed).count() {
                self.tries = 0;
                self.send_programs(now);
            }
            return;
        }
        let (terms, switch) = (self.terms, self.parents[0]);
        self.outcome = SetupOutcome::Ready(Agreement {
            switch: SocketAddrV4::new(switch, PORT),
            results: self.config.results,
            operations: terms.operations,
            collectives: terms.collectives,
            types: terms.types,
            segment_bytes: terms.segment_bytes,
            slots: terms.slots,
            lease: Span::from_ms(u64::from(terms.lease_ms)),
            tiers: terms.tiers,
        });
        for member in 1..self.config.members.len() as u32 {
            self.notify(member);
        }
    }

    /// The level nearest to the root that is not confirmed.
    fn depth(&self) -> usize {
        let open = self.switches.iter().filter(|switch| !switch.confirmed);
        open.map(|switch| switch.depth).min().unwrap_or(0)
    }

    fn send_programs(&mut self, now: Time) {
        if self.switches.is_empty() {
            return;
        }
        self.due = now + Span(self.config.retry.0 << self.tries.min(BACK_OFF));
        self.tries += 1;
        let depth = self.depth();
        for at in 0..self.switches.len() {
            let switch = &self.switches[at];
            if switch.depth == depth && !switch.confirmed {
                let to = SocketAddrV4::new(switch.address, PORT);
                let header = self.header(Kind::Program);
                let body = switch.body.clone();
                self.send(to, &header, &body);
            }
        }
    }

    fn notify(&mut self, member: u32) {
        let number = member as usize;
        let terms = Terms {
            destination: member,
            parent: self.parents[number],
            ..self.terms
        };
        let mut body = [0; Terms::SIZE];
        if terms.write(&mut body, 0).is_ok() {
            let header = self.header(Kind::Notify);
            self.send(self.config.members[number].address, &header, &body);
        }
    }

    fn refuse(&mut self, member: u32, reason: Reason) {
        let header = Header {
            reason: reason.code(),
            ..self.header(Kind::Refuse)
        };
        self.send(self.config.members[member as usize].address, &header, &[]);
    }

    /// There is no group: what was programmed is taken back, and all are told.
    fn fail(&mut self, reason: Reason) {
        if self.outcome == SetupOutcome::Pending {
            self.cancel(reason);
        }
    }

    fn header(&self, kind: Kind) -> Header {
        Header {
            group: self.config.group,
            ..Header::of(kind, self.config.job)
        }
    }

    fn send(&mut self, to: SocketAddrV4, header: &Header, body: &[u8]) {
        let mut message = vec![0; Header::SIZE + body.len()];
        if header
            .write_message(&mut message, body, &self.config.key)
            .is_ok()
        {
            self.out.push_back((to, message));
        }
    }
}
