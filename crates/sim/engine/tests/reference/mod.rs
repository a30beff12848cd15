//! Runs of the HPCC repository's ns-3 simulator (tests/data/hpcc-ns3) beside ours on the same input: the cases, our
//! run, and every figure of both.

mod figures;
mod files;

use std::sync::Arc;

use raddle_engine::{
    Network, Progress, Recorder, RunConfig, RunSummary, Semantics,
    record::{AckRecord, FlowRecord, PauseRecord},
    simulate,
};
use raddle_fabric::{Fabric, FatTree320, Small20};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes, Span, Time};

pub(crate) use figures::compare;
use files::Reference;

/// The published timers of DCQCN's own paper instead of those of its ConnectX-like preset.
const DCQCN_PAPER: &str = "dcqcn_paper";

/// One run of the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Folder of the test data: `small`, `large` (400G between switches), `large100`.
    pub(crate) experiment: &'static str,
    /// The scheme, or `dcqcn_paper`.
    pub(crate) variant: &'static str,
    /// The largest difference of an FCT percentile that is promised, as a fraction: 6 % for schemes that draw lots.
    pub(crate) fct_limit: f64,
}

/// All runs that the project has.
pub(crate) const CASES: &[Case] = &[
    Case::deterministic("small", "none"),
    Case::deterministic("small", "dctcp"),
    Case::drawing("small", "dcqcn"),
    Case::drawing("small", DCQCN_PAPER),
    Case::deterministic("small", "timely"),
    Case::deterministic("small", "hpcc"),
    Case::drawing("small", "pint"),
    Case::deterministic("large", "hpcc"),
    Case::drawing("large", "dcqcn"),
    Case::deterministic("large100", "none"),
    Case::deterministic("large100", "dctcp"),
    Case::deterministic("large100", "hpcc"),
];

/// What one simulator says about a case.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Completed flows in order of completion.
    pub(crate) completions: Vec<Completion>,
    /// Flows that never complete.
    pub(crate) unfinished: usize,
    /// (node, port, start, end in ns) of every pause.
    pub(crate) pauses: Vec<(u32, u32, u64, u64)>,
    /// (time in ns, source, acknowledged byte) of the long flows of `small`, in order of time.
    pub(crate) progress: Vec<(u64, u32, u64)>,
}

/// A flow that completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Completion {
    /// Source, destination and source port.
    pub(crate) flow: (u32, u32, u16),
    /// Its class.
    pub(crate) class: String,
    /// Payload bytes.
    pub(crate) size: u64,
    /// Start and completion time in ns.
    pub(crate) start: u64,
    /// Nanoseconds from start to the last acknowledgement.
    pub(crate) fct: u64,
}

impl Case {
    const fn deterministic(experiment: &'static str, variant: &'static str) -> Self {
        Self {
            experiment,
            variant,
            fct_limit: 0.02,
        }
    }

    const fn drawing(experiment: &'static str, variant: &'static str) -> Self {
        Self {
            experiment,
            variant,
            fct_limit: 0.06,
        }
    }

    fn fabric(&self) -> Fabric {
        let fabric_rate = match self.experiment {
            "small" => return Small20::default().build().unwrap(),
            "large" => BitRate::from_gbps(400),
            _ => BitRate::from_gbps(100),
        };
        FatTree320 {
            fabric_rate,
            ..FatTree320::default()
        }
        .build()
        .unwrap()
    }

    fn settings(&self) -> (&'static str, SchemeSettings) {
        let mut settings = SchemeSettings::default();
        if self.variant != DCQCN_PAPER {
            return (self.variant, settings);
        }
        settings.dcqcn.alpha_interval = Some(Span::from_us(50));
        settings.dcqcn.decrease_interval = Some(Span::from_us(50));
        settings.dcqcn.increase_interval = Some(Span::from_us(55));
        ("dcqcn", settings)
    }

    /// What the reference measured.
    pub(crate) fn reference(&self) -> Outcome {
        Reference::new(self.experiment).outcome(self.variant)
    }

    /// Our run on the same input; seed 1 is the reference's.
    pub(crate) fn run(&self, semantics: Semantics, seed: u64) -> (Outcome, RunSummary) {
        let network = Network::new(Arc::new(self.fabric()), semantics, Bytes(1000)).unwrap();
        let (scheme, settings) = self.settings();
        let (parameters, _) = settings.resolve(scheme, &network.environment).unwrap();
        let mut config = RunConfig::new(parameters, seed, BitRate::from_gbps(100));
        config.record_acks = self.experiment == "small";
        config.sample_interval = Span::ZERO;
        let reference = Reference::new(self.experiment);
        let mut workload = reference.flows(semantics == Semantics::HPCC_NS3);
        let mut record = Record {
            classes: raddle_workload::Workload::classes(&workload).to_vec(),
            outcome: Outcome::default(),
        };
        let progress = Progress::default();
        let summary = simulate(&network, &config, &mut workload, &mut record, &progress).unwrap();
        (record.outcome, summary)
    }
}

/// Keeps what the comparison needs.
struct Record {
    classes: Vec<String>,
    outcome: Outcome,
}

impl Recorder for Record {
    fn flow(&mut self, flow: &FlowRecord) {
        let (Some(fct), Some(dst)) = (flow.fct, flow.dst.host()) else {
            self.outcome.unfinished += 1;
            return;
        };
        self.outcome.completions.push(Completion {
            flow: (flow.src.0, dst.0, flow.sport),
            class: files::class_of(flow.size.0, self.classes.get(usize::from(flow.class))),
            size: flow.size.0,
            start: flow.start.as_ns(),
            fct: fct.as_ns(),
        });
    }

    fn pause(&mut self, pause: &PauseRecord) {
        let ns = |time: Time| time.as_ns();
        let (node, port) = (pause.node.0, u32::from(pause.port));
        self.outcome
            .pauses
            .push((node, port, ns(pause.start), ns(pause.end)));
    }

    fn ack(&mut self, ack: &AckRecord) {
        if files::LONG_SENDERS.contains(&ack.src.0) {
            self.outcome
                .progress
                .push((ack.time.as_ns(), ack.src.0, ack.seq));
        }
    }
}
