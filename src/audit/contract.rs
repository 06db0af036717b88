//! Contracts: which tool returns a handle and which one needs it, as a person wrote them down in TOML. Reads text,
//! no files.

use crate::error::{Error, Result};
use crate::near::near;
use regex::Regex;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The file's name beside `.mcp.json`.
pub const FILE: &str = "contracts.toml";

/// Where a handle stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Under this name, at any depth.
    Name(String),
    /// At this JSON Pointer (RFC 6901) of the structured result, of the result itself, or of the arguments.
    Pointer(String),
}

/// One handle that a tool returns or needs.
#[derive(Debug, Clone)]
pub struct Term {
    /// Where.
    pub place: Place,
    /// What it is called; values are compared under it.
    pub name: String,
    /// It may be missing.
    pub optional: bool,
    /// How it looks in plain text: the first group, or the whole match.
    pub pattern: Option<Regex>,
}

/// What is agreed of one tool.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Handles it returns.
    pub produces: Vec<Term>,
    /// Handles it needs.
    pub requires: Vec<Term>,
}

/// What is agreed of all tools.
#[derive(Debug, Clone, Default)]
pub struct Contracts {
    /// By the tool's name.
    pub tools: BTreeMap<String, Contract>,
}

const TOOL_KEYS: [&str; 4] = ["produces", "requires", "pattern", "optional"];
const TERM_KEYS: [&str; 5] = ["name", "pointer", "as", "pattern", "optional"];

impl Contracts {
    /// From TOML. `file` is what errors call it.
    ///
    /// # Errors
    /// Exit 2 with file, line or key, and the nearest right key.
    pub fn parse(file: &str, text: &str) -> Result<Contracts> {
        let text = text.trim_start_matches('\u{feff}');
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            let before = e.span().and_then(|s| text.get(..s.start));
            let line = before.map(|b| format!("line {}: ", b.matches('\n').count() + 1));
            Error::usage(format!("{file}: {}{}", line.unwrap_or_default(), e.message()))
        })?;
        let reader = Reader { file };
        reader.keys("", table.keys(), &["tools"])?;
        let mut out = Contracts::default();
        let Some(tools) = table.get("tools") else {
            let proposed = text.lines().any(|l| l.trim_start().starts_with("# [tools."));
            let hint = match proposed {
                true => "what it proposes is commented out: take the # away where it is right",
                false => SHAPE,
            };
            return Err(reader.wrong("it has no [tools.NAME]").hint(hint));
        };
        let tools =
            tools.as_table().ok_or_else(|| reader.wrong("tools is no table").hint(SHAPE))?;
        for (tool, value) in tools {
            let at = format!("tools.{tool}");
            let t = value
                .as_table()
                .ok_or_else(|| reader.wrong(&format!("{at} is no table")).hint(SHAPE))?;
            out.tools.insert(tool.clone(), reader.tool(&at, t)?);
        }
        Ok(out)
    }

    /// The contract of a tool.
    pub fn of(&self, tool: &str) -> Option<&Contract> {
        self.tools.get(tool)
    }
}

