//! What the shims' layer of message scheduling calls, as `shim/border.h` declares it. Once messages are under way there is
//! no way back to plain MPI, so a panic ends the program.

use std::{
    ffi::{c_int, c_void},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    process, slice,
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
};

use raddle_matching::{
    Claim, Counts, Envelope, Mode, Outgoing, Posted, Sent, Ticket, Vote, Wanted, Way,
};

use super::{Messages, exclusive::Apart};
use crate::{
    clock,
    collectives::agreement as places,
    ffi as abi, log,
    rails::{Rails, Secret},
    settings::{self, RailNames, Schedule},
};

/// A message that the program sends.
#[repr(C)]
pub(crate) struct RaddleOutgoing {
    bytes: u64,
    to: u32,
    context: u32,
    tag: i32,
    synchronous: u8,
}

impl RaddleOutgoing {
    const fn outgoing(&self) -> Outgoing {
        Outgoing {
            to: self.to,
            context: self.context,
            tag: self.tag,
            bytes: self.bytes,
            mode: if self.synchronous != 0 {
                Mode::Synchronous
            } else {
                Mode::Standard
            },
        }
    }
}

/// A message that came.
#[repr(C)]
pub(crate) struct RaddleEnvelope {
    bytes: u64,
    context: u32,
    source: u32,
    tag: i32,
}

impl From<Envelope> for RaddleEnvelope {
    fn from(message: Envelope) -> Self {
        Self {
            bytes: message.bytes,
            context: message.context,
            source: message.source,
            tag: message.tag,
        }
    }
}

/// What a receive or probe asks for.
#[repr(C)]
pub(crate) struct RaddleWanted {
    context: u32,
    source: u32,
    tag: i32,
    any_source: u8,
    any_tag: u8,
}

impl RaddleWanted {
    fn wanted(&self) -> Wanted {
        Wanted {
            context: self.context,
            source: (self.any_source == 0).then_some(self.source),
            tag: (self.any_tag == 0).then_some(self.tag),
        }
    }
}

const COPIED: c_int = 1;
const BY_REFERENCE: c_int = 2;
const WITHOUT_ROOM: c_int = 4;
const SCARCE: c_int = 8;

type Fill = unsafe extern "C" fn(*const c_void, *mut c_void);

#[repr(C)]
pub(crate) struct RaddleMessages {
    ability: unsafe extern "C" fn(c_int) -> u64,
    node: unsafe extern "C" fn() -> u64,
    stay_plain: unsafe extern "C" fn(c_int),
    open: unsafe extern "C" fn(c_int, c_int, *const u64) -> c_int,
    longest: unsafe extern "C" fn() -> usize,
    send: unsafe extern "C" fn(*const RaddleOutgoing, Fill, *const c_void, *mut u32) -> c_int,
    receive: unsafe extern "C" fn(*const RaddleWanted, u64, u64, *mut u64) -> c_int,
    probe: unsafe extern "C" fn(*const RaddleWanted, *mut RaddleEnvelope, *mut u64) -> c_int,
    receive_claimed: unsafe extern "C" fn(u64, u64, u64),
    cancel: unsafe extern "C" fn(u64) -> c_int,
    flush: unsafe extern "C" fn(),
    parcel: unsafe extern "C" fn(c_int, *const c_void, usize) -> c_int,
    sent: unsafe extern "C" fn(u32),
    begin_trial: unsafe extern "C" fn(u32),
    collective: unsafe extern "C" fn(u32) -> c_int,
    vote: unsafe extern "C" fn(u32, *const RaddleCounts, *mut [i64; VOTE]),
    decide: unsafe extern "C" fn(u32, *const [i64; VOTE]) -> c_int,
    secret: unsafe extern "C" fn(*mut [u8; Secret::SIZE]) -> c_int,
    begin_rails: unsafe extern "C" fn(*const [u8; Secret::SIZE]),
    offer: unsafe extern "C" fn(*const RaddleOutgoing, *const c_void, u64) -> c_int,
    offered_came: unsafe extern "C" fn(u32, u32),
    step_rails: unsafe extern "C" fn() -> c_int,
    open_offers: unsafe extern "C" fn() -> usize,
    close_rails: unsafe extern "C" fn(),
    looked: unsafe extern "C" fn(u64),
}

/// enum raddle_opened.
const FORCED: c_int = 1;
const HANDS_ON: c_int = 2;

/// Words of a vote.
const VOTE: usize = 6;
const PLAIN_NOW: c_int = 1;
const SETTLED: c_int = 2;

