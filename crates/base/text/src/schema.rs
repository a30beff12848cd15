//! JSON Schemas of the files that users write.

use schemars::{JsonSchema, Schema};

use crate::{
    error::{InputError, Problem},
    limits::describe,
    tree::{Node, Value},
};

/// The JSON Schema of a file, indented, with a line break at its end.
pub fn schema_text<File: JsonSchema>() -> String {
    let mut value = schemars::schema_for!(File).to_value();
    describe(&mut value);
    // A schema writes its keys in an order that people can read.
    let schema = Schema::try_from(value).unwrap_or_default();
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Says in the schema of a list which names its items may have.
pub fn list_names(schema: &mut Schema, names: &[&str]) {
    if let Some(items) = schema
        .get_mut("items")
        .and_then(|items| items.as_object_mut())
    {
        items.insert("enum".to_owned(), names.into());
    }
}

/// Holds `schema` of a file to the only version of its format that there is: 1.
///
/// # Errors
/// Another version, or none.
pub fn check_version(root: &Node) -> Result<(), InputError> {
    let at = root.locate(&["schema"]);
    let problem = match root.find(&["schema"]).map(|node| &node.value) {
        Some(Value::Integer(1)) => return Ok(()),
        Some(Value::Integer(version)) => Problem::Value {
            key: "`schema`: ".to_owned(),
            message: format!("version {version} is unknown"),
        },
        Some(_) => Problem::Value {
            key: "`schema`: ".to_owned(),
            message: "it must be 1, the version of the format".to_owned(),
        },
        None => Problem::Missing {
            key: "schema".to_owned(),
            within: String::new(),
        },
    };
    Err(InputError::at(at, problem).with_hint("write schema = 1"))
}
