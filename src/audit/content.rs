//! What stands in a result and in arguments: scalars by name at any depth, in structured content and in JSON that
//! stands in a text; texts; what is at a JSON Pointer.

use super::contract::{Place, Term};
use super::lean::{self, Leaf};
use crate::json::raw;
use crate::record::redact::MASK;
use std::borrow::Cow;

/// JSON in a text in JSON …: how far that is followed.
const NESTED: u32 = 3;

/// A value as it is compared: a string decoded, anything else as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string, number, `true`.
    Is(Cow<'a, str>),
    /// null, an empty string, list or object, `false`.
    Empty,
    /// It was replaced when the trace was written.
    Hidden,
}

/// Reads a raw scalar.
pub fn value(raw: &str) -> Value<'_> {
    match lean::text(raw) {
        Some(t) if t.trim().is_empty() => Value::Empty,
        Some(t) if t == MASK => Value::Hidden,
        Some(t) => Value::Is(t),
        None if matches!(raw, "null" | "{}" | "[]" | "false") => Value::Empty,
        None => Value::Is(Cow::Borrowed(raw)),
    }
}

/// A result's parts.
#[derive(Debug, Clone, Default)]
pub struct Parts<'a> {
    /// `structuredContent`, or the whole of what a trace list kept.
    pub structured: Option<&'a str>,
    /// `content`.
    pub content: Option<&'a str>,
    /// `isError`.
    pub is_error: Option<&'a str>,
    /// `resultType`.
    pub result_type: Option<&'a str>,
    /// `task`, or a `taskId`.
    pub task: bool,
}

impl<'a> Parts<'a> {
    /// Of a raw result of a `tools/call`.
    pub fn of(result: &'a str) -> Option<Parts<'a>> {
        let mut p = Parts::default();
        lean::members(result, |k, v| match k {
            "structuredContent" => p.structured = Some(v).filter(|v| !raw::is_null(v)),
            "content" => p.content = Some(v),
            "isError" => p.is_error = Some(v).filter(|v| !raw::is_null(v)),
            "resultType" => p.result_type = Some(v).filter(|v| !raw::is_null(v)),
            "task" | "taskId" => p.task = true,
            _ => {}
        })?;
        Some(p)
    }

    /// Of what a trace list kept: a result of MCP, or the structured part alone.
    pub fn of_trace(result: &'a str) -> Parts<'a> {
        let parts = Parts::of(result).unwrap_or_default();
        let is_mcp =
            parts.structured.is_some() || parts.content.is_some_and(|c| c.starts_with('['));
        if is_mcp { parts } else { Parts { structured: Some(result), ..Parts::default() } }
    }

    /// All scalars with their names, wherever they stand.
    pub fn scalars(&self, each: &mut dyn FnMut(&str, &str)) {
        if let Some(s) = self.structured {
            dig(s, NESTED, each);
        }
        if let Some(c) = self.content {
            lean::leaves(c, |l| {
                if l.name == "text"
                    && let Some(inner) = inner(l.raw)
                {
                    dig(&inner, NESTED - 1, each);
                }
            });
        }
    }

    /// The texts of its content, those that are JSON too; a log may have kept the text alone.
    pub fn texts(&self) -> Vec<Cow<'a, str>> {
        let mut out: Vec<Cow<'a, str>> = self.structured.and_then(lean::text).into_iter().collect();
        if let Some(c) = self.content {
            lean::leaves(c, |l| {
                if l.name == "text"
                    && let Some(t) = lean::text(l.raw)
                {
                    out.push(t);
                }
            });
        }
        out
    }
}

/// All scalars of a JSON text, and of JSON that stands in its strings.
pub fn dig(text: &str, nested: u32, each: &mut dyn FnMut(&str, &str)) {
    lean::leaves(text, |l: Leaf<'_>| {
        if nested > 0
            && let Some(inner) = inner(l.raw)
            && lean::leaves(&inner, |_| {}).is_some()
        {
            return dig(&inner, nested - 1, each);
        }
        each(l.name, l.raw);
    });
}

