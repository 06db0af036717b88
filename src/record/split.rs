//! Splits a byte stream into lines so that every byte can be put together again: ends, blank lines and a byte
//! order mark are kept as facts beside the line. `wire::lines` is for readers that only want the messages.

use super::entry::End;
use bytes::Bytes;

/// A line with all that stood around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Its bytes, without end and mark.
    pub raw: Bytes,
    /// How it ended.
    pub end: End,
    /// A byte order mark stood before it (first line of a stream only).
    pub bom: bool,
    /// Bytes over the limit: they are only in the parts.
    pub cut: u64,
}

/// A splitter for one direction.
#[derive(Debug)]
pub struct Split {
    buf: Vec<u8>,
    cut: u64,
    limit: usize,
    at_start: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Split {
    /// Keeps at most `limit` bytes of a line.
    pub fn new(limit: usize) -> Split {
        Split { buf: Vec::new(), cut: 0, limit, at_start: true }
    }

    /// Takes a chunk, hands over each line it completes, and gives back the piece at its end that belongs to a
    /// line still to be completed.
    pub fn feed<'a>(&mut self, mut chunk: &'a [u8], mut out: impl FnMut(Whole)) -> &'a [u8] {
        while let Some(nl) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(nl);
            self.push(line);
            chunk = rest.get(1..).unwrap_or_default();
            out(self.take(true));
        }
        self.push(chunk);
        chunk
    }

    /// The last line, when the stream ends without a newline.
    pub fn finish(&mut self) -> Option<Whole> {
        (!self.buf.is_empty() || self.cut > 0).then(|| self.take(false))
    }

    fn push(&mut self, bytes: &[u8]) {
        let keep = bytes.len().min(self.limit.saturating_sub(self.buf.len()));
        self.buf.extend_from_slice(bytes.get(..keep).unwrap_or_default());
        self.cut += (bytes.len() - keep) as u64;
    }

    fn take(&mut self, newline: bool) -> Whole {
        let cut = std::mem::take(&mut self.cut);
        let mut raw = Bytes::from(std::mem::take(&mut self.buf));
        let bom = std::mem::take(&mut self.at_start) && raw.starts_with(BOM);
        if bom {
            raw = raw.slice(BOM.len()..);
        }
        // The carriage return of a cut line is in its parts.
        let crlf = newline && cut == 0 && raw.ends_with(b"\r");
        if crlf {
            raw.truncate(raw.len() - 1);
        }
        let end = match (newline, crlf) {
            (true, true) => End::CrLf,
            (true, false) => End::Lf,
            (false, _) => End::None,
        };
        Whole { raw, end, bom, cut }
    }
}

/// The bytes of lines as they were on the wire.
pub fn join<'a>(lines: impl IntoIterator<Item = &'a Whole>) -> Vec<u8> {
    let mut out = Vec::new();
    for l in lines {
        if l.bom {
            out.extend_from_slice(BOM);
        }
        out.extend_from_slice(&l.raw);
        out.extend_from_slice(l.end.bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_comes_back_at_any_chunking(
            bom in any::<bool>(),
            data in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let mut data = data;
            if bom {
                data.splice(0..0, BOM.iter().copied());
            }
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(data.len())).collect();
            at.extend([0, data.len()]);
            at.sort_unstable();
            let (mut split, mut lines, mut pieces) = (Split::new(1000), Vec::new(), 0);
            for w in at.windows(2) {
                pieces += split.feed(&data[w[0]..w[1]], |l| lines.push(l)).len();
            }
            lines.extend(split.finish());
            prop_assert!(pieces <= data.len());
            prop_assert_eq!(join(&lines), data);
        }
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_is_whole() {
        let (mut split, mut lines) = (Split::new(3), Vec::new());
        split.feed(b"12345\r\nab\r\n", |l| lines.push(l));
        assert_eq!((&lines[0].raw[..], lines[0].cut), (&b"123"[..], 3));
        assert_eq!((&lines[1].raw[..], lines[1].end, lines[1].cut), (&b"ab"[..], End::CrLf, 0));
    }
}
