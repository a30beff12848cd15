//! The topology format of the HPCC repository's ns-3 simulator.
//!
//! First line `nodes switches links`, then the switches' ids, then one link per line as
//! `a b rate delay error-rate`. A port's number on its node is the order of its links in the file.

use std::{fmt::Write, str::FromStr};

use raddle_text::clip;
use raddle_units::{NodeId, UnitError, many};

use crate::{
    build::{FabricBuilder, MAX_LINKS, MAX_NODES, check_limit},
    error::{FabricError, Place},
    map::{Fabric, NodeKind},
};

/// Reads a topology file. `source_name` stands in errors.
///
/// # Errors
/// Anything that is not in the format, with its line, and all that [`FabricBuilder::finish`] refuses. An error rate
/// other than 0 is refused: links here do not lose packets at random.
pub fn parse_hpcc_ns3(text: &str, source_name: &str) -> Result<Fabric, FabricError> {
    Reader {
        source: source_name,
    }
    .read(text)
}

/// Writes a map in the format of the HPCC repository; names and levels are lost.
pub fn write_hpcc_ns3(fabric: &Fabric) -> String {
    let mut text = String::new();
    let (nodes, switches, links) = (
        fabric.node_count(),
        fabric.switches().len(),
        fabric.links().len(),
    );
    let ids: Vec<String> = fabric
        .switches()
        .iter()
        .map(|node| node.0.to_string())
        .collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{nodes} {switches} {links}\n{}", ids.join(" "));
    for link in fabric.links() {
        let [a, b] = link.ports.map(|port| fabric.port(port).node.0);
        let delay = if link.delay.0 % 1000 == 0 {
            format!("{}ns", link.delay.0 / 1000)
        } else {
            format!("{}ps", link.delay.0)
        };
        let _ = writeln!(text, "{a} {b} {} {delay} 0.000000", link.rate);
    }
    text
}

struct Reader<'a> {
    source: &'a str,
}

impl Reader<'_> {
    fn read(&self, text: &str) -> Result<Fabric, FabricError> {
        let mut lines = (1u32..)
            .zip(text.lines())
            .filter(|(_, line)| !line.trim().is_empty())
            .peekable();
        let Some((line, header)) = lines.next() else {
            return Err(self.malformed(
                1,
                "the file is empty; it starts with `nodes switches links`",
            ));
        };
        let counts = header.split_whitespace().collect::<Vec<_>>();
        let &[nodes, switches, links] = counts.as_slice() else {
            return Err(self.malformed(
                line,
                format!(
                    "the first line has the three counts `nodes switches links`, and here {} of them",
                    counts.len()
                ),
            ));
        };
        let nodes = self.count(line, "number of nodes", nodes)?;
        let switches = self.count(line, "number of switches", switches)?;
        let link_count = self.count(line, "number of links", links)?;
        let at = || self.place(line);
        check_limit(at, "nodes", nodes.into(), MAX_NODES, "the map")?;
        check_limit(at, "links", link_count.into(), MAX_LINKS, "the map")?;
        if switches > nodes {
            return Err(self.malformed(
                line,
                format!(
                    "{switches} switches are more than {}; switches count as nodes",
                    many(nodes, "node")
                ),
            ));
        }

        let mut kinds = vec![(NodeKind::Host, line); nodes as usize];
        let mut last = line;
        let mut seen = 0;
        while seen < switches {
            let Some((line, ids)) = lines.next() else {
                return Err(self.malformed(
                    last,
                    format!("the file ends after {seen} of {switches} switch ids; it is cut off"),
                ));
            };
            last = line;
            for word in ids.split_whitespace() {
                let id = self.count(line, "switch id", word)?;
                let Some(kind) = kinds.get_mut(id as usize) else {
                    return Err(self.unknown(line, id, nodes));
                };
                if kind.0 == NodeKind::Switch {
                    let name = id.to_string();
                    return Err(FabricError::DuplicateNode {
                        at: self.place(line),
                        name,
                    });
                }
                *kind = (NodeKind::Switch, line);
                seen += 1;
            }
            if seen > switches {
                return Err(self.malformed(
                    line,
                    format!("{seen} switch ids, but the first line says {switches}"),
                ));
            }
        }

        let mut builder = FabricBuilder::new(self.source);
        for (kind, line) in kinds {
            builder.line(line);
            match kind {
                NodeKind::Host => builder.host(),
                NodeKind::Switch => builder.switch(0),
            };
        }
        let mut seen = 0;
        for (line, words) in lines {
            last = line;
            if seen == link_count {
                return Err(self.malformed(
                    line,
                    format!(
                        "a line after the last link; the first line says {}",
                        many(link_count, "link")
                    ),
                ));
            }
            self.link(&mut builder, line, words, nodes)?;
            seen += 1;
        }
        if seen < link_count {
            return Err(self.malformed(
                last,
                format!(
                    "the file ends after {seen} of {}; it is cut off, or the first line is wrong",
                    many(link_count, "link")
                ),
            ));
        }
        builder.finish()
    }

    fn link(
        &self,
        builder: &mut FabricBuilder,
        line: u32,
        text: &str,
        nodes: u64,
    ) -> Result<(), FabricError> {
        let words = text.split_whitespace().collect::<Vec<_>>();
        let &[a, b, rate, delay, error_rate] = words.as_slice() else {
            return Err(self.malformed(
                line,
                format!(
                    "a link has the five values `a b rate delay error-rate` (like `0 2 100Gbps 1000ns 0`), and here {} of them",
                    words.len()
                ),
            ));
        };
        let end = |word| {
            let id = self.count(line, "node id", word)?;
            if id >= nodes {
                return Err(self.unknown(line, id, nodes));
            }
            Ok(NodeId(id as u32))
        };
        let (a, b) = (end(a)?, end(b)?);
        let rate = self.quantity(line, "rate", rate)?;
        let delay = self.quantity(line, "delay", delay)?;
        if error_rate.parse::<f64>().ok() != Some(0.0) {
            return Err(self.malformed(
                line,
                format!("error rate `{error_rate}`: links lose nothing at random here, write 0"),
            ));
        }
        builder.line(line).connect(a, b, rate, delay);
        Ok(())
    }

    fn count(&self, line: u32, what: &str, word: &str) -> Result<u64, FabricError> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            // Digits only: what does not fit is as wrong as what is far too large.
            return Ok(word.parse().unwrap_or(u64::MAX));
        }
        Err(self.malformed(
            line,
            format!("{what} `{word}` is not a whole number from 0"),
        ))
    }

    fn quantity<T: FromStr<Err = UnitError>>(
        &self,
        line: u32,
        what: &str,
        word: &str,
    ) -> Result<T, FabricError> {
        word.parse()
            .map_err(|error| self.malformed(line, format!("{what} {error}")))
    }

    fn unknown(&self, line: u32, id: u64, nodes: u64) -> FabricError {
        FabricError::UnknownNode {
            at: self.place(line),
            name: id.to_string(),
            hint: match nodes {
                0 => "; the map has no nodes".to_owned(),
                _ => format!("; nodes are numbered 0 to {}", nodes - 1),
            },
        }
    }

    fn place(&self, line: u32) -> Place {
        Place {
            source: self.source.to_owned(),
            line: Some(line),
        }
    }

    fn malformed(&self, line: u32, message: impl Into<String>) -> FabricError {
        let message = clip(&message.into());
        FabricError::Malformed {
            at: self.place(line),
            message,
        }
    }
}
