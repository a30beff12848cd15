//! What ranks tell each other, and which processes are whose.

use std::ops::Range;

use raddle_units::{NodeId, Time};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    flow::FlowName,
    groups::Report,
    mail::Mail,
    records::{Moment, Record},
    sample::{Sums, Wanted},
};
use crate::{
    index::{Place, ProcessIndex},
    ranks::Ranks,
    record::{FlowRecord, PauseRecord, PortRecord},
    setup::RunSummary,
};

/// What a rank has to say of a window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct News {
    /// When something happened last.
    pub(super) now: Time,
    /// Packets under way in its processes, or in mail from them to others'.
    pub(super) packets: u64,
    /// Messages that have begun here, less those that have ended here.
    pub(super) live: i64,
    /// Events of the window.
    pub(super) events: u64,
    /// Packet-hops and finished flows of the run so far.
    pub(super) done: (u64, u64),
    pub(super) fault: Option<(Moment, String)>,
    /// What hosts have for which others wait; of a group: which member, or all.
    pub(super) deliveries: Vec<(Moment, u64, Option<NodeId>)>,
    /// What members and senders say of messages to groups.
    pub(super) reports: Vec<(Moment, FlowName, Report)>,
    /// Messages to groups that are over.
    pub(super) ended: Vec<FlowName>,
    pub(super) wanted: Vec<Wanted>,
}

/// What a rank expects after a window, or all of them together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Outlook {
    /// When the next event is due.
    pub(super) next: Time,
    /// No message will start.
    pub(super) finished: bool,
    /// Someone wants the run to stop.
    pub(super) cancelled: bool,
    /// Output has failed.
    pub(super) failed: bool,
}

/// What is left to tell at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rest {
    pub(super) pauses: Vec<PauseRecord>,
    /// Flows that have not ended.
    pub(super) flows: Vec<(FlowName, FlowRecord)>,
    /// Messages over rails that have not been delivered.
    pub(super) undelivered: Vec<FlowRecord>,
    /// In order of node and port.
    pub(super) ports: Vec<PortRecord>,
    pub(super) totals: RunSummary,
}

/// What comes in at the end of a window, from all other ranks.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) news: Vec<News>,
    pub(super) mails: Vec<(ProcessIndex, Mail)>,
    /// At rank 0.
    pub(super) records: Vec<(Moment, Record)>,
}

