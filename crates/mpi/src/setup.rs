//! Setting a group up: leaders open sockets, all ranks learn the leaders' addresses by plain MPI, the leaders settle the
//! rest with the switches, and all agree by plain MPI whether it worked.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use raddle_net::interfaces::{self, Interface};
use raddle_offload::{
    endpoint::Endpoint,
    member::MemberConfig,
    order::Expression,
    setup::{
        Agreement, MasterConfig, MasterSetup, MemberPlace, MemberSetup, MemberSetupConfig,
        SetupOutcome, all_terms,
    },
};
use raddle_units::{Span, Time};
use raddle_wire::{
    DataType,
    native::{self, Collective, Terms, type_bit},
};

use crate::{
    abi::{self, Plain, PlainFailed},
    clock,
    communicator::Call,
    group::Roles,
    link::{self, Link, MESSAGE},
    reason::Reason,
    service,
    settings::{self, Settings},
};

/// IPv4 and UDP headers.
const HEADERS: u32 = 28;
/// What a rank says when nothing is wrong with it; above all codes of reasons.
const FINE: i32 = 1000;

/// What the switches of a group can do; the same on all ranks.
#[derive(Debug, Clone, Copy)]
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

/// A leader's sockets, as the others know them.
#[derive(Clone, Copy)]
struct Address {
    ip: Ipv4Addr,
    /// For the switch, and queries.
    data: u16,
    /// For other members.
    service: u16,
}

impl Address {
    const SIZE: usize = 8;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let (ip, data, service) = (
            self.ip.octets(),
            self.data.to_be_bytes(),
            self.service.to_be_bytes(),
        );
        [
            ip[0], ip[1], ip[2], ip[3], data[0], data[1], service[0], service[1],
        ]
    }

    fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            ip: Ipv4Addr::new(a, b, c, d),
            data: u16::from_be_bytes([e, f]),
            service: u16::from_be_bytes([g, h]),
        }
    }
}

/// What a leader begins with.
struct Opened {
    socket: UdpSocket,
    address: Address,
    datagram: usize,
}

/// Sets a group up; all ranks call it. `operands`: what this member contributes to ordered rounds. A leader gets a link.
pub(crate) fn establish(
    plain: Plain,
    roles: &Roles,
    tree: Option<&Expression>,
    operands: usize,
) -> Result<(Abilities, Option<Arc<Link>>), Reason> {
    try_establish(plain, roles, tree, operands).unwrap_or(Err(Reason::Failed))
}

type Established = Result<(Abilities, Option<Arc<Link>>), Reason>;

