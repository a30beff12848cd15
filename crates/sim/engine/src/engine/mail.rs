//! What passes from one process to another, at the end of a window: packets and PFC frames on links between them, flows that
//! begin and end.
//!
//! Packets stay where they are, and mail says that they arrive; mail to another rank has copies of them. Whoever has read a mail
//! fills it again, so that there are as many as are under way, however many neighbours a process has; what one is left with,
//! others get between two windows.

use std::ops::Range;

use raddle_units::{NodeId, Time};
use raddle_wire::rails::Packet as Segment;
use serde::{Deserialize, Serialize};

use super::{
    flow::FlowName, groups::GroupReception, offload::Datagram, rail_notices::Notice,
    reception::Reception,
};
use crate::{
    event::Event,
    index::{Place, ProcessIndex},
    packet::Packet,
};

/// What one process sends another in a window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Mail {
    /// Packets that arrive there, in the memory of both.
    #[serde(skip)]
    pub(super) arrivals: Vec<Event>,
    /// Those that carry one of the datagrams or segments below.
    #[serde(skip)]
    pub(super) laden: Vec<Event>,
    /// Packets that arrive at another rank, whatever they carry.
    pub(super) copies: Vec<(Event, Packet)>,
    /// What packets of in-network reductions among them carry, in order.
    pub(super) datagrams: Vec<Datagram>,
    /// What packets over rails among them carry, in order.
    pub(super) segments: Vec<Segment>,
    /// PFC frames.
    pub(super) pfc_frames: Vec<Event>,
    /// Flows to hosts there.
    pub(super) begun: Vec<(FlowName, Reception)>,
    /// What hosts there are to know of messages over rails.
    pub(super) notices: Vec<Notice>,
    /// Messages to groups.
    pub(super) groups_begun: Vec<(FlowName, GroupReception)>,
    /// Flows that are over.
    pub(super) over: Vec<FlowName>,
    /// Members here for which the senders of messages do not wait any more.
    pub(super) gone: Vec<(FlowName, NodeId)>,
    /// The first arrival.
    pub(super) earliest: Option<Time>,
}

impl Mail {
    /// How many packets there are.
    pub(super) const fn packets(&self) -> usize {
        self.arrivals.len() + self.laden.len() + self.copies.len()
    }

    /// Empties it and keeps its memory.
    fn clear(&mut self) {
        self.arrivals.clear();
        self.laden.clear();
        self.copies.clear();
        self.datagrams.clear();
        self.segments.clear();
        self.pfc_frames.clear();
        self.begun.clear();
        self.notices.clear();
        self.groups_begun.clear();
        self.over.clear();
        self.gone.clear();
        self.earliest = None;
    }

    fn note(&mut self, at: Time) {
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }
}

/// Emptied mails of one process, to be filled again.
#[derive(Debug, Default)]
struct Pool {
    spare: Vec<Mail>,
    /// How many more it would have taken since it was levelled.
    lacked: usize,
}

impl Pool {
    fn take(&mut self) -> Mail {
        self.spare.pop().unwrap_or_else(|| {
            self.lacked += 1;
            Mail::default()
        })
    }
}

/// Emptied mails that no process needs just now.
#[derive(Debug, Default)]
pub(super) struct Store(Vec<Mail>);

impl Store {
    /// Keeps no more than are under way.
    pub(super) fn trim(&mut self, mails: usize) {
        self.0.truncate(mails);
    }
}

/// The mail that a process has ready for others.
#[derive(Debug)]
pub(super) struct Post {
    /// By process; empty ones are for nobody.
    mails: Vec<Option<Mail>>,
    /// Processes for which there is mail, in order of their first.
    waiting: Vec<ProcessIndex>,
    pool: Pool,
    /// Processes of this rank, which share the memory of packets.
    near: Range<usize>,
    /// Members anywhere for which senders here do not wait any more.
    pub(super) gone: Vec<(FlowName, NodeId)>,
}

