//! Groups that are tied together by hosts: two groups of one colour that share a host must have one tree, because the
//! host has one link and one table entry for the colour. Knots are the connected components of that relation.

use raddle_units::{prefetch, prefetch_start};

use super::wiring::NONE;
use crate::Mgid;

/// Groups that must share a tree, two or more.
#[derive(Clone, Debug)]
pub(super) struct Knot {
    pub(super) groups: Vec<u32>,
    /// The one with the lowest MGID.
    pub(super) lowest: u32,
    /// The tree that they were given, or [`NONE`].
    pub(super) tree: u32,
    /// Those that came since.
    pub(super) fresh: Vec<u32>,
}

impl Default for Knot {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            lowest: NONE,
            tree: NONE,
            fresh: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    group: u32,
    colour: u16,
}

/// Which groups meet at which host, and the knots.
///
/// Every knot has a spanning tree of groups, so that a group that leaves disturbs only those below it in that tree.
#[derive(Clone, Debug)]
pub(super) struct Bonds {
    /// By place of the host.
    seats: Vec<Vec<Seat>>,
    knots: Vec<Knot>,
    free: Vec<u32>,
    /// By group: its knot, or [`NONE`].
    knot_of: Vec<u32>,
    /// By group: the group above in the spanning tree of the knot, or [`NONE`].
    above: Vec<u32>,
    /// By group: the groups below it.
    below: Vec<Vec<u32>>,
    /// By group: the search that met it last.
    marks: Vec<u64>,
    mark: u64,
    near: Vec<u32>,
    queue: Vec<u32>,
}

