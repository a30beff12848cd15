//! environment.toml as a table of Rust.

use std::fmt::Write;

use serde::Deserialize;

/// environment.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    #[expect(dead_code, reason = "for `raddle config`")]
    used_by: String,
    values: String,
    default: String,
    #[expect(dead_code, reason = "for `raddle config`")]
    meaning: String,
}

/// All settings: name, values, default. The MPI library reads some of them, and must not call the others unknown.
pub(crate) fn rust(table: &Table) -> String {
    let mut text = String::from("&[\n");
    for setting in &table.setting {
        let _ = writeln!(
            text,
            "    ({:?}, {:?}, {:?}),",
            setting.name, setting.values, setting.default
        );
    }
    text.push(']');
    text
}
