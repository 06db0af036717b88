//! What is replaced before a line is written or shown: values of secret headers, JSON members, command line
//! words, and what looks like a credential in any text.
//!
//! Replaces, never drops: `[redacted]` stands where the value stood, and the line counts how many. JSON stays
//! JSON with every other byte as it was. Rules can only add to the built-in ones.

mod argv;
mod json;

pub use argv::secrets_of_environment;

use super::entry::{Entry, What};
use crate::journal::event::{Http, Kind, Transport};
use crate::json::raw::quote;
use bytes::Bytes;
use regex::bytes::{Captures, Regex, RegexSet};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands in place of a value.
pub const MASK: &str = "[redacted]";

/// What is always hidden, in words.
pub const WHAT_IS_HIDDEN: &str = "values of Authorization, cookies, session ids and other credential headers; of JSON members, \
command line options and URL parameters named like a password, secret, token or key; of environment variables with such names \
wherever they appear; bearer tokens, private keys and well-known key formats in any text";

/// Names (without case, `-`, `_`, `.`) whose value is a secret, and endings of such names.
const NAMES: [&str; 6] = ["token", "auth", "pwd", "pass", "jwt", "sessionid"];
const ENDINGS: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "apikey",
    "accesskey",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "idtoken",
    "bearertoken",
    "sessiontoken",
    "privatekey",
    "signingkey",
    "authorization",
    "cookie",
    "credentials",
];

/// Well-known forms. Where a pattern has a group, only the group is replaced.
const PATTERNS: [&str; 8] = [
    r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{8,})",
    r"(?i)\bbasic\s+([A-Za-z0-9+/]{12,}={0,2})",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
];

/// In lines that are no JSON: `password=…`, `API_KEY: …`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b[\w.-]*(?:password|passwd|secret|api[_-]?key|access[_-]?key|(?:access|refresh|auth|id|bearer|session)[_-]?token|[_-]token|private[_-]?key|authorization|cookie)["']?\s*[=:]\s*["']?(?:bearer\s+|basic\s+)?([^\s"',;]{3,})"#,
    )
    .ok()
});

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
}

impl Rules {
    /// The built-in rules and `extra`.
    ///
    /// # Errors
    /// In words, when a pattern is no regular expression.
    pub fn new(extra: Extra) -> Result<Rules, String> {
        let own_patterns = extra.patterns.len();
        let mut texts: Vec<String> = PATTERNS.iter().map(|p| (*p).to_owned()).collect();
        texts.extend(extra.patterns);
        // Longest first, so that a value that holds another one is replaced whole. Short values would hit
        // ordinary words.
        let mut values: Vec<String> = extra.values.into_iter().filter(|v| v.len() >= 6).collect();
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.dedup();
        texts.extend(values.iter().map(|v| regex::escape(v)));
        let compile = |t: &String| {
            Regex::new(t).map_err(|e| format!("the pattern {t:?} is no regular expression: {e}"))
        };
        let patterns = texts.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let any = RegexSet::new(&texts).map_err(|e| format!("the patterns are too much: {e}"))?;
        Ok(Rules {
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

    /// Whether a value under this name is a secret.
    pub fn is_secret_name(&self, name: &str) -> bool {
        // Longer names are prose.
        if name.len() > 80 {
            return false;
        }
        let b = bare(name);
        NAMES.contains(&b.as_str())
            || ENDINGS.iter().any(|e| b.ends_with(e))
            || self.keys.contains(&b)
    }

    /// Whether the value of this header is a secret.
    pub fn is_secret_header(&self, name: &str) -> bool {
        let b = bare(name);
        self.is_secret_name(name)
            || matches!(b.as_str(), "mcpsessionid" | "setcookie" | "proxyauthorization" | "xauth")
            || b.ends_with("token")
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
            if let Some(p) = self.patterns.get(i) {
                n += replace(p, &mut out);
            }
        }
        (out, n)
    }

    /// A line that is no JSON (stderr, noise): `NAME=value` too.
    fn prose<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u32) {
        let (mut out, mut n) = self.bytes(bytes);
        if let Some(named) = NAMED.as_ref() {
            n += replace(named, &mut out);
        }
        (out, n)
    }

    /// Any line: JSON by its members, anything else as prose. How many values were replaced.
    pub fn line<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u32) {
        match std::str::from_utf8(bytes).ok().and_then(|t| self.json(t)) {
            Some((Cow::Borrowed(_), n)) => (Cow::Borrowed(bytes), n),
            Some((Cow::Owned(t), n)) => (Cow::Owned(t.into_bytes()), n),
            None => self.prose(bytes),
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
        match &mut e.what {
            What::Event(Kind::Opened { transport: Transport::Stdio { command, .. } }) => {
                *command = self.argv(command);
            }
            What::Event(
                Kind::Opened { transport: Transport::Http { url } }
                | Kind::Http {
                    what: Http::Request { url, .. } | Http::Redirected { to: url, .. },
                    ..
                },
            ) => *url = self.url(url),
            What::Event(Kind::Http { what: Http::Status { session, location, .. }, .. }) => {
                if let Some(l) = location {
                    *l = self.url(l);
                }
                // A tap has given it a name already.
                if let Some(s) = session.as_mut().filter(|s| !is_name(s)) {
                    *s = MASK.into();
                }
            }
            What::Event(Kind::Note(crate::journal::Note::Text(t))) => {
                if let (Cow::Owned(new), count) = self.text(t) {
                    *t = new;
                    n += count;
                }
            }
            _ => {}
        }
        e.wire.redacted = e.wire.redacted.saturating_add(n);
    }

    /// Whether a piece of a line has anything in it that may be, or announce, a secret.
    pub fn touches(&self, piece: &[u8]) -> bool {
        let text = String::from_utf8_lossy(piece);
        let mut names = text.split(['"', '\\', '\'', ' ', '=', ':', ',', '{']);
        !self.paths.is_empty()
            || names.any(|w| !w.is_empty() && self.is_secret_name(w))
            || self.prose(piece).1 > 0
    }
}

/// A name that a tap gave a session id, or the mask.
fn is_name(value: &str) -> bool {
    value == MASK
        || value.strip_prefix("session-").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

fn replace(p: &Regex, text: &mut Cow<'_, [u8]>) -> u32 {
    let mut n = 0;
    let new = p.replace_all(text, |c: &Captures<'_>| {
        let Some(whole) = c.get(0) else { return Vec::new() };
        let value = c.get(1).unwrap_or(whole);
        let mut out = whole.as_bytes().to_vec();
        let at = value.start() - whole.start()..value.end() - whole.start();
        if value.as_bytes() != MASK.as_bytes() {
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

fn bare(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

fn path(text: &str) -> Vec<String> {
    let text = text.strip_prefix("$.").unwrap_or(text);
    text.split(['.', '[', ']']).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
