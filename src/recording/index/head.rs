//! The head of a line as redial itself writes it, read without parsing the rest. Anything else is `None`, and
//! read the slow way.

use super::KINDS;
use crate::record::entry::fast_instant;
use crate::record::summary::Rpc;
use crate::time::Time;

/// What stands in a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub seq: u64,
    pub mono_us: u64,
    pub at: Time,
    pub generation: u32,
    pub kind: u8,
    pub rpc: u8,
    pub name: &'a str,
    /// `name` is a tool's.
    pub is_tool: bool,
    /// The JSON-RPC id as it is spelled; empty when there is none.
    pub id: &'a str,
    pub exchange: Option<u64>,
}

/// The place of a kind's word.
pub(super) fn kind(word: &str) -> u8 {
    let i = KINDS.iter().position(|k| *k == word).unwrap_or(KINDS.len() - 1);
    u8::try_from(i).unwrap_or(u8::MAX)
}

/// From 1; 0 is none.
pub(super) fn rpc(r: Rpc) -> u8 {
    match r {
        Rpc::Request => 1,
        Rpc::Notification => 2,
        Rpc::Result => 3,
        Rpc::ToolError => 4,
        Rpc::Error => 5,
        Rpc::Malformed => 6,
    }
}

/// Reads a head. A line without its end is not read: it may be torn anywhere.
pub(super) fn read(line: &[u8]) -> Option<Head<'_>> {
    if line.last() != Some(&b'}') {
        return None;
    }
    let mut c = Cursor(line);
    c.expect(b"{\"seq\":")?;
    let seq = c.number()?;
    c.expect(b",\"at\":\"")?;
    let at = fast_instant(c.take(27)?)?;
    c.expect(b"\",\"mono\":")?;
    let mono_us = c.number()?;
    c.expect(b",\"gen\":")?;
    let generation = u32::try_from(c.number()?).ok()?;
    c.expect(b",\"kind\":\"")?;
    let word = c.until_quote()?;
    let mut head = Head {
        seq,
        mono_us,
        at,
        generation,
        kind: kind(word),
        rpc: 0,
        name: "",
        is_tool: false,
        id: "",
        exchange: None,
    };
    while c.expect(b",\"").is_some() {
        let key = c.until_quote()?;
        c.expect(b":")?;
        match key {
            "exchange" => head.exchange = Some(c.number()?),
            "id" if c.0.first() == Some(&b'"') => {
                let whole = c.0;
                c.expect(b"\"")?;
                c.until_quote()?;
                head.id = std::str::from_utf8(&whole[..whole.len() - c.0.len()]).ok()?;
            }
            "id" => head.id = c.plain()?,
            "call" => drop(c.plain()?),
            "rpc" | "method" | "tool" | "purpose" => {
                c.expect(b"\"")?;
                let value = c.until_quote()?;
                match key {
                    "rpc" => head.rpc = rpc(Rpc::from_word(value)?),
                    // An escape would have to be decoded.
                    "method" | "tool" if value.contains('\\') => return None,
                    "method" => head.name = value,
                    "tool" => (head.name, head.is_tool) = (value, true),
                    _ => {}
                }
            }
            _ => break,
        }
    }
    // What came may be compressed, and then says more than its head.
    let came = matches!(word, "http" | "received") && head.rpc == 0;
    if came && memchr::memmem::find(line, b"\"b64\":\"").is_some() {
        return None;
    }
    Some(head)
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn expect(&mut self, what: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(what)?;
        Some(())
    }
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    fn number(&mut self) -> Option<u64> {
        let n = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = self.take(n)?;
        if n == 0 || n > 19 {
            return None;
        }
        Some(digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')))
    }
    /// Up to the quote that ends a string; escapes stay.
    fn until_quote(&mut self) -> Option<&'a str> {
        let mut i = 0;
        loop {
            match self.0.get(i)? {
                b'"' => break,
                b'\\' => i += 2,
                _ => i += 1,
            }
        }
        let text = std::str::from_utf8(self.take(i)?).ok()?;
        self.expect(b"\"")?;
        Some(text)
    }
    /// A number or a word.
    fn plain(&mut self) -> Option<&'a str> {
        let n = self.0.iter().take_while(|b| !matches!(b, b',' | b'}')).count();
        std::str::from_utf8(self.take(n)?).ok()
    }
}
