//! Groups that are tied together by hosts: two groups of one colour that share a host must have one tree, because the
//! host has one link and one table entry for the colour. Kept are the connected components of that relation.

use raddle_prefetch::{prefetch, prefetch_start};

use super::wiring::NONE;
use crate::Mgid;

/// Groups that must share a tree, two or more.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) groups: Vec<u32>,
    /// The one with the lowest MGID.
    pub(super) lowest: u32,
    /// The tree that they were given, or [`NONE`].
    pub(super) tree: u32,
    /// Those that came since the tree was chosen.
    pub(super) fresh: Vec<u32>,
}

impl Default for Component {
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
struct Membership {
    group: u32,
    colour: u16,
}

/// Which groups meet at which host, and the components.
///
/// Every component has a spanning tree of groups, so that a group that leaves disturbs only those below it in that tree.
#[derive(Clone, Debug)]
pub(super) struct Components {
    /// By place of the host.
    memberships: Vec<Vec<Membership>>,
    components: Vec<Component>,
    free: Vec<u32>,
    /// By group: its component, or [`NONE`].
    component_of: Vec<u32>,
    /// By group: the group above in the spanning tree of the component, or [`NONE`].
    above: Vec<u32>,
    /// By group: the groups below it.
    below: Vec<Vec<u32>>,
    /// By group: the search that met it last.
    marks: Vec<u64>,
    mark: u64,
    near: Vec<u32>,
    queue: Vec<u32>,
}

impl Components {
    pub(super) fn new(terminals: usize) -> Self {
        Self {
            memberships: vec![Vec::new(); terminals],
            components: Vec::new(),
            free: Vec::new(),
            component_of: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
            marks: Vec::new(),
            mark: 0,
            near: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// The component of a group; [`NONE`] if it is alone.
    pub(super) fn component_of(&self, group: u32) -> u32 {
        self.component_of[group as usize]
    }

    pub(super) fn component(&self, component: u32) -> Option<&Component> {
        self.components.get(component as usize)
    }

    /// Notes the tree that the groups of a component have now.
    pub(super) fn settled(&mut self, component: u32, tree: u32) {
        if let Some(component) = self.components.get_mut(component as usize) {
            component.tree = tree;
            component.fresh.clear();
        }
    }

    /// The groups at a host with their colours.
    pub(super) fn at(&self, terminal: u32) -> impl Iterator<Item = (u32, u16)> + '_ {
        let memberships = self.memberships[terminal as usize].iter();
        memberships.map(|membership| (membership.group, membership.colour))
    }

    /// Fetches what is known of these hosts.
    pub(super) fn prefetch(&self, terminals: &[u32]) {
        for &terminal in terminals {
            prefetch(&self.memberships[terminal as usize]);
        }
        for &terminal in terminals {
            let memberships = &self.memberships[terminal as usize];
            prefetch_start(memberships);
            prefetch_start(&memberships[memberships.len().min(8)..]);
            prefetch_start(&memberships[memberships.len().min(16)..]);
        }
    }

    /// Other groups of the colour at these hosts, each once, into `near`.
    fn find_near(&mut self, group: u32, colour: u16, terminals: &[u32]) {
        self.prefetch(terminals);
        self.near.clear();
        self.mark += 1;
        self.marks[group as usize] = self.mark;
        for &terminal in terminals {
            for membership in &self.memberships[terminal as usize] {
                if membership.colour != colour {
                    continue;
                }
                let mark = &mut self.marks[membership.group as usize];
                if *mark != self.mark {
                    *mark = self.mark;
                    self.near.push(membership.group);
                }
            }
        }
    }

    /// Adds a group; gives its component or [`NONE`].
    pub(super) fn add(
        &mut self,
        group: u32,
        colour: u16,
        terminals: &[u32],
        mgid: impl Fn(u32) -> Mgid,
    ) -> u32 {
        if self.component_of.len() <= group as usize {
            let groups = group as usize + 1;
            self.component_of.resize(groups, NONE);
            self.above.resize(groups, NONE);
            self.below.resize(groups, Vec::new());
            self.marks.resize(groups, 0);
        }
        self.component_of[group as usize] = NONE;
        self.above[group as usize] = NONE;
        self.below[group as usize].clear();
        self.find_near(group, colour, terminals);
        for &terminal in terminals {
            self.memberships[terminal as usize].push(Membership { group, colour });
        }
        if self.near.is_empty() {
            return NONE;
        }
        let near = std::mem::take(&mut self.near);
        let components = near.iter().map(|near| self.component_of[*near as usize]);
        let largest = components
            .filter(|component| *component != NONE)
            .max_by_key(|component| {
                (
                    self.components[*component as usize].groups.len(),
                    *component,
                )
            });
        let target = largest.unwrap_or_else(|| self.new_component());
        if largest.is_some() {
            let mut inside = near.iter().copied();
            if let Some(first) = inside.find(|near| self.component_of[*near as usize] == target) {
                self.attach(group, first);
            }
        }
        for &near in &near {
            let component = self.component_of[near as usize];
            if component == target {
                continue;
            }
            self.make_root(near);
            self.attach(near, group);
            if component == NONE {
                self.put(near, target, &mgid);
            } else {
                let other = std::mem::take(&mut self.components[component as usize]);
                self.free.push(component);
                for group in other.groups {
                    self.put(group, target, &mgid);
                }
            }
        }
        self.put(group, target, &mgid);
        self.near = near;
        target
    }

    fn new_component(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.components.push(Component::default());
            (self.components.len() - 1) as u32
        })
    }

