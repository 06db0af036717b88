//! Values of any SQLite type as what redial needs of them. Tolerant: never an error, never a panic.

use crate::json::key::{self, Spelling};
use crate::json::{python::float_repr, raw};
use crate::time::Time;
use rusqlite::types::{Value, ValueRef};
use std::fmt::Write;

/// As text; bytes that aren't UTF-8 as SQLite's own blob literal. `None` for NULL.
pub(super) fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(i) => Some(i.to_string()),
        ValueRef::Real(r) => Some(float_repr(r)),
        ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
        ValueRef::Blob(b) => Some(match std::str::from_utf8(b) {
            Ok(t) => t.to_owned(),
            Err(_) => blob_literal(b),
        }),
    }
}

/// As the text of an id, by which rows, effects and calls are joined: a whole number is one, whatever the column makes
/// of it; text that isn't UTF-8 and bytes are SQLite's blob literal, so that what a list shows can be asked for.
pub(super) fn id(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Real(r) => key::text(&float_repr(r)).or_else(|| text(value)),
        ValueRef::Text(t) if std::str::from_utf8(t).is_err() => Some(blob_literal(t)),
        other => text(other),
    }
}

/// What kind of value an id is stored as.
pub(super) fn spelling(value: ValueRef<'_>) -> Spelling {
    match value {
        ValueRef::Integer(_) | ValueRef::Real(_) => Spelling::Number,
        _ => Spelling::Text,
    }
}

/// As JSON text.
pub(super) fn json(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".into(),
        ValueRef::Integer(i) => i.to_string(),
        ValueRef::Real(r) if r.is_finite() => float_repr(r),
        other => raw::quote(&text(other).unwrap_or_default()),
    }
}

/// As an instant: seconds since the epoch, or ISO 8601 text (UTC where it names no zone). A number no
/// ledger can mean in seconds (after the year 5138) is taken as milliseconds, then microseconds.
pub(super) fn time(value: ValueRef<'_>) -> Option<Time> {
    match value {
        ValueRef::Integer(i) => seconds(i as f64),
        ValueRef::Real(r) => seconds(r),
        ValueRef::Text(t) | ValueRef::Blob(t) => {
            let t = std::str::from_utf8(t).ok()?.trim();
            if let Ok(number) = t.parse() {
                return seconds(number);
            }
            if let Ok(stamp) = t.parse::<jiff::Timestamp>() {
                return Some(Time(stamp.as_microsecond()));
            }
            let civil: jiff::civil::DateTime = t.parse().ok()?;
            let utc = civil.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok()?;
            Some(Time(utc.timestamp().as_microsecond()))
        }
        ValueRef::Null => None,
    }
}

fn seconds(number: f64) -> Option<Time> {
    let scale = match number.abs() {
        n if n < 1e11 => 1.0,
        n if n < 1e14 => 1e3,
        _ => 1e6,
    };
    Time::from_seconds(number / scale)
}

/// Every value that [`id`] may have turned into `id`, so that an index can find it.
pub(super) fn candidates(id: &str) -> Vec<Value> {
    let mut out = vec![Value::Text(id.to_owned()), Value::Blob(id.as_bytes().to_vec())];
    if let Ok(i) = bare(id).parse::<i64>() {
        out.push(Value::Integer(i));
    } else if let Ok(r) = bare(id).parse::<f64>() {
        out.push(Value::Real(r));
    } else if let Some(bytes) = parse_blob_literal(id) {
        out.push(Value::Blob(bytes));
    }
    out
}

/// A number, as SQLite compares them: whole ones are whole whatever they are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Number {
    Whole(i64),
    Other(u64),
}

/// The number that a column of numbers takes this text for: SQLite does, when a server binds it.
pub(super) fn number(id: &str) -> Option<Number> {
    let id = bare(id);
    if !id.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
        return None;
    }
    if let Ok(whole) = id.parse() {
        return Some(Number::Whole(whole));
    }
    let real: f64 = id.parse().ok()?;
    // From 2^63 on no whole number of SQLite's is equal to it.
    let whole = real.fract() == 0.0 && real.abs() < 9_223_372_036_854_775_808.0;
    Some(if whole { Number::Whole(real as i64) } else { Number::Other(real.to_bits()) })
}

/// Whether a column of numbers takes both texts for one.
pub(super) fn same_number(asked: &str, stored: &str) -> bool {
    number(asked).is_some_and(|n| Some(n) == number(stored))
}

fn bare(number: &str) -> &str {
    let number = number.trim_matches(|c: char| c.is_ascii_whitespace());
    number.strip_prefix('+').unwrap_or(number)
}

fn blob_literal(bytes: &[u8]) -> String {
    let mut out = String::from("x'");
    for b in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{b:02x}");
    }
    out.push('\'');
    out
}

pub(super) fn parse_blob_literal(text: &str) -> Option<Vec<u8>> {
    let hex = text.strip_prefix("x'")?.strip_suffix('\'')?.as_bytes();
    let pairs = hex.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_type_becomes_text_and_finds_its_way_back() {
        for value in [
            Value::Text("a".into()),
            Value::Blob(vec![0xff, 0x00, 0x1b]),
            Value::Integer(-7),
            Value::Real(1.5),
            Value::Blob(b"abc".to_vec()),
        ] {
            let id = text(ValueRef::from(&value)).unwrap();
            assert!(candidates(&id).contains(&value), "{id}");
        }
        assert_eq!(text(ValueRef::Null), None);
        assert_eq!(text(ValueRef::Text(b"a\xff")).as_deref(), Some("a\u{fffd}"));
    }

    #[test]
    fn times_are_compared_as_instants() {
        let want = Some(Time(1_795_963_550_500_000));
        for value in [
            Value::Real(1795963550.5),
            Value::Integer(1795963550500),
            Value::Integer(1795963550500000),
            Value::Text("1795963550.5".into()),
            Value::Text("2026-11-29T14:45:50.5Z".into()),
            Value::Text("2026-11-29 14:45:50.500000".into()),
            Value::Text("2026-11-29T23:45:50.5+09:00".into()),
        ] {
            assert_eq!(time(ValueRef::from(&value)), want, "{value:?}");
        }
        for value in [Value::Text("yesterday".into()), Value::Null, Value::Real(f64::INFINITY)] {
            assert_eq!(time(ValueRef::from(&value)), None, "{value:?}");
        }
    }

    #[test]
    fn columns_become_json() {
        assert_eq!(json(ValueRef::Null), "null");
        assert_eq!(json(ValueRef::Real(1e16)), "1e+16");
        assert_eq!(json(ValueRef::Real(f64::INFINITY)), "\"Infinity\"");
        assert_eq!(json(ValueRef::Text("\"é\n".as_bytes())), "\"\\\"é\\n\"");
        assert_eq!(json(ValueRef::Blob(&[0xff])), "\"x'ff'\"");
    }
}
