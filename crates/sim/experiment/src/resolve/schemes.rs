//! The schemes that an experiment compares, with their parameters, and what setups switch on for jobs.

use std::sync::Arc;

use raddle_engine::Network;
use raddle_fabric::Fabric;
use raddle_replay::ReplayCosts;
use raddle_text::{InputError as ExperimentError, Problem, tree::Value};
use raddle_transport::cc::SchemeSettings;
use raddle_units::Bytes;

use super::{DEFAULT_ON_RAILS, DEFAULT_SCHEMES, Resolver};
use crate::{
    fields::Experiment,
    job_tables::SetupTable,
    jobs::{Placed, SetupJobs},
    resolved::SchemeRun,
};

impl Resolver<'_> {
    pub(super) fn schemes(
        &self,
        experiment: &mut Experiment,
        network: &Network,
        warnings: &mut Vec<String>,
    ) -> Vec<SchemeRun> {
        let usual: &[&str] = match experiment.rails {
            Some(_) => &DEFAULT_ON_RAILS,
            None => &DEFAULT_SCHEMES,
        };
        let setups = &experiment.setup;
        let has_rails = experiment.rails.is_some();
        let travels = |setup: &SetupTable| setup.rails.unwrap_or(has_rails);
        let of_setup = |setup: &SetupTable| {
            let usual = if travels(setup) { "swift" } else { "none" };
            setup.scheme.clone().unwrap_or_else(|| usual.to_owned())
        };
        let names = if setups.is_empty() {
            let usual = || usual.iter().map(|name| (*name).to_owned()).collect();
            let given = &mut experiment.simulation.schemes;
            given.get_or_insert_with(usual).clone()
        } else {
            setups.iter().map(of_setup).collect()
        };
        if let Some(Value::Table(tables)) = self.root.find(&["schemes"]).map(|node| &node.value) {
            for table in tables
                .entries
                .iter()
                .filter(|table| !names.contains(&table.key))
            {
                warnings.push(format!(
                    "[schemes.{0}] is set, but {0} is not among the schemes",
                    table.key
                ));
            }
        }
        let resolve = |(index, scheme): (usize, String)| {
            let setup = experiment.setup.get(index);
            // Names were checked against the registry.
            let (parameters, effective) =
                experiment.schemes.resolve(&scheme, &network.environment)?;
            Some(SchemeRun {
                name: setup.map_or_else(|| scheme.clone(), |setup| setup.name.clone()),
                scheme,
                rails: setup.map_or(has_rails, travels),
                without: setup.map(|setup| setup.without.clone()).unwrap_or_default(),
                jobs: None,
                parameters,
                effective,
            })
        };
        names.into_iter().enumerate().filter_map(resolve).collect()
    }

    /// Gives each scheme its jobs; those that have them alike share them. Gives what hosts cost.
    pub(super) fn jobs(
        &self,
        experiment: &Experiment,
        network: &Network,
        plane: Option<&Arc<Fabric>>,
        schemes: &mut [SchemeRun],
    ) -> Result<ReplayCosts, ExperimentError> {
        let placed = Placed::new(experiment, &network.fabric, self.root, self.files)?;
        let mut known: Vec<(Option<&SetupTable>, Arc<SetupJobs>)> = Vec::new();
        let alike = |a: Option<&SetupTable>, b: Option<&SetupTable>| {
            let switches = |one: Option<&SetupTable>| one.map(|it| (it.collectives, it.scheduling));
            switches(a) == switches(b)
        };
        for (index, scheme) in schemes.iter_mut().enumerate() {
            let setup = experiment.setup.get(index);
            let same = known.iter().find(|(other, _)| alike(*other, setup));
            let jobs = match same {
                Some((_, jobs)) => Arc::clone(jobs),
                None => {
                    let fabrics = (&network.fabric, plane);
                    Arc::new(placed.with_setup(experiment, setup, fabrics, self.root)?)
                }
            };
            known.push((setup, Arc::clone(&jobs)));
            scheme.jobs = Some(jobs);
        }
        Ok(*placed.costs())
    }

    /// Settings of a scheme that exclude each other, or that the switches' buffer makes impossible.
    pub(super) fn relations(
        &self,
        scheme: &SchemeRun,
        network: &Network,
        buffer: Bytes,
        warnings: &mut Vec<String>,
    ) -> Result<(), ExperimentError> {
        let table = |key: &str| format!("[schemes.{}] `{key}`", scheme.scheme);
        let refused = |keys: &[&str], problem: String| {
            let paths = keys.iter().map(|key| ["schemes", &scheme.scheme, *key]);
            let mut given = paths.filter_map(|path| self.root.find(&path));
            let at = given.next().map_or(&self.root.at, |node| &node.at);
            let message = format!("in [schemes.{}] {problem}", scheme.scheme);
            let key = String::new();
            ExperimentError::at(at, Problem::Value { key, message })
        };
        if let Err(conflict) = scheme.parameters.validate() {
            return Err(refused(
                &[conflict.low.0, conflict.high.0],
                conflict.to_string(),
            ));
        }
        let usual = SchemeSettings::default().resolve(&scheme.scheme, &network.environment);
        let usual = usual.map(|(_, effective)| effective).unwrap_or_default();
        for parameter in &scheme.effective {
            let threshold = parameter
                .key
                .starts_with("ecn_")
                .then(|| parameter.value.parse::<Bytes>());
            let Some(Ok(threshold)) = threshold else {
                continue;
            };
            if threshold <= buffer {
                continue;
            }
            let (key, value) = (parameter.key, &parameter.value);
            let above = format!("({value}) is more than `buffer` of [simulation] ({buffer})");
            // A small buffer alone must not ask for every threshold to be set.
            if usual
                .iter()
                .any(|one| one.key == key && one.value == *value)
            {
                warnings.push(format!("{} {above}", table(key)));
                continue;
            }
            return Err(refused(&[key], format!("`{key}` {above}"))
                .with_hint("no queue becomes that long: lower the threshold or raise `buffer`"));
        }
        Ok(())
    }
}
