//! Groups in files: TOML with one table per group, or CSV with one member per line.
//!
//! ```toml
//! schema = 1
//!
//! [[group]]
//! name = "row0"
//! mgid = 5                    # for every group, or for none
//! members = ["h0", "h1", 2]   # names of hosts, or positions in the fabric's order of hosts, from 0
//! ```
//!
//! ```csv
//! group,mgid,member
//! row0,5,h0
//! row0,5,h1
//! row0,5,2
//! ```

mod csv;
mod toml;

use std::{collections::BTreeMap, sync::Arc};

use raddle_fabric::Fabric;
use raddle_text::{InputError, Location, Problem, Source, words::shorten};
use serde::Serialize;

use super::{GroupError, GroupSet};

/// The largest number of a group: the last four bytes of an MGID carry it.
pub const MAX_MGID: u64 = u32::MAX as u64;
/// Longest name of a group, in bytes.
const LONGEST_NAME: usize = 100;

/// How groups are written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupFormat {
    /// `schema = 1` and a `[[group]]` table for each group with `name`, `members` and, for all groups or none, `mgid`.
    Toml,
    /// A header `group,member` or `group,mgid,member`, then one member per line; lines of a group may stand apart.
    Csv,
}

/// A group as its file gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileGroup {
    /// Its name, at most 100 bytes without control characters and without space at its ends, different from the others'.
    pub name: String,
    /// Its number where the file gives one: 0 to [`MAX_MGID`], different from the others'.
    pub mgid: Option<u64>,
    /// Positions in the fabric's order of hosts, ascending and distinct; at least one.
    pub members: Vec<u32>,
}

/// The groups of a file in its order; either all have an MGID or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupFile {
    /// The groups, at least one.
    pub groups: Vec<FileGroup>,
}

impl GroupFile {
    /// The MGIDs, if the file gives them.
    pub fn mgids(&self) -> Option<Vec<u64>> {
        self.groups.iter().map(|group| group.mgid).collect()
    }

    /// The groups without MGIDs, for the general allocator.
    ///
    /// # Errors
    /// A member beyond `terminals`, the number of the fabric's hosts.
    pub fn group_set(&self, terminals: u32) -> Result<GroupSet, GroupError> {
        let groups = self
            .groups
            .iter()
            .map(|group| (group.name.clone(), group.members.clone()));
        GroupSet::unlayered(terminals, groups)
    }
}

/// Reads groups from text; `source_name` stands in errors, members are looked up among the hosts of `fabric`.
///
/// # Errors
/// Text that is not of the format, unknown keys, an MGID out of range or given twice or only to some groups, a member
/// that is not a host or is listed twice, a group without members, no group: each with its place, what is wrong and the cure.
pub fn read_groups(
    text: &str,
    format: GroupFormat,
    source_name: &str,
    fabric: &Fabric,
) -> Result<GroupFile, InputError> {
    // Spreadsheets like to begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let written = match format {
        GroupFormat::Toml => toml::read_groups(text, source_name)?,
        GroupFormat::Csv => {
            let source = Source {
                name: source_name.to_owned(),
                text: text.into(),
            };
            csv::read_groups(&Arc::new(source))?
        }
    };
    let mut file = Checker {
        fabric,
        names: BTreeMap::new(),
        mgids: BTreeMap::new(),
        groups: Vec::with_capacity(written.len()),
    };
    for group in &written {
        file.add(group, &written[0])?;
    }
    Ok(GroupFile {
        groups: file.groups,
    })
}

/// Writes groups with the names of their hosts; [`read_groups`] gives the same groups again. Positions beyond the
/// fabric's hosts are left out.
pub fn write_groups(file: &GroupFile, format: GroupFormat, fabric: &Fabric) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        mgid: Option<u64>,
        members: Vec<String>,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        group: Vec<Entry<'a>>,
    }
    let names = |group: &FileGroup| -> Vec<String> {
        let hosts = group
            .members
            .iter()
            .filter_map(|&member| fabric.hosts().get(member as usize));
        hosts
            .map(|&host| fabric.node_name(host).into_owned())
            .collect()
    };
    match format {
        GroupFormat::Toml => {
            let entries = file.groups.iter().map(|group| Entry {
                name: &group.name,
                mgid: group.mgid,
                members: names(group),
            });
            let document = Document {
                schema: 1,
                group: entries.collect(),
            };
            ::toml::to_string(&document).expect("names and numbers can be written as TOML")
        }
        GroupFormat::Csv => {
            let mut writer = ::csv::Writer::from_writer(Vec::new());
            let numbered = file.groups.iter().any(|group| group.mgid.is_some());
            let header: &[&str] = if numbered {
                &["group", "mgid", "member"]
            } else {
                &["group", "member"]
            };
            let into_memory = "writing to memory does not fail";
            writer.write_record(header).expect(into_memory);
            for group in &file.groups {
                let mgid = group.mgid.map(|mgid| mgid.to_string()).unwrap_or_default();
                for member in names(group) {
                    if numbered {
                        writer.write_record([&group.name, &mgid, &member])
                    } else {
                        writer.write_record([&group.name, &member])
                    }
                    .expect(into_memory);
                }
            }
            let bytes = writer.into_inner().expect(into_memory);
            String::from_utf8(bytes).expect("what was written is text")
        }
    }
}

