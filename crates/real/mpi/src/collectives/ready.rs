//! A communicator that has groups at the switches, or waits for them to come back: which call goes which way, and when all
//! ranks meet to try again what has failed (`raddle_offload::retry`).

use std::{collections::HashMap, time::Duration};

use raddle_host::clock;
use raddle_offload::{
    order::{self, Plan},
    reduce::Comparison,
    retry::{Retry, Step, Waits},
};
use raddle_units::Span;
use raddle_wire::{DataType, Operation, native::Collective};

use super::{
    adapt::{Choice, Classes},
    addition_order,
    call::{Call, View},
    counts::Rounds,
    group::Group,
    link::Ending,
    reason::Reason,
    roles::Roles,
};
use crate::{
    library::{Mpi, PlainFailed},
    settings,
};

/// Kinds of calls (count, type, operation, root) whose order of additions is looked into. Others stay plain.
const MOST_KINDS: usize = 4096;
/// Groups at the switches for one communicator: one for each tree of additions.
const MOST_LANES: usize = 4;

/// A communicator over several nodes whose ranks have agreed that it could gain.
pub(crate) struct Ready<M> {
    group: Group<M>,
    order: settings::Order,
    pub(crate) classes: Classes,
    kinds: HashMap<Kind, Way>,
    /// `None`: what has failed is not tried again.
    retry: Option<Retry>,
    /// Why all is plain for the time being.
    off: Option<Reason>,
}

/// What the order of additions can depend on.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Kind {
    collective: Collective,
    operation: Option<Operation>,
    data_type: Option<DataType>,
    count: usize,
    handle: usize,
    root: u32,
}

#[derive(Clone, Copy)]
enum Way {
    Lane(Lane),
    Plain(Reason),
}

/// Where a kind of calls is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    index: usize,
    ordered: bool,
}

impl<M: Mpi> Ready<M> {
    /// All ranks call it.
    pub(crate) fn new(view: &View<M>, roles: Roles) -> Result<Self, PlainFailed> {
        let first = view.settings.come_back;
        let waits = Waits::from_first(clock::span(first));
        let retry = || Retry::new(waits, view.rank == 0);
        Ok(Self {
            group: Group::new(view.plain.clone(), view.settings, view.rank, roles)?,
            order: view.settings.order,
            classes: Classes::new(),
            kinds: HashMap::new(),
            retry: (first > Duration::ZERO).then(retry),
            off: None,
        })
    }

    /// Why all calls are plain for the time being.
    pub(crate) const fn off(&self) -> Option<Reason> {
        self.off
    }

