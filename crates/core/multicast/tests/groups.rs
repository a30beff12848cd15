//! Group files: both formats, every kind of damage with its line, field and cure, and what was written is read again.

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{Fabric, dumbbell, parse_toml};
use raddle_multicast::groups::{FileGroup, GroupFile, GroupFormat, read_groups, write_groups};

/// Hosts h0 to h7; nodes 8 and 9 are switches.
fn fabric() -> Fabric {
    dumbbell(4).unwrap()
}

fn toml(text: &str) -> Result<GroupFile, String> {
    read_groups(text, GroupFormat::Toml, "groups.toml", &fabric()).map_err(|e| e.to_string())
}

fn csv(text: &str) -> Result<GroupFile, String> {
    read_groups(text, GroupFormat::Csv, "groups.csv", &fabric()).map_err(|e| e.to_string())
}

fn group(name: &str, mgid: Option<u64>, members: &[u32]) -> FileGroup {
    FileGroup {
        name: name.to_owned(),
        mgid,
        members: members.to_vec(),
    }
}

#[test]
fn toml_groups_name_hosts_by_name_and_position() {
    let text = r#"
schema = 1
[[group]]
name = "a"
mgid = 5
members = ["h3", 0, "7"]
[[group]]
name = "b"
mgid = 0x10
members = [1]
"#;
    let groups = vec![group("a", Some(5), &[0, 3, 7]), group("b", Some(16), &[1])];
    assert_eq!(toml(text), Ok(GroupFile { groups }));
    assert_eq!(toml(text).unwrap().mgids(), Some(vec![5, 16]));
    let set = toml(text).unwrap().group_set(8).unwrap();
    assert_eq!(set.communicators[0].members, [0, 3, 7]);
    assert!(!set.layered);
}

#[test]
fn csv_groups_may_stand_apart() {
    let text = "\u{feff}group,member\r\na, h3\r\nb,1\r\n\"a\",0\r\n";
    let groups = vec![group("a", None, &[0, 3]), group("b", None, &[1])];
    assert_eq!(csv(text), Ok(GroupFile { groups }));
    let text = "member,mgid,group\nh3,5,a\nh0,,a\n1,6,b\n";
    let groups = vec![group("a", Some(5), &[0, 3]), group("b", Some(6), &[1])];
    assert_eq!(csv(text), Ok(GroupFile { groups }));
}

#[test]
fn bad_toml_is_refused_with_line_field_and_cure() {
    let in_group = |keys: &str| format!("schema = 1\n[[group]]\nname = \"a\"\n{keys}\n");
    let cases = [
        ("".to_owned(), "groups.toml:1:1: `schema` is missing"),
        (
            "schema = 2".to_owned(),
            "groups.toml:1:10: `schema`: version 2 is unknown",
        ),
        (
            "schema = 1".to_owned(),
            "groups.toml: the file has no groups\n  hint: add a `[[group]]`",
        ),
        (
            "schema = 1\n[[group]]\nname = ".to_owned(),
            "groups.toml:3:8: this is not TOML",
        ),
        (
            "schema = 1\ngroup = 3".to_owned(),
            "groups.toml:2:9: `group`: expected a list, found `3`",
        ),
        (
            "schema = 1\ngroup = [3]".to_owned(),
            "groups.toml:2:10: `group`: expected a table, found `3`",
        ),
        (
            "schema = 1\ngroups = []".to_owned(),
            "groups.toml:2:1: unknown key `groups`",
        ),
        (
            in_group("membres = []"),
            "groups.toml:4:1: unknown key `membres` in [group]",
        ),
        (
            in_group(""),
            "groups.toml:2:1: `members` is missing in [group]",
        ),
        (
            in_group("members = 3"),
            "groups.toml:4:11: `members`: expected a list, found `3`",
        ),
        (
            in_group("members = [1.5]"),
            "groups.toml:4:12: `members`: expected a whole number or text in quotes, found `1.5`",
        ),
        (
            in_group("members = []"),
            "groups.toml:2:1: `members` of group `a` is empty",
        ),
        (
            in_group("members = [1,\n 1]"),
            "groups.toml:5:2: `members` of group `a`: 1 is listed twice",
        ),
        (
            in_group("members = [1, \"h1\"]"),
            "groups.toml:4:15: `members` of group `a`: `h1` is listed twice",
        ),
        (
            in_group("members = [8]"),
            "groups.toml:4:12: `members` of group `a`: 8 is beyond the last",
        ),
        (
            in_group("members = [-1]"),
            "groups.toml:4:12: `members` of group `a`: -1 is not a host",
        ),
        (in_group("members = [\"s8\"]"), "`s8` is a switch"),
        (
            in_group("members = [\"x\"]"),
            "hint: hosts are called h0 to h7",
        ),
        (
            in_group("mgid = -1\nmembers = [1]"),
            "groups.toml:4:8: `mgid` of group `a` is -1",
        ),
        (
            in_group("mgid = 4294967296\nmembers = [1]"),
            "whole number from 0 to 4294967295",
        ),
        (
            in_group("mgid = \"5\"\nmembers = [1]"),
            "groups.toml:4:8: `mgid`: expected a whole number, found \"5\"",
        ),
        (
            in_group("members = [1]\n[[group]]\nname = \"a\"\nmembers = [2]"),
            "groups.toml:5:1: there is already a group `a`",
        ),
        (
            in_group("mgid = 1\nmembers = [1]\n[[group]]\nname = \"b\"\nmgid = 1\nmembers = [2]"),
            "groups.toml:8:8: `mgid` of group `b` is 1, as that of group `a`",
        ),
        (
            in_group("mgid = 1\nmembers = [1]\n[[group]]\nname = \"b\"\nmembers = [2]"),
            "groups.toml:6:1: `mgid`: group `a` has one and group `b` has none",
        ),
        (
            "schema = 1\n[[group]]\nname = \"\"\nmembers = [1]".to_owned(),
            "a name has 1 to 100 bytes",
        ),
        (
            "schema = 1\n[[group]]\nmembers = [1]".to_owned(),
            "groups.toml:2:1: `name` is missing",
        ),
        (
            "schema = 1\n[[group]]\nname = 1".to_owned(),
            "groups.toml:3:8: `name`: expected text in quotes, found `1`",
        ),
    ];
    for (text, expected) in cases {
        let error = toml(&text).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}\n{expected}");
    }
}

