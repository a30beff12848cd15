//! The site's secret, from which the keys of all jobs are derived: a file with 64 hexadecimal digits.

use std::{fs, io, os::unix::fs::PermissionsExt};

use raddle_offload::switch::SiteSecret;

/// Bytes of a secret.
pub const SIZE: usize = 32;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret {file}: {cause}\n  hint: `raddle-switch new-secret` makes one")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The file holds something else.
    #[error(
        "{file} holds no secret: 64 hexadecimal digits are needed\n  hint: `raddle-switch new-secret` makes one"
    )]
    Malformed {
        /// The file.
        file: String,
    },
}

/// A secret and whether others than its owner can read its file.
#[derive(Clone, Copy)]
pub struct Secret {
    /// The secret.
    pub bytes: [u8; SIZE],
    /// Whether the file's mode lets group or others read it.
    pub exposed: bool,
}

/// Reads a secret.
///
/// # Errors
/// When the file cannot be read, or holds no secret.
pub fn read(file: &str) -> Result<Secret, SecretError> {
    let unreadable = |cause| SecretError::Unreadable {
        file: file.to_owned(),
        cause,
    };
    let text = fs::read(file).map_err(unreadable)?;
    let mode = fs::metadata(file).map_err(unreadable)?.permissions().mode();
    let bytes = parse(text.trim_ascii()).ok_or_else(|| SecretError::Malformed {
        file: file.to_owned(),
    })?;
    Ok(Secret {
        bytes,
        exposed: mode & 0o077 != 0,
    })
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
/// When the system has no randomness.
pub fn generate() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SIZE];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(digits: &[u8]) -> Option<[u8; SIZE]> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != SIZE || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; SIZE];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        *byte = (digit(high)? << 4 | digit(low)?) as u8;
    }
    Some(bytes)
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
        for bad in [
            "",
            "00",
            &text[2..],
            &format!("{text}0"),
            &text.replace(&text[..1], "x"),
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
