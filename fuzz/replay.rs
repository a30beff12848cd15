//! Replays the corpus of a fuzz target in the tests of a crate, with damage to every file.

use std::{fs, path::Path};

/// Feeds every file of a target's corpus to `damage`, which tries it and damaged copies of it; a panic names the file.
pub(crate) fn replay(target: &str, damage: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/corpus")
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
        let tried = std::panic::catch_unwind(|| damage(&bytes));
        assert!(
            tried.is_ok(),
            "a reader fails on {} or a damaged copy of it",
            file.display()
        );
    }
}
