//! The rounds of one communicator: values of a node's ranks come together at its leader by plain MPI, the leader does
//! the round, and its ranks get the result from it.

use std::{slice, sync::Arc};

use raddle_offload::{
    member::RoundSpec,
    order::{Expression, Placement},
    program::Program,
    retry::TryState,
};
use raddle_units::Span;
use raddle_wire::{DataType, native::Collective};

use super::{
    attempt::LeaderAttempt,
    call::Call,
    counts::Rounds,
    layout,
    link::{Ending, Link},
    reason::Reason,
    roles::Roles,
    service,
    setup::{self, Abilities},
};
use crate::{
    library::{Mpi, PlainFailed},
    settings::Settings,
};

/// First byte of what a leader tells its ranks.
const DONE: u8 = 1;
/// What a rank says when nothing is wrong with it; above all codes of reasons.
const FINE: i32 = 1000;

/// One group at the switches, or none for the time being: all rounds whose order does not matter, and those of one tree of
/// operations.
struct Lane {
    tree: Option<Expression>,
    /// How the leader combines its ranks' values in ordered rounds.
    ordered: Option<Program>,
    state: State,
}

/// The same on all ranks but for links and attempts, which leaders have.
enum State {
    New,
    /// After it was down for a reason, if it was.
    Trying(Option<Arc<LeaderAttempt>>, Option<Reason>),
    Up {
        abilities: Abilities,
        link: Option<Arc<Link>>,
    },
    Down(Reason),
}

impl Lane {
    /// Why it is or was down last, as long as it has not come up again.
    const fn down(&self) -> Option<Reason> {
        match self.state {
            State::Down(reason) => Some(reason),
            State::Trying(_, before) => before,
            State::New | State::Up { .. } => None,
        }
    }
}

/// Why a lane without its group waits: because of itself, or of the one that is tried before it.
fn awaited(lanes: &[Lane], lane: usize, tried: usize) -> Reason {
    let others = lanes.iter().cycle().skip(tried).take(lanes.len());
    let mut all = [&lanes[lane]].into_iter().chain(others);
    all.find_map(Lane::down).unwrap_or(Reason::Failed)
}

/// Buffers that stay from call to call.
#[derive(Default)]
struct Buffers {
    mine: Vec<u8>,
    gathered: Vec<u8>,
    operands: Vec<u8>,
    result: Vec<u8>,
    told: Vec<u8>,
}

pub(crate) struct Group<M> {
    plain: M,
    settings: &'static Settings,
    rank: u32,
    roles: Roles,
    /// The ranks of this member, if there are several.
    local: Option<M>,
    /// How the leader combines its ranks' values where the order does not matter.
    fold: Program,
    lanes: Vec<Lane>,
    /// The lane that was tried last.
    tried: usize,
    /// Links of lanes that have failed: other members may still lack their last result.
    failed: Vec<Arc<Link>>,
    /// What the links have done that are gone.
    past: Rounds,
    buffers: Buffers,
}

impl<M: Mpi> Group<M> {
    /// All ranks call it.
    pub(crate) fn new(
        plain: M,
        settings: &'static Settings,
        rank: u32,
        roles: Roles,
    ) -> Result<Self, PlainFailed> {
        let local = if roles.members.iter().any(|ranks| ranks.len() > 1) {
            let part = plain.split(roles.member, roles.local_rank)?;
            if roles.local_size() == 1 {
                part.free();
                None
            } else {
                Some(part)
            }
        } else {
            None
        };
        let fold = Program::fold(roles.local_size()).map_err(|_| PlainFailed)?;
        Ok(Self {
            plain,
            settings,
            rank,
            roles,
            local,
            fold,
            lanes: Vec::new(),
            tried: 0,
            failed: Vec::new(),
            past: Rounds::default(),
            buffers: Buffers::default(),
        })
    }

