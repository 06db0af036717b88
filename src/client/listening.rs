//! Letting a server speak unasked: the GET stream of a legacy session, or `subscriptions/listen` of 2026-07-28 (told
//! when the list of tools changes), which is only sent to a server that declares it. Each connection starts anew.

use super::conn::{Ask, Conn, Reply};
use super::http;
use crate::journal::event::Purpose;
use crate::wire::frame::{Answer, Frame};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The longest wait between two asks.
const SELDOM: Duration = Duration::from_secs(120);

/// Opens the optional stream on which a server speaks unasked. A call is only sent once it is open (or known not to
/// be there), or the server's questions about that call could get lost.
pub(super) async fn start(conn: &Arc<Conn>) -> Option<JoinHandle<()>> {
    if conn.is_modern() {
        // Only what the server says it has is asked for.
        let offered = conn.journal.read(|s| s.declares(&["tools", "listChanged"]));
        return offered.then(|| tokio::spawn(subscribe(conn.clone())));
    }
    if !conn.is_http() {
        return None;
    }
    let (opened, headers) = oneshot::channel();
    let task = tokio::spawn(http::listen::run(conn.clone(), opened));
    // Some servers send no headers before the first event.
    tokio::time::timeout(Duration::from_millis(500), headers).await.ok();
    Some(task)
}

/// Subscribes until the generation is over or the server refuses.
async fn subscribe(conn: Arc<Conn>) {
    let params = r#"{"notifications":{"toolsListChanged":true}}"#;
    let mut pause = Duration::from_secs(1);
    while !conn.is_over() {
        let (_, reply) =
            conn.ask(Ask::new("subscriptions/listen", Some(params), Purpose::Handshake));
        match reply.await {
            // A result is the server's own end of the stream; it may be asked again, but seldom.
            Ok(Reply::Frame(raw)) => {
                let text = String::from_utf8_lossy(&raw);
                let ended = matches!(
                    Frame::parse(&text),
                    Frame::Response { answer: Answer::Result(_), .. }
                );
                if !ended {
                    return;
                }
            }
            Ok(Reply::Gone { .. }) => {}
            _ => return,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SELDOM);
    }
}
