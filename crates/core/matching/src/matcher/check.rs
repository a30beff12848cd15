//! Whether a parcel may be used: everything about it is checked before anything of it is.

use raddle_schedule::parcel::{ParcelView, PartHead};

use super::Matcher;
use crate::{
    part::{self, Content, MOST_NOTICE, Part},
    refused::Refused,
    store::cost,
};

/// What earlier parts of the same parcel take.
#[derive(Debug, Clone, Copy)]
struct Stream {
    source: u32,
    /// The least number that the next part for us may have.
    next: u32,
    /// What its source may still send into our room.
    room: u64,
}

/// Checks all parts of a parcel that came from `from`.
#[inline]
pub(super) fn parcel(matcher: &Matcher, from: u32, view: &ParcelView<'_>) -> Result<(), Refused> {
    let ranks = matcher.lines.ranks();
    if from as usize >= ranks || from == matcher.rank {
        let right = "another rank of the job";
        return Err(Refused::part(0, "sender", u64::from(from), right));
    }
    let mut stream = None;
    for (number, (head, bytes)) in (0..).zip(view.parts()) {
        let fail =
            |field, found: u32, right| Err(Refused::part(number, field, u64::from(found), right));
        if head.source as usize >= ranks || !may_send(matcher, from, head.source) {
            return fail("source", head.source, "the sender, or of another node");
        }
        if head.target as usize >= ranks || !may_receive(matcher, from, &head) {
            return fail("target", head.target, "the receiver, or a rank of its node");
        }
        match part::read(number, &head, bytes)? {
            Part::Grant { freed } => {
                let peer = &matcher.peers[from as usize];
                let alone = view.count() == 1 && head.source == from && head.target == matcher.rank;
                if !alone || !peer.plausible(freed, matcher.window) {
                    let right = "a part of its own, of at most what was received";
                    return Err(Refused::part(number, "grant", freed, right));
                }
            }
            Part::Notice(bytes) => {
                let alone = view.count() == 1 && head.source == from && head.target == matcher.rank;
                if !alone || bytes.len() > MOST_NOTICE {
                    let right = "a part of its own, of up to 256 bytes";
                    return Err(Refused::part(number, "notice", bytes.len() as u64, right));
                }
            }
            Part::Message { content, .. } => {
                let peer = &matcher.peers[head.source as usize];
                let stream = stream.get_or_insert_with(|| Stream {
                    source: head.source,
                    next: peer.expected,
                    room: peer.left(matcher.window),
                });
                if head.source != stream.source {
                    return fail("source", head.source, "that of the parts before");
                }
                if head.target == matcher.rank {
                    message(matcher, number, &head, content, stream)?;
                }
            }
        }
    }
    Ok(())
}

/// Checks a message for this process.
#[inline]
fn message(
    matcher: &Matcher,
    number: u32,
    head: &PartHead,
    content: Content<'_>,
    stream: &mut Stream,
) -> Result<(), Refused> {
    let fail = |field, found: u64, right| Err(Refused::part(number, field, found, right));
    let sequence = head.sequence;
    let gap = sequence.wrapping_sub(stream.next);
    let late = gap > u32::MAX / 2 || matcher.ahead.contains_key(&(head.source, sequence));
    // Without leaders all messages of a pair take one way, so that none can be missing.
    if late || (gap != 0 && !matcher.lines.has_leaders()) {
        return fail("sequence", u64::from(sequence), "the next of its pair");
    }
    stream.next = sequence.wrapping_add(1);
    match content {
        Content::Bytes(bytes) => {
            let cost = cost(bytes.len() as u64);
            if cost > stream.room {
                return fail("bytes", bytes.len() as u64, "within the sender's room");
            }
            stream.room -= cost;
        }
        Content::Reference { key, .. } => {
            if key == 0 || key > matcher.keys {
                return fail("key", u64::from(key), "from 1 to the number of keys");
            }
        }
    }
    Ok(())
}

/// Whether parts of `source` can come from `from`: its own, or handed on by our leader for it.
fn may_send(matcher: &Matcher, from: u32, source: u32) -> bool {
    source == from
        || (matcher.lines.leader(source) == Some(from) && !matcher.lines.is_inside(source))
}

/// Whether this process gets the part, or hands it on.
fn may_receive(matcher: &Matcher, from: u32, head: &PartHead) -> bool {
    head.target == matcher.rank
        || (matcher.lines.leader(from) == Some(matcher.rank)
            && !matcher.lines.is_inside(from)
            && matcher.lines.is_inside(head.target))
}
