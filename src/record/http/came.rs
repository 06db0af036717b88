//! What has come of a body so far, and what is written down of it when no more comes.

use crate::journal::Kind;
use crate::journal::event::Purpose;
use crate::record::entry::{End, What, Wire};
use crate::record::recorder::Recorder;
use crate::wire::sse::Parser;
use bytes::{Bytes, BytesMut};

/// The first bytes of a body, and how many there were.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: BytesMut,
    pub seen: u64,
    limit: usize,
}

impl Kept {
    pub fn new(limit: usize) -> Kept {
        Kept { bytes: BytesMut::new(), seen: 0, limit }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.seen += chunk.len() as u64;
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }

    /// What was kept, and how many bytes more there were.
    pub fn take(&mut self) -> (Bytes, u64) {
        let kept = self.bytes.split().freeze();
        let cut = self.seen.saturating_sub(kept.len() as u64);
        (kept, cut)
    }
}

/// How an answer is read on its way.
pub(super) enum Reader {
    Events {
        parser: Parser,
    },
    Whole {
        came: Kept,
    },
    /// It can't be read.
    Nothing,
}

impl Reader {
    pub fn events(limit: usize) -> Reader {
        Reader::Events { parser: Parser::new(limit) }
    }

    pub fn whole(limit: usize) -> Reader {
        Reader::Whole { came: Kept::new(limit) }
    }
}

pub(super) fn put_sent(recorder: &Recorder, generation: u32, exchange: u64, raw: Bytes, cut: u64) {
    let kind = Kind::Sent { raw, exchange: Some(exchange), purpose: Purpose::Asked };
    recorder.put(generation, What::Event(kind), Wire { end: End::None, cut, ..Wire::default() });
}
