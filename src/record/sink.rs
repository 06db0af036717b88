//! The writer of a recording: one thread that owns the file, and a queue before it that never holds up the
//! traffic for longer than its budget.
//!
//! Whoever passes bytes on hands the line over and waits until it is written, at most [`BUDGET`]. Past it the
//! traffic goes on, and nobody waits again until the writer has caught up. What does not fit the queue, or
//! can't be written, is counted and told in a `gap` line as soon as something can be written again.

use super::entry::{Entry, What, line};
use crate::time::Time;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a line may hold up the bytes it is about.
pub const BUDGET: Duration = Duration::from_millis(3);
/// How many bytes may wait for a slow disk.
pub const QUEUE: usize = 32 << 20;

/// A handle on the writer; clones share it.
#[derive(Clone)]
pub struct Sink(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Chunk>,
    bytes: usize,
    submitted: u64,
    written: u64,
    /// The writer fell behind: nobody waits until it has caught up.
    lagging: bool,
    closing: bool,
    lost: Lost,
    /// What was lost in this run, told or not.
    lost_ever: u64,
}

struct Chunk {
    text: Vec<u8>,
    seq: u64,
    generation: u32,
    /// A header or such: not counted as an event.
    plain: bool,
}

/// What could not be written since the last time something could.
#[derive(Default, Clone)]
struct Lost {
    first: Option<(u64, u32)>,
    events: u64,
    bytes: u64,
    why: String,
}

impl Lost {
    fn add(&mut self, c: &Chunk, why: &str) {
        if !c.plain {
            self.first.get_or_insert((c.seq, c.generation));
            self.events += 1;
        }
        self.bytes += c.text.len() as u64;
        if self.why.is_empty() {
            why.clone_into(&mut self.why);
        }
    }
}

impl Sink {
    /// Starts the writer on `file`; `began` is the zero of the monotonic clock.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(file: impl Write + Send + 'static, began: Instant) -> io::Result<Sink> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let theirs = shared.clone();
        std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || Writer { file, torn: false, began, shared: theirs }.run())?;
        Ok(Sink(shared))
    }

    /// Hands a line over; waits until it is written or the budget is spent.
    pub fn submit(&self, text: Vec<u8>, seq: u64, generation: u32, plain: bool) {
        let ticket = self.push(text, seq, generation, plain);
        self.wait(ticket);
    }

    /// Hands a line over without waiting; the ticket is for [`Sink::wait`].
    pub fn push(&self, text: Vec<u8>, seq: u64, generation: u32, plain: bool) -> u64 {
        let mut s = self.0.lock();
        let chunk = Chunk { text, seq, generation, plain };
        s.submitted += 1;
        if s.bytes + chunk.text.len() > QUEUE {
            s.lost.add(&chunk, "the disk was too slow");
            s.lost_ever += 1;
            s.written += 1;
            return s.submitted;
        }
        s.bytes += chunk.text.len();
        s.queue.push_back(chunk);
        let ticket = s.submitted;
        drop(s);
        self.0.work.notify_one();
        ticket
    }

    /// Waits until everything up to `ticket` is written, within the budget.
    pub fn wait(&self, ticket: u64) {
        let s = self.0.lock();
        if s.lagging {
            return;
        }
        let (mut s, timed_out) = self
            .0
            .done
            .wait_timeout_while(s, BUDGET, |s| s.written < ticket && !s.lagging)
            .unwrap_or_else(PoisonError::into_inner);
        if timed_out.timed_out() {
            s.lagging = true;
            drop(s);
            self.0.done.notify_all();
        }
    }

    /// Waits until all is written, at most `limit`; whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        let s = self.0.lock();
        let (s, _) = self
            .0
            .done
            .wait_timeout_while(s, limit, |s| s.written < s.submitted)
            .unwrap_or_else(PoisonError::into_inner);
        s.written >= s.submitted && s.lost.bytes == 0
    }

    /// Writes what is left, at most for `limit`, and ends the writer. Whether nothing is left.
    pub fn close(&self, limit: Duration) -> bool {
        self.0.lock().closing = true;
        self.0.work.notify_one();
        self.flush(limit)
    }

    /// Events that were lost so far.
    pub fn lost(&self) -> u64 {
        self.0.lock().lost_ever
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer<W> {
    file: W,
    /// The last line in the file has no end.
    torn: bool,
    began: Instant,
    shared: Arc<Shared>,
}

impl<W: Write> Writer<W> {
    fn run(mut self) {
        loop {
            let (batch, lost) = {
                let mut s = self.shared.lock();
                while s.queue.is_empty() && !s.closing {
                    s.lagging = false;
                    s = self.shared.work.wait(s).unwrap_or_else(PoisonError::into_inner);
                }
                if s.queue.is_empty() && s.lost.bytes == 0 {
                    return;
                }
                let batch: Vec<Chunk> = s.queue.drain(..).collect();
                (batch, s.lost.clone())
            };
            if lost.bytes > 0 {
                self.tell(&lost, batch.is_empty());
            }
            if batch.is_empty() {
                // Closing, and the gap was told or can't be.
                self.shared.done.notify_all();
                return;
            }
            self.write(&batch);
        }
    }

    /// Writes the gap line; keeps counting when that fails too.
    fn tell(&mut self, lost: &Lost, last: bool) {
        let (seq, generation) = lost.first.unwrap_or_default();
        let gap = What::Gap { events: lost.events, bytes: lost.bytes, why: lost.why.clone() };
        let mono = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let text = line(&Entry::new(seq, Time::now(), mono, generation, gap));
        let told = self.write_some(text.as_bytes()).is_ok();
        let mut s = self.shared.lock();
        if told {
            s.lost.events -= lost.events;
            s.lost.bytes -= lost.bytes;
            s.lost.first = None;
            s.lost.why.clear();
        } else if last {
            // Nobody will try again.
            s.queue.clear();
        }
    }

    fn write(&mut self, batch: &[Chunk]) {
        // One write for what waited together: each line still goes out whole or is told as lost.
        let mut text = Vec::with_capacity(batch.iter().map(|c| c.text.len()).sum());
        for c in batch {
            text.extend_from_slice(&c.text);
        }
        let result = self.write_some(&text);
        let mut s = self.shared.lock();
        if let Err((written, e)) = result {
            let mut end = 0;
            for c in batch {
                end += c.text.len();
                if end > written {
                    s.lost.add(c, &e.to_string());
                    s.lost_ever += 1;
                }
            }
        }
        s.written += batch.len() as u64;
        s.bytes = s.bytes.saturating_sub(text.len());
        drop(s);
        self.shared.done.notify_all();
    }

    /// Writes whole lines, ending a torn one first. On failure says how many bytes of `text` went out.
    fn write_some(&mut self, text: &[u8]) -> Result<(), (usize, io::Error)> {
        if self.torn {
            match self.file.write(b"\n") {
                Ok(1) => self.torn = false,
                Ok(_) => return Err((0, io::ErrorKind::WriteZero.into())),
                Err(e) => return Err((0, e)),
            }
        }
        let mut done = 0;
        while done < text.len() {
            match self.file.write(text.get(done..).unwrap_or_default()) {
                Ok(0) => {
                    self.torn = torn(text, done);
                    return Err((done, io::ErrorKind::WriteZero.into()));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.torn = torn(text, done);
                    return Err((done, e));
                }
            }
        }
        Ok(())
    }
}

fn torn(text: &[u8], done: usize) -> bool {
    done > 0 && text.get(done - 1) != Some(&b'\n')
}

#[cfg(test)]
mod tests;
