//! What a communicator decides, on ranks that are threads: no MPI library, no switch.

use std::{ptr, thread, time::Duration};

use raddle_wire::{DataType, Operation, native::Collective};
use serde_json::{Value, json};

use super::{
    call::{Call, Verdict, View},
    communicator::Communicator,
    reason::Reason,
};
use crate::{
    library::fake::{FakeMpi, run},
    settings::Settings,
};

const JOB: [(&str, &str); 2] = [
    ("RADDLE_JOB", "7"),
    ("RADDLE_JOB_KEY", "000102030405060708090a0b0c0d0e0f"),
];

/// A rank's communicator over ranks that are nodes of their own, unless `set` says otherwise.
fn communicator(
    rank: usize,
    size: u32,
    mpi: FakeMpi,
    set: &[(&str, &str)],
) -> Communicator<FakeMpi> {
    let node = format!("node{rank}");
    let mut all = vec![("RADDLE_NODE", node.as_str())];
    all.extend_from_slice(set);
    Communicator::new(View {
        plain: mpi,
        settings: Settings::of(&all),
        rank: u32::try_from(rank).expect("few ranks"),
        size,
        inter: false,
        world: true,
        session: false,
        name: String::new(),
    })
}

/// An Allreduce of so many doubles; nothing is done with its buffers.
fn allreduce(count: usize) -> Call {
    Call {
        send: ptr::null(),
        receive: ptr::null_mut(),
        count,
        handle: 0,
        root: 0,
        collective: Collective::Allreduce,
        operation: Some(Operation::Sum),
        data_type: Some(DataType::Double),
        reason: Reason::Eligible,
    }
}

/// Plain calls by reason, as rank 0 reports them after so many calls of each rank.
fn reasons(
    calls: usize,
    size: u32,
    set: impl Fn(usize) -> Vec<(&'static str, &'static str)> + Sync,
) -> Value {
    let ranks = run(size as usize, |rank, mpi| {
        let mut one = communicator(rank, size, mpi, &set(rank));
        for _ in 0..calls {
            assert_eq!(one.begin(&allreduce(1)), Verdict::Plain);
        }
        one.release();
        one.close();
        one.summary()
    });
    assert!(ranks[1..].iter().all(Option::is_none), "rank 0 reports");
    let summary = ranks.into_iter().next().flatten();
    summary.expect("it made calls")["counts"]["plain"].take()
}

fn with_job(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [JOB.as_slice(), more].concat()
}

#[test]
fn the_first_three_calls_are_plain_and_the_fourth_says_why_all_others_are() {
    let found = reasons(6, 3, |_| Vec::new());
    assert_eq!(found, json!({"early": 3, "no_job": 3}));
}

#[test]
fn one_rank_without_a_job_is_enough() {
    let found = reasons(
        4,
        3,
        |rank| if rank == 2 { Vec::new() } else { JOB.to_vec() },
    );
    assert_eq!(found, json!({"early": 3, "no_job": 1}));
}

#[test]
fn ranks_with_other_settings_stay_plain() {
    let found = reasons(4, 2, |rank| {
        with_job(&[("RADDLE_MAX_BYTES", if rank == 0 { "8" } else { "16" })])
    });
    assert_eq!(found, json!({"early": 3, "settings": 1}));
}

#[test]
fn ranks_of_one_node_stay_plain() {
    let found = reasons(4, 2, |_| with_job(&[("RADDLE_NODE", "same")]));
    assert_eq!(found, json!({"early": 3, "one_node": 1}));
}

#[test]
fn never_is_never() {
    let found = reasons(4, 2, |_| with_job(&[("RADDLE_OFFLOAD", "never")]));
    assert_eq!(found, json!({"early": 3, "never": 1}));
}

#[test]
fn where_it_is_measured_nothing_is_set_up_before_the_fiftieth_call() {
    let found = reasons(49, 2, |_| JOB.to_vec());
    assert_eq!(found, json!({"early": 49}));
}

#[test]
fn what_speaks_against_a_call_is_known_before_a_group_is_set_up() {
    run(2, |rank, mpi| {
        let set = with_job(&[("RADDLE_OFFLOAD", "always"), ("RADDLE_MAX_BYTES", "64")]);
        let mut one = communicator(rank, 2, mpi, &set);
        for _ in 0..3 {
            one.begin(&allreduce(1));
        }
        assert_eq!(one.begin(&allreduce(9)), Verdict::Plain);
        let derived = Call {
            reason: Reason::Type,
            ..allreduce(1)
        };
        assert_eq!(one.begin(&derived), Verdict::Plain);
        if let Some(summary) = one.summary() {
            assert_eq!(
                summary["counts"]["plain"],
                json!({"early": 3, "size": 1, "type": 1})
            );
            assert_eq!(summary["state"], "early");
        }
    });
}

#[test]
fn a_rank_without_an_interface_keeps_all_plain() {
    let found = reasons(6, 3, |rank| {
        let interface = if rank == 1 { "nowhere" } else { "lo" };
        with_job(&[
            ("RADDLE_OFFLOAD", "always"),
            ("RADDLE_ORDER", "arrival"),
            ("RADDLE_INTERFACE", interface),
            ("RADDLE_COME_BACK_MS", "0"),
        ])
    });
    assert_eq!(found, json!({"early": 3, "no_interface": 3}));
}

