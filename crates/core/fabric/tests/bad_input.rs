//! Broken maps of each kind: every one is refused with its place and a cure, none panics or allocates much.

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{
    CnTn, FabricBuilder, FabricError, FabricSource, FabricSpec, parse_hpcc_ns3, parse_toml,
};
use raddle_text::{read, tree};
use raddle_units::{BitRate, NodeId, Span};

const PAIR: &str = "\
schema = 1
[[host]]
name = \"a\"
[[host]]
name = \"b\"
[[switch]]
name = \"tor\"
[[link]]
a = \"a\"
b = \"tor\"
[[link]]
a = \"b\"
b = \"tor\"
";

const TOPOLOGY: &str = "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0.000000\n";

/// Asserts that the error of a TOML map starts with this place and says this.
#[track_caller]
fn toml_says(text: &str, place: &str, words: &str) {
    let message = parse_toml(text, "map.toml").unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("map.toml{place}")),
        "{message}"
    );
    assert!(message.contains(words), "{message}");
    assert!(message.lines().count() <= 6, "{message}");
}

#[track_caller]
fn topology_says(text: &str, place: &str, words: &str) {
    let message = parse_hpcc_ns3(text, "topo.txt").unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("topo.txt:{place}")),
        "{message}"
    );
    assert!(message.contains(words), "{message}");
}

#[test]
fn the_good_maps_of_these_tests_are_good() {
    assert_eq!(parse_toml(PAIR, "map.toml").unwrap().node_count(), 3);
    assert_eq!(
        parse_hpcc_ns3(TOPOLOGY, "topo.txt").unwrap().node_count(),
        3
    );
}

#[test]
fn truncated_toml_is_refused_where_it_ends() {
    toml_says("schema = 1\nkind = \"dumb", ":2:", "");
    toml_says("schema = 1\n[[link", ":2:", "");
    toml_says("schema = 1\nkind =", ":2:", "");
    toml_says("", ":1:1", "write schema = 1");
    toml_says("schema = 1\n", ":1:1", "`kind` is missing");
    toml_says(
        &PAIR[..PAIR.len() - "b = \"tor\"\n".len()],
        ":11",
        "`b` is missing in [link]",
    );
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    let say = "unknown key `hosts_per_sid`";
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_sid = 4",
        ":3:1",
        say,
    );
    toml_says(
        "schema = 1\nkind = \"dumbell\"\nhosts_per_side = 4",
        ":2:8",
        "did you mean `dumbbell`?",
    );
    toml_says(
        "schema = 1\nkind = \"torus\"",
        ":2:8",
        "possible: dumbbell, small-20",
    );
    // A key of another kind, and one that resembles nothing.
    let say = "possible: kind, hosts_per_side";
    toml_says("schema = 1\nkind = \"dumbbell\"\nleaves = 4", ":3:1", say);
    toml_says(
        "schema = 1\nkind = \"fat-tree-320\"\nxyzzy = 4",
        ":3:1",
        "possible: kind, host_rate",
    );
    toml_says(
        &PAIR.replace("name = \"b\"", "nam = \"b\""),
        ":5:1",
        "did you mean `name`?",
    );
    toml_says(
        &format!("{PAIR}speed = \"1Gbps\""),
        ":14:1",
        "unknown key `speed`",
    );
}

#[test]
fn wrong_types_are_refused_at_their_value() {
    toml_says("schema = 1\nkind = 5", ":2:8", "expected a word in quotes");
    toml_says(
        "schema = \"one\"\nkind = \"small-20\"",
        ":1:10",
        "must be 1",
    );
    toml_says(
        "schema = 2\nkind = \"small-20\"",
        ":1:10",
        "version 2 is unknown",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = \"4\"",
        ":3:18",
        "expected a whole number, found \"4\"",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 4.5",
        ":3:18",
        "expected a whole number, found `4.5`",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = nan",
        ":3:18",
        "nan is not a number with a value",
    );
    toml_says("schema = 1\nlink = 5", ":2:8", "expected a list");
    toml_says(
        &PAIR.replace("a = \"a\"", "a = 1.5"),
        ":9:5",
        "expected text in quotes or a whole number",
    );
}

