use raddle_engine::{Discard, Progress, RunSummary, simulate};
use raddle_replay::JobTime;
use raddle_units::{Bytes, Span};

use crate::{MemoryFiles, PlannedRun, Resolved, Variant};

const STAR: &str = r#"schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 16
spines = 1
host_rate = "100Gbps"
fabric_rate = "100Gbps"
delay = "1us"
[simulation]
schemes = ["none"]
[hosts]
gap_share = 0.0
start_skew = "0s"
"#;

fn job(name: &str, program: &str, more: &str) -> String {
    format!("[[job]]\nname = \"{name}\"\nprogram = {{ {program} }}\n{more}\n")
}

fn collective(kind: &str, size: &str, repeat: u32) -> String {
    format!(
        "generator = \"collective\", collective = \"{kind}\", size = \"{size}\", repeat = {repeat}"
    )
}

fn resolved(text: &str) -> Resolved {
    match Resolved::new(text, "jobs.toml", &MemoryFiles::default()) {
        Ok(resolved) => resolved,
        Err(error) => panic!("{error}"),
    }
}

fn run(resolved: &Resolved, run: &PlannedRun) -> (RunSummary, Vec<JobTime>) {
    let (config, progress) = (resolved.run_config(run), Progress::default());
    let (summary, after) = resolved
        .drive(run, &MemoryFiles::default(), |workload| {
            simulate(
                &resolved.network,
                &config,
                workload,
                &mut Discard,
                &progress,
            )
            .unwrap()
        })
        .unwrap();
    let jobs = resolved.jobs(run).unwrap();
    let times = jobs
        .set
        .times(after.ended, |job| resolved.takes_part(run, job));
    (summary, times)
}

fn time(text: &str) -> Span {
    let resolved = resolved(text);
    let (summary, jobs) = run(&resolved, &resolved.runs[0]);
    assert_eq!((summary.drops, jobs.len()), (0, 1));
    jobs[0].time.expect("it ends")
}

fn within_a_percent(found: Span, expected: Span) {
    let ratio = found.0 as f64 / expected.0 as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{found} instead of {expected}");
}

/// Time of a byte at 100 Gbit/s.
const BYTE: Span = Span(80);

/// One way through the switch: packets of 1000 B and their headers follow each other on the first link, and the longest of them
/// is sent once more.
fn way(bytes: u64) -> Span {
    let header = 48;
    let on_wire = bytes + bytes.div_ceil(1000).max(1) * header;
    BYTE * (on_wire + bytes.min(1000) + header) + Span::from_us(2)
}

/// The same where each host sends and receives at once: acknowledgements of 60 B share the links with the packets that leave after
/// the first one came.
fn way_beside_another(bytes: u64) -> Span {
    let packet = BYTE * 1048;
    let before = way(1000).0.div_ceil(packet.0);
    way(bytes) + BYTE * 60 * bytes.div_ceil(1000).saturating_sub(before)
}

/// LogGP's overheads of a message, and its copies at both ends; long ones are not copied.
fn overheads(bytes: u64) -> Span {
    let copied = if bytes > 64 << 10 { 0 } else { bytes };
    Span::from_ns(800) + Span(200) * copied
}

#[test]
fn a_ring_takes_the_time_of_its_steps() {
    for ranks in [2_u64, 5, 8, 13, 16] {
        let bytes: u64 = 160 << 10;
        let size = format!("{bytes}B");
        let text = job(
            "ring",
            &collective("allreduce", &size, 1),
            &format!("ranks = {ranks}"),
        );
        let share = bytes.div_ceil(ranks);
        let one = overheads(share) + way_beside_another(share + 32);
        within_a_percent(time(&(STAR.to_owned() + &text)), one * (2 * (ranks - 1)));
    }
}

/// Two ranks are the roots of one tree each: halves go up at once, then sums come down at once.
#[test]
fn a_double_tree_of_two_takes_two_steps_of_half_the_operand() {
    for bytes in [64_u64, 2 << 10, 32 << 10, 100 << 10, 256 << 10] {
        let more = "ranks = 2\nalgorithms = { allreduce = \"double-tree\" }";
        let program = collective("allreduce", &format!("{bytes}B"), 1);
        let half = bytes / 2;
        let one = overheads(half) + way_beside_another(half + 32);
        within_a_percent(
            time(&(STAR.to_owned() + &job("trees", &program, more))),
            one * 2,
        );
    }
}

