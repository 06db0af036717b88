//! The filter language, the same on the screen and on the command line, for requests, calls and frames:
//! `tool:create_ticket outcome:unknown`, `kind:stderr | kind:exit`, `ms:>500 !tool:find*`, `(a | b) text:"no such"`.
//!
//! Terms beside each other (or with `&`) must all hold; `|` binds less, `!` more. A bare word is looked for in
//! everything that is shown. What is compared comes from a [`Subject`]; this module knows none of them.

mod lex;
mod parse;

pub use parse::parse;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// What can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// A tool's name.
    Tool,
    /// A JSON-RPC method.
    Method,
    /// A JSON-RPC id.
    Id,
    /// A request_id.
    Req,
    /// A request's state.
    State,
    /// A request's verdicts.
    Verdict,
    /// A call's outcome.
    Outcome,
    /// `out`, `in`, `err`.
    Dir,
    /// What a line is: `sent`, `received`, `stderr`, `exit`, …
    Kind,
    /// The server's life, from 1.
    Gen,
    /// How long ago.
    Age,
    /// How long it took, in milliseconds.
    Ms,
    /// The text of a frame or a line.
    Text,
}

impl Field {
    /// All, in the order they are told.
    pub const ALL: [Field; 13] = [
        Field::Tool,
        Field::Method,
        Field::Id,
        Field::Req,
        Field::State,
        Field::Verdict,
        Field::Outcome,
        Field::Dir,
        Field::Kind,
        Field::Gen,
        Field::Age,
        Field::Ms,
        Field::Text,
    ];

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Field::Tool => "tool",
            Field::Method => "method",
            Field::Id => "id",
            Field::Req => "req",
            Field::State => "state",
            Field::Verdict => "verdict",
            Field::Outcome => "outcome",
            Field::Dir => "dir",
            Field::Kind => "kind",
            Field::Gen => "gen",
            Field::Age => "age",
            Field::Ms => "ms",
            Field::Text => "text",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Field::Gen | Field::Age | Field::Ms)
    }

    /// A word of a fixed list: compared whole, `_`, `-` and blanks alike.
    fn is_word(self) -> bool {
        matches!(self, Field::State | Field::Verdict | Field::Outcome | Field::Dir | Field::Kind)
    }
}

/// What a filter looks at: a request, a call, a frame.
pub trait Subject {
    /// The texts under a field (a request has several verdicts); none when it has no such thing.
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>>;
    /// The number under a field: `gen`, `age` in seconds, `ms`.
    fn number(&self, field: Field) -> Option<f64>;
    /// Where bare words are looked for.
    fn shown(&self) -> Vec<Cow<'_, str>> {
        use Field::{Id, Kind, Method, Outcome, Req, State, Text, Tool, Verdict};
        [Tool, Method, Req, Id, State, Verdict, Outcome, Kind, Text]
            .into_iter()
            .flat_map(|f| self.texts(f))
            .collect()
    }
    /// Texts in which bare words count at the start of a word only: `done` isn't `abandoned`.
    fn words(&self) -> Vec<Cow<'_, str>> {
        Vec::new()
    }
}

/// A parsed filter. The empty one lets everything pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter(Option<Node>);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Word(String),
    Text { field: Field, value: String },
    Number { field: Field, sign: Sign, value: f64, written: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Sign {
    fn text(self) -> &'static str {
        match self {
            Sign::Less => "<",
            Sign::LessOrEqual => "<=",
            Sign::Equal => "",
            Sign::GreaterOrEqual => ">=",
            Sign::Greater => ">",
        }
    }
    fn holds(self, has: f64, want: f64) -> bool {
        match self {
            Sign::Less => has < want,
            Sign::LessOrEqual => has <= want,
            Sign::Equal => has == want,
            Sign::GreaterOrEqual => has >= want,
            Sign::Greater => has > want,
        }
    }
}

/// A mistake in a filter: where it is, in bytes, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub at: Range<usize>,
    /// What, in words.
    pub why: String,
}

