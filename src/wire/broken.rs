//! Answers that are no JSON: whose they would have been, and what is wrong with them. They are named, never read.
//!
//! A frame with `NaN` in it, one that was cut off, one with a log line before or behind it: a client that passes them
//! over waits for ever. Ids are found here; whether anybody waits for them is not known here.

use super::frame::Frame;
use super::id::Id;
use crate::json::scan::{Kind, Scanner};

/// How many places in a line are tried as the beginning of a whole answer, and in one that is longer than [`LONG`].
const TRIES: usize = 64;
const FEW: usize = 4;
const LONG: usize = 1 << 20;

/// Something in a text that should have been an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Ids that may be its own: where the text is damaged, more than one may stand in it.
    pub ids: Vec<Id>,
    /// What is wrong, in words.
    pub why: String,
    /// It is a whole answer inside of other text. A log may quote one that is sent properly as well.
    pub quoted: bool,
}

/// What in `text` should have been an answer; nothing for one that is JSON, or that never was meant to be any.
pub fn broken(text: &str) -> Vec<Broken> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let mut found = Vec::new();
    if let Some(narrow) = narrowed(trimmed) {
        let ids = ids(narrow.trim());
        let why = "it is UTF-16 or UTF-32, where UTF-8 belongs".to_owned();
        found.extend((!ids.is_empty()).then_some(Broken { ids, why, quoted: false }));
        return found;
    }
    let fault = fault(trimmed);
    if let (true, Some(fault)) = (trimmed.starts_with('{'), &fault) {
        let ids = match trimmed.starts_with("{'") {
            // What Python prints of a dictionary.
            true => ids(&trimmed.replace('\'', "\"")),
            false => ids(trimmed),
        };
        if !ids.is_empty() {
            found.push(Broken { ids, why: fault.clone(), quoted: false });
        }
    }
    if fault.is_some()
        && let Some(Within { at, is_last, id }) = whole_within(trimmed)
    {
        let sides = if is_last { "before" } else { "before and behind" };
        let why = format!("other text stands {sides} the answer, which begins at byte {at}");
        found.push(Broken { ids: vec![id], why, quoted: true });
    }
    found
}

/// What keeps a text from being JSON.
pub fn fault(text: &str) -> Option<String> {
    for token in Scanner::new(text) {
        match token {
            // Python writes these, and its reader alone takes them.
            Ok(t) if t.kind == Kind::Number && t.raw.ends_with(['N', 'y']) => {
                return Some(format!("{} at byte {}", t.raw, t.at));
            }
            Ok(_) => {}
            Err(e) => return Some(e.to_string()),
        }
    }
    None
}

/// The ids that an answer which is no JSON may have, its own first; none when it is no answer.
fn ids(text: &str) -> Vec<Id> {
    let mut is_id = false;
    let mut about = false;
    let mut own = None;
    let mut read_to = 0;
    for token in Scanner::new(text) {
        let Ok(t) = token else { break };
        read_to = t.at + t.raw.len();
        match (t.depth, t.kind) {
            (1, Kind::Key) => {
                is_id = t.raw == "\"id\"";
                about |= matches!(t.raw, "\"jsonrpc\"" | "\"result\"" | "\"error\"");
                if t.raw == "\"method\"" {
                    return Vec::new();
                }
            }
            (1, Kind::String | Kind::Number) if is_id => own = Some(Id::from_raw(t.raw)),
            _ => {}
        }
    }
    let rest = text.get(read_to..).unwrap_or_default();
    let says = |word: &str| rest.contains(word);
    about |= says("\"jsonrpc\"") || says("\"result\"") || says("\"error\"");
    match own {
        _ if !about => Vec::new(),
        Some(id) => vec![id],
        // Behind the damage nobody can tell how deep an id stands.
        None => {
            rest.match_indices("\"id\"").take(TRIES).filter_map(|(at, _)| id_at(rest, at)).collect()
        }
    }
}

fn id_at(text: &str, at: usize) -> Option<Id> {
    let value = text.get(at + 4..)?.trim_start().strip_prefix(':')?.trim_start();
    let mut tokens = Scanner::new(value);
    let first = tokens.next()?.ok()?;
    matches!(first.kind, Kind::String | Kind::Number).then(|| Id::from_raw(first.raw))
}

/// A whole answer inside of other text.
struct Within {
    at: usize,
    is_last: bool,
    id: Id,
}

/// A whole answer that begins later than at the text's first byte.
fn whole_within(text: &str) -> Option<Within> {
    let tries = if text.len() > LONG { FEW } else { TRIES };
    let starts = memchr::memchr_iter(b'{', text.as_bytes()).filter(|at| *at > 0).take(tries);
    starts.into_iter().find_map(|at| {
        let rest = text.get(at..)?;
        let value = rest.get(..value_end(rest)?)?;
        match Frame::parse(value) {
            Frame::Response { id: Some(id), .. } if id != Id::Null => {
                Some(Within { at, is_last: value.len() == rest.len(), id })
            }
            _ => None,
        }
    })
}

