//! The one page (Markdown): where authorization must be checked first, then who makes state and who uses it, the life
//! of the handles, what needs a connection, and all findings. Foreign text is made visible and can't be markup.

use super::finding::{Finding, Kind};
use super::fold::{Audit, Tool};
use super::handle::Handle;
use crate::record::redact::MASK;
use crate::text::visible;
use std::fmt::Write;

/// Handles shown in the table of lives, the most telling first.
const LIVES: usize = 60;
/// Findings shown in a section.
const SHOWN: usize = 40;

/// Writes the page. `file` and `contracts` are names of files; values under a name that `secret` knows are hidden.
pub fn markdown(
    audit: &Audit,
    (file, contracts): (&str, Option<&str>),
    findings: &[Finding],
    warnings: &[String],
    secret: &dyn Fn(&str) -> bool,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# State handles in {}\n", cell(file));
    summary(&mut out, audit, contracts, findings, warnings);
    authorization(&mut out, audit, findings);
    tools(&mut out, audit);
    lives(&mut out, audit, secret);
    connection(&mut out, findings);
    rest(&mut out, findings);
    out
}

fn summary(
    out: &mut String,
    audit: &Audit,
    contracts: Option<&str>,
    findings: &[Finding],
    warnings: &[String],
) {
    let from = match contracts {
        Some(c) => format!("Contracts: {}.", cell(c)),
        None => {
            "No contracts: what is a handle was **inferred** from names; a person must confirm it."
                .into()
        }
    };
    let lives = audit.lives();
    let ended: Vec<String> = lives
        .iter()
        .filter_map(|(n, (_, ended))| Some(format!("life {n}: {}", cell((*ended)?))))
        .collect();
    let _ = writeln!(
        out,
        "{} calls, {} handles made, {} lives of the server{}. {} findings. {from}\n",
        audit.calls,
        audit.handles.len(),
        lives.len(),
        if ended.is_empty() { String::new() } else { format!(" ({})", ended.join("; ")) },
        findings.len(),
    );
    for w in warnings {
        let _ = writeln!(out, "> {}\n", cell(w));
    }
}

fn makers(audit: &Audit) -> Vec<(u32, &Tool)> {
    (0u32..).zip(&audit.tools).filter(|(_, t)| !t.makes.is_empty()).collect()
}

fn users(audit: &Audit) -> Vec<&Tool> {
    audit.tools.iter().filter(|t| !t.uses.is_empty()).collect()
}

fn names(audit: &Audit, keys: impl Iterator<Item = u32>) -> String {
    keys.map(|n| code(audit.name_of(n))).collect::<Vec<_>>().join(", ")
}

fn authorization(out: &mut String, audit: &Audit, findings: &[Finding]) {
    let _ = writeln!(
        out,
        "## Where authorization must be checked\n\nA handle points at a thing; it grants nothing. In each of these tools the owner of what the handle names must be compared with whoever calls, by credentials and not by the handle.\n"
    );
    let foreign: Vec<&Finding> =
        findings.iter().filter(|f| f.kind == Kind::ForeignHandle).collect();
    if !foreign.is_empty() {
        let _ = writeln!(
            out,
            "**Used by another session, client or credential than the one that made it:**\n"
        );
        list(out, &foreign);
    }
    let mut rows: Vec<(u64, String)> = Vec::new();
    for t in users(audit) {
        for n in t.uses.keys() {
            let name = audit.name_of(*n);
            let others = foreign
                .iter()
                .filter(|f| f.tool.as_deref() == Some(&t.name) && f.handle.as_deref() == Some(name))
                .count() as u64;
            let seen = match others {
                0 => "not in this trace".to_owned(),
                n => format!("**{n} times**"),
            };
            let made_by: Vec<String> = audit
                .tools
                .iter()
                .filter(|m| m.makes.keys().any(|k| same(audit, *k, *n)))
                .map(|m| code(&m.name))
                .collect();
            let made_by =
                if made_by.is_empty() { "nothing here".into() } else { made_by.join(", ") };
            rows.push((
                others,
                format!("| {} | {} | {made_by} | {seen} |", code(&t.name), code(name)),
            ));
        }
    }
    rows.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    if rows.is_empty() {
        let _ = writeln!(out, "No tool in this trace takes a handle.\n");
        return;
    }
    let _ = writeln!(out, "| check in | handle | made by | used by others |\n|---|---|---|---|");
    for (_, row) in rows {
        let _ = writeln!(out, "{row}");
    }
    out.push('\n');
}