/// A half of the operand in one chunk climbs 2^k ranks in k steps and comes down in k. Parents of two take them in one after the
/// other, and send to them one after the other; the root has one child. That is 2 k ways and (3 k - 1) times the overheads.
#[test]
fn two_trees_take_the_time_of_their_longest_way() {
    for steps in 1..=4_u64 {
        for bytes in [16_u64, 64, 1000] {
            let ranks = 1 << steps;
            let more = format!("ranks = {ranks}\nalgorithms = {{ allreduce = \"double-tree\" }}");
            let program = collective("allreduce", &format!("{bytes}B"), 1);
            let half = bytes / 2;
            let expected = way(half + 32) * (2 * steps) + overheads(half) * (3 * steps - 1);
            let text = STAR.to_owned() + &job("trees", &program, &more);
            within_a_percent(time(&text), expected);
        }
    }
}

#[test]
fn a_sum_in_a_switch_takes_one_way_there_and_back() {
    for (ranks, repeat) in [(2, 1), (8, 1), (16, 5)] {
        let program = collective("allreduce", "8B", repeat);
        let more = format!("ranks = {ranks}\ncollectives = \"offload\"");
        let text =
            STAR.to_owned() + &job("sum", &program, &more) + "[offload]\ncompute = \"500ns\"";
        // Overheads and copies of 8 B at both ends, two links, the switch's unit for each member's packet.
        let copies = Span(100) * 16;
        let packets = Span::from_ns(500) * ranks;
        let one = Span::from_ns(800) + copies + Span::from_us(2) + Span(2 * 130 * 80) + packets;
        within_a_percent(time(&text), one * u64::from(repeat));
    }
}

#[test]
fn a_message_to_a_group_takes_one_way() {
    let more = "ranks = 16\ncollectives = \"multicast\"";
    let text = STAR.to_owned() + &job("tree", &collective("bcast", "4000B", 1), more);
    within_a_percent(time(&text), overheads(4000) + way(4032));
}

#[test]
fn jobs_that_share_no_link_do_not_touch_each_other() {
    let exchange = "generator = \"application\", application = \"laser-fusion\", exchanges = 3";
    let text = STAR.to_owned()
        + &job("one", exchange, "ranks = 16")
        + &job("other", &collective("alltoall", "1MiB", 2), "ranks = 16");
    let resolved = resolved(&text);
    let names: Vec<&str> = resolved.runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "none-seed1-loaded",
            "none-seed1-alone-one",
            "none-seed1-alone-other"
        ]
    );
    let (_, together) = run(&resolved, &resolved.runs[0]);
    let alone: Vec<JobTime> = resolved.runs[1..]
        .iter()
        .flat_map(|twin| run(&resolved, twin).1)
        .collect();
    assert_eq!(together, alone);
}

/// Below one switch nobody meets: a job that keeps to one link takes what it takes where nobody has more, the other one less.
#[test]
fn a_job_keeps_to_one_link_beside_one_that_uses_both() {
    let program = collective("allgather", "1MB", 2);
    let rails = "[rails]\nrates = [\"100Gbps\", \"100Gbps\"]\n";
    let text = |more: &str| {
        let jobs = job("one", &program, &format!("ranks = 4\n{more}"))
            + &job("two", &program, "ranks = 4");
        format!("{STAR}{rails}{jobs}").replace("schemes = [\"none\"]", "alone = false")
            + "[[setup]]\nname = \"both\"\n[[setup]]\nname = \"first\"\nscheme = \"swift\"\nrails = false\n"
    };
    let times = |more: &str| {
        let resolved = resolved(&text(more));
        let runs = resolved.runs.iter().filter(|planned| planned.seed == 1);
        let found: Vec<Vec<Span>> = runs
            .map(|planned| {
                run(&resolved, planned)
                    .1
                    .iter()
                    .map(|job| job.time.unwrap())
                    .collect()
            })
            .collect();
        found
    };
    let (mixed, all) = (times("rails = false"), times(""));
    assert_eq!(mixed[1], all[1]);
    assert_eq!(mixed[0], [all[1][0], all[0][1]]);
    let gain = mixed[0][0].0 as f64 / mixed[0][1].0 as f64;
    assert!((1.3..2.1).contains(&gain), "{gain}");
}

