//! Finding out which era a server speaks, opening it, and reading its tools.
//!
//! The verdict never hangs on one error code; an outage or a refusal of credentials is no verdict. Every
//! frame sent here is marked as a probe or as part of the handshake.

use super::Era;
use super::conn::{Ask, Conn, Protocol, Transport};
use super::http::listen;
use super::modern::{LEGACY, MODERN, client_info};
use super::reading::{Reading, read, spell, versions};
use crate::journal::event::Purpose;
use crate::journal::refusal::{first_line, short};
use crate::journal::tools::NAMES;
use crate::json::raw;
use crate::size::size;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Why a handshake did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Trying again may help: refused, reset, 5xx.
    Outage(String),
    /// Trying again can't help: credentials, no common version, not MCP.
    Final(String),
    /// The process ended; `probed` says that it had seen a probe, which may have killed it.
    Ended { why: String, probed: bool },
    /// The process lives and is of no use since the probe.
    Poisoned(String),
    /// The server refuses the revision that it agreed on, and names an older one.
    StepDown { why: String, to: &'static str },
}

impl Failure {
    /// In words.
    pub fn why(self) -> String {
        match self {
            Failure::Outage(why)
            | Failure::Final(why)
            | Failure::Poisoned(why)
            | Failure::Ended { why, .. }
            | Failure::StepDown { why, .. } => why,
        }
    }
}

/// What the driver knows before it begins.
pub(super) struct Plan {
    pub era: Era,
    /// What an earlier generation of this endpoint turned out to be.
    pub known_modern: Option<bool>,
    /// The newest older revision that the server is known to take.
    pub newest: Option<&'static str>,
    pub probe_limit: Duration,
    pub start_limit: Duration,
}

/// Runs the handshake; on success the connection has answered a real request.
pub(super) async fn run(conn: &Arc<Conn>, plan: &Plan) -> Result<(), Failure> {
    let modern = match (plan.era, plan.known_modern) {
        (Era::Legacy, _) | (Era::Auto, Some(false)) => {
            open_legacy(conn, plan, None).await?;
            conn.is_modern()
        }
        (Era::Modern, _) => {
            let limit = plan.probe_limit.max(Duration::from_secs(30));
            match probe(conn, limit).await? {
                Probe::Modern => true,
                Probe::Legacy { why, .. } => {
                    let words = format!("the server does not speak {MODERN}: {why}");
                    return Err(Failure::Final(words));
                }
            }
        }
        (Era::Auto, _) => match probe(conn, plan.probe_limit).await? {
            Probe::Modern => true,
            Probe::Legacy { silent, .. } => {
                open_legacy(conn, plan, Some(silent)).await?;
                conn.is_modern()
            }
        },
    };
    if modern {
        conn.agree(Protocol { version: MODERN.to_owned(), modern: true });
    }
    list_tools(conn).await
}

enum Probe {
    Modern,
    Legacy { why: String, silent: bool },
}

async fn probe(conn: &Arc<Conn>, limit: Duration) -> Result<Probe, Failure> {
    let legacy = |why: String| Ok(Probe::Legacy { why, silent: false });
    for _ in 0..2 {
        let ask = Ask { modern: true, ..Ask::new("server/discover", None, Purpose::Probe) };
        let (_, reply) = conn.ask(ask);
        let reply = match tokio::time::timeout(limit, reply).await {
            Err(_) => {
                let why = format!("no answer to server/discover within {} s", limit.as_secs_f64());
                return Ok(Probe::Legacy { why, silent: true });
            }
            Ok(reply) => read(reply, true)?,
        };
        match reply {
            Reading::Result(r) => {
                let offered = versions(raw::get(&r, "supportedVersions"));
                if offered.iter().any(|v| v == MODERN) {
                    return Ok(Probe::Modern);
                }
                return legacy(format!("it offers {}", spell(&offered)));
            }
            Reading::Error { code: Some(-32022), data, message, .. } => {
                let offered = versions(raw::get(&data, "supported"));
                if offered.iter().any(|v| v == MODERN) {
                    continue; // It names our version and refused it: once more, then give up.
                }
                // Revisions are dates, so later ones compare greater as text.
                if !offered.is_empty() && offered.iter().all(|v| v.as_str() >= MODERN) {
                    return Err(Failure::Final(no_common(&offered, &message)));
                }
                return legacy(message);
            }
            Reading::Error { code: Some(code @ (-32020 | -32021)), message, .. } => {
                // The words of a modern server about our request: falling back would hide it.
                let words = format!("the server refused the probe with {code}: {message}");
                return Err(Failure::Final(words));
            }
            Reading::Error { message, .. } => return legacy(message),
            Reading::Status { status, words } => match status {
                401 | 403 | 407 => return Err(Failure::Final(words)),
                // A server that has no POST at all may say so with an error of its own.
                500 | 501 if listen::is_old_sse(conn).await => {
                    return Err(Failure::Final(old_sse(&words)));
                }
                429 | 500.. => return Err(Failure::Outage(words)),
                _ => return legacy(words),
            },
        }
    }
    let words = format!("the server names {MODERN} as supported and refuses it all the same");
    Err(Failure::Final(words))
}

