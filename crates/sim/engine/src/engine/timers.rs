//! Timers of flows: those of congestion control, and of retransmission.

use raddle_units::{BitRate, Bytes, Time};

use super::{
    process::Base,
    what::{Kind, What},
};
use crate::index::FlowSlot;

/// What a retransmission timer has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outlook {
    /// The flow goes on.
    GoesOn,
    /// It has waited long enough.
    GivesUp,
}

impl Base<'_> {
    /// Takes over what congestion control decided: rate, window, timers.
    pub(super) fn apply_control(&mut self, index: FlowSlot) {
        let cx = &self.cx;
        let flow = &mut self.hosts.flows[index];
        let rate = flow.control.rate();
        if rate != flow.rate {
            let before = std::mem::replace(&mut flow.rate, rate);
            if cx.signals.reprice_pacing {
                let time = |rate| {
                    let bytes = Bytes(u64::from(flow.last_bytes));
                    cx.semantics.timing.transmission_time(bytes, BitRate(rate))
                };
                let paid = flow.next_send + time(rate);
                flow.next_send = Time(paid.0.saturating_sub(time(before).0));
                let (nic_index, next_send) = (flow.nic, flow.next_send);
                let wake_at = self.hosts.nics[nic_index].wake_at;
                if wake_at != Time::NEVER && next_send < wake_at {
                    self.schedule_wake(nic_index, next_send.max(self.cx.now));
                }
            }
        }
        let flow = &mut self.hosts.flows[index];
        flow.window = flow.control.window(&self.cx.config.scheme, &self.cx.limits);
        let changed = flow.timers.take_changed();
        if changed != 0 {
            self.schedule_timers(index, changed);
        }
    }

    #[cold]
    fn schedule_timers(&mut self, index: FlowSlot, changed: u8) {
        let flow = &self.hosts.flows[index];
        let port = self.cx.first_port(flow.src);
        for number in (0..8u8).filter(|number| changed >> number & 1 == 1) {
            let due = flow.timers.due(usize::from(number));
            if due == Time::NEVER {
                continue;
            }
            let sequence = u32::from(number) << 20 | (flow.number & 0xf_ffff);
            let what = What::Timer(number, index, flow.generation);
            self.cx.schedule(due, (Kind::Timer, port, sequence), what);
        }
    }

    pub(super) fn control_timer(&mut self, index: FlowSlot, number: u8) {
        let (cx, number) = (&self.cx, usize::from(number));
        let flow = &mut self.hosts.flows[index];
        flow.timers.cancel(number);
        let parameters = &cx.config.scheme;
        flow.control
            .on_timer(cx.now, number, parameters, &cx.limits, &mut flow.timers);
        self.apply_control(index);
    }

    /// The retransmission timer: it runs lazily, towards a deadline that progress moves on. `patience`: timeouts in a row that
    /// the sender bears.
    pub(super) fn retransmission_timer(&mut self, index: FlowSlot, patience: u32) -> Outlook {
        let cx = &mut self.cx;
        let flow = &mut self.hosts.flows[index];
        if !flow.live || flow.timer_at != cx.now {
            return Outlook::GoesOn;
        }
        if cx.now < flow.deadline {
            let deadline = flow.deadline;
            self.push_timeout(deadline, index);
            return Outlook::GoesOn;
        }
        let waits = flow.sender.in_flight() > 0;
        let nic = &self.hosts.nics[flow.nic];
        // A flow that cannot even send, behind a failed link or a pause, gives up too: else the run never ended.
        if waits || nic.paused != 0 || !self.wires.ends[nic.port].up {
            if u32::from(flow.timeouts) >= patience {
                return Outlook::GivesUp;
            }
            flow.timeouts += 1;
        }
        if waits {
            cx.summary.timeouts += 1;
            flow.sender.on_timeout();
            flow.next_send = cx.now;
            flow.control
                .on_timeout(cx.now, &cx.config.scheme, &cx.limits);
        }
        // Exponential backoff while nothing comes back.
        let backoff = 1u64 << flow.timeouts.min(6);
        flow.deadline = cx.now + cx.config.retransmission_timeout * backoff;
        let (deadline, nic) = (flow.deadline, flow.nic);
        self.push_timeout(deadline, index);
        self.apply_control(index);
        self.nic_transmit(nic);
        Outlook::GoesOn
    }
}