/// Messages that took the plain way.
#[repr(C)]
pub(crate) struct RaddleCounts {
    sent: u64,
    received: u64,
    waiting: u64,
    parcels: u64,
}

/// What a shim does for the matcher.
#[repr(C)]
pub(crate) struct RaddleChannel {
    pub(super) send: unsafe extern "C" fn(u32, *const c_void, usize, u32),
    pub(super) deliver: unsafe extern "C" fn(u64, *const RaddleEnvelope, *const c_void, usize),
    pub(super) fetch: unsafe extern "C" fn(u64, *const RaddleEnvelope, u32),
    pub(super) fetch_aside: unsafe extern "C" fn(u64, *const RaddleEnvelope, u64),
    pub(super) set_aside: unsafe extern "C" fn(u64, *const RaddleEnvelope, u32),
    pub(crate) land: unsafe extern "C" fn(u64, *const RaddleEnvelope) -> *mut c_void,
    pub(crate) landed: unsafe extern "C" fn(u64),
    pub(crate) fetch_offered: unsafe extern "C" fn(u64, *const RaddleEnvelope, u32),
    pub(crate) send_offered: unsafe extern "C" fn(u64, u32),
    pub(crate) offer_sent: unsafe extern "C" fn(u64),
}

/// The layer as shims see it.
pub(crate) static MESSAGES: RaddleMessages = RaddleMessages {
    ability,
    node,
    stay_plain,
    open,
    longest,
    send,
    receive,
    probe,
    receive_claimed,
    cancel,
    flush,
    parcel,
    sent,
    begin_trial,
    collective,
    vote,
    decide,
    secret,
    begin_rails,
    offer,
    offered_came,
    step_rails,
    open_offers,
    close_rails,
    looked,
};

/// Used by calls of shims, which do not overlap (`struct raddle_messages`), and inside MPI_Finalize.
static CURRENT: Apart<Option<Messages>> = Apart::new(None);
/// Largest tag of the library.
static KEYS: AtomicU32 = AtomicU32::new(0);
/// Negative: nothing was said.
static WHY: AtomicI32 = AtomicI32::new(-1);

/// What was done, or the number of the reason why nothing was.
pub(super) fn outcome<T>(read: impl FnOnce(&Messages) -> T) -> Result<T, Option<usize>> {
    let why = || usize::try_from(WHY.load(Ordering::Relaxed)).ok();
    // SAFETY: MPI_Finalize is a call of MPI: there is no other.
    let read = unsafe { CURRENT.with(|current| current.as_ref().map(read)) };
    read.flatten().ok_or_else(why)
}

/// Runs what a shim asks for. `None`: the arguments were refused, which the shim has checked before.
fn with<T>(body: impl FnOnce(&mut Messages) -> Option<T>) -> T {
    let unless_done = Abort;
    // SAFETY: shims make one call at a time.
    let done = unsafe { CURRENT.with(|current| body(current.as_mut()?)) };
    let value = done.flatten().unwrap_or_else(|| fail());
    mem::forget(unless_done);
    value
}

/// There is no way back in the middle of a message.
#[cold]
fn fail() -> ! {
    log::plain("an error of Raddle in the middle of a message; please report it");
    process::abort()
}

/// What is dropped by a panic only, for which no call pays otherwise.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        fail()
    }
}

unsafe extern "C" fn ability(keys: c_int) -> u64 {
    abi::caught(0, || {
        let settings = settings::get();
        KEYS.store(u32::try_from(keys).unwrap_or(0), Ordering::Relaxed);
        if !settings.takes_messages() {
            return 0;
        }
        let version = env!("CARGO_PKG_VERSION").bytes();
        let ours = [settings.schedule as u8, settings.schedule_scope as u8];
        let rails = settings.rails.to_string();
        let ours = version.chain(ours).chain(rails.bytes());
        settings::fold(ours.chain(keys.to_be_bytes())).max(1)
    })
}

unsafe extern "C" fn node() -> u64 {
    abi::caught(0, || places::node(settings::get()))
}

unsafe extern "C" fn stay_plain(why: c_int) {
    WHY.store(why, Ordering::Relaxed);
}