#[test]
fn negative_and_impossible_numbers_are_refused() {
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = -4",
        ":3:18",
        "-4 is out of range: it must be from 1 to 1000000",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 0",
        ":3:18",
        "0 is out of range: it must be from 1 to 1000000",
    );
    toml_says(
        "schema = 1\nkind = \"k-ary-fat-tree\"\nk = 7",
        ":3:5",
        "7 is out of range: it must be at least 2 and a multiple of 2",
    );
    toml_says(
        "schema = 1\nkind = \"small-20\"\ndelay = \"-1us\"",
        ":3:9",
        "negative",
    );
    toml_says(
        "schema = 1\nkind = \"small-20\"\nhost_rate = \"0Gbps\"",
        ":3:13",
        "0Gbps is out of range: it must be from 1bps to 1000Tbps",
    );
    let cn_tn = "schema = 1\nkind = \"cn-tn\"\nm = 2\nq = 2\np = 2\nk = 2\nw = 2\ncns = 5";
    toml_says(cn_tn, ":8:7", "it must be from 1 to 4");
    let tree = "schema = 1\nkind = \"xgft\"\nchildren = [2, 2]\nparents = [1, 1, 1]";
    toml_says(tree, ":4:11", "there are 3 for 2 levels");
    toml_says(
        &tree.replace("[2, 2]", "[2, 0]"),
        ":3:",
        "0 is out of range",
    );
    toml_says(
        &PAIR.replace("name = \"tor\"", "name = \"tor\"\nlevel = 0"),
        ":8:9",
        "1 to 255",
    );
    toml_says(
        &PAIR.replace("name = \"tor\"", "name = \"tor\"\ncount = 0"),
        ":8:9: ",
        "at least 1",
    );
}

#[test]
fn values_without_unit_or_with_a_wrong_one_are_refused() {
    toml_says(
        "schema = 1\nkind = \"small-20\"\ndelay = 1",
        ":3:9",
        "has no unit",
    );
    toml_says(
        "schema = 1\nkind = \"small-20\"\ndelay = \"1\"",
        ":3:9",
        "has no unit",
    );
    toml_says(
        "schema = 1\nkind = \"small-20\"\nhost_rate = \"1us\"",
        ":3:13",
        "not a unit of a data rate",
    );
    toml_says(
        "schema = 1\nkind = \"small-20\"\nhost_rate = nan",
        ":3:13",
        "nan is not a number with a value",
    );
    toml_says(&format!("{PAIR}rate = 100"), ":14:8", "has no unit");
}

#[test]
fn huge_maps_are_refused_before_anything_is_allocated() {
    let limit = "the limit is 2000000";
    toml_says(
        "schema = 1\nkind = \"k-ary-fat-tree\"\nk = 1_000_000_000",
        ":2: ",
        limit,
    );
    let many = "[4000000000, 4000000000, 4000000000, 4000000000, 4000000000]";
    toml_says(
        &format!("schema = 1\nkind = \"xgft\"\nchildren = {many}\nparents = {many}"),
        ":2: ",
        limit,
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 1_000_000_000_000",
        ":3:18",
        "1000000000000 is out of range",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 4_000_000_000",
        ":3:18",
        "4000000000 is out of range",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 1e400",
        ":3:18",
        "",
    );
    toml_says(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 99999999999999999999",
        ":3:18",
        "the number is too large",
    );
    toml_says("schema = 1\n[[host]]\ncount = 4_000_000_000", "", limit);
    toml_says(
        &format!("{PAIR}count = 4_000_000_000"),
        "",
        "links are too many",
    );
    toml_says(
        &PAIR.replace("name = \"tor\"", "id = 4_000_000_000"),
        ":6: ",
        "numbered 0 to 2",
    );
    let largest = u32::MAX;
    let error = CnTn::new(largest, largest, largest, largest, largest)
        .build()
        .unwrap_err();
    assert!(matches!(error, FabricError::TooLarge { .. }), "{error}");
    topology_says("4000000000 1 1\n", "1: ", limit);
    topology_says("99999999999999999999999 1 1\n", "1: ", limit);
    topology_says("3 1 400000000000\n2\n", "1: ", "links are too many");
}

