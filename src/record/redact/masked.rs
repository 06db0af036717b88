//! What a replaced value means to whoever reads it again: it is missing, and can't be compared.

use super::MASK;
use crate::json::flat::leaves;

/// Where values of this JSON were replaced (`arguments.title`), also inside of texts; empty: nowhere.
pub fn masked(text: &str) -> Vec<String> {
    if !text.contains(MASK) {
        return Vec::new();
    }
    let all = leaves(text).unwrap_or_default();
    let paths = all.iter().filter(|(_, v)| v.contains(MASK)).map(|(path, _)| path.join("."));
    let found: Vec<String> = paths.collect();
    // In a name, or in what is no JSON.
    if found.is_empty() { vec!["a value".into()] } else { found }
}

/// Whether a text, or what stands at its place now, may be what this recorded text was before it was replaced.
pub fn is_hidden(recorded: &str, now: &str) -> bool {
    let parts: Vec<&str> = recorded.split(MASK).collect();
    let [first, parts @ .., last] = parts.as_slice() else { return false };
    let Some(mut rest) = now.strip_prefix(*first).and_then(|r| r.strip_suffix(*last)) else {
        return false;
    };
    for part in parts {
        let Some(at) = rest.find(*part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_value_has_a_place_and_fits_what_it_may_have_been() {
        assert_eq!(
            masked(
                r#"{"a":"x [redacted]","b":{"c":["[redacted]"]},"d":"{\"e\":\"[redacted]\"}","f":1}"#
            ),
            ["a", "b.c.0", "d.e"]
        );
        assert_eq!(masked(r#"{"a":1}"#), Vec::<String>::new());
        assert_eq!(masked("[redacted]"), ["a value"]);
        assert!(is_hidden("a [redacted] b [redacted]", "a x b y"));
        assert!(is_hidden(r#""[redacted]""#, r#""""#));
        assert!(!is_hidden("a [redacted] b", "a x c") && !is_hidden("same", "same"));
    }
}
