//! The matcher of this process, its rails, and the communicators for which it is measured whether their messages should be
//! ours.

use raddle_matching::{
    BadNotice, Counts, Matcher, SetUpError, Settings as Agreed, Trial, Vote, Way,
};
use raddle_schedule::{Distance, Join, Placement};
use raddle_units::{Span, Time};
use serde_json::{Value, json};

use crate::{
    channel::Wire,
    rails::{Rails, Secret},
    settings::{self, Schedule},
};

/// What all ranks use. `keys` is the largest tag of the shadow channel.
fn agreed(keys: u32) -> Agreed {
    let default = Agreed::default();
    let settings = settings::get();
    let ours = Join {
        scope: settings.schedule_scope,
        ..Join::library()
    };
    let join = match settings.schedule {
        // With rails only, small messages leave one by one.
        Schedule::Off => Join {
            most_parts: 1,
            ..ours
        },
        Schedule::On | Schedule::Force => ours,
        Schedule::Published => Join::library_published(),
    };
    Agreed {
        join: Join {
            leaders: settings.schedule_leaders,
            ..join
        },
        keys: default.keys.min(keys),
        ..default
    }
}

/// What this process has for its messages.
pub(super) struct Messages {
    pub(super) matcher: Matcher,
    pub(super) wire: Wire,
    /// By context; `None`: it stays ours whatever that costs.
    pub(super) trials: Vec<Option<OnTrial>>,
    /// `None`: nothing is offered.
    pub(super) rails: Option<Rails>,
    rank: u32,
    nodes: Vec<u64>,
    /// How often the shim looked at the channel, when it has said so.
    pub(super) looks: u64,
}

/// A communicator for which it is measured whether its messages should be ours.
pub(super) struct OnTrial {
    pub(super) trial: Trial,
    /// The last point.
    since: Time,
}

impl Messages {
    /// Rank `rank` of those on these nodes.
    pub(super) fn new(rank: u32, nodes: &[u64], keys: u32, wire: Wire) -> Result<Self, SetUpError> {
        // Nodes get numbers in the order in which ranks have them: distances are those of mpirun's list of hosts.
        let mut known: Vec<u64> = Vec::new();
        let mut numbers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let number = known.iter().position(|other| other == node);
            numbers.push(number.unwrap_or(known.len()) as u32);
            if number.is_none() {
                known.push(*node);
            }
        }
        let placement = Placement::new(&numbers).map_err(|_| SetUpError::Rank {
            rank,
            ranks: nodes.len(),
        })?;
        Ok(Self {
            matcher: Matcher::new(rank, &placement, &Distance::default(), &agreed(keys))?,
            wire,
            trials: Vec::new(),
            rails: None,
            rank,
            nodes: nodes.to_vec(),
            looks: 0,
        })
    }

    /// From here on large messages are offered to rails.
    pub(super) fn begin_rails(&mut self, secret: Secret) {
        let settings = settings::get();
        let own = self.nodes.get(self.rank as usize).copied();
        let far = self.nodes.iter().map(|node| Some(*node) != own).collect();
        let patience = settings.rails_give_up;
        let rails = Rails::new(&settings.rails, secret, self.rank, far, patience);
        self.rails = Some(rails);
    }

    /// Does what the matcher has found for rails.
    pub(super) fn turn_rails(&mut self) -> Result<(), BadNotice> {
        let Self {
            matcher,
            wire,
            rails: Some(rails),
            ..
        } = self
        else {
            return Ok(());
        };
        for matched in std::mem::take(&mut wire.matched) {
            rails.matched(&matched, matcher, wire);
        }
        for (from, bytes) in std::mem::take(&mut wire.notices) {
            rails.notice(from, &bytes, matcher, wire)?;
        }
        Ok(())
    }

    pub(super) fn begin_trial(&mut self, context: u32, now: Time) {
        let index = context as usize;
        if self.trials.len() <= index {
            self.trials.resize_with(index + 1, || None);
        }
        self.trials[index] = Some(OnTrial {
            trial: Trial::new(self.rails.is_some()),
            since: now,
        });
    }

    /// This rank's vote at a point; `plain` counts what took the plain way, `parcels` those that it would have been.
    pub(super) fn vote(
        &mut self,
        context: u32,
        plain: &Counts,
        parcels: u64,
        now: Time,
    ) -> Option<Vote> {
        let ours = self.matcher.context_counts(context);
        let both = Counts {
            sent: ours.sent + plain.sent,
            received: ours.received + plain.received,
            waiting: ours.waiting + plain.waiting,
        };
        let on_trial = self.trials.get_mut(context as usize)?.as_mut()?;
        let elapsed = Span(now.0.saturating_sub(on_trial.since.0));
        on_trial.since = now;
        let mut statistics = *self.matcher.statistics();
        statistics.parcels += parcels;
        statistics.parts += plain.sent;
        Some(on_trial.trial.vote(&both, &statistics, elapsed))
    }

    /// What the trials of communicators came to: ours for good, plain for good, not decided.
    fn verdicts(&self) -> [usize; 3] {
        let mut found = [0; 3];
        for on_trial in self.trials.iter().flatten() {
            let way = match (on_trial.trial.is_settled(), on_trial.trial.way()) {
                (true, Way::Ours) => 0,
                (true, Way::Plain) => 1,
                (false, _) => 2,
            };
            found[way] += 1;
        }
        found
    }

    pub(super) fn counters(&self) -> Value {
        let done = self.matcher.statistics();
        let [ours, plain, undecided] = self.verdicts();
        let mut counters = json!({
            "state": "on",
            "copied": done.copied,
            "by_reference": done.by_reference,
            "without_room": done.without_room,
            "parcels": done.parcels,
            "parts": done.parts,
            "grants": done.grants,
            "handed_on": done.handed_on,
            "unexpected": done.unexpected,
            "set_aside": done.set_aside,
            "looks": self.looks,
            "most_kept_bytes": done.most_kept_bytes,
            "trials": {"ours": ours, "plain": plain, "undecided": undecided},
        });
        for (name, value) in self.rails.iter().flat_map(Rails::describe) {
            counters[name] = value;
        }
        counters
    }

    /// The shim has sent what is in this slot.
    pub(super) fn sent(&mut self, slot: u32) {
        if let Some(parcel) = self.wire.sent(slot) {
            self.matcher.recycle(parcel);
        }
    }
}
