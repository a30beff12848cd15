//! What RADDLE_REPORT gets: how often each communicator was offloaded, and why not.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

/// Communicators one by one that are listed in a report.
const LISTED: usize = 200;

/// Communicators of a report: those with the most calls one by one, all others added up.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    listed: Vec<Value>,
    others: u64,
    counts: Value,
}

impl Listing {
    pub(crate) const fn new() -> Self {
        Self {
            listed: Vec::new(),
            others: 0,
            counts: Value::Null,
        }
    }

    /// One more communicator: its `name`, `size`, `state` and `counts`.
    pub(crate) fn add(&mut self, communicator: Value) {
        self.listed.push(communicator);
        if self.listed.len() <= LISTED {
            return;
        }
        // Of several, the one that came last.
        let least = (0..self.listed.len())
            .rev()
            .min_by_key(|at| sum(&self.listed[*at]["counts"]["calls"]));
        if let Some(at) = least {
            let counts = self.listed.remove(at)["counts"].take();
            self.add_up(1, &counts);
        }
    }

    fn add_up(&mut self, communicators: u64, counts: &Value) {
        self.others += communicators;
        add(&mut self.counts, counts);
    }

    /// For the rank that writes the report.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "communicators": self.listed, "others": self.others_to_json() })
    }

    /// Adds what another rank listed.
    pub(crate) fn merge(&mut self, mut theirs: Value) {
        let others = theirs["others"].take();
        self.add_up(
            others["communicators"].as_u64().unwrap_or(0),
            &others["counts"],
        );
        if let Value::Array(listed) = theirs["communicators"].take() {
            for communicator in listed {
                self.add(communicator);
            }
        }
    }

    /// The listed ones.
    pub(crate) fn listed(&self) -> &[Value] {
        &self.listed
    }

    /// The number of the others and their counts; null where there are none.
    pub(crate) fn others_to_json(&self) -> Value {
        if self.others == 0 {
            return Value::Null;
        }
        json!({ "communicators": self.others, "counts": self.counts })
    }

    /// The counts of all communicators, listed or not.
    pub(crate) fn total(&self) -> Value {
        let mut total = self.counts.clone();
        for communicator in &self.listed {
            add(&mut total, &communicator["counts"]);
        }
        total
    }
}

/// Adds numbers to those of the same names.
fn add(into: &mut Value, more: &Value) {
    match more {
        Value::Object(more) => {
            if !into.is_object() {
                *into = json!({});
            }
            for (name, value) in more {
                add(&mut into[name.as_str()], value);
            }
        }
        Value::Number(more) => {
            *into = match (into.as_u64(), more.as_u64()) {
                (Some(sum), Some(more)) => json!(sum + more),
                (None, Some(more)) if into.is_null() => json!(more),
                _ => json!(into.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0)),
            };
        }
        _ => {}
    }
}

/// The sum of the whole numbers of an object.
pub(crate) fn sum(numbers: &Value) -> u64 {
    let values = numbers.as_object().into_iter().flat_map(Map::values);
    values.filter_map(Value::as_u64).sum()
}

/// Writes the report whole or not at all.
pub(crate) fn write(path: &Path, report: &Value) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    fs::write(&aside, text)?;
    fs::rename(&aside, path)
}

#[cfg(test)]
mod tests {
    use raddle_wire::native::Collective;

    use super::*;
    use crate::collectives::{counts::Counts, reason::Reason};

    fn communicator(calls: u64) -> Value {
        let mut counts = Counts::new();
        for _ in 0..calls {
            counts.call(Collective::Allreduce);
            counts.plain(Reason::Early);
        }
        counts.call(Collective::Barrier);
        counts.offloaded(Collective::Barrier);
        counts.rounds.rounds = 2;
        counts.saved_seconds = 0.25;
        json!({ "name": format!("of {calls}"), "size": 2, "state": "early", "counts": counts.to_json() })
    }

    /// Three ranks with 250 communicators each: 200 are listed in all, and no count is lost.
    #[test]
    fn a_report_lists_200_communicators_and_adds_up_all() {
        let mut all = Listing::new();
        let mut calls = 0;
        for rank in 0..3 {
            let mut mine = Listing::new();
            for number in 0..250 {
                let made = (rank * 250 + number) % 700;
                calls += made + 1;
                mine.add(communicator(made));
            }
            assert_eq!(mine.listed().len(), 200);
            all.merge(mine.to_json());
        }
        assert_eq!(all.listed().len(), 200);
        // Those with the most calls.
        let least = all.listed().iter().map(|one| sum(&one["counts"]["calls"]));
        assert_eq!(least.min(), Some(501));
        assert_eq!(all.others_to_json()["communicators"], json!(550));
        let total = all.total();
        assert_eq!(sum(&total["calls"]), calls);
        assert_eq!(sum(&total["offloaded"]), 750);
        assert_eq!(total["rounds"]["rounds"], json!(1500));
        assert_eq!(total["saved_s"], json!(187.5));
    }

    #[test]
    fn few_communicators_are_listed_as_they_came() {
        let mut all = Listing::new();
        for calls in [3, 1, 2] {
            all.add(communicator(calls));
        }
        let names: Vec<_> = all.listed().iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["of 3", "of 1", "of 2"]);
        assert_eq!(all.others_to_json(), Value::Null);
    }
}