fn no_common(offered: &[String], said: &str) -> String {
    let ours = LEGACY.join(", ");
    let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
    format!(
        "no common protocol version: the server offers {}, redial speaks {MODERN} and {ours}{said}",
        spell(offered)
    )
}

/// What came of one `initialize`.
enum Opened {
    Yes,
    Refused { code: Option<i64>, words: String, offered: Vec<String> },
    Silent,
}

/// Opens a server with `initialize`. `probed` is what this very process made of a probe before (true: silence).
/// A refusal may be that of a modern server after all, or of a process that the probe spoilt.
async fn open_legacy(conn: &Arc<Conn>, plan: &Plan, probed: Option<bool>) -> Result<(), Failure> {
    let on_process = !conn.is_http();
    // Where nothing is said to a POST, a GET may tell why.
    let old = !on_process && probed == Some(true) && listen::is_old_sse(conn).await;
    // A process that answered the probe is awake; one that was silent may just be slow to start.
    let patience = match probed {
        Some(true) if on_process => plan.start_limit.mul_f64(0.6),
        Some(false) if on_process => plan.start_limit.mul_f64(0.6).min(Duration::from_secs(15)),
        _ if old => OLD_SSE,
        _ => Duration::MAX,
    };
    let mut version = plan.newest.unwrap_or(LEGACY[0]);
    let mut stepped = false;
    loop {
        let opened = initialize(conn, version, patience, probed.is_some()).await?;
        let (code, words, offered) = match opened {
            Opened::Yes => return Ok(()),
            Opened::Silent if old => {
                return Err(Failure::Final(old_sse("no answer to initialize")));
            }
            Opened::Silent => {
                let words = "no answer to initialize after the probe".into();
                return Err(Failure::Poisoned(words));
            }
            Opened::Refused { code, words, offered } => (code, words, offered),
        };
        let may_probe = plan.era == Era::Auto;
        // A slow server may have locked itself to the new era, or a modern one taken the place of an old one.
        if may_probe
            && (code == Some(-32022) || probed.is_none())
            && let Probe::Modern = probe(conn, plan.probe_limit).await?
        {
            conn.agree(Protocol { version: MODERN.to_owned(), modern: true });
            return Ok(());
        }
        // Some servers answer with an error where a counter-offer belongs.
        let lower = LEGACY.iter().find(|v| **v != version && offered.iter().any(|o| o == **v));
        match lower {
            Some(v) if !stepped => {
                version = v;
                stepped = true;
            }
            _ if on_process && probed.is_some() && code != Some(-32022) => {
                return Err(Failure::Poisoned(words));
            }
            _ if conn.is_http() && listen::is_old_sse(conn).await => {
                return Err(Failure::Final(old_sse(&words)));
            }
            _ => return Err(Failure::Final(words)),
        }
    }
}

/// How long a server that answers a GET as the older transport does may take to answer a POST all the same.
const OLD_SSE: Duration = Duration::from_secs(3);

/// Why nothing was answered within the limit, where a GET tells.
pub(super) async fn silent_words(conn: &Arc<Conn>, limit_s: f64) -> Option<String> {
    let asks = conn.is_http() && !conn.has_heard();
    (asks && listen::is_old_sse(conn).await)
        .then(|| old_sse(&format!("no handshake within {limit_s} s")))
}

/// Why a server of the transport before Streamable HTTP can't be used.
fn old_sse(words: &str) -> String {
    format!(
        "{words}; a GET answers as the HTTP+SSE transport of 2024-11-05 does, which redial does not speak"
    )
}

async fn initialize(
    conn: &Arc<Conn>,
    version: &str,
    patience: Duration,
    probed: bool,
) -> Result<Opened, Failure> {
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{},"clientInfo":{}}}"#,
        conn.offer.capabilities(false),
        client_info()
    );
    let (_, reply) = conn.ask(Ask::new("initialize", Some(&params), Purpose::Handshake));
    let Ok(reply) = tokio::time::timeout(patience, reply).await else {
        return Ok(Opened::Silent);
    };
    match read(reply, probed)? {
        Reading::Result(r) => {
            let version = raw::get_str(&r, "protocolVersion").unwrap_or_default();
            if !LEGACY.contains(&version.as_str()) {
                return Err(Failure::Final(no_common(&[version], "")));
            }
            conn.agree(Protocol { version, modern: false });
        }
        Reading::Error { code, message, data, .. } => {
            let mut offered = versions(raw::get(&data, "supported"));
            let offers = match offered.is_empty() {
                true => String::new(),
                false => format!("; it offers {}", spell(&offered)),
            };
            offered
                .extend(LEGACY.iter().filter(|v| message.contains(**v)).map(|v| (*v).to_owned()));
            let number = code.map_or(String::new(), |c| format!(" ({c})"));
            let words = format!("the server refused initialize{number}: {message}{offers}");
            return Ok(Opened::Refused { code, words, offered });
        }
        Reading::Status { status, words } => {
            return match status {
                500 | 501 if listen::is_old_sse(conn).await => Err(Failure::Final(old_sse(&words))),
                429 | 500.. => Err(Failure::Outage(words)),
                401 | 403 | 407 => Err(Failure::Final(words)),
                _ => Ok(Opened::Refused { code: None, words, offered: Vec::new() }),
            };
        }
    }
    // Its end, good or bad, is in the journal; what follows must only not overtake it. A server that never
    // answers it holds nothing up for long.
    let taken = conn.notify("notifications/initialized", None, Purpose::Handshake);
    tokio::time::timeout(Duration::from_secs(5), taken).await.ok();
    Ok(Opened::Yes)
}

