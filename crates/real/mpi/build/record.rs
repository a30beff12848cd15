//! The recorder's layer: each function calls the layer below and notes what it did.

use std::fmt::Write;

use crate::table::{Function, Kind};

/// Writes `record_NAME`, or `record_NAME_c`.
pub(crate) fn wrapper(function: &Function, note: &str, large: bool, text: &mut String) {
    let suffix = if large { "_c" } else { "" };
    // Where there are functions with large counts, no messages are scheduled.
    let below = if large {
        format!("{}_c", function.lowest())
    } else {
        function.below_record()
    };
    let name = format!("{}{suffix}", function.name);
    let (before, after) = around(function);
    let failed = if note.contains("error") {
        ""
    } else {
        "if (error == MPI_SUCCESS)\n        "
    };
    let _ = write!(
        text,
        "int record_{name}({declaration})\n{{\n    uint64_t begun = raddle_recorder->clock();\n{before}    \
         int error = {below}({names});\n    {failed}note_{note};\n{after}    return error;\n}}\n\n",
        declaration = function.declaration(large),
        names = function.names(),
    );
}

/// What has to be kept from before the call, and given back after it.
fn around(function: &Function) -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    if function.blocks {
        before.push_str("    const MPI_Request *request = NULL;\n");
    }
    let has_statuses = function.has(|kind| kind == Kind::Statuses);
    for (kind, name) in &function.arguments {
        match kind {
            Kind::Request | Kind::Message => {
                let of = if *kind == Kind::Request {
                    "REQUEST"
                } else {
                    "MESSAGE"
                };
                let _ = writeln!(
                    before,
                    "    uintptr_t before = {name} == NULL ? 0 : raddle_before((uintptr_t)*{name});"
                );
                let _ = writeln!(
                    after,
                    "    if ({name} != NULL && *{name} != MPI_{of}_NULL)\n        \
                     raddle_after(before, (uintptr_t)*{name});"
                );
            }
            Kind::RequestHandle => {
                let _ = writeln!(
                    before,
                    "    uintptr_t before = raddle_before((uintptr_t){name});"
                );
                let _ = writeln!(after, "    raddle_after(before, (uintptr_t){name});");
            }
            Kind::Status => {
                let _ = writeln!(
                    before,
                    "    MPI_Status own = {{0}};\n    if ({name} == MPI_STATUS_IGNORE)\n        {name} = &own;"
                );
            }
            Kind::Requests => {
                let _ = writeln!(
                    before,
                    "    struct held held;\n    hold(&held, count, {name}, {});",
                    if has_statuses {
                        "statuses == MPI_STATUSES_IGNORE"
                    } else {
                        "0"
                    },
                );
                let _ = writeln!(after, "    let_go(&held, {name});");
            }
            Kind::Statuses => {
                let _ = writeln!(
                    before,
                    "    if ({name} == MPI_STATUSES_IGNORE && held.statuses != NULL)\n        {name} = held.statuses;"
                );
            }
            _ => {}
        }
    }
    (before, after)
}
