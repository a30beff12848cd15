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
//!
//! What happens between windows is in `between.rs`, changes of the fabric in `fault.rs`, the end in `ending.rs`. Where several
//! ranks share a run, each has some of the processes and does between windows what all do, so that all know what is next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_unicast::LinkState;
use raddle_units::{Span, Time};
use raddle_workload::Workload;

use super::{
    between::Scratch,
    build::{Built, one_thread},
    crew::{Crew, Dismissal},
    cut::Cut,
    exchange::{Exchange, Outlook},
    fault::Change,
    groups::Ledger,
    process::{Process, Stop},
    records::Moment,
    sample::Sampling,
};
use crate::{
    packet::Packet,
    packets::PacketMemory,
    ranks::{Alone, Ranks},
    record::{Discard, Progress, Recorder},
    setup::{Network, RunConfig, RunSummary, SetupError},
};

/// Events between two looks at progress, cancellation and output errors.
const CHECK_EVERY: u64 = 1 << 16;
/// Events of a window that are worth another thread.
const EVENTS_OF_THREAD: u64 = 256;
/// Events that a message which starts in a window is likely to have in it.
const EVENTS_OF_MESSAGE: u64 = 16;
/// Ports of the fabric that are worth another thread in a sample.
const PORTS_OF_THREAD: usize = 1 << 12;

/// What threads do together.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Run processes from a time up to another.
    Window(Time, Time),
    /// Look at each process's part of the fabric.
    Sample,
}

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
    simulate_in_ranks(network, config, workload, recorder, progress, &mut Alone)
}

/// Runs a workload together with other ranks, all of which call this with equal networks, settings (threads included) and
/// workloads. Only rank 0 tells its `recorder`, and only its summary is the run's.
///
/// # Errors
/// As [`simulate`], at all ranks; [`SetupError::Undivided`] where a run cannot be shared out; [`SetupError::Rank`] when a rank
/// cannot be reached.
pub fn simulate_in_ranks(
    network: &Network,
    config: &RunConfig,
    workload: &mut dyn Workload,
    recorder: &mut dyn Recorder,
    progress: &Progress,
    ranks: &mut dyn Ranks,
) -> Result<RunSummary, SetupError> {
    let built = Built::new(network, config, workload)?;
    let threads = config.threads.clamp(1, 1 << 10);
    let count = ranks.count();
    if let Some(why) = one_thread(network, config, workload)
        && count > 1
    {
        return Err(SetupError::Undivided { why });
    }
    let cut = if built.serial {
        Cut::whole(&network.fabric)
    } else {
        Cut::new(
            &network.fabric,
            config.partition,
            threads,
            count,
            built.tiled,
        )
    };
    if cut.processes() < count {
        let processes = cut.processes();
        return Err(SetupError::TooManyRanks {
            ranks: count,
            processes,
        });
    }
    let mut nothing = Discard;
    let recorder = if ranks.number() == 0 {
        recorder
    } else {
        &mut nothing
    };
    // Connections over rails keep asking each other whether they are there.
    let open_ended = workload.is_open_ended() || config.rails.is_some();
    let reacts = workload.has_dependencies();
    let exchange = Exchange::new(ranks, cut.processes());
    let (held, processes) = built.processes(&cut, exchange.own(), workload)?;
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
        progress,
        exchange,
        links: LinkState::all_up(&network.fabric),
        ledger: Ledger::default(),
        sampling: Sampling::new(config),
        changes: built.changes.clone(),
        changed: 0,
        done: Time::ZERO,
        now: Time::ZERO,
        memory: Arc::clone(&built.memory),
        due: vec![Time::NEVER; processes.len()],
        packets: vec![0; processes.len()],
        live: vec![0; processes.len()],
        events: vec![0; processes.len()],
        handed_out: 0,
        carried: 0,
        all_packets: 0,
        all_live: 0,
        all_events: 0,
        done_elsewhere: (0, 0),
        outlook: Outlook {
            next: Time::NEVER,
            finished: false,
            cancelled: false,
            failed: false,
        },
        summary: RunSummary::default(),
        checked: 0,
        fault: None,
        scratch: Scratch::default(),
    };
    let crew = Crew::new(helpers);
    let task = Mutex::new(Task::Sample);
    let processes: Vec<Mutex<Process<'_>>> = processes.into_iter().map(Mutex::new).collect();
    let job = |index: usize| {
        let task = *locked(&task);
        let process = &mut *locked(&processes[index]);
        match task {
            Task::Window(begin, end) => {
                process.run(begin, end, u64::MAX);
            }
            Task::Sample => process.base.sample(),
        }
    };
    std::thread::scope(|scope| {
        for number in 0..helpers {
            let (crew, job) = (&crew, &job);
            scope.spawn(move || crew.help(number, job));
        }
        let _dismissal = Dismissal(&crew);
        run.go(&processes, &mut |order, helpers, next| {
            *locked(&task) = next;
            crew.run(order, helpers, job);
        });
    });
    match run.fault.take() {
        Some((_, fault)) => Err(fault),
        None => run.finish(&processes),
    }
}

