//! Content codings of HTTP bodies (RFC 9110, section 8.4): gzip, deflate, br and zstd, undone piece by piece, and
//! bounded. A coding that is not known is named, never guessed.
//!
//! Pushed, not pulled: a stream of events is read as it comes, so each piece gives at once what it holds. (zstd's
//! reader keeps what later blocks may refer to: there an event may be seen only when its frame ends.)

mod gzip;

use self::gzip::Gzip;
use crate::size::size;
use brotli_decompressor::DecompressorWriter;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, Write};

/// More codings than this on one body are an attack.
const MOST: usize = 4;
/// How much is made of one piece at a time.
const PIECE: usize = 64 << 10;
/// A zstd frame may ask for so much memory (RFC 9659 wants 8 MB).
const ZSTD_WINDOW: u64 = 16 << 20;

/// Why a body can't be undone any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The header names a coding that is not known here.
    Unknown(String),
    /// It is damaged.
    Damaged(&'static str),
    /// It ended in the middle.
    Short(&'static str),
    /// It is whole, and its checksum or its length is another.
    Checksum(&'static str),
    /// It is whole, and something else stands behind its end.
    Behind(&'static str),
    /// What comes out of one piece is over the limit: a bomb, or nearly one.
    TooMuch(&'static str, u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unknown(coding) => {
                write!(f, "Content-Encoding: {coding}, which redial can't read")
            }
            Fault::Damaged(coding) => {
                write!(f, "it is said to be {coding}, and is damaged as such")
            }
            Fault::Short(coding) => write!(f, "its {coding} ends in the middle"),
            Fault::Checksum(coding) => {
                write!(
                    f,
                    "its {coding} has an end, and its checksum is another: bytes of it were altered"
                )
            }
            Fault::Behind(coding) => {
                write!(f, "its {coding} has an end, and other bytes stand behind that")
            }
            Fault::TooMuch(coding, limit) => write!(
                f,
                "undoing its {coding} gives more than {} at once, which is redial's limit",
                size(*limit)
            ),
        }
    }
}

/// Undoes the codings of one body, the last one that was put on first.
pub struct Decoder {
    steps: Vec<Step>,
    limit: usize,
    seen: bool,
}

impl Decoder {
    /// By the value of `Content-Encoding`; `None` where nothing was coded. `limit` bounds what one piece may give.
    ///
    /// # Errors
    /// A coding that is not known.
    pub fn new(header: &str, limit: usize) -> Result<Option<Decoder>, Fault> {
        let unknown = || Fault::Unknown(header.trim().chars().take(80).collect());
        let mut steps = Vec::new();
        for name in header.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let step = match name.to_ascii_lowercase().as_str() {
                "identity" => continue,
                "gzip" | "x-gzip" => Step::Gzip(Box::default()),
                "deflate" => Step::Deflate(Deflate::default()),
                "br" => Step::Brotli(Box::new(DecompressorWriter::new(Sink::default(), PIECE))),
                "zstd" => Step::Zstd(Box::default()),
                _ => return Err(unknown()),
            };
            steps.push(step);
        }
        if steps.len() > MOST {
            return Err(unknown());
        }
        steps.reverse();
        Ok((!steps.is_empty()).then_some(Decoder { steps, limit, seen: false }))
    }

    /// What a piece gives.
    ///
    /// # Errors
    /// When the body is not what it is said to be.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<u8>, Fault> {
        self.seen |= !piece.is_empty();
        let mut bytes = piece.to_vec();
        for step in &mut self.steps {
            bytes = step.feed(&bytes, self.limit)?;
        }
        Ok(bytes)
    }

    /// What is still to come at the end of the body. No body at all is whole.
    ///
    /// # Errors
    /// When it ended in the middle.
    pub fn finish(&mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        if self.seen {
            for step in &mut self.steps {
                bytes = step.feed(&bytes, self.limit)?;
                bytes.extend(step.finish(self.limit)?);
            }
        }
        Ok(bytes)
    }
}

