//! `RADDLE_PROFILE`: an `advice.toml`, as `raddle advise` writes it, in place of variables of the environment.
//!
//! What concerns this library becomes the value of a variable that is not set: an explicit one wins. Congestion control and
//! placement are the fabric's and mpirun's. Docs: docs/reference/advise.md.

use std::{collections::BTreeMap, fs::File, io::Read};

use serde::Deserialize;

/// A longer file is no advice.
const MOST_BYTES: u64 = 1 << 16;

/// Values of variables, by name.
pub(crate) type Variables = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    schema: u32,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// What was advised on, and what was predicted: for people.
    #[serde(default, rename = "program")]
    _program: toml::Table,
    #[serde(default, rename = "predicted")]
    _predicted: toml::Table,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    collectives: Option<Collectives>,
    protocol: Option<Protocol>,
    mode: Option<Mode>,
    scheduling: Option<Scheduling>,
    rails: Option<u32>,
    /// Of the fabric.
    #[serde(rename = "scheme")]
    _scheme: Option<String>,
    /// Of mpirun.
    #[serde(rename = "placement")]
    _placement: Option<String>,
}

/// Words of a setting, each with the value of the variable that it means.
macro_rules! words {
    ($kind:ident { $($word:ident = $name:literal => $value:literal,)* }) => {
        #[derive(Clone, Copy, Deserialize)]
        enum $kind {
            $(#[serde(rename = $name)] $word,)*
        }

        impl $kind {
            const fn value(self) -> &'static str {
                match self {
                    $(Self::$word => $value,)*
                }
            }
        }
    };
}

words! { Collectives { Host = "host" => "never", Multicast = "multicast" => "never", Offload = "offload" => "auto", } }
words! { Protocol { Native = "native" => "native", Published = "published" => "published", } }
words! { Mode { Node = "node" => "node", Socket = "socket" => "socket", } }
// The library joins as the program sends: it has no way to order messages, or to do what a whole superstep's schedule does.
words! { Scheduling {
    None = "none" => "off",
    Reorder = "reorder" => "on",
    Aggregate = "aggregate" => "on",
    Both = "both" => "on",
    Published = "published" => "published",
    Library = "library" => "on",
} }

/// The variables that the text of an advice means.
///
/// # Errors
/// What is wrong with it, in one line.
pub(crate) fn read(text: &str) -> Result<Variables, String> {
    let profile: Profile = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text
            .bytes()
            .take(before)
            .filter(|&byte| byte == b'\n')
            .count()
            + 1;
        format!("line {line}: {}", error.message().replace('\n', " "))
    })?;
    if profile.schema != 1 {
        return Err(format!("schema {} is not known: 1 is", profile.schema));
    }
    let Settings {
        collectives,
        protocol,
        mode,
        scheduling,
        rails,
        ..
    } = profile.settings;
    let rails = match rails {
        None => None,
        Some(0) => return Err("`rails` is 0: a host has one at least".to_owned()),
        Some(1) => Some("off"),
        Some(_) => Some("on"),
    };
    let values = [
        ("RADDLE_OFFLOAD", collectives.map(Collectives::value)),
        ("RADDLE_PROTOCOL", protocol.map(Protocol::value)),
        ("RADDLE_MODE", mode.map(Mode::value)),
        ("RADDLE_SCHEDULE", scheduling.map(Scheduling::value)),
        ("RADDLE_RAILS", rails),
    ];
    let mut variables = profile.environment;
    if let Some(name) = variables.keys().find(|name| !name.starts_with("RADDLE_")) {
        return Err(format!("[environment]: `{name}` is no variable of Raddle"));
    }
    for (name, value) in values {
        if let Some(value) = value {
            variables
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
    Ok(variables)
}

/// The same of a file.
///
/// # Errors
/// As [`read`], and a file that cannot be read.
pub(crate) fn load(path: &str) -> Result<Variables, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read_bytes = file
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if read_bytes as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    read(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: &str = r#"schema = 1
[program]
name = "solver"
ranks = 64
[settings]
scheme = "hpcc"
collectives = "offload"
scheduling = "both"
rails = 2
placement = "spread"
[predicted]
time_s = 1.2
plain_s = 1.9
"#;

    fn words(variables: &Variables) -> Vec<String> {
        variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn settings_are_values_of_variables() {
        let found = read(ADVICE).unwrap();
        let expected = [
            "RADDLE_OFFLOAD=auto",
            "RADDLE_RAILS=on",
            "RADDLE_SCHEDULE=on",
        ];
        assert_eq!(words(&found), expected);
        assert_eq!(read("schema = 1").unwrap(), Variables::new());
        let plain =
            "schema = 1\n[settings]\ncollectives = \"host\"\nscheduling = \"none\"\nrails = 1";
        let expected = [
            "RADDLE_OFFLOAD=never",
            "RADDLE_RAILS=off",
            "RADDLE_SCHEDULE=off",
        ];
        assert_eq!(words(&read(plain).unwrap()), expected);
        let other = "schema = 1\n[settings]\nmode = \"socket\"\nprotocol = \"published\"\n[environment]\nRADDLE_LOG = \"info\"";
        let expected = [
            "RADDLE_LOG=info",
            "RADDLE_MODE=socket",
            "RADDLE_PROTOCOL=published",
        ];
        assert_eq!(words(&read(other).unwrap()), expected);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("", "schema"),
            ("schema = 2", "schema 2 is not known"),
            ("schema = 1\n[settings]\nrails = 0", "`rails` is 0"),
            ("schema = 1\n[settings]\nrails = \"two\"", "line 3"),
            ("schema = 1\n[settings]\ncollectivs = \"host\"", "line 3"),
            (
                "schema = 1\n[settings]\ncollectives = \"hosts\"",
                "unknown variant",
            ),
            (
                "schema = 1\n[environment]\nPATH = \"/\"",
                "`PATH` is no variable of Raddle",
            ),
            ("schema = 1\n[environment]\nRADDLE_LOG = 1", "line 3"),
            ("schema = ", "line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn a_file_that_is_none_is_told() {
        assert!(
            load("/nowhere/advice.toml")
                .unwrap_err()
                .contains("No such file")
        );
        assert!(load("/").is_err());
    }
}