#[test]
fn every_switch_is_good_with_every_other() {
    let fabrics = [
        "kind = \"leaf-spine\"\nleaves = 3\nhosts_per_leaf = 4\nspines = 2",
        "kind = \"k-ary-fat-tree\"\nk = 4",
        "kind = \"cn-tn\"\nm = 2\nq = 2\np = 1\nk = 2\nw = 2",
    ];
    let carriers = [
        "\"host\"",
        "\"multicast\"",
        "\"offload\"",
        "{ allreduce = \"multicast\", barrier = \"offload\", bcast = \"multicast\", reduce = \"offload\" }",
    ];
    let mut runs = 0;
    for fabric in fabrics {
        let mut text = format!(
            "schema = 1\n[fabric]\n{fabric}\n[rails]\nrates = [\"100Gbps\", \"100Gbps\"]\n[simulation]\nalone = false\n"
        );
        text += "[traffic]\ngenerator = \"permutation\"\nsize = \"20KB\"\n";
        for kind in ["allreduce", "barrier", "bcast", "reduce"] {
            let more = "ranks = 4\nranks_per_host = 2\nplacement = \"random\"";
            text += &job(kind, &collective(kind, "3000B", 3), more);
        }
        let particles =
            "generator = \"application\", application = \"particle-in-cell\", exchanges = 2";
        text += &job(
            "particles",
            particles,
            "ranks = 8\nranks_per_host = 2\nrails = false",
        );
        for (number, carrier) in carriers.iter().enumerate() {
            for scheduling in ["none", "reorder", "aggregate", "both", "published"] {
                for rails in [false, true] {
                    let name = format!("{number}-{scheduling}-{rails}");
                    text += &format!(
                        "[[setup]]\nname = \"{name}\"\ncollectives = {carrier}\nscheduling = \"{scheduling}\"\nrails = {rails}\n"
                    );
                }
            }
        }
        let resolved = resolved(&text);
        for planned in &resolved.runs {
            let (summary, jobs) = run(&resolved, planned);
            assert_eq!(summary.drops, 0, "{}", planned.name);
            assert_eq!(
                summary.flows_started, summary.flows_finished,
                "{}",
                planned.name
            );
            for job in jobs {
                assert!(job.time.is_some(), "{}: {}", planned.name, job.name);
                let calls = job.collectives;
                let all = calls.host + calls.multicast + calls.offload;
                assert_eq!(all, 3 * u64::from(job.name != "particles"));
            }
            runs += 1;
        }
    }
    assert_eq!(runs, 120);
}

#[test]
fn communicators_without_room_stay_with_their_hosts() {
    let more = "ranks = 8\ncollectives = \"offload\"";
    let sum = collective("allreduce", "8B", 4);
    let text = STAR.to_owned()
        + &job("first", &sum, more)
        + &job("second", &sum, more)
        + "[offload]\ngroups = 1\n";
    let resolved = resolved(&text);
    let (_, jobs) = run(&resolved, &resolved.runs[0]);
    let carried: Vec<(u64, u64)> = jobs
        .iter()
        .map(|job| (job.collectives.offload, job.collectives.host))
        .collect();
    assert_eq!(carried, [(4, 0), (0, 4)]);
}

#[test]
fn what_a_setup_leaves_out_moves_nobody() {
    let text = STAR.replace("schemes = [\"none\"]", "")
        + &job(
            "one",
            &collective("alltoall", "1MiB", 2),
            "ranks = 16\nplacement = \"random\"",
        )
        + &job(
            "other",
            &collective("alltoall", "1MiB", 2),
            "ranks = 16\nplacement = \"random\"",
        )
        + "[traffic]\ngenerator = \"poisson\"\nload = 0.2\nduration = \"50us\"\nsizes = \"mice-and-elephants\"\n"
        + "[[setup]]\nname = \"all\"\n[[setup]]\nname = \"quiet\"\nwithout = [\"other\", \"poisson\"]\n";
    let resolved = resolved(&text);
    let planned = |name: &str, variant| {
        let found = resolved
            .runs
            .iter()
            .find(|run| resolved.schemes[run.scheme].name == name && run.variant == variant);
        run(&resolved, found.unwrap()).1
    };
    let quiet = planned("quiet", Variant::Loaded);
    assert_eq!(quiet.len(), 1);
    assert_eq!(quiet, planned("all", Variant::Alone(0)));
    assert_ne!(quiet[0].time, planned("all", Variant::Loaded)[0].time);
}

#[test]
fn a_run_that_is_cut_short_has_no_times() {
    let text = STAR.replace("[hosts]", "end = \"5us\"\n[hosts]")
        + &job("long", &collective("allreduce", "1MiB", 3), "ranks = 8");
    let resolved = resolved(&text);
    let (_, jobs) = run(&resolved, &resolved.runs[0]);
    assert_eq!(jobs[0].time, None);
    assert_eq!(jobs[0].ranks, 8);
}

#[test]
fn bytes_of_an_operand_decide_who_carries_it() {
    let more = "ranks = 8\ncollectives = { allreduce = \"offload\", largest = \"100B\" }";
    for (size, offload) in [(Bytes(100), 2), (Bytes(104), 0)] {
        let sum = collective("allreduce", &size.to_string(), 2);
        let resolved = resolved(&(STAR.to_owned() + &job("sum", &sum, more)));
        let (_, jobs) = run(&resolved, &resolved.runs[0]);
        assert_eq!(jobs[0].collectives.offload, offload, "{size}");
    }
}
