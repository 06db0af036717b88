//! Tool arguments mirrored into HTTP headers (2026-07-28, streamable-http, "Custom Headers from Tool Parameters"):
//! which properties of a schema ask for it, whether they may, and the values. Pure text in, text out.

use crate::json::raw;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;

/// What a property of a schema has that asks for it.
pub const KEY: &str = "x-mcp-header";
/// How deep a schema is followed; an annotation below that is invalid.
const DEPTH: usize = 64;

/// A property that asks to be mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The part of the header's name after `Mcp-Param-`.
    pub name: String,
    /// The way to the argument.
    pub path: Vec<String>,
}

/// The `x-mcp-header` annotations of an input schema.
///
/// # Errors
/// Why the tool must not be used over HTTP: an annotation that is empty, no token, there twice (ignoring
/// case), on anything but a string, integer or boolean, or not reachable through `properties` alone.
pub fn annotations(schema: &str) -> Result<Vec<Mirror>, String> {
    let mut out: Vec<Mirror> = Vec::new();
    if !schema.contains(KEY) {
        return Ok(out);
    }
    let mut names = HashSet::new();
    // A schema, the way to it, and whether `properties` alone lead there. An own stack: depth is the server's.
    let mut todo = vec![(schema, Vec::<String>::new(), true, 0)];
    while let Some((text, path, reachable, depth)) = todo.pop() {
        if depth > DEPTH {
            return Err(format!("{KEY} in a schema nested over {DEPTH} levels"));
        }
        let Some(members) = raw::members(text) else {
            let items = raw::items(text).unwrap_or_default();
            todo.extend(items.into_iter().map(|i| (i, path.clone(), false, depth + 1)));
            continue;
        };
        if let Some((_, value)) = members.iter().find(|(k, _)| k == KEY) {
            let at = if path.is_empty() { "the schema".to_owned() } else { path.join(".") };
            let name = raw::as_str(value).ok_or(format!("{KEY} of {at} is not a string"))?;
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(format!("{KEY} {name:?} of {at} is not a header token"));
            }
            if !reachable || path.is_empty() {
                return Err(format!("{KEY} {name:?} of {at} is not reachable through properties"));
            }
            let kind = members.iter().find(|(k, _)| k == "type").and_then(|(_, t)| raw::as_str(t));
            if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
                let kind = kind.unwrap_or_else(|| "untyped".into());
                return Err(format!("{KEY} {name:?} of {at} is on a value of type {kind}"));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(format!("{KEY} {name:?} is there twice"));
            }
            out.push(Mirror { name, path: path.clone() });
        }
        for (key, value) in members {
            match key.as_ref() {
                "properties" => {
                    for (name, schema) in raw::members(value).unwrap_or_default() {
                        let mut path = path.clone();
                        path.push(name.into_owned());
                        todo.push((schema, path, reachable, depth + 1));
                    }
                }
                // Data, not schemas.
                "default" | "const" | "enum" | "examples" => {}
                _ if value.contains(KEY) => todo.push((value, path.clone(), false, depth + 1)),
                _ => {}
            }
        }
    }
    Ok(out)
}

/// The headers that mirror `args` of a tool with this schema. Null and absent arguments have none.
pub fn headers(schema: &str, args: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = annotations(schema)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|m| {
            let path: Vec<&str> = m.path.iter().map(String::as_str).collect();
            let value = header_text(raw::get_path(args, &path)?)?;
            Some((format!("Mcp-Param-{}", m.name), value))
        })
        .collect();
    out.sort();
    out
}

