//! Numbers, times, redacts and hands over: the one way events get into a recording.

use super::entry::{End, Entry, Header, Side, What, Wire, body, head, header};
use super::redact::{KeyBlock, MASK, Rules};
use super::sink::Sink;
use super::split::Whole;
use crate::journal::Kind;
use crate::journal::event::Purpose;
use crate::time::Time;
use crate::wire::frame::Frame;
use bytes::Bytes;
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

/// What is written down of one direction of a stream: its lines, and pieces of a line that are passed on before it
/// is whole. A secret may be cut by the end of a piece: once a line looks secret nothing more of its pieces is kept
/// here, and the last word of a piece, which may go on, never is. The whole line, when it comes, is redacted as a
/// whole; a private key that is printed line by line is followed over its lines.
#[derive(Debug)]
pub struct Stream {
    side: Side,
    tail: Vec<u8>,
    secret: bool,
    key: KeyBlock,
}

impl Stream {
    /// A direction, at its begin.
    pub fn new(side: Side) -> Stream {
        Stream { side, tail: Vec::new(), secret: false, key: KeyBlock::default() }
    }

    /// A line as an event.
    pub fn line(&mut self, line: Whole) -> (What, Wire) {
        self.tail.clear();
        self.secret = false;
        let mut wire = Wire { end: line.end, bom: line.bom, cut: line.cut, ..Wire::default() };
        let raw = line.raw;
        let frame = self.side == Side::Received && line.cut == 0 && is_rpc(&raw);
        let hide = |raw: Bytes, key: &mut KeyBlock, wire: &mut Wire| {
            if !key.takes(&raw) || raw.is_empty() {
                return raw;
            }
            wire.redacted += 1;
            Bytes::from_static(MASK.as_bytes())
        };
        let kind = match self.side {
            Side::Sent => Kind::Sent { raw, exchange: None, purpose: Purpose::Asked },
            Side::Stderr => Kind::Stderr { raw: hide(raw, &mut self.key, &mut wire) },
            Side::Received if frame => Kind::Received { raw, exchange: None },
            Side::Received => {
                Kind::Noise { raw: hide(raw, &mut self.key, &mut wire), cut: line.cut }
            }
        };
        (What::Event(kind), wire)
    }

    /// The event for a piece of a line.
    pub fn piece(&mut self, piece: &[u8], rules: &Rules) -> (What, Wire) {
        self.tail.extend_from_slice(piece);
        self.secret |= self.key.is_open() || rules.touches(&self.tail);
        let whole = piece.len().saturating_sub(rules.held_back(&self.tail));
        let keep = self.tail.len().saturating_sub(rules.overlap());
        self.tail.drain(..keep);
        let hidden = self.secret || whole < piece.len();
        let mut raw = if self.secret { Vec::new() } else { piece[..whole].to_vec() };
        if hidden {
            raw.extend_from_slice(MASK.as_bytes());
        }
        let wire = Wire { end: End::None, redacted: u32::from(hidden), ..Wire::default() };
        (What::Part { side: self.side, raw: raw.into() }, wire)
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

    /// All that is kept of the pieces when `line` comes in chunks of `size` bytes.
    fn kept(rules: &Rules, line: &[u8], size: usize) -> String {
        let mut stream = Stream::new(Side::Sent);
        let pieces = line.chunks(size).map(|chunk| {
            let (what, wire) = stream.piece(chunk, rules);
            let mut e = Entry::new(1, Time(0), 0, 1, what);
            e.wire = wire;
            rules.entry(&mut e);
            String::from_utf8_lossy(e.raw().unwrap()).into_owned()
        });
        pieces.collect::<String>().replace(MASK, "")
    }

    #[test]
    fn no_piece_of_a_secret_is_kept_wherever_the_chunks_end() {
        let values = ["s3cr3t-value-of-the-environment", "abc!defg, hijk\"lmé nop"];
        let rules = Rules::new(super::super::redact::Extra {
            values: values.map(str::to_owned).to_vec(),
            ..Default::default()
        })
        .unwrap();
        let lines: [(&[u8], &[&str]); 5] = [
            (
                br#"{"a":"fine","password":"hunter2222","b":"s3cr3t-value-of-the-environment"}"#,
                &["hunt", "2222", "s3cr", "3t-v", "environ"],
            ),
            (
                "{\"a\":\"fine\",\"b\":\"abc!defg, hijk\\\"lmé nop\"} ".as_bytes(),
                &["abc", "defg", "hij"],
            ),
            (br#"{"a":"fine","b":"abc!defg, hijk\"lm\u00e9 nop"} "#, &["abc", "defg", "hij"]),
            (b"at postgres://bob:p!ss,w0rd@h/x it is ", &["p!s", "w0rd", "ss,"]),
            (br#"{"a":"fine","p\u0061ssword":"hunter2222"}"#, &["hunt", "2222"]),
        ];
        for (line, secrets) in lines {
            for size in 1..line.len() {
                let all = kept(&rules, line, size);
                for n in secrets {
                    assert!(!all.contains(n), "{size}: {all:?}");
                }
            }
        }
        // What is no secret is there.
        assert!(kept(&rules, lines[0].0, 13).starts_with(r#"{"a":"fine","#));
        assert_eq!(kept(&rules, b"one two three four", 8), "one two three ");
    }

    #[test]
    fn what_a_pattern_of_a_person_means_can_not_be_told_of_a_piece() {
        let rules = Rules::new(super::super::redact::Extra {
            patterns: vec![r"card \d{4} \d{4}".into()],
            ..Default::default()
        })
        .unwrap();
        for size in 1..20 {
            assert_eq!(kept(&rules, b"card 1234 5678 ok", size), "");
        }
    }

    #[test]
    fn a_private_key_is_hidden_line_by_line() {
        let rules = Rules::new(Default::default()).unwrap();
        let text = b"up\n-----BEGIN RSA PRIVATE KEY-----\nMIIEowIB\n\nAAKCAQEA\n-----END RSA PRIVATE KEY-----\nready\n";
        for side in [Side::Stderr, Side::Received] {
            let (mut split, mut stream) =
                (super::super::split::Split::new(1000), Stream::new(side));
            let mut said = Vec::new();
            split.feed(text, |line| {
                let (what, wire) = stream.line(line);
                let mut e = Entry::new(1, Time(0), 0, 1, what);
                e.wire = wire;
                rules.entry(&mut e);
                said.push((
                    String::from_utf8_lossy(e.raw().unwrap()).into_owned(),
                    e.wire.redacted,
                ));
            });
            let said: Vec<_> = said.iter().map(|(s, n)| (s.as_str(), *n)).collect();
            let want =
                [("up", 0), (MASK, 1), (MASK, 1), ("", 0), (MASK, 1), (MASK, 1), ("ready", 0)];
            assert_eq!(said, want);
        }
        // Its body is hidden in pieces, too.
        let mut stream = Stream::new(Side::Stderr);
        stream.line(Whole {
            raw: Bytes::from_static(b"-----BEGIN PRIVATE KEY-----"),
            end: End::Lf,
            bom: false,
            cut: 0,
        });
        let (What::Part { raw, .. }, _) = stream.piece(b"MIIE owIB ", &rules) else {
            panic!("a part")
        };
        assert_eq!(&raw[..], MASK.as_bytes());
    }
}
