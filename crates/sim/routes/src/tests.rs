//! Route files that must be refused with place and cure, and what good ones give.

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::Row,
};
use raddle_multicast::MulticastTables;
use raddle_text::MemoryFiles;
use serde_json::Value as Json;

use super::*;

const GOOD: &str = r#"schema = 1
name = "small"
[fabric]
kind = "cn-tn"
m = 2
q = 4
p = 2
k = 2
w = 2
cns = 4
[groups]
pattern = "grid"
dims = [8, 4]
[multicast]
engines = ["mr4lms", "broadcast", "c-mr4lms-fixed", "c-mr4lms-dynamic"]
colours = 8
table = "per-port"
fault_tolerant = false
"#;

/// The engines of [`GOOD`].
const ALL: &str = "\"mr4lms\", \"broadcast\", \"c-mr4lms-fixed\", \"c-mr4lms-dynamic\"";

const MEMBERS: &str = "schema = 1\n[[group]]\nname = \"a\"\nmembers = [0, 1, \"h9\"]\n\
                       [[group]]\nname = \"b\"\nmembers = [1, 2]\n";

fn files() -> MemoryFiles {
    let unknown = MEMBERS.replace("\"h9\"", "\"h99\"");
    let numbered = MEMBERS.replace("members", "mgid = 4294967296\nmembers");
    MemoryFiles::default()
        .with("in/groups.toml", MEMBERS)
        .with("in/unknown.toml", unknown)
        .with("in/numbered.toml", numbered)
        .with("in/groups.csv", "group,member\na,h0\na,h1\nb,h2\n")
        .with("in/numbered.csv", "group,mgid,member\na,-1,h0\n")
}

fn resolve(text: &str) -> Result<Resolved, raddle_text::InputError> {
    Resolved::new(text, "in/small.toml", &files())
}

