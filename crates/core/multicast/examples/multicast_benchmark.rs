//! Times C-MR4LMS: whole patterns of groups, and single joins and leaves with 10,000 groups in place.
//!
//! `cargo run --release -p raddle-multicast --example multicast_benchmark [PART ...]`, where PART is `paper` (32,768
//! terminals), `full` (262,144 terminals), `churn` (joins and leaves), `baselines` (MR4LMS, the broadcast tree and one
//! entry for each group on the paper's 18 patterns), `credit` (the credit-loop check), or nothing for all. Prints one JSON object a
//! line; memory is the peak of the process so far (Linux).

#![expect(clippy::print_stdout, reason = "this is what an example is for")]

use std::{error::Error, sync::Arc, time::Instant};

use raddle_fabric::{CnTn, CnTnMap, Fabric};
use raddle_multicast::{
    Broadcast, CMr4lms, CMr4lmsSettings, CreditGraph, Group, Measures, Mgid, Mr4lms,
    Mr4lmsSettings, MulticastEngine, MulticastTables, OpenSmLike, RootChoice, RootRule, TableMode,
    groups::{Grid, GroupSet, Layering, RandomGroups},
};
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};
use raddle_units::NodeId;

const COLOURS: u32 = 32;
const L1: u64 = 16;
/// Times that a sequence of joins and leaves is repeated.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    if wants("paper") || wants("churn") {
        let place = Place::new(64)?;
        if wants("paper") {
            for (name, groups) in [
                ("grid 512x64", grid([512, 64, 1])),
                ("grid 181x181", grid([181, 181, 1])),
                ("grid 100x327", grid([100, 327, 1])),
                ("grid 64x32x16", grid([64, 32, 16])),
                ("grid 32x32x32", grid([32, 32, 32])),
                ("grid 25x50x26", grid([25, 50, 26])),
                ("random 1000", partition(1000, 32_768)),
                ("random 3000", partition(3000, 32_768)),
                ("random 5000", partition(5000, 32_768)),
            ] {
                place.route(name, &groups)?;
            }
        }
        if wants("churn") {
            place.churn("layered", layered_64(10_100, 32_768))?;
            place.churn("random", random(10_100, 64, 32_768))?;
        }
    }
    if wants("baselines") || wants("credit") {
        let place = Place::new(64)?;
        if wants("baselines") {
            place.baselines()?;
        }
        if wants("credit") {
            place.credit()?;
        }
    }
    if wants("full") {
        let place = Place::new(512)?;
        place.route("100000 random groups of 16", &random(100_000, 16, 262_144))?;
        place.route("grid 128x64x32", &grid([128, 64, 32]))?;
    }
    Ok(())
}

struct Place {
    fabric: Arc<Fabric>,
    map: Arc<CnTnMap>,
}

impl Place {
    fn new(cns: u32) -> Result<Self, Box<dyn Error>> {
        let mut spec = CnTn::new(16, 32, 6, 32, 16);
        spec.cns = Some(cns);
        let fabric = Arc::new(spec.build()?);
        let start = Instant::now();
        let map = Arc::new(CnTnMap::recognise(&fabric)?);
        println!(
            "{{\"hosts\":{},\"recognise_s\":{:.3},\"peak_mib\":{}}}",
            fabric.hosts().len(),
            start.elapsed().as_secs_f64(),
            peak_mib()
        );
        Ok(Self { fabric, map })
    }

    fn engine(&self, roots: RootChoice) -> Result<CMr4lms, Box<dyn Error>> {
        let settings = CMr4lmsSettings {
            colours: COLOURS,
            roots,
            fault_tolerant: false,
        };
        let (fabric, map) = (Arc::clone(&self.fabric), Arc::clone(&self.map));
        Ok(CMr4lms::with_map(fabric, map, settings)?)
    }

    fn route(&self, pattern: &str, groups: &[Group]) -> Result<(), Box<dyn Error>> {
        for roots in [RootChoice::Fixed, RootChoice::Dynamic] {
            let mut engine = self.engine(roots)?;
            self.route_with(&mut engine, pattern, groups)?;
        }
        Ok(())
    }