/// Takes what comes out, up to a limit.
#[derive(Default)]
struct Sink {
    out: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::Error::other("over the limit"));
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Step {
    Gzip(Box<Gzip>),
    Deflate(Deflate),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<Zstd>),
}

impl Step {
    fn feed(&mut self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
        match self {
            Step::Gzip(d) => d.feed(bytes, limit),
            Step::Brotli(d) => {
                d.get_mut().limit = limit;
                let done = match bytes.is_empty() {
                    true => Ok(()),
                    false => d.write_all(bytes).and_then(|()| d.flush()),
                };
                taken(done, d.get_mut(), "br")
            }
            Step::Deflate(d) => d.feed(bytes, limit),
            Step::Zstd(d) => d.feed(bytes, limit),
        }
    }

    fn finish(&mut self, limit: usize) -> Result<Vec<u8>, Fault> {
        match self {
            Step::Gzip(d) => d.finish(),
            Step::Brotli(d) => {
                let done = d.close();
                short(done, d.get_mut(), "br")
            }
            Step::Deflate(d) => match d.over {
                true => Ok(Vec::new()),
                false => Err(Fault::Short("deflate")),
            },
            Step::Zstd(d) => d.finish(limit),
        }
    }
}

fn taken(done: io::Result<()>, sink: &mut Sink, coding: &'static str) -> Result<Vec<u8>, Fault> {
    match done {
        _ if sink.full => Err(Fault::TooMuch(coding, sink.limit as u64)),
        Ok(()) => Ok(std::mem::take(&mut sink.out)),
        // It takes no more once it has come to its end.
        Err(e) if e.kind() == io::ErrorKind::WriteZero => Err(Fault::Behind(coding)),
        Err(_) => Err(Fault::Damaged(coding)),
    }
}

fn short(done: io::Result<()>, sink: &mut Sink, coding: &'static str) -> Result<Vec<u8>, Fault> {
    taken(done, sink, coding).map_err(|f| match f {
        Fault::Damaged(coding) => Fault::Short(coding),
        other => other,
    })
}

/// `deflate` is zlib by the letter, and raw deflate from servers that took the name at its word.
#[derive(Default)]
struct Deflate {
    inner: Option<Decompress>,
    head: Vec<u8>,
    over: bool,
}

impl Deflate {
    fn feed(&mut self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
        let mut input = bytes;
        let held;
        if self.inner.is_none() {
            self.head.extend_from_slice(bytes);
            let [first, second, ..] = self.head.as_slice() else { return Ok(Vec::new()) };
            let check = u16::from_be_bytes([*first, *second]);
            let zlib = first & 0x0f == 8 && check.is_multiple_of(31);
            self.inner = Some(Decompress::new(zlib));
            held = std::mem::take(&mut self.head);
            input = &held;
        }
        let Some(d) = &mut self.inner else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        if !self.over {
            (input, self.over) = inflate(d, input, &mut out, limit, "deflate")?;
        }
        match self.over && !input.is_empty() {
            true => Err(Fault::Behind("deflate")),
            false => Ok(out),
        }
    }
}

/// Undoes what it can of a piece; what is behind the end, and whether that has come.
fn inflate<'a>(
    d: &mut Decompress,
    mut input: &'a [u8],
    out: &mut Vec<u8>,
    limit: usize,
    coding: &'static str,
) -> Result<(&'a [u8], bool), Fault> {
    let mut piece = vec![0; PIECE];
    loop {
        let (read, made) = (d.total_in(), d.total_out());
        let status = d.decompress(input, &mut piece, FlushDecompress::None);
        let status = status.map_err(|_| Fault::Damaged(coding))?;
        let used = usize::try_from(d.total_in() - read).unwrap_or(usize::MAX);
        let n = usize::try_from(d.total_out() - made).unwrap_or(usize::MAX);
        input = input.get(used..).unwrap_or_default();
        out.extend_from_slice(piece.get(..n).unwrap_or_default());
        if out.len() > limit {
            return Err(Fault::TooMuch(coding, limit as u64));
        }
        if status == Status::StreamEnd {
            return Ok((input, true));
        }
        if used == 0 && n == 0 {
            return Ok((input, false));
        }
    }
}

