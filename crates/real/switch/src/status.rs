//! What a switch tells about itself: the same values as JSON, as a page for people, and as metrics.

use std::fmt::{self, Write as _};

use raddle_offload::{published, switch};
use serde::{Deserialize, Serialize};

use crate::fast::FastPort;

/// The state of a switch. Counters count from its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Version of this layout: 1.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its hardware address.
    pub mac: String,
    /// Its tier.
    pub tier: u8,
    /// What moves frames: `sockets` or `xdp`.
    pub backend: String,
    /// `running`, or `draining` after SIGTERM.
    pub state: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Which life of the switch this is.
    pub epoch: u32,
    /// Stations learnt.
    pub stations: u64,
    /// Neighbours whose hardware address is known.
    pub neighbours: u64,
    /// Ports in the order of the configuration.
    pub ports: Vec<PortStatus>,
    /// Jobs with state here, by number.
    pub jobs: Vec<JobStatus>,
    /// The published protocol; nothing if the switch does not speak it.
    #[serde(default)]
    pub published: Option<PublishedStatus>,
    /// Counters of the whole switch.
    pub counters: Counters,
    /// Frames and messages dropped, by reason.
    pub drops: Vec<Drops>,
}

/// A port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its interface.
    pub interface: String,
    /// Whether it leads to the next tier.
    pub uplink: bool,
    /// Whether frames can be sent and received.
    pub up: bool,
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames that the interface did not take.
    pub refused: u64,
    /// How often it went away or lost its carrier.
    pub losses: u64,
}

/// What a job uses and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// The job.
    pub job: u32,
    /// Groups installed.
    pub groups: u64,
    /// Slots of these groups.
    pub slots: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Messages with contributions.
    pub contributions: u64,
    /// Segments completed here; only in the root.
    pub segments: u64,
    /// Rounds whose last segment was completed here; only in the root.
    pub rounds: u64,
    /// Contributions that came again.
    pub repeats: u64,
    /// Contributions for segments that are over.
    pub stale: u64,
    /// Messages refused, or refusals passed on.
    pub refusals: u64,
}

/// What a switch did by the published protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedStatus {
    /// Groups that it knows.
    pub groups: u64,
    /// Groups that were set up.
    pub set_up: u64,
    /// Groups that were refused.
    pub refused: u64,
    /// Groups forgotten because nothing came.
    pub forgotten: u64,
    /// Queries, notifies and kills that passed.
    pub controls: u64,
    /// Packets of leaders that were held.
    pub held: u64,
    /// Rounds whose result went back.
    pub rounds: u64,
}

impl From<&published::Switch> for PublishedStatus {
    fn from(switch: &published::Switch) -> Self {
        let counters = switch.counters();
        Self {
            groups: switch.group_count() as u64,
            set_up: counters.groups,
            refused: counters.refused,
            forgotten: counters.forgotten,
            controls: counters.controls,
            held: counters.held,
            rounds: counters.rounds,
        }
    }
}

/// Counters of the whole switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Messages for the switch itself.
    pub messages: u64,
    /// Messages that it sent.
    pub messages_sent: u64,
    /// Queries and notifies that crossed it and were rewritten.
    pub rewritten: u64,
    /// ARP requests answered.
    pub arp_answers: u64,
    /// Pings answered.
    pub pings: u64,
    /// Stations that turned up behind another port.
    pub moves: u64,
    /// Frames whose sender was not learnt because the table was full.
    pub unlearnt: u64,
    /// Frames lost in the kernel because the switch was too slow.
    pub overflow: u64,
}

/// Drops of one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The reason, a word.
    pub reason: String,
    /// How many.
    pub count: u64,
}

impl PortStatus {
    /// Adds what went by the fast path.
    pub const fn add(&mut self, more: &FastPort) {
        self.received += more.received;
        self.received_bytes += more.received_bytes;
        self.sent += more.sent;
        self.sent_bytes += more.sent_bytes;
    }
}

impl JobStatus {
    /// Adds what the fast path counted under a name of this structure; other names mean nothing here.
    pub fn add(&mut self, what: &str, count: u64) {
        let field = match what {
            "contributions" => &mut self.contributions,
            "segments" => &mut self.segments,
            "rounds" => &mut self.rounds,
            "repeats" => &mut self.repeats,
            "stale" => &mut self.stale,
            _ => return,
        };
        *field += count;
    }
}

impl From<&switch::JobStatus> for JobStatus {
    fn from(job: &switch::JobStatus) -> Self {
        let counters = job.counters;
        Self {
            job: job.job,
            groups: job.groups.into(),
            slots: job.slots.into(),
            bytes: job.bytes,
            contributions: counters.contributions,
            segments: counters.segments,
            rounds: counters.rounds,
            repeats: counters.repeats,
            stale: counters.stale,
            refusals: counters.refusals,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}  {}  {}  tier {}  {}  {}  up {}",
            self.name,
            self.address,
            self.mac,
            self.tier,
            self.backend,
            self.state,
            time(self.uptime_s)
        )?;
        writeln!(
            out,
            "{} stations, {} neighbours; {} messages, {} sent, {} overflows",
            self.stations,
            self.neighbours,
            self.counters.messages,
            self.counters.messages_sent,
            self.counters.overflow
        )?;
        let ports = self.ports.iter().map(|port| {
            [
                port.interface.clone(),
                match (port.up, port.uplink) {
                    (true, true) => "up, uplink".to_owned(),
                    (true, false) => "up".to_owned(),
                    (false, _) => "DOWN".to_owned(),
                },
                port.received.to_string(),
                port.received_bytes.to_string(),
                port.sent.to_string(),
                port.sent_bytes.to_string(),
                port.refused.to_string(),
                port.losses.to_string(),
            ]
        });
        let titles = [
            "port", "state", "received", "bytes", "sent", "bytes", "refused", "losses",
        ];
        out.write_str(&table(titles, ports))?;
        if !self.jobs.is_empty() {
            let jobs = self.jobs.iter().map(|job| {
                let numbers = [
                    job.groups,
                    job.slots,
                    job.bytes,
                    job.contributions,
                    job.rounds,
                    job.repeats,
                    job.stale,
                    job.refusals,
                ];
                let [a, b, c, d, e, f, g, h] = numbers.map(|number| number.to_string());
                [job.job.to_string(), a, b, c, d, e, f, g, h]
            });
            let titles = [
                "job", "groups", "slots", "bytes", "messages", "rounds", "repeats", "stale",
                "refused",
            ];
            out.write_str(&table(titles, jobs))?;
        }
        if let Some(published) = &self.published {
            writeln!(
                out,
                "\npublished protocol: {} groups; {} packets held, {} rounds, {} refused, {} forgotten",
                published.groups,
                published.held,
                published.rounds,
                published.refused,
                published.forgotten
            )?;
        }
        let drops: Vec<_> = self
            .drops
            .iter()
            .filter(|drops| drops.count > 0)
            .map(|drops| format!("{} {}", drops.count, drops.reason))
            .collect();
        if !drops.is_empty() {
            writeln!(out, "\ndropped: {}", drops.join(", "))?;
        }
        Ok(())
    }
}

/// Rows below titles: the first column to the left, the others to the right.
fn table<const N: usize>(titles: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![titles.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = "\n".to_owned();
    for line in &lines {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
