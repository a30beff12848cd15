//! A run: windows of simulated time, and what happens between them.
//!
//! The fabric is cut into processes. What happens in one reaches another no earlier than one *window* later: the delay of a link and
//! the time of the shortest packet on it. So all processes run through a window on their own, on as many threads as there are. At
//! its end packets and PFC frames that crossed are carried over, reports are told in one order, and the rules for what concerns
//! the whole fabric are applied:
//!
//! - windows lie on a grid of the fabric's own, and end at samples and at changes of links, routes and tables besides;
//! - messages that start in a window are handed to their senders' processes at its beginning;
//! - the receiver of a flow knows it from the end of the window in which it began to the end of the one in which its sender is
//!   through with it;
//! - the receiver of a message over rails knows it from the end of the window in which it began;
//! - of a workload that waits for deliveries each process has a part, which hears at once what its hosts have; what other hosts
//!   wait for it hears at the window's end;
//! - the run is over, is cancelled or fails at the end of a window.
//!
//! None of this depends on the cut: one process with everything gives the same results.

use std::sync::{Mutex, MutexGuard, PoisonError};

use raddle_unicast::{LinkState, UnicastTables};
use raddle_units::{NodeId, Span, Time};
use raddle_workload::{Destination, Workload};

use super::{
    build::Built,
    crew::{Crew, Dismissal},
    cut::Cut,
    fault::Change,
    flow::FlowName,
    groups::{Ledger, Report},
    mail::Mail,
    process::{Process, Stop},
    records::{Moment, Record},
    sample::{Sampling, Wanted},
};
use crate::{
    index::{Place, ProcessIndex},
    record::{FlowRecord, MemberRecord, Progress, Recorder},
    setup::{Network, RunConfig, RunSummary, SetupError},
};

/// Events between two looks at progress, cancellation and output errors.
const CHECK_EVERY: u64 = 1 << 16;
/// Events of a window that are worth another thread.
const EVENTS_OF_THREAD: u64 = 256;

/// Runs a workload on a network to its end.
///
/// # Errors
/// [`SetupError`] when the settings do not fit the network (nothing has been simulated then), or a message to a group does
/// not fit the groups (the run ends there).
pub fn simulate(
    network: &Network,
    config: &RunConfig,
    workload: &mut dyn Workload,
    recorder: &mut dyn Recorder,
    progress: &Progress,
) -> Result<RunSummary, SetupError> {
    let built = Built::new(network, config, workload)?;
    let threads = config.threads.clamp(1, 1 << 10);
    let cut = if built.serial {
        Cut::whole(&network.fabric)
    } else {
        Cut::new(&network.fabric, config.partition, threads)
    };
    // Connections over rails keep asking each other whether they are there.
    let open_ended = workload.is_open_ended() || config.rails.is_some();
    let reacts = workload.has_dependencies();
    let (held, processes) = built.processes(&cut, workload)?;
    let helpers = threads.min(processes.len()) - 1;
    let mut run = Run {
        network,
        config,
        cut: &cut,
        serial: built.serial,
        window: built.window,
        helpers,
        open_ended,
        reacts,
        held,
        recorder,
        links: LinkState::all_up(&network.fabric),
        ledger: Ledger::default(),
        sampling: Sampling::new(config),
        changes: built.changes.clone(),
        changed: 0,
        done: Time::ZERO,
        now: Time::ZERO,
        due: vec![Time::NEVER; processes.len()],
        packets: vec![0; processes.len()],
        live: vec![0; processes.len()],
        events: vec![0; processes.len()],
        carried: 0,
        summary: RunSummary::default(),
        checked: 0,
        fault: None,
        scratch: Scratch::default(),
    };
    let crew = Crew::new(helpers);
    let window = Mutex::new((Time::ZERO, Time::ZERO));
    let processes: Vec<Mutex<Process<'_>>> = processes.into_iter().map(Mutex::new).collect();
    let job = |index: usize| {
        let (begin, end) = *locked(&window);
        locked(&processes[index]).run(begin, end, u64::MAX);
    };
    std::thread::scope(|scope| {
        for number in 0..helpers {
            let (crew, job) = (&crew, &job);
            scope.spawn(move || crew.help(number, job));
        }
        let _dismissal = Dismissal(&crew);
        run.go(&processes, progress, &mut |order, helpers, begin, end| {
            *locked(&window) = (begin, end);
            crew.run(order, helpers, job);
        });
    });
    match run.fault.take() {
        Some((_, fault)) => Err(fault),
        None => Ok(run.finish(&processes)),
    }
}

