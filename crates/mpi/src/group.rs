//! The rounds of one communicator: values of a node's ranks come together at its leader by plain MPI, the leader does
//! the round, and its ranks get the result from it.

use std::{slice, sync::Arc};

use raddle_offload::{
    member::RoundSpec,
    order::{Expression, Placement},
    program::Program,
};
use raddle_wire::{DataType, native::Collective};

use crate::{
    abi::{Plain, PlainFailed},
    communicator::Call,
    layout,
    link::{Ending, Link},
    reason::Reason,
    report::Rounds,
    service,
    setup::{self, Abilities},
};

/// First byte of what a leader tells its ranks.
const DONE: u8 = 1;

/// Who is where.
pub(crate) struct Roles {
    /// The ranks that each member speaks for.
    pub(crate) members: Vec<Vec<u32>>,
    /// The member that speaks for this rank.
    pub(crate) member: usize,
    /// This rank among those of its member; the leader is 0.
    pub(crate) local_rank: usize,
    placement: Placement,
}

impl Roles {
    pub(crate) fn new(members: Vec<Vec<u32>>, rank: u32, placement: Placement) -> Self {
        let place = (0..).zip(&members).find_map(|(member, ranks)| {
            ranks
                .iter()
                .position(|known| *known == rank)
                .map(|local| (member, local))
        });
        let (member, local_rank) = place.unwrap_or((0, 0));
        Self {
            members,
            member,
            local_rank,
            placement,
        }
    }

    fn local_size(&self) -> usize {
        self.members[self.member].len()
    }

    fn member_of(&self, rank: u32) -> usize {
        self.members
            .iter()
            .position(|ranks| ranks.contains(&rank))
            .unwrap_or(0)
    }
}

/// One group at the switches: all rounds whose order does not matter, and those of one tree of operations.
struct Lane {
    tree: Option<Expression>,
    /// How the leader combines its ranks' values in ordered rounds.
    ordered: Option<Program>,
    abilities: Abilities,
    /// Leaders have it.
    link: Option<Arc<Link>>,
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

pub(crate) struct Group {
    plain: Plain,
    rank: u32,
    roles: Roles,
    /// The ranks of this member, if there are several.
    local: Option<Plain>,
    /// How the leader combines its ranks' values where the order does not matter.
    fold: Program,
    lanes: Vec<Lane>,
    buffers: Buffers,
}

impl Group {
    /// All ranks call it.
    pub(crate) fn new(plain: Plain, rank: u32, roles: Roles) -> Result<Self, PlainFailed> {
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
            rank,
            roles,
            local,
            fold,
            lanes: Vec::new(),
            buffers: Buffers::default(),
        })
    }

    /// The lane for a tree, or for rounds whose order does not matter. All ranks call it; it may set a group up.
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
        let operands = ordered.as_ref().map_or(1, |program| program.outputs.len());
        let (abilities, link) = setup::establish(self.plain, &self.roles, tree, operands)?;
        self.lanes.push(Lane {
            tree: tree.cloned(),
            ordered,
            abilities,
            link,
        });
        Ok(self.lanes.len() - 1)
    }

    /// No group could be set up so far.
    pub(crate) const fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(crate) const fn placement(&self) -> Placement {
        self.roles.placement
    }

    /// Whether all switches of a lane can do a call.
    pub(crate) fn supports(&self, lane: usize, call: &Call) -> bool {
        self.lanes[lane].abilities.supports(call)
    }

    fn ranks(&self) -> &[u32] {
        &self.roles.members[self.roles.member]
    }

    /// Does a call in a lane. False: it is plain, and so are all later ones, on every rank.
    pub(crate) fn run(&mut self, lane: usize, ordered: bool, call: &Call) -> bool {
        self.try_run(lane, ordered, call).unwrap_or(false)
    }

    fn try_run(&mut self, lane: usize, ordered: bool, call: &Call) -> Result<bool, PlainFailed> {
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
        let done = match &self.lanes[lane].link {
            Some(link) => {
                let mut wire = spec;
                // The header's root is the member that has or wants the values.
                wire.root =
                    u32::try_from(self.roles.member_of(spec.root)).map_err(|_| PlainFailed)?;
                link.round(&wire, &self.buffers.operands, &mut self.buffers.result) == Ending::Done
            }
            None => false,
        };
        let done = self.tell(&spec, done)?;
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
        Ok(done)
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
        let leads = self.roles.local_rank == 0;
        let Some(local) = self.local else {
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
        let Some(local) = self.local else {
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
        let leads = self.roles.local_rank == 0;
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
        let mut rounds = Rounds::default();
        for link in self.lanes.iter().filter_map(|lane| lane.link.as_ref()) {
            let counters = link.counters();
            rounds.rounds += counters.rounds;
            rounds.resent += counters.resent;
        }
        rounds
    }

    /// The switches are told; nothing is offloaded any more. MPI is not called.
    pub(crate) fn close(&mut self) {
        for lane in self.lanes.drain(..) {
            if let Some(link) = lane.link {
                service::retire(&link);
            }
        }
    }

    /// The communicator is about to be freed.
    pub(crate) fn release(&mut self) {
        if let Some(local) = self.local.take() {
            local.free();
        }
    }
}
