//! Parcels that are well formed and say anything: the corpus of the fuzz target `matching` with damage, and
//! generated ones.

use proptest::{collection::vec, prelude::*};
use raddle_schedule::parcel::{ParcelWriter, PartHead};

#[path = "../../../../fuzz/matching.rs"]
mod matching;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn corpus() {
    replay::replay("matching", |bytes| {
        for length in 0..=bytes.len() {
            matching::parcels(&bytes[..length]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
                damaged[at] = value;
                matching::parcels(&damaged);
            }
            damaged[at] = bytes[at];
        }
    });
}

type Part = (PartHead, Vec<u8>);

fn part() -> impl Strategy<Value = Part> {
    let context = prop_oneof![
        6 => Just(0_u32),
        4 => Just(1 << 31),
        2 => Just(u32::MAX),
        1 => any::<u32>(),
    ];
    let sequence = prop_oneof![9 => 0_u32..6, 1 => any::<u32>()];
    let reference = (any::<u64>(), 0_u32..4);
    let bytes = prop_oneof![
        3 => vec(any::<u8>(), 0..20),
        2 => reference.prop_map(|(bytes, key)| {
            [&bytes.to_be_bytes()[..], &key.to_be_bytes()].concat()
        }),
        1 => (0_u64..2000).prop_map(|freed| freed.to_be_bytes().to_vec()),
        1 => Just(vec![1; 3000]),
    ];
    let head = (0_u32..5, 0_u32..5, context, -1_i32..3, sequence);
    (head, bytes).prop_map(|((source, target, context, tag, sequence), bytes)| {
        let head = PartHead {
            source,
            target,
            context,
            tag,
            sequence,
        };
        (head, bytes)
    })
}

/// What the fuzz target takes: who receives, then each parcel after its sender and its length.
fn input(how: u8, parcels: &[(u8, Vec<Part>)]) -> Vec<u8> {
    let mut input = vec![how];
    for (from, parts) in parcels {
        let mut buffer = vec![0; 1 << 16];
        let mut writer = ParcelWriter::new(&mut buffer).unwrap();
        for (head, bytes) in parts {
            writer.push(head, bytes).unwrap();
        }
        let length = writer.finish();
        input.push(*from);
        input.extend((length as u16).to_be_bytes());
        input.extend(&buffer[..length]);
    }
    input
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn generated(how: u8, parcels in vec((0_u8..5, vec(part(), 1..4)), 1..12)) {
        matching::parcels(&input(how, &parcels));
    }

    /// All from one sender and in order, as far as chance allows.
    #[test]
    fn plausible(how in 0_u8..2, mut parcels in vec((Just(2), vec(part(), 1..3)), 1..12)) {
        let mut next = 0;
        for (head, _) in parcels.iter_mut().flat_map(|(_, parts)| parts) {
            head.source = 2;
            head.target = 0;
            if head.context != u32::MAX && head.tag >= 0 {
                head.sequence = next;
                next += 1;
            }
        }
        matching::parcels(&input(how, &parcels));
    }
}