    /// The lane for a tree, or for rounds whose order does not matter. All ranks call it.
    pub(crate) fn lane(&mut self, tree: Option<&Expression>, most: usize) -> Result<usize, Reason> {
        let fits = |lane: &Lane| tree.is_none() || lane.tree.as_ref() == tree;
        if let Some(index) = self.lanes.iter().position(fits) {
            return Ok(index);
        }
        if self.lanes.len() >= most {
            return Err(Reason::Order);
        }
        let ordered = match tree {
            None => None,
            Some(tree) => {
                let ranks: Vec<_> = self.ranks().iter().map(|rank| vec![*rank]).collect();
                Some(Program::for_node(tree, &ranks).map_err(|_| Reason::Order)?)
            }
        };
        self.lanes.push(Lane {
            tree: tree.cloned(),
            ordered,
            state: State::New,
        });
        Ok(self.lanes.len() - 1)
    }

    /// Whether no rank has tried to set this lane's group up.
    pub(crate) fn is_new(&self, lane: usize) -> bool {
        matches!(self.lanes[lane].state, State::New)
    }

    /// Some lane has its group.
    pub(crate) fn is_up(&self) -> bool {
        let up = |lane: &Lane| matches!(lane.state, State::Up { .. });
        self.lanes.iter().any(up)
    }

    /// The lane whose group is to be tried next; `None`: all have theirs.
    pub(crate) fn next_down(&self) -> Option<usize> {
        let count = self.lanes.len();
        let mut others = (1..=count).map(|step| (self.tried + step) % count);
        others.find(|lane| !matches!(self.lanes[*lane].state, State::Up { .. }))
    }

    /// Begins to set a lane's group up. All ranks call it, and come to the same answer.
    pub(crate) fn begin(&mut self, lane: usize) -> Result<Result<(), Reason>, PlainFailed> {
        self.tried = lane;
        let tree = self.lanes[lane].tree.as_ref();
        let begun = setup::begin(&self.plain, self.settings, self.rank, &self.roles, tree)?;
        let (state, begun) = match begun {
            Ok(attempt) => (State::Trying(attempt, self.lanes[lane].down()), Ok(())),
            Err(reason) => (State::Down(reason), Err(reason)),
        };
        self.lanes[lane].state = state;
        Ok(begun)
    }

    /// How the set-up that was begun stands at this rank.
    pub(crate) fn try_state(&self) -> TryState {
        match self.lanes.get(self.tried).map(|lane| &lane.state) {
            Some(State::Trying(Some(attempt), _)) => attempt.try_state(),
            _ => TryState::Ready,
        }
    }

    /// All ranks could begin, which all know: the lane has its group, unless what leaders and switches have agreed on is of
    /// no use, which all ranks come to know, too.
    pub(crate) fn settle(&mut self) -> Result<Result<(), Reason>, PlainFailed> {
        let lane = &mut self.lanes[self.tried];
        let State::Trying(attempt, _) = &lane.state else {
            return Ok(Ok(()));
        };
        let tree = lane.tree.as_ref();
        match setup::settle(
            &self.plain,
            self.settings,
            &self.roles,
            tree,
            attempt.as_ref(),
        )? {
            Ok((abilities, link)) => {
                lane.state = State::Up { abilities, link };
                Ok(Ok(()))
            }
            Err(reason) => {
                self.give_up(reason);
                Ok(Err(reason))
            }
        }
    }

    /// Some rank could not begin, which all know.
    pub(crate) fn give_up(&mut self, reason: Reason) {
        if let Some(lane) = self.lanes.get_mut(self.tried)
            && let State::Trying(attempt, _) = &lane.state
        {
            if let Some(attempt) = attempt {
                service::cancel(attempt);
            }
            lane.state = State::Down(reason);
        }
    }

    /// Sets a lane's group up, and waits for it. All ranks call it, and come to the same answer.
    pub(crate) fn set_up(&mut self, lane: usize) -> Result<Result<(), Reason>, PlainFailed> {
        if let Err(reason) = self.begin(lane)? {
            return Ok(Err(reason));
        }
        let try_state = match &self.lanes[lane].state {
            State::Trying(attempt, _) => setup::wait::<M>(attempt.as_ref()),
            _ => TryState::Ready,
        };
        let mine = match try_state {
            TryState::Failed(code) => i32::from(code),
            TryState::Pending | TryState::Ready => FINE,
        };
        let least = self.plain.least(mine)?;
        if least == FINE {
            return self.settle();
        }
        let reason = Reason::from_number(least);
        self.give_up(reason);
        Ok(Err(reason))
    }

