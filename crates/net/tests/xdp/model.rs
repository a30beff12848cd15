//! Random groups and messages, the core beside the program, and what must be equal.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_net::{
    fast::FastPath as _,
    xdp::{Action, LeftToCore},
};
use raddle_offload::{
    order::Expression,
    program::Program,
    switch::{
        Abilities, DropReason, Quotas, SiteSecret, Switch, SwitchConfig, SwitchEvent, job_key,
    },
};
use raddle_units::Time;
use raddle_wire::{
    DataType, MacAddress, Operation, Path,
    native::{
        ChildEntry, Collective, Header, JobKey, Kind, PORT, ProgramHead, Reason, StepEntry,
        write_program,
    },
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::world::{EPOCH, MAC, PARENT, SWITCH, World, child_address, mac_of};

const JOB: u32 = 5;
const RESULTS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 40_000);
const SECRET: SiteSecret = SiteSecret::new([9; 32]);

/// What happened in a comparison.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    dropped: u64,
    forged: u64,
    sent_up: u64,
    results: u64,
    results_passed_down: u64,
    answered_again: u64,
    ordered: u64,
    float_sums: u64,
    barriers: u64,
}

impl Tally {
    /// The numbers by their names.
    pub fn each(&self) -> [(&'static str, u64); 10] {
        [
            ("passed", self.passed),
            ("dropped", self.dropped),
            ("forged", self.forged),
            ("sent up", self.sent_up),
            ("results", self.results),
            ("results passed down", self.results_passed_down),
            ("answered again", self.answered_again),
            ("ordered", self.ordered),
            ("sums of floats", self.float_sums),
            ("barriers", self.barriers),
        ]
    }
}

fn below(random: &mut ChaCha8Rng, limit: u64) -> u64 {
    random.next_u64() % limit
}

fn chance(random: &mut ChaCha8Rng, percent: u64) -> bool {
    below(random, 100) < percent
}

fn core() -> Switch {
    Switch::new(SwitchConfig {
        address: SWITCH,
        tier: 1,
        epoch: EPOCH,
        secret: SECRET,
        quotas: Quotas::default(),
        abilities: Abilities::default(),
    })
}

/// Everything that a switch wants to send.
fn drain(switch: &mut Switch) -> Vec<(SocketAddrV4, Vec<u8>)> {
    let mut buffer = [0; 56 + 8192];
    let mut sent = Vec::new();
    while let Some((to, length)) = switch.poll_transmit(&mut buffer) {
        sent.push((to, buffer[..length].to_vec()));
    }
    sent
}

/// How a round of a group looks; members agree about it.
#[derive(Clone, Copy)]
struct Shape {
    collective: Collective,
    operation: Option<Operation>,
    data_type: Option<DataType>,
    ordered: bool,
    elements: u16,
    segments: u32,
    root: u32,
}

impl Shape {
    fn random(random: &mut ChaCha8Rng, fast: bool, can_order: bool, segment_bytes: u16) -> Self {
        if fast && chance(random, 10) {
            return Self {
                collective: Collective::Barrier,
                operation: None,
                data_type: None,
                ordered: false,
                elements: 0,
                segments: 1,
                root: 0,
            };
        }
        let data_type = DataType::ALL[below(random, 10) as usize];
        let mut operation = loop {
            let operation = Operation::ALL[below(random, 10) as usize];
            if operation != Operation::Prod && operation.accepts(data_type) {
                break operation;
            }
        };
        let most = u64::from(segment_bytes.min(256)) / data_type.size() as u64;
        let mut shape = Self {
            collective: if chance(random, 80) {
                Collective::Allreduce
            } else {
                Collective::Reduce
            },
            operation: None,
            data_type: Some(data_type),
            ordered: can_order && chance(random, 50),
            // One element half of the time, as most programs have it.
            elements: if chance(random, 50) {
                1
            } else {
                1 + below(random, most) as u16
            },
            segments: 1,
            root: below(random, 3) as u32,
        };
        if !fast {
            match below(random, 3) {
                0 => operation = Operation::Prod,
                1 => shape.segments = 2 + below(random, 3) as u32,
                _ => {
                    shape.collective = Collective::Bcast;
                    shape.ordered = false;
                    shape.elements = 0;
                    shape.data_type = None;
                    return shape;
                }
            }
        }
        shape.operation = Some(operation);
        shape
    }
}

/// A random value's bytes: any bits, or small numbers, so that sums of floats meet.
fn fill(random: &mut ChaCha8Rng, data_type: DataType, bytes: &mut [u8]) {
    let plain = chance(random, 70);
    for element in bytes.chunks_exact_mut(data_type.size()) {
        let word = random.next_u64();
        let number = (word % 2001) as i64 - 1000;
        match (data_type, plain) {
            (DataType::Double, true) => {
                element.copy_from_slice(&(number as f64 / 7.0).to_be_bytes());
            }
            (DataType::Float, true) => {
                element.copy_from_slice(&(number as f32 / 7.0).to_be_bytes());
            }
            (_, true) => element.copy_from_slice(&number.to_be_bytes()[8 - element.len()..]),
            (_, false) => element.copy_from_slice(&word.to_be_bytes()[8 - element.len()..]),
        }
    }
}

/// What a group is like.
pub struct Spec {
    children: u16,
    ranks: Vec<u32>,
    operands: Vec<u16>,
    program: Option<Program>,
    parent: bool,
    results: bool,
    slots: u16,
    segment_bytes: u16,
}

impl Spec {
    /// A random group: ranks below a child in a run or scattered, and beyond the switch if it has a parent.
    pub fn random(random: &mut ChaCha8Rng) -> Self {
        let most = if chance(random, 5) { 32 } else { 6 };
        let children = 1 + below(random, most) as u16;
        let parent = chance(random, 50);
        let size = u32::from(children) + below(random, 2 * u64::from(children)) as u32;
        let mut ranks_below = vec![Vec::new(); usize::from(children)];
        let tidy = chance(random, 50);
        for rank in 0..size {
            let child = if tidy {
                u64::from(rank) * u64::from(children) / u64::from(size)
            } else if rank < u32::from(children) {
                u64::from(rank)
            } else {
                below(random, u64::from(children))
            };
            ranks_below[child as usize].push(rank);
        }
        let beyond = if parent { below(random, 5) as u32 } else { 0 };
        let expression = Expression::in_rank_order(size + beyond).expect("ranks");
        let program = Program::for_node(&expression, &ranks_below).expect("a tree");
        let operands = program.inputs.clone();
        let mut ranks: Vec<u32> = Vec::new();
        for _ in 0..children {
            let last = ranks.last().copied().unwrap_or(0);
            ranks.push(last + 1 + below(random, 3) as u32);
        }
        let longest = operands.iter().copied().max().unwrap_or(1);
        let mut segment_bytes = [8, 64, 256, 1024][below(random, 4) as usize];
        // What a message of several operands has room for.
        if usize::from(longest.max(program.outputs.len() as u16)) * segment_bytes > 8192 {
            segment_bytes = 64;
        }
        Self {
            children,
            ranks,
            operands,
            program: chance(random, 80).then_some(program),
            parent,
            results: chance(random, 50),
            slots: 2 + below(random, 5) as u16,
            segment_bytes: segment_bytes as u16,
        }
    }

