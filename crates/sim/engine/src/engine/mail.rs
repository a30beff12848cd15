//! What passes from one process to another, at the end of a window: packets and PFC frames on links between them, flows that
//! begin and end.
//!
//! Packets lie in chunks. Whoever has read one fills it again, so that there are as many as are under way, however many
//! neighbours a process has; what one is left with, others get between two windows.

use raddle_units::{NodeId, Time};
use raddle_wire::rails::Packet as Segment;
use serde::{Deserialize, Serialize};

use super::{
    flow::FlowName, groups::GroupReception, offload::Datagram, rail_notices::Notice,
    reception::Reception,
};
use crate::{
    event::Event,
    index::{PortIndex, ProcessIndex},
    packet::{Mark, Packet},
};

/// A packet on its way to a port of another process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) key: u64,
    pub(super) port: PortIndex,
}

/// Some packets on their way.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) arrivals: Vec<Arrival>,
    /// Of the arrivals.
    pub(super) packets: Vec<Packet>,
}

impl Chunk {
    /// Packets of a full one, among so many processes: many, which are read in one go, but all pairs of processes may have one
    /// that is not full, which together are to take no more than 64 MB.
    fn size(processes: usize) -> usize {
        let room = (64 << 20) / (size_of::<Arrival>() + size_of::<Packet>());
        (room / processes.pow(2).max(1)).clamp(8, 1 << 14)
    }

    fn new(size: usize) -> Self {
        Self {
            arrivals: Vec::with_capacity(size),
            packets: Vec::with_capacity(size),
        }
    }

    fn clear(&mut self) {
        self.arrivals.clear();
        self.packets.clear();
    }
}

/// What one process sends another in a window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Mail {
    pub(super) chunks: Vec<Chunk>,
    /// What is known of them, where delays are recorded.
    pub(super) marks: Vec<Mark>,
    /// What packets of in-network reductions among them carry, in order.
    pub(super) datagrams: Vec<Datagram>,
    /// What packets over rails among them carry, in order.
    pub(super) segments: Vec<Segment>,
    /// PFC frames.
    pub(super) events: Vec<(PortIndex, Event)>,
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
    pub(super) fn packets(&self) -> u64 {
        let each = self.chunks.iter().map(|chunk| chunk.packets.len() as u64);
        each.sum()
    }

    /// Empties it, but for its chunks, and keeps its memory.
    fn clear(&mut self) {
        self.marks.clear();
        self.datagrams.clear();
        self.segments.clear();
        self.events.clear();
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

/// Emptied things of one process, to be filled again.
#[derive(Debug)]
struct Pool<T> {
    spare: Vec<T>,
    /// How many more it would have taken since it was levelled.
    lacked: usize,
}

impl<T> Pool<T> {
    const EMPTY: Self = Self {
        spare: Vec::new(),
        lacked: 0,
    };

    fn take(&mut self, new: impl FnOnce() -> T) -> T {
        self.spare.pop().unwrap_or_else(|| {
            self.lacked += 1;
            new()
        })
    }

    /// Leaves what it has beyond its need to all, or takes from there what it lacked.
    fn level(&mut self, common: &mut Vec<T>) {
        common.append(&mut self.spare);
        let left = common
            .len()
            .saturating_sub(std::mem::take(&mut self.lacked));
        self.spare.extend(common.drain(left..));
    }
}

/// Emptied mails and chunks that no process needs just now.
#[derive(Debug, Default)]
pub(super) struct Store {
    mails: Vec<Mail>,
    chunks: Vec<Chunk>,
}

impl Store {
    /// Keeps no more than is under way.
    pub(super) fn trim(&mut self, mails: usize, chunks: usize) {
        self.mails.truncate(mails);
        self.chunks.truncate(chunks);
    }
}

/// Mails by process.
#[derive(Debug)]
struct Mails {
    /// Empty ones are for nobody.
    by_process: Vec<Option<Mail>>,
    /// Those that have mail, in order of their first.
    waiting: Vec<ProcessIndex>,
    pool: Pool<Mail>,
}

impl Mails {
    #[inline]
    fn to(&mut self, process: ProcessIndex) -> &mut Mail {
        let (waiting, pool) = (&mut self.waiting, &mut self.pool);
        self.by_process[usize::from(process.0)].get_or_insert_with(|| {
            waiting.push(process);
            pool.take(Mail::default)
        })
    }
}

/// The mail that a process has ready for others.
#[derive(Debug)]
pub(super) struct Post {
    mails: Mails,
    chunks: Pool<Chunk>,
    /// Packets of a full one.
    chunk_size: usize,
    /// Members anywhere for which senders here do not wait any more.
    pub(super) gone: Vec<(FlowName, NodeId)>,
}

impl Post {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            mails: Mails {
                by_process: (0..processes).map(|_| None).collect(),
                waiting: Vec::new(),
                pool: Pool::EMPTY,
            },
            chunks: Pool::EMPTY,
            chunk_size: Chunk::size(processes),
            gone: Vec::new(),
        }
    }

    pub(super) fn to(&mut self, process: ProcessIndex) -> &mut Mail {
        self.mails.to(process)
    }

    /// Adds a packet; the mail that it is in, for what it carries.
    pub(super) fn packet(
        &mut self,
        process: ProcessIndex,
        arrival: Arrival,
        packet: Packet,
    ) -> &mut Mail {
        let mail = self.mails.to(process);
        mail.note(arrival.at);
        let size = self.chunk_size;
        let last = mail.chunks.last();
        if last.is_none_or(|chunk| chunk.packets.len() >= size) {
            mail.chunks.push(self.chunks.take(|| Chunk::new(size)));
        }
        if let Some(chunk) = mail.chunks.last_mut() {
            chunk.arrivals.push(arrival);
            chunk.packets.push(packet);
        }
        mail
    }

    pub(super) fn notice(&mut self, process: ProcessIndex, notice: Notice) {
        let mail = self.to(process);
        mail.note(notice.at);
        mail.notices.push(notice);
    }

    pub(super) fn event(&mut self, process: ProcessIndex, port: PortIndex, event: Event) {
        let mail = self.to(process);
        mail.note(event.time);
        mail.events.push((port, event));
    }

    /// The next mail that is to be carried to its process.
    pub(super) fn take(&mut self) -> Option<(ProcessIndex, Mail)> {
        let process = self.mails.waiting.pop()?;
        let mail = self.mails.by_process[usize::from(process.0)].take();
        mail.map(|mail| (process, mail))
    }

    /// Keeps the memory of a mail that has been read.
    pub(super) fn keep(&mut self, mut mail: Mail) {
        for mut chunk in mail.chunks.drain(..) {
            chunk.clear();
            self.chunks.spare.push(chunk);
        }
        mail.clear();
        self.mails.pool.spare.push(mail);
    }

    /// At the end of a window: leaves what was not needed in it, or takes what was lacking.
    pub(super) fn level(&mut self, store: &mut Store) {
        self.mails.pool.level(&mut store.mails);
        self.chunks.level(&mut store.chunks);
    }
}

