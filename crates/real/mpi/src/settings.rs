//! The variables of the environment, read once. Where a value cannot be followed its default holds. That is said on standard
//! error when MPI runs: once for all ranks that have it to say, and by nobody where nothing of Raddle was asked for.

use std::{env, fmt, path::PathBuf, sync::OnceLock, time::Duration};

use crate::profile;
use raddle_schedule::Scope;
use raddle_wire::{compat, native::JobKey, rails::MAX_RAILS};

/// The variable that names an advice.
const PROFILE: &str = "RADDLE_PROFILE";

/// Name, values and default of each setting, from `crates/base/text/environment.toml`.
const TABLE: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// When to offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offload {
    Auto,
    Always,
    Never,
}

/// In which order values are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Host,
    Rank,
    Arrival,
}

/// Who speaks to the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Auto,
    Node,
    Socket,
}

/// How leaders and switches speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Ours.
    Native,
    /// That of the paper.
    Published,
}

/// Whether messages between ranks are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    Off,
    On,
    /// Also where nothing can be gained.
    Force,
    /// By the paper's rule, also where nothing can be gained.
    Published,
}

/// Which interfaces large messages use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RailNames {
    Off,
    All,
    Named(Vec<String>),
}

impl RailNames {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "on" => Some(Self::All),
            names => {
                let names: Vec<String> = names.split(',').map(|name| name.trim().into()).collect();
                let good = (2..=MAX_RAILS).contains(&names.len())
                    && names.iter().all(|name| !name.is_empty());
                good.then_some(Self::Named(names))
            }
        }
    }
}

impl fmt::Display for RailNames {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => to.write_str("off"),
            Self::All => to.write_str("on"),
            Self::Named(names) => to.write_str(&names.join(",")),
        }
    }
}

/// All of them.
pub(crate) struct Settings {
    pub(crate) disabled: bool,
    pub(crate) job: Option<(u32, JobKey)>,
    pub(crate) offload: Offload,
    pub(crate) protocol: Protocol,
    pub(crate) order: Order,
    pub(crate) mode: Mode,
    pub(crate) sockets: Option<u32>,
    pub(crate) node: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) max_bytes: usize,
    pub(crate) setup: Duration,
    pub(crate) retry: Duration,
    pub(crate) give_up: Duration,
    /// Of the published protocol: before the others are asked for a round without result.
    pub(crate) overdue: Duration,
    /// Before offload is tried again; zero: never.
    pub(crate) come_back: Duration,
    pub(crate) log: bool,
    pub(crate) report: Option<PathBuf>,
    pub(crate) record: Option<PathBuf>,
    pub(crate) schedule: Schedule,
    /// Which messages are joined; never [`Scope::NodeToNode`].
    pub(crate) schedule_scope: Scope,
    pub(crate) schedule_leaders: u32,
    pub(crate) rails: RailNames,
    pub(crate) rails_give_up: Duration,
}

/// What the environment says.
struct Environment {
    settings: Settings,
    /// The values that cannot be followed, a line each.
    faults: Vec<String>,
}

fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let names: Vec<String> = names.filter(|name| name.starts_with("RADDLE_")).collect();
        Environment::read(&|name| env::var(name).ok(), &names)
    })
}

/// The settings of this process.
pub(crate) fn get() -> &'static Settings {
    &environment().settings
}

/// A digest of the faults in the settings of this process, to compare with those of other ranks; 0: there are none.
pub(crate) fn faults() -> u64 {
    let faults = &environment().faults;
    match faults.as_slice() {
        [] => 0,
        faults => fold(faults.join("\n").bytes()).max(1),
    }
}

/// The faults in the settings of this process, a line each.
pub(crate) fn fault_lines() -> &'static [String] {
    &environment().faults
}

