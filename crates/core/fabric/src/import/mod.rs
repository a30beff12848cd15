//! InfiniBand fabrics as other programs write them, in and out.
//!
//! - `records`: the lines of `ibnetdiscover`'s output and of ibsim's net files.
//! - `speed`: `4xHDR` and the like.
//! - `order`: in which order links give ports the numbers that they had.
//! - `write_ibsim`: net files for the simulator ibsim.

mod order;
mod records;
mod speed;
mod write_ibsim;

use std::{cmp::Ordering, collections::BTreeMap};

use raddle_text::words::shorten;
use raddle_units::{BitRate, NodeId, Span, many};
use serde::Serialize;

use self::records::{Record, RecordKind, Records};
pub use self::write_ibsim::{ibsim_guid, write_ibsim};
use crate::{
    build::FabricBuilder,
    builders::default_delay,
    cn_tn_map::{CnTnMap, NotCnTn, Role},
    error::{FabricError, Place},
    map::{Fabric, NodeKind, default_name},
};

/// Examples that are kept of each kind of thing found.
const EXAMPLES: usize = 5;
/// Description of the nodes in switches that reduce data (SHARP); they are no hosts.
const AGGREGATION: &str = "Aggregation Node";
/// Longest description that becomes a name, in bytes.
const LONGEST_NAME: usize = 96;

/// Which program wrote a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ImportFormat {
    /// Found from the file: `ibnetdiscover` writes vendor and system GUIDs.
    #[default]
    Auto,
    /// Output of `ibnetdiscover`.
    Ibnetdiscover,
    /// Net file of the simulator ibsim.
    Ibsim,
}

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportOptions {
    /// Which program wrote it.
    pub format: ImportFormat,
    /// Rate of links for which the file gives none; 4xSDR (8 Gbit/s), ibsim's, if `None`.
    pub rate: Option<BitRate>,
    /// Propagation delay of every link: the files have none.
    pub delay: Span,
    /// Whether an adapter with several links becomes a host per port (named `name/1`), as each is an end port with an
    /// address of its own; otherwise it is one host with several links.
    pub split_ports: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            format: ImportFormat::Auto,
            rate: None,
            delay: default_delay(),
            split_ports: true,
        }
    }
}

/// How many there are of something, and the first few.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Found {
    /// How many.
    pub count: u64,
    /// The first of them, in words.
    pub first: Vec<String>,
}

impl Found {
    fn push(&mut self, entry: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(entry());
        }
    }
}

/// What was odd in a file or left out of the map.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ImportNotes {
    /// `ibnetdiscover` or `ibsim`.
    pub format: &'static str,
    /// Nodes in switches that reduce data: left out.
    pub aggregation_nodes: Found,
    /// Routers: left out.
    pub routers: Found,
    /// Nodes without links: left out.
    pub without_links: Found,
    /// Adapters with several links, which became a host per port.
    pub split: Found,
    /// Links that only one of the two nodes lists (`ibnetdiscover` only; ibsim refuses them).
    pub from_one_end: Found,
    /// Links slower than most of their kind (to hosts, between switches): degraded.
    pub slow: Found,
    /// Links for which the file gives no rate.
    pub without_rate: Found,
    /// Rates in words that nobody knows: read as not given.
    pub strange_rates: Found,
    /// Lines that say nothing about the map.
    pub ignored_lines: Found,
}

/// A map from a file, and what else was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The map. Where it is a CN/TN fat tree, switches have the levels that follow from that.
    pub fabric: Fabric,
    /// What was odd or left out.
    pub notes: ImportNotes,
    /// The fat tree that the map is, or why it is not one.
    pub tree: Result<CnTnMap, NotCnTn>,
}

