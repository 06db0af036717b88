//! JSON as a list of its leaves with their paths, for comparing: order of members and spelling of numbers don't
//! count, and JSON that stands in a text is looked into.

use crate::json::python::python_dumps;
use crate::json::scan::{Kind, Scanner, unescape};
use std::collections::BTreeMap;

/// JSON in a string in JSON …: how far that is followed.
const NESTED: u32 = 3;

/// One step of a path.
type Step = String;

struct Open {
    object: bool,
    index: usize,
    empty: bool,
}

/// Leaves by path (`content.0.text`), each in one spelling; empty containers are leaves too. `None` when it is
/// no JSON.
pub fn leaves(text: &str) -> Option<BTreeMap<Vec<Step>, String>> {
    let mut out = BTreeMap::new();
    walk(text, &mut Vec::new(), NESTED, &mut out).then_some(out)
}

fn walk(
    text: &str,
    path: &mut Vec<Step>,
    nested: u32,
    out: &mut BTreeMap<Vec<Step>, String>,
) -> bool {
    let base = path.len();
    let mut found: Vec<(Vec<Step>, String)> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for token in Scanner::new(text) {
        let Ok(t) = token else {
            path.truncate(base);
            return false;
        };
        if t.kind == Kind::Key {
            let key = String::from_utf8_lossy(&unescape(t.raw)).into_owned();
            path.truncate(base + open.len() - 1);
            path.push(key);
            if let Some(o) = open.last_mut() {
                o.empty = false;
            }
            continue;
        }
        if matches!(t.kind, Kind::ObjectEnd | Kind::ArrayEnd) {
            if let Some(o) = open.pop() {
                path.truncate(base + open.len());
                if o.empty {
                    found.push((path.clone(), if o.object { "{}" } else { "[]" }.into()));
                }
            }
            continue;
        }
        if let Some(o) = open.last_mut().filter(|o| !o.object) {
            let step = o.index.to_string();
            o.index += 1;
            o.empty = false;
            path.truncate(base + open.len() - 1);
            path.push(step);
        }
        match t.kind {
            Kind::ObjectStart | Kind::ArrayStart => {
                open.push(Open { object: t.kind == Kind::ObjectStart, index: 0, empty: true });
            }
            Kind::String => {
                let inner = unescape(t.raw);
                let inner = String::from_utf8_lossy(&inner);
                let mut deeper = BTreeMap::new();
                let is_json = nested > 0
                    && inner.trim_start().starts_with(['{', '['])
                    && walk(&inner, &mut path.clone(), nested - 1, &mut deeper);
                if is_json {
                    found.extend(deeper);
                } else {
                    found.push((path.clone(), crate::json::raw::quote(&inner)));
                }
            }
            _ => {
                let plain = python_dumps(t.raw, false, &[]).unwrap_or_else(|_| t.raw.to_owned());
                found.push((path.clone(), plain));
            }
        }
    }
    path.truncate(base);
    out.extend(found);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Vec<String> {
        let all = leaves(text).unwrap();
        all.into_iter().map(|(p, v)| format!("{}={v}", p.join("."))).collect()
    }

    #[test]
    fn leaves_have_paths_and_nested_json_is_looked_into() {
        assert_eq!(
            flat(r#"{"b":[1,{"c":null},[]],"a":"x","t":"{\"n\": 1.50, \"l\":[true]}","e":{}}"#),
            ["a=\"x\"", "b.0=1", "b.1.c=null", "b.2=[]", "e={}", "t.l.0=true", "t.n=1.5"]
        );
        assert_eq!(flat("3"), ["=3"]);
        assert_eq!(flat(r#""{no json""#), ["=\"{no json\""]);
        assert!(leaves("{").is_none());
        assert_eq!(flat(r#"[[1],[2,[3]]]"#), ["0.0=1", "1.0=2", "1.1.0=3"]);
    }
}