/// Has a task done for these processes, in this order, with so many helpers.
type Together<'t> = dyn FnMut(&[usize], usize, Task) + 't;

pub(super) type Processes<'p, 'a> = &'p [Mutex<Process<'a>>];

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module. Lists without another word are by process, of those of this rank.
pub(super) struct Run<'a> {
    pub(super) network: &'a Network,
    pub(super) config: &'a RunConfig,
    pub(super) cut: &'a Cut,
    pub(super) serial: bool,
    pub(super) window: Span,
    /// Threads beside the leading one.
    pub(super) helpers: usize,
    pub(super) open_ended: bool,
    /// Deliveries may start messages.
    pub(super) reacts: bool,
    /// The workload, where it waits for nothing but time.
    pub(super) held: Option<&'a mut dyn Workload>,
    pub(super) recorder: &'a mut dyn Recorder,
    pub(super) progress: &'a Progress,
    pub(super) exchange: Exchange<'a>,
    pub(super) links: LinkState,
    pub(super) ledger: Ledger,
    pub(super) sampling: Sampling,
    /// In order of time, and how many have happened.
    pub(super) changes: Vec<Change>,
    pub(super) changed: usize,
    /// Everything before this time has happened.
    pub(super) done: Time,
    /// When something happened last.
    pub(super) now: Time,
    /// Where the packets of all processes are.
    pub(super) memory: Arc<PacketMemory>,
    /// When the next event is due, mail included.
    pub(super) due: Vec<Time>,
    /// Packets under way, those in mail included.
    pub(super) packets: Vec<u64>,
    pub(super) live: Vec<i64>,
    pub(super) events: Vec<u64>,
    /// Messages that were handed out for the window.
    pub(super) handed_out: u64,
    /// Packets in the mail of the last window.
    pub(super) carried: u64,
    /// Packets under way, messages under way, and events of the last window, at all ranks.
    pub(super) all_packets: u64,
    pub(super) all_live: i64,
    pub(super) all_events: u64,
    /// Packet-hops and finished flows of other ranks.
    pub(super) done_elsewhere: (u64, u64),
    /// What all ranks expect.
    pub(super) outlook: Outlook,
    /// What no process counts.
    pub(super) summary: RunSummary,
    /// Events at the last look at progress.
    pub(super) checked: u64,
    pub(super) fault: Option<(Moment, SetupError)>,
    pub(super) scratch: Scratch,
}

impl<'a> Run<'a> {
    fn go(&mut self, processes: Processes<'_, 'a>, together: &mut Together<'_>) {
        if self.config.record_paths && self.exchange.leads() {
            locked(&processes[0]).record_reduction_ways();
        }
        self.scratch.active = (0..processes.len()).collect();
        self.close(processes);
        loop {
            let next = self.next();
            if next == Time::NEVER || self.fault.is_some() {
                break;
            }
            let end = self.config.end.unwrap_or(Time::NEVER);
            if next >= self.sampling.next.min(end)
                && !self.pass_checkpoint(processes, next, end, together)
            {
                break;
            }
            if self.next_change() == next {
                self.change(processes, next);
                if self.fault.is_some() || self.is_over() {
                    break;
                }
                continue;
            }
            let stop = self.next_change().min(self.sampling.next).min(end);
            let end = self.grid_end(next).min(stop);
            self.hand_out(processes, end);
            let goes_on = if self.serial {
                self.run_alone(processes, end)
            } else {
                self.run_window(processes, end, together);
                self.fault.is_none() && !self.is_over() && self.look(processes)
            };
            if self.fault.is_some() || !goes_on {
                break;
            }
        }
        self.tell_progress(processes, self.now);
    }

    /// When something happens next, changes included.
    fn next(&self) -> Time {
        let events = self.outlook.next;
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
        together: &mut Together<'_>,
    ) -> bool {
        let sampled = self.sample_until(processes, next.min(end), together);
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
        together: &mut Together<'_>,
    ) -> bool {
        /// Samples between two looks at progress, cancellation and output errors.
        const CHECK_EVERY: u64 = 1 << 10;
        let worth = self.network.fabric.port_count() / PORTS_OF_THREAD;
        let helpers = worth.min(self.helpers);
        let all: Vec<usize> = (0..processes.len()).collect();
        let mut taken = 0u64;
        while self.sampling.next <= until {
            let time = self.sampling.next;
            if helpers == 0 {
                for process in processes {
                    locked(process).base.sample();
                }
            } else {
                together(&all, helpers, Task::Sample);
            }
            self.tell_sample(processes, time);
            taken += 1;
            if taken.is_multiple_of(CHECK_EVERY) && !self.goes_on(processes, time) {
                self.now = time;
                return false;
            }
            self.sampling.next += self.sampling.interval;
        }
        true
    }