fn refused(text: &str) -> String {
    match resolve(text) {
        Ok(_) => panic!("not refused:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("raddle-routes-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn bad_route_files_are_refused_with_place_and_cure() {
    let file = "pattern = \"file\"\nfile =";
    let grid = "pattern = \"grid\"\ndims = [8, 4]";
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "schema = 1",
            "schema = 2",
            &["small.toml:1:10", "write schema = 1"],
        ),
        (
            "colours = 8",
            "colours = 0",
            &["small.toml:16:11", "Default: 32"],
        ),
        ("colours = 8", "colours = 65536", &["65535"]),
        (
            "colours = 8",
            "colours = -1",
            &["small.toml:16:11", "colours"],
        ),
        (
            "colours = 8",
            "colour = 8",
            &["small.toml:16:1", "did you mean `colours`"],
        ),
        (
            "\"mr4lms\"",
            "\"mr4lsm\"",
            &["small.toml:15:12", "did you mean `mr4lms`"],
        ),
        (
            "\"mr4lms\"",
            "\"broadcast\"",
            &["broadcast is listed twice"],
        ),
        (
            "[\"mr4lms\", \"broadcast\", \"c-mr4lms-fixed\", \"c-mr4lms-dynamic\"]",
            "[]",
            &["the list is empty", "mr4lms"],
        ),
        ("per-port", "per-ports", &["small.toml:17:9", "per-switch"]),
        (
            "\"per-port\"\nfault_tolerant = false",
            "\"per-switch\"\nfault_tolerant = true",
            &["per-port"],
        ),
        ("\"grid\"", "\"gird\"", &["did you mean `grid`"]),
        ("[8, 4]", "[8]", &["small.toml:13:8", "2 or 3 lengths"]),
        ("[8, 4]", "[8, 0]", &["small.toml:13:12", "at least 1"]),
        (
            "[8, 4]",
            "[8, 5]",
            &["small.toml:13:8", "40 processes do not fit on 32"],
        ),
        ("[8, 4]", "[65536, 65536, 65536]", &["small.toml:13:8"]),
        ("[8, 4]", "[4294967295, 4294967295]", &["small.toml:13:8"]),
        ("dims = [8, 4]", "", &["`dims` is missing", "[64, 32, 16]"]),
        (
            "dims = [8, 4]",
            "dims = [8, 4]\ncount = 3",
            &["small.toml:14:9", "remove it"],
        ),
        (grid, "pattern = \"random\"", &["`count` is missing"]),
        (
            grid,
            "pattern = \"random\"\ncount = 0",
            &["count", "at least 1"],
        ),
        (
            grid,
            "pattern = \"hierarchy\"\ndims = [3, 4]",
            &["multiple"],
        ),
        (
            grid,
            &format!("{file} \"nowhere.csv\""),
            &["in/nowhere.csv", "small.toml:13"],
        ),
        (
            grid,
            &format!("{file} \"groups.txt\""),
            &["groups.txt", ".toml or .csv"],
        ),
        (
            grid,
            &format!("{file} \"unknown.toml\""),
            &["unknown.toml:4", "h99"],
        ),
        (
            grid,
            &format!("{file} \"numbered.toml\""),
            &["numbered.toml:4", "4294967295"],
        ),
        (
            grid,
            &format!("{file} \"numbered.csv\""),
            &["numbered.csv:2", "-1"],
        ),
        (
            "m = 2",
            "m = 1\nterminals_per_l0 = 2",
            &["fault_tolerant", "m = 1"],
        ),
        (
            "kind = \"cn-tn\"",
            "kind = \"cn-nt\"",
            &["did you mean `cn-tn`"],
        ),
        ("m = 2", "m = 0", &["small.toml:5:5", "m"]),
    ];
    for (old, new, words) in cases {
        assert!(GOOD.contains(old), "{old}");
        let mut text = GOOD.replacen(old, new, 1);
        if words.contains(&"fault_tolerant") {
            text = text.replace("fault_tolerant = false", "fault_tolerant = true");
        }
        let message = refused(&text);
        for word in *words {
            assert!(message.contains(word), "{new}: no {word} in\n{message}");
        }
        assert!(message.lines().count() < 20, "{message}");
    }
}

#[test]
fn every_key_of_a_pattern_is_known_to_the_check() {
    // A key that the schema has and the check does not know would be taken for any pattern.
    let schema: Json = serde_json::from_str(&route_schema()).unwrap();
    let keys = schema["$defs"]["GroupsTable"]["properties"]
        .as_object()
        .unwrap();
    for key in keys.keys().filter(|key| *key != "pattern") {
        let value = match key.as_str() {
            "dims" => "[2, 2]",
            "layers" => "\"tight\"",
            "leaders_only" => "true",
            "file" => "\"groups.csv\"",
            _ => "1",
        };
        let mut refusals = 0;
        for pattern in ["grid", "random", "hierarchy", "file"] {
            let table = format!("pattern = \"{pattern}\"\n{key} = {value}");
            let text = GOOD.replace("pattern = \"grid\"\ndims = [8, 4]", &table);
            if let Err(error) = resolve(&text) {
                refusals += usize::from(error.to_string().contains("does not use it"));
            }
        }
        assert!((1..4).contains(&refusals), "{key}: {refusals}");
    }
}

#[test]
fn groups_come_from_toml_and_csv() {
    for (name, sizes) in [("groups.toml", [3, 2]), ("groups.csv", [2, 1])] {
        let table = format!("pattern = \"file\"\nfile = \"{name}\"");
        let resolved = resolve(&GOOD.replace("pattern = \"grid\"\ndims = [8, 4]", &table)).unwrap();
        let found: Vec<usize> = resolved.groups.iter().map(|g| g.members.len()).collect();
        assert_eq!(found, sizes);
        assert_ne!(resolved.groups[0].mgid, resolved.groups[1].mgid);
    }
}

#[test]
fn a_map_that_is_no_fat_tree_takes_engines_for_any_map() {
    let fabric = "[fabric]\nkind = \"dumbbell\"\nhosts_per_side = 16\n";
    let from = GOOD.find("[groups]").unwrap();
    let text = format!("schema = 1\n{fabric}{}", &GOOD[from..]);
    assert!(refused(&text).contains("no CN/TN fat tree"));
    let text = text.replace(ALL, "\"mr4lms\", \"broadcast\"");
    assert!(resolve(&text).unwrap().trees.is_none());
    let message = number_groups(&text, "in/small.toml", &files()).unwrap_err();
    assert!(
        message.to_string().contains("no CN/TN fat tree"),
        "{message}"
    );
}

fn rows(folder: &Folder, file: &str) -> Vec<Row> {
    let file = File::open(folder.0.join(file)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn number(row: &Row, column: &str) -> u64 {
    let json = row.to_json_value();
    json[column].as_u64().unwrap_or(u64::MAX)
}

#[test]
fn results_agree_with_each_other() {
    let resolved = resolve(GOOD).unwrap();
    let out = Folder::new();
    let summary = run(&resolved, &out.0, &Progress::default()).unwrap();
    let names = |folder: &Folder| {
        let entries = fs::read_dir(&folder.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let all = [
        ".runs",
        "drawn.json",
        "links.parquet",
        "merges.parquet",
        "nodes.parquet",
        "summary.json",
        "tables.parquet",
        "trees.parquet",
    ];
    assert_eq!(names(&out), all);
    assert_eq!(fs::read_dir(out.0.join(".runs")).unwrap().count(), 0);
    let written = fs::read_to_string(out.0.join("summary.json")).unwrap();
    assert_eq!(
        written,
        serde_json::to_string_pretty(&summary).unwrap() + "\n"
    );

    let (trees, links) = (rows(&out, "trees.parquet"), rows(&out, "links.parquet"));
    for (engine, row) in summary["engines"].as_object().unwrap() {
        assert_eq!(row["error"], Json::Null, "{engine}");
        let of = |row: &&Row| row.to_json_value()["engine"] == engine.as_str();
        assert_eq!(row["groups"], 4 + 8);
        assert_eq!(trees.iter().filter(of).count(), 4 + 8);
        let efi: Vec<u64> = links
            .iter()
            .filter(of)
            .map(|row| number(row, "efi"))
            .collect();
        assert_eq!(efi.len(), resolved.fabric.links().len());
        assert_eq!(row["max_efi"].as_u64(), efi.iter().copied().max());
        let used: Vec<u64> = efi.into_iter().filter(|&efi| efi > 0).collect();
        let mean = used.iter().sum::<u64>() as f64 / used.len() as f64;
        assert!((row["mean_efi"].as_f64().unwrap() - mean).abs() < 1e-9);
        let counted = row["efi_distribution"].as_array().unwrap();
        let counted: u64 = counted.iter().map(|pair| pair[1].as_u64().unwrap()).sum();
        assert_eq!(counted, used.len() as u64);
    }
    // One tree for all groups: every host's link carries every group.
    let broadcast = &summary["engines"]["broadcast"];
    assert_eq!(
        (&broadcast["max_efi"], &broadcast["max_tfi"]),
        (&12.into(), &12.into())
    );
    assert_eq!(
        (&broadcast["trees_left"], &broadcast["merges"]),
        (&1.into(), &11.into())
    );
}

#[test]
fn the_written_tables_carry_every_group_to_its_members() {
    // A packet is followed through tables.parquet alone.
    let resolved = resolve(GOOD).unwrap();
    let out = Folder::new();
    run(&resolved, &out.0, &Progress::default()).unwrap();
    let fabric = &resolved.fabric;
    let mut tables = std::collections::BTreeMap::new();
    for row in rows(&out, "tables.parquet") {
        let json = row.to_json_value();
        let key = (
            json["engine"].as_str().unwrap().to_owned(),
            number(&row, "switch"),
            number(&row, "in_port"),
            number(&row, "colour"),
        );
        let ports: Vec<u64> = json["out_ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_u64().unwrap())
            .collect();
        assert!(!ports.is_empty() && !ports.contains(&key.2));
        assert!(tables.insert(key, ports).is_none(), "an entry twice");
    }
    for row in rows(&out, "trees.parquet") {
        let json = row.to_json_value();
        let engine = json["engine"].as_str().unwrap();
        let members: Vec<u64> = json["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m.as_u64().unwrap())
            .collect();
        let start = raddle_units::NodeId(members[0] as u32);
        let mut reached = vec![members[0]];
        let mut open = vec![fabric.first_port(start)];
        while let Some(port) = open.pop() {
            let peer = fabric.port(fabric.port(port).peer);
            if fabric.is_host(peer.node) {
                reached.push(peer.node.0.into());
                continue;
            }
            let key = (
                engine.to_owned(),
                peer.node.0.into(),
                peer.number.into(),
                number(&row, "colour"),
            );
            let first = fabric.first_port(peer.node).0;
            for out in tables.get(&key).into_iter().flatten() {
                open.push(raddle_units::PortId(first + *out as u32 - 1));
            }
            assert!(open.len() < 1000, "a loop");
        }
        for member in &members {
            let copies = reached.iter().filter(|&node| node == member).count();
            assert_eq!(copies, 1, "{engine}: {json}");
        }
        if engine != "broadcast" {
            assert_eq!(reached.len(), members.len(), "deliveries to others: {json}");
        }
    }
}

#[test]
fn with_one_table_per_switch_trees_of_a_colour_meet_in_no_switch() {
    let text = GOOD.replace("per-port", "per-switch");
    for colours in ["16", "3"] {
        let text = text.replace("colours = 8", &format!("colours = {colours}"));
        let resolved = resolve(&text).unwrap();
        let kind = registry::find("c-mr4lms-fixed").unwrap();
        let mut engine = (kind.make)(&resolved.setup()).unwrap();
        engine.route(&resolved.groups).unwrap();
        let trees = engine.trees();
        let mut taken = std::collections::BTreeSet::new();
        for tree in &trees {
            for branch in tree.branches(&resolved.fabric) {
                assert!(taken.insert((branch.switch, branch.colour)), "{tree:?}");
            }
            let hosts: Vec<_> = tree.hosts(&resolved.fabric).collect();
            for group in resolved
                .groups
                .iter()
                .filter(|g| tree.groups.contains(&g.mgid))
            {
                assert!(group.members.iter().all(|member| hosts.contains(member)));
            }
        }
        let routed: usize = trees.iter().map(|tree| tree.groups.len()).sum();
        assert_eq!(routed, resolved.groups.len());
        assert!(engine.cut_off().is_empty());
        // What the engine reports as written is what its trees need.
        let mode = engine.table_mode();
        let mut written = MulticastTables::new(&resolved.fabric, mode);
        let changes = engine.route(&resolved.groups).unwrap();
        written.apply(&changes.branches);
        assert_eq!(
            written,
            MulticastTables::of_trees(&resolved.fabric, mode, &engine.trees())
        );
    }
}

#[test]
fn no_bytes_make_a_route_file_panic() {
    // Edits of a good file: numbers stay small, so that nothing takes long to build.
    let mut state = 7u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..2000 {
        let mut text: Vec<char> = GOOD.chars().collect();
        for _ in 0..=next(3) {
            let at = next(text.len());
            match next(4) {
                0 => drop(text.drain(at..(at + next(12)).min(text.len()))),
                1 => text.insert(at, char::from(b"0123456789[]\"=.-\n#\xe9"[next(19)])),
                2 => text[at] = char::from(b' ' + next(95) as u8),
                _ => {
                    let from = next(text.len());
                    let part: Vec<char> = text[from..(from + 20).min(text.len())].to_vec();
                    text.splice(at..at, part);
                }
            }
        }
        let text: String = text.into_iter().collect();
        let long = text
            .split(|c: char| !c.is_ascii_digit())
            .any(|number| number.len() > 2);
        if long {
            continue;
        }
        match resolve(&text) {
            Ok(_) => taken += 1,
            Err(error) => {
                let message = error.to_string();
                assert!(message.lines().count() <= 24, "{message}");
                refused += 1;
            }
        }
    }
    assert!(
        refused > 200 && taken > 20,
        "{refused} refused, {taken} taken"
    );
}

#[test]
fn the_same_file_gives_the_same_tables() {
    let text = GOOD.replace(
        "pattern = \"grid\"\ndims = [8, 4]",
        "pattern = \"random\"\ncount = 9\nprocesses_per_terminal = 2\nseed = 7",
    );
    let folders = [Folder::new(), Folder::new()];
    for folder in &folders {
        run(&resolve(&text).unwrap(), &folder.0, &Progress::default()).unwrap();
    }
    for file in [
        "trees.parquet",
        "tables.parquet",
        "links.parquet",
        "merges.parquet",
        "drawn.json",
    ] {
        let [a, b] = [0, 1].map(|at: usize| fs::read(folders[at].0.join(file)).unwrap());
        assert_eq!(a, b, "{file}");
    }
}

#[test]
fn a_stopped_run_and_a_full_disk_leave_earlier_results_alone() {
    let resolved = resolve(GOOD).unwrap();
    let out = Folder::new();
    let stopped = Progress::default();
    stopped.cancel();
    assert!(matches!(
        run(&resolved, &out.0, &stopped),
        Err(PlanError::Cancelled)
    ));
    assert_eq!(fs::read_dir(out.0.join(".runs")).unwrap().count(), 0);
    fs::write(out.0.join("file"), "").unwrap();
    let error = run(&resolved, &out.0.join("file"), &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("file/.runs"), "{error}");
}

#[test]
fn an_engine_without_room_says_so_beside_the_others() {
    let text = GOOD
        .replace(ALL, "\"opensm\", \"broadcast\"")
        .replace("per-port", "per-switch");
    let out = Folder::new();
    let summary = run(&resolve(&text).unwrap(), &out.0, &Progress::default()).unwrap();
    let opensm = &summary["engines"]["opensm"];
    assert!(
        opensm["error"].as_str().unwrap().contains("colour"),
        "{opensm}"
    );
    assert_eq!(opensm["max_efi"], Json::Null);
    assert_eq!(summary["engines"]["broadcast"]["groups"], 12);
}

#[test]
fn the_resolved_file_resolves_to_the_same() {
    let resolved = resolve(GOOD).unwrap();
    let out = Folder::new();
    let summary = run(&resolved, &out.0, &Progress::default()).unwrap();
    let again = resolve(summary["file"].as_str().unwrap()).unwrap();
    assert_eq!(again.groups, resolved.groups);
    assert_eq!(again.fabric, resolved.fabric);
    assert_eq!(describe(&again), describe(&resolved));
}

#[test]
fn numbers_of_groups_follow_the_equations() {
    let answer = number_groups(GOOD, "in/small.toml", &files()).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    let (colours, m, p) = (8, 2, 2);
    for row in rows {
        // Equations (1) and (3), written out.
        let spt = row["mgid"].as_u64().unwrap() % (colours * m);
        assert_eq!(row["colour"], spt / m);
        assert_eq!(row["tree_group"], spt % m);
        assert_eq!(row["tn"], spt % m * p + spt / m % p);
    }
    // 4 rows and 8 columns on 16 trees: nobody shares.
    assert_eq!(answer["sharing"]["max_tfi"], 1);
    assert_eq!(answer["trees"], 16);
}

#[test]
fn fault_tolerance_counts_a_pair_as_one_tree() {
    let text = GOOD.replace("fault_tolerant = false", "fault_tolerant = true");
    let out = Folder::new();
    let summary = run(&resolve(&text).unwrap(), &out.0, &Progress::default()).unwrap();
    let row = &summary["engines"]["c-mr4lms-fixed"];
    assert_eq!(row["fault_tolerant"], true);
    let count = |key: &str| row[key].as_u64().unwrap();
    assert_eq!(count("trees_left") + count("merges"), count("groups"));
    let sums = |key: &str| {
        let pairs = row[key].as_array().unwrap().iter();
        pairs
            .map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()))
            .fold((0, 0), |(sum, all), (value, n)| (sum + value * n, all + n))
    };
    assert_eq!(
        sums("tfi_distribution"),
        (count("groups"), count("trees_left"))
    );
    assert_eq!(sums("efi_distribution").1, count("used_links"));
}

const JOBS: &str = "schema = 1\n[fabric]\nkind = \"cn-tn\"\nm = 2\nq = 2\np = 1\nk = 2\nw = 2\ncns = 4\n\
                    [[running]]\nname = \"old\"\nhosts = [0, \"h1\", 2]\n\
                    [[job]]\nname = \"one\"\nterminals = 1\n\
                    [[job]]\nname = \"cn\"\nterminals = 4\n\
                    [[job]]\nname = \"most\"\nterminals = 13\n\
                    [[job]]\nname = \"last\"\nterminals = 2\n";

fn place(text: &str, backfill: bool) -> Result<Json, String> {
    place_jobs(text, "in/jobs.toml", &files(), backfill, false).map_err(|error| error.to_string())
}

#[test]
fn a_queue_is_placed_in_order_and_a_refusal_names_its_rule() {
    // 16 terminals: 4 CNs of 2 L0 switches of 2; `old` has three of the first CN.
    let states = |answer: &Json| -> Vec<String> {
        let jobs = answer["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["state"].as_str().unwrap().to_owned())
            .collect()
    };
    let answer = place(JOBS, false).unwrap();
    assert_eq!(states(&answer), ["placed", "placed", "refused", "behind"]);
    let jobs = answer["jobs"].as_array().unwrap();
    assert_eq!(jobs[0]["class"], "T0");
    assert_eq!(jobs[0]["hosts"], serde_json::json!(["h3"]));
    assert_eq!(jobs[1]["cns"].as_array().unwrap().len(), 1);
    assert!(
        jobs[2]["reason"].as_str().unwrap().contains("rule"),
        "{answer}"
    );
    assert!(jobs[3]["reason"].as_str().unwrap().contains("most"));
    assert_eq!(states(&place(JOBS, true).unwrap())[3], "placed");
}

#[test]
fn bad_job_files_are_refused_with_their_place() {
    for (old, new, words) in [
        ("\"h1\"", "\"s16\"", ["jobs.toml", "no host `s16`"]),
        ("\"h1\"", "0", ["jobs.toml:10", "h0 twice"]),
        (
            "terminals = 1\n",
            "terminals = 0\n",
            ["jobs.toml:15:13", "at least 1"],
        ),
        ("\"one\"", "\"old\"", ["jobs.toml:13", "its own name"]),
        (
            "terminals = 4",
            "terminal = 4",
            ["jobs.toml:18:1", "did you mean `terminals`"],
        ),
        (
            "m = 2\nq = 2\np = 1\nk = 2\nw = 2\ncns = 4",
            "",
            ["jobs.toml:2", "`m` is missing in [fabric]"],
        ),
    ] {
        assert!(JOBS.contains(old));
        let message = place(&JOBS.replacen(old, new, 1), false).unwrap_err();
        for word in words {
            assert!(message.contains(word), "{new}: no {word} in\n{message}");
        }
    }
}

#[test]
fn corollary_2_gives_the_groups_of_a_table() {
    let request = |m, colours, groups: Option<u64>, fault_tolerant| CapacityRequest {
        m,
        colours,
        fault_tolerant,
        groups,
        dims: Vec::new(),
        processes_per_terminal: 1,
    };
    // 40-port switches with 256 entries.
    let answer = capacity(&request(20, 256, Some(5_120), false)).unwrap();
    assert_eq!(answer["groups_carried"], 5_120);
    assert_eq!(
        (&answer["colours_needed"], &answer["fits"]),
        (&256.into(), &true.into())
    );
    assert_eq!(answer["spare"], 0);
    let answer = capacity(&request(20, 256, Some(5_121), false)).unwrap();
    assert_eq!(
        (&answer["colours_needed"], &answer["fits"]),
        (&257.into(), &false.into())
    );
    assert_eq!(answer["layers"][0]["groups_per_tree"], 2);
    // Two trees for each group: half of m, rounded down.
    for m in 2..=9_u32 {
        let answer = capacity(&request(m, 7, None, true)).unwrap();
        assert_eq!(answer["groups_carried"], 7 * u64::from(m / 2));
        assert_eq!(answer["groups"], Json::Null);
    }
    let none = capacity(&request(20, 256, Some(0), false)).unwrap();
    assert_eq!(
        (&none["colours_needed"], &none["fits"]),
        (&0.into(), &true.into())
    );
    for (m, colours, two) in [
        (0, 1, false),
        (1, 1, true),
        (1, 0, false),
        (1, 65_536, false),
        (1, u32::MAX, true),
    ] {
        assert!(
            capacity(&request(m, colours, Some(u64::MAX), two)).is_err(),
            "{m} {colours}"
        );
    }
    for dims in [vec![0, 4], vec![8], vec![u32::MAX; 3], vec![u32::MAX; 40]] {
        let mut request = request(4, 8, None, false);
        request.dims = dims;
        assert!(capacity(&request).is_err(), "{request:?}");
    }
}

#[test]
fn groups_of_a_file_need_no_more_colours_than_the_worst_case() {
    let files = files();
    let plan = |text: &str| capacity_of_file(text, "in/small.toml", &files).unwrap();
    // A grid of 8 x 4 on m = 2: rows ceil(4 / 2), columns ceil(8 / 2).
    let answer = plan(GOOD);
    assert_eq!(answer["groups"], 12);
    assert_eq!(answer["colours_needed"], 2 + 4);
    assert_eq!(answer["fits"], true);
    let fewest = answer["fewest_colours"].as_u64().unwrap();
    assert!((2..=6).contains(&fewest), "{answer}");
    // What it says is so: no merges with that many, some with one fewer.
    for (colours, apart) in [(fewest, true), (fewest - 1, false)] {
        let text = GOOD.replace("colours = 8", &format!("colours = {colours}"));
        let merges = number_groups(&text, "in/small.toml", &files)
            .map(|found| found["sharing"]["merges"] == 0);
        assert_eq!(merges.unwrap_or(false), apart, "{colours} colours");
    }
    // Too few colours for the layers is an answer, not an error.
    let answer = plan(&GOOD.replace("colours = 8", "colours = 1"));
    assert_eq!(
        (&answer["fits"], &answer["colours_needed"]),
        (&false.into(), &6.into())
    );
    assert!(answer["refused"].as_str().unwrap().contains("2 layers"));
    // Communicators that share h1 need a colour each.
    let listed = GOOD.replace(
        "\"grid\"\ndims = [8, 4]",
        "\"file\"\nfile = \"groups.toml\"",
    );
    let answer = plan(&listed);
    assert_eq!(
        (&answer["groups"], &answer["fewest_colours"]),
        (&2.into(), &2.into())
    );
}

const LOOPY: &str =
    "kind = \"cn-tn\"\nm = 2\nq = 3\np = 2\nk = 2\nw = 2\ncns = 4\nterminals_per_l0 = 4";

#[test]
fn c_mr4lms_closes_no_credit_loop() {
    // Few colours and processes that crowd the links: MR4LMS may close loops here, the others must not.
    let text = GOOD
        .replace(
            "kind = \"cn-tn\"\nm = 2\nq = 4\np = 2\nk = 2\nw = 2\ncns = 4",
            LOOPY,
        )
        .replace(
            "pattern = \"grid\"\ndims = [8, 4]",
            "pattern = \"random\"\ncount = 40\nprocesses_per_terminal = 4\nmembers_per_group = 4",
        )
        .replace("colours = 8", "colours = 4\ncredit_check = true")
        .replace(
            ALL,
            "\"mr4lms\", \"c-mr4lms-fixed\", \"c-mr4lms-dynamic\", \"broadcast\"",
        );
    for seed in 1..=12 {
        let text = text.replace("count = 40", &format!("count = 40\nseed = {seed}"));
        let resolved = resolve(&text).unwrap_or_else(|error| panic!("{error}"));
        let out = Folder::new();
        let summary = run(&resolved, &out.0, &Progress::default()).unwrap();
        for (name, row) in summary["engines"].as_object().unwrap() {
            assert!(row["credit_check_s"].as_f64().is_some_and(|s| s > 0.0));
            assert_eq!(row["credit_check_error"], Json::Null);
            if name == "mr4lms" {
                if let Some(circle) = row["credit_loop"].as_str() {
                    let names: Vec<&str> = circle.split(" -> ").collect();
                    assert!(names.len() > 3 && names.first() == names.last(), "{circle}");
                }
            } else {
                assert_eq!(row["credit_loop"], Json::Null, "{name}, seed {seed}");
            }
        }
    }
}
