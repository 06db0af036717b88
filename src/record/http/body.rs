//! The bodies of one HTTP exchange on their way through: written down, then passed on, chunk by chunk.

use crate::client::http::root_cause;
use crate::journal::Kind;
use crate::journal::event::{Http, Purpose};
use crate::record::entry::{End, Side, What, Wire};
use crate::record::recorder::{Recorder, Stream as Line};
use crate::record::summary;
use crate::wire::sse::{Parser, Sse};
use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A message that has come whole within this time and size is written down whole before it is passed on.
const PATIENCE: Duration = Duration::from_millis(10);
const WHOLE: usize = 1 << 20;
/// The largest message kept whole.
const LIMIT: usize = 16 << 20;
/// How much of a body that is no JSON-RPC is kept.
const PLAIN: usize = 64 << 10;

/// One exchange: a request and what came back. However it ends, its end is written down, and what came of an answer
/// that broke off.
pub(super) struct Exchange {
    recorder: Recorder,
    generation: u32,
    number: u64,
    over: bool,
    reader: Reader,
    /// The tap itself is about to end.
    stopping: Arc<AtomicBool>,
}

/// What has come of a body, and what is still to come.
pub(super) async fn first_piece(body: Body) -> (Bytes, Option<BodyDataStream>) {
    let mut rest = body.into_data_stream();
    let mut first = BytesMut::new();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while first.len() < WHOLE {
        match tokio::time::timeout_at(deadline, rest.next()).await {
            Ok(Some(Ok(chunk))) => first.extend_from_slice(&chunk),
            Ok(None) => return (first.freeze(), None),
            // Broken: the stream says it again to whoever goes on reading.
            Ok(Some(Err(_))) | Err(_) => break,
        }
    }
    (first.freeze(), Some(rest))
}

impl Exchange {
    pub fn new(
        recorder: Recorder,
        generation: u32,
        number: u64,
        stopping: Arc<AtomicBool>,
    ) -> Exchange {
        let reader = Reader::whole(None, LIMIT);
        Exchange { recorder, generation, number, over: false, reader, stopping }
    }

    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    fn log(&self, what: Http) {
        self.recorder.event(self.generation, Kind::Http { exchange: self.number, what });
    }

    /// The request's message, whole.
    pub fn sent(&self, raw: &Bytes) {
        if !raw.is_empty() {
            put_sent(&self.recorder, self.generation, self.number, raw.clone(), 0);
        }
    }

    /// The request's message, of which only `first` has come: passed on as it comes. `length`: as announced.
    pub fn streamed(
        &self,
        first: Bytes,
        rest: BodyDataStream,
        length: Option<u64>,
    ) -> reqwest::Body {
        let sending = Sending {
            recorder: self.recorder.clone(),
            generation: self.generation,
            number: self.number,
            came: Kept::new(LIMIT),
            length,
            told: false,
        };
        let begin = (stream::iter([Ok(first)]).chain(rest), sending, Line::new(Side::Sent));
        reqwest::Body::wrap_stream(stream::unfold(
            begin,
            |(mut from, mut sending, mut line)| async move {
                let next = from.next().await?;
                if let Ok(chunk) = &next {
                    sending.take(chunk, &mut line);
                }
                Some((next, (from, sending, line)))
            },
        ))
    }

    /// It broke.
    pub fn failed(&mut self, why: String, connected: bool) {
        self.over = true;
        self.log(Http::Failed { why, connected });
    }

