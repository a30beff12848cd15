//! What the maps of the packet program hold: `xdp/layout.h` once more, byte for byte.
#![allow(unsafe_code)]

use aya::Pod;

/// Most children of a group.
pub(super) const CHILDREN: usize = 32;
/// Most operands of all children together.
pub(super) const INPUTS: usize = 32;
/// Most operands of one message.
pub(super) const OPERANDS: usize = 4;
/// Most bytes of an operand.
pub(super) const CELL: usize = 256;
/// Most groups.
pub(super) const GROUPS: u32 = 256;
/// Bytes of a message's header.
pub(super) const HEADER: usize = 56;
/// The mark of frames for the switch's sockets (`xdp/frame.h`).
pub(super) const FOR_SOCKETS: u32 = 0x5244_4c31;

/// What is counted per group, in the order of `enum count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Contributions received, of any worth.
    Contributions,
    /// Contributions sent to the parent, also again.
    SentUp,
    /// Results sent to all children.
    Results,
    /// Results sent again to one child.
    Answered,
    /// Repetitions of a contribution, answered or not.
    Repeated,
    /// Contributions dropped because their slot belongs to a later segment.
    Stale,
    /// Messages dropped because of their tag.
    Forged,
    /// Results dropped that are there already, or for which nothing was sent.
    NotAwaited,
}

impl Count {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 8] = [
        Self::Contributions,
        Self::SentUp,
        Self::Results,
        Self::Answered,
        Self::Repeated,
        Self::Stale,
        Self::Forged,
        Self::NotAwaited,
    ];
}

/// Key of the map `groups`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupKey {
    pub(super) job: u32,
    pub(super) group: u32,
}

/// `cells[into] = cells[left] op cells[right]`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    pub(super) into: u8,
    pub(super) left: u8,
    pub(super) right: u8,
    pub(super) pad: u8,
}

/// A group. Addresses and ports are in network order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) key: [u64; 2],
    pub(super) index: u32,
    pub(super) copies: u32,
    pub(super) first_slot: u32,
    pub(super) slots: u32,
    pub(super) children: u32,
    pub(super) own: u32,
    pub(super) parent: u32,
    pub(super) parent_interface: u32,
    pub(super) results: u32,
    pub(super) rank: u32,
    pub(super) epoch: u32,
    pub(super) results_port: u16,
    pub(super) segment_bytes: u16,
    pub(super) mac: [u8; 6],
    pub(super) parent_mac: [u8; 6],
    pub(super) ready: u8,
    pub(super) ordered: u8,
    pub(super) steps: u8,
    pub(super) outputs: u8,
    pub(super) ranks: [u32; CHILDREN],
    pub(super) address: [u32; CHILDREN],
    pub(super) port: [u16; CHILDREN],
    pub(super) cell: [u8; CHILDREN],
    pub(super) operands: [u8; CHILDREN],
    pub(super) step: [Step; INPUTS],
    pub(super) output: [u8; OPERANDS],
    pub(super) least: u8,
    pub(super) pad: [u8; 3],
}

/// From which round on the program answers.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    pub(super) lock: u32,
    pub(super) seen: u32,
    pub(super) from: u64,
}

/// A slot.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) lock: u32,
    pub(super) round: u32,
    pub(super) what: u64,
    pub(super) arrived: u32,
    pub(super) present: u32,
    pub(super) root: u32,
    pub(super) state: u16,
    pub(super) result_bytes: u16,
    pub(super) result: [u8; HEADER + CELL],
    pub(super) cells: [[u8; CELL]; INPUTS],
    pub(super) behind: u64,
}

impl Slot {
    /// A slot that has seen no segment.
    pub(super) const EMPTY: Self = Self {
        lock: 0,
        round: 0,
        what: 0,
        arrived: 0,
        present: 0,
        root: 0,
        state: 0,
        result_bytes: 0,
        result: [0; HEADER + CELL],
        cells: [[0; CELL]; INPUTS],
        behind: 0,
    };
}

/// Key of the map `exits`. `at`: the interface under XDP, from 0 on under TC.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitKey {
    pub(super) job: u32,
    pub(super) group: u32,
    pub(super) at: u32,
}

/// By which interface a result leaves, and how it is addressed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Exit {
    pub(super) mac: [u8; 6],
    pub(super) port: u16,
    pub(super) address: u32,
    pub(super) interface: u32,
}

/// Key of the map `stations`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StationKey {
    pub(super) mac: [u8; 6],
    pub(super) zero: u16,
}

/// Where a station is, and whether it sent something that the sockets did not see since it was asked last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct StationPlace {
    pub(super) interface: u32,
    pub(super) heard: u32,
}

/// Frames of an interface that the sockets did not see.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) cable: u64,
}

// SAFETY (all of them): plain integers and arrays of them in C layout without padding, so that every bit pattern is a
// value and no byte is uninitialised.
unsafe impl Pod for GroupKey {}
unsafe impl Pod for Group {}
unsafe impl Pod for Start {}
unsafe impl Pod for Slot {}
unsafe impl Pod for ExitKey {}
unsafe impl Pod for Exit {}
unsafe impl Pod for Traffic {}
unsafe impl Pod for StationKey {}
unsafe impl Pod for StationPlace {}

const _: () = {
    // No padding anywhere: the sizes are the sums of the fields.
    assert!(
        size_of::<Group>()
            == 16 + 44 + 4 + 12 + 4 + CHILDREN * (4 + 4 + 2 + 1 + 1) + INPUTS * 4 + 8
    );
    assert!(size_of::<Slot>() == 8 + 8 + 8 + 8 + 312 + INPUTS * CELL + 8);
    assert!(size_of::<Exit>() == 16 && size_of::<ExitKey>() == 12 && size_of::<Start>() == 16);
    assert!(size_of::<StationKey>() == 8 && size_of::<StationPlace>() == 8);
};
