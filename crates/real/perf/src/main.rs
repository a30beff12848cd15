//! `raddle-perf`: goodput and latency of messages over rails between two hosts.
#![expect(
    clippy::print_stderr,
    reason = "this is where a command talks to its user"
)]

mod client;
mod contents;
mod control;
mod error;
mod goodput;
mod measure;
mod report;
mod screen;
mod server;
mod waiting;

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::{atomic::AtomicUsize, mpsc},
    thread,
};

use clap::{Args, Parser, Subcommand};
use raddle_host::secret;
use raddle_offload::switch::SiteSecret;
use raddle_units::{BitRate, Bytes, Span};
use raddle_wire::native::JobKey;

use client::Run;
use control::{LONGEST, PolicyName, SplitName};
use error::MeasureError;
use goodput::Load;
use measure::Echo;
use screen::Screen;
use server::Server;
use waiting::Waiting;

/// The server's TCP port.
const PORT: u16 = 7650;
/// Memory of messages on their way at most.
const MOST_MEMORY: u64 = 4 << 30;
/// How long goodput is measured if nothing else is said.
const TIME: Span = Span::from_ms(5_000);
/// Lines of the server that wait to be read.
const LINES: usize = 1024;

const EXAMPLES: &str = "\
Examples:
  raddle-perf serve                                         on one host
  raddle-perf run --peer h2                                 on the other: over all networks that both are in
  raddle-perf run --peer h2 --rails e0,e1 --size 4MiB       over two
  raddle-perf run --peer h2 --rails e0 --json               over one, with a last line of JSON
  raddle-perf run --peer h2 --bytes 10GB --check            10 GB, every byte compared
  raddle-perf run --peer h2 --latency-size 64KiB            latency of longer messages

Exit status: 0 measured, 1 an error of the system, the peer or the connection, 2 a wrong command line.
More: docs/reference/perf.md.";

/// Measure messages over several rails between two hosts.
#[derive(Debug, Parser)]
#[command(name = "raddle-perf", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Receive the messages of clients, and answer those that measure latency, until stopped
    #[command(after_help = EXAMPLES)]
    Serve {
        /// TCP port to listen on
        #[arg(long, default_value_t = PORT)]
        port: u16,
        #[command(flatten)]
        common: Common,
    },
    /// Measure goodput, then latency
    #[command(after_help = EXAMPLES)]
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Where the server is: a name or an IPv4 address
    #[arg(long, value_name = "HOST[:PORT]")]
    peer: String,
    /// Interfaces to send on [default: all in networks that the peer is in too]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    rails: Vec<String>,
    /// Upper bound of the rails' rates: one for all, or one for each
    #[arg(
        long = "rates",
        value_name = "RATE,...",
        value_delimiter = ',',
        default_value = "10Gbps"
    )]
    rates: Vec<BitRate>,
    /// Which rails a message takes
    #[arg(long, value_enum, default_value_t = PolicyName::Dynamic)]
    policy: PolicyName,
    /// Send from this port only; with --policy static it names the rail, modulo their number [default: as many ports as
    /// rails, in turn]
    #[arg(long, value_name = "PORT")]
    source_port: Option<u16>,
    /// How a message is cut
    #[arg(long, value_enum, default_value_t = SplitName::Weighted)]
    split: SplitName,
    /// Congestion control of each rail
    #[arg(long, default_value = "swift")]
    scheme: String,
    /// Bytes of a message while goodput is measured
    #[arg(long, default_value = "1MiB")]
    size: Bytes,
    /// How long to measure goodput [default: 5s, or without limit with --bytes]
    #[arg(long)]
    time: Option<Span>,
    /// Measure goodput until this many bytes have arrived, or --time is over
    #[arg(long)]
    bytes: Option<Bytes>,
    /// How long to send before goodput is measured
    #[arg(long, default_value = "500ms")]
    warm_up: Span,
    /// Messages under way at once while goodput is measured
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    window: u16,
    /// Bytes of a message while latency is measured
    #[arg(long, default_value = "8B")]
    latency_size: Bytes,
    /// Messages sent back and forth to measure latency, unless --latency-time ends first
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,
    /// How long to measure latency at most; the message under way is still awaited
    #[arg(long, default_value = "5s")]
    latency_time: Span,
    /// Let the server compare every byte of every message
    #[arg(long)]
    check: bool,
    /// Fail when no rail has answered for this long, at least three heartbeats
    #[arg(long, default_value = "10s")]
    give_up: Span,
    /// Print a line of JSON after each such time while goodput is measured, and when a rail fails or comes back
    #[arg(long)]
    interval: Option<Span>,
    #[command(flatten)]
    common: Common,
    /// Print a last line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Common {
    /// The site's secret; without it packets have a key that everybody knows
    #[arg(long, value_name = "FILE")]
    secret_file: Option<String>,
    /// How long to look for packets before sleeping
    #[arg(long, default_value = "50us")]
    spin: Span,
}

