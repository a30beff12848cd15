//! Groups in TOML: one table for each.

use raddle_text::{
    InputError, Node, Problem, read,
    schema::check_version,
    tree::{self, Value},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MAX_MGID, Member, WrittenGroup, bad_mgid, empty_group};

/// A file of groups.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Version of the format: 1.
    #[expect(dead_code, reason = "`check_version` looks at the text")]
    schema: u32,
    /// The groups.
    #[serde(default)]
    group: Vec<Group>,
}

/// One group.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Group {
    /// Its name.
    name: String,
    /// Its number, a whole number from 0 to 4294967295: for every group, or for none.
    mgid: Option<i64>,
    /// Names of hosts, or positions in the fabric's order of hosts, from 0.
    members: Vec<Member>,
}

pub(super) fn read_groups(text: &str, name: &str) -> Result<Vec<WrittenGroup>, InputError> {
    let root = tree::parse(text, name)?;
    check_version(&root)?;
    let document: Document = read(&root)?;
    if document.group.is_empty() {
        let problem = Problem::Refused("the file has no groups".to_owned());
        let cure = "add a `[[group]]` with `name` and `members` below `schema = 1`";
        return Err(InputError::of_file(name, problem).with_hint(cure));
    }
    let tables = items(root.find(&["group"]));
    let groups = document.group.into_iter().zip(tables);
    groups.map(|(group, table)| located(group, table)).collect()
}

/// The group with the places of its parts.
fn located(group: Group, table: &Node) -> Result<WrittenGroup, InputError> {
    if group.members.is_empty() {
        return Err(empty_group(&table.at, &group.name));
    }
    let mgid = match group.mgid {
        None => None,
        Some(number) => {
            let at = table.locate(&["mgid"]);
            let mgid = u64::try_from(number).ok().filter(|mgid| *mgid <= MAX_MGID);
            let mgid = mgid.ok_or_else(|| bad_mgid(at, &group.name, &number.to_string()))?;
            Some((at.clone(), mgid))
        }
    };
    let places = items(table.find(&["members"])).map(|item| item.at.clone());
    Ok(WrittenGroup {
        at: table.at.clone(),
        name: group.name,
        mgid,
        members: places.zip(group.members).collect(),
    })
}

fn items(list: Option<&Node>) -> impl Iterator<Item = &Node> {
    let items = list.and_then(|node| match &node.value {
        Value::Array(items) => Some(items),
        _ => None,
    });
    items.into_iter().flatten()
}
