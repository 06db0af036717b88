//! What a JSON-RPC text is: request, notification, answer, or something malformed that is named.
//!
//! Reads the envelope only, with raw members; never judges what an answer means for a call.

use super::id::Id;
use crate::json::raw;

/// One JSON-RPC message, borrowed from the bytes it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// `method` and `id`.
    Request { id: Id, method: String, params: Option<&'a str> },
    /// `method` without `id`.
    Notification { method: String, params: Option<&'a str> },
    /// Exactly one of `result` and `error`.
    Response { id: Option<Id>, answer: Answer<'a> },
    /// JSON-RPC in intent, but not legal; `why` names the fault in words.
    Malformed { id: Option<Id>, why: &'static str },
    /// Not JSON-RPC at all: noise on stdout, a proxy's page.
    NotRpc,
}

/// What an answer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The raw result.
    Result(&'a str),
    /// The raw error object, with its code and message read out where they are there.
    Error { raw: &'a str, code: Option<i64>, message: String },
}

impl<'a> Answer<'a> {
    /// From the raw members of a message without a method: an answer, or in words why it is none. `None`: neither is
    /// there.
    pub fn of(
        result: Option<&'a str>,
        error: Option<&'a str>,
    ) -> Option<Result<Answer<'a>, &'static str>> {
        // JSON-RPC 1 wrote both members, the unused one as null: such a null is not there.
        let (result, error) = match (result, error) {
            (Some(r), Some(e)) if raw::is_null(e) && !raw::is_null(r) => (Some(r), None),
            (Some(r), e @ Some(_)) if raw::is_null(r) => (None, e),
            both => both,
        };
        Some(match (result, error) {
            (None, None) => return None,
            (Some(_), Some(_)) => Err("it has a result and an error"),
            (Some(r), None) if raw::is_null(r) => Err("its result is null"),
            (Some(r), None) => Ok(Answer::Result(r)),
            (None, Some(e)) if raw::is_object(e) => Ok(Answer::error(e)),
            (None, Some(_)) => Err("its error is not an object"),
        })
    }

    /// From the raw error object.
    pub fn error(raw: &'a str) -> Answer<'a> {
        Answer::Error {
            raw,
            code: raw::get(raw, "code").and_then(|c| c.trim().parse().ok()),
            message: raw::get_str(raw, "message").unwrap_or_default(),
        }
    }
}

impl<'a> Frame<'a> {
    /// Classifies one text. Tolerant: unknown members, a missing `jsonrpc`, white space around are fine.
    pub fn parse(text: &'a str) -> Frame<'a> {
        let trimmed = text.trim_start_matches('\u{feff}').trim();
        if trimmed.starts_with('[') {
            return match raw::items(trimmed) {
                Some(items) if items.iter().any(|i| looks_rpc(i)) => Frame::Malformed {
                    id: None,
                    why: "a batch: this protocol has none since 2025-06-18",
                },
                _ => Frame::NotRpc,
            };
        }
        let Some(members) = raw::members(trimmed) else { return Frame::NotRpc };
        let find = |key: &str| members.iter().rev().find(|(k, _)| k == key).map(|(_, v)| *v);
        let id = find("id").map(Id::from_raw);
        let params = find("params");
        if let Some(m) = find("method") {
            let Some(method) = raw::as_str(m) else {
                return Frame::Malformed { id, why: "its method is not a string" };
            };
            return match id {
                Some(Id::Odd(_)) => {
                    Frame::Malformed { id, why: "its id is not a string or number" }
                }
                Some(id) => Frame::Request { id, method, params },
                None => Frame::Notification { method, params },
            };
        }
        match Answer::of(find("result"), find("error")) {
            Some(Ok(answer)) => Frame::Response { id, answer },
            Some(Err(why)) => Frame::Malformed { id, why },
            None if find("jsonrpc").is_some() => {
                Frame::Malformed { id, why: "it has neither a method, a result nor an error" }
            }
            None => Frame::NotRpc,
        }
    }
}

/// The ids of a text that has more than one, or a list of them, and what is wrong with that; none for any other.
pub fn odd_ids(text: &str) -> (Vec<Id>, &'static str) {
    let members = raw::members(text.trim_start_matches('\u{feff}').trim()).unwrap_or_default();
    let own: Vec<&str> = members.iter().filter(|(k, _)| k == "id").map(|(_, v)| *v).collect();
    let (all, why) = match own.as_slice() {
        [one] => (raw::items(one).unwrap_or_default(), "its id is a list"),
        _ => (own, "it has more than one id"),
    };
    let ids = all.into_iter().map(Id::from_raw);
    (ids.filter(|id| matches!(id, Id::Number(_) | Id::String(_))).collect(), why)
}

/// Whether a text that is an array may be a batch: 2025-03-26 alone has them, and a receiver must take them.
pub fn may_batch(protocol: Option<&str>, text: &str) -> bool {
    protocol == Some("2025-03-26")
        && text.trim_start_matches('\u{feff}').trim_start().starts_with('[')
}

/// The messages of a batch; none for any other text. What they are is not looked at.
pub fn batch(text: &str) -> Vec<&str> {
    raw::items(text.trim_start_matches('\u{feff}').trim()).unwrap_or_default()
}

fn looks_rpc(text: &str) -> bool {
    raw::members(text).is_some_and(|m| {
        m.iter().any(|(k, _)| matches!(k.as_ref(), "jsonrpc" | "method" | "result" | "error"))
    })
}

/// A request as JSON text (one line, no newline). `params` must be JSON; line breaks between its tokens
/// become blanks, since a message on stdio must not hold any.
pub fn request(id: &Id, method: &str, params: Option<&str>) -> String {
    let id = id.to_json();
    let method = raw::quote(method);
    match params.map(|p| p.replace(['\n', '\r'], " ")) {
        Some(p) => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{p}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
    }
}

/// A notification as JSON text.
pub fn notification(method: &str, params: Option<&str>) -> String {
    let method = raw::quote(method);
    match params {
        Some(p) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{p}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
    }
}

/// A successful answer.
pub fn result(id: &Id, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.to_json())
}

/// An error answer.
pub fn error(id: &Id, code: i64, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":{}}}}}"#,
        id.to_json(),
        raw::quote(message)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told_apart() {
        let cases: &[(&str, &str)] = &[
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "Request"),
            (r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#, "Notification"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "Response"),
            (r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}"#, "Response"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "Malformed"),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "Malformed"),
            (
                r#"{"id":1,"result":{},"error":null}"#,
                "Response { id: Some(Number(\"1\")), answer: Result",
            ),
            (
                r#"{"id":1,"result":null,"error":{}}"#,
                "Response { id: Some(Number(\"1\")), answer: Error",
            ),
            (r#"{"id":1,"result":null,"error":null}"#, "Malformed"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "Malformed"),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, "Malformed"),
            (r#"{"level":"info","msg":"structured log"}"#, "NotRpc"),
            ("42", "NotRpc"),
            ("[1,2]", "NotRpc"),
            ("Server mode: STDIO", "NotRpc"),
        ];
        for (text, kind) in cases {
            let got = format!("{:?}", Frame::parse(text));
            assert!(got.starts_with(kind), "{text} -> {got}");
        }
    }

    #[test]
    fn ids_that_no_answer_may_have_are_found() {
        for (text, ids) in [
            (r#"{"id":4,"result":{},"id":"x"}"#, r#"4 "x""#),
            (r#"{"id":4,"result":{},"id":null}"#, "4"),
            (r#"{"id":[4,{}],"result":{}}"#, "4"),
            (r#"{"id":4,"result":{"id":5}}"#, ""),
            (r#"{"id":{"id":4},"result":{}}"#, ""),
            (r#"[{"id":4,"id":5}]"#, ""),
        ] {
            let found: Vec<_> = odd_ids(text).0.iter().map(Id::to_json).collect();
            assert_eq!(found.join(" "), ids, "{text}");
        }
    }

    #[test]
    fn built_frames_parse_back() {
        let id = Id::from(7);
        assert_eq!(
            Frame::parse(&request(&id, "tools/list", Some("{}"))),
            Frame::Request { id: id.clone(), method: "tools/list".into(), params: Some("{}") }
        );
        let e = error(&id, -32601, "no \"such\" method");
        assert!(matches!(
            Frame::parse(&e),
            Frame::Response { answer: Answer::Error { code: Some(-32601), ref message, .. }, .. } if message == "no \"such\" method"
        ));
    }
}