impl Environment {
    /// `names`: of all variables that may be ours.
    fn read(variable: &dyn Fn(&str) -> Option<String>, names: &[String]) -> Self {
        let mut faults = Vec::new();
        let asked = variable(PROFILE).filter(|path| !path.is_empty());
        let profile = asked.and_then(|path| match profile::load(&path) {
            Ok(values) => Some(values),
            Err(problem) => {
                faults.push(format!("{PROFILE}={path} is ignored: {problem}"));
                None
            }
        });
        let profile = profile.unwrap_or_default();
        // What is set explicitly wins.
        let advised = |name: &str| {
            let set = variable(name).filter(|value| !value.is_empty());
            set.or_else(|| profile.get(name).cloned())
        };
        let settings = Settings::read(&advised, &mut faults);
        for fault in &mut faults {
            let named = |name: &str| fault.starts_with(&format!("{name}="));
            if profile
                .keys()
                .any(|name| variable(name).is_none() && named(name))
            {
                fault.push_str(" (in the profile)");
            }
        }
        for name in names.iter().chain(profile.keys()) {
            if TABLE.iter().all(|(known, _, _)| known != name) {
                faults.push(format!("{name} is not known (`raddle config` lists all)"));
            }
        }
        if settings.disabled || !is_asked_for(variable) {
            faults.clear();
        }
        faults.sort_unstable();
        Self { settings, faults }
    }
}

/// Whether the user wants anything of Raddle. With the library loaded and nothing else said, a program must not notice it.
fn is_asked_for(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let wants = [
        "RADDLE_JOB",
        "RADDLE_JOB_KEY",
        "RADDLE_RECORD",
        "RADDLE_REPORT",
        "RADDLE_LOG",
        "RADDLE_SCHEDULE",
        "RADDLE_RAILS",
        PROFILE,
    ];
    let says = |name: &str| variable(name).is_some_and(|value| !matches!(value.trim(), "" | "off"));
    wants.into_iter().any(says)
}

impl Settings {
    /// Those of variables that are set so; for as long as the process runs.
    #[cfg(test)]
    pub(crate) fn of(set: &[(&str, &str)]) -> &'static Self {
        let variable = |name: &str| {
            let found = set.iter().rev().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut faults = Vec::new();
        let settings = Self::read(&variable, &mut faults);
        assert!(faults.is_empty(), "{faults:?}");
        Box::leak(Box::new(settings))
    }

