//! The columns of a flow table: their names carry the unit, so a number cannot be misread.

use raddle_text::words::closest;

use crate::error::{Problem, shorten};

/// All names, for messages.
pub(super) const KNOWN: &str =
    "src, dst, size_bytes, start_ps (or start_ns, start_us, start_ms, start_s), class, priority";

const NAMES: [(&str, Column); 10] = [
    ("src", Column::Src),
    ("dst", Column::Dst),
    ("size_bytes", Column::Size),
    ("start_ps", Column::Start(0)),
    ("start_ns", Column::Start(3)),
    ("start_us", Column::Start(6)),
    ("start_ms", Column::Start(9)),
    ("start_s", Column::Start(12)),
    ("class", Column::Class),
    ("priority", Column::Priority),
];

/// How a file calls what every flow has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) size: &'static str,
    pub(super) start: &'static str,
    pub(super) priority: &'static str,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Src,
    Dst,
    Size,
    /// Unit as a power of ten of picoseconds.
    Start(i32),
    Class,
    Priority,
}

/// Where each column stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) size: usize,
    pub(super) start: usize,
    /// Power of ten from the start's unit to picoseconds.
    pub(super) start_shift: i32,
    pub(super) class: Option<usize>,
    pub(super) priority: Option<usize>,
}

impl Layout {
    /// The columns' names in this file.
    pub(super) fn names(&self) -> Names {
        let starts = NAMES.iter();
        let mut start = starts.filter(|(_, column)| *column == Column::Start(self.start_shift));
        Names {
            size: "size_bytes",
            start: start.next().map_or("start_ps", |(name, _)| name),
            priority: "priority",
        }
    }

    pub(super) fn from_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, Problem> {
        let (mut src, mut dst, mut size, mut start) = (None, None, None, None);
        let (mut class, mut priority) = (None, None);
        let mut start_shift = 0;
        for (index, name) in names.enumerate() {
            let slot = match column(name)? {
                Column::Src => &mut src,
                Column::Dst => &mut dst,
                Column::Size => &mut size,
                Column::Start(shift) => {
                    start_shift = shift;
                    &mut start
                }
                Column::Class => &mut class,
                Column::Priority => &mut priority,
            };
            if slot.replace(index).is_some() {
                return Err(Problem::DuplicateColumn {
                    name: shorten(name),
                });
            }
        }
        let missing = |name| Problem::MissingColumn { name };
        Ok(Self {
            src: src.ok_or_else(|| missing("src"))?,
            dst: dst.ok_or_else(|| missing("dst"))?,
            size: size.ok_or_else(|| missing("size_bytes"))?,
            start: start.ok_or_else(|| missing("start_ps"))?,
            start_shift,
            class,
            priority,
        })
    }
}

fn column(name: &str) -> Result<Column, Problem> {
    if let Some(&(_, column)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Ok(column);
    }
    let cure = match name {
        "size" | "bytes" | "length" => Some("size_bytes"),
        "start" | "time" | "start_time" => {
            Some("start_ps, start_ns, start_us, start_ms or start_s")
        }
        _ => None,
    };
    if let Some(cure) = cure {
        return Err(Problem::MissingUnit {
            name: name.to_owned(),
            cure,
        });
    }
    let near = closest(name, NAMES.iter().map(|(known, _)| *known));
    let hint = near.map_or_else(String::new, |known| format!(", did you mean `{known}`?"));
    Err(Problem::UnknownColumn {
        name: shorten(name),
        hint,
        known: KNOWN,
    })
}
