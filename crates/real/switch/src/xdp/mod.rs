//! The fast path in the kernel: loads the packet program of `crates/real/switch/xdp`, and tells it of groups and neighbours.
//!
//! The core installs groups and keeps all control; the program answers steady rounds (`docs/reference/switch.md` says which).
//! A group is *the core's* until the place of every neighbour is known, and then *the program's* from the first round
//! on that nobody has seen yet: the program itself chooses that round, so that no round is split between the two.
//!
//! Programs hang on the interfaces by a link that belongs to this process: when it ends, however it ends, they go.

mod copies;
mod hook;
mod layout;
mod maps;
mod mirror;

use std::{error::Error, net::Ipv4Addr, time::Duration};

use aya::{Ebpf, maps::MapError};
use raddle_offload::switch::{GroupPlan, SwitchEvent};
use raddle_units::Time;
use rustc_hash::FxHashMap;

use self::{
    hook::Attachment,
    layout::{Count, FOR_SOCKETS, GROUPS, Group, GroupKey},
    maps::{Maps, Totals},
    mirror::Places,
};
pub use self::{hook::Hook, mirror::LeftToCore};
use crate::{
    bridge::Station,
    fast::{FastCounters, FastPath, FastPathError, FastPort, Identity, Link, Route},
};
use raddle_host::ethtool::leads_elsewhere;

/// Slots of all groups together for which a switch has room: 34 MiB.
pub const SLOTS: u32 = 4096;

/// So many times a result is sent again, in the mean, before its group goes back to the core.
const IN_VAIN: u64 = 16;

/// What became of a frame that was given to [`XdpPath::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It ended in the program.
    Drop,
    /// It goes on to the sockets.
    Pass,
    /// It goes back by the port that it came from.
    Back,
    /// It goes to other ports.
    Redirect,
}

/// An interface with the program on it.
struct Attached {
    link: Link,
    attachment: Attachment,
}

/// A group that the program knows.
struct Known {
    plan: GroupPlan,
    table: Group,
    places: Option<Places>,
    /// Its results did not arrive: the core has it for good.
    given_back: bool,
}

impl Known {
    const fn key(&self) -> GroupKey {
        GroupKey {
            job: self.plan.job,
            group: self.plan.group,
        }
    }

    fn what(&self) -> String {
        describe(&self.plan)
    }
}

/// The fast path in the kernel.
pub struct XdpPath {
    bpf: Ebpf,
    maps: Maps,
    identity: Identity,
    attached: Vec<Attached>,
    routes: FxHashMap<Ipv4Addr, Route>,
    groups: Vec<Known>,
    slots: u32,
    /// Tables of groups that are gone, whose index and slots a program that still runs may use; free from the next
    /// tick on.
    retired: Vec<Group>,
    /// Counters of groups that are gone, by job.
    gone: Vec<(u32, Totals)>,
    /// Whether it forwards ordinary frames too.
    forwards: bool,
    hook: Hook,
}

impl XdpPath {
    /// Loads the program for a place in the kernel, with room for `slots` slots of all groups together (8.4 KiB of memory
    /// each).
    ///
    /// # Errors
    /// When the kernel refuses it: without the right to load programs, or before Linux 5.18 ([`Hook::Tc`]: 6.6).
    pub fn load(identity: Identity, slots: u32, hook: Hook) -> Result<Self, FastPathError> {
        let what = "loading the packet program";
        let slots = slots.max(1);
        let (mut bpf, exit) = hook
            .load(slots)
            .map_err(|error| failed(what, error.as_ref()))?;
        let maps = Maps::take(&mut bpf, exit).map_err(|error| failed(what, &error))?;
        Ok(Self {
            bpf,
            maps,
            identity,
            attached: Vec::new(),
            routes: FxHashMap::default(),
            groups: Vec::new(),
            slots,
            retired: Vec::new(),
            gone: Vec::new(),
            forwards: false,
            hook,
        })
    }

    /// The program is to forward frames between stations that the core knows (`docs/reference/switch.md` says which). With
    /// [`Hook::Native`] every host must take frames that a program redirects to it.
    #[must_use]
    pub const fn forwarding(mut self) -> Self {
        self.forwards = true;
        self
    }

    /// The core has installed a group. The program answers its rounds from the first one on that begins after the
    /// places of all neighbours are known. A group of the same name is replaced.
    ///
    /// # Errors
    /// The group does not fit into the program's tables, has a neighbour whom the program cannot reach, or the kernel refuses the
    /// tables. Its rounds then stay with the core.
    pub fn install(&mut self, plan: GroupPlan) -> Result<(), FastPathError> {
        self.remove(plan.job, plan.group);
        let what = describe(&plan);
        let (Some(index), Some(first)) =
            (self.free_index(), self.free_slots(u32::from(plan.slots)))
        else {
            return Err(unexpected(&what, "all its groups or slots are in use"));
        };
        let table = mirror::table(&plan, &self.identity, index, first)
            .map_err(|error| failed(&what, &error))?;
        self.maps
            .clear(&table)
            .map_err(|error| failed(&what, &error))?;
        self.groups.push(Known {
            plan,
            table,
            places: None,
            given_back: false,
        });
        self.place(self.groups.len() - 1)
    }

