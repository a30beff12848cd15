//! Time of a round of the published in-network Allreduce, without MPI: one process per leader.
//!
//! Every process runs `published_rounds NUMBER --nodes A,B,... [--sockets N] [--rounds N] [--group G] [--rc]`, NUMBER being the
//! leader's, from 0. What leaders agree on by plain MPI while a group is set up they agree on by TCP here, over leader 0.
//! Sums of doubles are checked. At the end each prints a line of JSON.
#![expect(clippy::print_stdout, reason = "its result")]

use std::{
    error::Error,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket},
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

use lexopt::prelude::*;
use raddle_host::{clock, readiness::wait_readable, roce::RoceSocket};
use raddle_offload::{
    endpoint::{CallOutcome, Started},
    published::{Endpoint, Leader, LeaderConfig, Stage, Terms, Transport, queue_pair},
    recovery::{RecoveryConfig, RecoveryState},
    roles::Roles,
};
use raddle_units::Span;
use raddle_wire::{DataType, Operation, compat::RcLayout, native::JobKey};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Ports of leaders' recovery messages, and of the agreement.
const RECOVERY_PORT: u16 = 42_000;
const AGREE_PORT: u16 = 43_000;
const FRAME: usize = 2048;

fn main() -> Result<()> {
    let mut parser = lexopt::Parser::from_env();
    let (mut number, mut nodes, mut sockets) = (None, Vec::<Ipv4Addr>::new(), 1);
    let (mut rounds, mut group, mut transport) = (10_000_u32, 7, Transport::Ud);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("nodes") => {
                let text = parser.value()?.string()?;
                nodes = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            Long("sockets") => sockets = parser.value()?.parse()?,
            Long("rounds") => rounds = parser.value()?.parse()?,
            Long("group") => group = parser.value()?.parse()?,
            Long("rc") => transport = Transport::Rc(RcLayout::Code),
            Value(value) => number = Some(value.parse::<u32>()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let number = number.ok_or("usage: published_rounds NUMBER --nodes A,B,...")?;
    let roles = Roles::new(sockets, nodes.len() as u32, 1).ok_or("no nodes")?;
    let node = roles
        .node(number)
        .ok_or("there is no leader of this number")?;
    let own = nodes[node as usize];
    let roce = RoceSocket::open(own, queue_pair(number))?;
    let plain = UdpSocket::bind((own, recovery_port(number, sockets)))?;
    plain.set_nonblocking(true)?;
    let mut agreement = Agreement::open(nodes[0], number, roles.leaders())?;
    let config = LeaderConfig {
        roles,
        rank: number,
        group,
        transport,
        nodes: nodes.clone(),
        give_up: Span::from_ms(2000),
        overdue: Span::from_ms(1000),
    };
    // All have opened their sockets.
    agreement.gather(&[0; Terms::SIZE])?;
    let terms = Terms::refused(raddle_offload::published::Refusal::NoAnswer);
    let mut leader = Leader::new(clock::now(), config)?;
    let (leader, terms) = match set_up(&mut leader, &roce, &mut agreement)? {
        Some(terms) => (Some(leader), terms),
        None => (None, terms),
    };
    let mut report = serde_json::json!({
        "leader": number,
        "fail_cause": terms.fail_cause,
        "local": terms.local,
        "computing": terms.computing,
    });
    if let Some(leader) = leader {
        let members = (0..roles.leaders()).map(|leader| {
            let node = roles.node(leader).unwrap_or(0) as usize;
            SocketAddrV4::new(nodes[node], recovery_port(leader, sockets))
        });
        let recovery = RecoveryConfig {
            job: 1,
            key: JobKey::new([0; 16]),
            group: u32::from(group),
            member: number,
            members: members.collect(),
            retry: Span::from_ms(2),
            give_up: Span::from_ms(10_000),
        };
        let mut endpoint = Endpoint::new(leader, recovery);
        let ran = run(
            &mut endpoint,
            &roce,
            &plain,
            number,
            roles.leaders(),
            rounds,
        )?;
        for (key, value) in ran {
            report[key] = value;
        }
        // All have all results; then the masters end the group.
        agreement.gather(&[0; Terms::SIZE])?;
        endpoint.kill();
        let mut buffer = [0; FRAME];
        while let Some((to, length)) = endpoint.poll_frame(&mut buffer) {
            roce.send(to, &buffer[..length])?;
        }
    }
    println!("{report}");
    if report["wrong"].as_u64() > Some(0) {
        return Err("sums are wrong".into());
    }
    Ok(())
}

fn recovery_port(leader: u32, sockets: u32) -> u16 {
    RECOVERY_PORT + (leader % sockets) as u16
}

/// Asks, answers and agrees; nothing if there is to be no offload.
fn set_up(
    leader: &mut Leader,
    roce: &RoceSocket,
    agreement: &mut Agreement,
) -> Result<Option<Terms>> {
    let until = |leader: &mut Leader, done: fn(Stage) -> bool| -> Result<()> {
        let mut buffer = [0; FRAME];
        while !done(leader.stage()) {
            while let Some((to, length)) = leader.poll_transmit(&mut buffer) {
                roce.send(to, &buffer[..length])?;
            }
            while let Some(length) = roce.receive(&mut buffer)? {
                leader.handle_frame(clock::now(), &buffer[..length]);
            }
            leader.handle_timeout(clock::now());
            wait_readable([roce.as_fd()], Some(Duration::from_millis(1)))?;
        }
        Ok(())
    };
    let master = leader.is_master();
    if master {
        until(leader, |stage| stage != Stage::Asking)?;
    }
    let mut buffer = [0; FRAME];
    while let Some((to, length)) = leader.poll_transmit(&mut buffer) {
        roce.send(to, &buffer[..length])?;
    }
    let spine = match leader.stage() {
        Stage::Collected(spine) => spine,
        _ => None,
    };
    let mut said = [0; Terms::SIZE];
    said[..4].copy_from_slice(&spine.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    let all = agreement.gather(&said)?;
    let [a, b, c, d, ..] = all[0];
    let spine = Some(Ipv4Addr::new(a, b, c, d)).filter(|spine| !spine.is_unspecified());
    leader.notify(spine, 0);
    until(leader, |stage| matches!(stage, Stage::Set(_)))?;
    while let Some((to, length)) = leader.poll_transmit(&mut buffer) {
        roce.send(to, &buffer[..length])?;
    }
    let Stage::Set(terms) = leader.stage() else {
        return Ok(None);
    };
    let all = agreement.gather(&terms.to_bytes())?;
    let Some(terms) = all.into_iter().map(Terms::from_bytes).reduce(Terms::join) else {
        return Ok(None);
    };
    leader.open(terms);
    Ok(terms.usable().then_some(terms))
}

/// Runs the rounds; what came out as keys and values. When offload ends, the rest is counted as plain.
fn run(
    endpoint: &mut Endpoint,
    roce: &RoceSocket,
    plain: &UdpSocket,
    number: u32,
    leaders: u32,
    rounds: u32,
) -> Result<Vec<(&'static str, serde_json::Value)>> {
    let (mut wrong, mut offloaded) = (0_u64, 0_u32);
    let mut times = Vec::with_capacity(rounds as usize);
    let begin = Instant::now();
    for round in 0..rounds {
        // Halves of whole numbers far below 2^53: their sum is exact in any order.
        let share = |leader: u32| f64::from(leader) / 2.0 + f64::from(round % 1000);
        let operand = share(number).to_be_bytes();
        let started = Instant::now();
        let begun = endpoint.start(clock::now(), Operation::Sum, DataType::Double, &operand);
        if begun == Started::Plain {
            break;
        }
        drive(endpoint, roce, plain, |endpoint| {
            endpoint.outcome(clock::now()) != CallOutcome::Pending
        })?;
        let CallOutcome::Done(result) = endpoint.outcome(clock::now()) else {
            break;
        };
        offloaded += 1;
        times.push(started.elapsed());
        let expected: f64 = (0..leaders).map(share).sum();
        wrong += u64::from(result != expected.to_be_bytes());
    }
    let seconds = begin.elapsed().as_secs_f64();
    if endpoint.state() != RecoveryState::Running {
        // Others may still ask how far this one is.
        let until = Instant::now() + Duration::from_millis(300);
        drive(endpoint, roce, plain, |_| Instant::now() > until)?;
    }
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(times.len() * part / 100)
            .map(Duration::as_secs_f64)
    };
    let us = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e6);
    Ok(vec![
        ("rounds", offloaded.into()),
        ("plain", (rounds - offloaded).into()),
        ("wrong", wrong.into()),
        (
            "us_per_round",
            (seconds * 1e6 / f64::from(offloaded.max(1))).into(),
        ),
        ("median_us", us(at(50)).into()),
        ("p99_us", us(at(99)).into()),
    ])
}

/// Drives an endpoint over both sockets until `done`.
fn drive(
    endpoint: &mut Endpoint,
    roce: &RoceSocket,
    plain: &UdpSocket,
    done: impl Fn(&Endpoint) -> bool,
) -> Result<()> {
    let mut buffer = [0; FRAME];
    let mut idle = Instant::now();
    loop {
        while let Some((to, length)) = endpoint.poll_frame(&mut buffer) {
            roce.send(to, &buffer[..length])?;
        }
        while let Some((to, length)) = endpoint.poll_transmit(&mut buffer) {
            // A host that is gone is one that does not answer.
            let _ = plain.send_to(&buffer[..length], to);
        }
        if done(endpoint) {
            return Ok(());
        }
        let mut came = false;
        while let Some(length) = roce.receive(&mut buffer)? {
            endpoint.handle_frame(clock::now(), &buffer[..length]);
            came = true;
        }
        while let Ok((length, _)) = plain.recv_from(&mut buffer) {
            endpoint.handle_packet(clock::now(), &buffer[..length]);
            came = true;
        }
        if came {
            idle = Instant::now();
            continue;
        }
        if endpoint
            .poll_timeout()
            .is_some_and(|due| due <= clock::now())
        {
            endpoint.handle_timeout(clock::now());
        }
        if idle.elapsed() < Duration::from_micros(50) {
            thread::yield_now();
        } else {
            wait_readable([roce.as_fd()], Some(Duration::from_millis(1)))?;
        }
    }
}

/// What plain MPI does for leaders: everybody says 16 bytes and hears what all have said.
struct Agreement {
    /// Leader 0: the others, by number from 1. Others: leader 0.
    streams: Vec<TcpStream>,
    number: u32,
    leaders: usize,
}

impl Agreement {
    fn open(root: Ipv4Addr, number: u32, leaders: u32) -> Result<Self> {
        let leaders = leaders as usize;
        let mut streams = Vec::new();
        if number == 0 {
            let listener = TcpListener::bind((root, AGREE_PORT))?;
            let mut found: Vec<Option<TcpStream>> = (1..leaders).map(|_| None).collect();
            while found.iter().any(Option::is_none) {
                let (mut stream, _) = listener.accept()?;
                let mut who = [0; 4];
                stream.read_exact(&mut who)?;
                let place = u32::from_be_bytes(who) as usize;
                *found.get_mut(place - 1).ok_or("a leader too many")? = Some(stream);
            }
            streams.extend(found.into_iter().flatten());
        } else {
            let to = SocketAddr::from((root, AGREE_PORT));
            let limit = Instant::now() + Duration::from_secs(10);
            let mut stream = loop {
                match TcpStream::connect_timeout(&to, Duration::from_secs(1)) {
                    Ok(stream) => break stream,
                    Err(error) if Instant::now() > limit => return Err(error.into()),
                    Err(_) => thread::sleep(Duration::from_millis(20)),
                }
            };
            stream.write_all(&number.to_be_bytes())?;
            streams.push(stream);
        }
        Ok(Self {
            streams,
            number,
            leaders,
        })
    }

    fn gather(&mut self, own: &[u8; Terms::SIZE]) -> Result<Vec<[u8; Terms::SIZE]>> {
        let mut all = vec![[0; Terms::SIZE]; self.leaders];
        if self.number == 0 {
            all[0] = *own;
            for (place, stream) in all[1..].iter_mut().zip(&mut self.streams) {
                stream.read_exact(place)?;
            }
            for stream in &mut self.streams {
                stream.write_all(all.as_flattened())?;
            }
        } else {
            self.streams[0].write_all(own)?;
            self.streams[0].read_exact(all.as_flattened_mut())?;
        }
        Ok(all)
    }
}
