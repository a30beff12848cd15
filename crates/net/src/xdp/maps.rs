//! The maps of the packet program.

use aya::{
    Ebpf, Pod,
    maps::{
        Array, ArrayOfMaps, DevMap, HashMap, Map, MapData, MapError, PerCpuArray, PerCpuHashMap,
        PerCpuValues, xdp::XdpMapError,
    },
    programs::ProgramFd,
    util::nr_cpus,
};
use raddle_wire::MacAddress;

use super::layout::{
    CHILDREN, Count, Exit, ExitKey, GROUPS, Group, GroupKey, Slot, Start, StationKey, StationPlace,
    Traffic,
};
use crate::{bridge::Station, fast::FastPort};

/// What was counted for a group or job, in the order of [`Count`].
pub(super) type Totals = [u64; Count::ALL.len()];

/// BPF_MAP_TYPE_DEVMAP, and bytes of its key and value (`struct bpf_devmap_val`).
const DEVMAP: (u32, u32, u32) = (14, 4, 8);

pub(super) struct Maps {
    pub(super) groups: HashMap<MapData, GroupKey, Group>,
    pub(super) exits: HashMap<MapData, ExitKey, Exit>,
    starts: Array<MapData, Start>,
    slots: Array<MapData, Slot>,
    counts: PerCpuArray<MapData, u64>,
    ports: PerCpuHashMap<MapData, u32, Traffic>,
    stations: HashMap<MapData, StationKey, StationPlace>,
    children: ArrayOfMaps<MapData, DevMap<MapData>>,
    /// What the entries of `children` hold.
    sets: Vec<Set>,
}

/// Interfaces by which results leave, and how many groups use them.
#[derive(Default)]
struct Set {
    interfaces: Vec<u32>,
    users: u32,
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
        Ok(Self {
            groups: take("groups")?.try_into()?,
            exits: take("exits")?.try_into()?,
            starts: take("starts")?.try_into()?,
            slots: take("slots")?.try_into()?,
            counts: take("counts")?.try_into()?,
            ports: take("ports")?.try_into()?,
            stations: take("stations")?.try_into()?,
            children: take("children")?.try_into()?,
            sets: Vec::new(),
        })
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

    /// The entry of `children` with these interfaces, for one more user. Entries are shared and kept, because the
    /// kernel takes many milliseconds to change one: it waits until no program can see the old one.
    pub(super) fn copies(
        &mut self,
        interfaces: Vec<u32>,
        exit: &ProgramFd,
    ) -> Result<u32, MapError> {
        if let Some(at) = self
            .sets
            .iter()
            .position(|set| set.interfaces == interfaces)
        {
            self.sets[at].users += 1;
            return Ok(at as u32);
        }
        let (kind, key, value) = DEVMAP;
        let object = aya_obj::Map::new_from_params(kind, key, value, CHILDREN as u32, 0);
        let mut map = DevMap::try_from(Map::DevMap(MapData::create(object, "children", None)?))?;
        for (at, interface) in interfaces.iter().enumerate() {
            map.set(at as u32, *interface, Some(exit), 0)
                .map_err(|error| match error {
                    XdpMapError::MapError(error) => error,
                    XdpMapError::ChainedProgramNotSupported => MapError::ProgIdNotSupported,
                })?;
        }
        let at = if self.sets.len() < GROUPS as usize {
            self.sets.push(Set::default());
            self.sets.len() - 1
        } else {
            // There are as many entries as groups, and the group that asks uses none.
            let unused = self.sets.iter().position(|set| set.users == 0);
            unused.ok_or(MapError::OutOfBounds {
                index: GROUPS,
                max_entries: GROUPS,
            })?
        };
        self.children.set(at as u32, &map, 0)?;
        self.sets[at] = Set {
            interfaces,
            users: 1,
        };
        Ok(at as u32)
    }

    /// A group does not use an entry of `children` any more.
    pub(super) fn release(&mut self, copies: u32) {
        self.sets[copies as usize].users -= 1;
    }

    /// An interface is gone, and the kernel has taken it out of the maps.
    pub(super) fn forget(&mut self, interface: u32) {
        for set in &mut self.sets {
            if set.interfaces.contains(&interface) {
                set.interfaces.clear();
            }
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
