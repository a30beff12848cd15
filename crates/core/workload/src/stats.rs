//! What a workload consists of: counts, bytes and sizes per class.

use raddle_units::{BitRate, Span, Time};
use serde::Serialize;

use crate::ideal::{IdealNetwork, drive_ideal};
use crate::message::is_tested_class;
use crate::{Message, TrafficError, Workload};

/// A flow of at least this size counts as large: 1 MB.
const LARGE_BYTES: u64 = 1_000_000;

/// Latency of the ideal network on which a closed loop is described.
const LATENCY: Span = Span::from_us(1);

/// What the load is measured against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBase {
    /// Hosts of the fabric.
    pub hosts: u64,
    /// Link rate of a host, above 0.
    pub host_rate: BitRate,
    /// Time over which the bytes are spread; from the first to the last start if left out.
    pub window: Option<Span>,
    /// Most messages that are looked at.
    pub limit: u64,
}

/// Statistics of a workload; fields carry their units.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct TrafficStats {
    /// Messages in all.
    pub flows: u64,
    /// Payload in all.
    pub bytes: u64,
    /// Start of the first message.
    pub first_start_ps: u64,
    /// Start of the last message.
    pub last_start_ps: u64,
    /// Share of the messages that have 1 MB or more.
    pub large_share_of_flows: f64,
    /// Share of the payload that they carry.
    pub large_share_of_bytes: f64,
    /// Payload as a share of what all hosts can send in the window.
    pub load: f64,
    /// False if the workload goes on beyond the limit.
    pub complete: bool,
    /// True if starts depend on deliveries; they are then those of a network without contention.
    pub closed_loop: bool,
    /// Per class, in order of class index; classes without messages are left out.
    pub classes: Vec<ClassStats>,
}

/// Statistics of one class.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ClassStats {
    /// Name of the class.
    pub class: String,
    /// Whether its flows are judged.
    pub tested: bool,
    /// Messages.
    pub flows: u64,
    /// Payload.
    pub bytes: u64,
    /// Share of all messages.
    pub share_of_flows: f64,
    /// Share of all payload.
    pub share_of_bytes: f64,
    /// Smallest message.
    pub min_size_bytes: u64,
    /// Mean message.
    pub mean_size_bytes: f64,
    /// Largest message.
    pub max_size_bytes: u64,
    /// Start of its first message.
    pub first_start_ps: u64,
    /// Start of its last message.
    pub last_start_ps: u64,
}

/// Goes through `workload` (which is used up) and counts.
///
/// # Errors
/// A flow file that cannot be read to its end, or a line of it that is wrong.
pub fn describe(
    workload: &mut dyn Workload,
    base: &LoadBase,
) -> Result<TrafficStats, TrafficError> {
    let mut classes: Vec<ClassStats> = workload
        .classes()
        .iter()
        .map(|name| ClassStats {
            class: name.clone(),
            tested: is_tested_class(name),
            min_size_bytes: u64::MAX,
            first_start_ps: u64::MAX,
            ..ClassStats::default()
        })
        .collect();
    let closed_loop = workload.has_dependencies();
    let (mut large_flows, mut large_bytes, mut all_bytes) = (0u64, 0u64, Some(0u64));
    let network = IdealNetwork {
        latency: LATENCY,
        rate: BitRate(base.host_rate.0.max(1)),
    };
    drive_ideal(
        workload,
        network,
        base.limit,
        |message: &Message, _: Time| {
            let size = message.size.0;
            all_bytes = all_bytes.and_then(|sum| sum.checked_add(size));
            if all_bytes.is_none() {
                return;
            }
            if size >= LARGE_BYTES {
                large_flows += 1;
                large_bytes += size;
            }
            if let Some(class) = classes.get_mut(usize::from(message.class)) {
                class.flows += 1;
                class.bytes += size;
                class.min_size_bytes = class.min_size_bytes.min(size);
                class.max_size_bytes = class.max_size_bytes.max(size);
                class.first_start_ps = class.first_start_ps.min(message.start.0);
                class.last_start_ps = class.last_start_ps.max(message.start.0);
            }
        },
    );
    if let Some(fault) = workload.fault() {
        return Err(fault.clone());
    }
    let Some(bytes) = all_bytes else {
        let problem = "its messages are more than 2^64 bytes together: check the sizes";
        return Err(TrafficError::spec("generator", problem));
    };
    classes.retain(|class| class.flows > 0);
    let flows: u64 = classes.iter().map(|class| class.flows).sum();
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            part as f64 / whole as f64
        }
    };
    for class in &mut classes {
        class.share_of_flows = share(class.flows, flows);
        class.share_of_bytes = share(class.bytes, bytes);
        class.mean_size_bytes = share(class.bytes, class.flows);
    }
    let first_start_ps = classes
        .iter()
        .map(|class| class.first_start_ps)
        .min()
        .unwrap_or(0);
    let last_start_ps = classes
        .iter()
        .map(|class| class.last_start_ps)
        .max()
        .unwrap_or(0);
    let window = base.window.unwrap_or(Span(last_start_ps - first_start_ps));
    let capacity_bits = base.hosts as f64 * base.host_rate.0 as f64 * window.as_secs_f64();
    Ok(TrafficStats {
        flows,
        bytes,
        first_start_ps,
        last_start_ps,
        large_share_of_flows: share(large_flows, flows),
        large_share_of_bytes: share(large_bytes, bytes),
        load: if capacity_bits > 0.0 {
            bytes as f64 * 8.0 / capacity_bits
        } else {
            0.0
        },
        complete: workload.finished(),
        closed_loop,
        classes,
    })
}
