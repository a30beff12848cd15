//! The smallest driver that cuts a workload by hosts: windows of time, an ideal network between them. For tests of
//! workloads.

use std::collections::BTreeSet;

use raddle_units::{NodeId, Span, Time};

use crate::{Message, Workload};

/// Who has a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Receiver {
    /// The host, which is the only one.
    Only,
    /// The host, as a member of the group.
    Member,
    /// The whole group, since its last member, the host, has.
    All,
}

/// A message has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// Where.
    pub host: NodeId,
    /// Which.
    pub tag: u64,
    /// To whom.
    pub to: Receiver,
}

/// Cuts `workload` into `parts` by `part_of` and runs them window by window, each of length `window`, until nothing is
/// left, an open-ended one has finished, or `limit` messages were sent. `network` says when a message that starts is
/// delivered: what it gives must lie a window or more after a start. Gives the messages, with their starts, in order of
/// start, then of host.
///
/// `None`: the workload cannot be cut.
///
/// # Panics
/// If a delivery comes earlier than that, or as [`Workload::split`].
pub fn drive_in_windows(
    workload: &mut dyn Workload,
    parts: usize,
    part_of: &dyn Fn(NodeId) -> usize,
    window: Span,
    limit: usize,
    network: &mut dyn FnMut(&Message) -> Vec<Delivery>,
) -> Option<Vec<Message>> {
    let mut parts = workload.split(parts, part_of)?;
    let mut under_way = vec![BTreeSet::<Delivery>::new(); parts.len()];
    let mut sent = Vec::new();
    let mut end = Time::ZERO;
    while sent.len() < limit {
        if parts
            .iter()
            .all(|part| part.finished() && part.is_open_ended())
        {
            break;
        }
        let starts = parts.iter().filter_map(|part| part.next_start());
        let deliveries = under_way.iter().filter_map(|own| Some(own.first()?.at));
        let Some(next) = starts.chain(deliveries).min() else {
            break;
        };
        let begin = Time(next.0 / window.0 * window.0).max(end);
        end = begin + window;
        let (mut begun, mut come) = (Vec::new(), Vec::new());
        for (part, own) in parts.iter_mut().zip(&mut under_way) {
            run_window(&mut **part, own, begin, end, (&mut begun, &mut come));
        }
        // A host's own messages stay in order.
        begun.sort_by_key(|message: &Message| (message.start, message.src));
        for message in &begun {
            for delivery in network(message) {
                assert!(delivery.at >= end, "{delivery:?} before {end:?}");
                under_way[part_of(delivery.host)].insert(delivery);
            }
        }
        sent.append(&mut begun);
        come.sort_unstable();
        for delivery in come {
            if parts[0].is_news(delivery.tag) {
                let member = (delivery.to == Receiver::Member).then_some(delivery.host);
                let Delivery { at, tag, .. } = delivery;
                match parts[0].news_for(tag) {
                    Some(host) => parts[part_of(host)].on_news(at, tag, member),
                    None => parts
                        .iter_mut()
                        .for_each(|part| part.on_news(at, tag, member)),
                }
            }
        }
    }
    Some(sent)
}

/// Runs a part from `begin` until before `end`. At equal times messages start before others are delivered.
fn run_window(
    part: &mut dyn Workload,
    under_way: &mut BTreeSet<Delivery>,
    begin: Time,
    end: Time,
    (begun, come): (&mut Vec<Message>, &mut Vec<Delivery>),
) {
    let mut now = begin;
    loop {
        let start = part.next_start().map_or(end, |start| start.max(now));
        let at = under_way.first().map_or(end, |delivery| delivery.at);
        now = start.min(at);
        if now >= end {
            break;
        }
        if start <= at {
            if let Some(message) = part.pop() {
                let start = message.start.max(now);
                begun.push(Message { start, ..message });
            }
        } else if let Some(delivery) = under_way.pop_first() {
            match delivery.to {
                Receiver::Only => part.on_delivered(now, delivery.tag),
                Receiver::Member => part.on_member_delivered(now, delivery.tag, delivery.host),
                Receiver::All => {}
            }
            come.push(delivery);
        }
    }
}
