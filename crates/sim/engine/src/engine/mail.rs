//! What passes from one process to another, at the end of a window: packets and PFC frames on links between them, flows that
//! begin and end.

use raddle_units::{NodeId, Time};
use raddle_wire::rails::Packet as Segment;
use serde::{Deserialize, Serialize};

use super::{
    flow::{FlowName, Reception},
    groups::GroupReception,
    offload::Datagram,
    rail_notices::Notice,
    what::What,
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

/// What one process sends another in a window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Mail {
    pub(super) arrivals: Vec<Arrival>,
    /// Of the arrivals.
    pub(super) packets: Vec<Packet>,
    /// What is known of them, where delays are recorded.
    pub(super) marks: Vec<Mark>,
    /// What packets of in-network reductions among them carry, in order.
    pub(super) datagrams: Vec<Datagram>,
    /// What packets over rails among them carry, in order.
    pub(super) segments: Vec<Segment>,
    /// PFC frames.
    pub(super) events: Vec<Event>,
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
    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
        self.packets.clear();
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

/// The mail that a process has ready for others.
#[derive(Debug, Default)]
pub(super) struct Post {
    /// By process; empty ones are for nobody.
    mails: Vec<Option<Mail>>,
    /// Those that have mail, in order of their first.
    waiting: Vec<ProcessIndex>,
    /// Memory of mails that came in.
    spare: Vec<Mail>,
    /// Members anywhere for which senders here do not wait any more.
    pub(super) gone: Vec<(FlowName, NodeId)>,
}

impl Post {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            mails: (0..processes).map(|_| None).collect(),
            ..Self::default()
        }
    }

    pub(super) fn to(&mut self, process: ProcessIndex) -> &mut Mail {
        let (waiting, spare) = (&mut self.waiting, &mut self.spare);
        self.mails[usize::from(process.0)].get_or_insert_with(|| {
            waiting.push(process);
            spare.pop().unwrap_or_default()
        })
    }

    /// Adds a packet; the mail that it is in, for what it carries.
    pub(super) fn packet(
        &mut self,
        process: ProcessIndex,
        arrival: Arrival,
        packet: Packet,
    ) -> &mut Mail {
        let mail = self.to(process);
        mail.note(arrival.at);
        mail.arrivals.push(arrival);
        mail.packets.push(packet);
        mail
    }

    pub(super) fn notice(&mut self, process: ProcessIndex, notice: Notice) {
        let mail = self.to(process);
        mail.note(notice.at);
        mail.notices.push(notice);
    }

    pub(super) fn event(&mut self, process: ProcessIndex, at: Time, key: u64, what: What) {
        let mail = self.to(process);
        mail.note(at);
        mail.events.push(Event {
            time: at,
            key,
            what: what.pack(),
        });
    }

    /// The next mail that is to be carried to its process.
    pub(super) fn take(&mut self) -> Option<(ProcessIndex, Mail)> {
        let process = self.waiting.pop()?;
        self.mails[usize::from(process.0)]
            .take()
            .map(|mail| (process, mail))
    }

    /// Keeps the memory of a mail that has been read.
    pub(super) fn keep(&mut self, mut mail: Mail) {
        mail.clear();
        self.spare.push(mail);
    }
}