/// Runs these processes, in this order, with so many helpers, from a time up to another.
type Together<'t> = dyn FnMut(&[usize], usize, Time, Time) + 't;

type Processes<'p, 'a> = &'p [Mutex<Process<'a>>];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists that are filled and emptied between windows.
#[derive(Default)]
struct Scratch {
    records: Vec<(Moment, Record)>,
    /// What hosts have for which others wait; of a group: which member, or all.
    deliveries: Vec<(Moment, u64, Option<NodeId>)>,
    /// What members and senders say of messages to groups.
    reports: Vec<(Moment, FlowName, Report)>,
    /// Messages to groups that are over.
    ended: Vec<FlowName>,
    wanted: Vec<Wanted>,
    mails: Vec<(ProcessIndex, Mail)>,
    active: Vec<usize>,
}

/// See the module. Lists without another word are by process.
struct Run<'a> {
    network: &'a Network,
    config: &'a RunConfig,
    cut: &'a Cut,
    serial: bool,
    window: Span,
    /// Threads beside the leading one.
    helpers: usize,
    open_ended: bool,
    /// Deliveries may start messages.
    reacts: bool,
    /// The workload, where it waits for nothing but time.
    held: Option<&'a mut dyn Workload>,
    recorder: &'a mut dyn Recorder,
    links: LinkState,
    ledger: Ledger,
    sampling: Sampling,
    /// In order of time, and how many have happened.
    changes: Vec<Change>,
    changed: usize,
    /// Everything before this time has happened.
    done: Time,
    /// When something happened last.
    now: Time,
    /// When the next event is due, mail included.
    due: Vec<Time>,
    /// Packets under way, those in mail included.
    packets: Vec<u64>,
    live: Vec<i64>,
    events: Vec<u64>,
    /// Packets in the mail of the last window.
    carried: u64,
    /// What no process counts.
    summary: RunSummary,
    /// Events at the last look at progress.
    checked: u64,
    fault: Option<(Moment, SetupError)>,
    scratch: Scratch,
}

impl<'a> Run<'a> {
    fn go(
        &mut self,
        processes: Processes<'_, 'a>,
        progress: &Progress,
        together: &mut Together<'_>,
    ) {
        if self.config.record_paths {
            locked(&processes[0]).record_reduction_ways();
        }
        self.scratch.active = (0..processes.len()).collect();
        self.close(processes);
        loop {
            let next = self.next();
            if next == Time::NEVER {
                break;
            }
            let end = self.config.end.unwrap_or(Time::NEVER);
            if next >= self.sampling.next.min(end)
                && !self.pass_checkpoint(processes, next, end, progress)
            {
                break;
            }
            if self.next_change() == next {
                self.change(processes, next);
                if self.fault.is_some() || self.is_over(processes) {
                    break;
                }
                continue;
            }
            let stop = self.next_change().min(self.sampling.next).min(end);
            let end = self.grid_end(next).min(stop);
            self.hand_out(processes, end);
            let goes_on = if self.serial {
                self.run_alone(processes, end, progress)
            } else {
                self.run_window(processes, end, together);
                !self.is_over(processes) && self.look(processes, progress)
            };
            if self.fault.is_some() || !goes_on {
                break;
            }
        }
        self.tell_progress(processes, self.now, progress);
    }

    /// When something happens next, changes included.
    fn next(&self) -> Time {
        let events = self.due.iter().copied().min().unwrap_or(Time::NEVER);
        let start = self.held.as_ref().and_then(|held| held.next_start());
        let start = start.map_or(Time::NEVER, |start| start.max(self.done));
        events.min(start).min(self.next_change())
    }

    fn next_change(&self) -> Time {
        let next = self.changes.get(self.changed);
        next.map_or(Time::NEVER, |change| change.at())
    }

    /// The end of the window that `time` lies in.
    fn grid_end(&self, time: Time) -> Time {
        if self.window == Span(u64::MAX) {
            return Time::NEVER;
        }
        Time((time.0 / self.window.0 + 1).saturating_mul(self.window.0))
    }

    /// A sample or the end of the run is due before `next`. False: the run ends here.
    fn pass_checkpoint(
        &mut self,
        processes: Processes<'_, 'a>,
        next: Time,
        end: Time,
        progress: &Progress,
    ) -> bool {
        let sampled = self.sample_until(processes, next.min(end), progress);
        if sampled && next >= end {
            self.now = end;
        }
        sampled && next < end
    }

