//! Groups in CSV: one line for each member.

use std::{collections::BTreeMap, sync::Arc};

use csv::{Position, ReaderBuilder, StringRecord, Trim};
use raddle_text::{InputError, Location, Problem, Source, clip, words::shorten};
use raddle_units::many;

use super::{MAX_MGID, Member, WrittenGroup, bad_mgid, empty_group, refused, whole_number};

const HEADER: &str = "the first line must be `group,member` or `group,mgid,member`";

/// Where each column stands.
struct Columns {
    group: usize,
    mgid: Option<usize>,
    member: usize,
    count: usize,
}

pub(super) fn read_groups(source: &Arc<Source>) -> Result<Vec<WrittenGroup>, InputError> {
    let mut records = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(source.text.as_bytes());
    let mut record = StringRecord::new();
    let mut columns = None;
    let mut groups = Groups::default();
    loop {
        let more = records.read_record(&mut record).map_err(|error| {
            let message = format!("not CSV: {}", clip(&error.to_string()));
            InputError::at(&line(source, error.position()), Problem::Refused(message))
        })?;
        if !more {
            break;
        }
        let at = line(source, record.position());
        match &columns {
            None => columns = Some(Columns::of(&at, &record)?),
            Some(columns) => groups.add(at, columns, &record)?,
        }
    }
    if groups.groups.is_empty() {
        let problem = Problem::Refused("the file has no groups".to_owned());
        let cure = "write the header `group,member`, then one member per line";
        return Err(InputError::of_file(&source.name, problem).with_hint(cure));
    }
    Ok(groups.groups)
}

/// The line that begins at a position.
fn line(source: &Arc<Source>, position: Option<&Position>) -> Location {
    let text = &source.text;
    let at = position.map_or(0, |place| place.byte() as usize);
    // Behind the end of the line before.
    let blank = text.as_bytes().iter().skip(at);
    let start = at + blank.take_while(|byte| b"\r\n".contains(byte)).count();
    let end = text.get(start..).and_then(|rest| rest.find(['\r', '\n']));
    Location {
        source: Arc::clone(source),
        span: start..end.map_or(text.len(), |length| start + length),
    }
}

impl Columns {
    fn of(at: &Location, record: &StringRecord) -> Result<Self, InputError> {
        let mut columns = [None; 3];
        for (column, name) in record.iter().enumerate() {
            let known = ["group", "mgid", "member"]
                .iter()
                .position(|known| *known == name);
            match known {
                Some(known) if columns[known].is_none() => columns[known] = Some(column),
                _ => {
                    let message = format!("unknown or doubled column `{}`", shorten(name));
                    return Err(refused(at, message, HEADER));
                }
            }
        }
        let needed = |name: &str, column: Option<usize>| {
            column.ok_or_else(|| refused(at, format!("the column `{name}` is missing"), HEADER))
        };
        Ok(Self {
            group: needed("group", columns[0])?,
            mgid: columns[1],
            member: needed("member", columns[2])?,
            count: record.len(),
        })
    }
}

/// Groups in the order of their first lines.
#[derive(Default)]
struct Groups {
    groups: Vec<WrittenGroup>,
    by_name: BTreeMap<String, usize>,
}

impl Groups {
    fn add(
        &mut self,
        at: Location,
        columns: &Columns,
        record: &StringRecord,
    ) -> Result<(), InputError> {
        if record.len() != columns.count {
            let found = many(record.len(), "field");
            let message = format!("{found} instead of {}", columns.count);
            return Err(refused(&at, message, "complete or remove the line"));
        }
        let field = |column| record.get(column).unwrap_or("");
        let (name, member) = (field(columns.group), field(columns.member));
        let mgid = match columns.mgid.map_or("", field) {
            "" => None,
            text => match whole_number(text).filter(|&number| number <= MAX_MGID) {
                Some(number) => Some(number),
                None => return Err(bad_mgid(&at, name, &format!("`{}`", shorten(text)))),
            },
        };
        let group = self.group(&at, name);
        match (&group.mgid, mgid) {
            (Some((_, other)), Some(mgid)) if *other != mgid => {
                let name = shorten(name);
                let message = format!("`mgid` of group `{name}` is {mgid} here and {other} before");
                return Err(refused(&at, message, "a group has one MGID"));
            }
            (None, Some(mgid)) => group.mgid = Some((at.clone(), mgid)),
            _ => {}
        }
        if member.is_empty() {
            return Err(empty_group(&at, name));
        }
        group.members.push((at, Member::Name(member.to_owned())));
        Ok(())
    }

    fn group(&mut self, at: &Location, name: &str) -> &mut WrittenGroup {
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None => {
                self.by_name.insert(name.to_owned(), self.groups.len());
                self.groups.push(WrittenGroup {
                    at: at.clone(),
                    name: name.to_owned(),
                    mgid: None,
                    members: Vec::new(),
                });
                self.groups.len() - 1
            }
        };
        &mut self.groups[index]
    }
}