/// Where the object that a text begins with ends.
fn value_end(text: &str) -> Option<usize> {
    for token in Scanner::new(text) {
        let t = token.ok()?;
        if t.kind == Kind::ObjectEnd && t.depth == 0 {
            return Some(t.at + t.raw.len());
        }
    }
    None
}

/// A text of one byte a letter, where one of two or four was read as if it had one: every other is zero.
fn narrowed(text: &str) -> Option<String> {
    let wide = text.chars().take(8).filter(|c| *c == '\0').count() >= 3;
    wide.then(|| text.chars().filter(|c| !matches!(c, '\0' | '\u{feff}' | '\u{fffd}')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(String, bool, String)> {
        let ids = |b: &Broken| b.ids.iter().map(Id::to_json).collect::<Vec<_>>().join(" ");
        broken(text).iter().map(|b| (ids(b), b.quoted, b.why.clone())).collect()
    }

    #[test]
    fn what_should_have_been_an_answer_is_found_and_what_is_wrong_is_said() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"v":NaN}}"#, "7", false, "NaN at byte 38"),
            (r#"{"jsonrpc":"2.0","result":{"v":-Infinity},"id":"a"}"#, "\"a\"", false, "-Infinity"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"v":Infinity}}"#, "7", false, "Infinity at"),
            ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,", "7", false, "at byte 24"),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{}} done"#,
                "7",
                false,
                "more text after the value at byte 37",
            ),
            (r#"{"jsonrpc":"2.0","result":{"id":1,'x':2},"id":7}"#, "7", false, "member name"),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"message":"a	b"}}"#,
                "7",
                false,
                "control character",
            ),
            (r#"INFO sent {"jsonrpc":"2.0","id":7,"result":{}}"#, "7", true, "begins at byte 10"),
            ("\u{1b}[32m{\"id\":7,\"error\":{\"code\":1,\"message\":\"m\"}}", "7", true, "byte 5"),
            (
                "\u{1b}[32m{\"id\":7,\"result\":{\"a\":[{}]}}\u{1b}[0m",
                "7",
                true,
                "before and behind the answer, which begins at byte 5",
            ),
            ("{'jsonrpc': '2.0', 'id': 7, 'result': {'v': True}}", "7", false, "at byte 1"),
        ];
        for (text, id, quoted, why) in rows {
            let got = said(text);
            assert_eq!(got.len(), 1, "{text}: {got:?}");
            assert!(
                got[0].0 == id && got[0].1 == quoted && got[0].2.contains(why),
                "{text}: {got:?}"
            );
        }
        let two =
            said(r#"{"jsonrpc":"2.0","id":7,"result":{}}{"jsonrpc":"2.0","id":8,"result":{}}"#);
        let ids: Vec<_> = two.iter().map(|(id, ..)| id.as_str()).collect();
        assert_eq!(ids, ["7", "8"]);
    }

    #[test]
    fn an_answer_in_wide_letters_is_one_that_can_t_be_read() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"text":"é"}}"#;
        let wide = |text: &str, zeros: usize, first: bool| -> String {
            let bytes = text.chars().flat_map(|c| {
                let zeros = vec![0; zeros];
                let letter = vec![c as u8];
                if first { [letter, zeros].concat() } else { [zeros, letter].concat() }
            });
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        for text in [wide(answer, 1, true), wide(answer, 1, false), wide(answer, 3, true)] {
            for bom in ["", "\u{fffd}\u{fffd}"] {
                let got = said(&format!("{bom}{text}"));
                assert_eq!(got.len(), 1, "{text:?}");
                assert!(got[0].0 == "7" && !got[0].1 && got[0].2.contains("UTF-16"), "{got:?}");
            }
        }
        assert_eq!(said(&wide("DEBUG starting", 1, true)), []);
    }

    #[test]
    fn what_is_json_or_was_never_an_answer_is_left_alone() {
        for text in [
            r#"{"level":"info","id":7,"msg":"structured log"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"level":"info","id":7,"msg":"cut"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}"#,
            r#"DEBUG got {"jsonrpc":"2.0","id":7,"method":"tools/call"}"#,
            r#"["log",{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            "Server mode: STDIO",
            "{",
            "",
            "42",
        ] {
            assert_eq!(broken(text), [], "{text}");
        }
        // Bounded work, whatever comes.
        assert_eq!(broken(&"{".repeat(1 << 20)), []);
    }
}
