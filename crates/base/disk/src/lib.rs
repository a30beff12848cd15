//! Files of the machine, for the drivers of both worlds: what a user named is opened with care, what we write replaces a
//! file as a whole or not at all.
//!
//! - [`open_file`], [`read_file`]: regular files of a size that can be right.
//! - [`DiskFiles`]: the same as [`Files`], which is how texts ask for the files that they name.
//! - [`replace_file`], [`DiskError`]: writing.

use std::path::{Path, PathBuf};

use raddle_text::{Files, files::tidy};

mod open;
mod replace;

pub use open::{open_file, read_file};
pub use replace::{DiskError, replace_file};

/// Files of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        read_file(Path::new(name), most).map_err(|error| error.to_string())
    }

    fn absolute(&self, name: &str) -> String {
        let path = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
        tidy(&path).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_too_large_for_a_text_is_refused_before_it_is_read() {
        let name = format!("raddle-large-text-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        // Within the limit of data; nobody waits until it has been read.
        let made = File::create(&file).and_then(|made| made.set_len(40 << 30));
        let said = DiskFiles.read_text(&file.to_string_lossy());
        std::fs::remove_file(&file).unwrap();
        made.unwrap();
        assert_eq!(
            said.unwrap_err(),
            "it has more than 1GiB: is this the right file?"
        );
    }
}
