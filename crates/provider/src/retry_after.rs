//! `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No server may make us wait longer than a day: past that, its word is a mistake.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait, if the header says anything sensible.
pub fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<f64>() {
        // Some servers send fractions.
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let date = UNIX_EPOCH + Duration::from_secs(unix_seconds(value)?);
            date.duration_since(now).unwrap_or_default()
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// The seconds of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`; the obsolete forms are not read.
fn unix_seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_weekday, rest) = date.split_once(", ")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    if words.next()? != "GMT" || !(1970..10_000).contains(&year) || !(1..=31).contains(&day) || hour > 24 || minute > 60
    {
        return None;
    }
    // Years counted from March, so that the leap day comes last.
    let (years, months) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let days_before_month = (153 * months + 2) / 5;
    let days = years * 365 + years / 4 - years / 100 + years / 400 + days_before_month + day - 1;
    // Days from the first of March of year 0 to the Unix epoch.
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.6: seconds and dates are honoured, nonsense is not.
    #[test]
    fn values() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |value| parse(value, now).map(|wait| wait.as_millis());
        assert_eq!(seconds("7"), Some(7_000));
        assert_eq!(seconds(" 0.5 "), Some(500));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10_000));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(seconds("999999999"), Some(86_400_000));
        for nonsense in [
            "",
            "-1",
            "NaN",
            "soon",
            "Sun, 06 Nov 1994",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "inf",
        ] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn leap_days() {
        assert_eq!(unix_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(unix_seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(unix_seconds("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
    }
}
