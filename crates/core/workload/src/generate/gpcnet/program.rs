//! What the ranks of one communicator do in each step.

use raddle_units::Bytes;

use super::{FIRST_RING_STREAM, Gpcnet, Victim};
use raddle_random::Random;

/// Messages that a rank sends in a step, and how many it waits for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Plan {
    /// (rank in the communicator, messages); at most two targets.
    pub(super) targets: [Option<(u32, u32)>; 2],
    pub(super) receives: u32,
    pub(super) size: Bytes,
    pub(super) kind: Kind,
}

impl Plan {
    /// The rank that gets a message, counted within the step.
    pub(super) fn target(&self, place: u64) -> Option<u32> {
        let mut before = 0;
        let mut targets = self.targets.iter().flatten();
        let target = targets.find(|&&(_, count)| {
            before += u64::from(count);
            place < before
        });
        target.map(|&(target, _)| target)
    }
}

/// Part of a test, for the class of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Kind {
    #[default]
    Latency,
    Bandwidth,
    Barrier,
    Allreduce,
}

/// Step `step` of an endless all-to-all among `ranks`: one message out, one in.
pub(super) fn alltoall_target(rank: u32, ranks: u32, step: u64) -> u32 {
    let shift = (step % u64::from(ranks - 1)) as u32 + 1;
    if ranks.is_power_of_two() {
        rank ^ shift
    } else {
        (rank + shift) % ranks
    }
}

/// A run of equal iterations.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// First step of the block.
    first: u64,
    steps_per_iteration: u64,
    task: Task,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Latency { ring: usize },
    Bandwidth { ring: usize },
    Allreduce,
    Barrier,
}

/// The tests of one communicator of victims, step by step.
#[derive(Clone, Debug)]
pub(super) struct Program {
    blocks: Vec<Block>,
    steps: u64,
    width: u64,
    ranks: u32,
    rings: Vec<Ring>,
    sizes: Sizes,
    window: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    latency: Bytes,
    bandwidth: Bytes,
    allreduce: Bytes,
    barrier: Bytes,
}

/// A random cycle through all ranks.
#[derive(Clone, Debug)]
struct Ring {
    order: Vec<u32>,
    place: Vec<u32>,
}

impl Ring {
    fn new(ranks: u32, random: &mut Random) -> Self {
        let mut order: Vec<u32> = (0..ranks).collect();
        random.shuffle_to_cycle(&mut order);
        let mut place = vec![0; order.len()];
        for (index, &rank) in order.iter().enumerate() {
            place[rank as usize] = index as u32;
        }
        Self { order, place }
    }

    fn neighbours(&self, rank: u32) -> [u32; 2] {
        let n = self.order.len();
        let at = self.place[rank as usize] as usize;
        [self.order[(at + n - 1) % n], self.order[(at + 1) % n]]
    }
}

impl Program {
    /// The tests of `spec` for the victims of a slice; all ring tests use the same rings, as GPCNeT does.
    pub(super) fn new(spec: &Gpcnet, ranks: u32, slice: u64, seed: u64) -> Self {
        let mut random = Random::new(seed, FIRST_RING_STREAM + slice);
        let rings: Vec<Ring> = (0..spec.rings)
            .map(|_| Ring::new(ranks, &mut random))
            .collect();
        let mut program = Self {
            blocks: Vec::new(),
            steps: 0,
            width: 1,
            ranks,
            rings,
            sizes: Sizes {
                latency: spec.latency_size,
                bandwidth: spec.bandwidth_size,
                allreduce: spec.allreduce_size,
                barrier: spec.barrier_size,
            },
            window: spec.bandwidth_window,
        };
        for victim in &spec.victims {
            match victim {
                Victim::Latency => (0..program.rings.len()).for_each(|ring| {
                    program.push(Task::Latency { ring }, 1, spec.latency_iterations);
                }),
                Victim::Bandwidth => (0..program.rings.len()).for_each(|ring| {
                    let steps = 1 + program.barrier_rounds();
                    program.push(Task::Bandwidth { ring }, steps, spec.bandwidth_iterations);
                }),
                Victim::Allreduce => {
                    let steps = program.allreduce_steps();
                    program.push(Task::Allreduce, steps, spec.allreduce_iterations);
                }
            }
            program.push(Task::Barrier, program.barrier_rounds(), 1);
        }
        program
    }

    fn push(&mut self, task: Task, steps_per_iteration: u64, iterations: u32) {
        self.blocks.push(Block {
            first: self.steps,
            steps_per_iteration,
            task,
        });
        self.steps += steps_per_iteration * u64::from(iterations);
        self.width = self.width.max(match task {
            Task::Latency { .. } => 2,
            Task::Bandwidth { .. } => 2 * u64::from(self.window),
            Task::Barrier | Task::Allreduce => 1,
        });
    }