    /// Tells what all processes have seen.
    pub(super) fn tell_sample(&mut self, processes: Processes<'_, 'a>, time: Time) {
        for process in processes {
            let process = &mut *locked(process);
            self.sampling.add(&mut process.base);
        }
        if self.exchange.is_shared()
            && let Err(problem) = self.exchange.sample(&mut self.sampling.sums)
        {
            self.fail_apart(problem);
        }
        self.sampling.tell(time, self.recorder);
    }

    /// Hands the messages that start before `end` to their senders' processes.
    fn hand_out(&mut self, processes: Processes<'_, 'a>, end: Time) {
        self.handed_out = 0;
        let Some(held) = &mut self.held else {
            return;
        };
        while held.next_start().is_some_and(|start| start < end) {
            let Some(mut message) = held.pop() else {
                continue;
            };
            message.start = message.start.max(self.done);
            let Some(place) = self.exchange.place(self.cut.process(message.src)) else {
                continue;
            };
            self.due[place] = self.due[place].min(message.start);
            self.handed_out += 1;
            locked(&processes[place]).hand_out(message);
        }
    }

    /// Runs the only process up to `end`; false: the run ends there.
    fn run_alone(&mut self, processes: Processes<'_, 'a>, end: Time) -> bool {
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
                    if self.fault.is_some() || !self.goes_on(processes, self.now) {
                        return false;
                    }
                }
            }
        }
    }

    fn run_window(&mut self, processes: Processes<'_, 'a>, end: Time, together: &mut Together<'_>) {
        let mut active = std::mem::take(&mut self.scratch.active);
        active.clear();
        active.extend((0..processes.len()).filter(|&place| self.due[place] < end));
        let last: u64 = active.iter().map(|&index| self.events[index]).sum();
        let cost = last + EVENTS_OF_MESSAGE * self.handed_out;
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
            together(&active, helpers, Task::Window(self.done, end));
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

    /// Whether no message will ever start again and nothing waits that could change the results.
    pub(super) fn is_over(&self) -> bool {
        // What is left in the queues (last acknowledgements, RESUME frames) may still be recorded; only link changes can go on for
        // long after the traffic has ended.
        let only_changes = !self.changes.is_empty() && self.all_packets == 0;
        self.all_live == 0 && (self.open_ended || only_changes) && self.outlook.finished
    }

    /// Looks at progress from time to time; false: the run is to stop.
    fn look(&mut self, processes: Processes<'_, 'a>) -> bool {
        self.checked += self.all_events;
        if self.checked < CHECK_EVERY {
            return true;
        }
        self.checked = 0;
        self.goes_on(processes, self.now)
    }

    /// Tells how far the run is; false: someone wants it to stop here.
    fn goes_on(&mut self, processes: Processes<'_, 'a>, now: Time) -> bool {
        self.tell_progress(processes, now);
        self.look_out(processes, true);
        self.summary.cancelled = self.outlook.cancelled;
        self.fault.is_none() && !self.outlook.cancelled && !self.outlook.failed
    }

    fn tell_progress(&self, processes: Processes<'_, 'a>, now: Time) {
        let (hops, flows) = self.done_here(processes);
        let (others_hops, others_flows) = self.done_elsewhere;
        self.progress
            .update(now, hops + others_hops, flows + others_flows);
    }

    /// Looks at all packets on their way in this rank.
    #[expect(unsafe_code, reason = "packets lie in memory that processes share")]
    pub(super) fn for_each_packet(
        &self,
        processes: Processes<'_, 'a>,
        each: impl FnMut(&mut Packet),
    ) {
        let _all: Vec<_> = processes.iter().map(locked).collect();
        // SAFETY: only processes use packets, each while it is locked, and all of them are locked here.
        unsafe { self.memory.for_each(each) }
    }

    /// Packet-hops and finished flows of this rank.
    pub(super) fn done_here(&self, processes: Processes<'_, 'a>) -> (u64, u64) {
        let (mut hops, mut flows) = (0, 0);
        for process in processes {
            let summary = &locked(process).base.cx.summary;
            hops += summary.packet_hops;
            flows += summary.flows_finished;
        }
        (hops, flows)
    }
}
