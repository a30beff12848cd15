use raddle_trace::{Action, Event, RankRecording};

use super::*;

const BEGAN: u64 = 1_000;

/// Rank 1 of four, at the end of MPI_Init.
fn recording() -> Recording {
    let origin = Origin {
        rank: 1,
        size: 4,
        ..Origin::default()
    };
    let mut recording = Recording::new(&origin, BEGAN);
    assert_eq!(recording.communicator(&[0, 1, 2, 3], None), 0);
    recording
}

fn at(start: u64, end: u64) -> Interval {
    Interval::new(BEGAN + start, BEGAN + end)
}

fn to(peer: i32, tag: i32, bytes: u64) -> RaddleMessage {
    RaddleMessage {
        bytes,
        peer,
        tag,
        ..RaddleMessage::default()
    }
}

fn any(peer: i32) -> RaddleMessage {
    RaddleMessage {
        any_source: 1,
        any_tag: 1,
        ..to(peer, -1, 0)
    }
}

fn status(source: i32, tag: i32, bytes: u64) -> RaddleMatched {
    RaddleMatched {
        bytes,
        source,
        tag,
        cancelled: 0,
    }
}

fn read(recording: &Recording) -> RankRecording {
    RankRecording::decode(recording.bytes()).expect("what was written can be read")
}

fn actions(recording: &Recording) -> Vec<Action> {
    let events = read(recording).events;
    events.into_iter().map(|event| event.action).collect()
}

fn message(peer: u32, tag: i32, bytes: u64) -> Message {
    Message {
        peer,
        tag,
        comm: 0,
        bytes: Bytes(bytes),
    }
}

fn wait(requests: &[u32]) -> Action {
    Action::Wait {
        requests: requests.into(),
    }
}

fn nothing(_: usize) -> RaddleMatched {
    panic!("the status of a send is not asked for")
}

#[test]
fn a_receive_stands_where_it_was_posted_with_what_it_matched() {
    let mut recording = recording();
    recording.receive(at(10, 20), &any(-1), 77);
    recording.send(at(30, 50), &to(2, 5, 64), 0);
    recording.complete(at(60, 90), [77].into_iter(), |_| status(3, 9, 128));
    recording.end(BEGAN + 100);
    let read = read(&recording);
    assert!(read.complete);
    let any = Wildcards {
        source: true,
        tag: true,
    };
    let event = |start, end, action| Event {
        at: Interval::new(start, end),
        action,
    };
    let received = Action::Receive {
        message: message(3, 9, 128),
        request: Some(0),
        any,
    };
    let sent = Action::Send {
        message: message(2, 5, 64),
        request: None,
    };
    assert_eq!(
        read.events,
        [
            event(10, 20, received),
            event(30, 50, sent),
            event(60, 90, wait(&[0])),
            event(100, 100, Action::End),
        ]
    );
}

#[test]
fn time_in_calls_without_an_event_is_no_compute_gap() {
    let mut recording = recording();
    recording.pass(at(10, 15));
    recording.complete(at(20, 30), [5].into_iter(), nothing);
    recording.send(at(40, 50), &to(0, 0, 1), 0);
    recording.send(at(60, 70), &to(0, 0, 1), 0);
    let times: Vec<_> = read(&recording)
        .events
        .iter()
        .map(|event| event.at)
        .collect();
    // 25 of the 40 ns before it were computed.
    assert_eq!(times, [Interval::new(25, 50), Interval::new(60, 70)]);
}

#[test]
fn sends_that_share_a_handle_are_complete_in_their_order() {
    let mut recording = recording();
    for bytes in 0..3 {
        recording.send(at(bytes, bytes), &to(0, 0, bytes), 8);
    }
    recording.complete(at(9, 9), [8, 8].into_iter(), nothing);
    recording.complete(at(9, 9), [8].into_iter(), nothing);
    recording.complete(at(9, 9), [8].into_iter(), nothing);
    let all = actions(&recording);
    assert_eq!(all[3..], [wait(&[0, 1]), wait(&[2])]);
}

#[test]
fn a_persistent_request_is_a_new_one_at_each_start() {
    let mut recording = recording();
    recording.persist(&to(2, 4, 32), false, 100);
    recording.persist(&any(-1), true, 200);
    for bytes in [7, 8] {
        recording.start(at(0, 4), &[100, 200, 300]);
        recording.complete(at(5, 6), [200, 100].into_iter(), |index| {
            assert_eq!(index, 0);
            status(0, 1, bytes)
        });
    }
    recording.complete(at(7, 7), [200, 100].into_iter(), nothing);
    let all = actions(&recording);
    assert_eq!((&all[2], &all[5]), (&wait(&[1, 0]), &wait(&[3, 2])));
    assert_eq!(all.len(), 6);
    for (event, bytes) in [(1, 7), (4, 8)] {
        assert!(
            matches!(&all[event], Action::Receive { message: found, .. } if *found == message(0, 1, bytes))
        );
    }
}

