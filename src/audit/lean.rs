//! JSON walked once, without a tree: members of an object as raw spans, leaves with the name they stand under, and
//! strings decoded only where somebody looks.
//!
//! Made for large traces: spans are found with `memchr`, nothing recurses, nothing is allocated for what is passed
//! over. What is inside a skipped container is not checked but for its brackets and strings; whoever needs to know
//! that a text is JSON reads it with `json::raw`.

use crate::json::scan::unescape;
use std::borrow::Cow;

/// A place in a text.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Cursor<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn take(&mut self, b: u8) -> Option<()> {
        self.space();
        (self.byte()? == b).then(|| self.pos += 1)
    }

    /// Past a string whose first quote is here; its raw text with the quotes.
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let from = self.pos;
        let mut at = from + 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
            if bytes.get(at) == Some(&b'"') {
                self.pos = at + 1;
                return self.text.get(from..self.pos);
            }
            at += 2;
        }
    }

    /// Past a number or a word.
    fn plain(&mut self) -> Option<&'a str> {
        let from = self.pos;
        while !matches!(self.byte(), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
        {
            self.pos += 1;
        }
        let word = self.text.get(from..self.pos)?;
        let good = matches!(word.as_bytes().first()?, b'-' | b'0'..=b'9')
            || matches!(word, "true" | "false" | "null" | "NaN" | "Infinity");
        good.then_some(word)
    }

    /// Past any value.
    fn value(&mut self) -> Option<&'a str> {
        self.space();
        let from = self.pos;
        match self.byte()? {
            b'"' => return self.string(),
            b'{' | b'[' => {}
            _ => return self.plain(),
        }
        let mut depth = 0usize;
        loop {
            match self.byte()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.pos += 1;
            if depth == 0 {
                return self.text.get(from..self.pos);
            }
        }
    }
}

/// The members of an object in the order they were sent, names without quotes and not decoded. `None` when the text is
/// no whole object.
pub fn members<'a>(text: &'a str, mut each: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let mut c = Cursor { text, pos: 0 };
    c.take(b'{')?;
    c.space();
    if c.byte() == Some(b'}') {
        c.pos += 1;
    } else {
        loop {
            c.space();
            if c.byte()? != b'"' {
                return None;
            }
            let key = c.string()?;
            c.take(b':')?;
            let value = c.value()?;
            each(key.get(1..key.len() - 1)?, value);
            c.space();
            match c.byte()? {
                b',' => c.pos += 1,
                b'}' => {
                    c.pos += 1;
                    break;
                }
                _ => return None,
            }
        }
    }
    c.space();
    (c.pos == text.len()).then_some(())
}

/// One member; of a repeated name the last.
pub fn get<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut found = None;
    members(text, |k, v| {
        if k == name {
            found = Some(v);
        }
    })?;
    found
}

/// A raw string decoded (lone surrogates become U+FFFD); `None` for any other value.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    Some(Cow::Owned(match unescape(raw) {
        Cow::Owned(bytes) => String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }))
}

/// A value that holds no other one, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// The nearest member name above it, not decoded; items of a list have their list's.
    pub name: &'a str,
    /// As it was sent; an empty container is a leaf too.
    pub raw: &'a str,
    /// Stands for the path to it: names, and places in lists.
    pub path: u64,
}

struct Open<'a> {
    object: bool,
    name: &'a str,
    path: u64,
    next: u64,
}