    /// The answer's body: written down, then passed on. `is_events`: as server-sent events.
    pub fn stream(
        mut self,
        response: reqwest::Response,
        is_events: bool,
        length: Option<u64>,
    ) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + use<> {
        self.reader = match is_events {
            true => Reader::events(LIMIT),
            false => Reader::whole(length, LIMIT),
        };
        if length == Some(0) {
            self.finish(None);
        }
        stream::unfold((self, response), |(mut x, mut response)| async move {
            if x.over {
                return None;
            }
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    x.take(&chunk);
                    Some((Ok(chunk), (x, response)))
                }
                Ok(None) => {
                    x.finish(None);
                    None
                }
                Err(e) => {
                    x.finish(Some(root_cause(&e)));
                    Some((Err(e), (x, response)))
                }
            }
        })
    }

    fn take(&mut self, chunk: &Bytes) {
        let number = self.number;
        match &mut self.reader {
            Reader::Events { parser } => {
                let mut found = Vec::new();
                parser.feed(chunk, |e| {
                    if let Sse::Event { data, cut, .. } = e {
                        found.push((Bytes::from(data), cut));
                    }
                });
                let events = found.into_iter().map(|(data, cut)| match cut {
                    0 => received(data, number),
                    cut => over(data, cut, number),
                });
                self.recorder.put_all(self.generation, events);
            }
            Reader::Whole { came, length } => {
                came.push(chunk);
                // With a length announced nobody asks for the end after the last byte.
                if length.is_some_and(|l| l == came.seen) {
                    self.finish(None);
                }
            }
        }
    }

    /// A whole body.
    fn body(&self, body: Bytes, cut: u64) {
        if body.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let (what, wire) = match received(body.clone(), self.number) {
            // The head of JSON that is too long is kept as a message's would be.
            _ if cut > 0 && body.starts_with(b"{") => over(body, cut, self.number),
            (what @ What::Event(Kind::Received { .. }), wire) if cut == 0 => (what, wire),
            _ => {
                let kept = body.slice(..body.len().min(PLAIN));
                let cut = cut + (body.len() - kept.len()) as u64;
                over(kept, cut, self.number)
            }
        };
        self.recorder.put(self.generation, what, wire);
    }

    /// The answer is over; `failed`: it broke.
    fn finish(&mut self, failed: Option<String>) {
        self.over = true;
        let (rest, cut) = match &mut self.reader {
            Reader::Whole { came, .. } => came.take(),
            Reader::Events { parser } => {
                let cut = parser.cut();
                (Bytes::from(parser.take_unfinished()), cut)
            }
        };
        let is_whole = matches!(self.reader, Reader::Whole { .. }) && failed.is_none();
        if is_whole {
            self.body(rest, cut);
        } else if !rest.is_empty() {
            // Evidence, never an answer.
            let what = Http::Partial { raw: rest };
            let kind = Kind::Http { exchange: self.number, what };
            let wire = Wire { end: End::None, cut, ..Wire::default() };
            self.recorder.put(self.generation, What::Event(kind), wire);
        }
        self.log(match failed {
            Some(why) => Http::Failed { why, connected: true },
            None => Http::End,
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            let why = match self.stopping.load(Ordering::SeqCst) {
                true => "redial, which passed it on, was ended before the answer was there",
                false => "the client closed the connection before the answer was there",
            };
            self.finish(Some(why.to_owned()));
        }
    }
}

/// The first bytes of a body, and how many there were.
#[derive(Debug)]
struct Kept {
    bytes: BytesMut,
    seen: u64,
    limit: usize,
}

impl Kept {
    fn new(limit: usize) -> Kept {
        Kept { bytes: BytesMut::new(), seen: 0, limit }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.seen += chunk.len() as u64;
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }

    /// What was kept, and how many bytes more there were.
    fn take(&mut self) -> (Bytes, u64) {
        let kept = self.bytes.split().freeze();
        let cut = self.seen.saturating_sub(kept.len() as u64);
        (kept, cut)
    }
}

/// A request's message on its way. However it ends, what came of it is written down: nobody asks for the end of
/// a body whose length was announced.
struct Sending {
    recorder: Recorder,
    generation: u32,
    number: u64,
    came: Kept,
    length: Option<u64>,
    told: bool,
}

impl Sending {
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

enum Reader {
    Events { parser: Parser },
    Whole { came: Kept, length: Option<u64> },
}

impl Reader {
    fn events(limit: usize) -> Reader {
        Reader::Events { parser: Parser::new(limit) }
    }