    /// Rounds of a dissemination barrier: ceil(log2 n).
    fn barrier_rounds(&self) -> u64 {
        u64::from(self.ranks.next_power_of_two().trailing_zeros())
    }

    /// The largest power of two that is not above the number of ranks.
    fn doubling_ranks(&self) -> u32 {
        1 << self.ranks.ilog2()
    }

    /// Fold, doubling steps, unfold (the folds are empty for a power of two).
    fn allreduce_steps(&self) -> u64 {
        u64::from(self.ranks.ilog2()) + 2
    }

    /// What `rank` does in `step`, or nothing when all tests are over.
    pub(super) fn plan(&self, rank: u32, step: u64) -> Option<Plan> {
        if step >= self.steps {
            return None;
        }
        let index = self.blocks.partition_point(|block| block.first <= step) - 1;
        let block = self.blocks[index];
        let sub = (step - block.first) % block.steps_per_iteration;
        Some(match block.task {
            Task::Latency { ring } => {
                self.ring_plan(ring, rank, 1, self.sizes.latency, Kind::Latency)
            }
            Task::Bandwidth { ring } if sub == 0 => self.ring_plan(
                ring,
                rank,
                self.window,
                self.sizes.bandwidth,
                Kind::Bandwidth,
            ),
            Task::Bandwidth { .. } => self.barrier_plan(rank, sub - 1),
            Task::Barrier => self.barrier_plan(rank, sub),
            Task::Allreduce => self.allreduce_plan(rank, sub),
        })
    }

    fn ring_plan(&self, ring: usize, rank: u32, count: u32, size: Bytes, kind: Kind) -> Plan {
        let [left, right] = self.rings[ring].neighbours(rank);
        let targets = [Some((left, count)), Some((right, count))];
        Plan {
            targets,
            receives: 2 * count,
            size,
            kind,
        }
    }

    /// Dissemination: in round k to the rank 2^k further on.
    fn barrier_plan(&self, rank: u32, round: u64) -> Plan {
        let target = (u64::from(rank) + (1 << round)) % u64::from(self.ranks);
        let size = self.sizes.barrier;
        Plan {
            targets: [Some((target as u32, 1)), None],
            receives: 1,
            size,
            kind: Kind::Barrier,
        }
    }

    /// Recursive doubling; beyond a power of two, the first `2 extra` ranks fold in pairs before and unfold after.
    fn allreduce_plan(&self, rank: u32, sub: u64) -> Plan {
        let doubling = self.doubling_ranks();
        let extra = self.ranks - doubling;
        let folds = rank < 2 * extra;
        let sits_out = folds && rank.is_multiple_of(2);
        let last = self.allreduce_steps() - 1;
        let (target, receives) = if sub == 0 {
            if sits_out {
                (Some(rank + 1), 0)
            } else {
                (None, u32::from(folds))
            }
        } else if sub == last {
            if sits_out {
                (None, 1)
            } else {
                (folds.then(|| rank - 1), 0)
            }
        } else if sits_out {
            (None, 0)
        } else {
            let place = if folds { rank / 2 } else { rank - extra };
            let partner = place ^ (1 << (sub - 1));
            let partner = if partner < extra {
                2 * partner + 1
            } else {
                partner + extra
            };
            (Some(partner), 1)
        };
        Plan {
            targets: [target.map(|rank| (rank, 1)), None],
            receives,
            size: self.sizes.allreduce,
            kind: Kind::Allreduce,
        }
    }

    /// Messages that a rank sends in a step, at most.
    pub(super) const fn width(&self) -> u64 {
        self.width
    }

    /// Places for messages in all steps of a rank.
    pub(super) fn numbers(&self) -> u64 {
        self.steps.saturating_mul(self.width())
    }

    /// Messages of all tests.
    pub(super) fn messages(&self) -> u64 {
        let n = u64::from(self.ranks);
        let barrier = n * self.barrier_rounds();
        let mut total = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            let end = self
                .blocks
                .get(index + 1)
                .map_or(self.steps, |next| next.first);
            let iterations = (end - block.first) / block.steps_per_iteration;
            let doubling = u64::from(self.doubling_ranks());
            total += iterations
                * match block.task {
                    Task::Latency { .. } => 2 * n,
                    Task::Bandwidth { .. } => 2 * n * u64::from(self.window) + barrier,
                    Task::Barrier => barrier,
                    Task::Allreduce => {
                        doubling * u64::from(self.ranks.ilog2()) + 2 * (n - doubling)
                    }
                };
        }
        total
    }
}
