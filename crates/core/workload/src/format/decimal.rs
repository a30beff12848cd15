//! Decimal numbers as exact integers of a finer unit: no double in between.

use crate::error::{Problem, shorten};

/// `text`, a decimal number that may have a point and an exponent, times 10^`shift`, to the nearest integer.
///
/// # Errors
/// Not a number, negative, or beyond 64 bits.
pub(crate) fn parse_decimal(text: &str, shift: i32, field: &'static str) -> Result<u64, Problem> {
    let wrong = || Problem::NotANumber {
        field,
        text: shorten(text),
        wanted: "a decimal number like 0.000020",
    };
    let too_large = || Problem::TooLarge {
        field,
        text: shorten(text),
        limit: "this column can hold",
    };
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let (negative, unsigned) = match unsigned.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, unsigned),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| wrong())?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(wrong());
    }
    let mut digits: u128 = 0;
    // Digits beyond what 128 bits hold are either zeros at the end or far below the unit.
    let mut dropped: i32 = 0;
    for c in whole.chars().chain(fraction.chars()) {
        let digit = c.to_digit(10).ok_or_else(wrong)?;
        if digits > u128::MAX / 100 {
            dropped = dropped.saturating_add(1);
        } else {
            digits = digits * 10 + u128::from(digit);
        }
    }
    if digits == 0 {
        return Ok(0);
    }
    if negative {
        return Err(Problem::Negative {
            field,
            text: shorten(text),
        });
    }
    let places = i32::try_from(fraction.len()).map_err(|_| wrong())?;
    let power = exponent
        .saturating_add(shift)
        .saturating_sub(places)
        .saturating_add(dropped);
    let scaled = if power >= 0 {
        10u128
            .checked_pow(power.unsigned_abs())
            .and_then(|scale| digits.checked_mul(scale))
            .ok_or_else(too_large)?
    } else {
        match 10u128.checked_pow(power.unsigned_abs()) {
            Some(scale) => digits / scale + u128::from(digits % scale >= scale.div_ceil(2)),
            None => 0,
        }
    };
    u64::try_from(scaled).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_exact_picoseconds() {
        for (text, ps) in [
            ("0.000020000", 20_000_000),
            ("2e-05", 20_000_000),
            ("1", 1_000_000_000_000),
            ("+.5", 500_000_000_000),
            ("0.0000000000005", 1),
            ("0.0000000000004", 0),
            ("-0.0", 0),
            ("1e-400", 0),
            (
                "1000000000000000000000000000000000000000000e-42",
                1_000_000_000_000,
            ),
        ] {
            assert_eq!(parse_decimal(text, 12, "start_s"), Ok(ps), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in [
            "",
            ".",
            "nan",
            "inf",
            "0x10",
            "1.2.3",
            "1e",
            "1e99999999999",
            "--1",
            "1 ",
        ] {
            assert!(
                matches!(
                    parse_decimal(text, 12, "start_s"),
                    Err(Problem::NotANumber { .. })
                ),
                "{text}"
            );
        }
        assert!(matches!(
            parse_decimal("-1", 12, "s"),
            Err(Problem::Negative { .. })
        ));
        assert!(matches!(
            parse_decimal("1e300", 12, "s"),
            Err(Problem::TooLarge { .. })
        ));
        assert!(matches!(
            parse_decimal("99999999", 12, "s"),
            Err(Problem::TooLarge { .. })
        ));
    }
}
