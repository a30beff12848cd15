//! Who is blamed for a job's time: sums, and culprits that were planted among others.

use std::collections::BTreeMap;

use raddle_engine::{
    Progress,
    blame::{Cause, Journal},
    simulate,
};
use raddle_random::Random;
use raddle_replay::{Activity, JobTime, Share, Spent};
use raddle_units::Span;

use crate::{MemoryFiles, Resolved};

/// The jobs of a run, and what their times were spent on.
struct Told {
    times: Vec<JobTime>,
    shares: Vec<Vec<Share>>,
    activities: Vec<Vec<Activity>>,
    classes: Vec<String>,
}

fn told(text: &str, setup: usize) -> Told {
    let resolved = match Resolved::new(text, "jobs.toml", &MemoryFiles::default()) {
        Ok(resolved) => resolved,
        Err(error) => panic!("{error}"),
    };
    let loaded = |run: &&crate::PlannedRun| run.scheme == setup && resolved.blames(run);
    let run = resolved.runs.iter().find(loaded).unwrap();
    let (config, mut recorder) = (resolved.run_config(run), Journal::default());
    let (_, after) = resolved
        .drive(run, &MemoryFiles::default(), |workload| {
            let progress = Progress::default();
            simulate(
                &resolved.network,
                &config,
                workload,
                &mut recorder,
                &progress,
            )
            .unwrap()
        })
        .unwrap();
    let jobs = &resolved.jobs(run).unwrap().set;
    let fabric = &resolved.network.fabric;
    let takes_part = |job: usize| resolved.takes_part(run, job);
    let all = (0..jobs.names().len()).filter(|&job| takes_part(job));
    Told {
        activities: all
            .clone()
            .map(|job| jobs.activities(job, &after.diaries, &recorder, fabric))
            .collect(),
        shares: all
            .map(|job| jobs.blame(job, &after.diaries, &recorder, fabric))
            .collect(),
        times: jobs.times(after.ended, takes_part),
        classes: resolved.classes.clone(),
    }
}

impl Told {
    /// Shares add up to the times, and so do the ranks' activities, the last rank's to all of it.
    fn check(&self) {
        for (time, activities) in self.times.iter().zip(&self.activities) {
            let mut ends = vec![time.start; time.ranks as usize];
            for it in activities {
                assert_eq!(it.start, ends[it.rank as usize], "{}: {it:?}", time.name);
                ends[it.rank as usize] = it.end;
                let lasted = it.end.since(it.start);
                if let Some(wait) = it.wait {
                    assert!(wait.from < time.ranks && wait.late <= lasted, "{it:?}");
                }
            }
            let last = ends.into_iter().max().unwrap_or_default();
            assert_eq!(Some(last.since(time.start)), time.time, "{}", time.name);
        }
        for (time, shares) in self.times.iter().zip(&self.shares) {
            let sum: Span = shares.iter().map(|share| share.time).sum();
            assert_eq!(Some(sum), time.time, "{}", time.name);
        }
    }

    /// Time for which others stood in the way of the first job, the worst first.
    fn culprits(&self) -> Vec<(&str, Span)> {
        let mut found = BTreeMap::<u8, Span>::new();
        for share in &self.shares[0] {
            if let Some(class) = share.culprit.filter(|class| *class != 0) {
                *found.entry(class).or_default() += share.time;
            }
        }
        let named = |(class, time): (u8, Span)| (self.classes[usize::from(class)].as_str(), time);
        let mut found: Vec<_> = found.into_iter().map(named).collect();
        found.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        found
    }
}

const FABRIC: &str = r#"schema = 1
[fabric]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 8
spines = 1
host_rate = "100Gbps"
fabric_rate = "200Gbps"
[simulation]
alone = false
"#;

#[test]
fn shares_add_up_under_every_switch() {
    let programs = [
        "generator = \"collective\", collective = \"allreduce\", size = \"64B\", repeat = 6, compute = \"2us\"",
        "generator = \"collective\", collective = \"allreduce\", size = \"300KiB\", repeat = 2",
        "generator = \"application\", application = \"particle-in-cell\", exchanges = 2",
        "generator = \"collective\", collective = \"bcast\", size = \"20KiB\", repeat = 3",
        "generator = \"training\", layers = 2, hidden = 128, sequence = 32, data_parallel = 4, tensor_parallel = 2, forward = \"3us\"",
    ];
    let mut text = FABRIC.to_owned();
    for (number, program) in programs.iter().enumerate() {
        let ranks = if program.contains("training") {
            ""
        } else {
            "ranks = 6\nranks_per_host = 2\n"
        };
        text += &format!(
            "[[job]]\nname = \"job{number}\"\nprogram = {{ {program} }}\nplacement = \"random\"\n{ranks}"
        );
    }
    text += "[rails]\nrates = [\"100Gbps\", \"100Gbps\"]\n";
    text += "[traffic]\ngenerator = \"poisson\"\nload = 0.3\nduration = \"100us\"\nsizes = \"mice-and-elephants\"\n";
    let mut setups = 0;
    for (scheme, rails) in [("none", false), ("hpcc", false), ("swift", true)] {
        for collectives in ["host", "multicast", "offload"] {
            for scheduling in ["none", "both"] {
                text += &format!(
                    "[[setup]]\nname = \"s{setups}\"\nscheme = \"{scheme}\"\nrails = {rails}\ncollectives = \"{collectives}\"\nscheduling = \"{scheduling}\"\n"
                );
                setups += 1;
            }
        }
    }
    for setup in 0..setups {
        let told = told(&text, setup);
        told.check();
        assert_eq!(told.times.len(), programs.len());
    }
}

