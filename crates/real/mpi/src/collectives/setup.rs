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
    roce::RoceSocket,
};
use raddle_offload::{
    order::Expression,
    published::{Terms as Joined, additions, queue_pair},
    recovery::RecoveryConfig,
    retry::TryState,
    setup::{Attempt, AttemptConfig, MemberPlace, all_terms},
};
use raddle_units::Span;
use raddle_wire::{
    DataType, Operation,
    native::{Collective, JobKey, Terms, type_bit},
};

use super::{
    attempt::{LeaderAttempt, NativeAttempt},
    call::Call,
    link::{self, Link},
    published::{self, Number},
    reason::Reason,
    roles::Roles,
    service,
};
use crate::{
    library::{Mpi, PlainFailed},
    log, node,
    settings::{Protocol, Settings},
};

/// IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// Whether switches make the additions of a lane's tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Additions {
    #[default]
    Same,
    /// But for left and right.
    UpToSides,
    Others,
}

/// What the switches of a group can do; the same on all ranks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Abilities {
    operations: u16,
    collectives: u16,
    types: u32,
    additions: Additions,
}

impl Abilities {
    /// Why they cannot do a call, whose additions must be those of the lane's tree if it is `ordered`.
    pub(crate) fn check(self, call: &Call, ordered: bool) -> Result<(), Reason> {
        let commutes = matches!(call.operation, Some(Operation::Sum | Operation::Prod));
        if !self.supports(call) {
            return Err(Reason::Unsupported);
        }
        match self.additions {
            Additions::Same => Ok(()),
            Additions::UpToSides if commutes || !ordered => Ok(()),
            Additions::Others if !ordered => Ok(()),
            Additions::UpToSides | Additions::Others => Err(Reason::Order),
        }
    }

    /// By the published protocol, with these terms.
    fn of_terms(terms: &Joined, tree: Option<&Expression>, roles: &Roles) -> Self {
        let operations = Operation::ALL
            .iter()
            .filter(|operation| terms.operations & operation.bit() != 0);
        let types = DataType::ALL
            .iter()
            .filter(|data_type| data_type.is_compat() && terms.types >> data_type.code() & 1 != 0);
        let leaders = u32::try_from(roles.members.len()).unwrap_or(0);
        let ranks = u32::try_from(roles.local_size()).unwrap_or(0);
        let made = additions(ranks, terms.local.into(), leaders);
        let additions = match (tree, &made) {
            (None, _) => Additions::Same,
            (Some(tree), Some(made)) if tree.combines_as(made, true) => Additions::Same,
            (Some(tree), Some(made)) if tree.combines_as(made, false) => Additions::UpToSides,
            (Some(_), _) => Additions::Others,
        };
        Self {
            operations: operations.fold(0, |mask, operation| mask | operation.bit()),
            collectives: Collective::Allreduce.bit(),
            types: types.fold(0, |mask, data_type| mask | type_bit(*data_type)),
            additions,
        }
    }

