//! Replays the corpus of the fuzz target `parcel`, every file also cut at every length and with every byte damaged.

#[path = "../../../../fuzz/parcels.rs"]
mod parcels;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn parcels() {
    replay::replay("parcel", |bytes| {
        for length in 0..=bytes.len() {
            parcels::parcel(&bytes[..length]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [
                0,
                1,
                0x7f,
                0x80,
                0xff,
                bytes[at].wrapping_add(1),
                bytes[at] ^ 0x10,
            ] {
                damaged[at] = value;
                parcels::parcel(&damaged);
            }
            damaged[at] = bytes[at];
        }
    });
}
