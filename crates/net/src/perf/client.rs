//! The client: agrees with the server on rails and measures.

use std::{
    io::BufReader,
    net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs},
    time::Duration,
};

use raddle_net::{
    daemon::epoch,
    interfaces::{self, Interface},
    rails::Node,
};
use raddle_offload::switch::SiteSecret;
use raddle_transport::rails::Config;
use raddle_units::{BitRate, Bytes, Span};
use raddle_wire::rails::MAX_RAILS;

use crate::{
    Failure, PORT,
    control::{self, Answer, PolicyName, Request, SplitName, Summary, VERSION},
    goodput::{Load, Stream, Told},
    job_key, measure,
    report::Report,
    server::hold,
};

/// How long the server may take over a line.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// Messages whose latency is measured.
    pub count: usize,
    pub secret: Option<SiteSecret>,
    pub spin: Span,
    /// Time without an answer on any rail after which it is an error.
    pub give_up: Span,
    /// Takes what is told meanwhile.
    pub tell: fn(&Told),
}

impl Run {
    /// Measures goodput, then latency.
    ///
    /// # Errors
    /// What is wrong with the command line, the peer, or the connection.
    pub(crate) fn measure(&self) -> Result<Report, Failure> {
        let interfaces = self.interfaces()?;
        let stream = self.connect()?;
        let mut lines = BufReader::new(&stream);
        let (mut node, used) = self.open(&stream, &mut lines, &interfaces)?;
        let messages = Stream::new(&mut node, self.load, self.tell);
        let goodput = messages.run(self.spin).map_err(Failure::system)?;
        let latency = measure::latency(&mut node, self.load.bytes, self.count, self.spin);
        let latency = latency.map_err(Failure::system)?;
        stream.shutdown(Shutdown::Write).map_err(Failure::system)?;
        let summary: Summary = control::read(&mut lines).map_err(|error| self.blame(&error))?;
        let sent = goodput.messages + latency.messages;
        if summary.messages != sent {
            let got = summary.messages;
            return Err(Failure::system(format!(
                "{sent} messages were sent and {got} came: please report this"
            )));
        }
        Ok(Report::new(&node, self, &used, goodput, latency))
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
        let opened = TcpStream::connect_timeout(&address, PATIENCE).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
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
        lines: &mut BufReader<&TcpStream>,
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
            size: Bytes(self.load.bytes),
            check: self.load.check,
        };
        request.check().map_err(Failure::input)?;
        control::write(&mut stream, &request).map_err(|error| self.blame(&error))?;
        let answer: Answer = control::read(lines).map_err(|error| self.blame(&error))?;
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
