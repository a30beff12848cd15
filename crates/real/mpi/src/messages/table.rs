//! What a shim calls of this part: `struct raddle_messages` of `shim/border.h`. Once messages are under way there is no way
//! back to plain MPI, so a panic ends the program.

use std::{
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    process, slice,
};

use raddle_host::clock;
use raddle_matching::{Claim, Counts, Mode, Outgoing, Posted, Sent, Ticket, Vote, Wanted, Way};

use super::{
    process::Messages,
    state::{self, with},
};
use crate::{
    channel::Wire,
    ffi::{
        self, RaddleCounts, RaddleEnvelope, RaddleMessages, RaddleOutgoing, RaddleWanted,
        guard::caught,
    },
    log, node,
    rails::{Rails, Secret},
    settings::{self, RailNames, Schedule},
};

type Fill = unsafe extern "C" fn(*const c_void, *mut c_void);

const VOTE: usize = ffi::RADDLE_VOTE as usize;
const SECRET: usize = ffi::RADDLE_SECRET as usize;
const _: () = assert!(
    SECRET == Secret::SIZE,
    "both sides have a secret of one size"
);

fn outgoing(message: &RaddleOutgoing) -> Outgoing {
    Outgoing {
        to: message.to,
        context: message.context,
        tag: message.tag,
        bytes: message.bytes,
        mode: if message.synchronous != 0 {
            Mode::Synchronous
        } else {
            Mode::Standard
        },
    }
}

fn wanted_of(wanted: &RaddleWanted) -> Wanted {
    Wanted {
        context: wanted.context,
        source: (wanted.any_source == 0).then_some(wanted.source),
        tag: (wanted.any_tag == 0).then_some(wanted.tag),
    }
}

/// `flag` where it holds.
fn flag(holds: bool, flag: u32) -> c_int {
    if holds { flag.cast_signed() } else { 0 }
}

/// The layer as shims see it.
pub(crate) static MESSAGES: RaddleMessages = RaddleMessages {
    ability,
    node: node_id,
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

unsafe extern "C" fn ability(keys: c_int) -> u64 {
    caught(0, || {
        let settings = settings::get();
        state::set_keys(u32::try_from(keys).unwrap_or(0));
        if !settings.takes_messages() {
            return 0;
        }
        let version = env!("CARGO_PKG_VERSION").bytes();
        let ours = [settings.schedule as u8, settings.schedule_scope as u8];
        let leaders = settings.schedule_leaders.to_be_bytes();
        let rails = settings.rails.to_string();
        let ours = version.chain(ours).chain(leaders).chain(rails.bytes());
        settings::fold(ours.chain(keys.to_be_bytes())).max(1)
    })
}

unsafe extern "C" fn node_id() -> u64 {
    caught(0, || node::id(settings::get()))
}

unsafe extern "C" fn stay_plain(why: c_int) {
    state::stay_plain(why);
}

unsafe extern "C" fn open(rank: c_int, size: c_int, nodes: *const u64) -> c_int {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let (rank, size) = (u32::try_from(rank).ok()?, usize::try_from(size).ok()?);
        // SAFETY: the shim passes the node of each of `size` ranks.
        let nodes = unsafe { slice::from_raw_parts(nodes, size) };
        let messages = Messages::new(rank, nodes, state::keys(), Wire::new()?).ok()?;
        let hands_on = messages.matcher.hands_on();
        state::open(messages)?;
        Some(hands_on)
    }));
    let Ok(Some(hands_on)) = opened else {
        // The other ranks take part by now.
        log::plain("an error of Raddle in MPI_Init; please report it");
        process::abort()
    };
    let forced = matches!(
        settings::get().schedule,
        Schedule::Force | Schedule::Published
    );
    flag(forced, ffi::RADDLE_FORCED) | flag(hands_on, ffi::RADDLE_HANDS_ON)
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
        let message = outgoing(message);
        // SAFETY: `fill` writes as many bytes as the message has, which is what the room is for.
        let fill = |room: &mut [u8]| unsafe { fill(from, room.as_mut_ptr().cast()) };
        let sent = matcher.send(&message, fill).ok()?;
        wire.drain(matcher, &[]);
        let way = match sent {
            Sent::Copied => flag(true, ffi::RADDLE_COPIED),
            Sent::ByReference {
                key: named,
                synchronous,
            } => {
                // SAFETY: the shim passes room for one number.
                unsafe { *key = named };
                flag(true, ffi::RADDLE_BY_REFERENCE) | flag(synchronous, ffi::RADDLE_WITHOUT_ROOM)
            }
        };
        let scarce = matcher.room(message.to) < matcher.window() / 2;
        Some(way | flag(scarce, ffi::RADDLE_SCARCE))
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
        let wanted = wanted_of(unsafe { &*wanted });
        let Messages { matcher, wire, .. } = messages;
        let posted = matcher.receive(&wanted, capacity, receive).ok()?;
        wire.drain(matcher, &[]);
        match posted {
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
        let (wanted, found, claim) = unsafe { (wanted_of(&*wanted), &mut *found, claim.as_mut()) };
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
        let Messages { matcher, wire, .. } = messages;
        let claim = Claim::from_bits(claim);
        matcher.receive_claimed(claim, capacity, receive).ok()?;
        wire.drain(matcher, &[]);
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
        matcher.flush();
        wire.drain(matcher, &[]);
        Some(())
    });
}

unsafe extern "C" fn parcel(from: c_int, bytes: *const c_void, length: usize) -> c_int {
    with(|messages| {
        // SAFETY: the shim passes what it received, and its length.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast(), length) };
        let rank = u32::try_from(from).ok()?;
        let Messages { matcher, wire, .. } = messages;
        let taken = matcher.handle_parcel(rank, bytes);
        wire.drain(matcher, bytes);
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
        let plain = flag(way == Way::Plain, ffi::RADDLE_PLAIN_NOW);
        Some(plain | flag(trial.is_settled(), ffi::RADDLE_SETTLED))
    })
}

/// Random bytes for the job's rails, of which those of rank 0 hold. 0: there are none, and none are needed.
unsafe extern "C" fn secret(room: *mut [u8; Secret::SIZE]) -> c_int {
    caught(0, || {
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
            let Some(key) = matcher.offer(&outgoing(message)).ok()? else {
                return Some(0);
            };
            wire.drain(matcher, &[]);
            rails.offer(message.to, key, start as usize, message.bytes, name);
            Some(1)
        },
    )
}

unsafe extern "C" fn offered_came(source: u32, key: u32) {
    with(|messages| {
        if let Some(rails) = &mut messages.rails {
            rails.message_came(source, key);
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
