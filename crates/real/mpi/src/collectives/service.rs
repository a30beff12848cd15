//! The thread that keeps a process's groups alive, sets groups up and answers other members while the program computes.
//! It starts with the first group, sleeps until something is due or comes, calls no MPI function, and takes no signal.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::UdpSocket,
    os::fd::{AsRawFd, FromRawFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use raddle_host::{
    clock,
    drive::{MESSAGE, MESSAGES_AT_ONCE},
};
use raddle_units::Time;

use super::{
    attempt::LeaderAttempt,
    link::{self, Link, Retired},
};

/// Groups of freed communicators that still answer others.
const RETIRED: usize = 256;

struct Service {
    /// For messages from member to member, of all groups.
    socket: UdpSocket,
    /// An eventfd: ends the thread's sleep.
    bell: File,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    live: Vec<Arc<Link>>,
    retired: Vec<Retired>,
    attempts: Vec<Arc<LeaderAttempt>>,
    stopped: bool,
}

static SERVICE: Mutex<Option<Arc<Service>>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<Arc<Service>>> {
    SERVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread if need be; gives the port for messages from member to member.
pub(crate) fn start() -> io::Result<u16> {
    let mut current = current();
    if current.is_none() {
        // SAFETY: a system call without pointers; the new descriptor belongs to nobody else.
        let bell = unsafe {
            let descriptor = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(descriptor)
        };
        let service = Arc::new(Service {
            socket: link::open_socket()?,
            bell,
            links: Mutex::default(),
        });
        let inside = Arc::clone(&service);
        without_signals(|| {
            thread::Builder::new()
                .name("raddle".to_owned())
                .spawn(move || inside.run())
        })?;
        *current = Some(service);
    }
    match current.as_ref() {
        Some(service) => Ok(service.socket.local_addr()?.port()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A thread inherits the mask of signals: the program's handlers must run in the program's threads.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised by the calls that fill them.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = body();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}

/// Sets a group up.
pub(crate) fn begin(attempt: Arc<LeaderAttempt>) {
    if let Some(service) = current().as_ref() {
        service.links().attempts.push(attempt);
        service.ring();
    }
}

/// Ends an attempt: its group is not set up.
pub(crate) fn cancel(attempt: &Arc<LeaderAttempt>) {
    attempt.cancel();
    if let Some(service) = current().as_ref() {
        service.links().end(attempt);
    }
}

/// A group is set up: the service keeps it alive.
pub(crate) fn add(attempt: &Arc<LeaderAttempt>, link: Arc<Link>) {
    if let Some(service) = current().as_ref() {
        let mut links = service.links();
        links.end(attempt);
        links.live.push(link);
        drop(links);
        service.ring();
    }
}

/// Wakes the thread: something has to be sent, or is due earlier than before.
pub(crate) fn wake() {
    if let Some(service) = current().as_ref() {
        service.ring();
    }
}

/// The group is over, or its communicator is freed; others may still ask for its last result.
pub(crate) fn retire(link: &Arc<Link>) {
    let retired = link.leave();
    if let Some(service) = current().as_ref() {
        let mut links = service.links();
        links.live.retain(|known| !Arc::ptr_eq(known, link));
        links.retired.push(retired);
        if links.retired.len() > RETIRED {
            links.retired.remove(0);
        }
    }
}

/// All ranks have what these groups computed: nobody asks for it any more.
pub(crate) fn forget(links: &[Arc<Link>]) {
    if let Some(service) = current().as_ref() {
        let forgotten = |known: &Retired| links.iter().any(|link| known.was(link));
        service.links().retired.retain(|known| !forgotten(known));
    }
}

/// All ranks are past their last collective: nobody asks any more.
pub(crate) fn stop() {
    if let Some(service) = current().take() {
        let mut links = service.links();
        for link in &links.live {
            link.leave();
        }
        links.stopped = true;
        drop(links);
        service.ring();
    }
}

impl Links {
    fn end(&mut self, attempt: &Arc<LeaderAttempt>) {
        self.attempts.retain(|known| !Arc::ptr_eq(known, attempt));
    }
}

impl Service {
    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // A full counter rings as well.
        let _ = (&self.bell).write_all(&1_u64.to_ne_bytes());
    }

    fn run(&self) {
        let mut buffer = vec![0; MESSAGE];
        loop {
            let (links, retired, attempts) = {
                let links = self.links();
                if links.stopped {
                    return;
                }
                (
                    links.live.clone(),
                    links.retired.clone(),
                    links.attempts.clone(),
                )
            };
            for _ in 0..MESSAGES_AT_ONCE {
                let Ok((length, from)) = self.socket.recv_from(&mut buffer) else {
                    break;
                };
                let message = &buffer[..length];
                let _ = links.iter().any(|link| link.hear(message))
                    || retired.iter().any(|group| group.hear(message))
                    || attempts.iter().any(|attempt| attempt.hear(from, message));
            }
            let due = links.iter().filter_map(|link| link.attend(&mut buffer));
            let due: Option<Time> = due.min();
            let answered = retired
                .iter()
                .filter_map(|group| group.attend(&self.socket, &mut buffer));
            let due = due.into_iter().chain(answered).min();
            let tried = attempts
                .iter()
                .filter_map(|attempt| attempt.step(&mut buffer));
            self.sleep(due.into_iter().chain(tried).min(), &attempts);
        }
    }

    /// Until the time, a message, or the bell.
    fn sleep(&self, due: Option<Time>, attempts: &[Arc<LeaderAttempt>]) {
        let wait = due.map_or(Duration::from_secs(60), clock::until);
        let own = [self.bell.as_raw_fd(), self.socket.as_raw_fd()];
        let attempts = attempts.iter().filter_map(|attempt| attempt.descriptor());
        let all = own.into_iter().chain(attempts).map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let mut descriptors: Vec<_> = all.collect();
        let milliseconds = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the array has as many entries as said. An interrupted or failed wait only comes back early.
        unsafe {
            libc::poll(
                descriptors.as_mut_ptr(),
                descriptors.len() as libc::nfds_t,
                milliseconds,
            )
        };
        let _ = (&self.bell).read(&mut [0; 8]);
    }
}