impl Post {
    /// Among so many processes, of which `near` are this rank's.
    pub(super) fn new(processes: usize, near: Range<usize>) -> Self {
        Self {
            mails: (0..processes).map(|_| None).collect(),
            waiting: Vec::new(),
            pool: Pool::default(),
            near,
            gone: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn to(&mut self, process: ProcessIndex) -> &mut Mail {
        let (waiting, pool) = (&mut self.waiting, &mut self.pool);
        self.mails[process.index()].get_or_insert_with(|| {
            waiting.push(process);
            pool.take()
        })
    }

    /// [`Self::to`], for what arrives there at `at`.
    #[inline]
    pub(super) fn arriving(&mut self, process: ProcessIndex, at: Time) -> &mut Mail {
        let mail = self.to(process);
        mail.note(at);
        mail
    }

    /// Whether a process shares the memory of packets with this one.
    #[inline]
    pub(super) fn is_near(&self, process: ProcessIndex) -> bool {
        self.near.contains(&process.index())
    }

    pub(super) fn notice(&mut self, process: ProcessIndex, notice: Notice) {
        self.arriving(process, notice.at).notices.push(notice);
    }

    /// The next mail that is to be carried to its process.
    pub(super) fn take(&mut self) -> Option<(ProcessIndex, Mail)> {
        let process = self.waiting.pop()?;
        let mail = self.mails[process.index()].take();
        mail.map(|mail| (process, mail))
    }

    /// Keeps the memory of a mail that has been read.
    pub(super) fn keep(&mut self, mut mail: Mail) {
        mail.clear();
        self.pool.spare.push(mail);
    }

    /// At the end of a window: leaves what it has beyond its need to all, or takes from there what it lacked.
    pub(super) fn level(&mut self, store: &mut Store) {
        let pool = &mut self.pool;
        store.0.append(&mut pool.spare);
        let lacked = std::mem::take(&mut pool.lacked);
        let left = store.0.len().saturating_sub(lacked);
        pool.spare.extend(store.0.drain(left..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever goes one way, in order; and no more mails than are under way at once, though none comes back.
    #[test]
    fn mails_of_one_way_traffic_do_not_pile_up() {
        const PROCESSES: u64 = 4;
        let own = ProcessIndex(0);
        let mut posts: Vec<Post> = (0..PROCESSES)
            .map(|_| Post::new(PROCESSES as usize, 0..PROCESSES as usize))
            .collect();
        let mut store = Store::default();
        let (mut sent, mut read) = (0, 0);
        let mut under_way: Vec<Mail> = Vec::new();
        for window in 0..200u64 {
            for mail in under_way.drain(..) {
                assert_eq!(mail.earliest, mail.arrivals.first().map(|event| event.time));
                for event in &mail.arrivals {
                    assert_eq!(event.key, read);
                    read += 1;
                }
                posts[own.index()].keep(mail);
            }
            for post in &mut posts[1..] {
                for _ in 0..(window * 37) % 100 {
                    let event = Event {
                        time: Time(sent),
                        key: sent,
                        what: 0,
                    };
                    assert!(post.is_near(own));
                    post.arriving(own, event.time).arrivals.push(event);
                    sent += 1;
                }
            }
            for post in &mut posts {
                post.level(&mut store);
            }
            under_way.extend(
                posts
                    .iter_mut()
                    .filter_map(Post::take)
                    .map(|(_, mail)| mail),
            );
            store.trim(under_way.len());
            let spare: usize = posts.iter().map(|post| post.pool.spare.len()).sum();
            let mails = spare + store.0.len() + under_way.len();
            // Under way, spare with all, and spare with those that lacked some.
            assert!(mails as u64 <= 3 * (PROCESSES - 1), "{window}: {mails}");
        }
        assert!(sent > 0 && sent - read < 100 * PROCESSES);
    }
}
