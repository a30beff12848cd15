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

use raddle_units::many;
use std::{collections::BTreeMap, fmt};

use raddle_fabric::Fabric;
use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::{GroupError, GroupSet};

/// The largest number of a group: the last four bytes of an MGID carry it.
pub const MAX_MGID: u64 = u32::MAX as u64;
/// Longest name of a group, in bytes.
const LONGEST_NAME: usize = 100;
/// Keys of a TOML group.
const GROUP_KEYS: [&str; 3] = ["name", "mgid", "members"];

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

/// Why a group file is refused: place, what is wrong, and the cure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupFileError {
    /// Name of the file.
    pub source: String,
    /// Line in the file, from 1, where there is one.
    pub line: Option<u32>,
    /// What is wrong.
    pub problem: GroupProblem,
}

impl fmt::Display for GroupFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.source, self.problem),
            None => write!(f, "{}: {}", self.source, self.problem),
        }
    }
}

impl std::error::Error for GroupFileError {}

/// What is wrong with a group file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupProblem {
    /// Not TOML or not CSV.
    #[error("{message}")]
    Syntax {
        /// What the reader says.
        message: String,
    },
    /// `schema = 1` is not there.
    #[error(
        "`schema` is {found}: write `schema = 1` first, it says which version of the format this is"
    )]
    Schema {
        /// What is there instead.
        found: String,
    },
    /// A key or column that does not exist.
    #[error("unknown {what} `{name}`: there are {known}")]
    Unknown {
        /// `key` or `column`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The known ones.
        known: &'static str,
    },
    /// A key, column or field that has to be there.
    #[error("`{field}` is missing: {cure}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What to write.
        cure: &'static str,
    },
    /// A field has the wrong kind of value.
    #[error("`{field}` is {found}: it must be {wanted}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// What was found.
        found: String,
        /// What is wanted.
        wanted: &'static str,
    },
    /// A line with too few or too many fields.
    #[error("{} instead of {expected}: complete or remove the line", many(*.got, "field"))]
    FieldCount {
        /// Fields found.
        got: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A name that cannot be used.
    #[error(
        "`{field}` is `{name}`: a name has 1 to 100 bytes, no control characters and no space at its ends"
    )]
    BadName {
        /// `name` or `group`.
        field: &'static str,
        /// The name, shortened.
        name: String,
    },
    /// Two groups with one name.
    #[error("`name`: there is already a group `{name}`: give each group its own name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An MGID that is no number from 0 to [`MAX_MGID`].
    #[error("`mgid` of group `{group}` is {found}: it must be a whole number from 0 to 4294967295")]
    MgidRange {
        /// The group.
        group: String,
        /// What was found, shortened.
        found: String,
    },
    /// Two groups with one MGID.
    #[error(
        "`mgid` of group `{group}` is {mgid}, as that of group `{other}`: an MGID names one group, give another"
    )]
    DuplicateMgid {
        /// The group.
        group: String,
        /// The group that has it already.
        other: String,
        /// The number.
        mgid: u64,
    },
    /// A CSV group with two MGIDs.
    #[error("`mgid` of group `{group}` is {mgid} here and {other} before: a group has one MGID")]
    MgidChanges {
        /// The group.
        group: String,
        /// Its number in this line.
        mgid: u64,
        /// Its number before.
        other: u64,
    },
    /// Some groups have an MGID and some do not.
    #[error(
        "`mgid`: group `{with}` has one and group `{without}` has none: give one to every group, or to none and have \
         them chosen"
    )]
    MixedMgids {
        /// A group with an MGID.
        with: String,
        /// A group without.
        without: String,
    },
    /// A member that is no host of the fabric.
    #[error("`members` of group `{group}`: {member} {problem}")]
    UnknownMember {
        /// The group.
        group: String,
        /// The member as it was written, shortened.
        member: String,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// A member twice in one group.
    #[error("`members` of group `{group}`: {member} is there twice: remove one")]
    DuplicateMember {
        /// The group.
        group: String,
        /// The member.
        member: String,
    },
    /// A group without members.
    #[error("`members` of group `{group}` is empty: name at least one host, or remove the group")]
    EmptyGroup {
        /// The group.
        group: String,
    },
    /// A file without groups.
    #[error("there is no group in it: {cure}")]
    NoGroups {
        /// What to write.
        cure: &'static str,
    },
}

