//! Replays the corpus of the packet fuzz targets, every file also cut at every length and with every byte damaged.

#[path = "../../../../fuzz/packets.rs"]
mod packets;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

fn replay(target: &str, reader: fn(&[u8])) {
    replay::replay(target, |bytes| {
        for length in 0..=bytes.len() {
            reader(&bytes[..length]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            let others = [bytes[at].wrapping_add(1), bytes[at] ^ 0x10];
            for value in [0, 1, 0x7f, 0x80, 0xff].into_iter().chain(others) {
                damaged[at] = value;
                reader(&damaged);
            }
            damaged[at] = bytes[at];
        }
    });
}

#[test]
fn frames() {
    replay("wire_frame", packets::frame);
}

#[test]
fn messages() {
    replay("wire_message", packets::message);
}

#[test]
fn edits() {
    replay("wire_edit", packets::edit);
}
