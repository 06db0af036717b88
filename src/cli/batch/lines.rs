//! The input of a batch: JSON Lines, read by a thread of its own while calls are made. A line that can't be
//! understood is an error of that line; nothing is guessed, since what is sent may do work.

use crate::cli::connect::{arguments_object, check_request_id};
use crate::error::{Error, Result};
use crate::files::{is_of_the_shell, not_ordinary};
use crate::json::{key, raw};
use crate::size::size;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tokio::sync::mpsc;

/// Lines read ahead.
const AHEAD: usize = 16;
/// The longest line, in bytes.
const LONGEST: u64 = 64 << 20;
/// So many bad lines in a row are not a list of calls with mistakes, but another file.
const BAD: usize = 1_000;

/// What one line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A call.
    Call(Wanted),
    /// Seconds in which no call is begun.
    Wait(f64),
}

/// A call as it stands in a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wanted {
    /// The tool.
    pub tool: String,
    /// Its arguments, the raw object.
    pub args: String,
    /// The idempotency key in them.
    pub request_id: Option<String>,
    /// Seconds until it counts as unknown.
    pub timeout_s: Option<f64>,
}

/// A line's number, from 1, and what it asks for.
pub type Numbered = (usize, Result<Step>);

/// Starts to read. `-` is stdin.
///
/// # Errors
/// Exit 2 when the file can't be opened.
pub fn feed(path: &Path) -> Result<mpsc::Receiver<Numbered>> {
    let input: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let refused = |why: String| {
            Error::usage(format!("{} can't be read: {why}; nothing was sent", path.display()))
        };
        let about = path.metadata().map_err(|e| refused(e.to_string()))?;
        if let Some(what) = not_ordinary(&about).filter(|_| !is_of_the_shell(path)) {
            return Err(refused(format!("it is {what}, and no ordinary file")));
        }
        let file = File::open(path).map_err(|e| refused(e.to_string()))?;
        Box::new(file)
    };
    let (lines, taken) = mpsc::channel(AHEAD);
    // Not joined: a read of a terminal or a pipe can't be broken off.
    std::thread::spawn(move || read(BufReader::new(input), &lines));
    Ok(taken)
}

fn read(mut input: impl BufRead, lines: &mpsc::Sender<Numbered>) {
    let mut raw = Vec::new();
    let mut bad = 0;
    for number in 1.. {
        raw.clear();
        let step = match input.by_ref().take(LONGEST).read_until(b'\n', &mut raw) {
            Ok(0) => return,
            // What follows it can't be told from the rest of it.
            Ok(n) if n as u64 == LONGEST && raw.last() != Some(&b'\n') => {
                let what = format!("the line is longer than {}", size(LONGEST));
                let e = Error::usage(format!("{what}; neither it nor what follows was sent"));
                lines.blocking_send((number, Err(e))).ok();
                return;
            }
            Ok(_) => match std::str::from_utf8(&raw).map(str::trim) {
                Ok("") => continue,
                Ok(text) => {
                    step(if number == 1 { text.trim_start_matches('\u{feff}') } else { text })
                }
                Err(_) => Err(Error::usage("not UTF-8; nothing was sent")),
            },
            Err(e) => {
                let what = format!("the input can't be read from here on: {e}; nothing was sent");
                lines.blocking_send((number, Err(Error::usage(what)))).ok();
                return;
            }
        };
        bad = if step.is_err() { bad + 1 } else { 0 };
        // Nobody takes lines any more once a signal came.
        if lines.blocking_send((number, step)).is_err() {
            return;
        }
        if bad == BAD {
            let what = format!("{BAD} lines in a row are no calls: what follows was not read");
            lines.blocking_send((number + 1, Err(Error::usage(what)))).ok();
            return;
        }
    }
}

