//! Opening a transport, and noticing early that what was started can't be talked to.

use super::conn::{Conn, Transport};
use super::driver::LinkEvent;
use super::shown::shown_url;
use super::{Endpoint, http, stdio};
use crate::journal::event;
use crate::journal::generation::stopped_words;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A transport that is open, with what the journal says of it.
pub(super) struct Open {
    pub transport: Transport,
    pub opened: event::Transport,
    pub started: Option<stdio::Started>,
}

/// Starts the child, or makes the HTTP client ready. `hurry` turns true when a child's end may take no time.
///
/// # Errors
/// In words.
pub(super) fn open(endpoint: &Endpoint, hurry: watch::Receiver<bool>) -> Result<Open, String> {
    match endpoint {
        Endpoint::Stdio { command, env, cwd } => {
            let (pipe, started) = stdio::start(command, env, cwd.as_ref(), hurry).map_err(|e| {
                let program = command.first().map_or("", String::as_str);
                match (e.kind(), cwd) {
                    (std::io::ErrorKind::NotFound, Some(dir)) if !dir.is_dir() => {
                        format!("{program:?} can't be started in {}: no such folder", dir.display())
                    }
                    (std::io::ErrorKind::NotFound, _) => format!("no such command: {program:?}"),
                    _ => format!("{program:?} can't be started: {e}"),
                }
            })?;
            let opened = event::Transport::Stdio { command: command.clone(), pid: started.pid };
            Ok(Open { transport: Transport::Stdio(pipe), opened, started: Some(started) })
        }
        Endpoint::Http { url, headers } => {
            let target = http::Target::new(url, headers)?;
            let opened = event::Transport::Http { url: shown_url(url) };
            Ok(Open { transport: Transport::Http(Box::new(target)), opened, started: None })
        }
    }
}

/// Why this server can't be talked to, once that shows: another framing, or ids that never match. Never ends
/// otherwise.
pub(super) async fn misfit(conn: &Arc<Conn>) -> String {
    let of =
        |s: &crate::journal::Session| s.misfit.clone().filter(|m| m.generation == conn.generation);
    let words = conn.journal.wait(of).await;
    if !words.ids {
        // Something like it may stand in a log of a server that speaks properly otherwise.
        tokio::time::sleep(Duration::from_millis(500)).await;
        if conn.has_heard() {
            std::future::pending::<()>().await;
        }
    }
    words.words
}

/// Why there was no handshake within the limit, as far as that shows: a list of tools without an end, or a "stdio"
/// server that says on stderr where it listens for HTTP; else its newest stderr line.
pub(super) fn no_handshake(conn: &Conn, limit_s: f64) -> String {
    let what = format!("no handshake within {limit_s} s");
    let pages = conn.pages.load(std::sync::atomic::Ordering::Relaxed);
    if pages > 1 {
        return format!(
            "the server's list of tools did not end within {limit_s} s: {pages} pages came, and there is still a next one"
        );
    }
    let address = conn.journal.read(|s| {
        let g = s.generation_n(conn.generation).filter(|_| !conn.is_http() && !conn.has_heard())?;
        g.stderr.iter().rev().find_map(|(_, l)| http_address(&String::from_utf8_lossy(l)))
    });
    let stopped = conn.journal.read(|s| s.generation_n(conn.generation)?.stopped.clone());
    if let Some(who) = stopped {
        return format!("{what}: {}", stopped_words(&who));
    }
    match address {
        Some(a) => format!(
            "{what}: the server says nothing on stdout, and on stderr that it listens on {a}; it may speak HTTP: attach with --http {a}"
        ),
        None => format!("{what}{}", newest_stderr(conn)),
    }
}

/// Where a line says that something listens on this machine: the first `http://…`, with the path most servers use
/// when it names none.
fn http_address(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let listens = ["listen", "running", "serving", "started", "available", "ready"];
    if !listens.iter().any(|w| lower.contains(w)) {
        return None;
    }
    let start = line.find("http://")?;
    let url: String = line[start..]
        .chars()
        .take_while(|c| !c.is_whitespace() && !c.is_control() && !"\"'<>()[],;".contains(*c))
        .collect();
    let host = url.trim_start_matches("http://");
    let here = ["127.", "localhost", "0.0.0.0"];
    here.iter().any(|h| host.starts_with(h)).then(|| {
        if host.trim_end_matches('/').contains('/') {
            url.clone()
        } else {
            format!("{}/mcp", url.trim_end_matches('/'))
        }
    })
}

/// The newest stderr line of a generation, for the end of a sentence.
pub(super) fn newest_stderr(conn: &Conn) -> String {
    let line =
        conn.journal.read(|s| s.generation_n(conn.generation).and_then(|g| g.stderr.last(1).pop()));
    line.map(|l| format!("; its newest stderr line: {l}")).unwrap_or_default()
}

/// What a person can do about an endpoint that never became ready.
pub(super) fn hint(why: &str, endpoint: &Endpoint) -> Option<String> {
    let why = why.to_ascii_lowercase();
    if why.contains("--http") {
        return None; // It says so itself.
    }
    Some(match endpoint {
        Endpoint::Http { url, .. } if !super::http::proxy::way(url).is_empty() => {
            "the environment names that proxy; no_proxy=HOST takes a host out of it".into()
        }
        Endpoint::Http { .. } if why.contains("2024-11-05 does") => {
            "give the server's Streamable HTTP address (often /mcp), or start a bridge that speaks stdio, such as mcp-remote, as the command".into()
        }
        Endpoint::Http { .. } if why.contains("refused") && !why.contains("refused initialize") => {
            "is the server running, and is the port right? `--http` wants the whole URL, path included (often /mcp)".into()
        }
        Endpoint::Http { .. } if why.contains("http 401") || why.contains("http 403") => {
            "give credentials with --header 'Authorization: Bearer …'".into()
        }
        Endpoint::Http { .. } if why.contains("http 404") => {
            "check the path of the URL (often /mcp)".into()
        }
        Endpoint::Stdio { command, .. } if why.contains("no such command") => {
            let path = std::env::var("PATH").unwrap_or_default();
            format!("looked for {:?} in PATH={path}", command.first().map_or("", String::as_str))
        }
        Endpoint::Stdio { .. } if why.contains("ended") => {
            "run the command by itself to see why it ends; its stderr, if it wrote any, is shown here".into()
        }
        Endpoint::Stdio { .. } if why.contains("no handshake within") => {
            "a slow start may need a longer --start-timeout".into()
        }
        _ => return None,
    })
}

/// A session id short enough for a line.
pub(super) fn shorten(id: &str) -> String {
    let mut chars = id.chars();
    let head: String = chars.by_ref().take(8).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

/// Where the transports tell of the link.
pub(super) type Events = mpsc::UnboundedSender<LinkEvent>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_servers_print() {
        for (line, want) in [
            (
                "INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
                Some("http://127.0.0.1:8000/mcp"),
            ),
            ("listening on http://127.0.0.1:9/mcp", Some("http://127.0.0.1:9/mcp")),
            ("Server started at \"http://localhost:3000/\"", Some("http://localhost:3000/mcp")),
            ("see the docs", None),
            ("Connecting to remote server: http://127.0.0.1:8080/api", None),
            ("npm http fetch GET 200 http://registry.example.org/x", None),
            ("the service is running at http://example.org/", None),
        ] {
            assert_eq!(http_address(line).as_deref(), want);
        }
    }

    #[test]
    fn session_ids_are_shortened_by_characters() {
        assert_eq!(shorten("12345678"), "12345678");
        assert_eq!(shorten("日本語日本語日本語"), "日本語日本語日本…");
    }
}
