//! What sizes and starts may be, in all generators.

use raddle_text::{Finding, at_most, between, check_value};
use raddle_units::Bytes;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::TrafficError;

/// The size of a message, for `#[schemars(transform = ...)]`: as [`crate::MAX_SIZE_BYTES`].
pub(crate) fn size() -> impl Fn(&mut Schema) {
    between("1B", "1TiB")
}

/// A start or a time between starts, for `#[schemars(transform = ...)]`: as [`crate::MAX_START_PS`].
pub(crate) fn start() -> impl Fn(&mut Schema) {
    at_most("86400s")
}

/// Refuses a field outside of the limits that its schema has.
pub(crate) fn check<T: JsonSchema + Serialize>(table: &T) -> Result<(), TrafficError> {
    check_value(table).map_err(|finding: Finding| {
        TrafficError::spec(finding.key().unwrap_or("generator"), finding.told())
    })
}

/// The bytes of so many messages; too many are the fault of `field`.
pub(crate) fn sum(field: &str, messages: u64, size: Bytes) -> Result<Bytes, TrafficError> {
    messages.checked_mul(size.0).map(Bytes).ok_or_else(|| {
        let problem = format!("{messages} messages of {size} are more than 2^64 bytes together");
        TrafficError::spec(field, problem)
    })
}

#[cfg(test)]
mod tests {
    use raddle_units::Span;

    use crate::{MAX_SIZE_BYTES, MAX_START_PS};

    #[test]
    fn generators_and_files_have_the_same_limits() {
        assert_eq!("1TiB".parse(), Ok(super::Bytes(MAX_SIZE_BYTES)));
        assert_eq!("86400s".parse(), Ok(Span(MAX_START_PS)));
    }
}
