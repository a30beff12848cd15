//! Jobs that do not disturb each other: the seven placement rules (section 3.2 of Chen et al., C-MR4LMS (JCRD,
//! 10.7544/issn1000-1239.20210582)).
//!
//! A job of class T0 fits on one L0 switch, T1 in one CN, T2 in one *block* (the w CNs below one L2 switch of every TN);
//! T3 is larger. How large they are follows from the terminals that are there.
//!
//! 1. A terminal serves one job.
//! 2. A T0 job lies on one L0 switch.
//! 3. A T1 job lies in one CN.
//! 4. A T2 job lies in one block.
//! 5. An L0 switch holds any number of T0 jobs and at most one job of T1 or larger.
//! 6. A CN holds any number of T1 jobs and at most one of T2 or larger.
//! 7. A block holds any number of T2 jobs and at most one T3 job.
//!
//! Then two jobs share no link (Theorem 4), neither by unicast on shortest paths nor by multicast: a job uses no uplink
//! above its class.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use raddle_fabric::{CnTnMap, CnTnShape, Fabric};
use raddle_units::{NodeId, many};

/// How far a job spreads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum JobClass {
    /// On one L0 switch.
    T0,
    /// In one CN.
    T1,
    /// In one block: the CNs below one L2 switch of every TN.
    T2,
    /// Over several blocks.
    T3,
}

impl fmt::Display for JobClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One of the seven rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rule(u8);

impl Rule {
    /// Its number, 1 to 7.
    pub fn number(self) -> u8 {
        self.0
    }

    /// What it says.
    pub fn text(self) -> &'static str {
        match self.0 {
            1 => "a terminal serves one job",
            2 => "a T0 job lies on one L0 switch",
            3 => "a T1 job lies in one CN",
            4 => "a T2 job lies in one block of CNs below an L2 switch",
            5 => "an L0 switch holds at most one job of T1 or larger",
            6 => "a CN holds at most one job of T2 or larger",
            _ => "a block of CNs holds at most one T3 job",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({})", self.0, self.text())
    }
}

/// A job that waits for terminals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRequest {
    /// Its name, different from those of the other jobs.
    pub name: String,
    /// Terminals that it needs, from 1.
    pub terminals: u32,
}

/// Where a job runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The job.
    pub job: String,
    /// How far it spreads.
    pub class: JobClass,
    /// Its terminals in the order of its processes: by block, CN, L0 switch and node id.
    pub terminals: Vec<NodeId>,
}

/// What became of a job in a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It runs.
    Placed(Placement),
    /// It cannot run now.
    Refused(PlacementError),
    /// It was not tried, because this job before it has to wait.
    Behind(String),
}

/// Terminals that a region could give to a job, and those that a rule withholds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The region, as `L0 5 (CN 0)`, `CN 3`, `block 1` or `the machine`.
    pub region: String,
    /// Terminals without a job.
    pub free: u32,
    /// Free terminals that the rules allow.
    pub usable: u32,
    /// Free terminals that rules 5, 6 and 7 withhold.
    pub withheld: Vec<(Rule, u32)>,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has {} free terminals, {} of them usable",
            self.region, self.free, self.usable
        )?;
        for (rule, count) in &self.withheld {
            write!(f, "; {rule} withholds {count}")?;
        }
        Ok(())
    }
}

