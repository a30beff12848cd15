//! The settings that all runs share, as a user reads them: value, unit and where each comes from.

use std::fmt::Display;

use raddle_units::{BitRate, Bytes};
use serde::Serialize;

use super::{fields::Experiment, switch};
use raddle_engine::{Network, RunConfig};
use raddle_text::Node;

/// A setting as the runs use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Key in `[simulation]`, `[switch]`, `[record]` or `[rails]`, or the name of a figure derived from the fabric.
    pub key: &'static str,
    /// Value with its unit.
    pub value: String,
    /// `experiment file`, or where the default comes from.
    pub source: &'static str,
}

/// 32 MiB at 100 Gbit/s, in proportion; the HPCC simulator's script gives whole MiB.
pub(super) fn default_buffer(line_rate: BitRate, compat: bool) -> Bytes {
    if compat {
        return Bytes::from_mib((line_rate.0 / 1_000_000_000 * 16 / 50).clamp(1, 4095));
    }
    let scaled = (u128::from(line_rate.0) * (32 << 20)).div_ceil(100_000_000_000);
    Bytes(
        u64::try_from(scaled)
            .unwrap_or(u64::MAX)
            .clamp(1 << 20, 4095 << 20),
    )
}

/// All settings of an experiment whose defaults are filled in; `root` tells which of them were given, `runs` has what a run
/// with each scheme is told.
pub(super) fn settings(
    root: &Node,
    experiment: &Experiment,
    network: &Network,
    runs: &[RunConfig],
) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut add = |table: &str, key: &'static str, value: Option<String>, default: &'static str| {
        let path: Vec<&str> = [table].into_iter().chain(key.split('.')).collect();
        let given = root.find(&path).is_some();
        let source = if given { "experiment file" } else { default };
        settings.extend(value.map(|value| Setting { key, value, source }));
    };
    fn text<T: Display>(value: &Option<T>) -> Option<String> {
        value.as_ref().map(T::to_string)
    }
    let simulation = &experiment.simulation;
    let compat = simulation.compat.is_some();
    let usual = "default";
    let semantics = if compat {
        "hpcc-ns3"
    } else {
        "none: corrected model"
    };
    add("simulation", "compat", Some(semantics.to_owned()), usual);
    let scaled = if compat {
        "HPCC simulator, run.py"
    } else {
        "32MiB per 100Gbps of host links"
    };
    add("simulation", "buffer", text(&simulation.buffer), scaled);
    add("simulation", "mtu", text(&simulation.mtu), usual);
    add("simulation", "lossless", text(&simulation.lossless), usual);
    if !compat {
        for (key, value, default) in switch::rows(network, runs) {
            add("switch", key, Some(value), default);
        }
    }
    let lowest = if compat {
        "HPCC simulator, run.py"
    } else {
        "1 % of the host links"
    };
    add("simulation", "min_rate", text(&simulation.min_rate), lowest);
    add(
        "simulation",
        "retransmission_timeout",
        text(&simulation.retransmission_timeout),
        usual,
    );
    add(
        "simulation",
        "max_timeouts",
        text(&simulation.max_timeouts),
        usual,
    );
    let path_choice = simulation.path_choice.and_then(|choice| {
        serde_json::to_value(choice)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
    });
    add("simulation", "path_choice", path_choice, usual);
    add(
        "simulation",
        "reroute_delay",
        text(&simulation.reroute_delay),
        usual,
    );
    add("simulation", "end", text(&simulation.end), usual);
    add(
        "simulation",
        "isolated",
        text(&simulation.isolated),
        "whether the traffic has tested flows among others",
    );
    add(
        "simulation",
        "alone",
        text(&simulation.alone),
        "whether a job shares the fabric",
    );
    add("record", "acks", text(&experiment.record.acks), usual);
    add("record", "paths", text(&experiment.record.paths), usual);
    let ports = experiment.record.ports.as_ref();
    add(
        "record",
        "ports",
        ports.map(|ports| ports.join(", ")),
        usual,
    );
    add("record", "busiest", text(&experiment.record.busiest), usual);
    add(
        "record",
        "sample_interval",
        text(&experiment.record.sample_interval),
        usual,
    );
    add(
        "record",
        "watch_from",
        text(&experiment.record.watch_from),
        usual,
    );
    if let Some(rails) = &experiment.rails {
        let rates: Vec<String> = rails.rates.iter().map(BitRate::to_string).collect();
        add("rails", "rates", Some(rates.join(", ")), usual);
        add("rails", "lateness", text(&rails.lateness), usual);
    }
    let environment = &network.environment;
    add(
        "",
        "line_rate",
        Some(environment.line_rate.to_string()),
        "fastest host link",
    );
    add(
        "",
        "base_rtt",
        Some(environment.base_rtt.to_string()),
        "largest RTT of the idle fabric",
    );
    add(
        "",
        "bdp",
        Some(environment.bdp.to_string()),
        "largest bandwidth-delay product",
    );
    settings
}
