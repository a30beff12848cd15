//! A group in the program and in the core, the same messages for both, and what must be equal.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::switch::{
    Abilities, DropReason, Quotas, SiteSecret, Switch, SwitchConfig, SwitchEvent, job_key,
};
use raddle_switch::{
    fast::FastPath as _,
    xdp::{Action, Hook},
};
use raddle_units::Time;
use raddle_wire::{
    DataType, MacAddress, Operation, Path,
    native::{
        ChildEntry, Collective, Header, JobKey, Kind, PORT, ProgramHead, StepEntry, write_program,
    },
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng as _;

use crate::{
    shapes::{DOUBLE, Shape, Spec, below, chance, fill, shape_of},
    world::{EPOCH, MAC, PARENT, SWITCH, World, child_address, mac_of},
};

/// The job of all groups.
pub(crate) const JOB: u32 = 5;
const RESULTS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 40_000);
const SECRET: SiteSecret = SiteSecret::new([9; 32]);

/// What happened in a comparison.
#[derive(Debug, Default)]
pub(crate) struct Tally {
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
    pub(crate) fn each(&self) -> [(&'static str, u64); 10] {
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
pub(crate) fn drain(switch: &mut Switch) -> Vec<(SocketAddrV4, Vec<u8>)> {
    let mut buffer = [0; 56 + 8192];
    let mut sent = Vec::new();
    while let Some((to, length)) = switch.poll_transmit(&mut buffer) {
        sent.push((to, buffer[..length].to_vec()));
    }
    sent
}

/// A group in both switches.
pub(crate) struct Run<'a> {
    pub(crate) world: &'a mut World,
    /// The core alone, which sees everything.
    reference: Switch,
    /// The core behind the program, which sees what the program passes on.
    pub(crate) behind: Switch,
    pub(crate) key: JobKey,
    pub(crate) group: u32,
    pub(crate) spec: Spec,
    /// Shape of the round that each slot is at, and its number.
    pub(crate) rounds: Vec<(u32, Shape)>,
    pub(crate) installed: Option<SwitchEvent>,
    /// What the program had counted before this group.
    baseline: Counts,
    pub(crate) frame: Vec<u8>,
    pub(crate) out: Vec<u8>,
}

/// Counters of the program: contributions, results, repetitions; forged, stale and unexpected messages.
type Counts = [u64; 6];

impl<'a> Run<'a> {
    /// A group, known to both. `late`: its rounds are near the end of their circle.
    pub(crate) fn new(
        world: &'a mut World,
        random: &mut ChaCha8Rng,
        spec: Spec,
        late: bool,
    ) -> Self {
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
    pub(crate) fn contribution(
        &self,
        random: &mut ChaCha8Rng,
        slot: u16,
        child: u16,
    ) -> (Header, Vec<u8>) {
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

    /// Whether the program takes messages of this shape, by the table in docs/reference/switch.md.
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
    pub(crate) fn exchange(&mut self, header: &Header, body: &[u8], forged: bool) -> Action {
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
        let action = match self.answered(action, &expected) {
            true => Action::Back,
            false => action,
        };
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
    pub(crate) fn address(&self, message: &[u8], kind: u8) -> (Ipv4Addr, SocketAddrV4) {
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
    pub(crate) fn wrap(&mut self, message: &[u8], source: Ipv4Addr) -> usize {
        let path = Path::between(mac_of(source), MAC, source, SWITCH, 50_000);
        path.write_udp(&mut self.frame, PORT, &[message])
            .expect("room")
    }

    /// Whether a frame that traffic control redirects is an answer to one child alone, which it does not tell. The core
    /// says what it should be; if it is not, the counters differ in the end.
    fn answered(&self, action: Action, expected: &[(SocketAddrV4, Vec<u8>)]) -> bool {
        let [(to, message)] = expected else {
            return false;
        };
        self.world.hook == Hook::Tc
            && action == Action::Redirect
            && *to != RESULTS
            && message[3] == Kind::Result.code()
            && (self.spec.children > 1 || self.spec.results)
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
        // Under XDP `raddle_exit` addresses the copies; this is the last one of traffic control.
        let last = self.spec.children - 1;
        let last_copy = self.world.hook == Hook::Tc
            && action == Action::Redirect
            && to == SocketAddrV4::new(child_address(last), 50_000 + last);
        if last_copy {
            assert_eq!((header >> 16) + (header & 0xffff), 0xffff, "IPv4 checksum");
            assert_eq!(frame[..6], mac_of(child_address(last)).0);
        }
        if to.ip().is_unspecified() || last_copy {
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
    pub(crate) fn packets(
        mut self,
        random: &mut ChaCha8Rng,
        packets: u32,
        tally: &mut Tally,
        seed: u64,
    ) {
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
            let of_child = self.spec.ranks.iter().position(|rank| *rank == header.rank);
            let operands = match of_child {
                Some(child) if !result && header.ordered => self.spec.operands[child],
                _ => 1,
            };
            let grows =
                header.ordered && self.spec.growth(body.len() / usize::from(operands)) > 192;
            let expected = !foreign && !grows && self.takes(of) && (!result || self.spec.parent);
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
