//! Packets over rails that nobody should send: random ones, damaged ones, and those of a hostile program with the job's own key.

use proptest::prelude::*;

#[path = "../../../../fuzz/rails.rs"]
mod rails;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn changed_packets_do_no_harm(commands in prop::collection::vec(any::<[u8; 8]>(), 0..80)) {
        rails::packets(&commands.concat());
    }

    /// Genuine packets in any order, so that messages come far.
    #[test]
    fn genuine_packets_in_any_order_do_no_harm(
        commands in prop::collection::vec((any::<u8>(), 6_u8..20, 0_u8..64, 0_u8..20, any::<bool>()), 0..150),
    ) {
        let bytes: Vec<u8> = commands
            .into_iter()
            .flat_map(|(which, field, value, time, rail)| {
                [which, field, value, 0, 4 * u8::from(rail), u8::from(rail), time, value]
            })
            .collect();
        rails::packets(&bytes);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        rails::raw(&bytes);
    }
}

/// Every file of the fuzzer's corpus, cut at every command and with every byte damaged.
#[test]
fn what_the_fuzzer_kept_does_no_harm() {
    replay::replay("rails_packets", |bytes| {
        for length in (0..=bytes.len()).step_by(8) {
            rails::packets(&bytes[..length]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff, bytes[at] ^ 0x10] {
                damaged[at] = value;
                rails::packets(&damaged);
            }
            damaged[at] = bytes[at];
        }
        rails::raw(bytes);
    });
}