    /// The paper's patterns by the engines that it compares with; no layers of colours.
    fn baselines(&self) -> Result<(), Box<dyn Error>> {
        let terminals = self.fabric.hosts().len() as u32;
        let grids: [(&[u32], u32); 12] = [
            (&[512, 64], 1),
            (&[181, 181], 1),
            (&[100, 327], 1),
            (&[64, 32, 16], 1),
            (&[32, 32, 32], 1),
            (&[25, 50, 26], 1),
            (&[512, 256], 4),
            (&[362, 362], 4),
            (&[200, 655], 4),
            (&[256, 32, 16], 4),
            (&[128, 32, 32], 4),
            (&[100, 50, 26], 4),
        ];
        let mut patterns: Vec<(String, GroupSet)> = Vec::new();
        for (dims, processes_per_terminal) in grids {
            let grid = Grid {
                dims: dims.to_vec(),
                processes_per_terminal,
                layering: Layering::Tight,
            };
            let name = format!("grid {dims:?} x {processes_per_terminal}");
            patterns.push((name, grid.groups(terminals)?));
        }
        for processes_per_terminal in [1, 4] {
            for count in [1000, 3000, 5000] {
                let random = RandomGroups {
                    count,
                    seed: 1,
                    processes_per_terminal,
                    members_per_group: None,
                };
                let name = format!("random {count} x {processes_per_terminal}");
                patterns.push((name, random.groups(terminals)?));
            }
        }
        for (name, set) in &patterns {
            let groups: Option<Vec<Group>> = (0..)
                .zip(&set.communicators)
                .map(|(mgid, communicator)| {
                    let members = communicator.nodes(self.fabric.hosts())?;
                    Some(Group::new(Mgid(mgid), members))
                })
                .collect();
            let groups = groups.ok_or("a member beyond the fabric")?;
            let mode = TableMode::PerPort;
            for detours in [true, false] {
                let settings = Mr4lmsSettings { detours };
                let mut engine = Mr4lms::new(&self.fabric, mode, COLOURS, settings)?;
                let name = if detours {
                    name.clone()
                } else {
                    format!("{name}, no detours")
                };
                self.route_with(&mut engine, &name, &groups)?;
            }
            let mut engine = Broadcast::new(&self.fabric, mode, COLOURS)?;
            self.route_with(&mut engine, name, &groups)?;
            let mut engine = OpenSmLike::new(&self.fabric, mode, COLOURS, RootRule::LeastMean)?;
            if let Err(error) = engine.route(&groups) {
                println!("{{\"pattern\":\"{name}\",\"engine\":\"opensm\",\"error\":\"{error}\"}}");
            }
        }
        Ok(())
    }

    /// The credit-loop check over all unicast routes and the trees of a pattern, with and without detours.
    fn credit(&self) -> Result<(), Box<dyn Error>> {
        let links = LinkState::all_up(&self.fabric);
        let start = Instant::now();
        let tables = UnicastTables::compute(&self.fabric, &links, NextHopOrder::ByPort)?;
        let tables_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut unicast = CreditGraph::new(&self.fabric)?;
        unicast.add_unicast(&tables);
        let found = unicast.find_loop();
        println!(
            "{{\"credit\":\"unicast\",\"tables_s\":{tables_s:.3},\"check_s\":{:.3},\"loop\":{},\"peak_mib\":{}}}",
            start.elapsed().as_secs_f64(),
            found.is_some(),
            peak_mib(),
        );
        let random = RandomGroups {
            count: 5000,
            seed: 1,
            processes_per_terminal: 4,
            members_per_group: None,
        };
        let set = random.groups(self.fabric.hosts().len() as u32)?;
        let groups = (0..)
            .zip(&set.communicators)
            .filter_map(|(mgid, c)| Some(Group::new(Mgid(mgid), c.nodes(self.fabric.hosts())?)));
        let groups: Vec<Group> = groups.collect();
        for detours in [false, true] {
            let settings = Mr4lmsSettings { detours };
            let mut engine = Mr4lms::new(&self.fabric, TableMode::PerPort, COLOURS, settings)?;
            engine.route(&groups)?;
            let trees = engine.trees();
            let start = Instant::now();
            let mut graph = unicast.clone();
            for tree in &trees {
                graph.add_tree(tree);
            }
            let found = graph.find_loop();
            println!(
                "{{\"credit\":\"unicast and mr4lms\",\"detours\":{detours},\"trees\":{},\"check_s\":{:.3},\"loop\":\"{}\"}}",
                trees.len(),
                start.elapsed().as_secs_f64(),
                found.map_or_else(|| "none".to_owned(), |found| found.describe(&self.fabric)),
            );
        }
        Ok(())
    }

