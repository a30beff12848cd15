//! Workloads whose messages wait for others.

use std::sync::{Arc, Mutex, MutexGuard};

use raddle_engine::RunConfig;
use raddle_fabric::{Dumbbell, KAryFatTree};
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{Gpcnet, GraphBuilder, Message, Step, TrafficError, Workload};

use crate::common::{Draws, Lab, SCHEMES};

/// A link's delay and 46 bytes at 100 Gbit/s: within it no host hears of another.
const WINDOW: Span = Span(1_000_000 + 46 * 80);

/// What starts and what is delivered, by tag.
#[derive(Default)]
struct Notes {
    started: Vec<(u64, Time)>,
    delivered: Vec<(u64, Time)>,
}

/// A workload, or a part of one, that notes what starts and what is delivered.
struct Watched<W> {
    inner: W,
    notes: Arc<Mutex<Notes>>,
}

impl<W: Workload> Watched<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            notes: Arc::default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }
}

impl<W: Workload> Workload for Watched<W> {
    fn classes(&self) -> &[String] {
        self.inner.classes()
    }
    fn next_start(&self) -> Option<Time> {
        self.inner.next_start()
    }
    fn pop(&mut self) -> Option<Message> {
        let message = self.inner.pop()?;
        self.notes().started.push((message.tag, message.start));
        Some(message)
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        self.notes().delivered.push((tag, now));
        self.inner.on_delivered(now, tag);
    }
    fn has_dependencies(&self) -> bool {
        self.inner.has_dependencies()
    }
    fn is_divisible(&self) -> bool {
        self.inner.is_divisible()
    }
    fn longest_window(&self) -> Span {
        self.inner.longest_window()
    }
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let inner = self.inner.split(parts, part_of)?;
        let watched = inner.into_iter().map(|inner| {
            let notes = Arc::clone(&self.notes);
            Box::new(Watched { inner, notes }) as Box<dyn Workload + '_>
        });
        Some(watched.collect())
    }
    fn is_news(&self, tag: u64) -> bool {
        self.inner.is_news(tag)
    }
    fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        self.inner.on_news(now, tag, member);
    }
    fn is_open_ended(&self) -> bool {
        self.inner.is_open_ended()
    }
    fn finished(&self) -> bool {
        self.inner.finished()
    }
    fn fault(&self) -> Option<&TrafficError> {
        self.inner.fault()
    }
}

/// A random graph of messages and gaps in layers; every step waits for up to three of the layer before.
fn random_graph(
    draws: &mut Draws,
    hosts: &[NodeId],
) -> (GraphBuilder, Vec<(Step, Step)>, Vec<Option<Span>>) {
    let mut graph = GraphBuilder::new();
    let (mut waits, mut gaps, mut layer) = (Vec::new(), Vec::new(), Vec::<Step>::new());
    for depth in 0..8 {
        let mut next = Vec::new();
        for _ in 0..1 + draws.below(6) {
            let step = if depth > 0 && draws.below(4) == 0 {
                let span = Span(draws.below(5_000_000));
                gaps.push(Some(span));
                graph.gap(span)
            } else {
                let src = draws.below(hosts.len() as u64) as usize;
                let dst = (src + 1 + draws.below(hosts.len() as u64 - 1) as usize) % hosts.len();
                gaps.push(None);
                let step = graph.message(hosts[src], hosts[dst], Bytes(1 + draws.below(30_000)));
                if depth == 0 {
                    graph.at(step, Time(draws.below(10_000_000)));
                }
                step
            };
            for _ in 0..draws.below(3) + u64::from(depth > 0) {
                if !layer.is_empty() {
                    let before = layer[draws.below(layer.len() as u64) as usize];
                    if !waits.contains(&(step, before)) {
                        graph.after(step, before);
                        waits.push((step, before));
                    }
                }
            }
            next.push(step);
        }
        layer = next;
    }
    (graph, waits, gaps)
}

