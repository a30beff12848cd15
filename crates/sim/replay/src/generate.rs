//! Traces of programs of known kinds, from the message sets of `schedule::pattern`.

use std::str::FromStr;

use raddle_schedule::{
    Message as Planned,
    pattern::{Particles, PatternError, SparseRows, Stencil, Sweep},
};
use raddle_trace::{Action, Event, Interval, Message, Trace, Wildcards};
use raddle_units::{Bytes, Span};
use thiserror::Error;

/// A kind of program; the six that Peng et al. took their message sets from, as patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Application {
    /// Particle in cell: particles that leave their box, a few of them far; a count and the particles.
    ParticleInCell,
    /// Electromagnetics in the time domain: faces of a 3-D grid, three components.
    Electromagnetics,
    /// Discrete-ordinates (SN) transport: sweeps from four corners of a 2-D grid.
    Transport,
    /// Laser fusion: faces, edges and corners of a 3-D grid, five variables.
    LaserFusion,
    /// Radiation hydrodynamics: the halo of a sparse matrix, two vectors.
    RadiationHydrodynamics,
    /// Molecular dynamics: atoms near the sides of periodic boxes, to 26 neighbours.
    MolecularDynamics,
}

/// How long most messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// Up to about a kilobyte: cost per message dominates.
    Small,
    /// Tens of kilobytes: the network's rate dominates.
    Large,
}

/// A name that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is unknown: use {known}")]
pub struct UnknownName {
    name: String,
    known: String,
}

/// A trace to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generate {
    /// The kind of program.
    pub application: Application,
    /// How long its messages are.
    pub sizes: Sizes,
    /// Ranks.
    pub ranks: u32,
    /// Ranks of a host, in order.
    pub per_host: u32,
    /// Exchanges, or sweeps from all corners.
    pub exchanges: u32,
    /// Computing before each superstep.
    pub gap: Span,
    /// Seed of what is random.
    pub seed: u64,
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ParticleInCell,
        Self::Electromagnetics,
        Self::Transport,
        Self::LaserFusion,
        Self::RadiationHydrodynamics,
        Self::MolecularDynamics,
    ];

    /// Its name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ParticleInCell => "particle-in-cell",
            Self::Electromagnetics => "electromagnetics",
            Self::Transport => "transport",
            Self::LaserFusion => "laser-fusion",
            Self::RadiationHydrodynamics => "radiation-hydrodynamics",
            Self::MolecularDynamics => "molecular-dynamics",
        }
    }

    /// Messages of a pair per exchange, one after the other.
    const fn fields(self) -> u32 {
        match self {
            Self::Electromagnetics => 3,
            Self::LaserFusion => 5,
            Self::ParticleInCell | Self::RadiationHydrodynamics => 2,
            Self::Transport | Self::MolecularDynamics => 1,
        }
    }
}

impl FromStr for Application {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownName {
            name: name.chars().take(30).collect(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

impl FromStr for Sizes {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "small" => Ok(Self::Small),
            "large" => Ok(Self::Large),
            _ => Err(UnknownName {
                name: name.chars().take(30).collect(),
                known: "small, large".to_owned(),
            }),
        }
    }
}

impl Generate {
    /// The trace: in each superstep every rank computes, posts its receives, sends, and waits for all of it.
    ///
    /// # Errors
    /// No ranks, or too many.
    pub fn trace(&self) -> Result<Trace, PatternError> {
        let mut ranks = vec![Vec::new(); self.ranks as usize];
        let mut writers = vec![Writer::default(); self.ranks as usize];
        for messages in self.supersteps()? {
            self.superstep(&messages, &mut writers, &mut ranks);
        }
        for (writer, events) in writers.iter().zip(&mut ranks) {
            events.push(writer.event(Action::End));
        }
        let hosts = self.ranks.div_ceil(self.per_host.max(1));
        Ok(Trace {
            ranks,
            placement: (0..self.ranks)
                .map(|rank| rank / self.per_host.max(1))
                .collect(),
            hosts: (0..hosts).map(|host| format!("host{host}")).collect(),
            communicators: vec![(0..self.ranks).collect()],
            fabric: String::new(),
            program: format!("generated: {}, seed {}", self.application.name(), self.seed),
            mpi: "generated".to_owned(),
            processors: None,
        })
    }

    fn supersteps(&self) -> Result<Vec<Vec<Planned>>, PatternError> {
        let small = self.sizes == Sizes::Small;
        let pick = |few, many| if small { few } else { many };
        let grid = sides(self.ranks);
        let mut supersteps = Vec::new();
        for exchange in 0..u64::from(self.exchanges) {
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(exchange);
            let stencil = |diagonals| Stencil {
                ranks: grid,
                points: [pick(8, 64); 3],
                width: 1,
                point: Bytes(8),
                diagonals,
                periodic: false,
            };
            match self.application {
                Application::ParticleInCell => supersteps.push(
                    Particles {
                        ranks: grid,
                        leaving: pick(30, 6_000) as u32,
                        far_one_in: 50,
                        particle: Bytes(48),
                        head: Bytes(8),
                        seed,
                    }
                    .superstep()?,
                ),
                Application::MolecularDynamics => supersteps.push(
                    Particles {
                        ranks: grid,
                        leaving: pick(100, 10_000) as u32,
                        far_one_in: 0,
                        particle: Bytes(24),
                        head: Bytes(8),
                        seed,
                    }
                    .superstep()?,
                ),
                Application::Electromagnetics => supersteps.push(stencil(false).superstep()?),
                Application::LaserFusion => supersteps.push(stencil(true).superstep()?),
                Application::RadiationHydrodynamics => supersteps.push(
                    SparseRows {
                        ranks: self.ranks,
                        rows: pick(200, 5_000) as u32,
                        entries: 6,
                        band: pick(300, 7_500) as u32,
                        far_one_in: pick(100, 2_000) as u32,
                        value: Bytes(8),
                        seed: self.seed,
                    }
                    .superstep()?,
                ),
                Application::Transport => {
                    let [first, second, third] = grid;
                    let sweep = Sweep {
                        ranks: [first * third, second],
                        cells: [pick(4, 16); 2],
                        planes: pick(2, 8),
                        blocks: 8,
                        angles: pick(4, 16),
                        value: Bytes(8),
                    };
                    supersteps.extend(sweep.supersteps()?);
                }
            }
        }
        Ok(supersteps)
    }

