//! Packets that nobody should send: random ones, damaged ones, and those of a hostile program with the job's own key.

use proptest::prelude::*;

#[path = "../../../../fuzz/offload.rs"]
mod offload;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn changed_messages_do_no_harm(commands in proptest::collection::vec(any::<[u8; 8]>(), 0..60)) {
        offload::packets(&commands.concat());
    }

    /// Few bytes differ from what a well-behaved program sends, so that messages come far.
    #[test]
    fn nearly_right_messages_do_no_harm(
        commands in proptest::collection::vec((any::<u8>(), 0_u8..130, 0_u8..3, 0_u8..20, any::<bool>()), 0..120),
    ) {
        let bytes: Vec<u8> = commands
            .into_iter()
            .flat_map(|(which, place, value, time, timeout)| {
                [which, place, value, 0, 0, time, 2, u8::from(!timeout)]
            })
            .collect();
        offload::packets(&bytes);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        offload::raw(&bytes);
    }
}

/// Every file of the fuzzer's corpus.
#[test]
fn what_the_fuzzer_kept_does_no_harm() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/corpus/offload_packets");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        offload::packets(&bytes);
        offload::raw(&bytes);
        files += 1;
    }
    assert!(files >= 3, "only {files} files");
}

#[test]
#[ignore = "scale: 5 x 10^7 packets, good and bad"]
fn fifty_million_packets_leave_everything_as_it_was() {
    let mut state = 1_u64;
    let mut commands = vec![0; 8 * 1000];
    for _ in 0..50_000 {
        for byte in &mut commands {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        // Half of the messages are as they should be.
        for command in commands.chunks_exact_mut(16) {
            command[2] = 0;
            command[4] = 0;
        }
        offload::packets(&commands);
    }
}
