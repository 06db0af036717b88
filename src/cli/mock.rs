//! `redial mock`: a recording as a server, on stdio or on a loopback address. What was not recorded is refused and
//! told on stderr.

use super::json::safe_lines;
use super::plain::complain;
use super::recorded::MockArgs;
use crate::error::{Error, Exit, Result};
use crate::files::whole;
use crate::loopback::check_peer;
use crate::recording::Recording;
use crate::replay::mock::{Mock, Step};
use crate::replay::script::{self, Died, Told};
use crate::size::size;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::any};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// The longest message taken.
const LIMIT: usize = 64 << 20;
/// How long answers that are due may still take once stdin has ended.
const GRACE: Duration = Duration::from_millis(500);

/// Runs the mock; the exit status of this process, which is the recorded server's where its end is re-enacted.
pub async fn run(a: &MockArgs) -> std::result::Result<u8, Error> {
    let mut r = Recording::with_entries(&a.file)?;
    let over = a.deaths.as_deref().map(lives_over).transpose()?.unwrap_or(0);
    let mock = Mock::after(script::read(&r.take_entries()), over);
    if mock.is_empty() {
        return Err(Error::ledger(format!("{} holds no requests to answer", r.path().display())));
    }
    let life = if a.deaths.is_some() { format!(", life {}", over + 1) } else { String::new() };
    complain(&format!("mock of {}: {} requests{life}", r.path().display(), mock.len()));
    let (ends, ended) = mpsc::channel(1);
    let play = Arc::new(Play { mock, timing: a.timing, deaths: a.deaths.clone(), over, ends });
    let served = async {
        match &a.listen {
            None => stdio(&play).await,
            Some(address) => http(play.clone(), address).await,
        }
    };
    tokio::select! {
        served = served => served.map(|()| Exit::Good as u8),
        status = end(ended) => Ok(status),
    }
}

/// How many lives the file says are over; none when it isn't there.
fn lives_over(file: &Path) -> Result<usize> {
    match whole(file, 64) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(Error::usage(format!("--deaths {} can't be read: {e}", file.display()))),
        Ok(text) => String::from_utf8_lossy(&text).trim().parse().map_err(|_| {
            Error::usage(format!("--deaths {} holds no number of lives", file.display())).hint(
                "it is a file of this command's own, which counts how often the mock has died",
            )
        }),
    }
}