    /// The core has freed a group.
    pub fn remove(&mut self, job: u32, group: u32) {
        let Some(at) = self.position(job, group) else {
            return;
        };
        let known = self.groups.swap_remove(at);
        // An entry that is not there need not be removed.
        let _ = self.maps.groups.remove(&known.key());
        if let Some(places) = &known.places {
            let copies = known.table.copies;
            self.maps.exits.remove(known.key(), places, copies);
        }
        let totals = self.maps.totals(known.table.index);
        match self.gone.iter_mut().find(|gone| gone.0 == job) {
            Some(gone) => add(&mut gone.1, &totals),
            None => self.gone.push((job, totals)),
        }
        self.retired.push(known.table);
    }

    /// Why the program does not answer for a group that was installed; `None` if it does.
    #[must_use]
    pub fn waits_for(&self, job: u32, group: u32) -> Option<LeftToCore> {
        let known = &self.groups[self.position(job, group)?];
        let works = |index| self.works(index);
        match &known.places {
            Some(_) => None,
            None => mirror::places(&known.plan, &self.routes, works).err(),
        }
    }

    /// Runs the program on a frame as if it had come in, without sending anything: what is to become of it, and in
    /// `out` the frame as the program left it. The tables change as they would.
    ///
    /// # Errors
    /// The kernel refuses to run it: the frame is shorter than an Ethernet header, or the right to run programs is missing.
    pub fn run(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Result<Action, FastPathError> {
        self.hook
            .run(&mut self.bpf, frame, out)
            .map_err(|error| failed("running the packet program", error.as_ref()))
    }

    /// The mean time that the program takes for a frame, of many runs. The frame must be one that it does not change.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn time(&mut self, frame: &[u8], runs: u32) -> Result<Duration, FastPathError> {
        self.hook
            .time(&mut self.bpf, frame, runs)
            .map_err(|error| failed("running the packet program", &error))
    }

    fn position(&self, job: u32, group: u32) -> Option<usize> {
        self.groups
            .iter()
            .position(|known| known.plan.job == job && known.plan.group == group)
    }

    /// Whether the program runs on an interface.
    fn works(&self, interface: u32) -> bool {
        self.attached
            .iter()
            .any(|port| port.link.index == interface)
    }

    fn taken(&self) -> impl Iterator<Item = &Group> {
        self.groups
            .iter()
            .map(|known| &known.table)
            .chain(&self.retired)
    }

    fn free_index(&self) -> Option<u32> {
        (0..GROUPS).find(|index| self.taken().all(|table| table.index != *index))
    }

    /// The first of `wanted` slots in a row that no group has.
    fn free_slots(&self, wanted: u32) -> Option<u32> {
        let mut taken: Vec<(u32, u32)> = self
            .taken()
            .map(|table| (table.first_slot, table.slots))
            .collect();
        taken.sort_unstable();
        let mut first = 0;
        for (start, slots) in taken {
            if start - first >= wanted {
                break;
            }
            first = start + slots;
        }
        (self.slots - first >= wanted).then_some(first)
    }

    /// Tells the program where the neighbours of a group are, as far as that is known.
    fn place(&mut self, at: usize) -> Result<(), FastPathError> {
        let known = &self.groups[at];
        let works = |index| self.works(index);
        let places = mirror::places(&known.plan, &self.routes, works).ok();
        // A neighbour that is forgotten for lack of ordinary traffic is still where it was.
        if known.given_back
            || known.places.is_some() && (places.is_none() || places == known.places)
        {
            return Ok(());
        }
        let what = known.what();
        self.write(at, places)
            .map_err(|error| failed(&what, &error))
    }

    fn write(&mut self, at: usize, places: Option<Places>) -> Result<(), MapError> {
        let known = &mut self.groups[at];
        if let Some(places) = places {
            let copies = self.maps.exits.add(known.key(), &places)?;
            if known.places.is_some() {
                self.maps.exits.release(known.table.copies);
            }
            known.table.copies = copies;
            known.table.parent_interface = places.parent.0;
            known.table.parent_mac = places.parent.1.0;
            known.table.ready = 1;
            known.places = Some(places);
        }
        // Last: from now on the program may use all of it.
        self.maps.groups.insert(known.key(), known.table, 0)
    }

    /// Gives groups back to the core whose results do not reach the children, who ask for the same ones again and
    /// again. The children have what the program sent before, or send their contributions to the core.
    fn give_back(&mut self) {
        for known in &mut self.groups {
            if known.places.is_none() || known.given_back {
                continue;
            }
            let totals = self.maps.totals(known.table.index);
            let [results, again] =
                [Count::Results, Count::Answered].map(|count| totals[count as usize]);
            if again < IN_VAIN * results.max(1) {
                continue;
            }
            known.given_back = true;
            let _ = self.maps.groups.remove(&known.key());
            tracing::warn!(
                job = known.plan.job,
                group = known.plan.group,
                "results sent by XDP do not arrive; the group goes on over sockets \
                 (hint: a veth peer needs `ethtool -K DEV gro on`)"
            );
        }
    }

