//! Experiments that must be refused with a place and a cure, and what the accepted ones resolve to.

use super::*;

const GOOD: &str = r#"schema = 1
name = "two"
[fabric]
kind = "dumbbell"
hosts_per_side = 2
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["hpcc", "dcqcn"]
seeds = [1, 2]
"#;

fn resolve(text: &str) -> Result<Resolved, ExperimentError> {
    Resolved::new(text, "exp/two.toml", &files())
}

fn files() -> MemoryFiles {
    MemoryFiles::default()
        .with(
            "exp/base.toml",
            "[simulation]\nbuffer = \"16MiB\"\nseeds = [7]\n",
        )
        .with("exp/loop.toml", "include = [\"sub/again.toml\"]\n")
        .with("exp/sub/again.toml", "include = [\"../loop.toml\"]\n")
        .with("exp/wrong.toml", "[simulation]\nbuffer = 16\n")
        .with(
            "exp/topo.txt",
            "4 1 3\n0\n1 0 100Gbps 1us 0\n2 0 100Gbps 1us 0\n9 0 100Gbps 1us 0\n",
        )
        .with(
            "exp/flow.txt",
            "2\n0 1 3 100 1000 0.0\n0 0 3 100 1000 0.0\n",
        )
        .with("exp/binary.txt", vec![0xff, 0xfe, 0x00])
}

/// `GOOD` with one line replaced.
fn with(line: &str, by: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    GOOD.replace(line, by)
}

