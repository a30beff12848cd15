//! Between two windows one thread has everything to itself: mail is carried, reports are told, the workload hears, and ranks
//! exchange their letters.

use std::sync::Mutex;

use raddle_units::{NodeId, Time};

use super::{
    exchange::{Incoming, News, Outlook},
    mail::{Mail, Store},
    process::Process,
    records::{Moment, Record},
    windows::{Processes, Run, locked},
};
use crate::{index::ProcessIndex, record::MemberRecord, setup::SetupError};

/// Lists that are filled and emptied between windows.
#[derive(Default)]
pub(super) struct Scratch {
    /// Processes that have something to do in a window, by their places.
    pub(super) active: Vec<usize>,
    records: Vec<(Moment, Record)>,
    mails: Vec<(ProcessIndex, Mail)>,
    store: Store,
    /// Of this rank, then of all.
    news: News,
}

impl<'a> Run<'a> {
    /// Carries mail, tells reports and deliveries, counts.
    pub(super) fn close(&mut self, processes: Processes<'_, 'a>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let news = &mut scratch.news;
        (news.packets, news.events) = (0, 0);
        for &place in &scratch.active {
            let process = &mut *locked(&processes[place]);
            if self.serial {
                process.base.cx.records.tell(self.recorder);
            }
            process.close_window(&mut scratch.mails);
            process.base.cx.post.level(&mut scratch.store);
            self.due[place] = process.next_due(self.done);
            let base = &mut process.base;
            base.cx.records.take_placed(&mut scratch.records);
            let deliveries = base.deliveries();
            news.deliveries
                .extend(deliveries.map(|(moment, tag)| (moment, tag, None)));
            let ends = &base.wires.ends;
            let reports = process.groups.reports.drain(..);
            news.reports
                .extend(reports.map(|(time, key, node, name, report)| {
                    (Moment::new(time, key, node, ends), name, report)
                }));
            news.ended.append(&mut process.groups.ended);
            for name in news.ended.iter().filter(|_| self.serial) {
                process.groups.ledger.end(*name);
            }
            news.wanted.append(&mut base.sampler.wanted);
            if let Some((moment, fault)) = base.fault() {
                self.fail(moment, fault);
            }
            self.now = self.now.max(base.cx.now);
            self.packets[place] = base.wires.packets.count() as u64;
            self.live[place] = base.hosts.live;
            self.events[place] = process.cost;
            news.events += process.cost;
        }
        self.carry(processes, &mut scratch);
        let news = &mut scratch.news;
        self.summary.most_packets = self.summary.most_packets.max(news.packets);
        (self.all_packets, self.all_live, self.all_events) = (news.packets, news.live, news.events);
        scratch.records.sort_by_key(|(moment, _)| *moment);
        for (_, record) in scratch.records.drain(..) {
            record.tell(self.recorder);
        }
        self.enter(processes, news);
        self.hear(processes, news);
        self.watch(processes, news);
        self.scratch = scratch;
        self.look_out(processes, false);
    }

    /// The run is to end; of several reasons the first in the order of the run counts.
    pub(super) fn fail(&mut self, moment: Moment, fault: SetupError) {
        if self.fault.as_ref().is_none_or(|known| moment < known.0) {
            self.fault = Some((moment, fault));
        }
    }

    /// Another rank cannot be reached.
    pub(super) fn fail_apart(&mut self, problem: String) {
        self.fail(Moment::at(Time::ZERO), SetupError::Rank { problem });
    }

    /// Brings mail to its processes, and the news of other ranks to this one.
    fn carry(&mut self, processes: Processes<'_, 'a>, scratch: &mut Scratch) {
        let news = &mut scratch.news;
        let mut away = Vec::new();
        self.carried = 0;
        scratch.store.trim(scratch.mails.len());
        for (process, mail) in scratch.mails.drain(..) {
            self.carried += mail.packets() as u64;
            match self.exchange.place(process) {
                Some(place) => self.deliver(&processes[place], place, mail),
                None => {
                    news.packets += mail.packets() as u64;
                    away.push((process, mail));
                }
            }
        }
        news.packets += self.packets.iter().sum::<u64>();
        news.live = self.live.iter().sum();
        if !self.exchange.is_shared() {
            return;
        }
        news.now = self.now;
        news.done = self.done_here(processes);
        news.fault = self
            .fault
            .as_ref()
            .map(|(moment, fault)| (*moment, fault.to_string()));
        match self.exchange.window(news, away, &mut scratch.records) {
            Ok(incoming) => self.take_in(processes, scratch, incoming),
            Err(problem) => self.fail_apart(problem),
        }
    }

