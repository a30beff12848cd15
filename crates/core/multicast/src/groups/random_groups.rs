//! Random groups.

use super::{
    Communicator, GroupError, GroupSet, MAX_MEMBERSHIPS, MAX_PROCESSES, bad, used_terminals,
};
use raddle_random::Random;
use raddle_units::many;

/// Groups with random members.
///
/// There is one layer per process of a terminal: process i of a terminal joins a group of layer i. Otherwise, with
/// four processes and 1,000 groups, terminals would meet a colour twice (rebuilt; the paper does not say it).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomGroups {
    /// Groups of all layers together, from 1; spread over the layers as evenly as whole numbers allow.
    pub count: u32,
    /// Decides the draws; layer i has stream i.
    pub seed: u64,
    /// Processes on each terminal, from 1, and at most `count`.
    pub processes_per_terminal: u32,
    /// `None`: every process joins one group at random, groups that nobody joined are left out. A number: groups of
    /// exactly so many terminals, cut from a random order of all terminals, a new one for each layer.
    pub members_per_group: Option<u32>,
}

impl RandomGroups {
    /// The groups over all of `terminals` terminals.
    ///
    /// # Errors
    /// A number that is 0 or too large, more layers than groups, and groups that do not fit into the layers.
    pub fn groups(&self, terminals: u32) -> Result<GroupSet, GroupError> {
        let layers = self.processes_per_terminal;
        let processes = u64::from(terminals) * u64::from(layers);
        used_terminals(processes, terminals, layers)?;
        if self.count == 0 {
            return Err(bad("count", 0, "there must be at least 1 group"));
        }
        if layers > self.count {
            let cure = format!(
                "every process of a terminal needs a layer with a group: at least {}",
                many(layers, "group")
            );
            return Err(bad("count", self.count, cure));
        }
        if u64::from(self.count) > MAX_PROCESSES {
            return Err(GroupError::TooLarge {
                what: "groups",
                count: self.count.into(),
                limit: MAX_PROCESSES,
            });
        }
        let mut communicators = Vec::new();
        let mut number = 0;
        for layer in 0..layers {
            let groups = self.count / layers + u32::from(layer < self.count % layers);
            let mut random = Random::new(self.seed, layer.into());
            let sets = match self.members_per_group {
                None => joined(groups, terminals, &mut random),
                Some(size) => self.cut(size, groups, terminals, &mut random)?,
            };
            for members in sets {
                if !members.is_empty() {
                    communicators.push(Communicator {
                        name: format!("random-{number}"),
                        layer,
                        members,
                    });
                }
                number += 1;
            }
        }
        Ok(GroupSet {
            communicators,
            layers,
            layered: true,
            terminals,
        })
    }

    fn cut(
        &self,
        size: u32,
        groups: u32,
        terminals: u32,
        random: &mut Random,
    ) -> Result<Vec<Vec<u32>>, GroupError> {
        if size == 0 {
            return Err(bad("members_per_group", 0, "a group has at least 1 member"));
        }
        let fit = terminals / size;
        if fit == 0 {
            let cure = format!("the fabric has only {}", many(terminals, "terminal"));
            return Err(bad("members_per_group", size, cure));
        }
        if groups > fit {
            let cure = format!(
                "{} of {size} fit in a layer of {}: at most {} in all, or {} per terminal",
                many(fit, "group"),
                many(terminals, "terminal"),
                u64::from(fit) * u64::from(self.processes_per_terminal),
                many(self.count.div_ceil(fit), "process"),
            );
            return Err(bad("count", self.count, cure));
        }
        let memberships = u64::from(self.count) * u64::from(size);
        if memberships > MAX_MEMBERSHIPS {
            return Err(GroupError::TooLarge {
                what: "memberships",
                count: memberships.into(),
                limit: MAX_MEMBERSHIPS,
            });
        }
        let mut order: Vec<u32> = (0..terminals).collect();
        random.shuffle(&mut order);
        let sets = order
            .chunks_exact(size as usize)
            .take(groups as usize)
            .map(|members| {
                let mut members = members.to_vec();
                members.sort_unstable();
                members
            });
        Ok(sets.collect())
    }
}

/// Every terminal joins one of the groups.
fn joined(groups: u32, terminals: u32, random: &mut Random) -> Vec<Vec<u32>> {
    let mut sets = vec![Vec::new(); groups as usize];
    for terminal in 0..terminals {
        sets[random.below(groups.into()) as usize].push(terminal);
    }
    sets
}