/// Mixes two numbers; what is equal stays equal.
pub fn mix(a: u64, b: u64) -> u64 {
    let x = (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// A number for some bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    let mut rest = bytes;
    while let Some((word, more)) = rest.split_first_chunk::<8>() {
        h = mix(h, u64::from_le_bytes(*word));
        rest = more;
    }
    let mut last = [0; 8];
    if let Some(to) = last.get_mut(..rest.len()) {
        to.copy_from_slice(rest);
    }
    mix(h, u64::from_le_bytes(last))
}

/// All leaves of a JSON text, in order. `None` as soon as it is no JSON; what came before has been told.
pub fn leaves<'a>(text: &'a str, mut each: impl FnMut(Leaf<'a>)) -> Option<()> {
    let mut c = Cursor { text, pos: 0 };
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut pending: Option<&'a str> = None;
    loop {
        c.space();
        let (name, path) = match open.last_mut() {
            None => ("", 1),
            Some(o) if o.object => {
                let key = pending.take()?;
                (key, mix(o.path, hash(key.as_bytes())))
            }
            Some(o) => {
                o.next += 1;
                (o.name, mix(o.path, o.next))
            }
        };
        let b = c.byte()?;
        let mut opened = false;
        if matches!(b, b'{' | b'[') {
            c.pos += 1;
            c.space();
            let object = b == b'{';
            if c.byte()? == if object { b'}' } else { b']' } {
                c.pos += 1;
                each(Leaf { name, raw: if object { "{}" } else { "[]" }, path });
            } else {
                open.push(Open { object, name, path, next: 0 });
                opened = true;
            }
        } else if b == b'"' {
            each(Leaf { name, raw: c.string()?, path });
        } else {
            each(Leaf { name, raw: c.plain()?, path });
        }
        // What follows: a comma, or ends.
        if !opened {
            loop {
                c.space();
                let Some(o) = open.last() else { return (c.pos == text.len()).then_some(()) };
                match (c.byte()?, o.object) {
                    (b',', _) => {
                        c.pos += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        c.pos += 1;
                        open.pop();
                    }
                    _ => return None,
                }
            }
        }
        if open.last().is_some_and(|o| o.object) {
            c.space();
            if c.byte()? != b'"' {
                return None;
            }
            let key = c.string()?;
            c.take(b':')?;
            pending = key.get(1..key.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut out = Vec::new();
        leaves(text, |l| out.push((l.name, l.raw)))?;
        Some(out)
    }

    #[test]
    fn members_are_spans_of_the_text() {
        let mut out = Vec::new();
        let text = r#" {"a" : {"x":"}\""}, "b":[1,"]"],"c":-1.5e3,"a":null } "#;
        members(text, |k, v| out.push((k, v))).unwrap();
        assert_eq!(
            out,
            [("a", r#"{"x":"}\""}"#), ("b", r#"[1,"]"]"#), ("c", "-1.5e3"), ("a", "null")]
        );
        assert_eq!(get(text, "a"), Some("null"));
        for torn in
            ["{", r#"{"a""#, r#"{"a":1"#, r#"{"a":"x}"#, r#"{"a":1} x"#, "[1]", r#"{"a":[1}"#]
        {
            // Brackets that don't match are told by whoever looks inside.
            assert!(members(torn, |_, _| {}).is_none() || torn.contains("[1}"), "{torn}");
        }
    }

    #[test]
    fn leaves_have_the_name_of_their_list_and_paths_that_know_places() {
        assert_eq!(
            flat(r#"{"ids":["a","b"],"n":{"id":7,"none":{},"l":[[1]]}}"#).unwrap(),
            [("ids", "\"a\""), ("ids", "\"b\""), ("id", "7"), ("none", "{}"), ("l", "1")]
        );
        let sum = |t: &str| {
            let mut sum = 0u64;
            leaves(t, |l| sum = sum.wrapping_add(mix(l.path, hash(l.raw.as_bytes())))).unwrap();
            sum
        };
        // The order of members is nothing, that of items is.
        assert_eq!(sum(r#"{"a":1,"b":{"c":2}}"#), sum(r#"{"b":{ "c":2 },"a":1}"#));
        assert_ne!(sum("[1,2]"), sum("[2,1]"));
        assert_ne!(sum(r#"{"a":1}"#), sum(r#"{"a":{"a":1}}"#));
        for bad in ["", "{", "[1,]", r#"{"a":1,}"#, "[1 2]", "[1}", "x", "{}x"] {
            assert_eq!(flat(bad), None, "{bad}");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(flat(&deep).unwrap().len(), 1);
    }

    #[test]
    fn strings_are_decoded_where_there_is_something_to_decode() {
        assert!(matches!(text(r#""plain 日""#), Some(Cow::Borrowed("plain 日"))));
        assert_eq!(text(r#""a\n\u00e9\"""#).as_deref(), Some("a\né\""));
        assert_eq!(text("1"), None);
        assert!(text(r#""\ud800""#).is_some_and(|t| t.contains('\u{fffd}')));
    }
}