#[test]
fn what_was_cancelled_or_given_up_did_not_happen() {
    let mut recording = recording();
    recording.receive(at(0, 1), &to(0, 0, 0), 10);
    recording.receive(at(1, 2), &to(0, 0, 0), 11);
    recording.receive(at(2, 3), &to(0, 0, 0), 12);
    recording.send(at(3, 4), &to(0, 0, 5), 13);
    recording.cancel(at(4, 5), 10);
    recording.cancel(at(4, 5), 11);
    recording.release(at(5, 5), 12);
    recording.release(at(5, 5), 13);
    recording.complete(at(6, 7), [10, 11].into_iter(), |index| RaddleMatched {
        cancelled: u8::from(index == 0),
        ..status(0, 0, 3)
    });
    let read = read(&recording);
    assert_eq!(read.left_out, 2);
    let peers: Vec<_> = read
        .events
        .iter()
        .map(|event| event.action.starts())
        .collect();
    assert_eq!(peers, [Some(1), Some(3), None]);
}

#[test]
fn a_handle_that_another_thread_got_meanwhile_is_another_request() {
    let mut recording = recording();
    recording.receive(at(0, 1), &any(-1), 8);
    recording.send(at(1, 2), &to(2, 0, 1), 9);
    let claimed = [recording.claim(8), recording.claim(9), recording.claim(10)];
    assert!(claimed[0] != 8 && claimed[1] != 9 && claimed[2] == 10);
    // While this thread waits for 8, MPI gives the handle to another's receive, which is complete first.
    recording.receive(at(2, 3), &any(-1), 8);
    recording.complete(at(3, 4), [8].into_iter(), |_| status(3, 3, 3));
    recording.complete(at(2, 5), [claimed[0]].into_iter(), |_| status(2, 2, 2));
    recording.restore(claimed[0], 8);
    recording.restore(claimed[1], 9);
    recording.complete(at(6, 7), [9].into_iter(), nothing);
    recording.complete(at(6, 7), [8].into_iter(), nothing);
    let all = actions(&recording);
    assert_eq!(all[3..], [wait(&[2]), wait(&[0]), wait(&[1])]);
    assert!(
        matches!(&all[0], Action::Receive { message: found, .. } if *found == message(2, 2, 2))
    );
}

#[test]
fn a_matched_probe_begins_what_its_receive_completes() {
    let mut recording = recording();
    recording.receive(at(0, 1), &any(-1), 50);
    recording.rename(at(2, 3), 50, 60);
    recording.complete(at(4, 5), [50].into_iter(), nothing);
    recording.complete(at(4, 5), [60].into_iter(), |_| status(2, 1, 4));
    let all = actions(&recording);
    assert!(
        matches!(&all[0], Action::Receive { message: found, .. } if *found == message(2, 1, 4))
    );
    assert_eq!(all[1..], [wait(&[0])]);
}

#[test]
fn ranks_are_those_of_the_world_and_of_the_remote_group() {
    let mut recording = recording();
    assert_eq!(recording.communicator(&[3, 1], None), 1);
    assert_eq!(recording.communicator(&[1, 0], Some(&[3, 2])), 2);
    let mut sent = to(0, 0, 1);
    for comm in [1, 2] {
        sent.comm = comm;
        recording.send(at(0, 0), &sent, 0);
    }
    recording.collective(at(0, 0), 1, CollectiveKind::Bcast, 9, 1, 0);
    // Nobody: the call is no event.
    recording.send(at(0, 0), &to(4, 0, 1), 0);
    let read = read(&recording);
    let members: Vec<Vec<u32>> = read
        .communicators
        .iter()
        .map(|runs| runs.iter().cloned().flatten().collect())
        .collect();
    assert_eq!(members[1..], [vec![3, 1], vec![0, 1, 2, 3]]);
    let peers: Vec<_> = read
        .events
        .iter()
        .map(|event| match &event.action {
            Action::Send { message, .. } => Some(message.peer),
            Action::Collective { call, .. } => call.root,
            _ => None,
        })
        .collect();
    assert_eq!(peers, [Some(3), Some(3), Some(1)]);
}

#[test]
fn an_exchange_is_a_send_a_receive_and_a_wait() {
    let mut recording = recording();
    recording.exchange(at(5, 9), Some(&to(2, 1, 10)), Some(&to(0, 1, 20)));
    recording.exchange(at(10, 12), Some(&to(2, 1, 10)), None);
    recording.exchange(at(13, 15), None, None);
    let events = read(&recording).events;
    let waits: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.action, Action::Wait { .. }))
        .map(|event| (event.at, &event.action))
        .collect();
    assert_eq!(
        waits,
        [
            (Interval::new(5, 9), &wait(&[0, 1])),
            (Interval::new(10, 12), &wait(&[2]))
        ]
    );
    assert_eq!(events.len(), 5);
}

#[test]
fn neighbours_are_sends_and_receives() {
    let mut recording = recording();
    let share = |rank, bytes| RaddleShare { bytes, rank };
    recording.neighbours(at(0, 9), 0, &[share(2, 1)], &[share(0, 2), share(3, 3)], 40);
    recording.complete(at(10, 20), [40].into_iter(), nothing);
    recording.neighbours(at(20, 30), 0, &[], &[], 0);
    let all = actions(&recording);
    assert_eq!(all.len(), 4);
    assert_eq!(all[3], wait(&[0, 1, 2]));
    let sizes: Vec<_> = all
        .iter()
        .filter_map(|action| match action {
            Action::Send { message, .. } | Action::Receive { message, .. } => {
                Some((message.peer, message.bytes.0))
            }
            _ => None,
        })
        .collect();
    assert_eq!(sizes, [(0, 2), (3, 3), (2, 1)]);
}
