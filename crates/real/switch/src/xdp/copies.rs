//! How results leave to the children of a group: a copy by each interface.
//!
//! Under TC the program makes the copies, in the order of the map `exits`. Under XDP the kernel does, from a map of
//! interfaces, and a second program addresses them.

use aya::{
    maps::{ArrayOfMaps, DevMapHash, HashMap, Map, MapData, MapError, xdp::XdpMapError},
    programs::ProgramFd,
};

use super::{
    layout::{CHILDREN, Exit, ExitKey, GroupKey},
    mirror::{Places, network},
};

/// How results of all groups leave.
pub(super) struct Exits {
    exits: HashMap<MapData, ExitKey, Exit>,
    /// Under XDP.
    copies: Option<Copies>,
}

impl Exits {
    /// Takes the empty maps.
    pub(super) const fn new(
        exits: HashMap<MapData, ExitKey, Exit>,
        copies: Option<Copies>,
    ) -> Self {
        Self { exits, copies }
    }

    /// Results of a group go to these places; gives what its table says of the copies ([`Group`](super::layout::Group)).
    pub(super) fn add(&mut self, group: GroupKey, places: &Places) -> Result<u32, MapError> {
        for (key, exit) in self.of(group, places) {
            self.exits.insert(key, exit, 0)?;
        }
        let interfaces: Vec<u32> = places.children.iter().map(|child| child.0).collect();
        match &mut self.copies {
            Some(copies) => copies.take(interfaces),
            None => Ok(interfaces.len() as u32),
        }
    }

    /// A group does not use the copies of its table any more.
    pub(super) fn release(&mut self, copies: u32) {
        if let Some(all) = &mut self.copies {
            all.release(copies);
        }
    }

    /// A group has gone.
    pub(super) fn remove(&mut self, group: GroupKey, places: &Places, copies: u32) {
        for (key, _) in self.of(group, places) {
            // An entry that is not there need not be removed.
            let _ = self.exits.remove(&key);
        }
        self.release(copies);
    }

    /// An interface has gone.
    pub(super) fn forget(&mut self, interface: u32) {
        if let Some(copies) = &mut self.copies {
            copies.forget(interface);
        }
    }

    fn of(&self, group: GroupKey, places: &Places) -> Vec<(ExitKey, Exit)> {
        let by_interface = self.copies.is_some();
        let children = places.children.iter().zip(0..);
        children
            .map(|((interface, mac, address), at)| {
                let key = ExitKey {
                    job: group.job,
                    group: group.group,
                    at: if by_interface { *interface } else { at },
                };
                let exit = Exit {
                    mac: mac.0,
                    port: address.port().to_be(),
                    address: network(*address.ip()),
                    interface: *interface,
                };
                (key, exit)
            })
            .collect()
    }
}

/// BPF_MAP_TYPE_DEVMAP_HASH, and bytes of its key and value (`struct bpf_devmap_val`).
const DEVMAP: (u32, u32, u32) = (25, 4, 8);

/// Entries of `children` that are there from the start.
const SETS: usize = 8;

/// The map `children`, and what its entries hold.
pub(super) struct Copies {
    children: ArrayOfMaps<MapData, DevMapHash<MapData>>,
    sets: Vec<Set>,
    /// Addresses each copy as it leaves.
    exit: ProgramFd,
}

/// Interfaces by which results leave, and how many groups use them.
struct Set {
    /// Each interface under its own index.
    map: DevMapHash<MapData>,
    interfaces: Vec<u32>,
    users: u32,
    /// An interface has gone, and is perhaps no longer in the map.
    stale: bool,
}

impl Set {
    /// Holds these interfaces and no others.
    fn fill(&mut self, interfaces: Vec<u32>, exit: &ProgramFd) -> Result<(), MapError> {
        for gone in self.interfaces.drain(..) {
            // The kernel takes interfaces out that cease to be.
            let _ = self.map.remove(gone);
        }
        self.interfaces = interfaces;
        for &interface in &self.interfaces {
            self.map
                .insert(interface, interface, Some(exit), 0)
                .map_err(|error| match error {
                    XdpMapError::MapError(error) => error,
                    XdpMapError::ChainedProgramNotSupported => MapError::ProgIdNotSupported,
                })?;
        }
        self.stale = false;
        Ok(())
    }
}

impl Copies {
    /// Takes the empty map.
    pub(super) fn new(
        children: ArrayOfMaps<MapData, DevMapHash<MapData>>,
        exit: ProgramFd,
    ) -> Result<Self, MapError> {
        let mut copies = Self {
            children,
            sets: Vec::new(),
            exit,
        };
        for _ in 0..SETS {
            copies.add_set()?;
        }
        Ok(copies)
    }

    /// The entry of `children` with these interfaces, for one more user. Entries are filled anew rather than replaced:
    /// the kernel takes many milliseconds to put one there, in which the switch would stand still, since it waits until
    /// no program can see what was there before.
    pub(super) fn take(&mut self, interfaces: Vec<u32>) -> Result<u32, MapError> {
        let same = |set: &Set| set.users > 0 && !set.stale && set.interfaces == interfaces;
        let at = if let Some(at) = self.sets.iter().position(same) {
            at
        } else {
            let unused = self.sets.iter().position(|set| set.users == 0);
            let at = match unused {
                Some(at) => at,
                None => self.add_set()?,
            };
            self.sets[at].fill(interfaces, &self.exit)?;
            at
        };
        self.sets[at].users += 1;
        Ok(at as u32)
    }

    fn add_set(&mut self) -> Result<usize, MapError> {
        let (kind, key, value) = DEVMAP;
        let object = aya_obj::Map::new_from_params(kind, key, value, CHILDREN as u32, 0);
        let map = MapData::create(object, "children", None)?;
        let map = DevMapHash::try_from(Map::DevMapHash(map))?;
        let at = self.sets.len();
        // There are as many entries as groups, so that one is free for the group that asks.
        self.children.set(at as u32, &map, 0)?;
        self.sets.push(Set {
            map,
            interfaces: Vec::new(),
            users: 0,
            stale: false,
        });
        Ok(at)
    }

    /// A group does not use an entry of `children` any more.
    pub(super) fn release(&mut self, copies: u32) {
        self.sets[copies as usize].users -= 1;
    }

    /// An interface has gone: groups that come share no set that had it.
    pub(super) fn forget(&mut self, interface: u32) {
        for set in &mut self.sets {
            set.stale |= set.interfaces.contains(&interface);
        }
    }
}
