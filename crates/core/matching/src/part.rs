//! What a part of a parcel is: a message, its envelope, or a grant. `docs/concepts/matching.md` has the table.

use raddle_schedule::parcel::PartHead;

use crate::refused::Refused;

/// Contexts are below this.
pub const MOST_CONTEXTS: u32 = 1 << 16;

const REFERENCE: u32 = 1 << 31;
const CONTROL: u32 = u32::MAX;
const NOTICE: u32 = u32::MAX - 1;
/// In the key of an envelope: the message was offered.
const OFFERED: u32 = 1 << 31;

/// Bytes of the parts that are no messages.
pub(crate) const REFERENCE_BYTES: usize = 12;
pub(crate) const GRANT_BYTES: usize = 8;
/// Of the longest notice.
pub const MOST_NOTICE: usize = 256;

/// Where the bytes of a message are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Here.
    Bytes(&'a [u8]),
    /// At the sender, under this key, which waits to hear how to send it if it `offered` it.
    Reference { bytes: u64, key: u32, offered: bool },
}

/// A part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A message of this context.
    Message { context: u32, content: Content<'a> },
    /// The source has received so much of the target, in bytes of window.
    Grant { freed: u64 },
    /// What the driver of the source tells that of the target.
    Notice(&'a [u8]),
}

/// The head of an envelope, from that of its message.
pub(crate) const fn reference_head(head: &PartHead) -> PartHead {
    PartHead {
        context: head.context | REFERENCE,
        ..*head
    }
}

pub(crate) fn write_reference(room: &mut [u8], bytes: u64, key: u32, offered: bool) {
    let key = if offered { key | OFFERED } else { key };
    room[..8].copy_from_slice(&bytes.to_be_bytes());
    room[8..].copy_from_slice(&key.to_be_bytes());
}

pub(crate) const fn grant_head(source: u32, target: u32) -> PartHead {
    control_head(source, target, CONTROL)
}

pub(crate) const fn notice_head(source: u32, target: u32) -> PartHead {
    control_head(source, target, NOTICE)
}

const fn control_head(source: u32, target: u32, context: u32) -> PartHead {
    PartHead {
        source,
        target,
        context,
        tag: 0,
        sequence: 0,
    }
}

/// What a part is; its number in its parcel is for the error.
#[inline]
pub(crate) fn read<'a>(number: u32, head: &PartHead, bytes: &'a [u8]) -> Result<Part<'a>, Refused> {
    let fail = |field, found: u64, right| Refused::part(number, field, found, right);
    if head.context == CONTROL {
        let freed = bytes
            .try_into()
            .map_err(|_| fail("bytes of a grant", bytes.len() as u64, "8"))?;
        return Ok(Part::Grant {
            freed: u64::from_be_bytes(freed),
        });
    }
    if head.context == NOTICE {
        return Ok(Part::Notice(bytes));
    }
    let context = head.context & !REFERENCE;
    if context >= MOST_CONTEXTS {
        return Err(fail("context", u64::from(context), "below 65536"));
    }
    if head.tag < 0 {
        return Err(fail(
            "tag",
            u64::from(head.tag.cast_unsigned()),
            "below 2^31",
        ));
    }
    if head.context & REFERENCE == 0 {
        let content = Content::Bytes(bytes);
        return Ok(Part::Message { context, content });
    }
    let &[b0, b1, b2, b3, b4, b5, b6, b7, ref key @ ..] = bytes else {
        return Err(fail("bytes of an envelope", bytes.len() as u64, "12"));
    };
    let key = key
        .try_into()
        .map_err(|_| fail("bytes of an envelope", bytes.len() as u64, "12"))?;
    let key = u32::from_be_bytes(key);
    let content = Content::Reference {
        bytes: u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        key: key & !OFFERED,
        offered: key & OFFERED != 0,
    };
    Ok(Part::Message { context, content })
}
