use bytes::Bytes as Buffer;
use raddle_trace::{
    Action, Collective, CollectiveKind, Event, Interval, Message, NEIGHBOUR_TAG, Trace, Wildcards,
};
use raddle_units::Bytes;

use super::{read, write};

#[path = "../../../../../fuzz/replay.rs"]
mod corpus;

/// Every kind of call, extreme values, and a rank that does nothing.
fn trace() -> Trace {
    let message = |peer, tag, comm, bytes| Message {
        peer,
        tag,
        comm,
        bytes: Bytes(bytes),
    };
    let mut at = 0;
    let mut event = |action| {
        at += 10;
        let at = Interval::new(at, at + 7);
        Event { at, action }
    };
    let any = Wildcards {
        source: true,
        tag: false,
    };
    let mut events = vec![
        event(Action::Send {
            message: message(2, i32::MAX, 1, 1 << 62),
            request: Some(7),
        }),
        event(Action::Receive {
            message: message(0, NEIGHBOUR_TAG, 0, 0),
            request: Some(u32::MAX),
            any,
        }),
        event(Action::Wait {
            requests: [u32::MAX, 7].into(),
        }),
        event(Action::Wait {
            requests: Box::default(),
        }),
        event(Action::Receive {
            message: message(0, 3, 0, 1),
            request: None,
            any: Wildcards::default(),
        }),
    ];
    for kind in CollectiveKind::ALL {
        let call = Collective {
            kind,
            comm: 1,
            bytes: Bytes(8),
            root: kind.has_root().then_some(2),
        };
        let request = (kind == CollectiveKind::Barrier).then_some(9);
        events.push(event(Action::Collective { call, request }));
    }
    events.push(event(Action::End));
    Trace {
        ranks: vec![events, Vec::new(), Vec::new()],
        placement: vec![0, 1, 1],
        hosts: vec!["a b".to_owned(), "\"é\"".to_owned()],
        communicators: vec![vec![0, 1, 2], vec![2, 0]],
        fabric: "[fabric]\nkind = \"leaf-spine\"\n".to_owned(),
        program: "mpirun -n 3 a.out".to_owned(),
        mpi: "some MPI".to_owned(),
        processors: Some(2),
    }
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(trace, &mut bytes).unwrap();
    bytes
}

fn told(bytes: Vec<u8>) -> String {
    read(Buffer::from(bytes), "x.trace.parquet")
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_written_is_read_again() {
    let trace = trace();
    assert_eq!(read(Buffer::from(written(&trace)), "x").unwrap(), trace);
}

#[test]
fn calls_are_read_across_batches() {
    let mut trace = trace();
    let wait = Event {
        at: Interval::instant(5),
        action: Action::Wait {
            requests: Box::default(),
        },
    };
    trace.ranks[1] = vec![wait; super::BATCH_ROWS + 3];
    assert_eq!(read(Buffer::from(written(&trace)), "x").unwrap(), trace);
}

#[test]
fn a_file_that_is_cut_is_told_with_its_name() {
    let whole = written(&trace());
    for length in 0..whole.len() {
        let error = told(whole[..length].to_vec());
        assert!(error.starts_with("x.trace.parquet: "), "{error}");
        assert!(!error.contains("Parquet error"), "{error}");
    }
}

/// A changed byte may go unnoticed (a size, a time), but is never a panic, and an error names the file.
#[test]
fn a_damaged_file_is_read_or_told() {
    let whole = written(&trace());
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        if let Err(error) = read(Buffer::from(damaged), "x.trace.parquet") {
            let error = error.to_string();
            assert!(error.starts_with("x.trace.parquet: "), "{error}");
        }
    }
}

#[test]
fn what_the_fuzzer_keeps_is_read_or_told() {
    corpus::replay("trace_parquet", |bytes| {
        if let Err(error) = read(Buffer::copy_from_slice(bytes), "x.trace.parquet") {
            let error = error.to_string();
            assert!(error.starts_with("x.trace.parquet: "), "{error}");
        }
    });
}

#[test]
fn other_files_and_bad_calls_are_told() {
    assert!(told(b"PAR1 is not enough PAR1".to_vec()).contains("not a complete Parquet file"));
    let mut bad = trace();
    bad.placement[1] = 9;
    assert!(told(written(&bad)).contains("rank 1 is on host 9, but the trace has 2 hosts"));
    let mut bad = trace();
    bad.ranks[0][0].at = Interval::new(5, 4);
    assert!(told(written(&bad)).contains("rank 0, event 0: it ends at 4 ns"));
    let mut bad = trace();
    bad.ranks[1].push(Event {
        at: Interval::instant(0),
        action: Action::Wait {
            requests: [3].into(),
        },
    });
    assert!(told(written(&bad)).contains("rank 1, event 0: it waits for request 3"));
    let mut bad = trace();
    bad.communicators[0] = vec![0, 1];
    assert!(told(written(&bad)).contains("communicator 0: it is MPI_COMM_WORLD"));
}
