//! Redaction inside JSON: the value under a secret name or path, and credentials in strings. Every other byte
//! stays as it was sent.

use super::{MASK, Rules};
use crate::json::raw::quote;
use crate::json::scan::{Kind, Scanner, unescape};
use std::borrow::Cow;

/// JSON in a string in JSON …: how far that is followed.
const NESTED: u32 = 4;

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
        self.nested(text, NESTED)
    }

    fn nested<'a>(&self, text: &'a str, depth: u32) -> Option<(Cow<'a, str>, u32)> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let skipped = text.len() - body.len();
        let mut cuts: Vec<(usize, usize, Cow<'static, str>)> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        // A container whose whole text is being replaced: where it began, and its depth.
        let mut hiding: Option<(usize, usize)> = None;
        let mut secret_key = false;
        for token in Scanner::new(body) {
            let t = token.ok()?;
            if let Some((from, depth)) = hiding {
                if matches!(t.kind, Kind::ObjectEnd | Kind::ArrayEnd) && t.depth == depth {
                    cuts.push((from, t.at + t.raw.len(), Cow::Borrowed("\"[redacted]\"")));
                    hiding = None;
                }
                continue;
            }
            if t.kind == Kind::Key {
                let key = String::from_utf8_lossy(&unescape(t.raw)).into_owned();
                secret_key = self.is_secret_name(&key);
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
            let secret = std::mem::take(&mut secret_key) || self.path_matches(&open);
            match t.kind {
                Kind::ObjectStart | Kind::ArrayStart if secret => hiding = Some((t.at, t.depth)),
                Kind::ObjectStart | Kind::ArrayStart => open.push(Open {
                    object: t.kind == Kind::ObjectStart,
                    index: 0,
                    key: String::new(),
                }),
                Kind::String => {
                    if let Some(new) = self.string(t.raw, secret, depth) {
                        cuts.push((t.at, t.at + t.raw.len(), new.into()));
                    }
                }
                Kind::Number if secret => {
                    cuts.push((t.at, t.at + t.raw.len(), Cow::Borrowed("\"[redacted]\"")));
                }
                // null, true and false hide nothing.
                _ => {}
            }
        }
        if cuts.is_empty() {
            return Some((Cow::Borrowed(text), 0));
        }
        let mut out = String::with_capacity(text.len());
        out.push_str(&text[..skipped]);
        let mut from = 0;
        for (start, end, new) in &cuts {
            out.push_str(&body[from..*start]);
            out.push_str(new);
            from = *end;
        }
        out.push_str(&body[from..]);
        Some((Cow::Owned(out), u32::try_from(cuts.len()).unwrap_or(u32::MAX)))
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
            && let Some((Cow::Owned(inner), _)) = self.nested(&text, depth - 1)
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
