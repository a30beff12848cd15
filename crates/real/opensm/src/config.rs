//! The plugin's own configuration file (TOML).

use std::path::PathBuf;

use raddle_disk::DiskFiles;
use raddle_text::{Files, InputError, Problem, read, schema::check_version, tree};
use schemars::JsonSchema;
use serde::Deserialize;

/// Environment variable that names the file; it wins over `event_plugin_options raddle=PATH`.
pub(crate) const VARIABLE: &str = "RADDLE_OPENSM_CONFIG";

/// Who makes unicast tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unicast {
    /// We do, on fat trees.
    #[default]
    Raddle,
    /// The engines that `routing_engine` names, or OpenSM's minimum hops.
    Opensm,
}

/// When groups may change their MLIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Recolour {
    /// Never: a group that grows into another of its MLID merges with it.
    Never,
    /// A group that grows into another of its MLID takes another one; its hosts are asked to register again.
    #[default]
    Growth,
    /// Also all groups at every heavy sweep after groups have changed, for the fewest MLIDs.
    Sweep,
}

/// The file's content.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Version of the format: 1.
    pub(crate) schema: u32,
    pub(crate) unicast: Unicast,
    /// Whether MLIDs are shared by groups.
    pub(crate) share: bool,
    pub(crate) recolour: Recolour,
    /// Whether groups whose MGIDs mark them as halves of fault-tolerant pairs get trees without a common link.
    pub(crate) pairs: bool,
    /// Most MLIDs to use; 0: as many as the smallest table has. InfiniBand has no more.
    #[schemars(range(max = 16383))]
    pub(crate) mlids: u32,
    /// Where to write statistics after every change; none if empty.
    pub(crate) statistics: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema: 1,
            unicast: Unicast::default(),
            share: true,
            recolour: Recolour::default(),
            pairs: false,
            mlids: 0,
            statistics: PathBuf::new(),
        }
    }
}

impl Config {
    /// Reads the file that the environment or OpenSM's `event_plugin_options` names; the defaults if none does.
    pub(crate) fn load(variable: Option<&str>, options: &str) -> Result<Self, InputError> {
        let named = options
            .split([' ', '\t', ','])
            .find_map(|word| word.strip_prefix("raddle="));
        let Some(path) = variable.or(named).filter(|path| !path.is_empty()) else {
            return Ok(Self::default());
        };
        let unreadable = |reason| {
            let file = path.to_owned();
            InputError::plain(Problem::Unreadable { file, reason }).with_hint(format!(
                "correct `event_plugin_options raddle=PATH` or {VARIABLE}"
            ))
        };
        let text = DiskFiles.read_text(path).map_err(unreadable)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &str) -> Result<Self, InputError> {
        let root = tree::parse(text, path)?;
        let config: Self = read(&root)?;
        // OpenSM's administrators may leave it out.
        if root.find(&["schema"]).is_some() {
            check_version(&root)?;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_what_differs_from_the_defaults() {
        let text = "schema = 1\nrecolour = \"never\"\nmlids = 32\npairs = true\n";
        let config = Config::parse(text, "f").unwrap();
        assert_eq!(config.recolour, Recolour::Never);
        assert_eq!((config.mlids, config.share, config.pairs), (32, true, true));
        assert!(!Config::default().pairs);
    }

    #[test]
    fn unknown_keys_and_schemas_are_refused() {
        let error = Config::parse("mlid = 3\n", "f").unwrap_err().to_string();
        assert!(
            error.starts_with("f:1:1: ") && error.contains("did you mean `mlids`?"),
            "{error}"
        );
        assert!(Config::parse("schema = 2\n", "f").is_err());
    }

    #[test]
    fn more_mlids_than_infiniband_has_are_refused() {
        assert!(Config::parse("mlids = 16383\n", "f").is_ok());
        for mlids in ["99999999", "16384", "-1"] {
            let text = format!("schema = 1\nmlids = {mlids}\n");
            let error = Config::parse(&text, "f").unwrap_err().to_string();
            assert!(error.starts_with("f:2:9: `mlids`: "), "{error}");
            assert!(error.contains("from 0 to 16383"), "{error}");
        }
    }

    #[test]
    fn without_a_file_the_defaults_hold_and_a_missing_file_is_an_error() {
        assert_eq!(Config::load(None, "").unwrap(), Config::default());
        assert!(Config::load(None, "other raddle=/nonexistent/raddle.toml").is_err());
        assert!(Config::load(Some("/nonexistent"), "").is_err());
    }
}
