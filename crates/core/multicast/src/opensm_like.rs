//! One tree and one table entry for each group, as OpenSM's multicast manager makes them.
//!
//! The root is the switch with the least mean hop count to the members (or the least largest one), the tree is made of
//! shortest paths to it. Groups never share an entry: when there are more groups than entries, the rest has none.
//! This repeats the behaviour as it is documented, not OpenSM's code: where a switch has several shortest ways, the
//! tree takes one that it uses already, else the one by the lowest port.

use std::collections::BTreeMap;

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId};

use super::{
    Changes, Colour, Group, Mgid, MulticastEngine, MulticastError, TableMode, Tree,
    fabric_state::{FabricState, best_switch, changes, check_groups},
};

/// How the root of a group's tree is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RootRule {
    /// Least mean hops to the members, then least largest.
    #[default]
    LeastMean,
    /// Least largest hops to a member, then least mean.
    LeastMax,
}

/// The engine `opensm`. Works on any fabric and in both table modes.
#[derive(Clone, Debug)]
pub struct OpenSmLike<'a> {
    state: FabricState<'a>,
    mode: TableMode,
    colours: u32,
    rule: RootRule,
    placed: BTreeMap<Mgid, Placed>,
    /// By colour: whether a group has it.
    taken: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Placed {
    members: Vec<NodeId>,
    cut_off: Vec<NodeId>,
    tree: Tree,
}

impl<'a> OpenSmLike<'a> {
    /// An engine without groups, all links up; `colours` is the number of table entries.
    ///
    /// # Errors
    /// No colour, or more than 65,536; a switch with more ports than a table entry holds.
    pub fn new(
        fabric: &'a Fabric,
        mode: TableMode,
        colours: u32,
        rule: RootRule,
    ) -> Result<Self, MulticastError> {
        Ok(Self {
            state: FabricState::new(fabric, colours)?,
            mode,
            colours,
            rule,
            placed: BTreeMap::new(),
            taken: vec![false; colours as usize],
        })
    }

    fn plan(&mut self, group: &Group, colour: Colour) -> Placed {
        let reach = self.state.reach(&group.members);
        let home = self.state.home(group.members[0]);
        let FabricState {
            fabric,
            graph,
            links,
            rows,
            ..
        } = &mut self.state;
        let (sums, most) = rows.sum_and_max(graph, links, &reach.at);
        let root = match self.rule {
            RootRule::LeastMean => best_switch(sums.into_iter().zip(most)),
            RootRule::LeastMax => best_switch(most.into_iter().zip(sums)),
        };
        let (root, mut up) = match root.filter(|_| !reach.hosts.is_empty()) {
            None => (home, Vec::new()),
            Some(root) => {
                let hops = rows.row(graph, links, root);
                let up = |link| links.is_up(link);
                let tree = graph.shortest_tree(fabric, &reach.hosts, hops, up, |_| 0);
                (graph.node(root), tree.unwrap_or_default())
            }
        };
        up.sort_unstable();
        Placed {
            members: group.members.clone(),
            cut_off: reach.cut_off,
            tree: Tree {
                colour,
                copy: 0,
                root,
                groups: vec![group.mgid],
                up,
            },
        }
    }

    /// Routes groups of the table once more, with the entries that they have.
    fn again(&mut self, groups: &[Group]) -> Changes {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for group in groups {
            let Some(colour) = self.colour_of(group.mgid) else {
                continue;
            };
            let placed = self.plan(group, colour);
            after.push(placed.tree.clone());
            let old = self.placed.insert(group.mgid, placed);
            before.extend(old.map(|old| old.tree));
        }
        changes(self.state.fabric, self.mode, &before, &after)
    }

    fn group(&self, mgid: Mgid, placed: &Placed) -> Group {
        Group {
            mgid,
            members: placed.members.clone(),
        }
    }

    fn which(&self, wanted: impl Fn(&Placed) -> bool) -> Vec<Group> {
        let placed = self.placed.iter().filter(|(_, placed)| wanted(placed));
        placed.map(|(&mgid, p)| self.group(mgid, p)).collect()
    }
}

impl MulticastEngine for OpenSmLike<'_> {
    fn name(&self) -> &'static str {
        "opensm"
    }

    fn table_mode(&self) -> TableMode {
        self.mode
    }

    fn colours(&self) -> u32 {
        self.colours
    }

    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError> {
        check_groups(self.state.fabric, groups)?;
        let entries = self.colours as usize;
        if groups.len() > entries {
            return Err(MulticastError::GroupsWithoutEntry {
                without: groups.len() - entries,
                groups: groups.len(),
                colours: self.colours,
            });
        }
        let before = self.trees();
        self.placed.clear();
        self.taken.fill(false);
        for (colour, group) in (0..).zip(groups) {
            let placed = self.plan(group, Colour(colour));
            self.placed.insert(group.mgid, placed);
            self.taken[usize::from(colour)] = true;
        }
        Ok(changes(
            self.state.fabric,
            self.mode,
            &before,
            &self.trees(),
        ))
    }

    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        let mgid = group.mgid;
        if self.placed.contains_key(&mgid) {
            return Err(MulticastError::DuplicateMgid { mgid });
        }
        let Some(index) = self.taken.iter().position(|taken| !taken) else {
            return Err(MulticastError::OutOfColours {
                mgid,
                colours: self.colours,
            });
        };
        self.taken[index] = true;
        let placed = self.plan(group, Colour(index as u16));
        let after = std::slice::from_ref(&placed.tree);
        let changes = changes(self.state.fabric, self.mode, &[], after);
        self.placed.insert(mgid, placed);
        Ok(changes)
    }

    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError> {
        let Some(placed) = self.placed.remove(&mgid) else {
            return Err(MulticastError::UnknownMgid { mgid });
        };
        self.taken[placed.tree.colour.index()] = false;
        Ok(changes(self.state.fabric, self.mode, &[placed.tree], &[]))
    }

    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        if !self.placed.contains_key(&group.mgid) {
            return Err(MulticastError::UnknownMgid { mgid: group.mgid });
        }
        Ok(self.again(std::slice::from_ref(group)))
    }

    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        if !self.state.set_link(link, false)? {
            return Ok(Changes::default());
        }
        let fabric = self.state.fabric;
        let groups = self.which(|placed| placed.tree.links(fabric).any(|used| used == link));
        Ok(self.again(&groups))
    }

    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        if !self.state.set_link(link, true)? {
            return Ok(Changes::default());
        }
        let groups = self.which(|placed| !placed.cut_off.is_empty());
        Ok(self.again(&groups))
    }

    fn groups(&self) -> Vec<Group> {
        self.which(|_| true)
    }

    fn colour_of(&self, mgid: Mgid) -> Option<Colour> {
        self.placed.get(&mgid).map(|placed| placed.tree.colour)
    }

    fn trees(&self) -> Vec<Tree> {
        self.placed
            .values()
            .map(|placed| placed.tree.clone())
            .collect()
    }

    fn cut_off(&self) -> Vec<(Mgid, NodeId)> {
        let placed = self.placed.iter();
        placed
            .flat_map(|(&mgid, placed)| placed.cut_off.iter().map(move |&host| (mgid, host)))
            .collect()
    }
}
