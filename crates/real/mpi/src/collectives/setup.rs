//! Setting a group up: leaders open sockets, all ranks learn the leaders' addresses by plain MPI, and the leaders settle the
//! rest with the switches. Whether all are ready, all ranks then agree on by plain MPI.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    sync::{Arc, Once},
    thread,
};

use raddle_host::{
    clock,
    drive::MESSAGE,
    interfaces::{self, Interface},
};
use raddle_offload::{
    order::Expression,
    retry::TryState,
    setup::{Attempt, AttemptConfig, MemberPlace, all_terms},
};
use raddle_units::Span;
use raddle_wire::{
    DataType,
    native::{Collective, Terms, type_bit},
};

use super::{
    attempt::LeaderAttempt,
    call::Call,
    link::{self, Link},
    reason::Reason,
    roles::Roles,
    service,
};
use crate::{
    library::{Mpi, PlainFailed},
    log, node,
    settings::Settings,
};

/// IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// What the switches of a group can do; the same on all ranks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Abilities {
    operations: u16,
    collectives: u16,
    types: u32,
}

impl Abilities {
    pub(crate) fn supports(self, call: &Call) -> bool {
        let reduces = matches!(call.collective, Collective::Allreduce | Collective::Reduce);
        let has_type = |data_type: DataType| self.types & type_bit(data_type) != 0;
        self.collectives & call.collective.bit() != 0
            && match (reduces, call.operation, call.data_type) {
                (true, Some(operation), Some(data_type)) => {
                    self.operations & operation.bit() != 0 && has_type(data_type)
                }
                (true, _, _) => false,
                (false, _, _) => {
                    call.collective == Collective::Barrier || has_type(DataType::Uint8)
                }
            }
    }
}

/// What a rank says when a group is tried: a leader's sockets as the others know them, and from the first rank the group's
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Offer {
    ip: [u8; 4],
    /// For the switch, and queries. 0: there is no socket.
    data: u16,
    /// For other members.
    service: u16,
    group: u32,
}

impl Offer {
    const SIZE: usize = 12;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.ip);
        bytes[4..6].copy_from_slice(&self.data.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.service.to_be_bytes());
        bytes[8..].copy_from_slice(&self.group.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Self {
            ip: [a, b, c, d],
            data: u16::from_be_bytes([e, f]),
            service: u16::from_be_bytes([g, h]),
            group: u32::from_be_bytes([i, j, k, l]),
        }
    }

    fn place(self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(self.ip), port)
    }
}

/// What a leader begins with.
struct Opened {
    socket: UdpSocket,
    offer: Offer,
    datagram: usize,
}

/// Begins to set a group up; all ranks call it. A leader gets its attempt, which goes on by itself.
pub(crate) fn begin<M: Mpi>(
    plain: &M,
    settings: &Settings,
    roles: &Roles,
    tree: Option<&Expression>,
) -> Result<Result<Option<Arc<LeaderAttempt>>, Reason>, PlainFailed> {
    let opened = roles.leads().then(|| open(settings).ok()).flatten();
    let mut mine = opened.as_ref().map_or_else(Offer::default, |o| o.offer);
    if roles.leads() && roles.member == 0 {
        mine.group = random();
    }
    let size = roles.members.iter().map(Vec::len).sum();
    let all = plain.allgather(&mine.to_bytes(), size)?;
    let offers: Vec<_> = all.as_chunks().0.iter().map(Offer::from_bytes).collect();
    let leaders = roles.members.iter().map(|ranks| ranks[0] as usize);
    let offers: Option<Vec<Offer>> = leaders.map(|rank| offers.get(rank).copied()).collect();
    let offers = offers.ok_or(PlainFailed)?;
    if offers.iter().any(|offer| offer.data == 0) {
        return Ok(Err(Reason::NoInterface));
    }
    let (Some(opened), Some((job, key))) = (opened, &settings.job) else {
        return Ok(Ok(None));
    };
    let count = u32::try_from(roles.members.len()).map_err(|_| PlainFailed)?;
    let places = offers.iter().zip(&roles.members);
    let config = AttemptConfig {
        job: *job,
        key: *key,
        group: offers[0].group,
        member: u32::try_from(roles.member).map_err(|_| PlainFailed)?,
        places: places
            .map(|(offer, ranks)| MemberPlace {
                address: offer.place(offer.data),
                ranks: ranks.clone(),
            })
            .collect(),
        peers: offers.iter().map(|o| o.place(o.service)).collect(),
        terms: Terms {
            order: settings.order as u8,
            ..all_terms(count)
        },
        expression: tree.cloned(),
        results: None,
        datagram: opened.datagram,
        set_up_retry: Span::from_ms(20),
        set_up_give_up: clock::span(settings.setup),
        retry: clock::span(settings.retry),
        give_up: clock::span(settings.give_up),
    };
    let attempt = Attempt::new(clock::now(), config);
    let attempt = Arc::new(LeaderAttempt::new(opened.socket, attempt));
    service::begin(Arc::clone(&attempt));
    Ok(Ok(Some(attempt)))
}

