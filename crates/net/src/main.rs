//! `raddle-switch`: the command line of the software switch.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is where a command talks to its user"
)]

use std::{
    fs,
    io::{self, Read},
    net::TcpListener,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use raddle_files::DiskFiles;
use raddle_net::{
    config::{Backend, Config, LogFormat, LogLevel},
    control,
    daemon::{Daemon, epoch},
    fast::FastPath,
    secret,
    status::Status,
};
use raddle_offload::switch::{Abilities, SwitchConfig, job_key};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing_subscriber::filter::LevelFilter;

const EXAMPLES: &str = "\
Examples:
  raddle-switch --config tor1.toml           run a switch until SIGTERM
  raddle-switch --config tor1.toml --check   say what is wrong with its file
  raddle-switch status --name tor1           ports, jobs and counters
  raddle-switch new-secret > site.secret     a secret for all switches of a site

A file of a switch:
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

SIGTERM drains: groups end or run out, then the switch does; the second one ends it at once.
Exit status: 0 ended in peace, 1 an error of the system, 2 a wrong command line or file.
All settings: docs/switch.md.";

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
    /// The file of the switch
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<String>,
    /// Only check the file and what it names
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
        /// Its status socket
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a new secret for a site
    NewSecret,
    /// Print the key of a job, 32 hexadecimal digits
    JobKey {
        /// The site's secret
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
            run(&config.unwrap_or_default(), check)
        }
        Some(Command::Status { name, socket, json }) => {
            let socket = socket.or_else(|| Some(Config::status_socket(&name?)));
            show_status(&socket.unwrap_or_default(), json)
        }
        Some(Command::NewSecret) => secret::generate()
            .map(|text| println!("{text}"))
            .map_err(|error| Failure::system("no randomness", error)),
        Some(Command::JobKey { secret_file, job }) => secret::read(&secret_file)
            .map(|secret| {
                let key = job_key(&secret.of_site(), job);
                println!("{}", secret::hex(&key.to_bytes()));
            })
            .map_err(Failure::input),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn run(file: &str, check: bool) -> Result<(), Failure> {
    let config = Config::load(file, &DiskFiles).map_err(Failure::input)?;
    let secret = secret::read(&config.secret_file).map_err(Failure::input)?;
    if check {
        println!("{file}: fine, {} ports", config.ports.len());
        return Ok(());
    }
    log(&config);
    if secret.exposed {
        tracing::warn!(
            file = config.secret_file,
            "others can read the secret: chmod 600"
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (handle, questions) =
        control::channel().map_err(|error| Failure::system("no control channel", error))?;
    for signal in [SIGTERM, SIGINT] {
        // In this order: the second signal finds the first one's mark and ends the process.
        let flags = signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .and_then(|_| signal_hook::low_level::pipe::register(signal, handle.waker()?));
        flags.map_err(|error| Failure::system("cannot handle signals", error))?;
    }
    let switch = SwitchConfig {
        address: config.address,
        tier: config.tier,
        epoch: epoch().map_err(|error| Failure::system("no randomness", error))?,
        secret: secret.of_site(),
        quotas: config.quotas,
        abilities: Abilities::default(),
    };
    let fast = match config.backend {
        Backend::Sockets => None,
        Backend::Xdp => Some(fast_path(&config, switch.epoch)?),
    };
    let status = StatusSocket::open(&config.status)
        .map_err(|error| Failure::system(config.status.display(), error))?;
    if let Some(address) = config.metrics {
        let what = format!("metrics on {address}");
        let listener = TcpListener::bind(address).map_err(|error| Failure::system(&what, error))?;
        control::serve_metrics(listener, handle.clone())
            .map_err(|error| Failure::system(&what, error))?;
    }
    control::serve_status(status.listener, handle);
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
    let daemon = Daemon::open(config, switch, fast, questions, stop);
    let result = daemon
        .map_err(|error| {
            let hint = "\n  hint: packet sockets need root, or the capabilities cap_net_raw and cap_net_admin";
            Failure::system("no packet socket", format!("{error}{hint}"))
        })
        .and_then(|mut daemon| daemon.run().map_err(|error| Failure::system("packet socket", error)));
    // Nobody else may have taken the path since.
    let _ = fs::remove_file(&status.path);
    tracing::info!(name, "end");
    result
}

#[cfg(raddle_xdp)]
fn fast_path(config: &Config, epoch: u32) -> Result<Box<dyn FastPath>, Failure> {
    use raddle_net::config::Forwarding;
    let identity = raddle_net::fast::Identity {
        address: config.address,
        mac: config.mac,
        epoch,
    };
    let path = raddle_net::xdp::XdpPath::load(identity, raddle_net::xdp::SLOTS, hook(config))
        .map_err(|error| {
            let hint = "\n  hint: XDP needs root, or the capabilities cap_bpf, cap_net_admin and cap_perfmon, and Linux 5.18";
            Failure::system("xdp", format!("{error}{hint}"))
        })?;
    Ok(Box::new(match config.forward {
        Forwarding::Core => path,
        Forwarding::Kernel => path.forwarding(),
    }))
}

#[cfg(raddle_xdp)]
fn hook(config: &Config) -> raddle_net::xdp::Hook {
    use raddle_net::{config::Attach, config::PortConfig, ethtool::driver, xdp::Hook};
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
fn fast_path(_: &Config, _: u32) -> Result<Box<dyn FastPath>, Failure> {
    Err(Failure::system(
        "xdp",
        "this raddle-switch was built without it; install clang and libbpf-dev, and build it again",
    ))
}

/// The status socket, which belongs to this process as long as it listens.
struct StatusSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl StatusSocket {
    /// Takes the path; what a killed switch left there is removed.
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if UnixStream::connect(path).is_ok() {
            let cause = "another switch answers there; give this one another name or `status`";
            return Err(io::Error::other(cause));
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        Ok(Self {
            path: path.to_owned(),
            listener,
        })
    }
}

fn log(config: &Config) {
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(io::stderr);
    match config.log {
        LogFormat::Text => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            builder.with_ansi(colours).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

fn show_status(socket: &Path, json: bool) -> Result<(), Failure> {
    let failure = |cause: String| Failure::system(socket.display(), cause);
    let mut stream = UnixStream::connect(socket)
        .map_err(|error| failure(format!("{error}\n  hint: is the switch running here?")))?;
    let mut text = String::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .and_then(|()| stream.read_to_string(&mut text))
        .map_err(|error| failure(error.to_string()))?;
    let status: Status = serde_json::from_str(&text).map_err(|error| failure(error.to_string()))?;
    if json {
        print!("{text}");
    } else {
        print!("{status}");
    }
    Ok(())
}
