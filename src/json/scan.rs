//! A JSON token scanner: every token with its offset and its raw text, for views, hashes and diffs.
//!
//! Owns the grammar and nothing else. It keeps no tree and never recurses, so depth is no limit; it
//! must not decode numbers or rewrite spelling. It is as tolerant as Python's `json.loads`: `NaN`,
//! `Infinity` and `-Infinity` are numbers, lone surrogate escapes are strings.

use std::borrow::Cow;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// A string that names a member; its raw text holds the quotes.
    Key,
    /// A string value; its raw text holds the quotes.
    String,
    /// A number as it was spelled, or one of `NaN`, `Infinity`, `-Infinity`.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// One token. Commas, colons and white space are not tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Byte offset of its first character.
    pub at: usize,
    /// Its text as it was sent.
    pub raw: &'a str,
    /// How many containers it lies in; a bracket has the depth of its container's parent.
    pub depth: usize,
}

/// Where and why the text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct ScanError {
    /// Byte offset of the offending character (the text's length when it ended too early).
    pub at: usize,
    /// What is wrong, e.g. `expected ',' or '}'`.
    pub what: &'static str,
}

#[derive(Clone, Copy)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
    End,
    Failed,
}

/// Iterates over the tokens of one JSON text. After an error it yields nothing more.
pub struct Scanner<'a> {
    text: &'a str,
    pos: usize,
    /// `true` for an object.
    open: Vec<bool>,
    expect: Expect,
}

impl<'a> Scanner<'a> {
    /// Scans `text`, which must hold exactly one JSON value.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, pos: 0, open: Vec::new(), expect: Expect::Value }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, ScanError> {
        Err(ScanError { at: self.pos, what })
    }

    fn step(&mut self) -> Result<Option<Token<'a>>, ScanError> {
        self.skip_space();
        if let Expect::CommaOrEnd = self.expect {
            let object = self.open.last() == Some(&true);
            if self.byte() == Some(b',') {
                self.pos += 1;
                self.skip_space();
                self.expect = if object { Expect::Key } else { Expect::Value };
            } else {
                return match (self.byte(), object) {
                    (Some(b'}'), true) | (Some(b']'), false) => Ok(Some(self.close())),
                    (_, true) => self.fail("expected ',' or '}'"),
                    (_, false) => self.fail("expected ',' or ']'"),
                };
            }
        }
        match (self.expect, self.byte()) {
            (Expect::Failed, _) | (Expect::End, None) => Ok(None),
            (Expect::End, Some(_)) => self.fail("more text after the value"),
            (Expect::KeyOrEnd, Some(b'}')) | (Expect::ValueOrEnd, Some(b']')) => {
                Ok(Some(self.close()))
            }
            (Expect::Key | Expect::KeyOrEnd, Some(b'"')) => self.key().map(Some),
            (Expect::Key | Expect::KeyOrEnd, _) => self.fail("expected a member name"),
            _ => self.value().map(Some),
        }
    }

    fn token(&self, kind: Kind, at: usize, depth: usize) -> Token<'a> {
        Token { kind, at, raw: self.text.get(at..self.pos).unwrap_or_default(), depth }
    }

    fn close(&mut self) -> Token<'a> {
        let kind = if self.open.pop() == Some(true) { Kind::ObjectEnd } else { Kind::ArrayEnd };
        let at = self.pos;
        self.pos += 1;
        self.after_value();
        self.token(kind, at, self.open.len())
    }

    fn after_value(&mut self) {
        self.expect = if self.open.is_empty() { Expect::End } else { Expect::CommaOrEnd };
    }

    fn key(&mut self) -> Result<Token<'a>, ScanError> {
        let at = self.pos;
        self.string()?;
        let key = self.token(Kind::Key, at, self.open.len());
        self.skip_space();
        if self.byte() != Some(b':') {
            return self.fail("expected ':'");
        }
        self.pos += 1;
        self.expect = Expect::Value;
        Ok(key)
    }

    fn value(&mut self) -> Result<Token<'a>, ScanError> {
        let (at, depth) = (self.pos, self.open.len());
        let kind = match self.byte() {
            Some(open @ (b'{' | b'[')) => {
                self.pos += 1;
                let object = open == b'{';
                self.open.push(object);
                self.expect = if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
                let kind = if object { Kind::ObjectStart } else { Kind::ArrayStart };
                return Ok(self.token(kind, at, depth));
            }
            Some(b'"') => {
                self.string()?;
                Kind::String
            }
            Some(b't') => self.literal("true", Kind::True)?,
            Some(b'f') => self.literal("false", Kind::False)?,
            Some(b'n') => self.literal("null", Kind::Null)?,
            Some(b'N') => self.literal("NaN", Kind::Number)?,
            Some(b'I') => self.literal("Infinity", Kind::Number)?,
            Some(b'-') if self.text.as_bytes().get(at + 1) == Some(&b'I') => {
                self.literal("-Infinity", Kind::Number)?
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Kind::Number
            }
            _ => return self.fail("expected a value"),
        };
        self.after_value();
        Ok(self.token(kind, at, depth))
    }

    fn literal(&mut self, word: &str, kind: Kind) -> Result<Kind, ScanError> {
        if !self.text.get(self.pos..).is_some_and(|t| t.starts_with(word)) {
            return self.fail("expected a value");
        }
        self.pos += word.len();
        Ok(kind)
    }

    fn digits(&mut self) -> usize {
        let from = self.pos;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        self.pos - from
    }

    fn number(&mut self) -> Result<(), ScanError> {
        if self.byte() == Some(b'-') {
            self.pos += 1;
        }
        if self.byte() == Some(b'0') {
            self.pos += 1;
        } else if self.digits() == 0 {
            return self.fail("expected a digit");
        }
        if self.byte() == Some(b'.') {
            self.pos += 1;
            if self.digits() == 0 {
                return self.fail("expected a digit");
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            if self.digits() == 0 {
                return self.fail("expected a digit");
            }
        }
        Ok(())
    }

    /// Moves past a string; its first quote is at the current position.
    fn string(&mut self) -> Result<(), ScanError> {
        self.pos += 1;
        loop {
            match self.byte() {
                None => return self.fail("the string has no end"),
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.pos += 1;
                    match self.byte() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.pos += 1;
                        }
                        Some(b'u') => {
                            self.pos += 1;
                            for _ in 0..4 {
                                if !self.byte().is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return self.fail("expected four hex digits");
                                }
                                self.pos += 1;
                            }
                        }
                        _ => return self.fail("unknown escape"),
                    }
                }
                Some(0..=0x1f) => return self.fail("control character in a string"),
                Some(_) => self.pos += 1,
            }
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Result<Token<'a>, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.expect = Expect::Failed;
        }
        step.transpose()
    }
}

