//! Files that a text names: whoever reads texts asks [`Files`] for them, and the driver says where they come from.

use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
};

use raddle_units::Bytes;

/// Bytes of the largest text: a map of two million hosts has a tenth of that.
pub const MOST_TEXT: u64 = 1 << 30;
/// Bytes of the largest file that is read as a whole.
pub const MOST_DATA: u64 = 1 << 36;

/// Why a file that a user named is not read. Whoever shows it names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing has this name.
    #[error("there is no such file")]
    Missing,
    /// A folder, a device, a pipe or a socket: they have no end, or wait for somebody.
    #[error("it is {0}, and only files are read here")]
    NotAFile(&'static str),
    /// More than `most` bytes.
    #[error("it has more than {}: is this the right file?", Bytes(*.most))]
    TooLarge {
        /// The limit.
        most: u64,
    },
    /// More than there is memory for.
    #[error("it has {}, more than there is memory for", Bytes(*.bytes))]
    NoMemory {
        /// Its size.
        bytes: u64,
    },
    /// The system refused.
    #[error("{}", plain(.0))]
    System(#[from] io::Error),
}

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
pub fn tidy(path: &Path) -> PathBuf {
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

/// What the system says, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
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
    use super::*;

    #[test]
    fn files_in_memory_have_the_limits_of_others() {
        let files = MemoryFiles::default()
            .with("bytes", [0xff])
            .with("ten", "0123456789");
        assert!(files.read_text("bytes").unwrap_err().contains("UTF-8"));
        assert!(files.read("ten", 9).unwrap_err().contains("more than 9B"));
        assert!(files.read("ten", 10).is_ok());
    }
}
