//! What in an answer speaks against its own "done": deeper down, in lists, in prose, in embedded resources, under other
//! spellings of the same names. Only asked of an answer that says "done"; finds no success anywhere.

use super::says::{Word, is_true};
use crate::json::raw::{self, Object};

/// So deep an answer is read; what lies deeper is not known.
const DEPTH: usize = 32;
/// The longest text that is looked through, in bytes; what a longer one says is not known.
const TEXT: usize = 4 << 20;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Deeper {
    /// It says that something failed.
    pub failed: bool,
    /// Something has a status that does not mean done, or was not read.
    pub doubted: bool,
}

/// Of a whole result.
pub(super) fn of_result(result: &Object<'_>) -> Deeper {
    let mut found = Deeper::default();
    for item in result.get("content").and_then(raw::items).unwrap_or_default() {
        let texts = [raw::get(item, "text"), raw::get_path(item, &["resource", "text"])];
        for text in texts.into_iter().flatten() {
            match raw::as_str(text) {
                Some(text) if text.len() <= TEXT => found.text(&text, DEPTH),
                _ => found.doubted = true,
            }
        }
    }
    if let Some(structured) = result.get("structuredContent") {
        found.value(structured, DEPTH);
    }
    for name in ["status", "state", "success", "ok", "error", "errors"] {
        if let Some(value) = result.get(name) {
            found.member(name, value, DEPTH);
        }
    }
    found
}

impl Deeper {
    fn value(&mut self, value: &str, depth: usize) {
        if self.failed {
            return;
        }
        let value = value.trim();
        let Some(deeper) = depth.checked_sub(1) else {
            self.doubted |= value.starts_with(['{', '[']);
            return;
        };
        if value.starts_with('{') {
            for (name, inner) in raw::members(value).unwrap_or_default() {
                self.member(&name, inner, deeper);
            }
        } else if value.starts_with('[') {
            raw::items(value).unwrap_or_default().into_iter().for_each(|i| self.value(i, deeper));
        } else if let Some(text) =
            raw::as_str(value).filter(|t| t.trim_start().starts_with(['{', '[']))
        {
            // JSON as text.
            self.value(&text, deeper);
        }
    }

    fn member(&mut self, name: &str, value: &str, depth: usize) {
        let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
        match plain.to_ascii_lowercase().as_str() {
            _ if raw::is_null(value) => {}
            "status" | "state" if !value.trim_start().starts_with(['{', '[']) => {
                match raw::as_str(value).map(|w| Word::of(&w)) {
                    Some(Word::Done) => {}
                    Some(Word::Failed) => self.failed = true,
                    _ => self.doubted = true,
                }
            }
            "success" | "ok" if !value.trim_start().starts_with(['{', '[']) => {
                self.failed |= !is_true(value);
            }
            "error" | "errors" | "iserror" | "failed" | "failure" | "errormessage"
            | "errorcode" => {
                self.failed |= !is_nothing(value);
            }
            _ => self.value(value, depth),
        }
    }

    /// Prose says that something failed by its first word, or by the JSON in it.
    fn text(&mut self, text: &str, depth: usize) {
        let trimmed = text.trim();
        if trimmed.starts_with(['{', '['])
            && (raw::members(trimmed).is_some() || raw::items(trimmed).is_some())
        {
            return self.value(trimmed, depth);
        }
        let word: String = trimmed.chars().take_while(|c| c.is_alphabetic() || *c == '_').collect();
        self.failed |= Word::of(&word) == Word::Failed;
        for (open, close) in [('{', '}'), ('[', ']')] {
            let Some(inner) = trimmed.find(open).zip(trimmed.rfind(close)) else { continue };
            if let Some(inner) = trimmed.get(inner.0..=inner.1) {
                self.value(inner, depth);
            }
        }
    }
}

/// Null, false, zero, or empty.
fn is_nothing(value: &str) -> bool {
    matches!(value.trim(), "null" | "false" | "0" | "\"\"" | "[]" | "{}")
        || raw::items(value).is_some_and(|i| i.is_empty())
}
