//! The server: a thread per client.

use std::{
    io::{self, BufReader, Read},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use raddle_net::{
    daemon::epoch,
    interfaces::{self, Interface},
    rails::{Node, OpenError},
};
use raddle_offload::switch::SiteSecret;
use raddle_units::Span;
use thiserror::Error;

use crate::{
    control::{Answer, End, LineError, Refusal, Request, Summary, write},
    job_key,
    measure::{self, MeasureError},
};

/// How long a client may take over its first line, and over reading one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at once.
const MOST_CLIENTS: usize = 16;

/// What all clients share.
pub(crate) struct Server {
    /// The site's, if there is one.
    pub secret: Option<SiteSecret>,
    /// How long to look for packets before sleeping.
    pub spin: Span,
    /// Clients that are being served.
    pub clients: AtomicUsize,
}

#[derive(Debug, Error)]
enum ServeError {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("the server already measures with {MOST_CLIENTS} clients; try again later")]
    Busy,
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
    /// Serves all clients that come. `say` takes lines for who runs the server.
    ///
    /// # Errors
    /// When the system gives no more connections.
    pub(crate) fn run(self, listener: &TcpListener, say: fn(String)) -> io::Result<()> {
        let server = Arc::new(self);
        loop {
            let (stream, from) = match listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                accepted => accepted?,
            };
            let server = Arc::clone(&server);
            thread::Builder::new().spawn(move || {
                let others = server.clients.fetch_add(1, Ordering::AcqRel);
                let outcome = server.client(&stream, others);
                server.clients.fetch_sub(1, Ordering::AcqRel);
                match outcome {
                    Ok(messages) => say(format!("{from}: {messages} messages")),
                    Err(error) => {
                        let text = error.to_string();
                        say(format!("{from}: {text}"));
                        // It may be gone.
                        let _ = write(&mut &stream, &Refusal { error: text });
                    }
                }
            })?;
        }
    }

    /// A client from its request to its summary; gives the messages that came.
    fn client(&self, stream: &TcpStream, others: usize) -> Result<u64, ServeError> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = Request::read(&mut BufReader::new(stream))?;
        if others >= MOST_CLIENTS {
            return Err(ServeError::Busy);
        }
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
            write(&mut &*stream, &answer)?;
            return Ok(0);
        }
        let key = job_key(self.secret.as_ref(), request.job);
        let (config, rails) = request.connection(&answer, 1, key, epoch()?);
        drop(held);
        let mut node = Node::open(config, &rails)?;
        write(&mut &*stream, &answer)?;
        let messages = self.measure(&mut node, &request, stream)?;
        write(&mut &*stream, &Summary { messages })?;
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
            let outcome = measure::serve(node, request.size.0, request.check, self.spin, &ended);
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
/// When there is no free port.
pub(crate) fn hold(interface: &Interface) -> io::Result<(UdpSocket, End)> {
    let (socket, address) = interface.hold()?;
    let mtu = interface.mtu;
    Ok((socket, End { address, mtu }))
}

/// Listens on all addresses.
///
/// # Errors
/// What the system says, such as that the port is taken.
pub(crate) fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
}
