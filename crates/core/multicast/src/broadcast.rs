//! One global broadcast tree over all hosts, used by all groups: every packet reaches every host.
//!
//! One colour does for any number of groups. It is the baseline with the fewest table entries and the most traffic to
//! hosts that are no members (Chen et al., C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582), section 4).

use std::collections::BTreeMap;

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId};

use super::{
    Changes, Colour, Group, Mgid, MulticastEngine, MulticastError, TableMode, Tree, UpLink,
    fabric_state::{FabricState, best_switch, changes, check_groups},
    hops::sum_and_max_at_once,
};

/// The engine `broadcast`: a breadth-first tree from the switch with the fewest hops to the farthest host (then the
/// least mean, then the lowest id). Works on any fabric and in both table modes.
///
/// The tree is there while there is a group. It changes only when a link of it fails, or when a repair brings back a
/// host that was cut off.
#[derive(Clone, Debug)]
pub struct Broadcast<'a> {
    state: FabricState<'a>,
    mode: TableMode,
    colours: u32,
    groups: BTreeMap<Mgid, Vec<NodeId>>,
    root: NodeId,
    up: Vec<UpLink>,
    cut_off: Vec<NodeId>,
}

impl<'a> Broadcast<'a> {
    /// An engine without groups, all links up.
    ///
    /// # Errors
    /// No colour, or more than 65,536; a switch with more ports than a table entry holds.
    pub fn new(fabric: &'a Fabric, mode: TableMode, colours: u32) -> Result<Self, MulticastError> {
        let mut this = Self {
            state: FabricState::new(fabric, colours)?,
            mode,
            colours,
            groups: BTreeMap::new(),
            root: fabric.hosts()[0],
            up: Vec::new(),
            cut_off: Vec::new(),
        };
        this.plan();
        Ok(this)
    }

    fn plan(&mut self) {
        let FabricState {
            fabric,
            graph,
            links,
            ..
        } = &self.state;
        let reach = self.state.reach(fabric.hosts());
        let (sums, most) = sum_and_max_at_once(graph, links, &reach.at);
        let root = match best_switch(most.into_iter().zip(sums)).filter(|_| !reach.at.is_empty()) {
            Some(root) => root,
            None => graph.ordinal(self.state.home(fabric.hosts()[0])),
        };
        let hops = graph.hops(root, |link| links.is_up(link));
        let up = graph.shortest_tree(fabric, &reach.hosts, &hops, |link| links.is_up(link), |_| 0);
        self.root = graph.node(root);
        self.up = up.unwrap_or_default();
        self.cut_off = reach.cut_off;
    }

    fn change_tree(
        &mut self,
        replan: bool,
        groups: Option<BTreeMap<Mgid, Vec<NodeId>>>,
    ) -> Changes {
        let before = self.trees();
        if replan {
            self.plan();
        }
        if let Some(groups) = groups {
            self.groups = groups;
        }
        changes(self.state.fabric, self.mode, &before, &self.trees())
    }
}

impl MulticastEngine for Broadcast<'_> {
    fn name(&self) -> &'static str {
        "broadcast"
    }

    fn table_mode(&self) -> TableMode {
        self.mode
    }

    fn colours(&self) -> u32 {
        self.colours
    }

    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError> {
        check_groups(self.state.fabric, groups)?;
        let groups = groups.iter().map(|g| (g.mgid, g.members.clone())).collect();
        Ok(self.change_tree(false, Some(groups)))
    }

    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        if self.groups.contains_key(&group.mgid) {
            return Err(MulticastError::DuplicateMgid { mgid: group.mgid });
        }
        if self.groups.is_empty() {
            let groups = BTreeMap::from([(group.mgid, group.members.clone())]);
            return Ok(self.change_tree(false, Some(groups)));
        }
        self.groups.insert(group.mgid, group.members.clone());
        Ok(Changes::default())
    }

    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError> {
        if !self.groups.contains_key(&mgid) {
            return Err(MulticastError::UnknownMgid { mgid });
        }
        if self.groups.len() == 1 {
            return Ok(self.change_tree(false, Some(BTreeMap::new())));
        }
        self.groups.remove(&mgid);
        Ok(Changes::default())
    }

    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        match self.groups.get_mut(&group.mgid) {
            Some(members) => members.clone_from(&group.members),
            None => return Err(MulticastError::UnknownMgid { mgid: group.mgid }),
        }
        Ok(Changes::default())
    }

    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        let new = self.state.set_link(link, false)?;
        let fabric = self.state.fabric;
        let used = self.up.iter().any(|up| fabric.port(up.port).link == link);
        Ok(self.change_tree(new && used, None))
    }

    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        let new = self.state.set_link(link, true)?;
        Ok(self.change_tree(new && !self.cut_off.is_empty(), None))
    }

    fn groups(&self) -> Vec<Group> {
        let groups = self.groups.iter();
        groups
            .map(|(&mgid, members)| Group {
                mgid,
                members: members.clone(),
            })
            .collect()
    }

    fn colour_of(&self, mgid: Mgid) -> Option<Colour> {
        self.groups.contains_key(&mgid).then_some(Colour(0))
    }

    fn trees(&self) -> Vec<Tree> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let mut up = self.up.clone();
        up.sort_unstable();
        vec![Tree {
            colour: Colour(0),
            copy: 0,
            root: self.root,
            groups: self.groups.keys().copied().collect(),
            up,
        }]
    }

    fn cut_off(&self) -> Vec<(Mgid, NodeId)> {
        let cut_off = |host: &NodeId| self.cut_off.binary_search(host).is_ok();
        let groups = self.groups.iter();
        groups
            .flat_map(|(&mgid, members)| {
                let hosts = members.iter().copied().filter(cut_off);
                hosts.map(move |host| (mgid, host))
            })
            .collect()
    }
}
