//! What ranks tell each other before anything is offloaded: where each is, and by which settings it goes. From that follows
//! who speaks to the switch for whom.

use std::{collections::BTreeMap, fs, io};

use raddle_offload::order::Placement;

use crate::{
    node,
    settings::{self, Mode, Settings},
};

/// What each rank tells the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The same on all ranks of a node.
    pub(crate) node: u64,
    /// The host's name, by which MPI libraries tell nodes apart.
    pub(crate) host: u64,
    /// The CPU socket that all CPUs of the process are on; `ANY`: they are on several.
    pub(crate) socket: u32,
    /// Job and key are set.
    pub(crate) has_job: bool,
    /// [`Settings::digest`].
    pub(crate) digest: u64,
}

/// No certain socket.
pub(crate) const ANY: u32 = u32::MAX;

impl Hello {
    /// Bytes of one.
    pub(crate) const SIZE: usize = 32;

    /// Of this process, which goes by these settings.
    pub(crate) fn of_this_process(settings: &Settings) -> Self {
        Self {
            node: node::id(settings),
            host: settings::fold(node::host_name()),
            socket: if settings.mode == Mode::Node {
                ANY
            } else {
                socket()
            },
            has_job: settings.job.is_some(),
            digest: settings.digest(),
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.node.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.socket.to_be_bytes());
        bytes[12] = u8::from(self.has_job);
        bytes[16..24].copy_from_slice(&self.digest.to_be_bytes());
        bytes[24..].copy_from_slice(&self.host.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let long = |from: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[from..from + 8]);
            u64::from_be_bytes(part)
        };
        Self {
            node: long(0),
            socket: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            has_job: bytes[12] != 0,
            digest: long(16),
            host: long(24),
        }
    }
}

/// The ranks that each member speaks for, ascending; members in order of their least rank. `sockets`: what RADDLE_SOCKETS
/// says.
pub(crate) fn members(hellos: &[Hello], mode: Mode, sockets: Option<u32>) -> Vec<Vec<u32>> {
    let mut nodes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (rank, hello) in (0..).zip(hellos) {
        nodes.entry(hello.node).or_default().push(rank);
    }
    let mut members = Vec::new();
    for ranks in nodes.into_values() {
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let certain = ranks
            .iter()
            .all(|rank| hellos[*rank as usize].socket != ANY);
        for (index, rank) in ranks.iter().enumerate() {
            let part = match (mode, sockets) {
                (Mode::Node, _) => 0,
                #[expect(clippy::cast_possible_truncation, reason = "less than `count`")]
                (_, Some(count)) => (index * count as usize / ranks.len()) as u32,
                (_, None) if certain => hellos[*rank as usize].socket,
                (_, None) => 0,
            };
            parts.entry(part).or_default().push(*rank);
        }
        members.extend(parts.into_values());
    }
    members.sort();
    members
}

/// How the ranks lie on nodes as the MPI library sees them.
pub(crate) fn placement(hellos: &[Hello]) -> Placement {
    let mut hosts: Vec<_> = hellos.iter().map(|hello| hello.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    match hosts.len() {
        1 => Placement::OneNode,
        count if count == hellos.len() => Placement::OnePerNode,
        _ => Placement::Shared,
    }
}

/// The socket of all CPUs that this process may use.
fn socket() -> u32 {
    let mut found = None;
    let Ok(cpus) = allowed_cpus() else { return ANY };
    for cpu in cpus {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        let package = fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok());
        match (package, found) {
            (None, _) => return ANY,
            (Some(package), None) => found = Some(package),
            (Some(package), Some(other)) if package != other => return ANY,
            _ => {}
        }
    }
    found.unwrap_or(ANY)
}

fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: a set of CPUs is plain bits, for which zero is valid; the call writes at most its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        set
    };
    // SAFETY: every index is below the set's number of bits.
    Ok((0..8 * size_of_val(&set))
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hellos(places: &[(u64, u32)]) -> Vec<Hello> {
        places
            .iter()
            .map(|(node, socket)| Hello {
                node: *node,
                host: *node,
                socket: *socket,
                has_job: true,
                digest: 0,
            })
            .collect()
    }

    #[test]
    fn a_hello_survives_its_bytes() {
        let hello = Hello {
            node: 1 << 63 | 5,
            host: 6,
            socket: 3,
            has_job: true,
            digest: 77,
        };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), hello);
    }

    #[test]
    fn members_are_numbered_by_their_least_rank() {
        let ranks = hellos(&[(9, 0), (2, 0), (9, 1), (2, 1), (9, 0)]);
        assert_eq!(
            members(&ranks, Mode::Node, None),
            [vec![0, 2, 4], vec![1, 3]]
        );
        assert_eq!(
            members(&ranks, Mode::Auto, None),
            [vec![0, 4], vec![1], vec![2], vec![3]]
        );
    }

    #[test]
    fn placement_goes_by_host_names() {
        assert_eq!(placement(&hellos(&[(1, 0), (1, 0)])), Placement::OneNode);
        assert_eq!(placement(&hellos(&[(1, 0), (2, 0)])), Placement::OnePerNode);
        assert_eq!(
            placement(&hellos(&[(1, 0), (2, 0), (1, 0)])),
            Placement::Shared
        );
    }

    #[test]
    fn pretended_sockets_are_filled_in_order_of_ranks() {
        let ranks = hellos(&[(1, ANY); 5]);
        assert_eq!(
            members(&ranks, Mode::Socket, Some(2)),
            [vec![0, 1, 2], vec![3, 4]]
        );
    }

    #[test]
    fn a_node_with_one_uncertain_rank_has_one_member() {
        let ranks = hellos(&[(1, 0), (1, 1), (1, ANY), (2, 0), (2, 1)]);
        assert_eq!(
            members(&ranks, Mode::Auto, None),
            [vec![0, 1, 2], vec![3], vec![4]]
        );
    }
}
