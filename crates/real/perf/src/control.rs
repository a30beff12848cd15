//! What client and server agree on before they measure: lines of JSON over TCP.
//!
//! The client sends a [`Request`], the server an [`Answer`]; then messages go over the rails. When the client has ended its side of
//! the control connection, the server says in a [`Summary`] what came. Each of the server's lines may be a [`Refusal`] instead.

use std::{
    io::{self, BufRead, BufReader, Read},
    net::{SocketAddrV4, TcpStream},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use raddle_host::rails::RailAddress;
use raddle_rails::{Config, Policy, Segmentation};
use raddle_units::{BitRate, Bytes, many};
use raddle_wire::{
    native::JobKey,
    rails::{DATA_OVERHEAD, MAX_RAILS},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The version of these lines. Both sides must have the same.
pub(crate) const VERSION: u32 = 2;
/// The longest message that is measured.
pub(crate) const LONGEST: Bytes = Bytes(256 << 20);
/// How long a line of the other side may take to its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a line at most.
const LINE: u64 = 16 << 10;
/// IPv4's and UDP's headers.
const HEADERS: u32 = 28;
/// The least MTU: room for headers and for a segment that is worth them.
const LEAST_MTU: u32 = 200;

/// Which rails a message takes (docs/concepts/rails.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PolicyName {
    /// The rail with the number of its source port; ports take turns, as many as there are rails
    Static,
    /// The client sends on the first half of the rails, the server on the others
    Unidirectional,
    /// The rails that are free at both ends
    Dynamic,
}

/// How a message is cut (docs/concepts/rails.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SplitName {
    /// One equal piece for each rail
    Equal,
    /// Segment by segment, by latency, bandwidth and backlog of each rail, so that all rails end together
    Weighted,
}

/// One end of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Address of the interface, and the UDP port.
    pub address: SocketAddrV4,
    /// Bytes of the interface's longest IPv4 packet.
    pub mtu: u32,
}

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// At random, so that packets of two runs are not mixed up.
    pub job: u32,
    /// Whether the job's key comes from a site's secret.
    pub secret: bool,
    /// The client's ends, 1 to 8.
    pub rails: Vec<End>,
    /// Upper bound of each rail's rate.
    pub rates: Vec<BitRate>,
    /// Which rails a message takes.
    pub policy: PolicyName,
    /// How it is cut.
    pub split: SplitName,
    /// Congestion control of each rail.
    pub scheme: String,
    /// Bytes of a message, 1 to [`LONGEST`].
    pub size: Bytes,
    /// Whether the server looks at every byte of messages that stay.
    pub check: bool,
}

/// The server's ends, one for each rail of the request; `None` where it has no interface in the same network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub rails: Vec<Option<End>>,
}

/// What came at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub messages: u64,
}

/// Why the server does not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub error: String,
}

/// What is wrong with a line.
#[derive(Debug, Error)]
pub(crate) enum LineError {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("the control connection ended early")]
    Ended,
    #[error("a control line of more than {LINE} bytes")]
    Long,
    #[error("the other side sent no complete control line in time")]
    Late,
    #[error(
        "the control line is not understood ({0}); is raddle-perf at both ends, of one version?"
    )]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the client speaks version {found} of the control lines, the server {VERSION}; install the same raddle-perf"
    )]
    Version { found: u32 },
    #[error("{count} rails: 1 to {MAX_RAILS} are possible")]
    Rails { count: usize },
    #[error("{} for {}", many(*rates, "rate"), many(*rails, "rail"))]
    Rates { rates: usize, rails: usize },
    #[error("messages of {size}: 1 B to {LONGEST} are possible")]
    Size { size: Bytes },
    #[error("rail {rail} has an MTU of {mtu} bytes: at least {LEAST_MTU} are needed")]
    Mtu { rail: usize, mtu: u32 },
}

/// The lines of the other side.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    reader: BufReader<Until<'a>>,
    patience: Duration,
}

/// Reads from a connection until a time, however slowly the bytes come.
#[derive(Debug)]
struct Until<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

impl<'a> Lines<'a> {
    /// Those that come on a connection, each within `patience` from when it is asked for.
    pub(crate) fn new(stream: &'a TcpStream, patience: Duration) -> Self {
        let end = Instant::now();
        let reader = BufReader::new(Until { stream, end });
        Self { reader, patience }
    }

    /// The client's line, checked.
    ///
    /// # Errors
    /// The connection ended, or no complete line came in time; the line is too long, not understood, of another version,
    /// or asks for what is not possible.
    pub(crate) fn request(&mut self) -> Result<Request, LineError> {
        Request::read(self.next())
    }

    /// The server's next line.
    ///
    /// # Errors
    /// The server refused the request, the connection ended, no complete line came in time, or the line is too long or not
    /// understood.
    pub(crate) fn answer<T: DeserializeOwned>(&mut self) -> Result<T, LineError> {
        read(self.next())
    }

