//! No room imports what ARCHITECTURE's table doesn't put before it. The table is the rule; this reads the code's own
//! imports and finds each arrow that the table does not have.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rooms in the order of the table: each may import those before it.
fn table() -> Vec<String> {
    let text = include_str!("../../ARCHITECTURE.md");
    let (_, after) = text.split_once("## What may know what").expect("the table's heading");
    let block = after.split("```").nth(1).expect("a fenced block");
    let names = |line: &str| {
        let named = line.split("  ").next().unwrap_or_default().to_owned();
        named.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    block.lines().flat_map(names).collect()
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // What is compiled for tests only may look anywhere.
        if path.is_dir() && name != "tests" {
            sources(&path, into);
        } else if name.ends_with(".rs") && !is_for_tests(&name) {
            into.push(path);
        }
    }
}

fn is_for_tests(name: &str) -> bool {
    ["tests.rs", "testing.rs"].contains(&name)
        || name.ends_with("_tests.rs")
        || name.ends_with("_product.rs")
}

/// A file's code without comments and without the module that is compiled for tests only.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let own = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    own.lines().map(|l| l.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// What is named behind `crate::`, alone or in braces.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(inner) = after.strip_prefix('{') else {
            found.insert(word(after));
            continue;
        };
        // Only the first names of each branch are rooms: `{error::Error, wire::{a, b}}`.
        let mut depth = 1;
        let mut first = true;
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' => first = depth == 1,
                c if first && depth == 1 && c.is_alphabetic() => {
                    found.insert(word(&inner[at..]));
                    first = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

fn room(src: &Path, file: &Path) -> String {
    let first = file.strip_prefix(src).unwrap().components().next().unwrap();
    first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

#[test]
fn no_room_imports_what_the_table_does_not_put_before_it() {
    let table = table();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let rooms: BTreeSet<String> =
        files.iter().map(|f| room(&src, f)).filter(|r| r != "main" && r != "lib").collect();
    let listed: BTreeSet<String> = table.iter().cloned().collect();
    assert_eq!(rooms, listed, "the rooms of src, and those of ARCHITECTURE's table");
    let place = |name: &str| table.iter().position(|r| r == name);
    let mut wrong = Vec::new();
    for file in &files {
        let own = room(&src, file);
        let Some(at) = place(&own) else { continue };
        for other in imports(&code(file)) {
            if place(&other).is_some_and(|o| o > at) {
                let file = file.strip_prefix(&src).unwrap().display();
                wrong.push(format!("{file}: {own} -> {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "against the table:\n{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::{error::{Error, Result}, wire, json::raw as r};\nfn f() { crate::text::visible(x); }\nuse crate::ledger::Row;";
    let found: Vec<String> = imports(text).into_iter().collect();
    assert_eq!(found, ["error", "json", "ledger", "text", "wire"]);
}
