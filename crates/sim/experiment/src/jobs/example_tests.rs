//! Every combination of switches on every example of the repository: nothing is lost, and sums are right.

use raddle_disk::DiskFiles;
use raddle_engine::{Discard, Progress, RunSummary, simulate};
use toml::{Table, Value};

use crate::{PlannedRun, Resolved};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../");
const SCHEMES: [&str; 7] = ["none", "dctcp", "dcqcn", "timely", "hpcc", "pint", "swift"];
const SCHEDULES: [&str; 6] = [
    "none",
    "reorder",
    "aggregate",
    "both",
    "published",
    "library",
];
const CARRIERS: [&str; 4] = [
    "\"host\"",
    "\"multicast\"",
    "\"offload\"",
    "{ allreduce = \"offload\", reduce = \"offload\", barrier = \"multicast\", bcast = \"multicast\" }",
];

/// What is switched on.
#[derive(Clone, Copy)]
struct Switches {
    /// Without rails; these have their own.
    scheme: &'static str,
    rails: bool,
    carrier: &'static str,
    schedule: &'static str,
}

/// All that an example can have: schemes where there are no rails, and what jobs have, if there are jobs.
fn combinations(has_jobs: bool, may_have_rails: bool) -> Vec<Switches> {
    let ways = SCHEMES.map(|scheme| (scheme, false)).into_iter();
    let ways = ways.chain(may_have_rails.then_some(("none", true)));
    let of_jobs: Vec<(&str, &str)> = if has_jobs {
        let all = CARRIERS.iter();
        all.flat_map(|carrier| SCHEDULES.map(|schedule| (*carrier, schedule)))
            .collect()
    } else {
        vec![(CARRIERS[0], SCHEDULES[0])]
    };
    ways.flat_map(|(scheme, rails)| {
        of_jobs.iter().map(move |&(carrier, schedule)| Switches {
            scheme,
            rails,
            carrier,
            schedule,
        })
    })
    .collect()
}

impl Switches {
    fn setup(self, name: &str) -> String {
        let Self {
            scheme,
            rails,
            carrier,
            schedule,
        } = self;
        let scheme = if rails {
            String::new()
        } else {
            format!("scheme = \"{scheme}\"\nrails = false\n")
        };
        format!(
            "[[setup]]\nname = \"{name}\"\ncollectives = {carrier}\nscheduling = \"{schedule}\"\n{scheme}"
        )
    }
}

/// An example without what it says of schemes, rails, seeds and setups.
fn bare(path: &str, change: impl FnOnce(&mut Table)) -> Table {
    let text = std::fs::read_to_string(format!("{ROOT}{path}")).unwrap();
    let mut example: Table = text.parse().unwrap();
    for key in ["setup", "rails", "schemes"] {
        example.remove(key);
    }
    change(&mut example);
    example
}

fn simulation(example: &mut Table) -> &mut Table {
    let empty = Value::Table(Table::new());
    let table = example.entry("simulation").or_insert(empty);
    table.as_table_mut().unwrap()
}

/// Runs an example with every combination; each run is given to `check`.
fn run_all(path: &str, example: Table, may_have_rails: bool, check: impl Fn(&str, RunSummary)) {
    let all = combinations(example.contains_key("job"), may_have_rails);
    run_these(path, example, &all, check);
}

fn run_these(path: &str, mut example: Table, all: &[Switches], check: impl Fn(&str, RunSummary)) {
    let has_jobs = example.contains_key("job");
    let table = simulation(&mut example);
    table.remove("schemes");
    table.insert("seeds".to_owned(), vec![1].into());
    if has_jobs {
        table.insert("alone".to_owned(), false.into());
    }
    let mut text = toml::to_string(&example).unwrap();
    if all.iter().any(|one| one.rails) {
        text += "[rails]\nrates = [\"100Gbps\", \"100Gbps\"]\n";
    }
    for (number, switches) in (0..).zip(all) {
        text += &switches.setup(&format!("s{number}"));
    }
    let resolved = match Resolved::new(&text, &format!("{ROOT}{path}"), &DiskFiles) {
        Ok(resolved) => resolved,
        Err(error) => panic!("{error}"),
    };
    let loaded = resolved
        .runs
        .iter()
        .filter(|run| run.variant == crate::Variant::Loaded);
    let mut runs = 0;
    for (planned, switches) in loaded.zip(all) {
        let Switches {
            scheme,
            rails,
            carrier,
            schedule,
        } = switches;
        let what = format!("{path}: {scheme}, rails {rails}, {carrier}, {schedule}");
        check(&what, run(&resolved, planned, &what));
        runs += 1;
    }
    assert_eq!(runs, all.len());
}

