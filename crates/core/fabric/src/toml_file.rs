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

use raddle_text::{
    InputError, Node, Problem, read,
    schema::check_version,
    tree::{self, Value},
};
use serde::Serialize;

use crate::{
    builders::{Graph, HostEntry, LinkEntry, Origin, SwitchEntry},
    error::FabricError,
    map::Fabric,
    spec::{FabricSpec, Form, FormError},
};

/// Reads a map from TOML. `source_name` stands in errors.
///
/// # Errors
/// Text that is not TOML, unknown keys, wrong types, values without unit: each with line and column; and what the
/// builder of the kind refuses.
pub fn parse_toml(text: &str, source_name: &str) -> Result<Fabric, FabricError> {
    let mut root = tree::parse(text, source_name)?;
    check_version(&root)?;
    if let Value::Table(table) = &mut root.value {
        table.remove("schema");
    }
    let form = Form::of(|key| root.find(&[key]).is_some());
    let built = match form.map_err(|problem| without_form(&root, &problem))? {
        Form::File => {
            let problem = FormError {
                key: Some("file"),
                message: "a map file cannot name another file: describe the map itself".to_owned(),
            };
            return Err(without_form(&root, &problem).into());
        }
        Form::Graph => read::<Graph>(&root)?.build_from(&origin(&root)),
        Form::Spec => match read::<FabricSpec>(&root)? {
            FabricSpec::Graph(graph) => graph.build_from(&origin(&root)),
            spec => spec.build(),
        },
    };
    built.map_err(|error| locate(&root, error))
}

fn without_form(root: &Node, problem: &FormError) -> InputError {
    let path: Vec<&str> = problem.key.into_iter().collect();
    let refused = Problem::Refused(problem.message.clone());
    InputError::at(root.locate(&path), refused)
}

/// Gives an error of a builder the file's name, and the line of the parameter.
fn locate(root: &Node, mut error: FabricError) -> FabricError {
    if let FabricError::BadParameter { key, problem, .. } = &error
        && let Some(value) = root.find(&[key])
    {
        let problem = Problem::Value {
            key: format!("`{key}`: "),
            message: problem.clone(),
        };
        return InputError::at(&value.at, problem).into();
    }
    let line = root.find(&["kind"]).map(|kind| kind.at.line());
    if let Some(at) = error.place_mut() {
        root.at.source.name.clone_into(&mut at.source);
        at.line = at.line.or(line);
    }
    error
}

/// The lines of a graph's entries.
fn origin(root: &Node) -> Origin<'_> {
    let text = root.at.source.text.as_bytes();
    let lines = |key| {
        let mut lines = Vec::new();
        // One pass over the text: entries stand in ascending order.
        let (mut offset, mut line) = (0, 1);
        if let Some(Value::Array(entries)) = root.find(&[key]).map(|node| &node.value) {
            for entry in entries {
                let start = entry.at.span.start.clamp(offset, text.len());
                line += text[offset..start].iter().filter(|b| **b == b'\n').count();
                offset = start;
                lines.push(line as u32);
            }
        }
        lines
    };
    Origin {
        source: Some(&root.at.source.name),
        host_lines: lines("host"),
        switch_lines: lines("switch"),
        link_lines: lines("link"),
    }
}

/// Links that are written at once: a text of some 100 kB, so that memory is that of the whole text and little more.
const LINKS_AT_ONCE: usize = 1024;

/// Writes any map as TOML with every node and link; [`parse_toml`] gives the same map again.
pub fn write_toml(fabric: &Fabric) -> String {
    #[derive(Serialize)]
    struct Nodes {
        schema: u32,
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        host: Vec<HostEntry>,
        switch: Vec<SwitchEntry>,
    }
    #[derive(Serialize)]
    struct Links {
        link: Vec<LinkEntry>,
    }
    let Graph {
        name,
        radix,
        host,
        switch,
        link: _,
    } = Graph::nodes_of(fabric);
    let mut text = toml_of(&Nodes {
        schema: 1,
        kind: "graph",
        name,
        radix,
        host,
        switch,
    });
    let mut links = LinkEntry::all_of(fabric).peekable();
    while links.peek().is_some() {
        let link = links.by_ref().take(LINKS_AT_ONCE).collect();
        text.push('\n');
        text.push_str(&toml_of(&Links { link }));
    }
    text
}

fn toml_of(value: &impl Serialize) -> String {
    toml::to_string(value).expect("names, numbers and lists of tables can be written as TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CnTn, KAryFatTree, dumbbell};

    #[test]
    fn a_map_in_parts_is_written_as_the_whole() {
        #[derive(Serialize)]
        struct Whole {
            schema: u32,
            kind: &'static str,
            #[serde(flatten)]
            graph: Graph,
        }
        let radix = CnTn {
            radix: Some(9),
            ..CnTn::new(2, 3, 2, 2, 2)
        };
        for fabric in [dumbbell(2), radix.build(), KAryFatTree::new(16).build()] {
            let fabric = fabric.expect("a good map");
            let graph = Graph::of(&fabric);
            let whole = Whole {
                schema: 1,
                kind: "graph",
                graph,
            };
            assert_eq!(write_toml(&fabric), toml_of(&whole));
        }
    }
}
