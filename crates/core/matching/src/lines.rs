//! What is on its way out: an open parcel per target or node, joined by the growing window (`Peng`, section 4).

use raddle_schedule::{
    Distance, Join, Place, Placement, Scope, Window,
    parcel::{HEAD_BYTES, PART_BYTES, PartHead},
};
use raddle_units::Bytes;

use crate::{
    calls::{Outputs, Statistics},
    degrees::Degrees,
    parcel::Parcel,
    part::{GRANT_BYTES, MOST_NOTICE, REFERENCE_BYTES, grant_head, notice_head},
};

/// Parcels are never longer: MPI's counts are ints.
const LONGEST: Bytes = Bytes(1 << 30);
/// Buffers that are kept for later use.
const MOST_BUFFERS: usize = 256;

/// Parcels to one target, or to the leader of one node.
#[derive(Debug, Default)]
struct Line {
    parcel: Parcel,
    /// Target of the first part.
    target: u32,
    /// Parts have different targets, so that the leader takes it apart.
    mixed: bool,
    /// In this superstep.
    window: Option<Window>,
    /// Parts in this superstep.
    count: u32,
    /// There was more than one in the superstep before.
    joins: bool,
}

/// All lines of a process. A line has the number of its target, or of its target's leader.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    placement: Placement,
    node: u32,
    rank: u32,
    join: Join,
    /// Place of each node in the order of Algorithm 1, seen from ours.
    order: Vec<u32>,
    /// Lines of this superstep: place of their node, when they began, number.
    used: Vec<(u32, u32, u32)>,
    /// Lines inside the node that have parts of others.
    relayed: Vec<u32>,
    degrees: Degrees,
    buffers: Vec<Parcel>,
}

