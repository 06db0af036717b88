//! Reading what came of a handshake request: a result, an error, or an HTTP status with its words.

use super::conn::Reply;
use super::handshake::Failure;
use super::http::status_words;
use crate::journal::Text;
use crate::journal::refusal::{self, short};
use crate::json::raw;
use crate::wire::broken::broken;
use crate::wire::frame::{Answer, Frame};
use tokio::sync::oneshot;

/// An answer as far as a handshake needs it.
pub(super) enum Reading {
    Result(Text),
    /// `lost`: it says that the session is gone.
    Error {
        code: Option<i64>,
        message: String,
        data: String,
        lost: bool,
    },
    Status {
        status: u16,
        words: String,
    },
}

/// Takes the reply off its channel.
///
/// # Errors
/// The link's own end. `probed` says that the process has seen a probe, which some don't survive.
pub(super) fn read(
    reply: Result<Reply, oneshot::error::RecvError>,
    probed: bool,
) -> Result<Reading, Failure> {
    let (raw, status, www, location) = match &reply {
        Ok(Reply::Frame(raw)) => (raw, None, None, None),
        Ok(Reply::Status { status, body, www_authenticate, location }) => {
            (body, Some(*status), www_authenticate.as_deref(), location.as_deref())
        }
        Ok(Reply::Gone { why }) => return Err(Failure::Outage(why.clone())),
        Ok(Reply::Over(why)) => return Err(Failure::Ended { why: why.clone(), probed }),
        Err(_) => {
            return Err(Failure::Ended { why: "the connection was closed".into(), probed });
        }
    };
    let text = String::from_utf8_lossy(raw);
    // An outage or a refusal of credentials is one, whatever JSON is in it.
    let only_status = status.is_some_and(|s| matches!(s, 401 | 403 | 407 | 500..));
    let none =
        |message: String| Reading::Error { code: None, message, data: "{}".into(), lost: false };
    Ok(match Frame::parse(&text) {
        // With its own id it would have come as a frame.
        Frame::Response { answer: Answer::Result(_), id } if status.is_some_and(|s| s < 300) => {
            let id = id.map_or("none".into(), |id| short(&id.to_json(), 64));
            let words = format!("the answer came under another id ({id}), so it answers nothing");
            Reading::Status { status: 200, words }
        }
        Frame::Response { answer: Answer::Result(r), .. } if !only_status => {
            Reading::Result(Text::part(raw, r))
        }
        Frame::Response { answer: Answer::Error { raw: e, code, message }, .. } if !only_status => {
            let data = raw::get(e, "data").unwrap_or("{}").to_owned();
            let lost =
                status.is_some_and(|s| refusal::is_session_lost(s, code, &message, true, false));
            Reading::Error { code, message, data, lost }
        }
        Frame::Malformed { why, .. } if status.is_none() => {
            none(format!("a malformed answer: {why}"))
        }
        _ => match status {
            Some(status) => {
                Reading::Status { status, words: status_words(status, raw, www, location) }
            }
            None => match broken(&text).first() {
                Some(b) => none(format!("answered with a line that is no JSON: {}", b.why)),
                None => none("an answer that is none".into()),
            },
        },
    })
}

/// The strings of a raw list of versions.
pub(super) fn versions(list: Option<&str>) -> Vec<String> {
    let items = list.and_then(raw::items).unwrap_or_default();
    items.into_iter().filter_map(raw::as_str).collect()
}

/// Versions for a sentence.
pub(super) fn spell(versions: &[String]) -> String {
    if versions.is_empty() { "no versions".into() } else { versions.join(", ") }
}
