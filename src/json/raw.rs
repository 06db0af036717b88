//! Members of a JSON object as the raw text they were, one level deep.
//!
//! Nothing here recurses, so depth is no limit; numbers and escapes stay as they were sent.
//! Must not reformat anything.

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The members of a JSON object in the order they were sent, repeated keys included.
/// `None` when `text` is not one JSON object.
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    struct V;
    impl<'de> Visitor<'de> for V {
        type Value = Vec<(Cow<'de, str>, &'de str)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some(Key(k)) = map.next_key::<Key<'de>>()? {
                let v: &'de RawValue = map.next_value()?;
                out.push((k, v.get()));
            }
            Ok(out)
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    let out = de.deserialize_map(V).ok()?;
    de.end().ok()?;
    Some(out)
}

/// The items of a JSON array as raw text. `None` when `text` is not one JSON array.
pub fn items(text: &str) -> Option<Vec<&str>> {
    struct V;
    impl<'de> Visitor<'de> for V {
        type Value = Vec<&'de str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some(v) = seq.next_element::<&'de RawValue>()? {
                out.push(v.get());
            }
            Ok(out)
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    let out = de.deserialize_seq(V).ok()?;
    de.end().ok()?;
    Some(out)
}

/// An object whose members were read once: each [`get`] of its own would go through the whole text, which may have 50 MB.
#[derive(Debug, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// Reads `text`; without members where it is no object.
    pub fn read(text: &'a str) -> Object<'a> {
        Object(members(text).unwrap_or_default())
    }

    /// The raw text of member `key`; of a repeated key the last one.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    /// All of them, as they were sent.
    pub fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(k, v)| (k.as_ref(), *v))
    }

    /// The decoded string member `key`.
    pub fn get_str(&self, key: &str) -> Option<String> {
        as_str(self.get(key)?)
    }
}

/// The raw text of member `key`; of a repeated key the last one, as Python and JavaScript do.
pub fn get<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    members(text)?.into_iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
}

/// Follows `path` through nested objects.
pub fn get_path<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text, |t, key| get(t, key))
}

/// The decoded string when `raw` is a JSON string (a lone surrogate becomes U+FFFD).
pub fn as_str(raw: &str) -> Option<String> {
    if !raw.trim_start().starts_with('"') {
        return None;
    }
    match serde_json::from_str::<String>(raw) {
        Ok(s) => Some(s),
        // serde_json refuses lone surrogates in a str but hands them over as bytes (WTF-8).
        Err(_) => serde_json::from_str::<LossyString>(raw).ok().map(|s| s.0),
    }
}

/// The decoded string member `key`.
pub fn get_str(text: &str, key: &str) -> Option<String> {
    as_str(get(text, key)?)
}

/// `true`/`false` when `raw` is that literal.
pub fn as_bool(raw: &str) -> Option<bool> {
    match raw.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Whether `raw` is a JSON object / array / the literal null, told by its first character.
pub fn is_object(raw: &str) -> bool {
    raw.trim_start().starts_with('{')
}
/// See [`is_object`].
pub fn is_null(raw: &str) -> bool {
    raw.trim() == "null"
}

/// `s` as a JSON string literal.
pub fn quote(s: &str) -> String {
    serde_json::to_string(s).unwrap_or_else(|_| "\"\"".into())
}

struct LossyString(String);

impl<'de> serde::Deserialize<'de> for LossyString {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = LossyString;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON string")
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<LossyString, E> {
                Ok(LossyString(String::from_utf8_lossy(v).into_owned()))
            }
            fn visit_str<E>(self, v: &str) -> Result<LossyString, E> {
                Ok(LossyString(v.to_owned()))
            }
        }
        d.deserialize_bytes(V)
    }
}

/// An object key; borrowed when it holds no escapes, lossy on lone surrogates.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(v.to_owned())))
            }
            fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Key<'de>, E> {
                Ok(Key(String::from_utf8_lossy(v)))
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(String::from_utf8_lossy(v).into_owned())))
            }
        }
        d.deserialize_str(V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_order_spelling_and_repeats() {
        let m = members(r#"{"a":1.0, "b":"\u00e9","a":[ 1e2 ]}"#).unwrap();
        assert_eq!(m[0], ("a".into(), "1.0"));
        assert_eq!(m[1], ("b".into(), r#""\u00e9""#));
        assert_eq!(get(r#"{"a":1.0,"a":[ 1e2 ]}"#, "a"), Some("[ 1e2 ]"));
        assert_eq!(get_path(r#"{"a":{"b":{"c":null}}}"#, &["a", "b", "c"]), Some("null"));
        assert_eq!(members("[1]"), None);
        assert_eq!(members("{} x"), None);
        assert_eq!(items("[1, {\"a\":2}]"), Some(vec!["1", "{\"a\":2}"]));
    }

    #[test]
    fn depth_is_no_limit_and_lone_surrogates_no_error() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(get(&deep, "x").map(str::len), Some(200_000));
        assert!(as_str(r#""a\ud800b""#).is_some_and(|s| s.starts_with('a') && s.ends_with('b')));
        assert_eq!(as_str("1"), None);
    }
}