/// A group as it is written.
struct WrittenGroup {
    at: Location,
    name: String,
    mgid: Option<(Location, u64)>,
    /// At least one.
    members: Vec<(Location, Member)>,
}

/// A member as it is written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Member {
    /// Position in the fabric's order of hosts, from 0.
    Position(i64),
    /// Name of a host, or a position.
    Name(String),
}

impl Member {
    fn quoted(&self) -> String {
        match self {
            Self::Position(position) => position.to_string(),
            Self::Name(name) => format!("`{}`", shorten(name).escape_debug()),
        }
    }
}

fn refused(at: &Location, message: String, cure: &str) -> InputError {
    InputError::at(at, Problem::Refused(message)).with_hint(cure)
}

/// An MGID that is no number of one.
fn bad_mgid(at: &Location, group: &str, found: &str) -> InputError {
    let group = shorten(group);
    let message = format!("`mgid` of group `{group}` is {found}");
    let cure = format!("it must be a whole number from 0 to {MAX_MGID}");
    refused(at, message, &cure)
}

/// A group without members.
fn empty_group(at: &Location, group: &str) -> InputError {
    let message = format!("`members` of group `{}` is empty", shorten(group));
    refused(at, message, "name at least one host, or remove the group")
}

/// Holds groups to the map and to each other.
struct Checker<'a> {
    fabric: &'a Fabric,
    names: BTreeMap<&'a str, ()>,
    mgids: BTreeMap<u64, &'a str>,
    groups: Vec<FileGroup>,
}

impl<'a> Checker<'a> {
    fn add(&mut self, group: &'a WrittenGroup, first: &WrittenGroup) -> Result<(), InputError> {
        let (at, name) = (&group.at, &group.name);
        if !is_name(name) {
            let message = format!("a group is called `{}`", shorten(name).escape_debug());
            let cure = "a name has 1 to 100 bytes, no control characters and no space at its ends";
            return Err(refused(at, message, cure));
        }
        if self.names.insert(name, ()).is_some() {
            let message = format!("there is already a group `{name}`");
            return Err(refused(at, message, "give each group its own name"));
        }
        if let Some((at, mgid)) = &group.mgid
            && let Some(other) = self.mgids.insert(*mgid, name)
        {
            let message = format!("`mgid` of group `{name}` is {mgid}, as that of group `{other}`");
            return Err(refused(
                at,
                message,
                "an MGID names one group: give another",
            ));
        }
        if group.mgid.is_some() != first.mgid.is_some() {
            let (with, without) = match group.mgid {
                Some(_) => (name, &first.name),
                None => (&first.name, name),
            };
            let message = format!("`mgid`: group `{with}` has one and group `{without}` has none");
            let cure = "give one to every group, or to none and have them chosen";
            return Err(refused(at, message, cure));
        }
        self.groups.push(FileGroup {
            name: name.clone(),
            mgid: group.mgid.as_ref().map(|(_, mgid)| *mgid),
            members: self.members(group)?,
        });
        Ok(())
    }

    fn members(&self, group: &WrittenGroup) -> Result<Vec<u32>, InputError> {
        let mut members = Vec::with_capacity(group.members.len());
        for (index, (at, member)) in group.members.iter().enumerate() {
            let position = self.position(member).map_err(|(problem, cure)| {
                let (name, member) = (&group.name, member.quoted());
                let message = format!("`members` of group `{name}`: {member} {problem}");
                refused(at, message, &cure)
            })?;
            members.push((position, index));
        }
        members.sort_unstable();
        let double = members.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        // The one that stands first in the file is reported.
        if let Some(second) = double.map(|pair| pair[1].1).min() {
            let (at, member) = &group.members[second];
            let (name, member) = (&group.name, member.quoted());
            let message = format!("`members` of group `{name}`: {member} is listed twice");
            return Err(refused(at, message, "remove one"));
        }
        Ok(members.into_iter().map(|(position, _)| position).collect())
    }

    /// The member's position among the hosts; or what is wrong, and the cure.
    fn position(&self, member: &Member) -> Result<u32, (String, String)> {
        let hosts = self.fabric.hosts();
        let last = hosts.len().saturating_sub(1);
        let position = match member {
            Member::Position(position) => u64::try_from(*position).ok(),
            Member::Name(name) => {
                let number = whole_number(name);
                if let Some(node) = self.fabric.find_node(name)
                    && (number.is_none() || self.fabric.node_name(node) == name.as_str())
                {
                    let position = hosts.binary_search(&node);
                    return position
                        .map(|position| position as u32)
                        .map_err(|_| ("is a switch".to_owned(), "members are hosts".to_owned()));
                }
                number
            }
        };
        match position {
            Some(position) if position <= last as u64 => Ok(position as u32),
            Some(_) => Err((
                "is beyond the last host".to_owned(),
                format!("positions run from 0 to {last}"),
            )),
            None => Err((
                format!("is not a host of `{}`", shorten(self.fabric.name())),
                format!(
                    "hosts are called {} to {}, or by position from 0 to {last}",
                    self.fabric.node_name(hosts[0]),
                    self.fabric.node_name(hosts[last]),
                ),
            )),
        }
    }
}

/// What can be written in both formats and in one line of a message.
fn is_name(name: &str) -> bool {
    let length = 1..=LONGEST_NAME;
    length.contains(&name.len()) && name.trim() == name && !name.chars().any(char::is_control)
}

/// Digits only: no sign, no space.
fn whole_number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}
