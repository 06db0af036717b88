//! Instants as redial keeps and prints them: UTC microseconds since the Unix epoch.
//!
//! Owns conversion and formatting only. It never asks the clock on behalf of a judging
//! function: whoever judges is handed `now`.

use std::time::{SystemTime, UNIX_EPOCH};

/// An instant, in microseconds since 1970-01-01T00:00:00Z. Negative before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    /// The current wall-clock time. For the edges of the program only (transports, the two faces).
    pub fn now() -> Time {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(d) => Time(i64::try_from(d.as_micros()).unwrap_or(i64::MAX)),
            Err(e) => Time(-i64::try_from(e.duration().as_micros()).unwrap_or(i64::MAX)),
        }
    }

    /// From seconds since the epoch, as Python's `time.time()` gives them. `None` when the number
    /// is not finite or does not fit.
    pub fn from_seconds(seconds: f64) -> Option<Time> {
        let us = seconds * 1e6;
        (us.is_finite() && us.abs() < 9.0e18).then_some(Time(us.round() as i64))
    }

    /// Seconds since the epoch.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds from `self` to `now`; negative when `self` lies in the future (clock skew).
    pub fn age_at(self, now: Time) -> f64 {
        (now.0 as f64 - self.0 as f64) / 1e6
    }

    /// `self` moved by `seconds`, saturating.
    pub fn plus_seconds(self, seconds: f64) -> Time {
        Time(self.0.saturating_add((seconds * 1e6) as i64))
    }

    /// RFC 3339 in UTC with milliseconds, e.g. `2026-11-29T02:57:10.123Z`.
    /// An instant outside the years jiff can write is given as plain seconds.
    pub fn rfc3339(self) -> String {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => t.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            Err(_) => format!("{}s", self.seconds()),
        }
    }

    /// The time of day in the local zone, `02:57:10`, for people.
    pub fn clock(self) -> String {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => {
                t.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
            }
            Err(_) => format!("{}s", self.seconds()),
        }
    }
}

/// A span for people: `0.4 s`, `12 s`, `3 m 05 s`, `8 h 12 m`, `5 d 3 h`. Negative spans get a minus.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "?".into();
    }
    let sign = if seconds < 0.0 { "-" } else { "" };
    let s = seconds.abs();
    if s < 10.0 {
        return format!("{sign}{:.1} s", s);
    }
    let t = s.round() as u64;
    match t {
        0..=59 => format!("{sign}{t} s"),
        60..=3599 => format!("{sign}{} m {:02} s", t / 60, t % 60),
        3600..=86399 => format!("{sign}{} h {:02} m", t / 3600, t % 3600 / 60),
        _ => format!("{sign}{} d {} h", t / 86400, t % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_seconds_survive_to_the_microsecond() {
        let t = Time::from_seconds(1795963550.61177).unwrap();
        assert_eq!(t.0, 1_795_963_550_611_770);
        assert_eq!(t.rfc3339(), "2026-11-29T14:45:50.611Z");
        assert_eq!(Time::from_seconds(f64::NAN), None);
        assert_eq!(Time::from_seconds(1e300), None);
    }

    #[test]
    fn spans_read_like_a_person_says_them() {
        for (s, want) in [
            (0.42, "0.4 s"),
            (12.0, "12 s"),
            (185.0, "3 m 05 s"),
            (29520.0, "8 h 12 m"),
            (442800.0, "5 d 3 h"),
            (-12.0, "-12 s"),
        ] {
            assert_eq!(span(s), want);
        }
    }
}
