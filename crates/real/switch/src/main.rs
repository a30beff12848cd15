//! `raddle-switch`: the command line of the software switch.
use std::{
    fs,
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use raddle_disk::DiskFiles;
use raddle_host::{clock::epoch, secret};
use raddle_offload::switch::{Abilities, SwitchConfig, job_key};
use raddle_switch::{
    checks::{self, Finding, ThisMachine, Weight},
    config::{Backend, Config},
    control::{self, Handle, Inbox},
    daemon::Daemon,
    fast::FastPath,
    lock::PortLocks,
    log::Log,
    serve,
    service::{Service, Signals},
    status::Status,
};
use raddle_text::InputError;
use raddle_units::many;
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::runtime::Runtime;

/// How long a switch may take to tell its status, and bytes of the longest one.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_STATUS: u64 = 64 << 20;
/// Errors that are shown at once.
const SHOWN_ERRORS: usize = 5;

const EXAMPLES: &str = "\
Examples:
  raddle-switch --config tor1.toml           run a switch until SIGTERM
  raddle-switch --config tor1.toml --check   say what is wrong with its file
  raddle-switch status --name tor1           ports, jobs and counters
  raddle-switch new-secret --out site.secret a secret for all switches of a site

An example of its file:
  schema = 1
  name = \"tor1\"
  address = \"10.0.0.253\"       # its own, in the hosts' network
  tier = 1                     # 1: hosts are connected to it
  secret_file = \"site.secret\"  # beside this file
  [[ports]]
  interface = \"p1\"
  [[ports]]
  interface = \"up\"
  uplink = true

SIGTERM drains: the switch takes no new groups, and ends when the last one has ended or its lease
has run out. A second SIGTERM ends it at once.
SIGHUP reads the file again; SIGUSR1 logs the status.
Exit status: 0 ended as asked, 1 an error of the system, 2 a wrong command line or file.
All settings: docs/reference/switch.md.";

/// A software switch that combines messages of in-network Allreduce.
#[derive(Debug, Parser)]
#[command(name = "raddle-switch", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The settings of the switch (TOML)
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<String>,
    /// Only check the file, and the secret, interfaces and addresses that it names
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show ports, jobs and counters of a running switch
    Status {
        /// Name of the switch; its socket is /run/raddle/switch-NAME.sock
        #[arg(long, conflicts_with = "socket", required_unless_present = "socket")]
        name: Option<String>,
        /// Path of its status socket
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a new secret for a site
    NewSecret {
        /// Write it to this new file instead, which only its owner can read
        #[arg(long, value_name = "FILE")]
        out: Option<String>,
    },
    /// Print the key of a job, 32 hexadecimal digits
    JobKey {
        /// File with the site's secret
        #[arg(long, value_name = "FILE")]
        secret_file: String,
        /// The job's number
        job: u32,
    },
}

/// Why the command failed: what it prints, and its exit status.
struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    /// The system does not let us.
    fn system(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self {
            text: format!("{what}: {cause}"),
            status: 1,
        }
    }

    /// The user wrote something wrong.
    fn input(error: impl std::fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            status: 2,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => {
            let RunArgs { config, check } = cli.run;
            let file = config.unwrap_or_default();
            if check {
                self::check(&file)
            } else {
                run(&file)
            }
        }
        Some(Command::Status { name, socket, json }) => {
            let named = || Config::status_socket(&name.unwrap_or_default());
            show_status(&socket.unwrap_or_else(named), json)
        }
        Some(Command::NewSecret { out }) => new_secret(out.as_deref()),
        Some(Command::JobKey { secret_file, job }) => secret::read(&secret_file)
            .map_err(Failure::input)
            .and_then(|secret| {
                let key = job_key(&secret.of_site(), job);
                say(&format!("{}\n", secret::hex(&key.to_bytes())))
            }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&format!("error: {}", failure.text));
            ExitCode::from(failure.status)
        }
    }
}

/// Prints to standard output. Who has closed it has read enough.
fn say(text: &str) -> Result<(), Failure> {
    let mut to = io::stdout();
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error, if there is one.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn new_secret(out: Option<&str>) -> Result<(), Failure> {
    let text = secret::generate().map_err(|error| Failure::system("no randomness", error))?;
    let Some(file) = out else {
        return say(&format!("{text}\n"));
    };
    secret::write(file, &text).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::input(format!(
            "{file} already exists\n  hint: switches that have it would not understand those with another secret; \
             remove it first if all get the new one"
        )),
        _ => Failure::system(file, error),
    })
}

