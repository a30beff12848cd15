//! The site's secret, from which the keys of all jobs are derived: a file with 64 hexadecimal digits that its owner alone
//! can read.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use raddle_disk::open_file;
use raddle_offload::switch::SiteSecret;
use raddle_text::ReadError;

/// Bytes of a secret.
pub const SIZE: usize = 32;
/// Bytes of a file that are read; a secret with white space around it has far fewer.
const LONGEST_FILE: u64 = 4096;
/// The rights of group and others to write.
const WRITE: u32 = 0o022;
/// The right of others to read.
const OTHERS_READ: u32 = 0o004;
/// The group's right to read: fine where root owns the file, for service managers hand credentials to a service so.
const GROUP_READS: u32 = 0o040;

/// Why a file gives no secret.
#[derive(Debug)]
pub struct SecretError {
    file: String,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    Missing,
    Forbidden,
    Unreadable(io::Error),
    /// It is something else than a file: what, with an article.
    NoFile(&'static str),
    Empty,
    /// It has another number of digits.
    Length(usize),
    /// It has other things than digits.
    Malformed,
    /// Others than its owner can do this, with this mode.
    Exposed(&'static str, u32),
}

impl SecretError {
    /// What is wrong, with the file's name.
    #[must_use]
    pub fn reason(&self) -> String {
        let file = &self.file;
        match &self.fault {
            Fault::Missing => format!("there is no secret {file}"),
            Fault::Forbidden => format!("no permission to read the secret {file}"),
            Fault::Unreadable(cause) => format!("cannot read the secret {file}: {cause}"),
            Fault::NoFile(what) => format!("the secret {file} is {what}; it must be a file"),
            Fault::Empty => format!("the secret {file} is empty"),
            Fault::Length(digits) => {
                format!("the secret {file} has {digits} hexadecimal digits; it must have 64")
            }
            Fault::Malformed => {
                format!("{file} holds no secret: that is 64 hexadecimal digits and nothing else")
            }
            Fault::Exposed(what, mode) => {
                format!("others than its owner can {what} the secret {file} (mode {mode:04o})")
            }
        }
    }

    /// What helps.
    #[must_use]
    pub fn cure(&self) -> Option<String> {
        let file = &self.file;
        Some(match &self.fault {
            Fault::Missing => format!(
                "copy it from another switch; for the first one of a site: raddle-switch new-secret --out {file}"
            ),
            Fault::Forbidden => "run this as the file's owner, or as root".to_owned(),
            Fault::Unreadable(_) => return None,
            Fault::NoFile(_) | Fault::Malformed => {
                "name the file that `raddle-switch new-secret --out FILE` made".to_owned()
            }
            Fault::Empty | Fault::Length(_) => {
                "copy it again; all switches of a site have the same".to_owned()
            }
            Fault::Exposed(..) => format!("chmod 600 {file}"),
        })
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.reason())?;
        match self.cure() {
            Some(cure) => write!(to, "\n  hint: {cure}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SecretError {}

/// A secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    bytes: [u8; SIZE],
}

/// Reads a secret.
///
/// # Errors
/// When the file cannot be read, holds no secret, or others can read or change it.
pub fn read(file: &str) -> Result<Secret, SecretError> {
    read_bytes(file)
        .map(|bytes| Secret { bytes })
        .map_err(|fault| SecretError {
            file: file.to_owned(),
            fault,
        })
}

fn read_bytes(file: &str) -> Result<[u8; SIZE], Fault> {
    let opened = open_file(Path::new(file))?;
    // Of what was opened: the name may mean another file by now.
    let about = opened.metadata()?;
    if about.len() > LONGEST_FILE {
        return Err(Fault::Malformed);
    }
    let mut text = Vec::new();
    opened.take(LONGEST_FILE).read_to_end(&mut text)?;
    let bytes = parse(text.trim_ascii())?;
    match exposed(about.mode(), about.uid()) {
        Some(what) => Err(Fault::Exposed(what, about.mode() & 0o777)),
        None => Ok(bytes),
    }
}

impl From<io::Error> for Fault {
    fn from(cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Unreadable(cause),
        }
    }
}

impl From<ReadError> for Fault {
    fn from(cause: ReadError) -> Self {
        match cause {
            ReadError::Missing => Self::Missing,
            ReadError::NotAFile(what) => Self::NoFile(what),
            ReadError::System(cause) => cause.into(),
            other => Self::Unreadable(io::Error::other(other)),
        }
    }
}

impl Secret {
    /// The same as the core takes it.
    #[must_use]
    pub const fn of_site(&self) -> SiteSecret {
        SiteSecret::new(self.bytes)
    }
}

/// A new secret as the text of its file.
///
/// # Errors
/// The system has no source of randomness.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SIZE];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Writes the text of a secret to a new file that only its owner can read.
///
/// # Errors
/// The file exists already, its folder does not exist or cannot be written, or the disk is full. No part of a file is left.
pub fn write(file: &str, text: &str) -> io::Result<()> {
    let mut created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    let write = |to: &mut File| {
        writeln!(to, "{text}")?;
        to.sync_all()
    };
    write(&mut created).inspect_err(|_| {
        // A part of a secret is of no use. If it cannot be removed either, the first error is the one to report.
        let _ = fs::remove_file(file);
    })
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(digits: &[u8]) -> Result<[u8; SIZE], Fault> {
    if digits.is_empty() {
        return Err(Fault::Empty);
    }
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Fault::Malformed);
    }
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != SIZE || !rest.is_empty() {
        return Err(Fault::Length(digits.len()));
    }
    let mut bytes = [0; SIZE];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16).unwrap_or_default());
        *byte = (high << 4 | low) as u8;
    }
    Ok(bytes)
}

