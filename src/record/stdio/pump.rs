//! One direction of the stdio tap: each chunk is written down, then passed on; the end of either side is passed on to
//! the other.

use super::{DRAIN, GENERATION, LINE_LIMIT, Server};
use crate::journal::Kind;
use crate::record::entry::{Side, What, Wire};
use crate::record::recorder::{Recorder, Stream};
use crate::record::split::Split;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// One direction.
pub(super) struct Pump {
    pub side: Side,
    pub recorder: Recorder,
    pub server: Arc<Server>,
}

impl Pump {
    /// Passes on until one of the two ends is over.
    pub fn run(&self, mut from: File, to: File) {
        let mut split = Split::new(LINE_LIMIT);
        let mut stream = Stream::new(self.side);
        let mut chunk = vec![0; 64 << 10];
        let mut to = Some(to);
        // Whether it was the reader who ended it.
        let mut unread = false;
        let mut closed = false;
        loop {
            // The server's own output is taken down to its end, whoever still listens to it.
            if self.side == Side::Sent && to.as_ref().is_some_and(|to| nobody_reads(&from, to)) {
                unread = true;
                self.server.unread.store(true, Ordering::SeqCst);
                break;
            }
            let n = match from.read(&mut chunk) {
                Ok(0) => {
                    closed = true;
                    break;
                }
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(NONBLOCKING_PAUSE);
                    continue;
                }
                Err(_) => break,
            };
            let bytes = chunk.get(..n).unwrap_or_default();
            self.working(true);
            let mut events = Vec::new();
            let rest = split.feed(bytes, |line| events.push(stream.line(line)));
            if !rest.is_empty() {
                events.push(stream.piece(rest, self.recorder.rules()));
            }
            self.recorder.put_all(GENERATION, events);
            if let Some(out) = &mut to
                && write_all(out, bytes).is_err()
            {
                // The other side reads no more: what the writer would have met without us, it meets now. What it
                // has already said is still taken down.
                to = None;
                self.broken();
                if self.side == Side::Sent {
                    self.server.unread.store(true, Ordering::SeqCst);
                } else {
                    self.keep_reading(&mut from, &mut split, &mut stream);
                }
                break;
            }
            self.working(false);
        }
        let last = split.finish().map(|line| stream.line(line));
        let end = (closed && self.side == Side::Sent).then_some(What::StdinClosed);
        self.recorder
            .put_all(GENERATION, last.into_iter().chain(end.map(|e| (e, Wire::default()))));
        drop((from, to));
        if self.side == Side::Sent {
            self.server.client_gone.store(true, Ordering::SeqCst);
        }
        if unread && self.outlived() {
            self.broken();
        }
    }

    fn working(&self, now: bool) {
        if self.side != Side::Sent {
            let busy = &self.server.busy;
            if now {
                busy.fetch_add(1, Ordering::SeqCst)
            } else {
                busy.fetch_sub(1, Ordering::SeqCst)
            };
            self.server.steps.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The server's stdout has ended. Its exit usually comes with that; only a process that goes on is told of.
    pub fn closed(&self) {
        if self.outlived() {
            self.recorder.event(GENERATION, Kind::StdoutClosed);
        }
    }

    /// Whether the server goes on, a moment after it closed a pipe.
    fn outlived(&self) -> bool {
        let until = Instant::now() + DRAIN;
        while Instant::now() < until {
            if !self.server.is_alive() {
                return false;
            }
            std::thread::sleep(DRAIN / 30);
        }
        true
    }

    fn broken(&self) {
        let (whose, what) = match self.side {
            Side::Sent => ("the server", "stdin"),
            Side::Received => ("the client", "stdout"),
            Side::Stderr => ("the client", "stderr"),
        };
        let text = format!("{whose} reads its {what} no more");
        self.recorder.event(GENERATION, Kind::Note(crate::journal::Note::Text(text)));
    }

    /// What is in the pipe already when nobody reads it any more, without waiting for more than a moment.
    fn keep_reading(&self, from: &mut File, split: &mut Split, stream: &mut Stream) {
        if self.side == Side::Received {
            // Without a reader the server would get SIGPIPE; without us it would have, already.
            return;
        }
        let mut chunk = vec![0; 64 << 10];
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            let mut events = Vec::new();
            split.feed(chunk.get(..n).unwrap_or_default(), |l| events.push(stream.line(l)));
            self.recorder.put_all(GENERATION, events);
        }
    }
}

/// Waits until there is something to read; whether, in place of that, nobody reads any more what would be passed on.
fn nobody_reads(from: &File, to: &File) -> bool {
    loop {
        let mut both = [PollFd::new(from, PollFlags::IN), PollFd::new(to, PollFlags::empty())];
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => {}
            // Where that can't be asked the write tells.
            Err(_) => return false,
            // Bytes that are there are taken down first.
            Ok(_) => return both[0].revents().is_empty(),
        }
    }
}

/// Some launchers hand over pipes that don't block.
const NONBLOCKING_PAUSE: Duration = Duration::from_millis(1);

fn write_all(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(NONBLOCKING_PAUSE)
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