impl Mistake {
    /// The filter with the place marked under it, for people. May hold foreign text.
    pub fn marked(&self, filter: &str) -> String {
        let width = |t: &str| crate::text::width(&crate::text::visible(t));
        let before = filter.get(..self.at.start).unwrap_or(filter);
        let at = filter.get(self.at.clone()).unwrap_or_default();
        let (line, carets) = (" ".repeat(width(before)), "^".repeat(width(at).max(1)));
        format!("{filter}\n{line}{carets} {}", self.why)
    }
}

impl Filter {
    /// Nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it asks for this field anywhere.
    pub fn names(&self, field: Field) -> bool {
        self.0.as_ref().is_some_and(|n| n.names(field))
    }

    /// Whether the subject passes.
    pub fn matches(&self, subject: &dyn Subject) -> bool {
        self.0.as_ref().is_none_or(|n| n.matches(subject))
    }
}

impl Node {
    fn matches(&self, s: &dyn Subject) -> bool {
        match self {
            Node::All(all) => all.iter().all(|n| n.matches(s)),
            Node::Any(any) => any.iter().any(|n| n.matches(s)),
            Node::Not(n) => !n.matches(s),
            Node::Word(w) => {
                s.shown().iter().any(|t| contains(t, w)) || s.words().iter().any(|t| begins(t, w))
            }
            Node::Number { field, sign, value, .. } => {
                s.number(*field).is_some_and(|has| sign.holds(has, *value))
            }
            Node::Text { field, value } => {
                s.texts(*field).iter().any(|has| text_matches(*field, has, value))
            }
        }
    }
}

impl Node {
    fn names(&self, field: Field) -> bool {
        match self {
            Node::All(list) | Node::Any(list) => list.iter().any(|n| n.names(field)),
            Node::Not(n) => n.names(field),
            Node::Word(_) => false,
            Node::Text { field: f, .. } | Node::Number { field: f, .. } => *f == field,
        }
    }
}

fn text_matches(field: Field, has: &str, want: &str) -> bool {
    if field.is_word() {
        return word(has) == word(want);
    }
    if let Some(exact) = want.strip_prefix('=') {
        return has == exact;
    }
    if field == Field::Id {
        return has == want || has.trim_matches('"') == want;
    }
    if field != Field::Text && want.contains('*') {
        return glob(&has.to_lowercase(), &want.to_lowercase());
    }
    contains(has, want)
}

fn word(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '-' | ' ') { '_' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

fn contains(has: &str, want: &str) -> bool {
    has.contains(want) || has.to_lowercase().contains(&want.to_lowercase())
}

fn begins(has: &str, want: &str) -> bool {
    format!(" {}", has.to_lowercase()).contains(&format!(" {}", want.to_lowercase()))
}

/// `*` stands for anything.
fn glob(has: &str, want: &str) -> bool {
    let mut parts = want.split('*');
    let Some(mut rest) = parts.next().and_then(|first| has.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(i) => rest = rest.get(i + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.is_empty()
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |n| n.write(f, false))
    }
}

impl Node {
    fn write(&self, f: &mut fmt::Formatter<'_>, inside: bool) -> fmt::Result {
        let many = |f: &mut fmt::Formatter<'_>, list: &[Node], with: &str| {
            if inside {
                f.write_str("(")?;
            }
            for (i, n) in list.iter().enumerate() {
                if i > 0 {
                    f.write_str(with)?;
                }
                n.write(f, true)?;
            }
            if inside { f.write_str(")") } else { Ok(()) }
        };
        match self {
            Node::All(list) => many(f, list, " "),
            Node::Any(list) => many(f, list, " | "),
            Node::Not(n) => {
                f.write_str("!")?;
                n.write(f, true)
            }
            Node::Word(w) => f.write_str(&lex::written(w)),
            Node::Text { field, value } => write!(f, "{}:{}", field.name(), lex::written(value)),
            Node::Number { field, sign, written, .. } => {
                write!(f, "{}:{}{written}", field.name(), sign.text())
            }
        }
    }
}

#[cfg(test)]
mod tests;