    pub(crate) const fn placement(&self) -> Placement {
        self.roles.placement
    }

    /// Why a lane cannot do a call now.
    pub(crate) fn check(&self, lane: usize, ordered: bool, call: &Call) -> Result<(), Reason> {
        match &self.lanes[lane].state {
            State::Up { abilities, .. } => abilities.check(call, ordered),
            State::Down(_) | State::New | State::Trying(..) => {
                Err(awaited(&self.lanes, lane, self.tried))
            }
        }
    }

    fn ranks(&self) -> &[u32] {
        &self.roles.members[self.roles.member]
    }

    /// Does a call in a lane. If it is plain, then on every rank.
    pub(crate) fn run(
        &mut self,
        lane: usize,
        ordered: bool,
        call: &Call,
    ) -> Result<Ending, PlainFailed> {
        let data_type = match call.collective {
            Collective::Barrier => None,
            Collective::Bcast => Some(DataType::Uint8),
            _ => call.data_type,
        };
        let spec = RoundSpec {
            collective: call.collective,
            operation: if data_type.is_none() || call.collective == Collective::Bcast {
                None
            } else {
                call.operation
            },
            data_type,
            count: if data_type.is_none() { 0 } else { call.count },
            ordered,
            root: call.root,
        };
        self.collect(lane, &spec, call)?;
        let mut ending = Ending::Plain {
            held_up: Span::ZERO,
        };
        if let State::Up {
            link: Some(link), ..
        } = &self.lanes[lane].state
        {
            let mut wire = spec;
            // The header's root is the member that has or wants the values.
            wire.root = u32::try_from(self.roles.member_of(spec.root)).map_err(|_| PlainFailed)?;
            let buffers = &mut self.buffers;
            ending = link.round(&wire, &buffers.operands, &mut buffers.result, M::progress);
            if ending != Ending::Done {
                // The service sends what other members still have to hear.
                service::wake();
            }
        }
        let done = self.tell(&spec, ending == Ending::Done)?;
        if done && !call.receive.is_null() && spec.count > 0 {
            let data_type = spec.data_type.unwrap_or(DataType::Uint8);
            let native = spec.count * layout::stride(data_type);
            let sender = call.collective == Collective::Bcast && call.root == self.rank;
            if !sender {
                // SAFETY: the program's buffer holds `count` elements, and nothing else refers to it during the call.
                let receive = unsafe { slice::from_raw_parts_mut(call.receive, native) };
                layout::from_wire(data_type, &self.buffers.result, receive);
            }
        }
        Ok(if done { Ending::Done } else { ending })
    }

    /// Brings the values of the member's ranks to its leader, and there into what the member contributes.
    fn collect(&mut self, lane: usize, spec: &RoundSpec, call: &Call) -> Result<(), PlainFailed> {
        let buffers = &mut self.buffers;
        let bytes = spec.bytes();
        buffers.operands.clear();
        let has_values = match spec.collective {
            Collective::Bcast => call.root == self.rank,
            Collective::Barrier => false,
            Collective::Allreduce | Collective::Reduce => true,
        };
        buffers.mine.clear();
        if has_values {
            let data_type = spec.data_type.unwrap_or(DataType::Uint8);
            buffers.mine.resize(bytes, 0);
            let native = spec.count * layout::stride(data_type);
            // SAFETY: the program's buffer holds `count` elements, which it does not change during the call.
            let send = unsafe { slice::from_raw_parts(call.send, native) };
            layout::to_wire(data_type, send, &mut buffers.mine);
        }
        let leads = self.roles.leads();
        let Some(local) = &self.local else {
            std::mem::swap(&mut buffers.mine, &mut buffers.operands);
            return Ok(());
        };
        match spec.collective {
            Collective::Bcast => {
                let ranks = &self.roles.members[self.roles.member];
                let Some(root) = ranks.iter().position(|rank| *rank == call.root) else {
                    return Ok(());
                };
                if root == 0 && leads {
                    std::mem::swap(&mut buffers.mine, &mut buffers.operands);
                } else if leads {
                    buffers.operands.resize(bytes, 0);
                    local.receive(&mut buffers.operands, root)?;
                } else if root == self.roles.local_rank {
                    local.send(&buffers.mine, 0)?;
                }
                Ok(())
            }
            Collective::Barrier => {
                buffers.gathered.resize(self.roles.local_size(), 0);
                local.gather(&[0], &mut buffers.gathered)
            }
            Collective::Allreduce | Collective::Reduce => {
                let program = match &self.lanes[lane].ordered {
                    Some(program) if spec.ordered => program,
                    _ => &self.fold,
                };
                buffers.gathered.resize(bytes * self.roles.local_size(), 0);
                local.gather(&buffers.mine, &mut buffers.gathered)?;
                if leads {
                    let (Some(operation), Some(data_type)) = (spec.operation, spec.data_type)
                    else {
                        return Err(PlainFailed);
                    };
                    program
                        .run(operation, data_type, &mut buffers.gathered, bytes)
                        .map_err(|_| PlainFailed)?;
                    for output in program.results(&buffers.gathered, bytes) {
                        buffers.operands.extend_from_slice(output);
                    }
                }
                Ok(())
            }
        }
    }

