//! What is replaced before a line is written or shown: values of secret headers, JSON members, command line
//! words, and what looks like a credential in any text.
//!
//! Replaces, never drops: `[redacted]` stands where the value stood, and the line counts how many. JSON stays
//! JSON with every other byte as it was. Rules can only add to the built-in ones.

mod argv;
mod block;
mod event;
mod form;
mod json;
mod masked;
mod names;
mod part;
mod script;

pub use argv::{known_values, secrets_of_environment};
pub use block::KeyBlock;
pub use masked::{is_hidden, masked};

use super::entry::{Entry, What};
use crate::json::raw::quote;
use crate::urls;
use bytes::Bytes;
use event::is_name;
use names::{HEADERS_OF_LINES, NAMED, PATTERNS, bare, names_open_token};
use regex::bytes::{Captures, Regex, RegexSet};
use std::borrow::Cow;

/// What stands in place of a value.
pub const MASK: &str = "[redacted]";

/// What is always hidden, in words.
pub const WHAT_IS_HIDDEN: &str = "values of Authorization, cookies, session ids and other credential headers; of JSON members, \
command line options and URL parameters named like a password, secret, token or key; of environment variables with such names \
and passwords and long mixed path segments in URLs wherever they appear; bearer tokens, private keys and well-known key formats in any text. Paths are no secrets";

/// What a person adds.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// Names of JSON members, headers and options.
    pub keys: Vec<String>,
    /// Paths from the root of a frame, `params.arguments.card`; `*` stands for any one step.
    pub paths: Vec<String>,
    /// Regular expressions; with a group, only the group is replaced.
    pub patterns: Vec<String>,
    /// Values to look for anywhere (of the environment, of the command line).
    pub values: Vec<String>,
}

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Rules {
    keys: Vec<String>,
    paths: Vec<Vec<String>>,
    patterns: Vec<Regex>,
    any: RegexSet,
    own_patterns: usize,
    values: Vec<String>,
    /// Spellings of the values that a piece of a line may begin with.
    spellings: Vec<Vec<u8>>,
}

impl Rules {
    /// The built-in rules and `extra`.
    ///
    /// # Errors
    /// In words, when a pattern is no regular expression, or something would hide nothing.
    pub fn new(extra: Extra) -> Result<Rules, String> {
        if let Some(k) = extra.keys.iter().find(|k| bare(k).is_empty()) {
            return Err(format!("the key {k:?} hides nothing: it is no name"));
        }
        if let Some(p) = extra.paths.iter().find(|p| path(p).is_empty()) {
            return Err(format!("the path {p:?} hides nothing: it has no steps"));
        }
        let own_patterns = extra.patterns.len();
        let mut texts: Vec<String> = PATTERNS.iter().map(|p| (*p).to_owned()).collect();
        texts.extend(extra.patterns);
        // Longest first, so that a value that holds another one is replaced whole. Short values would hit
        // ordinary words.
        let mut values: Vec<String> = extra.values.into_iter().filter(|v| v.len() >= 6).collect();
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.dedup();
        let spellings: Vec<Vec<u8>> = values.iter().flat_map(|v| part::spellings(v)).collect();
        texts.extend(spellings.iter().map(|v| regex::escape(&String::from_utf8_lossy(v))));
        let compile = |t: &String| {
            Regex::new(t).map_err(|e| format!("the pattern {t:?} is no regular expression: {e}"))
        };
        let patterns = texts.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let own = || texts.iter().zip(&patterns).skip(PATTERNS.len()).take(own_patterns);
        if let Some((t, _)) = own().find(|(_, p)| p.is_match(b"")) {
            return Err(format!("the pattern {t:?} matches the empty text, so it hides no value"));
        }
        let any = RegexSet::new(&texts).map_err(|e| format!("the patterns are too much: {e}"))?;
        Ok(Rules {
            spellings,
            keys: extra.keys.iter().map(|k| bare(k)).filter(|k| !k.is_empty()).collect(),
            paths: extra.paths.iter().map(|p| path(p)).collect(),
            patterns,
            any,
            own_patterns,
            values,
        })
    }

    /// What the header of a recording says of them, as JSON.
    pub fn statement(&self) -> String {
        let list = |l: &[String]| l.iter().map(|s| quote(s)).collect::<Vec<_>>().join(",");
        let paths: Vec<String> = self.paths.iter().map(|p| p.join(".")).collect();
        format!(
            r#"{{"statement":{},"mask":"{MASK}","keys":[{}],"paths":[{}],"patterns":{},"values":{}}}"#,
            quote(&format!(
                "replaced on write: {WHAT_IS_HIDDEN}. Values of the environment are not recorded"
            )),
            list(&self.keys),
            list(&paths),
            self.own_patterns,
            self.values.len()
        )
    }