    /// Three children of the root, which gets its results to all at once.
    pub fn plain() -> Self {
        Self {
            children: 3,
            ranks: vec![0, 1, 2],
            operands: vec![1; 3],
            program: None,
            parent: false,
            results: true,
            slots: 4,
            segment_bytes: 256,
        }
    }

    /// Whether the program has room for the group's ordered rounds.
    fn fits(&self) -> bool {
        let Some(program) = &self.program else {
            return false;
        };
        self.operands.iter().sum::<u16>() <= 32
            && program.outputs.len() <= 4
            && self.operands.iter().all(|operands| *operands <= 4)
    }
}

/// A group in both switches.
pub struct Run<'a> {
    world: &'a mut World,
    /// The core alone, which sees everything.
    reference: Switch,
    /// The core behind the program, which sees what the program passes on.
    behind: Switch,
    key: JobKey,
    group: u32,
    spec: Spec,
    /// Shape of the round that each slot is at, and its number.
    rounds: Vec<(u32, Shape)>,
    installed: Option<SwitchEvent>,
    /// What the program had counted before this group.
    baseline: Counts,
    frame: Vec<u8>,
    out: Vec<u8>,
}

/// Counters of the program: contributions, results, repetitions; forged, stale and unexpected messages.
type Counts = [u64; 6];