/// A job that computes and is alone spends its time on that, and on what its messages cost.
#[test]
fn a_job_alone_blames_nobody() {
    let text = FABRIC.to_owned()
        + "[[job]]\nname = \"one\"\nranks = 8\nprogram = { generator = \"collective\", collective = \"allreduce\", size = \"8B\", repeat = 10, compute = \"100us\" }\n";
    let told = told(&text, 0);
    told.check();
    assert_eq!(told.culprits(), []);
    let time = told.times[0].time.unwrap();
    let of = |spent| -> u64 {
        let shares = told.shares[0].iter();
        shares
            .filter(|share| share.spent == spent)
            .map(|share| share.time.0)
            .sum()
    };
    // Ten gaps of 100 us, of which noise adds or takes 2 % at most.
    assert!(of(Spent::Computing).abs_diff(Span::from_us(1000).0) < Span::from_us(20).0);
    let messages = of(Spent::Host) + of(Spent::Message(Cause::Transfer));
    assert!(of(Spent::Computing) + messages + of(Spent::Start) > time.0 * 98 / 100);
}

/// Hosts of a job: so many below each of these leaves, which nobody else has.
fn hosts(free: &mut [Vec<u32>], leaves: &[usize], each: usize) -> String {
    let taken = leaves.iter().flat_map(|&leaf| {
        let rest = free[leaf].len() - each;
        free[leaf].split_off(rest)
    });
    let taken: Vec<String> = taken.map(|host| host.to_string()).collect();
    format!("[{}]", taken.join(", "))
}

/// A victim, a culprit that fills links that the victim needs, and distractors: one sends as much as the culprit below one
/// switch, where it is in nobody's way, one shares all links and sends little, and some traffic is everywhere.
fn planted(case: u64) -> (String, String) {
    let mut random = Random::new(77, case);
    let mut free: Vec<Vec<u32>> = (0..4)
        .map(|leaf| (8 * leaf..8 * leaf + 8).collect())
        .collect();
    for leaf in &mut free {
        random.shuffle(leaf);
    }
    let mut pick = |words: &[&str]| words[random.below(words.len() as u64) as usize].to_owned();
    let victim = pick(&[
        "collective = \"alltoall\", size = \"16KiB\", repeat = 6",
        "collective = \"allreduce\", size = \"64KiB\", repeat = 6",
        "collective = \"allgather\", size = \"8KiB\", repeat = 6",
        "collective = \"bcast\", size = \"32KiB\", repeat = 12",
    ]);
    let heavy = pick(&[
        "collective = \"alltoall\", size = \"4MiB\", repeat = 4",
        "collective = \"allgather\", size = \"1MiB\", repeat = 4",
        "collective = \"gather\", size = \"1MiB\", repeat = 6",
    ]);
    let light = pick(&[
        "collective = \"allreduce\", size = \"8B\", repeat = 30",
        "collective = \"bcast\", size = \"256B\", repeat = 30",
        "collective = \"alltoall\", size = \"1KiB\", repeat = 20",
    ]);
    let scheme = pick(&["none", "none", "dctcp", "dcqcn", "timely", "hpcc"]);
    let all = [0, 1, 2, 3];
    let local = usize::from(pick(&["0", "1", "2", "3"]).as_bytes()[0] - b'0');
    let job = |name: &str, program: &str, hosts: String| {
        let ranks = hosts.matches(',').count() + 1;
        format!(
            "[[job]]\nname = \"{name}\"\nprogram = {{ generator = \"collective\", {program} }}\nranks = {ranks}\nplacement = {hosts}\n"
        )
    };
    let mut text = FABRIC.to_owned();
    text += &job("victim", &victim, hosts(&mut free, &all, 2));
    text += &job("below", &heavy, hosts(&mut free, &[local], 2));
    text += &job("culprit", &heavy, hosts(&mut free, &all, 2));
    text += &job("light", &light, hosts(&mut free, &all, 1));
    text += "[traffic]\ngenerator = \"poisson\"\nload = 0.02\nduration = \"500us\"\nsizes = \"mice-and-elephants\"\n";
    (text, scheme)
}

/// The first hundred cases in which the victim takes at least a tenth less time without the culprit.
#[test]
fn a_planted_culprit_is_found() {
    let (mut cases, mut missed) = (0, Vec::new());
    for case in 0.. {
        let (text, scheme) = planted(case);
        let without = format!(
            "[[setup]]\nname = \"all\"\nscheme = \"{scheme}\"\n[[setup]]\nname = \"without\"\nscheme = \"{scheme}\"\nwithout = [\"culprit\"]\n"
        );
        let text = text + &without;
        let (with, without) = (told(&text, 0), told(&text, 1));
        with.check();
        without.check();
        let (before, after) = (with.times[0].time.unwrap(), without.times[0].time.unwrap());
        if after.0 > before.0 * 9 / 10 {
            continue;
        }
        cases += 1;
        let culprits = with.culprits();
        if culprits.first().is_none_or(|(name, _)| *name != "culprit") {
            missed.push(format!(
                "{case} {scheme}: {before} and {after}: {culprits:?}"
            ));
        }
        if cases == 100 {
            break;
        }
    }
    assert!(missed.len() <= 5, "{missed:#?}");
}