    /// A header's value as it may be written.
    pub fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if self.is_secret_header(name) && !value.is_empty() {
            return Cow::Borrowed(MASK);
        }
        self.text(value).0
    }

    /// Any text, by patterns and known values; how many were replaced.
    pub fn text<'a>(&self, text: &'a str) -> (Cow<'a, str>, u32) {
        match self.bytes(text.as_bytes()) {
            (Cow::Borrowed(_), n) => (Cow::Borrowed(text), n),
            (Cow::Owned(b), n) => (Cow::Owned(String::from_utf8_lossy(&b).into_owned()), n),
        }
    }

    fn bytes<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u32) {
        let mut out = Cow::Borrowed(bytes);
        let mut n = 0;
        for i in self.any.matches(bytes).iter() {
            let Some(p) = self.patterns.get(i) else { continue };
            if i == form::URLS {
                n += without_keys(p, &mut out);
            } else {
                n += replace(p, &mut out, |_, value| form::fits(i, value));
            }
        }
        (out, n)
    }

    /// A line that is no JSON (stderr, noise): `NAME=value` too.
    fn prose<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u32) {
        let (mut out, mut n) = self.bytes(bytes);
        for p in [&HEADERS_OF_LINES, &NAMED].into_iter().filter_map(|p| p.as_ref()) {
            n += replace(p, &mut out, |found, _| !names_open_token(found));
        }
        (out, n)
    }

    /// Any line: JSON by its members (of JSON that broke off, as far as it goes), anything else as prose. How many
    /// values were replaced.
    pub fn line<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u32) {
        match std::str::from_utf8(bytes).ok().and_then(|t| self.json(t)) {
            Some((Cow::Borrowed(_), n)) => (Cow::Borrowed(bytes), n),
            Some((Cow::Owned(t), n)) => (Cow::Owned(t.into_bytes()), n),
            None => self.broken(bytes).unwrap_or_else(|| self.prose(bytes)),
        }
    }

    /// Hides what an entry must not say.
    pub fn entry(&self, e: &mut Entry) {
        let mut n = 0;
        if let Some(raw) = e.raw() {
            let (new, count) = match &e.what {
                // A piece is no JSON; `recorder::Pieces` has cut it where that matters.
                What::Part { .. } => self.prose(raw),
                _ => self.line(raw),
            };
            n += count;
            if let Cow::Owned(new) = new {
                e.set_raw(Bytes::from(new));
            }
        }
        for (name, value) in &mut e.wire.headers {
            if let Cow::Owned(new) = self.header(name, value) {
                *value = new;
                n += 1;
            } else if self.is_secret_header(name) && !value.is_empty() && !is_name(value) {
                *value = MASK.into();
                n += 1;
            }
        }
        n += self.strings(&mut e.what);
        e.wire.redacted = e.wire.redacted.saturating_add(n);
    }
}

/// Replaces what `p` finds where `fits`, asked for all of it and for the value in it, says so.
fn replace(p: &Regex, text: &mut Cow<'_, [u8]>, fits: impl Fn(&[u8], &[u8]) -> bool) -> u32 {
    let mut n = 0;
    let new = p.replace_all(text, |c: &Captures<'_>| {
        let Some(whole) = c.get(0) else { return Vec::new() };
        let value = c.get(1).unwrap_or(whole);
        let mut out = whole.as_bytes().to_vec();
        let at = value.start() - whole.start()..value.end() - whole.start();
        if value.as_bytes() != MASK.as_bytes() && fits(whole.as_bytes(), value.as_bytes()) {
            n += 1;
            out.splice(at, MASK.bytes());
        }
        out
    });
    if n > 0 {
        *text = Cow::Owned(new.into_owned());
    }
    n
}

/// Hides the keys in the paths of the URLs that `p` finds.
fn without_keys(p: &Regex, text: &mut Cow<'_, [u8]>) -> u32 {
    let mut n = 0;
    let new = p.replace_all(text, |c: &Captures<'_>| {
        let (url, keys) = urls::without_keys(c.get(0).map_or(&[], |m| m.as_bytes()), MASK);
        n += keys;
        url
    });
    if n > 0 {
        *text = Cow::Owned(new.into_owned());
    }
    n
}

fn path(text: &str) -> Vec<String> {
    let text = text.strip_prefix("$.").unwrap_or(text);
    text.split(['.', '[', ']']).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