/// See the module.
pub(super) struct Exchange<'a> {
    ranks: &'a mut dyn Ranks,
    /// Of the whole run.
    processes: usize,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(ranks: &'a mut dyn Ranks, processes: usize) -> Self {
        Self { ranks, processes }
    }

    /// Whether there is more than one rank.
    pub(super) fn is_shared(&self) -> bool {
        self.ranks.count() > 1
    }

    /// Whether this rank tells the recorder.
    pub(super) fn leads(&self) -> bool {
        self.ranks.number() == 0
    }

    /// This rank's processes.
    pub(super) fn own(&self) -> Range<usize> {
        let (rank, ranks) = (self.ranks.number(), self.ranks.count());
        rank * self.processes / ranks..(rank + 1) * self.processes / ranks
    }

    /// The rank that has a process.
    pub(super) fn rank(&self, process: ProcessIndex) -> usize {
        ((process.index() + 1) * self.ranks.count() - 1) / self.processes
    }

    /// A process's place among those of this rank.
    pub(super) fn place(&self, process: ProcessIndex) -> Option<usize> {
        let own = self.own();
        let index = process.index();
        own.contains(&index).then(|| index - own.start)
    }

    /// The end of a window: all ranks hear the news; mail goes to the processes of others, records to rank 0.
    ///
    /// # Errors
    /// As [`Ranks::exchange`].
    pub(super) fn window(
        &mut self,
        news: &News,
        mails: Vec<(ProcessIndex, Mail)>,
        records: &mut Vec<(Moment, Record)>,
    ) -> Result<Incoming, String> {
        let mut by_rank: Vec<Vec<(ProcessIndex, Mail)>> = Vec::new();
        by_rank.resize_with(self.ranks.count(), Vec::new);
        for (process, mail) in mails {
            by_rank[self.rank(process)].push((process, mail));
        }
        let said = encoded(Vec::new(), news)?;
        let letters = self.letters(|rank| {
            let letter = encoded(said.clone(), &by_rank[rank])?;
            if rank == 0 {
                encoded(letter, records)
            } else {
                Ok(letter)
            }
        })?;
        if !self.leads() {
            records.clear();
        }
        let mut incoming = Incoming::default();
        for letter in self.ranks.exchange(letters)? {
            if letter.is_empty() {
                continue;
            }
            let (news, rest) = decoded(&letter)?;
            let (mut mails, rest) = decoded(rest)?;
            incoming.news.push(news);
            incoming.mails.append(&mut mails);
            if self.leads() {
                let (mut records, _) = decoded(rest)?;
                incoming.records.append(&mut records);
            }
        }
        Ok(incoming)
    }

    /// After a window: what all ranks together expect.
    ///
    /// # Errors
    /// As [`Ranks::exchange`].
    pub(super) fn outlook(&mut self, own: Outlook) -> Result<Outlook, String> {
        if !self.is_shared() {
            return Ok(own);
        }
        let mut all = own;
        for other in self.tell_all::<Outlook>(&own)? {
            all.next = all.next.min(other.next);
            all.finished &= other.finished;
            all.cancelled |= other.cancelled;
            all.failed |= other.failed;
        }
        Ok(all)
    }

    /// A sample: rank 0 takes those of all.
    ///
    /// # Errors
    /// As [`Ranks::exchange`].
    pub(super) fn sample(&mut self, sums: &mut Sums) -> Result<(), String> {
        for mut others in self.tell_leader(sums)? {
            sums.add(&mut others);
        }
        Ok(())
    }

    /// The end: rank 0 takes what the others have left, by rank.
    ///
    /// # Errors
    /// As [`Ranks::exchange`].
    pub(super) fn rest(&mut self, rest: &Rest) -> Result<Vec<Rest>, String> {
        self.tell_leader(rest)
    }

    /// Gives rank 0 something, which takes it from all others.
    fn tell_leader<T: Serialize + DeserializeOwned>(&mut self, own: &T) -> Result<Vec<T>, String> {
        let letters = self.letters(|rank| match rank {
            0 => encoded(Vec::new(), own),
            _ => Ok(Vec::new()),
        })?;
        self.hear(letters)
    }

    /// Gives all others something and takes it from them.
    fn tell_all<T: Serialize + DeserializeOwned>(&mut self, own: &T) -> Result<Vec<T>, String> {
        let said = encoded(Vec::new(), own)?;
        let letters = self.letters(|_| Ok(said.clone()))?;
        self.hear(letters)
    }

    fn letters(
        &self,
        mut letter: impl FnMut(usize) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<Vec<u8>>, String> {
        let own = self.ranks.number();
        let ranks = 0..self.ranks.count();
        let letters = ranks.map(|rank| {
            if rank == own {
                Ok(Vec::new())
            } else {
                letter(rank)
            }
        });
        letters.collect()
    }

    fn hear<T: DeserializeOwned>(&mut self, letters: Vec<Vec<u8>>) -> Result<Vec<T>, String> {
        let letters = self.ranks.exchange(letters)?;
        let said = letters.iter().filter(|letter| !letter.is_empty());
        said.map(|letter| Ok(decoded(letter)?.0)).collect()
    }
}

/// A letter with something more in it.
fn encoded(letter: Vec<u8>, value: &impl Serialize) -> Result<Vec<u8>, String> {
    postcard::to_extend(value, letter).map_err(|error| error.to_string())
}

/// What comes next in a letter, and what follows.
fn decoded<T: DeserializeOwned>(letter: &[u8]) -> Result<(T, &[u8]), String> {
    postcard::take_from_bytes(letter).map_err(|error| {
        format!("a rank's letter cannot be read ({error}): do all run the same version of Raddle?")
    })
}
