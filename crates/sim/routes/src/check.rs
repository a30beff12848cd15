//! What the schema of a route file cannot say: doubles, keys that belong to another pattern. Limits of single settings stand
//! beside the fields.

use raddle_text::{InputError, Location, Node, Problem, schema::check_version, tree::Value};

use crate::fields::{GroupsTable, Pattern, RouteFile, TableKind};

/// An error at the value of `path`, named by its last key.
pub(crate) fn value_error(root: &Node, path: &[&str], message: impl Into<String>) -> InputError {
    let key = path
        .last()
        .map_or_else(String::new, |key| format!("`{key}`: "));
    let problem = Problem::Value {
        key,
        message: message.into(),
    };
    InputError::at(root.locate(path), problem)
}

/// Checks a route file whose keys and types are right. `root` gives the places.
pub(crate) fn check(file: &RouteFile, root: &Node) -> Result<(), InputError> {
    check_version(root)?;
    groups(&file.groups, root)?;
    multicast(file, root)
}

fn groups(groups: &GroupsTable, root: &Node) -> Result<(), InputError> {
    use Pattern::{File, Grid, Hierarchy, Random};
    // Each key with the patterns that have it, and those that cannot do without.
    let keys: [(&str, bool, &[Pattern], &[Pattern]); 9] = [
        (
            "dims",
            groups.dims.is_some(),
            &[Grid, Hierarchy],
            &[Grid, Hierarchy],
        ),
        (
            "processes_per_terminal",
            groups.processes_per_terminal.is_some(),
            &[Grid, Hierarchy, Random],
            &[],
        ),
        ("count", groups.count.is_some(), &[Random], &[Random]),
        (
            "members_per_group",
            groups.members_per_group.is_some(),
            &[Random],
            &[],
        ),
        ("seed", groups.seed.is_some(), &[Random], &[]),
        ("layers", groups.layers.is_some(), &[Grid], &[]),
        (
            "leaders_only",
            groups.leaders_only.is_some(),
            &[Hierarchy],
            &[],
        ),
        ("file", groups.file.is_some(), &[File], &[File]),
        ("pattern", true, &[Grid, Random, Hierarchy, File], &[]),
    ];
    let pattern = groups.pattern;
    let name = pattern.name();
    let own = || {
        let own = keys.iter().filter(|(_, _, of, _)| of.contains(&pattern));
        own.map(|(key, ..)| *key).collect::<Vec<_>>().join(", ")
    };
    for (key, given, of, _) in &keys {
        if *given && !of.contains(&pattern) {
            let message = format!("pattern = \"{name}\" does not use it");
            return Err(value_error(root, &["groups", key], message)
                .with_hint(format!("remove it; its keys are {}", own())));
        }
    }
    for (key, given, _, needed) in &keys {
        if !given && needed.contains(&pattern) {
            let problem = Problem::Missing {
                key: (*key).to_owned(),
                within: format!(" in [groups] with pattern = \"{name}\""),
            };
            let hint = match (*key, pattern) {
                ("dims", Grid) => "write the grid's lengths, x first, like dims = [64, 32, 16]",
                ("dims", _) => {
                    "write processes per block, lowest level first, like dims = [16, 256]"
                }
                ("count", _) => "write the number of groups, like count = 1000",
                _ => "name a file with groups, like file = \"groups.csv\"",
            };
            return Err(InputError::at(root.locate(&["groups"]), problem).with_hint(hint));
        }
    }
    Ok(())
}

fn multicast(file: &RouteFile, root: &Node) -> Result<(), InputError> {
    let table = &file.multicast;
    let at = ["multicast", "engines"];
    let engines = table.engines.as_deref().unwrap_or(&[]);
    for (index, engine) in engines.iter().enumerate() {
        if engines[..index].contains(engine) {
            let problem = Problem::Value {
                key: "`engines`: ".to_owned(),
                message: format!("{engine} is listed twice"),
            };
            return Err(
                InputError::at(&item(root, &at, index), problem).with_hint("remove one of them")
            );
        }
    }
    let per_switch = table.table == Some(TableKind::PerSwitch);
    if per_switch && table.fault_tolerant == Some(true) {
        let message = "two trees of one colour would meet in the members' switches";
        let error = value_error(root, &["multicast", "fault_tolerant"], message);
        return Err(error.with_hint("fault tolerance needs table = \"per-port\""));
    }
    Ok(())
}

/// The place of an item of a list.
pub(crate) fn item(root: &Node, path: &[&str], index: usize) -> Location {
    match root.find(path).map(|node| &node.value) {
        Some(Value::Array(items)) if index < items.len() => items[index].at.clone(),
        _ => root.locate(path).clone(),
    }
}
