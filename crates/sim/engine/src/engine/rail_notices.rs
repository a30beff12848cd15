//! Messages over rails at the hosts that they are for: announced, delivered, given up.
//!
//! A host knows of a message from the end of the window in which it began; no packet of it comes before. There, too, it learns
//! that a sender has given up: what it has by then is delivered, whatever the sender knows.

use std::collections::VecDeque;

use raddle_units::{NodeId, Span, Time};
use raddle_workload::Message;
use serde::{Deserialize, Serialize};

use super::{
    context::Context,
    process::Base,
    rails::RailHosts,
    records::Record,
    what::{Kind, What},
};
use crate::{index::HalfIndex, record::FlowRecord, setup::SetupError};

/// What a host is to know of what another one sends it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Notice {
    /// When it knows.
    pub(super) at: Time,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    /// A message that has begun; `None`: the sender has given up all that did not come.
    pub(super) message: Option<Message>,
}

impl RailHosts<'_> {
    /// Lets a host know of a message, or that its sender has given up.
    pub(super) fn notify(
        &mut self,
        base: &mut Base<'_>,
        from: NodeId,
        to: NodeId,
        message: Option<Message>,
    ) {
        let notice = Notice {
            at: base.cx.window_end,
            from,
            to,
            message,
        };
        let there = base.cx.cut.process(to);
        if base.cx.serial {
            self.take_notice(base, &notice);
        } else if there == base.cx.own {
            self.expect_notice(&mut base.cx, notice);
        } else {
            base.cx.post.notice(there, notice);
        }
    }

    /// Keeps what a host of this process is to know until it is due.
    pub(super) fn expect_notice(&mut self, cx: &mut Context<'_>, notice: Notice) {
        let Notice { at, to, .. } = notice;
        let notices = &mut self.hosts[cx.cut.place(to)].notices;
        if notices.last().is_none_or(|last| last.at != at) {
            let place = (Kind::Noticed, cx.cut.first_port(to), 0);
            cx.schedule(at, place, What::Noticed(to));
        }
        notices.push(notice);
    }

    /// A host takes in what it is to know by now: of each sender in order, of the sender with the lowest number first.
    pub(super) fn noticed(&mut self, base: &mut Base<'_>, host: NodeId) {
        let now = base.cx.now;
        let notices = &mut self.hosts[base.cx.cut.place(host)].notices;
        let due = notices.partition_point(|notice| notice.at <= now);
        let mut due: Vec<Notice> = notices.drain(..due).collect();
        due.sort_by_key(|notice| notice.from);
        for notice in &due {
            self.take_notice(base, notice);
        }
    }

    fn take_notice(&mut self, base: &mut Base<'_>, notice: &Notice) {
        let Notice { from, to, .. } = *notice;
        let Some(message) = notice.message else {
            return self.given_up(base, from, to);
        };
        if let Err(problem) = self.expect(base, from, to, &message) {
            base.cx.stop(SetupError::RailMessage {
                tag: message.tag,
                src: from,
                dst: to,
                problem,
            });
        }
    }

    /// A message is on its way: there is a half with an open port for it.
    fn expect(
        &mut self,
        base: &mut Base<'_>,
        from: NodeId,
        to: NodeId,
        message: &Message,
    ) -> Result<(), String> {
        let Some(rails) = self.plan else {
            return Ok(());
        };
        let half = self.connect(base, rails, to, from)?;
        let port = usize::from(message.class);
        let announced = &mut self.halves[half].announced;
        if announced.len() <= port {
            announced.resize_with(port + 1, VecDeque::new);
        }
        announced[port].push_back(*message);
        if self.open(half, message.class, rails.buffers)? {
            self.drain(base, half);
        }
        Ok(())
    }

    /// A half has a whole message for one of its ports.
    pub(super) fn received(&mut self, base: &mut Base<'_>, half: HalfIndex, port: u16) {
        let host = self.halves[half].host;
        let announced = self.halves[half].announced.get_mut(usize::from(port));
        // One whose sender has given up is not awaited.
        let Some(message) = announced.and_then(VecDeque::pop_front) else {
            return;
        };
        base.hosts.live -= 1;
        base.cx.summary.flows_finished += 1;
        let fct = base.cx.now.since(message.start);
        record(base, &message, Some(fct));
        if base.traffic.reacts() {
            base.traffic.delivered(&base.cx, host, message.tag);
            base.traffic.schedule_start(&mut base.cx);
        }
    }

    fn given_up(&mut self, base: &mut Base<'_>, from: NodeId, to: NodeId) {
        let Some(half) = self.half(to, from) else {
            return;
        };
        for line in std::mem::take(&mut self.halves[half].announced) {
            for message in line {
                base.hosts.live -= 1;
                record(base, &message, None);
            }
        }
    }

    /// At the end: appends the messages to hosts of this process that have not been delivered.
    pub(super) fn undelivered(&self, base: &Base<'_>, found: &mut Vec<FlowRecord>) {
        let announced = self.halves.iter().flat_map(|half| &half.announced);
        let noticed = self.hosts.iter().flat_map(|host| &host.notices);
        let messages = announced
            .flatten()
            .chain(noticed.filter_map(|notice| notice.message.as_ref()));
        found.extend(messages.map(|message| record_of(base, message, None)));
    }
}

/// Records what became of a message.
pub(super) fn record(base: &mut Base<'_>, message: &Message, fct: Option<Span>) {
    let record = record_of(base, message, fct);
    base.cx.record(message.src, Record::Flow(record));
}

fn record_of(base: &Base<'_>, message: &Message, fct: Option<Span>) -> FlowRecord {
    let Message { src, dst, size, .. } = *message;
    let ideal_fct = dst
        .host()
        .map_or(Span::ZERO, |dst| base.ideal_fct(src, dst, size));
    FlowRecord {
        src,
        dst,
        sport: message.class.into(),
        size,
        start: message.start,
        fct,
        ideal_fct,
        class: message.class,
        tag: message.tag,
    }
}
