//! Finding out which era a server speaks, opening it, and reading its tools (protocol.md, section 4).
//!
//! The verdict never hangs on one error code; an outage or a refusal of credentials is no verdict. Every
//! frame sent here is marked as a probe or as part of the handshake.

use super::conn::{Conn, Protocol, Reply};
use super::http::status_words;
use super::modern::{LEGACY, MODERN, client_info};
use super::{Endpoint, Era};
use crate::journal::event::Purpose;
use crate::json::raw;
use crate::wire::frame::{Answer, Frame};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Why a handshake did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Trying again may help: refused, reset, 5xx.
    Outage(String),
    /// Trying again can't help: credentials, no common version, not MCP.
    Final(String),
    /// The process ended; `probing` says that the probe may have killed it.
    Ended { why: String, probing: bool },
}

/// What the driver knows before it begins.
pub(super) struct Plan {
    pub era: Era,
    /// What an earlier generation of this endpoint turned out to be.
    pub known_modern: Option<bool>,
    pub probe_limit: Duration,
}

/// Runs the handshake; on success the connection has answered a real request.
pub(super) async fn run(conn: &Arc<Conn>, plan: &Plan) -> Result<(), Failure> {
    let modern = match (plan.era, plan.known_modern) {
        (Era::Legacy, _) | (Era::Auto, Some(false)) => false,
        (Era::Modern, _) => {
            match probe(conn, plan.probe_limit.max(Duration::from_secs(30))).await? {
                Probe::Modern => true,
                Probe::Legacy(why) => {
                    return Err(Failure::Final(format!(
                        "the server does not speak {MODERN}: {why}"
                    )));
                }
            }
        }
        (Era::Auto, _) => matches!(probe(conn, plan.probe_limit).await?, Probe::Modern),
    };
    if modern {
        conn.agree(Protocol { version: MODERN.to_owned(), modern: true });
    } else {
        initialize(conn).await?;
    }
    list_tools(conn).await
}

enum Probe {
    Modern,
    Legacy(String),
}

async fn probe(conn: &Arc<Conn>, limit: Duration) -> Result<Probe, Failure> {
    for _ in 0..2 {
        let (_, reply) = conn.request("server/discover", None, Purpose::Probe, true);
        let reply = match tokio::time::timeout(limit, reply).await {
            Err(_) => {
                return Ok(Probe::Legacy(format!(
                    "no answer to server/discover within {} s",
                    limit.as_secs_f64()
                )));
            }
            Ok(reply) => received(reply, true)?,
        };
        match reading(&reply)? {
            Reading::Result(r) => {
                let versions =
                    raw::get(&r, "supportedVersions").and_then(raw::items).unwrap_or_default();
                let speaks = versions.iter().filter_map(|v| raw::as_str(v)).any(|v| v == MODERN);
                return Ok(if speaks {
                    Probe::Modern
                } else {
                    Probe::Legacy(format!("it offers {}", list(&versions)))
                });
            }
            Reading::Error { code: Some(-32022), data, message } => {
                let supported: Vec<String> = raw::get(&data, "supported")
                    .and_then(raw::items)
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|v| raw::as_str(v))
                    .collect();
                if supported.iter().any(|v| v == MODERN) {
                    continue; // It names our version and refused it: once more, then give up.
                }
                // Revisions are dates, so later ones compare greater as text.
                if !supported.is_empty() && supported.iter().all(|v| v.as_str() >= MODERN) {
                    return Err(Failure::Final(format!(
                        "no common protocol version: the server offers {}, redial speaks {MODERN} and {} ({message})",
                        supported.join(", "),
                        LEGACY.join(", ")
                    )));
                }
                return Ok(Probe::Legacy(message));
            }
            Reading::Error { code: Some(code @ (-32020 | -32021)), message, .. } => {
                // The words of a modern server about our request: falling back would hide it.
                return Err(Failure::Final(format!(
                    "the server refused the probe with {code}: {message}"
                )));
            }
            Reading::Error { message, .. } => return Ok(Probe::Legacy(message)),
            Reading::Status { status, words } => match status {
                401 | 403 | 407 => return Err(Failure::Final(words)),
                500.. => return Err(Failure::Outage(words)),
                _ => return Ok(Probe::Legacy(words)),
            },
        }
    }
    Err(Failure::Final(format!(
        "the server names {MODERN} as supported and refuses it all the same"
    )))
}

async fn initialize(conn: &Arc<Conn>) -> Result<(), Failure> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}}"#,
        LEGACY[0],
        client_info()
    );
    let (_, reply) = conn.request("initialize", Some(&params), Purpose::Handshake, false);
    match reading(&received(reply.await, false)?)? {
        Reading::Result(r) => {
            let version = raw::get_str(&r, "protocolVersion").unwrap_or_default();
            if !LEGACY.contains(&version.as_str()) {
                return Err(Failure::Final(format!(
                    "no common protocol version: the server answered {version:?}, redial speaks {} and {MODERN}",
                    LEGACY.join(", ")
                )));
            }
            conn.agree(Protocol { version, modern: false });
        }
        Reading::Error { code, message, data } => {
            let offers = raw::get(&data, "supported").and_then(raw::items).unwrap_or_default();
            let offers = if offers.is_empty() {
                String::new()
            } else {
                format!("; it offers {}", list(&offers))
            };
            let code = code.map_or(String::new(), |c| format!(" ({c})"));
            return Err(Failure::Final(format!(
                "the server refused initialize{code}: {message}{offers}"
            )));
        }
        Reading::Status { status, words } => {
            return Err(match status {
                429 | 500.. => Failure::Outage(words),
                _ => Failure::Final(words),
            });
        }
    }
    // Its end, good or bad, is in the journal; what follows must only not overtake it.
    conn.notify("notifications/initialized", None, Purpose::Handshake).await.ok();
    Ok(())
}