    fn route_with(
        &self,
        engine: &mut dyn MulticastEngine,
        pattern: &str,
        groups: &[Group],
    ) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let changes = engine.route(groups)?;
        let seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let trees = engine.trees();
        let tables = MulticastTables::of_trees(&self.fabric, engine.table_mode(), &trees);
        let measures = Measures::of(&self.fabric, &trees, &tables);
        let measure_seconds = start.elapsed().as_secs_f64();
        println!(
            "{{\"pattern\":\"{pattern}\",\"engine\":\"{}\",\"hosts\":{},\"groups\":{},\"route_s\":{seconds:.4},\"branches\":{},\"measure_s\":{measure_seconds:.3},\"trees_left\":{},\"max_tfi\":{},\"mean_tfi\":{:.3},\"max_efi\":{},\"mean_efi\":{:.3},\"table_entries_max\":{},\"peak_mib\":{}}}",
            engine.name(),
            self.fabric.hosts().len(),
            groups.len(),
            changes.branches.len(),
            measures.trees_left,
            measures.max_tfi,
            measures.mean_tfi,
            measures.max_efi,
            measures.mean_efi,
            measures.table_entries_max,
            peak_mib(),
        );
        Ok(())
    }

    /// Random groups leave and others join, with 10,000 in place.
    ///
    /// The sequence is repeated, and each operation counts with the median of its times: quantiles are then those of
    /// operations, not of what interrupts them. `..._p99_single` is that of all times as they were.
    fn churn(&self, pattern: &str, groups: Vec<Group>) -> Result<(), Box<dyn Error>> {
        for roots in [RootChoice::Fixed, RootChoice::Dynamic] {
            let mut engine = self.engine(roots)?;
            let (mut inside, mut outside) = (groups.clone(), Vec::new());
            let mut draw = Draw(7);
            for _ in 0..100 {
                outside.push(inside.swap_remove(draw.below(inside.len() as u64) as usize));
            }
            engine.route(&inside)?;
            let (before, inside_before, outside_before) =
                (engine.clone(), inside.clone(), outside.clone());
            let draw_before = draw.0;
            // By operation: its time in each run. All runs do the same.
            let (mut joins, mut leaves) = (vec![[0.0; RUNS]; 20_000], vec![[0.0; RUNS]; 20_000]);
            let (mut branches, mut moving) = (0, 0);
            for run in 0..RUNS {
                engine = before.clone();
                (inside, outside) = (inside_before.clone(), outside_before.clone());
                draw.0 = draw_before;
                (branches, moving) = (0, 0);
                for operation in 0..joins.len() {
                    let place = draw.below(inside.len() as u64) as usize;
                    let start = Instant::now();
                    let changes = engine.leave(inside[place].mgid)?;
                    leaves[operation][run] = start.elapsed().as_secs_f64() * 1e6;
                    branches += changes.branches.len();
                    moving += usize::from(!changes.moved.is_empty());
                    let other = draw.below(outside.len() as u64) as usize;
                    std::mem::swap(&mut inside[place], &mut outside[other]);
                    let start = Instant::now();
                    let changes = engine.join(&inside[place])?;
                    joins[operation][run] = start.elapsed().as_secs_f64() * 1e6;
                    branches += changes.branches.len();
                    moving += usize::from(!changes.moved.is_empty());
                }
            }
            let quantile = |times: &[f64], share: f64| {
                let mut times = times.to_vec();
                times.sort_unstable_by(f64::total_cmp);
                times[((times.len() - 1) as f64 * share) as usize]
            };
            let us = |times: &[[f64; RUNS]], share: f64| {
                let medians: Vec<f64> = times.iter().map(|runs| quantile(runs, 0.5)).collect();
                quantile(&medians, share)
            };
            let single = |times: &[[f64; RUNS]]| quantile(times.as_flattened(), 0.99);
            let trees = engine.trees();
            println!(
                "{{\"pattern\":\"churn {pattern}\",\"engine\":\"{}\",\"groups\":{},\"trees_left\":{},\"branches_per_operation\":{:.0},\"operations\":40000,\"moving_others\":{moving},\"join_us_p50\":{:.1},\"join_us_p99\":{:.1},\"join_us_max\":{:.1},\"join_us_p99_single\":{:.1},\"leave_us_p50\":{:.1},\"leave_us_p99\":{:.1},\"leave_us_max\":{:.1},\"leave_us_p99_single\":{:.1},\"interruptions_per_s\":{:.0},\"peak_mib\":{}}}",
                engine.name(),
                inside.len(),
                trees.iter().filter(|tree| tree.copy == 0).count(),
                f64::from(branches as u32) / 40_000.0,
                us(&joins, 0.5),
                us(&joins, 0.99),
                us(&joins, 1.0),
                single(&joins),
                us(&leaves, 0.5),
                us(&leaves, 0.99),
                us(&leaves, 1.0),
                single(&leaves),
                interruptions_per_s(),
                peak_mib(),
            );
        }
        Ok(())
    }
}