impl<'a> Run<'a> {
    /// A group, known to both. `late`: its rounds are near the end of their circle.
    pub fn new(world: &'a mut World, random: &mut ChaCha8Rng, spec: Spec, late: bool) -> Self {
        let first = if late { u32::MAX - 3 } else { 1 };
        let mut run = Self {
            key: job_key(&SECRET, JOB),
            group: random.next_u32(),
            rounds: Vec::new(),
            reference: core(),
            behind: core(),
            installed: None,
            baseline: Counts::default(),
            frame: vec![0; 16_384],
            out: Vec::new(),
            spec,
            world,
        };
        for slot in 0..run.spec.slots {
            let shape = run.shape(random, slot);
            let round = first + u32::from(slot.min(3));
            run.rounds.push((round, shape));
        }
        run.baseline = run.fast_counts();
        run.install();
        if late {
            run.go_round(random);
        }
        run
    }

    /// Brings a group near the end of the circle of rounds, as years of rounds would.
    fn go_round(&mut self, random: &mut ChaCha8Rng) {
        let there = self.rounds[0];
        for eighth in 0..8 {
            self.rounds[0] = (1 + (eighth << 29), DOUBLE);
            let (header, body) = self.contribution(random, 0, 0);
            self.exchange(&header, &body, false);
        }
        self.rounds[0] = there;
    }

    /// A shape for a slot's next round. Slots whose number has remainder 3 have rounds that the program leaves to the
    /// core: a slot that has both kinds answers late messages by who holds them.
    fn shape(&self, random: &mut ChaCha8Rng, slot: u16) -> Shape {
        let fast = slot % 4 != 3;
        let ordered = self.spec.program.is_some() && (!fast || self.spec.fits());
        Shape::random(random, fast, ordered, self.spec.segment_bytes)
    }

    fn child_entry(&self, child: u16) -> ChildEntry {
        ChildEntry {
            address: child_address(child),
            port: 50_000 + child,
            operands: self.spec.operands[usize::from(child)],
            rank: self.spec.ranks[usize::from(child)],
        }
    }

    fn program_message(&self) -> Vec<u8> {
        let head = ProgramHead {
            parent: if self.spec.parent {
                PARENT
            } else {
                Ipv4Addr::UNSPECIFIED
            },
            results: if self.spec.results {
                *RESULTS.ip()
            } else {
                Ipv4Addr::UNSPECIFIED
            },
            results_port: if self.spec.results { RESULTS.port() } else { 0 },
            master: child_address(0),
            group_size: u32::from(self.spec.children),
            lease_ms: 60_000,
            slots: self.spec.slots,
            segment_bytes: self.spec.segment_bytes,
            ..ProgramHead::default()
        };
        let children: Vec<_> = (0..self.spec.children)
            .map(|child| self.child_entry(child))
            .collect();
        let program = self.spec.program.clone().unwrap_or_default();
        let steps = program.steps.iter().map(|step| StepEntry {
            into: step.into,
            left: step.left,
            right: step.right,
        });
        let (steps, outputs) = (steps.collect::<Vec<_>>(), &program.outputs);
        let mut message = vec![0; 16_384];
        let length = write_program(
            &mut message[Header::SIZE..],
            &head,
            &children,
            &steps,
            outputs,
        )
        .expect("room");
        let header = Header {
            group: self.group,
            ..Header::of(Kind::Program, JOB)
        };
        let length = header
            .seal_message(&mut message, length, &self.key)
            .expect("room");
        message.truncate(length);
        message
    }