    fn read(variable: &dyn Fn(&str) -> Option<String>, faults: &mut Vec<String>) -> Self {
        let mut reader = Reader { variable, faults };
        let number = reader.number("RADDLE_JOB", 1, u64::from(u32::MAX));
        let key = reader.one("RADDLE_JOB_KEY", parse_key);
        Self {
            disabled: reader.choice("RADDLE_DISABLE", &[("0", false), ("1", true)]),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the largest value allowed fits"
            )]
            job: number.map(|number| number as u32).zip(key),
            offload: reader.choice(
                "RADDLE_OFFLOAD",
                &[
                    ("auto", Offload::Auto),
                    ("always", Offload::Always),
                    ("never", Offload::Never),
                ],
            ),
            protocol: reader.choice(
                "RADDLE_PROTOCOL",
                &[
                    ("native", Protocol::Native),
                    ("published", Protocol::Published),
                ],
            ),
            order: reader.choice(
                "RADDLE_ORDER",
                &[
                    ("host", Order::Host),
                    ("rank", Order::Rank),
                    ("arrival", Order::Arrival),
                ],
            ),
            mode: reader.choice(
                "RADDLE_MODE",
                &[
                    ("auto", Mode::Auto),
                    ("node", Mode::Node),
                    ("socket", Mode::Socket),
                ],
            ),
            #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
            sockets: reader
                .number("RADDLE_SOCKETS", 1, 64)
                .map(|count| count as u32),
            node: reader.text("RADDLE_NODE"),
            interface: reader.text("RADDLE_INTERFACE"),
            max_bytes: reader
                .number("RADDLE_MAX_BYTES", 8, 1 << 20)
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(8192),
            setup: reader.time("RADDLE_SETUP_MS", 1, 60_000, Duration::from_millis),
            retry: reader.time("RADDLE_RETRY_US", 10, 10_000_000, Duration::from_micros),
            give_up: reader.time("RADDLE_GIVE_UP_MS", 10, 3_600_000, Duration::from_millis),
            overdue: reader.time("RADDLE_OVERDUE_MS", 1, 60_000, Duration::from_millis),
            come_back: reader.time("RADDLE_COME_BACK_MS", 0, 3_600_000, Duration::from_millis),
            log: reader.choice("RADDLE_LOG", &[("off", false), ("info", true)]),
            report: reader.text("RADDLE_REPORT").map(PathBuf::from),
            record: reader.text("RADDLE_RECORD").map(PathBuf::from),
            schedule: reader.choice(
                "RADDLE_SCHEDULE",
                &[
                    ("off", Schedule::Off),
                    ("on", Schedule::On),
                    ("force", Schedule::Force),
                    ("published", Schedule::Published),
                ],
            ),
            schedule_scope: reader.choice(
                "RADDLE_SCHEDULE_SCOPE",
                &[
                    (Scope::RankToRank.name(), Scope::RankToRank),
                    (Scope::RankToNode.name(), Scope::RankToNode),
                ],
            ),
            #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
            schedule_leaders: reader.number("RADDLE_SCHEDULE_LEADERS", 1, 64).unwrap_or(1) as u32,
            rails: reader
                .one("RADDLE_RAILS", RailNames::parse)
                .unwrap_or(RailNames::Off),
            rails_give_up: reader.time(
                "RADDLE_RAILS_GIVE_UP_MS",
                100,
                3_600_000,
                Duration::from_millis,
            ),
        }
    }

    /// Whether point-to-point messages are wanted.
    pub(crate) fn takes_messages(&self) -> bool {
        self.schedule != Schedule::Off || self.rails != RailNames::Off
    }

    /// Most bytes of a call that can be offloaded.
    pub(crate) fn most_bytes(&self) -> usize {
        match self.protocol {
            Protocol::Native => self.max_bytes,
            Protocol::Published => self.max_bytes.min(compat::MAX_DATA),
        }
    }

    /// What all ranks of a communicator must have in common, as one number.
    pub(crate) fn digest(&self) -> u64 {
        let job = self.job.as_ref().map_or(0, |(job, _)| *job);
        let parts = [
            u64::from(job),
            self.offload as u64,
            self.protocol as u64,
            self.order as u64,
            self.mode as u64,
            u64::from(self.sockets.unwrap_or(0)),
            self.max_bytes as u64,
            // Who never comes back does not meet the others.
            u64::from(self.come_back > Duration::ZERO),
        ];
        fold(parts.iter().flat_map(|part| part.to_be_bytes()))
    }
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits: to compare, not to protect.
pub(crate) fn fold(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    faults: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// The value that was set and the row of the table. An empty value counts as not set.
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn one<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (_, values, default) = row(name);
        let text = self.text(name);
        if let Some(text) = &text {
            let value = parse(text.trim());
            if value.is_some() {
                return value;
            }
            // A key is a secret: what was wrong with it is not repeated.
            let shown = if name == "RADDLE_JOB_KEY" {
                "…"
            } else {
                text.as_str()
            };
            self.faults
                .push(format!("{name}={shown} is ignored: it must be {values}"));
        }
        parse(default)
    }

    fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> T {
        self.one(name, |text| {
            choices
                .iter()
                .find(|(word, _)| *word == text)
                .map(|(_, value)| *value)
        })
        .unwrap_or(choices[0].1)
    }

    fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        self.one(name, |text| {
            text.parse()
                .ok()
                .filter(|number| (least..=most).contains(number))
        })
    }

    fn time(
        &mut self,
        name: &'static str,
        least: u64,
        most: u64,
        unit: fn(u64) -> Duration,
    ) -> Duration {
        unit(self.number(name, least, most).unwrap_or(least))
    }
}

fn row(name: &str) -> (&'static str, &'static str, &'static str) {
    TABLE
        .iter()
        .find(|(known, _, _)| *known == name)
        .copied()
        .unwrap_or(("", "", ""))
}