/// Reads the output of `ibnetdiscover` or a net file of ibsim. `source_name` stands in errors.
///
/// Hosts come first, then switches, each sorted by name with numbers in order (`node2` before `node10`). A node is
/// called by its description if no other has the same, else by its id. Ports keep their order where that is possible,
/// not their numbers, as numbers without a link close up. Cables side by side get the rate of the slowest.
///
/// # Errors
/// A line that is neither format's, with its number and what belongs there; links that contradict each other or, with
/// ibsim, stand at one end only; and what [`FabricBuilder::finish`] refuses.
pub fn import(
    text: &str,
    source_name: &str,
    options: &ImportOptions,
) -> Result<Imported, FabricError> {
    let found = records::read(text, source_name, options.format)?;
    let mut import = Import {
        source: source_name,
        options,
        notes: ImportNotes {
            format: if found.ibsim {
                "ibsim"
            } else {
                "ibnetdiscover"
            },
            strange_rates: found.strange_rates.clone(),
            ignored_lines: found.ignored.clone(),
            ..ImportNotes::default()
        },
        found,
    };
    let cables = import.pair_ends()?;
    let kept = import.choose_records(&cables);
    let mut fabric = import.build(&kept, &cables)?;
    let tree = CnTnMap::recognise(&fabric);
    if let Ok(map) = &tree {
        for &switch in &fabric.switches {
            fabric.levels[switch.index()] = match map.role(switch) {
                Role::L0 { .. } | Role::Host { .. } => 1,
                Role::L1 { .. } => 2,
                Role::L2 { .. } => 3,
                Role::L3 { .. } => 4,
            };
        }
    }
    note_slow_links(&fabric, &mut import.notes);
    Ok(Imported {
        fabric,
        notes: import.notes,
        tree,
    })
}

/// A link of the file: records and ports of its ends.
struct Cable {
    ends: [(u32, u16); 2],
    rate: Option<BitRate>,
    line: u32,
}

/// A node of the map: a record, or one port of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Chosen {
    record: u32,
    port: Option<u16>,
}

struct Import<'a, 's> {
    source: &'s str,
    options: &'s ImportOptions,
    notes: ImportNotes,
    found: Records<'a>,
}

impl Import<'_, '_> {
    fn error(&self, line: u32, message: String) -> FabricError {
        let at = Place {
            source: self.source.to_owned(),
            line: Some(line),
        };
        FabricError::Malformed { at, message }
    }

