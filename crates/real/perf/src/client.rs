//! The client: agrees with the server on rails and measures.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs},
    thread,
    time::{Duration, Instant},
};

use raddle_host::{
    clock::epoch,
    interfaces::{self, Interface},
    rails::Node,
};
use raddle_offload::switch::SiteSecret;
use raddle_rails::Config;
use raddle_units::{BitRate, Bytes, Span};
use raddle_wire::rails::MAX_RAILS;

use crate::{
    Failure, PORT,
    control::{self, Answer, Lines, PATIENCE, PolicyName, Request, SplitName, Summary, VERSION},
    goodput::{Load, Stream},
    job_key,
    measure::{self, Echo},
    report::{GoodputPart, Report, Travel},
    screen::Screen,
    server::hold,
};

/// How long a server may take to listen, and how often to look.
const STARTING: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(50);

/// A measurement as it was asked for.
pub(crate) struct Run {
    pub peer: String,
    /// Names of interfaces; empty: all that reach the peer.
    pub rails: Vec<String>,
    /// One for all rails, or one for each.
    pub rates: Vec<BitRate>,
    pub policy: PolicyName,
    pub split: SplitName,
    pub scheme: String,
    pub load: Load,
    /// How latency is measured.
    pub echo: Echo,
    pub secret: Option<SiteSecret>,
    pub spin: Span,
    /// Time without an answer on any rail after which it is an error.
    pub give_up: Span,
}

impl Run {
    /// Measures goodput, then latency, and prints each when it is there.
    ///
    /// # Errors
    /// An interface that does not exist or has no peer in its network, a host that cannot be reached or runs no server, a
    /// request that the server refuses, a connection that fails, a message with wrong bytes, or an output that cannot be written.
    pub(crate) fn measure(&self, screen: &mut Screen) -> Result<Report, Failure> {
        let interfaces = self.interfaces()?;
        screen.begin(&format!("looking for {}", self.peer));
        let stream = self.connect()?;
        let mut lines = Lines::new(&stream, PATIENCE);
        let (mut node, used) = self.open(&stream, &mut lines, &interfaces)?;
        let mut messages = Stream::new(&mut node, self.load);
        let goodput = messages.measure(self.spin, screen);
        let goodput = GoodputPart::new(self.policy, self.split, self.load.bytes, &used, &goodput?);
        screen.print(&goodput)?;
        let sent = messages.finish(self.spin, screen)?;
        let latency = measure::latency(&mut node, self.echo, screen)?;
        let sent = sent + latency.messages;
        let latency = (&latency).into();
        screen.print(&latency)?;
        stream.shutdown(Shutdown::Write).map_err(Failure::system)?;
        let summary: Summary = lines.answer().map_err(|error| self.blame(&error))?;
        if summary.messages != sent {
            let got = summary.messages;
            return Err(Failure::system(format!(
                "{sent} messages were sent, but {got} arrived: please report this"
            )));
        }
        let travel = Travel::new(&node, sent);
        screen.print(&travel)?;
        Ok(Report {
            goodput,
            latency,
            travel,
        })
    }

    /// The interfaces that were named, or all that may do.
    fn interfaces(&self) -> Result<Vec<Interface>, Failure> {
        let all = interfaces::list().map_err(Failure::system)?;
        if self.rails.is_empty() {
            let usable = all.into_iter().filter(|one| !one.address.is_loopback());
            return Ok(usable.collect());
        }
        let named = self.rails.iter().map(|name| {
            let found = all.iter().find(|one| one.name == *name);
            found.cloned().ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
                Failure::input(format!(
                    "there is no interface {name} that is up and has an IPv4 address\n  hint: there are {}",
                    names.join(", ")
                ))
            })
        });
        named.collect()
    }

    fn connect(&self) -> Result<TcpStream, Failure> {
        let unknown = |why: String| {
            Failure::system(format!(
                "{}: {why}\n  hint: --peer takes the name or the address of a host that runs `raddle-perf serve`",
                self.peer
            ))
        };
        let resolved = if self.peer.contains(':') {
            self.peer.to_socket_addrs()
        } else {
            (self.peer.as_str(), PORT).to_socket_addrs()
        };
        let mut addresses = resolved.map_err(|error| unknown(error.to_string()))?;
        let address = addresses
            .find(SocketAddr::is_ipv4)
            .ok_or_else(|| unknown("no IPv4 address".to_owned()))?;
        let opened = connect_while_it_starts(&address).and_then(|stream| {
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        opened.map_err(|error| {
            Failure::system(format!(
                "{} ({address}) cannot be reached: {error}\n  hint: run `raddle-perf serve` there",
                self.peer
            ))
        })
    }

    /// Agrees with the server; gives the node and the interfaces of its rails.
    fn open(
        &self,
        mut stream: &TcpStream,
        lines: &mut Lines<'_>,
        interfaces: &[Interface],
    ) -> Result<(Node, Vec<Interface>), Failure> {
        if interfaces.len() > MAX_RAILS {
            return Err(Failure::input(format!(
                "{} interfaces, and {MAX_RAILS} rails at most: name them with --rails",
                interfaces.len()
            )));
        }
        let held: Result<Vec<_>, _> = interfaces.iter().map(hold).collect();
        let (held, rails): (Vec<_>, Vec<_>) = held.map_err(Failure::system)?.into_iter().unzip();
        let random = || epoch().map_err(Failure::system);
        let request = Request {
            version: VERSION,
            job: random()?,
            secret: self.secret.is_some(),
            rates: match self.rates.as_slice() {
                [one] => vec![*one; rails.len()],
                rates => rates.to_vec(),
            },
            rails,
            policy: self.policy,
            split: self.split,
            scheme: self.scheme.clone(),
            size: Bytes(self.load.bytes.max(self.echo.bytes)),
            check: self.load.check,
        };
        request.check().map_err(Failure::input)?;
        control::write(&mut stream, &request).map_err(|error| self.blame(&error))?;
        let answer: Answer = lines.answer().map_err(|error| self.blame(&error))?;
        answer.check(&request).map_err(|error| self.blame(&error))?;
        let used = self.used(interfaces, &answer)?;
        let key = job_key(self.secret.as_ref(), request.job);
        let (mut config, addresses): (Config, _) = request.connection(&answer, 0, key, random()?);
        config.give_up = self.give_up;
        drop(held);
        let node = Node::open(config, &addresses).map_err(Failure::input)?;
        Ok((node, used))
    }

    /// The interfaces for which the server has one in the same network.
    fn used(&self, interfaces: &[Interface], answer: &Answer) -> Result<Vec<Interface>, Failure> {
        let mut used = Vec::new();
        for (interface, end) in interfaces.iter().zip(&answer.rails) {
            if end.is_some() {
                used.push(interface.clone());
            } else if !self.rails.is_empty() {
                return Err(Failure::system(format!(
                    "rail {}: {} has no interface in the network of {}",
                    interface.name, self.peer, interface.address
                )));
            }
        }
        if used.is_empty() {
            return Err(Failure::system(format!(
                "{} has no interface in a network of this host",
                self.peer
            )));
        }
        Ok(used)
    }

    /// An error that the server said or that its lines have.
    fn blame(&self, error: &control::LineError) -> Failure {
        Failure::system(format!("{}: {error}", self.peer))
    }
}

/// Connects, also to a server that is started at the same time.
fn connect_while_it_starts(address: &SocketAddr) -> io::Result<TcpStream> {
    let end = Instant::now() + STARTING;
    loop {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < end =>
            {
                thread::sleep(AGAIN);
            }
            outcome => return outcome,
        }
    }
}
