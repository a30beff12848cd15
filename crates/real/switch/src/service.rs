//! What a switch is to its machine: a service that follows signals, takes over a changed file, tells a service manager how it
//! is (`sd_notify(3)`), and answers at its sockets. All of it in a thread of its own, so that no frame waits.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use raddle_disk::DiskFiles;
use raddle_units::Span;
use sd_notify::NotifyState;
use tokio::{
    net::{TcpListener, UnixListener},
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::{self, JoinHandle},
    time,
};

use crate::{
    checks::{self, Finding, ThisMachine, Weight},
    config::Config,
    control::Handle,
    lock::PortLocks,
    log::Log,
    reload::{Live, take_over},
    serve,
    status::Status,
};
use raddle_host::{clock::duration, secret::Secret};

/// How long the end takes after the last group has gone.
const FAREWELL: Duration = Duration::from_secs(5);

/// Signals that a switch follows besides SIGTERM and SIGINT, which its own thread looks for.
#[derive(Debug)]
pub struct Signals {
    reload: Signal,
    report: [Signal; 2],
    stop: [Signal; 2],
}

impl Signals {
    /// Follows them from now on: none of them ends the process any more. To be called in the runtime.
    ///
    /// # Errors
    /// The system has no descriptor left for the signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            reload: signal(SignalKind::hangup())?,
            report: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
            stop: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            ],
        })
    }
}

/// What a switch was started with.
pub struct Service {
    /// Its file.
    pub file: String,
    /// What holds of it.
    pub config: Config,
    /// The site's secret.
    pub secret: Secret,
    /// Its log.
    pub log: Arc<Log>,
    /// The switch's thread.
    pub handle: Handle,
    /// Its ports' locks.
    pub locks: PortLocks,
    /// Its status socket.
    pub status: UnixListener,
    /// Its socket for `/metrics`, if it has one, and the address that its file gives it.
    pub metrics: Option<(SocketAddr, TcpListener)>,
}

impl Service {
    /// Serves as long as the process lives.
    pub async fn run(self, signals: Signals) {
        let Self {
            file,
            config,
            secret,
            log,
            handle,
            locks,
            status,
            metrics,
        } = self;
        let Signals {
            mut reload,
            report,
            stop,
        } = signals;
        serve::serve_status(status, handle.clone());
        for signal in report {
            tokio::spawn(report_at(signal, handle.clone()));
        }
        let (drain, drains) = watch::channel(config.drain);
        for signal in stop {
            tokio::spawn(say_the_end_at(signal, drains.clone()));
        }
        if let Some(period) = sd_notify::watchdog_enabled() {
            tokio::spawn(feed_watchdog(period, handle.clone()));
        }
        let mut served = Metrics::new(handle.clone());
        if let Some((address, listener)) = metrics {
            served.serve(address, listener);
        }
        let mut reloads = Reloads {
            file,
            config,
            secret,
            log,
            handle,
            locks,
            metrics: served,
            drain,
        };
        tell(&[NotifyState::Ready, NotifyState::Status("running")]);
        while reload.recv().await.is_some() {
            reloads.reload().await;
        }
    }
}

/// Tells a service manager that has asked for it.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager ($NOTIFY_SOCKET) cannot be reached");
    }
}

/// Logs how the switch is whenever a signal comes.
async fn report_at(mut signal: Signal, handle: Handle) {
    while signal.recv().await.is_some() {
        match handle.status().await {
            Some(status) => report(&status),
            None => tracing::error!("the switch does not answer"),
        }
    }
}

fn report(status: &Status) {
    let dropped: u64 = status.drops.iter().map(|drops| drops.count).sum();
    tracing::info!(
        state = status.state,
        uptime_s = status.uptime_s,
        ports = status.ports.len(),
        up = status.ports.iter().filter(|port| port.up).count(),
        stations = status.stations,
        jobs = status.jobs.len(),
        groups = status.jobs.iter().map(|job| job.groups).sum::<u64>(),
        messages = status.counters.messages,
        dropped,
        overflow = status.counters.overflow,
        "status"
    );
}

/// Tells the service manager that the switch ends, and how long that may take.
async fn say_the_end_at(mut signal: Signal, drain: watch::Receiver<Span>) {
    if signal.recv().await.is_some() {
        let limit = duration(*drain.borrow()) + FAREWELL;
        let limit = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
        tell(&[
            NotifyState::Stopping,
            NotifyState::ExtendTimeoutUsec(limit),
            NotifyState::Status("draining"),
        ]);
    }
}

/// Tells the service manager's watchdog that the switch's thread answers.
async fn feed_watchdog(period: Duration, handle: Handle) {
    loop {
        if handle.status().await.is_some() {
            tell(&[NotifyState::Watchdog]);
        }
        time::sleep(period / 3).await;
    }
}

/// What is read of a file that has changed.
struct Reread {
    config: Config,
    secret: Secret,
    findings: Vec<Finding>,
}