impl Bonds {
    pub(super) fn new(spots: usize) -> Self {
        Self {
            seats: vec![Vec::new(); spots],
            knots: Vec::new(),
            free: Vec::new(),
            knot_of: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
            marks: Vec::new(),
            mark: 0,
            near: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// The knot of a group; [`NONE`] if it is alone.
    pub(super) fn knot_of(&self, group: u32) -> u32 {
        self.knot_of[group as usize]
    }

    pub(super) fn knot(&self, knot: u32) -> Option<&Knot> {
        self.knots.get(knot as usize)
    }

    /// Notes the tree that the groups of a knot have now.
    pub(super) fn settled(&mut self, knot: u32, tree: u32) {
        if let Some(knot) = self.knots.get_mut(knot as usize) {
            knot.tree = tree;
            knot.fresh.clear();
        }
    }

    /// The groups at a host with their colours.
    pub(super) fn at(&self, spot: u32) -> impl Iterator<Item = (u32, u16)> + '_ {
        let seats = self.seats[spot as usize].iter();
        seats.map(|seat| (seat.group, seat.colour))
    }

    /// Fetches what is known of these hosts.
    pub(super) fn prefetch(&self, spots: &[u32]) {
        for &spot in spots {
            prefetch(&self.seats[spot as usize]);
        }
        for &spot in spots {
            let seats = &self.seats[spot as usize];
            prefetch_start(seats);
            prefetch_start(&seats[seats.len().min(8)..]);
            prefetch_start(&seats[seats.len().min(16)..]);
        }
    }

    /// Other groups of the colour at these hosts, each once, into `near`.
    fn find_near(&mut self, group: u32, colour: u16, spots: &[u32]) {
        self.prefetch(spots);
        self.near.clear();
        self.mark += 1;
        self.marks[group as usize] = self.mark;
        for &spot in spots {
            for seat in &self.seats[spot as usize] {
                if seat.colour != colour {
                    continue;
                }
                let mark = &mut self.marks[seat.group as usize];
                if *mark != self.mark {
                    *mark = self.mark;
                    self.near.push(seat.group);
                }
            }
        }
    }

    /// Adds a group; gives its knot or [`NONE`].
    pub(super) fn tie(
        &mut self,
        group: u32,
        colour: u16,
        spots: &[u32],
        mgid: impl Fn(u32) -> Mgid,
    ) -> u32 {
        if self.knot_of.len() <= group as usize {
            let groups = group as usize + 1;
            self.knot_of.resize(groups, NONE);
            self.above.resize(groups, NONE);
            self.below.resize(groups, Vec::new());
            self.marks.resize(groups, 0);
        }
        self.knot_of[group as usize] = NONE;
        self.above[group as usize] = NONE;
        self.below[group as usize].clear();
        self.find_near(group, colour, spots);
        for &spot in spots {
            self.seats[spot as usize].push(Seat { group, colour });
        }
        if self.near.is_empty() {
            return NONE;
        }
        let near = std::mem::take(&mut self.near);
        let knots = near.iter().map(|near| self.knot_of[*near as usize]);
        let largest = knots
            .filter(|knot| *knot != NONE)
            .max_by_key(|knot| (self.knots[*knot as usize].groups.len(), *knot));
        let target = largest.unwrap_or_else(|| self.new_knot());
        if largest.is_some() {
            let mut inside = near.iter().copied();
            if let Some(first) = inside.find(|near| self.knot_of[*near as usize] == target) {
                self.hang(group, first);
            }
        }
        for &near in &near {
            let knot = self.knot_of[near as usize];
            if knot == target {
                continue;
            }
            self.turn(near);
            self.hang(near, group);
            if knot == NONE {
                self.put(near, target, &mgid);
            } else {
                let other = std::mem::take(&mut self.knots[knot as usize]);
                self.free.push(knot);
                for group in other.groups {
                    self.put(group, target, &mgid);
                }
            }
        }
        self.put(group, target, &mgid);
        self.near = near;
        target
    }

    fn new_knot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.knots.push(Knot::default());
            (self.knots.len() - 1) as u32
        })
    }

    fn put(&mut self, group: u32, knot: u32, mgid: impl Fn(u32) -> Mgid) {
        self.knot_of[group as usize] = knot;
        let knot = &mut self.knots[knot as usize];
        if knot.groups.is_empty() || mgid(group) < mgid(knot.lowest) {
            knot.lowest = group;
        }
        knot.groups.push(group);
        knot.fresh.push(group);
    }

    /// Hangs a root of the spanning forest below another group.
    fn hang(&mut self, root: u32, above: u32) {
        self.above[root as usize] = above;
        self.below[above as usize].push(root);
    }

    /// Takes a group off the one above it; gives that one.
    fn unhang(&mut self, group: u32) -> u32 {
        let above = std::mem::replace(&mut self.above[group as usize], NONE);
        if above != NONE {
            let below = &mut self.below[above as usize];
            if let Some(index) = below.iter().position(|other| *other == group) {
                below.swap_remove(index);
            }
        }
        above
    }

    /// Makes a group the root of its spanning tree.
    fn turn(&mut self, group: u32) {
        let mut below = NONE;
        let mut at = group;
        while at != NONE {
            let above = self.unhang(at);
            if below != NONE {
                self.hang(at, below);
            }
            below = at;
            at = above;
        }
    }

    fn root_of(&self, mut group: u32) -> u32 {
        while self.above[group as usize] != NONE {
            group = self.above[group as usize];
        }
        group
    }

    /// Takes a group out. Gives what its knot falls into: knots, or single groups ([`NONE`] and the group).
    pub(super) fn untie<'a>(
        &mut self,
        group: u32,
        colour: u16,
        spots: &[u32],
        mgid: impl Fn(u32) -> Mgid,
        spots_of: impl Fn(u32) -> &'a [u32],
    ) -> Vec<(u32, u32)> {
        for &spot in spots {
            let seats = &mut self.seats[spot as usize];
            if let Some(index) = seats.iter().position(|seat| seat.group == group) {
                seats.swap_remove(index);
            }
        }
        let knot = std::mem::replace(&mut self.knot_of[group as usize], NONE);
        if knot == NONE {
            return Vec::new();
        }
        let groups = &mut self.knots[knot as usize].groups;
        if let Some(index) = groups.iter().position(|other| *other == group) {
            groups.swap_remove(index);
        }
        self.unhang(group);
        let orphans = std::mem::take(&mut self.below[group as usize]);
        for &orphan in &orphans {
            self.above[orphan as usize] = NONE;
        }
        let mut parts = Vec::new();
        for &orphan in &orphans {
            // Where the only tree that is left is this one, there is nothing to look for.
            if self.rehang(orphan, colour, &spots_of) {
                continue;
            }
            let part = std::mem::take(&mut self.queue);
            if part.len() < self.knots[knot as usize].groups.len() {
                let mark = self.mark;
                let marks = &self.marks;
                let of = &mut self.knots[knot as usize];
                of.groups.retain(|group| marks[*group as usize] != mark);
                if let [single] = part[..] {
                    self.knot_of[single as usize] = NONE;
                    parts.push((NONE, single));
                } else {
                    let new = self.new_knot();
                    for &group in &part {
                        self.put(group, new, &mgid);
                    }
                    parts.push((new, part[0]));
                }
            }
            self.queue = part;
        }
        match self.knots[knot as usize].groups[..] {
            [] => {
                self.knots[knot as usize] = Knot::default();
                self.free.push(knot);
            }
            [single] => {
                self.knots[knot as usize] = Knot::default();
                self.free.push(knot);
                self.knot_of[single as usize] = NONE;
                parts.push((NONE, single));
            }
            [first, ..] => {
                let lowest = self.knots[knot as usize].lowest;
                if lowest == group || self.knot_of[lowest as usize] != knot {
                    let groups = self.knots[knot as usize].groups.iter();
                    let lowest = groups.copied().min_by_key(|group| mgid(*group));
                    self.knots[knot as usize].lowest = lowest.unwrap_or(first);
                }
                parts.push((knot, first));
            }
        }
        parts
    }

    /// Looks for a group outside the spanning tree below `root` that shares a host with one inside, and hangs the tree
    /// there. `false` where there is none; the groups of the tree are then in `queue`, with the current mark.
    fn rehang<'a>(&mut self, root: u32, colour: u16, spots_of: impl Fn(u32) -> &'a [u32]) -> bool {
        self.mark += 1;
        self.marks[root as usize] = self.mark;
        self.queue.clear();
        self.queue.push(root);
        let mut next = 0;
        while next < self.queue.len() {
            let inside = self.queue[next];
            next += 1;
            for &group in &self.below[inside as usize] {
                if self.marks[group as usize] != self.mark {
                    self.marks[group as usize] = self.mark;
                    self.queue.push(group);
                }
            }
            for &spot in spots_of(inside) {
                let seats = self.seats[spot as usize].iter();
                let mut others = seats.filter(|seat| seat.colour == colour);
                let outside = others.find(|seat| {
                    let known = self.marks[seat.group as usize] == self.mark;
                    !known && self.root_of(seat.group) != root
                });
                if let Some(&Seat { group, .. }) = outside {
                    self.turn(inside);
                    self.hang(inside, group);
                    return true;
                }
            }
        }
        false
    }
}
