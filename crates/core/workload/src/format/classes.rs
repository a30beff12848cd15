//! The class file beside a reference flow file: `src dst sport bytes start_ns class` in the same order.

use raddle_units::many;
use std::io::Cursor;

use super::Lines;
use crate::error::{PlaceUnit, Problem, shorten};
use crate::list::ClassTable;
use crate::{FlowList, TrafficError};

const FIELDS: usize = 6;
const LAYOUT: &str = "src dst sport bytes start_ns class";

/// Names that the reference's generator uses, and ours.
const REFERENCE_NAMES: [(&str, &str); 6] = [
    ("T_long", "tested-long"),
    ("T_short", "tested-short"),
    ("T_allreduce", "tested-allreduce"),
    ("B_incast", "background-incast"),
    ("B_broadcast", "background-broadcast"),
    ("B_a2a", "background-alltoall"),
];

/// Gives the flows of `list` the classes of a class file, line for line. The reference's names (`T_long`, `B_a2a`, ...)
/// become ours, others stay as they are.
///
/// # Errors
/// A line whose source, destination or size differ from the flow's, too few or too many lines.
pub fn apply_class_file(
    list: &FlowList,
    text: &[u8],
    source_name: &str,
) -> Result<FlowList, TrafficError> {
    let mut lines = Lines::new(Cursor::new(text), "a class file");
    let mut classes = ClassTable::default();
    let mut messages = list.messages().to_vec();
    let fail = |line, problem| {
        Err(TrafficError::at(
            source_name,
            PlaceUnit::Line(line),
            problem,
        ))
    };
    let flows = messages.len();
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(line) = lines.next_line(source_name)? else {
            let problem = format!("it ends after {index} of {}", many(flows, "flow"));
            return fail(lines.number, Problem::ClassFile { problem });
        };
        let fields: Vec<&str> = line.split_ascii_whitespace().take(FIELDS + 1).collect();
        let &[src, dst, _, size, _, class] = fields.as_slice() else {
            let problem = Problem::FieldCount {
                got: fields.len(),
                expected: FIELDS,
                layout: LAYOUT,
            };
            return fail(lines.number, problem);
        };
        let expected = message
            .dst
            .host()
            .map_or_else(|| message.dst.to_string(), |host| host.0.to_string());
        let same = src == message.src.0.to_string()
            && dst == expected
            && size == message.size.0.to_string();
        if !same {
            let problem = format!(
                "found `{} {} .. {}`, expected flow {} -> {expected} of {} B",
                shorten(src),
                shorten(dst),
                shorten(size),
                message.src.0,
                message.size.0
            );
            return fail(lines.number, Problem::ClassFile { problem });
        }
        let name = REFERENCE_NAMES
            .iter()
            .find(|(theirs, _)| *theirs == class)
            .map_or(class, |&(_, ours)| ours);
        let Some(index) = classes.index(name) else {
            return fail(lines.number, Problem::TooManyClasses);
        };
        message.class = index;
    }
    if lines.next_line(source_name)?.is_some() {
        let problem = format!("it goes on after the last of {}", many(flows, "flow"));
        return fail(lines.number, Problem::ClassFile { problem });
    }
    Ok(FlowList::new(messages, classes.names().to_vec()))
}
