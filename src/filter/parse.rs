//! From tokens to a filter. Nesting is bounded: a filter of a thousand brackets is a mistake, not a crash.

use super::lex::{At, Token, tokens};
use super::{Field, Filter, Mistake, Node, Sign};
use std::ops::Range;

/// How deep brackets and `!` may stand.
const DEEP: usize = 64;

/// Reads a filter.
///
/// # Errors
/// The first mistake, with its place.
pub fn parse(text: &str) -> Result<Filter, Mistake> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(Filter(None));
    }
    let mut p = Parser { tokens: &tokens, pos: 0, end: text.len(), depth: 0 };
    let node = p.any()?;
    match p.peek() {
        None => Ok(Filter(Some(node))),
        Some((_, at)) => Err(mistake(at, "this bracket was never opened")),
    }
}

fn mistake(at: &Range<usize>, why: impl Into<String>) -> Mistake {
    Mistake { at: at.clone(), why: why.into() }
}

struct Parser<'a> {
    tokens: &'a [At],
    pos: usize,
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a At> {
        self.tokens.get(self.pos)
    }

    fn any(&mut self) -> Result<Node, Mistake> {
        let mut list = vec![self.all()?];
        while let Some((Token::Or, _)) = self.peek() {
            self.pos += 1;
            list.push(self.all()?);
        }
        Ok(one_or(list, Node::Any))
    }

    fn all(&mut self) -> Result<Node, Mistake> {
        let mut list = vec![self.one()?];
        loop {
            match self.peek() {
                Some((Token::And, _)) => {
                    self.pos += 1;
                    list.push(self.one()?);
                }
                None | Some((Token::Or | Token::Close, _)) => break,
                Some(_) => list.push(self.one()?),
            }
        }
        Ok(one_or(list, Node::All))
    }

    fn one(&mut self) -> Result<Node, Mistake> {
        let Some((token, at)) = self.peek() else {
            return Err(mistake(&(self.end..self.end), "something is missing here"));
        };
        self.depth += 1;
        if self.depth > DEEP {
            return Err(mistake(at, "too many brackets in each other"));
        }
        self.pos += 1;
        let node = match token {
            Token::Not => Node::Not(Box::new(self.one()?)),
            Token::Open => {
                let inner = self.any()?;
                match self.peek() {
                    Some((Token::Close, _)) => self.pos += 1,
                    _ => return Err(mistake(at, "this bracket is never closed")),
                }
                inner
            }
            Token::Term { name, value, quoted } => term(name.as_deref(), value, *quoted, at)?,
            Token::And | Token::Or => return Err(mistake(at, "something is missing before this")),
            Token::Close => return Err(mistake(at, "something is missing before this bracket")),
        };
        self.depth -= 1;
        Ok(node)
    }
}

fn one_or(mut list: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match list.len() {
        1 => list.remove(0),
        _ => many(list),
    }
}

fn term(name: Option<&str>, value: &str, quoted: bool, at: &Range<usize>) -> Result<Node, Mistake> {
    let Some(name) = name else { return Ok(Node::Word(value.to_owned())) };
    let Some(field) = Field::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(name)) else {
        let at = at.start..at.start + name.len() + 1;
        let near = Field::ALL
            .into_iter()
            .min_by_key(|f| strsim::levenshtein(f.name(), &name.to_lowercase()));
        let near = near.map(Field::name).unwrap_or_default();
        let all = Field::ALL.map(|f| format!("{}:", f.name())).join(" ");
        return Err(mistake(
            &at,
            format!(
                "no such field (did you mean {near}:? there are {all}); a word with a colon goes in quotes"
            ),
        ));
    };
    let at = at.start + name.len() + 1..at.end;
    if value.is_empty() && !quoted {
        return Err(mistake(&at, format!("{}: wants a value", field.name())));
    }
    if field.is_number() {
        return number(field, value, &at);
    }
    Ok(Node::Text { field, value: value.to_owned() })
}

fn number(field: Field, value: &str, at: &Range<usize>) -> Result<Node, Mistake> {
    const SIGNS: [(&str, Sign); 5] = [
        (">=", Sign::GreaterOrEqual),
        ("<=", Sign::LessOrEqual),
        (">", Sign::Greater),
        ("<", Sign::Less),
        ("=", Sign::Equal),
    ];
    let found = SIGNS.iter().find_map(|(text, sign)| Some((*sign, value.strip_prefix(text)?)));
    let (sign, written) = found.unwrap_or((Sign::Equal, value));
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = written.get(digits.len()..).unwrap_or_default();
    let plain = digits.starts_with(|c: char| c.is_ascii_digit());
    let number = digits.parse::<f64>().ok().filter(|n| n.is_finite() && plain);
    let scale = match (field, unit) {
        (Field::Gen, "") | (Field::Age, "" | "s") | (Field::Ms, "" | "ms") => Some(1.0),
        (Field::Age, "ms") => Some(0.001),
        (Field::Age, "m" | "min") => Some(60.0),
        (Field::Age, "h") => Some(3600.0),
        (Field::Age, "d") => Some(86_400.0),
        (Field::Ms, "s") => Some(1000.0),
        (Field::Ms, "m" | "min") => Some(60_000.0),
        _ => None,
    };
    match (number, scale) {
        (Some(n), Some(scale)) => {
            Ok(Node::Number { field, sign, value: n * scale, written: written.to_owned() })
        }
        _ => {
            let example = match field {
                Field::Gen => "gen:2",
                Field::Age => "age:>5m, age:<30s, age:>=1h",
                _ => "ms:>500, ms:<2s",
            };
            Err(mistake(at, format!("no number for {}: (for example {example})", field.name())))
        }
    }
}
