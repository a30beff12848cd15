//! `[switch]` and the ports that `[record]` names: what is refused, and what the rest resolves to.

use super::*;
use raddle_engine::{PortSeries, Sharing};

/// Four hosts, two switches (s4, s5) with two hosts' ports and one between them.
const GOOD: &str = r#"schema = 1
[fabric]
kind = "dumbbell"
hosts_per_side = 2
fabric_rate = "400Gbps"
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["none", "hpcc"]
"#;

fn resolve(more: &str) -> Result<Resolved, ExperimentError> {
    Resolved::new(&format!("{GOOD}{more}"), "e.toml", &MemoryFiles::default())
}

fn resolved(more: &str) -> Resolved {
    resolve(more).unwrap_or_else(|error| panic!("{error}"))
}

fn value<'a>(resolved: &'a Resolved, key: &str) -> Option<&'a str> {
    let row = resolved.settings.iter().find(|row| row.key == key);
    row.map(|row| row.value.as_str())
}

#[test]
fn what_cannot_be_is_refused_with_place_and_cure() {
    let cases: &[(&str, &[&str])] = &[
        (
            "[switch]\nalpha = 0.5",
            &["e.toml:12:1: unknown key `alpha` in [switch]"],
        ),
        (
            "[switch.ingress]\nalhpa = 0.5",
            &["e.toml:12:1", "did you mean `alpha`?"],
        ),
        (
            "[switch.ingress]\nsharing = \"dynamik\"",
            &["e.toml:12:11", "did you mean `dynamic`?"],
        ),
        ("[switch.ingress]\nalpha = 0", &["e.toml:12:9: `alpha`"]),
        ("[switch.ingress]\nalpha = -0.5", &["e.toml:12:9: `alpha`"]),
        ("[switch.ingress]\nalpha = nan", &["e.toml:12:9", "alpha"]),
        (
            "[switch.ingress]\nalpha = 5000",
            &["e.toml:12:9: `alpha`", "1024"],
        ),
        (
            "[switch.ingress]\nsharing = \"static\"\nalpha = 0.5",
            &["e.toml:13:9: `alpha`: it belongs to dynamic sharing"],
        ),
        (
            "[switch.ingress]\nstatic_threshold = \"64KiB\"",
            &["e.toml:12:20", "set `sharing` to \"static\""],
        ),
        (
            "[switch.ingress]\nsharing = \"static\"\nstatic_threshold = \"0B\"",
            &["e.toml:13:20", "at least 1B"],
        ),
        (
            "[switch.ingress]\nsharing = \"static\"\nstatic_threshold = \"1GiB\"",
            &["e.toml:13:20", "more than the buffer of a switch, 32MiB"],
        ),
        (
            "[switch.ingress]\nsharing = \"static\"\nstatic_threshold = \"2KiB\"\nresume_offset = \"3KiB\"",
            &[
                "e.toml:14:17: `resume_offset`",
                "more than the threshold of 2KiB",
            ],
        ),
        (
            "[switch.ingress]\nheadroom = 5000",
            &["e.toml:12:12", "has no unit"],
        ),
        (
            "[switch.ingress]\nheadroom = \"64MiB\"",
            &["e.toml:12:12: `headroom`", "more than the buffer"],
        ),
        (
            "[switch.ingress]\nheadroom = \"16MiB\"",
            &["buffer 32MiB is too small for s4"],
        ),
        (
            "[switch.ingress]\nreserve = \"64MiB\"",
            &["e.toml:12:11: `reserve`"],
        ),
        (
            "lossless = false\n[switch.ingress]\nheadroom = \"10KiB\"",
            &[
                "e.toml:13:12: `headroom`: without PFC",
                "set `lossless` to true",
            ],
        ),
        (
            "lossless = false\n[switch.ingress]\nresume_offset = \"10KiB\"",
            &["e.toml:13:17: `resume_offset`: without PFC"],
        ),
        (
            "lossless = false\n[switch.ingress]\nreserve = \"0B\"\nsharing = \"static\"\nstatic_threshold = \"100B\"",
            &["port 1 of s4 has no room for a packet"],
        ),
        (
            "[switch.egress]\nalpha = 1",
            &["e.toml:12:9: `alpha`: it belongs to dynamic sharing"],
        ),
        (
            "[switch.egress]\nsharing = \"dynamic\"",
            &[
                "e.toml:11:",
                "with PFC no queue drops",
                "set `lossless` to false",
            ],
        ),
        (
            "compat = \"hpcc-ns3\"\n[switch.ingress]\nalpha = 0.5",
            &[
                "e.toml:12:",
                "shares buffers as that simulator does",
                "remove `compat`",
            ],
        ),
        (
            "[[switch.ports]]\ningress = { alpha = 1 }",
            &["e.toml:11:", "`ports` is missing"],
        ),
        (
            "[[switch.ports]]\nports = [\"s4:4\"]\ningress = { alpha = 1 }",
            &[
                "e.toml:12:10",
                "there is no port `s4:4`: s4 has ports 1 to 3",
            ],
        ),
        (
            "[[switch.ports]]\nports = [\"s4:0\"]\ningress = { alpha = 1 }",
            &["e.toml:12:10", "s4 has ports 1 to 3"],
        ),
        (
            "[[switch.ports]]\nports = [\"s4\", \"s4->h3\"]\ningress = { alpha = 1 }",
            &["e.toml:12:16", "s4 and h3 are not joined"],
        ),
        (
            "[[switch.ports]]\nports = [\"tor\"]\ningress = { alpha = 1 }",
            &[
                "e.toml:12:10",
                "there is no port `tor`",
                "raddle fabric show",
            ],
        ),
        (
            "[[switch.ports]]\nports = [\"h1\"]\ningress = { alpha = 1 }",
            &["e.toml:12:10", "`h1` is a host"],
        ),
        (
            "[[switch.ports]]\nports = [\"s4:1\"]\ningress = { static_threshold = \"1KiB\" }",
            &["e.toml:13:32", "belongs to static sharing"],
        ),
        (
            "[record]\nports = []",
            &["e.toml:12:9", "the list is empty"],
        ),
        ("[record]\nports = \"s4\"", &["e.toml:12:9", "`ports`"]),
        (
            "[record]\nports = [\"s4:1\", \"s9:1\"]",
            &["e.toml:12:18", "there is no node `s9`"],
        ),
        (
            "[record]\nbusiest = 0",
            &["e.toml:12:11: `busiest`", "1 to 10000"],
        ),
        (
            "[record]\nports = [\"s4:1\"]\nbusiest = 3",
            &["e.toml:13:11: `busiest`", "remove one of the two"],
        ),
        ("[record]\npaths = 1", &["e.toml:12:9: `paths`"]),
    ];
    for (text, expected) in cases {
        let Err(error) = resolve(text) else {
            panic!("accepted:\n{text}");
        };
        let message = error.to_string();
        for part in *expected {
            assert!(message.contains(part), "`{part}` is not in\n{message}");
        }
        assert!(message.lines().count() <= 12, "{message}");
    }
}

