//! Programs drawn at random, told twice: as the events of a trace and through a recorder.

#![allow(dead_code, reason = "each user takes some of it")]

use proptest::prelude::*;
use raddle_trace::{
    Action, Collective, CollectiveKind, Completion, Event, Interval, Message, Origin, Outcome,
    Recorder, Trace, Wildcards,
};
use raddle_units::Bytes;

/// A message of a superstep.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
    pub(crate) blocking: bool,
    pub(crate) any: bool,
}

/// A superstep: messages, gaps before the calls of a rank, and perhaps a collective after it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) messages: Vec<Planned>,
    pub(crate) gap: u64,
    pub(crate) collective: Option<(usize, u64)>,
    pub(crate) backwards: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) ranks: u32,
    pub(crate) per_host: u32,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn program() -> impl Strategy<Value = Program> {
    (1_u32..6, 1_u32..4).prop_flat_map(|(ranks, per_host)| {
        // All messages of a trace are at most 2^63 bytes together.
        let size = prop_oneof![0_u64..3, 0_u64..100_000, 0_u64..1 << 50];
        let message = (
            0..ranks,
            0..ranks,
            -1..3_i32,
            size,
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(|(from, to, tag, bytes, blocking, any)| Planned {
                from,
                to,
                tag,
                bytes,
                blocking,
                any,
            });
        let step = (
            prop::collection::vec(message, 0..8),
            prop_oneof![Just(0_u64), 0_u64..5_000, 0_u64..(1 << 40)],
            prop::option::of((0..CollectiveKind::ALL.len(), 0_u64..1_000_000)),
            any::<bool>(),
        )
            .prop_map(|(messages, gap, collective, backwards)| Step {
                messages,
                gap,
                collective,
                backwards,
            });
        prop::collection::vec(step, 0..5).prop_map(move |steps| Program {
            ranks,
            per_host,
            steps,
        })
    })
}

impl Program {
    pub(crate) fn origin(&self, rank: u32) -> Origin {
        Origin {
            rank,
            size: self.ranks,
            host: format!("node{}", rank / self.per_host),
            program: "program -n 3".to_owned(),
            mpi: "an MPI 1.0".to_owned(),
        }
    }

    /// The bytes that a rank records, and its events.
    pub(crate) fn rank(&self, rank: u32) -> (Vec<u8>, Vec<Event>) {
        let mut told = Told {
            recorder: Recorder::new(&self.origin(rank)),
            events: Vec::new(),
            now: 0,
            requests: 0,
            open: Vec::new(),
        };
        for step in &self.steps {
            told.step(rank, step);
        }
        told.now += 5;
        told.recorder.end(told.now);
        let now = told.now;
        told.events.push(Event {
            at: Interval::instant(now),
            action: Action::End,
        });
        (told.recorder.bytes().to_vec(), told.events)
    }

    pub(crate) fn trace(&self) -> Trace {
        let ranks = 0..self.ranks;
        let hosts = (self.ranks - 1) / self.per_host + 1;
        Trace {
            ranks: ranks.clone().map(|rank| self.rank(rank).1).collect(),
            placement: ranks.clone().map(|rank| rank / self.per_host).collect(),
            hosts: (0..hosts).map(|host| format!("node{host}")).collect(),
            communicators: vec![ranks.collect()],
            fabric: String::new(),
            program: "program -n 3".to_owned(),
            mpi: "an MPI 1.0".to_owned(),
            processors: None,
        }
    }
}

struct Told {
    recorder: Recorder,
    events: Vec<Event>,
    now: u64,
    requests: u32,
    open: Vec<Completion>,
}

impl Told {
    fn at(&mut self, gap: u64, length: u64) -> Interval {
        let start = self.now + gap;
        self.now = start + length;
        Interval::new(start, self.now)
    }

    fn started(&mut self, number: u32, outcome: Outcome) -> Option<u32> {
        assert_eq!(number, self.requests, "requests are numbered as they start");
        self.requests += 1;
        let request = number;
        self.open.push(Completion { request, outcome });
        Some(request)
    }

    fn step(&mut self, rank: u32, step: &Step) {
        for planned in step.messages.iter().filter(|message| message.from == rank) {
            let message = Message {
                peer: planned.to,
                tag: planned.tag,
                comm: 0,
                bytes: Bytes(planned.bytes),
            };
            let at = self.at(step.gap, 3);
            let request = if planned.blocking {
                self.recorder.send(at, &message);
                None
            } else {
                let number = self.recorder.start_send(at, &message);
                self.started(number, Outcome::Done)
            };
            let action = Action::Send { message, request };
            self.events.push(Event { at, action });
        }
        for planned in step.messages.iter().filter(|message| message.to == rank) {
            let (source, tag, bytes) = (planned.from, planned.tag, Bytes(planned.bytes));
            let message = Message {
                peer: source,
                tag,
                comm: 0,
                bytes,
            };
            let any = Wildcards {
                source: planned.any,
                tag: planned.any && planned.blocking,
            };
            let at = self.at(0, 200);
            let number = self.recorder.start_receive(at, 0, any);
            let request = self.started(number, Outcome::Matched { source, tag, bytes });
            let action = Action::Receive {
                message,
                request,
                any,
            };
            self.events.push(Event { at, action });
        }
        if !self.open.is_empty() {
            let mut open = std::mem::take(&mut self.open);
            if step.backwards {
                open.reverse();
            }
            let at = self.at(1, 5_000);
            self.recorder.wait(at, &open);
            let requests = open.iter().map(|done| done.request).collect();
            let action = Action::Wait { requests };
            self.events.push(Event { at, action });
        }
        if let Some((kind, bytes)) = step.collective {
            let kind = CollectiveKind::ALL[kind];
            let call = Collective {
                kind,
                comm: 0,
                bytes: Bytes(bytes),
                root: kind.has_root().then_some(0),
            };
            let at = self.at(step.gap, 70_000);
            self.recorder.collective(at, &call);
            let request = None;
            let action = Action::Collective { call, request };
            self.events.push(Event { at, action });
        }
    }
}