fn same(audit: &Audit, a: u32, b: u32) -> bool {
    a == b || super::names::plain(audit.name_of(a)) == super::names::plain(audit.name_of(b))
}

fn tools(out: &mut String, audit: &Audit) {
    let _ = writeln!(out, "## Tools that make state\n");
    let makers = makers(audit);
    if makers.is_empty() {
        let _ = writeln!(out, "None that this trace shows.\n");
    } else {
        let _ = writeln!(out, "| tool | returns | calls | values | |\n|---|---|---|---|---|");
        for (n, t) in &makers {
            let values: u64 = t.makes.values().sum();
            let remark = match (t.reads, audit.makes_words(*n)) {
                (true, _) => "says that it only reads: it lists what others made",
                (_, None) => "returns the same values again: it lists",
                _ => "",
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {values} | {remark} |",
                code(&t.name),
                names(audit, t.makes.keys().copied()),
                t.calls
            );
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Tools that use state\n");
    let users = users(audit);
    if users.is_empty() {
        let _ = writeln!(out, "None that this trace shows.\n");
    } else {
        let _ =
            writeln!(out, "| tool | takes | calls | without any | failed |\n|---|---|---|---|---|");
        for t in users {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                code(&t.name),
                names(audit, t.uses.keys().copied()),
                t.calls,
                t.bare,
                t.failed
            );
        }
        out.push('\n');
    }
    let silent: Vec<String> = audit
        .tools
        .iter()
        .filter(|t| t.calls > 0 && t.makes.is_empty() && t.uses.is_empty() && !t.reads)
        .map(|t| code(&t.name))
        .collect();
    if !silent.is_empty() {
        let _ = writeln!(
            out,
            "**No handle in or out:** {}. Either they need no state, or it hides in the session: a trace can't tell, `redial audit TRACE --fresh-sessions ENDPOINT` can.\n",
            silent.join(", ")
        );
    }
}

fn lives(out: &mut String, audit: &Audit, secret: &dyn Fn(&str) -> bool) {
    let all = audit.handles.all();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "## The life of the handles\n");
    let _ = writeln!(out, "| handle | made | used | fate |\n|---|---|---|---|");
    let mut order: Vec<&Handle> = all.iter().collect();
    order.sort_by_key(|h| (fate_rank(h), std::cmp::Reverse(h.uses), h.call));
    for h in order.iter().take(LIVES) {
        let used = match (h.uses, h.used_on.as_slice()) {
            (0, _) => "never".to_owned(),
            (n, []) => format!("{n}× in life {}", h.who.generation),
            (n, on) => {
                let on: Vec<String> = on.iter().map(u32::to_string).collect();
                format!("{n}×, also in life {}", on.join(", "))
            }
        };
        let _ = writeln!(
            out,
            "| {} = {} | life {}, call {} ({}) | {used} | {} |",
            code(audit.name_of(h.name)),
            code(if secret(audit.name_of(h.name)) { MASK } else { &h.value }),
            h.who.generation,
            h.call,
            code(&audit.tool_of(h.tool).name),
            fate(h)
        );
    }
    if all.len() > LIVES {
        let _ = writeln!(
            out,
            "\n… and {} more, which lived and ended with nothing to tell.",
            all.len() - LIVES
        );
    }
    out.push('\n');
}

fn fate_rank(h: &Handle) -> u8 {
    match h {
        _ if !h.again.is_empty() => 0,
        _ if h.lost.is_some() => 1,
        _ if !h.foreign.is_empty() => 2,
        _ if h.across.is_some() => 3,
        _ if h.uses > 0 => 4,
        _ => 5,
    }
}

