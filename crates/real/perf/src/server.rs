//! The server: a thread per client.

use std::{
    io::{self, Read},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::SyncSender,
    },
    thread,
    time::Duration,
};

use raddle_host::{
    clock::epoch,
    interfaces::{self, Interface},
    options::lacks_room,
    rails::{Node, OpenError},
};
use raddle_offload::switch::SiteSecret;
use raddle_units::{Span, many};
use thiserror::Error;

use crate::{
    control::{Answer, End, LineError, Lines, PATIENCE, Refusal, Request, Summary, write},
    error::MeasureError,
    job_key,
    measure::{self, Service},
    waiting::{PLACES, Waiting},
};

/// Clients at once.
const MOST_CLIENTS: usize = 16;
/// How long a client may keep its place and send nothing.
const IDLE: Span = Span::from_ms(30_000);
/// How long to wait when the system has no more descriptors or threads.
const PAUSE: Duration = Duration::from_millis(100);

/// What all clients share.
pub(crate) struct Server {
    /// The site's, if there is one.
    pub secret: Option<SiteSecret>,
    /// How long to look for packets before sleeping.
    pub spin: Span,
    /// Clients that are being served.
    pub clients: AtomicUsize,
    /// Connections whose request has not come.
    pub waiting: Waiting,
    /// Takes lines for who runs the server. Nobody waits until they are read.
    pub lines: SyncSender<String>,
}

/// A client's place, which is free when this is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug, Error)]
enum ServeError {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("the server already measures with {MOST_CLIENTS} clients; try again later")]
    Busy,
    #[error(
        "no request came before newer connections needed its place; the server has {PLACES} of them"
    )]
    GaveWay,
    #[error("one side has --secret-file and the other has not; both need the same")]
    Secret,
    #[error("the system has no randomness: {0}")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

impl Server {
    /// Serves all clients that come.
    pub(crate) fn run(self, listener: &TcpListener) -> ! {
        let server = Arc::new(self);
        loop {
            let outcome = listener.accept().and_then(|(stream, from)| {
                let (server, stream) = (Arc::clone(&server), Arc::new(stream));
                thread::Builder::new().spawn(move || server.connection(&stream, from))
            });
            if let Err(error) = outcome
                && error.kind() != io::ErrorKind::ConnectionAborted
            {
                server.say(format!("a connection cannot be taken: {error}"));
                // There are too many threads where one cannot be made now.
                if lacks_room(&error) || error.kind() == io::ErrorKind::WouldBlock {
                    server.waiting.make_room();
                }
                thread::sleep(PAUSE);
            }
        }
    }

    fn say(&self, line: String) {
        // Lines that nobody reads are left out.
        let _ = self.lines.try_send(line);
    }

    /// A connection from its begin to its end.
    fn connection(&self, stream: &Arc<TcpStream>, from: SocketAddr) {
        match self.client(stream, from) {
            Ok(messages) => self.say(format!("{from}: {messages} messages")),
            Err(error) => {
                let text = error.to_string();
                self.say(format!("{from}: {text}"));
                // It may be gone.
                let _ = write(&mut &**stream, &Refusal { error: text });
            }
        }
    }

    /// A client's request, for which it holds a place only as long as nobody else needs that.
    fn request(&self, stream: &Arc<TcpStream>, from: IpAddr) -> Result<Request, ServeError> {
        self.waiting.enter(from, stream);
        let request = Lines::new(stream, PATIENCE).request();
        if !self.waiting.leave(stream) && request.is_err() {
            return Err(ServeError::GaveWay);
        }
        Ok(request?)
    }

    /// A place among the clients that are served.
    fn place(&self) -> Result<Place<'_>, ServeError> {
        let others = self.clients.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.clients);
        if others < MOST_CLIENTS {
            Ok(place)
        } else {
            Err(ServeError::Busy)
        }
    }

    /// A client from its request to its summary; gives the messages that came.
    fn client(&self, stream: &Arc<TcpStream>, from: SocketAddr) -> Result<u64, ServeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = self.request(stream, from.ip())?;
        let _place = self.place()?;
        if request.secret != self.secret.is_some() {
            return Err(ServeError::Secret);
        }
        // Loopbacks have equal addresses on all hosts, and reach the client if it is on this one.
        let is_here = stream.peer_addr()?.ip().is_loopback();
        let mut interfaces = interfaces::list()?;
        interfaces.retain(|one| is_here || !one.address.is_loopback());
        let (answer, held) = answer(&request, &interfaces)?;
        if held.is_empty() {
            // The client sees that there is nothing to measure with, and says so.
            write(&mut &**stream, &answer)?;
            return Ok(0);
        }
        let key = job_key(self.secret.as_ref(), request.job);
        let (config, rails) = request.connection(&answer, 1, key, epoch()?);
        drop(held);
        let mut node = Node::open(config, &rails)?;
        write(&mut &**stream, &answer)?;
        let count = many(rails.len(), "rail");
        self.say(format!("{from}: measures over {count}"));
        let messages = self.measure(&mut node, &request, stream)?;
        write(&mut &**stream, &Summary { messages })?;
        Ok(messages)
    }

    /// Serves until the client ends its side of the control connection.
    fn measure(
        &self,
        node: &mut Node,
        request: &Request,
        stream: &TcpStream,
    ) -> Result<u64, ServeError> {
        stream.set_read_timeout(None)?;
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // The client says nothing more: a byte, an error and the end are all its end.
                let _ = (&mut &*stream).read(&mut [0]);
                ended.store(true, Ordering::Release);
            });
            let service = Service {
                longest: request.size.0,
                check: request.check,
                spin: self.spin,
                idle: IDLE,
            };
            let outcome = measure::serve(node, service, &ended);
            if outcome.is_err() {
                // Wakes the reader, which would wait for a client that may be gone.
                let _ = stream.shutdown(std::net::Shutdown::Read);
            }
            Ok(outcome?)
        })
    }
}

/// The server's end of each rail, and the sockets that hold its ports.
fn answer(request: &Request, interfaces: &[Interface]) -> io::Result<(Answer, Vec<UdpSocket>)> {
    let mut held = Vec::new();
    let mut rails = Vec::new();
    for client in &request.rails {
        let ours = interfaces
            .iter()
            .find(|one| one.reaches(*client.address.ip()));
        rails.push(match ours {
            Some(ours) => {
                let (socket, end) = hold(ours)?;
                held.push(socket);
                Some(end)
            }
            None => None,
        });
    }
    Ok((Answer { rails }, held))
}

/// This side's end on an interface, which holds as long as the socket is kept.
///
/// # Errors
/// The address has no free port, or is the interface's no longer.
pub(crate) fn hold(interface: &Interface) -> io::Result<(UdpSocket, End)> {
    let (socket, address) = interface.hold()?;
    let mtu = interface.mtu;
    Ok((socket, End { address, mtu }))
}

/// Listens on all addresses.
///
/// # Errors
/// The port is taken, or below 1024 and the caller may not have it.
pub(crate) fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
}
