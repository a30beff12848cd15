//! Where the files that an experiment names come from.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use crate::open::{MOST_TEXT, ReadError, read_file};

/// Gives the contents of files. Names are what [`Files::beside`] made of them.
pub trait Files {
    /// The contents of a file of at most `most` bytes, or why there are none. Larger ones are not read.
    ///
    /// # Errors
    /// A reason without the file's name.
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, String>;

    /// The text of a file of at most [`MOST_TEXT`] bytes.
    ///
    /// # Errors
    /// A reason without the file's name.
    fn read_text(&self, name: &str) -> Result<String, String> {
        let bytes = self.read(name, MOST_TEXT)?;
        String::from_utf8(bytes).map_err(|_| "it is not text (UTF-8)".to_owned())
    }

    /// The name of `file` as it is written in the file `from`: relative to its folder.
    fn beside(&self, from: &str, file: &str) -> String {
        let folder = Path::new(from).parent().unwrap_or_else(|| Path::new(""));
        tidy(&folder.join(file)).to_string_lossy().into_owned()
    }

    /// A name of the same file that is good anywhere.
    fn absolute(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// `a/./b/../c` as `a/c`; parents of the start are kept, and the start itself is `.`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if tidy.file_name().is_some() && !tidy.ends_with("..") => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    if tidy.as_os_str().is_empty() {
        tidy.push(Component::CurDir);
    }
    tidy
}

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

/// Files held in memory, for tests and generated experiments.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryFiles {
    /// Adds a file.
    #[must_use]
    pub fn with(mut self, name: &str, contents: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), contents.into());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        match self.files.get(name) {
            None => Err(ReadError::Missing.to_string()),
            Some(content) if content.len() as u64 > most => {
                Err(ReadError::TooLarge { most }.to_string())
            }
            Some(content) => Ok(content.clone()),
        }
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
        let files = MemoryFiles::default()
            .with("bytes", [0xff])
            .with("ten", "0123456789");
        assert!(files.read_text("bytes").unwrap_err().contains("UTF-8"));
        assert!(files.read("ten", 9).unwrap_err().contains("more than 9B"));
        assert!(files.read("ten", 10).is_ok());
    }
}