/// Reads groups from text; `source_name` stands in errors, members are looked up among the hosts of `fabric`.
///
/// # Errors
/// Text that is not of the format, unknown keys, an MGID out of range or given twice or only to some groups, a member
/// that is no host or is there twice, a group without members, no group: each with its line, the field and the cure.
pub fn read_groups(
    text: &str,
    format: GroupFormat,
    source_name: &str,
    fabric: &Fabric,
) -> Result<GroupFile, GroupFileError> {
    // Spreadsheets like to begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let reader = Reader {
        text,
        source: source_name,
        fabric,
    };
    let raw = match format {
        GroupFormat::Toml => reader.toml()?,
        GroupFormat::Csv => reader.csv()?,
    };
    reader.check(raw, format)
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
            toml::to_string(&document).expect("names and numbers can be written as TOML")
        }
        GroupFormat::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
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

/// Where something stands: a byte of the text (TOML) or a line (CSV).
#[derive(Clone, Copy)]
enum At {
    Byte(usize),
    Line(u32),
    File,
}

struct RawMember {
    at: At,
    value: RawValue,
}

enum RawValue {
    Position(String),
    Name(String),
}

struct RawGroup {
    at: At,
    name: String,
    mgid: Option<(At, u64)>,
    members: Vec<RawMember>,
}

struct Reader<'a> {
    text: &'a str,
    source: &'a str,
    fabric: &'a Fabric,
}

