//! What a UDP payload says to a member of a group.

use raddle_wire::native::{JobKey, Message, Unverified};

/// The message in a payload; `None` unless it is of this group and its tag is right.
#[inline]
pub(crate) fn verified<'a>(
    payload: &'a [u8],
    job: u32,
    group: u32,
    key: &JobKey,
) -> Option<Message<'a>> {
    let message = Unverified::parse(payload, 0).ok()?;
    if (message.job(), message.group()) != (job, group) {
        return None;
    }
    message.verify(key).ok()
}