/// Why the command failed: what it prints, and its exit status.
struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    /// An end before the end that is no failure.
    const QUIET: Self = Self {
        text: String::new(),
        status: 0,
    };

    fn system(error: impl std::fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            status: 1,
        }
    }

    fn output(error: &io::Error) -> Self {
        let text = match error.kind() {
            // A reader that has gone (head, less) has what it wanted.
            io::ErrorKind::BrokenPipe => return Self::QUIET,
            _ => format!("standard output: {error}"),
        };
        Self::system(text)
    }

    fn input(error: impl std::fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            status: 2,
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Output(error) => Self::output(&error),
            other => Self::system(other),
        }
    }
}

impl Common {
    fn secret(&self) -> Result<Option<SiteSecret>, Failure> {
        let read = |file: &String| Ok(secret::read(file).map_err(Failure::input)?.of_site());
        self.secret_file.as_ref().map(read).transpose()
    }
}

/// The key of a job of a site, or the one that everybody knows.
fn job_key(secret: Option<&SiteSecret>, job: u32) -> JobKey {
    secret.map_or(JobKey::new([0; 16]), |secret| {
        raddle_offload::switch::job_key(secret, job)
    })
}

impl RunArgs {
    fn check(&self) -> Result<(), Failure> {
        let (size, longest) = (self.size, LONGEST);
        for (name, size) in [("size", size), ("latency-size", self.latency_size)] {
            if !(1..=longest.0).contains(&size.0) {
                let text = format!("--{name} {size}: 1B to {longest} are possible");
                return Err(Failure::input(text));
            }
        }
        if self.time == Some(Span::ZERO) {
            return Err(Failure::input(
                "--time 0s measures nothing: take 1s or more",
            ));
        }
        if self.bytes == Some(Bytes(0)) {
            return Err(Failure::input(
                "--bytes 0B measures nothing: take 1MB or more",
            ));
        }
        if size.0 * u64::from(self.window) > MOST_MEMORY {
            let (window, most) = (self.window, Bytes(MOST_MEMORY));
            return Err(Failure::input(format!(
                "--window {window} messages of {size} take more than {most} of memory"
            )));
        }
        Ok(())
    }

    fn run(self) -> Result<(), Failure> {
        self.check()?;
        let run = Run {
            secret: self.common.secret()?,
            spin: self.common.spin,
            peer: self.peer,
            rails: self.rails,
            rates: self.rates,
            policy: self.policy,
            split: self.split,
            scheme: self.scheme,
            load: Load {
                bytes: self.size.0,
                window: usize::from(self.window),
                source_port: self.source_port,
                warm_up: self.warm_up,
                time: self.time.or_else(|| self.bytes.is_none().then_some(TIME)),
                total: self.bytes.map(|bytes| bytes.0),
                check: self.check,
                interval: self.interval,
            },
            give_up: self.give_up,
            echo: Echo {
                bytes: self.latency_size.0,
                count: self.count as usize,
                time: self.latency_time,
                spin: self.common.spin,
            },
        };
        let mut screen = Screen::new();
        let report = run.measure(&mut screen)?;
        if self.json {
            let text = serde_json::to_string(&report).map_err(Failure::system)?;
            screen.print(text)?;
        }
        Ok(())
    }
}

fn serve(port: u16, common: &Common) -> Result<(), Failure> {
    let (lines, to_print) = mpsc::sync_channel(LINES);
    let server = Server {
        secret: common.secret()?,
        spin: common.spin,
        clients: AtomicUsize::new(0),
        waiting: Waiting::default(),
        lines,
    };
    let listener = server::listen(port).map_err(|error| {
        Failure::system(format!(
            "cannot listen on TCP port {port}: {error}\n  hint: --port takes another"
        ))
    })?;
    eprintln!("listening on TCP port {port}");
    thread::spawn(move || {
        for line in to_print {
            // Measuring goes on though nobody reads.
            let _ = writeln!(io::stderr(), "{line}");
        }
    });
    server.run(&listener)
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve { port, common } => serve(port, &common),
        Command::Run(args) => args.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure.status != 0 {
                eprintln!("error: {}", failure.text);
            }
            ExitCode::from(failure.status)
        }
    }
}
