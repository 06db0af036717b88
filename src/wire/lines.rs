//! Splits a byte stream into lines, whatever the chunks (MCP stdio transport: one message a line).
//!
//! Works on bytes, never on decoded chunks, so that a character cut between two reads survives.

use bytes::Bytes;

/// One line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The bytes, without `\n` or `\r\n`.
    pub raw: Bytes,
    /// Bytes dropped because the line was over the limit.
    pub cut: u64,
}

/// A line splitter with a limit on what one line may cost.
#[derive(Debug)]
pub struct Lines {
    buf: Vec<u8>,
    cut: u64,
    limit: usize,
    at_start: bool,
    /// What comes belongs to a line that was given up.
    skips: bool,
}

impl Lines {
    /// A splitter that keeps at most `limit` bytes of a line; the rest is counted, and the next newline
    /// brings it back in step.
    pub fn new(limit: usize) -> Lines {
        Lines { buf: Vec::new(), cut: 0, limit, at_start: true, skips: false }
    }

    /// Takes a chunk and hands every line it completes to `out`. Blank lines are passed over; a UTF-8 byte
    /// order mark at the very start of the stream is stripped.
    pub fn feed(&mut self, mut chunk: &[u8], mut out: impl FnMut(Line)) {
        while let Some(nl) = chunk.iter().position(|b| *b == b'\n') {
            self.push(&chunk[..nl]);
            chunk = &chunk[nl + 1..];
            if !std::mem::take(&mut self.skips)
                && let Some(line) = self.take()
            {
                out(line);
            }
        }
        self.push(chunk);
    }

    /// The last line, when the stream ends without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        self.take()
    }

    /// Whether the line that is being read is over the limit.
    pub fn is_over(&self) -> bool {
        self.cut > 0
    }

    /// What came of the line that is being read, as if it ended here. The rest of it is passed over.
    pub fn give_up(&mut self) -> Option<Line> {
        self.skips = true;
        self.take()
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.skips {
            return;
        }
        let room = self.limit.saturating_sub(self.buf.len());
        let keep = bytes.len().min(room);
        self.buf.extend_from_slice(&bytes[..keep]);
        self.cut += (bytes.len() - keep) as u64;
    }

    fn take(&mut self) -> Option<Line> {
        let cut = std::mem::take(&mut self.cut);
        let mut raw = std::mem::take(&mut self.buf);
        if std::mem::take(&mut self.at_start) && raw.starts_with(b"\xef\xbb\xbf") {
            raw.drain(..3);
        }
        if raw.last() == Some(&b'\r') {
            raw.pop();
        }
        let blank = cut == 0 && raw.iter().all(u8::is_ascii_whitespace);
        (!blank).then(|| Line { raw: raw.into(), cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_given_up_and_the_next_one_is_whole() {
        let (mut lines, mut out) = (Lines::new(4), Vec::new());
        lines.feed(b"abcdef", |l| out.push((l.raw, l.cut)));
        assert!(lines.is_over() && out.is_empty());
        out.extend(lines.give_up().map(|l| (l.raw, l.cut)));
        assert!(!lines.is_over());
        lines.feed(b"ghi", |l| out.push((l.raw, l.cut)));
        lines.feed(b"jkl\nxy\n", |l| out.push((l.raw, l.cut)));
        assert_eq!(out, [(Bytes::from("abcd"), 2), (Bytes::from("xy"), 0)]);
    }
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
        let (mut lines, mut out) = (Lines::new(limit), Vec::new());
        for c in chunks {
            lines.feed(c, |l| out.push(l));
        }
        out.extend(lines.finish());
        out
    }

    #[test]
    fn bom_crlf_blank_lines_and_a_last_line_without_an_end() {
        let got = split(&[b"\xef\xbb\xbf{}\r\n\n  \n\xe6\x97", b"\xa5\nlast"], 100);
        let texts: Vec<_> =
            got.iter().map(|l| String::from_utf8_lossy(&l.raw).into_owned()).collect();
        assert_eq!(texts, ["{}", "日", "last"]);
    }

    #[test]
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        let got = split(&[b"0123456789\nok\n"], 4);
        assert_eq!(got[0], Line { raw: Bytes::from_static(b"0123"), cut: 6 });
        assert_eq!(got[1], Line { raw: Bytes::from_static(b"ok"), cut: 0 });
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(data in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
                                          cuts in proptest::collection::vec(0usize..200, 0..8), limit in 1usize..50) {
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(data.len())).collect();
            at.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for c in at { chunks.push(&data[from..c]); from = c; }
            chunks.push(&data[from..]);
            prop_assert_eq!(split(&chunks, limit), split(&[&data], limit));
        }
    }
}
