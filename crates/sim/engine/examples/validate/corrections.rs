//! What each correction of the default mode is worth: the default mode with one quirk of the reference brought back,
//! beside the default mode. A cell is quirk / correction - 1.

use raddle_engine::{
    Semantics,
    semantics::{LinkTiming, QueueView, Randomness, TieOrder},
};
use raddle_transport::{cc::Defaults, reliability::Duplicates};
use raddle_unicast::NextHopOrder;

use crate::reference::{CASES, Case, Outcome, compare};

/// Runs that the quirks are tried on.
const TRIED: [(&str, &str); 8] = [
    ("small", "dcqcn"),
    ("small", "timely"),
    ("small", "hpcc"),
    ("small", "pint"),
    ("large", "dcqcn"),
    ("large100", "none"),
    ("large100", "dctcp"),
    ("large100", "hpcc"),
];

fn quirks() -> Vec<(&'static str, Semantics)> {
    let base = Semantics::CORRECTED;
    let quirk = |name, change: fn(&mut Semantics)| {
        let mut semantics = base;
        change(&mut semantics);
        (name, semantics)
    };
    vec![
        quirk("timing", |s| s.timing = LinkTiming::TruncatedNs),
        quirk("ties", |s| s.ties = TieOrder::Insertion),
        quirk("next_hops", |s| {
            s.next_hops = NextHopOrder::DescendingNodeId;
        }),
        quirk("queue_view", |s| {
            s.queue_view = QueueView::WithoutDeparting;
        }),
        quirk("acks_in_control_queue", |s| s.acks_in_control_queue = false),
        quirk("duplicates", |s| s.duplicates = Duplicates::Ignore),
        quirk("retransmission_timer", |s| s.retransmission_timer = false),
        quirk("exact_headroom", |s| s.exact_headroom = false),
        quirk("hop_records", |s| s.hop_records = Some(5)),
        quirk("defaults", |s| s.defaults = Defaults::HpccNs3),
        quirk("wake_ignores_blocked", |s| s.wake_ignores_blocked = false),
        quirk("pint_logarithms", |s| s.pint_logarithms = true),
        quirk("randomness", |s| s.randomness = Randomness::HpccNs3),
    ]
}

pub(crate) fn print() {
    let cases: Vec<&Case> = TRIED
        .iter()
        .filter_map(|tried| {
            CASES
                .iter()
                .find(|case| (case.experiment, case.variant) == *tried)
        })
        .collect();
    let corrected: Vec<Outcome> = cases
        .iter()
        .map(|case| case.run(Semantics::CORRECTED, 1).0)
        .collect();
    print!("| brought back |");
    for case in &cases {
        print!(" {} {} |", case.experiment, case.variant);
    }
    println!("\n|---|{}", "---|".repeat(cases.len()));
    for (name, semantics) in quirks() {
        print!("| `{name}` |");
        for (case, corrected) in cases.iter().zip(&corrected) {
            let (quirk, _) = case.run(semantics, 1);
            print!(" {} |", effect(case, &quirk, corrected));
        }
        println!();
    }
}

/// Short flows' p50 and p99 and the long flows' throughput, where one of them moves by a thousandth.
fn effect(case: &Case, quirk: &Outcome, corrected: &Outcome) -> String {
    let short = if case.experiment == "small" {
        "FCT short"
    } else {
        "FCT tested-short"
    };
    let shown = [
        (format!("{short} p50 (us)"), "p50"),
        (format!("{short} p99 (us)"), "p99"),
        ("long-flow throughput (Gb/s)".into(), "long"),
        ("PFC pause time (us)".into(), "pause"),
    ];
    let rows = compare(case, quirk, corrected);
    let moved: Vec<String> = shown
        .iter()
        .filter_map(|(figure, short)| {
            let row = rows.iter().find(|row| row.figure == *figure)?;
            let percent = 100.0 * row.difference();
            (percent.abs() >= 0.1).then(|| format!("{short} {percent:+.1} %"))
        })
        .collect();
    if moved.is_empty() {
        "0".into()
    } else {
        moved.join(", ")
    }
}
