//! Hosts for jobs.

use std::collections::BTreeMap;

use raddle_fabric::{CnTnMap, Fabric};
use raddle_multicast::placement::{JobRequest, Machine};
use raddle_random::Random;
use raddle_text::clip;
use raddle_units::{NodeId, many};

use crate::{
    job_tables::{JobTable, PlacementSource, Rule},
    names::NodeName,
};

/// Hosts that no job has.
pub(super) struct Free<'a> {
    fabric: &'a Fabric,
    /// By host: the job that has it.
    taken: BTreeMap<NodeId, String>,
    /// Jobs so far: each draws from a stream of its own.
    jobs: u64,
}

impl<'a> Free<'a> {
    pub(super) const fn new(fabric: &'a Fabric) -> Self {
        Self {
            fabric,
            taken: BTreeMap::new(),
            jobs: 0,
        }
    }

    /// Gives a job so many hosts, in the order of its ranks.
    ///
    /// # Errors
    /// There are not so many, or one of those that are named belongs to another job; one line.
    pub(super) fn take(&mut self, job: &JobTable, needed: usize) -> Result<Vec<NodeId>, String> {
        self.jobs += 1;
        let hosts = self.fabric.hosts().iter();
        let free: Vec<NodeId> = hosts
            .filter(|host| !self.taken.contains_key(host))
            .copied()
            .collect();
        let rule = match &job.placement {
            Some(PlacementSource::Hosts(names)) => return self.named(job, names, needed),
            Some(PlacementSource::Rule(rule)) => *rule,
            None => Rule::default(),
        };
        if free.len() < needed {
            return Err(format!(
                "`{}` needs {}, and {} of {} are free",
                clip(&job.name),
                many(needed, "host"),
                free.len(),
                self.fabric.hosts().len()
            ));
        }
        let given = match rule {
            Rule::Blocks => free[..needed].to_vec(),
            Rule::Spread => (0..needed)
                .map(|place| free[place * free.len() / needed])
                .collect(),
            Rule::Random => {
                let mut drawn = free;
                Random::new(1, self.jobs).shuffle(&mut drawn);
                drawn.truncate(needed);
                drawn
            }
            Rule::Rules => self.by_rules(job, needed)?,
        };
        self.give(job, given)
    }

    fn give(&mut self, job: &JobTable, hosts: Vec<NodeId>) -> Result<Vec<NodeId>, String> {
        for &host in &hosts {
            if let Some(owner) = self.taken.insert(host, job.name.clone()) {
                return Err(format!(
                    "{} belongs to `{}`: a host runs one job",
                    self.fabric.node_name(host),
                    clip(&owner)
                ));
            }
        }
        Ok(hosts)
    }

    fn named(
        &mut self,
        job: &JobTable,
        names: &[NodeName],
        needed: usize,
    ) -> Result<Vec<NodeId>, String> {
        if names.len() < needed {
            return Err(format!(
                "`{}` needs {}, and {} are named",
                clip(&job.name),
                many(needed, "host"),
                names.len()
            ));
        }
        let mut hosts = Vec::with_capacity(needed);
        for name in &names[..needed] {
            let found = name.find(self.fabric);
            let host = found.filter(|node| self.fabric.is_host(*node));
            hosts.push(host.ok_or_else(|| {
                format!(
                    "there is no host `{}` (`raddle fabric show` lists the nodes)",
                    clip(&name.to_string())
                )
            })?);
        }
        self.give(job, hosts)
    }

    fn by_rules(&self, job: &JobTable, needed: usize) -> Result<Vec<NodeId>, String> {
        let map = CnTnMap::recognise(self.fabric)
            .map_err(|error| format!("the seven rules are for CN/TN fat trees: {error}"))?;
        let mut machine = Machine::of_map(&map);
        let mut others = BTreeMap::<&str, Vec<NodeId>>::new();
        for (host, owner) in &self.taken {
            others.entry(owner).or_default().push(*host);
        }
        for (owner, hosts) in others {
            machine
                .occupy(owner, &hosts)
                .map_err(|error| error.to_string())?;
        }
        let request = JobRequest {
            name: job.name.clone(),
            terminals: needed as u32,
        };
        let placed = machine.place(&request).map_err(|error| error.to_string())?;
        Ok(placed.terminals)
    }
}