/// How often something else (the kernel, the host below a virtual machine) takes the core for 25 us or more: what one
/// operation in 40,000 per second finds, whatever it does.
fn interruptions_per_s() -> f64 {
    let start = Instant::now();
    let (mut last, mut count) = (start, 0);
    while last - start < std::time::Duration::from_secs(1) {
        let now = Instant::now();
        count += u32::from(now - last >= std::time::Duration::from_micros(25));
        last = now;
    }
    f64::from(count)
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// Every line of a grid, x fastest, one process per host; a layer of colours for each direction (in proportion to its
/// groups, the rest to the last).
fn grid([x, y, z]: [u32; 3]) -> Vec<Group> {
    let node = |a: u32, b: u32, c: u32| NodeId((c * y + b) * x + a);
    let mut layers: Vec<Vec<Vec<NodeId>>> = Vec::new();
    let pairs = |n: u32, k: u32| (0..n).flat_map(move |a| (0..k).map(move |b| (a, b)));
    let lines = |n, k, line: &dyn Fn(u32, u32) -> Vec<NodeId>| {
        pairs(n, k).map(|(a, b)| line(a, b)).collect()
    };
    layers.push(lines(z, y, &|c, b| (0..x).map(|a| node(a, b, c)).collect()));
    layers.push(lines(z, x, &|c, a| (0..y).map(|b| node(a, b, c)).collect()));
    if z > 1 {
        layers.push(lines(y, x, &|b, a| (0..z).map(|c| node(a, b, c)).collect()));
    }
    let all: u64 = layers.iter().map(|layer| layer.len() as u64).sum();
    let mut base = 0;
    let mut groups = Vec::new();
    let last = layers.len() - 1;
    for (index, layer) in layers.into_iter().enumerate() {
        let share = (u64::from(COLOURS) * layer.len() as u64 / all).max(1);
        let colours = if index == last {
            u64::from(COLOURS) - base
        } else {
            share
        };
        for (number, members) in (0..).zip(layer) {
            // The period is added for every turn, so that MGIDs differ.
            let turn = number / (colours * L1);
            let spt = base * L1 + number % (colours * L1);
            groups.push(Group::new(
                Mgid(turn * u64::from(COLOURS) * L1 + spt),
                members,
            ));
        }
        base += colours;
    }
    groups
}

/// Every host joins one of `n` groups.
fn partition(n: u64, hosts: u32) -> Vec<Group> {
    let mut draw = Draw(n);
    let mut members = vec![Vec::new(); n as usize];
    for host in 0..hosts {
        members[draw.below(n) as usize].push(NodeId(host));
    }
    let groups = (0..).map(Mgid).zip(members);
    let groups = groups.filter(|(_, members)| !members.is_empty());
    groups
        .map(|(mgid, members)| Group::new(mgid, members))
        .collect()
}

/// Groups of random hosts with consecutive MGIDs: a host may have several groups of one colour.
fn random(n: u64, size: usize, hosts: u64) -> Vec<Group> {
    let mut draw = Draw(n);
    let mut group = |mgid| {
        let mut members: Vec<NodeId> = Vec::new();
        while members.len() < size {
            let host = NodeId(draw.below(hosts) as u32);
            if !members.contains(&host) {
                members.push(host);
            }
        }
        Group::new(Mgid(mgid), members)
    };
    (0..n).map(&mut group).collect()
}

/// Random groups of 64 in layers of one colour each: a host joins at most one group of a layer.
fn layered_64(n: u64, hosts: u64) -> Vec<Group> {
    let mut draw = Draw(n);
    let mut order: Vec<NodeId> = (0..hosts as u32).map(NodeId).collect();
    let mut groups = Vec::new();
    for colour in 0..u64::from(COLOURS) {
        for last in (1..order.len()).rev() {
            order.swap(last, draw.below(last as u64 + 1) as usize);
        }
        for (number, members) in (0..).zip(order.chunks(64)) {
            let (turn, tree) = (number / L1, number % L1);
            let mgid = turn * u64::from(COLOURS) * L1 + colour * L1 + tree;
            if number < n.div_ceil(u64::from(COLOURS)) {
                groups.push(Group::new(Mgid(mgid), members.to_vec()));
            }
        }
    }
    groups.truncate(n as usize);
    groups
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
