//! Moments as people read them.

/// A moment as `YYYY-MM-DD HH:MM` in UTC (civil-from-days, after Howard Hinnant's public-domain algorithm).
pub fn utc(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (days, minute) = (minutes / 1_440, minutes % 1_440);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (unix_ms, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400_000, "2000-02-29 00:00"),
            (1_795_305_599_999, "2026-11-21 23:59"),
        ] {
            assert_eq!(utc(unix_ms), text);
        }
    }
}
