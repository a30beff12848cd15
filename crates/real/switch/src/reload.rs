//! What a running switch makes of its file when that has changed: which settings it takes over, and which wait for a restart.

use raddle_offload::switch::{Quotas, SiteSecret};
use raddle_units::Span;

use crate::config::{Config, PortConfig};
use raddle_host::secret::Secret;

/// What the switch's thread can change without any group noticing.
#[derive(Debug, Clone)]
pub struct Live {
    /// The site's secret, for jobs that have no group here.
    pub secret: SiteSecret,
    /// What groups may use. Those that are there stay, whatever they use.
    pub quotas: Quotas,
    /// How long to look for frames before sleeping.
    pub spin: Span,
    /// Silence after which a station is forgotten.
    pub ageing: Span,
    /// How long to wait for groups to end after SIGTERM.
    pub drain: Span,
    /// The ports. Those that stay keep what they carried and whom they reach.
    pub ports: Vec<PortConfig>,
}

impl Live {
    /// What a file and its secret say.
    #[must_use]
    pub fn of(config: &Config, secret: &Secret) -> Self {
        Self {
            secret: secret.of_site(),
            quotas: config.quotas,
            spin: config.spin,
            ageing: config.ageing,
            drain: config.drain,
            ports: config.ports.clone(),
        }
    }
}

/// Names of settings that have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Taken over.
    pub live: Vec<&'static str>,
    /// As before until the switch is started again.
    pub at_restart: Vec<&'static str>,
}

/// Takes over what a running switch can of a new file: `running` then says what holds. Gives what has changed; the log's
/// level and the address of metrics count as taken over, which the caller does.
pub fn take_over(running: &mut Config, new: Config) -> Changes {
    // Every setting stands here, so that no new one is forgotten.
    let Config {
        name,
        address,
        mac,
        tier,
        backend,
        forward,
        attach,
        published,
        native,
        secret_file,
        spin,
        ageing,
        drain,
        metrics,
        status,
        log,
        log_level,
        quotas,
        faults,
        ports,
        places,
    } = new;
    let mut changes = Changes::default();
    // One that nobody wrote goes with the address.
    let mac_written =
        mac != Config::mac_of(address) || running.mac != Config::mac_of(running.address);
    for (key, differs) in [
        ("name", name != running.name),
        ("address", address != running.address),
        ("mac", mac != running.mac && mac_written),
        ("tier", tier != running.tier),
        ("backend", backend != running.backend),
        ("forward", forward != running.forward),
        ("attach", attach != running.attach),
        (
            "protocols",
            (published, native) != (running.published, running.native),
        ),
        ("status", status != running.status),
        ("log", log != running.log),
        ("faults", faults != running.faults),
    ] {
        if differs {
            changes.at_restart.push(key);
        }
    }
    let before = running.quotas;
    for (key, differs) in [
        ("secret_file", secret_file != running.secret_file),
        ("spin", spin != running.spin),
        ("ageing", ageing != running.ageing),
        ("drain", drain != running.drain),
        ("metrics", metrics != running.metrics),
        ("log_level", log_level != running.log_level),
        ("quotas.groups", quotas.groups != before.groups),
        ("quotas.memory", quotas.bytes != before.bytes),
        ("quotas.job_groups", quotas.job_groups != before.job_groups),
        ("quotas.job_slots", quotas.job_slots != before.job_slots),
        ("quotas.job_memory", quotas.job_bytes != before.job_bytes),
        ("quotas.lease", quotas.lease != before.lease),
        ("ports", !same_ports(&ports, &running.ports)),
    ] {
        if differs {
            changes.live.push(key);
        }
    }
    running.secret_file = secret_file;
    running.spin = spin;
    running.ageing = ageing;
    running.drain = drain;
    running.metrics = metrics;
    running.log_level = log_level;
    running.quotas = quotas;
    running.ports = ports;
    running.places = places;
    changes
}

fn same_ports(one: &[PortConfig], other: &[PortConfig]) -> bool {
    let names = |ports: &[PortConfig]| -> Vec<(String, bool)> {
        let pair = |port: &PortConfig| (port.interface.clone(), port.uplink);
        ports.iter().map(pair).collect()
    };
    names(one) == names(other)
}

#[cfg(test)]
mod tests {
    use raddle_text::MemoryFiles;

    use super::*;

