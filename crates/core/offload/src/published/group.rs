//! A group as a switch knows it: who belongs to it, and the round that is under way.

use core::net::Ipv4Addr;

use raddle_units::{Span, Time};
use raddle_wire::{DataType, Operation, compat::MAX_DATA};

use super::{FRAME_ROOM, switch::Drop};
use crate::{order::doubling, program::Program};

/// A group that was asked for and never set up is forgotten after this time.
const SET_UP: Span = Span::from_ms(10_000);
/// Most leaders below a switch: what `local_group_size` and a fabric's ports allow.
const MOST_LEADERS: usize = 1024;
/// Rounds that may lie between a packet and the present one for it to be old: half of what 8 bits count.
const OLD: u8 = 128;

/// What a round computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) operation: Operation,
    pub(super) data_type: DataType,
    pub(super) count: u16,
}

impl Spec {
    pub(super) fn bytes(self) -> usize {
        usize::from(self.count) * self.data_type.size()
    }
}

/// One whose operands a round needs: a leader below a TOR, a TOR below a SPINE.
#[derive(Debug)]
pub(super) struct Child {
    /// The least rank that it stands for.
    pub(super) rank: u32,
    pub(super) address: Ipv4Addr,
    /// Leaders that it stands for.
    pub(super) leaders: u32,
    /// Its packet of the round has come.
    pub(super) came: bool,
    /// A TOR: that packet.
    pub(super) frame: Vec<u8>,
    pub(super) elements: [u8; MAX_DATA],
}

/// What stands once a notify has passed.
#[derive(Debug)]
pub(super) struct Standing {
    /// Leaders of the group.
    pub(super) leaders: u32,
    /// The SPINE; none if all leaders are below this TOR, and in the SPINE itself.
    pub(super) spine: Option<Ipv4Addr>,
    /// The additions; none until all TORs are known.
    pub(super) program: Option<Program>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) master: Ipv4Addr,
    /// By rank.
    pub(super) children: Vec<Child>,
    /// Masters below this TOR: all of them, or none has been seen.
    pub(super) masters: u32,
    pub(super) standing: Option<Standing>,
    pub(super) heard: Time,
    /// The last round with a result, modulo 256.
    pub(super) done: u8,
    /// The present round's, from its first packet on.
    pub(super) spec: Option<Spec>,
    pub(super) came: usize,
    /// The sum went to the SPINE.
    pub(super) waiting: bool,
    pub(super) operands: Vec<u8>,
    pub(super) result: [u8; MAX_DATA],
}

impl Group {
    pub(super) fn new(now: Time, master: Ipv4Addr) -> Self {
        Self {
            master,
            children: Vec::new(),
            masters: 0,
            standing: None,
            heard: now,
            done: 0,
            spec: None,
            came: 0,
            waiting: false,
            operands: Vec::new(),
            result: [0; MAX_DATA],
        }
    }

    /// Adds a child in its place; false if it is there with another address, or there are too many.
    pub(super) fn know(&mut self, rank: u32, address: Ipv4Addr, leaders: u32) -> bool {
        match self
            .children
            .binary_search_by_key(&rank, |child| child.rank)
        {
            Ok(at) => self.children[at].address == address,
            Err(_) if self.children.len() == MOST_LEADERS => false,
            Err(at) => {
                let child = Child {
                    rank,
                    address,
                    leaders,
                    came: false,
                    frame: Vec::with_capacity(FRAME_ROOM),
                    elements: [0; MAX_DATA],
                };
                self.children.insert(at, child);
                true
            }
        }
    }

    /// Leaders that this switch's children stand for.
    pub(super) fn leaders(&self) -> u32 {
        self.children.iter().map(|child| child.leaders).sum()
    }

    /// Leaders below this TOR, counting masters that have not sent their notify yet.
    pub(super) fn local(&self) -> u32 {
        let asked = self
            .children
            .iter()
            .filter(|child| child.leaders == 1)
            .count() as u32;
        asked + self.masters
    }

    /// Whether a round's number is the next one's.
    pub(super) fn round(&self, round: u8) -> Result<(), Drop> {
        let ahead = round.wrapping_sub(self.done);
        match ahead {
            1 => Ok(()),
            0 | OLD.. => Err(Drop::Repeated),
            _ => Err(Drop::WrongRound),
        }
    }

    /// Takes a child's operands; true when they are the last ones.
    pub(super) fn take(&mut self, child: usize, spec: Spec, elements: &[u8]) -> Result<bool, Drop> {
        if self.waiting || self.children[child].came {
            return Err(Drop::Repeated);
        }
        if *self.spec.get_or_insert(spec) != spec {
            return Err(Drop::Mismatch);
        }
        let child = &mut self.children[child];
        child.elements[..elements.len()].copy_from_slice(elements);
        child.came = true;
        self.came += 1;
        Ok(self.came == self.children.len())
    }

    /// Adds up the operands of all children; leaves the sum in `result`.
    fn add(&mut self, program: &Program) -> Result<(), Drop> {
        let spec = self.spec.ok_or(Drop::Mismatch)?;
        let bytes = spec.bytes();
        self.operands.resize(program.operands() * bytes, 0);
        for (child, room) in self
            .children
            .iter()
            .zip(self.operands.chunks_exact_mut(bytes.max(1)))
        {
            room.copy_from_slice(&child.elements[..bytes]);
        }
        program
            .run(spec.operation, spec.data_type, &mut self.operands, bytes)
            .map_err(|_| Drop::Mismatch)?;
        let sum = program.results(&self.operands, bytes).next();
        self.result[..bytes].copy_from_slice(sum.ok_or(Drop::Mismatch)?);
        Ok(())
    }

    /// The round is over.
    pub(super) fn next_round(&mut self) {
        self.done = self.done.wrapping_add(1);
        self.spec = None;
        self.came = 0;
        self.waiting = false;
        self.children
            .iter_mut()
            .for_each(|child| child.came = false);
    }

    pub(super) fn ends(&self, idle: Span) -> Time {
        self.heard
            + if self.standing.is_some() {
                idle
            } else {
                SET_UP
            }
    }

    /// Adds up with the group's program, which is made when all children are known for the first time.
    pub(super) fn add_up(&mut self) -> Result<(), Drop> {
        let mut standing = self.standing.take().ok_or(Drop::UnknownGroup)?;
        let children = self.children.len() as u32;
        if standing.program.is_none() {
            let places: Vec<Vec<u32>> = (0..children).map(|child| vec![child]).collect();
            let made = doubling(children).and_then(|tree| Program::for_node(&tree, &places).ok());
            standing.program = made;
        }
        let added = match &standing.program {
            Some(program) => self.add(program),
            None => Err(Drop::Mismatch),
        };
        self.standing = Some(standing);
        added
    }
}
