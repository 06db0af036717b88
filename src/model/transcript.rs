//! Objects with a given request_id in any text: JSON, JSON Lines, a transcript, an agent's log, at any
//! depth, and in JSON that is written inside strings or between other words.
//!
//! Finds; never decides which one is right (the hash does, in `arguments`).

use crate::json;
use crate::json::scan::{Kind, Scanner, unescape};
use crate::ledger::hash::REQUEST_ID;

/// JSON in a string in JSON in a string …: how far that is followed.
const NESTED: u32 = 4;

/// An object that holds the request_id as a direct member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its raw text.
    pub object: String,
    /// The tool, where the object is the arguments of a call that names one.
    pub tool: Option<String>,
    /// It is a member called `arguments`, `input`, `args` or `parameters`: how calls hold them.
    pub is_arguments: bool,
}

/// Every such object, in the order they end.
pub fn find(text: &str, request_id: &str) -> Vec<Found> {
    let mut out = Vec::new();
    search(text, request_id, NESTED, &mut out);
    out
}

/// An object or array that is still open.
struct Frame {
    at: usize,
    object: bool,
    /// The member it is in its parent.
    key: Option<String>,
    /// The value of its own member `name`.
    name: Option<String>,
    matches: bool,
    /// What was found as its direct `arguments`: positions in the output.
    calls: Vec<usize>,
}

fn search(text: &str, request_id: &str, nested: u32, out: &mut Vec<Found>) {
    let before = out.len();
    // Strings that hold JSON are tried only where nothing else was found: between words a quote may
    // stand alone, and would swallow what follows.
    for starts in [&['{', '['][..], &['{', '[', '"'][..]] {
        let mut from = 0;
        while let Some(i) = text.get(from..).and_then(|rest| rest.find(starts)) {
            let start = from + i;
            let rest = text.get(start..).unwrap_or_default();
            // Everything before the point of failure has been looked at, so the search stays linear.
            from = start + one_value(rest, request_id, nested, out).max(1);
        }
        if out.len() > before {
            return;
        }
    }
}

/// Reads one value and returns how far it got.
fn one_value(text: &str, request_id: &str, nested: u32, out: &mut Vec<Found>) -> usize {
    let mut open: Vec<Frame> = Vec::new();
    let mut key: Option<String> = None;
    for token in Scanner::new(text) {
        let token = match token {
            Ok(t) => t,
            Err(e) => return e.at,
        };
        let end = token.at + token.raw.len();
        match token.kind {
            Kind::Key => key = decoded(token.raw),
            Kind::ObjectStart | Kind::ArrayStart => open.push(Frame {
                at: token.at,
                object: token.kind == Kind::ObjectStart,
                key: key.take(),
                name: None,
                matches: false,
                calls: Vec::new(),
            }),
            Kind::ObjectEnd | Kind::ArrayEnd => {
                let Some(frame) = open.pop() else { return end };
                close(text, end, frame, open.last_mut(), out);
            }
            Kind::String => {
                let value = decoded(token.raw);
                let key = key.take();
                if let Some(frame) = open.last_mut().filter(|f| f.object) {
                    match key.as_deref() {
                        Some(REQUEST_ID) => frame.matches = value.as_deref() == Some(request_id),
                        Some("name" | "tool") => frame.name = value.clone(),
                        _ => {}
                    }
                }
                let before = out.len();
                if let Some(inner) = value.filter(|v| nested > 0 && v.contains(['{', '['])) {
                    search(&inner, request_id, nested - 1, out);
                }
                if holds_arguments(key.as_deref()) {
                    out[before..].iter_mut().for_each(|f| f.is_arguments = true);
                    if let Some(frame) = open.last_mut() {
                        frame.calls.extend(before..out.len());
                    }
                }
            }
            Kind::Number => {
                let named = key.take().is_some_and(|k| k == REQUEST_ID);
                if let Some(frame) = open.last_mut().filter(|f| f.object && named) {
                    frame.matches = json::key::text(token.raw).as_deref() == Some(request_id);
                }
            }
            _ => {
                // Any other value under the name: a repeated key's last value wins.
                let named = key.take().is_some_and(|k| k == REQUEST_ID);
                if let Some(frame) = open.last_mut().filter(|f| f.object && named) {
                    frame.matches = false;
                }
            }
        }
        if open.is_empty() {
            return end;
        }
    }
    text.len()
}