/// Simulates a run; its jobs are through.
fn run(resolved: &Resolved, planned: &PlannedRun, what: &str) -> RunSummary {
    let (config, progress) = (resolved.run_config(planned), Progress::default());
    let (network, mut nobody) = (&resolved.network, Discard);
    let driven = resolved.drive(planned, &DiskFiles, |workload| {
        simulate(network, &config, workload, &mut nobody, &progress).unwrap()
    });
    let (summary, after) = driven.unwrap();
    if let Some(jobs) = resolved.jobs(planned) {
        let times = jobs
            .set
            .times(after.ended, |job| resolved.takes_part(planned, job));
        for job in times {
            assert!(job.time.is_some(), "{what}: {} is not through", job.name);
        }
    }
    summary
}

/// All messages are there, each once, and no sum is wrong.
fn conserves(what: &str, summary: &RunSummary) {
    let RunSummary {
        flows_started,
        flows_finished,
        payload_sent,
        payload_copied,
        payload_delivered,
        payload_discarded,
        payload_in_flight,
        ..
    } = *summary;
    assert!(flows_started > 0, "{what}");
    assert_eq!(flows_started, flows_finished, "{what}");
    assert_eq!(
        payload_sent + payload_copied,
        payload_delivered + payload_discarded + payload_in_flight,
        "{what}"
    );
    assert_eq!(summary.members_missed, 0, "{what}");
    assert_eq!(summary.wrong_reductions, 0, "{what}");
}

/// [`conserves`], where no packet is lost either.
fn loses_nothing(what: &str, summary: RunSummary) {
    conserves(what, &summary);
    assert_eq!(summary.drops, 0, "{what}");
}

#[test]
fn examples_without_jobs() {
    let with_rails = ["examples/first.toml", "examples/flow-file.toml"];
    for path in with_rails {
        run_all(path, bare(path, |_| ()), true, loses_nothing);
    }
    // Its hosts have two links already.
    let path = "examples/own-fabric.toml";
    run_all(path, bare(path, |_| ()), false, loses_nothing);
}

/// What is lost on the link is sent again. A fault names a link of one plane: there are no rails.
#[test]
fn an_example_with_a_link_that_fails() {
    let path = "examples/link-failure.toml";
    run_all(path, bare(path, |_| ()), false, |what, summary| {
        conserves(what, &summary);
        assert!(summary.drops > 0, "{what}");
    });
}

#[test]
fn an_example_with_jobs() {
    let path = "examples/jobs.toml";
    run_all(path, bare(path, |_| ()), true, loses_nothing);
}

/// What the README shows first, with fewer steps of each program.
fn together() -> Table {
    bare("experiments/together.toml", |example| {
        let traffic = example["traffic"].as_table_mut().unwrap();
        traffic.insert("duration".to_owned(), "50us".into());
        let fewer = [
            ("training", "layers", 1),
            ("solver", "repeat", 5),
            ("plasma", "exchanges", 1),
        ];
        for job in example["job"].as_array_mut().unwrap() {
            let name = job["name"].as_str().unwrap();
            let Some((_, key, value)) = fewer.iter().find(|(job, ..)| *job == name) else {
                continue;
            };
            let program = job["program"].as_table_mut().unwrap();
            program.insert((*key).to_owned(), (*value).into());
        }
    })
}

/// Every carrier with every schedule; schemes and rails take turns.
#[test]
fn all_systems_together() {
    let path = "experiments/together.toml";
    let all = combinations(true, true);
    let pairs = CARRIERS.len() * SCHEDULES.len();
    let ways = all.len() / pairs;
    let chosen: Vec<Switches> = (0..pairs)
        .map(|pair| all[pair % ways * pairs + pair])
        .collect();
    run_these(path, together(), &chosen, loses_nothing);
}

#[test]
#[ignore = "scale: 192 runs on 320 hosts, 2 min"]
fn all_systems_together_under_every_scheme() {
    run_all("experiments/together.toml", together(), true, loses_nothing);
}

/// Programs that were recorded.
#[test]
fn recorded_programs() {
    for program in ["gromacs", "melt", "openfoam", "stencil", "sweep"] {
        let text = format!(
            "schema = 1\n[fabric]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
             [[job]]\nname = \"{program}\"\nprogram = \"{program}.trace.parquet\"\nranks_per_host = 1\n"
        );
        let path = format!("tests/data/traces/{program}.toml");
        run_all(&path, text.parse().unwrap(), true, loses_nothing);
    }
}