/// The file and its secret, with what the machine has against it that weighs less than `refused`, which is an error.
fn load(file: &str, refused: Weight) -> Result<(Config, secret::Secret, Vec<Finding>), Failure> {
    let config = Config::load(file, &DiskFiles).map_err(Failure::input)?;
    let mut findings = checks::check(&config, &ThisMachine);
    let rest = findings.split_off(findings.partition_point(|one| one.weight <= refused));
    let errors = findings.iter().map(|finding| &finding.error);
    match checks::read_secret(&config) {
        Ok(secret) if findings.is_empty() => Ok((config, secret, rest)),
        Ok(_) => Err(all(errors)),
        Err(error) => Err(all([&error].into_iter().chain(errors))),
    }
}

/// All errors of a file, as many as fit on a screen.
fn all<'a>(errors: impl Iterator<Item = &'a InputError>) -> Failure {
    Failure::input(on_a_screen(errors).join("\nerror: "))
}

/// As many as fit on a screen, and how many more there are.
fn on_a_screen<'a>(errors: impl Iterator<Item = &'a InputError>) -> Vec<String> {
    let mut texts: Vec<String> = errors.map(ToString::to_string).collect();
    let more = texts.len().saturating_sub(SHOWN_ERRORS);
    texts.truncate(SHOWN_ERRORS);
    if more > 0 {
        texts.push(format!("and {more} more like these"));
    }
    texts
}

fn check(file: &str) -> Result<(), Failure> {
    let (config, _, findings) = load(file, Weight::Absent)?;
    for warning in on_a_screen(findings.iter().map(|finding| &finding.error)) {
        complain(&format!("warning: {warning}"));
    }
    let ports = many(config.ports.len(), "port");
    say(&format!("{file}: fine, {ports}\n"))
}

fn run(file: &str) -> Result<(), Failure> {
    let (config, secret, findings) = load(file, Weight::Wrong)?;
    let no_signals = |error| Failure::system("cannot handle signals", error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("no control thread", error))?;
    let signals = {
        let _inside = runtime.enter();
        Signals::listen().map_err(no_signals)?
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (handle, inbox) =
        control::channel().map_err(|error| Failure::system("no control channel", error))?;
    stop_at_signals(&stop, &handle).map_err(no_signals)?;
    let log = Log::start(config.log, config.log_level)
        .map_err(|error| Failure::system("no log", error))?;
    let log = Arc::new(log);
    for finding in &findings {
        tracing::warn!("{}", finding.error);
    }
    let result = open(&config, &runtime).and_then(|sockets| {
        let status_path = config.status.clone();
        let service = Service {
            file: file.to_owned(),
            config,
            secret,
            log: Arc::clone(&log),
            handle,
            locks: sockets.locks,
            status: sockets.status,
            metrics: sockets.metrics,
        };
        let result = switch(service, signals, runtime, inbox, stop);
        // Nobody else has taken the path: who tries finds that it answers.
        let _ = fs::remove_file(status_path);
        result
    });
    log.flush();
    result
}

/// Switches until it is to end; `runtime` serves meanwhile.
fn switch(
    service: Service,
    signals: Signals,
    runtime: Runtime,
    inbox: Inbox,
    stop: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let (config, locks) = (service.config.clone(), service.locks.clone());
    let core = SwitchConfig {
        address: config.address,
        tier: config.tier,
        epoch: epoch().map_err(|error| Failure::system("no randomness", error))?,
        secret: service.secret.of_site(),
        quotas: config.quotas,
        abilities: Abilities::default(),
    };
    let fast = fast_path(&config, core.epoch)?;
    if config.faults.is_some() {
        tracing::warn!("frames are lost, doubled and delayed on purpose: [faults]");
    }
    let name = config.name.clone();
    tracing::info!(
        name,
        address = %config.address,
        mac = %config.mac,
        tier = config.tier,
        backend = config.backend.name(),
        ports = config.ports.len(),
        "start"
    );
    let mut daemon = Daemon::open(config, core, fast, inbox, locks, stop).map_err(|error| {
        let hint =
            "\n  hint: packet sockets need root, or the capabilities cap_net_raw and cap_net_admin";
        Failure::system("no packet socket", format!("{error}{hint}"))
    })?;
    thread::Builder::new()
        .name("service".to_owned())
        .spawn(move || runtime.block_on(service.run(signals)))
        .map_err(|error| Failure::system("no control thread", error))?;
    let result = daemon.run();
    tracing::info!(name, "end");
    result.map_err(|error| Failure::system("packet socket", error))
}

/// The first SIGTERM or SIGINT tells the switch to drain, the second one ends the process.
fn stop_at_signals(stop: &Arc<AtomicBool>, handle: &Handle) -> io::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        // In this order: the second signal finds the first one's mark and ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(stop))?;
        signal_hook::flag::register(signal, Arc::clone(stop))?;
        signal_hook::low_level::pipe::register(signal, handle.waker()?)?;
    }
    Ok(())
}

