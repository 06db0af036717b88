//! The three classes into which the article sorts a server's tools before anything else (seed 000: "changes nothing",
//! "repeatable by design", "nothing can stop a second run"), by the hints as listed, and what is odd about a tool's
//! hints. Pure. A hint is the server's word and no proof.

use super::gate::{Ask, tool_gate};
use crate::journal::{Hint, Tool};

/// What running a tool twice comes to, by what the server says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It says that it is read-only, and does not contradict itself.
    ChangesNothing,
    /// It says that the same arguments again have no further effect.
    Repeatable,
    /// Nothing is said to stop a second run: no hint, or none that can be trusted.
    Unprotected,
}

impl Class {
    /// Of a tool as listed; see [`tool_gate`].
    pub fn of(tool: &Tool, list_complete: bool) -> Class {
        match tool_gate(Some(tool), list_complete).ask {
            Ask::None => Class::ChangesNothing,
            Ask::Preview => Class::Repeatable,
            Ask::Ask | Ask::Type => Class::Unprotected,
        }
    }

    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Class::ChangesNothing => "changes_nothing",
            Class::Repeatable => "repeatable",
            Class::Unprotected => "unprotected",
        }
    }
}

/// What is odd about a tool, as sentences. `look_up` names the tool that looks requests up: it takes a request_id and is
/// read-only by right.
pub fn oddities(tool: &Tool, look_up: &str) -> Vec<String> {
    let mut out = Vec::new();
    let keyed = tool.takes_request_id;
    let looks_up = tool.name == look_up;
    if keyed && !looks_up && tool.read_only == Hint::True {
        out.push(format!(
            "says that it is read-only and takes a request_id: clients run read-only calls in parallel and repeat them \
             unasked. If it makes something, the hint is wrong; if it only looks requests up, name it with --lookup {}",
            tool.name
        ));
    }
    if looks_up && tool.read_only != Hint::True {
        out.push(
            "does not say that it is read-only: redial does not look requests up with it by itself"
                .into(),
        );
    }
    if keyed && !looks_up && tool.read_only != Hint::True && tool.idempotent == Hint::Absent {
        out.push(
            "takes a request_id and does not say whether it is idempotent: a repeat with the same request_id may be \
             safe, and no client can know"
                .into(),
        );
    }
    if tool.read_only == Hint::True && tool.destructive == Hint::True {
        out.push("says that it is read-only and that it is destructive".into());
    }
    for (hint, name) in [
        (tool.read_only, "readOnlyHint"),
        (tool.idempotent, "idempotentHint"),
        (tool.destructive, "destructiveHint"),
        (tool.open_world, "openWorldHint"),
    ] {
        if hint == Hint::WrongType {
            out.push(format!("its {name} is not a boolean, so it says nothing"));
        }
    }
    if tool.listed_twice {
        out.push("is listed twice, differently".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, hints: &str, properties: &str) -> Tool {
        Tool::parse(&format!(
            r#"{{"name":"{name}","annotations":{{{hints}}},"inputSchema":{{"properties":{{{properties}}}}}}}"#
        ))
        .unwrap()
    }

    const KEY: &str = r#""request_id":{},"title":{}"#;

    #[test]
    fn tools_are_sorted_by_what_stops_a_second_run() {
        for (hints, want) in [
            (r#""readOnlyHint":true"#, Class::ChangesNothing),
            (r#""readOnlyHint":true,"destructiveHint":true"#, Class::Unprotected),
            (r#""idempotentHint":true"#, Class::Repeatable),
            (r#""idempotentHint":true,"destructiveHint":true"#, Class::Repeatable),
            (r#""idempotentHint":"yes""#, Class::Unprotected),
            (r#""idempotentHint":false"#, Class::Unprotected),
            ("", Class::Unprotected),
        ] {
            let t = tool("t", hints, KEY);
            assert_eq!(Class::of(&t, true), want, "{hints}");
            assert_eq!(
                Class::of(&t, false),
                Class::Unprotected,
                "an incomplete list proves nothing"
            );
        }
    }

    #[test]
    fn a_read_only_tool_with_a_request_id_is_odd_unless_it_is_the_look_up() {
        let said = |name: &str, hints: &str, properties: &str| {
            oddities(&tool(name, hints, properties), "find_request").join("\n")
        };
        let read_only = r#""readOnlyHint":true"#;
        assert!(said("create_ticket", read_only, KEY).contains("in parallel"));
        assert!(
            said("get_request", read_only, r#""request_id":{}"#).contains("--lookup get_request")
        );
        assert_eq!(said("find_request", read_only, r#""request_id":{}"#), "");
        assert_eq!(said("list_tickets", read_only, r#""title":{}"#), "");
        assert_eq!(said("create_ticket", r#""idempotentHint":true"#, KEY), "");
        assert_eq!(said("charge", r#""idempotentHint":false"#, KEY), "");
        assert!(said("find_request", "", r#""request_id":{}"#).contains("by itself"));
        assert!(said("create_ticket", "", KEY).contains("idempotent"));
        assert_eq!(said("charge", "", r#""amount":{}"#), "");
        let odd = said("x", r#""readOnlyHint":true,"destructiveHint":true,"openWorldHint":0"#, "");
        assert!(odd.contains("destructive") && odd.contains("openWorldHint"), "{odd}");
    }
}
