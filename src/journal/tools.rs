//! The tools of a connection, as its server listed them, hints as sent.
//!
//! Parses; never decides what a hint allows (that is `judge::gate`).

use crate::json::python::python_dumps;
use crate::json::raw;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// How many dropped entries are listed.
const DROPPED: usize = 1_000;

/// A hint of `annotations` as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hint {
    /// Not there, or null.
    #[default]
    Absent,
    /// The literal `true`.
    True,
    /// The literal `false`.
    False,
    /// Something that is not a boolean.
    WrongType,
}

impl Hint {
    fn from_raw(value: Option<&str>) -> Hint {
        match value.map(str::trim) {
            None | Some("null") => Hint::Absent,
            Some("true") => Hint::True,
            Some("false") => Hint::False,
            Some(_) => Hint::WrongType,
        }
    }
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What the server says it does.
    pub description: String,
    /// The raw `annotations`, as sent; `None` when absent or null.
    pub annotations: Option<String>,
    /// `readOnlyHint`.
    pub read_only: Hint,
    /// `destructiveHint`.
    pub destructive: Hint,
    /// `idempotentHint`.
    pub idempotent: Hint,
    /// `openWorldHint`.
    pub open_world: Hint,
    /// The raw input schema.
    pub input_schema: Option<String>,
    /// Names of the declared properties.
    pub properties: Vec<String>,
    /// 2025-11-25: the server only runs it as a task (`execution.taskSupport: required`).
    pub only_as_task: bool,
    /// The list has this name twice, with different hints or schema.
    pub listed_twice: bool,
    /// What its entry says beside all that (title, output schema, …), as one number: enough to see that it changed.
    pub rest: u64,
}

impl Tool {
    /// From the raw JSON of one list entry; `None` without a name.
    pub fn parse(text: &str) -> Option<Tool> {
        let name = raw::get_str(text, "name")?;
        let annotations = raw::get(text, "annotations").filter(|a| !raw::is_null(a));
        let hint = |key: &str| Hint::from_raw(annotations.and_then(|a| raw::get(a, key)));
        let schema = raw::get(text, "inputSchema");
        let properties = schema
            .and_then(|s| raw::get(s, "properties"))
            .and_then(raw::members)
            .map(|m| m.into_iter().map(|(k, _)| k.into_owned()).collect())
            .unwrap_or_default();
        Some(Tool {
            name,
            description: raw::get_str(text, "description").unwrap_or_default(),
            annotations: annotations.map(str::to_owned),
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
            input_schema: schema.map(str::to_owned),
            properties,
            only_as_task: raw::get_path(text, &["execution", "taskSupport"])
                .and_then(raw::as_str)
                .is_some_and(|t| t == "required"),
            listed_twice: false,
            rest: rest(text),
        })
    }

    /// By its hints it only reads, and nothing among them contradicts that. The gate asks nothing exactly then.
    pub fn only_reads(&self) -> bool {
        self.read_only == Hint::True
            && matches!(self.destructive, Hint::Absent | Hint::False)
            && !self.listed_twice
    }

    /// Whether the schema declares an argument named `request_id`.
    pub fn takes_request_id(&self) -> bool {
        self.properties.iter().any(|p| p == "request_id")
    }
}

/// See [`Tool::rest`]. `_meta` is nobody's definition: some servers count in it.
fn rest(entry: &str) -> u64 {
    let known = ["name", "description", "annotations", "inputSchema", "_meta"];
    let text = python_dumps(entry, true, &known).unwrap_or_default();
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// What this connection lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolList {
    /// In the order listed, over all pages.
    pub tools: Vec<Tool>,
    /// The last page has come.
    pub complete: bool,
    /// Entries that could not be used, with the reason.
    pub dropped: Vec<String>,
}

impl ToolList {
    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|t| t.name == name)
    }

    /// Adds one page's entries. A name that comes twice with other content is marked on the first entry.
    pub fn add_page(&mut self, result: &str) {
        self.add_page_checked(result, |_| None);
    }

    /// The same; an entry for which `refuse` has a reason is dropped and listed as such.
    pub fn add_page_checked(&mut self, result: &str, refuse: impl Fn(&Tool) -> Option<String>) {
        let mut index: HashMap<String, usize> =
            self.tools.iter().enumerate().map(|(i, t)| (t.name.clone(), i)).collect();
        for entry in raw::get(result, "tools").and_then(raw::items).unwrap_or_default() {
            let Some(tool) = Tool::parse(entry) else {
                self.drop_entry("an entry without a name".into());
                continue;
            };
            if let Some(why) = refuse(&tool) {
                self.drop_entry(format!("{}: {why}", tool.name));
                continue;
            }
            match index.get(&tool.name).and_then(|i| self.tools.get_mut(*i)) {
                Some(first) => {
                    let same = Tool { listed_twice: first.listed_twice, rest: first.rest, ..tool }
                        == *first;
                    first.listed_twice |= !same;
                }
                None => {
                    index.insert(tool.name.clone(), self.tools.len());
                    self.tools.push(tool);
                }
            }
        }
    }

    fn drop_entry(&mut self, why: String) {
        // A server that lists rubbish without end is named, not stored.
        match self.dropped.len() {
            0..DROPPED => self.dropped.push(why),
            DROPPED => self.dropped.push("more entries were dropped".into()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_keep_what_was_sent_and_twins_are_seen() {
        let mut list = ToolList::default();
        list.add_page(
            r#"{"tools":[{"name":"a","annotations":{"idempotentHint":"yes","readOnlyHint":1}},
                {"name":"b","annotations":null,"inputSchema":{"properties":{"request_id":{}}}},
                {"name":"a","annotations":{"readOnlyHint":true}},{"nome":1}]}"#,
        );
        let a = list.find("a").unwrap();
        assert_eq!(
            (a.idempotent, a.read_only, a.listed_twice),
            (Hint::WrongType, Hint::WrongType, true)
        );
        let b = list.find("b").unwrap();
        assert!(b.annotations.is_none() && b.takes_request_id() && !b.listed_twice);
        assert_eq!(list.dropped.len(), 1);
    }
}
