//! `raddle-perf`: goodput and latency of messages over rails between two hosts.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is where a command talks to its user"
)]

mod measure;

use std::{net::SocketAddrV4, process::ExitCode, str::FromStr};

use clap::{Args, Parser, Subcommand, ValueEnum};
use raddle_net::{
    daemon::epoch,
    rails::{Node, RailAddress},
    secret,
};
use raddle_offload::switch::job_key;
use raddle_transport::rails::{Config, Policy, Segmentation};
use raddle_units::{BitRate, Bytes, Span};
use raddle_wire::{native::JobKey, rails::DATA_OVERHEAD};

const EXAMPLES: &str = "\
Examples, on two hosts that are joined by two networks:
  raddle-perf serve     --rail 10.0.1.2:7000=10.0.1.1:7000 --rail 10.0.2.2:7000=10.0.2.1:7000
  raddle-perf bandwidth --rail 10.0.1.1:7000=10.0.1.2:7000 --rail 10.0.2.1:7000=10.0.2.2:7000
  raddle-perf latency   --rail 10.0.1.1:7000=10.0.1.2:7000 --size 8B --count 10000

A rail is this host's address and port, `=`, and the other's. Both sides name them in the same order.
Exit status: 0 measured, 1 an error of the system or the connection, 2 a wrong command line.
How it works: docs/rails.md.";

/// Measures messages over several rails between two hosts.
#[derive(Debug, Parser)]
#[command(name = "raddle-perf", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Receive messages, and send back those that ask for it, until stopped
    Serve {
        #[command(flatten)]
        common: Common,
        /// Most bytes of a message
        #[arg(long, default_value = "16MiB")]
        longest: Bytes,
        /// End after the first connection
        #[arg(long)]
        once: bool,
    },
    /// Send messages as fast as they go, and print the goodput
    Bandwidth {
        #[command(flatten)]
        common: Common,
        /// Bytes of a message
        #[arg(long, default_value = "1MiB")]
        size: Bytes,
        /// How long to measure
        #[arg(long, default_value = "5s")]
        time: Span,
        /// How long to send before
        #[arg(long, default_value = "500ms")]
        warm_up: Span,
        /// Messages on their way at once
        #[arg(long, default_value_t = 16)]
        window: usize,
    },
    /// Send messages back and forth, and print half the round-trip times
    Latency {
        #[command(flatten)]
        common: Common,
        /// Bytes of a message
        #[arg(long, default_value = "8B")]
        size: Bytes,
        /// Messages
        #[arg(long, default_value_t = 10_000)]
        count: usize,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// A rail: LOCAL=PEER, addresses with UDP ports; once per rail
    #[arg(long = "rail", value_name = "LOCAL=PEER", required = true, value_parser = rail)]
    rails: Vec<RailAddress>,
    /// Rate of the rails, an upper bound; once for all or once per rail
    #[arg(long = "rate", value_name = "RATE", default_value = "10Gbps")]
    rates: Vec<BitRate>,
    /// Bytes that a rail's IPv4 packets may have
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(200..))]
    mtu: u16,
    /// Which rails a message takes
    #[arg(long, value_enum, default_value_t = PolicyName::Dynamic)]
    policy: PolicyName,
    /// How it is cut
    #[arg(long, value_enum, default_value_t = CutName::WaterFill)]
    cut: CutName,
    /// Congestion control of each rail
    #[arg(long, default_value = "swift")]
    scheme: String,
    /// Time between heartbeats
    #[arg(long, default_value = "20ms")]
    heartbeat: Span,
    /// How late the hosts may be without a queue; more on hosts that share their processors
    #[arg(long, default_value = "200us")]
    lateness: Span,
    /// The site's secret; without it a key that everybody knows
    #[arg(long, value_name = "FILE")]
    secret_file: Option<String>,
    /// Look for packets so long before sleeping
    #[arg(long, default_value = "50us")]
    spin: Span,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyName {
    /// Rails that are free at both ends
    Dynamic,
    /// The rail of the source port
    Static,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CutName {
    /// By latency, bandwidth and backlog, segment by segment
    WaterFill,
    /// Equal pieces
    Equal,
}

/// Why the command failed: what it prints, and its exit status.
struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    fn system(error: impl std::fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            status: 1,
        }
    }

    fn input(error: impl std::fmt::Display) -> Self {
        Self {
            text: error.to_string(),
            status: 2,
        }
    }
}

fn rail(text: &str) -> Result<RailAddress, String> {
    let (local, peer) = text
        .split_once('=')
        .ok_or("a rail is LOCAL=PEER, such as 10.0.1.1:7000=10.0.1.2:7000")?;
    let address = |text| {
        SocketAddrV4::from_str(text).map_err(|_| format!("{text:?} is no IPv4 address with a port"))
    };
    Ok(RailAddress {
        local: address(local)?,
        peer: address(peer)?,
    })
}

impl Common {
    /// Opens this side's node; the client is node 0.
    fn open(&self, local: u32) -> Result<Node, Failure> {
        let rates = match self.rates.as_slice() {
            [one] => vec![*one; self.rails.len()],
            rates => rates.to_vec(),
        };
        let key = match &self.secret_file {
            Some(file) => job_key(&secret::read(file).map_err(Failure::input)?.of_site(), 0),
            None => JobKey::new([0; 16]),
        };
        let epoch = epoch().map_err(Failure::system)?;
        let mut config = Config::new(0, key, local, 1 - local, epoch, rates);
        config.segment = self.mtu.min(u16::MAX - 28) - 28 - DATA_OVERHEAD as u16;
        config.policy = match self.policy {
            PolicyName::Dynamic => Policy::Dynamic,
            PolicyName::Static => Policy::Static,
        };
        config.segmentation = match self.cut {
            CutName::WaterFill => Segmentation::WaterFill,
            CutName::Equal => Segmentation::Equal,
        };
        config.scheme.clone_from(&self.scheme);
        config.heartbeat = self.heartbeat;
        config.lateness = self.lateness;
        Node::open(config, &self.rails).map_err(Failure::input)
    }
}

fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Serve {
            common,
            longest,
            once,
        } => loop {
            let mut node = common.open(1)?;
            let ended = measure::serve(&mut node, longest.0, common.spin);
            match ended {
                Err(error) if *once => return Err(Failure::system(error)),
                Err(error) if error.is_fatal() => return Err(Failure::system(error)),
                Err(error) => eprintln!("connection ended: {error}"),
                Ok(()) => return Ok(()),
            }
        },
        Command::Bandwidth {
            common,
            size,
            time,
            warm_up,
            window,
        } => {
            let mut node = common.open(0)?;
            let load = measure::Load {
                bytes: size.0,
                window: *window,
            };
            let measured = measure::bandwidth(&mut node, load, *warm_up, *time, common.spin);
            print(&measured.map_err(Failure::system)?, common.json)
        }
        Command::Latency {
            common,
            size,
            count,
        } => {
            let mut node = common.open(0)?;
            let measured = measure::latency(&mut node, size.0, *count, common.spin);
            print(&measured.map_err(Failure::system)?, common.json)
        }
    }
}

fn print<T: serde::Serialize + std::fmt::Display>(measured: &T, json: bool) -> Result<(), Failure> {
    if json {
        println!(
            "{}",
            serde_json::to_string(measured).map_err(Failure::system)?
        );
    } else {
        println!("{measured}");
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}
