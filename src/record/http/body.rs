//! The bodies of one HTTP exchange on their way through: written down, then passed on, chunk by chunk.

use super::came::{Kept, Reader, put_sent};
use super::sessions::Sessions;
use super::upload::{Fate, Sending};
use crate::client::http::root_cause;
use crate::journal::Kind;
use crate::journal::event::Http;
use crate::record::entry::{End, What, Wire};
use crate::record::recorder::Recorder;
use crate::record::summary;
use crate::wire::coding::{Decoder, Fault};
use crate::wire::sse::Sse;
use axum::body::BodyDataStream;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use reqwest::Url;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest message kept whole.
const LIMIT: usize = 16 << 20;
/// How much of a body that is no JSON-RPC is kept.
const PLAIN: usize = 64 << 10;

const BROKEN: &str = "the client broke its request off";
const BROKEN_UPSTREAM: &str =
    "the client broke its request off, so it was broken off on the way to the server too";

/// One exchange: a request and what came back. However it ends, its end is written down, and what came of an answer
/// that broke off.
pub(super) struct Exchange {
    recorder: Recorder,
    generation: u32,
    number: u64,
    over: bool,
    reader: Reader,
    /// How the answer is coded: what is written down is what it says.
    decoder: Option<Decoder>,
    /// Bytes of the answer so far, as they pass.
    passed: u64,
    /// As announced.
    length: Option<u64>,
    fate: Arc<Fate>,
    /// Where a stream may say that messages of its client go, as HTTP+SSE does.
    names: Option<(Arc<Sessions>, Url)>,
    /// The tap itself is about to end.
    stopping: Arc<AtomicBool>,
}

impl Exchange {
    pub fn new(
        recorder: Recorder,
        generation: u32,
        number: u64,
        stopping: Arc<AtomicBool>,
    ) -> Exchange {
        let reader = Reader::whole(LIMIT);
        Exchange {
            recorder,
            generation,
            number,
            over: false,
            reader,
            decoder: None,
            passed: 0,
            length: None,
            fate: Arc::default(),
            names: None,
            stopping,
        }
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
            fate: self.fate.clone(),
            stopping: self.stopping.clone(),
        };
        sending.body(first, rest)
    }

    /// The client broke its request off before any of it was passed on.
    pub fn broken(&mut self, came: &Bytes) {
        self.sent(came);
        self.fate.break_off();
        self.failed(format!("{BROKEN} before any of it was passed on"), false);
    }

    /// Its answer may be a stream that names an endpoint, beside this URL.
    pub fn may_name_endpoint(&mut self, sessions: Arc<Sessions>, url: Url) {
        self.names = Some((sessions, url));
    }

    /// HTTP+SSE of 2024-11-05: from here on this is the stream of those who post to `data`.
    fn endpoint(&mut self, data: &[u8]) {
        let Some((sessions, url)) = &self.names else { return };
        let Some(to) = std::str::from_utf8(data).ok().and_then(|d| url.join(d.trim()).ok()) else {
            return;
        };
        let shown = self.recorder.rules().url(url.as_str());
        let (generation, opened) =
            sessions.endpoint(super::place(&to), self.generation, || shown.clone());
        self.generation = generation;
        if let Some(opened) = opened {
            self.recorder.event(generation, opened);
        }
        self.log(Http::Endpoint { url: to.to_string() });
    }

    /// It was the client's request that broke.
    pub fn is_broken(&self) -> bool {
        self.fate.is_broken()
    }

    /// It broke.
    pub fn failed(&mut self, why: String, connected: bool) {
        self.over = true;
        let why = match self.fate.is_broken() && connected {
            true => BROKEN_UPSTREAM.to_owned(),
            false => why,
        };
        self.log(Http::Failed { why, connected });
    }

    /// The answer's body: written down, then passed on byte for byte. `is_events`: as server-sent events; `coding`: its
    /// `Content-Encoding`. A secret can't hide in what is compressed: it is undone before it is written.
    pub fn stream(
        mut self,
        response: reqwest::Response,
        is_events: bool,
        coding: &str,
        length: Option<u64>,
    ) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + use<> {
        self.reader = match is_events {
            true => Reader::events(LIMIT),
            false => Reader::whole(LIMIT),
        };
        self.length = length;
        match Decoder::new(coding, LIMIT) {
            Ok(decoder) => self.decoder = decoder,
            Err(fault) => self.unreadable(&fault),
        }
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

    /// Takes what passes. With a length announced nobody asks for the end after the last byte.
    fn take(&mut self, chunk: &Bytes) {
        self.passed += chunk.len() as u64;
        match self.decoder.as_mut().map(|d| d.feed(chunk)) {
            None => self.read(chunk),
            Some(Ok(undone)) => self.read(&undone),
            Some(Err(fault)) => self.unreadable(&fault),
        }
        let whole = matches!(self.reader, Reader::Whole { .. } | Reader::Nothing);
        if whole && self.length.is_some_and(|l| l == self.passed) {
            self.finish(None);
        }
    }

    /// What passes is not written down from here on: nobody could read it, nor tell what is secret in it.
    fn unreadable(&mut self, fault: &Fault) {
        self.log(Http::Unreadable { why: fault.to_string() });
        (self.reader, self.decoder) = (Reader::Nothing, None);
    }

    fn read(&mut self, chunk: &[u8]) {
        let number = self.number;
        match &mut self.reader {
            Reader::Nothing => {}
            Reader::Events { parser } => {
                let (mut found, mut named) = (Vec::new(), None);
                parser.feed(chunk, |e| {
                    if let Sse::Event { event, data, cut, .. } = e {
                        match event == "endpoint" && self.names.is_some() && cut == 0 {
                            true => named = Some(data),
                            false => found.push((Bytes::from(data), cut)),
                        }
                    }
                });
                // It comes first on its stream.
                if let Some(data) = named {
                    self.endpoint(data.as_ref());
                }
                let events = found.into_iter().map(|(data, cut)| match cut {
                    0 => received(data, number),
                    cut => over(data, cut, number),
                });
                self.recorder.put_all(self.generation, events);
            }
            Reader::Whole { came } => came.push(chunk),
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
        match self.decoder.take().map(|mut d| d.finish()) {
            Some(Ok(undone)) => self.read(&undone),
            // That it broke off is said anyhow, and so is what came until then.
            Some(Err(fault)) if failed.is_none() => self.unreadable(&fault),
            Some(Err(_)) | None => {}
        }
        let (rest, cut) = match &mut self.reader {
            Reader::Whole { came } => came.take(),
            Reader::Nothing => (Bytes::new(), 0),
            Reader::Events { parser } => {
                let cut = parser.cut();
                (Bytes::from(parser.take_unfinished()), cut)
            }
        };
        let n = rest.len();
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
        let failed = failed.or_else(|| {
            (!is_whole && n > 0).then(|| {
                format!("the stream ended in the middle of an event, after {n} bytes of it")
            })
        });
        self.log(match failed {
            Some(why) => Http::Failed { why, connected: true },
            None => Http::End,
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            self.fate.leave();
            let why = match self.stopping.load(Ordering::SeqCst) {
                true => "redial, which passed it on, was ended before the answer was there",
                false if self.fate.is_broken() => BROKEN_UPSTREAM,
                false => "the client closed the connection before the answer was there",
            };
            self.finish(Some(why.to_owned()));
        }
    }
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
mod tests;
