//! Numbers, times, redacts and hands over: the one way events get into a recording.

use super::entry::{End, Entry, Header, Side, What, Wire, body, head, header};
use super::redact::Rules;
use super::sink::Sink;
use super::split::Whole;
use crate::journal::Kind;
use crate::journal::event::Purpose;
use crate::time::Time;
use crate::wire::frame::Frame;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A handle on one run of a recording; clones share it.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    sink: Sink,
    rules: Rules,
    began: Instant,
    seq: Mutex<u64>,
}

impl Recorder {
    /// Begins a run: the header line goes out first.
    ///
    /// # Errors
    /// When no writer thread can be started.
    pub fn start(
        file: impl Write + Send + 'static,
        rules: Rules,
        mut h: Header,
    ) -> io::Result<Recorder> {
        let began = Instant::now();
        h.at = Time::now();
        h.command = rules.argv(&h.command);
        h.url = h.url.map(|u| rules.url(&u));
        h.redaction = rules.statement();
        h.program = format!("redial {}", env!("CARGO_PKG_VERSION"));
        if h.run.is_empty() {
            let mut id = [0; 4];
            // Without randomness the run is named after its time.
            h.run = match getrandom::fill(&mut id) {
                Ok(()) => format!("{:08x}", u32::from_be_bytes(id)),
                Err(_) => format!("{:08x}", h.at.0 as u32),
            };
        }
        let sink = Sink::start(file, began)?;
        sink.submit(header(&h).into_bytes(), 0, 0, true);
        Ok(Recorder(Arc::new(Inner { sink, rules, began, seq: Mutex::new(0) })))
    }

    /// Records several events of one moment, in order; waits for the writer within its budget.
    pub fn put_all(&self, generation: u32, events: impl IntoIterator<Item = (What, Wire)>) -> u64 {
        // Hiding and spelling cost time that the other direction must not wait for.
        let bodies: Vec<String> = events
            .into_iter()
            .map(|(what, wire)| {
                let mut e = Entry::new(0, Time(0), 0, generation, what);
                e.wire = wire;
                self.0.rules.entry(&mut e);
                body(&e)
            })
            .collect();
        let mut ticket = 0;
        let last = {
            let mut seq = self.0.seq.lock().unwrap_or_else(PoisonError::into_inner);
            let mono = u64::try_from(self.0.began.elapsed().as_micros()).unwrap_or(u64::MAX);
            let now = Time::now();
            for b in bodies {
                *seq += 1;
                let mut text = head(*seq, now, mono, generation).into_bytes();
                text.extend_from_slice(b.as_bytes());
                ticket = self.0.sink.push(text, *seq, generation, false);
            }
            *seq
        };
        if ticket > 0 {
            self.0.sink.wait(ticket);
        }
        last
    }

    /// Records one event; its number.
    pub fn put(&self, generation: u32, what: What, wire: Wire) -> u64 {
        self.put_all(generation, [(what, wire)])
    }

    /// Records an event of the journal.
    pub fn event(&self, generation: u32, kind: Kind) -> u64 {
        self.put(generation, What::Event(kind), Wire::default())
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// Events that could not be written so far.
    pub fn lost(&self) -> u64 {
        self.0.sink.lost()
    }

    /// Ends the run; waits for the disk at most `limit`. Whether everything was written.
    pub fn close(&self, limit: Duration) -> bool {
        self.0.sink.close(limit)
    }
}

/// A line of a stream as an event.
pub fn of_line(side: Side, line: Whole) -> (What, Wire) {
    let wire = Wire { end: line.end, bom: line.bom, cut: line.cut, ..Wire::default() };
    let raw = line.raw;
    let kind = match side {
        Side::Stderr => Kind::Stderr { raw },
        Side::Sent => Kind::Sent { raw, exchange: None, purpose: Purpose::Asked },
        Side::Received if is_rpc(&raw) && line.cut == 0 => Kind::Received { raw, exchange: None },
        Side::Received => Kind::Noise { raw, cut: line.cut },
    };
    (What::Event(kind), wire)
}

/// Pieces of one line that are passed on before it is whole. A secret may be cut by the end of a piece: once a
/// line looks secret nothing more of it is kept here, and the last word of a piece, which may go on, never is.
/// The whole line, when it comes, is redacted as a whole.
#[derive(Debug, Default)]
pub struct Pieces {
    tail: Vec<u8>,
    secret: bool,
}

impl Pieces {
    /// How much of the earlier pieces is looked at again: longer than a name and its sign.
    const OVERLAP: usize = 256;

    /// The line has ended.
    pub fn line_ended(&mut self) {
        self.tail.clear();
        self.secret = false;
    }

    /// The event for a piece.
    pub fn piece(&mut self, side: Side, piece: &[u8], rules: &Rules) -> (What, Wire) {
        self.tail.extend_from_slice(piece);
        self.secret |= rules.touches(&self.tail);
        let keep = self.tail.len().saturating_sub(Pieces::OVERLAP);
        self.tail.drain(..keep);
        let word = |b: &u8| b.is_ascii_alphanumeric() || b"_-+/=.".contains(b);
        let whole = piece.iter().rposition(|b| !word(b)).map_or(0, |i| i + 1);
        let hidden = self.secret || whole < piece.len();
        let mut raw = if self.secret { Vec::new() } else { piece[..whole].to_vec() };
        if hidden {
            raw.extend_from_slice(super::redact::MASK.as_bytes());
        }
        let wire = Wire { end: End::None, redacted: u32::from(hidden), ..Wire::default() };
        (What::Part { side, raw: raw.into() }, wire)
    }
}

fn is_rpc(raw: &[u8]) -> bool {
    let start = raw.iter().find(|b| !b.is_ascii_whitespace());
    matches!(start, Some(b'{' | b'['))
        && std::str::from_utf8(raw).is_ok_and(|t| Frame::parse(t) != Frame::NotRpc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_of_a_secret_is_kept_wherever_the_chunks_end() {
        let rules = Rules::new(super::super::redact::Extra {
            values: vec!["s3cr3t-value-of-the-environment".into()],
            ..Default::default()
        })
        .unwrap();
        let line = br#"{"a":"fine","password":"hunter2222","b":"s3cr3t-value-of-the-environment"}"#;
        for size in 1..line.len() {
            let mut pieces = Pieces::default();
            let mut kept = Vec::new();
            for chunk in line.chunks(size) {
                let (What::Part { raw, .. }, _) = pieces.piece(Side::Sent, chunk, &rules) else {
                    panic!("a part")
                };
                kept.push(String::from_utf8(raw.to_vec()).unwrap());
            }
            let all = kept.concat().replace("[redacted]", "");
            for n in ["hunt", "2222", "s3cr", "3t-v", "environ"] {
                assert!(!all.contains(n), "{size}: {kept:?}");
            }
            assert!(size < 12 || kept[0].starts_with(r#"{"a":"fin"#) || size > 12, "{kept:?}");
        }
    }
}
