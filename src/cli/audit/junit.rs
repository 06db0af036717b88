//! JUnit XML, as CI systems read it: a test case for each tool, and one for the trace itself.

use super::Audited;
use crate::audit::Finding;
use crate::text::visible;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole document.
pub fn xml(a: &Audited) -> String {
    let audit = &a.trace.audit;
    let mut cases: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    cases.insert("", Vec::new());
    for t in audit.tools.iter().filter(|t| t.calls > 0) {
        cases.insert(&t.name, Vec::new());
    }
    for f in &a.findings {
        cases.entry(f.tool.as_deref().unwrap_or_default()).or_default().push(f);
    }
    let never = audit.never_called();
    let failures = cases.values().filter(|f| !f.is_empty()).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{}\"",
        cases.len() + never.len(),
        never.len()
    );
    let suite = text(&a.trace.path().display().to_string());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"redial audit\" {counts}>\n <testsuite name=\"{suite}\" {counts}>\n"
    );
    for (tool, findings) in &cases {
        let name = if tool.is_empty() { "(the trace)".into() } else { text(tool) };
        let _ = write!(out, "  <testcase classname=\"redial.audit\" name=\"{name}\"");
        if findings.is_empty() {
            out.push_str("/>\n");
            continue;
        }
        let kinds = findings.iter().fold(Vec::new(), |mut k: Vec<&str>, f| {
            if !k.contains(&f.kind.word()) {
                k.push(f.kind.word());
            }
            k
        });
        let lines: Vec<String> = findings.iter().map(|f| line(f)).collect();
        let first = findings.first().map(|f| text(&f.message)).unwrap_or_default();
        let _ = write!(
            out,
            ">\n   <failure type=\"{}\" message=\"{first}\">{}</failure>\n  </testcase>\n",
            kinds.join(" "),
            lines.join("\n")
        );
    }
    for tool in never {
        let name = text(tool);
        let _ = writeln!(
            out,
            "  <testcase classname=\"redial.audit\" name=\"{name}\"><skipped message=\"no call in this trace\"/></testcase>"
        );
    }
    if !a.warnings.is_empty() {
        let all: Vec<String> = a.warnings.iter().map(|w| text(w)).collect();
        let _ = writeln!(out, "  <system-out>{}</system-out>", all.join("\n"));
    }
    out.push_str(" </testsuite>\n</testsuites>\n");
    out
}

fn line(f: &Finding) -> String {
    let place = match f.call {
        Some(n) => format!("call {n}"),
        None => format!("line {}", f.line),
    };
    let sure = if f.inferred { " (inferred)" } else { "" };
    text(&format!("{} {}: {place}: {}{sure}", f.severity.word(), f.kind.word(), f.message))
}

/// Foreign text in XML: visible first, then escaped. (XML 1.0, section 2.2: some characters can't stand there at all.)
fn text(foreign: &str) -> String {
    let mut out = String::new();
    for c in visible(foreign).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn nothing_foreign_is_markup() {
        assert_eq!(text("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&apos;");
        assert_eq!(text("\u{1b}]0;x\u{7}\u{202e}"), "^[]0;x^G&lt;U+202E&gt;");
        assert_eq!(text("]]>\u{ffff}"), "]]&gt;\u{fffd}");
    }
}
