//! What the checks of parsers of text have in common.

/// Lines and characters that an error may have.
const SCREEN: (usize, usize) = (24, 4000);

/// Digits of the longest whole number in a text.
pub(crate) fn longest_number(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit())
        .map(str::len)
        .max()
        .unwrap_or(0)
}

/// An error fits on a screen and names its source, where there are any.
pub(crate) fn judge(message: &str, sources: &[&str]) {
    assert!(
        message.lines().count() <= SCREEN.0,
        "more than a screen: {message}"
    );
    assert!(
        message.chars().count() <= SCREEN.1,
        "more than a screen: {message}"
    );
    assert!(
        sources.is_empty() || sources.iter().any(|source| message.contains(source)),
        "no source is named: {message}"
    );
}
