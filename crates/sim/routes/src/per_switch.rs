//! C-MR4LMS for switches with one table (InfiniBand) as one of the engines: [`PerSwitch`] behind the engines' trait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use raddle_fabric::{CnTnMap, Fabric};
use raddle_multicast::{
    Branch, Change, Changes, Colour, Group, Growth, MAX_MLIDS, Mgid, MulticastEngine,
    MulticastError, PerSwitch, PerSwitchError, PortSet, TableMode, Tree, UpLink, check_ports,
};
use raddle_unicast::LinkState;
use raddle_units::{LinkId, NodeId, PortId};

/// Colours are given greedily, so that trees of one colour meet in no switch; groups merge when the table is full.
pub(crate) struct PerSwitchEngine {
    name: &'static str,
    inner: PerSwitch,
}

impl PerSwitchEngine {
    pub(crate) fn new(
        name: &'static str,
        fabric: &Fabric,
        map: &CnTnMap,
        colours: u32,
        growth: Growth,
    ) -> Result<Self, MulticastError> {
        check_ports(fabric)?;
        let links = LinkState::all_up(fabric);
        let inner = PerSwitch::new(fabric.clone(), map.clone(), links, colours, growth);
        let inner = inner.map_err(|_| MulticastError::BadColours {
            colours,
            limit: MAX_MLIDS,
        })?;
        Ok(Self { name, inner })
    }

    fn set(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.inner.fabric())?;
        let change = self.inner.set(group.mgid, &group.members, None, false);
        // The members were checked, and no colour is asked for.
        Ok(self.changes(&change.unwrap_or_default()))
    }

    fn changes(&self, change: &Change) -> Changes {
        let fabric = self.inner.fabric();
        let number = |port: &PortId| u8::try_from(fabric.port(*port).number).ok();
        let branch = |entry: &raddle_multicast::Entry| Branch {
            switch: entry.switch,
            colour: entry.colour,
            down: entry.ports.iter().filter_map(number).collect(),
            up: PortSet::EMPTY,
            cleared: PortSet::EMPTY,
        };
        let (gone, set): (Vec<_>, Vec<_>) = change
            .entries
            .iter()
            .partition(|entry| entry.ports.is_empty());
        Changes {
            branches: gone.into_iter().chain(set).map(branch).collect(),
            moved: change.moved.iter().map(|&(mgid, _)| mgid).collect(),
        }
    }

    fn set_link(&mut self, link: LinkId, up: bool) -> Result<Changes, MulticastError> {
        let mut links = self.inner.links().clone();
        if link.index() >= links.link_count() {
            return Err(MulticastError::UnknownLink {
                link,
                links: links.link_count(),
            });
        }
        links.set(link, up);
        let change: Result<Change, PerSwitchError> = self.inner.set_links(links);
        Ok(self.changes(&change.unwrap_or_default()))
    }

    /// The tree of a group, from its highest switch down.
    fn tree(&self, mgid: Mgid) -> Option<Tree> {
        let fabric = self.inner.fabric();
        let ports: BTreeMap<NodeId, &[PortId]> = self.inner.tree(mgid).collect();
        let root = ports
            .keys()
            .copied()
            .max_by_key(|&switch| (fabric.level(switch), std::cmp::Reverse(switch)))?;
        let mut up = Vec::new();
        let mut seen = BTreeSet::from([root]);
        let mut open = VecDeque::from([root]);
        while let Some(switch) = open.pop_front() {
            for &port in ports.get(&switch).copied().unwrap_or_default() {
                let below = fabric.port(fabric.port(port).peer);
                if seen.insert(below.node) {
                    up.push(UpLink {
                        node: below.node,
                        port: fabric.port(port).peer,
                    });
                    open.push_back(below.node);
                }
            }
        }
        up.sort_unstable();
        Some(Tree {
            colour: self.inner.colour(mgid)?,
            copy: 0,
            root,
            groups: self.inner.sharing(mgid).to_vec(),
            up,
        })
    }
}

impl MulticastEngine for PerSwitchEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn table_mode(&self) -> TableMode {
        TableMode::PerSwitch
    }

    fn colours(&self) -> u32 {
        self.inner.mlids()
    }

    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError> {
        let mut mgids = BTreeSet::new();
        for group in groups {
            group.check(self.inner.fabric())?;
            if !mgids.insert(group.mgid) {
                return Err(MulticastError::DuplicateMgid { mgid: group.mgid });
            }
        }
        let mut all = Changes::default();
        let old: Vec<Mgid> = self.inner.groups().collect();
        for mgid in old {
            let change = self.inner.remove(mgid);
            all.branches.extend(self.changes(&change).branches);
        }
        for group in groups {
            all.branches.extend(self.set(group)?.branches);
        }
        Ok(all)
    }

    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        if self.inner.colour(group.mgid).is_some() {
            return Err(MulticastError::DuplicateMgid { mgid: group.mgid });
        }
        self.set(group)
    }

    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError> {
        if self.inner.colour(mgid).is_none() {
            return Err(MulticastError::UnknownMgid { mgid });
        }
        let change = self.inner.remove(mgid);
        Ok(self.changes(&change))
    }

    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        if self.inner.colour(group.mgid).is_none() {
            return Err(MulticastError::UnknownMgid { mgid: group.mgid });
        }
        self.set(group)
    }

    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        self.set_link(link, false)
    }

    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        self.set_link(link, true)
    }

    fn groups(&self) -> Vec<Group> {
        let mgids = self.inner.groups();
        mgids
            .map(|mgid| Group::new(mgid, self.inner.members(mgid).collect()))
            .collect()
    }

    fn colour_of(&self, mgid: Mgid) -> Option<Colour> {
        self.inner.colour(mgid)
    }

    fn trees(&self) -> Vec<Tree> {
        // A shared tree is told with the lowest of its groups.
        let mgids = self.inner.groups();
        mgids
            .filter(|&mgid| self.inner.sharing(mgid).first() == Some(&mgid))
            .filter_map(|mgid| self.tree(mgid))
            .collect()
    }

    fn cut_off(&self) -> Vec<(Mgid, NodeId)> {
        let mut cut = Vec::new();
        for tree in self.trees() {
            let reached: BTreeSet<NodeId> = tree.hosts(self.inner.fabric()).collect();
            for &mgid in &tree.groups {
                let missing = self
                    .inner
                    .members(mgid)
                    .filter(|node| !reached.contains(node));
                cut.extend(missing.map(|node| (mgid, node)));
            }
        }
        cut.sort_unstable();
        cut
    }
}
