//! Opening what a user named: regular files, of a size that can be right.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use raddle_text::ReadError;

/// Opens a regular file. A folder, a device or a pipe is refused before it is opened, since opening alone can start a
/// device. What the name means by the time of opening is looked at again, and a pipe that has come is not waited for.
///
/// # Errors
/// [`ReadError`].
pub fn open_file(path: &Path) -> Result<File, ReadError> {
    let known = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::System(error),
    };
    let only_file = |about: fs::Metadata| match other_kind(about.file_type()) {
        Some(other) => Err(ReadError::NotAFile(other)),
        None => Ok(()),
    };
    only_file(fs::metadata(path).map_err(known)?)?;
    let file = open_at_once(path).map_err(known)?;
    only_file(file.metadata()?)?;
    Ok(file)
}

/// Opens without waiting for whoever would write into a pipe.
fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
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
    // Systems promise more memory than they have, and end who uses it.
    if spare_memory().is_some_and(|spare| bytes > spare) {
        return Err(ReadError::NoMemory { bytes });
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

/// Bytes that programs can still get, where the system tells.
fn spare_memory() -> Option<u64> {
    let about = fs::read_to_string("/proc/meminfo").ok()?;
    let line = about
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
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

#[cfg(test)]
mod tests {
    use raddle_text::MOST_DATA;

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
        if spare_memory().is_some_and(|spare| spare < 1 << 40) {
            assert!(told(&sparse, u64::MAX).contains("more than there is memory for"));
        }
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(told(&pipe, 5).contains("a pipe"));
            // Where it takes a file's place between the two looks.
            open_at_once(&pipe).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