    /// Takes all samples that are due up to `until`, with the state as it is now; false: the run is to stop meanwhile. (At low
    /// rates there are millions of samples between two events.)
    fn sample_until(
        &mut self,
        processes: Processes<'_, 'a>,
        until: Time,
        progress: &Progress,
    ) -> bool {
        /// Samples between two looks at progress, cancellation and output errors.
        const CHECK_EVERY: u64 = 1 << 10;
        let mut taken = 0u64;
        while self.sampling.next <= until {
            let time = self.sampling.next;
            self.sample(processes, time);
            taken += 1;
            if taken.is_multiple_of(CHECK_EVERY) && !self.goes_on(processes, time, progress) {
                self.now = time;
                return false;
            }
            self.sampling.next += self.sampling.interval;
        }
        true
    }

    fn sample(&mut self, processes: Processes<'_, 'a>, time: Time) {
        for process in processes {
            let process = &mut *locked(process);
            self.sampling.add(&mut process.base);
        }
        self.sampling.tell(time, self.recorder);
    }

    /// Hands the messages that start before `end` to their senders' processes.
    fn hand_out(&mut self, processes: Processes<'_, 'a>, end: Time) {
        let Some(held) = &mut self.held else {
            return;
        };
        while held.next_start().is_some_and(|start| start < end) {
            let Some(mut message) = held.pop() else {
                continue;
            };
            message.start = message.start.max(self.done);
            let index = self.cut.process(message.src).index();
            self.due[index] = self.due[index].min(message.start);
            locked(&processes[index]).base.traffic.hand_out(message);
        }
    }

    /// Runs the only process up to `end`; false: the run ends there.
    fn run_alone(&mut self, processes: Processes<'_, 'a>, end: Time, progress: &Progress) -> bool {
        loop {
            let stop = locked(&processes[0]).run(self.done, end, CHECK_EVERY);
            self.scratch.active = vec![0];
            self.close(processes);
            match stop {
                Stop::Window => {
                    self.done = end;
                    return true;
                }
                Stop::Over => return false,
                Stop::Budget => {
                    if self.fault.is_some() || !self.goes_on(processes, self.now, progress) {
                        return false;
                    }
                }
            }
        }
    }

    fn run_window(&mut self, processes: Processes<'_, 'a>, end: Time, together: &mut Together<'_>) {
        let mut active = std::mem::take(&mut self.scratch.active);
        active.clear();
        active.extend((0..processes.len()).filter(|&index| self.due[index] < end));
        let cost: u64 = active.iter().map(|&index| self.events[index]).sum();
        let worth = usize::try_from(cost / EVENTS_OF_THREAD).unwrap_or(usize::MAX);
        let helpers = worth.min(active.len().saturating_sub(1)).min(self.helpers);
        if self.config.effort.is_some() {
            active.sort_by_key(|&index| std::cmp::Reverse(self.events[index]));
        }
        if helpers == 0 {
            for &index in &active {
                locked(&processes[index]).run(self.done, end, u64::MAX);
            }
        } else {
            active.sort_by_key(|&index| std::cmp::Reverse(self.events[index]));
            together(&active, helpers, self.done, end);
        }
        self.scratch.active = active;
        self.done = end;
        self.close(processes);
        if let Some(effort) = &self.config.effort {
            let active = self.scratch.active.iter();
            let order: Vec<u64> = active.map(|&index| self.events[index]).collect();
            locked(effort).window(&order, self.carried);
        }
    }

    /// Between windows: carries mail, tells reports and deliveries, counts.
    fn close(&mut self, processes: Processes<'_, 'a>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for &index in &scratch.active {
            let process = &mut *locked(&processes[index]);
            if self.serial {
                process.base.cx.records.tell(self.recorder);
            }
            let event = process.close_window(&mut scratch.mails);
            self.due[index] = event.min(process.base.traffic.next_after(self.done));
            let base = &mut process.base;
            base.cx.records.take_placed(&mut scratch.records);
            let deliveries = base.deliveries();
            scratch
                .deliveries
                .extend(deliveries.map(|(moment, tag)| (moment, tag, None)));
            let ends = &base.wires.ends;
            let reports = process.groups.reports.drain(..);
            scratch
                .reports
                .extend(reports.map(|(time, key, node, name, report)| {
                    (Moment::new(time, key, node, ends), name, report)
                }));
            scratch.ended.append(&mut process.groups.ended);
            for name in scratch.ended.iter().filter(|_| self.serial) {
                process.groups.ledger.end(*name);
            }
            scratch.wanted.append(&mut base.sampler.wanted);
            if let Some(fault) = base.fault()
                && self.fault.as_ref().is_none_or(|known| fault.0 < known.0)
            {
                self.fault = Some(fault);
            }
            self.now = self.now.max(base.cx.now);
            self.packets[index] = base.wires.packets.count();
            self.live[index] = base.hosts.live;
            self.events[index] = process.cost;
        }
        self.carried = 0;
        for (process, mail) in scratch.mails.drain(..) {
            let index = process.index();
            self.carried += mail.packets.len() as u64;
            self.packets[index] += mail.packets.len() as u64;
            self.due[index] = mail
                .earliest
                .map_or(self.due[index], |at| self.due[index].min(at));
            locked(&processes[index]).inbox.push(mail);
        }
        let packets = self.packets.iter().sum();
        self.summary.most_packets = self.summary.most_packets.max(packets);
        scratch.records.sort_by_key(|(moment, _)| *moment);
        for (_, record) in scratch.records.drain(..) {
            record.tell(self.recorder);
        }
        self.enter(processes, &mut scratch);
        self.hear(processes, &mut scratch.deliveries);
        self.watch(processes, &mut scratch.wanted);
        self.scratch = scratch;
    }

