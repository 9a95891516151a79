//! Times and counts as programs print them.

use time::{Date, Month};

const SECOND_NS: u64 = 1_000_000_000;
/// Julian day of 1970-01-01.
const EPOCH_DAY: i32 = 2_440_588;

/// A time in a unit of so many nanoseconds, or a date: `2026-01-31 12:00:00.5`, with `T` or `/` too and `Z` behind; UTC.
pub(super) fn time_ns(text: &str, unit_ns: u64) -> Option<u64> {
    match text.as_bytes().get(4) {
        Some(b'-' | b'/') => date_ns(text),
        _ => decimal(text, unit_ns),
    }
}

/// A duration in a unit of so many nanoseconds, or `HH:MM:SS.mmm`.
pub(super) fn duration_ns(text: &str, unit_ns: u64) -> Option<u64> {
    if text.contains(':') { clock_ns(text, u64::MAX / SECOND_NS) } else { decimal(text, unit_ns) }
}

/// A number of bytes; nfdump prints large ones as `1.2 M`.
pub(super) fn count(text: &str) -> Option<u64> {
    let factor = match text.as_bytes().last()? {
        b'K' | b'k' => 1_000,
        b'M' => 1_000_000,
        b'G' => 1_000_000_000,
        b'T' => 1_000_000_000_000,
        _ => return text.parse().ok(),
    };
    decimal(text[..text.len() - 1].trim_end(), factor)
}

fn date_ns(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').or(text.strip_suffix("+00:00")).unwrap_or(text);
    let (date, clock) = (text.get(..10)?, text.get(10..)?);
    let clock = clock.strip_prefix(['T', ' '])?.trim_start();
    let mut parts = date.split(['-', '/']);
    let (year, month, day) = (digits(parts.next()?)?, digits(parts.next()?)?, digits(parts.next()?)?);
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let days = u64::try_from(date.to_julian_day() - EPOCH_DAY).ok()?;
    days.checked_mul(86_400 * SECOND_NS)?.checked_add(clock_ns(clock, 23)?)
}

/// `HH:MM:SS` with or without a fraction.
fn clock_ns(text: &str, hours_max: u64) -> Option<u64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let seconds_ns = decimal(parts.next()?, SECOND_NS)?;
    // A leap second is the 60th.
    if hours > hours_max || minutes > 59 || seconds_ns >= 61 * SECOND_NS {
        return None;
    }
    hours.checked_mul(3_600)?.checked_add(minutes * 60)?.checked_mul(SECOND_NS)?.checked_add(seconds_ns)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `NUMBER[.FRACTION]` times a factor, rounded down.
fn decimal(text: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let (mut rest, mut scale) = (0u64, 1u64);
    for digit in fraction.bytes() {
        if !digit.is_ascii_digit() {
            return None;
        }
        if scale < 1_000_000_000 {
            (rest, scale) = (rest * 10 + u64::from(digit - b'0'), scale * 10);
        }
    }
    let part = (u128::from(rest) * u128::from(factor) / u128::from(scale)) as u64;
    let whole = if whole.is_empty() { None } else { digits(whole) };
    whole?.checked_mul(factor)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_programs_print_them() {
        const DAY: u64 = 1_250_467_200; // 2009-08-17, by date(1)
        for (text, unit, expected) in [
            ("0", SECOND_NS, Some(0)),
            ("12.5", SECOND_NS, Some(12_500_000_000)),
            ("1250467200.123456789", SECOND_NS, Some(DAY * SECOND_NS + 123_456_789)),
            ("1250467200.1234567899", SECOND_NS, Some(DAY * SECOND_NS + 123_456_789)),
            ("1250467200123", 1_000_000, Some(DAY * SECOND_NS + 123_000_000)),
            ("2009-08-17 00:00:00", 1, Some(DAY * SECOND_NS)),
            ("2009-08-17 00:00:01.5", 1, Some((DAY + 1) * SECOND_NS + 500_000_000)),
            ("2009/08/17T10:00:00.001", 1, Some((DAY + 36_000) * SECOND_NS + 1_000_000)),
            ("2009-08-17T10:00:00Z", 1, Some((DAY + 36_000) * SECOND_NS)),
            ("1970-01-01 00:00:00", 1, Some(0)),
            ("1969-12-31 23:59:59", 1, None),
            ("2009-02-30 00:00:00", 1, None),
            ("2009-08-17 24:00:00", 1, None),
            ("2009-08-17", 1, None),
            ("-1", 1, None),
            ("1e9", 1, None),
            (".5", 1, None),
            ("", 1, None),
            ("99999999999999999999", 1, None),
            ("99999999999", SECOND_NS, None),
            ("2009-08-é7 00:00:00", 1, None),
        ] {
            assert_eq!(time_ns(text, unit), expected, "{text}");
        }
        assert_eq!(duration_ns("00:25:34.204", SECOND_NS), Some(1_534_204_000_000));
        assert_eq!(duration_ns("43254.352", SECOND_NS), Some(43_254_352_000_000));
        assert_eq!(duration_ns("25:00:00", SECOND_NS), Some(90_000_000_000_000));
        assert_eq!(duration_ns("99999999999999:00:00", SECOND_NS), None);
    }

    #[test]
    fn counts_may_be_scaled() {
        for (text, expected) in [
            ("3512", Some(3512)),
            ("1.2 M", Some(1_200_000)),
            ("402.4M", Some(402_400_000)),
            ("15.1 G", Some(15_100_000_000)),
            ("0", Some(0)),
            ("-3", None),
            ("1.5", None),
            ("M", None),
            ("", None),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }
}