    fn deliver(&mut self, process: &Mutex<Process<'_>>, place: usize, mail: Mail) {
        self.packets[place] += mail.packets() as u64;
        let due = &mut self.due[place];
        *due = mail.earliest.map_or(*due, |at| at.min(*due));
        locked(process).inbox.push(mail);
    }

    /// What other ranks have sent.
    fn take_in(&mut self, processes: Processes<'_, 'a>, scratch: &mut Scratch, incoming: Incoming) {
        for (process, mail) in incoming.mails {
            if let Some(place) = self.exchange.place(process) {
                self.deliver(&processes[place], place, mail);
            }
        }
        let mut records = incoming.records;
        scratch.records.append(&mut records);
        self.done_elsewhere = (0, 0);
        let news = &mut scratch.news;
        for mut other in incoming.news {
            self.now = self.now.max(other.now);
            news.packets += other.packets;
            news.live += other.live;
            news.events += other.events;
            self.done_elsewhere.0 += other.done.0;
            self.done_elsewhere.1 += other.done.1;
            news.deliveries.append(&mut other.deliveries);
            news.reports.append(&mut other.reports);
            news.ended.append(&mut other.ended);
            news.wanted.append(&mut other.wanted);
            if let Some((moment, problem)) = other.fault {
                self.fail(moment, SetupError::Elsewhere { problem });
            }
        }
    }

    /// What all ranks expect now; where asked for, also whether someone wants the run to stop, which may take its time to say.
    pub(super) fn look_out(&mut self, processes: Processes<'_, 'a>, ask: bool) {
        if self.fault.is_some() {
            return;
        }
        let finished = self.all_live == 0
            && match &self.held {
                Some(held) => held.finished(),
                None => processes
                    .iter()
                    .all(|process| locked(process).base.traffic.finished()),
            };
        let own = Outlook {
            next: self.due.iter().copied().min().unwrap_or(Time::NEVER),
            finished,
            cancelled: ask && self.progress.is_cancelled(),
            failed: ask && self.recorder.failed(),
        };
        match self.exchange.outlook(own) {
            Ok(all) => self.outlook = all,
            Err(problem) => self.fail_apart(problem),
        }
    }

    /// The ledger takes in what members and senders say of messages to groups, in one order.
    fn enter(&mut self, processes: Processes<'_, 'a>, news: &mut News) {
        news.reports.sort_by_key(|(moment, ..)| *moment);
        for (moment, name, report) in news.reports.drain(..) {
            let Some(closed) = self.ledger.enter(moment.time, name, report) else {
                continue;
            };
            self.recorder.member(&closed.record);
            self.summary.count_member(&closed.record);
            let MemberRecord { tag, member, .. } = closed.record;
            if closed.record.delivered.is_none() || !self.reacts {
                continue;
            }
            let hears = locked(&processes[0]).base.traffic.is_news(tag);
            if hears {
                news.deliveries.push((moment, tag, Some(member)));
            }
            if hears && closed.all {
                news.deliveries.push((moment, tag, None));
            }
        }
        for name in news.ended.drain(..) {
            self.ledger.end(name);
        }
    }

    /// The workload hears of deliveries, in one order.
    fn hear(&mut self, processes: Processes<'_, 'a>, news: &mut News) {
        let deliveries: &mut Vec<(Moment, u64, Option<NodeId>)> = &mut news.deliveries;
        deliveries.sort_by_key(|(moment, ..)| *moment);
        for (moment, tag, member) in deliveries.drain(..) {
            let only = locked(&processes[0]).base.traffic.news_for(tag);
            let hear = match only.map(|host| self.exchange.place(self.cut.process(host))) {
                Some(Some(place)) => place..place + 1,
                Some(None) => continue,
                None => 0..processes.len(),
            };
            for place in hear {
                let traffic = &mut locked(&processes[place]).base.traffic;
                traffic.hear(moment.time, tag, member);
                self.due[place] = self.due[place].min(traffic.next_after(self.done));
            }
        }
    }

    /// Gives places in the list of watched flows to the first that want one.
    fn watch(&mut self, processes: Processes<'_, 'a>, news: &mut News) {
        let wanted = &mut news.wanted;
        wanted.sort_by_key(super::sample::Wanted::order);
        for flow in wanted.drain(..) {
            let Some(place) = self.sampling.watch(&flow) else {
                continue;
            };
            if self.serial {
                // The flow's process has given it the place already.
                continue;
            }
            for process in processes {
                locked(process).base.sampler.watched.push(0);
            }
            // A group has members anywhere.
            let receivers = match flow.dst.host() {
                Some(dst) => match self.exchange.place(self.cut.process(dst)) {
                    Some(index) => &processes[index..=index],
                    None => &[],
                },
                None => processes,
            };
            for process in receivers {
                locked(process).watch.push((flow.name, place));
            }
        }
    }
}