    fn install(&mut self) {
        for child in 0..self.spec.children {
            self.world.know(child_address(child), child);
        }
        let message = self.program_message();
        let from = SocketAddrV4::new(child_address(0), 50_000);
        for switch in [&mut self.reference, &mut self.behind] {
            switch.handle_packet(Time::ZERO, from, &message);
            let answers = drain(switch);
            assert_eq!(answers[0].1[3], Kind::Lease.code(), "the group was refused");
        }
        let event = self.behind.poll_event().expect("a group was installed");
        self.world.fast.event(&event).expect("within the limits");
        assert_eq!(self.world.fast.waits_for(JOB, self.group), None);
        self.installed = Some(event);
    }

    /// A contribution of a child to the round that a slot is at, or to an older one.
    fn contribution(&self, random: &mut ChaCha8Rng, slot: u16, child: u16) -> (Header, Vec<u8>) {
        let (round, shape) = self.rounds[usize::from(slot)];
        let operands = if shape.ordered {
            self.spec.operands[usize::from(child)]
        } else {
            1
        };
        self.message(
            random,
            Kind::Contribution,
            slot,
            round,
            shape,
            operands,
            child,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a message")]
    fn message(
        &self,
        random: &mut ChaCha8Rng,
        kind: Kind,
        slot: u16,
        round: u32,
        shape: Shape,
        operands: u16,
        child: u16,
    ) -> (Header, Vec<u8>) {
        let count = shape.elements * operands;
        let size = shape.data_type.map_or(0, DataType::size);
        let mut body = vec![0; usize::from(count) * size];
        if let Some(data_type) = shape.data_type {
            fill(random, data_type, &mut body);
        }
        let header = Header {
            group: self.group,
            round,
            segments: shape.segments,
            rank: self.spec.ranks[usize::from(child)],
            root: shape.root,
            resent: chance(random, 20),
            ordered: shape.ordered,
            collective: shape.collective.code(),
            operation: shape.operation.map_or(0, Operation::code),
            data_type: shape.data_type.map_or(0, DataType::code),
            count,
            slot,
            ..Header::of(kind, JOB)
        };
        (header, body)
    }

    /// Whether the program takes messages of this shape, by the table in docs/switch.md.
    fn takes(&self, shape: Shape) -> bool {
        let known = match (shape.collective, shape.operation, shape.data_type) {
            (Collective::Barrier, ..) => true,
            (Collective::Bcast, ..) => false,
            (_, Some(operation), Some(data_type)) => {
                operation != Operation::Prod && data_type.code() <= 10
            }
            _ => false,
        };
        known && shape.segments == 1 && (!shape.ordered || self.spec.fits())
    }

    /// Gives a message to both; they must do the same. What the program did with it.
    fn exchange(&mut self, header: &Header, body: &[u8], forged: bool) -> Action {
        let mut message = vec![0; Header::SIZE + body.len()];
        header
            .write_message(&mut message, body, &self.key)
            .expect("a message");
        if forged {
            message[50] ^= 1;
        }
        let (source, from) = self.address(&message, header.kind);
        self.reference.handle_packet(Time::ZERO, from, &message);
        let expected = drain(&mut self.reference);
        let length = self.wrap(&message, source);
        let action = self
            .world
            .fast
            .run(&self.frame[..length], &mut self.out)
            .expect("the program runs");
        let sent = match action {
            Action::Pass => {
                assert_eq!(self.out, self.frame[..length], "what passes is unchanged");
                self.behind.handle_packet(Time::ZERO, from, &message);
                drain(&mut self.behind)
            }
            Action::Drop => Vec::new(),
            Action::Back | Action::Redirect => self.sent(action),
        };
        assert_eq!(sent, expected, "{action:?}");
        action
    }

    /// Who sends a message.
    fn address(&self, message: &[u8], kind: u8) -> (Ipv4Addr, SocketAddrV4) {
        let rank = &message[28..32];
        let child = self
            .spec
            .ranks
            .iter()
            .position(|own| own.to_be_bytes() == *rank);
        let child = child.unwrap_or_default() as u16;
        let source = if kind == Kind::Result.code() {
            PARENT
        } else {
            child_address(child)
        };
        (source, SocketAddrV4::new(source, 50_000 + child))
    }

    /// Writes the frame of a message to the switch; gives its length.
    fn wrap(&mut self, message: &[u8], source: Ipv4Addr) -> usize {
        let path = Path::between(mac_of(source), MAC, source, SWITCH, 50_000);
        path.write_udp(&mut self.frame, PORT, &[message])
            .expect("room")
    }

    /// The messages that a frame of the program stands for.
    fn sent(&self, action: Action) -> Vec<(SocketAddrV4, Vec<u8>)> {
        let frame = &self.out;
        let [a, b, c, d] = frame[30..34] else {
            unreachable!("four bytes")
        };
        let to = SocketAddrV4::new(
            Ipv4Addr::new(a, b, c, d),
            u16::from_be_bytes([frame[36], frame[37]]),
        );
        let payload = frame[42..].to_vec();
        let header: u32 = (14..34)
            .step_by(2)
            .map(|at| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]])))
            .sum();
        let lengths = [(16, 14), (38, 34)];
        for (at, start) in lengths {
            let length = u16::from_be_bytes([frame[at], frame[at + 1]]);
            assert_eq!(usize::from(length), frame.len() - start, "length at {at}");
        }
        assert_eq!(frame[6..12], MAC.0, "the switch is the sender");
        if to.ip().is_unspecified() {
            // `raddle_exit` addresses the copies.
            return (0..self.spec.children)
                .map(|child| {
                    let to = SocketAddrV4::new(child_address(child), 50_000 + child);
                    (to, payload.clone())
                })
                .collect();
        }
        assert_eq!((header >> 16) + (header & 0xffff), 0xffff, "IPv4 checksum");
        let mac = MacAddress(frame[..6].try_into().expect("six bytes"));
        if to == RESULTS {
            assert_eq!(mac, MacAddress([1, 0, 0x5e, 1, 2, 3]));
        } else if action == Action::Redirect {
            assert_eq!(mac, mac_of(PARENT));
        }
        vec![(to, payload)]
    }

    /// Random messages. What the program does with each must be what the core does, and it must take those that it
    /// says it takes, and no others.
    pub fn packets(mut self, random: &mut ChaCha8Rng, packets: u32, tally: &mut Tally, seed: u64) {
        let mut sent: Vec<(Header, Vec<u8>)> = Vec::new();
        for number in 0..packets {
            let slot = below(random, u64::from(self.spec.slots.min(3))) as u16 % self.spec.slots;
            let slot = if chance(random, 10) {
                self.spec.slots - 1
            } else {
                slot
            };
            let child = below(random, u64::from(self.spec.children)) as u16;
            if chance(random, 8) {
                // The slot's next round; sometimes the one before still has messages on their way.
                let shape = self.shape(random, slot);
                let at = &mut self.rounds[usize::from(slot)];
                *at = (at.0.wrapping_add(u32::from(self.spec.slots)), shape);
            }
            let (round, shape) = self.rounds[usize::from(slot)];
            let mut forged = false;
            let mut foreign = false;
            let (header, body) = match below(random, 100) {
                0..=9 if !sent.is_empty() => {
                    let (mut header, body) =
                        sent[below(random, sent.len() as u64) as usize].clone();
                    header.resent = true;
                    (header, body)
                }
                10..=27 => self.message(random, Kind::Result, slot, round, shape, 1, child),
                28..=30 => {
                    forged = true;
                    self.contribution(random, slot, child)
                }
                31 => {
                    foreign = true;
                    let (header, body) = self.contribution(random, slot, child);
                    (
                        Header {
                            group: header.group ^ 1,
                            ..header
                        },
                        body,
                    )
                }
                32 => {
                    foreign = true;
                    let (header, body) = self.contribution(random, slot, child);
                    (Header { rank: 0, ..header }, body)
                }
                33 => {
                    foreign = true;
                    let (header, body) = self.contribution(random, slot, child);
                    (
                        Header {
                            slot: self.spec.slots,
                            ..header
                        },
                        body,
                    )
                }
                34 => {
                    foreign = true;
                    let header = Header {
                        group: self.group,
                        rank: self.spec.ranks[usize::from(child)],
                        ..Header::of(Kind::Lease, JOB)
                    };
                    (header, Vec::new())
                }
                _ => self.contribution(random, slot, child),
            };
            let of = shape_of(&header);
            let result = header.kind == Kind::Result.code();
            let expected = !foreign && self.takes(of) && (!result || self.spec.parent);
            let action = self.exchange(&header, &body, forged);
            assert_eq!(
                action != Action::Pass,
                expected,
                "group {seed}, message {number}: {header:?}"
            );
            self.count(tally, action, forged, result, of);
            if !forged && !foreign {
                sent.push((header, body));
            }
        }
        self.compare_counters();
        self.world.fast.remove(JOB, self.group);
        self.world.fast.tick(Time::ZERO);
    }

    fn count(&self, tally: &mut Tally, action: Action, forged: bool, result: bool, shape: Shape) {
        let up = action == Action::Redirect && self.out[45] == Kind::Contribution.code();
        let down = action == Action::Redirect && !up;
        let float = shape.data_type.is_some_and(DataType::is_float);
        let sum = shape.operation == Some(Operation::Sum);
        for (number, happened) in [
            (&mut tally.passed, action == Action::Pass),
            (&mut tally.dropped, action == Action::Drop),
            (&mut tally.forged, forged && action == Action::Drop),
            (&mut tally.sent_up, up),
            (&mut tally.results, down && !result),
            (&mut tally.results_passed_down, down && result),
            (&mut tally.answered_again, action == Action::Back),
            (&mut tally.ordered, (up || down) && shape.ordered),
            (&mut tally.float_sums, (up || down) && float && sum),
            (
                &mut tally.barriers,
                (up || down) && shape.collective == Collective::Barrier,
            ),
        ] {
            *number += u64::from(happened);
        }
    }

    fn fast_counts(&self) -> Counts {
        let counters = self.world.fast.counters();
        let job = |name| {
            let mut jobs = counters.jobs.iter();
            let found = jobs.find(|(job, n, _)| *job == JOB && *n == name);
            found.map_or(0, |(_, _, count)| *count)
        };
        let drops = |name| {
            let found = counters.drops.iter().find(|(n, _)| *n == name);
            found.map_or(0, |(_, count)| *count)
        };
        [
            job("contributions"),
            job("rounds"),
            job("repeats"),
            drops("forged"),
            drops("stale"),
            drops("not_awaited"),
        ]
    }

    /// The program and the core behind it have together counted what the core alone has.
    fn compare_counters(&self) {
        let counts = |switch: &Switch| {
            let status = switch.status();
            let job = status.jobs[0].counters;
            [
                job.contributions,
                job.segments,
                job.repeats,
                status.drops.of(DropReason::Forged),
                status.drops.of(DropReason::Stale),
                status.drops.of(DropReason::NotAwaited),
            ]
        };
        let mut sum = counts(&self.behind);
        for (at, now) in self.fast_counts().into_iter().enumerate() {
            sum[at] += now - self.baseline[at];
        }
        assert_eq!(sum, counts(&self.reference));
    }
}

