//! Messages between ranks that the program sends by itself, joined where that helps: the layer of message scheduling
//! (`docs/concepts/matching.md`). `process` is the matcher of this process and what stands around it, `table` is what the shim
//! calls, `state` is kept between calls.

mod exclusive;
mod process;
mod state;
pub(crate) mod table;

use serde_json::{Value, json};

use self::process::Messages;
use crate::{ffi, settings};

/// The name in a report of each reason why no communicator is scheduled.
const PLAIN: [(u32, &str); 4] = [
    (ffi::RADDLE_SETTINGS, "settings"),
    (ffi::RADDLE_THREADS, "threads"),
    (ffi::RADDLE_SPAWNED, "spawned"),
    (ffi::RADDLE_LIBRARY_UNKNOWN, "library"),
];

/// What a rank tells the report.
pub(crate) fn summary() -> Value {
    let wanted = settings::get().takes_messages();
    state::read(Messages::counters).unwrap_or_else(|why| {
        let state = PLAIN
            .iter()
            .find(|(code, _)| wanted && why == Some(*code))
            .map_or("off", |(_, name)| *name);
        json!({ "state": state })
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