fn fate(h: &Handle) -> String {
    let mut parts = Vec::new();
    for (call, life) in &h.again {
        parts.push(format!("**made again** in life {life} (call {call})"));
    }
    if let Some((call, life)) = h.lost {
        parts.push(format!("**lost**: refused in life {life} (call {call})"));
    }
    if !h.foreign.is_empty() {
        parts.push("**used by others**".into());
    }
    if let Some((_, life)) = h.across {
        parts.push(format!("still good in life {life}"));
    }
    match h.last {
        Some((call, _, None)) => parts.push(format!("last use (call {call}) never answered")),
        Some((call, _, Some(false))) if h.lost.is_none() => {
            parts.push(format!("last use (call {call}) answered with an error"));
        }
        _ => {}
    }
    parts.join("; ")
}

fn connection(out: &mut String, findings: &[Finding]) {
    let needs: Vec<&Finding> =
        findings.iter().filter(|f| f.kind == Kind::NeedsConnection).collect();
    let _ = writeln!(out, "## What needs a connection\n");
    if needs.is_empty() {
        let _ = writeln!(
            out,
            "Nothing in this trace: no request of the server, no subscription, no notification outside of a call.\n"
        );
    } else {
        list(out, &needs);
    }
}

fn rest(out: &mut String, findings: &[Finding]) {
    let rest: Vec<&Finding> = findings
        .iter()
        .filter(|f| !matches!(f.kind, Kind::NeedsConnection | Kind::ForeignHandle))
        .collect();
    let _ = writeln!(out, "## Findings\n");
    if rest.is_empty() {
        let _ = writeln!(out, "None.");
    } else {
        list(out, &rest);
    }
}

fn list(out: &mut String, findings: &[&Finding]) {
    for f in findings.iter().take(SHOWN) {
        let place = match f.call {
            Some(n) => format!(" call {n}:"),
            None if f.line > 0 => format!(" line {}:", f.line),
            None => String::new(),
        };
        let sure = if f.inferred { " (inferred)" } else { "" };
        let _ = writeln!(
            out,
            "- **{}**{place} {}{sure}",
            f.kind.word().replace('_', " "),
            cell(&f.message)
        );
    }
    if findings.len() > SHOWN {
        let _ = writeln!(out, "- … and {} more; `--json` has them", findings.len() - SHOWN);
    }
    out.push('\n');
}

/// Foreign text in a line or a cell of a table: visible, and every character that Markdown or HTML could take for
/// markup escaped.
fn cell(foreign: &str) -> String {
    let mut out = String::new();
    let text = visible(foreign);
    let mut all = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = all.next() {
        let inside = before.is_alphanumeric() && all.peek().is_some_and(|n| n.is_alphanumeric());
        before = c;
        match c {
            // Inside a word it means nothing (GitHub's Markdown, section 6.2).
            '_' if inside => out.push('_'),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '$' | '@' => {
                out.push('\\');
                out.push(c);
            }
            // A bare address would become a link.
            ':' => out.push_str("&#58;"),
            c => out.push(c),
        }
    }
    // Colons of our own sentences read better plain; only `://` makes a link.
    out.replace("&#58;//", "\u{0}").replace("&#58;", ":").replace('\u{0}', "&#58;//")
}

/// Foreign text as code in a table: backticks can't close it, a bar can't end the cell.
fn code(foreign: &str) -> String {
    let text = visible(foreign);
    let short = crate::text::truncate(&text, 80, "…");
    if short.contains(['`', '|', '\\']) {
        return cell(&short);
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::{cell, code};

    #[test]
    fn nothing_foreign_is_markup() {
        assert_eq!(
            cell("<img src=x>|[a](http://b)\u{1b}[0m"),
            "&lt;img src=x&gt;\\|\\[a\\](http&#58;//b)^\\[\\[0m"
        );
        assert_eq!(cell("call 1: **b**"), "call 1: \\*\\*b\\*\\*");
        assert_eq!(code("b-1"), "`b-1`");
        assert_eq!(code("a`b"), "a\\`b");
        assert_eq!(code("<b>"), "`<b>`");
        assert!(!code("a\u{202e}b\nc").contains(['\u{202e}', '\n']));
    }
}