fn refused(text: &str) -> String {
    match resolve(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_wrong_experiment_is_refused_with_place_and_cure() {
    let schemes = "schemes = [\"hpcc\", \"dcqcn\"]";
    let seeds = "seeds = [1, 2]";
    let size = "size = \"64KiB\"";
    let cases: &[(&str, String, &[&str])] = &[
        (
            "truncated",
            GOOD[..30].to_owned(),
            &["exp/two.toml:3:", "not TOML"],
        ),
        (
            "no equals sign",
            with(seeds, "seeds"),
            &["exp/two.toml:11:", "not TOML"],
        ),
        (
            "empty",
            String::new(),
            &["exp/two.toml:1:1", "`schema` is missing"],
        ),
        (
            "other version",
            with("schema = 1", "schema = 2"),
            &["exp/two.toml:1:10", "write schema = 1"],
        ),
        (
            "typo in a key",
            with(seeds, "sedes = [1]"),
            &[
                "exp/two.toml:11:1: unknown key `sedes` in [simulation]",
                "  11 | sedes = [1]",
                "^^^^^",
                "did you mean `seeds`?",
            ],
        ),
        (
            "typo in a table",
            with("[simulation]", "[simulatoin]"),
            &["exp/two.toml:9:2", "did you mean `simulation`?"],
        ),
        (
            "typo in a scheme",
            with(schemes, "schemes = [\"hpcc\", \"dcqn\"]"),
            &[
                "exp/two.toml:10:20",
                "unknown word in `schemes`: `dcqn`",
                "did you mean `dcqcn`?",
            ],
        ),
        (
            "typo in a kind",
            with("kind = \"dumbbell\"", "kind = \"dumbell\""),
            &["exp/two.toml:4:8", "did you mean `dumbbell`?"],
        ),
        (
            "typo in a generator",
            with("\"permutation\"", "\"permutatoin\""),
            &["exp/two.toml:7:13", "did you mean `permutation`?"],
        ),
        (
            "typo in a fabric key",
            with("hosts_per_side", "host_per_side"),
            &["exp/two.toml:5:1", "did you mean `hosts_per_side`?"],
        ),
        (
            "key of another kind",
            with("hosts_per_side = 2", "hosts_per_side = 2\npods = 3"),
            &["exp/two.toml:6:", "pods"],
        ),
        (
            "typo in a traffic key",
            with("size =", "sise ="),
            &[
                "exp/two.toml:8:1: unknown key `sise` in [traffic]",
                "did you mean `size`?",
            ],
        ),
        (
            "no unit",
            with(size, "size = 64"),
            &["exp/two.toml:8:8", "`64` has no unit"],
        ),
        (
            "no unit in our table",
            with(seeds, "buffer = \"32\""),
            &["exp/two.toml:11:10: `buffer`: `32` has no unit"],
        ),
        (
            "wrong unit",
            with(seeds, "buffer = \"32Gbps\""),
            &["exp/two.toml:11:10", "not a unit of a size"],
        ),
        (
            "negative quantity",
            with(seeds, "end = \"-1us\""),
            &["exp/two.toml:11:7", "negative"],
        ),
        (
            "wrong type",
            with(seeds, "seeds = \"one\""),
            &["exp/two.toml:11:9: `seeds`: expected a list, found \"one\""],
        ),
        (
            "wrong type of a table",
            with("[simulation]", "[record]\nacks = \"yes\"\n[simulation]"),
            &["exp/two.toml:10:8", "expected true or false"],
        ),
        (
            "empty schemes",
            with(schemes, "schemes = []"),
            &["exp/two.toml:10:11", "the list is empty", "dctcp"],
        ),
        (
            "a scheme twice",
            with(schemes, "schemes = [\"hpcc\", \"hpcc\"]"),
            &["exp/two.toml:10:20", "is listed twice"],
        ),
        (
            "a seed twice",
            with(seeds, "seeds = [1, 2, 1]"),
            &["exp/two.toml:11:16", "1 is listed twice"],
        ),
        (
            "negative seed",
            with(seeds, "seeds = [-1]"),
            &["exp/two.toml:11:10", "0 or more"],
        ),
        (
            "huge seed",
            with(seeds, "seeds = [99999999999999999999]"),
            &["exp/two.toml:11:10", "too large"],
        ),
        (
            "no seeds",
            with(seeds, "seeds = []"),
            &["exp/two.toml:11:9", "at least 1 item"],
        ),
        (
            "end at once",
            with(seeds, "end = 0"),
            &["exp/two.toml:11:7", "from 1ps to 86400s"],
        ),
        (
            "huge end",
            with(seeds, "end = \"100000000s\""),
            &["exp/two.toml:11:7"],
        ),
        (
            "not a number",
            with(seeds, "[schemes.hpcc]\ntarget_utilisation = nan"),
            &["exp/two.toml:12:22", "nan"],
        ),
        (
            "negative parameter",
            with(seeds, "[schemes.hpcc]\ntarget_utilisation = -0.5"),
            &["exp/two.toml:12:22", "above 0 and at most 1"],
        ),
        (
            "unknown parameter",
            with(seeds, "[schemes.hpcc]\nrate_increse = \"1Gbps\""),
            &["exp/two.toml:12:1", "in [schemes.hpcc]", "`rate_increase`"],
        ),
        (
            "weights",
            with(
                seeds,
                "[score]\nweights = { long = 0.5, short = 0.5, allreduce = 0.5 }",
            ),
            &["exp/two.toml:12:11", "they sum to 1.5"],
        ),
        (
            "weight not a number",
            with(
                seeds,
                "[score]\nweights = { long = nan, short = 0.5, allreduce = 0.5 }",
            ),
            &["exp/two.toml:12:20"],
        ),
        (
            "unknown reading",
            with(seeds, "[score]\nreading = \"perflow\""),
            &["exp/two.toml:12:11", "did you mean `per-flow`?"],
        ),
        (
            "packet too large",
            with(seeds, "mtu = \"1MB\""),
            &["exp/two.toml:11:7", "9000B"],
        ),
        (
            "fault of an unknown node",
            with(
                seeds,
                "[[simulation.faults]]\nlink = [\"h0\", \"x9\"]\ndown = \"1ms\"",
            ),
            &["exp/two.toml:12:8", "no node"],
        ),
        (
            "fault of no link",
            with(
                seeds,
                "[[simulation.faults]]\nlink = [0, 1]\ndown = \"1ms\"",
            ),
            &["exp/two.toml:12:8", "not joined"],
        ),
        (
            "fault that returns before",
            with(
                seeds,
                "[[simulation.faults]]\nlink = [0, 4]\ndown = \"1ms\"\nup = \"1us\"",
            ),
            &["exp/two.toml:11:", "later than `down`"],
        ),
        (
            "timer in compat",
            with(
                seeds,
                "compat = \"hpcc-ns3\"\nretransmission_timeout = \"1ms\"",
            ),
            &["exp/two.toml:12:", "no retransmission timer"],
        ),
        (
            "unknown compat",
            with(seeds, "compat = \"ns3\""),
            &["exp/two.toml:11:10", "hpcc-ns3"],
        ),
        (
            "no twin",
            with(seeds, "isolated = true"),
            &["exp/two.toml:11:12", "tested-"],
        ),
        (
            "include cycle",
            format!("include = [\"loop.toml\"]\n{GOOD}"),
            &[
                "exp/sub/again.toml:1:12",
                "exp/loop.toml -> exp/sub/again.toml -> exp/loop.toml",
            ],
        ),
        (
            "include of nothing",
            format!("include = [\"none.toml\"]\n{GOOD}"),
            &[
                "exp/two.toml:1:12",
                "cannot read exp/none.toml",
                "no such file",
            ],
        ),
        (
            "include of itself",
            format!("include = [\"two.toml\"]\n{GOOD}"),
            &["include each other"],
        ),
        (
            "include of a text",
            format!("include = \"base.toml\"\n{GOOD}"),
            &["exp/two.toml:1:11", "list of files"],
        ),
        (
            "include of binary",
            format!("include = [\"binary.txt\"]\n{GOOD}"),
            &["exp/two.toml:1:12", "UTF-8"],
        ),
        (
            "error in an included file",
            format!("include = [\"wrong.toml\"]\n{GOOD}"),
            &["exp/wrong.toml:2:10", "`16` has no unit"],
        ),
        (
            "broken map file",
            with(
                "kind = \"dumbbell\"\nhosts_per_side = 2",
                "file = \"topo.txt\"\nformat = \"hpcc-ns3\"",
            ),
            &["exp/topo.txt:5", "named at exp/two.toml:4"],
        ),
        (
            "broken flow file",
            with(
                "generator = \"permutation\"\nsize = \"64KiB\"",
                "file = \"flow.txt\"\nformat = \"hpcc-ns3\"",
            ),
            &["exp/flow.txt:3", "itself", "named at exp/two.toml:7"],
        ),
        (
            "flow file of nothing",
            with(
                "generator = \"permutation\"\nsize = \"64KiB\"",
                "file = \"none.csv\"",
            ),
            &["exp/two.toml:7:8: cannot read exp/none.csv", "no such file"],
        ),
        (
            "kind and file",
            with("kind = \"dumbbell\"", "kind = \"dumbbell\"\nfile = \"x\""),
            &["exp/two.toml:"],
        ),
        (
            "neither generator nor file",
            with("generator = \"permutation\"", ""),
            &["exp/two.toml:"],
        ),
        (
            "no hosts",
            with("hosts_per_side = 2", "hosts_per_side = 0"),
            &["exp/two.toml:5:18", "from 1 to 1000000"],
        ),
        (
            "huge map",
            with("hosts_per_side = 2", "hosts_per_side = 4000000000"),
            &["exp/two.toml:5:18", "from 1 to 1000000"],
        ),
        (
            "two tables",
            format!("{GOOD}[fabric]\n"),
            &["exp/two.toml:12:", "not TOML"],
        ),
        (
            "a date",
            with(seeds, "seeds = 2026-11-21"),
            &["exp/two.toml:11:9", "date"],
        ),
    ];
    for (what, text, expected) in cases {
        let message = refused(text);
        for part in *expected {
            assert!(
                message.contains(part),
                "{what}: `{part}` is not in\n{message}"
            );
        }
        assert!(
            message.lines().count() <= 12 && message.len() < 2000,
            "{what}: too long\n{message}"
        );
    }
}

#[test]
fn a_long_line_is_cut_around_its_mark() {
    let text = with(
        "seeds = [1, 2]",
        &format!("seeds = [{} -1]", "1, ".repeat(5000)),
    );
    let message = refused(&text);
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines.iter().all(|line| line.chars().count() < 130),
        "{message}"
    );
    let mark = lines[2].find('^').unwrap();
    assert_eq!(&lines[1][mark..mark + 2], "-1", "{message}");
}

#[test]
fn included_tables_are_merged_and_this_file_wins() {
    let resolved = resolve(&format!("include = [\"base.toml\"]\n{GOOD}")).unwrap();
    let simulation = &resolved.experiment.simulation;
    assert_eq!(simulation.buffer.unwrap().to_string(), "16MiB");
    assert_eq!(simulation.seeds.as_deref(), Some(&[1, 2][..]));
}

#[test]
fn runs_are_schemes_then_seeds() {
    let resolved = resolve(GOOD).unwrap();
    let names: Vec<&str> = resolved.runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "hpcc-seed1-loaded",
            "hpcc-seed2-loaded",
            "dcqcn-seed1-loaded",
            "dcqcn-seed2-loaded"
        ]
    );
}