fn shape_of(header: &Header) -> Shape {
    Shape {
        collective: Collective::from_code(header.collective).unwrap_or(Collective::Bcast),
        operation: Operation::from_code(header.operation),
        data_type: DataType::from_code(header.data_type),
        ordered: header.ordered,
        elements: header.count,
        segments: header.segments,
        root: header.root,
    }
}

const DOUBLE: Shape = Shape {
    collective: Collective::Allreduce,
    operation: Some(Operation::Sum),
    data_type: Some(DataType::Double),
    ordered: false,
    elements: 1,
    segments: 1,
    root: 0,
};

/// A contribution that differs from the others' takes its round away from the program: it and all later messages of
/// the round go to the core, where repetitions bring both sides together and the refusal comes from.
pub fn disagreement(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut run = Run::new(world, &mut random, Spec::plain(), false);
    let mut give = |slot: u16, child, shape| {
        run.rounds[usize::from(slot)].1 = shape;
        let (header, body) = run.contribution(&mut random, slot, child);
        let mut message = vec![0; Header::SIZE + body.len()];
        header
            .write_message(&mut message, &body, &run.key)
            .expect("a message");
        let (source, from) = run.address(&message, header.kind);
        let length = run.wrap(&message, source);
        let frame = run.frame[..length].to_vec();
        let action = run.world.fast.run(&frame, &mut run.out).expect("it runs");
        if action == Action::Pass {
            run.behind.handle_packet(Time::ZERO, from, &message);
        }
        (action, drain(&mut run.behind))
    };
    let other = Shape {
        operation: Some(Operation::Max),
        ..DOUBLE
    };
    assert_eq!(give(0, 0, DOUBLE), (Action::Drop, vec![]));
    assert_eq!(give(0, 1, other), (Action::Pass, vec![]));
    // Child 0 sends again, because no result came: now the core has both.
    let (action, sent) = give(0, 0, DOUBLE);
    assert_eq!(action, Action::Pass);
    let refusal = &sent[0].1;
    assert_eq!(
        (refusal[3], refusal[43]),
        (Kind::Refuse.code(), Reason::Mismatch.code())
    );
    // Other rounds are not concerned, nor is the slot's next one.
    for child in 0..2 {
        assert_eq!(give(1, child, DOUBLE).0, Action::Drop);
    }
    assert_eq!(give(1, 2, DOUBLE).0, Action::Redirect);
}

