//! Questions from outside: the status socket and `/metrics`. Each has a thread of its own and asks the switch's thread,
//! which answers between two batches of frames.

use std::{
    convert::Infallible,
    io::{self, Write},
    net::TcpListener,
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender, SyncSender},
    },
    thread,
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

use crate::{metrics, status::Status};

/// How long the switch's thread may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a client may take to ask or to read.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);
/// Connections served at once.
const CONNECTIONS: usize = 32;

/// Asks the switch's thread.
#[derive(Debug, Clone)]
pub struct Handle {
    questions: Sender<SyncSender<Status>>,
    wake: Arc<UnixStream>,
}

/// The switch's end: what is asked, and what wakes it.
#[derive(Debug)]
pub struct Questions {
    /// Where answers go.
    pub questions: Receiver<SyncSender<Status>>,
    /// Readable when there is a question.
    pub wake: UnixStream,
}

/// A handle and the switch's end of it.
///
/// # Errors
/// When the system has no more descriptors.
pub fn channel() -> io::Result<(Handle, Questions)> {
    let (theirs, ours) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    ours.set_nonblocking(true)?;
    let (sender, receiver) = mpsc::channel();
    let handle = Handle {
        questions: sender,
        wake: Arc::new(theirs),
    };
    let questions = Questions {
        questions: receiver,
        wake: ours,
    };
    Ok((handle, questions))
}

impl Handle {
    /// The status, or `None` if the switch does not answer.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.questions.send(sender).ok()?;
        self.wake();
        receiver.recv_timeout(PATIENCE).ok()
    }

    /// Makes the switch's thread look up.
    pub fn wake(&self) {
        // A full pipe will wake it just as well.
        let _ = (&*self.wake).write(&[1]);
    }

    /// A stream that wakes the switch's thread when something is written to it.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }
}

/// Gives the status as one line of JSON to whoever connects.
pub fn serve_status(listener: UnixListener, handle: Handle) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else {
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let _ = stream.set_write_timeout(Some(CLIENT_PATIENCE));
            let Some(status) = handle.status() else {
                continue;
            };
            match serde_json::to_string(&status) {
                // Who went away does not want it.
                Ok(text) => drop(writeln!(stream, "{text}")),
                Err(error) => tracing::error!(%error, "the status cannot be written"),
            }
        }
    });
}

/// Serves `/metrics` over HTTP.
///
/// # Errors
/// When the system has no more descriptors.
pub fn serve_metrics(listener: TcpListener, handle: Handle) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    thread::spawn(move || runtime.block_on(accept(listener, handle)));
    Ok(())
}

async fn accept(listener: tokio::net::TcpListener, handle: Handle) {
    let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(&request, &handle);
                async { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(CLIENT_PATIENCE)
                .serve_connection(TokioIo::new(stream), service);
            // Errors are the client's: it went away, or does not speak HTTP.
            let _ = tokio::time::timeout(6 * CLIENT_PATIENCE, connection).await;
            drop(place);
        });
    }
}

fn answer<B>(request: &Request<B>, handle: &Handle) -> Response<Full<Bytes>> {
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
    let Some(Ok(text)) = handle.status().map(metrics::text) else {
        let text = "the switch does not answer\n".to_owned();
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let mut response = plain(StatusCode::OK, text);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
