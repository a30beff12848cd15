//! The published protocol under MPI: leaders ask, masters answer, and what leaders must agree on they do by plain MPI, as the
//! paper has it.

mod number;

use std::{
    net::{Ipv4Addr, UdpSocket},
    os::fd::{AsFd, AsRawFd, RawFd},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use raddle_host::{
    clock,
    drive::{MESSAGE, MESSAGES_AT_ONCE},
    roce::RoceSocket,
};
use raddle_offload::{
    published::{Endpoint, Leader, LeaderConfig, Refusal, Stage, Terms, Transport},
    recovery::RecoveryConfig,
    retry::TryState,
    roles::Roles,
};
use raddle_units::{Span, Time};

pub(crate) use number::Number;

use super::{link::Link, member::Member, reason::Reason};
use crate::library::Mpi;

/// A leader that waits for its master's notify waits as long as the ranks take to meet; it gives up when they have met.
const UNTIL_ALL_MEET: Span = Span::from_ms(86_400_000);

/// What a leader knows when its group is tried.
pub(crate) struct Beginning {
    pub(crate) roles: Roles,
    pub(crate) rank: u32,
    pub(crate) nodes: Vec<Ipv4Addr>,
    /// The group's number, which rank 0 has.
    pub(crate) group: u8,
    pub(crate) number: Option<Number>,
    pub(crate) roce: RoceSocket,
    /// For messages to other leaders.
    pub(crate) socket: UdpSocket,
    pub(crate) recovery: RecoveryConfig,
    pub(crate) set_up: Span,
    pub(crate) overdue: Span,
}

/// A leader's attempt to have a group.
pub(crate) struct Attempt {
    state: Mutex<Option<State>>,
}

struct State {
    leader: Leader,
    roce: RoceSocket,
    socket: UdpSocket,
    number: Option<Number>,
    recovery: RecoveryConfig,
}

impl State {
    /// Takes frames that came, does what is due and sends. Gives the time of the next call.
    fn step(&mut self, buffer: &mut [u8]) -> Option<Time> {
        self.send(buffer);
        for _ in 0..MESSAGES_AT_ONCE {
            // What cannot be received counts as lost.
            let Ok(Some(length)) = self.roce.receive(buffer) else {
                break;
            };
            self.leader.handle_frame(clock::now(), &buffer[..length]);
        }
        let now = clock::now();
        if self.leader.poll_timeout().is_some_and(|due| due <= now) {
            self.leader.handle_timeout(now);
        }
        self.send(buffer);
        self.leader.poll_timeout()
    }

    fn send(&mut self, buffer: &mut [u8]) {
        while let Some((to, length)) = self.leader.poll_transmit(buffer) {
            // What the kernel does not take is as good as lost.
            let _ = self.roce.send(to, &buffer[..length]);
        }
    }
}

impl Attempt {
    /// Begins: all leaders have opened their sockets. `None` where the layout has no room for the group.
    pub(crate) fn new(beginning: Beginning) -> Option<Self> {
        let Beginning { roles, rank, .. } = beginning;
        let asks = roles.asks(rank).is_some();
        let config = LeaderConfig {
            roles,
            rank,
            group: beginning.group,
            transport: Transport::Ud,
            nodes: beginning.nodes,
            give_up: if asks {
                UNTIL_ALL_MEET
            } else {
                beginning.set_up
            },
            overdue: beginning.overdue,
        };
        let state = State {
            leader: Leader::new(clock::now(), config).ok()?,
            roce: beginning.roce,
            socket: beginning.socket,
            number: beginning.number,
            recovery: beginning.recovery,
        };
        Some(Self {
            state: Mutex::new(Some(state)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells that a frame came; `None` once the attempt is over.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        let state = self.lock();
        state.as_ref().map(|state| state.roce.as_fd().as_raw_fd())
    }

    /// Does what can be done; gives the time of the next call, if no frame comes before.
    pub(crate) fn step(&self, buffer: &mut [u8]) -> Option<Time> {
        self.lock().as_mut()?.step(buffer)
    }

    /// Masters are ready when all have asked, others at once.
    pub(crate) fn try_state(&self) -> TryState {
        let state = self.lock();
        let Some(State { leader, .. }) = state.as_ref() else {
            return TryState::Failed(Reason::Failed as u8);
        };
        match (leader.stage(), leader.fail_cause()) {
            (Stage::Asking, _) if leader.is_master() => TryState::Pending,
            (Stage::Collected(_), cause) if cause != 0 => TryState::Failed(refused(cause) as u8),
            _ => TryState::Ready,
        }
    }

    /// The SPINE that this leader has chosen; only that of rank 0 counts.
    pub(crate) fn spine(&self) -> [u8; 4] {
        let stage = self.lock().as_ref().map(|state| state.leader.stage());
        match stage {
            Some(Stage::Collected(Some(spine))) => spine.octets(),
            _ => [0; 4],
        }
    }

    /// Masters have agreed on the SPINE, and answer those that asked; others wait for their answer.
    pub(crate) fn answer<M: Mpi>(&self, spine: [u8; 4], patience: Duration) -> Terms {
        let spine = Some(Ipv4Addr::from(spine)).filter(|spine| !spine.is_unspecified());
        let mut buffer = [0; MESSAGE];
        let begun = Instant::now();
        if let Some(state) = self.lock().as_mut() {
            state.leader.notify(spine, 0);
        }
        loop {
            self.step(&mut buffer);
            let stage = self.lock().as_ref().map(|state| state.leader.stage());
            match stage {
                Some(Stage::Set(terms)) => return terms,
                Some(_) if begun.elapsed() < patience => {}
                _ => return Terms::refused(Refusal::NoAnswer),
            }
            M::progress();
            thread::yield_now();
        }
    }

    /// All leaders have joined their terms to these, which are usable: the group goes on as a link.
    pub(crate) fn take(&self, terms: Terms) -> Option<Link> {
        let mut state = self.lock().take()?;
        state.leader.open(terms);
        let member = Member::Published(Box::new(Endpoint::new(state.leader, state.recovery)));
        Some(Link::published(
            state.socket,
            member,
            state.roce,
            state.number,
        ))
    }

    /// Ends the attempt: the switches forget the group.
    pub(crate) fn cancel(&self) {
        if let Some(mut state) = self.lock().take() {
            state.leader.kill();
            state.send(&mut [0; MESSAGE]);
        }
    }
}

/// Why there is no group with these terms, which all ranks know.
pub(crate) fn check(terms: &Terms, roles: &Roles) -> Result<(), Reason> {
    if !terms.computing {
        // Nobody has filled in what leaders then miss.
        Err(Reason::NoSwitch)
    } else if terms.fail_cause != 0 {
        Err(refused(terms.fail_cause))
    } else if terms.operations == 0 || terms.types == 0 {
        Err(Reason::Unsupported)
    } else if u32::from(terms.local) < roles.sockets() {
        Err(Reason::Tree)
    } else {
        Ok(())
    }
}

/// Ours for a `fail_cause`.
fn refused(cause: u8) -> Reason {
    match Refusal::from_code(cause) {
        Some(Refusal::NoTree | Refusal::Alone | Refusal::Uneven) => Reason::Tree,
        Some(Refusal::NoAnswer) => Reason::NoSwitch,
        Some(Refusal::NoRoom | Refusal::Taken | Refusal::Draining) | None => Reason::Refused,
    }
}
