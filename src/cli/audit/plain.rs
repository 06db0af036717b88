//! The findings for people.

use super::Audited;
use crate::audit::Severity;
use crate::audit::infer::{Proposal, Sure};
use crate::cli::plain::{Cell, Plain, Role};
use crate::inspect::audit::Trace;
use std::path::Path;

/// Findings shown to people; `--json` has all that are kept.
const SHOWN: usize = 40;

/// `n` things.
pub fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

fn head(p: &mut Plain, trace: &Trace) {
    let audit = &trace.audit;
    p.field("trace", Role::Strong, &trace.path().display().to_string());
    let lives = audit.lives().len() as u64;
    let unanswered = match audit.unanswered() {
        0 => String::new(),
        n => format!(", {n} without an answer where the trace ends"),
    };
    let on = if lives > 1 { format!(" on {lives} lives of the server") } else { String::new() };
    p.field("calls", Role::Text, &format!("{}{on}{unanswered}", audit.calls));
}

/// Prints them.
pub fn print(a: &Audited) {
    let mut p = Plain::stdout();
    let audit = &a.trace.audit;
    head(&mut p, &a.trace);
    let contracts = match &a.contracts {
        Some(path) => path.display().to_string(),
        None => "none: handles are inferred from their names; --infer proposes contracts".into(),
    };
    p.field("contracts", Role::Text, &contracts);
    let (makes, uses) = audit.flows();
    for (name, value) in [("makes state", makes), ("uses it", uses)] {
        if !value.is_empty() {
            p.field(name, Role::Text, &value);
        }
    }
    for w in &a.warnings {
        p.field("note", Role::Warn, w);
    }
    p.gap();
    let row = |f: &crate::audit::Finding| -> Vec<Cell> {
        let role = match f.severity {
            Severity::Error => Role::Bad,
            Severity::Warning => Role::Warn,
            Severity::Note => Role::Text,
        };
        let place = match f.call {
            Some(n) => format!("call {n}"),
            None if f.line > 0 => format!("line {}", f.line),
            None => String::new(),
        };
        let sure = if f.inferred { " (inferred)" } else { "" };
        vec![
            (role, f.severity.word().to_owned()),
            (role, f.kind.word().replace('_', " ")),
            (Role::Strong, place),
            (Role::Text, format!("{}{sure}", f.message)),
        ]
    };
    if !a.findings.is_empty() {
        p.table(&a.findings.iter().take(SHOWN).map(row).collect::<Vec<_>>(), 1);
        let more = a.findings.len().saturating_sub(SHOWN);
        if more > 0 {
            p.line(Role::Dim, &format!("… and {more} more; --json has them"));
        }
        p.gap();
    }
    let total: u64 = a.counts.iter().map(|(_, n)| n).sum();
    let kinds: Vec<String> =
        a.counts.iter().map(|(k, n)| format!("{n} {}", k.replace('_', " "))).collect();
    let kept_all = audit.forgot.is_empty();
    let (role, last) = last(total, audit.calls, kept_all, a.contracts.is_some(), &kinds);
    p.line(role, &last);
    p.print();
}

/// The last line. Where not all was kept, what was not found may have been there.
fn last(
    total: u64,
    calls: u64,
    kept_all: bool,
    has_contracts: bool,
    kinds: &[String],
) -> (Role, String) {
    match total {
        0 if calls == 0 => (Role::Warn, "no call, so nothing was found".to_owned()),
        0 if !kept_all => {
            (Role::Warn, "nothing found in what was kept of it: see the notes above".to_owned())
        }
        0 if has_contracts => {
            (Role::Good, "nothing found: every handle came from a call of this trace".to_owned())
        }
        0 => {
            (Role::Good, "nothing found, as far as names tell which values are handles".to_owned())
        }
        n => (Role::Strong, format!("{}: {}", counted(n, "finding"), kinds.join(" · "))),
    }
}

/// Prints proposed contracts.
pub fn proposed(trace: &Trace, proposals: &[Proposal], file: Option<&Path>) {
    let mut p = Plain::stdout();
    head(&mut p, trace);
    p.gap();
    let row = |x: &Proposal| -> Vec<Cell> {
        let role = match x.sure {
            Sure::High => Role::Good,
            Sure::Medium => Role::Warn,
            Sure::Low => Role::Dim,
        };
        vec![
            (role, x.sure.word().to_owned()),
            (Role::Strong, x.tool.clone()),
            (Role::Dim, if x.produces { "produces" } else { "requires" }.to_owned()),
            (Role::Text, x.name.clone()),
            (Role::Dim, x.why.clone()),
        ]
    };
    if proposals.is_empty() {
        p.line(Role::Warn, "nothing to propose: no value that a result brought came back as an argument, and no name looks like a handle's");
    } else {
        p.table(&proposals.iter().map(row).collect::<Vec<_>>(), 1);
        p.gap();
    }
    if let Some(file) = file {
        let file = file.display();
        p.line(
            Role::Strong,
            &format!("written to {file}: look it over, then redial audit TRACE --contracts {file}"),
        );
    }
    p.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_only_found_to_be_nothing_where_all_was_kept() {
        let said = |calls, kept_all, has_contracts| last(0, calls, kept_all, has_contracts, &[]).1;
        assert!(said(3, true, true).ends_with("every handle came from a call of this trace"));
        assert!(said(3, true, false).contains("as far as names tell"));
        for has_contracts in [true, false] {
            assert!(said(3, false, has_contracts).contains("in what was kept of it"));
        }
        assert!(said(0, false, true).starts_with("no call"));
    }
}
