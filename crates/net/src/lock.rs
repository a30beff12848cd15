//! One switch per interface. A switch holds an abstract socket (unix(7)) for each of its ports: such names belong to a
//! network namespace, as interfaces do, whatever files a container sees, and end with the process, however it ends.

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinHandle,
    time,
};

use crate::interfaces;

/// How often a name is tried that somebody holds, and how long between: who was killed just now may still be ending.
const TRIES: (u32, Duration) = (50, Duration::from_millis(20));
/// How long the holder may take to be asked who it is.
const PATIENCE: Duration = Duration::from_millis(200);
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

/// The locks that this process holds, by interface. They live in a runtime of tokio and end with it.
#[derive(Debug, Default)]
pub struct PortLocks {
    held: BTreeMap<String, JoinHandle<()>>,
}

impl PortLocks {
    /// Takes the locks of these interfaces, those that are held already excepted. Nothing changes when one is taken.
    ///
    /// # Errors
    /// When another process has one of them.
    pub async fn take(&mut self, interfaces: impl Iterator<Item = &str>) -> Result<(), LockError> {
        let mut taken = BTreeMap::new();
        for interface in interfaces.map(proper_name) {
            if !self.held.contains_key(&interface) && !taken.contains_key(&interface) {
                let listener = lock(&interface).await?;
                taken.insert(interface, listener);
            }
        }
        let held = taken.into_iter().map(|(interface, listener)| {
            let task = tokio::spawn(let_ask(listener));
            (interface, task)
        });
        self.held.extend(held);
        Ok(())
    }

    /// Gives the locks of all other interfaces back.
    pub fn keep<'a>(&mut self, interfaces: impl Iterator<Item = &'a str>) {
        let kept: Vec<String> = interfaces.map(proper_name).collect();
        self.held.retain(|interface, task| {
            let keep = kept.contains(interface);
            if !keep {
                task.abort();
            }
            keep
        });
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

async fn lock(interface: &str) -> Result<UnixListener, LockError> {
    let name = socket_name(interface);
    let (tries, pause) = TRIES;
    for _ in 0..tries {
        match UnixListener::bind(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => time::sleep(pause).await,
            Err(cause) => {
                let interface = interface.to_owned();
                return Err(LockError::System { interface, cause });
            }
            Ok(listener) => return Ok(listener),
        }
    }
    Err(LockError::Taken {
        interface: interface.to_owned(),
        holder: holder(&name).await,
    })
}

/// Holds a lock. Who connects wants to know whose it is, and the kernel has told that by then.
async fn let_ask(listener: UnixListener) {
    loop {
        if listener.accept().await.is_err() {
            // No descriptors, for now.
            time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The process that listens on a socket, for a message.
pub(crate) async fn holder(socket: impl AsRef<Path>) -> String {
    let asked = time::timeout(PATIENCE, UnixStream::connect(socket)).await;
    let process = asked
        .ok()
        .and_then(|stream| stream.ok()?.peer_cred().ok()?.pid());
    match process {
        // Another namespace's processes have no number here.
        None | Some(0) => "another process".to_owned(),
        Some(process) => match command_of(process) {
            Some(command) => format!("process {process} ({command})"),
            None => format!("process {process}"),
        },
    }
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
            let mut first = PortLocks::default();
            first.take([a.as_str()].into_iter()).await.unwrap();
            let mut second = PortLocks::default();
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
            let mut first = PortLocks::default();
            first
                .take([a.as_str(), b.as_str()].into_iter())
                .await
                .unwrap();
            first.keep([b.as_str()].into_iter());
            let mut second = PortLocks::default();
            second.take([a.as_str()].into_iter()).await.unwrap();
            second.take([b.as_str()].into_iter()).await.unwrap_err();
        });
    }
}