fn try_establish(
    plain: Plain,
    roles: &Roles,
    tree: Option<&Expression>,
    operands: usize,
) -> Result<Established, PlainFailed> {
    let settings = settings::get();
    let leads = roles.local_rank == 0;
    let opened = if leads { open(settings).ok() } else { None };
    let mine = opened
        .as_ref()
        .map_or([0; Address::SIZE], |opened| opened.address.to_bytes());
    let size = roles.members.iter().map(Vec::len).sum();
    let all = plain.allgather(&mine, size)?;
    let addresses: Vec<_> = roles
        .members
        .iter()
        .map(|ranks| {
            let at = ranks[0] as usize;
            all.as_chunks().0.get(at).copied().map_or_else(
                || Address::from_bytes([0; Address::SIZE]),
                Address::from_bytes,
            )
        })
        .collect();
    if addresses.iter().any(|address| address.data == 0) {
        return Ok(Err(Reason::NoInterface));
    }
    let mut group = if roles.member == 0 && leads {
        random().to_be_bytes()
    } else {
        [0; 4]
    };
    plain.bcast(&mut group, 0)?;
    let group = u32::from_be_bytes(group);

    let mut machine = match (&opened, &settings.job) {
        (Some(opened), Some((job, key))) => Some(Machine::new(
            opened,
            roles,
            &addresses,
            tree,
            (*job, *key),
            group,
            settings,
        )),
        _ => None,
    };
    let status = match (&mut machine, &opened) {
        (Some(machine), Some(opened)) => machine.drive(&opened.socket),
        _ if leads => Reason::NoInterface as i32,
        _ => FINE,
    };
    let least = match (&mut machine, &opened) {
        (Some(machine), Some(opened)) => {
            machine.while_answering(&opened.socket, || plain.least(status))?
        }
        _ => plain.least(status)?,
    };
    if least != FINE {
        if let (Some(machine), Some(opened)) = (&mut machine, &opened) {
            machine.cancel(&opened.socket);
        }
        let code = usize::try_from(least).unwrap_or(0);
        return Ok(Err(Reason::ALL
            .get(code)
            .copied()
            .unwrap_or(Reason::Refused)));
    }
    let agreement = machine.as_ref().and_then(Machine::agreement);
    let mut masks = [0; 8];
    if let Some(agreement) = &agreement {
        masks[..2].copy_from_slice(&agreement.operations.to_be_bytes());
        masks[2..4].copy_from_slice(&agreement.collectives.to_be_bytes());
        masks[4..].copy_from_slice(&agreement.types.to_be_bytes());
    }
    plain.bcast(&mut masks, 0)?;
    let abilities = Abilities {
        operations: u16::from_be_bytes([masks[0], masks[1]]),
        collectives: u16::from_be_bytes([masks[2], masks[3]]),
        types: u32::from_be_bytes([masks[4], masks[5], masks[6], masks[7]]),
    };
    let (Some(agreement), Some(opened), Some((job, key))) = (agreement, opened, &settings.job)
    else {
        return Ok(Ok((abilities, None)));
    };
    let config = MemberConfig {
        job: *job,
        key: *key,
        group,
        member: u32::try_from(roles.member).map_err(|_| PlainFailed)?,
        switch: agreement.switch,
        slots: agreement.slots,
        segment_bytes: agreement.segment_bytes,
        operands: u16::try_from(operands).map_err(|_| PlainFailed)?,
        lease: agreement.lease,
        retry: clock::span(settings.retry),
        give_up: clock::span(settings.give_up),
    };
    let members = addresses
        .iter()
        .map(|address| SocketAddrV4::new(address.ip, address.service))
        .collect();
    let endpoint = Endpoint::new(clock::now(), config, members);
    let link = Arc::new(Link::new(opened.socket, endpoint));
    service::add(Arc::clone(&link));
    Ok(Ok((abilities, Some(link))))
}

/// A leader's part of set-up.
enum Machine {
    Master(Box<MasterSetup>),
    Member(Box<MemberSetup>),
}

impl Machine {
    fn new(
        opened: &Opened,
        roles: &Roles,
        addresses: &[Address],
        tree: Option<&Expression>,
        (job, key): (u32, native::JobKey),
        group: u32,
        settings: &Settings,
    ) -> Self {
        let now = clock::now();
        let count = u32::try_from(roles.members.len()).unwrap_or(u32::MAX);
        let terms = Terms {
            order: settings.order as u8,
            ..all_terms(count)
        };
        let (retry, give_up) = (Span::from_ms(20), clock::span(settings.setup));
        let place = |address: &Address| SocketAddrV4::new(address.ip, address.data);
        if roles.member == 0 {
            let members = addresses
                .iter()
                .zip(&roles.members)
                .map(|(address, ranks)| MemberPlace {
                    address: place(address),
                    ranks: ranks.clone(),
                })
                .collect();
            return Self::Master(Box::new(MasterSetup::new(
                now,
                MasterConfig {
                    job,
                    key,
                    group,
                    members,
                    terms,
                    expression: tree.cloned(),
                    results: None,
                    datagram: opened.datagram,
                    retry,
                    give_up,
                },
            )));
        }
        Self::Member(Box::new(MemberSetup::new(
            now,
            MemberSetupConfig {
                job,
                key,
                group,
                member: u32::try_from(roles.member).unwrap_or(u32::MAX),
                master: place(&addresses[0]),
                terms,
                retry,
                give_up,
            },
        )))
    }

    /// Until it is decided.
    fn drive(&mut self, socket: &UdpSocket) -> i32 {
        let mut buffer = [0; MESSAGE];
        loop {
            self.step(socket, &mut buffer);
            match self.outcome() {
                SetupOutcome::Pending => {}
                SetupOutcome::Ready(_) => return FINE,
                SetupOutcome::Failed(reason) => return translate(reason) as i32,
            }
            // A late rank may still need MPI's help to come here.
            abi::progress();
            thread::yield_now();
        }
    }

