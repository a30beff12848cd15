//! Files that are replaced as a whole or not at all.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file or folder that the system refused: disk full, no permission, something in the way.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct DiskError {
    /// What was tried.
    pub action: &'static str,
    /// On which file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

impl DiskError {
    /// For `map_err`: what was tried, on which path.
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            action,
            path,
            source,
        }
    }
}

/// Lets `write` make a file under another name beside `target` and gives it its own when it is whole. After an error
/// nothing is left, and `target` is as it was.
///
/// # Errors
/// `write` fails, or the rename does.
pub fn replace_file<E: From<DiskError>>(
    target: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let open = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write(&open).and_then(|()| {
        fs::rename(&open, target).map_err(|error| DiskError::at("rename to", target)(error).into())
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&open);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("raddle-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let target = folder.join("summary.json");
        let write = |text: &'static str, fail: bool| {
            replace_file::<DiskError>(&target, |path| {
                fs::write(path, text).map_err(DiskError::at("write", path))?;
                if fail {
                    return Err(DiskError::at("write", path)(std::io::Error::other("full")));
                }
                Ok(())
            })
        };
        write("first", false).unwrap();
        assert!(write("second", true).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