/// Reads a file as at the start.
fn reread(file: &str) -> Result<Reread, String> {
    let config = Config::load(file, &DiskFiles).map_err(|error| error.to_string())?;
    let secret = checks::read_secret(&config).map_err(|error| error.to_string())?;
    let findings = checks::check(&config, &ThisMachine);
    match findings.first() {
        Some(finding) if finding.weight == Weight::Wrong => Err(finding.error.to_string()),
        _ => Ok(Reread {
            config,
            secret,
            findings,
        }),
    }
}

/// What SIGHUP changes.
struct Reloads {
    file: String,
    config: Config,
    secret: Secret,
    log: Arc<Log>,
    handle: Handle,
    locks: PortLocks,
    metrics: Metrics,
    /// How long the end may take.
    drain: watch::Sender<Span>,
}

impl Reloads {
    async fn reload(&mut self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "no clock"),
        }
        let status = match self.take_over().await {
            Ok(()) => "running",
            Err(error) => {
                tracing::error!(file = self.file, "not reloaded, all settings stay: {error}");
                "running; its file is wrong, see the log"
            }
        };
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Everything that can fail comes before the first change.
    async fn take_over(&mut self) -> Result<(), String> {
        let file = self.file.clone();
        // Its folder may be on a machine that does not answer.
        let reread = task::spawn_blocking(move || reread(&file)).await;
        let Reread {
            config,
            secret,
            findings,
        } = reread.map_err(|error| error.to_string())??;
        let locked = self.locks.take(names(&config)).await;
        locked.map_err(|error| error.to_string())?;
        let moved = self.metrics.move_to(config.metrics).await;
        if moved.is_err() {
            self.locks.keep(names(&self.config));
        }
        moved?;
        self.locks.keep(names(&config));
        for finding in findings {
            tracing::warn!("{}", finding.error);
        }
        let mut changes = take_over(&mut self.config, config);
        if secret != self.secret {
            self.secret = secret;
            changes.live.push("the secret");
        }
        self.drain.send_replace(self.config.drain);
        self.log.set_level(self.config.log_level);
        self.handle.change(Live::of(&self.config, &self.secret));
        if !changes.at_restart.is_empty() {
            let settings = changes.at_restart.join(", ");
            tracing::warn!(
                file = self.file,
                settings,
                "these settings have changed and take effect only after a restart"
            );
        }
        let settings = changes.live.join(", ");
        if settings.is_empty() {
            tracing::info!(file = self.file, "reloaded: no setting has changed");
        } else {
            tracing::info!(file = self.file, settings, "reloaded");
        }
        Ok(())
    }
}

/// `/metrics` where they are served, which need not be where the file says.
struct Metrics {
    handle: Handle,
    served: Option<(SocketAddr, JoinHandle<()>)>,
}

impl Metrics {
    const fn new(handle: Handle) -> Self {
        Self {
            handle,
            served: None,
        }
    }

    /// Serves metrics at another address, or nowhere. When that cannot be, the one before goes on.
    async fn move_to(&mut self, to: Option<SocketAddr>) -> Result<(), String> {
        let from = self.served.as_ref().map(|(address, _)| *address);
        if to == from {
            return Ok(());
        }
        let Some(to) = to else {
            self.end().await;
            return Ok(());
        };
        let mut opened = serve::open_metrics(to);
        // Of one port, two addresses may be in each other's way.
        let in_its_way = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        if opened.as_ref().is_err_and(in_its_way) {
            self.end().await;
            opened = serve::open_metrics(to);
            if opened.is_err()
                && let Some(from) = from
            {
                self.serve_again(from);
            }
        }
        let listener = opened.map_err(|error| format!("metrics on {to}: {error}"))?;
        self.end().await;
        self.serve(to, listener);
        Ok(())
    }

    fn serve_again(&mut self, address: SocketAddr) {
        match serve::open_metrics(address) {
            Ok(listener) => self.serve(address, listener),
            Err(error) => tracing::error!(
                %address,
                %error,
                "metrics are no longer served: another program has taken their address; SIGHUP tries again"
            ),
        }
    }

    async fn end(&mut self) {
        if let Some((_, task)) = self.served.take() {
            task.abort();
            // Its end is that of its socket.
            let _ = task.await;
        }
    }

    fn serve(&mut self, address: SocketAddr, listener: TcpListener) {
        let task = serve::serve_metrics(listener, self.handle.clone());
        self.served = Some((address, task));
    }
}

/// The interfaces that a file names.
fn names(config: &Config) -> impl Iterator<Item = &str> {
    config.ports.iter().map(|port| port.interface.as_str())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener as Holder};

    use super::*;
    use crate::control;

    #[test]
    fn metrics_that_are_served_nowhere_come_back_at_the_address_of_before() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let holder = Holder::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = Some(holder.local_addr().unwrap());
            let mut metrics = Metrics::new(control::channel().unwrap().0);
            let error = metrics.move_to(address).await.unwrap_err();
            assert!(error.contains("in use"), "{error}");
            drop(holder);
            metrics.move_to(address).await.unwrap();
            assert_eq!(metrics.served.as_ref().map(|(at, _)| *at), address);
            metrics.move_to(None).await.unwrap();
            assert!(metrics.served.is_none());
        });
    }
}
