//! One switch per interface. A switch holds an abstract socket (unix(7)) for each of its ports: such names belong to a
//! network namespace, as interfaces do, whatever files a container sees, and end with the process, however it ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    net::{UnixListener, UnixStream},
    runtime::Handle,
    task::{JoinHandle, JoinSet},
    time,
};

use raddle_host::interfaces;

/// How often a name is tried that somebody holds, and how long between: who was killed just now may still be ending.
const TRIES: (u32, Duration) = (50, Duration::from_millis(20));
/// How long the holder may take to be asked who it is.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long an interface that somebody else has is left alone.
const TAKEN_PAUSE: Duration = Duration::from_secs(30);
/// The bit of `CAP_NET_RAW` among a process's capabilities, without which no frame is heard.
const NET_RAW: u32 = 13;
/// Characters of a command line that are shown.
const SHOWN_COMMAND: usize = 200;

/// Why an interface cannot become a port.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "`{interface}` is already a port of {holder}\n  hint: end that switch first; one interface belongs to one switch"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// Who has it.
        holder: String,
    },
    /// The system gives no socket.
    #[error("no lock for `{interface}`: {cause}")]
    System {
        /// The interface.
        interface: String,
        /// What it said.
        cause: io::Error,
    },
}

/// The locks that this process holds, by interface; clones share them. They live in a runtime of tokio and end with it.
#[derive(Debug, Clone)]
pub struct PortLocks {
    held: Arc<Mutex<BTreeMap<String, Held>>>,
    runtime: Handle,
}

#[derive(Debug)]
enum Held {
    /// The task answers who asks. Without one somebody holds the name who can be no switch.
    Ours(Option<JoinHandle<()>>),
    /// Somebody may have it: the task finds out.
    Asked(JoinHandle<()>),
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Self::Ours(Some(task)) | Self::Asked(task) = self {
            task.abort();
        }
    }
}

impl PortLocks {
    /// No locks yet; they will live in this runtime.
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self {
            held: Arc::default(),
            runtime,
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the locks of these interfaces, those that are held already excepted. Nothing changes when one is taken.
    ///
    /// # Errors
    /// When another process has one of them.
    pub async fn take(&self, interfaces: impl Iterator<Item = &str>) -> Result<(), LockError> {
        let mut wanted: BTreeSet<String> = interfaces.map(proper_name).collect();
        wanted.retain(|interface| !self.held().contains_key(interface));
        // At once: each that somebody holds takes its time.
        let mut locking = JoinSet::new();
        for interface in wanted {
            locking.spawn_on(
                async move { (lock(&interface).await, interface) },
                &self.runtime,
            );
        }
        let mut locked = locking.join_all().await;
        locked.sort_by(|(_, one), (_, other)| one.cmp(other));
        let listeners = locked
            .into_iter()
            .map(|(listener, interface)| Ok((interface, listener?)))
            .collect::<Result<Vec<_>, LockError>>()?;
        let ours = listeners.into_iter();
        let ours = ours.map(|(name, listener)| (name, Held::Ours(listener.map(let_ask))));
        self.held().extend(ours);
        Ok(())
    }

    /// Whether an interface that has come is ours, by the name that the system gives it. The lock is taken where it is not
    /// held: `false` until it is known whether another process has it.
    #[must_use]
    pub fn has(&self, interface: &str) -> bool {
        let mut held = self.held();
        match held.get(interface) {
            Some(Held::Ours(_)) => return true,
            Some(Held::Asked(_)) => return false,
            None => {}
        }
        let (locks, name) = (self.clone(), interface.to_owned());
        let task = self
            .runtime
            .spawn(async move { locks.find_out(name).await });
        held.insert(interface.to_owned(), Held::Asked(task));
        false
    }

    async fn find_out(&self, interface: String) {
        match lock(&interface).await {
            Ok(listener) => {
                let ours = Held::Ours(listener.map(let_ask));
                self.held().insert(interface, ours);
            }
            Err(error) => {
                tracing::error!("{error}");
                time::sleep(TAKEN_PAUSE).await;
                self.held().remove(&interface);
            }
        }
    }

    /// Gives the locks of all other interfaces back.
    pub fn keep<'a>(&self, interfaces: impl Iterator<Item = &'a str>) {
        let kept: Vec<String> = interfaces.map(proper_name).collect();
        self.held().retain(|interface, _| kept.contains(interface));
    }
}

/// The interface's name where it is asked for by another one.
fn proper_name(interface: &str) -> String {
    interfaces::properties(interface).map_or_else(|| interface.to_owned(), |about| about.name)
}

/// The name of an interface's lock.
fn socket_name(interface: &str) -> String {
    format!("\0raddle-switch/port/{interface}")
}

/// Takes an interface's lock; `None`: its name is held by somebody who cannot have the interface.
async fn lock(interface: &str) -> Result<Option<UnixListener>, LockError> {
    let name = socket_name(interface);
    let (tries, pause) = TRIES;
    for _ in 0..tries {
        match UnixListener::bind(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => time::sleep(pause).await,
            Err(cause) => {
                let interface = interface.to_owned();
                return Err(LockError::System { interface, cause });
            }
            Ok(listener) => return Ok(Some(listener)),
        }
    }
    let who = Holder::of(&name).await;
    if who.can_be_switch() {
        return Err(LockError::Taken {
            interface: interface.to_owned(),
            holder: who.to_string(),
        });
    }
    tracing::warn!(
        port = interface,
        holder = %who,
        "the name of this port's lock is held by a process that may not receive frames, so it is not a switch; \
         while it has the name, a second switch on this port is not noticed"
    );
    Ok(None)
}

