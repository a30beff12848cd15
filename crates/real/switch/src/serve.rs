//! The two sockets at which a switch tells of itself: the status socket and `/metrics`.
//!
//! Nobody may keep others from an answer: a connection has a time for everything that the other side must do, it carries
//! one request, and when there are too many the oldest makes room for the newest. What a request needs is there within
//! milliseconds, so that the oldest of many is one that waits for its client.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fs,
    future::Future,
    io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    task::JoinHandle,
    time,
};

use crate::{control::Handle, lock::Holder, metrics};
use raddle_host::options::lacks_room;

/// How long a client may take to ask, and how long a connection may last.
const CLIENT_PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];
/// Connections of a socket at once.
const CONNECTIONS: usize = 256;
/// Bytes of a request's head, and lines.
const LONGEST_HEAD: (usize, usize) = (16 << 10, 64);
/// Pause when nothing can be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a status socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StatusSocketError {
    /// Somebody answers there.
    #[error(
        "the status socket {path} belongs to {holder}\n  hint: end that switch first, or give one of both another `name` or `status`"
    )]
    Taken {
        /// The path.
        path: String,
        /// Who has it.
        holder: String,
    },
    /// What is there is not ours to remove.
    #[error(
        "{path} exists and is not a socket\n  hint: write another path for `status`, or remove what is there"
    )]
    NoSocket {
        /// The path.
        path: String,
    },
    /// What the system said.
    #[error("the status socket {path}: {cause}")]
    System {
        /// The path.
        path: String,
        /// Its words.
        cause: io::Error,
    },
}

/// Takes the path of a status socket; what a killed switch left there is removed.
///
/// # Errors
/// Another switch answers there, the path is not a socket, its folder cannot be made or written, or the path is too long for a
/// socket.
pub async fn open_status(path: &Path) -> Result<UnixListener, StatusSocketError> {
    let named = || path.display().to_string();
    let system = |cause| StatusSocketError::System {
        path: named(),
        cause,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(system)?;
    }
    match fs::symlink_metadata(path) {
        Ok(about) if !about.file_type().is_socket() => {
            return Err(StatusSocketError::NoSocket { path: named() });
        }
        Ok(_) => {
            // Any other answer comes from somebody who is alive, though perhaps busy.
            let alive = |error: &io::Error| error.kind() != io::ErrorKind::ConnectionRefused;
            if UnixStream::connect(path)
                .await
                .as_ref()
                .err()
                .is_none_or(alive)
            {
                let holder = Holder::of(path).await.to_string();
                let path = named();
                return Err(StatusSocketError::Taken { path, holder });
            }
            fs::remove_file(path).map_err(system)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(system(error)),
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(system)?;
    Ok(listener)
}

/// Gives the status as one line of JSON to whoever connects.
pub fn serve_status(listener: UnixListener, handle: Handle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut connections = Connections::default();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => connections.admit(tell_status(stream, handle.clone())),
                Err(error) => connections.refused(&error).await,
            }
        }
    })
}

async fn tell_status(mut stream: UnixStream, handle: Handle) {
    let Some(status) = handle.status().await else {
        return;
    };
    match serde_json::to_string(&status) {
        // Who went away does not want it.
        Ok(text) => drop(stream.write_all(format!("{text}\n").as_bytes()).await),
        Err(error) => tracing::error!(%error, "the status cannot be written"),
    }
}

/// Opens a socket for `/metrics`, in the runtime that serves it.
///
/// # Errors
/// The port is taken or below 1024 and the caller may not have it, the address is not this host's, or no descriptor is left.
pub fn open_metrics(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves `/metrics` over HTTP.
pub fn serve_metrics(listener: TcpListener, handle: Handle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut connections = Connections::default();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => connections.admit(tell_metrics(stream, handle.clone())),
                Err(error) => connections.refused(&error).await,
            }
        }
    })
}

async fn tell_metrics(stream: TcpStream, handle: Handle) {
    let service = service_fn(|request| {
        let handle = handle.clone();
        async move { Ok::<_, Infallible>(answer(&request, &handle).await) }
    });
    let (bytes, lines) = LONGEST_HEAD;
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_PATIENCE[0])
        .max_buf_size(bytes)
        .max_headers(lines)
        .keep_alive(false)
        // Who has said everything may close its side before it has the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // Errors are the client's: it went away, or does not speak HTTP.
    let _ = connection.await;
}

/// The connections of a socket, from the oldest to the newest.
#[derive(Debug, Default)]
struct Connections {
    open: VecDeque<JoinHandle<()>>,
}

impl Connections {
    /// Serves one more.
    fn admit(&mut self, serve: impl Future<Output = ()> + Send + 'static) {
        self.open.retain(|connection| !connection.is_finished());
        if self.open.len() >= CONNECTIONS {
            self.end_oldest();
        }
        self.open.push_back(tokio::spawn(async move {
            // Who takes longer is cut off.
            let _ = time::timeout(CLIENT_PATIENCE[1], serve).await;
        }));
    }

    /// A connection was not accepted. Where the system has no room for it, one that is there ends.
    async fn refused(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionAborted {
            return;
        }
        self.open.retain(|connection| !connection.is_finished());
        if lacks_room(error) {
            self.end_oldest();
        }
        time::sleep(PAUSE).await;
    }

    fn end_oldest(&mut self) {
        if let Some(oldest) = self.open.pop_front() {
            oldest.abort();
        }
    }
}

async fn answer<B>(request: &Request<B>, handle: &Handle) -> Response<Full<Bytes>> {
    let plain = |status, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "see /metrics\n".to_owned());
    }
    let Some(Ok(text)) = handle.status().await.map(metrics::text) else {
        let text = "the switch does not answer\n".to_owned();
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let mut response = plain(StatusCode::OK, text);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