    fn whole(length: Option<u64>, limit: usize) -> Reader {
        Reader::Whole { came: Kept::new(limit), length }
    }
}

fn put_sent(recorder: &Recorder, generation: u32, exchange: u64, raw: Bytes, cut: u64) {
    let kind = Kind::Sent { raw, exchange: Some(exchange), purpose: Purpose::Asked };
    recorder.put(generation, What::Event(kind), Wire { end: End::None, cut, ..Wire::default() });
}

fn received(raw: Bytes, exchange: u64) -> (What, Wire) {
    let is_rpc = std::str::from_utf8(&raw).is_ok_and(|t| summary::of(t).is_some());
    let kind = match is_rpc {
        true => Kind::Received { raw, exchange: Some(exchange) },
        false => Kind::Noise { raw, cut: 0 },
    };
    (What::Event(kind), Wire { end: End::None, ..Wire::default() })
}

/// A body, or the data of an event, that is no message: `cut` bytes more were in it.
fn over(raw: Bytes, cut: u64, exchange: u64) -> (What, Wire) {
    let kind = Kind::Http { exchange, what: Http::Body { raw, cut } };
    (What::Event(kind), Wire { end: End::None, cut, ..Wire::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::entry::{Entry, Header, Line as Read, decode};
    use crate::record::redact::Rules;
    use std::sync::{Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Out {
        fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written down of an answer that comes in these chunks; `None` breaks it, no end drops it.
    fn written(reader: Reader, chunks: &[Option<&[u8]>], end: bool, stopping: bool) -> Vec<Entry> {
        let out = Out::default();
        let rules = Rules::new(Default::default()).unwrap();
        let recorder = Recorder::start(out.clone(), rules, Header::default()).unwrap();
        let mut x = Exchange::new(recorder.clone(), 1, 7, Arc::new(AtomicBool::new(stopping)));
        x.reader = reader;
        for chunk in chunks {
            match chunk {
                Some(c) => x.take(&Bytes::copy_from_slice(c)),
                None => x.finish(Some("reset".into())),
            }
        }
        if end && !x.over {
            x.finish(None);
        }
        drop(x);
        assert!(recorder.close(Duration::from_secs(20)));
        let bytes = out.0.lock().unwrap().clone();
        let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        lines
            .filter_map(|l| match decode(l) {
                Read::Entry(e) => Some(e),
                _ => None,
            })
            .collect()
    }

    /// `body 5+3`: kind, kept and cut bytes; `failed WHY`.
    fn told(entries: &[Entry]) -> Vec<String> {
        let size = |e: &Entry| format!("{}+{}", e.raw().map_or(0, Bytes::len), e.wire.cut);
        let word = |e: &Entry| match &e.what {
            What::Event(Kind::Http { what: Http::Body { raw, cut }, .. }) => {
                format!("body {}+{cut}", raw.len())
            }
            What::Event(Kind::Http { what: Http::Partial { .. }, .. }) => {
                format!("partial {}", size(e))
            }
            What::Event(Kind::Http { what: Http::End, .. }) => "end".into(),
            What::Event(Kind::Http { what: Http::Failed { why, .. }, .. }) => {
                format!("failed {why}")
            }
            What::Event(Kind::Received { .. }) => format!("received {}", size(e)),
            other => other.word().to_owned(),
        };
        entries.iter().map(word).collect()
    }

    /// So that no test has to pass megabytes.
    const FEW: usize = 1000;

    fn whole(length: Option<u64>) -> Reader {
        Reader::whole(length, FEW)
    }

    fn events() -> Reader {
        Reader::events(FEW)
    }

    #[test]
    fn an_answer_over_the_limit_is_told_as_cut_and_came_to_its_end() {
        let mut long = br#"{"jsonrpc":"2.0","id":1,"result":{"x":""#.to_vec();
        long.resize(FEW + 1000, b'x');
        long.extend_from_slice(b"\"}}");
        let want = [format!("body {FEW}+1003"), "end".to_owned()];
        let chunks: Vec<Option<&[u8]>> = long.chunks(100).map(Some).collect();
        for length in [None, Some(long.len() as u64)] {
            assert_eq!(told(&written(whole(length), &chunks, length.is_none(), false)), want);
        }
        let mut stream = b"data: ".to_vec();
        stream.extend_from_slice(&long);
        stream.extend_from_slice(b"\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
        let chunks: Vec<Option<&[u8]>> = stream.chunks(100).map(Some).collect();
        let got = told(&written(events(), &chunks, true, false));
        // The field's name counts for the limit.
        assert_eq!(got, [&format!("body {}+1009", FEW - 6), "received 30+0", "end"]);
    }

    #[test]
    fn what_came_of_an_answer_that_broke_off_is_kept() {
        let head: &[u8] = br#"{"jsonrpc":"2.0","id":1,"res"#;
        let event: &[u8] = br#"data: {"jsonrpc":"2.0","id":1,"res"#;
        for (chunk, reader) in [(head, whole(Some(500))), (event, events())] {
            let n = chunk.len();
            let got = told(&written(reader, &[Some(chunk), None], false, false));
            assert_eq!(got, [format!("partial {n}+0"), "failed reset".into()]);
        }
        // A stream that ends in the middle of an event ended properly; a client that goes, or a tap that is ended.
        let n = event.len();
        assert_eq!(
            told(&written(events(), &[Some(event)], true, false)),
            [&format!("partial {n}+0"), "end"]
        );
        let gone = told(&written(events(), &[Some(event)], false, false));
        assert!(
            gone[0] == format!("partial {n}+0") && gone[1].contains("client closed"),
            "{gone:?}"
        );
        let ended = told(&written(whole(None), &[], false, true));
        assert!(ended.len() == 1 && ended[0].contains("redial"), "{ended:?}");
    }

    #[test]
    fn a_page_is_kept_in_part_and_says_so() {
        let page = [b'<'; 100_000];
        let got = told(&written(Reader::whole(None, LIMIT), &[Some(&page)], true, false));
        assert_eq!(got, [&format!("body {PLAIN}+{}", 100_000 - PLAIN), "end"]);
    }
}
