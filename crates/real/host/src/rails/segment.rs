//! Shared memory of the processes of a host: a file in /dev/shm that each of them maps, and the last one removes.
//!
//! All that use it hold a shared lock on it (flock(2)), which the kernel takes back from a killed process. Who can make the lock
//! exclusive is the last. What a killed last one leaves goes when a segment is opened next, of whatever name.
#![expect(
    unsafe_code,
    reason = "words that processes share are known by their address only"
)]

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    slice,
    sync::atomic::AtomicU64,
};

use memmap2::{MmapOptions, MmapRaw};

/// Where segments are.
const FOLDER: &str = "/dev/shm";
/// How their names begin; the number is the version of what stands in them.
const PREFIX: &str = "raddle-rails-2-";
/// Openings that may meet a removal before it is an error.
const TRIES: usize = 16;

/// A mapped segment.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    map: MmapRaw,
    count: usize,
}

impl Segment {
    /// The segment of this user and network namespace, of `count` words, which are 0 at first.
    ///
    /// # Errors
    /// There is no `/dev/shm` or no room in it; a file of that name is somebody else's or has another size.
    pub(super) fn of_this_host(count: usize) -> io::Result<Self> {
        sweep(Path::new(FOLDER));
        let user = fs::metadata("/proc/self")?.uid();
        let network = fs::metadata("/proc/self/ns/net")?.ino();
        Self::open(
            Path::new(FOLDER).join(format!("{PREFIX}{user}-{network}")),
            count,
        )
    }

    /// The segment of a path, as above.
    pub(super) fn open(path: PathBuf, count: usize) -> io::Result<Self> {
        let size = (count * size_of::<AtomicU64>()) as u64;
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).mode(0o600);
            let file = options.custom_flags(libc::O_NOFOLLOW).open(&path)?;
            let found = file.metadata()?;
            if !found.is_file() || found.uid() != fs::metadata("/proc/self")?.uid() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            file.lock_shared()?;
            if !names(&path, &file)? {
                continue;
            }
            match file.metadata()?.len() {
                0 => file.set_len(size)?,
                found if found == size => {}
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            let map = MmapOptions::new().len(size as usize).map_raw(&file)?;
            return Ok(Self {
                file,
                path,
                map,
                count,
            });
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Its words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped as long as this value lives, aligned to a page, and only used as atomics; processes that
        // could shorten the file are this user's, and do not.
        unsafe { slice::from_raw_parts(self.map.as_mut_ptr().cast(), self.count) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        remove_if_last(&self.path, &self.file);
    }
}

/// Whether `path` still stands for `file`, and not for nothing or another one.
fn names(path: &Path, file: &File) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(there.ino() == file.metadata()?.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a file that nobody else has a lock on. What goes wrong leaves it to who comes next.
fn remove_if_last(path: &Path, file: &File) {
    if file.try_lock().is_ok() && names(path, file).is_ok_and(|is_same| is_same) {
        let _ = fs::remove_file(path);
    }
}

/// Removes what killed processes of this user left.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for path in names.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    }) {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW);
        if let Ok(file) = options.open(&path) {
            remove_if_last(&path, &file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn path(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("raddle-test-{name}-{}", std::process::id()))
    }

    #[test]
    fn all_see_the_same_words_and_the_last_one_removes_them() {
        let path = path("words");
        let open = || Segment::open(path.clone(), 1024).unwrap();
        let (first, second) = (open(), open());
        first.words()[1023].store(7, Ordering::Relaxed);
        assert_eq!(second.words()[1023].load(Ordering::Relaxed), 7);
        drop(first);
        assert!(path.exists());
        let third = open();
        drop(second);
        assert_eq!(third.words()[1023].load(Ordering::Relaxed), 7);
        drop(third);
        assert!(!path.exists());
        assert_eq!(open().words()[1023].load(Ordering::Relaxed), 0);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_segment_is_refused_and_left_alone() {
        let path = path("other");
        fs::write(&path, b"somebody's").unwrap();
        let refused = Segment::open(path.clone(), 1024).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(Segment::open(path.clone(), 1024).is_err());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_used_stays() {
        let folder = std::env::temp_dir().join(format!("raddle-sweep-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [used, left] = ["0-1", "0-2"].map(|name| folder.join(format!("{PREFIX}{name}")));
        let other = folder.join("else");
        let segment = Segment::open(used.clone(), 8).unwrap();
        fs::write(&left, [0; 64]).unwrap();
        fs::write(&other, []).unwrap();
        sweep(&folder);
        assert!(used.exists() && other.exists() && !left.exists());
        drop(segment);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn many_open_and_close_at_once() {
        let path = path("many");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        // It may lose a race 16 times: no more than an error.
                        if let Ok(segment) = Segment::open(path.clone(), 64) {
                            segment.words()[0].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
