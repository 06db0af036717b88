//! How a live answer differs from the recorded one. What differs each time by its nature does not count: `_meta`,
//! times (by name and by form), and the paths a person names.

use super::script::Said;
use crate::json::flat::leaves;
use crate::json::raw::{self, quote};
use crate::record::redact::{MASK, is_hidden};
use serde::Serialize;
use std::collections::BTreeMap;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, `structuredContent.ticket_id`.
    pub path: String,
    /// The recorded value, in one spelling; `None` when there was none.
    pub recorded: Option<String>,
    /// The live value.
    pub now: Option<String>,
}

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// No difference that counts.
    Same,
    /// These.
    Differs(Vec<Change>),
    /// It was answered with a result, and now with an error.
    NowAnError,
    /// It was answered with an error, and now with a result.
    NowAResult,
}

impl Compared {
    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Compared::Same => "same",
            Compared::Differs(_) => "differs",
            Compared::NowAnError => "now_an_error",
            Compared::NowAResult => "now_a_result",
        }
    }
}

/// Paths that don't count.
#[derive(Debug, Clone, Default)]
pub struct Ignore(Vec<Vec<String>>);

impl Ignore {
    /// From `a.b`, `a.*.c`, `$.a[0]`.
    pub fn new(paths: &[String]) -> Ignore {
        let path = |p: &String| {
            let p = p.strip_prefix("$.").unwrap_or(p);
            p.split(['.', '[', ']']).filter(|s| !s.is_empty()).map(str::to_owned).collect()
        };
        Ignore(paths.iter().map(path).collect())
    }

    /// A named path, and all below it.
    fn has(&self, path: &[String]) -> bool {
        self.0.iter().any(|want| {
            want.len() <= path.len() && want.iter().zip(path).all(|(w, p)| w == "*" || w == p)
        })
    }
}

/// Compares two answers.
pub fn compare(recorded: &Said, now: &Said, ignore: &Ignore) -> Compared {
    let failed = |r: &str| raw::get(r, "isError").and_then(raw::as_bool) == Some(true);
    match (recorded, now) {
        (Said::Result(a), Said::Result(b)) => match (failed(a), failed(b)) {
            (false, true) => Compared::NowAnError,
            (true, false) => Compared::NowAResult,
            _ => texts(a, b, ignore),
        },
        (Said::Error(a), Said::Error(b)) => texts(a, b, ignore),
        (Said::Result(_), Said::Error(_)) => Compared::NowAnError,
        (Said::Error(_), Said::Result(_)) => Compared::NowAResult,
    }
}

fn texts(a: &str, b: &str, ignore: &Ignore) -> Compared {
    let (Some(a), Some(b)) = (leaves(a), leaves(b)) else {
        let both = Change { path: String::new(), recorded: Some(a.into()), now: Some(b.into()) };
        return if a == b { Compared::Same } else { Compared::Differs(vec![both]) };
    };
    let mut changes: BTreeMap<&[String], Change> = BTreeMap::new();
    for path in a.keys().chain(b.keys()) {
        let (old, new) = (a.get(path), b.get(path));
        let counts = old != new
            && !ignore.has(path)
            && !is_volatile(path, old, new)
            && !was_replaced(&a, path, new);
        if counts {
            let change = Change { path: path.join("."), recorded: old.cloned(), now: new.cloned() };
            changes.insert(path, change);
        }
    }
    if changes.is_empty() {
        Compared::Same
    } else {
        Compared::Differs(changes.into_values().collect())
    }
}

/// The recorded value was replaced when it was written down, or one that this is in: it can't be compared.
fn was_replaced(
    recorded: &BTreeMap<Vec<String>, String>,
    path: &[String],
    new: Option<&String>,
) -> bool {
    let mask = quote(MASK);
    let above = (0..path.len()).any(|n| recorded.get(&path[..n]) == Some(&mask));
    let now = new.map(String::as_str);
    let itself = recorded.get(path).is_some_and(|old| match now {
        Some(now) => is_hidden(old, now),
        // It is an object now, with leaves of its own.
        None => *old == mask,
    });
    above || itself
}