/// No message starts before what it waits for was delivered (or, for a gap, was over), and it starts at that very
/// instant: start = max over predecessors of their end.
#[test]
fn messages_start_when_their_predecessors_have_arrived() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    for seed in 0..40 {
        let mut draws = Draws(seed);
        let (graph, waits, gaps) = random_graph(&mut draws, lab.hosts());
        let mut workload = Watched::new(graph.finish().unwrap());
        let scheme = SCHEMES[draws.below(7) as usize];
        let (summary, log) = lab.drive(&lab.config(scheme), &mut workload).unwrap();
        assert!(workload.finished());
        let messages = gaps.iter().filter(|gap| gap.is_none()).count();
        assert_eq!(summary.flows_finished as usize, messages, "seed {seed}");
        let notes = workload.notes();
        assert_eq!(notes.delivered.len(), messages, "delivered once each");
        let find = |list: &[(u64, Time)], step: Step| {
            list.iter()
                .find(|entry| entry.0 == u64::from(step.0))
                .map(|entry| entry.1)
        };
        // Ends of steps in order of creation: gaps start when the last of what they wait for has ended.
        let mut ends: Vec<Time> = Vec::new();
        for (index, gap) in gaps.iter().enumerate() {
            let step = Step(index as u32);
            let ready = waits.iter().filter(|wait| wait.0 == step);
            let ready = ready.map(|wait| ends[wait.1.0 as usize]).max();
            match gap {
                Some(span) => ends.push(ready.unwrap_or_default() + *span),
                None => {
                    let start = find(&notes.started, step).unwrap();
                    let flow = log
                        .flows
                        .iter()
                        .find(|flow| flow.tag == u64::from(step.0))
                        .unwrap();
                    assert!(start <= flow.start);
                    let start = flow.start;
                    // What another host has is known at the window's end.
                    let ready = ready.unwrap_or(start);
                    let late = start.since(ready);
                    let known_late = late < WINDOW && start.0.is_multiple_of(WINDOW.0);
                    assert!(late == Span::ZERO || known_late, "seed {seed}, {step:?}");
                    let end = find(&notes.delivered, step).unwrap();
                    assert!(end > start && end < start + flow.fct.unwrap());
                    ends.push(end);
                }
            }
        }
    }
}

/// A message that is delivered while a later one waits for its time adds no work: two events per start at most.
/// (Each used to leave another look at the later time behind.)
#[test]
fn many_deliveries_before_a_late_start_cost_no_extra_events() {
    let lab = Lab::new(Dumbbell::new(2).build().unwrap());
    let events = |chain: u32| {
        let mut graph = GraphBuilder::new();
        let late: Vec<Step> = (0..chain)
            .map(|_| graph.message(NodeId(1), NodeId(2), Bytes(1)))
            .collect();
        for (index, &step) in late.iter().enumerate() {
            graph.at(step, Time(Span::from_ms(50).0 + 10_000_000 * index as u64));
        }
        let mut before = graph.message(NodeId(0), NodeId(3), Bytes(1));
        for _ in 1..chain {
            let next = graph.message(NodeId(0), NodeId(3), Bytes(1));
            graph.after(next, before);
            before = next;
        }
        let (summary, _) = lab
            .drive(&lab.config("none"), &mut graph.finish().unwrap())
            .unwrap();
        assert_eq!(summary.flows_finished, 2 * u64::from(chain));
        summary.events
    };
    assert!(
        events(400) < 3 * events(200),
        "{} {}",
        events(200),
        events(400)
    );
}

/// GPCNeT's congestors never stop by themselves: the run ends when the victims have finished, with congestors cut off.
#[test]
fn a_closed_loop_ends_with_its_victims() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    let spec = Gpcnet {
        latency_iterations: 2,
        bandwidth_iterations: 1,
        bandwidth_size: Bytes(16 << 10),
        allreduce_iterations: 2,
        ..Gpcnet::default()
    };
    for scheme in ["none", "dcqcn", "hpcc"] {
        let config = RunConfig {
            sample_interval: Span::from_us(10),
            ..lab.config(scheme)
        };
        let run = |spec: &Gpcnet| {
            let mut workload = Watched::new(spec.build(lab.hosts(), 1).unwrap());
            let (summary, log) = lab.drive(&config, &mut workload).unwrap();
            assert!(workload.finished(), "{scheme}");
            let notes = workload.notes();
            let victims = |flow: &&raddle_engine::record::FlowRecord| {
                raddle_workload::is_tested_class(&workload.inner.classes()[usize::from(flow.class)])
            };
            let tested: Vec<_> = log.flows.iter().filter(victims).copied().collect();
            // A victim counts as done on delivery; its last acknowledgement may still be on its way.
            let delivered = |tag| notes.delivered.iter().any(|entry| entry.0 == tag);
            assert!(
                tested
                    .iter()
                    .all(|flow| flow.fct.is_some() || delivered(flow.tag))
            );
            (summary, tested.len())
        };
        let (congested, victims) = run(&spec);
        let (quiet, victims_alone) = run(&spec.isolated());
        assert_eq!(
            victims, victims_alone,
            "{scheme}: the twin has the same victims"
        );
        assert!(congested.end_ps >= quiet.end_ps);
        assert!(congested.flows_finished > quiet.flows_finished);
    }
}
