//! The tools of a connection, as its server listed them, hints as sent.
//!
//! Parses; never decides what a hint allows (that is `judge::gate`).

use super::refusal::short;
use super::text::Text;
use crate::json::python::python_dumps;
use crate::json::raw::{self, Object};
use crate::size::size;
use crate::wire::mirror;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How many bytes of definitions (description, annotations, schema) one list keeps. Of a tool beyond it only the name is
/// kept and that it has one, and whoever needs the rest says so.
pub const DEFINITIONS: usize = 16 << 20;
/// How many bytes of names are kept, with what each tool costs at least. What is listed beyond it is not read.
pub const NAMES: usize = 16 << 20;
/// What a tool costs beside its texts.
const EACH: usize = 160;

/// How many dropped entries are listed.
const DROPPED: usize = 1_000;
/// How much of a name stands in such an entry.
const NAME: usize = 200;

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
    pub description: Text,
    /// The raw `annotations`, as sent; `None` when absent or null.
    pub annotations: Option<Text>,
    /// `readOnlyHint`.
    pub read_only: Hint,
    /// `destructiveHint`.
    pub destructive: Hint,
    /// `idempotentHint`.
    pub idempotent: Hint,
    /// `openWorldHint`.
    pub open_world: Hint,
    /// The raw input schema.
    pub input_schema: Option<Text>,
    /// Its schema declares an argument named `request_id`.
    pub takes_request_id: bool,
    /// 2025-11-25: the server only runs it as a task (`execution.taskSupport: required`).
    pub only_as_task: bool,
    /// The list has this name twice, with different hints or schema.
    pub listed_twice: bool,
    /// What its entry says beside all that (title, output schema, …), as one number: enough to see that it changed.
    pub rest: u64,
    /// How large its definition is, where that was let go ([`DEFINITIONS`]): its description, annotations and schema are
    /// absent here, and nothing follows from that. Its hints count for nothing.
    pub not_kept: Option<u64>,
    /// Its schema wants arguments mirrored in headers, which can only be done with the schema.
    pub mirrors: bool,
}

impl Tool {
    /// From the raw JSON of one list entry; `None` without a name.
    pub fn parse(text: &str) -> Option<Tool> {
        // Read once: an entry may have a megabyte.
        let entry = Object::read(text);
        let name = entry.get_str("name")?;
        let annotations = entry.get("annotations").filter(|a| !raw::is_null(a));
        let hint = |key: &str| Hint::from_raw(annotations.and_then(|a| raw::get(a, key)));
        let schema = entry.get("inputSchema");
        let properties = schema.and_then(|s| raw::get(s, "properties"));
        Some(Tool {
            name,
            description: entry.get_str("description").unwrap_or_default().into(),
            annotations: annotations.map(Text::from),
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
            input_schema: schema.map(Text::from),
            takes_request_id: properties.is_some_and(|p| raw::get(p, "request_id").is_some()),
            only_as_task: entry
                .get("execution")
                .and_then(|e| raw::get_str(e, "taskSupport"))
                .is_some_and(|t| t == "required"),
            listed_twice: false,
            rest: rest(&entry),
            not_kept: None,
            mirrors: schema.is_some_and(|s| s.contains(mirror::KEY)),
        })
    }

    /// How many bytes its definition has.
    fn size(&self) -> usize {
        let len = |t: &Option<Text>| t.as_ref().map_or(0, |t| t.len());
        self.description.len() + len(&self.annotations) + len(&self.input_schema)
    }

    /// The same without its definition; what stays still tells another one.
    fn let_go(self) -> Tool {
        let mut hasher = std::hash::DefaultHasher::new();
        let (hints, schema) = (self.annotations.as_deref(), self.input_schema.as_deref());
        (&*self.description, hints, schema, self.rest).hash(&mut hasher);
        Tool {
            not_kept: Some(self.size() as u64),
            description: Text::default(),
            annotations: None,
            input_schema: None,
            rest: hasher.finish(),
            ..self
        }
    }

    /// By its hints it only reads, and nothing among them contradicts that. The gate asks nothing exactly then.
    pub fn only_reads(&self) -> bool {
        self.read_only == Hint::True
            && matches!(self.destructive, Hint::Absent | Hint::False)
            && !self.listed_twice
            && self.not_kept.is_none()
    }
}

