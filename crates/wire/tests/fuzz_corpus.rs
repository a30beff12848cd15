//! Replays the corpus of the packet fuzz targets, every file also cut at every length and with every byte damaged.

use std::{fs, path::Path};

#[path = "../../../fuzz/packets.rs"]
mod packets;

/// Feeds every file of a target's corpus to its reader; a panic names the file.
fn replay(target: &str, reader: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(
        files.len() >= 8,
        "{}: only {} files",
        folder.display(),
        files.len()
    );
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let tried = std::panic::catch_unwind(|| {
            for length in 0..=bytes.len() {
                reader(&bytes[..length]);
            }
            let mut damaged = bytes.clone();
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
                    reader(&damaged);
                }
                damaged[at] = bytes[at];
            }
        });
        assert!(
            tried.is_ok(),
            "a reader fails on {} or a damaged copy of it",
            file.display()
        );
    }
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
