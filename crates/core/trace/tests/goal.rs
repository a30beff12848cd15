//! GOAL schedules: what is read, what is written, and how errors are told.

mod common;

use common::program;
use proptest::prelude::*;
use raddle_trace::{Action, Pairing, Trace, goal};

/// What GOAL keeps of a trace: the calls without their times, with their gaps.
fn kept(trace: &Trace) -> Vec<Vec<String>> {
    let of_rank = |events: &Vec<raddle_trace::Event>| {
        let mut end = 0;
        let mut gaps = 0;
        let mut told = Vec::new();
        for event in events {
            gaps += event.at.start_ns.saturating_sub(end);
            end = end.max(event.at.end_ns);
            let what = match &event.action {
                Action::Send { message, .. } => {
                    format!("send {} {}", message.peer, message.bytes.0)
                }
                Action::Receive { message, .. } => {
                    format!("receive {} {}", message.peer, message.bytes.0)
                }
                _ => continue,
            };
            told.push(format!("{gaps}: {what}"));
        }
        told
    };
    trace.ranks.iter().map(of_rank).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(mut program in program()) {
        for step in &mut program.steps {
            step.collective = None;
        }
        let trace = program.trace();
        let text = goal::write(&trace).unwrap();
        let again = goal::read(&text).unwrap();
        prop_assert_eq!(kept(&again), kept(&trace));
        let (before, after) = (Pairing::new(&trace).unwrap(), Pairing::new(&again).unwrap());
        let ends = |pairing: &Pairing| -> Vec<_> {
            let all = pairing.messages().iter();
            all.map(|message| (message.source, message.target, message.bytes)).collect()
        };
        prop_assert_eq!(ends(&before), ends(&after));
        // From the second time on nothing changes any more.
        let settled = goal::write(&again).unwrap();
        prop_assert_eq!(goal::read(&settled).unwrap(), again);
    }
}

/// A binomial broadcast as Schedgen writes it.
#[test]
fn what_requires_a_receive_comes_after_a_wait() {
    let text = "num_ranks 2\n\nrank 0 {\nl1: send 8b to 1 tag 42001\n}\n// a comment\n\
                rank 1 {\r\nl4: recv 8b from 0 tag 42001 cpu 1 nic 2\nl6: calc 30 /* and\nanother */\n\
                l5: send 9b to 1\nrecv 9b from 1\nl5 requires l4\nl6 irequires l4\n}\n";
    let trace = goal::read(text).unwrap();
    trace.check().unwrap();
    assert_eq!(Pairing::new(&trace).unwrap().messages().len(), 2);
    let told: Vec<String> = trace.ranks[1]
        .iter()
        .map(|event| match &event.action {
            Action::Send { .. } => format!("send at {}", event.at.start_ns),
            Action::Receive { .. } => format!("receive at {}", event.at.start_ns),
            Action::Wait { requests } => format!("wait for {requests:?}"),
            _ => "end".to_owned(),
        })
        .collect();
    // The second receive needs nothing, so it is posted before the wait that the send needs.
    assert_eq!(
        told,
        [
            "receive at 0",
            "receive at 30",
            "wait for [0]",
            "send at 30",
            "wait for [1, 2]",
            "end"
        ]
    );
}

#[test]
fn errors_have_line_and_column() {
    for (text, place, what) in [
        ("", "line 1, column 1", "`num_ranks`"),
        ("num_ranks 0\n", "line 1, column 11", "1 to 2^32 - 2"),
        (
            "num_ranks 2\nrank 0 {\n}\n",
            "line 1, column 11",
            "rank 1 has no block",
        ),
        (
            "num_ranks 1\nrank 1 {\n}\n",
            "line 2, column 6",
            "use 0 to 0",
        ),
        (
            "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n",
            "line 4, column 6",
            "already",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8 to 0\n}\n",
            "line 3, column 8",
            "`b`",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8b from 0\n}\n",
            "line 3, column 9",
            "`to`",
        ),
        (
            "num_ranks 1\nrank 0 {\nrecv 8b from -1\n}\n",
            "line 3, column 14",
            "name the rank",
        ),
        (
            "num_ranks 1\nrank 0 {\nrecv 8b from 0 tag -1\n}\n",
            "line 3, column 20",
            "name the tag",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n",
            "line 4, column 1",
            "before",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}\n",
            "line 4, column 1",
            "labelled `b`",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}\n",
            "line 3, column 4",
            "waits for itself",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 99999999999999999999\n}\n",
            "line 3, column 6",
            "64 bits",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 1 calc 2\n}\n",
            "line 3, column 8",
            "end of the line",
        ),
        (
            "num_ranks 1\nrank 0 {\n",
            "line 3, column 1",
            "end of the text",
        ),
        (
            "num_ranks 1\nrank 0 {\n/* }\n",
            "line 3, column 1",
            "does not end",
        ),
        (
            "num_ranks 1\nrank 0 {\n§\n}\n",
            "line 3, column 1",
            "no meaning",
        ),
    ] {
        let told = goal::read(text).unwrap_err().to_string();
        assert!(
            told.starts_with(place) && told.contains(what),
            "{text:?}: {told}"
        );
    }
}
