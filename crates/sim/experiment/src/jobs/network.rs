//! What the network carries for jobs: groups, trees and reductions, as far as switches have room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use raddle_engine::{Multicast, Offload, OffloadGroup};
use raddle_fabric::Fabric;
use raddle_multicast::{Group, Mgid};
use raddle_replay::{Carrier, Granted, Grants, Job};
use raddle_units::{NodeId, PortId, Span};
use raddle_workload::{GroupId, MulticastEngineName, OffloadId};

use crate::{fields::Experiment, multicast};

/// Groups that switches have room for where nothing is said.
const ROOM: u32 = 64;
/// Time after which a member sends again where nothing is said: ranks wait for each other, and repeat nothing meanwhile.
const RETRY: Span = Span::from_ms(10);

/// What was granted, and the tables that follow.
pub(super) struct Network {
    pub(super) grants: Grants,
    pub(super) multicast: Option<Arc<Multicast>>,
    pub(super) offload: Option<Arc<Offload>>,
}

impl Network {
    /// Communicators are served job by job, in their order, until there is no room. Where hosts have several rails, groups are in
    /// the first `plane` of the fabric.
    ///
    /// # Errors
    /// Groups that the engine has no trees for.
    pub(super) fn new(
        experiment: &Experiment,
        jobs: &[Job],
        fabric: &Arc<Fabric>,
        plane: Option<&Arc<Fabric>>,
    ) -> Result<Self, String> {
        let table = experiment.multicast.clone().unwrap_or_default();
        let switches = experiment.offload.clone().unwrap_or_default();
        let mut grants = Grants::new();
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        let mut reductions = Reductions::new(fabric, switches.groups.unwrap_or(ROOM));
        for (place, job) in jobs.iter().enumerate() {
            for wish in job.wishes() {
                let granted = grants.entry((place, wish.comm)).or_default();
                match wish.carrier {
                    Carrier::Host => {}
                    Carrier::Multicast => {
                        if (groups.len() as u32) < table.groups.unwrap_or(ROOM) {
                            granted.group = Some(GroupId(groups.len() as u32));
                            groups.push(wish.hosts);
                        }
                    }
                    Carrier::Offload => granted.first_member = reductions.add(&wish.hosts),
                }
            }
        }
        grants.retain(|_, granted| *granted != Granted::default());
        let offload = (!reductions.groups.is_empty()).then(|| {
            let compute = switches.compute.unwrap_or_default();
            let usual = Offload::new(reductions.groups, compute);
            Arc::new(Offload {
                slots: switches.slots.unwrap_or(usual.slots),
                retry: switches.retry.unwrap_or(RETRY),
                ..usual
            })
        });
        let engine = table.engine.unwrap_or(MulticastEngineName::Mr4lms);
        let mut multicast = trees(&groups, engine, table.colours, plane.unwrap_or(fabric))?;
        if let (Some(plane), Some(multicast)) = (plane, &mut multicast) {
            into_first_plane(multicast, plane, fabric)?;
        }
        Ok(Self {
            grants,
            multicast: multicast.map(Arc::new),
            offload,
        })
    }
}

fn trees(
    groups: &[Vec<NodeId>],
    engine: MulticastEngineName,
    colours: Option<u32>,
    fabric: &Arc<Fabric>,
) -> Result<Option<Multicast>, String> {
    if groups.is_empty() {
        return Ok(None);
    }
    let groups: Vec<Group> = (0..)
        .zip(groups)
        .map(|(place, hosts)| Group::new(Mgid(place), hosts.clone()))
        .collect();
    let colours = colours.unwrap_or(groups.len() as u32);
    let made = multicast::route(engine, colours, false, fabric, &groups);
    made.map(Some).map_err(|error| error.to_string())
}

/// Groups that were routed on a plane alone, as ports of all planes are numbered. Entries name nodes and their own ports, which
/// are the same.
fn into_first_plane(
    multicast: &mut Multicast,
    plane: &Fabric,
    fabric: &Fabric,
) -> Result<(), String> {
    let same = |port: PortId| {
        let end = plane.port(port);
        let first = fabric.first_port(end.node).0;
        let there = PortId(first + u32::from(end.number) - 1);
        let found = fabric.port(there);
        let leads = fabric.peer_node(there) == plane.peer_node(port);
        (found.node == end.node && leads).then_some(there)
    };
    let refused = || {
        "groups of hosts with several rails need a fabric whose hosts are numbered before its switches".to_owned()
    };
    for node in (0..plane.node_count() as u32).map(NodeId) {
        let first = plane.first_port(node).0;
        let ports = (first..).map(PortId).take(plane.ports_of(node).len());
        for port in ports {
            same(port).ok_or_else(refused)?;
        }
    }
    for tree in multicast.combining.iter_mut().flatten() {
        for port in tree.up.values_mut() {
            *port = same(*port).ok_or_else(refused)?;
        }
    }
    Ok(())
}

/// Reductions, as far as each switch has room for them.
struct Reductions<'a> {
    fabric: &'a Fabric,
    room: u32,
    taken: BTreeMap<NodeId, u32>,
    groups: Vec<OffloadGroup>,
    members: u32,
}

impl<'a> Reductions<'a> {
    fn new(fabric: &'a Fabric, room: u32) -> Self {
        Self {
            fabric,
            room,
            taken: BTreeMap::new(),
            groups: Vec::new(),
            members: 0,
        }
    }

    /// Its first member; `None`: a switch on the way has no room.
    fn add(&mut self, hosts: &[NodeId]) -> Option<OffloadId> {
        let root = self.root(hosts)?;
        let group = OffloadGroup {
            members: hosts.to_vec(),
            root,
        };
        let switches = group.switches(self.fabric).ok()?;
        let is_full = |switch: &NodeId| self.taken.get(switch).is_some_and(|&n| n >= self.room);
        if self.room == 0 || switches.iter().any(is_full) {
            return None;
        }
        for switch in switches {
            *self.taken.entry(switch).or_default() += 1;
        }
        self.groups.push(group);
        let first = OffloadId(self.members);
        self.members += hosts.len() as u32;
        Some(first)
    }

    /// The lowest switch that all hosts reach by going up; of several the one with the fewest groups.
    fn root(&self, hosts: &[NodeId]) -> Option<NodeId> {
        let fabric = self.fabric;
        let leaf = |host: &NodeId| fabric.peer_node(fabric.first_port(*host));
        let leaves: BTreeSet<NodeId> = hosts.iter().map(leaf).collect();
        let mut common: Option<BTreeSet<NodeId>> = None;
        for leaf in leaves {
            let above = self.above(leaf);
            common = Some(match common {
                None => above,
                Some(common) => common.intersection(&above).copied().collect(),
            });
        }
        let rank = |switch: &NodeId| {
            let taken = self.taken.get(switch).copied().unwrap_or_default();
            (fabric.level(*switch), taken, *switch)
        };
        common?.into_iter().min_by_key(rank)
    }

    /// A switch and all that lie above it.
    fn above(&self, switch: NodeId) -> BTreeSet<NodeId> {
        let fabric = self.fabric;
        let mut found = BTreeSet::from([switch]);
        let mut open = vec![switch];
        while let Some(node) = open.pop() {
            let ports = fabric.ports_of(node).iter();
            for peer in ports.map(|port| fabric.port(port.peer).node) {
                let is_above = !fabric.is_host(peer) && fabric.level(peer) > fabric.level(node);
                if is_above && found.insert(peer) {
                    open.push(peer);
                }
            }
        }
        found
    }
}