#[cfg(test)]
mod tests {
    use raddle_unicast::FlowHash;

    use super::{super::cut::MOST_PROCESSES, *};
    use crate::{
        index::FlowSlot,
        packet::{Bytestream, Envelope},
    };

    /// A packet that knows its number.
    fn packet(number: u64) -> (Arrival, Packet) {
        let bytes = Bytestream {
            flow: FlowSlot(0),
            generation: 0,
            seq: number,
        };
        let envelope = Envelope {
            src: NodeId(0),
            hash: FlowHash::new(0, 0, 0),
            queue: 0,
            sent_at: Time::ZERO,
            bytes: 64,
            payload: 0,
        };
        let arrival = Arrival {
            at: Time(number),
            key: number,
            port: PortIndex(0),
        };
        (arrival, Packet::data(NodeId(1), &bytes, envelope))
    }

    /// Whatever goes one way, in order; and no more chunks than twice what the fullest window takes, though none comes back.
    #[test]
    fn chunks_of_one_way_traffic_do_not_pile_up() {
        const PROCESSES: usize = 1 << 10;
        let size = Chunk::size(PROCESSES);
        let (mut from, mut to) = (Post::new(PROCESSES), Post::new(PROCESSES));
        let mut store = Store::default();
        let (mut sent, mut read) = (0, 0);
        let mut under_way: Option<Mail> = None;
        for window in 0..200usize {
            if let Some(mail) = under_way.take() {
                for chunk in &mail.chunks {
                    for (arrival, packet) in chunk.arrivals.iter().zip(&chunk.packets) {
                        assert_eq!((arrival.at, packet.seq()), (Time(read), read));
                        read += 1;
                    }
                }
                to.keep(mail);
            }
            for _ in 0..(window * 37) % (8 * size) {
                let (arrival, packet) = packet(sent);
                from.packet(ProcessIndex(1), arrival, packet);
                sent += 1;
            }
            from.level(&mut store);
            to.level(&mut store);
            under_way = from.take().map(|(_, mail)| mail);
            let chunks = under_way.as_ref().map_or(0, |mail| mail.chunks.len());
            let mails = usize::from(under_way.is_some());
            assert!(under_way.as_ref().is_none_or(|mail| mail.packets() > 0));
            store.trim(mails, chunks);
            let spare = from.chunks.spare.len() + to.chunks.spare.len() + store.chunks.len();
            assert!(chunks + spare <= 4 * 8, "{window}: {chunks} and {spare}");
            assert!(store.mails.len() + from.mails.pool.spare.len() <= 2);
        }
        assert!(sent > 0 && sent - read < 8 * size as u64);
    }

    #[test]
    fn chunks_that_are_not_full_take_little_for_any_number_of_processes() {
        let bytes = size_of::<Arrival>() + size_of::<Packet>();
        for processes in [1, 2, 6, 16, 48, 200] {
            let all = processes * processes * Chunk::size(processes) * bytes;
            assert!(all <= 64 << 20, "{processes} processes: {all} bytes");
        }
        assert_eq!(Chunk::size(MOST_PROCESSES), 8);
    }
}