    /// How long it is until what has failed is tried again; `None`: it is not.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let rest = self.retry.as_ref()?.rest(clock::now());
        Some(Duration::from_nanos(rest.as_ns()))
    }

    /// Whether all ranks meet before they do the call of this number.
    pub(crate) fn is_due(&self, call: u64) -> bool {
        let retry = self.retry.as_ref();
        retry.is_some_and(|retry| retry.is_due(call))
    }

    /// All ranks meet before the call of this number; what they do next.
    pub(crate) fn meet(&mut self, plain: &M, call: u64) -> Result<Step, PlainFailed> {
        let Some(retry) = &mut self.retry else {
            return Ok(Step::GoOn);
        };
        let said = retry.say(clock::now(), self.group.try_state());
        let least = plain.least(said)?;
        self.group.forget_failed();
        let step = retry.hear(call, clock::now(), least);
        match step {
            Step::GoOn => {}
            Step::Begin => {
                if let Some(lane) = self.group.next_down()
                    && let Err(reason) = self.group.begin(lane)?
                {
                    retry.set_up_failed(call, clock::now());
                    self.down(reason);
                }
            }
            Step::GiveUp(code) => {
                let reason = Reason::from_number(i32::from(code));
                self.group.give_up(reason);
                self.down(reason);
            }
            Step::Ready => match self.group.settle()? {
                Ok(()) => {
                    self.off = None;
                    if self.group.next_down().is_some() {
                        retry.go_on(call, clock::now());
                    }
                }
                Err(reason) => {
                    retry.set_up_failed(call, clock::now());
                    self.down(reason);
                    return Ok(Step::GiveUp(reason as u8));
                }
            },
        }
        Ok(step)
    }

    /// A group is not there, for this reason.
    fn down(&mut self, reason: Reason) {
        if !self.group.is_up() {
            self.off = Some(reason);
        }
    }

    /// The way of a call, the number of which is given. All ranks come here with the same call; the first of a kind asks and
    /// may set up.
    pub(crate) fn way(
        &mut self,
        view: &View<M>,
        call: &Call,
        number: u64,
    ) -> Result<Result<Lane, Reason>, PlainFailed> {
        let lane = match self.kind(view, call)? {
            Way::Lane(lane) => lane,
            Way::Plain(reason) => return Ok(Err(reason)),
        };
        let retry = self.retry.as_ref();
        let is_settled = retry.is_none_or(Retry::is_settled);
        // While others wait for their next try, it waits with them.
        if self.group.is_new(lane.index) && is_settled {
            self.set_up(lane, number)?;
        }
        Ok(self
            .group
            .check(lane.index, lane.ordered, call)
            .map(|()| lane))
    }

    fn set_up(&mut self, lane: Lane, call: u64) -> Result<(), PlainFailed> {
        let is_first = !self.group.is_up();
        let outcome = self.group.set_up(lane.index)?;
        match (outcome, &mut self.retry) {
            (Ok(()), Some(retry)) if is_first => retry.stands(call, clock::now()),
            (Err(_), Some(retry)) => retry.set_up_failed(call, clock::now()),
            _ => {}
        }
        if let Err(reason) = outcome {
            self.down(reason);
        }
        Ok(())
    }

    fn kind(&mut self, view: &View<M>, call: &Call) -> Result<Way, PlainFailed> {
        let kind = match call.collective {
            // No values are combined: the length does not matter.
            Collective::Barrier | Collective::Bcast => Kind {
                collective: call.collective,
                operation: None,
                data_type: None,
                count: 0,
                handle: 0,
                root: 0,
            },
            Collective::Allreduce | Collective::Reduce => Kind {
                collective: call.collective,
                operation: call.operation,
                data_type: call.data_type,
                count: call.count,
                handle: call.handle,
                root: call.root,
            },
        };
        if let Some(way) = self.kinds.get(&kind) {
            return Ok(*way);
        }
        if self.kinds.len() >= MOST_KINDS {
            return Ok(Way::Plain(Reason::Order));
        }
        let way = self.find(view, &kind)?;
        self.kinds.insert(kind, way);
        Ok(way)
    }

    fn find(&mut self, view: &View<M>, kind: &Kind) -> Result<Way, PlainFailed> {
        let plan = match (kind.operation, kind.data_type) {
            (Some(operation), Some(data_type)) => {
                let call = order::Call {
                    collective: kind.collective,
                    operation,
                    data_type,
                    count: kind.count,
                    size: view.size,
                    root: kind.root,
                    placement: self.group.placement(),
                    comparison: Comparison::Same,
                };
                addition_order::plan(&view.plain, self.order, view.rank, kind.handle, call)?
            }
            _ => Ok(Plan::Any),
        };
        let tree = match &plan {
            Ok(Plan::Tree(tree)) => Some(tree),
            Ok(_) => None,
            Err(reason) => return Ok(Way::Plain(*reason)),
        };
        Ok(match self.group.lane(tree, MOST_LANES) {
            Ok(index) => Way::Lane(Lane {
                index,
                ordered: tree.is_some(),
            }),
            Err(reason) => Way::Plain(reason),
        })
    }

    pub(crate) fn choose(&mut self, plain: &M, collective: Collective, bytes: usize) -> Choice {
        let class = self.classes.of(collective, bytes);
        let choice = class.next();
        if choice != Choice::Compare {
            return choice;
        }
        let Ok(sums) = plain.sum(class.medians()) else {
            return Choice::Plain;
        };
        class.decide(sums);
        class.next()
    }

    /// Does a call. False: it is plain, on every rank, and offload is over for now.
    pub(crate) fn run(
        &mut self,
        lane: Lane,
        call: &Call,
        number: u64,
    ) -> Result<bool, PlainFailed> {
        match self.group.run(lane.index, lane.ordered, call)? {
            Ending::Done => Ok(true),
            Ending::Plain { held_up } => {
                self.fall_back(number, held_up);
                Ok(false)
            }
        }
    }

    /// Every rank learns it at the same call, the first one that is plain.
    fn fall_back(&mut self, call: u64, held_up: Span) {
        self.group.fall_back();
        self.off = Some(Reason::Failed);
        if let Some(retry) = &mut self.retry {
            retry.fell_back(call, clock::now(), held_up);
        }
    }

    /// What this rank's links have done.
    pub(crate) fn rounds(&self) -> Rounds {
        self.group.rounds()
    }

    /// The communicator is about to be freed.
    pub(crate) fn release(&mut self) {
        self.group.release();
    }

    /// The switches are told; nothing is offloaded any more. MPI is not called.
    pub(crate) fn close(&mut self) {
        self.group.fall_back();
        self.retry = None;
    }
}
