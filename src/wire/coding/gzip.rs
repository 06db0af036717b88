//! gzip (RFC 1952), member by member: a body that ended in the middle, one whose checksum is another, and one with other
//! bytes behind its end are three things, and told apart.

use super::{Fault, inflate};
use flate2::{Crc, Decompress};

const CODING: &str = "gzip";
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// The longest header: names and comments have no other bound.
const HEADER: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Gzip {
    state: State,
    /// What came of a header or a trailer that isn't there yet.
    held: Vec<u8>,
    crc: Crc,
    /// Members that are over.
    members: u64,
}

#[derive(Default)]
enum State {
    #[default]
    Header,
    Body(Decompress),
    Trailer,
}

impl Gzip {
    pub fn feed(&mut self, mut input: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        loop {
            match &mut self.state {
                State::Header => {
                    self.held.extend_from_slice(input);
                    let Some(length) = self.header()? else { return Ok(out) };
                    let held = std::mem::take(&mut self.held);
                    self.state = State::Body(Decompress::new(false));
                    self.crc = Crc::new();
                    let rest =
                        self.body(held.get(length..).unwrap_or_default(), &mut out, limit)?;
                    self.held = rest.to_vec();
                    input = &[];
                }
                State::Body(_) => {
                    input = self.body(input, &mut out, limit)?;
                }
                State::Trailer => {
                    self.held.extend_from_slice(input);
                    input = &[];
                    let Some((trailer, rest)) = self.held.split_first_chunk::<8>() else {
                        return Ok(out);
                    };
                    let [a, b, c, d, e, f, g, h] = *trailer;
                    let (sum, amount) =
                        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                    if (sum, amount) != (self.crc.sum(), self.crc.amount()) {
                        return Err(Fault::Checksum(CODING));
                    }
                    self.held = rest.to_vec();
                    self.members += 1;
                    self.state = State::Header;
                }
            }
            if matches!(self.state, State::Body(_)) && input.is_empty() {
                return Ok(out);
            }
        }
    }

    /// Undoes what belongs to the body, and gives back what comes behind it.
    fn body<'a>(
        &mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<&'a [u8], Fault> {
        let State::Body(inner) = &mut self.state else { return Ok(input) };
        let before = out.len();
        let (rest, over) = inflate(inner, input, out, limit, CODING)?;
        self.crc.update(out.get(before..).unwrap_or_default());
        if over {
            self.state = State::Trailer;
        }
        Ok(rest)
    }

    /// How long the header is that is held; `None`: not all of it is there.
    fn header(&self) -> Result<Option<usize>, Fault> {
        let held = self.held.as_slice();
        if held.iter().zip(MAGIC).any(|(a, b)| *a != b) {
            return Err(match self.members {
                0 => Fault::Damaged(CODING),
                _ => Fault::Behind(CODING),
            });
        }
        if held.len() > HEADER {
            return Err(Fault::Damaged(CODING));
        }
        let Some(flags) = held.get(3).filter(|_| held.len() >= 10) else { return Ok(None) };
        let mut at = 10;
        if flags & 4 != 0 {
            let Some([a, b]) = held.get(at..at + 2) else { return Ok(None) };
            at += 2 + usize::from(u16::from_le_bytes([*a, *b]));
        }
        // A name, then a comment, each up to a zero.
        for flag in [8, 16] {
            if flags & flag != 0 {
                let Some(end) = held.get(at..).and_then(|h| memchr::memchr(0, h)) else {
                    return Ok(None);
                };
                at += end + 1;
            }
        }
        at += if flags & 2 != 0 { 2 } else { 0 };
        Ok((held.len() >= at).then_some(at))
    }

    pub fn finish(&self) -> Result<Vec<u8>, Fault> {
        match (&self.state, self.members, self.held.is_empty()) {
            (State::Header, 1.., true) => Ok(Vec::new()),
            // A byte or two that begin as a further member does, and are none.
            (State::Header, 1.., false) if self.held.len() < MAGIC.len() => {
                Err(Fault::Behind(CODING))
            }
            _ => Err(Fault::Short(CODING)),
        }
    }
}
