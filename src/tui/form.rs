//! A question of the server (elicitation) as a form: a field for each property of its schema, checked before anything
//! is sent. Pure; the answer goes back by its number.
//!
//! The schema is a flat object of strings, numbers, booleans and choices (2025-11-25, "Elicitation"); what isn't
//! understood is asked for as raw JSON.

use crate::json::raw;
use crate::time::Time;

/// The longest value that can be typed, in characters.
const LONGEST: usize = 4_096;

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number {
        whole: bool,
    },
    Bool,
    /// One of these values.
    Choice(Vec<String>),
    /// Any JSON.
    Raw,
}

/// One property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// Its title or description. Foreign text.
    pub about: String,
    pub kind: Kind,
    pub required: bool,
    /// As typed.
    pub value: String,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Which question; echoed by the answer.
    pub id: u64,
    pub asked_at: Time,
    /// The server's words. Foreign text.
    pub message: String,
    /// The call that waits for it, in words.
    pub call: Option<String>,
    pub fields: Vec<Field>,
    /// The field that is typed into.
    pub at: usize,
}

impl Form {
    /// From the params of `elicitation/create`.
    pub fn new(id: u64, asked_at: Time, params: &str, call: Option<String>) -> Form {
        let schema = raw::get(params, "requestedSchema").unwrap_or("{}");
        let properties = raw::get(schema, "properties").and_then(raw::members).unwrap_or_default();
        let required = raw::get(schema, "required").and_then(raw::items).unwrap_or_default();
        let required: Vec<String> = required.into_iter().filter_map(raw::as_str).collect();
        let fields = properties.iter().map(|(name, p)| field(name, p, &required)).collect();
        let message = raw::get_str(params, "message").unwrap_or_default();
        Form { id, asked_at, message, call, fields, at: 0 }
    }

    /// The field that is typed into.
    pub fn field_mut(&mut self) -> Option<&mut Field> {
        self.fields.get_mut(self.at)
    }

    /// Types into the field; on a choice the next one that begins so, on a boolean y, n or space.
    pub fn type_char(&mut self, c: char) {
        let Some(f) = self.field_mut() else { return };
        match &f.kind {
            Kind::Bool => {
                f.value = match c {
                    'y' | 't' => "true".into(),
                    'n' | 'f' => "false".into(),
                    ' ' => if f.value == "true" { "false" } else { "true" }.into(),
                    _ => return,
                }
            }
            Kind::Choice(of) => {
                let at = of.iter().position(|o| *o == f.value).map_or(0, |i| i + 1);
                let mut after = of.iter().cycle().skip(at).take(of.len());
                let next = after.find(|o| c == ' ' || o.to_lowercase().starts_with(c));
                if let Some(next) = next {
                    f.value.clone_from(next);
                }
            }
            _ if f.value.chars().count() < LONGEST => f.value.push(c),
            _ => {}
        }
    }

    /// What is wrong with a field, if something is.
    pub fn wrong(field: &Field) -> Option<&'static str> {
        let v = field.value.trim();
        match &field.kind {
            _ if field.value.is_empty() => field.required.then_some("needed"),
            Kind::Number { whole: true } if v.parse::<i64>().is_err() => Some("no whole number"),
            Kind::Number { whole: false } if !v.parse::<f64>().is_ok_and(f64::is_finite) => {
                Some("no number")
            }
            Kind::Raw if serde_json::from_str::<serde::de::IgnoredAny>(v).is_err() => {
                Some("no JSON")
            }
            _ => None,
        }
    }

    /// The values as a JSON object; `None` while a field is wrong. Empty fields that may be left out are.
    pub fn content(&self) -> Option<String> {
        if self.fields.iter().any(|f| Form::wrong(f).is_some()) {
            return None;
        }
        let parts = self.fields.iter().filter(|f| !f.value.is_empty()).map(|f| {
            let value = match &f.kind {
                Kind::Text | Kind::Choice(_) => raw::quote(&f.value),
                Kind::Number { .. } | Kind::Bool | Kind::Raw => f.value.trim().to_owned(),
            };
            format!("{}:{value}", raw::quote(&f.name))
        });
        Some(format!("{{{}}}", parts.collect::<Vec<_>>().join(",")))
    }
}

fn field(name: &str, property: &str, required: &[String]) -> Field {
    let choices = raw::get(property, "enum").and_then(raw::items).unwrap_or_default();
    let one_of = raw::get(property, "oneOf").and_then(raw::items).unwrap_or_default();
    let consts = one_of.iter().filter_map(|o| raw::get_str(o, "const"));
    let choices: Vec<String> = choices.into_iter().filter_map(raw::as_str).chain(consts).collect();
    let kind = match raw::get_str(property, "type").as_deref() {
        _ if !choices.is_empty() => Kind::Choice(choices),
        Some("string") => Kind::Text,
        Some("number") => Kind::Number { whole: false },
        Some("integer") => Kind::Number { whole: true },
        Some("boolean") => Kind::Bool,
        _ => Kind::Raw,
    };
    let default = raw::get(property, "default");
    let value = default.map(|d| raw::as_str(d).unwrap_or_else(|| d.to_owned()));
    let about = ["title", "description"].iter().find_map(|k| raw::get_str(property, k));
    Field {
        name: name.to_owned(),
        about: about.unwrap_or_default(),
        kind,
        required: required.iter().any(|r| r == name),
        value: value.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: &str = r#"{"message":"Really?","requestedSchema":{"type":"object","properties":{
        "sure":{"type":"boolean","default":false},"n":{"type":"integer"},"who":{"type":"string","title":"Who"},
        "how":{"type":"string","enum":["slow","fast"]},"more":{"type":"array"}},"required":["sure","n"]}}"#;

    #[test]
    fn a_schema_becomes_fields_and_values_become_json() {
        let mut f = Form::new(3, Time(0), ASK, None);
        let kinds: Vec<&Kind> = f.fields.iter().map(|f| &f.kind).collect();
        let choice = Kind::Choice(vec!["slow".into(), "fast".into()]);
        assert_eq!(
            kinds,
            [&Kind::Bool, &Kind::Number { whole: true }, &Kind::Text, &choice, &Kind::Raw]
        );
        assert_eq!(f.content(), None, "n is needed");
        f.type_char(' ');
        for (at, text) in [(1, "12"), (2, "夜 \"x\""), (3, "f"), (4, "[1]")] {
            f.at = at;
            text.chars().for_each(|c| f.type_char(c));
        }
        let want = r#"{"sure":true,"n":12,"who":"夜 \"x\"","how":"fast","more":[1]}"#;
        assert_eq!(f.content().as_deref(), Some(want));
        f.fields[1].value = "1.5".into();
        assert_eq!((Form::wrong(&f.fields[1]), f.content()), (Some("no whole number"), None));
        assert_eq!(Form::new(1, Time(0), "{}", None).content().as_deref(), Some("{}"));
    }
}
