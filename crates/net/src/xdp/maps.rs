//! The maps of the packet program.

use aya::{
    Ebpf, Pod,
    maps::{
        Array, ArrayOfMaps, DevMapHash, HashMap, Map, MapData, MapError, PerCpuArray,
        PerCpuHashMap, PerCpuValues, xdp::XdpMapError,
    },
    programs::ProgramFd,
    util::nr_cpus,
};
use raddle_wire::MacAddress;

use super::layout::{
    CHILDREN, Count, Exit, ExitKey, Group, GroupKey, Slot, Start, StationKey, StationPlace, Traffic,
};
use crate::{bridge::Station, fast::FastPort};

/// What was counted for a group or job, in the order of [`Count`].
pub(super) type Totals = [u64; Count::ALL.len()];

/// BPF_MAP_TYPE_DEVMAP_HASH, and bytes of its key and value (`struct bpf_devmap_val`).
const DEVMAP: (u32, u32, u32) = (25, 4, 8);

/// Entries of `children` that are there from the start.
const SETS: usize = 8;

pub(super) struct Maps {
    pub(super) groups: HashMap<MapData, GroupKey, Group>,
    pub(super) exits: HashMap<MapData, ExitKey, Exit>,
    starts: Array<MapData, Start>,
    slots: Array<MapData, Slot>,
    counts: PerCpuArray<MapData, u64>,
    ports: PerCpuHashMap<MapData, u32, Traffic>,
    stations: HashMap<MapData, StationKey, StationPlace>,
    children: ArrayOfMaps<MapData, DevMapHash<MapData>>,
    /// The entries of `children`.
    sets: Vec<Set>,
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

impl Maps {
    /// Takes the maps of an object whose programs are loaded.
    pub(super) fn take(bpf: &mut Ebpf) -> Result<Self, MapError> {
        let mut take = |name: &str| {
            let error = || MapError::InvalidName {
                name: name.to_owned(),
            };
            bpf.take_map(name).ok_or_else(error)
        };
        let mut maps = Self {
            groups: take("groups")?.try_into()?,
            exits: take("exits")?.try_into()?,
            starts: take("starts")?.try_into()?,
            slots: take("slots")?.try_into()?,
            counts: take("counts")?.try_into()?,
            ports: take("ports")?.try_into()?,
            stations: take("stations")?.try_into()?,
            children: take("children")?.try_into()?,
            sets: Vec::new(),
        };
        for _ in 0..SETS {
            maps.add_set()?;
        }
        Ok(maps)
    }

    /// Makes the index and the slots of a group as if nobody had used them.
    pub(super) fn clear(&mut self, table: &Group) -> Result<(), MapError> {
        self.starts.set(table.index, Start::default(), 0)?;
        for slot in table.first_slot..table.first_slot + table.slots {
            self.slots.set(slot, Slot::EMPTY, 0)?;
        }
        for at in counts_of(table.index) {
            self.counts.set(at, everywhere(0)?, 0)?;
        }
        Ok(())
    }

    /// The entry of `children` with these interfaces, for one more user. Entries are filled anew rather than replaced:
    /// the kernel takes many milliseconds to put one there, in which the switch would stand still, since it waits until
    /// no program can see what was there before.
    pub(super) fn copies(
        &mut self,
        interfaces: Vec<u32>,
        exit: &ProgramFd,
    ) -> Result<u32, MapError> {
        let same = |set: &Set| set.users > 0 && !set.stale && set.interfaces == interfaces;
        let at = if let Some(at) = self.sets.iter().position(same) {
            at
        } else {
            let unused = self.sets.iter().position(|set| set.users == 0);
            let at = match unused {
                Some(at) => at,
                None => self.add_set()?,
            };
            self.sets[at].fill(interfaces, exit)?;
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

    /// Tells the program behind which interface a station is. What the tables have no room for, the core forwards.
    pub(super) fn set_station(&mut self, station: Station, interface: Option<u32>) {
        let key = StationKey {
            mac: station.mac.0,
            zero: 0,
        };
        // An entry that is not there need not be removed.
        let _ = match interface {
            Some(interface) => {
                let place = StationPlace {
                    interface,
                    heard: 0,
                };
                self.stations.insert(key, place, 0)
            }
            None => self.stations.remove(&key),
        };
    }

    /// Stations whose frames the program forwarded since the last time.
    pub(super) fn heard(&mut self) -> Vec<Station> {
        let heard: Vec<_> = self
            .stations
            .iter()
            .filter_map(Result::ok)
            .filter(|(_, place)| place.heard != 0)
            .collect();
        for (key, place) in &heard {
            let place = StationPlace { heard: 0, ..*place };
            let _ = self.stations.insert(key, place, 0);
        }
        heard
            .into_iter()
            .map(|(key, _)| Station {
                mac: MacAddress(key.mac),
                vlan: 0,
            })
            .collect()
    }

    /// Begins to count the frames of an interface; those counted before stay.
    pub(super) fn open_port(&mut self, interface: u32) -> Result<(), MapError> {
        if self.ports.get(&interface, 0).is_ok() {
            return Ok(());
        }
        self.ports
            .insert(interface, everywhere(Traffic::default())?, 0)
    }

    pub(super) fn traffic(&self, interface: u32) -> FastPort {
        let mut sum = FastPort::default();
        if let Ok(values) = self.ports.get(&interface, 0) {
            for part in values.iter() {
                sum.received += part.received;
                sum.received_bytes += part.received_bytes;
                sum.sent += part.sent;
                sum.sent_bytes += part.sent_bytes;
            }
        }
        sum
    }

    /// What was counted for a group since it was installed.
    pub(super) fn totals(&self, index: u32) -> Totals {
        let mut totals = Totals::default();
        for (total, at) in totals.iter_mut().zip(counts_of(index)) {
            if let Ok(values) = self.counts.get(&at, 0) {
                *total = values.iter().sum();
            }
        }
        totals
    }
}

const fn counts_of(index: u32) -> std::ops::Range<u32> {
    let each = Count::ALL.len() as u32;
    index * each..(index + 1) * each
}

/// The same value for each processor.
fn everywhere<T: Pod>(value: T) -> Result<PerCpuValues<T>, MapError> {
    let processors = nr_cpus().map_err(|(_, error)| MapError::IoError(error))?;
    Ok(PerCpuValues::try_from(vec![value; processors])?)
}
