//! What the program is told of a group: the core's description in the form of the maps.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::{program::Program, switch::GroupPlan};
use raddle_wire::MacAddress;
use rustc_hash::FxHashMap;
use thiserror::Error;

use super::layout::{self, CELL, CHILDREN, INPUTS, OPERANDS};
use crate::fast::{Identity, Route};

/// Why a group stays with the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeftToCore {
    /// More than the program's tables have room for.
    #[error("{found} {what}, the fast path has room for {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many there is room for.
        limit: usize,
    },
    /// A neighbour's place is not known yet.
    #[error("the port of {0} is not known yet")]
    Unknown(Ipv4Addr),
    /// A neighbour's frames carry a VLAN tag.
    #[error("{0} is in a VLAN")]
    Vlan(Ipv4Addr),
    /// A neighbour is behind a port where no program runs.
    #[error("{0} is behind a port without a fast path")]
    NoProgram(Ipv4Addr),
    /// Two children that want a copy each are behind one port.
    #[error("{0} is not alone behind its port, and results are not multicast")]
    Shared(Ipv4Addr),
}

/// The group as the program reads it, but for what depends on where the neighbours are.
///
/// # Errors
/// When it exceeds the program's tables. Only ordered rounds need room for operands: where that is exceeded they alone
/// are left to the core.
pub(super) fn table(
    plan: &GroupPlan,
    identity: &Identity,
    index: u32,
    first_slot: u32,
) -> Result<layout::Group, LeftToCore> {
    let count = plan.children.len();
    if count > CHILDREN {
        return Err(LeftToCore::TooMany {
            what: "children",
            found: count,
            limit: CHILDREN,
        });
    }
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&plan.key.to_bytes()[at..at + 8]);
        // SipHash reads its key as little-endian words, whatever the machine.
        u64::from_le_bytes(bytes)
    };
    let mut group = layout::Group {
        key: [half(0), half(8)],
        index,
        copies: 0,
        first_slot,
        slots: u32::from(plan.slots),
        children: count as u32,
        own: network(identity.address),
        parent: plan.parent.map_or(0, |to| network(*to.ip())),
        parent_interface: 0,
        results: plan.results.map_or(0, |to| network(*to.ip())),
        rank: plan.rank,
        epoch: identity.epoch,
        results_port: plan.results.map_or(0, |to| to.port().to_be()),
        segment_bytes: plan.segment_bytes.min(CELL as u16),
        mac: identity.mac.0,
        parent_mac: [0; 6],
        ready: 0,
        ordered: 0,
        steps: 0,
        outputs: 0,
        ranks: [u32::MAX; CHILDREN],
        address: [0; CHILDREN],
        port: [0; CHILDREN],
        cell: [0; CHILDREN],
        operands: [0; CHILDREN],
        step: [layout::Step::default(); INPUTS],
        output: [0; OPERANDS],
        least: 0,
        pad: [0; 3],
    };
    for (at, child) in plan.children.iter().enumerate() {
        group.ranks[at] = child.rank;
        group.address[at] = network(*child.address.ip());
        group.port[at] = child.address.port().to_be();
    }
    if let Some(program) = &plan.program {
        fill_program(plan, program, &mut group);
    }
    Ok(group)
}

/// Steps and operands of ordered rounds, if there is room for them.
fn fill_program(plan: &GroupPlan, program: &Program, group: &mut layout::Group) {
    let inputs: usize = plan
        .children
        .iter()
        .map(|child| usize::from(child.operands))
        .sum();
    let cell = |operand: u16| {
        u8::try_from(operand)
            .ok()
            .filter(|at| usize::from(*at) < INPUTS)
    };
    let fits = inputs <= INPUTS
        && program.steps.len() <= INPUTS
        && !program.outputs.is_empty()
        && program.outputs.len() <= OPERANDS
        && (plan.parent.is_some() || program.outputs.len() == 1)
        && plan
            .children
            .iter()
            .all(|child| (1..=OPERANDS as u16).contains(&child.operands));
    if !fits {
        return;
    }
    let mut next = 0;
    for (at, child) in plan.children.iter().enumerate() {
        group.cell[at] = next;
        group.operands[at] = child.operands as u8;
        next += child.operands as u8;
    }
    for (to, step) in group.step.iter_mut().zip(&program.steps) {
        let (Some(into), Some(left), Some(right)) =
            (cell(step.into), cell(step.left), cell(step.right))
        else {
            return;
        };
        *to = layout::Step {
            into,
            left,
            right,
            pad: 0,
        };
    }
    for (to, &output) in group.output.iter_mut().zip(&program.outputs) {
        let Some(cell) = cell(output) else { return };
        *to = cell;
    }
    group.steps = program.steps.len() as u8;
    group.outputs = program.outputs.len() as u8;
    group.least = group.operands[..plan.children.len()]
        .iter()
        .copied()
        .min()
        .unwrap_or(0);
    group.ordered = 1;
}

/// Where the neighbours of a group are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// Interface and hardware address of the parent; zeros at the root.
    pub(super) parent: (u32, MacAddress),
    /// The interfaces of the children, each once, and how a result that leaves by it is addressed.
    pub(super) children: Vec<(u32, MacAddress, SocketAddrV4)>,
}

/// Finds the neighbours of a group; `works` tells whether a program runs on an interface.
///
/// # Errors
/// When one is unknown, or cannot be reached by the program.
pub(super) fn places(
    plan: &GroupPlan,
    routes: &FxHashMap<Ipv4Addr, Route>,
    works: impl Fn(u32) -> bool,
) -> Result<Places, LeftToCore> {
    let find = |address: Ipv4Addr| {
        let route = routes.get(&address).ok_or(LeftToCore::Unknown(address))?;
        if route.vlan != 0 {
            return Err(LeftToCore::Vlan(address));
        }
        if !works(route.index) {
            return Err(LeftToCore::NoProgram(address));
        }
        Ok((route.index, route.mac))
    };
    let mut children: Vec<(u32, MacAddress, SocketAddrV4)> = Vec::new();
    for child in &plan.children {
        let (interface, mac) = find(*child.address.ip())?;
        if children.iter().all(|other| other.0 != interface) {
            children.push((interface, mac, child.address));
        } else if plan.results.is_none() {
            return Err(LeftToCore::Shared(*child.address.ip()));
        }
    }
    Ok(Places {
        parent: match plan.parent {
            Some(parent) => find(*parent.ip())?,
            None => (0, MacAddress::default()),
        },
        children,
    })
}

/// An address as the program compares it: the bytes of the packet in a native word.
pub(super) fn network(address: Ipv4Addr) -> u32 {
    u32::from(address).to_be()
}