fn header_text(value: &str) -> Option<String> {
    let value = value.trim();
    match value.as_bytes().first()? {
        b'"' => raw::as_str(value).map(|s| header_value(&s)),
        b't' | b'f' => Some(value.to_owned()),
        b'-' | b'0'..=b'9' => Some(match value.parse::<f64>() {
            // An integer in another spelling (1e2, 100.0) goes as its digits.
            Ok(f) if value.contains(['.', 'e', 'E']) && f.fract() == 0.0 && f.abs() < 9.0e15 => {
                format!("{}", f as i64)
            }
            _ => value.to_owned(),
        }),
        _ => None,
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// A value that a header can carry: as it is, or as the base64 sentinel when it holds anything else than
/// visible ASCII and inner blanks, or looks like the sentinel itself.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(properties: &str) -> String {
        format!(r#"{{"type":"object","properties":{properties}}}"#)
    }

    #[test]
    fn only_legal_annotations_are_taken() {
        let good = schema(
            r#"{"a":{"type":"string","x-mcp-header":"Region","default":{"x-mcp-header":""}},"b":{"type":"object","properties":{"c":{"type":"integer","x-mcp-header":"Deep"}}},"x-mcp-header":{"type":"string"}}"#,
        );
        let mut names: Vec<_> =
            annotations(&good).unwrap().into_iter().map(|m| (m.name, m.path.join("."))).collect();
        names.sort();
        assert_eq!(names, [("Deep".into(), "b.c".into()), ("Region".into(), "a".into())]);
        for (bad, word) in [
            (r#"{"a":{"type":"string","x-mcp-header":""}}"#, "token"),
            (r#"{"a":{"type":"string","x-mcp-header":"My Region"}}"#, "token"),
            (r#"{"a":{"type":"string","x-mcp-header":"Région"}}"#, "token"),
            (r#"{"a":{"type":"string","x-mcp-header":"a:b"}}"#, "token"),
            (r#"{"a":{"type":"string","x-mcp-header":7}}"#, "not a string"),
            (r#"{"a":{"type":"object","x-mcp-header":"R"}}"#, "type object"),
            (r#"{"a":{"type":"array","x-mcp-header":"R"}}"#, "type array"),
            (r#"{"a":{"type":"null","x-mcp-header":"R"}}"#, "type null"),
            (r#"{"a":{"type":"number","x-mcp-header":"R"}}"#, "type number"),
            (
                r#"{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}"#,
                "twice",
            ),
            (r#"{"a":{"items":{"type":"string","x-mcp-header":"R"}}}"#, "reachable"),
            (r#"{"a":{"oneOf":[{"type":"string","x-mcp-header":"R"}]}}"#, "reachable"),
        ] {
            let why = annotations(&schema(bad)).unwrap_err();
            assert!(why.contains(word), "{bad}: {why}");
        }
        let deep =
            format!("{}{}{}", r#"{"a":"#.repeat(5000), r#""x-mcp-header""#, "}".repeat(5000));
        assert!(annotations(&deep).is_err());
    }

    #[test]
    fn values_are_mirrored_as_the_specification_spells_them() {
        let s = schema(
            r#"{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},"o":{"properties":{"p":{"type":"string","x-mcp-header":"P"}}},"plain":{"type":"string"}}"#,
        );
        let got = headers(&s, r#"{"s":"日","n":1e2,"b":false,"o":{"p":"in side"},"plain":"x"}"#);
        let want = [
            ("Mcp-Param-B", "false"),
            ("Mcp-Param-N", "100"),
            ("Mcp-Param-P", "in side"),
            ("Mcp-Param-S", "=?base64?5pel?="),
        ];
        assert_eq!(got, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(headers(&s, r#"{"s":null,"o":7}"#), []);
    }

    #[test]
    fn unsafe_header_values_are_wrapped() {
        // RFC 4648, section 10, and the specification's sentinel form.
        for (text, want) in [
            ("create_ticket", "create_ticket"),
            ("fo", "fo"),
            ("", ""),
            (" fo", "=?base64?IGZv?="),
            ("日", "=?base64?5pel?="),
            ("é", "=?base64?w6k=?="),
            ("a\n", "=?base64?YQo=?="),
            ("=?base64?Zm8=?=", "=?base64?PT9iYXNlNjQ/Wm04PT89?="),
        ] {
            assert_eq!(header_value(text), want);
        }
    }
}
