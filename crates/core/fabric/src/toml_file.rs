//! Maps in TOML files: errors with line and column, and the explicit form of any map.
//!
//! ```toml
//! schema = 1
//! kind = "graph"          # or any other kind with its parameters
//!
//! [[host]]
//! name = "node"           # node0 to node3
//! count = 4
//!
//! [[switch]]
//! name = "tor"
//!
//! [[link]]
//! a = "node0"
//! b = "tor"
//! rate = "100Gbps"
//! delay = "1us"
//! ```

use std::ops::Range;

use raddle_text::words::{self, closest};
use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use crate::{
    builders::{Graph, Origin},
    error::{FabricError, Place, shorten_message, shorten_word},
    keys::{AllKeys, KeyProblem, Kind},
    map::Fabric,
    spec::{FabricSource, FabricSpec},
};

/// Reads a map from TOML. `source_name` stands in errors.
///
/// # Errors
/// Text that is not TOML, unknown keys, wrong types, values without unit: each with line and column; and what the
/// builder of the kind refuses.
pub fn parse_toml(text: &str, source_name: &str) -> Result<Fabric, FabricError> {
    let file = File {
        text,
        source: source_name,
    };
    let table = DeTable::parse(text).map_err(|error| file.error(&error, &[]))?;
    let kind = table
        .get_ref()
        .get("kind")
        .and_then(|kind| kind.get_ref().as_str());
    let keys_of_kind = kind
        .and_then(Kind::of_name)
        .map(Kind::keys)
        .unwrap_or_default();
    let keys = AllKeys::deserialize(toml::Deserializer::from(table.clone()))
        .map_err(|error| file.error(&error, &keys_of_kind))?;
    if keys.schema.is_none() {
        let message =
            "`schema = 1` is missing: put it first, it says which version of the format this is";
        return Err(file.at(0..0, message.to_owned()));
    }
    let source = keys
        .into_source()
        .map_err(|problem| file.key_error(table.get_ref(), problem))?;
    let built = match source {
        FabricSource::Spec(FabricSpec::Graph(graph)) => {
            graph.build_from(&file.origin(table.get_ref()))
        }
        FabricSource::Spec(spec) => spec.build(),
        FabricSource::File(_) => {
            let problem = KeyProblem {
                key: Some("file".to_owned()),
                message: "a map file cannot name another file: describe the map itself".to_owned(),
            };
            return Err(file.key_error(table.get_ref(), problem));
        }
    };
    built.map_err(|error| file.locate(table.get_ref(), error))
}

/// Writes any map as TOML with every node and link; [`parse_toml`] gives the same map again.
pub fn write_toml(fabric: &Fabric) -> String {
    #[derive(Serialize)]
    struct Explicit {
        schema: u32,
        kind: &'static str,
        #[serde(flatten)]
        graph: Graph,
    }
    let explicit = Explicit {
        schema: 1,
        kind: "graph",
        graph: Graph::of(fabric),
    };
    toml::to_string(&explicit).expect("names, numbers and lists of tables can be written as TOML")
}

struct File<'a> {
    text: &'a str,
    source: &'a str,
}

impl File<'_> {
    fn error(&self, error: &toml::de::Error, keys_of_kind: &[String]) -> FabricError {
        let message = plain_words(error.message(), keys_of_kind);
        self.at(error.span().unwrap_or(0..0), message)
    }

    fn key_error(&self, table: &DeTable<'_>, problem: KeyProblem) -> FabricError {
        let span = match problem.key.as_deref() {
            // A wrong kind is a wrong value, anything else a key that should not be there.
            Some("kind") => table.get("kind").map(|value| value.span()),
            Some(key) => key_span(table, key),
            None => key_span(table, "kind"),
        };
        self.at(span.unwrap_or(0..0), problem.message)
    }

    /// Gives an error of a builder the file's name, and the line of the parameter.
    fn locate(&self, table: &DeTable<'_>, mut error: FabricError) -> FabricError {
        if let FabricError::BadParameter { key, problem, .. } = &error
            && let Some(value) = table.get(key.as_str())
        {
            return self.at(value.span(), format!("`{key}`: {problem}"));
        }
        let line = key_span(table, "kind").map(|span| self.position(span.start).0);
        let at = error.place_mut();
        self.source.clone_into(&mut at.source);
        at.line = at.line.or(line);
        error
    }

    fn origin(&self, table: &DeTable<'_>) -> Origin<'_> {
        let lines = |key| {
            let entries = table.get(key).and_then(|value| value.get_ref().as_array());
            let mut lines = Vec::new();
            // One pass over the text: entries stand in ascending order.
            let (mut offset, mut line) = (0, 1);
            for entry in entries.into_iter().flat_map(|entries| entries.iter()) {
                let start = entry.span().start.clamp(offset, self.text.len());
                line += self.text.as_bytes()[offset..start]
                    .iter()
                    .filter(|b| **b == b'\n')
                    .count();
                offset = start;
                lines.push(line as u32);
            }
            lines
        };
        Origin {
            source: Some(self.source),
            host_lines: lines("host"),
            switch_lines: lines("switch"),
            link_lines: lines("link"),
        }
    }

    /// Line and column (in characters), both from 1.
    fn position(&self, offset: usize) -> (u32, u32) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count();
        (line as u32 + 1, column as u32 + 1)
    }

    fn at(&self, span: Range<usize>, message: String) -> FabricError {
        let (line, column) = self.position(span.start);
        let excerpt = match self.text.lines().nth(line as usize - 1) {
            Some(text) if !span.is_empty() && text.chars().count() <= 200 => {
                let length = text.chars().count() + 1 - (column as usize).min(text.chars().count());
                let marks = self.text.get(span).map_or(1, |part| part.chars().count());
                let margin = " ".repeat(line.to_string().len());
                format!(
                    "\n{margin} |\n{line} | {text}\n{margin} | {}{}",
                    " ".repeat(column as usize - 1),
                    "^".repeat(marks.clamp(1, length)),
                )
            }
            _ => String::new(),
        };
        let at = Place {
            source: self.source.to_owned(),
            line: Some(line),
        };
        let message = shorten_message(&message);
        FabricError::Toml {
            at,
            column,
            message,
            excerpt,
        }
    }
}

fn key_span(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    table
        .iter()
        .find(|(name, _)| name.get_ref() == key)
        .map(|(name, _)| name.span())
}

/// Turns the words of serde into a cure: what was meant, or what is possible.
fn plain_words(message: &str, keys_of_kind: &[String]) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("key {rest} is missing");
    }
    let Some(word) = quoted.next().filter(|_| message.starts_with("unknown ")) else {
        return words::plain(message);
    };
    let what = if message.starts_with("unknown variant") {
        "value"
    } else {
        "key"
    };
    // Nested tables list few keys, which serde names; the top level knows those of all kinds, too many to list.
    let known: Vec<&str> = quoted.collect();
    let top_level = known.contains(&"kind");
    let candidates: Vec<&str> = match keys_of_kind {
        [] => known,
        keys if top_level => keys
            .iter()
            .map(String::as_str)
            .chain(["kind", "schema"])
            .collect(),
        _ => known,
    };
    let (meant, word) = (
        closest(word, candidates.iter().copied()),
        shorten_word(word),
    );
    match meant {
        Some(meant) => format!("unknown {what} `{word}`: did you mean `{meant}`?"),
        None => format!(
            "unknown {what} `{word}`: possible are {}",
            candidates.join(", ")
        ),
    }
}
