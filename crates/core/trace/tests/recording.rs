//! What ranks record is what they called; what ranks do not agree on is told.

mod common;

use common::{Program, program};
use proptest::prelude::*;
use raddle_trace::{
    Action, AssembleError, Completion, Interval, Message, Origin, Outcome, RankRecording, Recorder,
    Wildcards, assemble,
};
use raddle_units::Bytes;

fn recordings(program: &Program) -> Vec<RankRecording> {
    (0..program.ranks)
        .map(|rank| RankRecording::decode(&program.rank(rank).0).unwrap())
        .collect()
}

proptest! {
    #[test]
    fn a_recording_has_the_calls_of_its_rank(program in program()) {
        for rank in 0..program.ranks {
            let (bytes, events) = program.rank(rank);
            let recording = RankRecording::decode(&bytes).unwrap();
            prop_assert_eq!(recording.origin, program.origin(rank));
            prop_assert_eq!(recording.events, events);
            prop_assert!(recording.complete);
            prop_assert_eq!(recording.left_out, 0);
        }
    }

    #[test]
    fn recordings_of_all_ranks_are_a_trace_in_any_order(program in program(), seed in any::<u64>()) {
        let mut recordings = recordings(&program);
        recordings.sort_by_key(|recording| seed.rotate_left(recording.origin.rank * 7));
        prop_assert_eq!(assemble(recordings).unwrap(), program.trace());
    }

    /// A cut is an error, unless it is at the end of a record: then the recording is not complete.
    #[test]
    fn a_cut_recording_is_never_complete(program in program(), part in 0.0..1.0) {
        let (bytes, events) = program.rank(0);
        let length = (part * bytes.len() as f64) as usize;
        if let Ok(recording) = RankRecording::decode(&bytes[..length]) {
            prop_assert!(!recording.complete);
            prop_assert!(recording.events.len() < events.len());
            let error = assemble(vec![recording]).unwrap_err();
            let expected = matches!(
                error,
                AssembleError::Incomplete { rank: 0 } | AssembleError::Missing { .. }
            );
            prop_assert!(expected, "{}", error);
        }
    }

    /// Every message needs its other end.
    #[test]
    fn a_message_without_its_other_end_is_told(program in program(), which in any::<prop::sample::Index>()) {
        let mut recordings = recordings(&program);
        let ends: Vec<(usize, usize)> = recordings
            .iter()
            .enumerate()
            .flat_map(|(rank, recording)| {
                let is_message = |action: &Action| {
                    matches!(action, Action::Send { request: None, .. })
                };
                let calls = recording.events.iter().enumerate();
                calls
                    .filter(move |(_, call)| is_message(&call.action))
                    .map(move |(event, _)| (rank, event))
            })
            .collect();
        prop_assume!(!ends.is_empty());
        let (rank, event) = ends[which.index(ends.len())];
        recordings[rank].events.remove(event);
        // Without the message one of its kind is missing: a receive without send, or ends of other sizes.
        let told = assemble(recordings).unwrap_err().to_string();
        prop_assert!(told.contains("never sent") || told.contains("were received"), "{}", told);
    }
}

fn origin(rank: u32, size: u32) -> Origin {
    Origin {
        rank,
        size,
        host: "n".to_owned(),
        ..Origin::default()
    }
}

/// The program of a recording that is often made: small messages to near ranks.
#[test]
fn a_message_takes_less_than_16_bytes_at_either_end() {
    let mut recorder = Recorder::new(&origin(0, 1000));
    let head = recorder.bytes().len();
    let mut now = 0;
    for round in 0..1_000_u32 {
        let mut completions = Vec::new();
        for neighbour in 0..26 {
            let peer = neighbour * 37;
            let (tag, bytes) = (neighbour as i32, Bytes(8_000));
            now += 400;
            let at = Interval::instant(now);
            let request = recorder.start_receive(at, 0, Wildcards::default());
            let source = peer;
            let outcome = Outcome::Matched { source, tag, bytes };
            completions.push(Completion { request, outcome });
            let message = Message {
                peer,
                tag,
                comm: 0,
                bytes,
            };
            let request = recorder.start_send(Interval::new(now, now + 350), &message);
            let outcome = Outcome::Done;
            completions.push(Completion { request, outcome });
        }
        now += u64::from(1_000_000 + round);
        recorder.wait(Interval::new(now, now + 40_000), &completions);
        now += 40_000;
    }
    let per_message = (recorder.bytes().len() - head) as f64 / (2.0 * 26.0 * 1_000.0);
    assert!(per_message < 16.0, "{per_message} B");
    assert!(
        per_message > 5.0,
        "{per_message} B are fewer than its fields"
    );
}

