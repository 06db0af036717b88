//! MCP on stdin and stdout: one line, one message; requests are worked on side by side, so answers may come out of
//! order. Nothing but JSON-RPC goes to stdout.
//!
//! Ends when stdin ends, stdout is closed, or SIGTERM or SIGINT comes. Whoever closed stdin wants the end: calls in
//! flight have [`GRACE`] to be answered, longer work is cut short.

use super::mcp::{Server, Step};
use super::pending::Pending;
use super::stop::Stop;
use super::{GRACE, MAX_MESSAGE};
use crate::error::{Error, Result};
use crate::wire::frame::{self, Frame};
use crate::wire::id::Id;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Messages that wait between the threads of stdin or stdout and the server.
const QUEUE: usize = 64;

/// Serves until the end; see the module.
pub async fn run(server: Arc<Server>, stop: Stop) -> Result<()> {
    let mut lines = read_stdin()?;
    let (answers, written) = write_stdout()?;
    let pending = Arc::new(Pending::default());
    let work = TaskTracker::new();
    let signalled = crate::signals::ended();
    tokio::pin!(signalled);
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = answers.closed() => None,
            ended = &mut signalled => { ended?; None }
        };
        let Some(line) = line else { break };
        let text = match &line {
            Line::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => text,
                Err(_) => "not UTF-8", // no JSON either: answered as a parse error
            },
            Line::TooLong => {
                let why = format!("Invalid request: a message of more than {MAX_MESSAGE} bytes");
                let _ = answers.send(frame::error(&Id::Null, -32600, &why)).await;
                continue;
            }
        };
        match server.step(text, Frame::parse(text)) {
            Step::Nothing => {}
            Step::Cancel(id) => {
                super::log_cancel(&id);
                pending.cancel(&id);
            }
            Step::Answer(answer) => {
                let _ = answers.send(answer.json).await;
            }
            Step::Call(call) => {
                let entry = pending.begin(call.id.clone());
                let (server, answers) = (server.clone(), answers.clone());
                work.spawn_blocking(move || {
                    let Ok(json) = server.call(&call) else { return };
                    if entry.cancelled.is_cancelled() {
                        super::log_aborted(&call.id);
                    } else if !server.drops_answer() {
                        let _ = answers.blocking_send(json);
                    }
                });
            }
        }
    }
    work.close();
    let _ = timeout(GRACE, work.wait()).await;
    stop.stop();
    let _ = timeout(GRACE, work.wait()).await;
    drop(answers);
    let _ = timeout(GRACE, written).await;
    Ok(())
}

enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Lines of stdin, read by a thread of its own: the runtime's own stdin would keep the process from ending.
fn read_stdin() -> Result<mpsc::Receiver<Line>> {
    let (to, lines) = mpsc::channel(QUEUE);
    thread("stdin", move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, MAX_MESSAGE) {
            if to.blocking_send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(lines)
}

/// A way to stdout, and word that everything is written. Closed when stdout is.
fn write_stdout() -> Result<(mpsc::Sender<String>, oneshot::Receiver<()>)> {
    let (answers, mut from) = mpsc::channel::<String>(QUEUE);
    let (done, written) = oneshot::channel();
    thread("stdout", move || {
        let mut out = io::stdout().lock();
        while let Some(json) = from.blocking_recv() {
            if out.write_all(format!("{json}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
        let _ = done.send(());
    })?;
    Ok((answers, written))
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map(drop)
        .map_err(|e| Error::endpoint(format!("no thread for {name}: {e}")))
}

/// The next line without its line feed, of at most `max` bytes; what is longer is read away. A last line without a line
/// feed counts.
fn next_line(input: &mut impl BufRead, max: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    if input.by_ref().take(max as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > max {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(Line::Text(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_line_feeds_and_long_ones_are_skipped_whole() {
        let mut input = io::Cursor::new(&b"ab\n\nabcd\nabcde\nabcdefghijk\nz"[..]);
        let mut seen = Vec::new();
        while let Some(line) = next_line(&mut input, 4).unwrap() {
            seen.push(match line {
                Line::Text(t) => String::from_utf8(t).unwrap(),
                Line::TooLong => "too long".into(),
            });
        }
        assert_eq!(seen, ["ab", "", "abcd", "too long", "too long", "z"]);
    }
}