/// See [`Tool::rest`]. `_meta` is nobody's definition: some servers count in it.
fn rest(entry: &Object<'_>) -> u64 {
    let known = ["name", "description", "annotations", "inputSchema", "_meta"];
    let members = entry.members().filter(|(k, _)| !known.contains(k));
    let members: Vec<String> = members.map(|(k, v)| format!("{}:{v}", raw::quote(k))).collect();
    let text = python_dumps(&format!("{{{}}}", members.join(",")), true, &[]).unwrap_or_default();
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// What this connection lists. A copy shares its tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolList {
    /// In the order listed, over all pages.
    pub tools: Vec<Arc<Tool>>,
    /// The last page has come, and no tool of any page is missing.
    pub complete: bool,
    /// Entries that could not be used, with the reason.
    pub dropped: Vec<String>,
    /// The list is longer than what is kept ([`NAMES`]): more tools may be on it.
    pub cut: bool,
    /// Bytes of definitions kept so far.
    pub definitions: usize,
    /// Bytes of names kept so far.
    pub names: usize,
}

impl ToolList {
    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|t| t.name == name).map(|t| &**t)
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
                self.drop_entry(format!("{}: {why}", short(&tool.name, NAME)));
                continue;
            }
            match index.get(&tool.name).and_then(|i| self.tools.get_mut(*i)) {
                Some(first) => {
                    let let_go = first.not_kept.is_some();
                    let tool = if let_go { tool.let_go() } else { tool };
                    // What an entry says beside its definition may differ; of one that was let go all is one number.
                    let rest = if let_go { tool.rest } else { first.rest };
                    let same = Tool { listed_twice: first.listed_twice, rest, ..tool } == **first;
                    if !same {
                        Arc::make_mut(first).listed_twice = true;
                    }
                }
                None if self.names + tool.name.len() + EACH > NAMES => self.end(),
                None => {
                    let kept = self.definitions.saturating_add(tool.size());
                    let tool = if kept > DEFINITIONS { tool.let_go() } else { tool };
                    if tool.not_kept.is_none() {
                        self.definitions = kept;
                    }
                    self.names += tool.name.len() + EACH;
                    index.insert(tool.name.clone(), self.tools.len());
                    self.tools.push(Arc::new(tool));
                }
            }
        }
    }

    /// No further tool is kept.
    fn end(&mut self) {
        if !self.cut {
            self.cut = true;
            let (n, most) = (self.tools.len(), size(NAMES as u64));
            let why = format!("what follows {n} tools: their names come to more than {most}");
            self.dropped.push(why);
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
        assert!(b.annotations.is_none() && b.takes_request_id && !b.listed_twice);
        assert_eq!(list.dropped.len(), 1);
    }

    fn page(entries: impl Iterator<Item = String>) -> String {
        format!(r#"{{"tools":[{}]}}"#, entries.collect::<Vec<_>>().join(","))
    }

    fn large(name: &str, fill: char, bytes: usize) -> String {
        let text: String = std::iter::repeat_n(fill, bytes).collect();
        format!(
            r#"{{"name":"{name}","annotations":{{"readOnlyHint":true}},"inputSchema":{{"properties":{{"request_id":{{}},"b":{{"x-mcp-header":"{text}"}}}}}}}}"#
        )
    }

    #[test]
    fn definitions_over_the_budget_are_let_go_and_said_to_be_while_names_stay() {
        let mut list = ToolList::default();
        list.add_page(&page((0..20).map(|i| large(&format!("t{i}"), 'x', 1 << 20))));
        let kept: usize = list.tools.iter().map(|t| t.size()).sum();
        assert_eq!((list.tools.len(), kept), (20, list.definitions));
        assert!(kept <= DEFINITIONS && kept > DEFINITIONS - (2 << 20));
        let (first, last) = (list.find("t0").unwrap(), list.find("t19").unwrap());
        assert_eq!((first.not_kept, first.only_reads()), (None, true));
        assert!(last.not_kept.is_some_and(|n| n > 1 << 20) && last.input_schema.is_none());
        assert!(!last.only_reads() && last.takes_request_id && last.mirrors);
        // A small one still has its place, and a copy of all costs nothing.
        list.add_page(&page([large("small", 'x', 9)].into_iter()));
        assert_eq!(list.find("small").unwrap().not_kept, None);
        assert!(Arc::ptr_eq(&list.tools[0], &list.clone().tools[0]));
        // What was let go is still told from another one.
        let (same, other) = (large("t19", 'x', 1 << 20), large("t18", 'y', 1 << 20));
        list.add_page(&page([same, other].into_iter()));
        let twice = |n: &str| list.find(n).unwrap().listed_twice;
        assert_eq!((twice("t19"), twice("t18")), (false, true));
        assert!(!list.cut && list.dropped.is_empty());
    }

    #[test]
    fn names_without_end_are_cut_and_said_to_be() {
        let mut list = ToolList::default();
        for i in 0..20 {
            let name = format!("{i}-{}", "n".repeat(1 << 20));
            list.add_page(&page([format!(r#"{{"name":"{name}"}}"#)].into_iter()));
        }
        assert!(list.cut && list.names <= NAMES && list.tools.len() == 15);
        assert_eq!(list.dropped, ["what follows 15 tools: their names come to more than 16 MiB"]);
    }
}