/// The decoded bytes of a [`Kind::Key`] or [`Kind::String`] token: UTF-8, but a lone surrogate escape
/// becomes the three bytes of its code point (WTF-8), so that equal strings stay equal and byte order
/// stays code-point order. `std::str::from_utf8` tells whether there is one.
pub fn unescape(raw: &str) -> Cow<'_, [u8]> {
    let inner = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or(raw).as_bytes();
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut i = 0;
    while let Some(&b) = inner.get(i) {
        i += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let escape = inner.get(i).copied().unwrap_or(b'\\');
        i += 1;
        match escape {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let mut code = hex4(inner, i);
                i += 4;
                let pair = (0xd800..0xdc00).contains(&code) && inner.get(i..i + 2) == Some(b"\\u");
                let low = if pair { hex4(inner, i + 2) } else { 0 };
                if (0xdc00..0xe000).contains(&low) {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    i += 6;
                }
                push_code_point(&mut out, code);
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

fn hex4(bytes: &[u8], at: usize) -> u32 {
    let digit = |b: &u8| char::from(*b).to_digit(16).unwrap_or(0);
    bytes.get(at..at + 4).map_or(0, |d| d.iter().fold(0, |n, b| n * 16 + digit(b)))
}

fn push_code_point(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        // A lone surrogate.
        None => out.extend_from_slice(&[
            0xe0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3f) as u8,
            0x80 | (code & 0x3f) as u8,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Result<Vec<(Kind, &str, usize)>, ScanError> {
        Scanner::new(text).map(|t| t.map(|t| (t.kind, t.raw, t.depth))).collect()
    }

    #[test]
    fn tokens_keep_spelling_and_depth() {
        use Kind::*;
        assert_eq!(
            kinds(" {\"a\" : [1.0e+2,-0, NaN,-Infinity], \"\\u0061\":{} , \"b\":null}\n").unwrap(),
            vec![
                (ObjectStart, "{", 0),
                (Key, "\"a\"", 1),
                (ArrayStart, "[", 1),
                (Number, "1.0e+2", 2),
                (Number, "-0", 2),
                (Number, "NaN", 2),
                (Number, "-Infinity", 2),
                (ArrayEnd, "]", 1),
                (Key, "\"\\u0061\"", 1),
                (ObjectStart, "{", 1),
                (ObjectEnd, "}", 1),
                (Key, "\"b\"", 1),
                (Null, "null", 1),
                (ObjectEnd, "}", 0),
            ]
        );
    }

    #[test]
    fn wrong_text_is_refused_where_it_goes_wrong() {
        for (text, at) in [
            ("", 0),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("{a:1}", 1),
            ("{\"a\" 1}", 5),
            ("[1 2]", 3),
            ("[1}", 2),
            ("{\"a\":1]", 6),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("\"a", 2),
            ("\"\\x\"", 2),
            ("\"\\u12g4\"", 5),
            ("\"\n\"", 1),
            ("tru", 0),
            ("-Inf", 0),
            ("[", 1),
            ("1 x", 2),
            ("]", 0),
        ] {
            assert_eq!(kinds(text).map_err(|e| e.at), Err(at), "{text:?}");
        }
    }

    #[test]
    fn depth_is_no_limit() {
        let n = 300_000;
        let deep = "[".repeat(n) + &"]".repeat(n);
        assert_eq!(Scanner::new(&deep).filter(|t| t.is_ok()).count(), 2 * n);
    }

    #[test]
    fn strings_decode_and_lone_surrogates_stay_apart() {
        assert_eq!(&*unescape(r#""a\n\u00e9\ud83d\ude00\/""#), "a\né😀/".as_bytes());
        assert_eq!(&*unescape(r#""\ud83dx""#), b"\xed\xa0\xbdx");
        assert_eq!(&*unescape(r#""\ud83d\u0041""#), b"\xed\xa0\xbdA");
        assert!(
            unescape(r#""\udfff""#) < unescape(r#""\ue000""#),
            "byte order is code-point order"
        );
        assert!(matches!(unescape("\"plain\""), Cow::Borrowed(b"plain")));
    }
}
