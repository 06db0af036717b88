//! The optional GET stream of a legacy session, kept open so that the server can speak, and its death is
//! noticed, while nothing is asked. A server without one answers 405 (or 404, 400, 406): then there is none,
//! and it is not asked again. No reconnect storm: streams that bring nothing are asked for
//! ever more seldom.

use super::stream::{Flow, Resume, Stop, unfinished};
use super::{BODY_LIMIT, header, status_event};
use crate::client::conn::{Conn, Transport};
use crate::client::driver::LinkEvent;
use crate::client::stdio::breathe;
use crate::journal::exchange::is_event_stream;
use crate::journal::{Kind, event};
use crate::wire::sse::Parser;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A stream that lasted this long was worth having.
const GOOD: Duration = Duration::from_secs(20);
/// The longest wait between two asks.
const SELDOM: Duration = Duration::from_secs(120);

/// Listens until the generation is over or the server has no such stream. `opened` is dropped when that is known.
pub(in crate::client) async fn run(conn: Arc<Conn>, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    let mut resume = Resume::default();
    let mut pause = Duration::from_secs(1);
    while !conn.is_over() {
        let began = Instant::now();
        if !conn.beside.opens() {
            return;
        }
        let exchange = conn.next_exchange();
        let heard = tokio::select! {
            biased;
            () = conn.beside.closing() => {
                let why = "closed here, so that other requests are served".to_owned();
                let what = event::Http::Failed { why, connected: true };
                conn.log(Kind::Http { exchange, what });
                Heard::None
            }
            heard = once(&conn, exchange, &mut resume, &mut opened) => heard,
        };
        conn.beside.ended();
        match heard {
            Heard::Ended => {}
            Heard::None => return,
        }
        pause =
            if began.elapsed() >= GOOD { Duration::from_secs(1) } else { (pause * 2).min(SELDOM) };
        tokio::time::sleep(resume.retry.map_or(pause, |r| r.max(pause / 2))).await;
    }
}

enum Heard {
    /// It was there and ended.
    Ended,
    /// There is none, or the link itself is gone (which is told then).
    None,
}

async fn once(
    conn: &Arc<Conn>,
    exchange: u64,
    resume: &mut Resume,
    opened: &mut Option<oneshot::Sender<()>>,
) -> Heard {
    let Transport::Http(target) = &conn.transport else { return Heard::None };
    let generation = conn.generation;
    let log = |what| conn.log(Kind::Http { exchange, what });
    target.told(conn, exchange, "GET", &target.url());
    let mut response = match target.get(conn, resume.last_id.as_deref()).send().await {
        Ok(r) => r,
        Err(e) => {
            let why = target.cause(&e);
            let connected = !e.is_connect();
            log(event::Http::Failed { why: why.clone(), connected });
            conn.events.send(LinkEvent::Unreachable { generation, why, connected }).ok();
            return Heard::None;
        }
    };
    log(status_event(&response, None));
    drop(opened.take());
    let is_stream = header(&response, "content-type").is_some_and(|c| is_event_stream(&c));
    if !response.status().is_success() || !is_stream {
        log(event::Http::End);
        // With a stream before, a 404 is the session's end; without one there is just no stream.
        if response.status().as_u16() == 404 && resume.last_id.is_some() {
            conn.events.send(LinkEvent::SessionLost { generation, status: 404 }).ok();
        }
        return Heard::None;
    }
    let mut parser = Parser::new(BODY_LIMIT);
    let mut flow = Flow::new(conn, exchange);
    if flow.begin(&response).is_err() {
        // It is optional, and can't be read: there is none.
        log(event::Http::End);
        return Heard::None;
    }
    loop {
        match flow.next(&mut response).await {
            Ok(Some(chunk)) => {
                parser.feed(&chunk, |e| resume.take(conn, e, None));
                breathe().await;
            }
            Ok(None) => {
                unfinished(conn, exchange, &mut parser);
                log(event::Http::End);
                return Heard::Ended;
            }
            Err(Stop::Broke(why)) => {
                unfinished(conn, exchange, &mut parser);
                // Cut in the middle: the server may be gone; the next GET will tell.
                log(event::Http::Failed { why, connected: true });
                return Heard::Ended;
            }
            Err(Stop::ByUs(_)) => {
                log(event::Http::End);
                return Heard::Ended;
            }
        }
    }
}

/// Whether the URL answers a GET as the HTTP+SSE transport of 2024-11-05 does: an `endpoint` event.
pub(in crate::client) async fn is_old_sse(conn: &Arc<Conn>) -> bool {
    let Transport::Http(target) = &conn.transport else { return false };
    let exchange = conn.next_exchange();
    let log = |what| conn.log(Kind::Http { exchange, what });
    target.told(conn, exchange, "GET", &target.url());
    let first = async {
        let mut response = target.get(conn, None).send().await.ok()?;
        log(status_event(&response, None));
        let stream = header(&response, "content-type").is_some_and(|c| is_event_stream(&c));
        if !response.status().is_success() || !stream {
            return Some(false);
        }
        let mut flow = Flow::new(conn, exchange);
        flow.begin(&response).ok()?;
        let chunk = flow.next(&mut response).await.ok()??;
        let text = String::from_utf8_lossy(&chunk).into_owned();
        Some(
            text.lines()
                .any(|l| l.trim_start_matches('\u{feff}').replace(' ', "") == "event:endpoint"),
        )
    };
    let found = tokio::time::timeout(Duration::from_secs(2), first).await;
    log(event::Http::End);
    matches!(found, Ok(Some(true)))
}