    fn superstep(&self, messages: &[Planned], writers: &mut [Writer], ranks: &mut [Vec<Event>]) {
        let fields = self.application.fields();
        let mut part = vec![false; ranks.len()];
        for message in messages {
            for end in [message.source, message.target] {
                let writer = &mut writers[end as usize];
                if !std::mem::replace(&mut part[end as usize], true) {
                    writer.now_ns += self.gap.as_ns();
                }
            }
        }
        for receiving in [true, false] {
            for field in 0..fields {
                for &Planned {
                    source,
                    target,
                    bytes,
                } in messages
                {
                    let (own, peer) = if receiving {
                        (target, source)
                    } else {
                        (source, target)
                    };
                    let message = Message {
                        peer,
                        tag: field as i32,
                        comm: 0,
                        bytes,
                    };
                    let writer = &mut writers[own as usize];
                    ranks[own as usize].push(writer.start(message, receiving));
                }
            }
        }
        for ((writer, events), part) in writers.iter_mut().zip(ranks).zip(part) {
            if part {
                let requests = std::mem::take(&mut writer.open).into();
                events.push(writer.event(Action::Wait { requests }));
            }
        }
    }
}

/// A rank while its calls are made.
#[derive(Debug, Clone, Default)]
struct Writer {
    now_ns: u64,
    requests: u32,
    open: Vec<u32>,
}

impl Writer {
    fn event(&self, action: Action) -> Event {
        let at = Interval::instant(self.now_ns);
        Event { at, action }
    }

    fn start(&mut self, message: Message, receiving: bool) -> Event {
        let request = Some(self.requests);
        self.open.push(self.requests);
        self.requests += 1;
        self.event(if receiving {
            Action::Receive {
                message,
                request,
                any: Wildcards::default(),
            }
        } else {
            Action::Send { message, request }
        })
    }
}

/// A number of ranks as three factors that are as near to each other as can be, the greatest first (MPI_Dims_create).
fn sides(ranks: u32) -> [u32; 3] {
    let mut best = [ranks, 1, 1];
    let divisors = |of: u32| {
        (1..=of)
            .take_while(move |d| d * d <= of)
            .filter(move |d| of.is_multiple_of(*d))
    };
    for third in divisors(ranks) {
        for second in divisors(ranks / third) {
            let mut sides = [ranks / third / second, second, third];
            sides.sort_unstable_by(|a, b| b.cmp(a));
            if sides[0] - sides[2] < best[0] - best[2] {
                best = sides;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use raddle_trace::{Pairing, Supersteps};

    use super::*;

    #[test]
    fn sides_are_near_to_each_other() {
        for (ranks, expected) in [
            (96, [6, 4, 4]),
            (384, [8, 8, 6]),
            (1, [1, 1, 1]),
            (7, [7, 1, 1]),
            (64, [4, 4, 4]),
        ] {
            assert_eq!(sides(ranks), expected);
        }
    }

    #[test]
    fn every_application_is_a_trace_with_its_messages() {
        for application in Application::ALL {
            assert_eq!(application.name().parse::<Application>(), Ok(application));
            for sizes in [Sizes::Small, Sizes::Large] {
                let generate = Generate {
                    application,
                    sizes,
                    ranks: 48,
                    per_host: 12,
                    exchanges: 2,
                    gap: Span::from_us(10),
                    seed: 3,
                };
                let trace = generate.trace().unwrap();
                trace.check().unwrap();
                let pairing = Pairing::new(&trace).unwrap();
                let planned = generate.supersteps().unwrap();
                let fields = application.fields() as usize;
                let count: usize = planned.iter().map(Vec::len).sum();
                assert_eq!(pairing.messages().len(), count * fields);
                let bytes: u64 = planned
                    .iter()
                    .flatten()
                    .map(|message| message.bytes.0)
                    .sum();
                let told: u64 = pairing
                    .messages()
                    .iter()
                    .map(|message| message.bytes.0)
                    .sum();
                assert_eq!(told, bytes * fields as u64);
                let mean = told / pairing.messages().len() as u64;
                let long = mean > 2_000;
                assert_eq!(long, sizes == Sizes::Large, "{application:?}: {mean} B");
                // In lock step the trace's supersteps are the exchanges; sweeps overlap.
                if application != Application::Transport {
                    assert_eq!(Supersteps::new(&trace, &pairing).len(), 2);
                }
            }
        }
    }
}
