//! The plugin's own configuration file (TOML).

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Environment variable that names the file; it wins over `event_plugin_options raddle=PATH`.
pub(crate) const VARIABLE: &str = "RADDLE_OPENSM_CONFIG";

/// Who makes unicast tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unicast {
    /// We do, on fat trees.
    #[default]
    Raddle,
    /// The engines that `routing_engine` names, or OpenSM's minimum hops.
    Opensm,
}

/// When groups may change their MLIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
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
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Version of the format: 1.
    pub(crate) schema: u32,
    pub(crate) unicast: Unicast,
    /// Whether MLIDs are shared by groups.
    pub(crate) share: bool,
    pub(crate) recolour: Recolour,
    /// Most MLIDs to use; 0: as many as the smallest table has.
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
            mlids: 0,
            statistics: PathBuf::new(),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{path}: {reason}; correct `event_plugin_options raddle=PATH` or RADDLE_OPENSM_CONFIG")]
    Unreadable {
        path: String,
        reason: std::io::Error,
    },
    #[error("{path}: {reason}")]
    Malformed { path: String, reason: String },
}

impl Config {
    /// Reads the file that the environment or OpenSM's `event_plugin_options` names; the defaults if none does.
    pub(crate) fn load(variable: Option<&str>, options: &str) -> Result<Self, ConfigError> {
        let named = options
            .split([' ', '\t', ','])
            .find_map(|word| word.strip_prefix("raddle="));
        let Some(path) = variable.or(named).filter(|path| !path.is_empty()) else {
            return Ok(Self::default());
        };
        let text =
            std::fs::read_to_string(Path::new(path)).map_err(|reason| ConfigError::Unreadable {
                path: path.to_owned(),
                reason,
            })?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &str) -> Result<Self, ConfigError> {
        let malformed = |reason: String| ConfigError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let config: Self =
            toml::from_str(text).map_err(|error| malformed(error.to_string().trim().to_owned()))?;
        if config.schema != 1 {
            let schema = config.schema;
            return Err(malformed(format!(
                "schema = {schema}: this version reads schema = 1"
            )));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_what_differs_from_the_defaults() {
        let config = Config::parse("schema = 1\nrecolour = \"never\"\nmlids = 32\n", "f").unwrap();
        assert_eq!(config.recolour, Recolour::Never);
        assert_eq!((config.mlids, config.share), (32, true));
    }

    #[test]
    fn unknown_keys_and_schemas_are_refused() {
        let error = Config::parse("mlid = 3\n", "f").unwrap_err().to_string();
        assert!(
            error.starts_with("f: ") && error.contains("mlid"),
            "{error}"
        );
        assert!(Config::parse("schema = 2\n", "f").is_err());
    }

    #[test]
    fn without_a_file_the_defaults_hold_and_a_missing_file_is_an_error() {
        assert_eq!(Config::load(None, "").unwrap(), Config::default());
        assert!(Config::load(None, "other raddle=/nonexistent/raddle.toml").is_err());
        assert!(Config::load(Some("/nonexistent"), "").is_err());
    }
}
