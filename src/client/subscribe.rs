//! `subscriptions/listen` of 2026-07-28: told when the list of tools changes, without asking again and again.
//! Only sent to a server that declares it. After a new connection the driver starts it anew.

use super::conn::{Ask, Conn, Reply};
use crate::journal::event::Purpose;
use crate::wire::frame::{Answer, Frame};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait between two asks.
const SELDOM: Duration = Duration::from_secs(120);

/// Listens until the generation is over or the server refuses.
pub(super) async fn run(conn: Arc<Conn>) {
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