/// zstd, block by block: a block is undone once all of it is there.
#[derive(Default)]
struct Zstd {
    inner: Option<FrameDecoder>,
    waiting: Vec<u8>,
    checksum: usize,
    in_frame: bool,
    skip: usize,
    /// Frames that are over.
    frames: u64,
}

impl Zstd {
    fn feed(&mut self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
        self.waiting.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(used) = self.step(at, &mut out)? {
            at += used;
            if out.len() > limit {
                return Err(Fault::TooMuch("zstd", limit as u64));
            }
        }
        self.waiting.drain(..at.min(self.waiting.len()));
        Ok(out)
    }

    /// One header or block, when it is there; how many bytes that was.
    fn step(&mut self, at: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let damaged = || Fault::Damaged("zstd");
        let rest = self.waiting.get(at..).unwrap_or_default();
        if self.skip > 0 {
            let n = self.skip.min(rest.len());
            self.skip -= n;
            return Ok((n > 0).then_some(n));
        }
        if !self.in_frame {
            let [a, b, c, d, after @ ..] = rest else { return Ok(None) };
            let magic = u32::from_le_bytes([*a, *b, *c, *d]);
            if magic & 0xffff_fff0 == 0x184d_2a50 {
                let [a, b, c, d, ..] = after else { return Ok(None) };
                self.skip = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                return Ok(Some(8));
            }
            if magic != 0xfd2f_b528 {
                return Err(if self.frames > 0 { Fault::Behind("zstd") } else { damaged() });
            }
            let Some(descriptor) = after.first() else { return Ok(None) };
            let length = 5 + header_rest(*descriptor);
            let Some(mut header) = rest.get(..length) else { return Ok(None) };
            let decoder = self.inner.get_or_insert_with(FrameDecoder::new);
            decoder.set_max_window_size(ZSTD_WINDOW);
            decoder.reset(&mut header).map_err(|_| damaged())?;
            self.checksum = if descriptor & 4 == 0 { 0 } else { 4 };
            self.in_frame = true;
            return Ok(Some(length));
        }
        let [a, b, c, ..] = rest else { return Ok(None) };
        let header = u32::from_le_bytes([*a, *b, *c, 0]);
        let last = header & 1 == 1;
        // A block of one repeated byte holds that byte alone.
        let body = if header >> 1 & 3 == 1 { 1 } else { (header >> 3) as usize };
        let length = 3 + body + if last { self.checksum } else { 0 };
        let Some(mut block) = rest.get(..length) else { return Ok(None) };
        let Some(decoder) = &mut self.inner else { return Err(damaged()) };
        let one = BlockDecodingStrategy::UptoBlocks(1);
        decoder.decode_blocks(&mut block, one).map_err(|_| damaged())?;
        out.extend(decoder.collect().unwrap_or_default());
        self.in_frame = !last;
        self.frames += u64::from(last);
        Ok(Some(length))
    }

    fn finish(&mut self, limit: usize) -> Result<Vec<u8>, Fault> {
        let out = self.feed(&[], limit)?;
        match (self.waiting.is_empty(), self.in_frame || self.skip > 0 || self.frames == 0) {
            (true, false) => Ok(out),
            // Less than what tells another frame.
            (false, false) if self.waiting.len() < 4 => Err(Fault::Behind("zstd")),
            _ => Err(Fault::Short("zstd")),
        }
    }
}

/// Bytes of a frame's header behind its descriptor (RFC 8878, section 3.1.1.1).
fn header_rest(descriptor: u8) -> usize {
    let single = descriptor & 0x20 != 0;
    let window = usize::from(!single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    window + dictionary + content
}

#[cfg(test)]
mod tests;