    fn put(&mut self, group: u32, component: u32, mgid: impl Fn(u32) -> Mgid) {
        self.component_of[group as usize] = component;
        let component = &mut self.components[component as usize];
        if component.groups.is_empty() || mgid(group) < mgid(component.lowest) {
            component.lowest = group;
        }
        component.groups.push(group);
        component.fresh.push(group);
    }

    /// Attaches a root of the spanning forest below another group.
    fn attach(&mut self, root: u32, above: u32) {
        self.above[root as usize] = above;
        self.below[above as usize].push(root);
    }

    /// Takes a group off the one above it; gives that one.
    fn detach(&mut self, group: u32) -> u32 {
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
    fn make_root(&mut self, group: u32) {
        let mut below = NONE;
        let mut at = group;
        while at != NONE {
            let above = self.detach(at);
            if below != NONE {
                self.attach(at, below);
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

    /// Takes a group out. Gives what its component falls into: components, or single groups ([`NONE`] and the group).
    pub(super) fn remove<'a>(
        &mut self,
        group: u32,
        colour: u16,
        terminals: &[u32],
        mgid: impl Fn(u32) -> Mgid,
        terminals_of: impl Fn(u32) -> &'a [u32],
    ) -> Vec<(u32, u32)> {
        for &terminal in terminals {
            let memberships = &mut self.memberships[terminal as usize];
            if let Some(index) = memberships
                .iter()
                .position(|membership| membership.group == group)
            {
                memberships.swap_remove(index);
            }
        }
        let component = std::mem::replace(&mut self.component_of[group as usize], NONE);
        if component == NONE {
            return Vec::new();
        }
        let groups = &mut self.components[component as usize].groups;
        if let Some(index) = groups.iter().position(|other| *other == group) {
            groups.swap_remove(index);
        }
        self.detach(group);
        let orphans = std::mem::take(&mut self.below[group as usize]);
        for &orphan in &orphans {
            self.above[orphan as usize] = NONE;
        }
        let mut parts = Vec::new();
        for &orphan in &orphans {
            // Where the only tree that is left is this one, there is nothing to look for.
            if self.reattach(orphan, colour, &terminals_of) {
                continue;
            }
            let part = std::mem::take(&mut self.queue);
            if part.len() < self.components[component as usize].groups.len() {
                let mark = self.mark;
                let marks = &self.marks;
                let of = &mut self.components[component as usize];
                of.groups.retain(|group| marks[*group as usize] != mark);
                if let [single] = part[..] {
                    self.component_of[single as usize] = NONE;
                    parts.push((NONE, single));
                } else {
                    let new = self.new_component();
                    for &group in &part {
                        self.put(group, new, &mgid);
                    }
                    parts.push((new, part[0]));
                }
            }
            self.queue = part;
        }
        match self.components[component as usize].groups[..] {
            [] => {
                self.components[component as usize] = Component::default();
                self.free.push(component);
            }
            [single] => {
                self.components[component as usize] = Component::default();
                self.free.push(component);
                self.component_of[single as usize] = NONE;
                parts.push((NONE, single));
            }
            [first, ..] => {
                let lowest = self.components[component as usize].lowest;
                if lowest == group || self.component_of[lowest as usize] != component {
                    let groups = self.components[component as usize].groups.iter();
                    let lowest = groups.copied().min_by_key(|group| mgid(*group));
                    self.components[component as usize].lowest = lowest.unwrap_or(first);
                }
                parts.push((component, first));
            }
        }
        parts
    }

    /// Looks for a group outside the spanning tree below `root` that shares a host with one inside, and attaches the tree
    /// there. `false` where there is none; the groups of the tree are then in `queue`, with the current mark.
    fn reattach<'a>(
        &mut self,
        root: u32,
        colour: u16,
        terminals_of: impl Fn(u32) -> &'a [u32],
    ) -> bool {
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
            for &terminal in terminals_of(inside) {
                let memberships = self.memberships[terminal as usize].iter();
                let mut others = memberships.filter(|membership| membership.colour == colour);
                let outside = others.find(|membership| {
                    let known = self.marks[membership.group as usize] == self.mark;
                    !known && self.root_of(membership.group) != root
                });
                if let Some(&Membership { group, .. }) = outside {
                    self.make_root(inside);
                    self.attach(inside, group);
                    return true;
                }
            }
        }
        false
    }
}
