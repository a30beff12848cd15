//! The map that a `[fabric]` table describes or names.

use raddle_text::{
    Files, InputError, Node, Problem,
    tree::{self, Value},
};

use crate::{
    error::FabricError,
    hpcc::parse_hpcc_ns3,
    map::Fabric,
    spec::{FabricFormat, FabricSource},
    toml_file::parse_toml,
};

/// The map that a `[fabric]` table describes or names; `root` gives the places.
///
/// # Errors
/// A table or file that cannot be read, has unknown keys or values out of range, or describes no connected map; with its
/// place.
pub fn build_fabric(
    source: &FabricSource,
    root: &Node,
    files: &dyn Files,
) -> Result<Fabric, InputError> {
    match source {
        FabricSource::Spec(spec) => spec.build().map_err(|error| {
            let at = match &error {
                FabricError::BadParameter { key, .. } => root.locate(&["fabric", key]),
                _ => root.locate(&["fabric"]),
            };
            InputError::at(at, Problem::refused(&error))
        }),
        FabricSource::File(source) => {
            let at = root.locate(&["fabric", "file"]);
            let text = tree::read_text(files, &source.file, at)?;
            match source.format {
                FabricFormat::Toml => parse_toml(&text, &source.file),
                FabricFormat::HpccNs3 => parse_hpcc_ns3(&text, &source.file),
            }
            .map_err(|error| InputError::in_named_file(at, Problem::refused(&error)))
        }
    }
}

/// The file that `[table] key` names becomes relative to where the program runs, wherever the text that names it lies.
pub fn rebase_file(root: &mut Node, path: &[&str], files: &dyn Files) {
    if let Some(node) = root.find_mut(path)
        && let Value::String(file) = &mut node.value
    {
        *file = files.beside(&node.at.source.name, file);
    }
}