    fn next(&mut self) -> &mut BufReader<Until<'a>> {
        self.reader.get_mut().end = Instant::now() + self.patience;
        &mut self.reader
    }
}

/// A line of the other side, without its end.
fn line(from: &mut impl BufRead) -> Result<String, LineError> {
    let mut text = Vec::new();
    let read = from.take(LINE).read_until(b'\n', &mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => LineError::Late,
        _ => error.into(),
    })?;
    match text.pop() {
        Some(b'\n') => Ok(String::from_utf8_lossy(&text).into_owned()),
        Some(_) if text.len() as u64 + 1 == LINE => Err(LineError::Long),
        _ => Err(LineError::Ended),
    }
}

/// A line to the other side.
pub(crate) fn write<T: Serialize>(to: &mut impl io::Write, value: &T) -> Result<(), LineError> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(to.write_all(&text)?)
}

/// A line of the server's.
fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<T, LineError> {
    let text = line(from)?;
    if let Ok(Refusal { error }) = serde_json::from_str(&text) {
        return Err(LineError::Refused(error));
    }
    Ok(serde_json::from_str(&text)?)
}

impl Request {
    fn read(from: &mut impl BufRead) -> Result<Self, LineError> {
        /// What every version says.
        #[derive(Deserialize)]
        struct Any {
            version: u32,
        }
        let text = line(from)?;
        let Any { version: found } = serde_json::from_str(&text)?;
        if found != VERSION {
            return Err(LineError::Version { found });
        }
        let request: Self = serde_json::from_str(&text)?;
        request.check()?;
        Ok(request)
    }

    /// Whether all counts and sizes are possible.
    ///
    /// # Errors
    /// The number of rails, the number of rates, a size or an MTU that is not possible.
    pub(crate) fn check(&self) -> Result<(), LineError> {
        let (rails, rates) = (self.rails.len(), self.rates.len());
        if !(1..=MAX_RAILS).contains(&rails) {
            return Err(LineError::Rails { count: rails });
        }
        if rates != rails {
            return Err(LineError::Rates { rates, rails });
        }
        if !(1..=LONGEST.0).contains(&self.size.0) {
            return Err(LineError::Size { size: self.size });
        }
        check_mtus(self.rails.iter().map(Some))
    }

    /// The connection that the request and its answer describe, of the client (`local` 0) or the server (1), and its rails:
    /// those that both have.
    pub(crate) fn connection(
        &self,
        answer: &Answer,
        local: u32,
        key: JobKey,
        epoch: u32,
    ) -> (Config, Vec<RailAddress>) {
        let both = self.rails.iter().zip(&answer.rails).zip(&self.rates);
        let both: Vec<(End, End, BitRate)> = both
            .filter_map(|((client, server), rate)| Some((*client, (*server)?, *rate)))
            .collect();
        let rates = both.iter().map(|(_, _, rate)| *rate).collect();
        let mut config = Config::new(self.job, key, local, 1 - local, epoch, rates);
        let mtus = both
            .iter()
            .map(|(client, server, _)| client.mtu.min(server.mtu));
        let mtu = mtus.min().unwrap_or(LEAST_MTU).min(u32::from(u16::MAX));
        config.segment = (mtu - HEADERS) as u16 - DATA_OVERHEAD as u16;
        config.policy = self.policy.of(local, both.len());
        config.segmentation = match self.split {
            SplitName::Equal => Segmentation::Equal,
            SplitName::Weighted => Segmentation::WaterFill,
        };
        config.scheme.clone_from(&self.scheme);
        let addresses = both.iter().map(|(client, server, _)| match local {
            0 => (client.address, server.address),
            _ => (server.address, client.address),
        });
        let addresses = addresses.map(|(local, peer)| RailAddress { local, peer });
        (config, addresses.collect())
    }
}

impl Answer {
    /// Whether it fits to the request.
    ///
    /// # Errors
    /// Another number of rails than the request has, or an MTU that is too small.
    pub(crate) fn check(&self, request: &Request) -> Result<(), LineError> {
        if self.rails.len() != request.rails.len() {
            let count = self.rails.len();
            return Err(LineError::Rails { count });
        }
        check_mtus(self.rails.iter().map(Option::as_ref))
    }
}

impl PolicyName {
    /// The policy of a side with so many rails.
    fn of(self, local: u32, rails: usize) -> Policy {
        let first = rails.div_ceil(2);
        let send = match local {
            0 => (1_u16 << first) - 1,
            _ => ((1 << rails) - 1) & !((1_u16 << first) - 1),
        };
        match self {
            Self::Static => Policy::Static,
            Self::Unidirectional => Policy::Unidirectional { send: send as u8 },
            Self::Dynamic => Policy::Dynamic,
        }
    }
}

