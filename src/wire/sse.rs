//! Server-sent events, the whole grammar (WHATWG HTML, "Server-sent events", 9.2.6) at any chunking:
//! CR, LF and CRLF, a byte order mark, comments, several data lines, id, retry, unknown fields.

/// What the stream holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sse {
    /// A dispatched event. `data` is its data lines joined with `\n`.
    Event {
        /// The event's name, `message` when none was given.
        event: String,
        /// The data.
        data: Vec<u8>,
        /// The last event id in force, if any was ever set.
        id: Option<String>,
        /// Bytes of it that were dropped because it was over the limit.
        cut: u64,
    },
    /// An event block with an id and no data: the server primes the stream for a resume.
    Primed {
        /// The id to resume from.
        id: String,
    },
    /// A `retry:` field: how long to wait before a reconnect, in milliseconds.
    Retry(u64),
    /// A comment line: a keep-alive.
    Comment,
}

/// A parser that takes chunks as they come.
#[derive(Debug)]
pub struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    at_start: bool,
    data: Vec<u8>,
    has_data: bool,
    event: String,
    id: Option<String>,
    id_in_block: bool,
    limit: usize,
    /// Bytes dropped of the line that is being read, and of the event.
    line_cut: u64,
    cut: u64,
}

impl Parser {
    /// A parser that keeps at most `limit` bytes of one event.
    pub fn new(limit: usize) -> Parser {
        Parser {
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            data: Vec::new(),
            has_data: false,
            event: String::new(),
            id: None,
            id_in_block: false,
            limit,
            line_cut: 0,
            cut: 0,
        }
    }

    /// Takes a chunk.
    pub fn feed(&mut self, mut chunk: &[u8], mut out: impl FnMut(Sse)) {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = chunk.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                return self.push(chunk);
            };
            self.push(&chunk[..end]);
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            self.end_line(&mut out);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.line.len() + self.data.len());
        let keep = bytes.len().min(room);
        self.line.extend_from_slice(&bytes[..keep]);
        self.line_cut += (bytes.len() - keep) as u64;
    }

    /// Bytes dropped so far of the event that is being read, because it is over the limit.
    pub fn cut(&self) -> u64 {
        self.cut + self.line_cut
    }

    /// The bytes of an unfinished event at the end of the stream. By the grammar it is discarded, so they are
    /// evidence, never an event.
    pub fn take_unfinished(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.data);
        rest.append(&mut self.line);
        rest
    }

    fn end_line(&mut self, out: &mut impl FnMut(Sse)) {
        let mut line = std::mem::take(&mut self.line);
        let line_cut = std::mem::take(&mut self.line_cut);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() && line_cut == 0 {
            return self.dispatch(out);
        }
        if line.first() == Some(&b':') {
            return out(Sse::Comment);
        }
        // A line of which nothing could be kept belongs to an event that is full already.
        self.cut += line_cut;
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (field, rest) = line.split_at(colon);
        let value = rest.get(1..).unwrap_or(b"");
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
                self.id_in_block = true;
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                if let Ok(ms) = String::from_utf8_lossy(value).parse() {
                    out(Sse::Retry(ms));
                }
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut impl FnMut(Sse)) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        let has_data = std::mem::take(&mut self.has_data);
        let primed = std::mem::take(&mut self.id_in_block);
        let cut = std::mem::take(&mut self.cut);
        let id = self.id.clone().filter(|i| !i.is_empty());
        if (has_data && !data.is_empty()) || cut > 0 {
            let event = if event.is_empty() { "message".into() } else { event };
            out(Sse::Event { event, data, id, cut });
        } else if primed && let Some(id) = id {
            out(Sse::Primed { id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(chunks: &[&[u8]]) -> Vec<Sse> {
        let (mut p, mut out) = (Parser::new(1 << 20), Vec::new());
        for c in chunks {
            p.feed(c, |e| out.push(e));
        }
        out
    }

    fn event(event: &str, data: &str, id: Option<&str>) -> Sse {
        Sse::Event { event: event.into(), data: data.into(), id: id.map(Into::into), cut: 0 }
    }

    #[test]
    fn what_is_over_the_limit_is_counted_on_its_own_event_and_its_neighbours_are_whole() {
        let text = b": 0123456789\ndata: a\n\ndata: 0123456789\ndata: xy\n\ndata: b\n\n";
        for step in [1, 3, 7, text.len()] {
            let (mut p, mut out) = (Parser::new(12), Vec::new());
            for chunk in text.chunks(step) {
                p.feed(chunk, |e| out.push(e));
            }
            let cuts: Vec<_> = out
                .iter()
                .filter_map(|e| match e {
                    Sse::Event { data, cut, .. } => {
                        Some((String::from_utf8_lossy(data).into_owned(), *cut > 0))
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(
                (cuts.len(), &cuts[0], &cuts[2]),
                (3, &("a".into(), false), &("b".into(), false))
            );
            assert!(cuts[1].1 && cuts[1].0.starts_with("012345"), "{cuts:?}");
        }
    }

    #[test]
    fn the_whole_grammar() {
        let s = "\u{feff}: hello\r\n:\r\n\r\nretry: 1500\r\nid\r\nfoo: bar\r\ndata:one\r\n\r\n\
                 event: ping\ndata: not json\n\nid: 7\rdata: {\rdata:  \"a\"\rdata: }\r\r\
                 id: 8\ndata:\n\ndata: unfinished";
        assert_eq!(
            parse(&[s.as_bytes()]),
            [
                Sse::Comment,
                Sse::Comment,
                Sse::Retry(1500),
                event("message", "one", None),
                event("ping", "not json", None),
                event("message", "{\n \"a\"\n}", Some("7")),
                Sse::Primed { id: "8".into() },
            ]
        );
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            parts in proptest::collection::vec(prop_oneof![
                Just("data: x\n"), Just("data:é日\r\n"), Just("\r"), Just("\n"), Just("\r\n"), Just("id: 1\n"), Just(":c\r"), Just("event: e\n"), Just("retry: 10\n")], 0..30),
            cuts in proptest::collection::vec(0usize..300, 0..10)) {
            let data = parts.concat().into_bytes();
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(data.len())).collect();
            at.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for c in at { chunks.push(&data[from..c]); from = c; }
            chunks.push(&data[from..]);
            prop_assert_eq!(parse(&chunks), parse(&[&data]));
        }
    }
}
