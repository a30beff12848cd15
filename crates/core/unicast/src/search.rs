//! Breadth-first searches from many switches at once: a bit of a word for each.
//!
//! 64 searches walk the same links, so that a link is looked at once for all of them (the multi-source search of M. Then
//! et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", PVLDB 8(4), 2014).

/// The links between switches: for each switch its neighbours, in the order of lists of next hops.
pub(crate) struct Neighbours {
    /// Where the neighbours of each switch begin in `peers`, and the end.
    pub(crate) starts: Vec<u32>,
    /// Switches, by their number among the switches.
    pub(crate) peers: Vec<u32>,
}

impl Neighbours {
    pub(crate) fn of(&self, switch: u32) -> &[u32] {
        let start = self.starts[switch as usize] as usize;
        let end = self.starts[switch as usize + 1] as usize;
        &self.peers[start..end]
    }

    pub(crate) fn switches(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The searches; their memory serves all sets of sources.
pub(crate) struct Search {
    /// Per switch: the searches that reached it in this step.
    front: Vec<u64>,
    /// The same, for the step before.
    before: Vec<u64>,
    /// The searches that reached it in any step.
    seen: Vec<u64>,
    /// Switches with bits in `front`.
    reached: Vec<u32>,
    /// Switches with bits in `before`.
    reached_before: Vec<u32>,
}

impl Search {
    pub(crate) fn new(switches: usize) -> Self {
        Self {
            front: vec![0; switches],
            before: vec![0; switches],
            seen: vec![0; switches],
            reached: Vec::with_capacity(switches),
            reached_before: Vec::with_capacity(switches),
        }
    }

    /// Forgets the searches before.
    pub(crate) fn clear(&mut self) {
        self.seen.fill(0);
        for (switches, bits) in [
            (&mut self.reached, &mut self.front),
            (&mut self.reached_before, &mut self.before),
        ] {
            for switch in switches.drain(..) {
                bits[switch as usize] = 0;
            }
        }
    }

    /// A switch where searches begin.
    pub(crate) fn begin(&mut self, switch: u32, searches: u64) {
        if self.front[switch as usize] == 0 {
            self.reached.push(switch);
        }
        self.front[switch as usize] |= searches;
        self.seen[switch as usize] |= searches;
    }

    /// One hop further. False where no search reached a new switch.
    pub(crate) fn step(&mut self, neighbours: &Neighbours) -> bool {
        std::mem::swap(&mut self.front, &mut self.before);
        std::mem::swap(&mut self.reached, &mut self.reached_before);
        for switch in self.reached.drain(..) {
            self.front[switch as usize] = 0;
        }
        for &switch in &self.reached_before {
            let searches = self.before[switch as usize];
            for &peer in neighbours.of(switch) {
                let new = searches & !self.seen[peer as usize];
                if new != 0 {
                    let front = &mut self.front[peer as usize];
                    if *front == 0 {
                        self.reached.push(peer);
                    }
                    *front |= new;
                }
            }
        }
        for &switch in &self.reached {
            self.seen[switch as usize] |= self.front[switch as usize];
        }
        !self.reached.is_empty()
    }

    /// Switches that were reached in the last step, each once.
    pub(crate) fn reached(&self) -> &[u32] {
        &self.reached
    }

    /// The searches that reached a switch in the last step.
    pub(crate) fn front(&self, switch: u32) -> u64 {
        self.front[switch as usize]
    }

    /// The searches that reached a switch in the step before the last.
    pub(crate) fn before(&self, switch: u32) -> u64 {
        self.before[switch as usize]
    }
}

/// Searches that have the same list of choices.
#[derive(Clone, Default)]
pub(crate) struct Part {
    pub(crate) searches: u64,
    /// The choices, ascending.
    pub(crate) choices: Choices,
}

/// Numbers in ascending order; no memory as long as none between the first and the last is left out.
#[derive(Clone, Default)]
pub(crate) struct Choices {
    pub(crate) first: u16,
    pub(crate) count: u16,
    scattered: Vec<u16>,
}

impl Choices {
    fn push(&mut self, choice: u16) {
        if self.scattered.is_empty() {
            if self.count == 0 {
                self.first = choice;
            } else if self.first + self.count != choice {
                self.scattered.extend(self.first..self.first + self.count);
            }
        }
        if !self.scattered.is_empty() {
            self.scattered.push(choice);
        }
        self.count += 1;
    }

    /// The numbers where they are no stretch.
    pub(crate) fn scattered(&self) -> Option<&[u16]> {
        (!self.scattered.is_empty()).then_some(&self.scattered)
    }
}

/// Parts searches by the choices that each has: `choices` gives, for each number from 0, the searches that may choose
/// it. Searches without any choice are in no part.
pub(crate) fn part(choices: impl Iterator<Item = u64>, parts: &mut Vec<Part>) {
    parts.clear();
    let mut known = 0u64;
    for (searches, choice) in choices.zip(0u16..) {
        if searches == 0 {
            continue;
        }
        if searches & known != 0 {
            for index in 0..parts.len() {
                let part = &mut parts[index];
                let chosen = part.searches & searches;
                if chosen == part.searches {
                    part.choices.push(choice);
                } else if chosen != 0 {
                    part.searches &= !chosen;
                    let mut choices = part.choices.clone();
                    choices.push(choice);
                    parts.push(Part {
                        searches: chosen,
                        choices,
                    });
                }
            }
        }
        let new = searches & !known;
        if new != 0 {
            let mut choices = Choices::default();
            choices.push(choice);
            parts.push(Part {
                searches: new,
                choices,
            });
            known |= new;
        }
    }
}
