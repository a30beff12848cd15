//! Hierarchical communicators: one layer per level.

use super::{
    Communicator, GroupError, GroupSet, MAX_MEMBERSHIPS, bad, terminals_of, used_terminals,
};

/// Nested blocks of consecutive processes, as node, CN and whole machine: each level is one layer (section 3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// Processes of a block on each level, from the lowest level; each a multiple of the one before it, the first a
    /// multiple of `processes_per_terminal`. The last block of a level may be shorter.
    pub sizes: Vec<u64>,
    /// All processes; `None` fills every terminal.
    pub processes: Option<u64>,
    /// Processes on each terminal, from 1.
    pub processes_per_terminal: u32,
    /// Whether only the first process of each block takes part in the level above, as in collectives that work level
    /// by level; otherwise all processes do.
    pub leaders_only: bool,
}

impl Hierarchy {
    /// The groups: level by level, and blocks in order.
    ///
    /// # Errors
    /// No level, a size of 0 or one that is no multiple of the one below, more processes than fit.
    pub fn groups(&self, terminals: u32) -> Result<GroupSet, GroupError> {
        let per_terminal = self.processes_per_terminal;
        let processes = self
            .processes
            .unwrap_or_else(|| u64::from(terminals) * u64::from(per_terminal));
        let used = used_terminals(processes, terminals, per_terminal)?;
        if self.sizes.is_empty() || self.sizes.len() > 64 {
            return Err(bad(
                "dims",
                format!("{} levels", self.sizes.len()),
                "1 to 64 levels",
            ));
        }
        let memberships = processes * self.sizes.len() as u64;
        if memberships > MAX_MEMBERSHIPS {
            return Err(GroupError::TooLarge {
                what: "memberships",
                count: memberships.into(),
                limit: MAX_MEMBERSHIPS,
            });
        }
        let mut communicators = Vec::new();
        let mut below = u64::from(per_terminal);
        for (level, &size) in (0..).zip(&self.sizes) {
            if size == 0 || size % below != 0 {
                let cure = format!(
                    "level {level} must be a multiple of {below}, which is {}",
                    if level == 0 {
                        "the number of processes on a terminal"
                    } else {
                        "the size of the level below"
                    }
                );
                return Err(bad("dims", size, cure));
            }
            // Leaders are one step of the level below apart; on the lowest level everybody takes part.
            let step = if self.leaders_only && level > 0 {
                below
            } else {
                1
            };
            for (block, start) in (0..processes).step_by(size as usize).enumerate() {
                let end = start.saturating_add(size).min(processes);
                communicators.push(Communicator {
                    name: format!("level{level}-{block}"),
                    layer: level,
                    members: terminals_of((start..end).step_by(step as usize), per_terminal),
                });
            }
            below = size;
        }
        Ok(GroupSet {
            communicators,
            layers: self.sizes.len() as u32,
            layered: true,
            terminals: used,
        })
    }
}