/// Holds a lock. Who connects wants to know whose it is, and the kernel has told that by then.
fn let_ask(listener: UnixListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            if listener.accept().await.is_err() {
                // No descriptors, for now.
                time::sleep(Duration::from_millis(100)).await;
            }
        }
    })
}

/// Who listens on a socket.
pub(crate) struct Holder {
    /// `None` where it cannot be told.
    user: Option<u32>,
    /// `None` for a process of another namespace, which has no number here.
    process: Option<i32>,
}

impl Holder {
    pub(crate) async fn of(socket: impl AsRef<Path>) -> Self {
        let asked = time::timeout(PATIENCE, UnixStream::connect(socket)).await;
        let about = asked.ok().and_then(|stream| stream.ok()?.peer_cred().ok());
        Self {
            user: about.map(|about| about.uid()),
            process: about.and_then(|about| about.pid()).filter(|pid| *pid > 0),
        }
    }

    /// Whether it can be a switch of this network namespace, as far as can be seen: all of them answer, and run as root, as
    /// our own user, or with the capability to hear frames.
    fn can_be_switch(&self) -> bool {
        match (self.user, self.process) {
            (None, _) => false,
            (Some(0), _) => true,
            (Some(user), _) if own_user() == Some(user) => true,
            (Some(_), Some(process)) => hears_frames(process),
            (Some(_), None) => false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(process) = self.process else {
            return to.write_str("another process");
        };
        match command_of(process) {
            Some(command) => write!(to, "process {process} ({command})"),
            None => write!(to, "process {process}"),
        }
    }
}

fn own_user() -> Option<u32> {
    let (one, _other) = UnixStream::pair().ok()?;
    Some(one.peer_cred().ok()?.uid())
}

/// Whether a process of another user has `CAP_NET_RAW` here: in a user namespace of its own it has it there only.
fn hears_frames(process: i32) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/user")).ok();
    let here = namespace("self") == namespace(&process.to_string());
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    here && bits.is_some_and(|bits| bits >> NET_RAW & 1 != 0)
}

/// How a process was started.
fn command_of(process: i32) -> Option<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(words.trim_ascii_end()).replace('\0', " ");
    let shown: String = text
        .trim_end()
        .chars()
        .take(SHOWN_COMMAND)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(future)
    }

    /// Names that no other test uses.
    fn names(which: &str) -> [String; 2] {
        ["a", "b"].map(|end| format!("{which}-{}{end}", std::process::id()))
    }

    #[test]
    fn an_interface_has_one_holder_who_is_named() {
        block_on(async {
            let [a, b] = names("one");
            let first = PortLocks::new(Handle::current());
            first.take([a.as_str()].into_iter()).await.unwrap();
            let second = PortLocks::new(Handle::current());
            let both = [b.as_str(), a.as_str()];
            let error = second.take(both.into_iter()).await.unwrap_err();
            let message = error.to_string();
            let process = format!("process {}", std::process::id());
            assert!(message.contains(&a), "{message}");
            assert!(message.contains(&process), "{message}");
            // The one that was free is free again.
            first.take([b.as_str()].into_iter()).await.unwrap();
        });
    }

    #[test]
    fn what_is_given_back_is_free() {
        block_on(async {
            let [a, b] = names("back");
            let first = PortLocks::new(Handle::current());
            first
                .take([a.as_str(), b.as_str()].into_iter())
                .await
                .unwrap();
            first.keep([b.as_str()].into_iter());
            let second = PortLocks::new(Handle::current());
            second.take([a.as_str()].into_iter()).await.unwrap();
            second.take([b.as_str()].into_iter()).await.unwrap_err();
        });
    }

    #[test]
    fn an_interface_that_comes_is_ours_only_with_the_lock_of_its_name() {
        block_on(async {
            let [a, b] = names("comes");
            let first = PortLocks::new(Handle::current());
            first.take([a.as_str()].into_iter()).await.unwrap();
            assert!(first.has(&a));
            let second = PortLocks::new(Handle::current());
            assert!(!second.has(&a) && !second.has(&b));
            let (tries, pause) = TRIES;
            time::sleep(pause * (tries + 10) + PATIENCE).await;
            assert!(second.has(&b) && !second.has(&a));
            first.take([b.as_str()].into_iter()).await.unwrap_err();
        });
    }

    #[test]
    fn who_does_not_answer_or_may_not_hear_frames_is_no_switch() {
        block_on(async {
            let own = own_user().unwrap();
            let other = own + 1;
            let process = i32::try_from(std::process::id()).unwrap();
            for (user, process, can) in [
                (None, None, false),
                (Some(0), None, true),
                (Some(own), Some(process), true),
                (Some(other), None, false),
                (Some(other), Some(process), hears_frames(process)),
            ] {
                let holder = Holder { user, process };
                assert_eq!(holder.can_be_switch(), can, "{user:?} {process:?}");
            }
        });
    }
}
