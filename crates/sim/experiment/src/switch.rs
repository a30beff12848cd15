//! `[switch]`: how switches share out their buffers.

use std::collections::BTreeMap;

use raddle_dataplane::Share;
use raddle_fabric::Fabric;
use raddle_text::at_least;
use raddle_units::{BitRate, Bytes, PortId, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ports::find_ports;
use raddle_engine::{
    Buffers, IngressBuffer, Network, PortBuffer, RunConfig, Sharing, needed_headroom,
};
use raddle_text::{InputError as ExperimentError, Node, Problem, clip};

/// Least alpha.
const LEAST_ALPHA: f64 = 1.0 / 1024.0;
/// Alpha of dynamic sharing among egress queues where none is given: Choudhury and Hahne's.
const EGRESS_ALPHA: f64 = 1.0;

/// How switches share out their buffer (`simulation.buffer`). All sizes are per port.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchTable {
    /// What came in by a port and is held. A port at its threshold has its peer paused (PFC), or drops where
    /// `simulation.lossless` is false.
    #[serde(skip_serializing_if = "IngressTable::is_empty")]
    pub ingress: IngressTable,
    /// What waits to leave by a port; only where `simulation.lossless` is false. A full queue drops.
    #[serde(skip_serializing_if = "EgressTable::is_empty")]
    pub egress: EgressTable,
    /// Ports with settings of their own. What is left out there is as above; a later table wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortsTable>,
}

/// How ports share what is neither reserve nor headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SharingName {
    /// A port may hold alpha times what is free.
    Dynamic,
    /// A port may hold `static_threshold`, as long as it is free.
    Static,
    /// A port may hold whatever is free.
    Complete,
}

/// What came in by a port and is held.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IngressTable {
    /// Where the threshold of a port lies, over its reserve. Default: dynamic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingName>,
    /// Of dynamic sharing; SONiC's `dynamic_th` is its binary logarithm. Default: 0.125 at the hosts' rate,
    /// twice as much for each doubling of the port's rate over it, 1 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = LEAST_ALPHA, max = Share::MOST_ALPHA))]
    pub alpha: Option<f64>,
    /// Of static sharing (SONiC: `static_th`). Default: an equal part for each port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_least("1B"))]
    pub static_threshold: Option<Bytes>,
    /// What is the port's own, below the threshold (SONiC: `size`). Default: 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Bytes>,
    /// What is set aside for what still arrives after a PAUSE was sent (SONiC: `xoff`). Default: two propagation delays at
    /// the port's rate, three packets and a PAUSE, so that nothing is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// How far below its threshold a port resumes its peer (SONiC: `xon_offset`). Default: 3 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_offset: Option<Bytes>,
}

/// What waits to leave by a port.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EgressTable {
    /// Where a queue drops. Default: complete, where no more is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingName>,
    /// Of dynamic sharing. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = LEAST_ALPHA, max = Share::MOST_ALPHA))]
    pub alpha: Option<f64>,
    /// Of static sharing. Default: an equal part for each port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_least("1B"))]
    pub static_threshold: Option<Bytes>,
}

/// Ports of switches with settings of their own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortsTable {
    /// "NODE:3" is a port by its number, "NODE->PEER" all that lead to a neighbour, "NODE" all of a switch.
    pub ports: Vec<String>,
    /// What came in by them.
    #[serde(default, skip_serializing_if = "IngressTable::is_empty")]
    pub ingress: IngressTable,
    /// What waits to leave by them.
    #[serde(default, skip_serializing_if = "EgressTable::is_empty")]
    pub egress: EgressTable,
}

/// The three keys that say where a threshold lies.
struct Keys {
    sharing: Option<SharingName>,
    alpha: Option<f64>,
    static_threshold: Option<Bytes>,
}

