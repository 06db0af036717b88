//! JSON as Python spells it: `json.dumps(json.loads(text), sort_keys=…, ensure_ascii=False)`, byte for byte.
//!
//! Ledgers written by Python servers hold hashes over exactly this text. Nothing here recurses and no
//! number passes through anything but its own spelling or an IEEE double. Where CPython 3.11 refuses
//! (integers of more than 4300 digits, a nesting of about 1000) this goes on.

use super::scan::{Kind, ScanError, Scanner, Token, unescape};
use std::borrow::Cow;
use std::collections::HashMap;

/// Why there is no such text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpsError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] ScanError),
    /// A lone surrogate: Python's `str.encode("utf-8")` raises on it, so no server has hashed this.
    #[error("a lone surrogate escape in the string at byte {at} has no UTF-8 form")]
    LoneSurrogate {
        /// Byte offset of the string.
        at: usize,
    },
}

/// Python's `json.dumps(json.loads(text) minus the top-level keys `omit_top`, sort_keys=sort_keys,
/// ensure_ascii=False)`. A repeated key's last value wins, at every depth; keys are sorted by code
/// point; floats are Python's `repr`; integers are exact.
pub fn python_dumps(text: &str, sort_keys: bool, omit_top: &[&str]) -> Result<String, DumpsError> {
    python_dumps_where(text, sort_keys, |key| !omit_top.iter().any(|o| o.as_bytes() == key))
}

/// [`python_dumps`] with only those top-level members whose decoded key `keep` accepts.
pub fn python_dumps_where(
    text: &str,
    sort_keys: bool,
    keep: impl Fn(&[u8]) -> bool,
) -> Result<String, DumpsError> {
    let (nodes, root) = load(text, sort_keys, keep)?;
    dump(&nodes, root)
}

type Key<'a> = (Cow<'a, [u8]>, usize);

/// A value; containers name their children by index, so that neither building nor dropping recurses.
enum Node<'a> {
    Leaf(Token<'a>),
    Array(Vec<usize>),
    /// Decoded key, its offset, the value.
    Object(Vec<(Key<'a>, usize)>),
}

fn load<'a>(
    text: &'a str,
    sort_keys: bool,
    keep: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<Node<'a>>, usize), DumpsError> {
    let mut nodes = Vec::new();
    // Open containers with the key under which each will be filed in its parent.
    let mut open: Vec<(Node<'a>, Option<Key<'a>>)> = Vec::new();
    let mut key: Option<Key<'a>> = None;
    for token in Scanner::new(text) {
        let token = token?;
        let (done, filed_under) = match token.kind {
            Kind::Key => {
                key = Some((unescape(token.raw), token.at));
                continue;
            }
            Kind::ObjectStart => {
                open.push((Node::Object(Vec::new()), key.take()));
                continue;
            }
            Kind::ArrayStart => {
                open.push((Node::Array(Vec::new()), key.take()));
                continue;
            }
            Kind::ObjectEnd | Kind::ArrayEnd => match open.pop() {
                Some((Node::Object(members), under)) => {
                    let mut members = last_wins(members);
                    if open.is_empty() {
                        members.retain(|((k, _), _)| keep(k));
                    }
                    if sort_keys {
                        members.sort_by(|((a, _), _), ((b, _), _)| a.cmp(b));
                    }
                    (Node::Object(members), under)
                }
                Some(array) => array,
                None => continue,
            },
            _ => (Node::Leaf(token), key.take()),
        };
        nodes.push(done);
        let this = nodes.len() - 1;
        match (open.last_mut(), filed_under) {
            (Some((Node::Object(members), _)), Some(k)) => members.push((k, this)),
            (Some((Node::Array(items), _)), _) => items.push(this),
            _ => {}
        }
    }
    // The scanner yields exactly one root, and a parent is always filed after its children.
    let root = nodes.len().saturating_sub(1);
    Ok((nodes, root))
}

/// As a Python dict is filled: a repeated key keeps its first place and its last value.
fn last_wins<'a>(members: Vec<(Key<'a>, usize)>) -> Vec<(Key<'a>, usize)> {
    let mut place: HashMap<Cow<'a, [u8]>, usize> = HashMap::with_capacity(members.len());
    let mut out: Vec<(Key<'a>, usize)> = Vec::with_capacity(members.len());
    for (key, value) in members {
        match place.get(&key.0).and_then(|&i| out.get_mut(i)) {
            Some(earlier) => *earlier = (key, value),
            None => {
                place.insert(key.0.clone(), out.len());
                out.push((key, value));
            }
        }
    }
    out
}

fn dump(nodes: &[Node<'_>], root: usize) -> Result<String, DumpsError> {
    let mut out = String::new();
    // (container, its next child)
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut at = Some(root);
    loop {
        if let Some(this) = at.take() {
            match nodes.get(this) {
                Some(Node::Leaf(token)) => leaf(&mut out, token)?,
                Some(Node::Array(_)) => {
                    out.push('[');
                    open.push((this, 0));
                }
                Some(Node::Object(_)) => {
                    out.push('{');
                    open.push((this, 0));
                }
                None => {}
            }
        }
        let Some((container, next)) = open.last_mut() else { return Ok(out) };
        let i = *next;
        *next += 1;
        match nodes.get(*container) {
            Some(Node::Array(items)) => match items.get(i) {
                Some(&child) => {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    at = Some(child);
                    continue;
                }
                None => out.push(']'),
            },
            Some(Node::Object(members)) => match members.get(i) {
                Some(((key, key_at), child)) => {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    string(&mut out, key, *key_at)?;
                    out.push_str(": ");
                    at = Some(*child);
                    continue;
                }
                None => out.push('}'),
            },
            _ => {}
        }
        open.pop();
    }
}

fn leaf(out: &mut String, token: &Token<'_>) -> Result<(), DumpsError> {
    match token.kind {
        Kind::String => return string(out, &unescape(token.raw), token.at),
        Kind::Number => number(out, token.raw),
        _ => out.push_str(token.raw),
    }
    Ok(())
}

/// `json.encoder.ESCAPE` with `ensure_ascii=False`: quote, backslash and C0 only.
fn string(out: &mut String, bytes: &[u8], at: usize) -> Result<(), DumpsError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DumpsError::LoneSurrogate { at })?;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}