    /// The leader tells its ranks how the round ended, and its result where they need it.
    fn tell(&mut self, spec: &RoundSpec, done: bool) -> Result<bool, PlainFailed> {
        let Some(local) = &self.local else {
            return Ok(done);
        };
        let wanted = match spec.collective {
            Collective::Barrier => false,
            Collective::Reduce => self.roles.member_of(spec.root) == self.roles.member,
            Collective::Allreduce | Collective::Bcast => true,
        };
        let buffers = &mut self.buffers;
        let bytes = if wanted { spec.bytes() } else { 0 };
        buffers.told.clear();
        buffers.told.resize(1 + bytes, 0);
        let leads = self.roles.leads();
        if leads && done {
            buffers.told[0] = DONE;
            buffers.told[1..].copy_from_slice(&buffers.result[..bytes]);
        }
        local.bcast(&mut buffers.told, 0)?;
        if !leads {
            buffers.result.clear();
            buffers.result.extend_from_slice(&buffers.told[1..]);
        }
        Ok(buffers.told[0] == DONE)
    }

    /// What this rank's links have done.
    pub(crate) fn rounds(&self) -> Rounds {
        let mut rounds = self.past;
        for lane in &self.lanes {
            if let State::Up {
                link: Some(link), ..
            } = &lane.state
            {
                let (made, resent) = link.counted();
                rounds.rounds += made;
                rounds.resent += resent;
            }
        }
        rounds
    }

    /// Offload is over for all lanes, on every rank. MPI is not called.
    pub(crate) fn fall_back(&mut self) {
        self.past = self.rounds();
        self.give_up(Reason::Failed);
        for lane in &mut self.lanes {
            let state = std::mem::replace(&mut lane.state, State::Down(Reason::Failed));
            if let State::Up {
                link: Some(link), ..
            } = state
            {
                service::retire(&link);
                self.failed.push(link);
            }
        }
    }

    /// All ranks have done a plain call since they fell back.
    pub(crate) fn forget_failed(&mut self) {
        if !self.failed.is_empty() {
            service::forget(&self.failed);
            self.failed.clear();
        }
    }

    /// The communicator is about to be freed, or stays plain for good.
    pub(crate) fn release(&mut self) {
        if let Some(local) = self.local.take() {
            local.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_was_never_tried_has_the_reason_of_the_one_that_it_waits_for() {
        let lane = |state| Lane {
            tree: None,
            ordered: None,
            state,
        };
        let up = || State::Up {
            abilities: Abilities::default(),
            link: None,
        };
        let refused = || lane(State::Down(Reason::Refused));
        let lanes = [lane(up()), refused(), lane(State::New)];
        assert_eq!(awaited(&lanes, 2, 1), Reason::Refused);
        let again = State::Trying(None, refused().down());
        let lanes = [lane(up()), lane(again), lane(State::New)];
        assert_eq!(awaited(&lanes, 1, 1), Reason::Refused);
        assert_eq!(awaited(&lanes, 2, 1), Reason::Refused);
        // Its own reason goes before those of others.
        let lanes = [refused(), lane(State::Down(Reason::NoSwitch))];
        assert_eq!(awaited(&lanes, 1, 0), Reason::NoSwitch);
    }
}
