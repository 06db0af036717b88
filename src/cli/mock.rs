//! `redial mock`: a recording as a server, on stdio or on a loopback address. What was not recorded is refused and
//! told on stderr.

use super::plain::complain;
use super::recorded::MockArgs;
use super::report::Done;
use crate::error::{Error, Exit, Result};
use crate::recording::Recording;
use crate::replay::mock::{Mock, Step};
use crate::replay::script;
use crate::serve::headers::check_peer;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::any};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// The longest message taken.
const LIMIT: usize = 64 << 20;
/// How long answers that are due may still take once stdin has ended.
const GRACE: Duration = Duration::from_millis(500);

pub async fn run(a: MockArgs) -> Done {
    let mut r = Recording::with_entries(&a.file)?;
    let mock = Arc::new(Mock::new(script::read(&r.take_entries())));
    if mock.is_empty() {
        return Err(
            Error::ledger(format!("{} holds no requests to answer", r.path().display())).into()
        );
    }
    complain(&format!("mock of {}: {} requests", r.path().display(), mock.len()));
    match &a.listen {
        None => stdio(&mock, a.timing).await?,
        Some(address) => http(mock, address, a.timing).await?,
    }
    Ok(Exit::Good)
}

async fn stdio(mock: &Mock, timing: bool) -> Result<()> {
    let (lines, mut inbox) = mpsc::channel::<Vec<u8>>(64);
    let reader = std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(stdin.read_until(b'\n', &mut line), Ok(1..)) {
            if lines.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    reader.map_err(|e| Error::endpoint(format!("no thread to read stdin: {e}")))?;
    let work = TaskTracker::new();
    let signalled = crate::serve::signalled();
    tokio::pin!(signalled);
    loop {
        let line = tokio::select! {
            line = inbox.recv() => line,
            ended = &mut signalled => return ended,
        };
        let Some(line) = line else { break };
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        match mock.step(text.trim()) {
            Step::Nothing => {}
            Step::Silence(words) => complain(&words),
            Step::Miss { json, words } => {
                complain(&words);
                say(&json);
            }
            Step::Answer { json, after } if timing => {
                work.spawn(async move {
                    tokio::time::sleep(after).await;
                    say(&json);
                });
            }
            Step::Answer { json, .. } => say(&json),
        }
    }
    work.close();
    tokio::time::timeout(GRACE, work.wait()).await.ok();
    Ok(())
}

/// One answer on stdout, whole. A client that reads no more is gone; stdin will tell.
fn say(json: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{json}").and_then(|()| out.flush()).ok();
}

struct App {
    mock: Arc<Mock>,
    timing: bool,
}

async fn http(mock: Arc<Mock>, address: &str, timing: bool) -> Result<()> {
    let address = crate::serve::loopback(address)?;
    let failed =
        |e: std::io::Error| Error::endpoint(format!("{address} can't be listened on: {e}"));
    let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
    let here = listener.local_addr().map_err(failed)?;
    crate::serve::log(&format!("listening on http://{here}/mcp"));
    let router =
        Router::new().route("/mcp", any(handle)).with_state(Arc::new(App { mock, timing }));
    tokio::select! {
        served = std::future::IntoFuture::into_future(axum::serve(listener, router)) => served.map_err(failed),
        ended = crate::serve::signalled() => ended,
    }
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    if let Err(why) = check_peer(request.uri(), request.headers()) {
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    match *request.method() {
        Method::POST => {}
        Method::DELETE => return StatusCode::OK.into_response(),
        _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
    let Ok(body) = axum::body::to_bytes(request.into_body(), LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let json = |json: String| ([(header::CONTENT_TYPE, "application/json")], json).into_response();
    match app.mock.step(&String::from_utf8_lossy(&body)) {
        Step::Nothing => StatusCode::ACCEPTED.into_response(),
        Step::Silence(words) => {
            complain(&words);
            // No answer came then: the stream stays open, as the client saw it.
            std::future::pending().await
        }
        Step::Miss { json: answer, words } => {
            complain(&words);
            json(answer)
        }
        Step::Answer { json: answer, after } => {
            if app.timing {
                tokio::time::sleep(after).await;
            }
            json(answer)
        }
    }
}
