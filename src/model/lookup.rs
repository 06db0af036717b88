//! The server's own word on a request: answers of its look-up tool, read out. Never sends one.

use crate::journal::call::answer_object;
use crate::journal::event::Transport;
use crate::journal::{Call, Generation, Outcome, Session};
use crate::json::raw;
use crate::judge::ServerWord;
use crate::time::Time;

/// The look-up tool's name, unless configured.
pub const LOOK_UP: &str = "find_request";

/// One answer of the look-up tool.
#[derive(Debug, Clone, PartialEq)]
pub struct LookUp {
    /// The request that was asked for.
    pub request_id: String,
    /// When the question was sent.
    pub asked_at: Time,
    /// When the answer came.
    pub at: Time,
    /// The generation that answered.
    pub generation: u32,
    /// When redial started the process that answered; `None` for a server it merely talks to.
    pub started_by_us: Option<Time>,
    /// The status word, as sent; `None` where the answer has none.
    pub status: Option<String>,
    /// The answer's object, raw.
    pub answer: String,
    /// The stored result in it, raw, unless null.
    pub result: Option<String>,
}

impl LookUp {
    /// Reads an answered call of the look-up tool; `None` for anything that holds no object.
    pub fn read(call: &Call, generation: Option<&Generation>) -> Option<LookUp> {
        let settled = call.settled.as_ref().filter(|s| s.outcome == Outcome::Ok)?;
        let answer = answer_object(settled.result.as_deref()?)?;
        Some(LookUp {
            request_id: call.request_id.clone()?,
            asked_at: call.sent_at,
            at: settled.at,
            generation: call.generation,
            started_by_us: generation.and_then(started_by_us),
            status: raw::get_str(&answer, "status"),
            result: raw::get(&answer, "result").filter(|r| !raw::is_null(r)).map(str::to_owned),
            answer,
        })
    }

    /// For judgement; `None` without a status word.
    pub fn word(&self) -> Option<ServerWord> {
        Some(ServerWord {
            at: self.at,
            status: self.status.clone()?,
            started_by_us: self.started_by_us,
        })
    }
}

/// When redial started that process; `None` for a URL.
pub fn started_by_us(generation: &Generation) -> Option<Time> {
    match generation.transport {
        Transport::Stdio { .. } => Some(generation.opened_at),
        Transport::Http { .. } => None,
    }
}

/// Whether `call` can have changed nothing: the look-up tool, or one that the server called read-only when it
/// was sent. What it says of its tools later doesn't count.
pub fn is_look_up(look_up: &str, call: &Call) -> bool {
    call.tool == look_up || call.reads_only
}

/// Every answered look-up, oldest first.
pub fn all<'a>(session: &'a Session, look_up: &'a str) -> impl Iterator<Item = LookUp> + 'a {
    session
        .calls
        .values()
        .filter(move |c| c.tool == look_up)
        .filter_map(|c| LookUp::read(c, session.generation_n(c.generation)))
}

/// The newest answer about `request_id`.
pub fn newest(session: &Session, look_up: &str, request_id: &str) -> Option<LookUp> {
    all(session, look_up).filter(|l| l.request_id == request_id).max_by_key(|l| l.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{call, generation, t};

    fn answered(result: &str) -> Call {
        let mut c = call("r", 1, 5.0).settle(6.0, Outcome::Ok, "answered");
        c.tool = LOOK_UP.into();
        if let Some(s) = c.settled.as_mut() {
            s.result = Some(result.into());
        }
        c
    }

    #[test]
    fn structured_and_text_answers_read_alike() {
        let object = r#"{"request_id": "r", "status": "done", "result": {"ticket_id": "T-1"}}"#;
        let text = format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, raw::quote(object));
        let structured = format!(r#"{{"content":[],"structuredContent":{object}}}"#);
        let wrapped = format!(r#"{{"content":[],"structuredContent":{{"result":{object}}}}}"#);
        for result in [text, structured, wrapped] {
            let l = LookUp::read(&answered(&result), Some(&generation(1, 0.0))).unwrap();
            assert_eq!(
                (l.status.as_deref(), l.result.as_deref()),
                (Some("done"), Some(r#"{"ticket_id": "T-1"}"#))
            );
            assert_eq!((l.answer.as_str(), l.at, l.started_by_us), (object, t(6.0), Some(t(0.0))));
        }
    }

    #[test]
    fn what_says_nothing_is_no_word() {
        let plain = r#"{"content":[{"type":"text","text":"sorry"}]}"#;
        assert_eq!(LookUp::read(&answered(plain), None), None);
        let odd = LookUp::read(&answered(r#"{"structuredContent":{"state":1}}"#), None).unwrap();
        assert_eq!(odd.word(), None);
        let pending = Call { settled: None, ..answered(plain) };
        assert_eq!(LookUp::read(&pending, None), None);
        let failed = call("r", 1, 5.0).settle(6.0, Outcome::ToolError, "boom");
        assert_eq!(LookUp::read(&failed, None), None);
    }

    #[test]
    fn an_http_server_was_not_started_here() {
        let g = Generation {
            transport: Transport::Http { url: "http://x".into() },
            ..generation(1, 0.0)
        };
        assert_eq!(started_by_us(&g), None);
    }
}
