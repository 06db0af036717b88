//! What a line of a recording says of its frame, so that lists and filters need not parse the frame again.

use crate::json::loose::loosened;
use crate::json::{key, raw};
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rpc {
    /// `method` and `id`.
    Request,
    /// `method` alone.
    Notification,
    /// A result without `isError`.
    Result,
    /// A result with `isError: true`.
    ToolError,
    /// A JSON-RPC error.
    Error,
    /// JSON-RPC in intent.
    Malformed,
}

impl Rpc {
    const ALL: [Rpc; 6] =
        [Rpc::Request, Rpc::Notification, Rpc::Result, Rpc::ToolError, Rpc::Error, Rpc::Malformed];
    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Rpc::Request => "request",
            Rpc::Notification => "notification",
            Rpc::Result => "result",
            Rpc::ToolError => "tool_error",
            Rpc::Error => "error",
            Rpc::Malformed => "malformed",
        }
    }
    /// From the word.
    pub fn from_word(word: &str) -> Option<Rpc> {
        Rpc::ALL.into_iter().find(|r| r.word() == word)
    }
    /// It answers something.
    pub fn is_answer(self) -> bool {
        matches!(self, Rpc::Result | Rpc::ToolError | Rpc::Error)
    }
}

/// A frame in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What it is.
    pub rpc: Rpc,
    /// Its id.
    pub id: Option<Id>,
    /// Its method.
    pub method: Option<String>,
    /// The tool of a `tools/call`.
    pub tool: Option<String>,
    /// The `request_id` among the arguments of a `tools/call`.
    pub request_id: Option<String>,
}

/// The summary of a text; `None` when it is no JSON-RPC.
pub fn of(text: &str) -> Option<Summary> {
    let plain = |rpc, id| Summary { rpc, id, method: None, tool: None, request_id: None };
    Some(match Frame::parse(text) {
        // A request with NaN in its arguments is one for the server that reads it; an answer with it is none.
        Frame::NotRpc => {
            return of(&loosened(text)?).filter(|s| s.rpc == Rpc::Request);
        }
        Frame::Malformed { id, .. } => plain(Rpc::Malformed, id),
        Frame::Response { id, answer: Answer::Error { .. } } => plain(Rpc::Error, id),
        Frame::Response { id, answer: Answer::Result(r) } => {
            // Results can be large: only one that has the word is looked into.
            let failed = r.contains("isError")
                && raw::get(r, "isError").and_then(raw::as_bool) == Some(true);
            plain(if failed { Rpc::ToolError } else { Rpc::Result }, id)
        }
        Frame::Notification { method, .. } => {
            Summary { method: Some(method), ..plain(Rpc::Notification, None) }
        }
        Frame::Request { id, method, params } => {
            let mut s = plain(Rpc::Request, Some(id));
            if method == "tools/call"
                && let Some(params) = params.and_then(raw::members)
            {
                let find =
                    |name: &str| params.iter().rev().find(|(k, _)| k == name).map(|(_, v)| *v);
                s.tool = find("name").and_then(raw::as_str);
                s.request_id = find("arguments").and_then(key::of);
            }
            s.method = Some(method);
            s
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_answers_in_a_few_words() {
        let s = of(r#"{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#).unwrap();
        assert_eq!(
            (s.rpc, s.tool.as_deref(), s.request_id.as_deref()),
            (Rpc::Request, Some("create_ticket"), Some("r-1"))
        );
        assert_eq!(s.id, Some(Id::String("7".into())));
        let rpc = |t: &str| of(t).map(|s| s.rpc);
        assert_eq!(rpc(r#"{"id":1,"result":{"content":[],"isError":true}}"#), Some(Rpc::ToolError));
        assert_eq!(rpc(r#"{"id":1,"result":{"text":"isError"}}"#), Some(Rpc::Result));
        assert_eq!(rpc(r#"{"id":1,"error":{"code":1,"message":""}}"#), Some(Rpc::Error));
        assert_eq!(rpc("hello"), None);
        for r in Rpc::ALL {
            assert_eq!(Rpc::from_word(r.word()), Some(r));
        }
    }
}
