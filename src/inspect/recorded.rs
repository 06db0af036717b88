//! A recording as a witness: the agent's own calls, joined to what this program does itself. Followed while the
//! tap writes it.

use super::Inspector;
use super::light;
use crate::error::Result;
use crate::journal::{Call, Outcome, Session, Settled};
use crate::model::arguments::{Candidate, Source, from_calls};
use crate::recording::Recording;
use crate::recording::rows::Knows;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::journal::generation::{RECORDED_CALLS, RECORDED_GENERATIONS};

/// A handle on an attached recording; clones share it.
#[derive(Clone)]
pub struct Recorded(Arc<Mutex<Recording>>);

/// The arguments of a request, as the agent sent them in a recording.
pub fn candidates(r: &Recording, request_id: &str, look_up: &str) -> Vec<Candidate> {
    let calls: Vec<&Call> = r.session.calls_of(request_id).filter(|c| c.tool != look_up).collect();
    from_calls(&calls, &Source::Recording(r.path().display().to_string()))
}

/// How far a recording has been taken in: two that are equal show the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakenIn {
    /// Bytes of the file.
    bytes: u64,
    /// Headers: a file of several sessions has one for each.
    headers: usize,
    /// Nobody writes it any more.
    pub over: bool,
}

fn taken_in(r: &Recording) -> TakenIn {
    TakenIn { bytes: r.progress().0, headers: r.headers.len(), over: !r.is_being_written() }
}

impl Recorded {
    /// Attaches an open recording.
    pub fn new(recording: Recording) -> Recorded {
        Recorded(Arc::new(Mutex::new(recording)))
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.lock().path().to_owned()
    }

    /// Reads it as it is now, with what was written since (a megabyte of it; [`Recorded::advance`] brings the
    /// rest); what can't be read any more stays as it was.
    pub fn read<T>(&self, f: impl FnOnce(&Recording) -> T) -> T {
        let mut r = self.lock();
        r.advance().ok();
        f(&r)
    }

    /// Takes one more piece of the file in; whether there is more.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn advance(&self) -> Result<bool> {
        self.lock().advance()
    }

    /// How far it has been taken in, by whoever: every reader of this handle takes pieces in, so one that shows
    /// the recording compares this with what it has shown, never with what it has read itself.
    pub fn taken_in(&self) -> TakenIn {
        taken_in(&self.lock())
    }

    /// Reads it as far as it has been taken in, and how far that is.
    pub fn shown<T>(&self, f: impl FnOnce(&Recording, TakenIn) -> T) -> T {
        let r = self.lock();
        f(&r, taken_in(&r))
    }

    /// A tap holds the file: more may come.
    pub fn is_being_written(&self) -> bool {
        self.lock().is_being_written()
    }

    /// How far it is read, in bytes, and how long it is.
    pub fn progress(&self) -> (u64, u64) {
        self.lock().progress()
    }

    /// See [`candidates`].
    pub fn candidates(&self, request_id: &str, look_up: &str) -> Vec<Candidate> {
        self.read(|r| candidates(r, request_id, look_up))
    }

    /// Its session for judging, numbered apart. A call that waits when nobody writes the file any more will get
    /// no answer there.
    pub fn session(&self) -> Session {
        self.read(|r| {
            let mut s = light::copy(&r.session);
            let over = !r.is_being_written();
            for g in &mut s.generations {
                g.n = g.n.saturating_add(RECORDED_GENERATIONS);
            }
            s.calls = std::mem::take(&mut s.calls)
                .into_values()
                .map(|mut c| {
                    c.id = c.id.saturating_add(RECORDED_CALLS);
                    c.generation = c.generation.saturating_add(RECORDED_GENERATIONS);
                    if over && c.is_pending() {
                        c.settled = Some(ends_here(&c));
                    }
                    (c.id, c)
                })
                .collect();
            s
        })
    }
}

impl Knows for Recorded {
    fn outcome(&self, seq: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        self.lock().outcome(seq)
    }
    fn death(&self, generation: u32) -> Option<String> {
        self.lock().session.death(generation)
    }
    fn is_launcher(&self, generation: u32) -> bool {
        self.lock().session.is_launcher(generation)
    }
    fn lost(&self, generation: u32) -> Vec<String> {
        self.lock().session.lost(generation)
    }
}

/// How a call ends that waits when nobody writes the recording any more.
pub fn ends_here(c: &Call) -> Settled {
    Settled {
        at: c.sent_at,
        outcome: Outcome::Unknown,
        why: "the recording ends before an answer".into(),
        late: false,
        answer_status: None,
        result: None,
        error: None,
    }
}

impl Inspector {
    /// Everything the wire knows, for judging: our own session, and the recorded one.
    pub fn session(&self) -> Option<Session> {
        let live = self.client.as_ref().map(|c| light::session(c.journal()));
        let recorded = self.recording.as_ref().map(Recorded::session);
        match (live, recorded) {
            (live, None) => live,
            (None, recorded) => recorded,
            (Some(live), Some(recorded)) => Some(merged(recorded, live)),
        }
    }
}

/// The live session with the recorded calls and generations before its own.
fn merged(recorded: Session, mut live: Session) -> Session {
    let mut generations = recorded.generations;
    generations.append(&mut live.generations);
    live.generations = generations;
    live.calls.extend(recorded.calls);
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_another_reader_took_in_is_still_to_be_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |seq: u64, text: &str| {
            let text = crate::json::raw::quote(text);
            format!(
                r#"{{"seq":{seq},"at":"2026-11-29T02:57:10.00000{seq}Z","mono":{seq},"gen":1,"kind":"sent","text":{text}}}"#
            )
        };
        let start = line(1, r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
        let call = line(
            2,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#,
        );
        std::fs::write(file.path(), format!("{start}\n")).unwrap();
        let recorded = Recorded::new(Recording::begin(file.path()).unwrap());
        recorded.advance().unwrap();
        let (calls, shown) = recorded.shown(|r, taken| (r.calls(), taken));
        assert_eq!((calls, recorded.taken_in()), (0, shown));
        let mut more = std::fs::OpenOptions::new().append(true).open(file.path()).unwrap();
        writeln!(more, "{call}").unwrap();
        // A judge asks for the session and so takes the new line in; the one that shows has nothing left to read.
        assert_eq!(recorded.session().calls.len(), 1);
        recorded.advance().unwrap();
        assert_ne!(recorded.taken_in(), shown);
        assert_eq!(recorded.shown(|r, _| r.calls()), 1);
    }
}
