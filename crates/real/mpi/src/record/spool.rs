//! Where a rank's recording goes: FOLDER/rank-N.rec, in large blocks.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The file of this rank.
pub(super) struct Spool {
    file: File,
    pub(super) path: PathBuf,
}

impl Spool {
    /// Replaces an older recording of this rank.
    pub(super) fn create(folder: &Path, rank: u32) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("rank-{rank}.rec"));
        let file = File::create(&path)?;
        Ok(Self { file, path })
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }
}
