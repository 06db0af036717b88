//! The journal itself: append, count, wake readers. Owns the stream and the one fold over it.
//!
//! Appending is the only way anything becomes known; whoever acts, appends first. Events are kept in two
//! rings of bounded bytes with counted gaps, frames apart from stderr and noise; what the fold needs of the
//! rest it keeps itself.

use super::event::{Event, Http, Kind, Note};
use super::fold::Session;
use crate::time::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// How many bytes of frames are kept in memory.
const FRAME_BYTES: usize = 64 << 20;
/// How many bytes of stderr and noise are kept for the time line: a flood of them must not cost frames.
const LINE_BYTES: usize = 8 << 20;

/// A handle on one endpoint's stream; clones share it.
#[derive(Clone)]
pub struct Journal(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    version: watch::Sender<u64>,
    started: Instant,
}

struct Inner {
    next_seq: u64,
    frames: Ring,
    lines: Ring,
    session: Session,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal {
    /// An empty journal; its monotonic clock starts now.
    pub fn new() -> Journal {
        Journal(Arc::new(Shared {
            inner: Mutex::new(Inner {
                next_seq: 1,
                frames: Ring::default(),
                lines: Ring::default(),
                session: Session::default(),
            }),
            version: watch::Sender::new(0),
            started: Instant::now(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while folding must not cost the evidence that is already there.
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event and returns its sequence number.
    pub fn append(&self, generation: u32, kind: Kind) -> u64 {
        let mono_us = u64::try_from(self.0.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut inner = self.lock();
        let seq = inner.next_seq;
        inner.next_seq += 1;
        let event = Arc::new(Event { seq, at: Time::now(), mono_us, generation, kind });
        inner.session.apply(&event);
        match &event.kind {
            Kind::Stderr { .. } | Kind::Noise { .. } => inner.lines.push(event, LINE_BYTES),
            _ => inner.frames.push(event, FRAME_BYTES),
        }
        drop(inner);
        self.0.version.send_replace(seq);
        seq
    }

    /// Reads the fold. Keep `f` short: appending waits for it.
    pub fn read<T>(&self, f: impl FnOnce(&Session) -> T) -> T {
        f(&self.lock().session)
    }

    /// The kept events from `seq` on, and how many older ones were forgotten to bound memory.
    /// Stderr and noise are not among them; the fold keeps their tails.
    pub fn events_from(&self, seq: u64) -> (Vec<Arc<Event>>, u64) {
        let inner = self.lock();
        (inner.frames.from(seq).cloned().collect(), inner.frames.forgotten)
    }

    /// All kept events from `seq` on in their order, stderr and noise among them, and how many older ones of
    /// either were forgotten.
    pub fn all_from(&self, seq: u64) -> (Vec<Arc<Event>>, u64) {
        let inner = self.lock();
        let mut all: Vec<Arc<Event>> =
            inner.frames.from(seq).chain(inner.lines.from(seq)).cloned().collect();
        all.sort_unstable_by_key(|e| e.seq);
        (all, inner.frames.forgotten + inner.lines.forgotten)
    }

    /// Wakes when something was appended; the value is the newest sequence number.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Waits until `f` finds what it looks for.
    pub async fn wait<T>(&self, mut f: impl FnMut(&Session) -> Option<T>) -> T {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            if let Some(found) = self.read(&mut f) {
                return found;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The newest events, bounded by their bytes.
#[derive(Default)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    forgotten: u64,
}

impl Ring {
    fn push(&mut self, event: Arc<Event>, limit: usize) {
        self.bytes += size(&event.kind);
        self.events.push_back(event);
        while self.bytes > limit && self.events.len() > 1 {
            let Some(old) = self.events.pop_front() else { break };
            self.bytes -= size(&old.kind);
            self.forgotten += 1;
        }
    }

    fn from(&self, seq: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().skip(self.events.partition_point(|e| e.seq < seq))
    }
}

/// Bytes an event costs in a ring.
fn size(kind: &Kind) -> usize {
    let text = match kind {
        Kind::Sent { raw, .. }
        | Kind::Received { raw, .. }
        | Kind::Noise { raw, .. }
        | Kind::Stderr { raw }
        | Kind::Http { what: Http::Body { raw, .. } | Http::Partial { raw }, .. } => raw.len(),
        Kind::Note(Note::Text(text) | Note::Remark { text, .. }) => text.len(),
        Kind::State { why, .. } | Kind::NotWritten { why, .. } => why.len(),
        _ => 0,
    };
    text + 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::event::Purpose;

    #[test]
    fn a_flood_of_stderr_costs_no_frame_and_the_order_stays() {
        let j = Journal::new();
        let frame =
            |n: u8| Kind::Sent { raw: vec![n; 10].into(), exchange: None, purpose: Purpose::Asked };
        j.append(1, frame(1));
        for _ in 0..40 {
            j.append(1, Kind::Stderr { raw: vec![b'x'; 1 << 20].into() });
        }
        j.append(1, frame(2));
        let (frames, forgotten) = j.events_from(0);
        assert_eq!((frames.len(), forgotten), (2, 0));
        let (all, forgotten) = j.all_from(0);
        assert_eq!(all.len() as u64 + forgotten, 42);
        assert!(forgotten > 30 && all.windows(2).all(|w| w[0].seq < w[1].seq));
        assert_eq!((all[0].seq, all[all.len() - 1].seq), (1, 42));
    }
}
