//! `redial verify`: is there exactly one effect for each request? Counts, broken invariants, one sentence.

use super::args::VerifyArgs;
use super::json::document;
use super::open::{ledger_remarks, open_ledger};
use super::plain::{Cell, Plain, Role, print_raw};
use super::report::Done;
use crate::error::{Error, Exit};
use crate::inspect::Inspector;
use crate::judge::State;
use crate::judge::verify::{Expected, Problem, Severity, Totals, Verified};
use crate::time::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Problems shown to people; `--json` has all that are named.
const SHOWN: usize = 40;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    requests: BTreeMap<String, u64>,
    effects: Option<u64>,
    exactly_once: bool,
    sentence: String,
    problems: Vec<ProblemJson>,
    labels: BTreeMap<String, u64>,
    /// When it was counted.
    as_of: String,
    /// Everything came from one state of the file.
    one_snapshot: bool,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct ProblemJson {
    kind: &'static str,
    severity: &'static str,
    request_ids: Vec<String>,
    detail: String,
}

pub async fn run(a: VerifyArgs) -> Done {
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let Some(ledger) = ledger else {
        return Err(Error::usage("verify needs a ledger")
            .hint("name the server's SQLite file: --ledger FILE")
            .into());
    };
    let labels = a.expect.iter().map(|e| expectation(e)).collect::<Result<Vec<_>, _>>()?;
    let expected = Expected { labels, total: a.expect_total };
    let inspector = Inspector::new(Some(ledger), None, rules);
    let as_of = Time::now();
    let (totals, verified, how) = inspector.verify_with(&expected, a.strict, true).await?;
    let mut remarks = ledger_remarks(Some(&how));
    if !totals.one_moment {
        remarks.push(
            "a writer committed while this was counted: the numbers are from different moments"
                .into(),
        );
    }
    let exit = if verified.passes() { Exit::Good } else { Exit::Found };
    if a.json {
        let doc = Doc {
            schema: "redial/verify@1",
            requests: totals.requests.iter().map(|(s, n)| (s.word().to_owned(), *n)).collect(),
            effects: totals.effects,
            exactly_once: verified.exactly_once,
            sentence: verified.sentence,
            problems: verified.problems.into_iter().map(json).collect(),
            labels: totals.labels,
            as_of: as_of.rfc3339(),
            one_snapshot: totals.one_moment,
            remarks,
        };
        print_raw(&document(&doc));
    } else {
        plain(&totals, &verified, &remarks);
    }
    Ok(exit)
}

/// `LABEL=N`: a label may hold `=`, so the last one splits.
fn expectation(text: &str) -> Result<(String, u64), Error> {
    let parsed = text.rsplit_once('=').and_then(|(label, n)| Some((label, n.trim().parse().ok()?)));
    match parsed {
        Some((label, n)) if !label.is_empty() => Ok((label.to_owned(), n)),
        _ => Err(Error::usage(format!("--expect {text} is not LABEL=N"))
            .hint("for example --expect 'Rotate the on-call key=1'")),
    }
}

fn severity(s: Severity) -> &'static str {
    match s {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn json(p: Problem) -> ProblemJson {
    ProblemJson {
        kind: p.kind,
        severity: severity(p.severity),
        request_ids: p.request_ids,
        detail: p.detail,
    }
}

/// A few of many ids.
fn some(ids: &[String]) -> String {
    let shown = ids.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(6) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn plain(t: &Totals, v: &Verified, remarks: &[String]) {
    let mut p = Plain::stdout();
    let total: u64 = t.requests.values().sum();
    let done = t.requests.get(&State::Done).map(|n| (&State::Done, n));
    let rest = t.requests.iter().filter(|(s, _)| **s != State::Done);
    let states: Vec<String> =
        done.into_iter().chain(rest).map(|(s, n)| format!("{n} {}", s.word())).collect();
    let states = if states.is_empty() {
        total.to_string()
    } else {
        format!("{total}: {}", states.join(", "))
    };
    p.field("requests", Role::Text, &states);
    let effects = t.effects.map_or("this ledger has no effects table".into(), |n| n.to_string());
    p.field("effects", Role::Text, &effects);
    for (label, n) in &t.labels {
        p.field("label", Role::Text, &format!("{n} × {label}"));
    }
    for r in remarks {
        p.field("note", Role::Dim, r);
    }
    if !v.problems.is_empty() {
        p.gap();
        let row = |problem: &Problem| -> Vec<Cell> {
            let role = match problem.severity {
                Severity::Error => Role::Bad,
                Severity::Warning => Role::Warn,
            };
            vec![
                (role, severity(problem.severity).to_owned()),
                (role, problem.kind.replace('_', " ")),
                (Role::Text, some(&problem.request_ids)),
                (Role::Dim, problem.detail.clone()),
            ]
        };
        p.table(&v.problems.iter().take(SHOWN).map(row).collect::<Vec<_>>(), 2);
        let more = v.problems.len().saturating_sub(SHOWN);
        if more > 0 {
            p.line(Role::Dim, &format!("… and {more} more; --json names them"));
        }
    }
    p.gap();
    let role = match (v.passes(), v.exactly_once) {
        (true, true) => Role::Good,
        (true, false) => Role::Warn,
        (false, _) => Role::Bad,
    };
    p.line(role, &v.sentence);
    p.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_equals_sign_splits_a_label_from_its_number() {
        assert_eq!(expectation("障害報告=1"), Ok(("障害報告".into(), 1)));
        assert_eq!(expectation("a=b=0"), Ok(("a=b".into(), 0)));
        assert_eq!(expectation("x == 2"), Ok(("x =".into(), 2)));
        for bad in ["a", "=1", "a=", "a=-1", "a=1.5", "1"] {
            assert_eq!(expectation(bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
    }
}
