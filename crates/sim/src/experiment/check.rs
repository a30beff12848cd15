//! What the types of an experiment cannot say: ranges, duplicates, and things that exclude each other.

use std::collections::BTreeSet;

use raddle_transport::cc::SchemeSettings;
use raddle_units::Span;
use raddle_wire::rails::{DATA_OVERHEAD, MAX_RAILS};
use raddle_workload::{TrafficSource, TrafficSpec};

use super::{
    document::{Location, Node, Value},
    error::{InputError as ExperimentError, Problem, suggest},
    fields::{Compat, Experiment, ScoreWeights},
};

/// Latest instant that a run may be told about: more is a mistake of units.
const MAX_TIME: Span = Span(86_400 * 1_000_000_000_000);
/// Most runs of one experiment.
const MAX_RUNS: usize = 10_000;
/// Least time between two samples.
const FINEST_SAMPLE: Span = Span::from_ns(1);
/// Most ports that have a series of their own.
pub(super) const MAX_SERIES: u32 = 10_000;
/// Difference from 1 up to which weights are taken as meant to sum to 1, and scaled.
const WEIGHT_TOLERANCE: f64 = 0.011;

/// Checks an experiment whose keys and types are right. `root` gives the places.
pub(crate) fn check(experiment: &Experiment, root: &Node) -> Result<(), ExperimentError> {
    let check = Check { root };
    check.general(experiment)?;
    check.schemes_and_seeds(experiment)?;
    check.simulation(experiment)?;
    check.numbers_of_schemes()?;
    check.faults(experiment)?;
    check.rails(experiment)?;
    check.record(experiment)?;
    check.score(experiment)
}

struct Check<'a> {
    root: &'a Node,
}

