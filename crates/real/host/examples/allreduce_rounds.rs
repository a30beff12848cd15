//! Time of a round of in-network Allreduce, without MPI: one process per host, a group that a file describes.
//!
//! Every process runs `allreduce_rounds FILE MEMBER [--rounds N] [--elements N] [--scenario FILE]`. Member 0 sets the switches up, all
//! wait for each other, and then each round adds up doubles; every sum is checked. At the end each prints a line of JSON.
//! A scenario of `tests/net/test_conformance.py` says how many rounds there are and what is lost; then the line has all that the
//! member said and heard.
//!
//! FILE is JSON; switches stand in any order, `members` are those that are connected to them:
//! {"job": 7, "key": "32 hexadecimal digits, from raddle-switch job-key", "members": ["10.0.0.1", "10.0.0.2"],
//!  "switches": [{"address": "10.0.0.253", "parent": null, "members": [0, 1]}]}
#![expect(clippy::print_stdout, reason = "its result")]

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use lexopt::prelude::*;
use raddle_host::{
    clock,
    drive::{self, MESSAGE, Port, SansIo},
};
use raddle_offload::{
    member::{Member, MemberConfig, Outcome, RoundSpec},
    seen::Seen,
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        Body, ChildEntry, Collective, Header, JobKey, Kind, PORT, ProgramHead, Unverified,
        write_program,
    },
};
use serde::Deserialize;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const LEASE: Span = Span::from_ms(10_000);
const SLOTS: u16 = 16;
const SEGMENT_BYTES: u16 = 256;
/// Ports of members' data and of their messages about the start.
const DATA_PORT: u16 = 40_000;
const START_PORT: u16 = 41_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    job: u32,
    key: String,
    #[serde(default = "first")]
    group: u32,
    members: Vec<Ipv4Addr>,
    switches: Vec<SwitchEntry>,
}

const fn first() -> u32 {
    1
}

/// What the simulator's example `reduction_events` reads, too.
#[derive(Debug, Deserialize)]
struct Scenario {
    rounds: u32,
    elements: usize,
    retry_ms: u64,
    give_up_ms: u64,
    lost: Vec<Lost>,
}

/// Messages of a member that never reach the socket, or never come from it.
#[derive(Debug, Deserialize)]
struct Lost {
    member: u32,
    sent: bool,
    first: u64,
    count: u64,
}

/// A member whose messages are written down, and lost as a scenario says.
struct Witness {
    member: Member,
    config: MemberConfig,
    lost: Vec<Lost>,
    /// Contributions and results so far: heard, sent.
    counts: [u64; 2],
    events: Vec<serde_json::Value>,
}

impl Witness {
    /// Writes a message down; whether it is lost.
    fn loses(&mut self, now: Time, sent: bool, payload: &[u8]) -> bool {
        let Some(seen) = Seen::of(payload, &self.config.key) else {
            return false;
        };
        if !matches!(seen.kind, Kind::Contribution | Kind::Result) {
            return false;
        }
        self.counts[usize::from(sent)] += 1;
        let number = self.counts[usize::from(sent)];
        self.events.push(serde_json::json!({
            "member": self.config.member,
            "at_us": now.0 as f64 / 1e6,
            "sent": sent,
            "what": seen.to_string(),
        }));
        self.lost.iter().any(|lost| {
            lost.member == self.config.member
                && lost.sent == sent
                && number >= lost.first
                && number - lost.first < lost.count
        })
    }
}

