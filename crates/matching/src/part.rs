//! What a part of a parcel is: a message, its envelope, or a grant. `docs/matching.md` has the table.

use raddle_schedule::parcel::PartHead;

use crate::check::Refused;

/// Contexts are below this.
pub const MOST_CONTEXTS: u32 = 1 << 16;

const REFERENCE: u32 = 1 << 31;
const CONTROL: u32 = u32::MAX;

/// Bytes of the parts that are no messages.
pub(crate) const REFERENCE_BYTES: usize = 12;
pub(crate) const GRANT_BYTES: usize = 8;

/// Where the bytes of a message are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Here.
    Bytes(&'a [u8]),
    /// At the sender, under this key.
    Reference { bytes: u64, key: u32 },
}

/// A part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A message of this context.
    Message { context: u32, content: Content<'a> },
    /// The source has received so much of the target, in bytes of window.
    Grant { freed: u64 },
}

/// The head of an envelope, from that of its message.
pub(crate) const fn reference_head(head: &PartHead) -> PartHead {
    PartHead {
        context: head.context | REFERENCE,
        ..*head
    }
}

pub(crate) fn write_reference(room: &mut [u8], bytes: u64, key: u32) {
    room[..8].copy_from_slice(&bytes.to_be_bytes());
    room[8..].copy_from_slice(&key.to_be_bytes());
}

pub(crate) const fn grant_head(source: u32, target: u32) -> PartHead {
    PartHead {
        source,
        target,
        context: CONTROL,
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
    let content = Content::Reference {
        bytes: u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        key: u32::from_be_bytes(key),
    };
    Ok(Part::Message { context, content })
}
