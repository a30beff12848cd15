//! The maps of the packet program.

use aya::{
    Ebpf, Pod,
    maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues},
    programs::ProgramFd,
    util::nr_cpus,
};
use raddle_wire::MacAddress;

use super::{
    copies::{Copies, Exits},
    layout::{Count, Group, GroupKey, Slot, Start, StationKey, StationPlace, Traffic},
};
use crate::{bridge::Station, fast::FastPort};

/// What was counted for a group or job, in the order of [`Count`].
pub(super) type Totals = [u64; Count::ALL.len()];

pub(super) struct Maps {
    pub(super) groups: HashMap<MapData, GroupKey, Group>,
    pub(super) exits: Exits,
    starts: Array<MapData, Start>,
    slots: Array<MapData, Slot>,
    counts: PerCpuArray<MapData, u64>,
    ports: PerCpuHashMap<MapData, u32, Traffic>,
    stations: HashMap<MapData, StationKey, StationPlace>,
}

impl Maps {
    /// Takes the maps of an object whose programs are loaded; `exit` addresses copies that the kernel makes.
    pub(super) fn take(bpf: &mut Ebpf, exit: Option<ProgramFd>) -> Result<Self, MapError> {
        let mut take = |name: &str| {
            let error = || MapError::InvalidName {
                name: name.to_owned(),
            };
            bpf.take_map(name).ok_or_else(error)
        };
        Ok(Self {
            groups: take("groups")?.try_into()?,
            exits: Exits::new(
                take("exits")?.try_into()?,
                match exit {
                    Some(exit) => Some(Copies::new(take("children")?.try_into()?, exit)?),
                    None => None,
                },
            ),
            starts: take("starts")?.try_into()?,
            slots: take("slots")?.try_into()?,
            counts: take("counts")?.try_into()?,
            ports: take("ports")?.try_into()?,
            stations: take("stations")?.try_into()?,
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

    /// Begins to count the frames of an interface; those counted before stay. `cable`: it leads into another network
    /// namespace of this machine.
    pub(super) fn open_port(&mut self, interface: u32, cable: bool) -> Result<(), MapError> {
        if self.ports.get(&interface, 0).is_ok() {
            return Ok(());
        }
        let traffic = Traffic {
            cable: u64::from(cable),
            ..Traffic::default()
        };
        self.ports.insert(interface, everywhere(traffic)?, 0)
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