    /// Puts the two tales of each link together.
    fn pair_ends(&mut self) -> Result<Vec<Cable>, FabricError> {
        let mut by_id: BTreeMap<&str, u32> = BTreeMap::new();
        for (index, record) in (0u32..).zip(&self.found.records) {
            if let Some(first) = by_id.insert(&record.id, index) {
                let message = format!(
                    "`{}` has a record in line {} already: ids name one node each",
                    shorten(&record.id),
                    self.found.records[first as usize].line
                );
                return Err(self.error(record.line, message));
            }
        }
        let ends = &self.found.ends;
        let mut by_port: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        for (index, end) in ends.iter().enumerate() {
            if let Some(first) = by_port.insert((end.record, end.port), index) {
                let message = format!(
                    "port {} has a link in line {} already: a port takes one cable",
                    end.port, ends[first].line
                );
                return Err(self.error(end.line, message));
            }
        }
        let mut cables = Vec::with_capacity(ends.len() / 2);
        let mut one_end = Found::default();
        for end in ends {
            let Some(&peer) = by_id.get(end.peer.as_str()) else {
                let message = format!(
                    "there is no record of `{}`, the node at the other end: the file is cut off, or the id is wrong",
                    shorten(&end.peer)
                );
                return Err(self.error(end.line, message));
            };
            let own = (end.record, end.port);
            let other = (peer, end.peer_port);
            let record = &self.found.records[peer as usize];
            if end.peer_port > record.ports {
                let message = format!(
                    "port {} of `{}` is named, but its record in line {} gives {}",
                    end.peer_port,
                    shorten(&end.peer),
                    record.line,
                    many(record.ports, "port")
                );
                return Err(self.error(end.line, message));
            }
            let back = by_port.get(&other).map(|&index| &ends[index]);
            match back {
                Some(back)
                    if (by_id.get(back.peer.as_str()), back.peer_port)
                        != (Some(&end.record), end.port) =>
                {
                    let message = format!(
                        "port {} of `{}` is joined to port {} of `{}` in line {}: both lines must name each other",
                        end.peer_port,
                        shorten(&end.peer),
                        back.peer_port,
                        shorten(&back.peer),
                        back.line
                    );
                    return Err(self.error(end.line, message));
                }
                // The second tale of a link: the first made the cable.
                Some(_) if other < own => {}
                Some(back) => cables.push(Cable {
                    ends: [own, other],
                    rate: slower(end.rate, back.rate),
                    line: end.line,
                }),
                None if self.found.ibsim => {
                    let message = format!(
                        "`{}` has no line for port {}: ibsim wants every link at both ends, add `[{}] \"{}\"[{}]` there",
                        shorten(&end.peer),
                        end.peer_port,
                        end.peer_port,
                        shorten(&self.found.records[end.record as usize].id),
                        end.port
                    );
                    return Err(self.error(end.line, message));
                }
                None => {
                    one_end.push(|| {
                        let own = &self.found.records[end.record as usize].id;
                        format!("{own}[{}] - {}[{}]", end.port, end.peer, end.peer_port)
                    });
                    cables.push(Cable {
                        ends: [own, other],
                        rate: end.rate,
                        line: end.line,
                    });
                }
            }
        }
        // Two nodes that both claim one silent port.
        let mut ports: Vec<((u32, u16), u32)> = (cables.iter())
            .flat_map(|cable| cable.ends.map(|end| (end, cable.line)))
            .collect();
        ports.sort_unstable();
        if let Some(pair) = ports.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let ((record, port), line) = pair[1];
            let message = format!(
                "port {port} of `{}` has a link in line {} already: a port takes one cable",
                shorten(&self.found.records[record as usize].id),
                pair[0].1
            );
            return Err(self.error(line, message));
        }
        self.notes.from_one_end = one_end;
        Ok(cables)
    }

    /// Which records become nodes, in no order yet.
    fn choose_records(&mut self, cables: &[Cable]) -> Vec<Chosen> {
        let mut ports: Vec<Vec<u16>> = vec![Vec::new(); self.found.records.len()];
        for (record, port) in cables.iter().flat_map(|cable| cable.ends) {
            ports[record as usize].push(port);
        }
        let mut reduces = vec![false; self.found.records.len()];
        let by_id: BTreeMap<&str, u32> = (self.found.records.iter().zip(0u32..))
            .map(|(record, index)| (record.id.as_str(), index))
            .collect();
        for end in &self.found.ends {
            if end
                .peer_description
                .is_some_and(|text| text.contains(AGGREGATION))
                && let Some(&peer) = by_id.get(end.peer.as_str())
            {
                reduces[peer as usize] = true;
            }
        }
        let mut chosen = Vec::new();
        for (index, record) in (0u32..).zip(&self.found.records) {
            let name = || shorten(record.description.unwrap_or(&record.id));
            let ports = &mut ports[index as usize];
            let whole = Chosen {
                record: index,
                port: None,
            };
            match record.kind {
                RecordKind::Router => self.notes.routers.push(name),
                RecordKind::Ca
                    if reduces[index as usize]
                        || record
                            .description
                            .is_some_and(|text| text.contains(AGGREGATION)) =>
                {
                    self.notes.aggregation_nodes.push(name);
                }
                _ if ports.is_empty() => self.notes.without_links.push(name),
                RecordKind::Ca if ports.len() > 1 && self.options.split_ports => {
                    self.notes.split.push(name);
                    ports.sort_unstable();
                    chosen.extend(ports.iter().map(|&port| Chosen {
                        record: index,
                        port: Some(port),
                    }));
                }
                RecordKind::Ca | RecordKind::Switch => chosen.push(whole),
            }
        }
        chosen
    }

    fn build(&mut self, chosen: &[Chosen], cables: &[Cable]) -> Result<Fabric, FabricError> {
        let names = self.names(chosen);
        let kind = |index: usize| match self.found.records[chosen[index].record as usize].kind {
            RecordKind::Switch => NodeKind::Switch,
            RecordKind::Ca | RecordKind::Router => NodeKind::Host,
        };
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.sort_by(|&a, &b| {
            let switch = |index| kind(index) == NodeKind::Switch;
            (switch(a).cmp(&switch(b)))
                .then_with(|| natural(&names[a], &names[b]))
                .then(a.cmp(&b))
        });
        let mut builder = FabricBuilder::new("imported");
        builder.source(self.source);
        let mut nodes: BTreeMap<Chosen, NodeId> = BTreeMap::new();
        for &index in &order {
            builder.line(self.found.records[chosen[index].record as usize].line);
            let node = match kind(index) {
                NodeKind::Host => builder.host(),
                NodeKind::Switch => builder.switch(0),
            };
            if names[index] != default_name(kind(index), node) {
                builder.set_name(node, names[index].as_str());
            }
            nodes.insert(chosen[index], node);
        }
        let node_of = |(record, port): (u32, u16)| {
            let whole = Chosen { record, port: None };
            let part = Chosen {
                record,
                port: Some(port),
            };
            nodes.get(&whole).or_else(|| nodes.get(&part)).copied()
        };
        let mut ends = Vec::with_capacity(cables.len());
        let mut from = Vec::with_capacity(cables.len());
        for cable in cables {
            if let [Some(a), Some(b)] = cable.ends.map(node_of) {
                ends.push([(a, cable.ends[0].1), (b, cable.ends[1].1)]);
                from.push(cable);
            }
        }
        let default = self.options.rate.or_else(|| speed::read("4xSDR"));
        for bundle in order::bundles(&ends, nodes.len()) {
            let rates = bundle.iter().map(|&index| {
                let cable = from[index];
                if cable.rate.is_none() {
                    self.notes
                        .without_rate
                        .push(|| format!("line {}", cable.line));
                }
                cable.rate.or(default).unwrap_or(BitRate(0))
            });
            let rate = rates.min().unwrap_or(BitRate(0));
            let [(a, _), (b, _)] = ends[bundle[0]];
            builder.line(from[bundle[0]].line).connect_parallel(
                a,
                b,
                rate,
                self.options.delay,
                bundle.len() as u32,
            );
        }
        builder.finish()
    }

    /// Descriptions where they tell nodes apart, ids elsewhere.
    fn names(&self, chosen: &[Chosen]) -> Vec<String> {
        let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
        for record in &self.found.records {
            let description = record.description.unwrap_or("");
            *uses.entry(description).or_default() += 1;
            if description != record.id {
                *uses.entry(&record.id).or_default() += 1;
            }
        }
        let name = |record: &Record<'_>| match record.description {
            Some(text)
                if uses.get(text) == Some(&1)
                    && text.len() <= LONGEST_NAME
                    && !text.chars().any(char::is_control) =>
            {
                text.to_owned()
            }
            _ => record.id.clone(),
        };
        let chosen = chosen.iter();
        chosen
            .map(|chosen| {
                let name = name(&self.found.records[chosen.record as usize]);
                match chosen.port {
                    Some(port) => format!("{name}/{port}"),
                    None => name,
                }
            })
            .collect()
    }
}

