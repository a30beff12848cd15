//! Ranks change the way of their messages only where nothing is under way, and stay with what was faster.

use proptest::{collection::vec, prelude::*};
use raddle_matching::{Counts, Statistics, Trial, Vote, Way};
use raddle_units::Span;

const JOINED: Vote = Vote {
    under_way: 0,
    waiting: 0,
    parcels: 10,
    parts: 200,
    offered: 0,
    nanoseconds: 0,
};

/// Runs collectives until the trial is settled, each of which takes the time that `time` says for its way and number;
/// gives how many there were.
fn settle(trial: &mut Trial, time: impl Fn(Way, i64) -> i64) -> i64 {
    let mut elapsed = 0;
    for number in 1..10_000 {
        elapsed += time(trial.way(), number);
        if trial.collective() {
            let sum = Vote {
                nanoseconds: std::mem::take(&mut elapsed),
                ..JOINED
            };
            assert_eq!(trial.decide(&sum), trial.way());
        }
        if trial.is_settled() {
            assert!(!trial.collective());
            return number;
        }
    }
    panic!("not settled");
}

/// 16 collectives to warm up, then 18 turns of 8.
#[test]
fn the_faster_way_stays() {
    for (ours, plain, right) in [
        (1000, 1010, Way::Ours),
        (1010, 1000, Way::Plain),
        (1000, 1000, Way::Plain),
        (1, 1_000_000, Way::Ours),
    ] {
        let mut trial = Trial::new(false);
        // One in 50 takes a thousand times as long, whichever way: that decides nothing.
        let time = |way, number| {
            let own = if way == Way::Ours { ours } else { plain };
            if number % 50 == 0 { own * 1000 } else { own }
        };
        assert_eq!(settle(&mut trial, time), 16 + 18 * 8);
        assert_eq!(trial.way(), right, "{ours} {plain}");
    }
}

#[test]
fn where_nothing_is_joined_or_offered_messages_are_plain_at_once() {
    for (parts, offered, right) in [(19, 0, true), (20, 0, false), (19, 1, false)] {
        let mut trial = Trial::new(false);
        let points: Vec<u32> = (1..=16).filter(|_| trial.collective()).collect();
        assert_eq!(points, [16]);
        trial.decide(&Vote {
            parts,
            offered,
            ..JOINED
        });
        assert_eq!(trial.is_settled(), right);
        assert_eq!(trial.way(), Way::Plain);
    }
}

/// A program that sends nothing before its long loop without collectives spends that loop on the plain way.
#[test]
fn as_long_as_nothing_is_sent_messages_are_plain() {
    let nothing = Vote {
        parcels: 0,
        parts: 0,
        ..JOINED
    };
    let mut trial = Trial::new(false);
    let mut ask = |sum: &Vote| {
        let collectives = 1 + (1..).take_while(|_| !trial.collective()).count();
        trial.decide(sum);
        (collectives, trial.is_settled(), trial.way())
    };
    assert_eq!(ask(&nothing), (16, false, Way::Plain));
    for turn in 1..9 {
        assert_eq!(ask(&nothing), (8 << turn, false, Way::Plain));
    }
    assert_eq!(ask(&JOINED), (8 << 9, false, Way::Ours));
    assert_eq!(ask(&nothing), (8, false, Way::Plain));
    for turn in 1..9 {
        assert_eq!(ask(&nothing), (8 << turn, false, Way::Plain));
    }
    assert_eq!(ask(&nothing), (8 << 9, true, Way::Plain));
}

#[test]
fn messages_that_would_not_be_joined_stay_plain() {
    let mut trial = Trial::new(false);
    while !trial.collective() {}
    assert_eq!(trial.decide(&JOINED), Way::Plain);
    assert!(!trial.is_settled());
    while !trial.collective() {}
    let alone = Vote {
        parts: 11,
        ..JOINED
    };
    assert_eq!(trial.decide(&alone), Way::Plain);
    assert!(trial.is_settled());
}

/// While messages are under way there is a point every 8 collectives; 32 in a row are enough, 31 are not.
#[test]
fn what_is_never_quiet_stays_as_it_is() {
    let mut trial = Trial::new(false);
    let mut ask = |under_way| {
        let collectives = 1 + (1..).take_while(|_| !trial.collective()).count();
        trial.decide(&Vote {
            under_way,
            ..JOINED
        });
        (collectives, trial.is_settled(), trial.way())
    };
    assert_eq!(ask(1), (16, false, Way::Ours));
    for _ in 1..31 {
        assert_eq!(ask(1), (8, false, Way::Ours));
    }
    assert_eq!(ask(0), (8, false, Way::Plain));
    for _ in 0..31 {
        assert_eq!(ask(-1), (8, false, Way::Plain));
    }
    assert_eq!(ask(-1), (8, true, Way::Plain));
}

#[test]
fn a_vote_is_what_happened_since_the_last() {
    let mut trial = Trial::new(false);
    let counts = |sent, received| Counts {
        sent,
        received,
        waiting: 2,
    };
    let statistics = |parcels, parts| Statistics {
        parcels,
        parts,
        offered: parcels - 4,
        ..Statistics::default()
    };
    trial.vote(&counts(3, 3), &statistics(5, 9), Span(1));
    let vote = trial.vote(&counts(10, 14), &statistics(7, 19), Span(2_000_999));
    assert_eq!(vote.words(), [-4, 2, 2, 10, 2, 2000]);
    assert_eq!(Vote::from_words(vote.words()), vote);
}

proptest! {
    /// Whatever the votes are.
    #[test]
    fn the_way_changes_only_where_it_is_quiet(
        votes in vec((-1_i64..2, 0_i64..2, 0_i64..9, 0_i64..40, 0_i64..1 << 40), 0..200),
    ) {
        let mut trial = Trial::new(false);
        let mut busy = 0;
        for (under_way, waiting, parcels, parts, nanoseconds) in votes {
            while !trial.collective() {
                if trial.is_settled() {
                    return Ok(());
                }
            }
            let sum = Vote { under_way, waiting, parcels, parts, offered: 0, nanoseconds };
            let before = trial.way();
            let way = trial.decide(&sum);
            let quiet = under_way == 0 && waiting == 0;
            prop_assert!(quiet || way == before);
            busy = if quiet { 0 } else { busy + 1 };
            prop_assert!(busy < 32 || trial.is_settled());
        }
    }
}

/// Long messages join nothing, and may still be faster on rails: plain turns do not end the trial before ours have offered some
/// or none.
#[test]
fn long_messages_stay_on_trial_where_they_may_be_offered() {
    let long = Vote {
        parts: JOINED.parcels,
        ..JOINED
    };
    let settles = |trial: &mut Trial, sum: &Vote| {
        while !trial.collective() {}
        trial.decide(sum);
        trial.is_settled()
    };
    for offered in [0, 5] {
        let mut trial = Trial::new(true);
        let nothing = Vote {
            parcels: 0,
            parts: 0,
            ..JOINED
        };
        assert!(!settles(&mut trial, &nothing));
        assert!(!settles(&mut trial, &long), "a plain turn");
        assert_eq!(trial.way(), Way::Ours);
        let settled = settles(&mut trial, &Vote { offered, ..long });
        assert_eq!(settled, offered == 0);
    }
}