/// Asks a server over HTTP again who it is and what its tools are. In a session it is the one that the session was
/// begun with, as far as anybody can tell; without one every message may meet another. A server that won't be asked
/// a second time keeps the name that it gave.
///
/// # Errors
/// When its tools can't be listed.
pub(super) async fn again(conn: &Arc<Conn>) -> Result<(), Failure> {
    let in_session = match &conn.transport {
        Transport::Http(target) => target.session().is_some(),
        Transport::Stdio(_) => true,
    };
    if conn.is_modern() {
        let ask = Ask { modern: true, ..Ask::new("server/discover", None, Purpose::Handshake) };
        conn.ask(ask).1.await.ok();
    } else if !in_session {
        let version = conn.protocol().map(|p| p.version.clone()).unwrap_or_default();
        initialize(conn, &version, Duration::MAX, false).await.ok();
    }
    list_tools(conn).await
}

/// How many pages of tools are read.
const PAGES: usize = 2_000;

/// Reads all pages of `tools/list`; the fold makes the list of them. Stops at a cursor it has seen, since
/// some servers never move theirs, and after [`PAGES`].
pub(super) async fn list_tools(conn: &Arc<Conn>) -> Result<(), Failure> {
    // Cursors may be of any length: their hashes do.
    let (mut seen, hasher) = (HashSet::new(), RandomState::new());
    let mut cursor: Option<String> = None;
    conn.reading_tools();
    for page in 0.. {
        conn.pages.store(page, Ordering::Relaxed);
        if page == PAGES {
            conn.note(format!(
                "the tool list has no end: after {PAGES} pages there is still a next one; what came so far is kept as incomplete"
            ));
            break;
        }
        let params = cursor
            .as_deref()
            .map_or_else(|| "{}".into(), |c| format!(r#"{{"cursor":{}}}"#, raw::quote(c)));
        let (_, reply) = conn.ask(Ask::new("tools/list", Some(&params), Purpose::Handshake));
        let reading = read(reply.await, false)?;
        if conn.journal.read(|s| s.tools_cut()) {
            conn.note(format!(
                "the tool list is longer than redial keeps ({} of names): the rest was not read; what came so far is kept as incomplete",
                size(NAMES as u64)
            ));
            break;
        }
        match reading {
            Reading::Result(r) => match raw::get_str(&r, "nextCursor").filter(|c| !c.is_empty()) {
                Some(next) if seen.insert(hasher.hash_one(&next)) => cursor = Some(next),
                Some(next) => {
                    let next = short(&next, 80);
                    conn.note(format!(
                        "the tool list has no end: its cursor {next:?} came before; what came so far is kept as incomplete"
                    ));
                    return Ok(());
                }
                None => break,
            },
            // A session that is gone before it was of any use: no recovery (design: a real request is answered).
            Reading::Error { lost: true, message, .. } if conn.is_http() && !conn.is_modern() => {
                return Err(Failure::Outage(format!("the new session is gone at once: {message}")));
            }
            // A server without tools may answer so; an answer it is.
            Reading::Error { code, .. }
                if code == Some(-32601) || !conn.journal.read(|s| s.declares(&["tools"])) =>
            {
                break;
            }
            Reading::Error { code, message, .. } => {
                let number = code.map_or(String::new(), |c| format!(" ({c})"));
                let why =
                    format!("the server refused tools/list{number}: {}", first_line(&message));
                return Err(match older_version(conn, &message) {
                    Some(to) => Failure::StepDown { why, to },
                    None => Failure::Outage(why),
                });
            }
            Reading::Status { status: 400, words } if older_version(conn, &words).is_some() => {
                let to = older_version(conn, &words).unwrap_or(LEGACY[0]);
                return Err(Failure::StepDown { why: words, to });
            }
            Reading::Status { status, words } => {
                return Err(if status >= 500 || status == 429 {
                    Failure::Outage(words)
                } else {
                    Failure::Final(words)
                });
            }
        }
    }
    Ok(())
}

/// The newest revision older than the agreed one that a refusal names, where it is about the revision.
///
fn older_version(conn: &Conn, words: &str) -> Option<&'static str> {
    let agreed = conn.protocol().filter(|p| !p.modern)?;
    let about = words.to_ascii_lowercase().contains("protocol version")
        || words.to_ascii_lowercase().contains("protocol-version");
    // Revisions are dates, so later ones compare greater as text.
    let named = LEGACY.iter().filter(|v| **v < agreed.version.as_str() && words.contains(**v));
    named.max().copied().filter(|_| about)
}