/// Why a job cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A job without terminals.
    #[error("job `{job}` asks for 0 terminals; ask for at least 1")]
    Empty {
        /// The job.
        job: String,
    },
    /// Larger than the machine.
    #[error(
        "job `{job}` asks for {}, but the machine has {terminals}; make it smaller",
        many(*.needed, "terminal")
    )]
    TooLarge {
        /// The job.
        job: String,
        /// Terminals it asks for.
        needed: u32,
        /// Terminals of the machine.
        terminals: u32,
    },
    /// A rule stands against it now.
    #[error(
        "job `{job}` needs {} as a {class} job, but {rule} leaves too few: {offer}; missing: {}; \
         wait for a job to end or make it smaller",
        many(*.needed, "terminal"),
        needed - offer.usable
    )]
    Refused {
        /// The job.
        job: String,
        /// Terminals it asks for.
        needed: u32,
        /// Its class.
        class: JobClass,
        /// The rule that stands against it.
        rule: Rule,
        /// The region that comes closest.
        offer: Offer,
    },
    /// Two jobs with one name.
    #[error("there is already a job `{job}`; give each job its own name")]
    DuplicateJob {
        /// The name.
        job: String,
    },
    /// No such job.
    #[error("there is no job `{job}`")]
    UnknownJob {
        /// The name.
        job: String,
    },
    /// A node that is no terminal of the machine.
    #[error("job `{job}` names {node}, which is not a terminal of the fat tree; name hosts")]
    UnknownTerminal {
        /// The job.
        job: String,
        /// The node.
        node: NodeId,
    },
    /// Rule 1 is broken.
    #[error(
        "job `{job}` names {node}, which runs job `{other}`; a terminal serves one job (rule 1)"
    )]
    Occupied {
        /// The job.
        job: String,
        /// The terminal.
        node: NodeId,
        /// The job that is there.
        other: String,
    },
}

/// A rule that two running jobs break.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rule} is broken in {region} by jobs `{first}` and `{second}`: they may share links")]
pub struct BrokenRule {
    /// The rule.
    pub rule: Rule,
    /// Where.
    pub region: String,
    /// One job.
    pub first: String,
    /// The other job.
    pub second: String,
}

#[derive(Clone, Debug)]
struct Running {
    name: String,
    class: JobClass,
    /// Positions of its terminals, ascending.
    positions: Vec<u32>,
}

/// A region (L0 switch, CN, block) and the jobs in it that spread beyond it.
#[derive(Clone, Debug, Default)]
struct Region {
    /// Regions or terminals of the level below: a range, as they are numbered by place.
    parts: std::ops::Range<usize>,
    /// Numbers of the jobs that use its uplinks, ascending.
    beyond: Vec<u32>,
}

/// The terminals of a machine and the jobs that run on them.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Terminals by place: block, CN, L0 switch, node id.
    terminals: Vec<NodeId>,
    position_of: BTreeMap<NodeId, u32>,
    owner: Vec<Option<u32>>,
    l0s: Vec<Region>,
    cns: Vec<Region>,
    blocks: Vec<Region>,
    jobs: BTreeMap<u32, Running>,
    by_name: BTreeMap<String, u32>,
    next_job: u32,
    widen: bool,
}

impl Machine {
    /// An empty machine from the fat tree found in a fabric.
    pub fn of_map(map: &CnTnMap) -> Self {
        let CnTnShape { q, w, cns, .. } = map.shape();
        let hosts = |cn: u32, i: u32| map.hosts_of_l0(cn, i).to_vec();
        Self::new(cns, q, w, hosts)
    }

    /// An empty machine of `cns` CNs of `q` L0 switches with `terminals_per_l0` terminals each, `w` CNs in a block, as
    /// the builder numbers them.
    pub fn regular(cns: u32, q: u32, terminals_per_l0: u32, w: u32) -> Self {
        Self::new(cns, q, w, |cn, i| {
            let first = (cn * q + i) * terminals_per_l0;
            (first..first + terminals_per_l0).map(NodeId).collect()
        })
    }

    fn new(cns: u32, q: u32, w: u32, hosts: impl Fn(u32, u32) -> Vec<NodeId>) -> Self {
        let mut terminals = Vec::new();
        let mut l0s = Vec::new();
        for (cn, i) in (0..cns).flat_map(|cn| (0..q).map(move |i| (cn, i))) {
            let first = terminals.len();
            terminals.extend(hosts(cn, i));
            l0s.push(Region::of(first..terminals.len()));
        }
        let (q, w, count) = (q as usize, w.max(1) as usize, cns as usize);
        let cns = (0..count).map(|cn| Region::of(cn * q..(cn + 1) * q));
        let blocks = (0..count.div_ceil(w)).map(|b| Region::of(b * w..((b + 1) * w).min(count)));
        let positions = (0..).zip(&terminals);
        Self {
            position_of: positions
                .map(|(position, &node)| (node, position))
                .collect(),
            owner: vec![None; terminals.len()],
            l0s,
            cns: cns.collect(),
            blocks: blocks.collect(),
            jobs: BTreeMap::new(),
            by_name: BTreeMap::new(),
            next_job: 0,
            widen: false,
            terminals,
        }
    }

