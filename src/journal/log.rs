//! The journal itself: append, count, wake readers. Owns the stream and the one fold over it.
//!
//! Appending is the only way anything becomes known; whoever acts, appends first. Frames are kept in a
//! ring of bounded bytes with a counted gap; what the fold needs of the rest it keeps itself.

use super::event::{Event, Http, Kind};
use super::fold::Session;
use crate::time::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// How many bytes of frames are kept in memory.
const FRAME_BYTES: usize = 64 << 20;

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
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    forgotten: u64,
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
                events: VecDeque::new(),
                bytes: 0,
                forgotten: 0,
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
        if let Some(size) = kept_size(&event.kind) {
            inner.bytes += size;
            inner.events.push_back(event);
            while inner.bytes > FRAME_BYTES && inner.events.len() > 1 {
                if let Some(old) = inner.events.pop_front() {
                    inner.bytes -= kept_size(&old.kind).unwrap_or(0);
                    inner.forgotten += 1;
                }
            }
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
        let start = inner.events.partition_point(|e| e.seq < seq);
        (inner.events.iter().skip(start).cloned().collect(), inner.forgotten)
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

/// Bytes an event costs in the ring; `None` for kinds whose tail the fold keeps.
fn kept_size(kind: &Kind) -> Option<usize> {
    match kind {
        Kind::Stderr { .. } | Kind::Noise { .. } => None,
        Kind::Sent { raw, .. }
        | Kind::Received { raw, .. }
        | Kind::Http { what: Http::Body { raw } | Http::Partial { raw }, .. } => {
            Some(raw.len() + 128)
        }
        _ => Some(128),
    }
}