/// Waits until this rank knows whether it could begin.
pub(crate) fn wait<M: Mpi>(attempt: Option<&Arc<LeaderAttempt>>) -> TryState {
    let Some(attempt) = attempt else {
        return TryState::Ready;
    };
    let mut buffer = [0; MESSAGE];
    loop {
        attempt.step(&mut buffer);
        let try_state = attempt.try_state();
        if try_state != TryState::Pending {
            return try_state;
        }
        // A late rank may still need MPI's help to come here.
        M::progress();
        thread::yield_now();
    }
}

/// All ranks are ready, which all know: the group can be used. A leader gets its link.
pub(crate) fn settle<M: Mpi>(
    plain: &M,
    attempt: Option<&Arc<LeaderAttempt>>,
) -> Result<(Abilities, Option<Arc<Link>>), PlainFailed> {
    let taken = attempt.and_then(|attempt| attempt.take());
    let mut masks = [0; 8];
    if let Some((agreement, _)) = &taken {
        masks[..2].copy_from_slice(&agreement.operations.to_be_bytes());
        masks[2..4].copy_from_slice(&agreement.collectives.to_be_bytes());
        masks[4..].copy_from_slice(&agreement.types.to_be_bytes());
    }
    let link = taken.map(|(_, link)| Arc::new(link));
    if let (Some(attempt), Some(link)) = (attempt, &link) {
        service::add(attempt, Arc::clone(link));
    }
    plain.bcast(&mut masks, 0)?;
    let abilities = Abilities {
        operations: u16::from_be_bytes([masks[0], masks[1]]),
        collectives: u16::from_be_bytes([masks[2], masks[3]]),
        types: u32::from_be_bytes([masks[4], masks[5], masks[6], masks[7]]),
    };
    Ok((abilities, link))
}

fn open(settings: &Settings) -> io::Result<Opened> {
    let interface = interface(settings.interface.as_deref())?;
    let socket = link::open_socket()?;
    Ok(Opened {
        offer: Offer {
            ip: interface.address.octets(),
            data: socket.local_addr()?.port(),
            service: service::start()?,
            group: 0,
        },
        datagram: interface.mtu.saturating_sub(HEADERS) as usize,
        socket,
    })
}

/// The interface of this name, or the first one that is up and no loopback.
fn interface(wanted: Option<&str>) -> io::Result<Interface> {
    let suits = |one: &Interface| match wanted {
        Some(wanted) => one.name == wanted,
        None => !one.address.is_loopback(),
    };
    let found = interfaces::list()?.into_iter().find(suits);
    if let (None, Some(wanted)) = (&found, wanted) {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            log::plain(&format!(
                "RADDLE_INTERFACE={wanted}: {} has no such interface that is up and has an IPv4 address: nothing is offloaded",
                node::name()
            ));
        });
    }
    found.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// A number for a group: two groups of a job must not share one. Without entropy, the time has to do.
fn random() -> u32 {
    clock::epoch().unwrap_or_else(|_| (clock::nanoseconds() as u32).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_survives_its_bytes() {
        let offer = Offer {
            ip: [10, 1, 2, 3],
            data: 40_001,
            service: 40_002,
            group: 0xdead_beef,
        };
        assert_eq!(Offer::from_bytes(&offer.to_bytes()), offer);
        assert_eq!(offer.place(offer.data).to_string(), "10.1.2.3:40001");
    }
}
