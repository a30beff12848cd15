//! Runs to disk and back: whole or absent, the same bytes every time, joined in the plan's order.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use arrow_array::{Array, StringArray, UInt16Array, UInt32Array, UInt64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::*;
use crate::{MemoryFiles, Resolved};
use raddle_engine::Progress;

const TWO: &str = r#"schema = 1
[fabric]
kind = "dumbbell"
hosts_per_side = 3
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["pint", "dcqcn"]
seeds = [3, 1]
[record]
acks = true
"#;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("raddle-results-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn resolve(text: &str) -> Resolved {
    Resolved::new(text, "two.toml", &MemoryFiles::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run_all(resolved: &Resolved, out: &Path, order: impl IntoIterator<Item = usize>) {
    run_all_on(resolved, out, order, 1);
}

fn run_all_on(
    resolved: &Resolved,
    out: &Path,
    order: impl IntoIterator<Item = usize>,
    threads: usize,
) {
    for index in order {
        run_planned(
            resolved,
            index,
            out,
            &MemoryFiles::default(),
            threads,
            &Progress::default(),
        )
        .unwrap();
    }
    merge(resolved, out).unwrap();
}

/// All Parquet files at the top and in `isolated`, with their bytes.
fn tables(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in [out.to_owned(), out.join("isolated")] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let name = entry
                    .path()
                    .strip_prefix(out)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn column<T: Array + Clone + 'static>(file: &Path, name: &str) -> Vec<T> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(file).unwrap()).unwrap();
    let batches = reader.build().unwrap().map(Result::unwrap);
    batches
        .map(|batch| {
            batch
                .column_by_name(name)
                .unwrap()
                .as_any()
                .downcast_ref::<T>()
                .unwrap()
                .clone()
        })
        .collect()
}

#[test]
fn parts_are_joined_in_the_order_of_the_plan_whatever_order_and_threads_they_ran_in() {
    let (resolved, forth, back) = (resolve(TWO), Folder::new(), Folder::new());
    run_all(&resolved, &forth.0, 0..4);
    run_all_on(&resolved, &back.0, (0..4).rev(), 3);
    assert_eq!(tables(&forth.0), tables(&back.0));
    let names: Vec<String> = tables(&forth.0).into_keys().collect();
    assert_eq!(
        names,
        [
            "acks.parquet",
            "flow_throughput.parquet",
            "flows.parquet",
            "links.parquet",
            "nodes.parquet",
            "pauses.parquet",
            "ports.parquet",
            "queues.parquet",
            "throughput.parquet",
        ]
    );
    let flows = forth.0.join("flows.parquet");
    let schemes: Vec<String> = column::<StringArray>(&flows, "scheme")
        .iter()
        .flat_map(|part| {
            part.iter()
                .map(|scheme| scheme.unwrap().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let seeds: Vec<u64> = column::<UInt64Array>(&flows, "seed")
        .iter()
        .flat_map(|part| part.values().to_vec())
        .collect();
    let mut order: Vec<(String, u64)> = schemes.into_iter().zip(seeds).collect();
    order.dedup();
    let expected = [("pint", 3), ("pint", 1), ("dcqcn", 3), ("dcqcn", 1)];
    assert_eq!(
        order,
        expected.map(|(scheme, seed)| (scheme.to_owned(), seed))
    );
}

#[test]
fn columns_name_their_unit() {
    let (resolved, out) = (resolve(TWO), Folder::new());
    run_all(&resolved, &out.0, [0]);
    let reader = ParquetRecordBatchReaderBuilder::try_new(
        fs::File::open(out.0.join("flows.parquet")).unwrap(),
    );
    let schema = reader.unwrap().schema().clone();
    assert_eq!(
        schema.field_with_name("fct_ps").unwrap().metadata()["unit"],
        "ps"
    );
    assert_eq!(
        schema.field_with_name("size_bytes").unwrap().metadata()["unit"],
        "B"
    );
}

#[test]
fn a_flow_that_the_run_left_unfinished_has_no_completion_time() {
    let (resolved, out) = (
        resolve(&TWO.replace("[record]", "end = \"3us\"\n[record]")),
        Folder::new(),
    );
    run_all(&resolved, &out.0, 0..4);
    let fct = column::<UInt64Array>(&out.0.join("flows.parquet"), "fct_ps");
    let flows: usize = fct.iter().map(Array::len).sum();
    let absent: usize = fct.iter().map(Array::null_count).sum();
    assert_eq!((flows, absent), (24, 24));
}

#[test]
fn a_cancelled_run_leaves_nothing() {
    let (resolved, out) = (resolve(&TWO.replace("64KiB", "20MB")), Folder::new());
    let progress = Progress::default();
    progress.cancel();
    let files = MemoryFiles::default();
    let error = run_planned(&resolved, 0, &out.0, &files, 1, &progress).unwrap_err();
    assert!(matches!(error, ResultsError::Cancelled { .. }), "{error}");
    assert_eq!(fs::read_dir(out.0.join(".runs")).unwrap().count(), 0);
}

#[test]
fn what_a_killed_process_left_behind_goes_away() {
    let (resolved, out) = (resolve(TWO), Folder::new());
    let name = &resolved.runs[0].name;
    let left = out.0.join(".runs").join(format!(".{name}.1.tmp"));
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("flows.parquet"), "half").unwrap();
    fs::write(out.0.join(".flows.parquet.1.tmp"), "half").unwrap();
    run_all(&resolved, &out.0, [0]);
    assert!(!left.exists() && !out.0.join(".flows.parquet.1.tmp").exists());
    assert!(part_folder(&out.0, name).join("stats.json").exists());
}

#[test]
fn results_of_another_version_of_the_experiment_are_not_joined() {
    let out = Folder::new();
    run_all(&resolve(TWO), &out.0, 0..4);
    let other = resolve(&TWO.replace("64KiB", "32KiB"));
    run_all(&other, &out.0, [1]);
    let sizes = column::<UInt64Array>(&out.0.join("flows.parquet"), "size_bytes");
    assert!(
        sizes
            .iter()
            .all(|part| part.values().iter().all(|&size| size == 32 << 10))
    );
}

#[test]
fn a_twin_goes_to_its_own_folder() {
    let text = r#"schema = 1
[fabric]
kind = "dumbbell"
hosts_per_side = 20
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["none"]
end = "50us"
"#;
    let (resolved, out) = (resolve(text), Folder::new());
    run_all(&resolved, &out.0, 0..2);
    let rows = |file: &str| -> usize {
        column::<StringArray>(&out.0.join(file), "class")
            .iter()
            .map(Array::len)
            .sum()
    };
    assert!(
        rows("flows.parquet") > rows("isolated/flows.parquet")
            && rows("isolated/flows.parquet") > 0
    );
    assert!(out.0.join("isolated/links.parquet").exists());
    // The next experiment in the same folder has no twin, so none is left over.
    let plain = resolve(TWO);
    run_all(&plain, &out.0, 0..4);
    assert!(!out.0.join("isolated").exists());
}

#[test]
fn what_the_system_refuses_is_told_with_its_path() {
    let (resolved, out) = (resolve(TWO), Folder::new());
    let file = out.0.join("file");
    fs::write(&file, "in the way").unwrap();
    let error = run_planned(
        &resolved,
        0,
        &file,
        &MemoryFiles::default(),
        1,
        &Progress::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("file/.runs"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_not_a_short_file() {
    // /dev/full refuses every write.
    let schema = tables::Table::Pauses.schema();
    let mut writer = raddle_tables::TableWriter::create("/dev/full".into(), schema).unwrap();
    for node in 0..200_000 {
        writer.row(&[
            raddle_tables::Cell::Text("none"),
            raddle_tables::Cell::U64(1),
            raddle_tables::Cell::U32(node),
            raddle_tables::Cell::U16(1),
            raddle_tables::Cell::U64(u64::from(node) * 977),
            raddle_tables::Cell::U64(u64::from(node) * 991),
        ]);
    }
    let error = writer.finish().unwrap_err();
    assert!(error.to_string().contains("/dev/full"), "{error}");
    assert!(error.to_string().contains("No space left"), "{error}");
}

/// `TWO` with ways and the series of some ports.
fn watched(series: &str) -> String {
    TWO.replace(
        "acks = true",
        &format!("paths = true\nsample_interval = \"200ns\"\n{series}"),
    )
}

#[test]
fn every_flow_has_its_way_hop_by_hop() {
    let (resolved, out) = (resolve(&watched("")), Folder::new());
    run_all(&resolved, &out.0, 0..4);
    let file = out.0.join("paths.parquet");
    let all = |name| -> Vec<u32> {
        let parts = column::<UInt32Array>(&file, name);
        parts
            .iter()
            .flat_map(|part| part.values().to_vec())
            .collect()
    };
    let (src, dst, node, peer) = (all("src"), all("dst"), all("node"), all("peer"));
    let hops: Vec<u16> = column::<UInt16Array>(&file, "hop")
        .iter()
        .flat_map(|part| part.values().to_vec())
        .collect();
    let names: Vec<String> = column::<StringArray>(&file, "name")
        .iter()
        .flat_map(|part| {
            part.iter()
                .map(|name| name.unwrap().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(hops.iter().filter(|&&hop| hop == 0).count(), 4 * 6);
    let fabric = &resolved.network.fabric;
    for row in 0..hops.len() {
        assert_eq!(
            names[row],
            fabric.node_name(raddle_units::NodeId(node[row]))
        );
        if hops[row] == 0 {
            assert_eq!(node[row], src[row]);
        } else {
            assert_eq!((hops[row], node[row]), (hops[row - 1] + 1, peer[row - 1]));
        }
        let last = hops.get(row + 1).is_none_or(|&next| next == 0);
        assert_eq!(peer[row] == dst[row], last);
    }
    assert!(!out.0.join("port_queues.parquet").exists());
}

/// All ports of both switches are recorded, and the busiest of them by themselves: the same rows, chosen by the mean queue.
#[test]
fn the_busiest_ports_are_those_with_the_longest_queues() {
    let most = 3;
    let (all, some) = (Folder::new(), Folder::new());
    let every = resolve(&watched("ports = [\"s6\", \"s7\"]"));
    run_all(&every, &all.0, 0..4);
    let busiest = resolve(&watched(&format!("busiest = {most}")));
    run_all(&busiest, &some.0, 0..4);
    for run in &every.runs {
        let read = |out: &Path| {
            let file = part_folder(out, &run.name).join("port_queues.parquet");
            let times = column::<UInt64Array>(&file, "time_ps");
            let nodes = column::<UInt32Array>(&file, "node");
            let ports = column::<UInt16Array>(&file, "port");
            let queues = column::<UInt64Array>(&file, "queue_bytes");
            let sent = column::<UInt64Array>(&file, "tx_bytes");
            let mut rows = Vec::new();
            for part in 0..times.len() {
                for row in 0..times[part].len() {
                    let port = (nodes[part].value(row), ports[part].value(row));
                    let figures = (queues[part].value(row), sent[part].value(row));
                    rows.push((times[part].value(row), port, figures));
                }
            }
            rows
        };
        let (all, some) = (read(&all.0), read(&some.0));
        let mut sums: BTreeMap<(u32, u16), (u64, u64)> = BTreeMap::new();
        for (_, port, (queue, sent)) in &all {
            let sum = sums.entry(*port).or_default();
            *sum = (sum.0 + queue, sum.1 + sent);
        }
        assert_eq!(sums.len(), 8);
        let mut order: Vec<_> = sums.into_iter().collect();
        order.sort_by_key(|&(port, sum)| (std::cmp::Reverse(sum), port));
        assert!(order[0].1.0 > 0);
        let chosen: Vec<_> = order[..most].iter().map(|entry| entry.0).collect();
        let mut expected = all.clone();
        expected.retain(|(_, port, _)| chosen.contains(port));
        assert_eq!(some, expected, "{}", run.name);
        assert_eq!(some.len() * 8, all.len() * most);
    }
    // Nothing of the gathering is left.
    let part = part_folder(&some.0, &busiest.runs[0].name);
    assert!(part.join("port_queues.parquet").exists());
    assert!(!part.join("port_queues.samples").exists());
}

#[test]
fn a_damaged_part_is_named() {
    let (resolved, out) = (resolve(TWO), Folder::new());
    run_all(&resolved, &out.0, [0]);
    let part = part_folder(&out.0, &resolved.runs[0].name).join("flows.parquet");
    let mut bytes = fs::read(&part).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&part, bytes).unwrap();
    let before = tables(&out.0);
    let error = merge(&resolved, &out.0).unwrap_err();
    assert!(matches!(error, ResultsError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("flows.parquet"), "{error}");
    assert_eq!(tables(&out.0), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_same_experiment_gives_the_same_bytes(
        seed in 0u64..1000,
        scheme in prop::sample::select(vec!["none", "dctcp", "dcqcn", "timely", "hpcc", "pint", "swift"]),
        hosts in 2u32..6,
        size_kib in 1u32..200,
        buffer_kib in 256u32..4096,
        compat in any::<bool>(),
        incast in any::<bool>(),
    ) {
        let traffic = if incast { "incast" } else { "permutation" };
        let sources = if incast { format!("sources = {}\n", 2 * hosts - 1) } else { String::new() };
        let compat = if compat { "compat = \"hpcc-ns3\"\n" } else { "" };
        let text = format!(
            "schema = 1\n[fabric]\nkind = \"dumbbell\"\nhosts_per_side = {hosts}\n\
             [traffic]\ngenerator = \"{traffic}\"\n{sources}size = \"{size_kib}KiB\"\n\
             [simulation]\nschemes = [\"{scheme}\"]\nseeds = [{seed}]\nbuffer = \"{buffer_kib}KiB\"\n{compat}\
             [record]\nacks = true\npaths = true\nbusiest = 2\n"
        );
        // Small buffers cannot hold the headroom; that is refused, and not the subject here.
        let Ok(resolved) = Resolved::new(&text, "e.toml", &MemoryFiles::default()) else { return Ok(()) };
        let again = Resolved::new(&text, "e.toml", &MemoryFiles::default()).unwrap();
        let (first, second) = (Folder::new(), Folder::new());
        run_all(&resolved, &first.0, [0]);
        run_all(&again, &second.0, [0]);
        prop_assert_eq!(tables(&first.0), tables(&second.0));
    }
}

const GRID: &str = r#"schema = 1
[fabric]
kind = "cn-tn"
m = 2
q = 2
p = 1
k = 2
w = 2
[traffic]
generator = "multicast"
dims = [4, 4]
rounds = 3
[simulation]
schemes = ["none", "hpcc"]
retransmission_timeout = "100us"
max_timeouts = 2
"#;

/// The link of one host is cut: it is the member that misses messages, and its own wait for no one else.
#[test]
fn members_that_miss_messages_are_in_the_table_and_in_the_stats() {
    let whole = resolve(GRID);
    let fabric = &whole.network.fabric;
    let host = fabric.hosts()[5];
    let switch = fabric.peer_node(fabric.first_port(host));
    let cut = format!(
        "faults = [{{ link = [{}, {}], down = \"0ms\" }}]\n",
        host.0, switch.0
    );
    let (resolved, folder) = (resolve(&format!("{GRID}{cut}")), Folder::new());
    run_all(&resolved, &folder.0, 0..2);
    let file = folder.0.join("members.parquet");
    let members: Vec<u32> = column::<UInt32Array>(&file, "member")
        .iter()
        .flat_map(|part| part.values().to_vec())
        .collect();
    let delivered: Vec<Option<u64>> = column::<UInt64Array>(&file, "delivered_ps")
        .iter()
        .flat_map(|part| part.iter().collect::<Vec<_>>())
        .collect();
    let missed = delivered.iter().filter(|at| at.is_none()).count() as u64;
    let mut stats = [0, 0];
    for run in &resolved.runs {
        let text =
            fs::read_to_string(part_folder(&folder.0, &run.name).join("stats.json")).unwrap();
        let run: RunStats = serde_json::from_str(&text).unwrap();
        let multicast = run.multicast.unwrap();
        stats[0] += multicast.members_reached;
        stats[1] += multicast.members_missed;
    }
    assert_eq!(stats, [delivered.len() as u64 - missed, missed]);
    assert!(stats[0] > 0 && stats[1] > 0);
    let senders: Vec<u32> = column::<UInt32Array>(&file, "src")
        .iter()
        .flat_map(|part| part.values().to_vec())
        .collect();
    for ((member, sender), at) in members.iter().zip(senders).zip(&delivered) {
        assert_eq!(at.is_none(), *member == host.0 || sender == host.0);
    }
    // Runs without groups have neither.
    let (plain, other) = (resolve(TWO), Folder::new());
    run_all(&plain, &other.0, 0..1);
    assert!(!other.0.join("members.parquet").exists());
    let stats = part_folder(&other.0, &plain.runs[0].name).join("stats.json");
    assert!(!fs::read_to_string(stats).unwrap().contains("multicast"));
}