unsafe extern "C" fn open(rank: c_int, size: c_int, nodes: *const u64) -> c_int {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let (rank, size) = (u32::try_from(rank).ok()?, usize::try_from(size).ok()?);
        // SAFETY: the shim passes the node of each of `size` ranks.
        let nodes = unsafe { slice::from_raw_parts(nodes, size) };
        let channel = abi::channel()?;
        let keys = KEYS.load(Ordering::Relaxed);
        let messages = Messages::new(rank, nodes, keys, channel).ok()?;
        let hands_on = messages.matcher.hands_on();
        // SAFETY: shims make one call at a time.
        unsafe { CURRENT.with(|current| *current = Some(messages)) }?;
        Some(hands_on)
    }));
    let Ok(Some(hands_on)) = opened else {
        // The other ranks take part by now.
        log::plain("an error of Raddle in MPI_Init; please report it");
        process::abort()
    };
    let forced = settings::get().schedule == Schedule::Force;
    (c_int::from(forced) * FORCED) | (c_int::from(hands_on) * HANDS_ON)
}

unsafe extern "C" fn longest() -> usize {
    with(|messages| Some(messages.matcher.longest_parcel()))
}

unsafe extern "C" fn send(
    message: *const RaddleOutgoing,
    fill: Fill,
    from: *const c_void,
    key: *mut u32,
) -> c_int {
    with(|Messages { matcher, wire, .. }| {
        // SAFETY: the shim passes a record of its own.
        let message = unsafe { &*message };
        let outgoing = message.outgoing();
        // SAFETY: `fill` writes as many bytes as the message has, which is what the room is for.
        let fill = |room: &mut [u8]| unsafe { fill(from, room.as_mut_ptr().cast()) };
        let way = match matcher.send(&outgoing, fill, wire).ok()? {
            Sent::Copied => COPIED,
            Sent::ByReference {
                key: named,
                synchronous,
            } => {
                // SAFETY: the shim passes room for one number.
                unsafe { *key = named };
                BY_REFERENCE | if synchronous { WITHOUT_ROOM } else { 0 }
            }
        };
        let scarce = matcher.room(outgoing.to) < matcher.window() / 2;
        Some(way | if scarce { SCARCE } else { 0 })
    })
}

unsafe extern "C" fn receive(
    wanted: *const RaddleWanted,
    capacity: u64,
    receive: u64,
    ticket: *mut u64,
) -> c_int {
    with(|messages| {
        // SAFETY: the shim passes a record of its own.
        let wanted = unsafe { &*wanted }.wanted();
        match messages
            .matcher
            .receive(&wanted, capacity, receive, &mut messages.wire)
            .ok()?
        {
            Posted::Matched => {
                messages.turn_rails().ok()?;
                Some(0)
            }
            Posted::Waiting(waiting) => {
                // SAFETY: the shim passes room for one number.
                unsafe { *ticket = waiting.to_bits() };
                Some(1)
            }
        }
    })
}

unsafe extern "C" fn probe(
    wanted: *const RaddleWanted,
    found: *mut RaddleEnvelope,
    claim: *mut u64,
) -> c_int {
    with(|Messages { matcher, .. }| {
        // SAFETY: the shim passes records of its own, and `claim` may be null.
        let (wanted, found, claim) = unsafe { ((*wanted).wanted(), &mut *found, claim.as_mut()) };
        let message = match claim {
            None => matcher.probe(&wanted).ok()?,
            Some(claim) => matcher.claim(&wanted).ok()?.map(|(claimed, message)| {
                *claim = claimed.to_bits();
                message
            }),
        };
        let there = message.map(|message| *found = message.into());
        Some(c_int::from(there.is_some()))
    })
}

unsafe extern "C" fn receive_claimed(claim: u64, capacity: u64, receive: u64) {
    with(|messages| {
        let (claim, wire) = (Claim::from_bits(claim), &mut messages.wire);
        let taken = messages
            .matcher
            .receive_claimed(claim, capacity, receive, wire);
        taken.ok()?;
        messages.turn_rails().ok()
    });
}

unsafe extern "C" fn cancel(ticket: u64) -> c_int {
    with(|messages| {
        let taken = messages.matcher.cancel(Ticket::from_bits(ticket));
        Some(c_int::from(taken))
    })
}

unsafe extern "C" fn flush() {
    with(|Messages { matcher, wire, .. }| {
        matcher.flush(wire);
        Some(())
    });
}

unsafe extern "C" fn parcel(from: c_int, bytes: *const c_void, length: usize) -> c_int {
    with(|messages| {
        // SAFETY: the shim passes what it received, and its length.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast(), length) };
        let rank = u32::try_from(from).ok()?;
        let taken = messages
            .matcher
            .handle_parcel(rank, bytes, &mut messages.wire);
        let done = taken.map_err(|refused| refused.to_string());
        let done = done.and_then(|()| messages.turn_rails().map_err(|bad| bad.to_string()));
        Some(match done {
            Ok(()) => 1,
            Err(why) => {
                log::plain(&format!("a parcel from rank {from}: {why}"));
                0
            }
        })
    })
}