#[test]
fn links_that_cannot_be_are_refused_at_their_line() {
    toml_says(
        &PAIR.replace("a = \"b\"", "a = \"tor\""),
        ":11: ",
        "joins tor to itself",
    );
    toml_says(
        &PAIR.replace("a = \"b\"", "a = \"a\""),
        ":11: ",
        "already joined in line 8",
    );
    toml_says(
        &PAIR.replace("b = \"tor\"", "b = \"b\""),
        ":8: ",
        "both hosts",
    );
    toml_says(
        &PAIR.replace("a = \"b\"", "a = \"tr\""),
        ":11: ",
        "did you mean `tor`?",
    );
    toml_says(&PAIR.replace("a = \"b\"", "a = 3"), ":11: ", "no node `3`");
    toml_says(
        &PAIR.replace("name = \"b\"", "name = \"a\""),
        ":4: ",
        "`a` names two nodes",
    );
    toml_says(
        &format!("{PAIR}rate = \"0bps\""),
        ":14:8: ",
        "0bps is out of range",
    );
    toml_says(
        &PAIR.replace("schema = 1", "schema = 1\nradix = 1"),
        ":12: ",
        "its radix is 1",
    );
    toml_says(
        &format!("{PAIR}[[host]]\nname = \"c\""),
        ":14: ",
        "host c has no link",
    );
    toml_says(
        &format!("{PAIR}[[switch]]\nname = \"c\""),
        ":14: ",
        "c cannot be reached from a",
    );
    toml_says("schema = 1\n[[switch]]\n", ": ", "no hosts");
}

#[test]
fn broken_topology_files_are_refused_at_their_line() {
    let replace = |a, b| TOPOLOGY.replacen(a, b, 1);
    topology_says("", "1: ", "is empty");
    topology_says("3 1\n", "1: ", "here 2 of them");
    topology_says("3 -1 2\n", "1: ", "is not a whole number");
    topology_says("3 nan 2\n", "1: ", "is not a whole number");
    topology_says("3 4 2\n", "1: ", "more than 3 nodes");
    topology_says("3 1 2\n", "1: ", "ends after 0 of 1 switch ids");
    topology_says("3 1 2\n3\n", "2: ", "numbered 0 to 2");
    topology_says("3 2 2\n2 2\n", "2: ", "names two nodes");
    topology_says("3 1 2\n2 1\n", "2: ", "2 switch ids");
    topology_says(
        "3 1 2\n2\n0 2 100Gbps 1000ns 0\n",
        "3: ",
        "ends after 1 of 2 links",
    );
    topology_says(
        &format!("{TOPOLOGY}0 2 100Gbps 1000ns 0\n"),
        "5: ",
        "a line after the last",
    );
    topology_says(&replace("0 2 100Gbps", "0 2 100"), "3: ", "has no unit");
    topology_says(&replace("1000ns", "1000"), "3: ", "has no unit");
    topology_says(&replace("1000ns", "-1000ns"), "3: ", "negative");
    topology_says(&replace("1000ns", "nan"), "3: ", "not a number");
    topology_says(&replace("ns 0\n", "ns 0.5\n"), "3: ", "write 0");
    topology_says(&replace("ns 0\n", "ns\n"), "3: ", "here 4 of them");
    topology_says(&replace("0 2 100", "2 2 100"), "3: ", "to itself");
    topology_says(&replace("0 2 100", "0 9 100"), "3: ", "no node `9`");
    topology_says(
        &replace("1 2 100", "0 2 100"),
        "4: ",
        "already joined in line 3",
    );
    topology_says("3 1 1\n2\n0 2 1Gbps 1ns 0\n", "1: ", "host h1 has no link");
    topology_says(&replace("100Gbps", "0"), "3: ", "0bps is out of range");
}

#[test]
fn the_builder_refuses_nodes_that_do_not_exist() {
    let mut builder = FabricBuilder::new("by hand");
    let host = builder.host();
    builder.connect(host, NodeId(7), BitRate::from_gbps(1), Span::ZERO);
    let message = builder.finish().unwrap_err().to_string();
    assert_eq!(
        message,
        "by hand: there is no node `7`; nodes are numbered 0 to 0"
    );
}