#[test]
fn what_was_cancelled_or_never_waited_for_is_left_out() {
    let mut recorder = Recorder::new(&origin(0, 2));
    let at = Interval::instant(1);
    let message = Message {
        peer: 1,
        tag: 0,
        comm: 0,
        bytes: Bytes(1),
    };
    let cancelled = recorder.start_receive(at, 0, Wildcards::default());
    let _never = recorder.start_receive(at, 0, Wildcards::default());
    let _freed = recorder.start_send(at, &message);
    let outcome = Outcome::Cancelled;
    recorder.wait(
        at,
        &[Completion {
            request: cancelled,
            outcome,
        }],
    );
    recorder.end(5);
    let recording = RankRecording::decode(recorder.bytes()).unwrap();
    assert_eq!(recording.left_out, 2);
    let kept: Vec<_> = recording.events.iter().map(|event| &event.action).collect();
    assert!(matches!(
        kept[..],
        [
            Action::Send {
                request: Some(2),
                ..
            },
            Action::Wait { .. },
            Action::End
        ]
    ));
}

#[test]
fn communicators_with_the_same_members_are_told_apart() {
    // Rank 1 meets them in another order with other numbers than rank 0; those of the same members in the same.
    let of = |rank: u32| {
        let mut recorder = Recorder::new(&origin(rank, 3));
        let send = |recorder: &mut Recorder, comm| {
            let at = Interval::instant(1);
            let message = Message {
                peer: 1 - rank.min(1),
                tag: 0,
                comm,
                bytes: Bytes(u64::from(comm)),
            };
            match rank {
                0 => recorder.send(at, &message),
                _ => recorder.receive(at, &message, Wildcards::default()),
            }
        };
        if rank == 0 {
            let own = recorder.communicator([0]);
            let both = recorder.communicator([1, 0]);
            let again = recorder.communicator([1, 0]);
            assert_eq!((own, both, again), (1, 2, 3));
            send(&mut recorder, both);
            send(&mut recorder, again);
        } else if rank == 1 {
            let fillers: Vec<u32> = (0..1).map(|_| recorder.communicator([1])).collect();
            assert_eq!(fillers, [1]);
            let both = recorder.communicator([1, 0]);
            let again = recorder.communicator([1, 0]);
            send(&mut recorder, both);
            send(&mut recorder, again);
        }
        recorder.end(2);
        RankRecording::decode(recorder.bytes()).unwrap()
    };
    let trace = assemble((0..3).map(of).collect()).unwrap();
    assert_eq!(
        trace.communicators,
        [vec![0, 1, 2], vec![0], vec![1, 0], vec![1, 0], vec![1]]
    );
    let comms = |rank: usize| -> Vec<_> {
        let calls = trace.ranks[rank].iter();
        calls.filter_map(|event| event.action.comm()).collect()
    };
    assert_eq!(comms(0), [2, 3]);
    assert_eq!(comms(1), [2, 3]);
}

#[test]
fn ranks_that_disagree_are_told() {
    let alone = |rank, size| {
        let mut recorder = Recorder::new(&origin(rank, size));
        recorder.end(1);
        RankRecording::decode(recorder.bytes()).unwrap()
    };
    let told = |recordings| assemble(recordings).unwrap_err().to_string();
    assert!(told(vec![]).contains("no recordings"));
    assert!(told(vec![alone(0, 2)]).contains("rank 1 is missing: 1 of 2"));
    assert!(told(vec![alone(1, 2)]).contains("rank 0 is missing"));
    assert!(told(vec![alone(0, 2), alone(0, 2)]).contains("rank 0 has two"));
    assert!(told(vec![alone(0, 2), alone(1, 3)]).contains("two runs"));
    let with = |members: [u32; 2]| {
        let mut recorder = Recorder::new(&origin(0, 2));
        recorder.communicator(members);
        recorder.end(1);
        RankRecording::decode(recorder.bytes()).unwrap()
    };
    let told = told(vec![with([1, 0]), alone(1, 2)]);
    assert!(
        told.contains("rank 0 has a communicator of 2 ranks that rank 1 does not"),
        "{told}"
    );
}
