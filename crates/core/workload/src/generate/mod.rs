//! Generators of traffic, one file each. All are seeded, and streamed: flows are made when they are asked for.

mod all_to_all;
mod flows;
pub(crate) mod gpcnet;
mod hpc_mix;
mod incast;
mod multicast;
mod permutation;
mod poisson;

use raddle_units::{Bytes, NodeId, Time, many};

use crate::message::DATA_PRIORITY;
use crate::{Destination, MAX_START_PS, Message, TrafficError};

pub use self::all_to_all::AllToAll;
pub use self::flows::{FlowGroup, Flows, Nodes};
pub use self::gpcnet::{Congestor, Gpcnet, Victim};
pub use self::hpc_mix::{HPC_MIX_CLASSES, HpcMix};
pub use self::incast::Incast;
pub use self::multicast::{
    Combining, GridOperation, LineGroup, Multicast, MulticastEngineName, ProcessLine,
};
pub use self::permutation::Permutation;
pub use self::poisson::{Poisson, SizeTable};

type Made = Result<Message, TrafficError>;

fn message(
    start: Time,
    src: NodeId,
    dst: impl Into<Destination>,
    size: Bytes,
    class: u8,
    tag: u64,
) -> Message {
    Message {
        start,
        src,
        dst: dst.into(),
        size,
        class,
        priority: DATA_PRIORITY,
        tag,
    }
}

fn check_hosts(hosts: &[NodeId], least: usize, why: &str) -> Result<(), TrafficError> {
    if hosts.len() < least {
        let got = many(hosts.len(), "host");
        let problem = format!(
            "it needs at least {least} hosts {why}, and this fabric has {got}: use a larger one"
        );
        return Err(TrafficError::spec("generator", problem));
    }
    Ok(())
}

/// The last of `count` starts, `interval_ps` apart; refused, as the fault of `field`, after [`MAX_START_PS`].
fn check_starts(
    field: &'static str,
    first_ps: u64,
    interval_ps: u64,
    count: u64,
) -> Result<Time, TrafficError> {
    let last = interval_ps
        .checked_mul(count.saturating_sub(1))
        .and_then(|x| x.checked_add(first_ps));
    last.filter(|&last| last <= MAX_START_PS)
        .map(Time)
        .ok_or_else(|| {
            TrafficError::spec(field, "the last flow would start after more than one day")
        })
}