/// What belongs to this switch alone.
struct Sockets {
    locks: PortLocks,
    status: tokio::net::UnixListener,
    metrics: Option<(SocketAddr, tokio::net::TcpListener)>,
}

fn open(config: &Config, runtime: &Runtime) -> Result<Sockets, Failure> {
    let refused = |text: String| Failure { text, status: 1 };
    runtime.block_on(async {
        let locks = PortLocks::new(runtime.handle().clone());
        let names = config.ports.iter().map(|port| port.interface.as_str());
        let locked = locks.take(names).await;
        locked.map_err(|error| refused(error.to_string()))?;
        let metrics = config.metrics.map(|address| {
            let opened = serve::open_metrics(address);
            opened
                .map(|listener| (address, listener))
                .map_err(|error| Failure::system(format!("metrics on {address}"), error))
        });
        let metrics = metrics.transpose()?;
        // Last, because its path stays when the process ends.
        let status = serve::open_status(&config.status).await;
        let status = status.map_err(|error| refused(error.to_string()))?;
        Ok(Sockets {
            locks,
            status,
            metrics,
        })
    })
}

fn fast_path(config: &Config, epoch: u32) -> Result<Option<Box<dyn FastPath>>, Failure> {
    match config.backend {
        Backend::Sockets => Ok(None),
        Backend::Xdp => load_program(config, epoch).map(Some),
    }
}

#[cfg(raddle_xdp)]
fn load_program(config: &Config, epoch: u32) -> Result<Box<dyn FastPath>, Failure> {
    use raddle_switch::{config::Forwarding, fast::Identity, xdp};
    let identity = Identity {
        address: config.address,
        mac: config.mac,
        epoch,
    };
    let path = xdp::XdpPath::load(identity, xdp::SLOTS, hook(config)).map_err(|error| {
        let hint = "\n  hint: XDP needs root, or the capabilities cap_bpf, cap_net_admin and cap_perfmon, and Linux 5.18";
        Failure::system("xdp", format!("{error}{hint}"))
    })?;
    Ok(Box::new(match config.forward {
        Forwarding::Core => path,
        Forwarding::Kernel => path.forwarding(),
    }))
}

#[cfg(raddle_xdp)]
fn hook(config: &Config) -> raddle_switch::xdp::Hook {
    use raddle_host::ethtool::driver;
    use raddle_switch::{
        config::{Attach, PortConfig},
        xdp::Hook,
    };
    let is_cable = |port: &PortConfig| driver(&port.interface).is_some_and(|name| name == "veth");
    match config.attach {
        Attach::Native => Hook::Native,
        Attach::Generic => Hook::Generic,
        Attach::Tc => Hook::Tc,
        Attach::Auto if config.ports.iter().any(is_cable) => Hook::for_cables(),
        Attach::Auto => Hook::Native,
    }
}

#[cfg(not(raddle_xdp))]
fn load_program(_: &Config, _: u32) -> Result<Box<dyn FastPath>, Failure> {
    // The check of the file has refused this before.
    Err(Failure::input(
        "xdp: this raddle-switch was built without it",
    ))
}

fn show_status(socket: &Path, json: bool) -> Result<(), Failure> {
    let failure = |cause: &dyn std::fmt::Display| Failure::system(socket.display(), cause);
    let stream = UnixStream::connect(socket)
        .map_err(|error| failure(&format!("{error}\n  hint: is the switch running here?")))?;
    let mut text = String::new();
    stream
        .set_read_timeout(Some(STATUS_PATIENCE))
        .and_then(|()| stream.take(LONGEST_STATUS).read_to_string(&mut text))
        .map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => failure(&"the switch does not answer; it may be stopped"),
            _ => failure(&error),
        })?;
    if text.is_empty() {
        return Err(failure(&"the switch does not answer; its log may say why"));
    }
    let status: Status = serde_json::from_str(&text).map_err(|error| {
        failure(&format!(
            "what answers there is not a raddle-switch of this version: {error}"
        ))
    })?;
    if json {
        say(&text)
    } else {
        say(&status.to_string())
    }
}