impl SansIo for Witness {
    fn handle_packet(&mut self, now: Time, _from: SocketAddrV4, payload: &[u8]) {
        if !self.loses(now, false, payload) {
            self.member.handle_packet(now, payload);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.member.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.member.poll_timeout()
    }

    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        loop {
            let (to, length) = self.member.poll_transmit(buffer)?;
            if !self.loses(clock::now(), true, &buffer[..length]) {
                return Some((to, length));
            }
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    address: Ipv4Addr,
    parent: Option<Ipv4Addr>,
    members: Vec<u32>,
}

fn main() -> Result<()> {
    let mut parser = lexopt::Parser::from_env();
    let (mut places, mut rounds, mut elements) = (Vec::new(), 10_000_u32, 1_usize);
    let mut scenario: Option<Scenario> = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("rounds") => rounds = parser.value()?.parse()?,
            Long("elements") => elements = parser.value()?.parse()?,
            Long("scenario") => {
                let file = parser.value()?.string()?;
                scenario = Some(serde_json::from_slice(&fs::read(file)?)?);
            }
            Value(value) => places.push(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let [file, member] = places.as_slice() else {
        let usage =
            "usage: allreduce_rounds FILE MEMBER [--rounds N] [--elements N] [--scenario FILE]";
        return Err(usage.into());
    };
    let group: GroupFile = serde_json::from_slice(&fs::read(file)?)?;
    let member: u32 = member.parse()?;
    let key = key(&group.key).ok_or("the key has 32 hexadecimal digits")?;
    let own = *group.members.get(member as usize).ok_or("no such member")?;
    let switch = group
        .switches
        .iter()
        .find(|switch| switch.members.contains(&member))
        .ok_or("no switch has this member")?;
    let socket = drive::bind(SocketAddrV4::new(own, DATA_PORT))?;
    if member == 0 {
        for switch in &group.switches {
            install(&group, switch, own, &key)?;
        }
    }
    meet(&group, member)?;
    let mut config = MemberConfig {
        job: group.job,
        key,
        group: group.group,
        member,
        switch: SocketAddrV4::new(switch.address, PORT),
        slots: SLOTS,
        segment_bytes: SEGMENT_BYTES,
        operands: 1,
        lease: LEASE,
        retry: Span::from_ms(2),
        give_up: Span::from_ms(10_000),
    };
    if let Some(scenario) = scenario {
        config.retry = Span::from_ms(scenario.retry_ms);
        config.give_up = Span::from_ms(scenario.give_up_ms);
        return play(Port::of(&socket), config, scenario);
    }
    run(
        Port::of(&socket),
        config,
        group.members.len(),
        rounds,
        elements,
    )
}

/// Runs the rounds of a scenario, and prints what was said and heard.
fn play(port: Port<'_>, config: MemberConfig, scenario: Scenario) -> Result<()> {
    let spec = RoundSpec {
        collective: Collective::Allreduce,
        operation: Some(Operation::Sum),
        data_type: Some(DataType::Double),
        count: scenario.elements,
        ordered: false,
        root: 0,
    };
    let mut witness = Witness {
        member: Member::new(clock::now(), config),
        config,
        lost: scenario.lost,
        counts: [0; 2],
        events: Vec::new(),
    };
    let operand = f64::from(config.member + 1)
        .to_be_bytes()
        .repeat(scenario.elements);
    let mut done = 0;
    for _ in 0..scenario.rounds {
        witness.member.start(clock::now(), &spec, &operand)?;
        drive::drive(&mut witness, port, Span::from_ms(1), |witness| {
            witness.member.outcome() != Outcome::Pending
        })?;
        if !matches!(witness.member.outcome(), Outcome::Done(_)) {
            break;
        }
        done += 1;
    }
    let events = std::mem::take(&mut witness.events);
    // Others may still lack their last result.
    let (until, mut buffer) = (
        clock::now() + config.retry + Span::from_ms(200),
        [0; MESSAGE],
    );
    while clock::now() < until {
        drive::turn(&mut witness.member, port, &mut buffer, |_| false)?;
        thread::sleep(Duration::from_millis(1));
    }
    println!(
        "{}",
        serde_json::json!({ "rounds": done, "events": events })
    );
    Ok(())
}

/// Runs the rounds, and prints what came out.
fn run(
    port: Port<'_>,
    config: MemberConfig,
    members: usize,
    rounds: u32,
    elements: usize,
) -> Result<()> {
    let spec = RoundSpec {
        collective: Collective::Allreduce,
        operation: Some(Operation::Sum),
        data_type: Some(DataType::Double),
        count: elements,
        ordered: false,
        root: 0,
    };
    let mut member = Member::new(clock::now(), config);
    let mut times = Vec::with_capacity(rounds as usize);
    let (mut operand, mut wrong) = (Vec::new(), 0_u32);
    let begin = Instant::now();
    for round in 0..rounds {
        // Whole numbers far below 2^53: their sum is exact in any order.
        let share =
            |member: u32, at: usize| f64::from(member + 1) * f64::from(round % 1000 + at as u32);
        operand.clear();
        for at in 0..elements {
            operand.extend_from_slice(&share(config.member, at).to_be_bytes());
        }
        let start = clock::now();
        member.start(start, &spec, &operand)?;
        drive::drive(&mut member, port, Span::from_ms(1), |member| {
            member.outcome() != Outcome::Pending
        })?;
        times.push(clock::now().since(start));
        let Outcome::Done(result) = member.outcome() else {
            return Err(format!("round {round}: {:?}", member.outcome()).into());
        };
        let (sums, _) = result.as_chunks::<8>();
        let right = sums.iter().enumerate().all(|(at, sum)| {
            let expected: f64 = (0..members as u32).map(|member| share(member, at)).sum();
            f64::from_be_bytes(*sum) == expected
        });
        wrong += u32::from(!right);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut buffer = [0; MESSAGE];
    // Others may still lack their last result, which the switch keeps as long as somebody is there.
    let until = clock::now() + Span::from_ms(300);
    while clock::now() < until {
        drive::turn(&mut member, port, &mut buffer, |_| false)?;
        thread::sleep(Duration::from_millis(1));
    }
    member.leave();
    drive::transmit(&mut member, port, &mut buffer);
    times.sort_unstable();
    let at = |part: f64| {
        times
            .get((part * f64::from(rounds)) as usize)
            .copied()
            .unwrap_or(Span(0))
    };
    let us = |span: Span| span.as_secs_f64() * 1e6;
    let counters = member.counters();
    println!(
        "{}",
        serde_json::json!({
            "member": config.member,
            "rounds": counters.rounds,
            "elements": elements,
            "us_per_round": seconds * 1e6 / f64::from(rounds.max(1)),
            "median_us": us(at(0.5)),
            "p99_us": us(at(0.99)),
            "resent": counters.resent,
            "wrong": wrong,
        })
    );
    if wrong > 0 {
        return Err(format!("{wrong} sums are wrong").into());
    }
    Ok(())
}

/// Sends a switch its part of the group until it confirms.
fn install(group: &GroupFile, switch: &SwitchEntry, master: Ipv4Addr, key: &JobKey) -> Result<()> {
    let mut children: Vec<ChildEntry> = switch
        .members
        .iter()
        .map(|member| ChildEntry {
            address: group.members[*member as usize],
            port: DATA_PORT,
            operands: 1,
            rank: *member,
        })
        .collect();
    let below = group
        .switches
        .iter()
        .filter(|other| other.parent == Some(switch.address));
    children.extend(below.map(|below| ChildEntry {
        address: below.address,
        port: PORT,
        operands: 1,
        rank: least(group, below),
    }));
    children.sort_unstable_by_key(|child| child.rank);
    let head = ProgramHead {
        parent: switch.parent.unwrap_or(Ipv4Addr::UNSPECIFIED),
        results: Ipv4Addr::UNSPECIFIED,
        master,
        group_size: group.members.len() as u32,
        lease_ms: (LEASE.as_ns() / 1_000_000) as u32,
        slots: SLOTS,
        segment_bytes: SEGMENT_BYTES,
        children: 0,
        steps: 0,
        outputs: 0,
        results_port: 0,
    };
    let mut body = [0; 2048];
    let length = write_program(&mut body, &head, &children, &[], &[])?;
    let header = Header {
        group: group.group,
        ..Header::of(Kind::Program, group.job)
    };
    let mut message = [0; 4096];
    let length = header.write_message(&mut message, &body[..length], key)?;
    let socket = UdpSocket::bind((master, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut answer = [0; 256];
    for _ in 0..100 {
        socket.send_to(&message[..length], (switch.address, PORT))?;
        let Ok((length, _)) = socket.recv_from(&mut answer) else {
            continue;
        };
        let answer = Unverified::parse(&answer[..length], 0)?.verify(key)?;
        match (answer.kind, answer.body) {
            (Kind::Lease, Body::Empty) => return Ok(()),
            _ => {
                return Err(format!(
                    "{}: {:?} {}",
                    switch.address,
                    answer.kind,
                    answer.header.reason()
                )
                .into());
            }
        }
    }
    Err(format!("{} does not answer", switch.address).into())
}

/// The least member below a switch.
fn least(group: &GroupFile, switch: &SwitchEntry) -> u32 {
    let own = switch.members.iter().copied();
    let below = group
        .switches
        .iter()
        .filter(|other| other.parent == Some(switch.address))
        .map(|below| least(group, below));
    own.chain(below).min().unwrap_or(u32::MAX)
}

/// Waits until all members are there and the switches are set up: each tells member 0 until it answers.
fn meet(group: &GroupFile, member: u32) -> Result<()> {
    let socket = UdpSocket::bind((group.members[member as usize], START_PORT))?;
    let mut buffer = [0; 4];
    if member != 0 {
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        for _ in 0..1200 {
            // The master may not be there yet, or its host not have answered ARP: both look like loss.
            let _ = socket.send_to(&member.to_be_bytes(), (group.members[0], START_PORT));
            if socket.recv_from(&mut buffer).is_ok() {
                return Ok(());
            }
        }
        return Err("member 0 did not begin within a minute".into());
    }
    let (sender, all) = mpsc::channel();
    let count = group.members.len();
    // It goes on answering while rounds run: an answer may be lost.
    thread::spawn(move || {
        let mut seen: BTreeSet<SocketAddr> = BTreeSet::new();
        loop {
            if let Ok((_, from)) = socket.recv_from(&mut buffer) {
                seen.insert(from);
                if seen.len() + 1 == count {
                    let _ = sender.send(());
                }
                if seen.len() + 1 >= count {
                    for other in &seen {
                        let _ = socket.send_to(b"go", other);
                    }
                }
            }
        }
    });
    if count > 1 {
        all.recv_timeout(Duration::from_secs(60))
            .map_err(|_| "not all members came within a minute")?;
    }
    Ok(())
}

fn key(digits: &str) -> Option<JobKey> {
    let mut key = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(JobKey::new(key))
}
