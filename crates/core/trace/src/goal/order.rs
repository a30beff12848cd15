//! From a partial order of operations to a sequence of calls.

use std::collections::BTreeSet;

use super::{At, GoalError};
use crate::model::{Action, Event, Interval, Message, Wildcards};

/// What an operation does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Send(Message),
    Receive(Message),
    /// Nanoseconds.
    Compute(u64),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) work: Work,
    pub(super) at: At,
}

/// `after` waits for `before`: for its end, or only for its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dependency {
    pub(super) after: u32,
    pub(super) before: u32,
    pub(super) start_only: bool,
}

/// What is known of an operation.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Operations that must begin before.
    to_begin: u32,
    /// Messages that must be complete before, and are not.
    to_complete: u32,
    /// Its request, once begun.
    request: Option<u32>,
    complete: bool,
}

/// The calls of a rank: of the operations whose turn it may be always the first that needs no wait, else the first, after a
/// wait for what it needs. At the end a wait for all that is left.
///
/// # Errors
/// When operations wait for each other, or computing takes more than 2^64 ns.
pub(super) fn sequence(
    operations: &[Operation],
    dependencies: &[Dependency],
) -> Result<Vec<Event>, GoalError> {
    let mut sequence = Sequence::new(operations, dependencies);
    while let Some(next) = sequence.pick() {
        sequence.wait_for(next);
        sequence.begin(next)?;
    }
    if let Some(stuck) = sequence.begun.iter().position(|&begun| !begun) {
        let problem = "it waits for itself through `requires`: remove one of them";
        return Err(operations[stuck].at.error(problem));
    }
    sequence.wait_for_rest();
    Ok(sequence.events)
}

struct Sequence<'a> {
    operations: &'a [Operation],
    /// Dependencies by `before`.
    followers: Vec<Dependency>,
    first: Vec<usize>,
    /// Dependencies by `after`: what must be complete.
    needs: Vec<Vec<u32>>,
    state: Vec<State>,
    begun: Vec<bool>,
    /// May begin now; may begin after a wait.
    free: BTreeSet<u32>,
    waiting: BTreeSet<u32>,
    events: Vec<Event>,
    requests: u32,
    now_ns: u64,
}

impl<'a> Sequence<'a> {
    fn new(operations: &'a [Operation], dependencies: &[Dependency]) -> Self {
        let mut followers = dependencies.to_vec();
        followers.sort_by_key(|dependency| dependency.before);
        let first = (0..=operations.len())
            .map(|before| followers.partition_point(|d| (d.before as usize) < before))
            .collect();
        let mut state = vec![State::default(); operations.len()];
        let mut needs = vec![Vec::new(); operations.len()];
        for dependency in dependencies {
            let after = &mut state[dependency.after as usize];
            after.to_begin += 1;
            let before = operations[dependency.before as usize].work;
            if !dependency.start_only && !matches!(before, Work::Compute(_)) {
                after.to_complete += 1;
                needs[dependency.after as usize].push(dependency.before);
            }
        }
        let free = (0..operations.len() as u32)
            .filter(|&operation| state[operation as usize].to_begin == 0)
            .collect();
        Self {
            operations,
            followers,
            first,
            needs,
            begun: vec![false; operations.len()],
            state,
            free,
            waiting: BTreeSet::new(),
            events: Vec::new(),
            requests: 0,
            now_ns: 0,
        }
    }

    fn pick(&mut self) -> Option<u32> {
        self.free.pop_first().or_else(|| self.waiting.pop_first())
    }

    fn range(&self, operation: u32) -> std::ops::Range<usize> {
        self.first[operation as usize]..self.first[operation as usize + 1]
    }

    fn wait_for(&mut self, operation: u32) {
        let mut needs = std::mem::take(&mut self.needs[operation as usize]);
        needs.retain(|&need| !self.state[need as usize].complete);
        needs.sort_unstable();
        needs.dedup();
        self.wait(&needs);
    }

    fn wait_for_rest(&mut self) {
        let mut open: Vec<u32> = (0..self.operations.len() as u32)
            .filter(|&operation| {
                let state = &self.state[operation as usize];
                state.request.is_some() && !state.complete
            })
            .collect();
        open.sort_unstable_by_key(|&operation| self.state[operation as usize].request);
        self.wait(&open);
        self.push(Action::End);
    }

    fn wait(&mut self, operations: &[u32]) {
        if operations.is_empty() {
            return;
        }
        let request = |&operation: &u32| self.state[operation as usize].request;
        let requests = operations.iter().filter_map(request).collect();
        self.push(Action::Wait { requests });
        for &operation in operations {
            self.state[operation as usize].complete = true;
            for index in self.range(operation) {
                let dependency = self.followers[index];
                if dependency.start_only {
                    continue;
                }
                let after = &mut self.state[dependency.after as usize];
                after.to_complete -= 1;
                if after.to_complete == 0 && self.waiting.remove(&dependency.after) {
                    self.free.insert(dependency.after);
                }
            }
        }
    }

    fn begin(&mut self, operation: u32) -> Result<(), GoalError> {
        let Operation { work, at } = self.operations[operation as usize];
        self.begun[operation as usize] = true;
        let request = Some(self.requests);
        match work {
            Work::Compute(ns) => {
                let end = self.now_ns.checked_add(ns);
                self.now_ns = end.ok_or_else(|| at.error("computing takes more than 2^64 ns"))?;
            }
            Work::Send(message) => self.push(Action::Send { message, request }),
            Work::Receive(message) => self.push(Action::Receive {
                message,
                request,
                any: Wildcards::default(),
            }),
        }
        if !matches!(work, Work::Compute(_)) {
            self.state[operation as usize].request = request;
            self.requests += 1;
        }
        for index in self.range(operation) {
            let after = self.followers[index].after;
            let state = &mut self.state[after as usize];
            state.to_begin -= 1;
            if state.to_begin == 0 {
                let line = if state.to_complete == 0 {
                    &mut self.free
                } else {
                    &mut self.waiting
                };
                line.insert(after);
            }
        }
        Ok(())
    }

    fn push(&mut self, action: Action) {
        let at = Interval::instant(self.now_ns);
        self.events.push(Event { at, action });
    }
}
