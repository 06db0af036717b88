//! What may be kept of a piece of a line: a piece ends anywhere, also inside a secret.

use super::Rules;
use crate::json::raw::quote;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// How much of the earlier pieces is looked at again: longer than a name and its sign.
const OVERLAP: usize = 256;

/// A URL that may go on with a password.
static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"://[^\s/?#"'@:]*:[^\s/?#"'@]*$"#).ok());

impl Rules {
    /// How many bytes of earlier pieces [`Rules::touches`] and [`Rules::held_back`] have to see.
    pub fn overlap(&self) -> usize {
        self.spellings.iter().map(Vec::len).max().unwrap_or(0).max(OVERLAP)
    }

    /// Whether a piece of a line has anything in it that may be, or announce, a secret. What a path or a person's
    /// pattern means can't be told of a piece.
    pub fn touches(&self, piece: &[u8]) -> bool {
        let text = String::from_utf8_lossy(piece);
        let mut names = text.split(['"', '\\', '\'', ' ', '=', ':', ',', '{', '?', '&']);
        !self.paths.is_empty()
            || self.own_patterns > 0
            || names.any(|w| !w.is_empty() && self.is_secret_name(w))
            || spelled_out(&text)
            || self.spellings.iter().any(|v| memchr::memmem::find(piece, v).is_some())
            || self.prose(piece).1 > 0
    }

    /// So many bytes at the end of a piece may be the begin of something that is a secret as a whole: its last
    /// word, and what a known value begins with.
    pub fn held_back(&self, piece: &[u8]) -> usize {
        let ends = |b: &u8| b.is_ascii_whitespace() || b"\"'\\,;<>()[]{}".contains(b);
        let word = piece.iter().rev().take_while(|b| !ends(b)).count();
        let begun = self
            .spellings
            .iter()
            .map(|v| (word + 1..v.len()).rev().find(|n| piece.ends_with(&v[..*n])).unwrap_or(0));
        let url = URL.as_ref().and_then(|u| u.find(piece)).map_or(0, |m| m.len());
        begun.max().unwrap_or(0).max(word).max(url)
    }
}

/// The spellings of a value in a stream: as it is, and in JSON.
pub(super) fn spellings(value: &str) -> Vec<Vec<u8>> {
    let quoted = quote(value);
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    let ascii: String = inner
        .chars()
        .flat_map(|c| {
            let mut units = [0; 2];
            match c.is_ascii() {
                true => vec![c.to_string()],
                false => c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}")).collect(),
            }
        })
        .collect();
    let mut all = vec![value.as_bytes().to_vec(), inner.as_bytes().to_vec(), ascii.into_bytes()];
    all.dedup();
    all
}

/// Letters that are written as `\u0061` hide a name.
fn spelled_out(text: &str) -> bool {
    text.match_indices("\\u00").any(|(at, m)| {
        matches!(text.as_bytes().get(at + m.len()), Some(b'3'..=b'7'))
            && !text[at + m.len()..].to_ascii_lowercase().starts_with("3c")
            && !text[at + m.len()..].to_ascii_lowercase().starts_with("3e")
    })
}