unsafe extern "C" fn sent(slot: u32) {
    with(|messages| {
        messages.sent(slot);
        Some(())
    });
}

unsafe extern "C" fn begin_trial(context: u32) {
    with(|messages| {
        messages.begin_trial(context, clock::now());
        Some(())
    });
}

unsafe extern "C" fn collective(context: u32) -> c_int {
    with(|messages| {
        let on_trial = messages.trials.get_mut(context as usize)?.as_mut()?;
        Some(c_int::from(on_trial.trial.collective()))
    })
}

unsafe extern "C" fn vote(context: u32, plain: *const RaddleCounts, words: *mut [i64; VOTE]) {
    with(|messages| {
        // SAFETY: the shim passes a record of its own, and room for the words.
        let (plain, words) = unsafe { (&*plain, &mut *words) };
        let counts = Counts {
            sent: plain.sent,
            received: plain.received,
            waiting: plain.waiting,
        };
        let vote = messages.vote(context, &counts, plain.parcels, clock::now())?;
        *words = vote.words();
        Some(())
    });
}

unsafe extern "C" fn decide(context: u32, words: *const [i64; VOTE]) -> c_int {
    with(|messages| {
        let trial = &mut messages.trials.get_mut(context as usize)?.as_mut()?.trial;
        // SAFETY: the shim passes the words.
        let way = trial.decide(&Vote::from_words(unsafe { *words }));
        let plain = if way == Way::Plain { PLAIN_NOW } else { 0 };
        Some(plain | if trial.is_settled() { SETTLED } else { 0 })
    })
}

/// Random bytes for the job's rails, of which those of rank 0 hold. 0: there are none, and none are needed.
unsafe extern "C" fn secret(room: *mut [u8; Secret::SIZE]) -> c_int {
    abi::caught(0, || {
        let mut bytes = [0; Secret::SIZE];
        if settings::get().rails == RailNames::Off {
            return 0;
        }
        if getrandom::fill(&mut bytes).is_err() {
            log::plain("the system has no randomness: everybody knows the key of the rails");
        }
        // SAFETY: the shim passes room for them.
        unsafe { *room = bytes };
        1
    })
}

unsafe extern "C" fn begin_rails(secret: *const [u8; Secret::SIZE]) {
    with(|messages| {
        // SAFETY: the shim passes the bytes.
        messages.begin_rails(Secret::from_bytes(unsafe { &*secret }));
        Some(())
    });
}

/// 0: it is to be sent in another way.
unsafe extern "C" fn offer(
    message: *const RaddleOutgoing,
    start: *const c_void,
    name: u64,
) -> c_int {
    with(
        |Messages {
             matcher,
             wire,
             rails,
             ..
         }| {
            // SAFETY: the shim passes a record of its own.
            let message = unsafe { &*message };
            let Some(rails) = rails.as_mut().filter(|_| !start.is_null()) else {
                return Some(0);
            };
            if !rails.wants(message.to, message.bytes) {
                return Some(0);
            }
            let Some(key) = matcher.offer(&message.outgoing(), wire).ok()? else {
                return Some(0);
            };
            rails.offer(message.to, key, start as usize, message.bytes, name);
            Some(1)
        },
    )
}

unsafe extern "C" fn offered_came(source: u32, key: u32) {
    with(|messages| {
        if let Some(rails) = &mut messages.rails {
            rails.came(source, key);
        }
        Some(())
    });
}

unsafe extern "C" fn step_rails() -> c_int {
    with(
        |Messages {
             matcher,
             wire,
             rails,
             ..
         }| {
            let found = rails.as_mut().map_or(0, |rails| rails.step(matcher, wire));
            Some(found as c_int)
        },
    )
}

unsafe extern "C" fn open_offers() -> usize {
    with(|messages| Some(messages.rails.as_ref().map_or(0, Rails::open_offers)))
}

unsafe extern "C" fn close_rails() {
    with(|messages| {
        if let Some(rails) = &mut messages.rails {
            rails.close();
        }
        Some(())
    });
}

unsafe extern "C" fn looked(looks: u64) {
    with(|messages| {
        messages.looks = looks;
        Some(())
    });
}