    fn supports(self, call: &Call) -> bool {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offer {
    ip: [u8; 4],
    /// For the switch, and queries.
    data: u16,
    /// For other members.
    service: u16,
    group: u32,
    /// Why the leader cannot begin; [`Reason::Eligible`]: it can.
    problem: u8,
    /// The group's number in the published protocol.
    number: u8,
}

impl Offer {
    const SIZE: usize = 14;
    const NONE: Self = Self {
        ip: [0; 4],
        data: 0,
        service: 0,
        group: 0,
        problem: Reason::Eligible as u8,
        number: 0,
    };

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.ip);
        bytes[4..6].copy_from_slice(&self.data.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.service.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.group.to_be_bytes());
        bytes[12..].copy_from_slice(&[self.problem, self.number]);
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, problem, number] = *bytes;
        Self {
            ip: [a, b, c, d],
            data: u16::from_be_bytes([e, f]),
            service: u16::from_be_bytes([g, h]),
            group: u32::from_be_bytes([i, j, k, l]),
            problem,
            number,
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
    /// Of the published protocol.
    roce: Option<RoceSocket>,
    number: Option<Number>,
}

/// Begins to set a group up; all ranks call it. A leader gets its attempt, which goes on by itself.
pub(crate) fn begin<M: Mpi>(
    plain: &M,
    settings: &Settings,
    rank: u32,
    roles: &Roles,
    tree: Option<&Expression>,
) -> Result<Result<Option<Arc<LeaderAttempt>>, Reason>, PlainFailed> {
    let opened = roles.leads().then(|| open(settings, rank));
    let mine = match &opened {
        None => Offer::NONE,
        Some(Ok(opened)) => opened.offer,
        Some(Err(reason)) => Offer {
            problem: *reason as u8,
            ..Offer::NONE
        },
    };
    let size = roles.members.iter().map(Vec::len).sum();
    let all = plain.allgather(&mine.to_bytes(), size)?;
    let offers: Vec<_> = all.as_chunks().0.iter().map(Offer::from_bytes).collect();
    let leaders = roles.members.iter().map(|ranks| ranks[0] as usize);
    let offers: Option<Vec<Offer>> = leaders.map(|rank| offers.get(rank).copied()).collect();
    let offers = offers.ok_or(PlainFailed)?;
    let mut problems = offers.iter().map(|offer| offer.problem);
    if let Some(problem) = problems.find(|problem| *problem != Reason::Eligible as u8) {
        return Ok(Err(Reason::from_number(problem.into())));
    }
    let (Some(Ok(opened)), Some(job)) = (opened, &settings.job) else {
        return Ok(Ok(None));
    };
    let attempt = match settings.protocol {
        Protocol::Native => native(settings, job, roles, &offers, tree, opened)?,
        Protocol::Published => published(settings, job, rank, roles, &offers, opened)?,
    };
    let attempt = Arc::new(attempt);
    service::begin(Arc::clone(&attempt));
    Ok(Ok(Some(attempt)))
}

fn native(
    settings: &Settings,
    (job, key): &(u32, JobKey),
    roles: &Roles,
    offers: &[Offer],
    tree: Option<&Expression>,
    opened: Opened,
) -> Result<LeaderAttempt, PlainFailed> {
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
    let attempt = NativeAttempt::new(opened.socket, attempt);
    Ok(LeaderAttempt::Native(Box::new(attempt)))
}

fn published(
    settings: &Settings,
    (job, key): &(u32, JobKey),
    rank: u32,
    roles: &Roles,
    offers: &[Offer],
    opened: Opened,
) -> Result<LeaderAttempt, PlainFailed> {
    let (Some(places), Some(roce)) = (roles.published, opened.roce) else {
        return Err(PlainFailed);
    };
    let nodes = offers.chunks(places.sockets() as usize);
    let beginning = published::Beginning {
        roles: places,
        rank,
        nodes: nodes.map(|node| Ipv4Addr::from(node[0].ip)).collect(),
        group: offers[0].number,
        number: opened.number,
        roce,
        socket: opened.socket,
        recovery: RecoveryConfig {
            job: *job,
            key: *key,
            group: offers[0].group,
            member: u32::try_from(roles.member).map_err(|_| PlainFailed)?,
            members: offers.iter().map(|o| o.place(o.service)).collect(),
            retry: clock::span(settings.retry),
            give_up: clock::span(settings.give_up),
        },
        set_up: clock::span(settings.setup),
        overdue: clock::span(settings.overdue),
    };
    let attempt = published::Attempt::new(beginning).ok_or(PlainFailed)?;
    Ok(LeaderAttempt::Published(Box::new(attempt)))
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

/// What the group can do, and at a leader its link.
pub(crate) type Settled = (Abilities, Option<Arc<Link>>);

/// All ranks are ready, which all know, and all call it: the group can be used, or all learn why not.
pub(crate) fn settle<M: Mpi>(
    plain: &M,
    settings: &Settings,
    roles: &Roles,
    tree: Option<&Expression>,
    attempt: Option<&Arc<LeaderAttempt>>,
) -> Result<Result<Settled, Reason>, PlainFailed> {
    let (abilities, link) = match settings.protocol {
        Protocol::Native => settle_native(plain, attempt)?,
        Protocol::Published => match settle_published(plain, settings, roles, tree, attempt)? {
            Ok(settled) => settled,
            Err(reason) => return Ok(Err(reason)),
        },
    };
    let link = link.map(Arc::new);
    if let (Some(attempt), Some(link)) = (attempt, &link) {
        service::add(attempt, Arc::clone(link));
    }
    Ok(Ok((abilities, link)))
}

fn settle_native<M: Mpi>(
    plain: &M,
    attempt: Option<&Arc<LeaderAttempt>>,
) -> Result<(Abilities, Option<Link>), PlainFailed> {
    let taken = match attempt.map(|attempt| &**attempt) {
        Some(LeaderAttempt::Native(attempt)) => attempt.take(),
        _ => None,
    };
    let mut masks = [0; 8];
    if let Some((agreement, _)) = &taken {
        masks[..2].copy_from_slice(&agreement.operations.to_be_bytes());
        masks[2..4].copy_from_slice(&agreement.collectives.to_be_bytes());
        masks[4..].copy_from_slice(&agreement.types.to_be_bytes());
    }
    plain.bcast(&mut masks, 0)?;
    let abilities = Abilities {
        operations: u16::from_be_bytes([masks[0], masks[1]]),
        collectives: u16::from_be_bytes([masks[2], masks[3]]),
        types: u32::from_be_bytes([masks[4], masks[5], masks[6], masks[7]]),
        additions: Additions::Same,
    };
    Ok((abilities, taken.map(|(_, link)| link)))
}

/// Masters agree on the SPINE and answer; all leaders join their terms.
fn settle_published<M: Mpi>(
    plain: &M,
    settings: &Settings,
    roles: &Roles,
    tree: Option<&Expression>,
    attempt: Option<&Arc<LeaderAttempt>>,
) -> Result<Result<(Abilities, Option<Link>), Reason>, PlainFailed> {
    let attempt = match attempt.map(|attempt| &**attempt) {
        Some(LeaderAttempt::Published(attempt)) => Some(&**attempt),
        _ => None,
    };
    let mut spine = attempt.map_or([0; 4], published::Attempt::spine);
    plain.bcast(&mut spine, 0)?;
    let mine = match attempt {
        Some(attempt) => attempt.answer::<M>(spine, settings.setup).to_bytes(),
        None => [0; Joined::SIZE],
    };
    let size = roles.members.iter().map(Vec::len).sum();
    let all = plain.allgather(&mine, size)?;
    let (all, _) = all.as_chunks();
    let leaders = roles.members.iter().map(|ranks| ranks[0] as usize);
    let terms = leaders.filter_map(|rank| all.get(rank).copied());
    let terms = terms
        .map(Joined::from_bytes)
        .reduce(Joined::join)
        .ok_or(PlainFailed)?;
    let places = roles.published.as_ref().ok_or(PlainFailed)?;
    if let Err(reason) = published::check(&terms, places) {
        return Ok(Err(reason));
    }
    let link = attempt.and_then(|attempt| attempt.take(terms));
    Ok(Ok((Abilities::of_terms(&terms, tree, roles), link)))
}

fn open(settings: &Settings, rank: u32) -> Result<Opened, Reason> {
    let missing = |_: io::Error| Reason::NoInterface;
    let interface = interface(settings.interface.as_deref()).map_err(missing)?;
    let socket = link::open_socket().map_err(missing)?;
    let (mut roce, mut number) = (None, None);
    if settings.protocol == Protocol::Published {
        let opened = RoceSocket::open(interface.address, queue_pair(rank));
        roce = Some(opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Reason::NoRawSocket,
            _ => Reason::NoInterface,
        })?);
        if rank == 0 {
            number = Some(Number::take().ok_or(Reason::Refused)?);
        }
    }
    let offer = Offer {
        ip: interface.address.octets(),
        data: socket.local_addr().map_err(missing)?.port(),
        service: service::start().map_err(missing)?,
        group: if rank == 0 { random() } else { 0 },
        problem: Reason::Eligible as u8,
        number: number.as_ref().map_or(0, Number::value),
    };
    Ok(Opened {
        offer,
        datagram: interface.mtu.saturating_sub(HEADERS) as usize,
        socket,
        roce,
        number,
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
            problem: 3,
            number: 254,
        };
        assert_eq!(Offer::from_bytes(&offer.to_bytes()), offer);
        assert_eq!(offer.place(offer.data).to_string(), "10.1.2.3:40001");
    }
}