const NO_SWITCH: [(&str, &str); 4] = [
    ("RADDLE_OFFLOAD", "always"),
    ("RADDLE_ORDER", "arrival"),
    ("RADDLE_INTERFACE", "lo"),
    ("RADDLE_SETUP_MS", "30"),
];

#[test]
fn without_a_switch_all_ranks_stay_plain_together() {
    let found = reasons(6, 2, |_| {
        let never_again = ("RADDLE_COME_BACK_MS", "0");
        with_job(&[NO_SWITCH.as_slice(), &[never_again]].concat())
    });
    assert_eq!(found, json!({"early": 3, "no_switch": 3}));
}

#[test]
fn leaders_speak_for_the_ranks_of_their_nodes() {
    let found = reasons(5, 4, |rank| {
        let node = if rank < 2 { "left" } else { "right" };
        let more = [("RADDLE_NODE", node), ("RADDLE_COME_BACK_MS", "0")];
        with_job(&[NO_SWITCH.as_slice(), &more].concat())
    });
    assert_eq!(found, json!({"early": 3, "no_switch": 2}));
}

const PUBLISHED: [(&str, &str); 3] = [
    ("RADDLE_PROTOCOL", "published"),
    ("RADDLE_SETUP_MS", "2000"),
    ("RADDLE_COME_BACK_MS", "0"),
];

/// Leaders reach each other over the loopback interface, on which no switch computes. Without the right to open raw sockets
/// that is the reason.
#[test]
fn by_the_published_protocol_too_all_ranks_stay_plain_together_without_a_switch() {
    let found = reasons(6, 4, |rank| {
        let node = if rank < 2 { "left" } else { "right" };
        let set = [NO_SWITCH.as_slice(), &PUBLISHED, &[("RADDLE_NODE", node)]];
        with_job(&set.concat())
    });
    let reasons = [
        json!({"early": 3, "no_switch": 3}),
        json!({"early": 3, "no_raw_socket": 3}),
    ];
    assert!(reasons.contains(&found), "{found}");
}

#[test]
fn the_published_protocol_needs_nodes_that_are_alike() {
    let found = reasons(5, 3, |rank| {
        let node = if rank < 2 { "left" } else { "right" };
        let set = [NO_SWITCH.as_slice(), &PUBLISHED, &[("RADDLE_NODE", node)]];
        with_job(&set.concat())
    });
    assert_eq!(found, json!({"early": 3, "places": 2}));
}

#[test]
fn the_published_protocol_is_for_short_allreduces() {
    run(2, |rank, mpi| {
        let set = with_job(&[NO_SWITCH.as_slice(), &PUBLISHED].concat());
        let mut one = communicator(rank, 2, mpi, &set);
        for _ in 0..3 {
            one.begin(&allreduce(1));
        }
        let barrier = Call {
            collective: Collective::Barrier,
            ..allreduce(0)
        };
        assert_eq!(one.begin(&allreduce(33)), Verdict::Plain);
        assert_eq!(one.begin(&barrier), Verdict::Plain);
        if let Some(summary) = one.summary() {
            let plain = &summary["counts"]["plain"];
            assert_eq!(*plain, json!({"early": 3, "size": 1, "unsupported": 1}));
        }
    });
}

#[test]
fn all_ranks_try_again_after_the_wait() {
    let summaries = run(2, |rank, mpi| {
        let set = with_job(&[NO_SWITCH.as_slice(), &[("RADDLE_COME_BACK_MS", "20")]].concat());
        let mut one = communicator(rank, 2, mpi, &set);
        for _ in 0..200 {
            assert_eq!(one.begin(&allreduce(1)), Verdict::Plain);
            thread::sleep(Duration::from_millis(2));
        }
        one.release();
        one.close();
        one.summary()
    });
    let summary = summaries[0].as_ref().expect("rank 0 reports");
    assert_eq!(summary["state"], "no_switch");
    let rounds = &summary["counts"]["rounds"];
    assert!(rounds["tries"].as_u64() >= Some(1), "{rounds}");
    assert_eq!(rounds["comebacks"], 0);
}

#[test]
fn an_mpi_that_fails_is_not_asked_again() {
    run(2, |rank, mpi| {
        mpi.break_off();
        let mut one = communicator(rank, 2, mpi, &JOB);
        for _ in 0..6 {
            assert_eq!(one.begin(&allreduce(1)), Verdict::Plain);
        }
        if let Some(summary) = one.summary() {
            let plain = &summary["counts"]["plain"];
            assert_eq!(*plain, json!({"early": 3, "failed": 3}));
        }
    });
}

#[test]
fn communicators_that_cannot_gain_are_plain_from_the_first_call() {
    let one = |inter, session, size| {
        let [mpi] = FakeMpi::world(1).try_into().expect("one rank");
        let mut one = Communicator::new(View {
            plain: mpi,
            settings: Settings::of(&JOB),
            rank: 0,
            size,
            inter,
            world: false,
            session,
            name: "mine".to_owned(),
        });
        assert_eq!(one.begin_plain(Collective::Barrier), Some(Verdict::Plain));
        one.summary().expect("it made a call")
    };
    for (found, reason) in [
        (one(true, false, 2), "intercommunicator"),
        (one(false, false, 1), "alone"),
        (one(false, true, 2), "session"),
    ] {
        assert_eq!(found["state"], reason);
        assert_eq!(found["name"], "mine");
    }
}
