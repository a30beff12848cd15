//! What the schema of an experiment cannot say: duplicates, and settings that exclude each other. Limits of single settings
//! stand beside the fields.

use std::collections::BTreeSet;

use raddle_wire::rails::DATA_OVERHEAD;
use raddle_workload::{TrafficSource, TrafficSpec};

use super::{
    fields::{Compat, Experiment, ScoreWeights},
    jobs,
};
use raddle_text::{
    InputError as ExperimentError, Location, Node, Problem, schema::check_version, tree::Value,
};

/// Most runs of one experiment.
const MAX_RUNS: usize = 10_000;
/// Difference from 1 up to which weights are taken as meant to sum to 1, and scaled.
const WEIGHT_TOLERANCE: f64 = 0.011;

/// Checks an experiment whose keys and types are right. `root` gives the places.
pub(crate) fn check(experiment: &Experiment, root: &Node) -> Result<(), ExperimentError> {
    let check = Check { root };
    check_version(root)?;
    check.schemes_and_seeds(experiment)?;
    check.simulation(experiment)?;
    check.faults(experiment)?;
    check.rails(experiment)?;
    check.record(experiment)?;
    check.score(experiment)?;
    jobs::check(experiment, root)
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

    fn schemes_and_seeds(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let simulation = &experiment.simulation;
        let schemes_at = ["simulation", "schemes"];
        let schemes = simulation.schemes.as_deref().unwrap_or(&[]);
        for (index, scheme) in schemes.iter().enumerate() {
            if schemes[..index].contains(scheme) {
                return Err(self.twice(&schemes_at, index, scheme));
            }
        }
        let seeds_at = ["simulation", "seeds"];
        let seeds = simulation.seeds.as_deref().unwrap_or(&[]);
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
            message: format!("{word} is listed twice"),
        };
        ExperimentError::at(&self.item(path, index), problem).with_hint("remove one of them")
    }

    fn simulation(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let simulation = &experiment.simulation;
        let at = |key: &'static str| ["simulation", key];
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
            if fault.up.is_some_and(|up| up <= fault.down) {
                return error("`up` must be later than `down`");
            }
        }
        Ok(())
    }

    fn rails(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        if experiment.rails.is_none() {
            return Ok(());
        }
        let simulation = &experiment.simulation;
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
        if let Some(TrafficSource::Spec(TrafficSpec::Multicast(_))) = experiment.traffic {
            return Err(self
                .error(&["traffic"], "messages to groups do not travel over rails")
                .with_hint("remove [rails], or take another generator"));
        }
        Ok(())
    }

    fn record(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let record = &experiment.record;
        if record.ports.is_some() && record.busiest.is_some() {
            return Err(self
                .error(
                    &["record", "busiest"],
                    "`ports` says which ports are recorded",
                )
                .with_hint("remove one of the two"));
        }
        Ok(())
    }

    fn score(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let Some(weights) = experiment.score.weights else {
            return Ok(());
        };
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