/// Reads all pages of `tools/list`; the fold makes the list of them. Stops at a cursor it has seen, since
/// some servers never move theirs (field log, row 76).
pub(super) async fn list_tools(conn: &Arc<Conn>) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let params = cursor
            .as_deref()
            .map_or_else(|| "{}".into(), |c| format!(r#"{{"cursor":{}}}"#, raw::quote(c)));
        let (_, reply) = conn.request("tools/list", Some(&params), Purpose::Handshake, false);
        match reading(&received(reply.await, false)?)? {
            Reading::Result(r) => match raw::get_str(&r, "nextCursor").filter(|c| !c.is_empty()) {
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                _ => return Ok(()),
            },
            // A server without tools answers with an error; an answer it is.
            Reading::Error { .. } => return Ok(()),
            Reading::Status { status, words } => {
                return Err(if status >= 500 || status == 429 {
                    Failure::Outage(words)
                } else {
                    Failure::Final(words)
                });
            }
        }
    }
}

enum Reading {
    Result(String),
    Error { code: Option<i64>, message: String, data: String },
    Status { status: u16, words: String },
}

fn received(
    reply: Result<Reply, oneshot::error::RecvError>,
    probing: bool,
) -> Result<Reply, Failure> {
    match reply {
        Ok(Reply::Gone { why, connected: false }) => Err(Failure::Outage(why)),
        Ok(Reply::Over(why)) => Err(Failure::Ended { why, probing }),
        Ok(Reply::Gone { why, .. }) => Err(Failure::Outage(why)),
        Ok(reply) => Ok(reply),
        Err(_) => Err(Failure::Ended { why: "the connection was closed".into(), probing }),
    }
}

fn reading(reply: &Reply) -> Result<Reading, Failure> {
    let (text, status) = match reply {
        Reply::Frame(raw) => (String::from_utf8_lossy(raw), None),
        Reply::Status { status, body, www_authenticate } => {
            (String::from_utf8_lossy(body), Some((*status, www_authenticate.as_deref(), body)))
        }
        Reply::Gone { why, .. } | Reply::Over(why) => return Err(Failure::Outage(why.clone())),
    };
    let is_auth = matches!(status, Some((401 | 403 | 407, ..)));
    match Frame::parse(&text) {
        Frame::Response { answer: Answer::Result(r), .. } => Ok(Reading::Result(r.to_owned())),
        Frame::Response { answer: Answer::Error { raw: e, code, message }, .. }
            if !is_auth && status.is_none_or(|(s, ..)| s < 500) =>
        {
            let data = raw::get(e, "data").unwrap_or("{}").to_owned();
            Ok(Reading::Error { code, message, data })
        }
        Frame::Malformed { why, .. } if status.is_none() => Ok(Reading::Error {
            code: None,
            message: format!("a malformed answer: {why}"),
            data: "{}".into(),
        }),
        _ => match status {
            Some((status, www, body)) => {
                Ok(Reading::Status { status, words: status_words(status, body, www) })
            }
            None => Ok(Reading::Error {
                code: None,
                message: "an answer that is none".into(),
                data: "{}".into(),
            }),
        },
    }
}

fn list(versions: &[&str]) -> String {
    if versions.is_empty() {
        return "no versions".into();
    }
    versions.iter().filter_map(|v| raw::as_str(v)).collect::<Vec<_>>().join(", ")
}

/// What a person can do about an endpoint that never became ready.
pub(super) fn hint(why: &str, endpoint: &Endpoint) -> Option<String> {
    let why = why.to_ascii_lowercase();
    if why.contains("--http") {
        return None; // It says so itself.
    }
    Some(match endpoint {
        Endpoint::Http { .. } if why.contains("refused") => {
            "is the server running, and is the port right? `--http` wants the whole URL, path included (often /mcp)".into()
        }
        Endpoint::Http { .. } if why.contains("401") || why.contains("403") => {
            "give credentials with --header 'Authorization: Bearer …'".into()
        }
        Endpoint::Http { .. } if why.contains("404") => "check the path of the URL (often /mcp)".into(),
        Endpoint::Stdio { command, .. } if why.contains("no such command") => {
            let path = std::env::var("PATH").unwrap_or_default();
            format!("looked for {:?} in PATH={path}", command.first().map_or("", String::as_str))
        }
        Endpoint::Stdio { .. } if why.contains("ended") => {
            "run the command by itself to see why it ends; its last stderr lines are above".into()
        }
        _ => return None,
    })
}