#[test]
fn without_the_table_switches_are_as_ever() {
    let plain = resolved("");
    let config = plain.run_config(&plain.runs[0]);
    assert_eq!(config.buffers, raddle_engine::Buffers::default());
    assert_eq!(value(&plain, "ingress.sharing"), Some("dynamic"));
    // 100 and 400 Gbps.
    assert_eq!(value(&plain, "ingress.alpha"), Some("0.125 to 0.5"));
    assert_eq!(value(&plain, "ingress.reserve"), Some("4KiB"));
    assert_eq!(value(&plain, "ingress.resume_offset"), Some("3KiB"));
    // 100 Gbps for twice 1 us, three packets of 1048 B, a PAUSE; 400 Gbps and HPCC's headers.
    let headroom = value(&plain, "ingress.headroom").unwrap();
    assert_eq!(25_000 + 3 * 1048 + 64, 28_208);
    assert!(headroom.starts_with("28.208kB to "), "{headroom}");
    // Keys that say what is the case anyway change the stamp, and nothing else.
    let said = resolved("[switch.ingress]\nreserve = \"4KiB\"\n");
    assert_eq!(said.run_config(&said.runs[0]).buffers, config.buffers);
    assert_ne!(said.runs[0].stamp, plain.runs[0].stamp);
    assert!(!plain.to_toml(&MemoryFiles::default()).contains("[switch"));
}

