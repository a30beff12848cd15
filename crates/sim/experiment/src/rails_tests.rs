//! `[rails]`: what is refused, what it resolves to, and that messages come faster by it.

use raddle_units::Span;

use super::*;
use raddle_engine::{Progress, Recorder, record::FlowRecord, simulate};

const GOOD: &str = r#"schema = 1
name = "rails"
[fabric]
kind = "dumbbell"
hosts_per_side = 2
[traffic]
generator = "permutation"
size = "4MiB"
[rails]
rates = ["100Gbps", "100Gbps"]
lateness = "2us"
[simulation]
seeds = [1]
"#;

fn resolve(text: &str) -> Result<Resolved, ExperimentError> {
    Resolved::new(text, "exp/rails.toml", &MemoryFiles::default())
}

/// `GOOD` with a part replaced.
fn with(part: &str, by: &str) -> String {
    assert!(GOOD.contains(part), "{part}");
    GOOD.replace(part, by)
}

#[test]
fn what_rails_cannot_do_is_refused_with_its_place() {
    let seeds = "seeds = [1]";
    let cases: &[(String, &[&str])] = &[
        (
            with("[\"100Gbps\", \"100Gbps\"]", "[]"),
            &["exp/rails.toml:10:9", "1 to 8 items"],
        ),
        (
            with("[\"100Gbps\", \"100Gbps\"]", "[\"0bps\"]"),
            &["exp/rails.toml:10:10", "from 1Mbps"],
        ),
        (
            with("lateness = \"2us\"", "latenes = \"2us\""),
            &["exp/rails.toml:11:1", "did you mean `lateness`?"],
        ),
        (
            with("lateness = \"2us\"", "lateness = \"100000s\""),
            &["exp/rails.toml:11:12", "at most 86400s"],
        ),
        (
            with("lateness = \"2us\"", "heartbeat = \"1s\""),
            &["exp/rails.toml:9:", "a heartbeat every 1s is too rare"],
        ),
        (
            with("lateness = \"2us\"", "policy = \"dynamical\""),
            &["exp/rails.toml:11:10", "did you mean `dynamic`?"],
        ),
        (
            with("lateness = \"2us\"", "bus = { read = \"0bps\" }"),
            &["exp/rails.toml:11:16", "from 1bps"],
        ),
        (
            with("lateness = \"2us\"", "card = { both_ways = \"0bps\" }"),
            &["exp/rails.toml:11:", "from 1bps"],
        ),
        (
            with(seeds, "schemes = [\"hpcc\"]"),
            &["exp/rails.toml:9:", "hpcc needs telemetry of every hop"],
        ),
        (
            with(seeds, "compat = \"hpcc-ns3\""),
            &["exp/rails.toml:13:10", "remove [rails]"],
        ),
        (
            with(seeds, "mtu = \"64B\""),
            &["exp/rails.toml:13:7", "a packet of a rail has a header"],
        ),
        (
            format!("{GOOD}[record]\nacks = true\n"),
            &["exp/rails.toml:15:8", "not recorded"],
        ),
    ];
    for (text, said) in cases {
        let error = match resolve(text) {
            Ok(_) => panic!("accepted:\n{text}"),
            Err(error) => error.to_string(),
        };
        for words in *said {
            assert!(error.contains(words), "{words:?} is not in:\n{error}");
        }
    }
}

#[test]
fn each_rail_is_a_copy_of_the_fabric() {
    let resolved = resolve(&format!("{GOOD}[schemes.swift]\nbeta = 0.5\n")).unwrap();
    let plain = resolve(&with(
        "[rails]\nrates = [\"100Gbps\", \"100Gbps\"]\nlateness = \"2us\"\n",
        "",
    ))
    .unwrap();
    let (fabric, plane) = (&resolved.network.fabric, &plain.network.fabric);
    assert_eq!(fabric.hosts().len(), plane.hosts().len());
    assert_eq!(fabric.switches().len(), 2 * plane.switches().len());
    let host = fabric.hosts()[0];
    assert_eq!(fabric.ports_of(host).len(), 2);
    let names: Vec<&str> = resolved.schemes.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["swift"]);
    let config = resolved.run_config(&resolved.runs[0]);
    let rails = config.rails.expect("messages travel over rails");
    assert_eq!(rails.protocol.lateness, Span::from_us(2));
    assert_eq!(rails.protocol.scheme, "swift");
    // What is written down says the same again, all defaults included.
    let written = resolved.to_toml(&MemoryFiles::default());
    let again = Resolved::new(&written, "elsewhere.toml", &MemoryFiles::default())
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(resolved.runs, again.runs, "{written}");
    // And what changes rails changes the results.
    let other = resolve(&with("2us", "3us")).unwrap();
    assert_ne!(resolved.runs[0].stamp, other.runs[0].stamp);
}

/// Longest time of a message.
#[derive(Default)]
struct Slowest {
    flows: u64,
    fct: Span,
}

impl Recorder for Slowest {
    fn flow(&mut self, flow: &FlowRecord) {
        self.flows += 1;
        self.fct = self.fct.max(flow.fct.expect("it came"));
    }
}

/// Time of the slowest message of an experiment's only run.
fn slowest(text: &str) -> Span {
    let resolved = resolve(text).unwrap_or_else(|error| panic!("{error}"));
    let run = &resolved.runs[0];
    let mut workload = resolved.workload(run, &MemoryFiles::default()).unwrap();
    let (mut slowest, progress) = (Slowest::default(), Progress::default());
    let config = resolved.run_config(run);
    simulate(
        &resolved.network,
        &config,
        workload.as_mut(),
        &mut slowest,
        &progress,
    )
    .unwrap();
    assert_eq!(Some(slowest.flows), run.flows);
    slowest.fct
}

/// Nothing is in the way of 4 MiB but the rails themselves: twice as many take half as long, and greeting beside.
#[test]
fn two_rails_take_half_the_time_of_one() {
    let rails = |rates: &str| with("\"100Gbps\", \"100Gbps\"", rates);
    let one = slowest(&rails("\"100Gbps\""));
    let two = slowest(&rails("\"100Gbps\", \"100Gbps\""));
    let uneven = slowest(&rails("\"100Gbps\", \"25Gbps\""));
    let ratio = |of: Span| of.0 as f64 / one.0 as f64;
    assert!((0.45..0.6).contains(&ratio(two)), "{one} {two}");
    assert!((0.75..0.9).contains(&ratio(uneven)), "{one} {uneven}");
}
