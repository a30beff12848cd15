//! Replays the corpus of the fuzz targets `recording`, `goal` and `chakra`, every file also cut at every length and with bytes damaged.

#[path = "../../../../fuzz/recordings.rs"]
mod recordings;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

fn damage(bytes: &[u8], read: fn(&[u8])) {
    for length in 0..=bytes.len() {
        read(&bytes[..length]);
    }
    let mut damaged = bytes.to_vec();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x20, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
            damaged[at] = value;
            read(&damaged);
        }
        damaged[at] = bytes[at];
    }
}

#[test]
fn recordings_of_ranks() {
    replay::replay("recording", |bytes| damage(bytes, recordings::recording));
}

#[test]
fn chakra_files() {
    replay::replay("chakra", |bytes| damage(bytes, recordings::chakra_file));
}

#[test]
fn goal_schedules() {
    replay::replay("goal", |bytes| damage(bytes, recordings::goal_schedule));
}