    /// Whether a job that finds no place in its class may spread further, as a job of a higher class: it then counts as
    /// one, and Theorem 4 still holds. At first it may not, as in the paper.
    pub fn widen(&mut self, widen: bool) {
        self.widen = widen;
    }

    /// Finds terminals for a job and gives them to it: the fullest region that has room, in it the fewest switches.
    ///
    /// # Errors
    /// A name that is taken, 0 or too many terminals, or a rule that the job would break, with what is missing; the
    /// machine stays as it was.
    pub fn place(&mut self, job: &JobRequest) -> Result<Placement, PlacementError> {
        let JobRequest {
            name,
            terminals: needed,
        } = job;
        self.check_name(name)?;
        if *needed == 0 {
            return Err(PlacementError::Empty { job: name.clone() });
        }
        let terminals = self.terminals.len() as u32;
        if *needed > terminals {
            return Err(PlacementError::TooLarge {
                job: name.clone(),
                needed: *needed,
                terminals,
            });
        }
        let class = self.class_of_size(*needed);
        let wider = if self.widen { JobClass::T3 } else { class };
        let tried = [JobClass::T0, JobClass::T1, JobClass::T2, JobClass::T3];
        let found = tried
            .into_iter()
            .filter(|tried| (class..=wider).contains(tried))
            .find_map(|class| self.find(class, *needed));
        match found {
            Some(positions) => Ok(self.start(name, positions)),
            None => Err(self.refusal(name, class, *needed)),
        }
    }

    /// Places jobs in order. Without `backfill` the first that has to wait holds up all behind it; with it, every later
    /// job that fits runs now.
    pub fn place_queue(&mut self, queue: &[JobRequest], backfill: bool) -> Vec<Outcome> {
        let mut waiting: Option<&str> = None;
        let mut outcomes = Vec::with_capacity(queue.len());
        for job in queue {
            if let Some(first) = waiting.filter(|_| !backfill) {
                outcomes.push(Outcome::Behind(first.to_owned()));
                continue;
            }
            outcomes.push(match self.place(job) {
                Ok(placement) => Outcome::Placed(placement),
                Err(error) => {
                    // What can never run does not hold up the others.
                    if matches!(error, PlacementError::Refused { .. }) {
                        waiting = Some(&job.name);
                    }
                    Outcome::Refused(error)
                }
            });
        }
        outcomes
    }

