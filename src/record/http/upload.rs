//! A request's body on its way to the server: written down, then passed on as it comes. What its client broke off is
//! broken off upstream too: an end that the client never sent is not made up, since it would make a whole call of half a one.

use super::came::{Kept, put_sent};
use crate::record::entry::Side;
use crate::record::recorder::{Recorder, Stream as Line};
use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A message that has come whole within this time and size is written down whole before it is passed on.
const PATIENCE: Duration = Duration::from_millis(10);
const WHOLE: usize = 1 << 20;

/// What has come of a body.
pub(super) enum First {
    /// All of it.
    Whole(Bytes),
    /// Its begin; the rest comes.
    Begun(Bytes, BodyDataStream),
    /// Its begin, before the client broke it off.
    Broken(Bytes),
}

impl First {
    pub async fn of(body: Body) -> First {
        let mut rest = body.into_data_stream();
        let mut first = BytesMut::new();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while first.len() < WHOLE {
            match tokio::time::timeout_at(deadline, rest.next()).await {
                Ok(Some(Ok(chunk))) => first.extend_from_slice(&chunk),
                Ok(None) => return First::Whole(first.freeze()),
                // The stream says this once, and then that it is over.
                Ok(Some(Err(_))) => return First::Broken(first.freeze()),
                Err(_) => break,
            }
        }
        First::Begun(first.freeze(), rest)
    }

    pub fn bytes(&self) -> &Bytes {
        match self {
            First::Whole(bytes) | First::Begun(bytes, _) | First::Broken(bytes) => bytes,
        }
    }
}

/// What became of those who take part in an exchange, for the parts of it that run on by themselves.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The client broke its request off.
    broken: AtomicBool,
    /// Nobody waits for the answer any more.
    gone: AtomicBool,
}

impl Fate {
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    pub fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    pub fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }
}

/// A request's message on its way. However it ends, what came of it is written down: nobody asks for the end of
/// a body whose length was announced.
pub(super) struct Sending {
    pub recorder: Recorder,
    pub generation: u32,
    pub number: u64,
    pub came: Kept,
    /// As announced.
    pub length: Option<u64>,
    pub told: bool,
    pub fate: Arc<Fate>,
    /// The tap itself is about to end.
    pub stopping: Arc<AtomicBool>,
}

impl Sending {
    /// What goes on to the server.
    pub fn body(self, first: Bytes, rest: BodyDataStream) -> reqwest::Body {
        let begin = (stream::iter([Ok(first)]).chain(rest), self, Line::new(Side::Sent));
        reqwest::Body::wrap_stream(stream::unfold(
            begin,
            |(mut from, mut sending, mut line)| async move {
                let next = match from.next().await {
                    Some(Ok(chunk)) => {
                        sending.take(&chunk, &mut line);
                        Ok(chunk)
                    }
                    Some(Err(e)) => {
                        sending.fate.break_off();
                        Err(io::Error::other(e))
                    }
                    // A connection that is dropped with all that hangs on it looks like a proper end.
                    None if sending.is_cut_off() => {
                        sending.fate.break_off();
                        Err(io::ErrorKind::ConnectionAborted.into())
                    }
                    None => return None,
                };
                Some((next, (from, sending, line)))
            },
        ))
    }

    fn is_cut_off(&self) -> bool {
        self.fate.gone.load(Ordering::SeqCst) || self.stopping.load(Ordering::SeqCst)
    }

    fn take(&mut self, chunk: &Bytes, line: &mut Line) {
        self.came.push(chunk);
        if self.length.is_some_and(|l| l == self.came.seen) {
            self.tell();
        } else {
            let (what, wire) = line.piece(chunk, self.recorder.rules());
            self.recorder.put(self.generation, what, wire);
        }
    }

    fn tell(&mut self) {
        if !self.told && self.came.seen > 0 {
            self.told = true;
            let (raw, cut) = self.came.take();
            put_sent(&self.recorder, self.generation, self.number, raw, cut);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.tell();
    }
}