/// As long as a child's place is unknown the core has all rounds; the program begins with one that the core has not
/// seen, and what belongs to older ones goes on to the core.
pub fn late_neighbour(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut run = Run::new(world, &mut random, Spec::plain(), false);
    let fast = &mut run.world.fast;
    fast.remove(JOB, run.group);
    fast.route_changed(child_address(1), None);
    let event = run.installed.clone().expect("it was installed");
    fast.event(&event).expect("within the limits");
    assert_eq!(
        fast.waits_for(JOB, run.group),
        Some(LeftToCore::Unknown(child_address(1)))
    );
    for slot in 0..4_u16 {
        run.rounds[usize::from(slot)] = (1 + u32::from(slot), DOUBLE);
    }
    let mut give = |run: &mut Run<'_>, slot, child| {
        let (header, body) = run.contribution(&mut random, slot, child);
        run.exchange(&header, &body, false)
    };
    // Rounds 1 and 2: the first is complete, the second has begun.
    for (slot, child) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        assert_eq!(give(&mut run, slot, child), Action::Pass);
    }
    run.world.know(child_address(1), 1);
    assert_eq!(run.world.fast.waits_for(JOB, run.group), None);
    assert_eq!(
        give(&mut run, 1, 1),
        Action::Pass,
        "round 2 stays with the core"
    );
    assert_eq!(
        give(&mut run, 2, 0),
        Action::Drop,
        "round 3 is the program's"
    );
    assert_eq!(give(&mut run, 1, 2), Action::Pass);
    assert_eq!(
        give(&mut run, 0, 1),
        Action::Pass,
        "a repetition of round 1"
    );
    assert_eq!(give(&mut run, 2, 1), Action::Drop);
    assert_eq!(give(&mut run, 2, 2), Action::Redirect);
    // A neighbour that is forgotten for lack of ordinary frames is still there.
    run.world.fast.route_changed(child_address(1), None);
    assert_eq!(give(&mut run, 3, 0), Action::Drop);
}

/// Tables of groups that are gone are free again, from the next tick on.
pub fn install_and_free(world: &mut World) {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    // Each takes four of the 64 slots.
    for _ in 0..200 {
        let run = Run::new(world, &mut random, Spec::plain(), false);
        let group = run.group;
        world.fast.remove(JOB, group);
        world.fast.tick(Time::ZERO);
    }
    let mut groups = Vec::new();
    let mut last = None;
    for _ in 0..16 {
        let run = Run::new(world, &mut random, Spec::plain(), false);
        groups.push(run.group);
        last = run.installed;
    }
    let Some(SwitchEvent::GroupInstalled(mut plan)) = last else {
        panic!("all of them were installed");
    };
    plan.group ^= 1;
    let event = SwitchEvent::GroupInstalled(plan);
    let full = world.fast.event(&event);
    assert!(full.is_err(), "17 groups of 4 slots do not fit into 64");
    world.fast.remove(JOB, groups[3]);
    let early = world.fast.event(&event);
    assert!(early.is_err(), "a program may still run with the old group");
    world.fast.tick(Time::ZERO);
    world.fast.event(&event).expect("four slots are free");
}
