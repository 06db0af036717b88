//! What looks like a handle by its name, and when two names mean the same thing.

/// Names of the caller's own key of a request: it is no handle, the caller makes it.
pub const KEYS: [&str; 4] = ["request_id", "requestId", "idempotency_key", "idempotencyKey"];

/// Stems that name who is asking or which message it is, and no state that a tool made.
const NOT_STATE: [&str; 16] = [
    "request",
    "idempotency",
    "trace",
    "span",
    "correlation",
    "client",
    "user",
    "tenant",
    "account",
    "org",
    "organization",
    "owner",
    "message",
    "progress",
    "event",
    "parent",
];

/// Whether a member of this name looks like a handle: `basket_id`, `basketId`, `draft-id`, `basket_ids`,
/// `upload_handle`, `job_uuid`.
pub fn looks_like_handle(name: &str) -> bool {
    let b = name.as_bytes();
    // The common case is no.
    if b.len() < 4 || b.len() > 64 {
        return false;
    }
    let Some(stem) = stem(name) else { return false };
    let last = stem.rsplit(['_', '-', '.']).next().unwrap_or(stem);
    let last = last.rsplit(|c: char| c.is_ascii_uppercase()).next().map_or(last, |tail| {
        let at = last.len() - tail.len();
        if at > 0 { last.get(at - 1..).unwrap_or(last) } else { last }
    });
    !stem.is_empty() && !NOT_STATE.contains(&last.to_ascii_lowercase().as_str())
}

/// What stands before the ending that makes a name a handle's.
fn stem(name: &str) -> Option<&str> {
    const SEPARATED: [&str; 8] =
        ["_id", "_ids", "_handle", "_handles", "_uuid", "_ref", "-id", "-ids"];
    const CAMEL: [&str; 6] = ["Id", "Ids", "ID", "IDs", "Handle", "Uuid"];
    SEPARATED.iter().find_map(|e| name.strip_suffix(e)).or_else(|| {
        let stem = CAMEL.iter().find_map(|e| name.strip_suffix(e))?;
        stem.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).then_some(stem)
    })
}

/// A name without what differs from place to place: case, separators, the plural of a list.
pub fn plain(name: &str) -> String {
    let mut out: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect();
    if out.ends_with("ids") || out.ends_with("handles") {
        out.pop();
    }
    out
}

/// Whether two names can mean one thing: equal but for spelling, or one says more than the other (`basket_id`,
/// `source_basket_id`, and a bare `id` beside anything).
pub fn related(a: &str, b: &str) -> bool {
    let (a, b) = (plain(a), plain(b));
    let holds = |long: &str, short: &str| {
        long.ends_with(short) || short == "id" || short == "handle" || short == "ref"
    };
    a == b || holds(&a, &b) || holds(&b, &a)
}

/// Whether a contract calls one thing by both names: equal but for spelling, or for the ending that says that it is a
/// handle (`basket`, at the end of a JSON Pointer, and `basket_id`).
pub fn kindred(a: &str, b: &str) -> bool {
    let bare = |name: &str| {
        let p = plain(name);
        let stem = ["id", "handle", "uuid", "ref"].iter().find_map(|e| p.strip_suffix(e));
        stem.filter(|s| !s.is_empty()).map_or_else(|| p.clone(), str::to_owned)
    };
    plain(a) == plain(b) || bare(a) == bare(b)
}

/// Whether a value tells itself apart: not a small number or a short word that two things may well share.
pub fn is_distinctive(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    match value.len() {
        0..=2 => false,
        n if digits == n => n >= 5,
        n => n >= 8 || (digits > 0 && n >= 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_handles_and_others() {
        for yes in [
            "basket_id",
            "basketId",
            "draft-id",
            "basket_ids",
            "upload_handle",
            "job_uuid",
            "ticketID",
            "source_basket_id",
            "pr_id",
        ] {
            assert!(looks_like_handle(yes), "{yes}");
        }
        for no in [
            "id",
            "sku",
            "title",
            "request_id",
            "requestId",
            "user_id",
            "userId",
            "paid",
            "valid",
            "grid",
            "liquid",
            "hybrid",
            "traceId",
            "parent_id",
            "_id",
        ] {
            assert!(!looks_like_handle(no), "{no}");
        }
    }

    #[test]
    fn names_that_can_mean_one_thing() {
        for (a, b, yes) in [
            ("basket_id", "basketId", true),
            ("basket_ids", "basket_id", true),
            ("source_basket_id", "basket_id", true),
            ("id", "basket_id", true),
            ("basket_id", "draft_id", false),
        ] {
            assert_eq!(related(a, b), yes, "{a} {b}");
        }
        for (v, yes) in
            [("1", false), ("42", false), ("b-781", true), ("70512", true), ("open", false)]
        {
            assert_eq!(is_distinctive(v), yes, "{v}");
        }
    }
}