#[test]
fn tables_for_ports_start_from_what_holds_for_all() {
    let found = resolved(
        r#"[switch.ingress]
sharing = "static"
static_threshold = "200KiB"
headroom = "200KiB"
[[switch.ports]]
ports = ["s4"]
ingress = { reserve = "8KiB" }
[[switch.ports]]
ports = ["s4->s5", "s5:1"]
ingress = { static_threshold = "1MiB", resume_offset = "64KiB" }
[[switch.ports]]
ports = ["s5:2"]
ingress = { sharing = "dynamic", alpha = 2 }
"#,
    );
    let config = found.run_config(&found.runs[0]);
    let fabric = &found.network.fabric;
    let of = |name: &str, port: u32| {
        let node = fabric.find_node(name).unwrap();
        let port = raddle_units::PortId(fabric.first_port(node).0 + port - 1);
        config.buffers.of(port).ingress
    };
    let bytes = |kib: u64| raddle_units::Bytes(kib << 10);
    let fixed = |kib| Sharing::Static(Some(bytes(kib)));
    for (name, port, sharing, reserve, offset) in [
        ("s4", 1, fixed(200), 8, 3),
        ("s4", 3, fixed(1024), 8, 64),
        ("s5", 1, fixed(1024), 4, 64),
        ("s5", 2, Sharing::Dynamic(2.0), 4, 3),
        ("s5", 3, fixed(200), 4, 3),
    ] {
        let ingress = of(name, port);
        assert_eq!(ingress.sharing, sharing, "{name}:{port}");
        assert_eq!(
            (ingress.reserve, ingress.resume_offset, ingress.headroom),
            (bytes(reserve), bytes(offset), Some(bytes(200)))
        );
    }
    let written = found.to_toml(&MemoryFiles::default());
    let again = Resolved::new(&written, "e.toml", &MemoryFiles::default())
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.runs, found.runs, "{written}");
    assert_eq!(value(&found, "ingress.static_threshold"), Some("200KiB"));
    assert_eq!(value(&found, "ingress.headroom"), Some("200KiB"));
}

#[test]
fn limits_of_queues_need_no_pfc() {
    let found = resolved("lossless = false\n[switch.egress]\nsharing = \"dynamic\"\n");
    let config = found.run_config(&found.runs[0]);
    assert_eq!(config.buffers.usual.egress, Sharing::Dynamic(1.0));
    assert_eq!(value(&found, "egress.sharing"), Some("dynamic"));
    assert_eq!(value(&found, "egress.alpha"), Some("1"));
    assert_eq!(value(&found, "ingress.headroom"), None);
}

/// The switch with the longest delay or the scheme with the longest packets needs the most.
#[test]
fn headroom_that_is_too_small_is_warned_about() {
    let enough = resolved("[switch.ingress]\nheadroom = \"200KiB\"\n");
    assert!(enough.warnings.is_empty(), "{:?}", enough.warnings);
    let few = resolved("[switch.ingress]\nheadroom = \"50KiB\"\n");
    let [warning] = &few.warnings[..] else {
        panic!("{:?}", few.warnings);
    };
    // Only the two ports between the switches, at 400 Gbps.
    for part in ["headroom of 50KiB", "at s4:3", "2 ports may drop"] {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn ports_are_found_by_number_neighbour_and_node() {
    let series = |text: &str| {
        let found = resolved(&format!("[record]\n{text}\n"));
        found.run_config(&found.runs[0]).port_series
    };
    let plain = resolved("");
    let fabric = &plain.network.fabric;
    let port = |name: &str, number: u32| {
        let node = fabric.find_node(name).unwrap();
        raddle_units::PortId(fabric.first_port(node).0 + number - 1)
    };
    assert_eq!(series("acks = false"), PortSeries::None);
    assert_eq!(series("busiest = 5"), PortSeries::Busiest(5));
    let s5 = [1, 2, 3].map(|number| port("s5", number));
    for (text, expected) in [
        ("ports = [\"s4:3\"]", vec![port("s4", 3)]),
        (
            "ports = [\"4:3\", \"s4->s5\", \"h0\"]",
            vec![port("h0", 1), port("s4", 3)],
        ),
        ("ports = [\"s5\", \"s5 -> h3\"]", s5.to_vec()),
    ] {
        assert_eq!(series(text), PortSeries::Ports(expected), "{text}");
    }
}