/// One line.
///
/// # Errors
/// Exit 2, in words.
fn step(text: &str) -> Result<Step> {
    arguments_object(text, "the line").map_err(|e| {
        // The JSON reader counts lines too, and this is its first.
        Error::new(e.exit, e.what.replace(" at line 1 column", " at column")).hint(SHAPE)
    })?;
    let bad = |what: String| Error::usage(format!("{what}; nothing was sent")).hint(SHAPE);
    let members = raw::members(text).unwrap_or_default();
    let known = |k: &str| matches!(k, "tool" | "args" | "timeout_s" | "wait_s");
    if let Some((key, _)) = members.iter().find(|(k, _)| !known(k)) {
        return Err(bad(format!("the line has a member that is none of its own: {key:?}")));
    }
    let seconds = |key: &str| match raw::get(text, key) {
        None => Ok(None),
        Some(raw) => match raw.trim().parse::<f64>() {
            Ok(s) if s.is_finite() && s >= 0.0 => Ok(Some(s)),
            _ => Err(bad(format!("{key} is no number of seconds, 0 or more"))),
        },
    };
    if let Some(wait) = seconds("wait_s")? {
        return match members.len() {
            1 => Ok(Step::Wait(wait)),
            _ => Err(bad("wait_s stands alone in its line".into())),
        };
    }
    let timeout_s = seconds("timeout_s")?;
    let tool = raw::get_str(text, "tool").filter(|t| !t.is_empty());
    let tool = tool.ok_or_else(|| bad("the line names no tool".into()))?;
    let args = raw::get(text, "args").unwrap_or("{}").trim().to_owned();
    arguments_object(&args, "args")?;
    let request_id = key::of(&args);
    if let Some(id) = &request_id {
        check_request_id(id)?;
    }
    Ok(Step::Call(Wanted { tool, args, request_id, timeout_s }))
}

const SHAPE: &str = r#"a line is {"tool":"T","args":{…},"timeout_s":S} or {"wait_s":S}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_call_or_a_pause_and_nothing_is_guessed() {
        let call = step(r#" {"args":{"request_id":"r","n":1.0},"tool":"t","timeout_s":2} "#);
        let want = Wanted {
            tool: "t".into(),
            args: r#"{"request_id":"r","n":1.0}"#.into(),
            request_id: Some("r".into()),
            timeout_s: Some(2.0),
        };
        assert_eq!(call, Ok(Step::Call(want)));
        let bare = Wanted { tool: "t".into(), args: "{}".into(), ..Wanted::default() };
        assert_eq!(step(r#"{"tool":"t"}"#), Ok(Step::Call(bare)));
        assert_eq!(step(r#"{"wait_s":0.5}"#), Ok(Step::Wait(0.5)));
        for (text, word) in [
            ("{", "not JSON"),
            ("[1]", "not an object"),
            ("{}", "no tool"),
            (r#"{"tool":1}"#, "no tool"),
            (r#"{"tool":""}"#, "no tool"),
            (r#"{"tool":"t","arg":{}}"#, "\"arg\""),
            (r#"{"tool":"t","args":[]}"#, "not an object"),
            (r#"{"tool":"t","args":null}"#, "not an object"),
            (r#"{"tool":"t","timeout_s":"1"}"#, "timeout_s"),
            (r#"{"wait_s":-1}"#, "wait_s"),
            (r#"{"wait_s":1,"tool":"t"}"#, "alone"),
            (r#"{"tool":"t","args":{"request_id":""}}"#, "empty"),
        ] {
            let e = step(text).unwrap_err();
            assert!(e.what.contains(word) && e.what.contains("nothing was sent"), "{text}: {e}");
        }
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        let ended = |input: &str| {
            let (tx, mut rx) = mpsc::channel(BAD + 9);
            let file = std::fs::File::open(input).unwrap();
            read(BufReader::with_capacity(1 << 20, file), &tx);
            std::iter::from_fn(|| rx.try_recv().ok()).last().unwrap()
        };
        let (number, step) = ended("/dev/zero");
        assert!(number == 1 && step.unwrap_err().what.contains("longer than 64 MiB"));
        let (_, step) = ended("/dev/urandom");
        assert!(step.unwrap_err().what.contains("what follows was not read"));
    }

    #[test]
    fn lines_keep_their_numbers_and_a_bad_one_is_no_end() {
        let (tx, mut rx) = mpsc::channel(9);
        let text = b"\xef\xbb\xbf{\"wait_s\":1}\r\n\n\xff\n{\"wait_s\":2}";
        read(&text[..], &tx);
        let mut got = Vec::new();
        while let Ok((n, step)) = rx.try_recv() {
            got.push((n, step.ok()));
        }
        assert_eq!(got, [(1, Some(Step::Wait(1.0))), (3, None), (4, Some(Step::Wait(2.0)))]);
    }
}
