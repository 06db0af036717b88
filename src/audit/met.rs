//! Whom and what a trace has met: names, tools and clients, each by a number, so that what is kept of a call is small.

use super::fold::{Audit, Tool};
use super::lean;
use crate::journal::{Hint, ToolList};
use std::collections::{BTreeMap, HashMap};

impl Audit {
    /// The number of a name.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        intern(&mut self.names_by, &mut self.names, name)
    }

    /// The name of a number.
    pub fn name_of(&self, n: u32) -> &str {
        self.names.get(n as usize).map_or("", String::as_str)
    }

    pub(super) fn tool(&mut self, name: &str) -> u32 {
        if let Some(n) = self.tools_by.get(name) {
            return *n;
        }
        // Tools are few; a hostile trace may make each call its own.
        if self.tools.len() >= 1 << 16 {
            return 0;
        }
        let n = u32::try_from(self.tools.len()).unwrap_or(0);
        self.tools.push(Tool { name: name.to_owned(), ..Tool::default() });
        self.tools_by.insert(name.to_owned(), n);
        n
    }

    /// The tool of a number.
    pub fn tool_of(&self, n: u32) -> &Tool {
        const NONE: &Tool = &Tool {
            name: String::new(),
            reads: false,
            listed: false,
            calls: 0,
            ok: 0,
            failed: 0,
            unknown: 0,
            bare: 0,
            makes: BTreeMap::new(),
            uses: BTreeMap::new(),
            repeats: false,
        };
        self.tools.get(n as usize).unwrap_or(NONE)
    }

    pub(super) fn tool_mut(&mut self, n: u32) -> Option<&mut Tool> {
        self.tools.get_mut(n as usize)
    }

    /// Lists tools as the server told them.
    pub(super) fn listed(&mut self, result: &str) {
        let mut list = ToolList::default();
        list.add_page(result);
        for t in list.tools {
            let n = self.tool(&t.name);
            if let Some(tool) = self.tool_mut(n) {
                (tool.reads, tool.listed) = (t.read_only == Hint::True && t.only_reads(), true);
            }
        }
    }

    pub(super) fn client(&mut self, info: &str) -> u32 {
        let text = |key: &str| lean::get(info, key).and_then(lean::text).unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let name = name.trim();
        if name.is_empty() {
            return 0;
        }
        let at = self.clients.iter().position(|c| c == name).unwrap_or_else(|| {
            if self.clients.len() < 1 << 12 {
                self.clients.push(name.to_owned());
            }
            self.clients.len() - 1
        });
        u32::try_from(at + 1).unwrap_or(0)
    }

    /// A client by its number.
    pub fn client_name(&self, n: u32) -> Option<&str> {
        self.clients.get((n as usize).checked_sub(1)?).map(String::as_str)
    }

    /// Whether nothing is agreed.
    pub(super) fn inferring(&self) -> bool {
        self.options.contracts.is_none()
    }
}

fn intern(by: &mut HashMap<String, u32>, all: &mut Vec<String>, name: &str) -> u32 {
    if let Some(n) = by.get(name) {
        return *n;
    }
    if all.len() >= 1 << 16 {
        return 0;
    }
    let n = u32::try_from(all.len()).unwrap_or(0);
    all.push(name.to_owned());
    by.insert(name.to_owned(), n);
    n
}
