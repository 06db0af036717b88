//! Words, quotes and signs of the filter language, each with its place.

use super::Mistake;
use std::ops::Range;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    And,
    Or,
    Not,
    Open,
    Close,
    /// `name:` and its value, or a bare word; `quoted` says that the value stood in quotes.
    Term {
        name: Option<String>,
        value: String,
        quoted: bool,
    },
}

/// A token and where it stands.
pub(super) type At = (Token, Range<usize>);

fn is_sign(c: char) -> bool {
    matches!(c, '&' | '|' | '(' | ')')
}

/// All tokens, or the first mistake.
pub(super) fn tokens(text: &str) -> Result<Vec<At>, Mistake> {
    let mut out = Vec::new();
    let mut pos = 0;
    while let Some(c) = text.get(pos..).and_then(|t| t.chars().next()) {
        let one = pos..pos + c.len_utf8();
        let sign = match c {
            c if c.is_whitespace() => {
                pos = one.end;
                continue;
            }
            '&' => Some(Token::And),
            '|' => Some(Token::Or),
            '!' => Some(Token::Not),
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            _ => None,
        };
        if let Some(token) = sign {
            pos = one.end;
            out.push((token, one));
            continue;
        }
        let (token, end) = term(text, pos)?;
        out.push((token, pos..end));
        pos = end;
    }
    Ok(out)
}

fn term(text: &str, start: usize) -> Result<(Token, usize), Mistake> {
    let rest = text.get(start..).unwrap_or_default();
    if rest.starts_with('"') {
        let (value, end) = quoted(text, start)?;
        return Ok((Token::Term { name: None, value, quoted: true }, end));
    }
    let word_end =
        rest.find(|c: char| c.is_whitespace() || is_sign(c) || c == '"').unwrap_or(rest.len());
    let word = rest.get(..word_end).unwrap_or_default();
    let Some((name, value)) = word.split_once(':') else {
        // A quote inside a word belongs to no language.
        return Ok((
            Token::Term { name: None, value: word.to_owned(), quoted: false },
            start + word_end,
        ));
    };
    let name = Some(name.to_owned());
    if value.is_empty() && rest.get(word_end..).is_some_and(|r| r.starts_with('"')) {
        let (value, end) = quoted(text, start + word_end)?;
        return Ok((Token::Term { name, value, quoted: true }, end));
    }
    Ok((Token::Term { name, value: value.to_owned(), quoted: false }, start + word_end))
}

/// `"…"` with `\"` and `\\`.
fn quoted(text: &str, start: usize) -> Result<(String, usize), Mistake> {
    let mut value = String::new();
    let mut chars = text.get(start + 1..).unwrap_or_default().char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Ok((value, start + 1 + i + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                Some((_, c)) => value.extend(['\\', c]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err(Mistake { at: start..text.len(), why: "this quote has no end".into() })
}

/// A value as it must be written to be read as itself.
pub(super) fn written(value: &str) -> String {
    let plain = !value.is_empty()
        && !value.starts_with(['!', '<', '>'])
        && !value
            .contains(|c: char| c.is_whitespace() || is_sign(c) || matches!(c, '"' | ':' | '\\'));
    if plain {
        return value.to_owned();
    }
    let mut out = String::from('"');
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