fn parse_key(text: &str) -> Option<JobKey> {
    let digits = text.as_bytes();
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u128::from_str_radix(text, 16)
        .ok()
        .map(|key| JobKey::new(key.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let mut faults = Vec::new();
        let variable = |name: &str| {
            set.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let settings = Settings::read(&variable, &mut faults);
        (settings, faults)
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let (settings, faults) = read(&[]);
        assert!(faults.is_empty());
        assert!(!settings.disabled && !settings.log && settings.job.is_none());
        assert_eq!(settings.offload, Offload::Auto);
        assert_eq!(settings.protocol, Protocol::Native);
        assert_eq!(settings.order, Order::Host);
        assert_eq!(settings.mode, Mode::Auto);
        assert_eq!(settings.schedule, Schedule::Off);
        assert_eq!(settings.schedule_scope, Scope::RankToRank);
        assert_eq!(settings.rails, RailNames::Off);
        assert!(!settings.takes_messages());
        for (name, value) in [
            ("RADDLE_MAX_BYTES", settings.max_bytes as u64),
            (
                "RADDLE_SCHEDULE_LEADERS",
                u64::from(settings.schedule_leaders),
            ),
            ("RADDLE_SETUP_MS", settings.setup.as_millis() as u64),
            ("RADDLE_RETRY_US", settings.retry.as_micros() as u64),
            ("RADDLE_GIVE_UP_MS", settings.give_up.as_millis() as u64),
            ("RADDLE_OVERDUE_MS", settings.overdue.as_millis() as u64),
            ("RADDLE_COME_BACK_MS", settings.come_back.as_millis() as u64),
            (
                "RADDLE_RAILS_GIVE_UP_MS",
                settings.rails_give_up.as_millis() as u64,
            ),
        ] {
            assert_eq!(row(name).2, value.to_string(), "{name}");
        }
    }

    #[test]
    fn rails_are_all_or_at_least_two_named_ones() {
        let rails = |text| read(&[("RADDLE_RAILS", text)]);
        for text in ["off", "on", "e0,e1", "a,b,c,d,e,f,g,h"] {
            let (settings, faults) = rails(text);
            assert_eq!(settings.rails.to_string(), text);
            assert_eq!(settings.takes_messages(), text != "off");
            assert!(faults.is_empty());
        }
        for text in ["e0", "e0,", "a,b,c,d,e,f,g,h,i"] {
            let (settings, faults) = rails(text);
            assert_eq!(
                (settings.rails, faults.len()),
                (RailNames::Off, 1),
                "{text}"
            );
        }
    }

    #[test]
    fn a_job_needs_number_and_key() {
        let key = "000102030405060708090a0b0c0d0e0f";
        assert!(read(&[("RADDLE_JOB", "7")]).0.job.is_none());
        assert!(read(&[("RADDLE_JOB_KEY", key)]).0.job.is_none());
        let (settings, faults) = read(&[("RADDLE_JOB", "7"), ("RADDLE_JOB_KEY", key)]);
        assert!(settings.job.is_some_and(|(job, _)| job == 7) && faults.is_empty());
    }

    #[test]
    fn a_wrong_value_is_said_without_the_key_and_its_default_holds() {
        let (settings, faults) = read(&[
            ("RADDLE_ORDER", "tree"),
            ("RADDLE_JOB", "0"),
            ("RADDLE_JOB_KEY", "secret"),
            ("RADDLE_MAX_BYTES", "64 KiB"),
        ]);
        assert_eq!(settings.order, Order::Host);
        assert_eq!(settings.max_bytes, 8192);
        assert_eq!(faults.len(), 4);
        assert!(
            faults.iter().all(|fault| !fault.contains("secret")),
            "{faults:?}"
        );
    }

    fn faults(set: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let names: Vec<String> = set.iter().map(|(name, _)| (*name).to_owned()).collect();
        Environment::read(&variable, &names).faults
    }

    /// In two parts: a test holds every name that stands in the sources to the table.
    const UNKNOWN: &str = concat!("RADDLE", "_OFLOAD");

    #[test]
    fn nothing_is_said_where_nothing_is_asked_for() {
        let odd = [
            (UNKNOWN, "always"),
            ("RADDLE_ORDER", "tree"),
            ("RADDLE_MAX_BYTES", "1"),
            ("RADDLE_LOG", "off"),
            ("RADDLE_SCHEDULE", "off"),
            ("RADDLE_RAILS", ""),
        ];
        assert_eq!(faults(&odd), [""; 0]);
        for (name, value) in [
            ("RADDLE_JOB", "0"),
            ("RADDLE_JOB_KEY", "secret"),
            ("RADDLE_LOG", "debug"),
            ("RADDLE_RAILS", "e0"),
            ("RADDLE_SCHEDULE", "yes"),
            ("RADDLE_RECORD", "folder"),
        ] {
            let mut asked = odd.to_vec();
            asked.retain(|(known, _)| *known != name);
            asked.push((name, value));
            let said = faults(&asked);
            let own = usize::from(name != "RADDLE_RECORD");
            assert_eq!(said.len(), 3 + own, "{said:?}");
            assert!(
                said.iter()
                    .any(|line| line.starts_with("RADDLE_OFLOAD is not known"))
            );
            asked.push(("RADDLE_DISABLE", "1"));
            assert_eq!(faults(&asked), [""; 0]);
        }
    }

    #[test]
    fn a_profile_stands_for_variables_that_are_not_set() {
        let file = env::temp_dir().join(format!("raddle-advice-{}.toml", std::process::id()));
        let text = "schema = 1\n[settings]\nscheduling = \"both\"\nrails = 2\ncollectives = \"host\"\n[environment]\nRADDLE_ORDER = \"tree\"\n";
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap().to_owned();
        let read = |more: &[(&str, &str)]| {
            let mut set = vec![(PROFILE, path.as_str())];
            set.extend(more);
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Environment::read(&variable, &[PROFILE.to_owned()])
        };
        let advised = read(&[]);
        assert_eq!(advised.settings.schedule, Schedule::On);
        assert_eq!(advised.settings.rails, RailNames::All);
        assert_eq!(advised.settings.offload, Offload::Never);
        // A wrong value in the file is a fault as it is in the environment.
        assert_eq!(advised.faults.len(), 1, "{:?}", advised.faults);
        assert!(advised.faults[0].starts_with("RADDLE_ORDER=tree is ignored"));
        assert!(advised.faults[0].ends_with("(in the profile)"));
        let set = read(&[("RADDLE_SCHEDULE", "off"), ("RADDLE_RAILS", "")]);
        assert_eq!(set.settings.schedule, Schedule::Off);
        assert_eq!(set.settings.rails, RailNames::All);
        std::fs::remove_file(&file).unwrap();
        let missing = read(&[]);
        assert_eq!(missing.settings.schedule, Schedule::Off);
        assert_eq!(missing.faults.len(), 1);
        assert!(
            missing.faults[0].contains("No such file"),
            "{:?}",
            missing.faults
        );
    }

    #[test]
    fn variables_of_other_parts_are_known() {
        let set = [
            ("RADDLE_RECORD", "folder"),
            ("RADDLE_JOBS", "2"),
            ("RADDLE_OPENSM_CONFIG", "file"),
        ];
        assert_eq!(faults(&set), [""; 0]);
    }

    #[test]
    fn the_published_protocol_takes_short_calls_only() {
        let most = |set: &[(&str, &str)]| read(set).0.most_bytes();
        let published = ("RADDLE_PROTOCOL", "published");
        assert_eq!(most(&[]), 8192);
        assert_eq!(most(&[published]), 256);
        assert_eq!(most(&[published, ("RADDLE_MAX_BYTES", "64")]), 64);
    }

    #[test]
    fn ranks_with_other_settings_have_another_digest() {
        let digest = |set: &[(&str, &str)]| read(set).0.digest();
        assert_ne!(digest(&[]), digest(&[("RADDLE_ORDER", "rank")]));
        assert_ne!(digest(&[]), digest(&[("RADDLE_MAX_BYTES", "256")]));
        assert_ne!(digest(&[]), digest(&[("RADDLE_PROTOCOL", "published")]));
        assert_eq!(digest(&[]), digest(&[("RADDLE_LOG", "info")]));
    }
}
