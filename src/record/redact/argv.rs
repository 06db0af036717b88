//! Redaction of command lines, URLs and the environment.

use super::{MASK, Rules};
use std::borrow::Cow;

impl Rules {
    /// A command line: `--token X`, `--token=X`, `TOKEN=X`, `-H "Authorization: X"`, URLs, and what looks like
    /// a credential.
    pub fn argv(&self, words: &[String]) -> Vec<String> {
        let mut out = Vec::with_capacity(words.len());
        let mut next_is_secret = false;
        for word in words {
            if std::mem::take(&mut next_is_secret) && !word.starts_with('-') {
                out.push(MASK.to_owned());
                continue;
            }
            let name = word.trim_start_matches('-');
            let is_option = name.len() < word.len();
            next_is_secret = is_option && !name.contains('=') && self.is_secret_name(name);
            out.push(self.word(word));
        }
        out
    }

    fn word(&self, word: &str) -> String {
        if word.contains("://") {
            return self.url(word);
        }
        for sign in ['=', ':'] {
            if let Some((name, value)) = word.split_once(sign)
                && !name.contains(char::is_whitespace)
                && self.is_secret_header(name.trim_start_matches('-'))
                && !value.trim().is_empty()
            {
                let gap = if value.starts_with(' ') { " " } else { "" };
                return format!("{name}{sign}{gap}{MASK}");
            }
        }
        let line = self.line(word.as_bytes()).0;
        String::from_utf8_lossy(&line).into_owned()
    }

    /// The secrets of a command line, to be looked for everywhere else.
    pub fn secrets_of_argv(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (i, word) in words.iter().enumerate() {
            let name = word.trim_start_matches('-');
            if let Some((n, value)) = name.split_once('=') {
                if self.is_secret_name(n) {
                    found.push(value.to_owned());
                }
            } else if name.len() < word.len()
                && self.is_secret_name(name)
                && let Some(value) = words.get(i + 1).filter(|v| !v.starts_with('-'))
            {
                found.push(value.clone());
            }
        }
        found
    }

    /// A URL without password and without the values of secret parameters.
    pub fn url(&self, url: &str) -> String {
        let (front, query) = match url.split_once('?') {
            Some((f, q)) => (f, Some(q)),
            None => (url, None),
        };
        let mut out = match front.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                match rest.get(..end).and_then(|a| a.rfind('@')) {
                    Some(at) => format!("{scheme}://{MASK}{}", rest.get(at..).unwrap_or_default()),
                    None => front.to_owned(),
                }
            }
            None => front.to_owned(),
        };
        if let Some(query) = query {
            let parts = query.split('&').map(|p| match p.split_once('=') {
                Some((name, _))
                    if self.is_secret_header(name) || name == "key" || name == "code" =>
                {
                    Cow::Owned(format!("{name}={MASK}"))
                }
                _ => Cow::Borrowed(p),
            });
            out = format!("{out}?{}", parts.collect::<Vec<_>>().join("&"));
        }
        self.text(&out).0.into_owned()
    }
}

/// Values of environment variables with secret names: never recorded, and looked for in everything else.
pub fn secrets_of_environment(rules: &Rules) -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .filter(|(k, v)| v.len() >= 8 && (rules.is_secret_name(k) || bare_ends(k)))
        .map(|(_, v)| v)
        .collect()
}

/// `GITHUB_TOKEN`, `FOO_KEY`: in the environment an ending is enough.
fn bare_ends(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_TOKEN", "_KEY", "_PASS", "_PW", "_CREDENTIAL"].iter().any(|e| name.ends_with(e))
}
