//! A recording as a witness: the agent's own calls, joined to what this program does itself. Followed while the
//! tap writes it.

use super::Inspector;
use super::light;
use crate::error::Result;
use crate::journal::{Call, Outcome, Session, Settled};
use crate::model::arguments::Candidate;
use crate::recording::Recording;
use crate::recording::rows::Knows;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::journal::generation::{RECORDED_CALLS, RECORDED_GENERATIONS};

/// A handle on an attached recording; clones share it.
#[derive(Clone)]
pub struct Recorded(Arc<Mutex<Recording>>);

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

    /// Takes one more piece of the file in; whether anything was new, and whether there is more.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn advance(&self) -> Result<(bool, bool)> {
        let mut r = self.lock();
        let before = (r.progress().0, r.headers.len());
        let more = r.advance()?;
        Ok(((r.progress().0, r.headers.len()) != before, more))
    }

    /// Reads it as far as it has been taken in, and whether nobody writes it any more.
    pub fn shown<T>(&self, f: impl FnOnce(&Recording, bool) -> T) -> T {
        let r = self.lock();
        let over = !r.is_being_written();
        f(&r, over)
    }

    /// A tap holds the file: more may come.
    pub fn is_being_written(&self) -> bool {
        self.lock().is_being_written()
    }

    /// How far it is read, in bytes, and how long it is.
    pub fn progress(&self) -> (u64, u64) {
        self.lock().progress()
    }

    /// The arguments of a request, as the agent sent them.
    pub fn candidates(&self, request_id: &str, look_up: &str) -> Vec<Candidate> {
        self.read(|r| r.candidates(request_id, look_up))
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