fn check_mtus<'a>(ends: impl Iterator<Item = Option<&'a End>>) -> Result<(), LineError> {
    for (rail, end) in ends.enumerate() {
        if let Some(End { mtu, .. }) = end
            && *mtu < LEAST_MTU
        {
            return Err(LineError::Mtu { rail, mtu: *mtu });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        net::{Ipv4Addr, TcpListener},
        thread,
    };

    use super::*;

    fn end(port: u16, mtu: u32) -> End {
        let address = SocketAddrV4::new([10, 0, 0, 1].into(), port);
        End { address, mtu }
    }

    fn request(rails: usize) -> Request {
        Request {
            version: VERSION,
            job: 7,
            secret: false,
            rails: vec![end(1, 1500); rails],
            rates: vec![BitRate::from_gbps(10); rails],
            policy: PolicyName::Unidirectional,
            split: SplitName::Weighted,
            scheme: "swift".to_owned(),
            size: Bytes(1 << 20),
            check: true,
        }
    }

    fn said(text: &str) -> String {
        let read = Request::read(&mut text.as_bytes());
        read.map_or_else(|error| error.to_string(), |_| "taken".to_owned())
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        write(&mut bytes, &request(8)).unwrap();
        assert_eq!(Request::read(&mut bytes.as_slice()).unwrap(), request(8));
    }

    #[test]
    fn wrong_requests_are_refused_by_name() {
        let with = |change: &dyn Fn(&mut Request)| {
            let mut wrong = request(2);
            change(&mut wrong);
            said(&(serde_json::to_string(&wrong).unwrap() + "\n"))
        };
        assert_eq!(with(&|_| ()), "taken");
        assert!(with(&|wrong| wrong.version = 1).contains("version 1"));
        assert!(with(&|wrong| wrong.rails.clear()).contains("0 rails"));
        assert!(with(&|wrong| wrong.rails = vec![end(1, 1500); 9]).contains("9 rails"));
        assert!(with(&|wrong| wrong.rates.truncate(1)).contains("1 rate for 2 rails"));
        assert!(with(&|wrong| wrong.rails[1].mtu = 199).contains("rail 1 has an MTU of 199"));
        assert!(with(&|wrong| wrong.size = Bytes(0)).contains("messages of 0"));
        assert!(with(&|wrong| wrong.size = Bytes(1 << 40)).contains("are possible"));
        assert!(said("").contains("ended early"));
        assert!(said("{}").contains("ended early"));
        assert!(said("GET / HTTP/1.1\n").contains("not understood"));
        assert!(said("{\"version\": 2}\n").contains("not understood"));
        assert!(said(&"x".repeat(1 << 20)).contains("more than"));
    }

    #[test]
    fn a_line_that_comes_byte_by_byte_ends_in_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let (begun, patience) = (Instant::now(), Duration::from_millis(200));
        let dripping = thread::spawn(move || {
            while begun.elapsed() < 100 * patience && (&slow).write_all(b"x").is_ok() {
                thread::sleep(patience / 20);
            }
        });
        let read = Lines::new(&stream, patience).request();
        let took = begun.elapsed();
        drop(stream);
        dripping.join().unwrap();
        assert!(matches!(read, Err(LineError::Late)), "{read:?}");
        assert!(patience <= took && took < 50 * patience, "{took:?}");
    }

    #[test]
    fn refusals_and_answers_are_told_apart() {
        let read = |text: &str| read::<Answer>(&mut text.as_bytes());
        let refused = read("{\"error\": \"no\"}\n").unwrap_err();
        assert_eq!(refused.to_string(), "no");
        let answer = read("{\"rails\": [null]}\n").unwrap();
        assert_eq!(answer.rails, [None]);
        assert!(answer.check(&request(1)).is_ok());
        assert!(answer.check(&request(2)).is_err());
    }

    #[test]
    fn both_sides_use_the_rails_that_both_have_with_the_least_mtu() {
        let rails = vec![Some(end(2, 9000)), None, Some(end(3, 1400))];
        let (asked, answer) = (request(3), Answer { rails });
        let open = |local| asked.connection(&answer, local, JobKey::new([0; 16]), 1);
        let ((client, ours), (server, theirs)) = (open(0), open(1));
        assert_eq!((client.rails.len(), ours.len(), theirs.len()), (2, 2, 2));
        assert_eq!(client.datagram(), 1400 - 28);
        assert_eq!(client.segment, server.segment);
        assert!(
            ours.iter()
                .zip(&theirs)
                .all(|(a, b)| a.local == b.peer && a.peer == b.local)
        );
        assert_eq!(client.policy, Policy::Unidirectional { send: 0b01 });
        assert_eq!(server.policy, Policy::Unidirectional { send: 0b10 });
    }

    #[test]
    fn eight_rails_are_halved() {
        let sends = [0, 1].map(|local| PolicyName::Unidirectional.of(local, 8));
        let [ours, theirs] = [0b0000_1111, 0b1111_0000].map(|send| Policy::Unidirectional { send });
        assert_eq!(sends, [ours, theirs]);
    }
}