fn slower(a: Option<BitRate>, b: Option<BitRate>) -> Option<BitRate> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Order of names in which runs of digits count as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (in_a, in_b) = (digits(a), digits(b));
        let order = if in_a > 0 && in_b > 0 {
            let (x, y) = (
                a[..in_a].trim_start_matches('0'),
                b[..in_b].trim_start_matches('0'),
            );
            let order = x
                .len()
                .cmp(&y.len())
                .then_with(|| x.cmp(y))
                .then(in_a.cmp(&in_b));
            (a, b) = (&a[in_a..], &b[in_b..]);
            order
        } else {
            let (mut left, mut right) = (a.chars(), b.chars());
            let (x, y) = (left.next(), right.next());
            if x.is_none() && y.is_none() {
                return Ordering::Equal;
            }
            (a, b) = (left.as_str(), right.as_str());
            x.cmp(&y)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Links slower than most of their kind.
fn note_slow_links(fabric: &Fabric, notes: &mut ImportNotes) {
    let to_host = |link: &crate::map::Link| {
        usize::from((link.ports.iter()).any(|&port| fabric.is_host(fabric.port(port).node)))
    };
    let mut uses: [BTreeMap<BitRate, u64>; 2] = [BTreeMap::new(), BTreeMap::new()];
    for link in fabric.links() {
        *uses[to_host(link)].entry(link.rate).or_default() += 1;
    }
    let usual = uses.map(|uses| {
        (uses.into_iter())
            .max_by_key(|&(rate, uses)| (uses, rate))
            .map(|(rate, _)| rate)
    });
    for link in fabric.links() {
        if let Some(usual) = usual[to_host(link)]
            && link.rate < usual
        {
            notes.slow.push(|| {
                let [a, b] = link
                    .ports
                    .map(|port| fabric.node_name(fabric.port(port).node));
                format!("{a} - {b}: {} instead of {usual}", link.rate)
            });
        }
    }
}
