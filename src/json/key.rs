//! Request ids as JSON has them: `5` and `"5"` are two things on the wire and one row in a column of integers. Here an
//! id becomes the text by which it is joined, and a text becomes the kind of value that a server takes.
//!
//! Must not compare arguments: equal text joins calls and rows, and proves nothing of what was sent.

use super::python::float_repr;
use super::raw;

/// The argument that names a request.
pub const REQUEST_ID: &str = "request_id";

/// What kind of JSON value an id is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// A string.
    #[default]
    Text,
    /// A number.
    Number,
}

/// The request_id of `arguments`, as text; `None` where they have none. A number is one, too.
pub fn of(arguments: &str) -> Option<String> {
    text(raw::get(arguments, REQUEST_ID)?)
}

/// How often `arguments` name a request: readers differ in which one of two they take.
pub fn times(arguments: &str) -> usize {
    let members = raw::members(arguments).unwrap_or_default();
    members.iter().filter(|(name, _)| name == REQUEST_ID).count()
}

/// A JSON string or number as the text of an id: `5`, `5.0` and `5e0` are `5`, as in a column of integers. `None` for
/// anything else.
pub fn text(value: &str) -> Option<String> {
    raw::as_str(value).or_else(|| number(value.trim()))
}

/// What kind of value `value` is; `None` for what is no id.
pub fn spelling(value: &str) -> Option<Spelling> {
    match value.trim_start().as_bytes().first()? {
        b'"' => Some(Spelling::Text),
        b'-' | b'0'..=b'9' => Some(Spelling::Number),
        _ => None,
    }
}

/// `id` as a JSON value. An id that is no number can't be written as one.
pub fn spelled(id: &str, spelling: Spelling) -> String {
    match spelling {
        Spelling::Number if number(id).as_deref() == Some(id) => id.to_owned(),
        _ => raw::quote(id),
    }
}

/// The canonical text of a JSON number. Whole numbers keep all their digits: above 2^53 a float would take one for its
/// neighbor.
fn number(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    if !is_number {
        return None;
    }
    if digits == "0" {
        return Some("0".into());
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.to_owned());
    }
    let value: f64 = text.parse().ok()?;
    Some(match value {
        0.0 => "0".into(),
        v if v.fract() == 0.0 && v.abs() < WHOLE => format!("{v:.0}"),
        v if v.is_finite() => float_repr(v),
        _ => text.to_owned(),
    })
}

/// Below this a whole float is written with its digits: it has no more of them than it knows.
const WHOLE: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_an_id_and_its_text_is_that_of_a_column() {
        for (json, id) in [
            (r#""5""#, Some("5")),
            ("5", Some("5")),
            (" 5 ", Some("5")),
            ("5.0", Some("5")),
            ("5e0", Some("5")),
            ("1E2", Some("100")),
            ("-0", Some("0")),
            ("-0.0", Some("0")),
            ("-7", Some("-7")),
            ("1.5", Some("1.5")),
            ("9007199254740993", Some("9007199254740993")),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("1e300", Some("1e+300")),
            (r#""05""#, Some("05")),
            (r#""5.0""#, Some("5.0")),
            (r#""""#, Some("")),
            ("05", None),
            ("NaN", None),
            ("null", None),
            ("true", None),
            ("[5]", None),
            ("{}", None),
        ] {
            assert_eq!(text(json).as_deref(), id, "{json}");
        }
        assert_eq!(of(r#"{"request_id":5,"n":1}"#).as_deref(), Some("5"));
        assert_eq!(of(r#"{"request_id":null}"#), None);
        assert_eq!(of(r#"{"request_id":"a","request_id":7}"#).as_deref(), Some("7"));
    }

    #[test]
    fn an_id_is_written_as_the_server_takes_it() {
        assert_eq!(spelled("5", Spelling::Number), "5");
        assert_eq!(spelled("5", Spelling::Text), r#""5""#);
        assert_eq!(spelled("-7", Spelling::Number), "-7");
        // No number, or one that would come out as another text.
        for id in ["r-1", "05", "5.0", "", "0x5", " 5", "1e2", "NaN", "Infinity"] {
            assert_eq!(spelled(id, Spelling::Number), raw::quote(id), "{id}");
        }
        assert_eq!(spelling("\"5\""), Some(Spelling::Text));
        assert_eq!(spelling("-5"), Some(Spelling::Number));
        assert_eq!(spelling("null"), None);
    }
}