#[test]
fn a_fabric_table_is_a_kind_or_a_file_but_not_both() {
    let source = |text: &str| read::<FabricSource>(&tree::parse(text, "a.toml").unwrap());
    assert!(matches!(
        source("kind = \"small-20\"").unwrap(),
        FabricSource::Spec(_)
    ));
    assert!(matches!(
        source("file = \"t.txt\"\nformat = \"hpcc-ns3\"").unwrap(),
        FabricSource::File(_)
    ));
    assert!(matches!(
        source("host = [{}]\nswitch = [{}]\nlink = [{ a = 0, b = 1 }]").unwrap(),
        FabricSource::Spec(FabricSpec::Graph(_))
    ));
    for (text, words) in [
        (
            "file = \"t.txt\"\nkind = \"small-20\"",
            "cannot both be given",
        ),
        (
            "file = \"t.txt\"\ndelay = \"1us\"",
            "a.toml:2:1: unknown key `delay`",
        ),
        ("format = \"toml\"", "`format` needs `file`"),
        (
            "file = \"t.txt\"\nformat = \"hpcc\"",
            "a.toml:2:10: unknown `format` `hpcc`",
        ),
        ("kind = \"leaf-spine\"", "`leaves` is missing"),
        ("kind = \"leaf-spine\"\nleafs = 4", "did you mean `leaves`?"),
        ("kind = \"leaf-spine\"\nleafs = 4", "a.toml:2:1"),
        ("kind = \"leaf-spine\"\nxyzzy = 4", "unknown key `xyzzy`"),
        ("kind = \"leaf-spine\"\nleaves = -4", "a.toml:2:10"),
        ("", "`kind` is missing"),
    ] {
        let message = source(text).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    toml_says(
        "schema = 1\nfile = \"t.txt\"",
        ":2:8",
        "cannot name another file",
    );
}

#[test]
fn an_error_shows_the_line_with_a_mark_below() {
    let text = "schema = 1\nkind = \"dumbbell\"\nhosts = 4\n";
    let message = parse_toml(text, "map.toml").unwrap_err().to_string();
    assert_eq!(
        message,
        "map.toml:3:1: unknown key `hosts`\n    3 | hosts = 4\n      | ^^^^^\n  \
         hint: did you mean `hosts_per_side`? possible: kind, hosts_per_side, host_rate, fabric_rate, delay, radix"
    );
}

#[test]
fn words_of_a_million_letters_give_a_short_error_at_once() {
    let long = "x".repeat(1_000_000);
    for text in [
        format!("schema = 1\n{long} = 1"),
        format!("schema = 1\nkind = \"{long}\""),
        format!("schema = 1\nkind = \"dumbbell\"\nhosts_per_side = \"{long}\""),
        PAIR.replace("a = \"b\"", &format!("a = \"{long}\"")),
    ] {
        assert!(parse_toml(&text, "map.toml").unwrap_err().to_string().len() < 2000);
    }
    let text = format!("3 {long} 2");
    assert!(
        parse_hpcc_ns3(&text, "topo.txt")
            .unwrap_err()
            .to_string()
            .len()
            < 2000
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(
        FileFailurePersistence::WithSource("regressions")
    ))]

    #[test]
    fn no_text_makes_the_readers_panic(text in "\\PC{0,200}") {
        let _ = parse_toml(&text, "map.toml");
        let _ = parse_hpcc_ns3(&text, "topo.txt");
    }

    #[test]
    fn no_damage_to_a_good_map_makes_the_readers_panic(
        cut in 0usize..PAIR.len(),
        word in prop::sample::select(vec!["", "-1", "nan", "1e99", "\"", "[", "=", "\n", "a", "é"]),
        drop in 0usize..20,
    ) {
        for text in [PAIR, TOPOLOGY] {
            let cut = cut % text.len();
            let rest = &text[(cut + drop).min(text.len())..];
            let broken = format!("{}{word}{rest}", &text[..cut]);
            let _ = parse_toml(&broken, "map.toml");
            let _ = parse_hpcc_ns3(&broken, "topo.txt");
        }
    }
}
