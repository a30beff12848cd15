//! Messages between ranks that the program sends by itself, joined where that helps: the layer of message scheduling
//! (`docs/concepts/matching.md`). This process's matcher, and what it says to the shim, which speaks MPI.

mod exclusive;
pub(crate) mod table;

use raddle_matching::{
    Actions, BadNotice, Counts, Envelope, Fetch, Matcher, Parcel, SetUpError, Settings as Agreed,
    Trial, Vote, Way,
};
use raddle_schedule::{Distance, Join, Placement};
use raddle_units::{Bytes, Span, Time};
use serde_json::{Value, json};

use self::table::{RaddleChannel, RaddleEnvelope};
use crate::{
    rails::{Matched, Rails, Secret},
    settings::{self, Schedule},
};

/// The longest parcel. Open MPI sends up to 64 KiB over TCP without asking the receiver, heads of its own included.
const LONGEST: Bytes = Bytes(63 << 10);

/// Messages of at least this size go by reference. Shorter ones cost less when they are copied: by reference their bytes come
/// before their envelopes, and the library copies them.
const ALONE: Bytes = Bytes(20 << 10);

/// Why no communicator is scheduled: enum raddle_plain_state in `shim/border.h`.
const PLAIN: [&str; 4] = ["settings", "threads", "spawned", "library"];

/// What all ranks use. `keys` is the largest tag of the shadow channel.
fn agreed(keys: u32) -> Agreed {
    let default = Agreed::default();
    Agreed {
        join: Join {
            scope: settings::get().schedule_scope,
            // A full parcel costs little more than a short one.
            mtu: LONGEST,
            alone: ALONE,
            eager_limit: LONGEST,
            // With rails only, small messages leave one by one.
            most_parts: match settings::get().schedule {
                Schedule::Off => 1,
                Schedule::On | Schedule::Force => default.join.most_parts,
            },
            ..default.join
        },
        keys: default.keys.min(keys),
        ..default
    }
}

/// This process.
struct Messages {
    matcher: Matcher,
    wire: Wire,
    /// By context; `None`: it stays ours whatever that costs.
    trials: Vec<Option<OnTrial>>,
    /// `None`: nothing is offered.
    rails: Option<Rails>,
    rank: u32,
    nodes: Vec<u64>,
    /// How often the shim looked at the channel, when it has said so.
    looks: u64,
}

/// A communicator for which it is measured whether its messages should be ours.
struct OnTrial {
    trial: Trial,
    /// The last point.
    since: Time,
}

impl Messages {
    /// Rank `rank` of those on these nodes.
    fn new(
        rank: u32,
        nodes: &[u64],
        keys: u32,
        channel: &'static RaddleChannel,
    ) -> Result<Self, SetUpError> {
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
            wire: Wire {
                channel,
                parcels: Vec::new(),
                free: Vec::new(),
                matched: Vec::new(),
                notices: Vec::new(),
            },
            trials: Vec::new(),
            rails: None,
            rank,
            nodes: nodes.to_vec(),
            looks: 0,
        })
    }

    /// From here on large messages are offered to rails.
    fn begin_rails(&mut self, secret: Secret) {
        let settings = settings::get();
        let own = self.nodes.get(self.rank as usize).copied();
        let far = self.nodes.iter().map(|node| Some(*node) != own).collect();
        let patience = settings.rails_give_up;
        let rails = Rails::new(&settings.rails, secret, self.rank, far, patience);
        self.rails = Some(rails);
    }

    /// Does what the matcher has found for rails.
    fn turn_rails(&mut self) -> Result<(), BadNotice> {
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

    fn begin_trial(&mut self, context: u32, now: Time) {
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
    fn vote(&mut self, context: u32, plain: &Counts, parcels: u64, now: Time) -> Option<Vote> {
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

    fn counters(&self) -> Value {
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
    fn sent(&mut self, slot: u32) {
        if let Some(parcel) = self.wire.parcels.get_mut(slot as usize) {
            self.matcher.recycle(std::mem::take(parcel));
            self.wire.free.push(slot);
        }
    }
}

/// What the matcher decides goes to the shim at once.
pub(crate) struct Wire {
    pub(crate) channel: &'static RaddleChannel,
    /// On their way out, by slot.
    parcels: Vec<Parcel>,
    free: Vec<u32>,
    /// For rails, since the last turn.
    matched: Vec<Matched>,
    notices: Vec<(u32, Vec<u8>)>,
}

impl Actions for Wire {
    fn send(&mut self, to: u32, parcel: Parcel) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(Parcel::default());
            self.parcels.len() as u32 - 1
        });
        let bytes = parcel.bytes();
        let (start, length) = (bytes.as_ptr().cast(), bytes.len());
        // The bytes stay where they are when their owner moves.
        self.parcels[slot as usize] = parcel;
        // SAFETY: the bytes stay until the shim calls `sent` with this slot.
        unsafe { (self.channel.send)(to, start, length, slot) }
    }

    fn deliver(&mut self, receive: u64, message: &Envelope, bytes: &[u8]) {
        let message = RaddleEnvelope::from(*message);
        // SAFETY: the shim gave this name to a receive that is not complete; it copies the bytes.
        unsafe {
            (self.channel.deliver)(
                receive,
                &raw const message,
                bytes.as_ptr().cast(),
                bytes.len(),
            );
        }
    }

    fn fetch(&mut self, receive: u64, _capacity: u64, message: &Envelope, from: Fetch) {
        let envelope = *message;
        let message = RaddleEnvelope::from(envelope);
        // SAFETY: the shim gave this name to a receive that is not complete.
        unsafe {
            match from {
                Fetch::Key(key) => (self.channel.fetch)(receive, &raw const message, key),
                Fetch::Aside(aside) => {
                    (self.channel.fetch_aside)(receive, &raw const message, aside);
                }
                Fetch::Offered(key) => self.matched.push(Matched {
                    receive,
                    envelope,
                    key,
                }),
            }
        }
    }

    fn notice(&mut self, from: u32, bytes: &[u8]) {
        self.notices.push((from, bytes.to_vec()));
    }

    fn set_aside(&mut self, aside: u64, message: &Envelope, key: u32) {
        let message = RaddleEnvelope::from(*message);
        // SAFETY: a call with a record that lives as long.
        unsafe { (self.channel.set_aside)(aside, &raw const message, key) }
    }
}

/// What a rank tells the report.
pub(crate) fn summary() -> Value {
    let wanted = settings::get().takes_messages();
    table::outcome(Messages::counters).unwrap_or_else(|why| {
        let state = why.and_then(|why| PLAIN.get(why)).filter(|_| wanted);
        json!({"state": state.unwrap_or(&"off")})
    })
}

/// The job's: counters added up over all ranks, but the most that one kept; trials as rank 0 knows them.
pub(crate) fn total(ranks: &[Value]) -> Value {
    let mut total = ranks.first().cloned().unwrap_or_default();
    let Some(fields) = total.as_object_mut() else {
        return total;
    };
    for (name, value) in fields {
        if !value.is_u64() {
            continue;
        }
        let numbers = ranks.iter().filter_map(|rank| rank[name.as_str()].as_u64());
        *value = if name == "most_kept_bytes" {
            json!(numbers.max())
        } else {
            json!(numbers.sum::<u64>())
        };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_adds_ranks_up() {
        let rank = |copied, most| json!({"state": "on", "copied": copied, "most_kept_bytes": most});
        assert_eq!(
            total(&[rank(3, 70), rank(4, 50)]),
            json!({"state": "on", "copied": 7, "most_kept_bytes": 70})
        );
        assert_eq!(total(&[]), Value::Null);
    }
}