#[test]
fn the_resolved_text_resolves_to_the_same_runs() {
    for change in [
        "",
        "compat = \"hpcc-ns3\"",
        "lossless = false\nend = \"3ms\"",
        "buffer = \"8MiB\"\nmtu = \"4096B\"",
    ] {
        let schemes = "schemes = [\"hpcc\", \"dcqcn\"]";
        let all =
            "schemes = [\"swift\", \"none\", \"dctcp\", \"dcqcn\", \"timely\", \"hpcc\", \"pint\"]";
        let text = with(schemes, all).replace("[simulation]", &format!("[simulation]\n{change}"));
        let first = resolve(&text).unwrap();
        let written = first.to_toml(&files());
        let again = Resolved::new(&written, "elsewhere/experiment.toml", &files())
            .unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(first.runs, again.runs, "{written}");
        assert_eq!(again.to_toml(&files()), written);
    }
}

#[test]
fn a_stamp_changes_with_what_decides_the_outcome_only() {
    let stamps = |text: &str| -> Vec<String> {
        resolve(text)
            .unwrap()
            .runs
            .into_iter()
            .map(|run| run.stamp)
            .collect()
    };
    let base = stamps(GOOD);
    assert_eq!(
        base.iter().collect::<std::collections::BTreeSet<_>>().len(),
        base.len()
    );
    assert_eq!(stamps(&with("name = \"two\"", "name = \"other\"")), base);
    assert_eq!(
        stamps(&with("seeds = [1, 2]", "seeds = [1, 2, 3]"))[..2],
        base[..2]
    );
    assert_ne!(
        stamps(&with("hosts_per_side = 2", "hosts_per_side = 3"))[0],
        base[0]
    );
    assert_ne!(stamps(&with("64KiB", "65KiB"))[0], base[0]);
    assert_ne!(
        stamps(&with("seeds = [1, 2]", "seeds = [1]\nbuffer = \"8MiB\""))[0],
        base[0]
    );
    let tuned = stamps(&format!("{GOOD}[schemes.hpcc]\nmax_stage = 5\n"));
    assert_ne!(tuned[0], base[0]);
    assert_eq!(tuned[2..], base[2..]);
}