impl Keys {
    /// The sharing of a port that had `before`. `scaled` is dynamic sharing without an alpha.
    fn over(&self, before: Sharing, scaled: Sharing) -> Sharing {
        // A table for some ports may give the kind or the value alone.
        let found = match (self.sharing, before) {
            (Some(SharingName::Complete), _) => Sharing::Complete,
            (Some(SharingName::Static), Sharing::Static(_)) => before,
            (Some(SharingName::Static), _) => Sharing::Static(None),
            (Some(SharingName::Dynamic), Sharing::Static(_) | Sharing::Complete) => scaled,
            (Some(SharingName::Dynamic) | None, _) => before,
        };
        match (found, self.alpha, self.static_threshold) {
            (Sharing::Scaled | Sharing::Dynamic(_), Some(alpha), _) => Sharing::Dynamic(alpha),
            (Sharing::Static(_), _, Some(bytes)) => Sharing::Static(Some(bytes)),
            _ => found,
        }
    }

    /// What is wrong with the keys of a table where the ports had `before`, with the key that is to blame.
    fn problem(&self, before: Sharing, buffer: Bytes) -> Option<(&'static str, String)> {
        let sharing = self.sharing.unwrap_or(match before {
            Sharing::Complete => SharingName::Complete,
            Sharing::Static(_) => SharingName::Static,
            Sharing::Scaled | Sharing::Dynamic(_) => SharingName::Dynamic,
        });
        if self.alpha.is_some() && sharing != SharingName::Dynamic {
            let message = "it belongs to dynamic sharing: set `sharing` to \"dynamic\"";
            return Some(("alpha", message.to_owned()));
        }
        let bytes = self.static_threshold?;
        let message = if sharing != SharingName::Static {
            "it belongs to static sharing: set `sharing` to \"static\"".to_owned()
        } else if bytes > buffer {
            format!("{bytes} are more than the buffer of a switch, {buffer}")
        } else {
            return None;
        };
        Some(("static_threshold", message))
    }
}

impl IngressTable {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn keys(&self) -> Keys {
        Keys {
            sharing: self.sharing,
            alpha: self.alpha,
            static_threshold: self.static_threshold,
        }
    }

    fn over(&self, before: &IngressBuffer) -> IngressBuffer {
        IngressBuffer {
            sharing: self.keys().over(before.sharing, Sharing::Scaled),
            reserve: self.reserve.unwrap_or(before.reserve),
            headroom: self.headroom.or(before.headroom),
            resume_offset: self.resume_offset.unwrap_or(before.resume_offset),
        }
    }
}

impl EgressTable {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn keys(&self) -> Keys {
        Keys {
            sharing: self.sharing,
            alpha: self.alpha,
            static_threshold: self.static_threshold,
        }
    }

    fn over(&self, before: Sharing) -> Sharing {
        self.keys().over(before, Sharing::Dynamic(EGRESS_ALPHA))
    }
}

impl SwitchTable {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What runs are told; `root` gives the places of what is wrong.
    pub(super) fn resolve(
        &self,
        fabric: &Fabric,
        buffer: Bytes,
        lossless: bool,
        root: &Node,
    ) -> Result<Buffers, ExperimentError> {
        let reader = Reader {
            table: root.find(&["switch"]).unwrap_or(root),
            buffer,
            lossless,
        };
        let usual = reader.port(
            reader.table,
            &self.ingress,
            &self.egress,
            &PortBuffer::default(),
        )?;
        let mut buffers = Buffers {
            usual,
            ..Buffers::default()
        };
        for (index, table) in self.ports.iter().enumerate() {
            let place = reader.table.item(&["ports"], index);
            for (name, at) in table.ports.iter().zip(0..) {
                for port in find_switch_ports(fabric, name, place.item(&["ports"], at))? {
                    let before = *buffers.of(port);
                    let own = reader.port(place, &table.ingress, &table.egress, &before)?;
                    buffers.own.insert(port, own);
                }
            }
        }
        Ok(buffers)
    }
}

/// The ports that `name` means, all of switches.
fn find_switch_ports(
    fabric: &Fabric,
    name: &str,
    at: &Node,
) -> Result<Vec<PortId>, ExperimentError> {
    let ports = find_ports(fabric, name, at)?;
    if ports
        .iter()
        .any(|&port| fabric.is_host(fabric.port(port).node))
    {
        let problem = Problem::Value {
            key: "`ports`: ".to_owned(),
            message: clip(&format!("`{name}` is a host, and hosts have no buffer")),
        };
        return Err(ExperimentError::at(&at.at, problem).with_hint("name ports of switches"));
    }
    Ok(ports)
}