/// A string that may hold JSON, decoded.
fn inner(raw: &str) -> Option<Cow<'_, str>> {
    // Most strings don't, and are not decoded.
    let first = raw.strip_prefix('"')?.trim_start().as_bytes().first().copied();
    if !matches!(first, Some(b'{' | b'[' | b'\\')) {
        return None;
    }
    lean::text(raw).filter(|t| t.trim_start().starts_with(['{', '[']))
}

/// What stands at a JSON Pointer (RFC 6901), raw.
pub fn pointer<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    pointer.split('/').skip(1).try_fold(text, |text, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match text.trim_start().as_bytes().first()? {
            b'{' => raw::get(text, &step),
            b'[' => raw::items(text)?.get(step.parse::<usize>().ok()?).copied(),
            _ => None,
        }
    })
}

/// The scalars at a pointer: itself, or the items of a list.
fn at_pointer(text: &str, path: &str, each: &mut dyn FnMut(&str)) {
    if let Some(found) = pointer(text, path) {
        lean::leaves(found, |l| each(l.raw));
    }
}

/// The values that a term finds: in a result when `parts` are given (`whole` is its raw text), else in arguments.
pub fn find(term: &Term, whole: &str, parts: Option<&Parts<'_>>) -> Vec<Found> {
    let mut out = Vec::new();
    match (&term.place, parts) {
        (Place::Name(n), None) => dig(whole, 1, &mut |name, raw| {
            if is_named(name, n) {
                push(&mut out, raw);
            }
        }),
        (Place::Name(n), Some(p)) => p.scalars(&mut |name, raw| {
            if is_named(name, n) {
                push(&mut out, raw);
            }
        }),
        (Place::Pointer(p), None) => at_pointer(whole, p, &mut |raw| push(&mut out, raw)),
        (Place::Pointer(path), Some(parts)) => {
            at_pointer(whole, path, &mut |raw| push(&mut out, raw));
            if let Some(s) = parts.structured.filter(|_| out.is_empty()) {
                at_pointer(s, path, &mut |raw| push(&mut out, raw));
            }
            for t in parts.texts() {
                if out.is_empty() && t.trim_start().starts_with(['{', '[']) {
                    at_pointer(&t, path, &mut |raw| push(&mut out, raw));
                }
            }
        }
    }
    if let Some(pattern) = &term.pattern
        && !out.iter().any(|f| *f != Found::Empty)
    {
        let texts = match parts {
            Some(p) => p.texts(),
            None => strings(whole),
        };
        for t in texts {
            for c in pattern.captures_iter(&t) {
                if let Some(m) = c.get(1).or(c.get(0)).filter(|m| !m.as_str().trim().is_empty()) {
                    out.push(Found::Is(m.as_str().to_owned()));
                }
            }
        }
    }
    out
}

fn strings(text: &str) -> Vec<Cow<'_, str>> {
    let mut out = Vec::new();
    lean::leaves(text, |l| out.extend(lean::text(l.raw)));
    out
}

/// A name as it was sent, against one as a person wrote it.
fn is_named(sent: &str, wanted: &str) -> bool {
    sent == wanted
        || (sent.contains('\\') && lean::text(&format!("\"{sent}\"")).is_some_and(|s| s == wanted))
}

/// A [`Value`] of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This.
    Is(String),
    /// There, and empty.
    Empty,
    /// Replaced when the trace was written.
    Hidden,
}

