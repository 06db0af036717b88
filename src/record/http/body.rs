//! The bodies of one HTTP exchange on their way through: written down, then passed on, chunk by chunk.

use crate::client::http::root_cause;
use crate::journal::Kind;
use crate::journal::event::{Http, Purpose};
use crate::record::entry::{End, Side, What, Wire};
use crate::record::recorder::{Pieces, Recorder};
use crate::record::summary;
use crate::wire::sse::{Parser, Sse};
use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use std::time::Duration;

/// A message that has come whole within this time and size is written down whole before it is passed on.
const PATIENCE: Duration = Duration::from_millis(10);
const WHOLE: usize = 1 << 20;
/// The largest message kept whole.
const LIMIT: usize = 16 << 20;
/// How much of a body that is no JSON-RPC is kept.
const PLAIN: usize = 64 << 10;

/// One exchange: a request and what came back. However it ends, its end is written down.
pub(super) struct Exchange {
    recorder: Recorder,
    generation: u32,
    number: u64,
    over: bool,
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
    pub fn new(recorder: Recorder, generation: u32, number: u64) -> Exchange {
        Exchange { recorder, generation, number, over: false }
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
            put_sent(&self.recorder, self.generation, self.number, raw.clone());
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
            whole: BytesMut::new(),
            length,
            told: false,
        };
        let begin = (stream::iter([Ok(first)]).chain(rest), sending, Pieces::default());
        reqwest::Body::wrap_stream(stream::unfold(
            begin,
            |(mut from, mut sending, mut pieces)| async move {
                let next = from.next().await?;
                if let Ok(chunk) = &next {
                    sending.take(chunk, &mut pieces);
                }
                Some((next, (from, sending, pieces)))
            },
        ))
    }

    /// It broke.
    pub fn failed(&mut self, why: String, connected: bool) {
        self.over = true;
        self.log(Http::Failed { why, connected });
    }

    /// The answer's body: written down, then passed on.
    pub fn stream(
        mut self,
        response: reqwest::Response,
        is_events: bool,
        length: Option<u64>,
    ) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + use<> {
        let mut reader = if is_events {
            Reader::Events(Parser::new(LIMIT))
        } else {
            Reader::Whole { bytes: BytesMut::new(), length }
        };
        if length == Some(0) {
            self.finish(&mut reader, None);
        }
        stream::unfold((self, response, reader), |(mut x, mut response, mut reader)| async move {
            if x.over {
                return None;
            }
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    x.take(&mut reader, &chunk);
                    Some((Ok(chunk), (x, response, reader)))
                }
                Ok(None) => {
                    x.finish(&mut reader, None);
                    None
                }
                Err(e) => {
                    x.finish(&mut reader, Some(root_cause(&e)));
                    Some((Err(e), (x, response, reader)))
                }
            }
        })
    }

    fn take(&mut self, reader: &mut Reader, chunk: &Bytes) {
        match reader {
            Reader::Events(parser) => {
                let mut events = Vec::new();
                parser.feed(chunk, |e| {
                    if let Sse::Event { data, .. } = e {
                        events.push(received(Bytes::from(data), Some(self.number)));
                    }
                });
                self.recorder.put_all(self.generation, events);
            }
            Reader::Whole { bytes, length } => {
                if bytes.len() < LIMIT {
                    bytes.extend_from_slice(chunk);
                }
                // With a length announced nobody asks for the end after the last byte.
                if length.is_some_and(|l| l == bytes.len() as u64) {
                    self.finish(reader, None);
                }
            }
        }
    }

    fn body(&self, body: Bytes) {
        if body.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let (what, wire) = received(body.clone(), Some(self.number));
        if matches!(what, What::Event(Kind::Received { .. })) {
            self.recorder.put(self.generation, what, wire);
        } else {
            self.log(Http::Body { raw: body.slice(..body.len().min(PLAIN)) });
        }
    }

    fn finish(&mut self, reader: &mut Reader, failed: Option<String>) {
        self.over = true;
        let rest = match reader {
            Reader::Whole { bytes, .. } => bytes.split().freeze(),
            Reader::Events(_) => Bytes::new(),
        };
        match failed {
            Some(why) => {
                // The failure first: the bytes that came are evidence, not an answer.
                self.log(Http::Failed { why, connected: true });
                if !rest.is_empty() {
                    self.log(Http::Body { raw: rest.slice(..rest.len().min(PLAIN)) });
                }
            }
            None => {
                self.body(rest);
                self.log(Http::End);
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            let why = "the client closed the connection before the answer was there".to_owned();
            self.log(Http::Failed { why, connected: true });
        }
    }
}

/// A request's message on its way. However it ends, what came of it is written down: nobody asks for the end of
/// a body whose length was announced.
struct Sending {
    recorder: Recorder,
    generation: u32,
    number: u64,
    whole: BytesMut,
    length: Option<u64>,
    told: bool,
}

impl Sending {
    fn take(&mut self, chunk: &Bytes, pieces: &mut Pieces) {
        if self.whole.len() < LIMIT {
            self.whole.extend_from_slice(chunk);
        }
        if self.length.is_some_and(|l| l == self.whole.len() as u64) {
            self.tell();
        } else {
            let (what, wire) = pieces.piece(Side::Sent, chunk, self.recorder.rules());
            self.recorder.put(self.generation, what, wire);
        }
    }

    fn tell(&mut self) {
        if !self.told && !self.whole.is_empty() {
            self.told = true;
            put_sent(&self.recorder, self.generation, self.number, self.whole.split().freeze());
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.tell();
    }
}

enum Reader {
    Events(Parser),
    Whole { bytes: BytesMut, length: Option<u64> },
}

fn put_sent(recorder: &Recorder, generation: u32, exchange: u64, raw: Bytes) {
    let kind = Kind::Sent { raw, exchange: Some(exchange), purpose: Purpose::Asked };
    recorder.put(generation, What::Event(kind), Wire { end: End::None, ..Wire::default() });
}

fn received(raw: Bytes, exchange: Option<u64>) -> (What, Wire) {
    let is_rpc = std::str::from_utf8(&raw).is_ok_and(|t| summary::of(t).is_some());
    let kind = if is_rpc { Kind::Received { raw, exchange } } else { Kind::Noise { raw, cut: 0 } };
    (What::Event(kind), Wire { end: End::None, ..Wire::default() })
}