fn close(text: &str, end: usize, frame: Frame, parent: Option<&mut Frame>, out: &mut Vec<Found>) {
    for i in frame.calls {
        if let Some(found) = out.get_mut(i) {
            found.tool = found.tool.take().or_else(|| frame.name.clone());
        }
    }
    if !(frame.object && frame.matches) {
        return;
    }
    let is_arguments = holds_arguments(frame.key.as_deref());
    let object = text.get(frame.at..end).unwrap_or_default().to_owned();
    out.push(Found { object, tool: None, is_arguments });
    if let (true, Some(parent)) = (is_arguments, parent) {
        parent.calls.push(out.len() - 1);
    }
}

fn holds_arguments(key: Option<&str>) -> bool {
    matches!(key, Some("arguments" | "input" | "args" | "parameters"))
}

fn decoded(raw: &str) -> Option<String> {
    String::from_utf8(unescape(raw).into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::raw::quote;

    const ARGS: &str = r#"{"request_id": "r-1", "title": "a \"b\"", "n": 1.0}"#;

    fn calls(text: &str) -> Vec<(String, Option<String>)> {
        find(text, "r-1")
            .into_iter()
            .filter(|f| f.is_arguments)
            .map(|f| (f.object, f.tool))
            .collect()
    }

    #[test]
    fn calls_are_found_in_every_form_that_logs_have() {
        let rpc = format!(
            r#"{{"method":"tools/call","params":{{"arguments":{ARGS},"name":"create_ticket"}}}}"#
        );
        let block = format!(r#"[{{"type":"tool_use","name":"create_ticket","input":{ARGS}}}]"#);
        let as_string =
            format!(r#"{{"function":{{"name":"create_ticket","arguments":{}}}}}"#, quote(ARGS));
        let lines =
            format!("{{\"a\":1}}\nnot json {{ at all\n{rpc}\n{{\"request_id\":\"other\"}}\n");
        let between_words = format!("02:57:01 INFO [agent] sending {{brace}} {rpc} -> \"pending\"");
        let cut = format!("{rpc}\n{{\"method\":\"tools/call\",\"params\":{{\"argum");
        let odd_quote = format!("a 5\" disk: {rpc}");
        let bare_string = format!("payload={}", quote(&rpc));
        let in_a_message = format!(r#"{{"message":{}}}"#, quote(&format!("I call {rpc} now")));
        for text in [
            &rpc,
            &block,
            &as_string,
            &lines,
            &between_words,
            &cut,
            &odd_quote,
            &bare_string,
            &in_a_message,
        ] {
            assert_eq!(
                calls(text),
                [(ARGS.to_owned(), Some("create_ticket".to_owned()))],
                "{text}"
            );
        }
    }

    #[test]
    fn other_objects_with_the_id_are_told_apart() {
        let text = format!(
            r#"{{"args":{ARGS},"answer":{{"request_id":"r-1","status":"done"}},"x":{{"request_id":1}}}}"#
        );
        let found = find(&text, "r-1");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].is_arguments, found[1].is_arguments), (true, false));
        // The id of an inner object is not the outer one's.
        assert!(
            find(r#"{"a":{"request_id":"r-1"}}"#, "r-1")
                .iter()
                .all(|f| f.object == r#"{"request_id":"r-1"}"#)
        );
        assert!(find(&text, "r-2").is_empty());
    }

    #[test]
    fn an_escaped_or_repeated_key_is_read_as_json_reads_it() {
        let escaped = r#"{"request\u005fid":"r\u002d1","t":1}"#;
        assert_eq!(find(escaped, "r-1").len(), 1);
        assert!(find(r#"{"request_id":"r-1","request_id":"r-2"}"#, "r-1").is_empty());
    }

    #[test]
    fn hostile_text_costs_no_more_than_its_length() {
        let n = 200_000;
        for text in [
            "{".repeat(n),
            "{\"a\":".repeat(n),
            "\"".repeat(n + 1),
            "[".repeat(n),
            "{\"a\":[\"".repeat(n),
        ] {
            assert!(find(&text, "r-1").is_empty());
        }
    }
}
