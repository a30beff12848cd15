//! Groups that are tied together by hosts: two groups of one colour that share a host must have one tree, because the
//! host has one link and one table entry for the colour. Knots are the connected components of that relation.

use super::wiring::NONE;
use crate::multicast::Mgid;

/// Groups that must share a tree, two or more.
#[derive(Clone, Debug, Default)]
pub(super) struct Knot {
    pub(super) groups: Vec<u32>,
    /// The one with the lowest MGID.
    pub(super) lowest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    group: u32,
    colour: u16,
}

/// Which groups meet at which host, and the knots.
#[derive(Clone, Debug)]
pub(super) struct Bonds {
    /// By place of the host.
    seats: Vec<Vec<Seat>>,
    knots: Vec<Knot>,
    free: Vec<u32>,
    /// By group: its knot, or [`NONE`].
    knot_of: Vec<u32>,
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

    /// The groups at a host with their colours.
    pub(super) fn at(&self, spot: u32) -> impl Iterator<Item = (u32, u16)> + '_ {
        let seats = self.seats[spot as usize].iter();
        seats.map(|seat| (seat.group, seat.colour))
    }

    /// Other groups of the colour at these hosts, each once, into `near`.
    fn find_near(&mut self, group: u32, colour: u16, spots: &[u32]) {
        self.near.clear();
        self.mark += 1;
        self.marks[group as usize] = self.mark;
        for &spot in spots {
            for seat in &self.seats[spot as usize] {
                let mark = &mut self.marks[seat.group as usize];
                if seat.colour == colour && *mark != self.mark {
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
            self.knot_of.resize(group as usize + 1, NONE);
            self.marks.resize(group as usize + 1, 0);
        }
        self.knot_of[group as usize] = NONE;
        self.find_near(group, colour, spots);
        for &spot in spots {
            self.seats[spot as usize].push(Seat { group, colour });
        }
        if self.near.is_empty() {
            return NONE;
        }
        let knots = self.near.iter().map(|near| self.knot_of[*near as usize]);
        let largest = knots
            .filter(|knot| *knot != NONE)
            .max_by_key(|knot| (self.knots[*knot as usize].groups.len(), *knot));
        let target = largest.unwrap_or_else(|| self.new_knot());
        let mut near = std::mem::take(&mut self.near);
        near.push(group);
        for &near in &near {
            let knot = self.knot_of[near as usize];
            if knot == NONE {
                self.put(near, target, &mgid);
            } else if knot != target {
                let other = std::mem::take(&mut self.knots[knot as usize]);
                self.free.push(knot);
                for group in other.groups {
                    self.put(group, target, &mgid);
                }
            }
        }
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
        self.find_near(group, colour, spots);
        let near = std::mem::take(&mut self.near);
        let groups = &mut self.knots[knot as usize].groups;
        if let Some(index) = groups.iter().position(|other| *other == group) {
            groups.swap_remove(index);
        }
        // All that were near are in one part when a search from one of them meets all others.
        let mut parts = Vec::new();
        let mut left = near.clone();
        while let Some(&start) = left.first() {
            let all_found = self.search(start, colour, &left, &spots_of);
            if all_found {
                break;
            }
            let found = std::mem::take(&mut self.queue);
            left.retain(|group| self.marks[*group as usize] != self.mark);
            let mark = self.mark;
            self.knots[knot as usize]
                .groups
                .retain(|group| self.marks[*group as usize] != mark);
            if let [single] = found[..] {
                self.knot_of[single as usize] = NONE;
                parts.push((NONE, single));
            } else {
                let part = self.new_knot();
                for &group in &found {
                    self.put(group, part, &mgid);
                }
                parts.push((part, found[0]));
            }
            self.queue = found;
        }
        self.near = near;
        match self.knots[knot as usize].groups[..] {
            [] => self.free.push(knot),
            [single] => {
                self.knots[knot as usize].groups.clear();
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

    /// Searches from a group through shared hosts until all `goals` are met (`true`) or nothing is left (`false`; what
    /// was met is in `queue`).
    fn search<'a>(
        &mut self,
        start: u32,
        colour: u16,
        goals: &[u32],
        spots_of: impl Fn(u32) -> &'a [u32],
    ) -> bool {
        // Goals carry one mark, what was met the next one.
        self.mark += 2;
        let (goal, met) = (self.mark - 1, self.mark);
        for &group in goals {
            self.marks[group as usize] = goal;
        }
        self.marks[start as usize] = met;
        let mut missing = goals.len() - 1;
        self.queue.clear();
        self.queue.push(start);
        let mut next = 0;
        while missing > 0 && next < self.queue.len() {
            let group = self.queue[next];
            next += 1;
            for &spot in spots_of(group) {
                for seat in &self.seats[spot as usize] {
                    let mark = &mut self.marks[seat.group as usize];
                    if seat.colour != colour || *mark == met {
                        continue;
                    }
                    missing -= usize::from(*mark == goal);
                    *mark = met;
                    self.queue.push(seat.group);
                }
            }
        }
        missing == 0
    }
}
