//! The packet program against the core of the switch, and its arithmetic against the processor.
//!
//! Loading programs needs root; without it, and without `unshare` and `ip`, these tests say so and do nothing.
#![cfg(raddle_xdp)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what was skipped, compared and measured"
)]

mod cases;
mod forwarding;
mod model;
mod shapes;
mod world;

use std::{env, path::Path, process::Command};

use model::{Run, Tally};
use raddle_switch::xdp::Hook;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use shapes::Spec;
use world::World;

/// Whether this process is in a network namespace of its own. If not, it starts itself again in one, for this test
/// alone, and hands on how that ended; interfaces and programs go with the namespace.
fn alone(test: &str) -> bool {
    if env::var_os("RADDLE_TEST_ALONE").is_some() {
        return true;
    }
    let able = |program: &str| Command::new(program).arg("--help").output().is_ok();
    let unshared = Command::new("unshare").args(["--net", "true"]).status();
    if !unshared.is_ok_and(|status| status.success()) || !able("ip") {
        eprintln!("skipped {test}: needs root, unshare and ip");
        return false;
    }
    let binary = env::current_exe().expect("a test has a path");
    let status = Command::new("unshare")
        .arg("--net")
        .arg(binary)
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env("RADDLE_TEST_ALONE", "1")
        .status()
        .expect("unshare was started before");
    assert!(status.success(), "{test} failed in its namespace");
    false
}

/// Runs many groups with random traffic through the program and the core; prints and judges what happened.
fn compare(hook: Hook, groups: u64, packets: u32) {
    let mut world = World::at(hook, 1 << 10);
    let mut tally = Tally::default();
    for seed in 0..groups {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let spec = Spec::random(&mut random);
        let late = seed % 5 == 0;
        Run::new(&mut world, &mut random, spec, late).packets(
            &mut random,
            packets,
            &mut tally,
            seed,
        );
    }
    println!("{tally:?}");
    // Every kind of thing must have happened often, or the comparison says little.
    let least = groups / 10;
    for (what, times) in tally.each() {
        assert!(
            times >= least,
            "{what} only {times} times in {groups} groups"
        );
    }
}

#[test]
fn random_traffic_gets_the_same_bytes_from_program_and_core() {
    if alone("random_traffic_gets_the_same_bytes_from_program_and_core") {
        compare(Hook::Native, 10_000, 30);
    }
}

#[test]
fn random_traffic_gets_the_same_bytes_in_traffic_control() {
    if alone("random_traffic_gets_the_same_bytes_in_traffic_control") {
        compare(Hook::Tc, 10_000, 30);
    }
}

#[test]
#[ignore = "scale: 10^6 groups, 30 messages each, some minutes"]
fn a_million_random_sequences_get_the_same_bytes_in_traffic_control() {
    if alone("a_million_random_sequences_get_the_same_bytes_in_traffic_control") {
        compare(Hook::Tc, 1_000_000, 30);
    }
}

#[test]
#[ignore = "scale: 10^6 groups, 30 messages each, some minutes"]
fn a_million_random_sequences_get_the_same_bytes_from_program_and_core() {
    if alone("a_million_random_sequences_get_the_same_bytes_from_program_and_core") {
        compare(Hook::Native, 1_000_000, 30);
    }
}

#[test]
fn members_that_disagree_are_left_to_the_core() {
    if alone("members_that_disagree_are_left_to_the_core") {
        cases::disagreement(&mut World::new(64));
    }
}

#[test]
fn rounds_that_the_core_has_seen_stay_with_it() {
    if alone("rounds_that_the_core_has_seen_stay_with_it") {
        cases::late_neighbour(&mut World::new(64));
    }
}

#[test]
fn a_group_that_is_gone_leaves_nothing() {
    if alone("a_group_that_is_gone_leaves_nothing") {
        cases::install_and_free(&mut World::new(64));
    }
}

#[test]
fn frames_between_known_stations_are_forwarded_unless_the_core_may_need_them() {
    if alone("frames_between_known_stations_are_forwarded_unless_the_core_may_need_them") {
        forwarding::between_known_stations(&mut World::forwarding(Hook::Native));
    }
}

#[test]
fn generic_xdp_forwards_unfinished_frames_too() {
    if alone("generic_xdp_forwards_unfinished_frames_too") {
        forwarding::between_known_stations(&mut World::forwarding(Hook::Generic));
    }
}

#[test]
fn traffic_control_forwards_long_frames_too() {
    if alone("traffic_control_forwards_long_frames_too") {
        forwarding::between_known_stations(&mut World::forwarding(Hook::Tc));
    }
}

#[test]
fn strangers_are_left_to_the_core() {
    if alone("strangers_are_left_to_the_core") {
        forwarding::strangers(&mut World::forwarding(Hook::Native));
    }
}

#[test]
#[ignore = "scale: a measurement; prints nanoseconds"]
fn time_per_message() {
    if alone("time_per_message") {
        cases::times(&mut World::new(64));
    }
}

#[test]
fn sums_of_floats_are_the_processors() {
    arithmetic("10000000");
}

#[test]
#[ignore = "scale: 10^9 sums of each type"]
fn a_thousand_million_sums_of_floats_are_the_processors() {
    arithmetic("1000000000");
}

/// Compiles the program's arithmetic for this machine and compares it with the machine's.
fn arithmetic(pairs: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("xdp/number_test.c");
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("number_test_{pairs}"));
    let compiled = Command::new("clang")
        .args(["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"])
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .status()
        .expect("clang compiled the packet program");
    assert!(compiled.success());
    let output = Command::new(&binary)
        .arg(pairs)
        .output()
        .expect("just compiled");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