/// What others than its owner can do with a file of this mode and owner, if that is too much.
const fn exposed(mode: u32, owner: u32) -> Option<&'static str> {
    if mode & WRITE != 0 {
        Some("change")
    } else if mode & OTHERS_READ != 0 || mode & GROUP_READS != 0 && owner != 0 {
        Some("read")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_generated_is_read_and_other_texts_are_not() {
        let text = generate().unwrap();
        let bytes = parse(text.as_bytes()).unwrap();
        assert_eq!(hex(&bytes), text);
        assert_ne!(generate().unwrap(), text);
        for (bad, words) in [
            ("", "is empty"),
            ("00", "has 2 hex"),
            (&text[1..], "has 63 hex"),
            (&format!("{text}0"), "has 65 hex"),
            (&text.replace(&text[..1], "x"), "holds no secret"),
            ("schema = 1", "holds no secret"),
        ] {
            let fault = parse(bad.as_bytes()).unwrap_err();
            let file = "s".to_owned();
            let reason = SecretError { file, fault }.reason();
            assert!(reason.contains(words), "{bad}: {reason}");
        }
    }

    #[test]
    fn only_the_owner_may_read_and_a_group_what_root_gave_it() {
        for (mode, owner, what) in [
            (0o100_600, 1000, None),
            (0o100_400, 0, None),
            (0o100_440, 0, None),
            (0o100_640, 0, None),
            (0o100_640, 1000, Some("read")),
            (0o100_644, 0, Some("read")),
            (0o100_604, 1000, Some("read")),
            (0o100_660, 0, Some("change")),
            (0o100_666, 1000, Some("change")),
        ] {
            assert_eq!(exposed(mode, owner), what, "{mode:o} of {owner}");
        }
    }

    #[test]
    fn each_kind_of_bad_file_has_words_of_its_own() {
        let folder = std::env::temp_dir().join(format!("raddle-secret-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let text = generate().unwrap();
        let make = |name: &str, contents: &str, mode: u32| {
            let file = path(name);
            let _ = fs::remove_file(&file);
            let options = OpenOptions::new().write(true).create_new(true).open(&file);
            options.unwrap().write_all(contents.as_bytes()).unwrap();
            let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(&file, rights).unwrap();
            file
        };
        let said = |file: &str| read(file).err().map(|error| error.to_string());
        for (file, words) in [
            (path("none"), "there is no secret"),
            (path("."), "is a folder"),
            ("/dev/zero".to_owned(), "is a device"),
            (make("empty", "\n", 0o600), "is empty"),
            (make("short", &text[2..], 0o600), "62 hexadecimal digits"),
            (make("text", "name = \"x\"", 0o600), "holds no secret"),
            (make("long", &"0".repeat(10_000), 0o600), "holds no secret"),
            (make("open", &text, 0o644), "chmod 600"),
        ] {
            let message = said(&file).unwrap();
            assert!(message.contains(words), "{message}");
            assert!(message.contains(&file), "{message}");
        }
        let good = path("good");
        let _ = fs::remove_file(&good);
        write(&good, &text).unwrap();
        assert_eq!(said(&good), None);
        let again = write(&good, &text).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(&folder).unwrap();
    }
}