struct Reader<'a> {
    table: &'a Node,
    buffer: Bytes,
    lossless: bool,
}

impl Reader<'_> {
    /// The settings of ports that had `before`, from the tables below `place`.
    fn port(
        &self,
        place: &Node,
        ingress: &IngressTable,
        egress: &EgressTable,
        before: &PortBuffer,
    ) -> Result<PortBuffer, ExperimentError> {
        let wrong = ingress.keys().problem(before.ingress.sharing, self.buffer);
        if let Some((key, message)) = wrong {
            return Err(value_error(place, &["ingress", key], &message));
        }
        if let Some((key, message)) = egress.keys().problem(before.egress, self.buffer) {
            return Err(value_error(place, &["egress", key], &message));
        }
        if self.lossless && !egress.is_empty() {
            let message = "with PFC no queue drops: the thresholds of [switch.ingress] pause";
            return Err(value_error(place, &["egress"], message)
                .with_hint("remove it, or set `lossless` to false in [simulation]"));
        }
        let found = PortBuffer {
            ingress: ingress.over(&before.ingress),
            egress: egress.over(before.egress),
        };
        self.check_sizes(place, ingress, &found.ingress)?;
        Ok(found)
    }

    /// `given` is what the table says, `found` what holds with it.
    fn check_sizes(
        &self,
        place: &Node,
        given: &IngressTable,
        found: &IngressBuffer,
    ) -> Result<(), ExperimentError> {
        let of_pfc = [
            ("headroom", given.headroom),
            ("resume_offset", given.resume_offset),
        ];
        if let Some((key, _)) = of_pfc.iter().find(|(_, given)| given.is_some())
            && !self.lossless
        {
            let message = "without PFC no port is paused";
            return Err(value_error(place, &["ingress", key], message)
                .with_hint("remove it, or set `lossless` to true in [simulation]"));
        }
        for (key, given) in of_pfc.into_iter().chain([("reserve", given.reserve)]) {
            if given.is_some_and(|given| given > self.buffer) {
                let message = format!("more than the buffer of a switch, {}", self.buffer);
                return Err(value_error(place, &["ingress", key], &message));
            }
        }
        match (found.sharing, given.resume_offset) {
            (Sharing::Static(Some(threshold)), Some(offset)) if offset > threshold => {
                let message = format!("{offset} are more than the threshold of {threshold}");
                let path = ["ingress", "resume_offset"];
                Err(value_error(place, &path, &message))
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with the value of the last of these keys.
fn value_error(place: &Node, path: &[&str], message: &str) -> ExperimentError {
    let key = path.last().copied().unwrap_or_default();
    let problem = Problem::Value {
        key: format!("`{key}`: "),
        message: clip(message),
    };
    ExperimentError::at(place.locate(path), problem)
}

/// Ports of all switches.
fn switch_ports(fabric: &Fabric) -> impl Iterator<Item = PortId> + '_ {
    fabric.switches().iter().flat_map(|&node| {
        let first = fabric.first_port(node).0;
        (first..).map(PortId).take(fabric.ports_of(node).len())
    })
}

/// What a user should know before the runs: ports whose headroom does not hold what can arrive.
pub(super) fn warning(network: &Network, runs: &[RunConfig]) -> Option<String> {
    let fabric = &network.fabric;
    let config = runs.first().filter(|config| config.lossless)?;
    let (mut ports, mut first) = (0usize, None);
    for port in switch_ports(fabric) {
        let given = config.buffers.of(port).ingress.headroom;
        let needed = given.and_then(|_| {
            let of_runs = runs.iter().map(|run| needed_headroom(network, run, port));
            of_runs.max().flatten()
        });
        if let (Some(given), Some(needed)) = (given, needed)
            && given.0 < needed
        {
            ports += 1;
            first.get_or_insert((port, given, Bytes(needed)));
        }
    }
    let (port, given, needed) = first?;
    let name = fabric.node_name(fabric.port(port).node);
    let number = fabric.port(port).number;
    Some(format!(
        "headroom of {given} does not hold what can arrive after a PAUSE ({needed} at {name}:{number}): {} may drop",
        many(ports, "port")
    ))
}

/// The settings of ports without settings of their own: key, value, and where it comes from if nobody set it.
pub(super) fn rows(
    network: &Network,
    runs: &[RunConfig],
) -> Vec<(&'static str, String, &'static str)> {
    const USUAL: &str = "default";
    let mut rows = Vec::new();
    let Some(config) = runs.first() else {
        return rows;
    };
    let PortBuffer { ingress, egress } = &config.buffers.usual;
    let spread = Spread::of(network, config, runs);
    let mut add_sharing = |keys: [&'static str; 3], sharing, alpha: Option<String>, default| {
        let (name, threshold) = match sharing {
            Sharing::Scaled | Sharing::Dynamic(_) => ("dynamic", None),
            Sharing::Complete => ("complete", None),
            Sharing::Static(None) => ("static", Some("equal parts".to_owned())),
            Sharing::Static(Some(bytes)) => ("static", Some(bytes.to_string())),
        };
        rows.push((keys[0], name.to_owned(), USUAL));
        rows.extend(alpha.map(|alpha| (keys[1], alpha, default)));
        rows.extend(threshold.map(|threshold| (keys[2], threshold, USUAL)));
    };
    add_sharing(
        [
            "ingress.sharing",
            "ingress.alpha",
            "ingress.static_threshold",
        ],
        ingress.sharing,
        spread.alpha.map(range),
        "1/8 at the hosts' rate, 1 at most",
    );
    if !config.lossless {
        let alpha = egress.alpha(1).map(|alpha| alpha.to_string());
        let keys = ["egress.sharing", "egress.alpha", "egress.static_threshold"];
        add_sharing(keys, *egress, alpha, USUAL);
    }
    rows.push(("ingress.reserve", ingress.reserve.to_string(), USUAL));
    if config.lossless {
        let source = "two delays, three packets, a PAUSE";
        let headroom = spread.headroom.map(range);
        rows.extend(headroom.map(|headroom| ("ingress.headroom", headroom, source)));
        let offset = ingress.resume_offset.to_string();
        rows.push(("ingress.resume_offset", offset, USUAL));
    }
    rows
}

/// Least and most as text.
fn range<T: PartialEq + std::fmt::Display>((least, most): (T, T)) -> String {
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}

/// Alpha and headroom of the fabric's ports without settings of their own, least and most.
struct Spread {
    alpha: Option<(f64, f64)>,
    headroom: Option<(Bytes, Bytes)>,
}

impl Spread {
    fn of(network: &Network, config: &RunConfig, runs: &[RunConfig]) -> Self {
        let fabric = &network.fabric;
        let BitRate(host_rate) = network.environment.line_rate;
        let ingress = &config.buffers.usual.ingress;
        // Ports of one rate and delay are alike.
        let kinds: BTreeMap<_, PortId> = switch_ports(fabric)
            .filter(|port| !config.buffers.own.contains_key(port))
            .map(|port| ((fabric.rate(port), fabric.delay(port)), port))
            .collect();
        let alphas = kinds
            .keys()
            .filter_map(|(rate, _)| ingress.sharing.alpha(rate.0 / host_rate.max(1)));
        // Packets of schemes with telemetry are longer.
        let headrooms = kinds.values().flat_map(|&port| {
            runs.iter().filter_map(move |run| {
                let needed = || needed_headroom(network, run, port).map(Bytes);
                ingress.headroom.or_else(needed)
            })
        });
        Self {
            alpha: extremes(alphas),
            headroom: extremes(headrooms),
        }
    }
}

fn extremes<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((least, most)) => Some((
            if value < least { value } else { least },
            if value > most { value } else { most },
        )),
    })
}
