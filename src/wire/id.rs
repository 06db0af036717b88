//! JSON-RPC ids that keep their type: `1`, `"1"` and `1.0` are three ids (JSON-RPC 2.0, section 4).

use crate::json::raw;
use std::fmt;

/// The id of a JSON-RPC frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A number, with the spelling it had on the wire.
    Number(Box<str>),
    /// A string, decoded.
    String(Box<str>),
    /// `null`: legal only in an error whose request could not be read.
    Null,
    /// Anything else (an object, a list, a boolean): never legal, kept as sent.
    Odd(Box<str>),
}

impl Id {
    /// From the raw JSON text of an `id` member.
    pub fn from_raw(text: &str) -> Id {
        let t = text.trim();
        match t.as_bytes().first() {
            Some(b'"') => match raw::as_str(t) {
                Some(s) => Id::String(s.into()),
                None => Id::Odd(t.into()),
            },
            Some(b'n') => Id::Null,
            Some(b'-' | b'0'..=b'9') => Id::Number(t.into()),
            _ => Id::Odd(t.into()),
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        match self {
            Id::Number(n) | Id::Odd(n) => n.to_string(),
            Id::String(s) => raw::quote(s),
            Id::Null => "null".into(),
        }
    }

    /// The same digits under another type or spelling, as some servers answer (`"1"` or `1.0` for `1`):
    /// a near match is shown as such and never taken for an answer.
    pub fn is_near(&self, other: &Id) -> bool {
        fn plain(id: &Id) -> Option<&str> {
            match id {
                Id::Number(n) => Some(n.strip_suffix(".0").unwrap_or(n)),
                Id::String(s) => Some(s),
                _ => None,
            }
        }
        self != other && plain(self).is_some() && plain(self) == plain(other)
    }
}

impl From<u64> for Id {
    fn from(n: u64) -> Id {
        Id::Number(n.to_string().into())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_spellings_stay_apart() {
        let ids = ["1", "\"1\"", "1.0", "null", "[1]"].map(Id::from_raw);
        for (i, a) in ids.iter().enumerate() {
            for (j, b) in ids.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a} {b}");
            }
        }
        assert!(ids[0].is_near(&ids[1]) && ids[0].is_near(&ids[2]) && !ids[0].is_near(&ids[3]));
        assert_eq!(Id::from_raw(r#""\u0061""#), Id::from_raw("\"a\""));
    }
}