impl Check<'_> {
    fn error(&self, path: &[&str], message: impl Into<String>) -> ExperimentError {
        let key = path
            .last()
            .map_or_else(String::new, |key| format!("`{key}`: "));
        let problem = Problem::Value {
            key,
            message: message.into(),
        };
        ExperimentError::at(self.root.locate(path), problem)
    }

    fn item(&self, path: &[&str], index: usize) -> Location {
        match self.root.find(path).map(|node| &node.value) {
            Some(Value::Array(items)) if index < items.len() => items[index].at.clone(),
            _ => self.root.locate(path).clone(),
        }
    }

    fn general(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        if experiment.schema != 1 {
            let message = format!("version {} is unknown", experiment.schema);
            return Err(self
                .error(&["schema"], message)
                .with_hint("write schema = 1"));
        }
        match &experiment.name {
            Some(name)
                if name.trim().is_empty()
                    || name.len() > 120
                    || name.contains(char::is_control) =>
            {
                Err(self.error(&["name"], "a name is one line of 1 to 120 characters"))
            }
            _ => Ok(()),
        }
    }

    fn schemes_and_seeds(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let simulation = &experiment.simulation;
        let schemes_at = ["simulation", "schemes"];
        let known: Vec<&str> = SchemeSettings::schemes()
            .iter()
            .map(|scheme| scheme.name)
            .collect();
        let schemes = simulation.schemes.as_deref().unwrap_or(&[]);
        if simulation.schemes.is_some() && schemes.is_empty() {
            return Err(self
                .error(&schemes_at, "the list is empty")
                .with_hint(format!("name at least one of {}", known.join(", "))));
        }
        for (index, scheme) in schemes.iter().enumerate() {
            if !known.contains(&scheme.as_str()) {
                let word: String = scheme.chars().take(60).collect();
                let problem = Problem::UnknownWord {
                    what: "scheme".to_owned(),
                    word,
                };
                let error = ExperimentError::at(&self.item(&schemes_at, index), problem);
                return Err(error.with_hint(suggest(scheme, &known)));
            }
            if schemes[..index].contains(scheme) {
                return Err(self.twice(&schemes_at, index, scheme));
            }
        }
        let seeds_at = ["simulation", "seeds"];
        let seeds = simulation.seeds.as_deref().unwrap_or(&[]);
        if simulation.seeds.is_some() && seeds.is_empty() {
            return Err(self
                .error(&seeds_at, "the list is empty")
                .with_hint("give at least one seed, like seeds = [1]"));
        }
        let mut seen = BTreeSet::new();
        if let Some(index) = seeds.iter().position(|seed| !seen.insert(seed)) {
            return Err(self.twice(&seeds_at, index, &seeds[index].to_string()));
        }
        if schemes.len().max(1) * seeds.len() > MAX_RUNS {
            return Err(self.error(
                &seeds_at,
                format!("more than {MAX_RUNS} runs: split the experiment"),
            ));
        }
        Ok(())
    }

    fn twice(&self, path: &[&str], index: usize, word: &str) -> ExperimentError {
        let key = path
            .last()
            .map_or_else(String::new, |key| format!("`{key}`: "));
        let problem = Problem::Value {
            key,
            message: format!("{word} stands twice"),
        };
        ExperimentError::at(&self.item(path, index), problem).with_hint("remove one of them")
    }

    fn simulation(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let simulation = &experiment.simulation;
        let at = |key: &'static str| ["simulation", key];
        if simulation
            .mtu
            .is_some_and(|mtu| !(64..=9000).contains(&mtu.0))
        {
            return Err(self.error(&at("mtu"), "a packet carries 64B to 9000B of payload"));
        }
        if simulation
            .buffer
            .is_some_and(|buffer| buffer.0 == 0 || buffer.0 > u64::from(u32::MAX))
        {
            return Err(self.error(&at("buffer"), "a switch's buffer is above 0 and below 4GiB"));
        }
        if simulation.min_rate.is_some_and(|rate| rate.0 == 0) {
            return Err(self
                .error(&at("min_rate"), "a flow at rate 0 would never end")
                .with_hint("give a small rate, like \"100Mbps\""));
        }
        let times = [
            ("end", simulation.end),
            ("retransmission_timeout", simulation.retransmission_timeout),
            ("reroute_delay", simulation.reroute_delay),
        ];
        for (key, time) in times {
            if time.is_some_and(|time| time > MAX_TIME) {
                return Err(self.error(&at(key), "more than a day: check the unit"));
            }
        }
        if simulation.end == Some(Span::ZERO) {
            return Err(self
                .error(&at("end"), "a run of no length has no results")
                .with_hint("leave it out to run until the traffic is done"));
        }
        if simulation.retransmission_timeout == Some(Span::ZERO) {
            return Err(self
                .error(&at("retransmission_timeout"), "it would go off at once")
                .with_hint("leave it out for 20ms"));
        }
        if simulation.compat == Some(Compat::HpccNs3) {
            if !experiment.switch.is_empty() {
                return Err(self
                    .error(
                        &["switch"],
                        "compat = \"hpcc-ns3\" shares buffers as that simulator does",
                    )
                    .with_hint("remove it, or remove `compat`"));
            }
            for key in ["retransmission_timeout", "max_timeouts"] {
                if self.root.find(&["simulation", key]).is_some() {
                    return Err(self
                        .error(
                            &["simulation", key],
                            "compat = \"hpcc-ns3\" has no retransmission timer",
                        )
                        .with_hint("remove it, or remove `compat`"));
                }
            }
        }
        if simulation.ecn_marks.is_some() {
            let runs = (
                simulation.schemes.as_ref().map_or(0, Vec::len),
                simulation.seeds.as_ref().map_or(1, Vec::len),
            );
            if runs != (1, 1) {
                return Err(self
                    .error(&at("ecn_marks"), "a trace of marks belongs to one run")
                    .with_hint("name exactly one scheme and one seed"));
            }
            if simulation.isolated == Some(true) {
                return Err(self
                    .error(
                        &at("isolated"),
                        "the marks of `ecn_marks` do not fit the isolated twin",
                    )
                    .with_hint("remove one of the two"));
            }
        }
        Ok(())
    }

    /// No parameter of a scheme is below zero; types and units were checked before.
    fn numbers_of_schemes(&self) -> Result<(), ExperimentError> {
        let Some(Value::Table(schemes)) = self.root.find(&["schemes"]).map(|node| &node.value)
        else {
            return Ok(());
        };
        for scheme in &schemes.entries {
            let Value::Table(parameters) = &scheme.node.value else {
                continue;
            };
            for parameter in &parameters.entries {
                let negative = match parameter.node.value {
                    Value::Float(number) => number < 0.0,
                    Value::Integer(number) => number < 0,
                    _ => false,
                };
                if negative {
                    return Err(self.error(
                        &["schemes", &scheme.key, &parameter.key],
                        "it must not be negative",
                    ));
                }
            }
        }
        Ok(())
    }

    fn faults(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        for (index, fault) in experiment.simulation.faults.iter().enumerate() {
            let at = self.item(&["simulation", "faults"], index);
            let error = |message: &str| {
                let problem = Problem::Value {
                    key: "`faults`: ".to_owned(),
                    message: message.to_owned(),
                };
                Err(ExperimentError::at(&at, problem))
            };
            if fault.down > MAX_TIME || fault.up.is_some_and(|up| up > MAX_TIME) {
                return error("more than a day: check the unit");
            }
            if fault.up.is_some_and(|up| up <= fault.down) {
                return error("`up` must be later than `down`");
            }
        }
        Ok(())
    }

    fn rails(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let Some(rails) = &experiment.rails else {
            return Ok(());
        };
        let simulation = &experiment.simulation;
        if !(1..=MAX_RAILS).contains(&rails.rates.len()) {
            return Err(self
                .error(&["rails", "rates"], "a host has 1 to 8 rails")
                .with_hint("give the rate of each, like [\"100Gbps\", \"100Gbps\"]"));
        }
        if rails.rates.iter().any(|rate| rate.0 == 0) {
            return Err(self.error(&["rails", "rates"], "a rail of 0bps carries nothing"));
        }
        for (key, time) in rails.times() {
            if time.is_some_and(|time| time > MAX_TIME) {
                return Err(self.error(&["rails", key], "more than a day: check the unit"));
            }
        }
        if rails.bus.is_some_and(|bus| bus.cut > MAX_TIME) {
            return Err(self.error(&["rails", "bus", "cut"], "more than a day: check the unit"));
        }
        let least = DATA_OVERHEAD as u64 + 1;
        if simulation.mtu.is_some_and(|mtu| mtu.0 < least) {
            let message = format!("a packet of a rail has a header: {least}B or more");
            return Err(self.error(&["simulation", "mtu"], message));
        }
        if simulation.compat.is_some() {
            return Err(self
                .error(&["simulation", "compat"], "no other simulator has rails")
                .with_hint("remove it, or remove [rails]"));
        }
        if experiment.record.acks == Some(true) {
            return Err(self.error(
                &["record", "acks"],
                "acknowledgements of rails are not recorded",
            ));
        }
        if let TrafficSource::Spec(TrafficSpec::Multicast(_)) = experiment.traffic {
            return Err(self
                .error(&["traffic"], "messages to groups do not travel over rails")
                .with_hint("remove [rails], or take another generator"));
        }
        Ok(())
    }

    fn record(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let record = &experiment.record;
        if record
            .busiest
            .is_some_and(|ports| !(1..=MAX_SERIES).contains(&ports))
        {
            return Err(self.error(
                &["record", "busiest"],
                format!("from 1 to {MAX_SERIES} ports have a series"),
            ));
        }
        if record.ports.as_ref().is_some_and(Vec::is_empty) {
            return Err(self
                .error(&["record", "ports"], "the list is empty")
                .with_hint("name ports, like ports = [\"s4:1\"], or leave it out"));
        }
        if record.ports.is_some() && record.busiest.is_some() {
            return Err(self
                .error(
                    &["record", "busiest"],
                    "`ports` says which ports are recorded",
                )
                .with_hint("remove one of the two"));
        }
        let interval = record.sample_interval;
        if interval.is_some_and(|interval| interval < FINEST_SAMPLE || interval > MAX_TIME) {
            return Err(self.error(
                &["record", "sample_interval"],
                "samples are 1ns to a day apart",
            ));
        }
        Ok(())
    }

    fn score(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let Some(weights) = experiment.score.weights else {
            return Ok(());
        };
        for (key, value) in [
            ("long", weights.long),
            ("short", weights.short),
            ("allreduce", weights.allreduce),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(self.error(
                    &["score", "weights", key],
                    format!("{value} is not from 0 to 1"),
                ));
            }
        }
        let sum = sum(&weights);
        if (sum - 1.0).abs() > WEIGHT_TOLERANCE {
            let message = format!("they sum to {sum}");
            return Err(self.error(&["score", "weights"], message).with_hint(
                "weights sum to 1, like { long = 0.5, short = 0.25, allreduce = 0.25 }",
            ));
        }
        Ok(())
    }
}

fn sum(weights: &ScoreWeights) -> f64 {
    weights.long + weights.short + weights.allreduce
}

/// The same weights with a sum of exactly 1 as far as doubles go: 0.33 three times is meant as a third.
pub(crate) fn normalised(weights: &ScoreWeights) -> ScoreWeights {
    let sum = sum(weights);
    ScoreWeights {
        long: weights.long / sum,
        short: weights.short / sum,
        allreduce: weights.allreduce / sum,
    }
}