fn number(out: &mut String, raw: &str) {
    if raw.ends_with(['N', 'y']) {
        out.push_str(raw); // NaN, Infinity, -Infinity
    } else if !raw.contains(['.', 'e', 'E']) {
        // An int: Python has no negative zero there.
        out.push_str(if raw == "-0" { "0" } else { raw });
    } else {
        // Both round to nearest even; a spelling that overflows becomes an infinity in both.
        out.push_str(&float_repr(raw.parse().unwrap_or(f64::NAN)));
    }
}

/// Python's `repr` of a float, as `json.dumps` writes it (`Infinity` and `NaN` for the others): the
/// shortest digits that read back, ties to the even digit; an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    let mut buffer = zmij::Buffer::new();
    let (digits, exponent) = digits(buffer.format_finite(value.abs()));
    let n = digits.len() as i32;
    if !(-4..16).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let e_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{e_sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    if n <= exponent + 1 {
        return format!("{sign}{digits}{}.0", "0".repeat((exponent + 1 - n) as usize));
    }
    let (whole, part) = digits.split_at((exponent + 1) as usize);
    format!("{sign}{whole}.{part}")
}

/// The significant digits of a positive decimal spelling (no zeros at either end) and the power of ten
/// of the first one.
fn digits(spelled: &str) -> (String, i32) {
    let (mantissa, e) = spelled.split_once(['e', 'E']).unwrap_or((spelled, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{part}");
    let significant = all.trim_start_matches('0');
    let leading = (all.len() - significant.len()) as i32;
    let exponent = whole.len() as i32 - 1 - leading + e;
    (significant.trim_end_matches('0').to_owned(), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelled_as_python_does() {
        // Each right-hand side is CPython's own repr.
        for (value, want) in [
            ("1e16", "1e+16"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.00012345", "0.00012345"),
            ("1.5e-7", "1.5e-07"),
            ("100.0", "100.0"),
            ("1E2", "100.0"),
            ("5e-324", "5e-324"),
            ("2e-324", "0.0"),
            ("-2e-400", "-0.0"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("1e400", "Infinity"),
            ("-1e400", "-Infinity"),
            ("0.1", "0.1"),
            ("-0.0", "-0.0"),
            ("840215549492861.375", "840215549492861.4"),
            ("406778737885178.0625", "406778737885178.06"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("1e23", "1e+23"),
        ] {
            assert_eq!(python_dumps(value, true, &[]).as_deref(), Ok(want), "{value}");
        }
    }

    #[test]
    fn the_last_repeated_key_wins_at_every_depth() {
        let text = r#"{"b":{"x":1,"\u0078":2},"a":1,"b":{"y":[{"k":1,"k":-0}]},"request_id":"r"}"#;
        assert_eq!(
            python_dumps(text, true, &["request_id"]).as_deref(),
            Ok(r#"{"a": 1, "b": {"y": [{"k": 0}]}}"#)
        );
        assert_eq!(
            python_dumps(r#"{"b":1,"a":2,"b":3}"#, false, &[]).as_deref(),
            Ok(r#"{"b": 3, "a": 2}"#)
        );
        assert_eq!(
            python_dumps(r#"{"a":{"request_id":1}}"#, true, &["request_id"]).as_deref(),
            Ok(r#"{"a": {"request_id": 1}}"#),
            "only the top level is left out"
        );
    }

    #[test]
    fn keys_sort_by_code_point() {
        assert_eq!(
            python_dumps("{\"\u{1f600}\":1,\"\u{ff5e}\":2,\"Z\":3,\"a\":4,\"\":5}", true, &[])
                .as_deref(),
            Ok("{\"\": 5, \"Z\": 3, \"a\": 4, \"\u{ff5e}\": 2, \"\u{1f600}\": 1}")
        );
    }

    #[test]
    fn a_lone_surrogate_is_an_error_only_where_it_would_be_written() {
        assert_eq!(
            python_dumps(r#"{"a":"\ud800"}"#, true, &[]),
            Err(DumpsError::LoneSurrogate { at: 5 })
        );
        assert_eq!(
            python_dumps(r#"{"\udc00":1}"#, true, &[]),
            Err(DumpsError::LoneSurrogate { at: 1 })
        );
        assert_eq!(
            python_dumps(r#"{"a":"\ud800","a":1}"#, true, &[]).as_deref(),
            Ok(r#"{"a": 1}"#)
        );
        assert_eq!(python_dumps(r#"{"a":"\ud800"}"#, true, &["a"]).as_deref(), Ok("{}"));
        assert!(matches!(python_dumps("{", true, &[]), Err(DumpsError::Syntax(_))));
    }

    #[test]
    fn depth_is_no_limit() {
        let n = 100_000;
        let deep = "[".repeat(n) + &"{\"a\":".repeat(n) + "1" + &"}".repeat(n) + &"]".repeat(n);
        let out = python_dumps(&deep, true, &[]).unwrap();
        assert_eq!(out.len(), deep.len() + n, "one space after each colon");
    }
}
