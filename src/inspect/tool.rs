//! What a call names: a tool, which a complete list must have, and one request.

use crate::error::{Error, Result};
use crate::journal::{Tool, ToolList};
use crate::json::key::{REQUEST_ID, times};
use crate::near::near;

/// The tool of that name; a name that a complete list doesn't have is not called.
///
/// # Errors
/// Exit 2 with near names.
pub fn known_tool<'a>(list: &'a ToolList, name: &str) -> Result<Option<&'a Tool>> {
    match list.find(name) {
        Some(tool) => Ok(Some(tool)),
        None if !list.complete => Ok(None),
        None => {
            let names: Vec<&str> = list.tools.iter().map(|t| t.name.as_str()).collect();
            let near = near(&names, name);
            let error = Error::usage(format!("the server has no tool {name:?}; nothing was sent"));
            let has = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
            Err(match (near.is_empty(), names.len()) {
                (_, 0) => error.hint("it lists no tools at all"),
                (false, _) => error.hint(format!(
                    "did you mean {}? `redial tools` lists all it has",
                    near.join(" or ")
                )),
                (true, 0..=LISTED) => error.hint(format!("it has {has}")),
                (true, n) => error
                    .hint(format!("it has {n}, among them {has}; `redial tools` lists them all")),
            })
        }
    }
}

/// Arguments that name a request name one. Readers differ in which of two they take: the gate would ask about one, and
/// the server do the other. `from`: whose arguments they are.
///
/// # Errors
/// Exit 2.
pub fn named_once(args: &str, from: &str) -> Result<()> {
    match times(args) {
        0 | 1 => Ok(()),
        n => Err(Error::usage(format!(
            "{from}: the arguments have {REQUEST_ID} {n} times; nothing was sent"
        ))),
    }
}

/// Names that are listed in a sentence.
const LISTED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_first() {
        let mut list = ToolList { complete: true, ..ToolList::default() };
        list.add_page(r#"{"tools":[{"name":"find_request"},{"name":"create_ticket"},{"name":"x"},{"name":"close_ticket"}]}"#);
        let e = known_tool(&list, "create_tiket").unwrap_err();
        assert!(e.hint.as_ref().is_some_and(|h| h.contains("did you mean create_ticket?")), "{e}");
        let e = known_tool(&list, "charge").unwrap_err();
        assert!(e.hint.is_some_and(|h| h.starts_with("it has ")));
        list.complete = false;
        assert_eq!(known_tool(&list, "nope"), Ok(None));
    }
}
