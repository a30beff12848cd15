//! Where the files that an experiment names come from.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use crate::open::{MOST_DATA, read_file};

/// Gives the contents of files. Names are what [`Files::beside`] made of them.
pub trait Files {
    /// The contents of a file, or why there are none.
    ///
    /// # Errors
    /// A reason without the file's name.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;

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
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        read_file(Path::new(name), MOST_DATA).map_err(|error| error.to_string())
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
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.files
            .get(name)
            .cloned()
            .ok_or_else(|| "there is no such file".to_owned())
    }
}