    /// The ledger takes in what members and senders say of messages to groups, in one order.
    fn enter(&mut self, processes: Processes<'_, 'a>, scratch: &mut Scratch) {
        scratch.reports.sort_by_key(|(moment, ..)| *moment);
        for (moment, name, report) in scratch.reports.drain(..) {
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
                scratch.deliveries.push((moment, tag, Some(member)));
            }
            if hears && closed.all {
                scratch.deliveries.push((moment, tag, None));
            }
        }
        for name in scratch.ended.drain(..) {
            self.ledger.end(name);
        }
    }

    /// The workload hears of deliveries, in one order.
    fn hear(
        &mut self,
        processes: Processes<'_, 'a>,
        deliveries: &mut Vec<(Moment, u64, Option<NodeId>)>,
    ) {
        if deliveries.is_empty() {
            return;
        }
        deliveries.sort_by_key(|(moment, ..)| *moment);
        for &(moment, tag, member) in &*deliveries {
            let only = locked(&processes[0]).base.traffic.news_for(tag);
            let hear = match only.map(|host| self.cut.process(host).index()) {
                Some(index) => index..index + 1,
                None => 0..processes.len(),
            };
            for index in hear {
                let traffic = &mut locked(&processes[index]).base.traffic;
                traffic.hear(moment.time, tag, member);
                self.due[index] = self.due[index].min(traffic.next_after(self.done));
            }
        }
        deliveries.clear();
    }

    /// Gives places in the list of watched flows to the first that want one.
    fn watch(&mut self, processes: Processes<'_, 'a>, wanted: &mut Vec<Wanted>) {
        wanted.sort_by_key(Wanted::order);
        for flow in wanted.drain(..) {
            let Some(place) = self.sampling.watch(&flow) else {
                continue;
            };
            for process in processes {
                locked(process).base.sampler.watched.push(0);
            }
            // A group has members anywhere.
            let receivers = match flow.dst.host() {
                Some(dst) => {
                    let index = self.cut.process(dst).index();
                    &processes[index..=index]
                }
                None => processes,
            };
            for process in receivers {
                locked(process).watch.push((flow.name, place));
            }
        }
    }

    /// Whether no message will ever start again and nothing waits that could change the results.
    fn is_over(&self, processes: Processes<'_, 'a>) -> bool {
        if self.live.iter().sum::<i64>() != 0 {
            return false;
        }
        // What is left in the queues (last acknowledgements, RESUME frames) may still be recorded; only link changes can go on for
        // long after the traffic has ended.
        let only_changes = !self.changes.is_empty() && self.packets.iter().sum::<u64>() == 0;
        if !self.open_ended && !only_changes {
            return false;
        }
        match &self.held {
            Some(held) => held.finished(),
            None => processes
                .iter()
                .all(|process| locked(process).base.traffic.finished()),
        }
    }

    /// Looks at progress from time to time; false: the run is to stop.
    fn look(&mut self, processes: Processes<'_, 'a>, progress: &Progress) -> bool {
        self.checked += self
            .scratch
            .active
            .iter()
            .map(|&index| self.events[index])
            .sum::<u64>();
        if self.checked < CHECK_EVERY {
            return true;
        }
        self.checked = 0;
        self.goes_on(processes, self.now, progress)
    }

    /// Tells how far the run is; false: someone wants it to stop here.
    fn goes_on(&mut self, processes: Processes<'_, 'a>, now: Time, progress: &Progress) -> bool {
        self.tell_progress(processes, now, progress);
        self.summary.cancelled = progress.is_cancelled();
        !self.summary.cancelled && !self.recorder.failed()
    }

    fn tell_progress(&self, processes: Processes<'_, 'a>, now: Time, progress: &Progress) {
        let (mut hops, mut flows) = (0, 0);
        for process in processes {
            let summary = &locked(process).base.cx.summary;
            hops += summary.packet_hops;
            flows += summary.flows_finished;
        }
        progress.update(now, hops, flows);
    }

    /// The changes that are due at `time`.
    fn change(&mut self, processes: Processes<'_, 'a>, time: Time) {
        self.done = time;
        for process in processes {
            locked(process).begin_change(time);
        }
        while let Some(&change) = self.changes.get(self.changed)
            && change.at() == time
        {
            self.changed += 1;
            self.summary.events += 1;
            let before: Vec<_> = if change.moves() && self.config.record_paths {
                processes
                    .iter()
                    .map(|process| locked(process).ways())
                    .collect()
            } else {
                Vec::new()
            };
            self.apply(processes, change);
            for (process, before) in processes.iter().zip(&before) {
                locked(process).record_new_ways(before);
            }
        }
        self.scratch.active = (0..processes.len()).collect();
        self.close(processes);
    }

    fn apply(&mut self, processes: Processes<'_, 'a>, change: Change) {
        let fabric = &*self.network.fabric;
        match change {
            Change::Down(_, link) | Change::Up(_, link) => {
                let up = matches!(change, Change::Up(..));
                self.links.set(link, up);
                for port in fabric.link(link).ports {
                    let process = self.cut.process(fabric.port(port).node);
                    let port = self.cut.port(fabric, port);
                    let process = &mut *locked(&processes[process.index()]);
                    if up {
                        process.restore(port)
                    } else {
                        process.fail(port)
                    }
                }
            }
            Change::Multicast(_, update) => {
                for process in processes {
                    let process = &mut *locked(process);
                    process.groups.update(&mut process.base, update);
                }
            }
            Change::Reroute(_) => {
                let rules = self.network.semantics.next_hops;
                // The same fabric had tables before: only the set of links differs, so this cannot fail.
                if let Ok(tables) = UnicastTables::compute(fabric, &self.links, rules) {
                    let tables = std::sync::Arc::new(tables);
                    for process in processes {
                        locked(process).reroute(&tables);
                    }
                }
            }
        }
    }

    /// The last, partial interval; pauses and flows that have not ended; port counters.
    fn finish(mut self, processes: Processes<'_, 'a>) -> RunSummary {
        for process in processes {
            locked(process).take_in_mail();
        }
        if self.sampling.next != Time::NEVER && self.now.0 > 0 {
            self.sample(processes, self.now);
        }
        let mut pauses = Vec::new();
        let mut flows = Vec::new();
        let mut undelivered = Vec::new();
        for process in processes {
            let process = &mut *locked(process);
            process.base.end_pauses(self.now, &mut pauses);
            process.base.open_flows(&mut flows);
            if self.serial {
                std::mem::swap(&mut self.ledger, &mut process.groups.ledger);
            }
            process.rails.undelivered(&process.base, &mut undelivered);
        }
        pauses.sort_by_key(|pause| (pause.node, pause.port));
        for pause in &pauses {
            self.recorder.pause(pause);
        }
        flows.sort_by_key(|(_, flow): &(_, FlowRecord)| {
            (flow.start, flow.src, flow.dst, flow.sport)
        });
        for (name, flow) in &flows {
            if let (Destination::Group(group), Some(plan)) = (flow.dst, &self.config.multicast) {
                let members = &plan.groups[group.0 as usize].members;
                for record in self.ledger.missing(*name, members) {
                    self.recorder.member(&record);
                    self.summary.count_member(&record);
                }
            }
            self.recorder.flow(flow);
        }
        undelivered.sort_by_key(|flow| (flow.start, flow.src, flow.dst, flow.tag));
        for flow in &undelivered {
            self.recorder.flow(flow);
        }
        let mut summary = self.summary;
        let fabric = &*self.network.fabric;
        let nodes = (0..fabric.node_count() as u32).map(NodeId);
        for node in nodes {
            let process = &mut *locked(&processes[self.cut.process(node).index()]);
            process.base.record_ports(node, self.recorder);
        }
        for process in processes {
            summary.add(&locked(process).totals());
        }
        summary.end_ps = self.now.0;
        summary
    }
}