    /// Notes a job that runs already on these terminals; gives the rules that it breaks with other jobs.
    ///
    /// # Errors
    /// A name that is taken, no terminal, a node that is no terminal or that runs a job; the machine stays as it was.
    pub fn occupy(
        &mut self,
        name: &str,
        nodes: &[NodeId],
    ) -> Result<Vec<BrokenRule>, PlacementError> {
        self.check_name(name)?;
        let job = || name.to_owned();
        if nodes.is_empty() {
            return Err(PlacementError::Empty { job: job() });
        }
        let mut positions = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let Some(&position) = self.position_of.get(&node) else {
                return Err(PlacementError::UnknownTerminal { job: job(), node });
            };
            if let Some(other) = self.owner[position as usize] {
                let other = self.name(other);
                return Err(PlacementError::Occupied {
                    job: job(),
                    node,
                    other,
                });
            }
            positions.push(position);
        }
        positions.sort_unstable();
        positions.dedup();
        self.start(name, positions);
        let mut broken = self.broken_rules();
        broken.retain(|rule| rule.first == name || rule.second == name);
        Ok(broken)
    }

    /// A job ends.
    ///
    /// # Errors
    /// No job of this name.
    pub fn release(&mut self, name: &str) -> Result<(), PlacementError> {
        let Some(number) = self.by_name.remove(name) else {
            return Err(PlacementError::UnknownJob {
                job: name.to_owned(),
            });
        };
        if let Some(job) = self.jobs.remove(&number) {
            for &position in &job.positions {
                self.owner[position as usize] = None;
            }
        }
        for region in self
            .l0s
            .iter_mut()
            .chain(&mut self.cns)
            .chain(&mut self.blocks)
        {
            region.beyond.retain(|&job| job != number);
        }
        Ok(())
    }

    /// The jobs that run, in the order in which they started.
    pub fn jobs(&self) -> Vec<Placement> {
        self.jobs.values().map(|job| self.placement(job)).collect()
    }

    /// Terminals without a job.
    pub fn free(&self) -> u32 {
        self.owner.iter().filter(|owner| owner.is_none()).count() as u32
    }

    /// Rules 5 to 7 that running jobs break; none as long as all were placed by [`Self::place`].
    pub fn broken_rules(&self) -> Vec<BrokenRule> {
        let levels = [(5, &self.l0s), (6, &self.cns), (7, &self.blocks)];
        let mut broken = Vec::new();
        for (rule, regions) in levels {
            for (number, region) in regions.iter().enumerate() {
                for pair in region.beyond.windows(2) {
                    broken.push(BrokenRule {
                        rule: Rule(rule),
                        region: self.region_name(rule - 5, number),
                        first: self.name(pair[0]),
                        second: self.name(pair[1]),
                    });
                }
            }
        }
        broken
    }

    fn name(&self, job: u32) -> String {
        let running = self.jobs.get(&job);
        running.map(|job| job.name.clone()).unwrap_or_default()
    }

    fn check_name(&self, name: &str) -> Result<(), PlacementError> {
        if self.by_name.contains_key(name) {
            let job = name.to_owned();
            return Err(PlacementError::DuplicateJob { job });
        }
        Ok(())
    }

    fn region_name(&self, level: u8, number: usize) -> String {
        match level {
            0 => {
                let cn = self.cns.iter().position(|cn| cn.parts.contains(&number));
                let cn = cn.unwrap_or(0);
                let first = self.cns.get(cn).map_or(0, |cn| cn.parts.start);
                format!("L0 {} of CN {cn}", number - first)
            }
            1 => format!("CN {number}"),
            2 => format!("block {number}"),
            _ => "the machine".to_owned(),
        }
    }

    /// The smallest class in which a job of this size can lie on the empty machine.
    fn class_of_size(&self, needed: u32) -> JobClass {
        let sums = |parts: &[u32], regions: &[Region]| -> Vec<u32> {
            let sum = |region: &Region| parts[region.parts.clone()].iter().sum();
            regions.iter().map(sum).collect()
        };
        let l0s: Vec<u32> = self.l0s.iter().map(|l0| l0.parts.len() as u32).collect();
        let cns = sums(&l0s, &self.cns);
        let blocks = sums(&cns, &self.blocks);
        let fits = |sizes: &[u32]| sizes.iter().any(|&size| needed <= size);
        match (fits(&l0s), fits(&cns), fits(&blocks)) {
            (true, ..) => JobClass::T0,
            (_, true, _) => JobClass::T1,
            (_, _, true) => JobClass::T2,
            _ => JobClass::T3,
        }
    }

    /// Free terminals of each L0 switch.
    fn free_of_l0s(&self) -> Vec<u32> {
        let free = |l0: &Region| {
            let owners = &self.owner[l0.parts.clone()];
            owners.iter().filter(|owner| owner.is_none()).count() as u32
        };
        self.l0s.iter().map(free).collect()
    }

    /// Terminals that a job of a class may use in each L0 switch, CN, block and in the machine.
    fn usable(&self, class: JobClass) -> [Vec<u32>; 4] {
        let free = self.free_of_l0s();
        let held_back =
            |region: &Region, level: JobClass| class > level && !region.beyond.is_empty();
        let up = |parts: &[u32], regions: &[Region], level| -> Vec<u32> {
            let sum = |region: &Region| match held_back(region, level) {
                true => 0,
                false => parts[region.parts.clone()].iter().sum(),
            };
            regions.iter().map(sum).collect()
        };
        let l0s: Vec<u32> = free
            .iter()
            .zip(&self.l0s)
            .map(|(&free, l0)| if held_back(l0, JobClass::T0) { 0 } else { free })
            .collect();
        let cns = up(&l0s, &self.cns, JobClass::T1);
        let blocks = up(&cns, &self.blocks, JobClass::T2);
        let machine = vec![blocks.iter().sum()];
        [l0s, cns, blocks, machine]
    }

    /// Positions for a job of a class, ascending.
    fn find(&self, class: JobClass, needed: u32) -> Option<Vec<u32>> {
        let usable = self.usable(class);
        let level = class as usize;
        // The fullest region with room keeps the others whole.
        let region = (0..usable[level].len())
            .filter(|&region| usable[level][region] >= needed)
            .min_by_key(|&region| usable[level][region])?;
        let mut positions = Vec::with_capacity(needed as usize);
        self.take(level, region, needed, &usable, &mut positions);
        positions.sort_unstable();
        Some(positions)
    }

    /// Takes terminals of a region: the parts with the most first, the last one as small as will do.
    fn take(
        &self,
        level: usize,
        region: usize,
        needed: u32,
        usable: &[Vec<u32>; 4],
        positions: &mut Vec<u32>,
    ) {
        let parts = match level {
            0 => {
                let free = self.l0s[region].parts.clone();
                let free = free.filter(|&position| self.owner[position].is_none());
                positions.extend(free.take(needed as usize).map(|position| position as u32));
                return;
            }
            1 => self.cns[region].parts.clone(),
            2 => self.blocks[region].parts.clone(),
            _ => 0..self.blocks.len(),
        };
        let sizes = &usable[level - 1];
        let mut order: Vec<usize> = parts.filter(|&part| sizes[part] > 0).collect();
        order.sort_by_key(|&part| (Reverse(sizes[part]), part));
        let mut left = needed;
        while left > 0 && !order.is_empty() {
            // From the smallest part that has all that is left, or else from the largest.
            let enough = order.iter().rposition(|&part| sizes[part] >= left);
            let part = order.remove(enough.unwrap_or(0));
            let here = left.min(sizes[part]);
            self.take(level - 1, part, here, usable, positions);
            left -= here;
        }
    }

    fn start(&mut self, name: &str, positions: Vec<u32>) -> Placement {
        let number = self.next_job;
        self.next_job += 1;
        let mut l0s = Vec::new();
        for (l0, region) in self.l0s.iter().enumerate() {
            let first = positions.partition_point(|&p| (p as usize) < region.parts.start);
            let next = positions.get(first);
            if next.is_some_and(|&p| (p as usize) < region.parts.end) {
                l0s.push(l0);
            }
        }
        let above = |parts: &[usize], regions: &[Region]| -> Vec<usize> {
            let holds = |region: &Region| parts.iter().any(|part| region.parts.contains(part));
            (0..regions.len())
                .filter(|&region| holds(&regions[region]))
                .collect()
        };
        let cns = above(&l0s, &self.cns);
        let blocks = above(&cns, &self.blocks);
        let class = match (l0s.len(), cns.len(), blocks.len()) {
            (1, ..) => JobClass::T0,
            (_, 1, _) => JobClass::T1,
            (_, _, 1) => JobClass::T2,
            _ => JobClass::T3,
        };
        let levels = [
            (JobClass::T0, &l0s, &mut self.l0s),
            (JobClass::T1, &cns, &mut self.cns),
            (JobClass::T2, &blocks, &mut self.blocks),
        ];
        for (level, used, regions) in levels {
            if class > level {
                for &region in used {
                    regions[region].beyond.push(number);
                }
            }
        }
        for &position in &positions {
            self.owner[position as usize] = Some(number);
        }
        let job = Running {
            name: name.to_owned(),
            class,
            positions,
        };
        let placement = self.placement(&job);
        self.by_name.insert(name.to_owned(), number);
        self.jobs.insert(number, job);
        placement
    }

    fn placement(&self, job: &Running) -> Placement {
        let terminals = job.positions.iter();
        Placement {
            job: job.name.clone(),
            class: job.class,
            terminals: terminals
                .map(|&position| self.terminals[position as usize])
                .collect(),
        }
    }

    fn refusal(&self, name: &str, class: JobClass, needed: u32) -> PlacementError {
        let level = class as u8;
        let usable = self.usable(class);
        let free = self.free_levels();
        let (here, allowed) = (&free[level as usize], &usable[level as usize]);
        let most_free = here.iter().copied().max().unwrap_or(0);
        let rule = if self.free() < needed {
            Some(1)
        } else if most_free < needed {
            Some(2 + level)
        } else {
            None
        };
        // The region that would have room if the rule were not there, and comes closest with it.
        let least = if rule.is_some() { most_free } else { needed };
        let region = (0..here.len())
            .filter(|&region| here[region] >= least)
            .max_by_key(|&region| (allowed[region], Reverse(region)));
        let offer = self.offer(class, region.unwrap_or(0), &usable, &free);
        let most_withheld = offer.withheld.iter().max_by_key(|(_, count)| *count);
        let rule = rule
            .map(Rule)
            .or_else(|| most_withheld.map(|&(rule, _)| rule))
            .unwrap_or(Rule(1));
        PlacementError::Refused {
            job: name.to_owned(),
            needed,
            class,
            rule,
            offer,
        }
    }

    fn free_levels(&self) -> [Vec<u32>; 4] {
        let up = |parts: &[u32], regions: &[Region]| -> Vec<u32> {
            let sum = |region: &Region| parts[region.parts.clone()].iter().sum();
            regions.iter().map(sum).collect()
        };
        let l0s = self.free_of_l0s();
        let cns = up(&l0s, &self.cns);
        let blocks = up(&cns, &self.blocks);
        let machine = vec![blocks.iter().sum()];
        [l0s, cns, blocks, machine]
    }

    fn offer(
        &self,
        class: JobClass,
        region: usize,
        usable: &[Vec<u32>; 4],
        free: &[Vec<u32>; 4],
    ) -> Offer {
        let level = class as usize;
        // What a rule withholds: free terminals of the regions that it closes, less what a lower rule withholds there.
        let blocks = match level {
            3 => 0..self.blocks.len(),
            2 => region..region + 1,
            _ => 0..0,
        };
        let cns = match level {
            1 => region..region + 1,
            _ => span(&self.blocks, blocks.clone()),
        };
        let l0s = span(&self.cns, cns.clone());
        let mut withheld = Vec::new();
        let rule_5: u32 = l0s.map(|l0| free[0][l0] - usable[0][l0]).sum();
        withheld.push((Rule(5), rule_5));
        if level >= 2 {
            let left = |cn: usize| -> u32 { usable[0][self.cns[cn].parts.clone()].iter().sum() };
            let rule_6 = cns.map(|cn| left(cn) - usable[1][cn]).sum();
            withheld.push((Rule(6), rule_6));
        }
        if level >= 3 {
            let left = |b: usize| -> u32 { usable[1][self.blocks[b].parts.clone()].iter().sum() };
            let rule_7 = blocks.map(|block| left(block) - usable[2][block]).sum();
            withheld.push((Rule(7), rule_7));
        }
        withheld.retain(|&(_, count)| count > 0);
        Offer {
            region: self.region_name(level as u8, region),
            free: free[level][region],
            usable: usable[level][region],
            withheld,
        }
    }
}

impl Region {
    fn of(parts: std::ops::Range<usize>) -> Self {
        Self {
            parts,
            beyond: Vec::new(),
        }
    }
}

/// The parts of consecutive regions.
fn span(regions: &[Region], of: std::ops::Range<usize>) -> std::ops::Range<usize> {
    match (regions.get(of.start), of.len()) {
        (Some(first), 1..) => first.parts.start..regions[of.end - 1].parts.end,
        _ => 0..0,
    }
}

/// The positions of a job's terminals in the fabric's order of hosts, in the order of its processes: where the n-th
/// terminal of a group pattern lies. `None` for a node that is no host.
pub fn host_positions(placement: &Placement, fabric: &Fabric) -> Option<Vec<u32>> {
    let positions = placement
        .terminals
        .iter()
        .map(|node| fabric.hosts().binary_search(node).ok());
    positions
        .map(|position| position.map(|position| position as u32))
        .collect()
}
