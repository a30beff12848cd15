//! What an experiment leaves open, and the settings that all its runs share.

use raddle_engine::{Network, PortSeries, RunConfig};
use raddle_fabric::Fabric;
use raddle_text::{InputError as ExperimentError, Problem};
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, Time};

use super::{DEFAULT_SCHEMES, Resolver};
use crate::{
    check::normalised,
    fields::{Experiment, Reading, RecordTable, Variance},
    limits::MAX_SERIES,
    ports::find_ports,
    settings::default_buffer,
    sources::find_faults,
};

impl Resolver<'_> {
    /// Fills in what the experiment leaves open, and gives the settings that all runs share.
    pub(super) fn defaults(
        &self,
        experiment: &mut Experiment,
        network: &Network,
        mtu: Bytes,
    ) -> Result<RunConfig, ExperimentError> {
        let line_rate = network.environment.line_rate;
        let faults = find_faults(&experiment.simulation.faults, &network.fabric, self.root)?;
        let simulation = &mut experiment.simulation;
        let compat = simulation.compat.is_some();
        // Any scheme will do here: runs bring their own.
        let (scheme, _) = experiment
            .schemes
            .resolve(DEFAULT_SCHEMES[0], &network.environment)
            .ok_or_else(|| {
                ExperimentError::at(
                    self.at(&[]),
                    Problem::Refused("no schemes are built in".into()),
                )
            })?;
        let usual = RunConfig::new(scheme, 0, line_rate);
        let lowest = if compat {
            BitRate::from_gbps(1).min(line_rate)
        } else {
            usual.min_rate
        };
        let min_rate = *simulation.min_rate.get_or_insert(lowest);
        if min_rate > line_rate {
            let message = format!("{min_rate} is more than the hosts' links have ({line_rate})");
            let problem = Problem::Value {
                key: "`min_rate`: ".to_owned(),
                message,
            };
            return Err(ExperimentError::at(
                self.at(&["simulation", "min_rate"]),
                problem,
            ));
        }
        simulation.mtu = Some(mtu);
        let buffer = *simulation
            .buffer
            .get_or_insert_with(|| default_buffer(line_rate, compat));
        let lossless = *simulation.lossless.get_or_insert(true);
        let table = &experiment.switch;
        let mut config = RunConfig {
            mtu,
            buffer,
            buffers: table.resolve(&network.fabric, buffer, lossless, self.root)?,
            lossless,
            path_choice: *simulation
                .path_choice
                .get_or_insert_with(PathChoice::default),
            min_rate,
            reroute_delay: *simulation.reroute_delay.get_or_insert(usual.reroute_delay),
            end: simulation.end.map(|end| Time(end.0)),
            faults,
            ..usual
        };
        if !compat {
            config.retransmission_timeout = *simulation
                .retransmission_timeout
                .get_or_insert(config.retransmission_timeout);
            config.max_timeouts = *simulation.max_timeouts.get_or_insert(config.max_timeouts);
        }
        let jobs = experiment.job.len() as u16;
        let record = &mut experiment.record;
        config.record_acks = *record.acks.get_or_insert(false);
        config.record_paths = record.paths.unwrap_or(false);
        let blame = jobs > 0 && *record.blame.get_or_insert(true);
        config.record_delays = match record.delays {
            Some(true) => Some(1 << 8),
            // Classes of jobs come first.
            _ => (blame || jobs > 0 && record.ranks == Some(true)).then_some(jobs),
        };
        config.port_series = self.port_series(record, &network.fabric)?;
        config.sample_interval = *record.sample_interval.get_or_insert(config.sample_interval);
        config.watch_from = *record.watch_from.get_or_insert(config.watch_from);
        let score = &mut experiment.score;
        score.weights = score.weights.as_ref().map(normalised);
        score.reading.get_or_insert_with(Reading::default);
        score.variance.get_or_insert_with(Variance::default);
        Ok(config)
    }

    fn port_series(
        &self,
        record: &RecordTable,
        fabric: &Fabric,
    ) -> Result<PortSeries, ExperimentError> {
        let Some(names) = &record.ports else {
            return Ok(record.busiest.map_or(PortSeries::None, PortSeries::Busiest));
        };
        let mut ports = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let at = self.root.item(&["record", "ports"], index);
            ports.extend(find_ports(fabric, name, at)?);
        }
        ports.sort_unstable();
        ports.dedup();
        if ports.len() > MAX_SERIES as usize {
            let message = format!(
                "{} ports are named, and {MAX_SERIES} can be recorded",
                ports.len()
            );
            let problem = Problem::Value {
                key: "`ports`: ".to_owned(),
                message,
            };
            return Err(ExperimentError::at(self.at(&["record", "ports"]), problem));
        }
        Ok(PortSeries::Ports(ports))
    }
}

/// A warning where senders start again before anything can come back.
pub(super) fn too_impatient(network: &Network, base: &RunConfig) -> Option<String> {
    let (timeout, round_trip) = (base.retransmission_timeout, network.environment.base_rtt);
    let has_timer = network.semantics.retransmission_timer && base.rails.is_none();
    (has_timer && timeout < round_trip).then(|| {
        format!(
            "retransmission_timeout {timeout} is shorter than a round trip on the idle fabric ({round_trip}): flows may give up before anything comes back"
        )
    })
}