    /// Looks again at all groups after neighbours or ports have changed.
    fn place_all(&mut self) {
        for at in 0..self.groups.len() {
            // The group goes on as it was: with the core, or by the old ways, where members notice and leave.
            let _ = self.place(at);
        }
    }
}

impl FastPath for XdpPath {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn link_up(&mut self, link: &Link) -> Result<(), FastPathError> {
        self.link_down(link);
        let what = format!("putting the packet program on {}", link.interface);
        let attachment = self
            .hook
            .attach(&mut self.bpf, link)
            .map_err(|error| failed(&what, error.as_ref()))?;
        self.maps
            .open_port(link.index, leads_elsewhere(&link.interface))
            .map_err(|error| failed(&what, &error))?;
        self.attached.push(Attached {
            link: link.clone(),
            attachment,
        });
        self.place_all();
        Ok(())
    }

    fn link_down(&mut self, link: &Link) {
        let Some(at) = self
            .attached
            .iter()
            .position(|port| port.link.port == link.port)
        else {
            return;
        };
        let port = self.attached.swap_remove(at);
        self.maps.exits.forget(port.link.index);
        Hook::detach(&mut self.bpf, port.attachment);
    }

    fn mark(&self, interface: u32) -> Option<u32> {
        (self.hook == Hook::Tc && self.works(interface)).then_some(FOR_SOCKETS)
    }

    fn event(&mut self, event: &SwitchEvent) -> Result<(), FastPathError> {
        match event {
            SwitchEvent::GroupInstalled(plan) => self.install((**plan).clone()),
            SwitchEvent::GroupFreed { job, group } => {
                self.remove(*job, *group);
                Ok(())
            }
        }
    }

    fn route_changed(&mut self, address: Ipv4Addr, route: Option<Route>) {
        match route {
            Some(route) => {
                if self.routes.insert(address, route) == Some(route) {
                    return;
                }
            }
            None => {
                self.routes.remove(&address);
                return;
            }
        }
        self.place_all();
    }

    fn station_changed(&mut self, station: Station, interface: Option<u32>) {
        if self.forwards && station.vlan == 0 {
            let interface = interface.filter(|index| self.works(*index));
            self.maps.set_station(station, interface);
        }
    }

    fn heard(&mut self) -> Vec<Station> {
        if self.forwards {
            self.maps.heard()
        } else {
            Vec::new()
        }
    }

    fn tick(&mut self, _now: Time) {
        self.retired.clear();
        self.give_back();
    }

    fn counters(&self) -> FastCounters {
        let mut jobs: Vec<(u32, Totals)> = self.gone.clone();
        for known in &self.groups {
            let totals = self.maps.totals(known.table.index);
            match jobs.iter_mut().find(|job| job.0 == known.plan.job) {
                Some(job) => add(&mut job.1, &totals),
                None => jobs.push((known.plan.job, totals)),
            }
        }
        let mut drops = Totals::default();
        jobs.iter().for_each(|job| add(&mut drops, &job.1));
        let mut ports = Vec::new();
        for port in &self.attached {
            let at = port.link.port.index();
            if ports.len() <= at {
                ports.resize(at + 1, FastPort::default());
            }
            ports[at] = self.maps.traffic(port.link.index);
        }
        FastCounters {
            ports,
            jobs: jobs
                .iter()
                .flat_map(|(job, totals)| {
                    JOB_COUNTS.map(|(name, count)| (*job, name, totals[count as usize]))
                })
                .collect(),
            drops: DROPS
                .map(|(name, count)| (name, drops[count as usize]))
                .to_vec(),
        }
    }
}

/// Counters of jobs under their names in the metrics.
const JOB_COUNTS: [(&str, Count); 4] = [
    ("rounds", Count::Results),
    ("contributions", Count::Contributions),
    ("repeats", Count::Repeated),
    ("stale", Count::Stale),
];

/// Reasons of drops under their names in the metrics.
const DROPS: [(&str, Count); 3] = [
    ("forged", Count::Forged),
    ("stale", Count::Stale),
    ("not_awaited", Count::NotAwaited),
];

fn add(sum: &mut Totals, more: &Totals) {
    sum.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
}

fn describe(plan: &GroupPlan) -> String {
    format!("fast path for group {:#x} of job {}", plan.group, plan.job)
}

/// An error with all its causes.
fn failed(what: &str, error: &dyn Error) -> FastPathError {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    FastPathError {
        what: what.to_owned(),
        cause: causes
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": "),
    }
}

fn unexpected(what: &str, cause: &str) -> FastPathError {
    FastPathError {
        what: what.to_owned(),
        cause: cause.to_owned(),
    }
}
