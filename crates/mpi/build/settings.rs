//! settings.toml as a table of Rust.

use std::fmt::Write;

use serde::Deserialize;

/// settings.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    used_by: String,
    values: String,
    default: String,
    #[expect(dead_code, reason = "for `raddle config`")]
    meaning: String,
}

/// The settings that the MPI library reads: name, values, default.
pub(crate) fn rust(table: &Table) -> String {
    let mut text = String::from("&[\n");
    for setting in table
        .setting
        .iter()
        .filter(|setting| setting.used_by == "mpi")
    {
        let _ = writeln!(
            text,
            "    ({:?}, {:?}, {:?}),",
            setting.name, setting.values, setting.default
        );
    }
    text.push(']');
    text
}
