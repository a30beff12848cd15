//! Replays the corpus of the fuzz target `matching`, every file also cut at every length and with every byte damaged.

#[path = "../../../fuzz/matching.rs"]
mod matching;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn parcels() {
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