impl Reader<'_> {
    fn fail(&self, at: At, problem: GroupProblem) -> GroupFileError {
        let line = match at {
            At::Byte(offset) => {
                let before = &self.text.as_bytes()[..offset.min(self.text.len())];
                Some(before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1)
            }
            At::Line(line) => Some(line),
            At::File => None,
        };
        GroupFileError {
            source: self.source.to_owned(),
            line,
            problem,
        }
    }

    fn toml(&self) -> Result<Vec<RawGroup>, GroupFileError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(At::File, |span| At::Byte(span.start));
            let message = format!("not TOML: {}", shorten(error.message()));
            self.fail(at, GroupProblem::Syntax { message })
        })?;
        let table = table.get_ref();
        for (key, value) in table {
            if !["schema", "group"].contains(&&**key.get_ref()) {
                return Err(self.fail(
                    At::Byte(key.span().start.min(value.span().start)),
                    GroupProblem::Unknown {
                        what: "key",
                        name: shorten(key.get_ref()),
                        known: "`schema` and `[[group]]`",
                    },
                ));
            }
        }
        let schema = table.get("schema");
        let version = schema.and_then(|value| match value.get_ref() {
            DeValue::Integer(integer) => integer_of(integer.as_str(), integer.radix()),
            _ => None,
        });
        if version != Some(1) {
            let (at, found) = match schema {
                None => (At::File, "missing".to_owned()),
                Some(value) => (At::Byte(value.span().start), describe(value.get_ref())),
            };
            return Err(self.fail(at, GroupProblem::Schema { found }));
        }
        let Some(groups) = table.get("group") else {
            return Ok(Vec::new());
        };
        let at = At::Byte(groups.span().start);
        let DeValue::Array(groups) = groups.get_ref() else {
            return Err(self.fail(
                at,
                GroupProblem::WrongType {
                    field: "group",
                    found: describe(groups.get_ref()),
                    wanted: "a list of tables, each beginning with `[[group]]`",
                },
            ));
        };
        groups
            .iter()
            .map(|group| {
                let at = At::Byte(group.span().start);
                match group.get_ref() {
                    DeValue::Table(entry) => self.toml_group(at, entry),
                    other => Err(self.fail(
                        at,
                        GroupProblem::WrongType {
                            field: "group",
                            found: describe(other),
                            wanted: "a table that begins with `[[group]]`",
                        },
                    )),
                }
            })
            .collect()
    }

    fn toml_group(&self, at: At, entry: &DeTable<'_>) -> Result<RawGroup, GroupFileError> {
        for (key, _) in entry {
            if !GROUP_KEYS.contains(&&**key.get_ref()) {
                return Err(self.fail(
                    At::Byte(key.span().start),
                    GroupProblem::Unknown {
                        what: "key",
                        name: shorten(key.get_ref()),
                        known: "`name`, `mgid` and `members`",
                    },
                ));
            }
        }
        let wrong = |at, field, value: &DeValue<'_>, wanted| {
            let found = describe(value);
            self.fail(
                at,
                GroupProblem::WrongType {
                    field,
                    found,
                    wanted,
                },
            )
        };
        let missing = |field, cure| self.fail(at, GroupProblem::Missing { field, cure });
        let name = entry
            .get("name")
            .ok_or_else(|| missing("name", "write `name = \"row0\"`"))?;
        let name = match name.get_ref() {
            DeValue::String(text) => text.to_string(),
            other => {
                let at = At::Byte(name.span().start);
                return Err(wrong(at, "name", other, "text in quotes"));
            }
        };
        let mgid = match entry.get("mgid") {
            None => None,
            Some(value) => {
                let at = At::Byte(value.span().start);
                let number = match value.get_ref() {
                    DeValue::Integer(integer) => integer_of(integer.as_str(), integer.radix()),
                    _ => None,
                };
                let Some(number) = number.filter(|&number| number <= MAX_MGID) else {
                    let found = describe(value.get_ref());
                    let group = shorten(&name);
                    return Err(self.fail(at, GroupProblem::MgidRange { group, found }));
                };
                Some((at, number))
            }
        };
        let cure = "write `members = [\"h0\", \"h1\"]`";
        let list = entry
            .get("members")
            .ok_or_else(|| missing("members", cure))?;
        let DeValue::Array(list) = list.get_ref() else {
            let at = At::Byte(list.span().start);
            let wanted = "a list of host names or positions";
            return Err(wrong(at, "members", list.get_ref(), wanted));
        };
        let mut members = Vec::with_capacity(list.len());
        for member in list.iter() {
            let at = At::Byte(member.span().start);
            let value = match member.get_ref() {
                DeValue::String(text) => RawValue::Name(text.to_string()),
                DeValue::Integer(integer) => RawValue::Position(
                    integer_of(integer.as_str(), integer.radix())
                        .map_or_else(|| integer.as_str().to_owned(), |number| number.to_string()),
                ),
                other => {
                    let wanted = "a list of host names or positions";
                    return Err(wrong(at, "members", other, wanted));
                }
            };
            members.push(RawMember { at, value });
        }
        Ok(RawGroup {
            at,
            name,
            mgid,
            members,
        })
    }

    fn csv(&self) -> Result<Vec<RawGroup>, GroupFileError> {
        let mut records = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(self.text.as_bytes());
        let mut record = csv::StringRecord::new();
        let mut columns: Option<[Option<usize>; 3]> = None;
        let mut width = 0;
        let mut groups: Vec<RawGroup> = Vec::new();
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let more = records.read_record(&mut record).map_err(|error| {
                let at = error
                    .position()
                    .map_or(At::File, |place| At::Line(place.line() as u32));
                let message = format!("not CSV: {}", shorten(&error.to_string()));
                self.fail(at, GroupProblem::Syntax { message })
            })?;
            if !more {
                break;
            }
            let at = record
                .position()
                .map_or(At::File, |place| At::Line(place.line() as u32));
            let Some([group, mgid, member]) = columns else {
                columns = Some(self.header(at, &record)?);
                width = record.len();
                continue;
            };
            if record.len() != width {
                let got = record.len();
                return Err(self.fail(
                    at,
                    GroupProblem::FieldCount {
                        got,
                        expected: width,
                    },
                ));
            }
            let field = |column: Option<usize>| column.and_then(|c| record.get(c)).unwrap_or("");
            let name = field(group);
            let number = match field(mgid) {
                "" => None,
                text => match whole_number(text).filter(|&number| number <= MAX_MGID) {
                    Some(number) => Some((at, number)),
                    None => {
                        let found = format!("`{}`", shorten(text));
                        let group = shorten(name);
                        return Err(self.fail(at, GroupProblem::MgidRange { group, found }));
                    }
                },
            };
            let index = match by_name.get(name) {
                Some(&index) => index,
                None => {
                    by_name.insert(name.to_owned(), groups.len());
                    groups.push(RawGroup {
                        at,
                        name: name.to_owned(),
                        mgid: number,
                        members: Vec::new(),
                    });
                    groups.len() - 1
                }
            };
            let entry = &mut groups[index];
            match (entry.mgid.map(|(_, number)| number), number) {
                (Some(other), Some((_, mgid))) if other != mgid => {
                    let group = shorten(name);
                    return Err(self.fail(at, GroupProblem::MgidChanges { group, mgid, other }));
                }
                (None, Some(_)) => entry.mgid = number,
                _ => {}
            }
            let value = match field(member) {
                "" => {
                    let group = shorten(name);
                    return Err(self.fail(at, GroupProblem::EmptyGroup { group }));
                }
                text => RawValue::Name(text.to_owned()),
            };
            entry.members.push(RawMember { at, value });
        }
        Ok(groups)
    }

    /// Columns of group, mgid and member.
    fn header(
        &self,
        at: At,
        record: &csv::StringRecord,
    ) -> Result<[Option<usize>; 3], GroupFileError> {
        let mut columns = [None; 3];
        for (column, name) in record.iter().enumerate() {
            let known = ["group", "mgid", "member"]
                .iter()
                .position(|known| *known == name);
            match known {
                Some(known) if columns[known].is_none() => columns[known] = Some(column),
                _ => {
                    return Err(self.fail(
                        at,
                        GroupProblem::Unknown {
                            what: "or doubled column",
                            name: shorten(name),
                            known: "`group`, `member` and, for all groups or none, `mgid`",
                        },
                    ));
                }
            }
        }
        let cure = "the first line must be `group,member` or `group,mgid,member`";
        for (field, column) in [("group", 0), ("member", 2)] {
            if columns[column].is_none() {
                return Err(self.fail(at, GroupProblem::Missing { field, cure }));
            }
        }
        Ok(columns)
    }

    fn check(&self, raw: Vec<RawGroup>, format: GroupFormat) -> Result<GroupFile, GroupFileError> {
        if raw.is_empty() {
            let cure = match format {
                GroupFormat::Toml => {
                    "add a `[[group]]` with `name` and `members` below `schema = 1`"
                }
                GroupFormat::Csv => "write the header `group,member`, then one member per line",
            };
            return Err(self.fail(At::File, GroupProblem::NoGroups { cure }));
        }
        let mut names = BTreeMap::new();
        let mut mgids: BTreeMap<u64, usize> = BTreeMap::new();
        let mut groups: Vec<FileGroup> = Vec::with_capacity(raw.len());
        for (index, group) in raw.iter().enumerate() {
            let name = &group.name;
            if !is_name(name) {
                return Err(self.fail(
                    group.at,
                    GroupProblem::BadName {
                        field: match format {
                            GroupFormat::Toml => "name",
                            GroupFormat::Csv => "group",
                        },
                        name: shorten(name).escape_default().to_string(),
                    },
                ));
            }
            if names.insert(name.as_str(), index).is_some() {
                let name = name.clone();
                return Err(self.fail(group.at, GroupProblem::DuplicateName { name }));
            }
            if let Some((at, mgid)) = group.mgid
                && let Some(other) = mgids.insert(mgid, index)
            {
                return Err(self.fail(
                    at,
                    GroupProblem::DuplicateMgid {
                        group: name.clone(),
                        other: raw[other].name.clone(),
                        mgid,
                    },
                ));
            }
            if group.mgid.is_some() != raw[0].mgid.is_some() {
                let (with, without) = if group.mgid.is_some() {
                    (group, &raw[0])
                } else {
                    (&raw[0], group)
                };
                return Err(self.fail(
                    group.at,
                    GroupProblem::MixedMgids {
                        with: with.name.clone(),
                        without: without.name.clone(),
                    },
                ));
            }
            groups.push(FileGroup {
                name: name.clone(),
                mgid: group.mgid.map(|(_, mgid)| mgid),
                members: self.members(group)?,
            });
        }
        Ok(GroupFile { groups })
    }

    fn members(&self, group: &RawGroup) -> Result<Vec<u32>, GroupFileError> {
        if group.members.is_empty() {
            let group_name = group.name.clone();
            return Err(self.fail(group.at, GroupProblem::EmptyGroup { group: group_name }));
        }
        let mut members = Vec::with_capacity(group.members.len());
        for (index, member) in group.members.iter().enumerate() {
            members.push((self.position(group, member)?, index));
        }
        members.sort_unstable();
        let double = members.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        // The one that stands first in the file is reported.
        if let Some(second) = double.map(|pair| pair[1].1).min() {
            let member = &group.members[second];
            return Err(self.fail(
                member.at,
                GroupProblem::DuplicateMember {
                    group: group.name.clone(),
                    member: member.value.quoted(),
                },
            ));
        }
        Ok(members.into_iter().map(|(position, _)| position).collect())
    }

    fn position(&self, group: &RawGroup, member: &RawMember) -> Result<u32, GroupFileError> {
        let hosts = self.fabric.hosts();
        let unknown = |problem: String| {
            self.fail(
                member.at,
                GroupProblem::UnknownMember {
                    group: group.name.clone(),
                    member: member.value.quoted(),
                    problem,
                },
            )
        };
        let (RawValue::Name(text) | RawValue::Position(text)) = &member.value;
        let found = self.fabric.find_node(text);
        if matches!(member.value, RawValue::Name(_))
            && let Some(node) = found
            && (whole_number(text).is_none() || self.fabric.node_name(node) == text.as_str())
        {
            return match hosts.binary_search(&node) {
                Ok(position) => Ok(position as u32),
                Err(_) => Err(unknown("is a switch: members are hosts".to_owned())),
            };
        }
        let last = hosts.len().saturating_sub(1);
        match whole_number(text) {
            Some(position) if position <= last as u64 => Ok(position as u32),
            Some(_) => Err(unknown(format!(
                "is beyond the last host: positions run from 0 to {last}"
            ))),
            None => Err(unknown(format!(
                "is no host of `{}`: hosts are called {} to {}, or by position from 0 to {last}",
                shorten(self.fabric.name()),
                self.fabric.node_name(hosts[0]),
                self.fabric.node_name(hosts[last]),
            ))),
        }
    }
}

impl RawValue {
    fn quoted(&self) -> String {
        match self {
            Self::Position(text) => shorten(text),
            Self::Name(text) => format!("`{}`", shorten(text).escape_debug()),
        }
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text `{}`", shorten(text).escape_debug()),
        DeValue::Integer(integer) => shorten(integer.as_str()),
        DeValue::Float(float) => shorten(float.as_str()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A TOML integer that is not negative.
fn integer_of(digits: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(digits, radix).ok()
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

fn shorten(text: &str) -> String {
    if text.len() <= LONGEST_NAME {
        return text.to_owned();
    }
    let end = (0..=LONGEST_NAME)
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}
