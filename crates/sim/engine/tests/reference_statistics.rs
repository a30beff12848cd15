//! Compat mode against whole experiments of the HPCC repository's ns-3 simulator (commit 9f4be2a).
//!
//! FCT percentiles, throughput and pause time within the promised limits; and more than promised: every single flow of
//! every run completes at the reference's nanosecond, DCQCN's and PINT's too, whose draws come from the same documented
//! generators. `cargo run --release -p raddle-engine --example validate` prints the figures.

mod reference;

use raddle_engine::Semantics;
use reference::{CASES, Case, compare};

fn check(experiment: &str, variant: &str) {
    let case: &Case = CASES
        .iter()
        .find(|case| (case.experiment, case.variant) == (experiment, variant))
        .unwrap();
    let theirs = case.reference();
    let (ours, summary) = case.run(Semantics::HPCC_NS3, 1);
    assert_eq!(summary.drops, 0);
    let outside: Vec<String> = compare(case, &ours, &theirs)
        .iter()
        .filter(|row| !row.holds())
        .map(|row| {
            format!(
                "{}: {} instead of {} ({:+.2} %)",
                row.figure,
                row.ours,
                row.theirs,
                100.0 * row.difference()
            )
        })
        .collect();
    assert!(outside.is_empty(), "{experiment} {variant}: {outside:#?}");
    assert_eq!(
        ours.completions, theirs.completions,
        "in order of completion"
    );
    let sorted = |mut pauses: Vec<_>| {
        pauses.sort_unstable();
        pauses
    };
    assert_eq!(sorted(ours.pauses), sorted(theirs.pauses));
}

macro_rules! cases {
    ($($experiment:ident: $($variant:ident)+;)+) => {
        $(mod $experiment {
            $(#[test]
            fn $variant() {
                super::check(stringify!($experiment), stringify!($variant));
            })+
        })+
    };
}

cases! {
    small: none dctcp dcqcn dcqcn_paper timely hpcc pint;
    large: hpcc dcqcn;
    large100: none dctcp hpcc;
}
