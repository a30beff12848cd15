//! Opening what a user named: regular files, of a size that can be right.

use std::{
    fs::{self, File, FileType},
    io::{self, ErrorKind, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
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

/// Opens a regular file. A folder, a device or a pipe is refused before it is opened, since opening a pipe waits for
/// whoever writes into it.
///
/// # Errors
/// [`ReadError`].
pub fn open_file(path: &Path) -> Result<File, ReadError> {
    let known = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::System(error),
    };
    let kind = fs::metadata(path).map_err(known)?.file_type();
    match other_kind(kind) {
        Some(other) => Err(ReadError::NotAFile(other)),
        None => File::open(path).map_err(known),
    }
}

/// The whole of a regular file of at most `most` bytes.
///
/// # Errors
/// [`ReadError`].
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_file(path)?;
    let bytes = file.metadata()?.len();
    if bytes > most {
        return Err(ReadError::TooLarge { most });
    }
    let mut content = Vec::new();
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    content
        .try_reserve_exact(size)
        .map_err(|_| ReadError::NoMemory { bytes })?;
    // Files of the kernel say that they are empty, and a file may grow while it is read.
    file.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 > most {
        true => Err(ReadError::TooLarge { most }),
        false => Ok(content),
    }
}

fn other_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_dir() {
        Some("a folder")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}

/// What the system says, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_size_that_can_be_right_are_read() {
        let folder = std::env::temp_dir().join(format!("raddle-open-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_file(&file, 5).unwrap(), b"12345");
        let told = |path: &Path, most| read_file(path, most).unwrap_err().to_string();
        assert!(told(&file, 4).contains("more than 4B"));
        assert!(told(&folder, 5).contains("a folder"));
        assert!(told(&folder.join("none"), 5).contains("no such file"));
        assert!(told(Path::new("/dev/zero"), 5).contains("a device"));
        // Says that it has 0 bytes.
        assert!(
            !read_file(Path::new("/proc/self/status"), 1 << 20)
                .unwrap()
                .is_empty()
        );
        let sparse = folder.join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert!(told(&sparse, MOST_DATA).contains("more than"));
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(told(&pipe, 5).contains("a pipe"));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
