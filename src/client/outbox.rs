//! Frames on their way into a child's stdin: in order, counted, and taken back while not a byte of them has left.
//!
//! Says for certain what became of a frame that is given up: the pipe is only ever written to under this lock. Never
//! waits for the pipe, never decides to give anything up.

use bytes::Bytes;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, oneshot};

/// One frame, with the newline that ends it.
pub(super) struct Out {
    /// The event that sent it.
    pub seq: u64,
    pub line: Bytes,
    /// Told when the pipe has all of it; dropped when it never will.
    pub done: Option<oneshot::Sender<()>>,
}

/// What taking a frame back came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Not a byte of it has left, and none will.
    Back,
    /// So many bytes of so many are in the pipe; the rest follows when there is room.
    Begun { written: usize, of: usize },
    /// The pipe has all of it, or it was never here.
    Gone,
}

/// How the writing of one frame ended.
pub(super) enum Wrote {
    All,
    /// It was taken back.
    Nothing,
    /// So many bytes had been taken.
    Broke(usize, std::io::Error),
}

#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    more: Notify,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Out>,
    bytes: usize,
    current: Option<Current>,
    closed: bool,
}

/// The frame that is being written.
struct Current {
    seq: u64,
    written: usize,
    of: usize,
    back: bool,
    waker: Option<Waker>,
}

impl Outbox {
    /// Puts a frame at the end; hands it back once nothing is written any more.
    pub fn push(&self, out: Out) -> Result<(), Out> {
        let mut state = self.state();
        if state.closed {
            return Err(out);
        }
        state.bytes += out.line.len();
        state.frames.push_back(out);
        drop(state);
        self.more.notify_one();
        Ok(())
    }

    /// The next frame; it counts as being written from here on.
    pub async fn next(&self) -> Out {
        loop {
            if let Some(out) = self.begin() {
                return out;
            }
            self.more.notified().await;
        }
    }

    fn begin(&self) -> Option<Out> {
        let mut state = self.state();
        let out = state.frames.pop_front()?;
        state.bytes -= out.line.len();
        let of = out.line.len();
        state.current = Some(Current { seq: out.seq, written: 0, of, back: false, waker: None });
        Some(out)
    }

    /// Writes what is left of the current frame. May be dropped and called again: nothing is written twice.
    pub async fn write(&self, line: &[u8], mut pipe: impl AsyncWrite + Unpin) -> Wrote {
        poll_fn(|cx| {
            loop {
                let mut state = self.state();
                let Some(now) = state.current.as_mut() else { return Poll::Ready(Wrote::Nothing) };
                if now.back {
                    return Poll::Ready(Wrote::Nothing);
                }
                if now.written >= line.len() {
                    return Poll::Ready(Wrote::All);
                }
                match Pin::new(&mut pipe).poll_write(cx, &line[now.written..]) {
                    Poll::Ready(Ok(0)) => {
                        let e = std::io::ErrorKind::WriteZero.into();
                        return Poll::Ready(Wrote::Broke(now.written, e));
                    }
                    Poll::Ready(Ok(n)) => now.written += n,
                    Poll::Ready(Err(e)) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Poll::Ready(Err(e)) => return Poll::Ready(Wrote::Broke(now.written, e)),
                    Poll::Pending => {
                        now.waker = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                }
            }
        })
        .await
    }

    /// Bytes of the current frame that the pipe has taken.
    pub fn written(&self) -> usize {
        self.state().current.as_ref().map_or(0, |c| c.written)
    }

    /// The current frame is dealt with.
    pub fn finish(&self) {
        self.state().current = None;
    }

    /// Takes a frame back, if not a byte of it has left.
    pub fn take_back(&self, seq: u64) -> Taken {
        let mut state = self.state();
        if let Some(at) = state.frames.iter().position(|o| o.seq == seq) {
            if let Some(out) = state.frames.remove(at) {
                state.bytes -= out.line.len();
            }
            return Taken::Back;
        }
        match state.current.as_mut().filter(|c| c.seq == seq) {
            Some(c) if c.written == 0 => {
                c.back = true;
                if let Some(waker) = c.waker.take() {
                    waker.wake();
                }
                Taken::Back
            }
            Some(c) if c.written < c.of => Taken::Begun { written: c.written, of: c.of },
            _ => Taken::Gone,
        }
    }

    /// Takes no more frames, and hands over those that were not begun.
    pub fn close(&self) -> Vec<Out> {
        let mut state = self.state();
        state.closed = true;
        state.bytes = 0;
        state.frames.drain(..).collect()
    }

    /// Frames that wait, and their bytes: a server that doesn't read its stdin lets them grow.
    pub fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.frames.len(), state.bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;

    fn out(seq: u64, line: &'static str) -> Out {
        Out { seq, line: Bytes::from_static(line.as_bytes()), done: None }
    }

    /// Writes as far as the pipe takes it now.
    async fn some(
        outbox: &Outbox,
        line: &[u8],
        pipe: &mut tokio::io::DuplexStream,
    ) -> Option<Wrote> {
        tokio::time::timeout(Duration::from_millis(20), outbox.write(line, pipe)).await.ok()
    }

    #[tokio::test]
    async fn what_has_not_begun_is_taken_back_and_a_half_says_how_much_left() {
        let outbox = Outbox::default();
        let (mut pipe, mut server) = tokio::io::duplex(4);
        for (seq, line) in [(1, "aaaaaa\n"), (2, "bb\n"), (3, "cc\n")] {
            assert!(outbox.push(out(seq, line)).is_ok());
        }
        assert_eq!(outbox.waiting(), (3, 13));
        let first = outbox.next().await;
        assert!(some(&outbox, &first.line, &mut pipe).await.is_none());
        assert_eq!(outbox.take_back(1), Taken::Begun { written: 4, of: 7 });
        assert_eq!(outbox.take_back(2), Taken::Back);
        assert_eq!((outbox.take_back(2), outbox.waiting()), (Taken::Gone, (1, 3)));
        let mut got = [0; 7];
        let (wrote, read) =
            tokio::join!(outbox.write(&first.line, &mut pipe), server.read_exact(&mut got));
        assert!(matches!(wrote, Wrote::All) && read.is_ok());
        outbox.finish();
        assert_eq!(outbox.take_back(1), Taken::Gone);
        // The pipe is full again with the third one begun and not a byte of it taken.
        assert!(outbox.push(out(4, "dddd")).is_ok());
        let third = outbox.next().await;
        assert!(matches!(some(&outbox, b"zzzz", &mut pipe).await, Some(Wrote::All)));
        outbox.finish();
        let fourth = outbox.next().await;
        assert!(some(&outbox, &fourth.line, &mut pipe).await.is_none());
        assert_eq!(outbox.take_back(4), Taken::Back);
        assert!(matches!(some(&outbox, &fourth.line, &mut pipe).await, Some(Wrote::Nothing)));
        assert_eq!((&got, &*third.line), (b"aaaaaa\n", &b"cc\n"[..]));
        assert_eq!(outbox.close().len(), 0);
        assert!(outbox.push(out(5, "e\n")).is_err());
    }
}