const SHAPE: &str =
    "[tools.create_basket]\nproduces = \"basket_id\"\n[tools.add_item]\nrequires = \"basket_id\"";

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> Error {
        Error::usage(format!("{}: {what}", self.file))
    }

    fn keys<'k>(
        &self,
        above: &str,
        mut keys: impl Iterator<Item = &'k String>,
        known: &[&str],
    ) -> Result<()> {
        if let Some(key) = keys.find(|k| !known.contains(&k.as_str())) {
            let dot = if above.is_empty() { "" } else { "." };
            let mean = near(known, key).first().map(|n| format!("; did you mean {n}?"));
            let mean = mean.unwrap_or_default();
            return Err(self
                .wrong(&format!("there is no key {above}{dot}{key}{mean}"))
                .hint(format!("there are: {}", known.join(", "))));
        }
        Ok(())
    }

    fn tool(&self, at: &str, t: &Table) -> Result<Contract> {
        self.keys(at, t.keys(), &TOOL_KEYS)?;
        let optional = self.flag(at, t)?;
        let mut c = Contract {
            produces: self.terms(at, "produces", t, optional)?,
            requires: self.terms(at, "requires", t, optional)?,
        };
        if let Some(pattern) = self.pattern(at, t)? {
            // One pattern for the tool finds what it returns; for a tool that returns nothing, what it needs.
            let terms = if c.produces.is_empty() { &mut c.requires } else { &mut c.produces };
            match terms.as_mut_slice() {
                [one] => one.pattern = Some(pattern),
                [] => {
                    return Err(self
                        .wrong(&format!("{at}.pattern finds nothing that has a name"))
                        .hint("say with produces or requires what the pattern finds"));
                }
                _ => {
                    return Err(self
                        .wrong(&format!("{at}.pattern can stand for one handle only"))
                        .hint("give each its own: produces = [{ name = \"basket_id\", pattern = \"…\" }]"));
                }
            }
        }
        if c.produces.is_empty() && c.requires.is_empty() {
            return Err(self.wrong(&format!("{at} has neither produces nor requires")).hint(SHAPE));
        }
        Ok(c)
    }

    fn flag(&self, at: &str, t: &Table) -> Result<bool> {
        match t.get("optional") {
            None => Ok(false),
            Some(Value::Boolean(b)) => Ok(*b),
            Some(_) => Err(self.wrong(&format!("{at}.optional is not true or false"))),
        }
    }

    fn pattern(&self, at: &str, t: &Table) -> Result<Option<Regex>> {
        let Some(v) = t.get("pattern") else { return Ok(None) };
        let text = v.as_str().ok_or_else(|| self.wrong(&format!("{at}.pattern is no text")))?;
        let pattern = Regex::new(text).map_err(|e| {
            let why = e.to_string();
            let why =
                why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            self.wrong(&format!("{at}.pattern is no regular expression: {why}"))
        })?;
        Ok(Some(pattern))
    }

    fn terms(&self, at: &str, key: &str, t: &Table, optional: bool) -> Result<Vec<Term>> {
        let at = format!("{at}.{key}");
        let list = match t.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list.clone(),
            Some(one) => vec![one.clone()],
        };
        list.iter().map(|v| self.term(&at, v, optional)).collect()
    }

    fn term(&self, at: &str, v: &Value, optional: bool) -> Result<Term> {
        match v {
            Value::String(s) => {
                let place = self.place(at, s)?;
                Ok(Term { name: name_of(&place), place, optional, pattern: None })
            }
            Value::Table(t) => {
                self.keys(at, t.keys(), &TERM_KEYS)?;
                let text = |key: &str| match t.get(key) {
                    None => Ok(None),
                    Some(Value::String(s)) => Ok(Some(s.clone())),
                    Some(_) => Err(self.wrong(&format!("{at}.{key} is no text"))),
                };
                let place = match (text("name")?, text("pointer")?) {
                    (Some(n), None) | (None, Some(n)) => self.place(at, &n)?,
                    _ => return Err(self.wrong(&format!("{at} wants one of name and pointer"))),
                };
                let name = text("as")?.unwrap_or_else(|| name_of(&place));
                let optional = optional || self.flag(at, t)?;
                Ok(Term { name, place, optional, pattern: self.pattern(at, t)? })
            }
            _ => Err(self
                .wrong(&format!("{at} is neither a name, a JSON Pointer nor a list of them"))
                .hint(SHAPE)),
        }
    }

    fn place(&self, at: &str, s: &str) -> Result<Place> {
        if s.trim().is_empty() {
            return Err(self.wrong(&format!("{at} is empty")));
        }
        Ok(if s.starts_with('/') {
            Place::Pointer(s.to_owned())
        } else {
            Place::Name(s.to_owned())
        })
    }
}

/// What stands at a pointer is called by its last step; a bare `id` with the step before it.
fn name_of(place: &Place) -> String {
    let pointer = match place {
        Place::Name(n) => return n.clone(),
        Place::Pointer(p) => p,
    };
    let steps: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|s| s.replace("~1", "/").replace("~0", "~"))
        .filter(|s| !s.is_empty() && s != "-" && !s.bytes().all(|b| b.is_ascii_digit()))
        .filter(|s| s != "structuredContent")
        .collect();
    match steps.as_slice() {
        [] => pointer.clone(),
        [.., before, last] if last == "id" => format!("{before}_id"),
        [.., last] => last.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pointers_and_lists_are_read() {
        let c = Contracts::parse(
            "c.toml",
            r#"
[tools.create_basket]
produces = "basket_id"
pattern = 'Created basket (\S+)'
[tools.merge]
produces = ["/structuredContent/new/id", { name = "draft_id", optional = true }]
requires = ["/baskets/0", { pointer = "/to", as = "basket_id" }]
[tools."odd name"]
requires = "x"
optional = true
"#,
        )
        .unwrap();
        let names = |t: &[Term]| t.iter().map(|t| (t.name.clone(), t.optional)).collect::<Vec<_>>();
        let merge = c.of("merge").unwrap();
        assert_eq!(names(&merge.produces), [("new_id".into(), false), ("draft_id".into(), true)]);
        assert_eq!(
            names(&merge.requires),
            [("baskets".into(), false), ("basket_id".into(), false)]
        );
        assert!(c.of("create_basket").unwrap().produces[0].pattern.is_some());
        assert!(c.of("odd name").unwrap().requires[0].optional);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_nearest_right_key() {
        for (text, says) in [
            ("[tool.a]\nproduces='x'", "there is no key tool; did you mean tools?"),
            ("[tools.a]\nproduce='x'", "there is no key tools.a.produce; did you mean produces?"),
            ("[tools.a]\nrequires=[{nam='x'}]", "no key tools.a.requires.nam; did you mean name?"),
            ("[tools.a]\nrequires=3", "tools.a.requires is neither a name"),
            ("[tools.a]\noptional=1\nrequires='x'", "tools.a.optional is not true or false"),
            ("[tools.a]\nrequires='x'\npattern='('", "tools.a.pattern is no regular expression"),
            ("[tools.a]\nproduces=['x','y']\npattern='z'", "can stand for one handle only"),
            ("[tools.a]", "tools.a has neither produces nor requires"),
            ("tools=1", "tools is no table"),
            ("", "it has no [tools.NAME]"),
            ("[tools.a]\nproduces='x'\n[tools.b\n", "line 3"),
        ] {
            let e = Contracts::parse("c.toml", text).unwrap_err();
            assert!(e.what.starts_with("c.toml: ") && e.what.contains(says), "{text}: {}", e.what);
            assert_eq!(e.exit, crate::error::Exit::Usage);
        }
    }
}
