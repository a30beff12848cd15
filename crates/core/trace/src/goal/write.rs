//! From a trace to text.

use std::{collections::BTreeMap, fmt::Write};

use thiserror::Error;

use crate::model::{Action, CollectiveKind, Message, Trace};

/// Why a trace cannot be told in GOAL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// GOAL knows messages only.
    #[error(
        "rank {rank}, event {event}: GOAL has no {kind}; write the trace with its collectives as messages"
    )]
    Collective {
        /// The rank.
        rank: u32,
        /// Its call.
        event: usize,
        /// Which collective.
        kind: CollectiveKind,
    },
}

/// Writes a trace. A rank's calls begin in their order (`irequires`); what follows a wait or a blocking call requires its
/// end. Tags are kept where there is one communicator and none is negative; else pairs of communicator and tag are
/// numbered.
///
/// # Errors
/// When there is a collective in it.
pub fn write(trace: &Trace) -> Result<String, WriteError> {
    let tags = Tags::new(trace);
    let mut text = format!("num_ranks {}\n", trace.ranks.len());
    for (rank, events) in (0..).zip(&trace.ranks) {
        let mut lines = Lines {
            text: &mut text,
            labels: 0,
            anchor: 0,
            last: 0,
            labels_of: BTreeMap::new(),
        };
        line(lines.text, format_args!("rank {rank} {{"));
        let mut end_ns = 0;
        for (event, call) in events.iter().enumerate() {
            let gap = call.at.start_ns.saturating_sub(end_ns);
            end_ns = end_ns.max(call.at.end_ns);
            if gap > 0 {
                lines.compute(gap, &[]);
            }
            match &call.action {
                Action::Send { message, request } => {
                    lines.message("send", message, *request, &tags)
                }
                Action::Receive {
                    message, request, ..
                } => lines.message("recv", message, *request, &tags),
                Action::Wait { requests } => lines.compute(0, requests),
                Action::End => {}
                Action::Collective { call, .. } => {
                    let kind = call.kind;
                    return Err(WriteError::Collective { rank, event, kind });
                }
            }
        }
        line(&mut text, format_args!("}}"));
    }
    Ok(text)
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("a string takes everything");
}

/// What GOAL calls each pair of communicator and tag; empty: as MPI does.
struct Tags(BTreeMap<(u32, i32), usize>);

impl Tags {
    fn new(trace: &Trace) -> Self {
        let mut tags = BTreeMap::new();
        for event in trace.ranks.iter().flatten() {
            if let Action::Send { message, .. } | Action::Receive { message, .. } = &event.action {
                tags.insert((message.comm, message.tag), 0);
            }
        }
        if tags.keys().all(|&(comm, tag)| comm == 0 && tag >= 0) {
            tags.clear();
        }
        for (number, tag) in tags.values_mut().enumerate() {
            *tag = number;
        }
        Self(tags)
    }

    fn get(&self, message: &Message) -> usize {
        let named = self.0.get(&(message.comm, message.tag));
        named.copied().unwrap_or(message.tag as usize)
    }
}

/// The lines of a rank. Labels count from 1; 0 is none.
struct Lines<'a> {
    text: &'a mut String,
    labels: u64,
    /// What everything that follows requires.
    anchor: u64,
    /// What began last.
    last: u64,
    labels_of: BTreeMap<u32, u64>,
}

impl Lines<'_> {
    fn operation(&mut self, what: std::fmt::Arguments<'_>) -> u64 {
        self.labels += 1;
        let label = self.labels;
        line(self.text, format_args!("l{label}: {what}"));
        if self.anchor > 0 {
            line(
                self.text,
                format_args!("l{label} requires l{}", self.anchor),
            );
        }
        if self.last > self.anchor {
            line(self.text, format_args!("l{label} irequires l{}", self.last));
        }
        self.last = label;
        label
    }

    fn compute(&mut self, ns: u64, requests: &[u32]) {
        let label = self.operation(format_args!("calc {ns}"));
        for request in requests {
            if let Some(needed) = self.labels_of.remove(request) {
                line(self.text, format_args!("l{label} requires l{needed}"));
            }
        }
        self.anchor = label;
    }

    fn message(&mut self, verb: &str, message: &Message, request: Option<u32>, tags: &Tags) {
        let Message { peer, bytes, .. } = message;
        let (direction, tag) = (
            if verb == "send" { "to" } else { "from" },
            tags.get(message),
        );
        let label = self.operation(format_args!(
            "{verb} {}b {direction} {peer} tag {tag}",
            bytes.0
        ));
        match request {
            Some(request) => {
                self.labels_of.insert(request, label);
            }
            None => self.anchor = label,
        }
    }
}