#[test]
fn bad_csv_is_refused_with_line_field_and_cure() {
    let cases = [
        (
            "",
            "groups.csv: the file has no groups\n  hint: write the header `group,member`",
        ),
        ("group,member\n", "groups.csv: the file has no groups"),
        (
            "group,host\n",
            "groups.csv:1:1: unknown or doubled column `host`",
        ),
        (
            "group,group\n",
            "groups.csv:1:1: unknown or doubled column `group`",
        ),
        (
            "group,mgid\n",
            "groups.csv:1:1: the column `member` is missing",
        ),
        ("group,member\na\n", "groups.csv:2:1: 1 field instead of 2"),
        (
            "group,member\na,\n",
            "groups.csv:2:1: `members` of group `a` is empty",
        ),
        (
            "group,member\na,h9\n",
            "groups.csv:2:1: `members` of group `a`: `h9` is not a host",
        ),
        (
            "group,member\na,1\nb,1\na,h1\n",
            "groups.csv:4:1: `members` of group `a`: `h1` is listed twice",
        ),
        ("group,member\n,1\n", "groups.csv:2:1: a group is called ``"),
        (
            "group,mgid,member\na,x,1\n",
            "groups.csv:2:1: `mgid` of group `a` is `x`",
        ),
        ("group,mgid,member\na,4294967296,1\n", "is `4294967296`"),
        (
            "group,mgid,member\na,1,1\na,2,2\n",
            "groups.csv:3:1: `mgid` of group `a` is 2 here and 1",
        ),
        (
            "group,mgid,member\na,1,1\nb,,2\n",
            "groups.csv:3:1: `mgid`: group `a` has one",
        ),
        (
            "group,mgid,member\na,1,1\nb,1,2\n",
            "groups.csv:3:1: `mgid` of group `b` is 1, as that",
        ),
    ];
    for (text, expected) in cases {
        let error = csv(text).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}\n{expected}");
    }
}

#[test]
fn positions_are_counted_among_hosts_and_names_come_first() {
    // Hosts are nodes 1 and 2 of this map, and one of them is called `0`.
    let text = "schema = 1\nkind = \"graph\"\n[[host]]\nname = \"x\"\n[[host]]\nname = \"0\"\n\
                [[switch]]\nname = \"t\"\n[[link]]\na = \"x\"\nb = \"t\"\nrate = \"1Gbps\"\ndelay = \"1us\"\n\
                [[link]]\na = \"0\"\nb = \"t\"\nrate = \"1Gbps\"\ndelay = \"1us\"\n";
    let fabric = parse_toml(text, "map.toml").unwrap();
    let groups = "schema = 1\n[[group]]\nname = \"a\"\nmembers = [\"0\"]\n\
                  [[group]]\nname = \"b\"\nmembers = [0]\n";
    let file = read_groups(groups, GroupFormat::Toml, "g", &fabric).unwrap();
    let of_name = fabric.find_node("0").unwrap();
    assert_eq!(fabric.hosts()[file.groups[0].members[0] as usize], of_name);
    assert_eq!(file.groups[1].members, [0]);
}

fn files() -> impl Strategy<Value = GroupFile> {
    let members = prop::collection::btree_set(0u32..32, 1..20);
    let groups = prop::collection::btree_map("[a-z,\"'. ]{0,8}[a-z]", members, 1..10);
    (groups, any::<bool>(), 0u64..1000).prop_map(|(groups, numbered, first)| GroupFile {
        groups: groups
            .into_iter()
            .enumerate()
            .map(|(index, (name, members))| FileGroup {
                name: name.trim().to_owned(),
                mgid: numbered.then_some(first + index as u64 * 7),
                members: members.into_iter().collect(),
            })
            .collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read_again(file in files()) {
        let names: std::collections::BTreeSet<_> = file.groups.iter().map(|g| &g.name).collect();
        prop_assume!(names.len() == file.groups.len());
        let fabric = leaf_spine();
        for format in [GroupFormat::Toml, GroupFormat::Csv] {
            let text = write_groups(&file, format, &fabric);
            prop_assert_eq!(read_groups(&text, format, "again", &fabric), Ok(file.clone()));
        }
    }
}

fn leaf_spine() -> Fabric {
    let text = "schema = 1\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n";
    parse_toml(text, "map.toml").unwrap()
}
