//! Redaction inside JSON: the value under a secret name or path, and credentials in strings. Every other byte
//! stays as it was sent. JSON that broke off is read as far as it goes.

use super::{MASK, Rules};
use crate::json::raw::quote;
use crate::json::scan::{Kind, Scanner, unescape};
use std::borrow::Cow;

/// JSON in a string in JSON …: how far that is followed.
const NESTED: u32 = 4;

/// What of JSON that broke off could not be read.
struct Rest {
    /// Where it begins.
    at: usize,
    /// It is the value of a secret.
    secret: bool,
}

struct Open {
    object: bool,
    index: usize,
    key: String,
}

impl Rules {
    /// `text` as JSON; `None` when it is none.
    pub(super) fn json<'a>(&self, text: &'a str) -> Option<(Cow<'a, str>, u32)> {
        let start = text.trim_start_matches(['\u{feff}', ' ', '\t']);
        if !start.starts_with(['{', '[']) {
            return None;
        }
        match self.nested(text, NESTED)? {
            (_, _, Some(_)) => None,
            (text, n, None) => Some((text, n)),
        }
    }

    /// JSON that ends too early or goes wrong after it had a member: the members by their names, and what can't be
    /// read, from there to its end, by the strictest rules. `None` when it is no JSON at all.
    pub(super) fn broken<'a>(&self, bytes: &'a [u8]) -> Option<(Cow<'a, [u8]>, u32)> {
        // Cut in the middle of a letter, or damaged.
        let good = match std::str::from_utf8(bytes) {
            Ok(t) => t,
            Err(e) => std::str::from_utf8(bytes.get(..e.valid_up_to())?).ok()?,
        };
        if !good.trim_start_matches(['\u{feff}', ' ', '\t']).starts_with(['{', '[']) {
            return None;
        }
        let (text, mut n, rest) = self.nested(good, NESTED)?;
        let Rest { at, secret } = match rest {
            Some(rest) => rest,
            // The JSON was whole: what follows is no part of it.
            None => Rest { at: good.len(), secret: false },
        };
        let mut out = text.into_owned().into_bytes();
        let rest = bytes.get(at..)?;
        if secret || self.touches(rest) {
            n += u32::from(!rest.is_empty() && rest != MASK.as_bytes());
            if !rest.is_empty() {
                out.extend_from_slice(MASK.as_bytes());
            }
        } else {
            let (rest, more) = self.prose(rest);
            n += more;
            out.extend_from_slice(&rest);
        }
        Some(if n == 0 { (Cow::Borrowed(bytes), 0) } else { (Cow::Owned(out), n) })
    }

    /// Where it can't be read to its end: what was read of it, and the rest.
    fn nested<'a>(&self, text: &'a str, depth: u32) -> Option<(Cow<'a, str>, u32, Option<Rest>)> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let skipped = text.len() - body.len();
        let mut rest = None;
        let mut has_member = false;
        // Up to here it was read.
        let mut read = 0;
        let mut cuts: Vec<(usize, usize, Cow<'static, str>)> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        // A container whose whole text is being replaced: where it began, and its depth.
        let mut hiding: Option<(usize, usize)> = None;
        let mut secret_key: Option<String> = None;
        for token in Scanner::new(body) {
            let t = match token {
                Ok(t) => t,
                // A line that begins with a bracket is not JSON yet.
                Err(_) if !has_member => return None,
                Err(_) => {
                    let from = hiding.map_or(read, |(from, _)| from);
                    let secret = hiding.is_some() || secret_key.is_some();
                    rest = Some(Rest { at: skipped + from, secret });
                    break;
                }
            };
            read = t.at + t.raw.len();
            if let Some((from, depth)) = hiding {
                if matches!(t.kind, Kind::ObjectEnd | Kind::ArrayEnd) && t.depth == depth {
                    cuts.push((from, t.at + t.raw.len(), Cow::Borrowed("\"[redacted]\"")));
                    hiding = None;
                }
                continue;
            }
            if t.kind == Kind::Key {
                let key = String::from_utf8_lossy(&unescape(t.raw)).into_owned();
                has_member = true;
                secret_key = self.is_secret_name(&key).then(|| key.clone());
                if let Some(o) = open.last_mut() {
                    o.key = key;
                }
                continue;
            }
            if matches!(t.kind, Kind::ObjectEnd | Kind::ArrayEnd) {
                open.pop();
                continue;
            }
            if let Some(o) = open.last_mut().filter(|o| !o.object) {
                o.index += 1;
            }
            let by_path = self.path_matches(&open);
            let by_name = secret_key.take();
            let secret = by_path || by_name.is_some();
            match t.kind {
                Kind::ObjectStart | Kind::ArrayStart if secret => hiding = Some((t.at, t.depth)),
                Kind::ObjectStart | Kind::ArrayStart => open.push(Open {
                    object: t.kind == Kind::ObjectStart,
                    index: 0,
                    key: String::new(),
                }),
                Kind::String => {
                    let is_secret =
                        |k: &String| self.is_secret(k, &String::from_utf8_lossy(&unescape(t.raw)));
                    let secret = by_path || by_name.as_ref().is_some_and(is_secret);
                    if let Some(new) = self.string(t.raw, secret, depth) {
                        cuts.push((t.at, t.at + t.raw.len(), new.into()));
                    }
                }
                Kind::Number
                    if by_path || by_name.as_ref().is_some_and(|k| self.is_secret_number(k)) =>
                {
                    cuts.push((t.at, t.at + t.raw.len(), Cow::Borrowed("\"[redacted]\"")));
                }
                // null, true and false hide nothing.
                _ => {}
            }
        }
        let end = rest.as_ref().map_or(text.len(), |r| r.at);
        if cuts.is_empty() {
            return Some((Cow::Borrowed(text.get(..end)?), 0, rest));
        }
        let mut out = String::with_capacity(text.len());
        out.push_str(&text[..skipped]);
        let mut from = 0;
        for (start, end, new) in &cuts {
            out.push_str(&body[from..*start]);
            out.push_str(new);
            from = *end;
        }
        out.push_str(text.get(skipped + from..end)?);
        Some((Cow::Owned(out), u32::try_from(cuts.len()).unwrap_or(u32::MAX), rest))
    }

    /// The new spelling of a string token; `None` when it stays.
    fn string(&self, token: &str, secret: bool, depth: u32) -> Option<String> {
        if token.len() <= 2 {
            return None;
        }
        if secret {
            return (token.get(1..token.len() - 1) != Some(MASK)).then(|| quote(MASK));
        }
        let decoded = unescape(token);
        // A lone surrogate can't be written again as it was; what holds one is looked at as bytes only.
        let text = String::from_utf8_lossy(&decoded);
        if depth > 0
            && text.starts_with(['{', '['])
            && let Some((Cow::Owned(inner), _, None)) = self.nested(&text, depth - 1)
        {
            return Some(quote(&self.text(&inner).0));
        }
        match self.text(&text) {
            (Cow::Owned(new), n) if n > 0 => Some(quote(&new)),
            _ => None,
        }
    }

    fn path_matches(&self, open: &[Open]) -> bool {
        self.paths.iter().any(|path| {
            path.len() == open.len()
                && path.iter().zip(open).all(|(want, o)| {
                    want == "*"
                        || if o.object {
                            *want == o.key
                        } else {
                            want.parse().is_ok_and(|i: usize| i + 1 == o.index)
                        }
                })
        })
    }
}