impl Lines {
    pub(crate) fn new(
        rank: u32,
        placement: &Placement,
        distance: &Distance<'_>,
        join: &Join,
    ) -> Self {
        let node = placement.node(rank);
        let nodes = placement.nodes();
        let number = |node| placement.number(node);
        let mut near: Vec<(u32, u32)> = (0..nodes as u32)
            .map(|other| (distance.between(number(node), number(other)), other))
            .collect();
        near.sort_unstable();
        let mut order = vec![0; nodes];
        for (place, &(_, other)) in (0..).zip(&near) {
            order[other as usize] = place;
        }
        let mut lines = Vec::new();
        lines.resize_with(placement.ranks(), Line::default);
        Self {
            lines,
            placement: placement.clone(),
            node,
            rank,
            join: Join {
                cap: join.cap.min(LONGEST),
                ..*join
            },
            order,
            used: Vec::new(),
            relayed: Vec::new(),
            degrees: Degrees::new(nodes),
            buffers: Vec::new(),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_inside(&self, rank: u32) -> bool {
        self.placement.node(rank) == self.node
    }

    /// Whether ranks take parcels for others of their nodes apart.
    pub(crate) fn has_leaders(&self) -> bool {
        self.join.scope == Scope::RankToNode
    }

    /// The rank of our node that takes parcels of `source` for several of its ranks apart; `None`: none does.
    pub(crate) fn leader(&self, source: u32) -> Option<u32> {
        self.has_leaders()
            .then(|| self.placement.leader(self.node, source, self.join.leaders))
    }

    /// Whether this process is such a rank, and its node has others.
    pub(crate) fn leads_others(&self) -> bool {
        self.has_leaders()
            && self.placement.leads(self.rank, self.join.leaders)
            && self.placement.members(self.node).len() > 1
    }

    /// The longest parcel that is made: receivers provide for it.
    pub(crate) fn longest(&self) -> usize {
        let control = HEAD_BYTES + PART_BYTES + REFERENCE_BYTES.max(GRANT_BYTES).max(MOST_NOTICE);
        usize::try_from(self.join.limit().0).map_or(usize::MAX, |limit| limit.max(control))
    }

    /// Whether a message of this size may be copied into a parcel.
    #[inline]
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        let alone = bytes.saturating_add((HEAD_BYTES + PART_BYTES) as u64);
        bytes < self.join.alone.0 && alone <= self.join.limit().0 && u32::try_from(alone).is_ok()
    }

    /// Appends a part for another process. It leaves at once if it stays inside the node, or is the first to its line in
    /// this superstep; unless the superstep before had several: then others will follow, and it waits for them, if
    /// [`Join::waits`] says so.
    pub(crate) fn push(
        &mut self,
        head: &PartHead,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
        statistics: &mut Statistics,
        out: &mut Outputs,
    ) {
        statistics.parts += 1;
        let node = self.placement.node(head.target);
        if node == self.node {
            self.append(head.target, head, bytes, fill);
            self.issue(head.target, statistics, out);
            return;
        }
        let number = match self.join.scope {
            Scope::RankToNode => self.placement.leader(node, self.rank, self.join.leaders),
            Scope::RankToRank | Scope::NodeToNode => head.target,
        };
        let size = Bytes(bytes as u64);
        let line = &mut self.lines[number as usize];
        let first = line.window.is_none();
        let waits = line.joins && self.join.waits;
        let [sent, heard] = self.degrees.estimate();
        let window = line.window.get_or_insert_with(|| {
            let mut window = Window::new(&self.join, sent, heard);
            if waits {
                // As if the first had left alone.
                window.place(size);
            }
            window
        });
        let place = window.place(size);
        line.count += 1;
        let alone = first && !waits;
        if first {
            let began = self.used.len() as u32;
            self.used.push((self.order[node as usize], began, number));
            self.degrees.sent_to(node);
        } else if place == Place::New {
            self.issue(number, statistics, out);
        }
        self.append(number, head, bytes, fill);
        if alone {
            self.issue(number, statistics, out);
        }
    }

    /// Appends a part of another node's process for a rank of ours; [`Self::issue_relayed`] sends it on.
    pub(crate) fn relay(&mut self, head: &PartHead, bytes: &[u8]) {
        if self.lines[head.target as usize].parcel.parts() == 0 {
            self.relayed.push(head.target);
        }
        let fill = |room: &mut [u8]| room.copy_from_slice(bytes);
        self.append(head.target, head, bytes.len(), fill);
    }

    pub(crate) fn issue_relayed(&mut self, statistics: &mut Statistics, out: &mut Outputs) {
        while let Some(number) = self.relayed.pop() {
            self.issue(number, statistics, out);
        }
    }

    /// Tells a peer what we have received of it.
    pub(crate) fn grant(
        &mut self,
        to: u32,
        freed: u64,
        statistics: &mut Statistics,
        out: &mut Outputs,
    ) {
        statistics.grants += 1;
        self.send_alone(&grant_head(self.rank, to), &freed.to_be_bytes(), out);
    }

    /// Sends a notice.
    pub(crate) fn notify(
        &mut self,
        to: u32,
        bytes: &[u8],
        statistics: &mut Statistics,
        out: &mut Outputs,
    ) {
        statistics.notices += 1;
        self.send_alone(&notice_head(self.rank, to), bytes, out);
    }

    /// Sends a part in a parcel of its own.
    fn send_alone(&mut self, head: &PartHead, bytes: &[u8], out: &mut Outputs) {
        let mut parcel = self.buffers.pop().unwrap_or_default();
        parcel.append(head, bytes.len(), |room| room.copy_from_slice(bytes));
        parcel.finish();
        out.send(head.target, parcel);
    }

    /// Ends the superstep: everything leaves, near nodes first.
    pub(crate) fn flush(&mut self, statistics: &mut Statistics, out: &mut Outputs) {
        if self.used.is_empty() {
            return;
        }
        self.used.sort_unstable();
        for index in 0..self.used.len() {
            let (_, _, number) = self.used[index];
            self.issue(number, statistics, out);
            let line = &mut self.lines[number as usize];
            line.window = None;
            line.joins = std::mem::take(&mut line.count) > 1;
        }
        self.used.clear();
        self.degrees.turn();
    }

    #[inline]
    pub(crate) fn heard_of(&mut self, rank: u32) {
        let node = self.placement.node(rank);
        if node != self.node {
            self.degrees.heard_of(node);
        }
    }

    /// A buffer that was sent.
    pub(crate) fn recycle(&mut self, mut parcel: Parcel) {
        if self.buffers.len() < MOST_BUFFERS {
            parcel.clear();
            self.buffers.push(parcel);
        }
    }

    fn append(&mut self, number: u32, head: &PartHead, bytes: usize, fill: impl FnOnce(&mut [u8])) {
        let line = &mut self.lines[number as usize];
        if line.parcel.parts() == 0 {
            line.parcel = self.buffers.pop().unwrap_or_default();
            line.target = head.target;
            line.mixed = false;
        }
        line.mixed |= head.target != line.target;
        line.parcel.append(head, bytes, fill);
    }

    fn issue(&mut self, number: u32, statistics: &mut Statistics, out: &mut Outputs) {
        let line = &mut self.lines[number as usize];
        if line.parcel.parts() == 0 {
            return;
        }
        let mut parcel = std::mem::take(&mut line.parcel);
        parcel.finish();
        statistics.parcels += 1;
        out.send(if line.mixed { number } else { line.target }, parcel);
    }
}