/// Ends as the recorded server did.
async fn end(mut ended: mpsc::Receiver<Died>) -> u8 {
    let Some(died) = ended.recv().await else { return std::future::pending().await };
    if let Some(signal) = died.signal.and_then(Signal::from_named_raw) {
        if signal != Signal::KILL {
            // We listen for some of them, and Rust for others: what takes our place listens for none.
            let script = format!("kill -{} $$", signal.as_raw());
            let _ = std::process::Command::new("/bin/sh").arg("-c").arg(script).exec();
        }
        kill_process(getpid(), signal).ok();
        // Blocked or ignored by whoever started this: the status says it then.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let signal = died.signal.map(|s| 128 + s);
    signal.or(died.code).and_then(|c| u8::try_from(c & 0xff).ok()).unwrap_or(1)
}

/// What is played, and how.
struct Play {
    mock: Mock,
    timing: bool,
    deaths: Option<PathBuf>,
    /// Lives of the recorded server that are over.
    over: usize,
    ends: mpsc::Sender<Died>,
}

impl Play {
    /// Waits for the moment at which something was said then.
    async fn at(&self, began: Instant, after: Duration) {
        if self.timing {
            tokio::time::sleep_until((began + after).into()).await;
        }
    }

    /// Says what was told around an answer, before it or after it; `say` takes notifications, stderr goes there.
    async fn around(
        &self,
        told: &[Told],
        before: bool,
        began: Instant,
        say: &mut impl FnMut(&str),
    ) {
        for t in told.iter().filter(|t| t.before == before) {
            if t.stderr && self.deaths.is_none() {
                continue;
            }
            self.at(began, Duration::from_micros(t.after_us)).await;
            if t.stderr {
                complain(&t.text);
            } else {
                say(&t.text);
            }
        }
    }

    /// The server died before it answered: so does this one, where that is wanted.
    async fn die(&self, died: Died, began: Instant) {
        let Some(file) = &self.deaths else { return };
        self.at(began, Duration::from_micros(died.after_us)).await;
        let text = format!("{}\n", self.over + 1);
        if let Err(e) = crate::files::ordinary(file).and_then(|()| std::fs::write(file, text)) {
            complain(&format!("--deaths {} can't be written: {e}", file.display()));
        }
        self.ends.send(died).await.ok();
    }
}

async fn stdio(play: &Arc<Play>) -> Result<()> {
    let (lines, mut inbox) = mpsc::channel::<Vec<u8>>(64);
    let reader = std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            let read = stdin.by_ref().take(LIMIT as u64).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                return;
            }
            if line.len() >= LIMIT && line.last() != Some(&b'\n') {
                complain(&format!(
                    "a message over {} has come: nothing more is read",
                    size(LIMIT as u64)
                ));
                return;
            }
            if lines.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    reader.map_err(|e| Error::endpoint(format!("no thread to read stdin: {e}")))?;
    let work = TaskTracker::new();
    let signalled = crate::signals::ended();
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
        let step = play.mock.step(text.trim());
        let (play, timing) = (play.clone(), play.timing);
        let one = async move {
            let began = Instant::now();
            match step {
                Step::Nothing => {}
                Step::Silence { words, around, died } => {
                    complain(&words);
                    play.around(&around, true, began, &mut say).await;
                    if let Some(died) = died {
                        play.die(died, began).await;
                    }
                }
                Step::Miss { json, words } => {
                    complain(&words);
                    say(&json);
                }
                Step::Answer { json, after, around } => {
                    play.around(&around, true, began, &mut say).await;
                    play.at(began, after).await;
                    say(&json);
                    play.around(&around, false, began, &mut say).await;
                }
            }
        };
        // In their order; with the recorded timing each on its own, as the server had them.
        if timing { drop(work.spawn(one)) } else { one.await }
    }
    work.close();
    tokio::time::timeout(GRACE, work.wait()).await.ok();
    Ok(())
}

/// One line on stdout, whole. A client that reads no more is gone; stdin will tell.
fn say(json: &str) {
    let mut out = std::io::stdout().lock();
    let line = json.replace(['\r', '\n'], " ");
    out.write_all(safe_lines(&line).as_bytes()).and_then(|()| out.flush()).ok();
}

async fn http(play: Arc<Play>, address: &str) -> Result<()> {
    let address = crate::serve::loopback(address)?;
    let failed =
        |e: std::io::Error| Error::endpoint(format!("{address} can't be listened on: {e}"));
    let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
    let here = listener.local_addr().map_err(failed)?;
    crate::text::to_stderr(&format!("listening on http://{here}/mcp"));
    let router = Router::new().route("/mcp", any(handle)).with_state(play);
    tokio::select! {
        served = std::future::IntoFuture::into_future(axum::serve(listener, router)) => served.map_err(failed),
        ended = crate::signals::ended() => ended,
    }
}

async fn handle(State(play): State<Arc<Play>>, request: Request) -> Response {
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
    let began = Instant::now();
    match play.mock.step(&String::from_utf8_lossy(&body)) {
        Step::Nothing => StatusCode::ACCEPTED.into_response(),
        Step::Silence { words, around, died } => {
            complain(&words);
            play.around(&around, true, began, &mut |_: &str| {}).await;
            if let Some(died) = died {
                play.die(died, began).await;
            }
            // No answer came then: the stream stays open, as the client saw it.
            std::future::pending().await
        }
        Step::Miss { json, words } => {
            complain(&words);
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Step::Answer { json, after, around } => {
            let mut texts = Vec::new();
            play.around(&around, true, began, &mut |t: &str| texts.push(t.to_owned())).await;
            play.at(began, after).await;
            if texts.is_empty() {
                return ([(header::CONTENT_TYPE, "application/json")], safe_lines(&json))
                    .into_response();
            }
            // What came before the answer came on its stream.
            texts.push(json);
            let events = texts
                .iter()
                .map(|t| format!("event: message\ndata: {}\n\n", t.replace(['\r', '\n'], " ")));
            let events = safe_lines(&events.collect::<String>());
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
    }
}