    /// Some rank cannot take part: switches that have the group already need not wait for its lease to end.
    fn cancel(&mut self, socket: &UdpSocket) {
        if let Self::Master(setup) = self {
            setup.cancel(native::Reason::Unsupported);
        }
        self.transmit(socket, &mut [0; MESSAGE]);
    }

    fn step(&mut self, socket: &UdpSocket, buffer: &mut [u8]) {
        while let Ok((length, from)) = socket.recv_from(buffer) {
            let (now, payload) = (clock::now(), &buffer[..length]);
            match (&mut *self, from) {
                (Self::Master(setup), std::net::SocketAddr::V4(from)) => {
                    setup.handle_packet(now, from, payload);
                }
                (Self::Member(setup), _) => {
                    setup.handle_packet(now, payload);
                }
                _ => {}
            }
        }
        let now = clock::now();
        if self.poll_timeout().is_some_and(|due| due <= now) {
            match self {
                Self::Master(setup) => setup.handle_timeout(now),
                Self::Member(setup) => setup.handle_timeout(now),
            }
        }
        self.transmit(socket, buffer);
    }

    fn transmit(&mut self, socket: &UdpSocket, buffer: &mut [u8]) {
        loop {
            let message = match self {
                Self::Master(setup) => setup.poll_transmit(buffer),
                Self::Member(setup) => setup.poll_transmit(buffer),
            };
            let Some((to, length)) = message else { return };
            // What cannot be sent is as good as lost, and sent again.
            let _ = socket.send_to(&buffer[..length], to);
        }
    }

    /// A Notify may have been lost: the master answers queries until all ranks have agreed. A thread does it, since a
    /// nonblocking collective of ours could get in the way of one of the program's.
    fn while_answering<T>(&mut self, socket: &UdpSocket, agree: impl FnOnce() -> T) -> T {
        if matches!(self, Self::Member(_)) {
            return agree();
        }
        let agreed = AtomicBool::new(false);
        thread::scope(|scope| {
            let agreed = &agreed;
            let answer = move || {
                let mut buffer = [0; MESSAGE];
                while !agreed.load(Ordering::Relaxed) {
                    self.step(socket, &mut buffer);
                    thread::sleep(Duration::from_micros(500));
                }
            };
            // Without a thread, a member whose Notify is lost gives up, and all stay plain.
            let _ = service::without_signals(|| thread::Builder::new().spawn_scoped(scope, answer));
            let result = agree();
            agreed.store(true, Ordering::Relaxed);
            result
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Master(setup) => setup.poll_timeout(),
            Self::Member(setup) => setup.poll_timeout(),
        }
    }

    const fn outcome(&self) -> SetupOutcome {
        match self {
            Self::Master(setup) => setup.outcome(),
            Self::Member(setup) => setup.outcome(),
        }
    }

    fn agreement(&self) -> Option<Agreement> {
        match self.outcome() {
            SetupOutcome::Ready(agreement) => Some(agreement),
            _ => None,
        }
    }
}

/// Ours for a reason of the protocol.
const fn translate(reason: native::Reason) -> Reason {
    match reason {
        native::Reason::NoSwitch | native::Reason::NoTree | native::Reason::NoAnswer => {
            Reason::NoSwitch
        }
        _ => Reason::Refused,
    }
}

fn open(settings: &Settings) -> io::Result<Opened> {
    let interface = interface(settings.interface.as_deref())?;
    let socket = link::open_socket()?;
    Ok(Opened {
        address: Address {
            ip: interface.address,
            data: socket.local_addr()?.port(),
            service: service::start()?,
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
    found.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// A number for a group: two groups of a job must not share one.
fn random() -> u32 {
    let mut bytes = [0_u8; 4];
    // SAFETY: the buffer is as long as said. Without entropy, the time has to do.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 4 {
        u32::from_ne_bytes(bytes).max(1)
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits differ most")]
        let now = clock::now().0 as u32;
        now.max(1)
    }
}