/// `_meta` and what is in it; a time under a name of time, or that has the form of one, on both sides.
fn is_volatile(path: &[String], old: Option<&String>, new: Option<&String>) -> bool {
    if path.iter().any(|p| p == "_meta") {
        return true;
    }
    let (Some(old), Some(new)) = (old, new) else {
        // The envelope of 2026-07-28, which an older revision of the same server does not have.
        let envelope = ["resultType", "ttlMs", "cacheScope"];
        return matches!(path, [one] if envelope.contains(&one.as_str()));
    };
    let name = path.last().map(|n| n.to_ascii_lowercase()).unwrap_or_default();
    let named = name.ends_with("_at")
        || name.ends_with("time")
        || name.ends_with("timestamp")
        || name.ends_with("date")
        || matches!(
            name.as_str(),
            "createdat" | "updatedat" | "lastupdatedat" | "elapsed_ms" | "duration_ms"
        );
    let number = |v: &str| v.parse::<f64>().is_ok();
    let form = |v: &str| {
        raw::as_str(v).is_some_and(|s| {
            s.parse::<jiff::Timestamp>().is_ok() || s.parse::<jiff::civil::DateTime>().is_ok()
        })
    };
    (named && number(old) && number(new)) || (form(old) && form(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(a: &str, b: &str) -> Compared {
        compare(&Said::Result(a.into()), &Said::Result(b.into()), &Ignore::new(&["x.*.seq".into()]))
    }

    #[test]
    fn what_differs_by_nature_does_not_count() {
        for (a, b) in [
            (r#"{"a":1.0,"b":2}"#, r#"{ "b":2, "a":1.00 }"#),
            (r#"{"_meta":{"io.x/y":1},"a":1}"#, r#"{"_meta":{},"a":1}"#),
            (r#"{"created_at":1.5}"#, r#"{"created_at":99}"#),
            (r#"{"when":"2026-11-29T02:57:10Z"}"#, r#"{"when":"2026-11-30T02:57:10.5Z"}"#),
            (
                r#"{"content":[{"text":"{\"t\":\"2026-11-29 02:57:10\"}"}]}"#,
                r#"{"content":[{"text":"{\"t\":\"2026-11-29 02:57:11\"}"}]}"#,
            ),
            (r#"{"resultType":"complete","ttlMs":0,"a":1}"#, r#"{"a":1}"#),
            (r#"{"x":[{"seq":1}]}"#, r#"{"x":[{"seq":2}]}"#),
            (r#"{"a":"Bearer [redacted] ok"}"#, r#"{"a":"Bearer xyz ok"}"#),
            (r#"{"secret":"[redacted]"}"#, r#"{"secret":{"a":1,"b":[2]}}"#),
        ] {
            assert_eq!(compared(a, b), Compared::Same, "{a} {b}");
        }
    }

    #[test]
    fn what_differs_is_told_with_its_path() {
        let Compared::Differs(c) =
            compared(r#"{"a":{"id":1},"gone":true}"#, r#"{"a":{"id":2},"new":[]}"#)
        else {
            panic!()
        };
        let told: Vec<_> =
            c.iter().map(|c| (c.path.as_str(), c.recorded.as_deref(), c.now.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("a.id", Some("1"), Some("2")),
                ("gone", Some("true"), None),
                ("new", None, Some("[]"))
            ]
        );
        assert!(matches!(
            compared(r#"{"created_at":1}"#, r#"{"created_at":"soon"}"#),
            Compared::Differs(_)
        ));
        assert!(matches!(
            compared(r#"{"a":"x [redacted]"}"#, r#"{"a":"y z"}"#),
            Compared::Differs(_)
        ));
        assert_eq!(compared("{}", r#"{"isError":true}"#), Compared::NowAnError);
        assert_eq!(compared(r#"{"isError":true}"#, "{}"), Compared::NowAResult);
        // Errors are compared whole: a code or a message that differs is another error.
        let errors = |a: &str, b: &str| {
            compare(&Said::Error(a.into()), &Said::Error(b.into()), &Ignore::default())
        };
        let missing = r#"{"code":-32601,"message":"Method not found"}"#;
        for other in [
            r#"{"code":-32000,"message":""}"#,
            r#"{"code":-32602,"message":"Method not found"}"#,
            r#"{"code":-32601,"message":"not found"}"#,
        ] {
            assert!(matches!(errors(other, missing), Compared::Differs(_)), "{other}");
        }
        assert_eq!(errors(missing, missing), Compared::Same);
        let error = Said::Error(r#"{"code":1}"#.into());
        assert_eq!(
            compare(&Said::Result("{}".into()), &error, &Ignore::default()),
            Compared::NowAnError
        );
    }
}