#[test]
fn compat_takes_the_defaults_of_the_reference() {
    let resolved = resolve(&with("seeds = [1, 2]", "compat = \"hpcc-ns3\"")).unwrap();
    let config = resolved.run_config(&resolved.runs[0]);
    assert_eq!(config.buffer.to_string(), "32MiB");
    assert_eq!(config.min_rate.to_string(), "1Gbps");
    assert_eq!(
        resolved.network.semantics,
        raddle_engine::Semantics::HPCC_NS3
    );
    assert!(
        resolved
            .settings
            .iter()
            .all(|setting| setting.key != "retransmission_timeout")
    );
}

#[test]
fn weights_that_nearly_sum_to_one_are_scaled() {
    let resolved = resolve(&format!(
        "{GOOD}[score]\nweights = {{ long = 0.33, short = 0.33, allreduce = 0.33 }}\n"
    ))
    .unwrap();
    let weights = resolved.experiment.score.weights.unwrap();
    assert!((weights.long + weights.short + weights.allreduce - 1.0).abs() < 1e-12);
}

#[test]
fn the_published_schema_is_the_generated_one() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/reference/experiment.schema.json"
    );
    let generated = experiment_schema();
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == generated,
        "docs/reference/experiment.schema.json is old: run make generate"
    );
}