fn push(out: &mut Vec<Found>, raw: &str) {
    let found = match value(raw) {
        Value::Is(v) => Found::Is(v.into_owned()),
        Value::Empty => Found::Empty,
        Value::Hidden => Found::Hidden,
    };
    // A text and its structured twin say the same.
    if !out.contains(&found) {
        out.push(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    fn term(place: &str, pattern: Option<&str>) -> Term {
        let place = if place.starts_with('/') {
            Place::Pointer(place.into())
        } else {
            Place::Name(place.into())
        };
        let pattern = pattern.map(|p| Regex::new(p).unwrap());
        Term { place, name: "x".into(), optional: false, pattern }
    }

    fn in_result(term: &Term, result: &str) -> Vec<String> {
        let parts = Parts::of(result).unwrap();
        let is = |f| match f {
            Found::Is(v) => v,
            other => format!("{other:?}"),
        };
        find(term, result, Some(&parts)).into_iter().map(is).collect()
    }

    #[test]
    fn handles_are_found_wherever_they_stand() {
        let id = term("basket_id", Some(r"basket (\S+)"));
        for (result, want) in [
            (r#"{"structuredContent":{"basket_id":"b-1"}}"#, vec!["b-1"]),
            (
                r#"{"structuredContent":{"a":[{"b":{"basket_id":7}},{"basket_id":8}]}}"#,
                vec!["7", "8"],
            ),
            (r#"{"structuredContent":{"basket_id":["b-1","b-2"]}}"#, vec!["b-1", "b-2"]),
            (r#"{"content":[{"type":"text","text":"{\n \"basket_id\": \"b-1\"}"}]}"#, vec!["b-1"]),
            (
                r#"{"content":[{"type":"text","text":"Made basket b-1 and basket b-2."}]}"#,
                vec!["b-1", "b-2."],
            ),
            (
                r#"{"structuredContent":{"result":"{\"basket_id\":\"b-1\"}"},"content":[]}"#,
                vec!["b-1"],
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"basket_id\":\"b-1\"}"}],"structuredContent":{"basket_id":"b-1"}}"#,
                vec!["b-1"],
            ),
            (r#"{"structuredContent":{"basket_id":""}}"#, vec!["Empty"]),
            (r#"{"structuredContent":{"basket_id":null}}"#, vec!["Empty"]),
            (r#"{"structuredContent":{"basket_id":0}}"#, vec!["0"]),
            (r#"{"structuredContent":{"basket_id":"[redacted]"}}"#, vec!["Hidden"]),
            (r#"{"structuredContent":{"basket\u005fid":"b-1"}}"#, vec!["b-1"]),
            (r#"{"content":[]}"#, vec![]),
        ] {
            assert_eq!(in_result(&id, result), want, "{result}");
        }
        let deep = format!(
            r#"{{"structuredContent":{}{{"basket_id":"b-9"}}{}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        assert_eq!(in_result(&id, &deep), ["b-9"]);
    }

    #[test]
    fn pointers_begin_at_the_result_or_at_its_structured_part() {
        let result = r#"{"structuredContent":{"new":{"id":"b-1"},"all":["x","y"],"a/b":{"~":1}},"content":[{"type":"text","text":"{\"deep\":{\"id\":\"t\"}}"}]}"#;
        for (p, want) in [
            ("/new/id", vec!["b-1"]),
            ("/structuredContent/new/id", vec!["b-1"]),
            ("/all", vec!["x", "y"]),
            ("/all/1", vec!["y"]),
            ("/a~1b/~0", vec!["1"]),
            ("/deep/id", vec!["t"]),
            ("/none", vec![]),
        ] {
            assert_eq!(in_result(&term(p, None), result), want, "{p}");
        }
        let args = r#"{"to":{"basket":{"id":"b-2"}}}"#;
        assert_eq!(find(&term("/to/basket/id", None), args, None), [Found::Is("b-2".into())]);
    }

    #[test]
    fn a_trace_may_keep_the_structured_part_alone() {
        assert_eq!(
            Parts::of_trace(r#"{"basket_id":"b"}"#).structured,
            Some(r#"{"basket_id":"b"}"#)
        );
        assert!(Parts::of_trace(r#"{"content":[]}"#).structured.is_none());
        let alone = Parts::of_trace(r#""basket b-7 made""#);
        assert_eq!(alone.structured, Some(r#""basket b-7 made""#));
        assert_eq!(alone.texts(), ["basket b-7 made"], "a pattern finds its handle there");
    }
}