    const FILE: &str = r#"
schema = 1
name = "tor1"
address = "10.0.0.253"
mac = "02:00:00:00:00:01"
tier = 1
backend = "xdp"
forward = "core"
attach = "native"
secret_file = "site.secret"
spin = "200us"
ageing = "300s"
drain = "30s"
metrics = "127.0.0.1:9464"
status = "/run/tor1.sock"
log = "text"
log_level = "info"

[quotas]
groups = 4096
memory = "1GiB"
job_groups = 256
job_slots = 16384
job_memory = "64MiB"
lease = "60s"

[faults]
loss = 0.5

[[ports]]
interface = "p1"
uplink = false
"#;

    fn config(text: &str) -> Config {
        let files = MemoryFiles::default().with("tor1.toml", text);
        Config::load("tor1.toml", &files).unwrap()
    }

    #[test]
    fn each_setting_is_named_where_it_belongs() {
        let cases: [(&str, &str, &str, bool); 25] = [
            ("\"tor1\"", "\"tor2\"", "name", false),
            ("10.0.0.253", "10.0.0.254", "address", false),
            ("02:00:00:00:00:01", "02:00:00:00:00:02", "mac", false),
            ("tier = 1", "tier = 2", "tier", false),
            ("attach = \"native\"", "attach = \"tc\"", "attach", false),
            ("/run/tor1.sock", "/run/tor2.sock", "status", false),
            ("log = \"text\"", "log = \"json\"", "log", false),
            ("loss = 0.5", "loss = 0.25", "faults", false),
            ("site.secret", "other.secret", "secret_file", true),
            ("200us", "100us", "spin", true),
            ("300s", "200s", "ageing", true),
            ("drain = \"30s\"", "drain = \"20s\"", "drain", true),
            (":9464", ":9465", "metrics", true),
            ("metrics = \"127.0.0.1:9464\"", "", "metrics", true),
            ("\"info\"", "\"debug\"", "log_level", true),
            ("groups = 4096", "groups = 8", "quotas.groups", true),
            ("1GiB", "2GiB", "quotas.memory", true),
            (
                "job_groups = 256",
                "job_groups = 1",
                "quotas.job_groups",
                true,
            ),
            ("16384", "16", "quotas.job_slots", true),
            ("64MiB", "32MiB", "quotas.job_memory", true),
            ("lease = \"60s\"", "lease = \"5s\"", "quotas.lease", true),
            ("\"p1\"", "\"p2\"", "ports", true),
            ("uplink = false", "uplink = true", "ports", true),
            (
                "uplink = false",
                "uplink = false\n[[ports]]\ninterface = \"p2\"",
                "ports",
                true,
            ),
            ("[faults]\nloss = 0.5", "", "faults", false),
        ];
        for (old, new, key, is_live) in cases {
            let text = FILE.replace(old, new);
            assert_ne!(text, FILE, "{old}");
            let mut running = config(FILE);
            let changes = take_over(&mut running, config(&text));
            let (live, at_restart) = if is_live {
                (vec![key], vec![])
            } else {
                (vec![], vec![key])
            };
            assert_eq!(changes, Changes { live, at_restart }, "{new}");
            // What was taken over is no change the next time, what was not is one again.
            let again = take_over(&mut running, config(&text));
            assert!(again.live.is_empty(), "{new}");
            assert_eq!(again.at_restart.is_empty(), is_live, "{new}");
        }
    }

    #[test]
    fn a_switch_of_the_sockets_that_is_to_have_a_program_waits_for_a_restart() {
        let sockets = FILE
            .replace("backend = \"xdp\"\n", "")
            .replace("attach = \"native\"\n", "");
        let kernel = FILE
            .replace("\"core\"", "\"kernel\"")
            .replace("attach = \"native\"\n", "")
            .replace("[faults]\nloss = 0.5\n", "");
        let changes = take_over(&mut config(&sockets), config(&kernel));
        assert_eq!(changes.at_restart, ["backend", "forward", "faults"]);
    }

    #[test]
    fn a_hardware_address_that_nobody_wrote_is_not_named() {
        let old = FILE.replace("mac = \"02:00:00:00:00:01\"\n", "");
        let new = old.replace("10.0.0.253", "10.0.0.254");
        let changes = take_over(&mut config(&old), config(&new));
        assert_eq!(changes.at_restart, ["address"]);
        let changes = take_over(&mut config(&old), config(FILE));
        assert_eq!(changes.at_restart, ["mac"]);
    }

    #[test]
    fn the_same_file_changes_nothing() {
        let changes = take_over(&mut config(FILE), config(FILE));
        assert_eq!(changes, Changes::default());
    }
}
