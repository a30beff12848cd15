//! One side of a pair whose other side says anything: the corpus of the fuzz target `notices` with damage, and generated
//! commands.

use proptest::{collection::vec, prelude::*};

#[path = "../../../../fuzz/notices.rs"]
mod notices;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn corpus() {
    replay::replay("notices", |bytes| {
        for length in 0..=bytes.len() {
            notices::notices(&bytes[..length]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in (0..11).chain([0x3f, 0x40, 0xff]) {
                damaged[at] = value;
                notices::notices(&damaged);
            }
            damaged[at] = bytes[at];
        }
    });
}

/// Commands that meet each other's keys: those of what is offered count from 1.
fn command() -> impl Strategy<Value = [u8; 4]> {
    let what = prop_oneof![20 => 0_u8..3, 10 => 5_u8..8, 2 => 3_u8..5, 1 => 8_u8..11];
    let value = prop_oneof![3 => 0_u8..70, 1 => any::<u8>()];
    (what, 0_u8..12, value, 0_u8..100)
        .prop_map(|(what, which, value, time)| [what, which, value, time])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..300)) {
        notices::notices(&bytes);
    }

    #[test]
    fn commands(commands in vec(command(), 0..200)) {
        notices::notices(&commands.concat());
    }
}
